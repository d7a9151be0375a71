"""Kernel PCA: the leading eigenfunctions of the covariance of phi(x)."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._points import length, take
from .._runtime import check_budget
from ..gram import CentredGram, gram
from ..kernels import Kernel
from ..solvers import EIGEN, DenseEigen, choose
from ._components import Components
from ._exact import exact_components, leading_pairs
from ._parameters import AT_LEAST_0, COUNT, estimator, parameter
from ._plan import LEAN, dense_bytes
from ._reduced import reduced_components
from ._spectrum import POLICIES, gains_of
from ._streams import Streams
from ._weights import check_weights, weighted_quantile

__all__ = ["KernelPCA"]

_SOLVERS = {"auto", "dense", "arpack", "randomized", "krylov", "power", "nystroem", "features"}
# what is known of each training point, or learned from it
_OF_POINTS = (
    *("eigenvectors_", "offset_", "dual_coef_", "X_transformed_fit_"),
    *("inverse_kernel_", "inverse_alpha_", "_inverse", "_centre"),
)


@estimator()
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Streams):
    """Principal components w_j of the points phi(x_i) in feature space.

        w_j = sum_i a_ij (phi(x_i) - mu),    K_c u_j = l_j u_j,    a_j = u_j / sqrt(l_j)

    with K_c the centred kernel matrix.  The score of x is <w_j, phi(x) - mu>.

    A drop-in for scikit-learn's estimator of this name: same parameters, defaults, attributes, with
    the two differences that KernelRidge names.  Beside it: exact kernel PCA of points whose kernel
    matrix does not fit the memory, with a certificate; everything that PCA has; a Nyström
    approximation with exact error bounds; streams of points.

    Parameters
    ----------
    n_components : int, float or None
        A number; a share of the variance, between 0 and 1; or None for all with a positive
        eigenvalue.
    alpha : float or "auto"
        The ridge of the learned inverse transform; "auto" chooses it by leave-one-out.
    fit_inverse_transform : bool
        Learn the map from scores back to points by kernel ridge regression, with a kernel of its
        own chosen by leave-one-out (scikit-learn takes the one of the PCA).  Other ways back,
        `denoise` and `inverse_transform(X, method=...)`, need no such map.
    eigen_solver : str or a solver
        "dense" (LAPACK), "krylov" (exact, in a few passes over a matrix that need not be held),
        "nystroem" (landmarks), "features" (random Fourier features), "power" (the power method with
        peeling), "arpack", "randomized".  "auto" takes "dense" or "krylov": see `plan`.
    tol : float
        Relative residual at which iterations stop; 0 for 1e-8 (ARPACK: machine precision).
    max_iter : int or None
        Passes of "krylov", products per component of "power", restarts of ARPACK.
    iterated_power : int or "auto"
        Of the randomized solver.
    remove_zero_eig : bool
        Drop components whose eigenvalue is 0; otherwise their scores are 0.
    copy_X : bool
        If False, X is kept without a copy and must not be changed afterwards.
    n_jobs : int or None
        Threads; None for all processors.  Results do not depend on it.
    whiten : bool
        Divide scores by their standard deviation.
    indefinite : {"raise", "clip", "flip", "shift"}
        What to do with negative eigenvalues, of a similarity that is not a kernel: see Notes.
    rank : int or None
        Landmarks, or random features; 1000 by default, or 10 n_components if that is more.
    contamination : float
        The share of training points beyond the threshold of `decision_function`.
    storage : "auto", "dense" or "tiled"
        How the kernel matrix is held; see `mercer.gram.gram`.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components_,)
        Of the centred kernel matrix, not divided by n.
    eigenvalue_bounds_ : ndarray of shape (n_components_, 2)
        Certified lower and upper bounds on the exact ones.
    eigenvectors_ : ndarray of shape (n, n_components_)
        Of unit norm, the entry of largest modulus positive; not kept by `partial_fit`.
    explained_variance_ : ndarray
        eigenvalues_ / (n - 1), as in PCA.
    explained_variance_ratio_ : ndarray
        eigenvalues_ divided by the trace of the centred kernel matrix: the exact total.
    total_variance_ : float
        That trace / (n - 1).
    residuals_ : ndarray
        |K_c u_j - l_j u_j|: an exact eigenvalue lies within it of eigenvalues_[j].
    certificate_ : Certificate
        All bounds, and whether it is proved that nothing was missed.
    components_ : Expansion
        The components w_j, of unit norm in the RKHS; also `expansion_`.  With random features they
        live in the space of the features, and take those as points.
    training_scores_ : ndarray of shape (n, n_components_)
        What fit_transform returns for the points of positive weight.
    mean_ : Expansion
        The mean mu.
    offset_ : float
        The threshold of `decision_function` on `score_samples`.
    X_fit_, gamma_, kernel_, n_components_, solver_, report_
    dual_coef_, X_transformed_fit_, inverse_kernel_, inverse_alpha_
        Of the inverse transform, if it was learned: coefficients, scores, kernel and ridge.

    Notes
    -----
    Inside the eigenspace of a multiple eigenvalue any basis is right; the one taken depends on the
    eigenspace alone, if all of it is kept.

    Kernels that are conditionally positive definite of order 1 (Distance, Multiquadric,
    AdditiveChi2) are legitimate here, since centring makes their matrix positive semidefinite.  For
    others with negative eigenvalues `indefinite` says what happens: "raise" refuses, "clip" drops
    those components, "flip" takes the modulus, "shift" adds the most negative one to all.  The
    scores of new points follow from the same linear map that yields those of the training points.

    Weights count as repetitions, up to a common factor; a point of weight 0 counts as absent.
    Eigenvalues are scaled to n points.  Variances are those of as many points as the weights sum
    to, n at least.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import circles
    >>> X, _ = circles(200, random_state=0)
    >>> pca = KernelPCA(n_components=0.8, kernel="rbf", gamma=2.0).fit(X)
    >>> pca.n_components_
    7
    >>> pca.certificate_.nothing_missed
    True
    """

    n_components: int | float | None = parameter(
        COUNT, Interval(Real, 0, 1, closed="neither"), None, default=None
    )
    _: KW_ONLY
    alpha: float | str = parameter(AT_LEAST_0, StrOptions({"auto"}), default=1.0)
    fit_inverse_transform: bool = parameter("boolean", default=False)
    eigen_solver: Any = parameter(StrOptions(_SOLVERS), HasMethods(["eigenpairs"]), default="auto")
    tol: float = parameter(AT_LEAST_0, default=0)
    max_iter: int | None = parameter(COUNT, None, default=None)
    iterated_power: int | str = parameter(
        Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), default="auto"
    )
    remove_zero_eig: bool = parameter("boolean", default=False)
    copy_X: bool = parameter("boolean", default=True)
    n_jobs: int | None = parameter(None, Integral, default=None)
    whiten: bool = parameter("boolean", default=False)
    indefinite: str = parameter(StrOptions(set(POLICIES)), default="raise")
    contamination: float = parameter(Interval(Real, 0, 0.5, closed="right"), default=0.05)
    storage: str = parameter(StrOptions({"auto", "dense", "tiled"}), default="auto")

    # ------------------------------------------------------------------ fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the points X; y is ignored.

        Interrupted, it leaves the estimator as it was before its first fit.
        """
        if self.fit_inverse_transform and self._precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        self._check_policy()
        self._forget()
        streamed = self._by_features
        copy = self.copy_X and not self._precomputed and not streamed
        X = self._check_points(X, reset=True, copy=copy)
        n = length(X)
        X, kept, weights = self._weighted(X, sample_weight)
        self._left_out = len(kept) < n
        kernel = self._make_kernel(self.gamma).resolve(X, weights)
        run = self._fit_features if streamed else self._fit_exact
        parts, solver, held, errors = run(X, kernel, weights, kept)
        self._learn(X, kernel, parts, solver, held, None if weights is None else weights.sum())
        self.offset_ = self._threshold(parts, errors, weights)
        if self.fit_inverse_transform:
            try:
                self._fit_inverse(X, weights)
            except BaseException:
                self._forget()
                raise
        return self

    def _fit_exact(self, X: Any, kernel: Kernel, weights: Any, kept: Any) -> tuple[Any, ...]:
        spec, storage = self._planned(X, kernel)
        n, whole = length(X), self.indefinite != "raise"
        K = gram(kernel, X, storage=storage, max_memory=self.max_memory, n_threads=self._threads())
        centred = CentredGram(K, weights)
        wanted = n if self.n_components is None or whole else self.n_components
        solver = self._exact_solver(centred, spec, wanted)
        if whole and not isinstance(solver, DenseEigen):
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, which {solver} does not "
                f"find; use eigen_solver='dense' or 'auto'"
            )
        self._say(f"{wanted:g} components of {K!r} by {solver}")
        pairs = leading_pairs(centred, solver, wanted, self._say)
        self._say(f"largest residual {pairs.report.residual:.1e} of the largest eigenvalue")
        parts = exact_components(
            centred,
            pairs,
            kept if self._precomputed else X,
            n_components=self.n_components,
            policy=self.indefinite,
            drop_zeros=self._drops_zeros,
        )
        errors = parts.left(centred.squared_distances(), np.asarray(parts.scores))
        return parts, solver, repr(K), errors

    def _planned(self, X: Any, kernel: Kernel) -> tuple[Any, str]:
        """Return the eigensolver and the storage that the parameters and the budget ask for."""
        spec, storage = self.eigen_solver, self.storage
        if isinstance(spec, str) and spec == "auto":
            if self.indefinite != "raise":
                return "dense", "dense"
            chosen = self._plan(X, kernel).require()
            spec = chosen.eigen_solver
            if chosen.lean:
                spec = dataclasses.replace(
                    LEAN, tol=self.tol, max_iter=self.max_iter, random_state=self._seed
                )
            return spec, chosen.storage
        return spec, storage

    def _exact_solver(self, centred: CentredGram, spec: Any, wanted: Any) -> Any:
        n = centred.shape[0]
        leading = self.indefinite == "raise"
        if isinstance(spec, str) and spec == "arpack" and leading and wanted >= n:
            warnings.warn(
                f"ARPACK finds fewer than n eigenpairs, but {wanted} of n = {n} are asked for; "
                f"the dense solver is used",
                stacklevel=4,
            )
            spec = "dense"
        solver = choose(
            EIGEN,
            centred,
            spec,
            k=None if wanted == n else wanted,
            tol=self.tol,
            max_iter=self.max_iter,
            n_iter=self.iterated_power,
            random_state=self._seed,
        )
        if isinstance(solver, DenseEigen):
            k = min(n, int(wanted)) if wanted >= 1 else n
            check_budget(
                dense_bytes(n, k),
                self.max_memory,
                f"a dense eigenproblem of {n} points, {k} components,",
            )
        return solver

    def _learn(
        self,
        X: Any,
        kernel: Kernel,
        parts: Components,
        solver: Any,
        held: str,
        weight: float | None = None,
    ) -> None:
        """Set the fitted attributes, all at once: an interrupted fit sets none."""
        n = parts.rows
        count = max(n, weight or n)  # repetitions, if the weights can be that
        divisor = n * (count - 1) / count if count > 1 else 1
        single = _precision(X) == np.float32
        self.kernel_, self.solver_, self.report_ = kernel, solver, parts.report
        self._held = held
        self._dtype = np.dtype(np.float32 if single else np.float64)
        self.gamma_ = self._resolved_gamma(X)
        self._learn_spectrum(parts, divisor)

    def _learn_spectrum(self, parts: Components, divisor: float) -> None:
        total = parts.total
        self.certificate_, self.eigenvalues_ = parts.certificate, parts.values
        self.residuals_ = parts.certificate.residuals
        bounds = np.column_stack([parts.certificate.lower, parts.certificate.upper])
        self.eigenvalue_bounds_ = bounds
        self.n_components_ = len(parts.values)
        self.explained_variance_ = parts.values / divisor
        self.total_variance_ = total / divisor
        self.explained_variance_ratio_ = (
            parts.values / total if total > 0 else np.zeros_like(parts.values)
        )
        if parts.vectors is not None:
            self.eigenvectors_ = parts.vectors
        self.expansion_, self.mean_ = parts.functions, parts.mean
        self.X_fit_ = parts.expansion.points
        self._components = parts  # the last: with it the estimator counts as fitted

    def _threshold(self, parts: Components, errors: np.ndarray, weights: Any) -> float:
        """Return minus the error that a share of `contamination` of the training points exceeds."""
        margin = 1e-9 * parts.total / parts.rows  # an error of this size is rounding
        return -weighted_quantile(errors, 1.0 - self.contamination, weights) - margin

    # ------------------------------------------------------------------ using it

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Fit, and return the scores u_j sqrt(l_j) of the training points, (n, n_components_)."""
        self.fit(X, **params)
        if self._left_out:  # points of weight 0 have a score, too
            return self.transform(X)
        return self.training_scores_

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of X, (n, n_components_), in tiles of bounded memory."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        scores = self._components.score(X, self._threads())
        return self._finished(scores, np.result_type(self._dtype, _precision(X)))

    # ------------------------------------------------------------------ parts

    def _compress(self, shrink: Any) -> None:
        old = self._components
        if old.reduction is not None:
            raise ValueError(
                f"this kernel PCA was compressed before, from {old.reduction.n_points_before} to "
                f"{old.reduction.n_points} points, and no longer has what its variances are "
                f"measured on; compress the original model again, to the size wanted now"
            )
        if old.in_features:
            raise ValueError(
                "a kernel PCA of random features keeps no points that could be fewer; choose a "
                "smaller rank, or fit with eigen_solver='nystroem'"
            )
        if self.indefinite != "raise":
            raise ValueError(
                f"with indefinite={self.indefinite!r} components are not functions in the space of "
                f"the kernel, and have no norm there in which they could be compressed"
            )
        parts, errors = reduced_components(old, shrink)
        divisor = old.total / self.total_variance_ if old.total > 0 else 1.0
        for name in _OF_POINTS:
            self.__dict__.pop(name, None)
        self._learn_spectrum(parts, divisor)
        if errors is not None:
            weights = old.expansion.coefficients[:, -1]
            self.offset_ = self._threshold(parts, errors, weights)

    def _forget(self) -> None:
        """Drop what an earlier fit has learned."""
        for name in [v for v in vars(self) if v.endswith("_") and not v.startswith("_")]:
            delattr(self, name)
        for name in ("_components", "_inverse", "_held", "_dtype"):
            self.__dict__.pop(name, None)

    def _weighted(self, X: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return the points of positive weight, their places, and the weights."""
        n = length(X)
        if sample_weight is None:
            return X, np.arange(n), None
        weights = check_weights(sample_weight, X)
        kept = np.flatnonzero(weights)
        if len(kept) < n:
            X = take(X, kept)
            X = X[:, kept] if self._precomputed else X
        return X, kept, weights[kept]

    @property
    def _seed(self) -> Any:
        return 0 if self.random_state is None else self.random_state

    def _threads(self) -> int | None:
        return None if self.n_jobs is None else effective_n_jobs(self.n_jobs)

    def _finished(self, scores: np.ndarray, dtype: Any) -> np.ndarray:
        if self.whiten:
            scores = scores * gains_of(self.explained_variance_)
        return scores.astype(dtype, copy=False)

    def _resolved_gamma(self, X: Any) -> Any:
        """Return the number that gamma stands for; 1 / n_features if it is None."""
        if not isinstance(self.gamma, str) and not isinstance(self.kernel, Kernel):
            columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else 1
            return 1.0 / columns if self.gamma is None else self.gamma
        kernel = self.kernel_
        if hasattr(kernel, "gamma"):
            return kernel.gamma
        scale = getattr(kernel, "length_scale", None)
        if scale is None or np.ndim(scale):
            return self.gamma  # a kernel without a gamma: the rule was not used
        return 1.0 / scale if type(kernel).__name__ == "Laplacian" else 0.5 / scale**2

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_components")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _precision(X: Any) -> np.dtype:
    dtype = np.dtype(getattr(X, "dtype", float))
    return dtype if dtype.kind == "f" else np.dtype(float)
