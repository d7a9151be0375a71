"""Functions that convert fitted estimators: `compress`, `to_primal` and `to_dual`."""

from __future__ import annotations

import copy
from typing import Any, TypeGuard, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core import MemoryLimit, Points, RandomState, entry_point, length, optional_type
from ..expansion import Expansion, Primal
from ..kernels import Features, Kernel, Linear, Precomputed
from ._kernel_estimator import ExpansionEstimator, KernelEstimator
from ._parzen_density import ParzenDensity
from .features import ExplicitFeatures

E = TypeVar("E", bound=KernelEstimator)


@entry_point
def compress(
    estimator: E,
    n_points: int | None = None,
    *,
    max_error: float | None = None,
    method: str = "auto",
    max_iter: int = 100,
    random_state: RandomState = None,
    max_memory: MemoryLimit = None,
    K: Any = None,
) -> E:
    """Return a copy of a fitted estimator whose functions are expansions in fewer points.

    A prediction then needs `n_points` kernel evaluations instead of one for each training point.
    For a model whose predictions are its functions f, such as KernelRidge, the error
    |f(x) - g(x)| of the compressed function g is at most ``reduction_.bound(x)``. The original
    estimator is not changed.

    Parameters
    ----------
    estimator : KernelEstimator
        A fitted estimator. KernelPCA is a special case: its components and its mean are compressed
        together, and the components are then rotated within their new span to the directions of
        largest variance. All its variances and thresholds are recomputed from the training points
        in these directions, so `reduction_` does not bound the error of its scores; the exact
        eigenvalues lie within `eigenvalue_bounds_`. A compressed KernelPCA has no `eigenvectors_`,
        `training_scores_` or inverse transform, and supports neither another compression nor
        `partial_fit`, because all of these need the training points.
    n_points : int or None, default=None
        Maximum number of points of the result, smaller than the present number. A few hundred are
        often enough; compare ``reduction_.error``. Pass either `n_points` or `max_error`.
    max_error : float or None, default=None
        Alternative to `n_points`: the largest allowed error |f - g| in the RKHS norm.
    method : {"auto", "select", "kmeans", "construct"}, default="auto"
        How the points are found. "select": a subset of the present points, for points of any type.
        "kmeans": cluster centres. "construct": free points, optimised by L-BFGS, which have the
        smallest error. "auto" means "construct" if that takes at most about a minute, otherwise
        "select". See `Expansion.compress`.
    max_iter : int, default=100
        Maximum number of L-BFGS steps of "construct". More steps reduce the error further, but
        slowly.
    random_state : int, Generator, RandomState or None, default=None
        Seed of k-means. None means 0, so that results are reproducible.
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of the
        computer.
    K : array-like of shape (n, n) or None, default=None
        For kernel="precomputed", the matrix that was passed to `fit`, because estimators do not
        store it. Matrices for predictions still have n columns; only the columns in `X_fit_` are
        read.

    Returns
    -------
    KernelEstimator
        An estimator of the same class with the error certificate `reduction_`. For KernelPCA,
        `reduction_` refers to the mean and to the components, scaled so that their squared errors
        are the variance that is lost.

    See Also
    --------
    SparseKernelRegressor : Learns the points together with the model; usually more accurate.
    to_primal : Replaces points by weights of explicit features, without an error.
    accelerate : Faster predictions that do not change.
    thin : Chooses representative training points before a fit.
    Expansion.compress : The same for a single expansion.

    References
    ----------
    Burges, "Simplified support vector decision rules", ICML 1996.

    Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch and Smola, "Input space versus feature space in
    kernel-based methods", IEEE Transactions on Neural Networks 10, 1999.

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
            "compress does not support ParzenDensity; fit a ParzenDensity to fewer representative "
            "points instead: ParzenDensity(...).fit(thin(X, m).points). Its expansion_.compress(m) "
            "is a better approximation of the function, but may be negative where the density is "
            "small"
        )
    if not isinstance(estimator, KernelEstimator):
        raise TypeError(f"compress needs a fitted kernel estimator of mercer, got {estimator!r}")
    check_is_fitted(estimator)
    if not _has_expansion(estimator):
        raise TypeError(f"{type(estimator).__name__} has no expansion_, so it cannot be compressed")
    kernel = _kernel_with_matrix(estimator, K)

    def reduce(f: Expansion) -> Expansion:
        """Return an approximation of f with fewer points."""
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


def _has_expansion(estimator: KernelEstimator) -> TypeGuard[ExpansionEstimator]:
    """Whether the fitted functions of an estimator are an expansion in points."""
    return isinstance(getattr(estimator, "expansion_", None), Expansion)


def _kernel_with_matrix(estimator: ExpansionEstimator, K: Any) -> Any:
    """Return the kernel of the expansion; a precomputed kernel gets the matrix K."""
    kernel = estimator.expansion_.kernel
    if not estimator._precomputed:
        if K is not None:
            raise ValueError(
                "K is only needed for kernel='precomputed'; this estimator has a kernel, so omit K"
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


# --- Conversion between dual expansions (kernel models) and primal weights (linear models).


_Pipeline = optional_type("sklearn.pipeline", "Pipeline")


@entry_point
def to_primal(estimator: E, *, max_memory: MemoryLimit = None) -> E:
    """Convert a fitted kernel model to a linear model with weights for explicit features.

        f(.) = sum_i a_i k(x_i, .) = <w, phi(.)>,     w = sum_i a_i phi(x_i)

    The result makes the same predictions but does not store the training points.  Its size and
    the cost of a prediction depend on the number of features, and not on the number of points.
    `primal_or_dual` compares the cost of both forms.

    Parameters
    ----------
    estimator : KernelEstimator
        A fitted estimator whose kernel has a finite number of features: Linear, Polynomial,
        kernels of a basis or of counts, and sums and products of these (see `ExplicitFeatures`).
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of the
        computer.

    Returns
    -------
    KernelEstimator
        A copy, of the same class.  Its `expansion_` is a `Primal` with the weights.  It does not
        have `X_fit_`, `dual_coef_` and other attributes with one entry per point.

    See Also
    --------
    to_dual : The conversion in the other direction.
    primal_or_dual : Compares the cost of both forms.
    ExplicitFeatures : The features phi, as a transformer.
    compress : For kernels without finitely many features.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel Methods for Pattern Analysis", Cambridge University Press,
    2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, to_primal
    >>> X = np.random.default_rng(0).standard_normal((300, 4))
    >>> model = KernelRidge(kernel="poly", degree=2).fit(X, X[:, 0] * X[:, 1])
    >>> small = to_primal(model)
    >>> small.expansion_.weights.shape  # the features are 1, x_i and x_i x_j
    (15, 1)
    >>> bool(np.allclose(small.predict(X), model.predict(X)))
    True
    """
    if not isinstance(estimator, KernelEstimator):
        raise TypeError(f"to_primal needs a kernel estimator of mercer, got {estimator!r}")
    check_is_fitted(estimator)
    if isinstance(getattr(estimator, "expansion_", None), Primal):
        return estimator
    if not _has_expansion(estimator):
        raise TypeError(
            f"{type(estimator).__name__} has no expansion_, so it cannot be converted to weights"
        )
    converted = copy.copy(estimator)  # a shallow copy, as attributes are never modified in place
    converted._to_primal(max_memory)
    return converted


@entry_point
def to_dual(
    model: Any, X: Points, *, tol: float = 1e-6, max_memory: MemoryLimit = None
) -> Expansion:
    """Convert a linear model on features to an expansion in its training points.

        <w, phi(.)> = sum_i a_i k(x_i, .),     k(x, z) = phi(x) . phi(z)

    The coefficients a are the minimum-norm solution of Phi^T a = w, where the rows of Phi are the
    features phi(x_i).  The expansion does not
    include the intercept: add the `intercept_` of the model to obtain its predictions.

    Parameters
    ----------
    model : fitted linear model, Pipeline that ends in one, or an estimator returned by `to_primal`
        Any model with `coef_`, such as Ridge, LogisticRegression or LinearSVC.  In a pipeline, phi
        is the transformation by the preceding steps, for example Nystroem or PolynomialFeatures,
        and k is ``Features(phi)``.  If the only preceding step is ExplicitFeatures, k is the
        kernel of that step.
    X : array-like or sparse matrix of shape (n, d), or list of objects
        The training points, as they are passed to the pipeline.
    tol : float, default=1e-6
        Largest relative residual |w - Phi^T a| / |w|; if it is exceeded, an error is raised. If w
        was trained on X with an L2 penalty, the residual is 0 up to rounding (representer theorem).
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of the
        computer.

    Returns
    -------
    Expansion
        One function for each row of `coef_`.

    See Also
    --------
    to_primal : The conversion in the other direction.
    primal_or_dual : Compares the cost of both forms.
    Expansion : The class of the result.

    References
    ----------
    Kimeldorf and Wahba, "Some results on Tchebycheffian spline functions", Journal of Mathematical
    Analysis and Applications 33, 1971.

    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

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
    """Return a linear model as a `Primal`, with the kernel that its preceding steps define."""
    check_is_fitted(model)
    last = model[-1] if isinstance(model, _Pipeline) else model
    if not hasattr(last, "coef_"):
        raise TypeError(
            f"to_dual needs a linear model, or a pipeline that ends in one, but {last!r} has no "
            f"attribute coef_"
        )
    kernel: Kernel = Linear()
    w, frame = last.coef_, None
    w = np.atleast_2d(w.toarray() if hasattr(w, "toarray") else w).T
    if isinstance(model, _Pipeline) and len(model) > 1:
        kernel, frame = _kernel_of(model[:-1])
    return Primal(kernel, w, frame)


def _kernel_of(transformers: Any) -> tuple[Kernel, Any]:
    """Return the kernel phi(x) . phi(z) of the transformers, and a description of the features.

    The description is None unless the only transformer is ExplicitFeatures.
    """
    if len(transformers) == 1 and isinstance(transformers[0], ExplicitFeatures):
        return transformers[0].kernel_, transformers[0]._frame
    return Features(transformers.transform), None
