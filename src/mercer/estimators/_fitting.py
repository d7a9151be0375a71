"""The doors of estimators: parameters are checked, and threads counted, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.base import _fit_context

from .._points import length
from .._runtime import blas_threads, thread_count, threads

__all__ = ["fitting", "threaded"]


def threaded(method: Callable[..., Any]) -> Any:
    """Decorate a method of an estimator that is to run in `n_jobs` threads."""

    @wraps(method)
    def run(self: Any, *args: Any, **params: Any) -> Any:
        count = getattr(self, "n_jobs", None)
        if count == 0:
            raise ValueError("n_jobs == 0 has no meaning; None or -1 stands for all processors")
        if count is not None and count < 0:
            count = max(1, thread_count() + 1 + count)
        with threads(count):
            return method(self, *args, **params)

    return run


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
    checked = _fit_context(prefer_skip_nested_validation=True)(threaded(method))

    @wraps(method)
    def fit(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        try:
            n = length(X)
        except TypeError:  # not a collection: the method says so
            n = 0
        with blas_threads(n):
            return checked(self, X, *args, **params)

    return fit
