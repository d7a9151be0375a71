"""The Bayesian latent variable model: places are integrated out, idle dimensions fall silent."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .._errors import warn_caller
from .._runtime import Stopwatch, check_budget, entry_point, slices
from ..gp import (
    Conditioned,
    LatentBound,
    LatentState,
    RowBound,
    expectations,
    length_scales,
    maximise,
    with_relevance,
)
from ..kernels import RBF, Kernel
from ..preimage import descend
from ..solvers import Report
from ._smooth import SmoothMap, ended, in_units

__all__ = ["BayesianMap", "FittedBayesian", "default_relevance", "fit_bayesian"]

_TOL, _STEPS = 1e-7, 1000  # of the search for the place of a point
_ENTRIES = 2**19  # of pairs of inducing points, row by row, at a time
_ROUNDS = 3  # of that search for data; rounding ends it early, and a new one goes on
_LOGS = 30.0  # log S is kept in between -30 and 30
_VARIANCE = 0.5  # S at the start
_LONGEST = 100.0  # length scale at the start
_HELD = 100  # steps for which the noise stays there


class FittedBayesian(NamedTuple):
    """A map, the bound on the log likelihood of the data, and how the search for it ended."""

    map: BayesianMap
    bound: float
    report: Report


@entry_point
@dataclass(frozen=True, eq=False)
class BayesianMap(SmoothMap):
    """x = mean + unit (f(z) + noise), with z ~ N(0, I) known up to a Gaussian of its own.

    Dimensions are in the order of their relevance, the variance of places over l^2.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    unit : float
        The deviation of columns in the mean.
    data : ndarray of shape (n, d)
        The points that were mapped, less their mean, in that unit.
    expansion : Expansion
        The mean of f; its points are the inducing points.
    covariance : Conditioned
        That of f, the same for each column.
    places, variances : ndarrays of shape (n, q)
        Mean and variance of z for each of them.
    noise : float
        Its variance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.maps import fit_bayesian
    >>> t = np.linspace(-1.5, 1.5, 40)[:, None]
    >>> X = np.hstack([t, t**2, t**3])
    >>> found = fit_bayesian(X, RBF(), t, t[::4])
    >>> z = found.map.place(X[:2])
    >>> bool(np.abs(found.map.expected(z) - X[:2]).max() < 0.2)
    True
    """

    places: np.ndarray
    variances: np.ndarray
    noise: float

    @property
    def relevance(self) -> np.ndarray:
        """The variance of places in units of l^2: near 0 where the map says nothing, (q,)."""
        return np.asarray(self.places.var(axis=0) / length_scales(self.expansion.kernel) ** 2)

    @property
    def active(self) -> np.ndarray:
        """Which dimensions move x by more than the noise does: d v var(m) / l^2 > noise, (q,).

        To first order a step of l moves each of d columns by sqrt(v); noise moves x by its own
        deviation in any one direction.
        """
        v = getattr(self.expansion.kernel, "factor", 1.0)
        return np.asarray(len(self.mean) * v * self.relevance > self.noise)

    def _variance(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.covariance.diag(Z)) + self.noise

    def drawn_places(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n places from the prior N(0, I)."""
        return rng.standard_normal((n, self.n_components))

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the mean of z given x, see `posterior`."""
        return self.posterior(X)[0]

    def posterior(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the Gaussian of z that bounds log p(x) best, for each row.

        The search starts at that of the nearest datum.
        """
        return self._searched(self._in_units(X))[:2]

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Return a lower bound on log p(x) of each row, given f at the inducing points."""
        return self._searched(self._in_units(X))[2] - self._log_volume

    @cached_property
    def _row(self) -> RowBound:
        """What a row adds to the bound."""
        f, C = self.expansion, self.covariance
        psi = expectations(f.kernel, np.asarray(f.points))
        return RowBound(psi, f.coefficients, C.factor, C.inner, self.noise)

    def _searched(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, q = len(self.expansion.points), self.n_components
        size = max(1, _ENTRIES // max(m * (m + 1) // 2, len(self.data)))
        out, value = np.empty((len(Y), 2 * q)), np.empty(len(Y))
        for rows in slices(len(Y), size):
            near = cdist(Y[rows], self.data, "sqeuclidean").argmin(axis=1)
            start = np.hstack([self.places[near], np.log(self.variances[near])])
            out[rows], value[rows] = _best(self._row, Y[rows], start)
        return out[:, :q], np.exp(out[:, q:]), value


def _best(row: RowBound, Y: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and log variance, side by side, that bound log p(y) best, and the bound."""
    q = start.shape[1] // 2

    def slopes(V: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = np.exp(np.clip(V[:, q:], -_LOGS, _LOGS))
        value, on_mu, on_log_S = row.value_and_slopes(Y[rows], V[:, :q], S)
        return -value, -np.hstack([on_mu, on_log_S])

    V = descend(slopes, start, scale=1.0, tol=_TOL, max_iter=_STEPS)[0]
    return V, -slopes(V, np.arange(len(Y)))[0]


@entry_point
def default_relevance(X: np.ndarray, q: int) -> Kernel:
    """Return an RBF with the length scales of PCA, for data with a mean variance of 1.

    l_1 = 1; where the data vary less, one unit of a whitened place stands for less, and l is
    larger, up to 100.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import default_relevance
    >>> default_relevance(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 2)
    1.0*RBF(length_scale=(1.0, 2.0))
    """
    Y = X - X.mean(axis=0)
    size = np.zeros(max(q, min(Y.shape)))
    size[: min(Y.shape)] = np.linalg.svd(Y, compute_uv=False)
    scales = size[0] / np.maximum(size[:q], size[0] / _LONGEST)
    return 1.0 * RBF(scales)


@entry_point
def fit_bayesian(
    X: np.ndarray,
    kernel: Kernel,
    start: np.ndarray,
    inducing: np.ndarray,
    *,
    noise: float = 0.2,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_memory: Any = None,
    say: Function[[str], None] | None = None,
) -> FittedBayesian:
    """Return the map near `start` and `inducing` points that maximises the bound.

    The kernel and the noise are those of X about 0 with a mean variance of 1.  The noise is held
    for the first hundred steps: a map that has not found its shape yet would call all of it noise.
    The search ends where ten steps gain less than `tol` each, per entry of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.maps import fit_bayesian
    >>> t = np.linspace(-1.5, 1.5, 30)[:, None]
    >>> found = fit_bayesian(np.hstack([t, t**2]), RBF(), t, t[::5])
    >>> found.map.places.shape, found.map.noise < 0.1
    ((30, 1), True)
    """
    watch = Stopwatch()
    Y, mean, unit = in_units(X)
    kernel = with_relevance(kernel, start.shape[1])
    bound = LatentBound(kernel, Y, start.shape[1], len(inducing))
    check_budget(bound.workspace(), max_memory, f"a Bayesian latent map of {len(Y)} points")
    u = bound.joined(LatentState(start, np.full_like(start, _VARIANCE), inducing, kernel, noise))
    free = bound.bounds
    held = free.copy()
    held[-1] = u[-1]
    gain = tol * Y.size
    if say is not None:
        say(f"the noise is held at {noise:.3g} for {_HELD} steps")
    rough = maximise(bound, u, held, say=say, max_iter=min(_HELD, max_iter), gain=gain)
    if say is not None:
        say("the noise is free")
    steps = max(1, max_iter - _HELD)
    found = maximise(bound, rough.theta, free, say=say, max_iter=steps, gain=gain)
    value = found.value - Y.size * float(np.log(unit))
    found = replace(found, value=value, evaluations=rough.evaluations + found.evaluations)
    solver, limits = (
        f"L-BFGS, {len(inducing)} inducing points",
        f"max_iter={max_iter} or tol={tol:.1e}",
    )
    report = ended(found, watch, solver, "bound", limits)
    made = _made(bound, bound.split(found.theta), mean, unit)
    if not made.active.any():
        warn_caller(
            f"to this map all of X is noise, {made.noise:.3g} of its variance: no dimension is "
            f"active, and places say nothing. Try more points, more inducing points, or other "
            f"places as init"
        )
    return FittedBayesian(made, value, report)


def _made(bound: LatentBound, state: LatentState, mean: np.ndarray, unit: float) -> BayesianMap:
    """Return the map of a state, each datum at the best place for f, its dimensions in order."""
    f, C = bound.posterior(state)
    found = BayesianMap(mean, unit, bound.Y, f, C, state.mu, state.S, state.noise)
    for _ in range(_ROUNDS):
        places, variances, _ = found._searched(bound.Y)
        found = replace(found, places=places, variances=variances)
    order = np.argsort(-found.relevance, kind="stable")
    turned = state.permuted(order)
    return replace(
        found,
        expansion=replace(f, kernel=turned.kernel, points=turned.Z),
        covariance=Conditioned(turned.kernel, turned.Z, C.factor, C.inner),
        places=found.places[:, order],
        variances=found.variances[:, order],
    )
