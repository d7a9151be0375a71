"""Independent component analysis with a kernel measure of dependence."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._core import (
    Points,
    Stopwatch,
    check_budget,
    progress,
    reject_structured,
    resource_scope,
    seeded_generator,
    warn_caller,
)
from ..._core.linalg import eigh
from ...models.embedding import CONTRASTS, PairDependence, find_independent_rotation
from ...solvers import Report, Status
from .._kernel_estimator import Seed
from .._parameters import estimator, fit_method, fitted, parameter
from .._plan_method import PlanMixin, n_of
from .._training_sample import Sample
from ..embedding._latent_model import check_latent_coordinates

# Directions with a smaller variance, relative to the largest, are rounding errors.
_MIN_RELATIVE_VARIANCE = 1e-12
# Columns with a smaller standard deviation, relative to their mean, are constant.
_MIN_RELATIVE_SCALE = 1e-13


@estimator()
class KernelICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PlanMixin, BaseEstimator):
    """Independent component analysis (ICA) with a kernel measure of dependence.

    ICA assumes that the data are linear mixtures x = A s + mean of independent sources s, and
    estimates the sources up to their order, signs and scales. The data are whitened, s = R W (x -
    mean), and the rotation R minimises the sum of the dependences of all pairs of components.
    Dependence is measured with a Gaussian kernel, and is 0 only for independent variables. FastICA
    measures only the non-normality of each component by one function, and fails for sources that
    this function does not distinguish from a normal variable.

    At most one source may be normal. The time is linear in the number of points and quadratic in
    the number of components; for more than about 20 components use FastICA.

    Parameters
    ----------
    n_components : int or None
        The number of components. If it is smaller than the number of columns, the principal
        components of largest variance are used. None means all directions of positive variance.
    contrast : {"normalized", "hsic", "variance"}
        The measure of dependence. "hsic" is the Hilbert-Schmidt independence criterion, the squared
        norm of the cross-covariance operator. "normalized" divides this operator by the square
        roots of the covariance operators, which are regularised: the sum of all squared kernel
        canonical correlations. "variance" is the kernel generalised variance of Bach and Jordan,
        the mutual information of normal variables with these correlations. "normalized" is the most
        accurate on average, and "hsic" the fastest.
    bandwidth : float
        The width s of the Gaussian kernel exp(-d^2 / (2 s^2)) of components of unit variance.
        Larger widths give less variable, but also less sensitive measures.
    regularization : float
        The constant that is added to the covariance operators; not used for "hsic". The variance of
        phi(x) in feature space is below 1.
    n_init : int
        The number of starts. Starts after the first are random rotations. More starts help if there
        are many components.
    tol : float
        A start has converged when all angles of a sweep over the pairs are at most tol.
    max_iter : int
        The maximum number of sweeps per start.
    random_state : int, RandomState or None
        Seed of the random starts; None means 0.
    max_memory : int, str or None
        The memory budget, in bytes or as a string such as "2 GiB". None means half of the
        computer's memory.
    n_jobs : int or None
        The number of threads. None means all processors. The number does not affect the results.
    verbose : int
        Whether to print progress.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The matrix R W that maps centred points to components.
    mixing_ : ndarray of shape (n_features, n_components)
        The pseudo-inverse of `components_`, the estimate of A for sources of unit variance. Columns
        are sorted by decreasing norm, and the largest entry of each is positive.
    mean_ : ndarray of shape (n_features,)
        The mean of the training points.
    whitening_ : ndarray of shape (n_components, n_features)
        The matrix W that maps centred points to uncorrelated variables of unit variance.
    report_ : Report
        The number of sweeps, the largest angle of the last sweep, the sum of the pairwise
        dependences, and this sum before the rotation and after each start.
    n_iter_ : int
        The number of sweeps of the best start.
    n_features_in_ : int
        The number of columns of X.

    See Also
    --------
    KernelPCA : Components that are uncorrelated in feature space.
    hsic : The dependence of two samples.
    independence_test : Tests whether two components are independent.
    sklearn.decomposition.FastICA : ICA by the non-normality of single components.

    References
    ----------
    Bach and Jordan, "Kernel independent component analysis", Journal of Machine Learning Research
    3, 2002.

    Gretton, Bousquet, Smola and Schölkopf, "Measuring statistical dependence with Hilbert-Schmidt
    norms", Algorithmic Learning Theory, 2005.

    Fukumizu, Gretton, Sun and Schölkopf, "Kernel measures of conditional dependence", Advances in
    Neural Information Processing Systems 20, 2008.

    Shen, Jegelka and Gretton, "Fast kernel-based independent component analysis", IEEE Transactions
    on Signal Processing 57, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelICA
    >>> rng = np.random.default_rng(0)
    >>> sources = np.column_stack([rng.uniform(-1, 1, 500), rng.laplace(size=500)])
    >>> X = sources @ np.array([[1.0, 0.5], [0.7, 1.0]])
    >>> ica = KernelICA().fit(X)
    >>> correlations = np.corrcoef(sources.T, ica.transform(X).T)[:2, 2:]
    >>> np.abs(correlations).max(axis=1).round(2)
    array([1., 1.])
    """

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    contrast: str = parameter(set(CONTRASTS), default="normalized")
    bandwidth: float = parameter("positive", default=0.5)
    regularization: float = parameter("positive", default=5e-3)
    n_init: int = parameter("positive integer", default=1)
    tol: float = parameter("positive", default=1e-4)
    max_iter: int = parameter("positive integer", default=50)
    random_state: Seed = parameter("random_state", default=None)
    max_memory: int | float | str | None = parameter("positive", str, None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)
    verbose: int = parameter("boolean", "non-negative integer", default=0)

    components_: np.ndarray = fitted()
    mixing_: np.ndarray = fitted()
    mean_: np.ndarray = fitted()
    whitening_: np.ndarray = fitted()
    report_: Report = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Estimate the mixing matrix from the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Mixtures, one point per row.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : KernelICA
            The fitted estimator.
        """
        X = self._check(X, reset=True, ensure_min_samples=2)
        n, d = X.shape
        check_budget(_ica_bytes(n, d), self.max_memory, f"KernelICA of {n} points")
        watch = Stopwatch()
        with progress(type(self).__name__, self.verbose) as log, resource_scope(None, self.n_jobs):
            self.mean_ = X.mean(axis=0)
            centred = X - self.mean_
            self.whitening_, unwhitening = self._whitening(centred)
            Z = centred @ self.whitening_.T
            extent = 2.0 * float(np.sqrt(np.square(Z).sum(axis=1).max()))
            dependence = PairDependence(self.contrast, self.bandwidth, self.regularization, extent)
            rng = seeded_generator(self.random_state)
            options = (self.n_init, self.tol, self.max_iter, rng, log)
            found = find_independent_rotation(Z, dependence, *options)
        mixing = unwhitening @ found.rotation.T
        order = np.argsort(-np.square(mixing).sum(axis=0), kind="stable")
        largest = np.abs(mixing).argmax(axis=0)
        signs = np.where(mixing[largest, np.arange(len(largest))] < 0, -1.0, 1.0)
        self.mixing_ = (mixing * signs)[:, order]
        self.components_ = ((found.rotation @ self.whitening_) * signs[:, None])[order]
        self.report_ = self._report(found, watch.seconds)
        return self

    def _whitening(self, centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the whitening matrix, and its pseudo-inverse."""
        n, d = centred.shape
        with np.errstate(over="ignore"):
            scales = np.sqrt(np.mean(np.square(centred), axis=0))
        if not np.isfinite(scales).all():
            raise ValueError(
                f"the variance of X overflows, because it has entries up to "
                f"{float(np.abs(self.mean_).max() + np.abs(centred).max()):.2g}; scale the columns"
            )
        variances, vectors, rank = _principal_axes(centred)
        # A constant column differs from its mean by rounding errors.
        scales = np.where(scales > _MIN_RELATIVE_SCALE * np.abs(self.mean_), scales, 0.0)
        m, units = rank if self.n_components is None else self.n_components, np.ones(d)
        if self.n_components in (None, d) and rank < d and scales.all():
            # Columns of very different scales have directions of very different variances.
            standardised = _principal_axes(centred / scales)
            if standardised[2] > rank:
                (variances, vectors, rank), units = standardised, scales
                m = rank
        if not scales.any() or m > rank:
            raise ValueError(
                f"the {n} points span only {rank if scales.any() else 0} directions of {d}, but "
                f"n_components={self.n_components}; the usual causes are fewer points than columns "
                f"and columns that are constant or linearly dependent. Use a smaller n_components"
            )
        roots = np.sqrt(variances[:m])
        mixing = vectors[:, :m] * roots * units[:, None]
        return (vectors[:, :m] / roots / units[:, None]).T, mixing

    def _report(self, found: Any, seconds: float) -> Report:
        converged, message = found.largest_angle <= self.tol, ""
        if not converged:
            message = (
                f"after {found.n_sweeps} sweeps the largest angle of a sweep was "
                f"{found.largest_angle:.1e}, more than tol={self.tol:g}; the usual cause is "
                f"that several components are nearly normal, which no rotation separates. Raise "
                f"max_iter or tol, or use fewer components"
            )
            warn_caller(message, ConvergenceWarning)
        return Report(
            solver="Jacobi rotations",
            status=Status.CONVERGED if converged else Status.NOT_CONVERGED,
            n_iter=found.n_sweeps,
            residual=found.largest_angle,
            seconds=seconds,
            message=message or "the residual is the largest angle of the last sweep",
            certificate={"dependence": found.dependence, "of each start": found.values.tolist()},
        )

    def transform(self, X: Points) -> np.ndarray:
        """Return the independent components of each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Mixtures, one point per row.

        Returns
        -------
        ndarray of shape (n, n_components)
            The components, which have mean 0 and variance 1 on the training points.
        """
        check_is_fitted(self)
        return np.asarray((self._check(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Points) -> np.ndarray:
        """Return the mixtures of given components.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Components, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)
            The mixtures.
        """
        check_is_fitted(self)
        S = check_latent_coordinates(self, X, self._n_features_out)
        return np.asarray(S @ self.mixing_.T + self.mean_)

    @property
    def n_iter_(self) -> int:
        """The number of sweeps of the best start."""
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, d = sample.points.shape
        problem = f"ICA of {n} points with {d} columns, {n_of(self.n_init, 'start')}"
        extra = _ica_bytes(n, d)
        return problem, {"solver": "jacobi", "exact": False, "extra": extra, "copies": 1.0}

    def _check(self, X: Points, reset: bool = False, **options: Any) -> np.ndarray:
        """Return X as a validated float64 array."""
        reject_structured(X, type(self).__name__)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, **options))


def _ica_bytes(n: int, d: int) -> int:
    """Return the peak memory of a fit: copies of the points, and blocks of features."""
    return 8 * (4 * n * d + 6 * n + 8 * d * d) + 2**25


def _principal_axes(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the variances and directions of the principal components, and the rank."""
    variances, vectors = eigh(centred.T @ centred / len(centred))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    # Rounding errors of the columns of the largest scale limit the precision.
    rank = int(np.sum(variances > _MIN_RELATIVE_VARIANCE * max(variances[0], 0.0)))
    return variances, vectors, rank
