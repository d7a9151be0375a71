"""New points in a map that stays, each at a low minimum of its stress to the points of the map.

    s(z) = sum_j w_j (|z - z_j| - delta_j)^2 / sum_j w_j

Steps are Newton's, with curvatures that are negative or small turned positive; where such a step
does not descend, one of majorisation does.  All points take their steps at once.

s has local minima.  A point starts at its nearest neighbour, and again at the two of some points of
the map, or of their reflections, where s is least.  The end with the least s is kept.  That is
usually the global minimum, but not always.  A point with a dissimilarity of 0 to a point of the map
stays there.
"""

from __future__ import annotations

import numpy as np

from .._runtime import entry_point

__all__ = ["place", "stress_at"]

_STARTS = 2  # besides the nearest neighbour
_TRIED = 32  # points of the map at which s is evaluated to find them
_FLAT = 0.1  # curvatures are at least this part of that of majorisation


@entry_point
def place(
    delta: np.ndarray,
    Z: np.ndarray,
    weights: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> np.ndarray:
    """Return the places of points with dissimilarities `delta`, (m, n), to those at Z, (n, q).

    A point has arrived when its step is shorter than `tol` times the spread of the map.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import place
    >>> Z = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> place(np.array([[np.sqrt(2.0), np.sqrt(10.0), np.sqrt(10.0)]]), Z).round(4)
    array([[1., 1.]])
    """
    w = np.ones_like(delta) if weights is None else weights
    near = delta.argmin(axis=1)
    found = Z[near].copy()
    moving = np.flatnonzero(delta.min(axis=1) > 0.0)
    if not len(moving):
        return found
    delta, w = delta[moving], w[moving]
    tried = _tried(Z)
    values = np.stack([stress_at(z[None], delta, Z, w) for z in tried], axis=1)
    starts = [Z[near[moving]], *(tried[i] for i in np.argsort(values, axis=1).T[:_STARTS])]
    ends = np.stack([_descend(start, delta, Z, w, tol, max_iter) for start in starts])
    least = np.stack([stress_at(end, delta, Z, w) for end in ends]).argmin(axis=0)
    found[moving] = ends[least, np.arange(len(moving))]
    return found


def _tried(Z: np.ndarray) -> np.ndarray:
    """Return coordinates at which a descent may start: of some points, and reflected ones."""
    some = Z[np.unique(np.linspace(0, len(Z) - 1, _TRIED).astype(int))]
    centre = Z.mean(axis=0)
    return np.concatenate([some, 2.0 * centre - some, centre[None]])


def _descend(
    start: np.ndarray, delta: np.ndarray, Z: np.ndarray, w: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """Return the local minima of s that are reached from these coordinates."""
    mass, found = w.sum(axis=1), start.copy()
    short = tol * float(np.sqrt(np.mean((Z - Z.mean(axis=0)) ** 2)))
    moving = np.arange(len(found))
    value, g, step = _slopes(found, delta, Z, w, mass)
    for _ in range(max_iter):
        if not len(moving):
            break
        trial = found[moving] + step
        parts = delta[moving], Z, w[moving], mass[moving]
        there, slope, onward = _slopes(trial, *parts)
        worse = there > value
        if worse.any():
            trial[worse] = found[moving][worse] - g[worse]
            again = _slopes(trial[worse], *(part if part is Z else part[worse] for part in parts))
            there[worse], slope[worse], onward[worse] = again
        far = np.linalg.norm(trial - found[moving], axis=1) > short
        found[moving] = trial
        moving, value, g, step = moving[far], there[far], slope[far], onward[far]
    return found


@entry_point
def stress_at(places: np.ndarray, delta: np.ndarray, Z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return sum_j w_j (|z - z_j| - delta_j)^2 of each place.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import stress_at
    >>> stress_at(np.zeros((1, 2)), np.array([[3.0]]), np.array([[0.0, 4.0]]), np.ones((1, 1)))
    array([1.])
    """
    apart = np.sqrt(sum((places[:, c, None] - Z[:, c]) ** 2 for c in range(Z.shape[1])))
    return np.asarray(np.sum(w * (apart - delta) ** 2, axis=1))


def _slopes(
    places: np.ndarray, delta: np.ndarray, Z: np.ndarray, w: np.ndarray, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return s, half of its gradient, which is a step of majorisation, and a step of Newton's."""
    m, q = len(delta), Z.shape[1]
    apart = [places[:, c, None] - Z[:, c] for c in range(q)]
    d = np.sqrt(sum(a * a for a in apart))
    np.maximum(d, 1e-300, out=d)  # where places agree there is no direction
    value = np.sum(w * (d - delta) ** 2, axis=1) / mass
    for a in apart:
        a /= d
    bent = np.where(d > 1e-300, w * delta / d, 0.0)
    pull = w * (d - delta)
    g = np.stack([np.sum(pull * a, axis=1) for a in apart], axis=1) / mass[:, None]
    H = np.empty((m, q, q))
    for a in range(q):
        for b in range(a, q):
            H[:, a, b] = H[:, b, a] = np.sum(bent * apart[a] * apart[b], axis=1)
    H += (mass - bent.sum(axis=1))[:, None, None] * np.eye(q)
    curvature, axes = np.linalg.eigh(H / mass[:, None, None])
    curvature = np.maximum(np.abs(curvature), _FLAT)
    step = np.einsum("mij,mj,mkj,mk->mi", axes, 1.0 / curvature, axes, g)
    return value, g, -step
