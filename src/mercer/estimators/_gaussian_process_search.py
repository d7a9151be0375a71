"""The search for theta, in the user's spelling: starts, optimizers, and what is worth a warning."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._errors import warn_caller
from ..gp import maximise
from ._gaussian_process_kernel import KernelTranslation

__all__ = ["find_theta", "likelihood"]


def likelihood(
    objective: Any, translation: KernelTranslation, theta: Any, eval_gradient: bool
) -> Any:
    """Return the objective at the user's theta, and its derivatives there if asked.

    As a number of NumPy, as from scikit-learn: beside a float32, Python's own would be rounded.
    """
    ours = translation.ours(theta)
    if not eval_gradient:
        return np.float64(objective.value(ours))
    value, gradient = objective.value_and_gradient(ours)
    return np.float64(value), translation.slopes(gradient)


def find_theta(
    objective: Any,
    translation: KernelTranslation,
    optimizer: Any,
    *,
    restarts: int,
    random_state: Any,
    say: Function[[str], None] | None,
) -> tuple[np.ndarray, int, bool]:
    """Return the best theta in the user's spelling, the evaluations taken, and if it converged.

    Without an optimizer, or anything to find, theta is that of the kernel.
    """
    start, bounds = translation.theta, translation.bounds
    if optimizer is None or not start.size:
        return start, 0, True
    if restarts and not np.all(np.isfinite(bounds)):
        raise ValueError(
            "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
            "finite."
        )
    if np.any(np.isnan(bounds)):
        raise ValueError(f"the bounds of the parameters of {translation.given} must be positive")
    rng = check_random_state(0 if random_state is None else random_state)
    starts = [start, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(restarts))]
    if callable(optimizer):
        found = [_ask(optimizer, objective, translation, theta) for theta in starts]
    else:
        found = [_climb(objective, translation, theta, i, say) for i, theta in enumerate(starts)]
    theta, _, _, converged = max(found, key=lambda f: f[1])
    for name, dimension, side, bound in translation.on_bounds(theta):
        change = "Decreasing" if side == "lower" else "Increasing"
        warn_caller(
            f"The optimal value found for dimension {dimension} of parameter {name} is close to "
            f"the specified {side} bound {bound}. {change} the bound and calling fit again may "
            f"find a better value.",
            ConvergenceWarning,
        )
    return theta, sum(f[2] for f in found), converged


def _ask(
    optimizer: Any, objective: Any, translation: KernelTranslation, start: np.ndarray
) -> tuple[np.ndarray, float, int, bool]:
    """Return what a user's own optimizer finds."""
    count = 0

    def minus(theta: Any, eval_gradient: bool = True) -> Any:
        nonlocal count
        count += 1
        result = likelihood(objective, translation, theta, eval_gradient)
        return (-result[0], -result[1]) if eval_gradient else -result

    answer = optimizer(minus, start, bounds=translation.bounds)
    try:
        theta, least = answer
        theta, least = np.array(theta, dtype=float).ravel(), float(least)
    except (TypeError, ValueError):
        raise ValueError(
            f"the optimizer must return theta and the value there, a pair; got {answer!r}"
        ) from None
    if theta.shape != start.shape or not np.all(np.isfinite(theta)) or np.isnan(least):
        raise ValueError(
            f"the optimizer must return {start.size} finite parameters and the value there, got "
            f"{theta} and {least}"
        )
    return theta, -least, count, True


def _climb(
    objective: Any,
    translation: KernelTranslation,
    start: np.ndarray,
    number: int,
    say: Function[[str], None] | None,
) -> tuple[np.ndarray, float, int, bool]:
    """Return the optimum near one start; where there is none, the start itself."""
    best = maximise(
        objective,
        translation.ours(start),
        translation.our_bounds,
        say=None if say is None else lambda text: say(f"start {number}, {text}"),
    )
    if not best.converged:
        estimated = hasattr(objective, "standard_error")
        advice = "more landmarks (rank)" if estimated else "a larger alpha, a White() part"
        warn_caller(
            f"the search for the best theta ended after {best.evaluations} evaluations at a log "
            f"marginal likelihood of {best.value:.6g} without convergence: {best.message}. Try "
            f"{advice}, or another start",
            ConvergenceWarning,
        )
    return translation.theirs(best.theta), best.value, best.evaluations, best.converged
