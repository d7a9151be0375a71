"""SMO for many small dual problems on one stored K, in one compiled call.

Two stages alternate:

    1. SMO steps for each program in turn.
    2. The gradient g = K v + q is recomputed, and v refined by solving the linear equations of its
       free variables.

A program that needs many more steps than the others is left unfinished; the caller continues it
separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._refine_numba import MAX_FREE, refine_numba
from ._refine_numpy import QPBatch, refine_numpy
from ._smo_steps import run_steps

__all__ = ["BatchedSMO"]


@dataclass(frozen=True)
class _BatchedTuning:
    """Tuning constants of batched SMO."""

    # Maximum number of SMO steps per program in one compiled call, which cannot be interrupted.
    steps_per_call: int = 10_000
    # Maximum number of rounds; each consists of SMO steps and a refinement.
    max_rounds: int = 2
    # A program is not refined further if its violation, relative to the gradient, is at most this.
    exact_violation: float = 1e-11
    # At most this many programs are refined by NumPy and LAPACK; more are refined by compiled code.
    max_numpy_programs: int = 16
    # Up to this many free variables, all programs are refined in one system of equations.
    max_joint_free: int = 128


_TUNING = _BatchedTuning()


class BatchedSMO:
    """Solve several quadratic programs on one K, and refine the solutions to full precision.

    The programs are solved on construction.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix, in float64.
    programs : QPBatch
    start : ndarray
        A feasible start of all variables.
    tol : float
        Violation at which SMO stops.
    max_iter : int
        Maximum number of steps per program; -1 for 10 000, the limit of one call.

    Attributes
    ----------
    v, g : ndarray
        The variables, and their gradients K v + q.
    violation : ndarray of shape (programs,)
    multipliers : ndarray of shape (programs, 2)
    steps, negative_steps : ndarray of int of shape (programs,)
        The number of steps, and the number of steps with negative curvature.
    curvature : ndarray of shape (programs,)
        The most negative curvature, or 0.
    """

    def __init__(
        self, K: np.ndarray, programs: QPBatch, start: np.ndarray, tol: float, max_iter: int
    ) -> None:
        self.K, self.programs, self.tol, count = K, programs, tol, len(programs)
        self.v = start.copy()
        self.g = programs.linear.copy()
        if start.any() and count <= _TUNING.max_numpy_programs:
            self.g = programs.gradient(K, start)
        elif start.any():
            self._refine(programs, self.v, self.g, None, np.ones(count, dtype=bool))
        self.violation, self.multipliers = np.full(count, np.inf), np.zeros((count, 2))
        self.steps, self.negative_steps = (
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
        )
        self.curvature = np.zeros(count)
        if not np.isfinite(self.g).all():
            return
        max_steps = (
            _TUNING.steps_per_call if max_iter < 0 else min(_TUNING.steps_per_call, max_iter)
        )
        self._advance(np.ones(count, dtype=bool), tol, max_steps)
        # Refinement may take as many steps as the solution to tol did.
        limit = 2 * self.steps
        if max_iter >= 0:
            limit = np.minimum(limit, max_iter)
        for _ in range(_TUNING.max_rounds - 1):
            unrefined = self._needs_refinement(
                programs, self.g, self.violation, self.negative_steps
            ) & (self.steps < limit)
            if not unrefined.any():
                break
            goal = max(0.01 * float(self.violation[unrefined].min()), _TUNING.exact_violation)
            self._advance(unrefined, goal, int((limit - self.steps)[unrefined].max()))

    def _advance(self, selected: np.ndarray, goal: float, max_steps: int) -> None:
        """Take SMO steps in the selected programs and refine them; keep results that are better."""
        all_indices: Any = slice(None)  # a slice is faster than an array of all indices
        programs, indices, selected = (
            (self.programs, all_indices, all_indices)
            if selected.all()
            else (*self.programs.subset(selected), selected)
        )
        g, v = self.g[indices].copy(), self.v[indices].copy()
        box = programs.lower, programs.upper
        results = run_steps(self.K, programs.rows, programs.starts, g, v, *box, goal, max_steps)
        self.steps[selected] += results[:, 0].astype(np.int64)
        self.negative_steps[selected] += results[:, 2].astype(np.int64)
        self.curvature[selected] = np.minimum(self.curvature[selected], results[:, 1])
        results = self._refine(programs, v, g, results[:, 3], self.negative_steps[selected])
        better = results[:, 0] < self.violation[selected]
        if indices is all_indices and better.all():
            self.v, self.g, self.violation, self.multipliers = v, g, results[:, 0], results[:, 1:]
            return
        accepted = np.repeat(better, programs.sizes)
        self.v[indices], self.g[indices] = (
            np.where(accepted, v, self.v[indices]),
            np.where(accepted, g, self.g[indices]),
        )
        chosen = np.arange(len(self.programs))[selected][better]
        self.violation[chosen], self.multipliers[chosen] = results[better, 0], results[better, 1:]

    def _needs_refinement(
        self, programs: QPBatch, g: np.ndarray, violation: Any, negative_steps: Any
    ) -> np.ndarray:
        """Return a mask of the programs that have converged to tol, but not to full precision."""
        selected = (
            (violation <= self.tol) & (violation > _TUNING.exact_violation) & (negative_steps == 0)
        )
        if selected.any():
            size = np.maximum.reduceat(np.abs(g), programs.program_starts)
            selected &= violation > _TUNING.exact_violation * (1.0 + size)
        return selected

    def _refine(
        self, programs: QPBatch, v: np.ndarray, g: np.ndarray, violation: Any, negative_steps: Any
    ) -> np.ndarray:
        """Recompute g and refine v, in place; return the violations and multipliers.

        The result has shape (programs, 3): the violation, and the multipliers of both groups.

        `violation` is the violation of v.  Programs with negative curvature, where
        `negative_steps` is not 0, are not refined.
        """
        if len(programs) > _TUNING.max_numpy_programs:
            results = np.empty((len(programs), 3))
            work_size = max(MAX_FREE, int(programs.sizes.max()))
            R, work = np.empty((MAX_FREE, MAX_FREE)), np.empty((3, work_size))
            free = np.empty(MAX_FREE, dtype=np.int64)
            results[:, 0] = np.where(negative_steps, -np.inf, self.tol)
            box = programs.linear, programs.lower, programs.upper
            refine_numba(
                self.K,
                programs.rows,
                programs.starts,
                *box,
                v,
                g,
                _TUNING.exact_violation,
                R,
                work,
                free,
                results,
            )
            return results
        selected, refined = self._needs_refinement(programs, g, violation, negative_steps), v
        if selected.any():
            for batch in _batches(programs, v, selected):
                refined = refine_numpy(self.K, programs, refined, g, batch)
        g[:] = programs.gradient(self.K, refined)
        results = programs.kkt_residuals(refined, g)
        worse = selected & (results[:, 0] >= violation)
        if worse.any():
            refined = np.where(np.repeat(worse, programs.sizes), v, refined)
            g[:] = programs.gradient(self.K, refined)
            results = programs.kkt_residuals(refined, g)
        v[:] = refined
        return results


def _batches(programs: QPBatch, v: np.ndarray, selected: np.ndarray) -> list[np.ndarray]:
    """Return masks of programs; the programs of a mask are refined in one system of equations."""
    free = (v > programs.lower) & (v < programs.upper)
    if len(programs) == 1 or np.count_nonzero(free) <= _TUNING.max_joint_free:
        return [selected]
    return [np.arange(len(programs)) == p for p in np.flatnonzero(selected)]
