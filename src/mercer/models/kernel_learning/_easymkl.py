"""Kernel weights from support vector machines: EasyMKL and SimpleMKL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import budget_in_bytes, length, take, warn_caller
from ...gram import DenseGram, KernelRows, gram
from ...kernels import Kernel, Precomputed, Prepared, Sum, node
from ...solvers import BlockSMO, Dual, DualSolution, Status
from ._closed_form_weights import WeightingProblem, weighted_sum

__all__ = ["easymkl_weights", "simplemkl_weights"]


@dataclass(frozen=True)
class _MKLTuning:
    """Stopping criteria of SimpleMKL, and storage of the kernel matrix."""

    # SimpleMKL stops when the duality gap is below this fraction of the objective.
    relative_gap: float = 1e-2
    # Maximum number of alternating updates of SVMs and weights.
    max_iter: int = 200
    # A weight below this fraction of the largest is set to 0.
    negligible_weight: float = 1e-4
    # K is stored if the memory budget is at least this many times the size of K.
    min_budget_ratio: int = 4
    # Epsilon of support vector regression, in standard deviations of the targets.
    epsilon: float = 0.1


_TUNING = _MKLTuning()


@node
class _DiagonalKernel(Kernel):
    """Diagonal kernel, k(x_i, x_j) = r_i if i = j, else 0: adds a ridge to each observation."""

    r: Any = ()

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        return Prepared(positions=range(length(X)))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        i, j = P.coincidences(Q)
        out[i, j] = self.r[P.index[i]]

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(self.r)


def easymkl_weights(problem: WeightingProblem, ridge: float) -> np.ndarray:
    """Return the contribution g^T K_k g of each kernel to the margin between classes (EasyMKL).

    g minimises the squared distance between the convex hulls of the two classes, with a ridge,

        g^T ((1 - ridge) sum_k K_k / p + ridge diag(1 / w)) g

    for p kernels and sample weights w, where the coefficients g sum to 1 over one class and to -1
    over the other (Aiolli and Donini, 2015).  With several classes, the one-vs-rest contributions
    are added.
    """
    if not problem.has_classes:
        raise ValueError(
            "method='easymkl' maximises the margin between classes, but the targets are numbers; "
            "use 'alignf', 'likelihood' or 'simplemkl'"
        )
    n, p = len(problem.Y), len(problem.kernels)
    mixed = (
        weighted_sum(problem.kernels, np.full(p, (1.0 - ridge) / p)).terms if ridge < 1.0 else ()
    )
    rows = _kernel_rows(Sum((*mixed, _DiagonalKernel(ridge / problem.counts))), problem)
    solver, ones = BlockSMO(tol=1e-4 / n), np.ones(n)
    duals = [Dual.nu_classify(signs, ones, 2.0 / n) for signs in problem.signs.T]
    solutions = [solver.minimize(rows, dual) for dual in duals]
    _warn_if_not_converged(solutions)
    return _squared_norms(problem, np.column_stack([s.coefficients for s in solutions]))


def simplemkl_weights(problem: WeightingProblem, C: float) -> np.ndarray:
    """Return the weights that minimise the objective of a support vector machine (SimpleMKL).

    Over weights v >= 0 with sum 1, they minimise the maximum over the SVM coefficients a of the
    dual objective

        sum_i |a_i| - 1/2 a^T (sum_k v_k K_k) a

    (Rakotomamonjy et al., 2008).  The component f_k of the decision function f that belongs to
    kernel k has the norm |f_k| = v_k sqrt(a^T K_k a), and for a fixed f the optimal v_k is
    proportional to |f_k|.  Updating the SVM and the weights in turn therefore decreases the
    objective without a line search (Xu et al., 2010).  The iteration stops when the duality gap
    shows that no other weights could lower the objective by more than 1 %.

    With several classes, the one-vs-rest objectives are added.  For numeric targets, the model is
    support vector regression with an epsilon of a tenth of their standard deviation.
    """
    if problem.has_classes:
        duals = [Dual.classify(signs, C * problem.counts) for signs in problem.signs.T]
    else:
        mean = np.average(problem.Y, axis=0, weights=problem.weights)
        spread = np.sqrt(np.average((problem.Y - mean) ** 2, axis=0, weights=problem.weights))
        Y = (problem.Y - mean) / np.where(spread > 0, spread, 1.0)
        duals = [Dual.regress(y, C * problem.counts, _TUNING.epsilon) for y in Y.T]
    v, gap, objective = np.full(len(problem.kernels), 1.0 / len(problem.kernels)), np.inf, np.inf
    for _ in range(_TUNING.max_iter):
        rows = _kernel_rows(weighted_sum(problem.kernels, v), problem)
        solutions = [BlockSMO().minimize(rows, dual) for dual in duals]
        del rows
        duals = [replace(d, start=s.variables) for d, s in zip(duals, solutions, strict=True)]
        squared_norms = _squared_norms(
            problem, np.column_stack([s.coefficients for s in solutions])
        )
        gap = 0.5 * float(squared_norms.max() - v @ squared_norms)
        objective = float(sum(s.report.certificate["dual"] for s in solutions))
        if gap <= _TUNING.relative_gap * abs(objective):
            break
        v = v * np.sqrt(squared_norms)
        v /= v.sum()
    else:
        warn_caller(
            f"the weights of the kernels have not converged after {_TUNING.max_iter} iterations: "
            f"other weights might lower the objective of {objective:.4g} by {gap:.2g}. Try a "
            f"smaller C, which converges faster",
            ConvergenceWarning,
        )
    _warn_if_not_converged(solutions)
    return np.where(v > _TUNING.negligible_weight * v.max(), v, 0.0)


def _warn_if_not_converged(solutions: list[DualSolution]) -> None:
    """Warn if one of the SVMs has not converged."""
    worst = max(solutions, key=lambda s: s.report.certificate["violation"])
    if any(s.report.status is Status.NOT_CONVERGED for s in solutions):
        warn_caller(
            f"the weights of the kernels come from an SVM that did not converge: its optimality "
            f"conditions are violated by up to {worst.report.certificate['violation']:.2g}. Try "
            f"scaled features, or another method",
            ConvergenceWarning,
        )


def _kernel_rows(kernel: Kernel, problem: WeightingProblem) -> KernelRows:
    """Return an object that provides rows of K; a small K is stored and shared by all SVMs."""
    if 8 * len(problem.Y) ** 2 * _TUNING.min_budget_ratio > budget_in_bytes(problem.max_memory):
        return KernelRows(kernel, problem.X, max_memory=problem.max_memory)
    array = DenseGram(kernel, problem.X).release()
    array.setflags(write=False)
    return KernelRows(Precomputed(array), np.arange(len(array)), max_memory=problem.max_memory)


def _squared_norms(problem: WeightingProblem, V: np.ndarray) -> np.ndarray:
    """Return sum_j v_j^T K_k v_j over the columns v_j of V, for each kernel k.

    K_k is evaluated only on the points with a nonzero coefficient.
    """
    support = np.flatnonzero(np.any(V != 0.0, axis=1))
    points, A = take(problem.X, support), V[support]
    squared_norms = [
        np.sum(A * (gram(k, points, storage="tiled", max_memory=problem.max_memory) @ A))
        for k in problem.kernels
    ]
    return np.maximum(squared_norms, 0.0)
