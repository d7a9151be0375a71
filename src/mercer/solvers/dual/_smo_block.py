"""Sequential minimal optimisation inside a working set whose block of K is at hand.

Two variables of a group move by t in opposite directions, so that their sum stays:

    i = argmin g over v < upper,     j = argmax (g_j - g_i)^2 / c_ij  over v > lower, g_j > g_i,
    c_ij = K_ii + K_jj - 2 K_ij,     t = min((g_j - g_i) / c_ij, upper_i - v_i, v_j - lower_j)

and g += t (K_i - K_j).  The choice of j maximises what the move gains (Fan, Chen & Lin 2005).

A step is two passes over the working set: one brings g up to date and finds i, the other finds j.
What may not move is put out of reach by adding infinity.  Both passes find the extreme of each run
of 32 entries first, by vector instructions, and then its place in the one run that has it.  Of
equals the last one is taken, as LIBSVM does.

All of that is one flat function (`take_steps`), which is quick to compile.  It serves many problems
in one call, since those of many small classes take less time than a call.  In a large block only
the variables at a bound that violate the conditions most take part in a round of steps, beside all
that are free: they are copied together, so that a step costs as little as they.
"""

from __future__ import annotations

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
        done, c, times, _ = run_steps(K, W, ends, h, w, lower[W], upper[W], goal, most)[0]
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
    """Take steps for problems of two groups each; one of one group has an empty second one.

    Returns for each problem the steps taken, the most negative c_ij, in how many steps it was
    negative beyond rounding, and what is left of the violation.
    """
    if len(starts) == 2:
        starts = starts[[0, 1, 1]]
    most = int(np.max(starts[2::2] - starts[:-2:2]))
    whole = len(K) == len(points) == most and K.flags.writeable and K.flags.c_contiguous
    if whole and np.array_equal(points, np.arange(most)):
        inner = K  # to which its own entries are copied: new memory would take longer
    else:
        inner = np.empty((most, most), dtype=K.dtype)
    work = np.empty((5, most))
    met = np.zeros((len(starts) // 2, 4))
    rounding = 1e-5 if K.itemsize == 4 else 1e-12
    limits = goal, max_steps, rounding
    take_steps(K, points, starts, g, v, lower, upper, *limits, inner, work, met, True)
    return met


@jit("nnan", "nsz", "reassoc")
def take_steps(
    K: Any,
    points: Any,
    starts: Any,
    g: Any,
    v: Any,
    lower: Any,
    upper: Any,
    goal: float,
    max_steps: int,
    rounding: float,
    inner: Any,
    work: Any,
    met: Any,
    begins: bool,
) -> int:
    """Take steps until the violation is not above the goal; see `run_steps`.

    One problem may have rows in `inner` that are not known yet: if one is needed, its number is
    returned, and the next call goes on with what is in `work`.  Else -1 is returned.
    """
    G, above, below, diagonal, known = work[0], work[1], work[2], work[3], work[4]
    for p in range(len(met)):
        first = starts[2 * p]
        middle, size = starts[2 * p + 1] - first, starts[2 * p + 2] - first
        own, low, up = v[first:], lower[first:], upper[first:]
        if begins:
            for a in range(size):
                row, out = K[points[first + a]], inner[a]
                for b in range(size):
                    out[b] = row[points[first + b]]
                G[a], diagonal[a], known[a] = g[first + a], out[a], 1.0
                above[a] = 0.0 if own[a] < up[a] else np.inf
                below[a] = 0.0 if own[a] > low[a] else np.inf
        flat = 1e-280
        for a in range(size):
            flat = larger(flat, abs(diagonal[a]))
        flat *= _LEAST_CURVATURE
        i, j, t = 0, 0, 0.0
        while True:
            violation, gain, to_i, to_j, wanted = -np.inf, 0.0, 0, -1, -1
            begin, end = 0, middle
            for _ in range(2):
                least, at = np.inf, begin
                for start in range(begin, end, _RUN):
                    stop = min(start + _RUN, end)
                    H, A = G[start:stop], above[start:stop]
                    Ki, Kj = inner[i, start:stop], inner[j, start:stop]
                    m = np.inf
                    for k in range(len(H)):
                        x = H[k] + t * (Ki[k] - Kj[k])
                        H[k] = x
                        m = smaller(m, x + A[k])
                    if m <= least:
                        least, at = m, start
                if least < np.inf:
                    leader = min(at + _RUN, end) - 1
                    while leader > at and G[leader] + above[leader] > least:
                        leader -= 1
                    if known[leader] == 0.0:
                        wanted = leader
                    d, best = diagonal[leader], 0.0
                    for start in range(begin, end, _RUN):
                        stop = min(start + _RUN, end)
                        H, B = G[start:stop], below[start:stop]
                        R, D = inner[leader, start:stop], diagonal[start:stop]
                        m = 0.0
                        for k in range(len(H)):
                            x = H[k] - B[k] - least
                            violation = larger(violation, x)
                            x = larger(x, 0.0)
                            m = larger(m, x * x / larger(d + D[k] - 2.0 * R[k], flat))
                        if m >= best:
                            best, at = m, start
                    if best > gain:
                        gain, best, to_i = best, 0.0, leader
                        for k in range(at, min(at + _RUN, end)):
                            x = larger(G[k] - below[k] - least, 0.0)
                            x = x * x / larger(d + diagonal[k] - 2.0 * inner[leader, k], flat)
                            if x >= best:
                                best, to_j = x, k
                begin, end = middle, size
            if violation <= goal or met[p, 0] >= max_steps or (wanted < 0 and to_j < 0):
                break
            if wanted < 0 and known[to_j] == 0.0:
                wanted = to_j
            if wanted >= 0:
                return wanted
            i, j = to_i, to_j
            c = diagonal[i] + diagonal[j] - 2.0 * inner[i, j]
            if c < -rounding * (abs(diagonal[i]) + abs(diagonal[j])):
                met[p, 1] = smaller(met[p, 1], c)
                met[p, 2] += 1.0
            room_i, room_j = up[i] - own[i], own[j] - low[j]
            t = smaller((G[j] - G[i]) / larger(c, flat), smaller(room_i, room_j))
            own[i] = up[i] if t == room_i else own[i] + t
            own[j] = low[j] if t == room_j else own[j] - t
            for k in (i, j):
                above[k] = 0.0 if own[k] < up[k] else np.inf
                below[k] = 0.0 if own[k] > low[k] else np.inf
            met[p, 0] += 1.0
        met[p, 3] = violation
        for a in range(size):
            g[first + a] = G[a]
    return -1
