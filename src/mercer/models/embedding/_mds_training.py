"""Multidimensional scaling (MDS): coordinates whose distances approximate given dissimilarities.

The stress is the deviation of the distances from the dissimilarities,

    S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2

z_i are the coordinates, delta_ij the dissimilarities, and w_ij the weights of the pairs.  With w =
1 this is the raw stress of metric MDS, divided by its value when all points coincide.  With w = 1 /
delta it is Sammon's stress.  Only one triangle of the symmetric matrices is stored.

Metric MDS minimises S by L-BFGS over u_i = sqrt(v_i) z_i, with v_i = sum_j w_ij.  In these
variables, with equal weights, a majorisation step (SMACOF) is half the negative gradient.  The
length of that step relative to |u| measures how close a result is to a stationary point,
independently of units; the report contains it as the residual.

New points are added to a fixed embedding by minimising their stress

    s(z) = sum_j w_j (|z - z_j| - delta_j)^2 / sum_j w_j

The minimisation uses Newton steps, in which negative or small curvatures are replaced by positive
ones.  If a Newton step does not decrease s, a majorisation step is used, which always does.  All
new points are updated at the same time.

s has local minima.  The search for each new point starts from its nearest neighbour, and from the
two candidates with the smallest s among some embedded points and their reflections at the centre.
The result with the smallest s is returned, which is usually, but not always, the global minimum.  A
new point with a dissimilarity of 0 to an embedded point gets the coordinates of that point.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    ENTRY_WORK,
    ProgressCallback,
    entry_point,
    jit,
    one_blas_thread,
    ordered_sum,
    warn_caller,
)
from ..._core.linalg import eigh
from ...solvers import Report, Status
from ._embedding_search import RestartResult, fix_signs, minimise_from_starts

_MAX_DENSE_POINTS = 200  # up to this many points, a dense eigensolver replaces ARPACK
_LBFGS_MEMORY = 10  # number of past steps that L-BFGS stores
_DISPLACEMENT = 1e-3  # random displacement along constant axes, relative to the largest spread
_PAIRS_PER_TASK = 2**17  # approximate number of pairs of points in a parallel task
# Tasks are summed in this fixed number of groups, so that the result does not depend on the number
# of threads.
_N_GROUPS = 4
_N_EXTRA_STARTS = 2  # number of starting points in addition to the nearest neighbour
_N_CANDIDATES = 32  # number of embedded points among which extra starting points are selected
_MIN_CURVATURE = 0.1  # lower limit of a curvature, relative to that of the majorising function


class Stress:
    """The stress S of an embedding and its gradient, as a function of the coordinates Z.

        S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities of all pairs, in the order of SciPy's `pdist`.
    weights : ndarray of shape (n (n - 1) / 2,) or None, default=None
        Weights of the pairs, in the same order; None means 1 for all pairs.  1 / delta gives
        Sammon's stress, which emphasises small dissimilarities; 0 ignores a pair.

    Attributes
    ----------
    n : int
        The number of points.
    mass : ndarray of shape (n,)
        For each point, the sum of the weights of its pairs.
    total : float
        sum_(i<j) w_ij delta_ij^2, the denominator of S.

    See Also
    --------
    metric_mds : Minimise the stress.
    MetricMDS : The estimator.

    References
    ----------
    Kruskal, "Multidimensional scaling by optimizing goodness of fit to a nonmetric hypothesis",
    Psychometrika 29, 1964.

    Sammon, "A nonlinear mapping for data structure analysis", IEEE Transactions on Computers 18,
    1969.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import Stress
    >>> S = Stress(np.array([3.0, 4.0, 5.0]))
    >>> value, slope = S(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]))
    >>> value, bool(np.all(slope == 0.0))
    (0.0, True)
    >>> S(np.zeros((3, 2)))[0]
    1.0
    """

    def __init__(self, delta: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.n = round(0.5 + np.sqrt(0.25 + 2 * len(delta)))
        self.delta, self.weights = delta, weights
        self._w = np.empty(0) if weights is None else weights
        self.mass = self._sums(self._w) if len(self._w) else np.full(self.n, self.n - 1.0)
        w = 1.0 if weights is None else weights
        self.total = float(np.sum(w * delta * delta))
        # Split the rows into tasks with about equal numbers of pairs.
        n_tasks = max(1, len(delta) // _PAIRS_PER_TASK)
        ends = self.n * (1.0 - np.sqrt(1.0 - np.arange(n_tasks + 1) / n_tasks))
        ends = np.round(ends).astype(int)
        self._rows = [(int(a), int(b)) for a, b in pairwise(ends) if a < b]

    def __call__(self, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the stress S and its gradient.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
            The coordinates.

        Returns
        -------
        value : float
            The stress, 0 for a perfect embedding and 1 if all points coincide.
        gradient : ndarray of shape (n, q)
            Its derivatives in Z.
        """
        columns = np.ascontiguousarray(Z.T)

        def term(rows: tuple[int, int]) -> np.ndarray:
            total = np.zeros(columns.size + 1)
            G, scratch = total[1:].reshape(columns.shape), np.empty(self.n)
            total[0] = _add_pairs(self.delta, self._w, columns, *rows, G, scratch)
            return total

        work = ENTRY_WORK * len(self.delta)
        total = ordered_sum(term, self._rows, _N_GROUPS, work=work) / self.total
        return float(total[0]), 2.0 * total[1:].reshape(columns.shape).T

    def _sums(self, pairs: np.ndarray) -> np.ndarray:
        """Return, for each point, the sum of a pairwise quantity over all pairs with this point."""
        total = np.zeros(self.n)
        start = 0
        for i in range(self.n - 1):
            row = pairs[start : start + self.n - 1 - i]
            total[i] += row.sum()
            total[i + 1 :] += row
            start += len(row)
        return total


@jit("reassoc", "nsz")
def _add_pairs(delta, weights, Z, first, last, G, row):  # type: ignore[no-untyped-def]
    """Add half of the gradient of the stress to G, for the pairs i < j with first <= i < last.

    Returns the sum of their weighted squared residuals.  `row` is scratch memory.
    """
    q, n = Z.shape
    total = 0.0
    for i in range(first, last):
        start, m = i * n - (i * (i + 1)) // 2, n - 1 - i
        targets, w = delta[start : start + m], weights[start : start + m]
        for k in range(m):
            row[k] = 0.0
        for c in range(q):
            z, others = Z[c, i], Z[c, i + 1 :]
            for k in range(m):
                row[k] += (others[k] - z) * (others[k] - z)
        # Coinciding points have no direction; adding 1e-300 makes their gradient 0 instead of NaN.
        if len(weights):
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - targets[k]
                total += w[k] * r * r
                row[k] = w[k] * r / (d + 1e-300)
        else:
            for k in range(m):
                d = np.sqrt(row[k])
                r = d - targets[k]
                total += r * r
                row[k] = r / (d + 1e-300)
        for c in range(q):
            z, others, g, sum_i = Z[c, i], Z[c, i + 1 :], G[c, i + 1 :], 0.0
            for k in range(m):
                term = row[k] * (others[k] - z)
                g[k] += term
                sum_i += term
            G[c, i] -= sum_i
    return total


@_add_pairs.without_numba
def _add_pairs_numpy(delta, weights, Z, first, last, G, row):  # type: ignore[no-untyped-def]
    n, total = Z.shape[1], 0.0
    for i in range(first, last):
        start, m = i * n - (i * (i + 1)) // 2, n - 1 - i
        t = Z[:, i + 1 :] - Z[:, i, None]
        d = np.sqrt(np.sum(t * t, axis=0))
        r = d - delta[start : start + m]
        w = weights[start : start + m] if len(weights) else 1.0
        total += np.sum(w * r * r)
        t *= w * r / (d + 1e-300)
        G[:, i + 1 :] += t
        G[:, i] -= t.sum(axis=1)
    return total


class MDSResult(NamedTuple):
    """The coordinates Z, the final stress of each run, and the report of the solver."""

    Z: np.ndarray
    stresses: np.ndarray
    report: Report


@entry_point
def classical_mds(delta: np.ndarray, q: int) -> np.ndarray:
    """Return the coordinates of classical MDS: kernel PCA of the matrix -delta^2 / 2.

    For Euclidean distances it is PCA.  It is computed directly, without local minima, and provides
    the start of `metric_mds`.

    Parameters
    ----------
    delta : ndarray of shape (n (n - 1) / 2,)
        Dissimilarities of all pairs, in the order of SciPy's `pdist`.
    q : int
        The number of dimensions of the embedding.

    Returns
    -------
    ndarray of shape (n, q)
        The coordinates, sorted by decreasing variance.

    See Also
    --------
    metric_mds : Minimise the stress.
    KernelPCA : The same for the distances in the feature space of a kernel.

    References
    ----------
    Torgerson, "Multidimensional scaling: Theory and method", Psychometrika 17, 1952.

    Williams, "On a connection between kernel PCA and metric multidimensional scaling", Machine
    Learning 46, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.models.embedding import classical_mds
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    >>> np.allclose(pdist(classical_mds(pdist(X), 2)), pdist(X))
    True
    """
    B = squareform(delta)
    np.multiply(B, B, out=B)
    B *= -0.5
    mean = B.mean(axis=0)
    B -= mean
    B -= (mean - mean.mean())[:, None]
    n = len(B)
    with one_blas_thread:
        try:
            if n <= max(_MAX_DENSE_POINTS, 3 * q):
                raise ArpackError(0)
            start = np.random.default_rng(0).standard_normal(n)
            values, vectors = eigsh(B, k=q, which="LA", v0=start, tol=1e-4, maxiter=20 * n)
        except ArpackError:  # ARPACK did not converge, or was skipped because of few points
            subset = [max(0, n - q), n - 1]
            values, vectors = eigh(B, subset_by_index=subset, overwrite_a=True, check_finite=False)
    order = np.argsort(-values)[:q]
    Z = np.zeros((n, q))
    Z[:, : len(order)] = fix_signs(vectors[:, order]) * np.sqrt(np.maximum(values[order], 0.0))
    return Z


@entry_point
def metric_mds(
    S: Stress,
    q: int,
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    rng: np.random.Generator | None = None,
    log: ProgressCallback | None = None,
) -> MDSResult:
    """Return the coordinates of metric MDS, which minimise the stress S.

    The first run starts from classical MDS, the other n_init - 1 runs from random coordinates.  The
    result of the best run is centred and rotated to its principal axes.

    Parameters
    ----------
    S : Stress
        The stress as a function of the coordinates.
    q : int
        The number of dimensions of the embedding.
    n_init : int, default=1
        The number of runs.  The stress has local minima; more runs may find a lower one.
    tol : float, default=1e-5
        A run has converged when a majorisation step would change the coordinates by less than this
        relative amount.
    max_iter : int, default=1000
        The maximum number of L-BFGS steps per run.
    rng : Generator, optional
        The random generator; by default, one with the seed 0.
    log : function, optional
        Function that is called with a progress message after each step.

    Returns
    -------
    MDSResult
        The coordinates `Z` of shape (n, q), the `stresses` of all runs, of shape (n_init,), and the
        `report`.

    See Also
    --------
    MetricMDS : The estimator.
    classical_mds : Coordinates in closed form.

    References
    ----------
    Kruskal, "Multidimensional scaling by optimizing goodness of fit to a nonmetric hypothesis",
    Psychometrika 29, 1964.

    Borg and Groenen, "Modern Multidimensional Scaling", 2nd edition, Springer, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.models.embedding import Stress, metric_mds
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> result = metric_mds(Stress(pdist(X)), 2)
    >>> np.allclose(pdist(result.Z), pdist(X), atol=1e-3)
    True
    """
    problem = LinearStress(S)
    run = minimise_stress(problem, q, n_init, tol, max_iter, rng, log)
    Z = problem.coordinates(run.best.x.reshape(-1, q))
    Z -= Z.mean(axis=0)
    return MDSResult(Z @ principal_axes(Z), run.values, run.report)


class LinearStress:
    """The stress of coordinates Z = D U C that are linear in parameters C, with a ridge penalty.

        S(D U C) + sum_kc penalty_k C_kc^2,    D_ii = sqrt(total / mass_i)

    D makes a majorisation step half the negative gradient in C, if the weights of the pairs are
    equal and U^T U + diag(penalty) is the identity.

    Parameters
    ----------
    S : Stress
        The stress as a function of Z.
    U : ndarray of shape (n, r) or None, default=None
        The matrix U; None means the identity.
    penalty : ndarray of shape (r, 1) or float, default=0
        The penalty of each row of C.
    """

    def __init__(
        self, S: Stress, U: np.ndarray | None = None, penalty: np.ndarray | float = 0.0
    ) -> None:
        self.S, self.U, self.penalty = S, U, penalty
        self.unit = np.sqrt(S.total / S.mass)[:, None]

    def coordinates(self, C: np.ndarray) -> np.ndarray:
        """Return the coordinates Z = D U C."""
        return self.unit * (C if self.U is None else self.U @ C)

    def start(self, Z: np.ndarray) -> np.ndarray:
        """Return the parameters C whose coordinates approximate Z: a ridge regression on Z."""
        return Z / self.unit if self.U is None else self.U.T @ (Z / self.unit)

    def __call__(self, C: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the penalised stress and its gradient in C."""
        value, G = self.S(self.coordinates(C))
        G *= self.unit
        gradient = G if self.U is None else self.U.T @ G
        return value + float(np.sum(self.penalty * C * C)), gradient + 2.0 * self.penalty * C


def minimise_stress(
    problem: LinearStress,
    q: int,
    n_init: int,
    tol: float,
    max_iter: int,
    rng: np.random.Generator | None,
    log: ProgressCallback | None,
) -> RestartResult:
    """Minimise a stress by L-BFGS over C of shape (r, q); the arguments are those of `metric_mds`.

    Warns if the best run has not converged.
    """
    rng, S = np.random.default_rng(0) if rng is None else rng, problem.S
    relative_step = np.inf

    def starts() -> Iterator[np.ndarray]:
        Z = _displace_constant_axes(classical_mds(S.delta, q), rng)
        yield problem.start(Z).ravel()
        for _ in range(n_init - 1):
            scale = np.sqrt(S.total / (S.mass.sum() * q))
            yield problem.start(rng.standard_normal((S.n, q)) * scale).ravel()

    def objective(c: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal relative_step
        value, gradient = problem(c.reshape(-1, q))
        g = gradient.ravel()
        relative_step = 0.5 * float(np.linalg.norm(g)) / max(float(np.linalg.norm(c)), 1e-300)
        return value, g

    def residual(run: OptimizeResult) -> float:
        objective(run.x)  # sets relative_step
        return relative_step

    result = minimise_from_starts(
        objective,
        starts(),
        name="stress",
        max_iter=max_iter,
        memory=_LBFGS_MEMORY,
        residual=residual,
        tol=tol,
        describe=lambda run, step, value: f"run {run} of {n_init}, step {step}: stress {value:.6g}",
        log=log,
        has_converged=lambda: relative_step <= tol,
    )
    if result.report.status is Status.NOT_CONVERGED:
        warn_caller(
            f"L-BFGS stopped after {result.best.nit} steps (max_iter={max_iter}) without "
            f"convergence: a majorisation step would change the coordinates by "
            f"{relative_step:.1e}, relative to their size, which is more than tol={tol:.1e}; raise "
            f"max_iter or tol",
            ConvergenceWarning,
        )
    return result


def principal_axes(Z: np.ndarray) -> np.ndarray:
    """Return the rotation, of shape (q, q), of centred coordinates to their principal axes."""
    return fix_signs(np.linalg.eigh(Z.T @ Z)[1][:, ::-1])


def _displace_constant_axes(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add small random displacements along axes on which all points are 0.

    The gradient of the stress vanishes along these axes, so that L-BFGS would never use them.
    """
    spread = np.sqrt(np.mean(Z * Z, axis=0))
    constant = spread <= _DISPLACEMENT * spread.max()
    moves = rng.standard_normal((len(Z), int(constant.sum())))
    Z[:, constant] += _DISPLACEMENT * spread.max() * moves
    return Z


# --- Embedding of new points.


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
    best_candidates = np.argsort(values, axis=1).T[:_N_EXTRA_STARTS]
    starts = [Z[nearest[moving]], *(candidates[i] for i in best_candidates)]
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

    def evaluate(z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        return _stress_and_steps(z, delta[rows], Z, w[rows], total_weight[rows])

    moving = np.arange(len(coordinates))
    value, g, step = evaluate(coordinates, moving)
    for _ in range(max_iter):
        if not len(moving):
            break
        trial = coordinates[moving] + step
        trial_value, trial_g, trial_step = evaluate(trial, moving)
        increased = trial_value > value
        if increased.any():
            trial[increased] = coordinates[moving][increased] - g[increased]
            retried = evaluate(trial[increased], moving[increased])
            trial_value[increased], trial_g[increased], trial_step[increased] = retried
        not_converged = np.linalg.norm(trial - coordinates[moving], axis=1) > min_step
        coordinates[moving] = trial
        updated = (moving, trial_value, trial_g, trial_step)
        moving, value, g, step = (array[not_converged] for array in updated)
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
    g = np.stack([np.sum(residuals * a, axis=1) for a in differences], axis=1)
    g /= total_weight[:, None]
    H = np.empty((m, q, q))
    for a in range(q):
        for b in range(a, q):
            H[:, a, b] = H[:, b, a] = np.sum(ratios * differences[a] * differences[b], axis=1)
    H += (total_weight - ratios.sum(axis=1))[:, None, None] * np.eye(q)
    curvature, axes = np.linalg.eigh(H / total_weight[:, None, None])
    curvature = np.maximum(np.abs(curvature), _MIN_CURVATURE)
    step = np.einsum("mij,mj,mkj,mk->mi", axes, 1.0 / curvature, axes, g)
    return value, g, -step
