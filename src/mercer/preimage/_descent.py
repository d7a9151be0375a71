"""L-BFGS on many small problems at once: every row of Z minimises a function of its own.

One evaluation serves all rows that are still moving, so that q pre-images cost a few GEMMs per
step instead of q runs of a scalar optimiser.
"""

from __future__ import annotations

from collections.abc import Callable as Function

import numpy as np

from .._runtime import entry_point

__all__ = ["descend", "shortened"]

_MEMORY = 8  # steps that L-BFGS remembers
_ARMIJO = 1e-4  # share of the decrease promised by the slope that a step must reach
_TRIALS = 20  # step lengths that are tried before a direction is given up
_LONGEST = 4.0  # step, in units of the spread

Slopes = Function[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@entry_point
def descend(
    slopes: Slopes,
    start: np.ndarray,
    *,
    scale: float,
    tol: float,
    max_iter: int,
    lower: float | None = None,
) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the minima, the iterations, and which rows have converged.

    Parameters
    ----------
    slopes : function
        `slopes(Z, rows)` gives the values and gradients of the functions `rows`, each at its own z.
    start : ndarray of shape (q, d)
    scale : float
        The first step of a row is a tenth of this long, in each coordinate's mean; a row is done
        when its step is shorter than tol times this.
    tol, max_iter
    lower : float or None
        Coordinates are kept above it.
    """
    Z, steps = start.copy(), 0
    count, columns = Z.shape
    unit = scale * np.sqrt(columns)
    converged, active = np.zeros(count, dtype=bool), np.arange(count)
    value, gradient = slopes(Z, active)
    history = _History(count, columns)
    while len(active) and steps < max_iter:
        steps += 1
        g = gradient[active]
        direction = shortened(history.direction(active, g), unit)
        slope = np.einsum("cj,cj->c", g, direction)
        size = np.linalg.norm(direction, axis=1)
        # Without curvature the length of a gradient says nothing about the length of a step.
        t = np.where(history.known[active], 1.0, 0.1 * unit / np.where(size > 0, size, 1.0))
        before, old = Z[active].copy(), value[active].copy()
        waiting = np.arange(len(active))
        for _ in range(_TRIALS):
            rows = active[waiting]
            trial = before[waiting] + t[waiting, None] * direction[waiting]
            trial = trial if lower is None else np.maximum(trial, lower)
            found, there = slopes(trial, rows)
            bar = old[waiting] + (_ARMIJO if lower is None else 0.0) * t[waiting] * slope[waiting]
            better = (found <= bar) & np.isfinite(found)
            moved = rows[better]
            Z[moved], value[moved], gradient[moved] = trial[better], found[better], there[better]
            waiting, rise = waiting[~better], (found - old[waiting])[~better]
            if not len(waiting):
                break
            tw, sw = t[waiting], slope[waiting]
            with np.errstate(all="ignore"):  # the parabola through two values and a slope
                parabola = -sw * tw**2 / (2.0 * (rise - sw * tw))
            t[waiting] = np.clip(np.nan_to_num(parabola, nan=0.0), 0.1 * tw, 0.5 * tw)
        step = Z[active] - before
        # A row whose history is misleading, at a kink say, tries the gradient before it ends.
        again = active[waiting][history.known[active[waiting]]]
        history.add(active, step, gradient[active] - g)
        history.forget(again)
        # A row for which no step descends has come down to rounding: its step is 0, and it is done.
        still = np.linalg.norm(step, axis=1) > tol * unit
        still |= np.isin(active, again)
        converged[active[~still]] = True
        active = active[still]
    return Z, steps, converged


def shortened(steps: np.ndarray, unit: float) -> np.ndarray:
    """Return the steps, the long ones cut to a few times the spread.

    Where J is flat, or falls for ever, nothing else keeps z in sight of the points.
    """
    size = np.linalg.norm(steps, axis=1, keepdims=True)
    return steps * np.minimum(1.0, _LONGEST * unit / np.where(size > 0, size, 1.0))


class _History:
    """The last steps s and changes of gradient y of every row; a pair that curves up counts."""

    def __init__(self, count: int, columns: int) -> None:
        self.S = np.zeros((_MEMORY, count, columns))
        self.Y = np.zeros((_MEMORY, count, columns))
        self.rho = np.zeros((_MEMORY, count))
        self.gamma = np.ones(count)
        self.known = np.zeros(count, dtype=bool)
        self.added = 0

    def add(self, rows: np.ndarray, s: np.ndarray, y: np.ndarray) -> None:
        sy, yy = np.einsum("cj,cj->c", s, y), np.einsum("cj,cj->c", y, y)
        sound = sy > 1e-10 * np.sqrt(yy * np.einsum("cj,cj->c", s, s))
        slot = self.added % _MEMORY
        self.added += 1
        self.S[slot, rows], self.Y[slot, rows] = s, y
        self.rho[slot, rows] = np.divide(1.0, sy, out=np.zeros_like(sy), where=sound)
        good = rows[sound]
        self.gamma[good], self.known[good] = (sy / np.where(yy > 0, yy, 1.0))[sound], True

    def forget(self, rows: np.ndarray) -> None:
        self.rho[:, rows], self.known[rows] = 0.0, False

    def direction(self, rows: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return -H g by the two loops; a pair with rho = 0 does nothing in them."""
        r = gradient.copy()
        slots = [i % _MEMORY for i in range(max(0, self.added - _MEMORY), self.added)]
        weights = {}
        for i in reversed(slots):
            w = self.rho[i, rows] * np.einsum("cj,cj->c", self.S[i, rows], r)
            r -= w[:, None] * self.Y[i, rows]
            weights[i] = w
        r *= np.where(self.known[rows], self.gamma[rows], 1.0)[:, None]
        for i in slots:
            w = self.rho[i, rows] * np.einsum("cj,cj->c", self.Y[i, rows], r)
            r += (weights[i] - w)[:, None] * self.S[i, rows]
        return -r
