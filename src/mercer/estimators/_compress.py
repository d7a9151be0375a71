"""The function `compress`: a copy of a fitted estimator with fewer points and error bounds."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._points import length
from .._runtime import entry_point
from ..expansion import Expansion
from ..kernels import Precomputed
from ._base import KernelEstimator
from ._density import ParzenDensity

__all__ = ["compress"]

E = TypeVar("E", bound=KernelEstimator)


@entry_point
def compress(
    estimator: E,
    n_points: int | None = None,
    *,
    max_error: float | None = None,
    method: str = "auto",
    max_iter: int = 100,
    random_state: Any = None,
    max_memory: Any = None,
    K: Any = None,
) -> E:
    """Return a copy of a fitted estimator whose functions are expansions in fewer points.

    Predictions then need n_points kernel evaluations per point instead of n. For a model whose
    predictions are its functions f, such as KernelRidge, the error |f(x) - g(x)| of the compressed
    function g is at most ``reduction_.bound(x)``. The original estimator is not changed.

    Parameters
    ----------
    estimator : KernelEstimator
        A fitted estimator. KernelPCA is a special case. It is compressed together with its mean,
        and its components are then rotated within their new span to the directions of largest
        variance. All its variances and thresholds are recomputed from the training points in these
        directions, so `reduction_` does not bound the error of its scores; the exact eigenvalues
        lie within `eigenvalue_bounds_`. A compressed KernelPCA has no `eigenvectors_`,
        `training_scores_` or inverse transform, and supports neither another compression nor
        `partial_fit`, because all of these need the training points.
    n_points, max_error, method, max_iter, random_state, max_memory
        As in `Expansion.compress`: give the number of points or the largest allowed error.
    K : array of shape (n, n), optional
        For kernel="precomputed", the matrix that was passed to `fit`, because estimators do not
        store it. Matrices for predictions still have n columns; only the columns in `X_fit_` are
        read.

    Returns
    -------
    KernelEstimator
        An estimator of the same class with the error certificate `reduction_`. For KernelPCA,
        `reduction_` refers to the functions w_j sqrt(l_j / n), whose squared errors are lost
        variance, and to the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, compress
    >>> X = np.linspace(0, 1, 300)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=10).fit(X, np.sin(6 * X[:, 0]))
    >>> small = compress(model, 12)
    >>> len(small.X_fit_), len(model.X_fit_)
    (12, 300)
    >>> bool(np.abs(small.predict(X) - model.predict(X)).max() < 1e-3)
    True
    """
    if isinstance(estimator, ParzenDensity):
        raise TypeError(
            "compress does not support ParzenDensity; fit a ParzenDensity to a summary of the "
            "sample instead: ParzenDensity(...).fit(thin(X, m).points). Its expansion_.compress(m) "
            "is a better approximation of the function, but may be negative where the density is "
            "small"
        )
    if not isinstance(estimator, KernelEstimator):
        raise TypeError(f"compress needs a fitted kernel estimator of mercer, got {estimator!r}")
    check_is_fitted(estimator)
    if not isinstance(getattr(estimator, "expansion_", None), Expansion):
        raise TypeError(f"{type(estimator).__name__} has no expansion_ that could be compressed")
    kernel = _kernel_with_matrix(estimator, K)

    def reduce(f: Expansion) -> Expansion:
        """Return the expansion f in fewer points."""
        return Expansion(kernel, f.points, f.coefficients).compress(
            n_points,
            max_error=max_error,
            method=method,
            max_iter=max_iter,
            random_state=random_state,
            max_memory=max_memory,
        )

    # A shallow copy is enough, because attributes are replaced, not modified.
    compressed = copy.copy(estimator)
    compressed._compress(reduce)
    return compressed


def _kernel_with_matrix(estimator: KernelEstimator, K: Any) -> Any:
    """Return the kernel of the expansion; a precomputed kernel with the matrix K."""
    kernel = estimator.expansion_.kernel
    if not estimator._precomputed:
        if K is not None:
            raise ValueError(
                "K is for kernel='precomputed'; this estimator evaluates its kernel, so omit K"
            )
        return kernel
    if K is None:
        raise ValueError(
            "with kernel='precomputed' the estimator does not store the kernel matrix; pass the "
            "matrix that was passed to fit: compress(..., K=K)"
        )
    K = np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=float)
    n = getattr(estimator, "n_features_in_", length(estimator.expansion_.points))
    if K.shape != (n, n):
        raise ValueError(f"K has shape {K.shape}, but the estimator was fitted to {n} points")
    return Precomputed(0.5 * (K + K.T))
