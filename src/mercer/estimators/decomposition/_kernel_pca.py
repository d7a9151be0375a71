"""Kernel PCA: principal component analysis in the feature space of a kernel."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._core import MemoryLimit, NotDifferentiableError, Points
from ...blocks import Blocks, RowSample
from ...expansion import Expansion
from ...expansion.preimage import PreImages, local_preimage_method
from ...expansion.reduced_set import Reduction
from ...kernels import Kernel
from ...models.kpca import (
    INDEFINITE_POLICIES,
    Components,
    ComponentSearch,
    ComponentSearchResult,
    LearnedInverse,
    inverse_sqrt,
    reduced_components,
    same_feature_map,
)
from ...solvers import Certificate, Plan
from .._blockwise import draw_candidates, require_products
from .._kernel_estimator import (
    ExpansionEstimator,
    ExploreMixin,
    FeatureMixin,
    LandmarkMixin,
    NamedKernelEstimator,
    precision,
)
from .._parameters import (
    FittedFunction,
    FittedPoints,
    estimator,
    exact_as_auto,
    fit_method,
    fitted,
    parameter,
    predict_method,
    remove_fitted,
    solver,
)
from .._training_sample import Sample, warn_if_indefinite_on_points, weighted_quantile
from ._kpca_summary import summary

_SEARCH_PARAMETERS = (  # parameters of the estimator that are passed to `ComponentSearch`
    *("n_components", "tol", "max_iter", "iterated_power", "storage"),
    *("indefinite", "max_memory"),
)


@estimator()
class KernelPCA(
    ExploreMixin, FeatureMixin, LandmarkMixin, NamedKernelEstimator, ExpansionEstimator
):
    """Principal component analysis in the feature space of a kernel.

        w_j = sum_i a_ij (phi(x_i) - mu),    K_c u_j = l_j u_j,    a_j = u_j / sqrt(l_j)

    K_c is the centred kernel matrix with eigenvalues l_j and eigenvectors u_j, phi(x) is the
    feature vector of x, mu the mean of the phi(x_i), and w_j the principal components.  The score
    of a point x is <w_j, phi(x) - mu>.

    A drop-in replacement for scikit-learn's `KernelPCA`, with the same parameters, defaults and
    attributes, except for restrictions on kernel parameters and precomputed matrices, which
    `KernelRidge` documents.  In addition it offers exact kernel PCA, with certified error bounds,
    if the kernel matrix does not fit in memory; the attributes and methods of scikit-learn's
    `PCA`; a Nyström approximation with exact error bounds; and `partial_fit` for streams of points.

    Parameters
    ----------
    n_components : int, float or None
        The number of components. A float between 0 and 1 selects the number of components that
        explain this fraction of the variance. None means all components with a positive eigenvalue.
        Use 2 or 3 for plots; for features or denoising, start with 0.9 and look at
        `explained_variance_ratio_`.
    alpha : float or "auto"
        Regularisation of the learned inverse transform, used only with
        `fit_inverse_transform=True`; larger values give smoother maps. "auto" chooses it by
        leave-one-out.
    fit_inverse_transform : bool
        Whether to learn an inverse transform from scores to points by kernel ridge regression.  Its
        kernel is chosen by leave-one-out (scikit-learn uses the kernel of the PCA).  `denoise` and
        `inverse_transform(X, method=...)` do not need it.
    eigen_solver : str or a solver
        "dense" (LAPACK), "krylov" (exact; needs a few passes over the kernel matrix, which is not
        stored), "nystroem" (landmarks), "features" (random Fourier features), "power" (the power
        method with deflation, also called peeling), "arpack" or "randomized". "auto" and "exact"
        choose "dense" or "krylov"; see `plan`. For more than about 10^5 points, use "nystroem".
    tol : float
        Relative residual at which iterations stop; 0 means 1e-8 (ARPACK: machine precision).
    max_iter : int or None
        Maximum number of passes of "krylov", of matrix products per component of "power", or of
        restarts of ARPACK.  None means the default of the solver.
    iterated_power : int or "auto"
        Number of power iterations of the randomized solver; more iterations are more accurate.
    remove_zero_eig : bool
        Whether to remove components with eigenvalue 0; otherwise their scores are 0.
    copy_X : bool
        Whether to store a copy of X. If False, X must not be modified afterwards.
    whiten : bool
        Whether to divide scores by their standard deviation, so that all components have variance
        1. Useful if a distance between scores is used afterwards.
    indefinite : {"raise", "clip", "flip", "shift"}
        What to do with negative eigenvalues, which occur if the similarity is not a kernel; see
        Notes.
    rank : int or None
        Number of landmarks or random features. None means 1000, or 10 n_components if that is
        larger. More give a better approximation, see `eigenvalue_bounds_`, and take more time and
        memory.
    contamination : float
        The fraction of training points that `decision_function` classifies as outliers, in
        (0, 0.5].
    storage : "auto", "dense" or "tiled"
        How the kernel matrix is stored: as one array, or as tiles that are evaluated when they are
        needed, which takes less memory and more time. "auto" chooses by `max_memory`; see
        `mercer.gram.gram`.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components_,)
        Eigenvalues of the centred kernel matrix, not divided by n.
    eigenvalue_bounds_ : ndarray of shape (n_components_, 2)
        Certified lower and upper bounds on the exact eigenvalues.
    eigenvectors_ : ndarray of shape (n, n_components_)
        Eigenvectors of unit norm, with the sign that makes the entry of largest modulus positive.
        Not available after `partial_fit`.
    explained_variance_ : ndarray of shape (n_components_,)
        eigenvalues_ / (n - 1), as in PCA.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        The eigenvalues divided by the trace of the centred kernel matrix, the sum of all
        eigenvalues.
    total_variance_ : float
        The trace of the centred kernel matrix, divided by n - 1.
    residuals_ : ndarray of shape (n_components_,)
        The norms |K_c u_j - l_j u_j|.  An exact eigenvalue lies within this distance of
        eigenvalues_[j].
    certificate_ : Certificate
        All error bounds, and whether it is proved that no leading eigenvalue was missed.
    components_, expansion_ : Expansion
        The components w_j, of unit norm in the RKHS.  With random features they are functions of
        the feature vectors.
    training_scores_ : ndarray of shape (n, n_components_)
        The scores of the training points of positive weight, as `fit_transform` returns them.
    mean_ : Expansion
        The mean mu of the training points in feature space.
    offset_ : float
        The threshold that `decision_function` subtracts from `score_samples`.
    X_fit_ : points
        The training points or landmarks of the expansion.
    gamma_ : float, str or None
        The value of gamma that was used.
    n_components_ : int
        Number of components.
    solver_, report_
        The solver that was used, and its report.
    dual_coef_, X_transformed_fit_, inverse_kernel_, inverse_alpha_
        Coefficients, scores, kernel and regularisation of the learned inverse transform; only
        with `fit_inverse_transform=True`.

    See Also
    --------
    ProbabilisticPCA : A linear model with a likelihood, which accepts missing values.
    GPLVM : A nonlinear embedding with a smooth inverse, for up to a few thousand points.
    MetricMDS : Preserves distances instead of variance.
    KernelFisherDiscriminant : Uses labels to separate classes.
    KernelCCA : Finds what two views of the same points have in common.
    Nystroem : Features that approximate a kernel, for linear models.
    sklearn.decomposition.KernelPCA : The same model, with fewer solvers and without error bounds.
    sklearn.decomposition.PCA : The linear case, for a table with more rows than columns.

    Notes
    -----
    For an eigenvalue of multiplicity larger than 1, every basis of its eigenspace is correct.  If
    n_components includes the whole eigenspace, the returned basis depends only on the eigenspace,
    and not on the solver.

    Kernels that are conditionally positive definite of order 1 (Distance, Multiquadric,
    AdditiveChi2) are valid here, because centring makes their matrix positive semidefinite.  For
    other similarities with negative eigenvalues, `indefinite` selects what happens: "raise" raises
    an error, "clip" drops these components, "flip" uses absolute values, "shift" adds the modulus
    of the most negative eigenvalue to all eigenvalues.  New points are scored with the same linear
    map as the training points.

    With the kernels `Geodesic`, `LocallyLinear`, `CommuteTime` and `Diffusion`, which are computed
    from the neighbour graph of the training points, the scores are the coordinates of Isomap, LLE,
    Laplacian eigenmaps and diffusion maps.

    Sample weights count as repetitions of points, up to a common factor; points of weight 0 are
    ignored.  Eigenvalues are scaled as for n points of weight 1.  Variances are computed with the
    sum of the weights as the number of points, but with at least n.

    References
    ----------
    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation 10, 1998.

    Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, "Kernel PCA and de-noising in feature
    spaces", NIPS 1998.

    Hoffmann, "Kernel PCA for novelty detection", Pattern Recognition 40, 2007.

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
        "positive integer", Interval(Real, 0, 1, closed="neither"), None, default=None
    )
    _: KW_ONLY
    alpha: float | str = parameter("non-negative", {"auto"}, default=1.0)
    fit_inverse_transform: bool = parameter("boolean", default=False)
    eigen_solver: Any = solver(
        *("dense", "arpack", "randomized", "krylov", "power", "nystroem", "features"),
        given=[HasMethods(["eigenpairs"])],
        default="auto",
    )
    tol: float = parameter("non-negative", default=0)
    max_iter: int | None = parameter("positive integer", None, default=None)
    iterated_power: int | str = parameter("non-negative integer", {"auto"}, default="auto")
    remove_zero_eig: bool = parameter("boolean", default=False)
    copy_X: bool = parameter("boolean", default=True)
    whiten: bool = parameter("boolean", default=False)
    indefinite: str = parameter(set(INDEFINITE_POLICIES), default="raise")
    contamination: float = parameter(Interval(Real, 0, 0.5, closed="right"), default=0.05)
    storage: str = parameter({"auto", "dense", "tiled"}, default="auto")

    n_components_: int = fitted()
    eigenvalues_: np.ndarray = fitted()
    eigenvectors_: np.ndarray = fitted(per_point=True)
    eigenvalue_bounds_: np.ndarray = fitted()
    residuals_: np.ndarray = fitted()
    certificate_: Certificate = fitted()
    explained_variance_: np.ndarray = fitted()
    explained_variance_ratio_: np.ndarray = fitted()
    total_variance_: float = fitted()
    mean_: FittedFunction = fitted()
    gamma_: Any = fitted()
    solver_: Any = fitted()
    offset_: float = fitted(per_point=True)
    X_fit_: FittedPoints = fitted(per_point=True)
    dual_coef_: np.ndarray = fitted(per_point=True)
    X_transformed_fit_: np.ndarray = fitted(per_point=True)
    inverse_kernel_: Kernel = fitted(per_point=True)
    inverse_alpha_: float = fitted(per_point=True)
    _components: Components = fitted()
    _inverse: LearnedInverse = fitted(per_point=True)
    _dtype: np.dtype = fitted()
    _held: str = fitted()
    _whole: bool = fitted()
    # The earlier model is discarded before the fit, because both may be large.
    _restores_failed_fit: ClassVar[bool] = False

    # ------------------------------------------------------------------ fitting

    @property
    def _required_cpd_order(self) -> int | None:
        # Order 1 is enough because the matrix is centred.  If `indefinite` is not "raise", any
        # symmetric function is allowed.
        return 1 if self.indefinite == "raise" else None

    @fit_method
    def fit(self, X: Points, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the principal components of the points X.

        If the fit is interrupted, the estimator is not fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need eigen_solver "auto", "exact",
            "krylov", "nystroem" or "features".
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which count as repetitions of points. Points of weight 0 are ignored.

        Returns
        -------
        self : KernelPCA
            The fitted estimator.
        """
        if self.fit_inverse_transform and self._precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        search = self._search
        search.check()
        if self.fit_inverse_transform and isinstance(X, Blocks):
            raise ValueError(
                "fit_inverse_transform=True needs all points at once; for blocks, use "
                "inverse_transform(X, method='auto'), which does not need a learned inverse"
            )
        copy_points = self.copy_X and not search.by_features
        sample = self._sample(X, sample_weight=sample_weight, copy=copy_points)
        kernel = sample.resolve_centred(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(kernel, self.max_memory)
        if self.indefinite == "raise" and sample.values is None:
            warn_if_indefinite_on_points(kernel, evaluated, sample.subsample.points)
        if sample.drawn is not None:  # one pass computes the moments of the features
            seen = sample.subsample.points
            solver, phi = search.begin(kernel, seen)
            moments = search.moments(phi, sample.points, sample.weights)
            self._whole = False
            components = search.components_from_moments(solver, phi, moments)
            self._set_fitted(components, kernel, precision(seen))
            return self
        if sample.workers is not None:
            workers = sample.workers
            search = replace(search, eigen_solver="krylov", storage="tiled", workers=workers)
        result = search.fit(evaluated, sample.points, sample.weights)
        if evaluated is not kernel:
            result = result._replace(components=result.components.in_terms_of(kernel))
        values = sample.points if sample.values is None else sample.values.matrix
        self._whole = sample.whole
        self._set_fitted(result, kernel, precision(values))
        self.offset_ = self._threshold(result.components, result.errors, sample.weights)
        if self.fit_inverse_transform:
            self._learn_inverse(values, sample.weights)
        return self

    def _gathers_blocks(self) -> bool:
        if not self._search.by_features:
            require_products(self, "eigen_solver", ("auto", "exact", "krylov"))
        return not self._search.by_features

    def _draw_candidates(self, blocks: Blocks) -> RowSample:
        return draw_candidates(blocks, self._chosen, self._search.rank(len(blocks)))

    def _can_stream(self) -> bool:
        """Return True if `partial_fit` is available; raise ValueError otherwise."""
        if self._precomputed:
            raise ValueError("partial_fit needs points and does not support kernel='precomputed'")
        if not self._search.by_features and self.eigen_solver != "auto":
            raise ValueError(
                f"partial_fit needs eigen_solver='nystroem' or 'features', which store moments "
                f"instead of the points; {self.eigen_solver!r} needs all points at once"
            )
        return True

    @available_if(_can_stream)
    @fit_method
    def partial_fit(
        self, X: Points, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the components with new points, which are not stored.

        The first block determines the landmarks or random features and, if gamma depends on the
        data, gamma. It should therefore be a representative sample. Sums and products of the
        features are accumulated exactly, so the result does not depend on how later points are
        split into blocks. After a `fit` with landmarks or random features, `partial_fit` adds
        points to the model; after an exact `fit` it starts a new model. Compressed models raise an
        error.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New training points. kernel="precomputed" is not supported.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which count as repetitions.

        Returns
        -------
        self : KernelPCA
            The updated estimator.
        """
        search = self._search
        search.check()
        basis = None
        if hasattr(self, "_components"):
            _refuse_compressed_models(self)
            basis = self._components.basis
        if basis is None:
            remove_fitted(self)
        sample = self._sample(X, sample_weight=sample_weight, copy=False, reset=basis is None)
        if basis is None:
            kernel = sample.resolve_centred(self._make_kernel(self.gamma))
            solver, phi = search.begin(kernel, sample.points)
            moments = search.moments(phi, sample.points, sample.weights)
        else:
            kernel, solver, phi = self.kernel_, self.solver_, basis.map
            moments = basis.moments.merge(search.moments(phi, sample.points, sample.weights))
        gamma = None if basis is None else self.gamma_  # the first block determines gamma_
        self._set_fitted(
            search.components_from_moments(solver, phi, moments),
            kernel,
            precision(sample.points),
            gamma,
        )
        return self

    def merge(self, other: KernelPCA) -> Self:
        """Return a model of the training points of both models together.

        Both must have the same landmarks or random features.  Two workers that start with the same
        landmarks (pass the points themselves as `landmarks`), or the same random features, can
        each process a part of the data.

        Parameters
        ----------
        other : KernelPCA
            A fitted model with eigen_solver="nystroem" or "features".

        Returns
        -------
        KernelPCA
            A new model; self and other are not changed.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        _refuse_compressed_models(self, other)
        mine, theirs = self._components.basis, other._components.basis
        if mine is None or theirs is None:
            raise ValueError(
                "only models with eigen_solver='nystroem' or 'features' can be merged; "
                "exact solvers need all points at once"
            )
        if self.kernel_ != other.kernel_ or not same_feature_map(mine.map, theirs.map):
            raise ValueError(
                "the two models have different landmarks or features, so their moments cannot be "
                "added; pass the same points as `landmarks` to both, or the same random_state"
            )
        moments = mine.moments.merge(theirs.moments)
        result = self._search.components_from_moments(self.solver_, mine.map, moments)
        merged = copy.copy(self)  # a shallow copy: fitted attributes are never modified in place
        merged._set_fitted(result, self.kernel_, self._dtype, self.gamma_)
        return merged

    @property
    def _search(self) -> ComponentSearch:
        """The eigenproblem solver with the parameters of this estimator."""
        return ComponentSearch(
            **{name: getattr(self, name) for name in _SEARCH_PARAMETERS},
            eigen_solver=exact_as_auto(self.eigen_solver),
            drop_zeros=self.remove_zero_eig or self.n_components is None,
            landmarks=self._chosen,
            log=self._progress_callback,
        )

    def _set_fitted(
        self, result: ComponentSearchResult, kernel: Kernel, dtype: np.dtype, gamma: Any = None
    ) -> None:
        """Set all fitted attributes at the end of a fit, so that an interrupted fit sets none."""
        remove_fitted(self, per_point=True)  # of an earlier fit, in partial_fit and merge
        n = result.components.rows
        count = max(n, result.weight or n)  # number of points, counting weights as repetitions
        divisor = n * (count - 1) / count if count > 1 else 1
        self.kernel_, self.solver_, self.report_ = kernel, result.solver, result.components.report
        self._held, self._dtype = result.held, dtype
        self.gamma_ = self._resolved_gamma(kernel) if gamma is None else gamma
        self._set_spectrum(result.components, divisor)

    def _set_spectrum(self, parts: Components, divisor: float) -> None:
        """Set the fitted attributes from `parts`; variances are eigenvalues / divisor."""
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
        self._components = parts  # set last, because this marks the estimator as fitted

    def _threshold(self, parts: Components, errors: Any, weights: Any) -> float:
        """Return minus the error that is exceeded by a fraction `contamination` of the points."""
        # Rounding errors are smaller than this margin, so they do not turn inliers into outliers.
        margin = 1e-9 * parts.total / parts.rows
        return -weighted_quantile(errors, 1.0 - self.contamination, weights) - margin

    def _learn_inverse(self, X: Points, weights: np.ndarray | None) -> None:
        """Fit the inverse transform by kernel ridge regression from scores to points."""
        self._inverse = LearnedInverse.fit(
            self.training_scores_,
            X,
            weights,
            None if self.alpha == "auto" else float(self.alpha),
            max_memory=self.max_memory,
        )
        f = self._inverse.expansion
        self.X_transformed_fit_, self.dual_coef_ = f.points, f.coefficients
        self.inverse_kernel_, self.inverse_alpha_ = f.kernel, self._inverse.ridge

    # ------------------------------------------------------------------ scores and errors

    def fit_transform(self, X: Points, y: object = None, **params: Any) -> np.ndarray:
        """Fit to X and return the scores of its points, as `fit(X).transform(X)` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        **params : dict
            Additional arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        ndarray of shape (n, n_components_)
            The scores, also of points of weight 0.
        """
        self.fit(X, **params)
        # `training_scores_` does not contain points of weight 0, but the result must.
        return self.training_scores_ if self._whole else self.transform(X)

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the scores of points: their coordinates along the principal components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_components_)
            The scores <w_j, phi(x) - mu>, divided by their standard deviation if `whiten` is True.
            They are float32 if training points and new points are.
        """
        X = self._check_new(X)
        scores = self._components.score(X)
        return self._whiten_and_cast(scores, np.result_type(self._dtype, precision(X)))

    @predict_method
    def reconstruction_error(self, X: Points) -> np.ndarray:
        """Return the squared distance in feature space between each point and its projection.

        The error is |phi(x) - mu - sum_j score_j w_j|^2, with the components w_j.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. kernel="precomputed" is not
            supported, because k(x, x) is needed. If X is in blocks, so is the result, which is
            computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            The errors; large values mean points unlike the training data.
        """
        X = self._check_new(X)
        if self._precomputed:
            raise ValueError(
                "the reconstruction error needs k(x, x), which a precomputed matrix does not "
                "contain; fit with a kernel instead of a precomputed matrix"
            )
        return self._components.error(X, self.kernel_)

    @predict_method
    def score_samples(self, X: Points) -> np.ndarray:
        """Return minus the reconstruction error, which is low for points unlike the training data.

        scikit-learn's `PCA` returns log-likelihoods instead, but there may be no probability
        density in a feature space. The scores of different kernels are not comparable, because
        their feature spaces differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. kernel="precomputed" is not
            supported, because k(x, x) is needed. If X is in blocks, so is the result, which is
            computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Minus the reconstruction errors, at most 0 up to rounding.
        """
        return -self.reconstruction_error(X)

    def score(self, X: Points, y: object = None) -> float:
        """Return the mean of `score_samples`, for model selection with the same kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. kernel="precomputed" is not
            supported.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        float
            Minus the mean reconstruction error; larger is better.
        """
        return float(np.mean(self.score_samples(X)))

    @predict_method
    def decision_function(self, X: Points) -> np.ndarray:
        """Return score_samples(X) - offset_, which is negative for outliers.

        If there are so many components that the reconstruction error of the training points is 0,
        every other point is an outlier. In that case, choose fewer components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. kernel="precomputed" is not
            supported, because k(x, x) is needed. If X is in blocks, so is the result, which is
            computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Values of which a fraction `contamination` is negative on the training points.
        """
        check_is_fitted(self)
        if not hasattr(self, "offset_"):
            raise NotFittedError(
                "there is no outlier threshold after partial_fit, for points in blocks, or "
                "after compress, because the reconstruction errors of the training points are not "
                "available; compare score_samples with your own threshold"
            )
        return self.score_samples(X) - self.offset_

    def is_outlier(self, X: Points) -> np.ndarray:
        """Return True for each point whose reconstruction error exceeds the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. kernel="precomputed" is not
            supported.

        Returns
        -------
        ndarray of bool, shape (n,)
            Whether `decision_function` is negative.
        """
        return self.decision_function(X) < 0

    def contributions(self, X: Points = None) -> np.ndarray:
        """Return the relative influence of each input feature on each component.

        The influence of feature c on component j is the mean over the points of (s_c df_j /
        dx_c)^2, where f_j is the score and s_c the standard deviation of feature c.

        Parameters
        ----------
        X : array-like of shape (n, d) or None, default=None
            The points at which gradients are evaluated; None means the training points. The kernel
            must be differentiable.

        Returns
        -------
        ndarray of shape (n_components_, d)
            Each row sums to 1.
        """
        check_is_fitted(self)
        parts = self._components
        if parts.in_features:
            raise ValueError(
                "gradients of random features are not available; use eigen_solver='nystroem'"
            )
        if parts.in_primal:
            raise ValueError(
                "contributions are not available after to_primal; use the original model"
            )
        has_no_points = parts.basis is not None or parts.reduction is not None
        if X is None and (self._precomputed or has_no_points):
            raise ValueError(
                "this model does not store its training points; pass the points X at which the "
                "gradients are evaluated"
            )
        X = self.X_fit_ if X is None else self._check_points(X, reset=False)
        return parts.contributions(X.toarray() if sp.issparse(X) else X)

    # ------------------------------------------------------------------ inverse transform

    def decode(self, X: Points) -> Expansion:
        """Return the elements mu + sum_j X_ij w_j of the RKHS, one for each row of scores.

        `decode(transform(X))` contains the projections of the feature vectors phi(x); the squared
        distance from phi(x) is the reconstruction error.

        Parameters
        ----------
        X : array-like of shape (n, n_components_)
            Scores, as `transform` returns them.

        Returns
        -------
        Expansion
            One function for each row of X.
        """
        return self._feature_space().decode(self._check_scores(X))

    @predict_method
    def preimage(self, X: Points, method: str = "auto", **options: Any) -> PreImages:
        """Return pre-images: points z with phi(z) close to `decode(X)`.

        Parameters
        ----------
        X : array-like of shape (n, n_components_)
            Scores, as `transform` returns them.
        method : str, default="auto"
            A method of `Expansion.preimage`, such as "fixed_point", "gradient" or "distance".
            "auto" tries all that apply to the kernel and returns the best.
        **options : dict
            Options of `Expansion.preimage`, such as `n_neighbors`, `tol` and `max_iter`.

        Returns
        -------
        PreImages
            The `points`, one for each row of X, and their `residuals` |phi(z) - decode(x)|^2.
        """
        return self._feature_space().preimage(self._check_scores(X), method, **options)

    def denoise(self, X: Points, method: str | None = None, **options: Any) -> Points:
        """Return the pre-image of the projection of each point on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Noisy points.
        method : str or None, default=None
            None starts at the point itself and uses a fixed-point iteration if the kernel has one,
            otherwise gradient descent; for kernels without a gradient it uses "auto". The
            projection may have several pre-images; starting at x selects the one near x, whereas
            "auto" selects the one with the smallest residual. "distance" combines training points
            near the projection, which works better if noise replaces values instead of being added.
            Other methods are those of `Expansion.preimage`.
        **options : dict
            Options of `Expansion.preimage`, such as `n_neighbors`, `tol` and `max_iter`.

        Returns
        -------
        points
            One for each row of X: an ndarray of shape (n, d) for vectors, otherwise a list.
        """
        check_is_fitted(self)
        scores = self.transform(X)
        scores = getattr(scores, "to_numpy", lambda: scores)()  # a table if `set_output` was called
        X = self._check_points(X, reset=False)
        if self._expects_matrix(X) and not self.kernel_.domain.discrete:
            options = {"start": X, **options}
        if method is not None:
            return self._cast(self.preimage(scores, method, **options).points)
        try:
            preimages = self.preimage(scores, local_preimage_method(self.kernel_), **options)
        except NotDifferentiableError:
            preimages = self.preimage(scores, "auto", **options)
        return self._cast(preimages.points)

    @predict_method
    def inverse_transform(self, X: Points, method: str | None = None, **options: Any) -> Points:
        """Return points for the scores X.

        Parameters
        ----------
        X : array-like of shape (n, n_components_)
            Scores, as `transform` returns them.
        method : str or None, default=None
            None uses the map that was learned with `fit_inverse_transform=True`. Otherwise a method
            of `Expansion.preimage`, such as "auto", which does not need that map.
        **options : dict
            Options of `Expansion.preimage`, such as `n_neighbors`, `tol` and `max_iter`.

        Returns
        -------
        points
            One for each row of X: an ndarray of shape (n, d) for vectors, otherwise a list.
        """
        if method is not None:
            return self._cast(self.preimage(X, method, **options).points)
        if options:
            raise TypeError(
                f"the learned inverse transform takes no options, got "
                f"{', '.join(sorted(options))}; choose a method, such as method='auto'"
            )
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available. Without it, choose a method: "
                "inverse_transform(X, method='auto')."
            )
        check_is_fitted(self)
        if not hasattr(self, "_inverse"):
            raise NotFittedError(
                "the inverse transform was not learned: fit_inverse_transform must be True when "
                "fit is called, and it is not available after partial_fit or compress; use "
                "inverse_transform(X, method='auto'), which does not need it"
            )
        X = self._check_scores(X, whitened=True)
        return self._cast(self._inverse(X))

    def _feature_space(self) -> Components:
        """Return the components if they are elements of the RKHS; raise ValueError otherwise."""
        check_is_fitted(self)
        if self._components.in_features:
            raise ValueError(
                "with random features the components are not elements of the RKHS, so there are no "
                "pre-images; set fit_inverse_transform=True, or use eigen_solver='nystroem'"
            )
        if self._components.in_primal:
            raise ValueError(
                "pre-images are not available after to_primal, because the model does not "
                "store points; use the original model"
            )
        if self._precomputed:
            raise ValueError(
                "pre-images need points, which a precomputed kernel matrix does not have; fit with "
                "a kernel"
            )
        if self.indefinite != "raise":
            raise ValueError(
                f"with indefinite={self.indefinite!r} the components are not elements of an RKHS, "
                f"so scores have no pre-images"
            )
        return self._components

    def _check_scores(self, X: Points, whitened: bool = False) -> np.ndarray:
        """Check scores and return them as floats; undo whitening unless `whitened` is True."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise ValueError(
                f"scores must have one column for each of the {self.n_components_} components, got "
                f"shape {X.shape}"
            )
        if not np.all(np.isfinite(X)):
            raise ValueError("scores contain values that are not finite")
        if self.whiten and not whitened:
            gains = inverse_sqrt(self.explained_variance_)
            X = np.divide(X, gains, out=np.zeros_like(X), where=gains > 0)
        return X

    # ------------------------------------------------------------------ cost and summary

    def _plan(self, sample: Sample) -> Plan:
        return self._search.plan(self._planned_kernel(sample), sample.points)

    def summary(self) -> str:
        """Return a text with the solver, the explained variances and their error bounds.

        Returns
        -------
        str
            Several lines, to print.
        """
        check_is_fitted(self)
        return summary(self)

    @property
    def reduction_(self) -> Reduction | None:
        """The error certificate of a model that `compress` returned; None for other models."""
        check_is_fitted(self)
        return self._components.reduction

    @property
    def components_(self) -> Expansion:
        """The components w_j, which have unit norm in the RKHS."""
        check_is_fitted(self)
        return self.expansion_

    @property
    def training_scores_(self) -> np.ndarray:
        """The scores of the training points of positive weight; not available for streams."""
        check_is_fitted(self)
        if self._components.scores is None:
            raise AttributeError(
                "training scores are not stored after partial_fit, for points in blocks, or after "
                "compress; pass the points to transform"
            )
        return self._whiten_and_cast(self._components.scores, self._dtype)

    # ------------------------------------------------------------------ conversion and helpers

    def _compress(self, shrink: Any) -> None:
        old = self._components
        if old.reduction is not None:
            raise ValueError(
                f"this KernelPCA was already compressed, from {old.reduction.n_points_before} to "
                f"{old.reduction.n_points} points, and no longer has the training points that its "
                f"variances refer to; compress the original model to the new size"
            )
        if old.in_features:
            raise ValueError(
                "a kernel PCA with random features stores no points, so it cannot be compressed; "
                "choose a smaller rank, or fit with eigen_solver='nystroem'"
            )
        if self.indefinite != "raise":
            raise ValueError(
                f"with indefinite={self.indefinite!r} the components are not elements of an RKHS, "
                f"so they have no RKHS norm in which they could be compressed"
            )
        parts, errors = reduced_components(old, shrink)
        divisor = old.total / self.total_variance_ if old.total > 0 else 1.0
        remove_fitted(self, per_point=True)
        self._set_spectrum(parts, divisor)
        if errors is not None:
            weights = old.expansion.coefficients[:, -1]
            self.offset_ = self._threshold(parts, errors, weights)

    def _to_primal(self, max_memory: MemoryLimit) -> None:
        if self._components.in_features:
            raise ValueError(
                "a KernelPCA with random features is already in primal form; it stores no points"
            )
        self._components = self._components.to_primal(max_memory)
        self.expansion_, self.mean_ = self._components.functions, self._components.mean
        # The threshold stays, because scores and errors do not change.
        remove_fitted(self, "offset_", per_point=True)

    def _whiten_and_cast(self, scores: np.ndarray, dtype: Any) -> np.ndarray:
        """Return the scores in the requested dtype, whitened if `whiten` is True."""
        if self.whiten:
            scores = scores * inverse_sqrt(self.explained_variance_)
        return scores.astype(dtype, copy=False)

    def _cast(self, Z: Points) -> Points:
        """Convert floating-point pre-images to the precision of the training points."""
        numbers = isinstance(Z, np.ndarray) and Z.dtype.kind == "f"
        return Z.astype(self._dtype, copy=False) if numbers else Z

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_components")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _refuse_compressed_models(*models: KernelPCA) -> None:
    """Raise an error if one of the models is compressed."""
    if any(model._components.reduction is not None for model in models):
        raise ValueError(
            "a compressed model cannot be updated or merged, because it no longer has the moments "
            "of its points; update the original model, and compress it again"
        )
