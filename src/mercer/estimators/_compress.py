"""compress(): a fitted estimator on fewer points, with the error that this costs."""

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

    Predictions cost n_points evaluations of the kernel instead of n.  For a model that predicts by
    its functions f, such as KernelRidge, |f(x) - g(x)| is at most ``reduction_.bound(x)``.  The
    estimator that is given does not change.

    Parameters
    ----------
    estimator : KernelEstimator
        Fitted.  A kernel PCA is compressed with its mean; its components are then turned within
        their new span to the directions of largest variance, and all that it says of variances
        and thresholds is what the training points have in these.  Its scores are hence not bounded
        by `reduction_`; the exact eigenvalues lie within `eigenvalue_bounds_`.  It has no
        `eigenvectors_`, `training_scores_` or inverse transform any more, and can neither be
        compressed again nor take in points: all that is about the training points.
    n_points, max_error, method, max_iter, random_state, max_memory
        As in `Expansion.compress`: a number of points, or the largest error allowed.
    K : array of shape (n, n), optional
        For kernel="precomputed", the matrix that `fit` was given, which estimators do not keep.
        Rows of values to predict from still have n columns; those in `X_fit_` are read.

    Returns
    -------
    KernelEstimator
        Of the same kind, with `reduction_`, the certificate.  For a kernel PCA its functions are
        w_j sqrt(l_j / n), so that their squared errors are variance lost, and the mean.

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
            "a ParzenDensity on fewer points is one fitted on a summary of the sample: "
            "ParzenDensity(...).fit(thin(X, m).points).  Its expansion_.compress(m) is nearer to "
            "it as a function, but may be negative where the density is small"
        )
    if not isinstance(estimator, KernelEstimator):
        raise TypeError(f"compress takes a kernel machine of mercer, got {estimator!r}")
    check_is_fitted(estimator)
    if not isinstance(getattr(estimator, "expansion_", None), Expansion):
        raise TypeError(f"{type(estimator).__name__} has no expansion_ that could be compressed")
    kernel = _with_values(estimator, K)

    def shrink(f: Expansion) -> Expansion:
        return Expansion(kernel, f.points, f.coefficients).compress(
            n_points,
            max_error=max_error,
            method=method,
            max_iter=max_iter,
            random_state=random_state,
            max_memory=max_memory,
        )

    small = copy.copy(estimator)  # shallow: attributes are replaced, and none is changed
    small._compress(shrink)
    return small


def _with_values(estimator: KernelEstimator, K: Any) -> Any:
    """Return the kernel of the expansion, with the values of a precomputed one."""
    kernel = estimator.expansion_.kernel
    if not estimator._precomputed:
        if K is not None:
            raise ValueError("K is for kernel='precomputed'; this estimator evaluates its kernel")
        return kernel
    if K is None:
        raise ValueError(
            "with kernel='precomputed' the values between training points are not kept; "
            "give the matrix that fit was given: compress(..., K=K)"
        )
    K = np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=float)
    n = getattr(estimator, "n_features_in_", length(estimator.expansion_.points))
    if K.shape != (n, n):
        raise ValueError(f"K has shape {K.shape}, but fit was given {n} training points")
    return Precomputed(0.5 * (K + K.T))
