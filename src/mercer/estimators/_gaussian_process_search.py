"""An objective of theta in the user's spelling: its values, its posterior, the search for the best.

A search starts at the kernel's own theta and at others drawn within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._errors import NotPositiveDefiniteError, warn_caller
from ..gp import Optimum, Posterior, maximise
from ._gaussian_process_kernel import KernelTranslation

__all__ = ["SpelledObjective"]


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
                f"matrix. Try gradually increasing the 'alpha' parameter of your "
                f"GaussianProcessRegressor estimator. ({why})"
            ) from None
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
            say=None if say is None else lambda text: say(f"start {number}, {text}"),
        )
        if not best.converged:
            estimated = hasattr(self.objective, "standard_error")
            advice = "more landmarks (rank)" if estimated else "a larger alpha, a White() part"
            warn_caller(
                f"the search for the best theta ended after {best.evaluations} evaluations at a "
                f"log marginal likelihood of {best.value:.6g} without convergence: {best.message}. "
                f"Try {advice}, or another start",
                ConvergenceWarning,
            )
        return replace(best, theta=self.translation.theirs(best.theta))
