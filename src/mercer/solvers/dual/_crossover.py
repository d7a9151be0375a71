"""From the inside of a box to a corner: the free variables of a `Dual` found, and solved for.

An interior point leaves every variable near its bound, or between two of them.  Once it is known
which are free, v and the multipliers -b solve linear equations,

    F_S F_S^T v_S + A b = -q_S - F_S F_N^T v_N,     A^T v_S = what the sums leave,

S free and N at bounds.  They are solved as a system in (dw, b, dv) with dw = F_S^T dv, so that the
squares F_S F_S^T are never formed.  A variable that leaves its box goes to its bound, one whose
gradient has the wrong sign becomes free, and all is solved again: a primal-dual active set.

More than m variables can be free only if their rows of F depend on each other.  Then v can move
along a direction d with F_S^T d = 0 and A^T d = 0, which changes nothing, until one is at a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._runtime.linalg import lapack, qr
from .._row_blocks import pulled, times
from ._dual import Dual, fill_in_order

__all__ = ["Corner", "at", "better", "corner"]

_MAX_ROUNDS = 30
_SMALL_VIOLATION = 1e-6  # relative to tol: a corner that is not improved any more
_DEPENDENT_PIVOT = 1e-10  # relative to the largest pivot
_FLAT_SLOPE = 1e-9  # relative to |q|^T |d|: along d the objective does not change
_DAMPING = 1e-13  # relative to the largest K_ii; keeps the system of dependent rows solvable
_ROUNDING = 2.0**-44  # relative error of v, and of a sum of it
_MOST_FREE = 2000  # beyond 4 m: more variables would take too long to send to bounds


class Corner(NamedTuple):
    """v with the right sums, its violation, and both objectives; all inf if not finite."""

    v: np.ndarray
    g: np.ndarray
    violation: float
    value: float  # 1/2 |F^T v|^2 + q^T v, which is minimised
    primal: float


def at(F: np.ndarray, dual: Dual, v: np.ndarray) -> Corner:
    """Return v, its sums repaired, with its gradient."""
    v = _repaired(dual, v)
    w = pulled(F, dual.coefficients(v))
    f = times(F, w)
    g = dual.gradient(f)
    value = 0.5 * float(w @ w) + float(dual.linear @ v)
    if not (np.isfinite(v).all() and np.isfinite(g).all() and np.isfinite(value)):
        return Corner(v, g, np.inf, np.inf, np.inf)
    primal = dual.objective(v, f) + dual.gap(v, f)
    return Corner(v, g, dual.violation(v, g), value, np.inf if np.isnan(primal) else primal)


def corner(F: np.ndarray, dual: Dual, v: np.ndarray, tol: float) -> Corner:
    """Return the best corner found from v on, whose bound variables are guesses."""
    best = here = at(F, dual, _thinned(F, dual, v))
    let_go = False
    for _ in range(_MAX_ROUNDS):
        if best.violation <= _SMALL_VIOLATION * tol:
            break
        free = dual.free(here.v)
        if let_go:  # the equations hold: variables at a wrong bound become free
            room = F.shape[1] + dual.n_groups - free.sum()
            free |= _wrong(dual, here, _SMALL_VIOLATION * tol, room)
        solved = _solved(F, dual, here, np.flatnonzero(free))
        if solved is None:
            break
        let_go = bool(dual.free(solved)[free].all())
        here = at(F, dual, solved)
        best = better(best, here, tol)
    thin = at(F, dual, _thinned(F, dual, best.v))
    return thin if thin.violation <= max(best.violation, 0.1 * tol) else best


def better(one: Corner, other: Corner, tol: float) -> Corner:
    """Return the one of smaller violation if that is below tol, else of better objectives.

    The primal one comes first: it is what f is worth, however far v is from a minimum.
    """
    if min(one.violation, other.violation) <= tol:
        return one if one.violation <= other.violation else other
    return one if (one.primal, one.value) <= (other.primal, other.value) else other


def _wrong(dual: Dual, here: Corner, tol: float, room: int) -> np.ndarray:
    """Return which variables should leave their bounds, the worst of them."""
    v, g = here.v, here.g
    over = g - dual.multipliers(v, g)[dual.groups]
    wrong = np.where(v <= dual.lower, -over, np.where(v >= dual.upper, over, 0.0))
    wrong[dual.lower >= dual.upper] = 0.0
    chosen = np.flatnonzero(wrong > tol)
    chosen = chosen[np.argsort(-wrong[chosen], kind="stable")[: max(1, room)]]
    out = np.zeros(len(v), dtype=bool)
    out[chosen] = True
    return out


def _repaired(dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v in the box with the sums of the start, moved where there is most room."""
    v = np.clip(v, dual.lower, dual.upper)
    for k in range(dual.n_groups):
        members = np.flatnonzero(dual.groups == k)
        short = float(dual.start[members].sum() - v[members].sum())
        if abs(short) <= _ROUNDING * np.abs(v[members]).sum():
            continue
        for among in (members[dual.free(v)[members]], members):
            room = dual.upper[among] - v[among] if short > 0 else v[among] - dual.lower[among]
            order = np.argsort(-room, kind="stable")
            part = np.copysign(fill_in_order(room[order], abs(short)), short)
            v[among[order]] += part
            short -= float(part.sum())
    return np.clip(v, dual.lower, dual.upper)


def _solved(F: np.ndarray, dual: Dual, here: Corner, S: np.ndarray) -> np.ndarray | None:
    """Return v solved for the variables S; those that leave their box end at its bounds."""
    v, g = here.v, here.g
    m, K = F.shape[1], dual.n_groups
    if not len(S) or len(S) > 2 * (m + K):
        return None
    G, s = F[dual.points[S]], len(S)
    unit = _powers_of_two(G)
    A = np.zeros((s, K))
    A[np.arange(s), dual.groups[S]] = 1.0
    present = A.any(axis=0)
    M = np.zeros((m + K + s, m + K + s))
    M[:m, :m] = -np.diag(np.square(unit))
    M[m + K :, :m] = G * unit
    M[:m, m + K :] = M[m + K :, :m].T
    M[m + K :, m : m + K] = A
    M[m : m + K, m + K :] = A.T
    M[m : m + K, m : m + K] = np.diag(np.where(present, 0.0, 1.0))
    damped = _DAMPING * np.square(G).sum(axis=1).max(initial=0.0)
    M[np.arange(m + K, len(M)), np.arange(m + K, len(M))] = damped
    right = np.concatenate([np.zeros(m + K), -g[S]])
    LU, order, info = lapack.dgetrf(M)
    if info:
        return None
    x = lapack.dgetrs(LU, order, right)[0]
    x += lapack.dgetrs(LU, order, right - M @ x)[0]
    dv = x[m + K :]
    if not np.isfinite(dv).all():
        return None
    v = v.copy()
    v[S] = np.clip(v[S] + dv, dual.lower[S], dual.upper[S])
    return v


def _powers_of_two(G: np.ndarray) -> np.ndarray:
    """Return 1 / size of the columns, rounded such that scaling by it is exact."""
    size = np.abs(G).max(axis=0, initial=0.0)
    return np.exp2(-np.rint(np.log2(np.where(size > 0, size, 1.0))))


def _thinned(F: np.ndarray, dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v with the same F^T v and sums, of whose free variables no rows depend on others."""
    S = np.flatnonzero(dual.free(v))
    rank = F.shape[1] + dual.n_groups
    spare = max(64, rank // 4)
    if len(S) < 2 or len(S) > _MOST_FREE + 4 * rank:
        return v
    v = v.copy()
    kept = S[:0]
    while len(S):
        more = rank + spare - len(kept)
        T, S = np.concatenate([kept, S[:more]]), S[more:]
        G = F[dual.points[T]]
        G = np.column_stack([G * _powers_of_two(G), np.eye(dual.n_groups)[dual.groups[T]]])
        _to_bounds(G, v, T, dual)
        kept = T[dual.free(v)[T]]
        if len(kept) > rank + spare // 2:  # in infinite boxes they meet no bound
            break
    return v


def _to_bounds(G: np.ndarray, v: np.ndarray, T: np.ndarray, dual: Dual) -> None:
    """Move v_T along all d with G^T d = 0, each until a variable is at a bound."""
    Q, R, _ = qr(G, mode="full", pivoting=True, check_finite=False)
    pivots = np.abs(np.diagonal(R))
    N = Q[:, np.count_nonzero(pivots > _DEPENDENT_PIVOT * pivots.max(initial=0.0)) :]
    lower, upper, q = dual.lower[T], dual.upper[T], dual.linear[T]
    while N.shape[1]:
        d = N[:, -1]
        x = v[T]
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(d > 0, (upper - x) / d, np.where(d < 0, (lower - x) / d, np.inf))
            back = np.where(d > 0, (x - lower) / d, np.where(d < 0, (x - upper) / d, np.inf))
        i, j = int(np.argmin(ahead)), int(np.argmin(back))
        slope = float(q @ d)  # of the objective: F^T d = 0, so that 1/2 |F^T v|^2 stays
        if abs(slope) <= _FLAT_SLOPE * float(np.abs(q) @ np.abs(d)):
            slope = ahead[i] - back[j]
        hit, size = (i, ahead[i]) if slope <= 0 else (j, -back[j])
        if not np.isfinite(size):
            N = N[:, :-1]
            continue
        step = size * d
        x, blur = x + step, _ROUNDING * (np.abs(x) + np.abs(step))
        blur[hit] = np.inf if step[hit] else 0.0
        # Variables that meet their bounds at the same time are set to them, in spite of rounding.
        x = np.where((step < 0) & (x - lower <= blur), lower, x)
        x = np.where((step > 0) & (upper - x <= blur), upper, x)
        v[T] = np.clip(x, lower, upper)
        # A reflection of the basis, after which only its last vector moves this variable.
        u = N[hit].copy()
        u[-1] += np.copysign(np.linalg.norm(u), u[-1])
        N = N - np.outer(N @ u, (2.0 / (u @ u)) * u)
        N = N[:, :-1]
        N[hit] = 0.0
