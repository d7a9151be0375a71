"""Preconditioned conjugate gradients for A a = y, with several right-hand sides at once.

P is the preconditioner, r the residual y - A a, and p the search direction:

    z = P^-1 r,   p <- z + b p,   a <- a + s p,   r <- r - s A p,
    s = (r . p) / (p . A p),      b = z_new . (r_new - r) / (r . z)

Each column of y has its own step sizes s and b, but one product with A serves all columns.  The
Polak-Ribiere formula for b equals the usual one if P^-1 is exact, and tolerates a P^-1 that is
applied in float32.  The recurrence for r drifts away from the true residual y - A a, which is
therefore recomputed every 20 steps, and before the iteration ends.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    NotPositiveDefiniteError,
    ProgressCallback,
    ProgressStep,
    entry_point,
    one_blas_thread,
)
from ...gram import GramOperator
from .._protocols import IterativeSolver
from .._report import Status, residual_floor
from ._cholesky import Factor, max_relative_residual


@dataclass(frozen=True)
class _CGTuning:
    """Tuning constants of conjugate gradients."""

    # Maximum number of steps if max_iter=None.
    max_steps: int = 500
    # Steps between two computations of the true residual.
    steps_per_refresh: int = 20
    # With patient=False, the iteration may be given up after this many steps, if the residual
    # decays too slowly.
    trial_steps: int = 10
    # Two levels of the residual that rounding causes, in units of eps |A| |a|: a smaller residual
    # than the first can hardly be computed, and a backward stable method guarantees the second.
    rounding_floor: float = 1.0 / 32.0
    backward_stable: float = 4.0


_TUNING = _CGTuning()
_INDEFINITE_MESSAGE = (
    "K + shift is not positive definite: step {step} of conjugate gradients met a direction p with "
    "p^T (K + shift) p = {curvature}. The usual cause is a kernel that is not positive "
    "semidefinite. Try a larger shift, or solver='lstsq'"
)


class CGResult(NamedTuple):
    """The result of conjugate gradients."""

    a: np.ndarray  # the solution
    gap: np.ndarray  # the true residual y - A a
    n_iter: int  # number of steps
    converged: bool  # whether the residual reached the tolerance, or the limit set by rounding


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
    log: ProgressCallback | None = None,
) -> CGResult:
    """Solve A a = y by preconditioned conjugate gradients, for several right-hand sides at once.

    A is symmetric and positive definite, and only its products are needed.  The iteration stops
    when |y - A a| <= tol |y| for the true residual, or as far as rounding allows.

    Rounding limits the accuracy if the true residual is no longer halved, although the residual of
    the recurrence has reached the tolerance, or although the true residual is below
    4 eps |A| |a|, which a backward stable method guarantees.  Such a result counts as converged;
    the caller decides whether its residual is acceptable.

    Parameters
    ----------
    times, precondition : callable
        Functions V -> A V and V -> P^-1 V, for V of shape (n, q) and the preconditioner P.
    Y : ndarray of shape (n, q)
        The right-hand sides.
    tol : float
        Relative residual at which the iteration stops.
    max_iter : int
        Largest number of steps.
    rounding : callable
        Function that estimates |A| |a|, one number per column of a.  A residual of eps / 32 times
        this value counts as 0, because products with A have larger rounding errors.  A residual
        above `residual_floor(dtype)` times |y| never counts as 0.
    dtype : dtype, default=float
        The precision of a product with A; eps is its machine epsilon.
    patient : bool, default=True
        If False, give up after 10 or more steps if, at the rate of convergence so far, more than
        1.5 `max_iter` steps would be needed.
    log : callable or None, default=None
        Called with a line of text that describes the progress.

    Returns
    -------
    found : CGResult
        Named tuple of the solution `a` and the true residual `gap`, both of shape (n, q), the
        number of steps `n_iter`, and whether it `converged`.

    Raises
    ------
    NotPositiveDefiniteError
        If p . A p <= 0 for a search direction p.

    References
    ----------
    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", Journal of
    Research of the National Bureau of Standards, 1952.

    Golub and Ye, "Inexact preconditioned conjugate gradient method with inner-outer iteration",
    SIAM Journal on Scientific Computing, 1999, for the formula that tolerates rounding in P^-1.

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
    run = CGRecurrence(times, precondition, np.asarray(Y, dtype=float))
    norm_y = np.linalg.norm(run.Y, axis=0)
    # `fresh` is True if R is the true residual, not that of the recurrence
    best_ratio, fresh = np.inf, True
    eps, max_goal = float(np.finfo(dtype).eps), residual_floor(dtype) * norm_y
    while True:
        rounding_error = eps * rounding(run.X)
        at_best = np.minimum(_TUNING.rounding_floor * rounding_error, max_goal)
        goals = np.maximum(tol * norm_y, at_best)
        norm_r = np.linalg.norm(run.R, axis=0)
        unsolved = norm_r > (goals if fresh else 0.5 * goals)
        recurrence_done = not unsolved.any()
        if fresh and recurrence_done:
            return CGResult(run.X, run.R, run.n_iter, True)
        give_up = run.n_iter >= max_iter
        if not (give_up or patient):
            give_up = _is_too_slow(norm_r, norm_y, goals, run.n_iter, max_iter)
        refresh = run.n_iter % _TUNING.steps_per_refresh == 0 and not fresh
        if not (give_up or recurrence_done or refresh):
            run.step(slice(None) if unsolved.all() else np.flatnonzero(unsolved))
            fresh = False
            continue
        if not fresh:
            run.R, fresh = run.residual(), True
            norm_r = np.linalg.norm(run.R, axis=0)
        worst_ratio = float(np.max(norm_r / np.maximum(goals, 1e-300)))
        guaranteed = np.maximum(goals, _TUNING.backward_stable * rounding_error)
        at_rounding = bool(np.all(norm_r <= guaranteed))
        if log is not None:
            residual = max_relative_residual(run.R, run.Y)
            log(ProgressStep(f"step {run.n_iter}: relative residual {residual:.1e}"))
        # Once the recurrence has reached the goal, or the residual is at the level of rounding,
        # continue only as long as the true residual is halved.
        near_end = recurrence_done or at_rounding
        stuck = near_end and worst_ratio > 0.5 * best_ratio
        if give_up or stuck or worst_ratio <= 1.0:
            return CGResult(run.X, run.R, run.n_iter, worst_ratio <= 1.0 or stuck)
        best_ratio = min(best_ratio, worst_ratio) if near_end else best_ratio
        run.restart(forget=recurrence_done)


class CGRecurrence:
    """The state of conjugate gradients for A X = Y: iterates X, residuals R and directions P.

    Parameters
    ----------
    times, precondition : callable
        As for `conjugate_gradients`.
    Y : ndarray of shape (n, q)
        The right-hand sides.
    indefinite : str
        Error message if A is not positive definite, with the fields {step} and {curvature}.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import CGRecurrence
    >>> A = np.diag([1.0, 4.0])
    >>> run = CGRecurrence(lambda V: A @ V, lambda V: V, np.array([[1.0], [4.0]]))
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
        indefinite: str = _INDEFINITE_MESSAGE,
    ) -> None:
        self.times, self.precondition, self.Y = times, precondition, Y
        self.indefinite = indefinite
        self.X, self.R, self.n_iter = np.zeros_like(Y), Y.copy(), 0
        self.restart(forget=True)

    def residual(self) -> np.ndarray:
        """Return the true residual Y - A X, from which R differs by rounding errors."""
        residual: np.ndarray = self.Y - self.times(self.X)
        return residual

    def restart(self, *, forget: bool) -> None:
        """Continue from the current residual R.

        If `forget` is True, the previous search directions are discarded.
        """
        Z = self.precondition(self.R)
        if forget:
            self.P = Z.copy(order="K")  # the memory layout can affect the rounding of products
        self.rz = columnwise_dot(self.R, Z)

    def step(self, active: Any) -> tuple[np.ndarray, np.ndarray]:
        """Take a step for the columns `active`.

        Returns their coefficients s and b: the iterate moves by s P, and the next direction is
        the preconditioned residual plus b P.
        """
        self.n_iter += 1
        P, R, rz = self.P[:, active], self.R[:, active], self.rz[active]
        AP = self.times(P)
        curvature = columnwise_dot(P, AP)
        if not np.all(np.isfinite(curvature)):
            raise _not_finite_error()
        if np.any(curvature <= 0.0):
            smallest = f"{curvature.min():.3g}"
            text = self.indefinite.format(step=self.n_iter, curvature=smallest)
            raise NotPositiveDefiniteError(text)
        s = columnwise_dot(R, P) / curvature
        self.X[:, active] += s * P
        R_new = R - s * AP
        Z = self.precondition(R_new)
        b = np.where(rz > 0, columnwise_dot(Z, R_new - R) / np.where(rz > 0, rz, 1.0), 0.0)
        self.R[:, active], self.P[:, active] = R_new, Z + b * P
        self.rz[active] = columnwise_dot(R_new, Z)
        return s, b


class PreconditionedFactor(Factor):
    """Base class of factors that solve (K + diag(shift)) a = y by preconditioned CG.

    Subclasses implement the preconditioner P.

    Parameters
    ----------
    options : solver
        A solver with the attributes `tol`, `max_iter`, and optionally `log`.
    gram : GramOperator
    shift : ndarray of shape (n,)
    """

    _status = Status.CONVERGED

    def __init__(self, options: IterativeSolver, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(repr(options), gram.shape[0], gram.dtype)
        self._tol, self._note = options.tol, ""
        self._gram, self._shift, self._options = gram, shift, options
        self._rounding = rounding_scale(gram)

    @abstractmethod
    def _precondition(self, R: np.ndarray) -> np.ndarray:
        """Return P^-1 R, where P is the preconditioner."""

    def _check_columns(self, columns: int) -> None:
        """Raise MemoryBudgetError if the given number of right-hand sides needs too much memory."""

    def _store_bounds(self, residual: np.ndarray) -> None:
        """Compute error bounds from the residual, and store them for the report."""

    def _solve(self, y: np.ndarray, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        options = self._options
        self._check_columns(y.shape[1])
        with one_blas_thread:  # products with a tiled K use their own threads
            found = conjugate_gradients(
                self._times,
                self._precondition,
                y,
                tol=self._tol,
                max_iter=options.max_iter or _TUNING.max_steps,
                rounding=self._rounding,
                dtype=self._gram.dtype,
                patient=patient,
                log=getattr(options, "log", None),
            )
        self._n_iter = found.n_iter
        residual = max_relative_residual(found.gap, y)
        self._status, self._message = iteration_status(found, residual, self._tol, self._note)
        self._store_bounds(found.gap)
        return found.a, found.gap

    def _times(self, V: np.ndarray) -> np.ndarray:
        product: np.ndarray = np.asarray(self._gram @ V, dtype=float) + self._shift[:, None] * V
        return product


def check_stopping_criteria(solver: IterativeSolver) -> None:
    """Raise ValueError if `tol` or `max_iter` of a solver is out of range.

    Examples
    --------
    >>> from mercer.solvers import ConjugateGradient, check_stopping_criteria
    >>> check_stopping_criteria(ConjugateGradient(tol=1e-8)) is None
    True
    """
    name = type(solver).__name__
    if not 0.0 <= solver.tol < 1.0:
        raise ValueError(f"{name}: tol must lie in [0, 1), got {solver.tol!r}")
    if solver.max_iter is not None and not solver.max_iter >= 1:
        raise ValueError(f"{name}: max_iter must be at least 1, got {solver.max_iter!r}")


def iteration_status(
    found: CGResult, residual: float, tol: float, note: str = ""
) -> tuple[Status, str]:
    """Return the status and the message for the report of conjugate gradients.

    Parameters
    ----------
    found : CGResult
        The result of the iteration.
    residual : float
        The true relative residual.
    tol : float
        The tolerance that was requested.
    note : str, optional
        Appended to the message.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import conjugate_gradients, iteration_status
    >>> options = {"tol": 1e-10, "rounding": lambda a: np.linalg.norm(a, axis=0)}
    >>> same, y = lambda V: V, np.ones((3, 1))
    >>> found = conjugate_gradients(same, same, y, max_iter=5, **options)
    >>> iteration_status(found, 0.0, 1e-10)[0].name
    'CONVERGED'
    """
    if found.converged:
        return Status.CONVERGED, note
    text = f"relative residual {residual:.1e} after {found.n_iter} steps, above tol={tol:.1e}"
    return Status.NOT_CONVERGED, "; ".join(filter(None, [text, note]))


def rounding_scale(gram: GramOperator) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that estimates |K| |a|, which determines the rounding errors of K a.

    The estimate uses |K_ij| <= sqrt(K_ii K_jj).  It is divided by 8, because rounding errors of
    different signs partly cancel.  The shift is ignored, because shift_i a_i is at most about y_i.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        root = np.sqrt(np.abs(np.asarray(gram.diagonal(), dtype=float)))
        scale = float(np.linalg.norm(root)) / 8.0
    if not np.isfinite(scale):
        raise _not_finite_error()
    return lambda a: np.asarray(scale * (root @ np.abs(a)))


def _not_finite_error() -> ValueError:
    return ValueError(
        "K has entries that are not finite. The usual cause is a kernel that overflows on these "
        "points. Scale the features"
    )


def columnwise_dot(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the inner product of each column of U with the same column of V.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import columnwise_dot
    >>> columnwise_dot(np.ones((3, 2)), np.array([[1.0, 2.0]] * 3))
    array([3., 6.])
    """
    products: np.ndarray = np.einsum("ij,ij->j", U, V)
    return products


def _is_too_slow(
    norm_r: np.ndarray, norm_y: np.ndarray, goals: np.ndarray, n_iter: int, max_iter: int
) -> bool:
    """Whether, at the rate of convergence so far, more than 1.5 max_iter steps would be needed."""
    nonzero = norm_y > 0
    if n_iter < _TUNING.trial_steps or not nonzero.any():
        return False
    norm_r, norm_y, goals = norm_r[nonzero], norm_y[nonzero], goals[nonzero]
    achieved = np.log(np.maximum(norm_y / np.maximum(norm_r, 1e-300), 1.0 + 1e-9))
    required = np.log(np.maximum(norm_y / np.maximum(goals, 1e-300), 1.0))
    return bool(np.max(required / achieved) * n_iter > 1.5 * max_iter)
