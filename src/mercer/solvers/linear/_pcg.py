"""Preconditioned conjugate gradients on A a = y, the columns of y in lockstep.

    z = P^-1 r,   p <- z + b p,   a <- a + s p,   r <- r - s A p,
    s = (r . p) / (p . A p),      b = z_new . (r_new - r) / (r . z)

Each column has steps of its own, but one product serves all.  This b (Polak and Ribiere's) is the
usual one where P^-1 is exact, and forgives a P^-1 that rounds to float32.  The r of the recurrence
drifts away from y - A a: it is computed anew every 20 steps, and before anything is called solved.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._errors import NotPositiveDefiniteError
from ..._runtime import Step, entry_point, one_blas_thread
from ...gram import GramOperator
from .._report import Status, enough
from ._cholesky import Factor, relative

__all__ = [
    "Iterates",
    "PreconditionedFactor",
    "Recurrence",
    "check_stopping",
    "columnwise",
    "conjugate_gradients",
    "ended",
]

_MOST_STEPS = 500  # steps at most where the solver does not say
_REFRESH = 20  # steps after which the true residual is computed
_TRIAL = 10  # steps before an impatient caller may be told that there will be too many
# What rounding leaves of a residual, in units of eps |A| |a|: products hardly do better than the
# first, and a backward stable method may do as badly as the second.
_FLOOR, _STABLE = 1.0 / 32.0, 4.0
_INDEFINITE = (
    "K + shift is not positive definite: step {step} of conjugate gradients met a direction p with "
    "p^T (K + shift) p = {curvature}. The usual cause is a kernel that is not positive "
    "semidefinite. Try a larger shift, or solver='lstsq'"
)


class Iterates(NamedTuple):
    """Where the iteration ended."""

    a: np.ndarray
    gap: np.ndarray  # the true y - A a
    n_iter: int
    converged: bool  # or as far as rounding allows


@entry_point
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

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import conjugate_gradients
    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> found = conjugate_gradients(
    ...     lambda V: A @ V,
    ...     lambda V: V,
    ...     np.ones((3, 1)),
    ...     tol=1e-10,
    ...     max_iter=10,
    ...     rounding=lambda a: 4.0 * np.linalg.norm(a, axis=0),
    ... )
    >>> found.converged, found.n_iter
    (True, 3)
    """
    run = Recurrence(times, precondition, np.asarray(Y, dtype=float))
    size = np.linalg.norm(run.Y, axis=0)
    best, fresh = np.inf, True  # fresh: R is the true residual
    eps, most = float(np.finfo(dtype).eps), enough(dtype) * size
    while True:
        floor = eps * rounding(run.X)
        goal = np.maximum(tol * size, np.minimum(_FLOOR * floor, most))
        left = np.linalg.norm(run.R, axis=0)
        waiting = left > (goal if fresh else 0.5 * goal)
        claimed = not waiting.any()
        if fresh and claimed:
            return Iterates(run.X, run.R, run.n_iter, True)
        over = run.n_iter >= max_iter
        over = over or (not patient and _hopeless(left, size, goal, run.n_iter, max_iter))
        if not (over or claimed or (run.n_iter % _REFRESH == 0 and not fresh)):
            run.step(slice(None) if waiting.all() else np.flatnonzero(waiting))
            fresh = False
            continue
        if not fresh:
            run.R, fresh = run.residual(), True
            left = np.linalg.norm(run.R, axis=0)
        worst = float(np.max(left / np.maximum(goal, 1e-300)))
        stable = bool(np.all(left <= np.maximum(goal, _STABLE * floor)))
        if say is not None:
            say(Step(f"step {run.n_iter}: relative residual {relative(run.R, run.Y):.1e}"))
        # Where the recurrence has reached the goal, or rounding is in sight, go on only as long as
        # the true residual is halved.
        ending = claimed or stable
        stuck = ending and worst > 0.5 * best
        if over or stuck or worst <= 1.0:
            return Iterates(run.X, run.R, run.n_iter, worst <= 1.0 or stuck)
        best = min(best, worst) if ending else best
        run.restart(forget=claimed)


class Recurrence:
    """The recurrence of the module: X, the residual R, and the directions P of all columns.

    Parameters
    ----------
    times, precondition : callable
        As for `conjugate_gradients`.
    Y : ndarray of shape (n, q)
    indefinite : str
        The error if A is not positive definite, with places for {step} and {curvature}.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Recurrence
    >>> A = np.diag([1.0, 4.0])
    >>> run = Recurrence(lambda V: A @ V, lambda V: V, np.array([[1.0], [4.0]]))
    >>> for _ in range(2):
    ...     _ = run.step([0])
    >>> run.X.ravel().round(6)
    array([1., 1.])
    """

    def __init__(
        self,
        times: Callable[[np.ndarray], np.ndarray],
        precondition: Callable[[np.ndarray], np.ndarray],
        Y: np.ndarray,
        indefinite: str = _INDEFINITE,
    ) -> None:
        self.times, self.precondition, self.Y = times, precondition, Y
        self.indefinite = indefinite
        self.X, self.R, self.n_iter = np.zeros_like(Y), Y.copy(), 0
        self.restart(forget=True)

    def residual(self) -> np.ndarray:
        """Return the true Y - A X; R drifts away from it."""
        return self.Y - self.times(self.X)

    def restart(self, *, forget: bool) -> None:
        """Go on from R as it is now; `forget` drops the directions taken so far."""
        Z = self.precondition(self.R)
        if forget:
            self.P = Z.copy(order="K")  # a product may round differently in another layout
        self.rz = columnwise(self.R, Z)

    def step(self, active: Any) -> tuple[np.ndarray, np.ndarray]:
        """Take a step with the columns `active`, and return the coefficients s and b of each."""
        self.n_iter += 1
        P, R, rz = self.P[:, active], self.R[:, active], self.rz[active]
        AP = self.times(P)
        curvature = columnwise(P, AP)
        if not np.all(np.isfinite(curvature)):
            raise _not_finite()
        if np.any(curvature <= 0.0):
            least = f"{curvature.min():.3g}"
            text = self.indefinite.format(step=self.n_iter, curvature=least)
            raise NotPositiveDefiniteError(text)
        s = columnwise(R, P) / curvature
        self.X[:, active] += s * P
        new = R - s * AP
        Z = self.precondition(new)
        b = np.where(rz > 0, columnwise(Z, new - R) / np.where(rz > 0, rz, 1.0), 0.0)
        self.R[:, active], self.P[:, active] = new, Z + b * P
        self.rz[active] = columnwise(new, Z)
        return s, b


class PreconditionedFactor(Factor):
    """A preconditioner of A = K + diag(shift), and the conjugate gradients that solve with it.

    Parameters
    ----------
    options : solver
        With `tol`, `max_iter`, and perhaps `say`.
    gram : GramOperator
    shift : ndarray of shape (n,)
    """

    _status = Status.CONVERGED

    def __init__(self, options: Any, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(repr(options), gram.shape[0], gram.dtype)
        self._tol, self._note = options.tol, ""
        self._gram, self._shift, self._options = gram, shift, options
        self._rounding = rounding_of(gram)

    @abstractmethod
    def _precondition(self, R: np.ndarray) -> np.ndarray:
        """Return P^-1 R."""

    def _check_columns(self, columns: int) -> None:
        """Refuse a right-hand side that takes too much memory."""

    def _keep_bounds(self, gap: np.ndarray) -> None:
        """Remember what the residual says of the errors."""

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        options = self._options
        self._check_columns(y.shape[1])
        with one_blas_thread:  # tiles have threads of their own, on which the bits do not depend
            found = conjugate_gradients(
                self._times,
                self._precondition,
                y,
                tol=self._tol,
                max_iter=options.max_iter or _MOST_STEPS,
                rounding=self._rounding,
                dtype=self._gram.dtype,
                patient=patient,
                say=getattr(options, "say", None),
            )
        self._n_iter = found.n_iter
        self._status, self._message = ended(found, relative(found.gap, y), self._tol, self._note)
        self._keep_bounds(found.gap)
        return found.a, found.gap

    def _times(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self._gram @ V, dtype=float) + self._shift[:, None] * V


def check_stopping(solver: Any) -> None:
    """Refuse a tolerance or a number of steps that makes no sense.

    Examples
    --------
    >>> from mercer.solvers import ConjugateGradient, check_stopping
    >>> check_stopping(ConjugateGradient(tol=1e-8)) is None
    True
    """
    name = type(solver).__name__
    if not 0.0 <= solver.tol < 1.0:
        raise ValueError(f"{name}: tol must lie in [0, 1), got {solver.tol!r}")
    if solver.max_iter is not None and not solver.max_iter >= 1:
        raise ValueError(f"{name}: max_iter must be at least 1, got {solver.max_iter!r}")


def ended(found: Iterates, residual: float, tol: float, note: str = "") -> tuple[Status, str]:
    """Return how an iteration ended, and what to say of it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import conjugate_gradients, ended
    >>> options = {"tol": 1e-10, "rounding": lambda a: np.linalg.norm(a, axis=0)}
    >>> same, y = lambda V: V, np.ones((3, 1))
    >>> found = conjugate_gradients(same, same, y, max_iter=5, **options)
    >>> ended(found, 0.0, 1e-10)[0].name
    'CONVERGED'
    """
    if found.converged:
        return Status.CONVERGED, note
    text = f"relative residual {residual:.1e} after {found.n_iter} steps, {tol:.1e} was asked for"
    return Status.NOT_CONVERGED, "; ".join(filter(None, [text, note]))


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


def columnwise(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return u_j . v_j for each column j.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import columnwise
    >>> columnwise(np.ones((3, 2)), np.array([[1.0, 2.0]] * 3))
    array([3., 6.])
    """
    return np.einsum("ij,ij->j", U, V)


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
