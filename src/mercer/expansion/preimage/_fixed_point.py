"""Fixed-point iteration for pre-images (Mika et al. 1999), with or without regularisation.

The pre-image z minimises J(z) = k(z, z) - 2 sum_i g_i k(z, x_i).  For a radial kernel with the
profile p,

    grad J(z) = 0   <=>   z = sum_i w_i x_i / sum_i w_i,      w_i = g_i p'(|z - x_i|^2) / p'(0),

and for dot-product kernels z = sum_i g_i p'(<z, x_i>) x_i / p'(|z|^2).  The regularised form
(Abrahamsen & Hansen 2011) penalises the distance to the start x_0 with a weight l:

    z = (sum_i w_i x_i + l x_0) / (sum_i w_i + l).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._batched_lbfgs import limit_step_length
from ._preimage_target import FixedPointTerms, PreImageTarget

__all__ = ["fixed_point"]

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
        step[outside] = limit_step_length(
            step[outside], length_unit
        )  # good solutions are near the points
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
    with np.errstate(over="ignore", divide="ignore"):
        strength = np.minimum(
            penalty / terms.scale, 1e100
        )  # the scale underflows far from all points
    curvature: Any = 1.0  # the objective is J + penalty * curvature * |z - x_0|^2
    if target.is_radial:
        curvature = -2.0 * target.slope_at_zero / target.core._scale(Z.shape[1]) ** 2
    J = terms.J + penalty * np.sum(curvature * (Z - start[rows]) ** 2, axis=1)
    a = terms.a + strength[:, None] * start[rows]
    return FixedPointTerms(J, a, terms.b + strength, terms.magnitude + strength, terms.scale)
