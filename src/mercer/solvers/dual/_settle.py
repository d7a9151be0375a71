"""The gradients of many small duals, and the last digits of their minima, compiled.

SMO comes close to a minimum, and leaves few variables between their bounds.  If these are the right
ones, F, their conditions are linear.  With one of them, p, to keep the sum of its group,

    sum_b R_ab d_b = g_p - g_a,     R_ab = K_ab - K_ap - K_pb + K_pp,     d_p = -sum_b d_b,

where a and b are the others, and R is positive semidefinite also for kernels that are so only
conditionally.  Its Cholesky factor leaves out what depends on what came before.  A variable that
meets a bound on the way stays there, and the others are solved for again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._runtime import jit, larger, smaller

__all__ = ["MOST_FREE", "settle"]

MOST_FREE = 160  # of more variables LAPACK is the better judge
_ROUNDS = 110  # each but the last ends where a variable meets a bound
_DEPENDENT = 1e-12  # a pivot that is smaller than this times its own diagonal entry


@jit("nnan", "nsz", "reassoc")
def settle(
    K: Any,
    points: Any,
    starts: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    v: Any,
    g: Any,
    exact: float,
    R: Any,
    work: Any,
    free: Any,
    met: Any,
) -> None:
    """Set g <- K v + q, and v to where the gradients of free variables are equal if that is better.

    Problem p has the variables starts[2p] to starts[2p + 2], in groups that meet at
    starts[2p + 1].  The rows of `met` are the violation, and the multipliers of both groups.
    Before, they begin with the violation up to which the equations are solved; `exact`, in units
    of g, is where they need not be.
    """
    d, old, last_g = work[0], work[1], work[2]
    for p in range(len(met)):
        first, middle, last = starts[2 * p], starts[2 * p + 1], starts[2 * p + 2]
        m0, m1, tol = 0.0, 0.0, met[p, 0]
        for turn in range(2):
            for a in range(first, last):
                g[a] = linear[a]
            for b in range(first, last):
                x = v[b]
                if x != 0.0:
                    row = K[points[b]]
                    for a in range(first, last):
                        g[a] += x * row[points[a]]
            before, size, m = met[p, 0], 1.0, 0
            met[p, 0] = -1e300
            for group in range(2):
                begin, end = (first, middle) if group == 0 else (middle, last)
                low, up, total, count = -1e300, 1e300, 0.0, 0
                for a in range(begin, end):
                    x = g[a]
                    size = larger(size, abs(x))
                    if v[a] > lower[a]:
                        low = larger(low, x)
                        if v[a] < upper[a]:
                            total += x
                            count += 1
                            if m < MOST_FREE:
                                free[m] = a
                            m += 1
                    if v[a] < upper[a]:
                        up = smaller(up, x)
                if end > begin:
                    met[p, 0] = larger(met[p, 0], low - up)
                if count:
                    met[p, 1 + group] = total / count
                elif low > -1e300 and up < 1e300:
                    met[p, 1 + group] = 0.5 * (low + up)
                else:
                    met[p, 1 + group] = low if low > -1e300 else up
            if turn == 1:
                if met[p, 0] > before:  # it was better before
                    met[p, 0], met[p, 1], met[p, 2] = before, m0, m1
                    for a in range(first, last):
                        v[a], g[a] = old[a - first], last_g[a - first]
                break
            if met[p, 0] > tol or met[p, 0] <= exact * size or m < 2 or m > MOST_FREE:
                break
            m0, m1 = met[p, 1], met[p, 2]
            for a in range(first, last):
                old[a - first], last_g[a - first] = v[a], g[a]
            for _ in range(_ROUNDS):
                # The first variable of each group stands for p, and has an empty row of R.
                second = 0
                while second < m and free[second] < middle:
                    second += 1
                for a in range(m):
                    lead = second if a >= second else 0
                    row, other = K[points[free[a]]], K[points[free[lead]]]
                    for b in range(a + 1):
                        at, to = points[free[b]], points[free[second if b >= second else 0]]
                        own = row[at] - row[to] - other[at] + other[to]
                        x = own
                        for c in range(b):
                            x -= R[a, c] * R[b, c]
                        if b < a:
                            R[a, b] = x * R[b, b]
                        else:
                            R[a, a] = 1.0 / np.sqrt(x) if x > _DEPENDENT * own else 0.0
                    x = g[free[lead]] - g[free[a]]
                    for c in range(a):
                        x -= R[a, c] * d[c]
                    d[a] = x * R[a, a]
                room, total = 1.0, 0.0
                for back in range(m):
                    a = m - 1 - back
                    x = d[a] * R[a, a]
                    for c in range(a):
                        d[c] -= R[a, c] * x
                    total += x
                    if a == 0 or a == second:
                        x, total = -total, 0.0
                    d[a] = x
                    i = free[a]
                    if x > 0.0:
                        room = smaller(room, (upper[i] - v[i]) / x)
                    elif x < 0.0:
                        room = smaller(room, (lower[i] - v[i]) / x)
                kept = 0
                for a in range(m):
                    i = free[a]
                    row, x, total = K[points[i]], room * d[a], 0.0
                    for b in range(m):
                        total += row[points[free[b]]] * d[b]
                    g[i] += room * total
                    if x > 0.0 and x >= upper[i] - v[i]:
                        v[i] = upper[i]
                    elif x < 0.0 and x <= lower[i] - v[i]:
                        v[i] = lower[i]
                    else:
                        v[i] += x
                for a in range(m):
                    i = free[a]
                    if v[i] > lower[i] and v[i] < upper[i]:
                        free[kept] = i
                        kept += 1
                if room >= 1.0 or kept < 2 or kept == m:
                    break
                m = kept
