"""Sequential minimal optimisation inside a working set whose block of K is at hand.

Two variables of a group move by t in opposite directions, so that their sum stays:

    i = argmin g over v < upper,     j = argmax (g_j - g_i)^2 / c_ij  over v > lower, g_j > g_i,
    c_ij = K_ii + K_jj - 2 K_ij,     t = min((g_j - g_i) / c_ij, upper_i - v_i, v_j - lower_j)

and g += t (K_i - K_j).  The choice of j maximises what the move gains (Fan, Chen & Lin 2005).

A step is two passes over the working set: one brings g up to date and finds i, the other finds j.
What may not move is put out of reach by adding infinity, and each of 32 lanes keeps an extreme of
its own, with its place: without branches, and without one extreme that all entries wait for, both
passes compile to vector instructions.  Of equals the last one is taken, as LIBSVM does.

Of the variables at a bound only those that violate the conditions most take part in a round of
steps, beside all that are free: they are copied together, so that a step costs as little as they.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._runtime import jit

__all__ = ["solve_block"]

_LANES = 32
_STEPS_PER_ROUND = 256  # at least, before the variables that take part are chosen again
_CROWD = 128  # so many variables of either bound take part
_LEAST_CURVATURE = 1e-12  # relative to K; a smaller or negative c_ij is replaced by it


@jit("nnan", "nsz", "reassoc")
def solve_block(
    K: Any,
    g: Any,
    v: Any,
    lower: Any,
    upper: Any,
    starts: Any,
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
        Where each group starts, and s.
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
    size, groups = len(g), len(starts) - 1
    steps, bent, curvature, goal, charged = 0, 0, 0.0, -1.0, 0
    W, part = np.empty(size, dtype=np.int64), np.zeros(groups + 1, dtype=np.int64)
    while True:
        violation = _active(g, v, lower, upper, starts, W, part)
        if goal < 0.0:
            goal = max(accuracy, fraction * violation)
        count = part[groups]
        # A round is charged for even if it takes few steps, since nothing interrupts this loop.
        if violation <= goal or max(steps, charged) >= max_steps:
            return steps, violation, curvature, bent
        inner = np.empty((count, count), dtype=K.dtype)
        h, w, low, up = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
        for a in range(count):
            k = W[a]
            h[a], w[a], low[a], up[a] = g[k], v[k], lower[k], upper[k]
            row = K[k]
            for b in range(count):
                inner[a, b] = row[W[b]]
        most = min(max(_STEPS_PER_ROUND, count), max_steps - steps)
        done, c, times = _solve(inner, h, w, low, up, part, goal, most)
        steps, bent, curvature = steps + done, bent + times, min(curvature, c)
        charged += max(done, min(_STEPS_PER_ROUND, max_steps - steps))
        if done == 0:  # rounding leaves nothing to gain
            return steps, violation, curvature, bent
        for a in range(count):
            k = W[a]
            d = w[a] - v[k]
            if d != 0.0:
                row = K[k]
                for b in range(size):
                    g[b] += d * row[b]
                v[k] = w[a]


@jit("nnan", "nsz", "reassoc")
def _active(g: Any, v: Any, lower: Any, upper: Any, starts: Any, W: Any, part: Any) -> float:
    """Set W to the variables that take part, by group, and return the violation.

    These are all free variables, and of those at a bound the ones that violate the conditions most.
    """
    violation, count = -np.inf, 0
    for group in range(len(starts) - 1):
        first, last = starts[group], starts[group + 1]
        low, up = -np.inf, np.inf
        for k in range(first, last):
            if v[k] < upper[k]:
                up = min(up, g[k])
            if v[k] > lower[k]:
                low = max(low, g[k])
        violation = max(violation, low - up)
        keys = np.empty(last - first)  # g, or -g, of variables at a bound that may enter
        for sign in (1.0, -1.0):
            crowd = 0
            for k in range(first, last):
                rises, falls = v[k] < upper[k], v[k] > lower[k]
                keys[k - first] = np.inf
                if sign > 0.0 and rises and not falls and g[k] < low:
                    keys[k - first] = g[k]
                    crowd += 1
                if sign < 0.0 and falls and not rises and g[k] > up:
                    keys[k - first] = -g[k]
                    crowd += 1
                if sign > 0.0 and rises and falls:
                    W[count] = k
                    count += 1
            edge = np.partition(keys, _CROWD - 1)[_CROWD - 1] if crowd > _CROWD else np.inf
            room = count + min(crowd, _CROWD)
            for tie in (False, True):  # some of those equal to the edge may not fit
                for k in range(first, last):
                    key = keys[k - first]
                    if count < room and (key == edge if tie else key < edge):
                        W[count] = k
                        count += 1
        W[part[group] : count].sort()
        part[group + 1] = count
    return violation


@jit("nnan", "nsz", "reassoc")
def _solve(
    K: Any, g: Any, v: Any, lower: Any, upper: Any, starts: Any, goal: float, max_steps: int
) -> tuple[int, float, int]:
    """Take steps until the violation is not above the goal; return what was met on the way."""
    size = len(g)
    above, below = np.empty(size), np.empty(size)  # infinite where v cannot grow, or fall
    diagonal = np.empty(size)
    for k in range(size):
        above[k] = 0.0 if v[k] < upper[k] else np.inf
        below[k] = 0.0 if v[k] > lower[k] else np.inf
        diagonal[k] = K[k, k]
    extreme, place, highest = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    flat = _LEAST_CURVATURE * max(np.abs(diagonal).max(), 1e-280)
    rounding = 1e-5 if K.itemsize == 4 else 1e-12
    steps, bent, curvature = 0, 0, 0.0
    i, j, t = 0, 0, 0.0
    while True:
        violation, best, move_i, move_j = -np.inf, 0.0, -1, -1
        for group in range(len(starts) - 1):
            part = slice(starts[group], starts[group + 1])
            here, up = _update(g[part], K[i, part], K[j, part], t, above[part], extreme, place)
            if up == np.inf:
                continue
            own = starts[group] + here
            there, gain, over = _partner(
                g[part], below[part], up, K[own, part], diagonal[part], diagonal[own],
                flat, extreme, place, highest,
            )  # fmt: skip
            violation = max(violation, over)
            if gain > best:
                best, move_i, move_j = gain, own, starts[group] + there
        if violation <= goal or steps >= max_steps or move_j < 0:
            return steps, curvature, bent
        i, j = move_i, move_j
        c = diagonal[i] + diagonal[j] - 2.0 * K[i, j]
        if c < -rounding * (abs(diagonal[i]) + abs(diagonal[j])):
            bent += 1
            curvature = min(curvature, c)
        room_i, room_j = upper[i] - v[i], v[j] - lower[j]
        t = min((g[j] - g[i]) / max(c, flat), room_i, room_j)
        v[i] = upper[i] if t == room_i else v[i] + t
        v[j] = lower[j] if t == room_j else v[j] - t
        for k in (i, j):
            above[k] = 0.0 if v[k] < upper[k] else np.inf
            below[k] = 0.0 if v[k] > lower[k] else np.inf
        steps += 1


@jit("nnan", "nsz", "reassoc")
def _update(
    g: Any, Ki: Any, Kj: Any, t: float, above: Any, extreme: Any, place: Any
) -> tuple[int, float]:
    """Set g += t (Ki - Kj); return where g + above is least, and how small."""
    n = len(g)
    whole = n - n % _LANES
    for lane in range(_LANES):
        extreme[lane], place[lane] = np.inf, 0.0
    for start in range(0, whole, _LANES):
        at = float(start)
        G, A = g[start : start + _LANES], above[start : start + _LANES]
        Ri, Rj = Ki[start : start + _LANES], Kj[start : start + _LANES]
        for lane in range(_LANES):
            G[lane] += t * (Ri[lane] - Rj[lane])
        for lane in range(_LANES):
            x = G[lane] + A[lane]
            place[lane] = at if x <= extreme[lane] else place[lane]
            extreme[lane] = x if x < extreme[lane] else extreme[lane]
    least, where = np.inf, 0
    for lane in range(_LANES):
        here = int(place[lane]) + lane
        if extreme[lane] < least or (extreme[lane] == least and here > where):
            least, where = extreme[lane], here
    for k in range(whole, n):
        g[k] += t * (Ki[k] - Kj[k])
        if g[k] + above[k] <= least:
            least, where = g[k] + above[k], k
    return where, least


@jit("nnan", "nsz", "reassoc")
def _partner(
    g: Any,
    below: Any,
    up: float,
    row: Any,
    diagonal: Any,
    own: float,
    flat: float,
    extreme: Any,
    place: Any,
    highest: Any,
) -> tuple[int, float, float]:
    """Return the partner that gains most, the gain, and by how much g exceeds `up` at most."""
    n = len(g)
    whole = n - n % _LANES
    for lane in range(_LANES):
        extreme[lane], place[lane], highest[lane] = 0.0, -1.0, -np.inf
    for start in range(0, whole, _LANES):
        at = float(start)
        G, B = g[start : start + _LANES], below[start : start + _LANES]
        R, D = row[start : start + _LANES], diagonal[start : start + _LANES]
        for lane in range(_LANES):
            x = G[lane] - B[lane] - up
            highest[lane] = x if x > highest[lane] else highest[lane]
            d = x if x > 0.0 else 0.0
            c = own + D[lane] - 2.0 * R[lane]
            c = c if c > flat else flat
            s = d * d / c
            place[lane] = at if s >= extreme[lane] else place[lane]
            extreme[lane] = s if s > extreme[lane] else extreme[lane]
    gain, where, over = 0.0, 0, -np.inf
    for lane in range(_LANES):
        over = max(over, highest[lane])
        here = int(place[lane]) + lane
        if extreme[lane] > gain or (extreme[lane] == gain and here > where):
            gain, where = extreme[lane], here
    for k in range(whole, n):
        x = g[k] - below[k] - up
        over = max(over, x)
        s = x * x / max(own + diagonal[k] - 2.0 * row[k], flat)
        if x > 0.0 and s >= gain:
            gain, where = s, k
    return where, gain, over
