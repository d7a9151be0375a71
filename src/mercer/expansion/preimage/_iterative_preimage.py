"""Iterative pre-image methods: batched L-BFGS, a fixed-point iteration, and local search.

Batched L-BFGS minimises many functions of a few variables at the same time.  Each row of a matrix Z
holds the variables of one function.  All functions that have not converged are evaluated together,
so that q pre-images need a few matrix products per step instead of q runs of an optimiser.

The fixed-point iteration (Mika et al. 1999) finds the z that minimises
J(z) = k(z, z) - 2 sum_i g_i k(z, x_i).  For a radial kernel with the profile p,

    grad J(z) = 0   <=>   z = sum_i w_i x_i / sum_i w_i,      w_i = g_i p'(|z - x_i|^2) / p'(0),

and for dot-product kernels z = sum_i g_i p'(<z, x_i>) x_i / p'(|z|^2).  The regularised form
(Abrahamsen & Hansen 2011) penalises the distance to the start x_0 with a weight l:

    z = (sum_i w_i x_i + l x_0) / (sum_i w_i + l).

Local search is for pre-images that are graphs, strings, permutations or other objects.  Such
objects have no gradient, but they can be changed in small ways, such as by one letter, edge or
swap.  The search replaces an object by its best small change as long as the residual decreases.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import Points, entry_point
from ._preimage_target import FixedPointTerms, PreImageTarget


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
        first_step = 0.1 * unit / np.where(length > 0, length, 1.0)
        t = np.where(history.has_curvature[active], 1.0, first_step)
        old_Z, old_value = Z[active].copy(), value[active].copy()
        pending = np.arange(len(active))
        for _ in range(_TUNING.max_step_trials):
            rows = active[pending]
            trial = old_Z[pending] + t[pending, None] * direction[pending]
            trial = trial if lower is None else np.maximum(trial, lower)
            trial_value, trial_gradient = slopes(trial, rows)
            fraction = _TUNING.armijo_fraction if lower is None else 0.0
            threshold = old_value[pending] + fraction * t[pending] * slope[pending]
            better = (trial_value <= threshold) & np.isfinite(trial_value)
            accepted = rows[better]
            Z[accepted], value[accepted] = trial[better], trial_value[better]
            gradient[accepted] = trial_gradient[better]
            pending, increase = pending[~better], (trial_value - old_value[pending])[~better]
            if not len(pending):
                break
            tried, rate = t[pending], slope[pending]
            # minimum of the parabola through two values and one slope
            with np.errstate(all="ignore"):
                parabola = -rate * tried**2 / (2.0 * (increase - rate * tried))
            t[pending] = np.clip(np.nan_to_num(parabola, nan=0.0), 0.1 * tried, 0.5 * tried)
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
        self.gamma[valid] = (sy / np.where(yy > 0, yy, 1.0))[is_curved]
        self.has_curvature[valid] = True

    def reset(self, rows: np.ndarray) -> None:
        """Discard the history of some rows."""
        self.rho[:, rows], self.has_curvature[rows] = 0.0, False

    def direction(self, rows: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the L-BFGS direction by the two-loop recursion; pairs with rho = 0 are ignored."""
        r = gradient.copy()
        memory, added = _TUNING.memory, self.n_added
        slots = [i % memory for i in range(max(0, added - memory), added)]
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


# ---------------------------------------------------------------------- fixed-point iteration

_MAX_HALVINGS = 12  # a step that does not decrease J is halved at most this many times
_DENOMINATOR_CUTOFF = 1e-12  # denominators below this times the sum of |terms| are treated as 0


def fixed_point(
    target: PreImageTarget, start: np.ndarray, *, penalty: float = 0.0, tol: float, max_iter: int
) -> tuple[np.ndarray, int, np.ndarray]:
    """Run the fixed-point iteration from `start`, which has one row per target.

    A step that would increase the objective (the squared distance in feature space, plus the
    penalty) is halved.  Therefore the iteration cannot cycle, unlike the plain fixed-point
    iteration with negative weights.  If the denominator for a target is 0, its point does not move.

    Returns
    -------
    Z : ndarray of shape (q, d)
        The pre-images.
    n_iter : int
        Number of iterations.
    converged : ndarray of bool, shape (q,)
        Which targets have converged.
    """
    Z, steps, length_unit = start.copy(), 0, target.scale * np.sqrt(start.shape[1])
    active, converged = np.arange(len(Z)), np.zeros(len(Z), dtype=bool)
    low, high = target.box[0] - 0.1 * length_unit, target.box[1] + 0.1 * length_unit
    current = _regularised_terms(target, Z, start, active, penalty)
    while len(active) and steps < max_iter:
        steps += 1
        old_Z = Z[active]
        step = _step(current, old_Z)
        outside = np.any((old_Z + step < low) | (old_Z + step > high), axis=1)
        # Good solutions are near the points.
        step[outside] = limit_step_length(step[outside], length_unit)
        pending, new = np.arange(len(active)), FixedPointTerms(*(part.copy() for part in current))
        for halving in range(_MAX_HALVINGS):
            rows = active[pending]
            trial = old_Z[pending] + 0.5**halving * step[pending]
            trial_state = _regularised_terms(target, trial, start, rows, penalty)
            better = current.J[pending] >= trial_state.J
            Z[rows[better]] = trial[better]
            for whole, part in zip(new, trial_state, strict=True):
                whole[pending[better]] = part[better]
            pending = pending[~better]
            if not len(pending):
                break
        # If no step decreases J, only rounding errors remain: the row has not moved and counts as
        # converged.
        is_active = np.linalg.norm(Z[active] - old_Z, axis=1) > tol * length_unit
        converged[active[~is_active]] = True
        active, current = active[is_active], FixedPointTerms(*(part[is_active] for part in new))
    return Z, steps, converged


def _step(terms: FixedPointTerms, Z: np.ndarray) -> np.ndarray:
    """Return the step a / b - z; it is reversed if b < 0, and 0 if b is only a rounding error."""
    is_defined = np.abs(terms.b) > _DENOMINATOR_CUTOFF * terms.magnitude
    step = np.sign(terms.b)[:, None] * (terms.a / np.where(is_defined, terms.b, 1.0)[:, None] - Z)
    return np.where(is_defined[:, None], step, 0.0)


def _regularised_terms(
    target: PreImageTarget, Z: np.ndarray, start: np.ndarray, rows: np.ndarray, penalty: float
) -> FixedPointTerms:
    """Return the terms of the fixed-point equation, including those of the penalty."""
    terms = target.fixed_point_terms(Z, rows)
    if not penalty:
        return terms
    with np.errstate(over="ignore", divide="ignore"):  # the scale underflows far from all points
        strength = np.minimum(penalty / terms.scale, 1e100)
    curvature: Any = 1.0  # the objective is J + penalty * curvature * |z - x_0|^2
    if target.is_radial:
        curvature = -2.0 * target.slope_at_zero / target.core._scale(Z.shape[1]) ** 2
    J = terms.J + penalty * np.sum(curvature * (Z - start[rows]) ** 2, axis=1)
    a = terms.a + strength[:, None] * start[rows]
    return FixedPointTerms(J, a, terms.b + strength, terms.magnitude + strength, terms.scale)


# ---------------------------------------------------------------------- local search


def local_search(
    target: PreImageTarget, start: list, neighbours: Function[[Any], Any], max_iter: int
) -> tuple[list, int, np.ndarray]:
    """Replace each object by its best neighbour while the residual decreases.

    Parameters
    ----------
    target : PreImageTarget
    start : list
        Initial objects, one per target.
    neighbours : function
        Maps an object to an iterable of slightly changed objects.
    max_iter : int
        Maximum number of moves per object.

    Returns
    -------
    objects : list
        The final objects.
    n_moves : int
        The largest number of moves of any object.
    converged : ndarray of bool, shape (q,)
        Which objects are local minima.
    """
    results, max_moves, converged = [], 0, np.zeros(len(target), dtype=bool)
    for c, current in enumerate(start):
        cost = float(_costs(target, c, [current])[0])
        for move in range(max_iter):
            candidates = list(neighbours(current))
            costs = _costs(target, c, candidates) if candidates else np.array([np.inf])
            best = int(np.argmin(costs))
            # Smaller decreases may be rounding errors, and could make the search cycle.
            if not costs[best] < cost - 1e-12 * max(1.0, abs(cost)):
                converged[c] = True
                break
            current, cost = candidates[best], float(costs[best])
            max_moves = max(max_moves, move + 1)
        results.append(current)
    return results, max_moves, converged


def _costs(target: PreImageTarget, c: int, objects: Points) -> np.ndarray:
    """Return |phi(z) - Psi_c|^2, up to a constant, for each object z and the target c."""
    return np.asarray(target.core.diag(objects) - 2.0 * target.block(objects) @ target.G[c])
