"""The Gaussian process latent variable model: places z_i of which all columns are smooth functions.

A linear kernel gives the plane of PCA (its dual); another bends it.  The likelihood has many
optima, and which one is found depends on the start: one at random is bad and never made.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .._errors import NotPositiveDefiniteError
from .._runtime import Stopwatch, entry_point, slices
from .._runtime.linalg import cho_solve
from ..gp import LatentLikelihood, MarginalLikelihood, maximise
from ..kernels import Kernel
from ..preimage import descend
from ..solvers import Report
from ._ppca import signed
from ._smooth import SmoothMap, ended, in_units

__all__ = ["FittedLatent", "LatentMap", "fit_latent"]
__all__ += ["principal_places", "whitened"]

_TOL, _STEPS = 1e-8, 500  # of the search for the place of a new point
_FLAT = 1e-12  # of the largest deviation: less is rounding
_ENTRIES = 2**21  # of k(z, Z) at a time


class FittedLatent(NamedTuple):
    """A map, the log likelihood of data and places, and how the search for it ended."""

    map: LatentMap
    log_likelihood: float
    report: Report


@entry_point
@dataclass(frozen=True, eq=False)
class LatentMap(SmoothMap):
    """x = mean + unit (f(z) + noise), with the Gaussian process f as the data leave it.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    unit : float
        The deviation of columns in the mean.
    data : ndarray of shape (n, d)
        The points that were mapped, less their mean, in that unit.
    expansion : Expansion
        The mean of f; its points are the places of the data.
    covariance : Conditioned
        That of f + noise, the same for each column.
    prior : bool, default=True
        Whether places are N(0, I).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.maps import fit_latent
    >>> t = np.linspace(-1, 1, 40)[:, None]
    >>> X = np.hstack([t, t**2, t**3])
    >>> found = fit_latent(X, RBF() + White(0.01), t)
    >>> z = found.map.place(X[:2])
    >>> bool(np.abs(found.map.expected(z) - X[:2]).max() < 0.05)
    True
    """

    prior: bool = True

    @property
    def places(self) -> np.ndarray:
        """Where the data are."""
        return np.asarray(self.expansion.points)

    def _variance(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.covariance.diag(Z))

    def drawn_places(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n of the places of the data.

        Not from N(0, I): the most likely places are nearer to 0 than that, together with a shorter
        length scale, and beyond them f is not known.
        """
        return self.places[rng.integers(len(self.places), size=n)]

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the most likely z of each x, those that maximise log p(x | z) + log p(z).

        Without a `prior` it is the first term alone.  The search starts at the place of the nearest
        datum, and so a datum is led back to its own.
        """
        Y = self._in_units(X)
        out = np.empty((len(X), self.n_components))
        for rows in slices(len(Y), max(1, _ENTRIES // len(self.data))):
            out[rows] = self._search(Y[rows])
        return out

    def log_density(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return log p(x | z) of rows x at places z; by default at the most likely ones."""
        Z = self.place(X) if Z is None else Z
        Y, f = self._in_units(X), np.asarray(self.expansion(Z))
        return self._log_density(Y, f, self._variance(Z)) - self._log_volume

    def _search(self, Y: np.ndarray) -> np.ndarray:
        start = self.places[cdist(Y, self.data, "sqeuclidean").argmin(axis=1)]

        def slopes(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value, gradient = self._log_joint(Y[rows], Z)
            return -value, -gradient

        return descend(slopes, start, scale=1.0, tol=_TOL, max_iter=_STEPS)[0]

    def _log_joint(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(y | z) + log p(z), but for a constant, and its gradient in z."""
        kernel, S, A = self.expansion.kernel, self.places, self.expansion.coefficients
        K = kernel(Z, S)
        inner = cho_solve((self.covariance.factor, True), K.T).T
        variance = kernel.diag(Z) - np.einsum("ij,ij->i", K, inner)
        variance = np.maximum(variance, np.finfo(np.float64).tiny)
        left = Y - K @ A
        value = self._log_density(Y, K @ A, variance)
        # of the log density in the variance, and in the mean
        v = 0.5 * (np.sum(left**2, axis=1) / variance - Y.shape[1]) / variance
        W = (left / variance[:, None]) @ A.T - 2.0 * v[:, None] * inner
        gradient = kernel.input_gradient(Z, S, W) + kernel._diag_gradient(Z, v)
        if not self.prior:
            return value, gradient
        return value - 0.5 * np.sum(Z**2, axis=1), gradient - Z

    def _log_density(self, Y: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        squares = np.sum((Y - mean) ** 2, axis=1) / variance
        return np.asarray(-0.5 * (squares + Y.shape[1] * np.log(2.0 * np.pi * variance)))


@entry_point
def whitened(Z: np.ndarray) -> np.ndarray:
    """Return places about 0 with a variance of 1 in each direction, as N(0, I) expects them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import whitened
    >>> whitened(np.array([[0.0, 5.0], [4.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    Z = Z - Z.mean(axis=0)
    deviation = Z.std(axis=0)
    return np.asarray(Z / np.where(deviation > _FLAT * deviation.max(), deviation, 1.0))


@entry_point
def principal_places(X: np.ndarray, q: int) -> np.ndarray:
    """Return the scores of the first q principal components.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import principal_places
    >>> principal_places(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 1)
    array([[ 3.],
           [-3.],
           [ 0.],
           [ 0.]])
    """
    Y = X - X.mean(axis=0)
    axes = np.linalg.svd(Y, full_matrices=False)[2][:q]
    return np.asarray(Y @ signed(axes.T))


@entry_point
def fit_latent(
    X: np.ndarray,
    kernel: Kernel,
    start: np.ndarray,
    *,
    prior: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_memory: Any = None,
    say: Function[[str], None] | None = None,
) -> FittedLatent:
    """Return the map near `start` that maximises the likelihood, with the theta of its kernel.

    The kernel, noise included, is one for X about 0 with a mean variance of 1.
    Without `prior`, places are not N(0, I), and their scale is free.  The search ends where ten
    steps gain less than `tol` each, per entry of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.maps import fit_latent
    >>> t = np.linspace(-1, 1, 30)[:, None]
    >>> found = fit_latent(np.hstack([t, t**2]), RBF() + White(0.01), t)
    >>> found.map.places.shape, bool(found.log_likelihood > 0)
    ((30, 1), True)
    """
    watch = Stopwatch()
    Y, mean, unit = in_units(X)
    likelihood = LatentLikelihood(kernel, Y, start.shape[1], prior, max_memory)
    u = likelihood.joined(start)
    if not np.isfinite(likelihood.value_and_gradient(u)[0]):
        raise NotPositiveDefiniteError(
            f"the matrix of {kernel} is not positive definite at the start; the usual cause is a "
            f"kernel without noise: add White()"
        )
    found = maximise(
        likelihood,
        u,
        likelihood.bounds,
        first_step="unit",
        say=say,
        max_iter=max_iter,
        gain=tol * Y.size,
    )
    Z, kernel = likelihood.split(found.theta)
    limits = f"max_iter={max_iter} or tol={tol:.1e}"
    found = replace(found, value=found.value - Y.size * float(np.log(unit)))
    report = ended(found, watch, "L-BFGS", "log likelihood", limits)
    posterior = MarginalLikelihood(kernel, Z, Y, max_memory=max_memory).posterior()
    latent = LatentMap(mean, unit, Y, posterior.expansion, posterior.covariance, prior)
    return FittedLatent(latent, found.value, report)
