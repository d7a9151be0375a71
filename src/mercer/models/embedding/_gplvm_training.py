"""The Gaussian process latent variable model (GPLVM): each column of X is a smooth function of z.

With a linear kernel the GPLVM is the dual form of probabilistic PCA; other kernels give nonlinear
embeddings.  The likelihood has many local optima, and the result depends on the initial latent
coordinates z_i.  Random initial coordinates lead to poor optima, so the caller passes initial
coordinates from another method, such as PCA.

The Bayesian GPLVM integrates out the latent coordinates, and detects unused dimensions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from ..._core import (
    MemoryLimit,
    NotPositiveDefiniteError,
    ProgressCallback,
    Stopwatch,
    check_budget,
    entry_point,
    slices,
    warn_caller,
)
from ..._core.linalg import cho_solve
from ...expansion import Expansion
from ...expansion.preimage import batched_lbfgs
from ...kernels import RBF, Kernel
from ...solvers import Report
from ..gp import (
    Conditioned,
    LatentBound,
    LatentLikelihood,
    LatentState,
    MarginalLikelihood,
    RowBound,
    expectations,
    length_scales,
    maximise,
    with_relevance,
)
from ._embedding_search import fix_signs, search_report, standardise

# Tolerance and maximum number of steps when embedding a new point.
_EMBED_TOL, _EMBED_MAX_ITER = 1e-8, 500
# A column with a smaller standard deviation, relative to the largest, counts as constant.
_CONSTANT_TOLERANCE = 1e-12
# Number of entries of the kernel matrix k(z, Z) in memory at a time.
_KERNEL_ENTRIES_PER_BLOCK = 2**21


@dataclass(frozen=True, eq=False)
class GPDecoder(ABC):
    """Base class of fitted GPLVMs: the posterior of f, and its use as a decoder from z to x.

    The model is x = mean + unit (f(z) + noise).  Centring X and dividing it by `unit` scales the
    mean variance of the columns to 1, so that initial values and bounds of parameters do not depend
    on the units of the data.  The fields are documented in the subclasses.
    """

    mean: np.ndarray
    unit: float
    data: np.ndarray
    expansion: Expansion
    covariance: Conditioned

    @property
    def n_components(self) -> int:
        """The number of latent dimensions q."""
        return int(self.expansion.points.shape[1])

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return the expected x for given latent coordinates (decoding).

        Parameters
        ----------
        Z : ndarray of shape (n, q)
            The latent coordinates.

        Returns
        -------
        ndarray of shape (n, d)
            The expected points, in the units of the training data.
        """
        return self.unit * np.asarray(self.expansion(Z)) + self.mean

    def variance(self, Z: np.ndarray) -> np.ndarray:
        """Return the variance of each column of x at the latent coordinates Z.

        It is the same for all columns, and small near the training points.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
            The latent coordinates.

        Returns
        -------
        ndarray of shape (n,)
            The variances, in the squared units of the training data.
        """
        return self.unit**2 * self._variance(Z)

    @abstractmethod
    def draw_latents(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw latent coordinates that are distributed like those of the training points.

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, q)
            The latent coordinates.
        """

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw points x from the model, by first drawing their latent coordinates.

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, d)
            The points.
        """
        Z = self.draw_latents(n, rng)
        noise = rng.standard_normal((n, len(self.mean)))
        return self.expected(Z) + np.sqrt(self.variance(Z))[:, None] * noise

    @abstractmethod
    def _variance(self, Z: np.ndarray) -> np.ndarray:
        """Return the variance of f(z) + noise, in units of unit^2."""

    def _standardise(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X - self.mean) / self.unit)

    @property
    def _log_volume(self) -> float:
        """The log determinant d log(unit) of the map y -> unit y.

        The log density of x is the log density of x / unit minus this value.
        """
        return float(len(self.mean) * np.log(self.unit))


class GPLVMResult(NamedTuple):
    """The fitted model, the log likelihood of the data and coordinates, and the solver's report."""

    map: GPLVMModel
    log_likelihood: float
    report: Report


@entry_point
@dataclass(frozen=True, eq=False)
class GPLVMModel(GPDecoder):
    """A fitted GPLVM, x = mean + unit (f(z) + noise), with the posterior of the Gaussian process f.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        The mean of the training points.
    unit : float
        The root mean square of the standard deviations of the columns.
    data : ndarray of shape (n, d)
        The training points, centred and divided by `unit`.
    expansion : Expansion
        The posterior mean of f; its points are the latent coordinates of the training points.
    covariance : Conditioned
        The posterior covariance of f + noise, the same for each column.
    prior : bool, default=True
        Whether the latent coordinates have the prior N(0, I).

    See Also
    --------
    fit_gplvm : Fit this model.
    GPLVM : The estimator.

    References
    ----------
    Lawrence, "Probabilistic non-linear principal component analysis with Gaussian process latent
    variable models", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.embedding import fit_gplvm
    >>> t = np.linspace(-1, 1, 40)[:, None]
    >>> X = np.hstack([t, t**2, t**3])
    >>> model = fit_gplvm(X, RBF() + White(0.01), t).map
    >>> z = model.place(X[:2])
    >>> bool(np.abs(model.expected(z) - X[:2]).max() < 0.05)
    True
    """

    prior: bool = True

    @property
    def places(self) -> np.ndarray:
        """The latent coordinates of the training points, shape (n, q)."""
        return np.asarray(self.expansion.points)

    def _variance(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.covariance.diag(Z))

    def draw_latents(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n of the latent coordinates of the training points, with replacement.

        The prior N(0, I) is not used.  The fitted coordinates have a smaller spread than draws
        from the prior (the kernel has a shorter length scale instead), and f is unknown far from
        them.

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, q)
            The latent coordinates.
        """
        return self.places[rng.integers(len(self.places), size=n)]

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the latent coordinates z of each row x that maximise log p(x | z) + log p(z).

        Without a `prior`, only the first term is maximised.  The search starts from the coordinates
        of the nearest training point, so that training points are mapped to their own coordinates.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points to embed.

        Returns
        -------
        ndarray of shape (n, q)
            Their latent coordinates.
        """
        Y = self._standardise(X)
        out = np.empty((len(X), self.n_components))
        for rows in slices(len(Y), max(1, _KERNEL_ENTRIES_PER_BLOCK // len(self.data))):
            out[rows] = self._search_latents(Y[rows])
        return out

    def log_density(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return log p(x | z) for each row of X.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points.
        Z : ndarray of shape (n, q), optional
            Their latent coordinates; None uses the most likely coordinates, as computed by `place`.

        Returns
        -------
        ndarray of shape (n,)
            The log densities.
        """
        Z = self.place(X) if Z is None else Z
        Y, f = self._standardise(X), np.asarray(self.expansion(Z))
        return self._log_density(Y, f, self._variance(Z)) - self._log_volume

    def _search_latents(self, Y: np.ndarray) -> np.ndarray:
        start = self.places[cdist(Y, self.data, "sqeuclidean").argmin(axis=1)]

        def negative_log_joint(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value, gradient = self._log_joint(Y[rows], Z)
            return -value, -gradient

        return batched_lbfgs(
            negative_log_joint, start, scale=1.0, tol=_EMBED_TOL, max_iter=_EMBED_MAX_ITER
        )[0]

    def _log_joint(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(y | z) + log p(z) up to a constant, and its gradient in z; y is scaled x."""
        kernel, S, A = self.expansion.kernel, self.places, self.expansion.coefficients
        K = kernel(Z, S)
        inner = cho_solve((self.covariance.factor, True), K.T).T
        variance = kernel.diag(Z) - np.einsum("ij,ij->i", K, inner)
        variance = np.maximum(variance, np.finfo(np.float64).tiny)
        residual = Y - K @ A
        value = self._log_density(Y, K @ A, variance)
        # v is the derivative of the log density with respect to the variance; W contains its
        # derivatives with respect to the entries of K.
        v = 0.5 * (np.sum(residual**2, axis=1) / variance - Y.shape[1]) / variance
        W = (residual / variance[:, None]) @ A.T - 2.0 * v[:, None] * inner
        gradient = kernel.input_gradient(Z, S, W) + kernel._diag_gradient(Z, v)
        if not self.prior:
            return value, gradient
        return value - 0.5 * np.sum(Z**2, axis=1), gradient - Z

    def _log_density(self, Y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        squares = np.sum((Y - mean) ** 2, axis=1) / variance
        return np.asarray(-0.5 * (squares + Y.shape[1] * np.log(2.0 * np.pi * variance)))


@entry_point
def scale_to_unit_variance(Z: np.ndarray) -> np.ndarray:
    """Centre the columns of Z and scale them to variance 1, to match the prior N(0, I).

    Constant columns are only centred.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import scale_to_unit_variance
    >>> scale_to_unit_variance(np.array([[0.0, 5.0], [4.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    Z = Z - Z.mean(axis=0)
    deviation = Z.std(axis=0)
    varies = deviation > _CONSTANT_TOLERANCE * deviation.max()
    return np.asarray(Z / np.where(varies, deviation, 1.0))


@entry_point
def pca_scores(X: np.ndarray, q: int) -> np.ndarray:
    """Return the PCA scores of X, the first q principal components, shape (n, q).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import pca_scores
    >>> pca_scores(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 1)
    array([[ 3.],
           [-3.],
           [ 0.],
           [ 0.]])
    """
    Y = X - X.mean(axis=0)
    axes = np.linalg.svd(Y, full_matrices=False)[2][:q]
    return np.asarray(Y @ fix_signs(axes.T))


@entry_point
def fit_gplvm(
    X: np.ndarray,
    kernel: Kernel,
    start: np.ndarray,
    *,
    prior: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_memory: MemoryLimit = None,
    log: ProgressCallback | None = None,
) -> GPLVMResult:
    """Fit a GPLVM by maximising the likelihood over latent coordinates and kernel parameters.

    The search starts from `start` and the theta of `kernel`.  It ends when the last ten steps
    increased the log likelihood by less than `tol` per step and entry of X, on average.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The training points.
    kernel : Kernel
        The initial kernel of f including the noise (`White`), for X centred and scaled to a mean
        variance of 1.
    start : ndarray of shape (n, q)
        The initial latent coordinates, for example PCA scores scaled to variance 1.  The result
        depends on them.
    prior : bool, default=True
        Whether the latent coordinates have the prior N(0, I).  Without the prior, their scale
        is arbitrary.
    tol : float, default=1e-4
        The tolerance of the search, per entry of X.
    max_iter : int, default=1000
        The maximum number of steps.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.
    log : function, optional
        Function that is called with progress messages.

    Returns
    -------
    GPLVMResult
        The model (`map`, a `GPLVMModel`), the `log_likelihood`, and the `report`.

    Raises
    ------
    NotPositiveDefiniteError
        If the kernel matrix is not positive definite at the start.

    See Also
    --------
    GPLVM : The estimator.
    fit_bayesian_gplvm : Integrate out the latent coordinates instead.
    mercer.models.gp.LatentLikelihood : The objective.

    References
    ----------
    Lawrence, "Probabilistic non-linear principal component analysis with Gaussian process latent
    variable models", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.embedding import fit_gplvm
    >>> t = np.linspace(-1, 1, 30)[:, None]
    >>> result = fit_gplvm(np.hstack([t, t**2]), RBF() + White(0.01), t)
    >>> result.map.places.shape, bool(result.log_likelihood > 0)
    ((30, 1), True)
    """
    watch = Stopwatch()
    Y, mean, unit = standardise(X)
    likelihood = LatentLikelihood(kernel, Y, start.shape[1], prior, max_memory)
    u = likelihood.joined(start)
    if not np.isfinite(likelihood.value_and_gradient(u)[0]):
        raise NotPositiveDefiniteError(
            f"the kernel matrix of {kernel} is not positive definite at the initial coordinates; "
            f"the usual cause is a kernel without noise: add White()"
        )
    bounds, gain = likelihood.bounds, tol * Y.size
    result = maximise(
        likelihood, u, bounds, first_step="unit", log=log, max_iter=max_iter, gain=gain
    )
    Z, kernel = likelihood.split(result.theta)
    limits = f"max_iter={max_iter} or tol={tol:.1e}"
    result = replace(result, value=result.value - Y.size * float(np.log(unit)))
    report = search_report(result, watch, "L-BFGS", "log likelihood", limits)
    posterior = MarginalLikelihood(kernel, Z, Y, max_memory=max_memory).posterior()
    model = GPLVMModel(mean, unit, Y, posterior.expansion, posterior.covariance, prior)
    return GPLVMResult(model, result.value, report)


# --- The Bayesian GPLVM.


@dataclass(frozen=True)
class _BayesianGPLVMTuning:
    """Initial values, and limits of the searches for parameters and latent coordinates."""

    # Tolerance and maximum number of steps in the search for the latent coordinates of one point.
    latent_tol: float = 1e-7
    latent_max_iter: int = 1000
    # Maximum number of entries (rows times pairs of inducing points) in memory during this search.
    max_entries: int = 2**19
    # Number of times that the search is repeated for the training data, because rounding errors may
    # end a single search too early.
    n_rounds: int = 3
    # The log variance of a latent coordinate is clipped to +-30, to avoid overflow.
    max_log_variance: float = 30.0
    # Initial variance of the latent coordinates.
    initial_variance: float = 0.5
    # Upper limit of the initial length scales, relative to the shortest one.
    max_initial_length_scale: float = 100.0
    # Number of steps during which the noise variance is fixed at its initial value.
    fixed_noise_steps: int = 100


_TUNING = _BayesianGPLVMTuning()


class BayesianGPLVMResult(NamedTuple):
    """The fitted model, its lower bound on the log likelihood, and the report of the search."""

    map: BayesianGPLVMModel
    bound: float
    report: Report


@entry_point
@dataclass(frozen=True, eq=False)
class BayesianGPLVMModel(GPDecoder):
    """A fitted Bayesian GPLVM, x = mean + unit (f(z) + noise) with z ~ N(0, I).

    f is a Gaussian process, and the latent coordinates z of each training point have a Gaussian
    posterior.  The latent dimensions are sorted by decreasing relevance, which is the variance of
    the coordinates divided by the squared length scale.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        The mean of the training points.
    unit : float
        The root mean square of the standard deviations of the columns.
    data : ndarray of shape (n, d)
        The training points, centred and divided by `unit`.
    expansion : Expansion
        The posterior mean of f; its points are the inducing points.
    covariance : Conditioned
        The posterior covariance of f, the same for each column.
    places, variances : ndarrays of shape (n, q)
        The posterior means and variances of the latent coordinates of the training points.
    noise : float
        The variance of the noise, relative to unit^2.

    See Also
    --------
    fit_bayesian_gplvm : Fit this model.
    BayesianGPLVM : The estimator.

    References
    ----------
    Titsias and Lawrence, "Bayesian Gaussian process latent variable model", AISTATS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.embedding import fit_bayesian_gplvm
    >>> t = np.linspace(-1.5, 1.5, 40)[:, None]
    >>> X = np.hstack([t, t**2, t**3])
    >>> model = fit_bayesian_gplvm(X, RBF(), t, t[::4]).map
    >>> z = model.place(X[:2])
    >>> bool(np.abs(model.expected(z) - X[:2]).max() < 0.2)
    True
    """

    places: np.ndarray
    variances: np.ndarray
    noise: float

    @property
    def relevance(self) -> np.ndarray:
        """The relevance of each latent dimension, shape (q,); near 0 for unused dimensions.

        It is the variance of the coordinates, divided by the squared length scale.
        """
        return np.asarray(self.places.var(axis=0) / length_scales(self.expansion.kernel) ** 2)

    @property
    def active(self) -> np.ndarray:
        """Boolean mask of the latent dimensions whose effect on x exceeds the noise, shape (q,).

        The criterion is d v var(m) / l^2 > noise, for d columns of x, the variance v of f, the
        posterior means m of the coordinates, and the length scale l.  To first order, a step of
        length l changes each column by sqrt(v).  The noise changes x by its standard deviation in
        any direction.
        """
        v = getattr(self.expansion.kernel, "factor", 1.0)
        return np.asarray(len(self.mean) * v * self.relevance > self.noise)

    def _variance(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.covariance.diag(Z)) + self.noise

    def draw_latents(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw latent coordinates from the prior N(0, I).

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, q)
            The latent coordinates.
        """
        return rng.standard_normal((n, self.n_components))

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the posterior mean of z for each row of X; see `posterior`.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points to embed.

        Returns
        -------
        ndarray of shape (n, q)
            Their latent coordinates.
        """
        return self.posterior(X)[0]

    def posterior(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and variance of the Gaussian posterior of z, for each row of X.

        The posterior is approximated by the Gaussian that gives the largest lower bound on
        log p(x).  The search starts from the posterior of the nearest training point.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points to embed.

        Returns
        -------
        means : ndarray of shape (n, q)
            The posterior means.
        variances : ndarray of shape (n, q)
            The posterior variances, one per dimension.
        """
        return self._optimise_latents(self._standardise(X))[:2]

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Return a lower bound on log p(x) for each row x of X, given f at the inducing points.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points.

        Returns
        -------
        ndarray of shape (n,)
            The lower bounds.
        """
        return self._optimise_latents(self._standardise(X))[2] - self._log_volume

    @cached_property
    def _row_bound(self) -> RowBound:
        """The contribution of a row to the lower bound, as a function of its latent posterior."""
        f, C = self.expansion, self.covariance
        psi = expectations(f.kernel, np.asarray(f.points))
        return RowBound(psi, f.coefficients, C.factor, C.inner, self.noise)

    def _optimise_latents(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, q = len(self.expansion.points), self.n_components
        rows_per_block = max(1, _TUNING.max_entries // max(m * (m + 1) // 2, len(self.data)))
        out, value = np.empty((len(Y), 2 * q)), np.empty(len(Y))
        for rows in slices(len(Y), rows_per_block):
            nearest = cdist(Y[rows], self.data, "sqeuclidean").argmin(axis=1)
            start = np.hstack([self.places[nearest], np.log(self.variances[nearest])])
            out[rows], value[rows] = _maximise_bound(self._row_bound, Y[rows], start)
        return out[:, :q], np.exp(out[:, q:]), value


def _maximise_bound(
    row: RowBound, Y: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the latent means and log variances that maximise the bound, and the bound.

    The means and log variances are the columns of one array.
    """
    q = start.shape[1] // 2

    def negative_bound(V: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = np.exp(np.clip(V[:, q:], -_TUNING.max_log_variance, _TUNING.max_log_variance))
        value, on_mu, on_log_S = row.value_and_gradients(Y[rows], V[:, :q], S)
        return -value, -np.hstack([on_mu, on_log_S])

    V = batched_lbfgs(
        negative_bound, start, scale=1.0, tol=_TUNING.latent_tol, max_iter=_TUNING.latent_max_iter
    )[0]
    return V, -negative_bound(V, np.arange(len(Y)))[0]


@entry_point
def default_ard_kernel(X: np.ndarray, q: int) -> Kernel:
    """Return an ARD RBF kernel with initial length scales from PCA.

    The latent coordinates are assumed to be PCA scores, scaled to variance 1.  The length scale of
    the first component is 1.  Components with a smaller standard deviation have proportionally
    larger length scales, up to 100.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import default_ard_kernel
    >>> default_ard_kernel(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 2)
    1.0*RBF(length_scale=(1.0, 2.0))
    """
    Y = X - X.mean(axis=0)
    deviations = np.zeros(max(q, min(Y.shape)))
    deviations[: min(Y.shape)] = np.linalg.svd(Y, compute_uv=False)
    smallest = deviations[0] / _TUNING.max_initial_length_scale
    return 1.0 * RBF(deviations[0] / np.maximum(deviations[:q], smallest))


@entry_point
def fit_bayesian_gplvm(
    X: np.ndarray,
    kernel: Kernel,
    start: np.ndarray,
    inducing: np.ndarray,
    *,
    noise: float = 0.2,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_memory: MemoryLimit = None,
    log: ProgressCallback | None = None,
) -> BayesianGPLVMResult:
    """Fit a Bayesian GPLVM by maximising a lower bound on the marginal likelihood.

    The noise variance is fixed for the first 100 steps; otherwise, the model would explain all of X
    as noise before the embedding is formed.  The search ends when the last ten steps increased the
    bound by less than `tol` per step and entry of X, on average.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The training points.
    kernel : Kernel
        The initial kernel of f, for X centred and scaled to a mean variance of 1: an RBF or linear
        kernel, which gets one length scale per dimension.
    start : ndarray of shape (n, q)
        The initial latent coordinates, for example PCA scores scaled to variance 1.  q may be
        larger than necessary, because unused dimensions are detected.
    inducing : ndarray of shape (m, q)
        The initial inducing points, for example some rows of `start`.  More points make the bound
        tighter; the time is proportional to n m^2.
    noise : float, default=0.2
        The initial noise variance, for X scaled to a mean variance of 1.
    tol : float, default=1e-4
        The tolerance of the search, per entry of X.
    max_iter : int, default=1000
        The maximum number of steps.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.
    log : function, optional
        Function that is called with progress messages.

    Returns
    -------
    BayesianGPLVMResult
        The model (`map`, a `BayesianGPLVMModel`), the lower `bound`, and the `report`.

    See Also
    --------
    BayesianGPLVM : The estimator.
    fit_gplvm : Maximise the likelihood over the latent coordinates instead.
    mercer.models.gp.LatentBound : The objective.

    References
    ----------
    Titsias and Lawrence, "Bayesian Gaussian process latent variable model", AISTATS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.embedding import fit_bayesian_gplvm
    >>> t = np.linspace(-1.5, 1.5, 30)[:, None]
    >>> model = fit_bayesian_gplvm(np.hstack([t, t**2]), RBF(), t, t[::5]).map
    >>> model.places.shape, model.noise < 0.1
    ((30, 1), True)
    """
    watch = Stopwatch()
    Y, mean, unit = standardise(X)
    kernel = with_relevance(kernel, start.shape[1])
    bound = LatentBound(kernel, Y, start.shape[1], len(inducing))
    check_budget(bound.workspace(), max_memory, f"a Bayesian GPLVM of {len(Y)} points")
    variances = np.full_like(start, _TUNING.initial_variance)
    u = bound.joined(LatentState(start, variances, inducing, kernel, noise))
    bounds, gain = bound.bounds, tol * Y.size
    bounds_fixed_noise = bounds.copy()
    bounds_fixed_noise[-1] = u[-1]
    if log is not None:
        log(f"the noise variance is fixed at {noise:.3g} for {_TUNING.fixed_noise_steps} steps")
    steps = min(_TUNING.fixed_noise_steps, max_iter)
    first_stage = maximise(bound, u, bounds_fixed_noise, log=log, max_iter=steps, gain=gain)
    if log is not None:
        log("the noise variance is optimised")
    steps = max(1, max_iter - _TUNING.fixed_noise_steps)
    result = maximise(bound, first_stage.theta, bounds, log=log, max_iter=steps, gain=gain)
    value = result.value - Y.size * float(np.log(unit))
    result = replace(result, value=value, evaluations=first_stage.evaluations + result.evaluations)
    solver = f"L-BFGS, {len(inducing)} inducing points"
    report = search_report(result, watch, solver, "bound", f"max_iter={max_iter} or tol={tol:.1e}")
    model = _build_model(bound, bound.split(result.theta), mean, unit)
    if not model.active.any():
        warn_caller(
            f"the model explains all of X as noise: the noise is a fraction {model.noise:.3g} of "
            f"its variance, no dimension is active, and the embedding is not informative. Try more "
            f"points, more inducing points, or other initial coordinates (init)"
        )
    return BayesianGPLVMResult(model, value, report)


def _build_model(
    bound: LatentBound, state: LatentState, mean: np.ndarray, unit: float
) -> BayesianGPLVMModel:
    """Build the model from an optimised state.

    The latent posteriors of the training points are optimised once more for the final posterior of
    f, and the dimensions are sorted by relevance.
    """
    f, C = bound.posterior(state)
    model = BayesianGPLVMModel(mean, unit, bound.Y, f, C, state.mu, state.S, state.noise)
    for _ in range(_TUNING.n_rounds):
        places, variances, _ = model._optimise_latents(bound.Y)
        model = replace(model, places=places, variances=variances)
    order = np.argsort(-model.relevance, kind="stable")
    reordered = state.permuted(order)
    return replace(
        model,
        expansion=replace(f, kernel=reordered.kernel, points=reordered.Z),
        covariance=Conditioned(reordered.kernel, reordered.Z, C.factor, C.inner),
        places=model.places[:, order],
        variances=model.variances[:, order],
    )
