"""Refinement of the solutions of many small dual problems to full precision, compiled.

SMO ends close to a minimum, with few variables strictly between their bounds.  If the set of these
free variables is that of the minimum, the optimality conditions are linear equations.  With the
gradient g, and after elimination of the first free variable p of a group, whose sum is fixed, they
are

    sum_b R_ab d_b = g_p - g_a,     R_ab = K_ab - K_ap - K_pb + K_pp,     d_p = -sum_b d_b,

where d is the change of v, and a and b run over the other free variables.  R is positive
semidefinite even if K is only conditionally positive definite.  Its Cholesky factorisation skips
rows that depend linearly on previous ones.  A variable that reaches a bound stays there, and the
equations of the remaining ones are solved again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import fmax, fmin, jit

__all__ = ["MAX_FREE", "refine_numba"]

MAX_FREE = 160  # a problem with more free variables than this is not refined
_MAX_ROUNDS = 110  # maximum number of linear solves per problem
_DEPENDENT_PIVOT = 1e-12  # a row whose pivot / diagonal entry is smaller is linearly dependent


@jit("nnan", "nsz", "reassoc")
def refine_numba(
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
    results: Any,
) -> None:
    """Compute the gradients g = K v + q, and refine v where that reduces the violation.

    After refinement, all free variables of a group have equal gradients.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    points : ndarray of int
        The row of K of each variable.
    starts : ndarray of int
        Problem p has the variables starts[2p] to starts[2p + 2]; its second group begins at
        starts[2p + 1].
    linear, lower, upper : ndarray
        The linear term q, and the bounds.
    v, g : ndarray
        Overwritten: the variables, and their gradients.
    exact : float
        A problem is not refined if its violation, relative to the largest gradient, is at most
        this.
    R, work, free : ndarray
        Workspace.
    results : ndarray of shape (problems, 3)
        On return, the violation and the multipliers of both groups.  On entry, the first column
        contains a limit: problems with a larger violation are not refined.
    """
    d, old_v, old_g = work[0], work[1], work[2]
    for p in range(len(results)):
        first, middle, last = starts[2 * p], starts[2 * p + 1], starts[2 * p + 2]
        m0, m1, tol = 0.0, 0.0, results[p, 0]
        for attempt in range(2):
            for a in range(first, last):
                g[a] = linear[a]
            for b in range(first, last):
                x = v[b]
                if x != 0.0:
                    row = K[points[b]]
                    for a in range(first, last):
                        g[a] += x * row[points[a]]
            old_violation, size, n_free = results[p, 0], 1.0, 0
            results[p, 0] = -1e300
            for group in range(2):
                begin, end = (first, middle) if group == 0 else (middle, last)
                low, up, total, count = -1e300, 1e300, 0.0, 0
                for a in range(begin, end):
                    x = g[a]
                    size = fmax(size, abs(x))
                    if v[a] > lower[a]:
                        low = fmax(low, x)
                        if v[a] < upper[a]:
                            total += x
                            count += 1
                            if n_free < MAX_FREE:
                                free[n_free] = a
                            n_free += 1
                    if v[a] < upper[a]:
                        up = fmin(up, x)
                if end > begin:
                    results[p, 0] = fmax(results[p, 0], low - up)
                if count:
                    results[p, 1 + group] = total / count
                elif low > -1e300 and up < 1e300:
                    results[p, 1 + group] = 0.5 * (low + up)
                else:
                    results[p, 1 + group] = low if low > -1e300 else up
            if attempt == 1:
                # undo the refinement, because it increased the violation
                if results[p, 0] > old_violation:
                    results[p, 0], results[p, 1], results[p, 2] = old_violation, m0, m1
                    for a in range(first, last):
                        v[a], g[a] = old_v[a - first], old_g[a - first]
                break
            if (
                results[p, 0] > tol
                or results[p, 0] <= exact * size
                or n_free < 2
                or n_free > MAX_FREE
            ):
                break
            m0, m1 = results[p, 1], results[p, 2]
            for a in range(first, last):
                old_v[a - first], old_g[a - first] = v[a], g[a]
            for _ in range(_MAX_ROUNDS):
                # The first free variable of each group is eliminated: its row of R is 0.
                second = 0
                while second < n_free and free[second] < middle:
                    second += 1
                for a in range(n_free):
                    leader = second if a >= second else 0
                    row, other = K[points[free[a]]], K[points[free[leader]]]
                    for b in range(a + 1):
                        at, to = points[free[b]], points[free[second if b >= second else 0]]
                        entry = row[at] - row[to] - other[at] + other[to]
                        x = entry
                        for c in range(b):
                            x -= R[a, c] * R[b, c]
                        if b < a:
                            R[a, b] = x * R[b, b]
                        else:
                            R[a, a] = 1.0 / np.sqrt(x) if x > _DEPENDENT_PIVOT * entry else 0.0
                    x = g[free[leader]] - g[free[a]]
                    for c in range(a):
                        x -= R[a, c] * d[c]
                    d[a] = x * R[a, a]
                step, total = 1.0, 0.0
                for reverse in range(n_free):
                    a = n_free - 1 - reverse
                    x = d[a] * R[a, a]
                    for c in range(a):
                        d[c] -= R[a, c] * x
                    total += x
                    if a == 0 or a == second:
                        x, total = -total, 0.0
                    d[a] = x
                    i = free[a]
                    if x > 0.0:
                        step = fmin(step, (upper[i] - v[i]) / x)
                    elif x < 0.0:
                        step = fmin(step, (lower[i] - v[i]) / x)
                still_free = 0
                for a in range(n_free):
                    i = free[a]
                    row, x, total = K[points[i]], step * d[a], 0.0
                    for b in range(n_free):
                        total += row[points[free[b]]] * d[b]
                    g[i] += step * total
                    if x > 0.0 and x >= upper[i] - v[i]:
                        v[i] = upper[i]
                    elif x < 0.0 and x <= lower[i] - v[i]:
                        v[i] = lower[i]
                    else:
                        v[i] += x
                for a in range(n_free):
                    i = free[a]
                    if v[i] > lower[i] and v[i] < upper[i]:
                        free[still_free] = i
                        still_free += 1
                if step >= 1.0 or still_free < 2 or still_free == n_free:
                    break
                n_free = still_free
