"""The door of every fit: its parameters are checked, and few points go to one BLAS thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.base import _fit_context

from .._points import length
from .._runtime import blas_threads, reserving

__all__ = ["fitting"]


def fitting(method: Callable[..., Any]) -> Any:
    """Decorate a method `fit(self, X, ...)`; see `blas_threads` for what few points are.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from mercer.estimators._fitting import fitting
    >>> class Mean(BaseEstimator):
    ...     _parameter_constraints = {}
    ...     @fitting
    ...     def fit(self, X):
    ...         return sum(X) / len(X)
    >>> Mean().fit([1.0, 2.0])
    1.5
    """
    checked = _fit_context(prefer_skip_nested_validation=True)(method)

    @wraps(method)
    def fit(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        try:
            n = length(X)
        except TypeError:  # not a collection: the method says so
            n = 0
        with blas_threads(n), reserving():
            return checked(self, X, *args, **params)

    return fit
