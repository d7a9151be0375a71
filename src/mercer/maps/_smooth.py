"""x = mean + f(z) + noise with a Gaussian process f: what all such maps have in common."""

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

__all__ = ["SmoothMap", "ended"]


@dataclass(frozen=True, eq=False)
class SmoothMap(ABC):
    """f as the data leave it; see its subclasses."""

    mean: np.ndarray
    data: np.ndarray
    expansion: Expansion
    covariance: Conditioned

    @property
    def n_components(self) -> int:
        """The dimensions of z."""
        return int(self.expansion.points.shape[1])

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return the expected x at places z."""
        return np.asarray(self.expansion(Z)) + self.mean

    @abstractmethod
    def variance(self, Z: np.ndarray) -> np.ndarray:
        """Return the variance of each column of x at places z: small where data are near."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw x at places drawn from N(0, I)."""
        Z = rng.standard_normal((n, self.n_components))
        noise = rng.standard_normal((n, len(self.mean)))
        return self.expected(Z) + np.sqrt(self.variance(Z))[:, None] * noise


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
