"""A Gaussian process in the user's spelling of its kernel and in ours.

scikit-learn's GP kernels order and scale their theta in their own way.  Users of theirs read and
write that; the objectives are written in ours.  In logarithms every translation is linear, and
each entry of one comes from one of the other:

    ours_i = factor_i theirs_place(i) + offset_i

A search starts at the kernel's own theta and at others drawn within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel
from sklearn.utils import check_random_state

from .._errors import NotPositiveDefiniteError, warn_caller
from .._runtime import Step
from ..gp import Optimum, Posterior, maximise
from ..kernels import RBF, Kernel, SklearnKernel, as_kernel, forget, from_sklearn

__all__ = ["KernelTranslation", "SpelledObjective", "default_kernel"]


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

    @property
    def bounds(self) -> np.ndarray:
        """Those of the user's theta."""
        with np.errstate(invalid="ignore"):  # the logarithm of a bound below 0 is no number
            return np.array(self.given.bounds, dtype=float).reshape(-1, 2)

    @property
    def our_bounds(self) -> np.ndarray:
        """The user's bounds, of our theta."""
        limits = self._factor[:, None] * self.bounds[self._place] + self._offset[:, None]
        return np.sort(limits, axis=1)

    def ours(self, theta: Any) -> np.ndarray:
        """Return our theta for the user's."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != self._place.shape:
            raise ValueError(
                f"theta has shape {theta.shape}, but {self.given} has {self._place.size} free "
                f"parameters"
            )
        return self._factor * theta[self._place] + self._offset

    def theirs(self, theta: np.ndarray) -> np.ndarray:
        """Return the user's theta for ours, exactly on a bound where it is on one."""
        result = np.empty(theta.size)
        result[self._place] = (theta - self._offset) / self._factor
        for side in self.bounds.T:
            near = np.isclose(result, side, rtol=1e-12, atol=1e-12)
            result = np.where(near, side, result)
        return result

    def slopes(self, gradient: np.ndarray) -> np.ndarray:
        """Return derivatives in the user's theta from those in ours."""
        result = np.empty(gradient.size)
        result[self._place] = self._factor * gradient
        return result

    def at(self, theta: Any) -> Any:
        """Return the kernel in the user's spelling with this theta."""
        if isinstance(self.given, Kernel):
            return self.given.with_theta(theta)
        return self.given.clone_with_theta(theta)

    def on_bounds(self, theta: np.ndarray) -> list[tuple[str, int, str, float]]:
        """Return (parameter, dimension, "lower" or "upper", bound) for what is on a bound."""
        found = []
        close = np.isclose(self.bounds, theta[:, None])
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


def _translation(given: SklearnGPKernel) -> tuple[Kernel, np.ndarray, np.ndarray, np.ndarray]:
    """Return the kernel in our terms, and how; wrapped as it is if they are not one to one."""
    theta = np.asarray(given.theta, dtype=float)
    p = theta.size
    with np.errstate(invalid="ignore"):
        if np.any(np.isnan(given.bounds)):  # no kernel of ours; a search refuses it
            return SklearnKernel(given), *_identity(p)
    kernel = from_sklearn(given)
    if kernel.theta.size == p and np.all(np.isfinite(theta)):
        moved = [from_sklearn(given.clone_with_theta(theta + e)).theta for e in np.eye(p)]
        # translations double, halve or turn the sign of a logarithm
        A = np.array([np.round(2.0 * (m - kernel.theta)) / 2.0 for m in moved]).reshape(p, p).T
        if np.all(np.count_nonzero(A, axis=0) == 1) and np.all(np.count_nonzero(A, axis=1) == 1):
            place = np.argmax(A != 0.0, axis=1) if p else np.arange(0)
            factor = A[np.arange(p), place]
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
        k = forget(k) if isinstance(k, Kernel) else replace(k, kernel=forget(k.kernel))
        posterior = replace(posterior, expansion=replace(f, kernel=forget(f.kernel)), covariance=k)
        if "jitter" in posterior.report.certificate:
            warn_caller(posterior.report.message)
        return posterior

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
            found = [self._climb(theta, i, say) for i, theta in enumerate(starts)]
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

    def _climb(self, start: np.ndarray, number: int, say: Function[[str], None] | None) -> Optimum:
        """Return the optimum near one start; where there is none, the start itself."""
        best = maximise(
            self.objective,
            self.translation.ours(start),
            self.translation.our_bounds,
            say=None if say is None else lambda at: say(Step(f"start {number}, {at}")),
        )
        if not best.converged:
            remedy, estimated = self.objective.remedy, hasattr(self.objective, "standard_error")
            advice = "more landmarks (rank)" if estimated else f"a White() part, {remedy}"
            warn_caller(
                f"the search for the best theta ended after {best.evaluations} evaluations at a "
                f"log marginal likelihood of {best.value:.6g} without convergence: {best.message}. "
                f"Try {advice}, or another start",
                ConvergenceWarning,
            )
        return replace(best, theta=self.translation.theirs(best.theta))
