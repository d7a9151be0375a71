"""SMO for many small dual problems: on one stored K, or on the K of one pair of classes at a time.

If all of K can be stored, `BatchedSMO` alternates between two stages, each a single compiled call:

    1. SMO steps for each program in turn.
    2. The gradient g = K v + q is recomputed, and v refined by solving the linear equations of its
       free variables.

Otherwise, `StreamedSMO` evaluates the K of one pair of classes at a time:

    K of a pair  =  k(X_a, X_a)   k(X_a, X_b)        the diagonal blocks are used for many pairs,
                                  k(X_b, X_b)        the other block only for this pair

A step reads only few rows of K, and a row is assembled from these blocks when it is first needed.
Pairs are distributed over threads; the results do not depend on the number of threads.

A program that needs many more steps than the others is left unfinished; the caller continues it
separately.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._core import check_threads, jit, run_in_threads
from ...gram import KernelRows
from ._refinement import MAX_COMPILED_FREE, QPBatch, refine
from ._smo_steps import BoxedGroups, run_steps, take_steps

# Maximum number of SMO steps per program in one compiled call, which cannot be interrupted.
_STEPS_PER_CALL = 10_000
# `StreamedSMO` stops at this fraction of tol, because the violation may be larger when g is
# recomputed.
_TOL_FRACTION = 0.5
# A program is not refined further if its violation, relative to the gradient, is at most this.
_EXACT_VIOLATION = 1e-11
# Programs with too many free variables for the compiled refinement are refined with LAPACK, unless
# there are more programs than this.  For more, the solutions to `tol` suffice.
_MAX_LAPACK_PROGRAMS = 16


class SMOBatch:
    """The solutions of several quadratic programs.

    Parameters
    ----------
    programs : QPBatch
    start : ndarray
        A feasible start of all variables.

    Attributes
    ----------
    v, g : ndarray
        The variables, and their gradients K v + q.
    violation : ndarray of shape (programs,)
    multipliers : ndarray of shape (programs, 2)
    steps, negative_steps : ndarray of int of shape (programs,)
        The number of steps, and the number of steps with negative curvature.
    curvature : ndarray of shape (programs,)
        The most negative curvature, or 0.
    """

    def __init__(self, programs: QPBatch, start: np.ndarray) -> None:
        self.programs, count = programs, len(programs)
        self.v, self.g = start.copy(), programs.linear.copy()
        self.violation, self.multipliers = np.full(count, np.inf), np.zeros((count, 2))
        self.steps, self.negative_steps = np.zeros((2, count), dtype=np.int64)
        self.curvature = np.zeros(count)

    def _count_steps(self, results: np.ndarray, selected: np.ndarray | slice) -> None:
        """Add the numbers of steps in the results of `run_steps` for the selected programs."""
        self.steps[selected] += results[:, 0].astype(np.int64)
        self.negative_steps[selected] += results[:, 2].astype(np.int64)
        self.curvature[selected] = np.minimum(self.curvature[selected], results[:, 1])


class BatchedSMO(SMOBatch):
    """Solve several quadratic programs on one K, and refine the solutions to full precision.

    The programs are solved on construction.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix, in float64.
    programs, start
        As in `SMOBatch`.
    tol : float
        Violation at which SMO stops.
    max_iter : int
        Maximum number of steps per program; -1 for 10 000, the limit of one call.
    """

    def __init__(
        self, K: np.ndarray, programs: QPBatch, start: np.ndarray, tol: float, max_iter: int
    ) -> None:
        super().__init__(programs, start)
        self.K, self.tol = K, tol
        if start.any():
            self.g = programs.gradient(K, start)
        if not np.isfinite(self.g).all():
            return
        everything = np.ones(len(programs), dtype=bool)
        self._advance(everything, tol, _steps_per_call(max_iter))
        # Refinement may take as many steps as the solution to tol did.
        limit = 2 * self.steps
        if max_iter >= 0:
            limit = np.minimum(limit, max_iter)
        unrefined = self._needs_refinement(programs, self.g, self.violation, self.negative_steps)
        unrefined &= self.steps < limit
        if unrefined.any():
            goal = max(0.01 * float(self.violation[unrefined].min()), _EXACT_VIOLATION)
            self._advance(unrefined, goal, int((limit - self.steps)[unrefined].max()))

    def _advance(self, chosen: np.ndarray, goal: float, max_steps: int) -> None:
        """Take SMO steps in the chosen programs and refine them; keep results that are better."""
        everything = slice(None)  # a slice is faster than an array of all indices
        indices: np.ndarray | slice = everything
        selected: np.ndarray | slice = everything
        programs = self.programs
        if not chosen.all():
            selected, (programs, indices) = chosen, programs.subset(chosen)
        g, v = self.g[indices].copy(), self.v[indices].copy()
        results = run_steps(self.K, programs.boxes, g, v, goal, max_steps)
        self._count_steps(results, selected)
        results = self._refine(programs, v, g, results[:, 3], self.negative_steps[selected])
        better = results[:, 0] < self.violation[selected]
        if indices is everything and better.all():
            self.v, self.g, self.violation, self.multipliers = v, g, results[:, 0], results[:, 1:]
            return
        accepted = np.repeat(better, programs.sizes)
        self.v[indices] = np.where(accepted, v, self.v[indices])
        self.g[indices] = np.where(accepted, g, self.g[indices])
        improved = np.arange(len(self.programs))[selected][better]
        self.violation[improved] = results[better, 0]
        self.multipliers[improved] = results[better, 1:]

    def _refine(
        self,
        programs: QPBatch,
        v: np.ndarray,
        g: np.ndarray,
        violation: np.ndarray,
        negative_steps: np.ndarray,
    ) -> np.ndarray:
        """Recompute g and refine v, in place; return the violations and multipliers.

        The result has shape (programs, 3): the violation, and the multipliers of both groups.

        `violation` is the violation of v.  Programs with negative curvature, where
        `negative_steps` is not 0, are not refined.
        """
        if len(programs) == 1:
            selected = self._needs_refinement(programs, g, violation, negative_steps)
            v[:], g[:], results = self._refine_one(programs, v, g, violation[0], selected[0])
            return results
        limit = np.where(negative_steps, -np.inf, self.tol)
        results = programs.refine_all(self.K, v, g, limit, _EXACT_VIOLATION)
        if len(programs) <= _MAX_LAPACK_PROGRAMS:
            n_free = np.add.reduceat(programs.free(v), programs.program_starts, dtype=int)
            selected = self._needs_refinement(programs, g, results[:, 0], negative_steps)
            for p in np.flatnonzero(selected & (n_free > MAX_COMPILED_FREE)):
                one, own = programs.subset(np.arange(len(programs)) == p)
                v[own], g[own], results[p] = self._refine_one(one, v[own], g[own], results[p, 0])
        return results

    def _refine_one(
        self,
        program: QPBatch,
        v: np.ndarray,
        g: np.ndarray,
        violation: float,
        selected: bool = True,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return v, refined if that reduces the violation, its gradient, and `kkt_residuals`."""
        if selected:
            refined = refine(self.K, program, v, g)
            g = program.gradient(self.K, refined)
            results = program.kkt_residuals(refined, g)
            if results[0, 0] < violation:
                return refined, g, results
        g = program.gradient(self.K, v)
        return v, g, program.kkt_residuals(v, g)

    def _needs_refinement(
        self,
        programs: QPBatch,
        g: np.ndarray,
        violation: np.ndarray,
        negative_steps: np.ndarray,
    ) -> np.ndarray:
        """Return a mask of the programs that have converged to tol, but not to full precision."""
        selected: np.ndarray = violation <= self.tol
        selected &= (violation > _EXACT_VIOLATION) & (negative_steps == 0)
        if selected.any():
            size = np.maximum.reduceat(np.abs(g), programs.program_starts)
            selected &= violation > _EXACT_VIOLATION * (1.0 + size)
        return selected


class StreamedSMO(SMOBatch):
    """Solve several two-class quadratic programs to accuracy `tol`, one at a time.

    The programs are solved on construction.

    Parameters
    ----------
    rows : KernelRows
    pairs : ndarray of shape (programs, 2)
        The two classes of each program, which has one variable for each of their points, in this
        order.
    concurrent_pairs : int
        The largest number of threads for which memory suffices; each thread stores the K of a pair.
    programs, start, tol, max_iter
        As for `BatchedSMO`.
    """

    def __init__(
        self,
        rows: KernelRows,
        pairs: np.ndarray,
        concurrent_pairs: int,
        programs: QPBatch,
        start: np.ndarray,
        tol: float,
        max_iter: int,
    ) -> None:
        super().__init__(programs, start)
        sizes, results = np.array(rows.sizes), np.zeros((len(programs), 4))
        block_sizes, max_size = sizes[pairs].prod(axis=1), int(programs.sizes.max())
        limits = _TOL_FRACTION * tol, _steps_per_call(max_iter)
        diagonal = {a: np.empty((sizes[a], sizes[a])) for a in np.unique(pairs).tolist()}
        run_in_threads(lambda a: rows.between(a, a, diagonal[a]), diagonal, rows.n_threads)
        remaining = iter(enumerate(pairs.tolist()))

        def solve_pairs(_: int) -> Iterator[None]:
            block_memory, work = np.empty(int(block_sizes.max())), np.empty((5, max_size))
            inner = np.empty((max_size, max_size))
            for p, (a, b) in remaining:
                yield
                T = block_memory[: block_sizes[p]].reshape(sizes[a], sizes[b])
                blocks = diagonal[a], diagonal[b], rows.between(a, b, T)
                boxes = programs.boxes._replace(starts=programs.starts[2 * p : 2 * p + 3])
                state = programs.linear, self.v, self.g, results[p : p + 1]
                _minimize_pair(*blocks, boxes, *state, *limits, inner, work)

        n_lanes = min(concurrent_pairs, check_threads(rows.n_threads))
        run_in_threads(solve_pairs, range(n_lanes), rows.n_threads)
        rows.entries += sum(K.size for K in diagonal.values()) + int(block_sizes.sum())
        self._count_steps(results, slice(None))
        results = programs.kkt_residuals(self.v, self.g)
        self.violation, self.multipliers = results[:, 0], results[:, 1:]


def _steps_per_call(max_iter: int) -> int:
    return _STEPS_PER_CALL if max_iter < 0 else min(_STEPS_PER_CALL, max_iter)


@jit("nnan", "nsz", "reassoc")
def _minimize_pair(
    A: np.ndarray,
    B: np.ndarray,
    T: np.ndarray,
    boxes: BoxedGroups,
    linear: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    results: np.ndarray,
    goal: float,
    max_steps: int,
    inner: np.ndarray,
    work: np.ndarray,
) -> None:
    """Take SMO steps from v for one pair of classes, and set g = K v + q.

    A and B are the diagonal blocks of K, T is the off-diagonal block.  For the other arguments, see
    `take_steps`.
    """
    first, split, size = boxes.starts[0], len(A), boxes.starts[2] - boxes.starts[0]
    G, blocked_up, blocked_down, diagonal, known = work[0], work[1], work[2], work[3], work[4]
    for a in range(size):
        s = first + a
        known[a], diagonal[a] = 0.0, A[a, a] if a < split else B[a - split, a - split]
        blocked_up[a] = 0.0 if v[s] < boxes.upper[s] else np.inf
        blocked_down[a] = 0.0 if v[s] > boxes.lower[s] else np.inf
    for attempt in range(2):
        for a in range(size):
            G[a] = linear[first + a]
        for b in range(size):
            value = v[first + b]
            if value != 0.0:
                _copy_row(A, B, T, b, inner, known)
                row = inner[b]
                for a in range(size):
                    G[a] += value * row[a]
        wanted = 0
        while attempt == 0 and wanted >= 0:
            _copy_row(A, B, T, wanted, inner, known)
            limits = goal, max_steps, 1e-12
            wanted = take_steps(inner, boxes, g, v, *limits, inner, work, results, False)
    for a in range(size):
        g[first + a] = G[a]


@jit()
def _copy_row(
    A: np.ndarray, B: np.ndarray, T: np.ndarray, a: int, inner: np.ndarray, known: np.ndarray
) -> None:
    """Copy row a of K from its blocks A, B and T to `inner`, unless it is there already."""
    row, split = inner[a], len(A)
    if known[a] == 0.0:
        known[a] = 1.0
        for b in range(split):
            row[b] = A[a, b] if a < split else T[b, a - split]
        for b in range(len(B)):
            row[split + b] = T[a, b] if a < split else B[a - split, b]
