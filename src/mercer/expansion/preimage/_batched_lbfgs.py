"""Batched L-BFGS: minimises many functions of a few variables at the same time.

Each row of a matrix Z holds the variables of one function.  All functions that have not converged
are evaluated together, so that q pre-images need a few matrix products per step instead of q runs
of an optimiser.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass

import numpy as np

from ..._core import entry_point

__all__ = ["batched_lbfgs", "limit_step_length"]


@dataclass(frozen=True)
class _BatchedLBFGSTuning:
    """Numerical constants of the batched L-BFGS iteration."""

    # Number of previous steps that L-BFGS stores.
    memory: int = 8
    # Armijo rule: a step must reach this fraction of the decrease predicted by the slope.
    armijo_fraction: float = 1e-4
    # Maximum number of step lengths that are tried in one direction.
    max_step_trials: int = 20
    # Longest step, in units of the spread of the points.
    max_step: float = 4.0


_TUNING = _BatchedLBFGSTuning()

ValuesAndGradients = Function[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@entry_point
def batched_lbfgs(
    slopes: ValuesAndGradients,
    start: np.ndarray,
    *,
    scale: float,
    tol: float,
    max_iter: int,
    lower: float | None = None,
) -> tuple[np.ndarray, int, np.ndarray]:
    """Minimise q functions of d variables at once by L-BFGS.

    Parameters
    ----------
    slopes : function
        `slopes(Z, rows)` returns the values and gradients of the functions with indices `rows`,
        each at its own row of Z.
    start : ndarray of shape (q, d)
        Initial points.
    scale : float
        Typical size of a coordinate.  The first step changes the coordinates by a tenth of it (root
        mean square).
    tol : float
        A row has converged when the RMS change of its coordinates is below `tol` times `scale`.
    max_iter : int
        Maximum number of iterations.
    lower : float or None
        Lower bound of all coordinates.

    Returns
    -------
    Z : ndarray of shape (q, d)
        The minima, one per row.
    n_iter : int
        Number of iterations.
    converged : ndarray of bool, shape (q,)
        Which rows have converged.
    """
    Z, steps = start.copy(), 0
    count, columns = Z.shape
    unit = scale * np.sqrt(columns)
    converged, active = np.zeros(count, dtype=bool), np.arange(count)
    value, gradient = slopes(Z, active)
    history = _LBFGSHistory(count, columns)
    while len(active) and steps < max_iter:
        steps += 1
        g = gradient[active]
        direction = limit_step_length(history.direction(active, g), unit)
        slope = np.einsum("cj,cj->c", g, direction)
        length = np.linalg.norm(direction, axis=1)
        # Without information on the curvature, the first step has a fixed length.
        t = np.where(
            history.has_curvature[active], 1.0, 0.1 * unit / np.where(length > 0, length, 1.0)
        )
        old_Z, old_value = Z[active].copy(), value[active].copy()
        pending = np.arange(len(active))
        for _ in range(_TUNING.max_step_trials):
            rows = active[pending]
            trial = old_Z[pending] + t[pending, None] * direction[pending]
            trial = trial if lower is None else np.maximum(trial, lower)
            trial_value, trial_gradient = slopes(trial, rows)
            threshold = (
                old_value[pending]
                + (_TUNING.armijo_fraction if lower is None else 0.0) * t[pending] * slope[pending]
            )
            better = (trial_value <= threshold) & np.isfinite(trial_value)
            accepted = rows[better]
            Z[accepted], value[accepted], gradient[accepted] = (
                trial[better],
                trial_value[better],
                trial_gradient[better],
            )
            pending, increase = pending[~better], (trial_value - old_value[pending])[~better]
            if not len(pending):
                break
            t_pending, slope_pending = t[pending], slope[pending]
            # minimum of the parabola through two values and one slope
            with np.errstate(all="ignore"):
                parabola = (
                    -slope_pending * t_pending**2 / (2.0 * (increase - slope_pending * t_pending))
                )
            t[pending] = np.clip(np.nan_to_num(parabola, nan=0.0), 0.1 * t_pending, 0.5 * t_pending)
        step = Z[active] - old_Z
        # If no step in the L-BFGS direction decreases the value (for example at a kink), discard
        # the history of that row and try the direction of the gradient in the next iteration.
        restarted = active[pending][history.has_curvature[active[pending]]]
        history.add(active, step, gradient[active] - g)
        history.reset(restarted)
        # If no step in the direction of the gradient decreases the value either, only rounding
        # errors remain.  The step of the row is 0, and it counts as converged.
        is_active = np.linalg.norm(step, axis=1) > tol * unit
        is_active |= np.isin(active, restarted)
        converged[active[~is_active]] = True
        active = active[is_active]
    return Z, steps, converged


def limit_step_length(steps: np.ndarray, unit: float) -> np.ndarray:
    """Return the steps, shortened to at most a few times the spread of the points.

    This keeps the variables near the points if the objective is flat or unbounded.
    """
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    return steps * np.minimum(1.0, _TUNING.max_step * unit / np.where(length > 0, length, 1.0))


class _LBFGSHistory:
    """L-BFGS history of every row: its last steps s and changes y of the gradient.

    Only pairs with positive curvature s . y are used.
    """

    def __init__(self, count: int, columns: int) -> None:
        self.S = np.zeros((_TUNING.memory, count, columns))
        self.Y = np.zeros((_TUNING.memory, count, columns))
        self.rho = np.zeros((_TUNING.memory, count))
        self.gamma = np.ones(count)
        self.has_curvature = np.zeros(count, dtype=bool)
        self.n_added = 0

    def add(self, rows: np.ndarray, s: np.ndarray, y: np.ndarray) -> None:
        """Store the steps s and changes y of the gradient for some rows."""
        sy, yy = np.einsum("cj,cj->c", s, y), np.einsum("cj,cj->c", y, y)
        is_curved = sy > 1e-10 * np.sqrt(yy * np.einsum("cj,cj->c", s, s))
        slot = self.n_added % _TUNING.memory
        self.n_added += 1
        self.S[slot, rows], self.Y[slot, rows] = s, y
        self.rho[slot, rows] = np.divide(1.0, sy, out=np.zeros_like(sy), where=is_curved)
        valid = rows[is_curved]
        self.gamma[valid], self.has_curvature[valid] = (
            (sy / np.where(yy > 0, yy, 1.0))[is_curved],
            True,
        )

    def reset(self, rows: np.ndarray) -> None:
        """Discard the history of some rows."""
        self.rho[:, rows], self.has_curvature[rows] = 0.0, False

    def direction(self, rows: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the L-BFGS direction by the two-loop recursion; pairs with rho = 0 are ignored."""
        r = gradient.copy()
        slots = [
            i % _TUNING.memory for i in range(max(0, self.n_added - _TUNING.memory), self.n_added)
        ]
        weights = {}
        for i in reversed(slots):
            w = self.rho[i, rows] * np.einsum("cj,cj->c", self.S[i, rows], r)
            r -= w[:, None] * self.Y[i, rows]
            weights[i] = w
        r *= np.where(self.has_curvature[rows], self.gamma[rows], 1.0)[:, None]
        for i in slots:
            w = self.rho[i, rows] * np.einsum("cj,cj->c", self.Y[i, rows], r)
            r += (weights[i] - w)[:, None] * self.S[i, rows]
        return -r
