"""Preconditioned conjugate gradients on A a = y, the columns of y in lockstep.

    z = P^-1 r,   p <- z + b p,   a <- a + s p,   r <- r - s A p,
    s = (r . p) / (p . A p),      b = z_new . (r_new - r) / (r . z)

Each column has steps of its own, but one product serves all.  This b (Polak and Ribiere's) is the
usual one where P^-1 is exact, and forgives a P^-1 that rounds to float32.  The r of the recurrence
drifts away from y - A a: it is computed anew every 20 steps, and before anything is called solved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._errors import NotPositiveDefiniteError
from ._report import enough

__all__ = ["Iterates", "conjugate_gradients", "rounding_of"]

_REFRESH = 20  # steps after which the true residual is computed
_TRIAL = 10  # steps after which an impatient caller wants to know how many more there will be
# What rounding leaves of a residual, in units of eps |A| |a|: products hardly do better than the
# first, and a backward stable method may do as badly as the second.
_FLOOR, _STABLE = 1.0 / 32.0, 4.0


class Iterates(NamedTuple):
    """Where the iteration ended."""

    a: np.ndarray
    gap: np.ndarray  # the true y - A a
    n_iter: int
    converged: bool  # or as far as rounding allows


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    Y: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    rounding: Callable[[np.ndarray], np.ndarray],
    dtype: Any = float,
    patient: bool = True,
    say: Callable[[str], None] | None = None,
) -> Iterates:
    """Solve A a = y until |y - A a| <= tol |y|, or as far as rounding allows.

    That far it is when the recurrence is at its end, or at residuals of 4 eps |A| |a|, what a
    backward stable method guarantees, and the true residual is no longer halved.  Whether what is
    left is a solution is for the caller to judge.

    Parameters
    ----------
    times, precondition : callable
        V -> A V and V -> P^-1 V, for V of shape (n, q).
    Y : ndarray of shape (n, q)
    tol, max_iter : float, int
    rounding : callable
        a -> about |A| |a|, one number per column: a residual of eps / 32 of that counts as 0,
        because a product with A is not more exact; unless it is more than `enough` of |y|.
    dtype : dtype
        The precision of a product with A, whose relative rounding is eps.
    patient : bool
        If not, stop after 10 steps that promise more than 1.5 times `max_iter`.
    say : callable, optional
        Told of the progress.

    Raises
    ------
    NotPositiveDefiniteError
        If p . A p is not positive.
    """
    Y = np.asarray(Y, dtype=float)
    a, R = np.zeros_like(Y), Y.copy()
    size = np.linalg.norm(Y, axis=0)
    Z = precondition(R)
    P, rz = Z, _dot(R, Z)
    best, n_iter, fresh = np.inf, 0, True  # fresh: R is the true gap
    eps, most = float(np.finfo(dtype).eps), enough(dtype) * size
    while True:
        floor = eps * rounding(a)
        goal = np.maximum(tol * size, np.minimum(_FLOOR * floor, most))
        left = np.linalg.norm(R, axis=0)
        waiting = left > (goal if fresh else 0.5 * goal)
        if fresh and not waiting.any():
            return Iterates(a, R, n_iter, True)
        over = n_iter >= max_iter or (not patient and _hopeless(left, size, goal, n_iter, max_iter))
        if over or not waiting.any() or (n_iter % _REFRESH == 0 and not fresh):
            claimed = not waiting.any()
            if not fresh:
                R, fresh = Y - times(a), True
                left = np.linalg.norm(R, axis=0)
            worst = float(np.max(left / np.maximum(goal, 1e-300)))
            stable = bool(np.all(left <= np.maximum(goal, _STABLE * floor)))
            if say is not None:
                say(f"step {n_iter}: relative residual {_relative(left, size):.1e}")
            ending = claimed or stable  # the recurrence is there, or rounding is in sight:
            stuck = ending and worst > 0.5 * best  # does the truth still get better?
            if over or stuck or worst <= 1.0:
                return Iterates(a, R, n_iter, worst <= 1.0 or stuck)
            best = min(best, worst) if ending else best
            Z = precondition(R)
            if claimed:
                P = Z
            rz = _dot(R, Z)
            continue
        AP = times(P)
        curvature = _dot(P, AP)
        if not np.all(np.isfinite(curvature)):
            raise _not_finite()
        if np.any(curvature[waiting] <= 0.0):
            raise NotPositiveDefiniteError(
                f"K + shift is not positive definite: step {n_iter + 1} of conjugate gradients met "
                f"a direction p with p^T (K + shift) p = {curvature[waiting].min():.3g}. The usual "
                f"cause is a kernel that is not positive semidefinite. Try a larger shift, or "
                f"solver='lstsq'"
            )
        step = np.where(waiting, _dot(R, P) / np.where(waiting, curvature, 1.0), 0.0)
        a += step * P
        before, R = R, R - step * AP
        Z = precondition(R)
        turn = np.where(waiting & (rz > 0), _dot(Z, R - before) / np.where(rz > 0, rz, 1.0), 0.0)
        P, rz = Z + turn * P, _dot(R, Z)
        n_iter, fresh = n_iter + 1, False


def rounding_of(gram: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return a -> about |K| |a|, for the rounding of a product with K.

    |K_ij| <= sqrt(K_ii K_jj), and of n roundings that do not all have the same sign an eighth of
    the sum is left, or less.  The shift is no part of it: shift_i a_i is at most about y_i.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        root = np.sqrt(np.abs(np.asarray(gram.diagonal(), dtype=float)))
        size = float(np.linalg.norm(root)) / 8.0
    if not np.isfinite(size):
        raise _not_finite()
    return lambda a: np.asarray(size * (root @ np.abs(a)))


def _not_finite() -> ValueError:
    return ValueError(
        "K has entries that are not finite; the usual cause is a kernel that overflows on these "
        "points. Scale the features"
    )


def _dot(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", U, V)


def _relative(left: np.ndarray, size: np.ndarray) -> float:
    return float(np.max(left / np.where(size > 0, size, 1.0)))


def _hopeless(
    left: np.ndarray, size: np.ndarray, goal: np.ndarray, n_iter: int, max_iter: int
) -> bool:
    """Tell whether the decay so far, if it goes on like this, takes far more than max_iter."""
    some = size > 0
    if n_iter < _TRIAL or not some.any():
        return False
    left, size, goal = left[some], size[some], goal[some]
    gained = np.log(np.maximum(size / np.maximum(left, 1e-300), 1.0 + 1e-9))
    wanted = np.log(np.maximum(size / np.maximum(goal, 1e-300), 1.0))
    return bool(np.max(wanted / gained) * n_iter > 1.5 * max_iter)
