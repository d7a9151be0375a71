"""Crossover from an interior point of a `Dual` to a solution with variables exactly at bounds.

The interior-point method ends with every variable either near a bound, or between its bounds.  Let
S be the set of free variables, and N the set of variables at bounds.  If these sets are known, v
and the multipliers -b are the solution of the linear equations

    F_S F_S^T v_S + A b = -q_S - F_S F_N^T v_N,     A^T v_S = required sums - A_N^T v_N,

where A assigns variables to groups.  They are solved as a system in (dw, b, dv) with dw = F_S^T dv,
so that F_S F_S^T is never formed.  A variable that exceeds a bound is set to it, a variable at a
bound whose gradient has the wrong sign becomes free, and the equations are solved again (a
primal-dual active set method).

More than m variables can be free only if their rows of F are linearly dependent.  Then v can move
along a direction d with F_S^T d = 0 and A^T d = 0, which changes neither F^T v nor the sums, until
a variable reaches a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._core.linalg import lapack, qr
from .._blocked_products import matvec, rmatvec
from ._dual_problem import Dual, fill_in_order


@dataclass(frozen=True)
class _CrossoverTuning:
    """Tuning constants of the crossover."""

    # Maximum number of rounds of the active set method.
    max_rounds: int = 30
    # A vertex is not improved further if its violation, relative to tol, is at most this.
    exact_violation: float = 1e-6
    # Rows count as linearly dependent if a pivot, relative to the largest one, is below this.
    dependent_pivot: float = 1e-10
    # The slope q^T d of the objective in a direction d counts as 0 if it is below this, relative to
    # |q|^T |d|.
    flat_slope: float = 1e-9
    # This times the largest K_ii is added to the diagonal, so that the system can be solved even if
    # rows are linearly dependent.
    damping: float = 1e-13
    # Assumed relative rounding error of v, and of sums of v.
    rounding: float = 2.0**-44
    # Free variables are not moved to bounds if there are more than 4 (m + groups) plus this many,
    # because that would take too long.
    max_extra_free: int = 2000


_TUNING = _CrossoverTuning()


class VertexSolution(NamedTuple):
    """A feasible v with its gradient, violation and objectives.

    The violation and both objectives are inf if v or its gradient is not finite.
    """

    v: np.ndarray
    g: np.ndarray  # the gradient K v + q
    violation: float
    value: float  # the dual objective 1/2 |F^T v|^2 + q^T v, which is minimised
    primal: float  # the primal objective, which is also minimised


def evaluate_at(F: np.ndarray, dual: Dual, v: np.ndarray) -> VertexSolution:
    """Evaluate v, after correcting it to satisfy the bounds and the sums."""
    v = _restore_sums(dual, v)
    w = rmatvec(F, dual.coefficients(v))
    f = matvec(F, w)
    g = dual.gradient(f)
    value = 0.5 * float(w @ w) + float(dual.linear @ v)
    if not (np.isfinite(v).all() and np.isfinite(g).all() and np.isfinite(value)):
        return VertexSolution(v, g, np.inf, np.inf, np.inf)
    primal = dual.objective(v, f) + dual.gap(v, f)
    return VertexSolution(v, g, dual.violation(v, g), value, np.inf if np.isnan(primal) else primal)


def find_vertex(F: np.ndarray, dual: Dual, v: np.ndarray, tol: float) -> VertexSolution:
    """Return the best solution found with variables exactly at their bounds (a vertex).

    The variables of v that are at bounds are the initial guess.
    """
    best = current = evaluate_at(F, dual, _drop_dependent(F, dual, v))
    release = False
    for _ in range(_TUNING.max_rounds):
        if best.violation <= _TUNING.exact_violation * tol:
            break
        free = dual.free(current.v)
        if release:  # all equations hold: variables at the wrong bound become free
            max_released = F.shape[1] + dual.n_groups - free.sum()
            free |= _at_wrong_bound(dual, current, _TUNING.exact_violation * tol, max_released)
        v_solved = _solve_free(F, dual, current, np.flatnonzero(free))
        if v_solved is None:
            break
        release = bool(dual.free(v_solved)[free].all())
        current = evaluate_at(F, dual, v_solved)
        best = better_of(best, current, tol)
    reduced = evaluate_at(F, dual, _drop_dependent(F, dual, best.v))
    return reduced if reduced.violation <= max(best.violation, 0.1 * tol) else best


def better_of(one: VertexSolution, other: VertexSolution, tol: float) -> VertexSolution:
    """Return the better of two solutions.

    If a violation is at most `tol`, the smaller violation is better.  Otherwise the smaller primal
    objective is better, which measures f itself, even if v is far from a minimum.
    """
    if min(one.violation, other.violation) <= tol:
        return one if one.violation <= other.violation else other
    return one if (one.primal, one.value) <= (other.primal, other.value) else other


def _at_wrong_bound(dual: Dual, current: VertexSolution, tol: float, max_count: int) -> np.ndarray:
    """Return a mask of at most `max_count` variables that should leave their bounds."""
    v, g = current.v, current.g
    difference = g - dual.multipliers(v, g)[dual.groups]
    wrong = np.where(v <= dual.lower, -difference, np.where(v >= dual.upper, difference, 0.0))
    wrong[dual.lower >= dual.upper] = 0.0
    chosen = np.flatnonzero(wrong > tol)
    chosen = chosen[np.argsort(-wrong[chosen], kind="stable")[: max(1, max_count)]]
    out = np.zeros(len(v), dtype=bool)
    out[chosen] = True
    return out


def _restore_sums(dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v after changing it to satisfy the bounds and the required sums.

    Variables that are far from their bounds are changed first.
    """
    v = np.clip(v, dual.lower, dual.upper)
    for k in range(dual.n_groups):
        members = np.flatnonzero(dual.groups == k)
        missing = float(dual.start[members].sum() - v[members].sum())
        if abs(missing) <= _TUNING.rounding * np.abs(v[members]).sum():
            continue
        for candidates in (members[dual.free(v)[members]], members):
            room = v[candidates] - dual.lower[candidates]
            if missing > 0:
                room = dual.upper[candidates] - v[candidates]
            order = np.argsort(-room, kind="stable")
            change = np.copysign(fill_in_order(room[order], abs(missing)), missing)
            v[candidates[order]] += change
            missing -= float(change.sum())
    clipped: np.ndarray = np.clip(v, dual.lower, dual.upper)
    return clipped


def _solve_free(
    F: np.ndarray, dual: Dual, current: VertexSolution, S: np.ndarray
) -> np.ndarray | None:
    """Return v after solving the equations of the free variables S, clipped to the box.

    Returns None if the equations cannot be solved.
    """
    v, g = current.v, current.g
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
    damping = _TUNING.damping * np.square(G).sum(axis=1).max(initial=0.0)
    M[np.arange(m + K, len(M)), np.arange(m + K, len(M))] = damping
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
    """Return 1 / (largest entry) of each column, rounded to a power of 2.

    Scaling by powers of 2 causes no rounding errors.
    """
    size = np.abs(G).max(axis=0, initial=0.0)
    return np.exp2(-np.rint(np.log2(np.where(size > 0, size, 1.0))))


def _drop_dependent(F: np.ndarray, dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v with free variables moved to bounds until their rows of F are independent.

    F^T v and the sums do not change.
    """
    remaining = np.flatnonzero(dual.free(v))
    rank = F.shape[1] + dual.n_groups
    extra = max(64, rank // 4)
    if len(remaining) < 2 or len(remaining) > _TUNING.max_extra_free + 4 * rank:
        return v
    v = v.copy()
    free = remaining[:0]
    while len(remaining):
        n_new = rank + extra - len(free)
        chunk, remaining = np.concatenate([free, remaining[:n_new]]), remaining[n_new:]
        G = F[dual.points[chunk]]
        G = np.column_stack([G * _powers_of_two(G), np.eye(dual.n_groups)[dual.groups[chunk]]])
        _move_to_bounds(G, v, chunk, dual)
        free = chunk[dual.free(v)[chunk]]
        if len(free) > rank + extra // 2:  # with infinite bounds, variables may never reach a bound
            break
    return v


def _move_to_bounds(G: np.ndarray, v: np.ndarray, variables: np.ndarray, dual: Dual) -> None:
    """Move v along each direction d with G^T d = 0 until a variable reaches a bound.

    Only the given variables change, in place; each of them has a row of G.
    """
    Q, R, _ = qr(G, mode="full", pivoting=True, check_finite=False)
    pivots = np.abs(np.diagonal(R))
    rank = np.count_nonzero(pivots > _TUNING.dependent_pivot * pivots.max(initial=0.0))
    null_space = Q[:, rank:]
    lower, upper, q = dual.lower[variables], dual.upper[variables], dual.linear[variables]
    while null_space.shape[1]:
        d = null_space[:, -1]
        v_T = v[variables]
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(d < 0, (lower - v_T) / d, np.inf)
            forward = np.where(d > 0, (upper - v_T) / d, ahead)
            behind = np.where(d < 0, (v_T - upper) / d, np.inf)
            backward = np.where(d > 0, (v_T - lower) / d, behind)
        i, j = int(np.argmin(forward)), int(np.argmin(backward))
        slope = float(q @ d)  # slope of the objective: 1/2 |F^T v|^2 does not change along d
        if abs(slope) <= _TUNING.flat_slope * float(np.abs(q) @ np.abs(d)):
            slope = forward[i] - backward[j]
        first_hit, size = (i, forward[i]) if slope <= 0 else (j, -backward[j])
        if not np.isfinite(size):
            null_space = null_space[:, :-1]
            continue
        step = size * d
        v_T, tolerance = v_T + step, _TUNING.rounding * (np.abs(v_T) + np.abs(step))
        tolerance[first_hit] = np.inf if step[first_hit] else 0.0
        # Variables that reach their bounds at the same time, up to rounding, are set to the bounds.
        v_T = np.where((step < 0) & (v_T - lower <= tolerance), lower, v_T)
        v_T = np.where((step > 0) & (upper - v_T <= tolerance), upper, v_T)
        v[variables] = np.clip(v_T, lower, upper)
        # After a Householder reflection of the basis, only its last vector changes this variable.
        u = null_space[first_hit].copy()
        u[-1] += np.copysign(np.linalg.norm(u), u[-1])
        null_space = null_space - np.outer(null_space @ u, (2.0 / (u @ u)) * u)
        null_space = null_space[:, :-1]
        null_space[first_hit] = 0.0
