"""Many duals of two classes each, whose K is not held: one pair of classes after the other.

    K of a pair  =  k(X_a, X_a)   k(X_a, X_b)        the diagonal blocks serve many pairs,
                                  k(X_b, X_b)        the other one this pair alone

Of these rows few are ever read: a row is copied together when a step first asks for it.  Pairs are
dealt to threads; what is found does not depend on how.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._runtime import check_threads, jit, run
from ...gram import KernelRows
from ._active_set import Programs
from ._smo_block import take_steps

__all__ = ["Apart"]

_STEPS = 10_000  # in one call, which nothing interrupts
_SHARE = 0.5  # a violation just below tol may be one of all free variables


class Apart:
    """Minima of some programs, to tol; a program that needs more steps is left where it is.

    Parameters
    ----------
    rows : KernelRows
    pairs : ndarray of shape (programs, 2)
        Which classes; a program has a variable for each of their points, in this order.
    lanes : int
        How many threads at most have room for a K of their own.
    given, start, tol, max_iter
        As of `Together`, and so are the attributes.
    """

    def __init__(
        self,
        rows: KernelRows,
        pairs: np.ndarray,
        lanes: int,
        given: Programs,
        start: np.ndarray,
        tol: float,
        max_iter: int,
    ) -> None:
        self.v, self.g = start.copy(), np.empty(len(start))
        sizes, met = np.array(rows.sizes), np.zeros((len(given), 4))
        most, wide = int(given.sizes.max()), int(sizes[pairs].prod(axis=1).max())
        steps = _STEPS if max_iter < 0 else min(_STEPS, max_iter)
        own = {a: np.empty((rows.sizes[a], rows.sizes[a])) for a in np.unique(pairs).tolist()}
        run(lambda a: rows.between(a, a, own[a]), own, rows.n_threads)
        left = iter(enumerate(pairs.tolist()))

        def lane(_: int) -> Iterator[None]:
            memory, inner, work = np.empty(wide), np.empty((most, most)), np.empty((5, most))
            for p, (a, b) in left:
                yield
                shape = rows.sizes[a], rows.sizes[b]
                T = rows.between(a, b, memory[: shape[0] * shape[1]].reshape(shape))
                starts, box = given.starts[2 * p : 2 * p + 3], (given.lower, given.upper)
                blocks, limits = (own[a], own[b], T), (_SHARE * tol, steps)
                found = given.linear, *box, self.v, self.g, met[p : p + 1]
                minimize_pair(*blocks, given.rows, starts, *found, *limits, inner, work)

        run(lane, range(min(lanes, check_threads(rows.n_threads))), rows.n_threads)
        entries = sum(K.size for K in own.values()) + int(sizes[pairs].prod(axis=1).sum())
        rows.entries += entries
        self.steps, self.bent = met[:, 0].astype(np.int64), met[:, 2].astype(np.int64)
        self.curvature = met[:, 1]
        met = given.look(self.v, self.g)
        self.violation, self.multipliers = met[:, 0], met[:, 1:]


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
    met: Any,
    goal: float,
    max_steps: int,
    inner: Any,
    work: Any,
) -> None:
    """Take steps from v, and set g <- K v + q; A, B and T are the blocks of K."""
    first, cut, size = starts[0], len(A), starts[2] - starts[0]
    G, above, below, diagonal, known = work[0], work[1], work[2], work[3], work[4]
    for a in range(size):
        s = first + a
        known[a], diagonal[a] = 0.0, A[a, a] if a < cut else B[a - cut, a - cut]
        above[a] = 0.0 if v[s] < upper[s] else np.inf
        below[a] = 0.0 if v[s] > lower[s] else np.inf
    for turn in range(2):
        for a in range(size):
            G[a] = linear[first + a]
        for b in range(size):
            x = v[first + b]
            if x != 0.0:
                copy_row(A, B, T, b, inner, known)
                row = inner[b]
                for a in range(size):
                    G[a] += x * row[a]
        wanted = 0
        while turn == 0 and wanted >= 0:
            copy_row(A, B, T, wanted, inner, known)
            wanted = take_steps(
                *(inner, points, starts, g, v, lower, upper),
                *(goal, max_steps, 1e-12, inner, work, met, False),
            )
    for a in range(size):
        g[first + a] = G[a]


@jit()
def copy_row(A: Any, B: Any, T: Any, a: int, inner: Any, known: Any) -> None:
    """Set a row of `inner` to that of K, unless it is known."""
    row, cut = inner[a], len(A)
    if known[a] == 0.0:
        known[a] = 1.0
        for b in range(cut):
            row[b] = A[a, b] if a < cut else T[b, a - cut]
        for b in range(len(B)):
            row[cut + b] = T[a, b] if a < cut else B[a - cut, b]
