"""Pre-images among objects: the best one known, then uphill through a neighbourhood of the user's.

For graphs, strings or permutations there is no gradient, but there are small changes: one letter,
one edge, one swap.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np

from ._target import Target

__all__ = ["climb"]


def climb(
    target: Target, start: list, neighbours: Function[[Any], Any], max_iter: int
) -> tuple[list, int, np.ndarray]:
    """Move each object to its best neighbour while the residual falls; one object per target.

    Returns the objects, the most moves any of them made, and which of them are local minima.
    """
    found, moves, converged = [], 0, np.zeros(len(target), dtype=bool)
    for c, here in enumerate(start):
        cost = float(_costs(target, c, [here])[0])
        for move in range(max_iter):
            around = list(neighbours(here))
            costs = _costs(target, c, around) if around else np.array([np.inf])
            best = int(np.argmin(costs))
            # A descent by less than rounding could lead round in a circle.
            if not costs[best] < cost - 1e-12 * max(1.0, abs(cost)):
                converged[c] = True
                break
            here, cost, moves = around[best], float(costs[best]), max(moves, move + 1)
        found.append(here)
    return found, moves, converged


def _costs(target: Target, c: int, objects: Any) -> np.ndarray:
    """Return J_c at several objects."""
    return np.asarray(target.core.diag(objects) - 2.0 * target.block(objects) @ target.G[c])
