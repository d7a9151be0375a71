"""Local search for pre-images that are graphs, strings, permutations or other objects.

Such objects have no gradient, but they can be changed in small ways, such as by one letter, edge or
swap.  The search replaces an object by its best small change as long as the residual decreases.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np

from ._preimage_target import PreImageTarget

__all__ = ["local_search"]


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
            current, cost, max_moves = (
                candidates[best],
                float(costs[best]),
                max(max_moves, move + 1),
            )
        results.append(current)
    return results, max_moves, converged


def _costs(target: PreImageTarget, c: int, objects: Any) -> np.ndarray:
    """Return |phi(z) - Psi_c|^2, up to a constant, for each object z and the target c."""
    return np.asarray(target.core.diag(objects) - 2.0 * target.block(objects) @ target.G[c])
