"""Weights of kernels from the margin between classes: EasyMKL, and the objective of SimpleMKL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._points import length, take
from .._runtime import budget_in_bytes
from ..gram import DenseGram, KernelRows, gram
from ..kernels import Kernel, Precomputed, Prepared, Sum, node
from ..solvers import BlockSMO, Dual, DualSolution, Status
from ._weights import Candidates, combined

__all__ = ["easymkl", "simplemkl"]

_GAP = 1e-2  # of the objective, at which SimpleMKL ends
_STEPS = 200
_NONE = 1e-4  # a weight below this part of the largest is 0
_SHARE = 4  # K is held if it takes this part of the budget
_TUBE = 0.1  # errors that regression excuses, in standard deviations of the targets


@node
class _Diagonal(Kernel):
    """k(x_i, x_j) = r_i if i = j, else 0: a ridge of its own for each observation."""

    r: Any = ()

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        return Prepared(positions=range(length(X)))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        i, j = P.coincidences(Q)
        out[i, j] = self.r[P.index[i]]

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(self.r)


def easymkl(c: Candidates, ridge: float) -> np.ndarray:
    """Return what each kernel has of the margin, g^T K_k g, for the g that minimises

        g^T ((1 - ridge) sum_k K_k / p + ridge diag(1 / w)) g

    with numbers that add up to 1 over one class and to -1 over the other: the squared distance
    between the convex hulls of the classes (Aiolli and Donini, 2015).  Several classes are each
    held against the others.
    """  # noqa: D400
    if not c.classes:
        raise ValueError(
            "method='easymkl' seeks the margin between classes, but the targets are numbers; use "
            "'alignf', 'likelihood' or 'simplemkl'"
        )
    n, p = len(c.Y), len(c.kernels)
    mixed = combined(c.kernels, np.full(p, (1.0 - ridge) / p)).terms if ridge < 1.0 else ()
    rows = _rows(Sum((*mixed, _Diagonal(ridge / c.counts))), c)
    solver, ones = BlockSMO(tol=1e-4 / n), np.ones(n)
    duals = [Dual.nu_classify(signs, ones, 2.0 / n) for signs in c.signs.T]
    found = [solver.minimize(rows, dual) for dual in duals]
    _tell(found)
    return _squares(c, np.column_stack([s.coefficients for s in found]))


def simplemkl(c: Candidates, C: float) -> np.ndarray:
    """Return argmin_v max_a, v >= 0 with sum 1, of the dual objective of a support vector machine

        sum_i |a_i| - 1/2 a^T (sum_k v_k K_k) a

    (Rakotomamonjy et al., 2008).  Since |f_k| = v_k sqrt(a^T K_k a) is the norm of the part of f
    that belongs to kernel k, and v_k proportional to |f_k| is optimal for that f, machines and
    weights are found in turn, which lowers the objective without a line search (Xu et al., 2010).
    It ends when no other weights could lower it by more than 1 % (the gap of the dual).

    Several classes are each held against the others, and numbers are met by regression with a tube
    of a tenth of their standard deviation; the objectives are added.
    """  # noqa: D400
    if c.classes:
        duals = [Dual.classify(signs, C * c.counts) for signs in c.signs.T]
    else:
        mean = np.average(c.Y, axis=0, weights=c.weights)
        spread = np.sqrt(np.average((c.Y - mean) ** 2, axis=0, weights=c.weights))
        Y = (c.Y - mean) / np.where(spread > 0, spread, 1.0)
        duals = [Dual.regress(y, C * c.counts, _TUBE) for y in Y.T]
    v, gap, objective = np.full(len(c.kernels), 1.0 / len(c.kernels)), np.inf, np.inf
    for _ in range(_STEPS):
        rows = _rows(combined(c.kernels, v), c)
        found = [BlockSMO().minimize(rows, dual) for dual in duals]
        del rows
        duals = [replace(d, start=s.variables) for d, s in zip(duals, found, strict=True)]
        squares = _squares(c, np.column_stack([s.coefficients for s in found]))
        gap = 0.5 * float(squares.max() - v @ squares)
        objective = float(sum(s.report.certificate["dual"] for s in found))
        if gap <= _GAP * abs(objective):
            break
        v = v * np.sqrt(squares)
        v /= v.sum()
    else:
        warn_caller(
            f"the weights of the kernels are not settled after {_STEPS} machines: others might "
            f"lower the objective of {objective:.4g} by {gap:.2g}. A smaller C converges faster",
            ConvergenceWarning,
        )
    _tell(found)
    return np.where(v > _NONE * v.max(), v, 0.0)


def _tell(found: list[DualSolution]) -> None:
    """Warn of machines that have not converged."""
    worst = max(found, key=lambda s: s.report.certificate["violation"])
    if any(s.report.status is Status.NOT_CONVERGED for s in found):
        warn_caller(
            f"weights of kernels come from a machine that did not converge: its conditions are "
            f"violated by up to {worst.report.certificate['violation']:.2g}",
            ConvergenceWarning,
        )


def _rows(kernel: Kernel, c: Candidates) -> KernelRows:
    """Return rows of K, which is held if it takes little of the budget: machines share it."""
    if 8 * len(c.Y) ** 2 * _SHARE > budget_in_bytes(c.max_memory):
        return KernelRows(kernel, c.X, max_memory=c.max_memory)
    array = DenseGram(kernel, c.X).release()
    array.setflags(write=False)
    return KernelRows(Precomputed(array), np.arange(len(array)), max_memory=c.max_memory)


def _squares(c: Candidates, V: np.ndarray) -> np.ndarray:
    """Return sum_c v_c^T K_k v_c for each kernel, from the points that have a coefficient."""
    some = np.flatnonzero(np.any(V != 0.0, axis=1))
    points, A = take(c.X, some), V[some]
    squares = [
        np.sum(A * (gram(k, points, storage="tiled", max_memory=c.max_memory) @ A))
        for k in c.kernels
    ]
    return np.maximum(squares, 0.0)
