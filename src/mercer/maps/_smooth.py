"""x = mean + unit (f(z) + noise) with a Gaussian process f: what such maps have in common.

The unit brings the mean variance of columns to 1, so that neither the start of a search nor bounds
of parameters depend on what data are measured in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import Stopwatch
from ..expansion import Expansion
from ..gp import Conditioned, Optimum
from ..solvers import Report, Status

__all__ = ["SmoothMap", "ended", "in_units"]


@dataclass(frozen=True, eq=False)
class SmoothMap(ABC):
    """f as the data leave it; see its subclasses."""

    mean: np.ndarray
    unit: float
    data: np.ndarray
    expansion: Expansion
    covariance: Conditioned

    @property
    def n_components(self) -> int:
        """The dimensions of z."""
        return int(self.expansion.points.shape[1])

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return the expected x at places z."""
        return self.unit * np.asarray(self.expansion(Z)) + self.mean

    def variance(self, Z: np.ndarray) -> np.ndarray:
        """Return the variance of each column of x at places z: small where data are near."""
        return self.unit**2 * self._variance(Z)

    @abstractmethod
    def drawn_places(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n places, as those of the data are distributed."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw x at places that are drawn first."""
        Z = self.drawn_places(n, rng)
        noise = rng.standard_normal((n, len(self.mean)))
        return self.expected(Z) + np.sqrt(self.variance(Z))[:, None] * noise

    @abstractmethod
    def _variance(self, Z: np.ndarray) -> np.ndarray:
        """Return that of f(z) + noise."""

    def _in_units(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X - self.mean) / self.unit)

    @property
    def _log_volume(self) -> float:
        """What the log density of x is less than that of x in units."""
        return float(len(self.mean) * np.log(self.unit))


def in_units(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return X about 0 with a mean variance of 1, and the mean and the unit that were taken off.

    The unit is found about the largest entry, whose square may overflow.
    """
    mean = X.mean(axis=0)
    Y = X - mean
    largest = float(np.abs(Y).max())
    unit = largest * float(np.sqrt(np.mean((Y / largest) ** 2)))
    return Y / unit, mean, unit


def ended(found: Optimum, watch: Stopwatch, solver: str, name: str, limits: str) -> Report:
    """Return how a search for places ended, and warn if that was not where it wanted to."""
    if not found.converged:
        warn_caller(
            f"the search for places ended after {found.evaluations} evaluations at a {name} of "
            f"{found.value:.6g} and may not have come to its end: {found.message}; raise {limits}",
            ConvergenceWarning,
        )
    return Report(
        solver=solver,
        status=Status.CONVERGED if found.converged else Status.NOT_CONVERGED,
        n_iter=found.evaluations,
        seconds=watch.seconds,
        message=found.message,
        certificate={name: found.value},
    )
