"""The training problem of a support vector machine, in the form that its solver requires.

==========  ===========================================  =======================================
solver      input of the solver                          when "auto" chooses it
==========  ===========================================  =======================================
"smo"       rows of K through a cache (BlockSMO)         always, unless "primal" applies
"primal"    the columns of X: k(x, z) = <x, z>           linear kernel and dense X with more than
            (BoxInterior)                                500 rows and fewer columns than rows, if
                                                         "smo" takes longer than 1/7 of the time
                                                         estimated for "primal", or all of it for
                                                         up to 1600 points (SMOThenInteriorPoint)
"nystroem"  features on landmarks (BoxInterior)          never, because it is approximate
==========  ===========================================  =======================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..._core import Points, ProgressCallback, ProgressStep
from ...gram import KernelRows
from ...kernels import Kernel
from ...solvers import (
    BlockSMO,
    DualProgress,
    Duals,
    DualSolutions,
    DualSolver,
    FollowCallback,
    Report,
    Reports,
    Status,
    WhitenedCoordinates,
)
from .._training_sample import Sample
from ._one_vs_one import Pair, Pairs

# A warning reports a column whose mean exceeds this many standard deviations, as it needs centring.
_MAX_MEAN_TO_STD = 1e4


SolverData: TypeAlias = KernelRows | np.ndarray | tuple[KernelRows, np.ndarray]


@dataclass(frozen=True, eq=False)
class SVMProblem:
    """The training data of an SVM, in the form that its solver requires.

    Attributes
    ----------
    sample : Sample
        The points of positive weight.  Their weights include the class weights.
    kernel : Kernel
        The resolved kernel, which is used for predictions.
    solver : DualSolver
        The solver of the dual problems.
    data : KernelRows, ndarray or tuple
        Rows of K, features F with F F^T = K, or both.
    phi : WhitenedCoordinates or None
        The feature map on landmarks, if solver="nystroem".
    class_weights : ndarray of shape (n_classes,)
        The class weights, by which the weights of the points have been multiplied.
    """

    sample: Sample
    kernel: Kernel
    solver: DualSolver
    data: SolverData
    phi: WhitenedCoordinates | None = None
    class_weights: np.ndarray = field(default_factory=lambda: np.ones(1))

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of classes; for an SVM with one function, a single pair with all points."""
        if self.sample.classes is None:
            return Pairs(np.zeros(len(self.sample), dtype=np.intp), 2)
        return Pairs(self.sample.labels, len(self.sample.classes))

    @property
    def rows(self) -> KernelRows | None:
        """The cache of rows of K, if the solver uses one."""
        data = self.data[0] if isinstance(self.data, tuple) else self.data
        return data if isinstance(data, KernelRows) else None

    def minimize_all(self, duals: Duals, log: ProgressCallback | None = None) -> DualSolutions:
        """Solve the dual problem of each pair of classes; `log` prints progress."""
        pairs = list(self.pairs)

        def follow(p: int) -> FollowCallback:
            return None if log is None else progress_callback(log, self.title(pairs[p]))

        def data(p: int) -> Any:
            return self._data_of(self.data, pairs[p])

        if isinstance(self.solver, BlockSMO) and isinstance(self.data, KernelRows):
            callbacks = None if log is None else follow
            return self.solver.minimize_all(self.data, duals, data, callbacks)
        numbered = enumerate(duals)
        solutions = (self.solver.minimize(data(p), dual, follow(p)) for p, dual in numbered)
        return DualSolutions.of(solutions, duals)

    def _data_of(self, data: SolverData, pair: Pair) -> Any:
        """Return the part of the data that belongs to a pair of classes."""
        if isinstance(data, tuple):
            return tuple(self._data_of(part, pair) for part in data)
        is_single = len(self.pairs) == 1
        if isinstance(data, KernelRows):
            return data.view(*(() if is_single else pair))
        return data if is_single else data[self.pairs.members(pair)]

    @property
    def weighted_sums(self) -> np.ndarray:
        """The sum of the weights of the points of each class, including the class weights."""
        return np.bincount(self.sample.labels, self.sample.counts)

    @property
    def sums(self) -> np.ndarray:
        """The sum of the sample weights of the points of each class, without the class weights."""
        return self.weighted_sums / self.class_weights

    def names(self, pair: Pair) -> list[object]:
        """Return the original labels of the two classes of a pair."""
        return self.sample.classes[list(pair)].tolist()

    def title(self, pair: Pair) -> str:
        """Return a prefix of progress messages that names the pair; empty for a single pair."""
        if len(self.pairs) == 1:
            return ""
        a, b = self.names(pair)
        number = list(self.pairs).index(pair) + 1
        return f"{a} vs. {b} ({number} of {len(self.pairs)}): "

    @property
    def counts(self) -> tuple[int, int]:
        """The number of rows of K requested so far, and how many of them were in the cache."""
        return (0, 0) if self.rows is None else (self.rows.requests, self.rows.hits)

    @property
    def largest(self) -> float:
        """The largest |k(x, x)|; 0 for features, whose kernel is always positive semidefinite."""
        return 0.0 if self.rows is None else self.rows.largest


def progress_callback(log: ProgressCallback, title: str) -> Callable[[DualProgress], None]:
    """Return a callback that logs the progress of a solver, prefixed with the title."""

    def follow(state: DualProgress) -> None:
        text = (
            f"{title}{state.n_iter} steps, {state.seconds:.1f} s: violation {state.violation:.2e}, "
        )
        log(ProgressStep(f"{text}dual objective {state.objective:.8g}"))

    return follow


def merge_reports(
    problem: SVMProblem, reports: Reports, before: tuple[int, int], note: str = ""
) -> Report:
    """Combine the reports of all pairs: costs, objectives and gaps are added, violations maximised.

    Parameters
    ----------
    problem : SVMProblem
        The problem that was solved.
    reports : Reports
        The report of each pair.
    before : tuple of int
        The value of `problem.counts` before solving.
    note : str
        A remark for the message of the report.
    """
    requests, hits = (now - then for now, then in zip(problem.counts, before, strict=True))
    # Objectives, gaps and counts are added, apart from the following entries.
    columns = reports.certificate
    merged = {
        "violation": float(columns["violation"].max()),
        "cache_hits": float(hits / requests) if requests else float("nan"),
        "curvature": float(columns["curvature"].min()),
    }
    certificate = {
        name: merged[name] if name in merged else sum(column.tolist())
        for name, column in columns.items()
    }
    failed = reports.failed
    status = Status.CONVERGED if problem.phi is None else Status.APPROXIMATE
    messages = [problem.phi.message if problem.phi else "", note]
    messages += [reports.message[failed[0] if failed else 0]]
    if len(reports) > 1:
        messages.append(f"{len(reports)} pairs of classes, {len(failed)} of which did not converge")
    return Report(
        reports.solver,
        Status.NOT_CONVERGED if failed else status,
        sum(reports.n_iter.tolist()),
        float(reports.residual.max()),
        sum(reports.seconds.tolist()),
        "; ".join(filter(None, messages)),
        certificate,
    )


def describe_scales(X: Points, has_C: bool = True) -> str:
    """Return advice about the scales of the columns of X, for a solver that did not converge."""
    if (
        not (isinstance(X, np.ndarray) or sp.issparse(X))
        or X.ndim != 2
        or X.dtype.kind not in "biuf"
    ):
        return ""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if sp.issparse(X) else np.square(X)
    with np.errstate(over="ignore", invalid="ignore"):
        std = np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - mean**2, 0.0))
    typical = float(np.median(std[std > 0])) if np.any(std > 0) else 0.0
    if not typical > 0.0:
        return "all columns of X are constant"
    far_columns = np.flatnonzero(np.abs(mean) > _MAX_MEAN_TO_STD * np.maximum(std, typical))
    if len(far_columns):
        c = far_columns[np.argmax(np.abs(mean[far_columns]))]
        return f"column {c} has a mean of {mean[c]:.2g} and a standard deviation of {std[c]:.2g}"
    largest = np.argsort(-std, kind="stable")[:3]
    large = [
        f"column {c} has a standard deviation of {std[c]:.2g}, {std[c] / typical:.2g} times the "
        f"median"
        for c in largest
        if std[c] > 10.0 * typical
    ]
    if large:
        return "; ".join(large)
    if typical > 10.0 or typical < 0.1:
        return f"the columns of X have standard deviations of about {typical:.2g}"
    needed = "a smaller C or a larger max_iter" if has_C else "a larger max_iter"
    return f"the columns of X have similar scales, so {needed} may help"
