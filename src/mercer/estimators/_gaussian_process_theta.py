"""A Gaussian process in the user's spelling of its kernel and in ours.

scikit-learn's GP kernels order and scale their theta in their own way.  Users of theirs read and
write that; the objectives are written in ours.  In logarithms every translation is linear, and
each entry of one comes from one of the other:

    ours_i = factor_i theirs_place(i) + offset_i

A search starts at the kernel's own theta and at others drawn within the bounds, and walks in the
user's theta: the way of L-BFGS, and so the optimum that it meets, depends on how theta is scaled.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._errors import NotPositiveDefiniteError, warn_caller
from .._runtime import Step
from ..gp import Capabilities, Optimum, Posterior, maximise, ways
from ..kernels import RBF, Kernel, SklearnKernel, as_kernel, from_sklearn, unwrap
from ._base import SklearnGPKernel

__all__ = ["KernelTranslation", "SpelledObjective", "default_kernel"]

_FACTORS = np.array([1.0, 0.5, 2.0, -1.0, -0.5, -2.0])  # of logarithms, in a translation


def default_kernel() -> Kernel:
    """Return 1.0 * RBF(1.0), what a Gaussian process starts from if nothing is said."""
    return 1.0 * RBF()


class KernelTranslation:
    """The kernel that a user gave, and the same in our terms.

    Parameters
    ----------
    spec : None, Kernel, scikit-learn GP kernel, or what `as_kernel` takes
    X : points, optional
        On which rules such as "median" are resolved.
    Y : ndarray of shape (n, q), optional
        Targets, for kernels that learn from them.

    Attributes
    ----------
    given : Kernel or scikit-learn GP kernel
        In the user's spelling.
    kernel : Kernel
        In ours.
    """

    def __init__(self, spec: Any, X: Any = None, Y: np.ndarray | None = None) -> None:
        self.given: Any
        if isinstance(spec, SklearnGPKernel):
            self.given = clone(spec)
            self.kernel, self._place, self._factor, self._offset = _translation(self.given)
        else:
            kernel = default_kernel() if spec is None else as_kernel(spec)
            self.given = self.kernel = kernel if X is None else kernel.resolve(X, None, Y)
            self._place, self._factor, self._offset = _identity(self.kernel.theta.size)

    @property
    def theta(self) -> np.ndarray:
        """The user's theta."""
        return np.array(self.given.theta, dtype=float)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Those of the user's theta."""
        with np.errstate(invalid="ignore"):  # the logarithm of a bound below 0 is no number
            return np.array(self.given.bounds, dtype=float).reshape(-1, 2)

    def ours(self, theta: Any) -> np.ndarray:
        """Return our theta for the user's."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != self._place.shape:
            raise ValueError(
                f"theta has shape {theta.shape}, but {self.given} has {self._place.size} free "
                f"parameters"
            )
        return self._factor * theta[self._place] + self._offset

    def slopes(self, gradient: np.ndarray) -> np.ndarray:
        """Return derivatives in the user's theta from those in ours."""
        return self.permuted((self._factor * gradient.T).T)

    def permuted(self, ours: np.ndarray) -> np.ndarray:
        """Return what belongs to entries of our theta in the order of the user's."""
        result = np.empty_like(ours)
        result[self._place] = ours
        return result

    def information(self, B: np.ndarray) -> np.ndarray:
        """Return second derivatives in the user's theta from those in ours."""
        return self.slopes(self.slopes(B).T).T

    def at(self, theta: Any) -> Any:
        """Return the kernel in the user's spelling with this theta."""
        if isinstance(self.given, Kernel):
            return self.given.with_theta(theta)
        return self.given.clone_with_theta(theta)

    def on_bounds(self, theta: np.ndarray) -> list[tuple[str, int, str, float]]:
        """Return (parameter, dimension, "lower" or "upper", bound) for what is on a bound."""
        found: list[tuple[str, int, str, float]] = []
        close = np.isclose(self.bounds, theta[:, None])
        if not close.any():
            return found
        for (name, dimension), low_high, at in zip(self._names(), self.bounds, close, strict=True):
            if at.any():
                side = int(not at[0])
                bound = float(f"{np.exp(low_high[side]):.10g}")
                found.append((name, dimension, ("lower", "upper")[side], bound))
        return found

    def _names(self) -> list[tuple[str, int]]:
        if not isinstance(self.given, Kernel):
            return [
                (h.name, i)
                for h in self.given.hyperparameters
                if not h.fixed
                for i in range(h.n_elements)
            ]
        parts = [name.partition("[") for name in self.given.theta_names]
        return [(name, int(place[:-1]) if place else 0) for name, _, place in parts]


def _identity(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.arange(p), np.ones(p), np.zeros(p)


def _translation(given: Any) -> tuple[Kernel, np.ndarray, np.ndarray, np.ndarray]:
    """Return the kernel in our terms, and how; wrapped as it is if they are not one to one.

    All entries of theta are moved at once, each by another step.  Steps differ by less than a
    factor of 2, so that what an entry of ours has moved by tells the entry and the factor.
    """
    theta = np.asarray(given.theta, dtype=float)
    p = theta.size
    with np.errstate(invalid="ignore"):
        if np.any(np.isnan(given.bounds)):  # no kernel of ours; a search refuses it
            return SklearnKernel(given), *_identity(p)
    kernel = from_sklearn(given)
    if kernel.theta.size == p and np.all(np.isfinite(theta)):
        steps = np.linspace(1.0, 1.5, p)
        moved = from_sklearn(given.clone_with_theta(theta + steps)).theta - kernel.theta
        match = np.abs(moved[:, None, None] - np.multiply.outer(steps, _FACTORS)) < 1e-9
        ours, place, which = np.nonzero(match)
        if np.array_equal(ours, np.arange(p)) and np.unique(place).size == p:
            factor = _FACTORS[which]
            offset = kernel.theta - factor * theta[place]
            offset[np.abs(offset) < 1e-12] = 0.0
            return kernel, place, factor, offset
    return SklearnKernel(given), *_identity(p)


@dataclass(frozen=True, eq=False)
class SpelledObjective:
    """What a Gaussian process maximises, in the theta of the kernel that the user gave."""

    objective: Any
    translation: KernelTranslation

    def value(self, theta: Any, eval_gradient: bool = False) -> Any:
        """Return the objective at theta, and its derivatives there if asked.

        As a number of NumPy, as from scikit-learn: beside a float32, Python's own would be rounded.
        """
        ours = self.translation.ours(theta)
        if not eval_gradient:
            return np.float64(self.objective.value(ours))
        value, gradient = self.objective.value_and_gradient(ours)
        return np.float64(value), self.translation.slopes(gradient)

    # ------------------------------------------------------------------ for a search

    @property
    def X(self) -> Any:
        """The points."""
        return self.objective.X

    @property
    def capabilities(self) -> Capabilities:
        """Those of the objective: every optional method is forwarded."""
        capabilities: Capabilities = self.objective.capabilities
        return capabilities

    @property
    def noises(self) -> np.ndarray:
        """Which parameters are variances of noise."""
        mask: np.ndarray = self.objective.noises
        return self.translation.permuted(mask)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives."""
        value, gradient = self.objective.value_and_gradient(self.translation.ours(theta))
        return value, self.translation.slopes(gradient)

    def with_information(
        self, theta: np.ndarray, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the objective, its derivatives, and about minus its second derivatives."""
        value, gradient, B = self.objective.with_information(self.translation.ours(theta), above)
        return value, self.translation.slopes(gradient), self.translation.information(B)

    def subset(self, rows: np.ndarray) -> SpelledObjective:
        """Return the objective of some of the observations."""
        return replace(self, objective=self.objective.subset(rows))

    def standard_error(self, theta: np.ndarray) -> float:
        """Return the standard error of the value at theta."""
        error: float = self.objective.standard_error(self.translation.ours(theta))
        return error

    # ------------------------------------------------------------------ results

    def posterior(self, theta: Any) -> Posterior:
        """Return the posterior at theta, with an error in the user's words."""
        try:
            posterior: Posterior = self.objective.posterior(self.translation.ours(theta))
        except NotPositiveDefiniteError as why:
            raise NotPositiveDefiniteError(
                f"The kernel, {self.translation.at(theta)}, is not returning a positive definite "
                f"matrix. Try {self.objective.remedy}. ({why})"
            ) from None
        f, k = posterior.expansion, posterior.covariance
        k = unwrap(k) if isinstance(k, Kernel) else replace(k, kernel=unwrap(k.kernel))
        posterior = replace(posterior, expansion=replace(f, kernel=unwrap(f.kernel)), covariance=k)
        if "jitter" in posterior.report.certificate:
            warn_caller(posterior.report.message)
        return posterior

    def unwrapped(self) -> SpelledObjective:
        """Return the objective of the plain kernel, for a model that outlives the fit."""
        objective = copy(self.objective)  # with the landmarks and probes that it has drawn
        objective.__dict__["kernel"] = unwrap(objective.kernel)
        return replace(self, objective=objective)

    def best(
        self, optimizer: Any, restarts: int, seed: Any, say: Function[[str], None] | None
    ) -> Optimum:
        """Return where the optimizer ends, from the best of its starts.

        Without an optimizer, or anything to find, theta is that of the kernel.
        """
        start, bounds = self.translation.theta, self.translation.bounds
        if optimizer is None or not start.size:
            return Optimum(start, np.nan, 0, True, "there was nothing to find")
        if restarts and not np.all(np.isfinite(bounds)):
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
                "finite."
            )
        if np.any(np.isnan(bounds)):
            given = self.translation.given
            raise ValueError(f"the bounds of the parameters of {given} must be positive")
        rng = check_random_state(0 if seed is None else seed)
        starts = [start, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(restarts))]
        if callable(optimizer):
            found = [self._ask(optimizer, theta) for theta in starts]
        else:
            found, (way, *others) = [], ways(self)
            for i, theta in enumerate(starts):
                so_far = max((end.value for end in found), default=-np.inf)
                found.append(self._climb(theta, i, say, way))
                # on a bound a second way is tried; but of restarts only from the best so far
                promising = found[-1].value > so_far
                if promising and self.translation.on_bounds(found[-1].theta):
                    found += [self._climb(theta, i, say, other) for other in others]
        best = max(found, key=lambda end: end.value)
        for name, dimension, side, bound in self.translation.on_bounds(best.theta):
            change = "Decreasing" if side == "lower" else "Increasing"
            warn_caller(
                f"The optimal value found for dimension {dimension} of parameter {name} is close "
                f"to the specified {side} bound {bound}. {change} the bound and calling fit again "
                f"may find a better value.",
                ConvergenceWarning,
            )
        return replace(best, evaluations=sum(end.evaluations for end in found))

    def _ask(self, optimizer: Any, start: np.ndarray) -> Optimum:
        """Return what a user's own optimizer finds."""
        count = 0

        def minus(theta: Any, eval_gradient: bool = True) -> Any:
            nonlocal count
            count += 1
            result = self.value(theta, eval_gradient)
            return (-result[0], -result[1]) if eval_gradient else -result

        answer = optimizer(minus, start, bounds=self.translation.bounds)
        try:
            theta, least = answer
            theta, least = np.array(theta, dtype=float).ravel(), float(least)
        except (TypeError, ValueError):
            raise ValueError(
                f"the optimizer must return theta and the value there, a pair; got {answer!r}"
            ) from None
        if theta.shape != start.shape or not np.all(np.isfinite(theta)) or np.isnan(least):
            raise ValueError(
                f"the optimizer must return {start.size} finite parameters and the value there, "
                f"got {theta} and {least}"
            )
        return Optimum(theta, -least, count, True, "the optimizer says so")

    def _climb(
        self, start: np.ndarray, number: int, say: Function[[str], None] | None, way: str
    ) -> Optimum:
        """Return the optimum near one start; where there is none, the start itself."""
        best = maximise(
            self,
            start,
            self.translation.bounds,
            first_step=way,
            say=None if say is None else lambda at: say(Step(f"start {number}, {at}")),
        )
        if not best.converged:
            remedy, estimated = self.objective.remedy, self.capabilities.standard_error
            advice = "more landmarks (rank)" if estimated else f"a White() part, {remedy}"
            warn_caller(
                f"the search for the best theta ended after {best.evaluations} evaluations at a "
                f"log marginal likelihood of {best.value:.6g} without convergence: {best.message}. "
                f"Try {advice}, or another start",
                ConvergenceWarning,
            )
        return best
