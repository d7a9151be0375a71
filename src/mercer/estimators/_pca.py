"""Kernel PCA: the leading eigenfunctions of the covariance of phi(x)."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._errors import NotDifferentiableError
from ..blocks import Blocks, as_blocks, in_blocks
from ..expansion import Expansion
from ..kernels import Kernel
from ..preimage import PreImages, local_method
from ..reduce import Reduction
from ..spectral import (
    POLICIES,
    Components,
    ComponentSearch,
    Found,
    LearnedInverse,
    Plan,
    gains_of,
    reduced_components,
    same_map,
)
from ._base import Landmarked, NamedKernel
from ._explorable import Explorable
from ._in_blocks import exactly, gathered, sampled
from ._parameters import (
    AT_LEAST_0,
    COUNT,
    by_size,
    estimator,
    fitting,
    learned,
    parameter,
    solver,
    threaded,
)
from ._sample import Sample, weighted_quantile
from ._summary import summary

__all__ = ["KernelPCA"]

_SEARCHED = (  # parameters that a search for the components has by the same name
    *("n_components", "tol", "max_iter", "iterated_power", "storage"),
    *("indefinite", "max_memory"),
)
# what is known of each training point, or learned from it
_OF_POINTS = (
    *("eigenvectors_", "offset_", "dual_coef_", "X_transformed_fit_"),
    *("inverse_kernel_", "inverse_alpha_", "_inverse"),
)


@estimator()
class KernelPCA(
    Explorable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Landmarked, NamedKernel
):
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
        peeling), "arpack", "randomized".  "auto" and "exact" take "dense" or "krylov": see `plan`.
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
    eigen_solver: Any = solver(
        *("dense", "arpack", "randomized", "krylov", "power", "nystroem", "features"),
        given=[HasMethods(["eigenpairs"])],
        default="auto",
    )
    tol: float = parameter(AT_LEAST_0, default=0)
    max_iter: int | None = parameter(COUNT, None, default=None)
    iterated_power: int | str = parameter(
        Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), default="auto"
    )
    remove_zero_eig: bool = parameter("boolean", default=False)
    copy_X: bool = parameter("boolean", default=True)
    whiten: bool = parameter("boolean", default=False)
    indefinite: str = parameter(StrOptions(set(POLICIES)), default="raise")
    contamination: float = parameter(Interval(Real, 0, 0.5, closed="right"), default=0.05)
    storage: str = parameter(StrOptions({"auto", "dense", "tiled"}), default="auto")

    kernel_: Kernel = learned()
    offset_: float = learned()
    explained_variance_: np.ndarray = learned()
    n_components_: int = learned()
    _components: Components = learned()
    _inverse: LearnedInverse = learned()
    _dtype: np.dtype = learned()

    # ------------------------------------------------------------------ fitting

    @property
    def _order(self) -> int | None:
        return 1 if self.indefinite == "raise" else None  # centring; or the user has decided

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of the points X; y is ignored.

        Interrupted, it leaves the estimator as it was before its first fit.
        """
        if self.fit_inverse_transform and self._precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        search = self._search
        search.check()
        self._forget()
        own = self.copy_X and not search.by_features
        self._fit_sample(search, self._sample(X, sample_weight=sample_weight, copy=own))
        return self

    def _fit_sample(self, search: ComponentSearch, sample: Sample) -> None:
        kernel = sample.resolve_about(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(kernel, self.max_memory)
        found = search.fit(evaluated, sample.points, sample.weights)
        if evaluated is not kernel:
            found = found._replace(components=found.components.in_terms_of(kernel))
        values = sample.points if sample.values is None else sample.values.matrix
        self._whole = sample.whole
        self._learn(found, kernel, _precision(values))
        self.offset_ = self._threshold(found.components, found.errors, sample.weights)
        if self.fit_inverse_transform:
            try:
                self._learn_inverse(values, sample.weights)
            except BaseException:
                self._forget()
                raise

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Find the components of points in blocks: moments of features, in one pass."""
        search = self._search
        search.check()
        if self.fit_inverse_transform:
            raise ValueError(
                "fit_inverse_transform=True learns from all points at once; with blocks take "
                "inverse_transform(X, method='auto'), which needs no map"
            )
        self._forget()
        if not search.by_features:
            with exactly(self, X, "eigen_solver", ("auto", "exact", "krylov")):
                points, _, w = gathered(self, X, None, sample_weight)
                search = replace(search, eigen_solver="krylov", storage="tiled")
                self._fit_sample(search, self._sample(points, sample_weight=w, copy=False))
            return
        blocks, drawn = sampled(X, self._chosen, None, sample_weight, search.rank(len(X)))
        sample = self._sample(drawn.X, sample_weight=drawn.weights, copy=False)
        kernel = sample.resolve_about(self._make_kernel(self.gamma))
        solver, phi = search.begin(kernel, sample.points)
        found = search.read_out(solver, phi, search.moments(phi, blocks, None))
        self._whole = False
        self._learn(found, kernel, _precision(sample.points))

    def _can_stream(self) -> bool:
        if self._precomputed:
            raise ValueError("partial_fit needs points, not a precomputed kernel matrix")
        if not self._search.by_features and self.eigen_solver != "auto":
            raise ValueError(
                f"partial_fit needs eigen_solver='nystroem' or 'features', which keep a summary of "
                f"the points; {self.eigen_solver!r} needs them all at once"
            )
        return True

    @available_if(_can_stream)
    @fitting
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in more points, which need not be kept.

        Landmarks or features are fixed by the first block, and the moments of the features are
        added up exactly, so that the result does not depend on how the points were cut into blocks.
        The first block should be a fair sample: it provides the landmarks and, for a gamma that
        depends on the data, the gamma.  After an exact fit, which keeps no such summary, it starts
        anew; after one on landmarks or features it goes on.  A compressed model cannot.
        """
        search = self._search
        search.check()
        basis = None
        if hasattr(self, "_components"):
            _check_whole(self)
            basis = self._components.basis
        if basis is None:
            self._forget()
        sample = self._sample(X, sample_weight=sample_weight, copy=False, reset=basis is None)
        if basis is None:
            kernel = sample.resolve_about(self._make_kernel(self.gamma))
            solver, phi = search.begin(kernel, sample.points)
            moments = search.moments(phi, sample.points, sample.weights)
        else:
            kernel, solver, phi = self.kernel_, self.solver_, basis.map
            moments = basis.moments.merge(search.moments(phi, sample.points, sample.weights))
        gamma = None if basis is None else self.gamma_  # that of the first block stays
        self._learn(search.read_out(solver, phi, moments), kernel, _precision(sample.points), gamma)
        return self

    def merge(self, other: KernelPCA) -> Self:
        """Return the model of the points of both, which must share landmarks or features.

        Two workers that start from the same landmarks (`landmarks=` the points themselves), or the
        same random features, can each take in their part of the data.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        _check_whole(self, other)
        mine, theirs = self._components.basis, other._components.basis
        if mine is None or theirs is None:
            raise ValueError(
                "only models of eigen_solver='nystroem' or 'features' can be merged; "
                "an exact one needs all points at once"
            )
        if self.kernel_ != other.kernel_ or not same_map(mine.map, theirs.map):
            raise ValueError(
                "the two models have other landmarks or features, so their moments do not add up; "
                "give both the same points as `landmarks`, or the same random_state"
            )
        moments = mine.moments.merge(theirs.moments)
        found = self._search.read_out(self.solver_, mine.map, moments)
        result = copy.copy(self)  # shallow: what it has learned is replaced, and nothing changed
        result._learn(found, self.kernel_, self._dtype, self.gamma_)
        return result

    @property
    def _search(self) -> ComponentSearch:
        return ComponentSearch(
            **{name: getattr(self, name) for name in _SEARCHED},
            eigen_solver=by_size(self.eigen_solver),
            drop_zeros=self.remove_zero_eig or self.n_components is None,
            landmarks=self._chosen,
            say=self._teller,
        )

    def _learn(self, found: Found, kernel: Kernel, dtype: np.dtype, gamma: Any = None) -> None:
        """Set the fitted attributes, all at once: an interrupted fit sets none."""
        for name in _OF_POINTS:
            self.__dict__.pop(name, None)  # an earlier fit may have left them
        n = found.components.rows
        count = max(n, found.weight or n)  # repetitions, if the weights can be that
        divisor = n * (count - 1) / count if count > 1 else 1
        self.kernel_, self.solver_, self.report_ = kernel, found.solver, found.components.report
        self._held, self._dtype = found.held, dtype
        self.gamma_ = self._resolved_gamma(kernel) if gamma is None else gamma
        self._learn_spectrum(found.components, divisor)

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

    def _threshold(self, parts: Components, errors: Any, weights: Any) -> float:
        """Return minus the error that a share of `contamination` of the training points exceeds."""
        margin = 1e-9 * parts.total / parts.rows  # an error of this size is rounding
        return -weighted_quantile(errors, 1.0 - self.contamination, weights) - margin

    def _learn_inverse(self, X: Any, weights: np.ndarray | None) -> None:
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

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Fit, and return the scores u_j sqrt(l_j) of the training points, (n, n_components_)."""
        self.fit(X, **params)
        # points of weight 0 have a score, too
        return self.training_scores_ if self._whole else self.transform(X)

    @threaded
    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of X, (n, n_components_), in tiles of bounded memory."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        scores = self._components.score(X)
        return self._finished(scores, np.result_type(self._dtype, _precision(X)))

    @threaded
    def reconstruction_error(self, X: Any) -> np.ndarray:
        """Return |phi(x) - mu - sum_j score_j w_j|^2 for each point, exactly, in feature space."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        if self._precomputed:
            raise ValueError(
                "the reconstruction error needs k(x, x), which k(X, X_fit) does not hold; "
                "fit with a kernel, not with its values"
            )
        return self._components.error(X, self.kernel_)

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the reconstruction error: the lower, the less x is like the training points.

        PCA's scores are log-likelihoods; in a feature space without a density this is what stays.
        Different kernels have different feature spaces: it does not choose between them.
        """
        return -self.reconstruction_error(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """Return score_samples(X) - offset_: negative for outliers.

        With so many components that the training points have no error left, every other point has
        more: ask for fewer.
        """
        check_is_fitted(self)
        if not hasattr(self, "offset_"):
            raise NotFittedError(
                "partial_fit and blocks see each point once, and compress has landmarks alone, so "
                "the threshold of its training points is not known; compare score_samples with a "
                "threshold of your own"
            )
        return self.score_samples(X) - self.offset_

    def is_outlier(self, X: Any) -> np.ndarray:
        """Tell for each point whether its reconstruction error is beyond the threshold."""
        return self.decision_function(X) < 0

    def contributions(self, X: Any = None) -> np.ndarray:
        """Return the share of each feature in each component, (n_components_, n_features).

        The mean over the points X (the training points) of (s_c df_j / dx_c)^2, with s_c the
        standard deviation of feature c; each row sums to 1.
        """
        check_is_fitted(self)
        parts = self._components
        if parts.in_features:
            raise ValueError("random features have no gradient here; use eigen_solver='nystroem'")
        if parts.in_primal:
            raise ValueError("weights of features have no gradient; ask the model in the dual")
        gone = parts.basis is not None or parts.reduction is not None
        if X is None and (self._precomputed or gone):
            raise ValueError(
                "this model does not hold its training points; give the points X at which the "
                "gradients are to be taken"
            )
        X = self.X_fit_ if X is None else self._check_points(X, reset=False)
        return parts.contributions(X.toarray() if sp.issparse(X) else X)

    # ------------------------------------------------------------------ the way back

    def decode(self, X: Any) -> Expansion:
        """Return the elements mu + sum_j X_ij w_j of the RKHS, one function for each row of scores.

        What `transform` has projected, in feature space: `decode(transform(x))` is the
        reconstruction of phi(x), and its distance to phi(x) the reconstruction error.
        """
        return self._feature_space().decode(self._check_scores(X))

    @threaded
    def preimage(self, X: Any, method: str = "auto", **options: Any) -> PreImages:
        """Return points whose phi is close to `decode(X)`, with their residuals.

        Parameters
        ----------
        X : array of shape (n, n_components_)
            Scores.
        method, options
            Of `Expansion.preimage`.
        """
        return self._feature_space().preimage(self._check_scores(X), method, **options)

    def denoise(self, X: Any, method: str | None = None, **options: Any) -> Any:
        """Return for each point the pre-image of its projection on the components.

        Parameters
        ----------
        X : points
        method : str or None, default=None
            None: descend from x itself, by the fixed point where the kernel has one, else by the
            gradient ("auto" for kernels without one).  Where the projection has several
            pre-images, x knows which is meant; the one of smallest residual ("auto") may be
            another.  "distance" stays among the training points near the projection, which is
            better where noise replaces values instead of adding to them.
        options
            Of `Expansion.preimage`.
        """
        check_is_fitted(self)
        scores = self.transform(X)
        scores = getattr(scores, "to_numpy", lambda: scores)()  # a table, after set_output
        X = self._check_points(X, reset=False)
        if self._takes(X) and not self.kernel_.discrete:
            options = {"start": X, **options}
        if method is not None:
            return self._cast(self.preimage(scores, method, **options).points)
        try:
            found = self.preimage(scores, local_method(self.kernel_), **options)
        except NotDifferentiableError:
            found = self.preimage(scores, "auto", **options)
        return self._cast(found.points)

    @threaded
    def inverse_transform(self, X: Any, method: str | None = None, **options: Any) -> Any:
        """Return points for the scores X, (n, n_components_).

        Parameters
        ----------
        X : array of shape (n, n_components_)
        method : str or None, default=None
            None: by the map that was learned with `fit_inverse_transform=True`.  Otherwise a
            method of `Expansion.preimage`, which needs no such map.
        options
            Of `Expansion.preimage`.
        """
        if method is not None:
            return self._cast(self.preimage(X, method, **options).points)
        if options:
            raise TypeError(
                f"{', '.join(sorted(options))}: the learned map takes no options; name a method, "
                f"such as method='auto'"
            )
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available. Without it, name a method: "
                "inverse_transform(X, method='auto')."
            )
        check_is_fitted(self)
        if not hasattr(self, "_inverse"):
            raise NotFittedError(
                "the inverse transform was not learned: fit_inverse_transform must be True when "
                "fit is called, and neither partial_fit nor compress keeps the points it needs; "
                "inverse_transform(X, method='auto') needs no map"
            )
        X = self._check_scores(X, whitened=True)
        return self._cast(self._inverse(X))

    def _feature_space(self) -> Components:
        """Return the components, if their space is that of the kernel."""
        check_is_fitted(self)
        if self._components.in_features:
            raise ValueError(
                "random features live in another space than the kernel's, so pre-images there are "
                "only learned: set fit_inverse_transform=True, or use eigen_solver='nystroem'"
            )
        if self._components.in_primal:
            raise ValueError(
                "a model in the primal has no points to come back to; ask the one in the dual"
            )
        if self._precomputed:
            raise ValueError(
                "a precomputed kernel matrix has no points to come back to; fit with a kernel"
            )
        if self.indefinite != "raise":
            raise ValueError(
                f"with indefinite={self.indefinite!r} scores are not those of the kernel's own "
                f"space, so that they have no pre-images there"
            )
        return self._components

    def _check_scores(self, X: Any, whitened: bool = False) -> np.ndarray:
        """Return scores as numbers, as many as components; without the whitening, if any."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise ValueError(
                f"scores have shape {X.shape}, but there are {self.n_components_} components: one "
                f"column for each is needed"
            )
        if not np.all(np.isfinite(X)):
            raise ValueError("scores hold values that are not finite")
        if self.whiten and not whitened:
            gains = gains_of(self.explained_variance_)
            X = np.divide(X, gains, out=np.zeros_like(X), where=gains > 0)
        return X

    # ------------------------------------------------------------------ what it says

    def plan(self, X: Any) -> Plan:
        """Return what each method would cost for these points, before anything is allocated.

        For points in blocks with the law of time on as many cores as there are.
        """
        return self._planned(as_blocks(X)) if in_blocks(X) else self._plan(X)

    @threaded
    def _plan(self, X: Any) -> Plan:
        return self._planned(X)

    def _planned(self, X: Any) -> Plan:
        return self._search.plan(self._make_kernel(self.gamma), X)

    def summary(self) -> str:
        """Return what was fitted, how well, and at what cost, as text."""
        check_is_fitted(self)
        return summary(self)

    @property
    def reduction_(self) -> Reduction | None:
        """The certificate of a model that `compress` has returned; None for others."""
        check_is_fitted(self)
        return self._components.reduction

    @property
    def components_(self) -> Expansion:
        """The components w_j, of unit norm in the RKHS: a_j has length 1 / sqrt(l_j)."""
        check_is_fitted(self)
        return self.expansion_

    @property
    def training_scores_(self) -> np.ndarray:
        """The scores of the training points that count; a stream has not kept them."""
        check_is_fitted(self)
        if self._components.scores is None:
            raise AttributeError(
                "partial_fit, blocks and compress do not keep the training points: give X to "
                "transform"
            )
        return self._finished(self._components.scores, self._dtype)

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

    def _to_primal(self, max_memory: Any) -> None:
        if self._components.in_features:
            raise ValueError("a kernel PCA of random features is in the primal: it has no points")
        self._components = self._components.to_primal(max_memory)
        self.expansion_, self.mean_ = self._components.functions, self._components.mean
        for name in ("X_fit_", *_OF_POINTS):
            if name != "offset_":  # the threshold stays: scores and errors are the same
                self.__dict__.pop(name, None)

    def _forget(self) -> None:
        """Drop what an earlier fit has learned."""
        for name in [v for v in vars(self) if v.endswith("_") and not v.startswith("_")]:
            delattr(self, name)
        for name in ("_components", "_inverse", "_held", "_dtype"):
            self.__dict__.pop(name, None)

    def _finished(self, scores: np.ndarray, dtype: Any) -> np.ndarray:
        if self.whiten:
            scores = scores * gains_of(self.explained_variance_)
        return scores.astype(dtype, copy=False)

    def _cast(self, Z: Any) -> Any:
        numbers = isinstance(Z, np.ndarray) and Z.dtype.kind == "f"
        return Z.astype(self._dtype, copy=False) if numbers else Z

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_components")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _check_whole(*models: KernelPCA) -> None:
    if any(model._components.reduction is not None for model in models):
        raise ValueError(
            "a compressed model cannot go on, as it no longer has the moments of its points; "
            "continue with the original model, and compress that again"
        )


def _precision(X: Any) -> np.dtype:
    single = getattr(X, "dtype", None) == np.float32
    return np.dtype(np.float32 if single else np.float64)
