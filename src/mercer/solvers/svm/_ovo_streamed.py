"""SMO for all pairs of classes, one pair at a time, if K of all points is too large to store.

    K of a pair  =  k(X_a, X_a)   k(X_a, X_b)        the diagonal blocks are used for many pairs,
                                  k(X_b, X_b)        the other block only for this pair

A step reads only few rows of K, and a row is assembled from these blocks when it is first needed.
Pairs are distributed over threads; the results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core import check_threads, jit, run_in_threads
from ...gram import KernelRows
from ._refine_numpy import QPBatch
from ._smo_steps import take_steps

__all__ = ["StreamedSMO"]

# Maximum number of SMO steps per pair in one compiled call, which cannot be interrupted.
_STEPS_PER_CALL = 10_000
# SMO stops at this fraction of tol, because the violation may be larger when g is recomputed.
_TOL_FRACTION = 0.5


class StreamedSMO:
    """Solve several two-class quadratic programs to accuracy `tol`, one at a time.

    The programs are solved on construction.  A program that needs more steps than one call allows
    is left unfinished.  The attributes are those of `BatchedSMO`.

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
        self.v, self.g = start.copy(), np.empty(len(start))
        sizes, results = np.array(rows.sizes), np.zeros((len(programs), 4))
        max_size, max_block = int(programs.sizes.max()), int(sizes[pairs].prod(axis=1).max())
        max_steps = _STEPS_PER_CALL if max_iter < 0 else min(_STEPS_PER_CALL, max_iter)
        diagonal_blocks = {
            a: np.empty((rows.sizes[a], rows.sizes[a])) for a in np.unique(pairs).tolist()
        }
        run_in_threads(
            lambda a: rows.between(a, a, diagonal_blocks[a]), diagonal_blocks, rows.n_threads
        )
        remaining = iter(enumerate(pairs.tolist()))

        def solve_pairs(_: int) -> Iterator[None]:
            block_memory, inner, work = (
                np.empty(max_block),
                np.empty((max_size, max_size)),
                np.empty((5, max_size)),
            )
            for p, (a, b) in remaining:
                yield
                shape = rows.sizes[a], rows.sizes[b]
                T = rows.between(a, b, block_memory[: shape[0] * shape[1]].reshape(shape))
                starts, box = programs.starts[2 * p : 2 * p + 3], (programs.lower, programs.upper)
                blocks, limits = (
                    (diagonal_blocks[a], diagonal_blocks[b], T),
                    (_TOL_FRACTION * tol, max_steps),
                )
                state = programs.linear, *box, self.v, self.g, results[p : p + 1]
                minimize_pair(*blocks, programs.rows, starts, *state, *limits, inner, work)

        run_in_threads(
            solve_pairs, range(min(concurrent_pairs, check_threads(rows.n_threads))), rows.n_threads
        )
        entries = sum(K.size for K in diagonal_blocks.values()) + int(
            sizes[pairs].prod(axis=1).sum()
        )
        rows.entries += entries
        self.steps, self.negative_steps = (
            results[:, 0].astype(np.int64),
            results[:, 2].astype(np.int64),
        )
        self.curvature = results[:, 1]
        results = programs.kkt_residuals(self.v, self.g)
        self.violation, self.multipliers = results[:, 0], results[:, 1:]


@jit("nnan", "nsz", "reassoc")
def minimize_pair(
    A: Any,
    B: Any,
    T: Any,
    points: Any,
    starts: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    v: Any,
    g: Any,
    results: Any,
    goal: float,
    max_steps: int,
    inner: Any,
    work: Any,
) -> None:
    """Take SMO steps from v for one pair of classes, and set g = K v + q.

    A and B are the diagonal blocks of K, T is the off-diagonal block.  For the other arguments, see
    `take_steps`.
    """
    first, split, size = starts[0], len(A), starts[2] - starts[0]
    G, blocked_up, blocked_down, diagonal, known = work[0], work[1], work[2], work[3], work[4]
    for a in range(size):
        s = first + a
        known[a], diagonal[a] = 0.0, A[a, a] if a < split else B[a - split, a - split]
        blocked_up[a] = 0.0 if v[s] < upper[s] else np.inf
        blocked_down[a] = 0.0 if v[s] > lower[s] else np.inf
    for attempt in range(2):
        for a in range(size):
            G[a] = linear[first + a]
        for b in range(size):
            value = v[first + b]
            if value != 0.0:
                copy_row(A, B, T, b, inner, known)
                row = inner[b]
                for a in range(size):
                    G[a] += value * row[a]
        wanted = 0
        while attempt == 0 and wanted >= 0:
            copy_row(A, B, T, wanted, inner, known)
            wanted = take_steps(
                *(inner, points, starts, g, v, lower, upper),
                *(goal, max_steps, 1e-12, inner, work, results, False),
            )
    for a in range(size):
        g[first + a] = G[a]


@jit()
def copy_row(A: Any, B: Any, T: Any, a: int, inner: Any, known: Any) -> None:
    """Copy row a of K from its blocks A, B and T to `inner`, unless it is there already."""
    row, split = inner[a], len(A)
    if known[a] == 0.0:
        known[a] = 1.0
        for b in range(split):
            row[b] = A[a, b] if a < split else T[b, a - split]
        for b in range(len(B)):
            row[split + b] = T[a, b] if a < split else B[a - split, b]
