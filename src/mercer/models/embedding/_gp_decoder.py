"""Code shared by the GPLVM and the Bayesian GPLVM: x = mean + unit (f(z) + noise).

f is a Gaussian process of the latent coordinates z.  Centring X and dividing it by `unit` scales
the mean variance of the columns to 1, so that initial values and bounds of parameters do not depend
on the units of the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import Stopwatch, warn_caller
from ...expansion import Expansion
from ...solvers import Report, Status
from ..gp import Conditioned, Optimum

__all__ = ["GPDecoder", "search_report", "standardise"]


@dataclass(frozen=True, eq=False)
class GPDecoder(ABC):
    """Base class of fitted GPLVMs: the posterior of f, and its use as a decoder from z to x.

    The fields are documented in the subclasses.
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
        """Return the expected x for each row of latent coordinates Z, shape (n, d)."""
        return self.unit * np.asarray(self.expansion(Z)) + self.mean

    def variance(self, Z: np.ndarray) -> np.ndarray:
        """Return the variance of each column of x at the latent coordinates Z, shape (n,).

        It is the same for all columns, and small near the training points.
        """
        return self.unit**2 * self._variance(Z)

    @abstractmethod
    def draw_latents(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n latent coordinates that are distributed like those of the training points."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n points x, by first drawing their latent coordinates."""
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


def standardise(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return X centred and scaled to a mean variance of 1, the mean of X, and the scale.

    The scale is computed relative to the largest entry, because squares of entries may overflow.
    """
    mean = X.mean(axis=0)
    Y = X - mean
    largest = float(np.abs(Y).max())
    unit = largest * float(np.sqrt(np.mean((Y / largest) ** 2)))
    return Y / unit, mean, unit


def search_report(result: Optimum, watch: Stopwatch, solver: str, name: str, limits: str) -> Report:
    """Return the report of a search for latent coordinates; warn if it has not converged.

    `name` is the name of the objective in messages, and `limits` names the parameters that the user
    can increase.
    """
    if not result.converged:
        warn_caller(
            f"the search for latent coordinates ended after {result.evaluations} evaluations at a "
            f"{name} of {result.value:.6g} and may not have converged: {result.message}; raise "
            f"{limits}",
            ConvergenceWarning,
        )
    return Report(
        solver=solver,
        status=Status.CONVERGED if result.converged else Status.NOT_CONVERGED,
        n_iter=result.evaluations,
        seconds=watch.seconds,
        message=result.message,
        certificate={name: result.value},
    )
