"""The fixed point of Mika et al. (1999), and its regularised form (Abrahamsen & Hansen, 2011).

    grad J(z) = 0   <=>   z = sum_i w_i x_i / sum_i w_i,      w_i = g_i p'(|z - x_i|^2) / p'(0)

for radial kernels; z = sum_i g_i p'(<z, x_i>) x_i / p'(|z|^2) for dot products.  With a pull l
towards the start x_0:   z = (sum_i w_i x_i + l x_0) / (sum_i w_i + l).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._descent import shortened
from ._target import Attraction, Target

__all__ = ["fixed_point"]

_HALVINGS = 12  # a step that does not descend is halved so often, then given up
_FLAT = 1e-12  # a denominator this much smaller than its terms is rounding


def fixed_point(
    target: Target, start: np.ndarray, *, pull: float = 0.0, tol: float, max_iter: int
) -> tuple[np.ndarray, int, np.ndarray]:
    """Iterate from `start`, one row per target; return z, the iterations, and which have converged.

    The iteration descends on J (with a pull: on J + l' |z - x_0|^2), and a step that does not is
    halved until it does: it cannot cycle, as the plain iteration does where weights are negative.
    Where the denominator vanishes, a target stays where it is.
    """
    Z, steps, unit = start.copy(), 0, target.scale * np.sqrt(start.shape[1])
    active, converged = np.arange(len(Z)), np.zeros(len(Z), dtype=bool)
    low, high = target.box[0] - 0.1 * unit, target.box[1] + 0.1 * unit
    now = _pulled(target, Z, start, active, pull)
    while len(active) and steps < max_iter:
        steps += 1
        here = Z[active]
        step = _step(now, here)
        outside = np.any((here + step < low) | (here + step > high), axis=1)
        step[outside] = shortened(step[outside], unit)  # a mean of the points cannot be far away
        waiting, new = np.arange(len(active)), Attraction(*(part.copy() for part in now))
        for halving in range(_HALVINGS):
            rows = active[waiting]
            trial = here[waiting] + 0.5**halving * step[waiting]
            found = _pulled(target, trial, start, rows, pull)
            better = now.J[waiting] >= found.J
            Z[rows[better]] = trial[better]
            for whole, part in zip(new, found, strict=True):
                whole[waiting[better]] = part[better]
            waiting = waiting[~better]
            if not len(waiting):
                break
        # Where no step descends, J is flat up to rounding: the row has not moved, and is done.
        still = np.linalg.norm(Z[active] - here, axis=1) > tol * unit
        converged[active[~still]] = True
        active, now = active[still], Attraction(*(part[still] for part in new))
    return Z, steps, converged


def _step(at: Attraction, Z: np.ndarray) -> np.ndarray:
    """Return a / b - z, turned round where b < 0 (it would climb), and 0 where b is rounding."""
    sound = np.abs(at.b) > _FLAT * at.size
    step = np.sign(at.b)[:, None] * (at.a / np.where(sound, at.b, 1.0)[:, None] - Z)
    return np.where(sound[:, None], step, 0.0)


def _pulled(
    target: Target, Z: np.ndarray, start: np.ndarray, rows: np.ndarray, pull: float
) -> Attraction:
    """Return the attraction with the pull towards the start added."""
    at = target.attractions(Z, rows)
    if not pull:
        return at
    with np.errstate(over="ignore", divide="ignore"):
        strength = np.minimum(pull / at.unit, 1e100)  # far away, points pull next to nothing
    unit: Any = 1.0  # grad [J + pull unit |z - x_0|^2] = 0 at the pulled fixed point
    if target.is_radial:
        unit = -2.0 * target.slope_at_zero / target.core._scale(Z.shape[1]) ** 2
    J = at.J + pull * np.sum(unit * (Z - start[rows]) ** 2, axis=1)
    a = at.a + strength[:, None] * start[rows]
    return Attraction(J, a, at.b + strength, at.size + strength, at.unit)
