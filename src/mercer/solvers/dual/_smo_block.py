"""Sequential minimal optimisation inside a working set whose block of K is at hand.

Two variables of a group move by t in opposite directions, so that their sum stays:

    i = argmin g over v < upper,     j = argmax (g_j - g_i)^2 / c_ij  over v > lower, g_j > g_i,
    c_ij = K_ii + K_jj - 2 K_ij,     t = min((g_j - g_i) / c_ij, upper_i - v_i, v_j - lower_j)

and g += t (K_i - K_j).  The choice of j maximises what the move gains (Fan, Chen & Lin 2005).

A step is two passes over the working set: one brings g up to date and finds i, the other finds j.
What may not move is put out of reach by adding infinity.  Both passes find the extreme of each run
of 32 entries first, by vector instructions, and then its place in the one run that has it.  Of
equals the last one is taken, as LIBSVM does.

All of that is one flat function (`take_steps`) on whole runs, without slices, which is quick to
compile.  In a large block only the variables at a bound that violate the conditions most take part
in a round of steps, beside all that are free: they are copied together, so that a step costs as
little as they.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..._runtime import jit, larger, smaller
from ...gram import add_rows

__all__ = ["solve_block", "take_steps"]

_RUN = 32
_FEW = 640  # so many variables take part all the time
_STEPS_PER_ROUND = 256  # at least, before the variables that take part are chosen again
_CROWD = 128  # so many variables of either bound take part
_LEAST_CURVATURE = 1e-12  # relative to K; a smaller or negative c_ij is replaced by it


def solve_block(
    K: np.ndarray,
    g: np.ndarray,
    v: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    starts: np.ndarray,
    accuracy: float,
    fraction: float,
    max_steps: int,
) -> tuple[int, float, float, int]:
    """Move v until the violation is below accuracy, or a fraction of what it was.

    Parameters
    ----------
    K : ndarray of shape (s, s)
    g, v : ndarray of shape (s,)
        Overwritten.
    lower, upper : ndarray of shape (s,)
    starts : ndarray of int
        Where each group, of one or two, starts, and s.
    accuracy, fraction : float
    max_steps : int

    Returns
    -------
    steps : int
    violation : float
        What is left of it.
    curvature : float
        The most negative c_ij met, or 0.
    bent : int
        In how many steps c_ij was negative beyond rounding.
    """
    steps, bent, curvature, goal, charged = 0, 0, 0.0, -1.0, 0
    few = len(g) <= _FEW
    while True:
        W, ends, violation = _active(g, v, lower, upper, starts, few)
        if goal < 0.0:
            goal = max(accuracy, fraction * violation)
        # A round is charged for even if it takes few steps, since nothing interrupts it.
        if violation <= goal or max(steps, charged) >= max_steps:
            return steps, violation, curvature, bent
        most = max_steps - steps
        if not few:
            most = min(max(_STEPS_PER_ROUND, len(W)), most)
        h, w = g[W], v[W]
        done, c, times = run_steps(K, W, ends, h, w, lower[W], upper[W], goal, most)
        steps, bent, curvature = steps + int(done), bent + int(times), min(curvature, float(c))
        charged += max(int(done), min(_STEPS_PER_ROUND, max_steps - steps))
        if done == 0:  # rounding leaves nothing to gain
            return steps, violation, curvature, bent
        if few:
            g[:], v[:] = h, w
        else:
            moved = np.flatnonzero(w != v[W])
            add_rows(K, W[moved], w[moved] - v[W[moved]], g)
            v[W] = w


def _active(
    g: np.ndarray,
    v: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    starts: np.ndarray,
    few: bool,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the variables that take part, where their groups start, and the violation."""
    rises, falls = v < upper, v > lower
    violation, chosen = -np.inf, []
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        part = slice(first, last)
        here, up, down = g[part], rises[part], falls[part]
        low, high = here[down].max(initial=-np.inf), here[up].min(initial=np.inf)
        violation = max(violation, float(low - high))
        if few:
            continue
        some = [np.flatnonzero(up & down)]
        for may, keys in ((up & ~down & (here < low), here), (down & ~up & (here > high), -here)):
            crowd = np.flatnonzero(may)
            if len(crowd) > _CROWD:
                crowd = crowd[np.argpartition(keys[crowd], _CROWD - 1)[:_CROWD]]
            some.append(crowd)
        chosen.append(np.sort(np.concatenate(some)) + first)
    if few:
        return np.arange(len(g)), starts, violation
    return np.concatenate(chosen), np.cumsum([0, *map(len, chosen)]), violation


def run_steps(
    K: np.ndarray,
    points: np.ndarray,
    starts: np.ndarray,
    g: np.ndarray,
    v: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    goal: float,
    max_steps: int,
) -> np.ndarray:
    """Take steps among these variables, of one or two groups; g and v are overwritten.

    Returns the steps taken, the most negative c_ij, and in how many steps it was negative beyond
    rounding.
    """
    # Every group fills whole runs: what is left of its last one holds variables that cannot move.
    ends, parts = [0], []
    for first, last in pairwise(starts.tolist()):
        parts.append((slice(first, last), slice(begin := _RUN * ends[-1], begin + last - first)))
        ends.append(ends[-1] - (first - last) // _RUN)
    n = _RUN * ends[-1]
    members, state = np.full(n, points[0]), np.zeros((7, n))
    G, above, below, diagonal, own, low, up = state
    for here, there in parts:
        members[there] = points[here]
        G[there], own[there], low[there], up[there] = g[here], v[here], lower[here], upper[here]
    above[own >= up] = below[own <= low] = np.inf
    diagonal[:] = K[members, members]
    flat = _LEAST_CURVATURE * max(1e-280, diagonal.max(), -diagonal.min())
    rounding = 1e-5 if K.itemsize == 4 else 1e-12
    inner, met = np.empty((n, n), dtype=K.dtype), np.zeros(3)
    runs = state.reshape(7, -1, _RUN), inner.reshape(n, -1, _RUN)
    both = np.array([0, ends[1], ends[-1]])  # the second group is empty, if there is but one
    take_steps(K, members, inner, state, *runs, both, goal, max_steps, flat, rounding, met)
    for here, there in parts:
        g[here], v[here] = G[there], own[there]
    return met


@jit("nnan", "nsz", "reassoc")
def take_steps(
    K: Any,
    members: Any,
    inner: Any,
    state: Any,
    runs: Any,
    inner_runs: Any,
    ends: Any,
    goal: float,
    max_steps: int,
    flat: float,
    rounding: float,
    met: Any,
) -> None:
    """Take steps until the violation is not above the goal; see `run_steps`.

    `runs` and `inner_runs` are `state` and `inner` themselves, cut into runs.
    """
    for a in range(len(members)):
        row, out = K[members[a]], inner[a]
        for b in range(len(members)):
            out[b] = row[members[b]]
    G, above, below, diagonal = runs[0], runs[1], runs[2], runs[3]
    i, j, t = 0, 0, 0.0
    while True:
        violation, gain, to_i, to_j = -np.inf, 0.0, 0, -1
        for group in range(2):
            least, at = np.inf, 0
            for r in range(ends[group], ends[group + 1]):
                H, A, Ki, Kj = G[r], above[r], inner_runs[i, r], inner_runs[j, r]
                m = np.inf
                for k in range(_RUN):
                    x = H[k] + t * (Ki[k] - Kj[k])
                    H[k] = x
                    m = smaller(m, x + A[k])
                if m <= least:
                    least, at = m, r
            if least == np.inf:
                continue
            leader = at * _RUN
            for k in range(_RUN):
                if G[at, k] + above[at, k] <= least:
                    leader = at * _RUN + k
            d, best = state[3, leader], 0.0
            for r in range(ends[group], ends[group + 1]):
                H, B, R, D = G[r], below[r], inner_runs[leader, r], diagonal[r]
                m = 0.0
                for k in range(_RUN):
                    x = H[k] - B[k] - least
                    violation = larger(violation, x)
                    x = larger(x, 0.0)
                    m = larger(m, x * x / larger(d + D[k] - 2.0 * R[k], flat))
                if m >= best:
                    best, at = m, r
            if best > gain:
                gain, best, to_i = best, 0.0, leader
                for k in range(_RUN):
                    x = larger(G[at, k] - below[at, k] - least, 0.0)
                    x = x * x / larger(d + diagonal[at, k] - 2.0 * inner_runs[leader, at, k], flat)
                    if x >= best:
                        best, to_j = x, at * _RUN + k
        if violation <= goal or met[0] >= max_steps or to_j < 0:
            break
        i, j = to_i, to_j
        c, size = state[3, i] + state[3, j], abs(state[3, i]) + abs(state[3, j])
        c -= 2.0 * inner[i, j]
        if c < -rounding * size:
            met[1] = smaller(met[1], c)
            met[2] += 1.0
        room_i, room_j = state[6, i] - state[4, i], state[4, j] - state[5, j]
        t = smaller((state[0, j] - state[0, i]) / larger(c, flat), smaller(room_i, room_j))
        state[4, i] = state[6, i] if t == room_i else state[4, i] + t
        state[4, j] = state[5, j] if t == room_j else state[4, j] - t
        for k in (i, j):
            state[1, k] = 0.0 if state[4, k] < state[6, k] else np.inf
            state[2, k] = 0.0 if state[4, k] > state[5, k] else np.inf
        met[0] += 1.0
