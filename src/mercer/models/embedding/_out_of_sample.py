"""Out-of-sample embedding: new points are added to a fixed embedding by minimising their stress.

    s(z) = sum_j w_j (|z - z_j| - delta_j)^2 / sum_j w_j

z_j are the coordinates of the embedded points, delta_j the dissimilarities of the new point to
them, and w_j weights.  The minimisation uses Newton steps, in which negative or small curvatures
are replaced by positive ones.  If a Newton step does not decrease s, a majorisation step is used,
which always does.  All new points are updated at the same time.

s has local minima.  The search for each new point starts from its nearest neighbour, and from the
two candidates with the smallest s among some embedded points and their reflections at the centre.
The result with the smallest s is returned, which is usually, but not always, the global minimum.  A
new point with a dissimilarity of 0 to an embedded point gets the coordinates of that point.
"""

from __future__ import annotations

import numpy as np

from ..._core import entry_point

__all__ = ["embed_new_points", "stress_of_points"]

_N_EXTRA_STARTS = 2  # number of starting points in addition to the nearest neighbour
_N_CANDIDATES = 32  # number of embedded points among which extra starting points are selected
_MIN_CURVATURE = 0.1  # lower limit of a curvature, relative to that of the majorising function


@entry_point
def embed_new_points(
    delta: np.ndarray,
    Z: np.ndarray,
    weights: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> np.ndarray:
    """Return the coordinates of new points in a fixed embedding, by minimising their stress.

    Parameters
    ----------
    delta : ndarray of shape (m, n)
        The dissimilarities of m new points to the n embedded points.
    Z : ndarray of shape (n, q)
        The coordinates of the embedded points.
    weights : ndarray of shape (m, n), optional
        The weights w_j of the terms of the stress; ones by default.
    tol : float, default=1e-6
        A point has converged when its step is shorter than `tol` times the root mean square of the
        centred Z.
    max_iter : int, default=200
        The maximum number of steps.

    Returns
    -------
    ndarray of shape (m, q)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import embed_new_points
    >>> Z = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> embed_new_points(np.array([[np.sqrt(2.0), np.sqrt(10.0), np.sqrt(10.0)]]), Z).round(4)
    array([[1., 1.]])
    """
    w = np.ones_like(delta) if weights is None else weights
    nearest = delta.argmin(axis=1)
    coordinates = Z[nearest].copy()
    moving = np.flatnonzero(delta.min(axis=1) > 0.0)
    if not len(moving):
        return coordinates
    delta, w = delta[moving], w[moving]
    candidates = _candidates(Z)
    values = np.stack([stress_of_points(z[None], delta, Z, w) for z in candidates], axis=1)
    starts = [
        Z[nearest[moving]],
        *(candidates[i] for i in np.argsort(values, axis=1).T[:_N_EXTRA_STARTS]),
    ]
    minima = np.stack([_minimise(start, delta, Z, w, tol, max_iter) for start in starts])
    best = np.stack([stress_of_points(minimum, delta, Z, w) for minimum in minima]).argmin(axis=0)
    coordinates[moving] = minima[best, np.arange(len(moving))]
    return coordinates


def _candidates(Z: np.ndarray) -> np.ndarray:
    """Return candidate starting points: some embedded points, their reflections, and the centre."""
    subset = Z[np.unique(np.linspace(0, len(Z) - 1, _N_CANDIDATES).astype(int))]
    centre = Z.mean(axis=0)
    return np.concatenate([subset, 2.0 * centre - subset, centre[None]])


def _minimise(
    start: np.ndarray, delta: np.ndarray, Z: np.ndarray, w: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """Return the local minima of the stress s that are reached from the coordinates `start`."""
    total_weight, coordinates = w.sum(axis=1), start.copy()
    min_step = tol * float(np.sqrt(np.mean((Z - Z.mean(axis=0)) ** 2)))
    moving = np.arange(len(coordinates))
    value, g, step = _stress_and_steps(coordinates, delta, Z, w, total_weight)
    for _ in range(max_iter):
        if not len(moving):
            break
        trial = coordinates[moving] + step
        parts = delta[moving], Z, w[moving], total_weight[moving]
        trial_value, trial_g, trial_step = _stress_and_steps(trial, *parts)
        increased = trial_value > value
        if increased.any():
            trial[increased] = coordinates[moving][increased] - g[increased]
            retried = _stress_and_steps(
                trial[increased], *(part if part is Z else part[increased] for part in parts)
            )
            trial_value[increased], trial_g[increased], trial_step[increased] = retried
        not_converged = np.linalg.norm(trial - coordinates[moving], axis=1) > min_step
        coordinates[moving] = trial
        moving, value, g, step = (
            moving[not_converged],
            trial_value[not_converged],
            trial_g[not_converged],
            trial_step[not_converged],
        )
    return coordinates


@entry_point
def stress_of_points(
    coordinates: np.ndarray, delta: np.ndarray, Z: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Return the unnormalised stress sum_j w_j (|z - z_j| - delta_j)^2 of each point z.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import stress_of_points
    >>> d, w = np.array([[3.0]]), np.ones((1, 1))  # dissimilarity and weight
    >>> stress_of_points(np.zeros((1, 2)), d, np.array([[0.0, 4.0]]), w)
    array([1.])
    """
    d = np.sqrt(sum((coordinates[:, c, None] - Z[:, c]) ** 2 for c in range(Z.shape[1])))
    return np.asarray(np.sum(w * (d - delta) ** 2, axis=1))


def _stress_and_steps(
    coordinates: np.ndarray,
    delta: np.ndarray,
    Z: np.ndarray,
    w: np.ndarray,
    total_weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the stress, minus the majorisation step (half the gradient), and a Newton step."""
    m, q = len(delta), Z.shape[1]
    differences = [coordinates[:, c, None] - Z[:, c] for c in range(q)]
    d = np.sqrt(sum(a * a for a in differences))
    np.maximum(d, 1e-300, out=d)  # avoid 0 / 0 for coinciding points
    value = np.sum(w * (d - delta) ** 2, axis=1) / total_weight
    for a in differences:
        a /= d
    ratios = np.where(d > 1e-300, w * delta / d, 0.0)
    residuals = w * (d - delta)
    g = (
        np.stack([np.sum(residuals * a, axis=1) for a in differences], axis=1)
        / total_weight[:, None]
    )
    H = np.empty((m, q, q))
    for a in range(q):
        for b in range(a, q):
            H[:, a, b] = H[:, b, a] = np.sum(ratios * differences[a] * differences[b], axis=1)
    H += (total_weight - ratios.sum(axis=1))[:, None, None] * np.eye(q)
    curvature, axes = np.linalg.eigh(H / total_weight[:, None, None])
    curvature = np.maximum(np.abs(curvature), _MIN_CURVATURE)
    step = np.einsum("mij,mj,mkj,mk->mi", axes, 1.0 / curvature, axes, g)
    return value, g, -step
