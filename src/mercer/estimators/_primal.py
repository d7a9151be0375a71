"""Parametric and non-parametric: kernel machines in the primal, linear models in the dual."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._lazy import foreign
from .._runtime import entry_point
from ..expansion import Expansion, Primal
from ..kernels import Features, Kernel, Linear
from ._base import KernelEstimator
from .features import ExplicitFeatures

__all__ = ["to_dual", "to_primal"]

E = TypeVar("E", bound=KernelEstimator)
_Pipeline = foreign("sklearn.pipeline", "Pipeline")


@entry_point
def to_primal(estimator: E, *, max_memory: Any = None) -> E:
    """Return a copy of a fitted estimator with f(.) = <w, phi(.)>, w = sum_i a_i phi(x_i).

    It predicts the same, without the points: its size, and the cost of a prediction, depend on the
    number M of features and not on that of the points.  `primal_or_dual` compares the two.

    Parameters
    ----------
    estimator : KernelEstimator
        Fitted, with a kernel that has finitely many features: Linear, Polynomial, those of a basis
        and of counts, and what the algebra makes of them (see `ExplicitFeatures`).
    max_memory : int, str or None
        Bytes, or "2 GiB"; None for half of the machine's memory.

    Returns
    -------
    KernelEstimator
        Of the same kind.  Its `expansion_` is a `Primal`, with the weights; `X_fit_`, `dual_coef_`
        and all that is about single points is gone.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, to_primal
    >>> X = np.random.default_rng(0).standard_normal((300, 4))
    >>> model = KernelRidge(kernel="poly", degree=2).fit(X, X[:, 0] * X[:, 1])
    >>> small = to_primal(model)
    >>> small.expansion_.weights.shape  # of 1, x_i, x_i x_j
    (15, 1)
    >>> bool(np.allclose(small.predict(X), model.predict(X)))
    True
    """
    if not isinstance(estimator, KernelEstimator):
        raise TypeError(f"to_primal takes a kernel machine of mercer, got {estimator!r}")
    check_is_fitted(estimator)
    f = getattr(estimator, "expansion_", None)
    if isinstance(f, Primal):
        return estimator
    if not isinstance(f, Expansion):
        raise TypeError(f"{type(estimator).__name__} has no expansion_, and so no weights")
    other = copy.copy(estimator)  # shallow: attributes are replaced, and none is changed
    other._to_primal(max_memory)
    return other


@entry_point
def to_dual(model: Any, X: Any, *, tol: float = 1e-6, max_memory: Any = None) -> Expansion:
    """Return a linear model on features as an expansion: <w, phi(.)> = sum_i a_i k(x_i, .).

    k(x, z) = phi(x) . phi(z) is the kernel of its features, and a the solution of least norm of
    Phi(X)^T a = w.  Add the model's own `intercept_` for its predictions.

    Parameters
    ----------
    model : fitted linear model, Pipeline of transformers and one, or estimator of `to_primal`
        Anything with `coef_`: Ridge, LogisticRegression, LinearSVC, ....  In a pipeline phi is what
        stands before it, Nystroem or PolynomialFeatures, say, and k is ``Features(phi)``; after
        ExplicitFeatures alone it is the kernel that these come from, and needs no features.
    X : points
        The training points, as the pipeline takes them.
    tol : float
        How much of w may be left over, |w - Phi^T a| / |w|, before that is an error.  Nothing is,
        but for rounding, if w was trained on X with a ridge (the representer theorem).
    max_memory : int, str or None
        Bytes, or "2 GiB"; None for half of the machine's memory.

    Returns
    -------
    Expansion
        One function for each row of `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from mercer import to_dual
    >>> X = np.random.default_rng(0).standard_normal((30, 4))
    >>> model = make_pipeline(PolynomialFeatures(3), Ridge()).fit(X, X[:, 0] * X[:, 1])
    >>> f = to_dual(model, X)  # 35 weights, 30 coefficients
    >>> bool(np.allclose(f(X)[:, 0] + model[-1].intercept_, model.predict(X)))
    True
    """
    primal = getattr(model, "expansion_", None)
    if not isinstance(primal, Primal):
        primal = _primal_of(model)
    return primal.to_dual(X, tol=tol, max_memory=max_memory)


def _primal_of(model: Any) -> Primal:
    """Return the functions of a linear model, behind transformers or alone."""
    check_is_fitted(model)
    last = model[-1] if isinstance(model, _Pipeline) else model
    if not hasattr(last, "coef_"):
        raise TypeError(
            f"to_dual takes a linear model, or a pipeline that ends in one, but {last!r} has no "
            f"coef_"
        )
    kernel: Kernel = Linear()
    w, frame = last.coef_, None
    w = np.atleast_2d(w.toarray() if hasattr(w, "toarray") else w).T
    if isinstance(model, _Pipeline) and len(model) > 1:
        kernel, frame = _kernel_of(model[:-1])
    return Primal(kernel, w, frame)


def _kernel_of(transformers: Any) -> tuple[Kernel, Any]:
    """Return phi(x) . phi(z) of what transformers do to a point, and the frame of phi."""
    if len(transformers) == 1 and isinstance(transformers[0], ExplicitFeatures):
        return transformers[0].kernel_, transformers[0]._frame
    return Features(transformers.transform), None
