"""The points of a support vector machine as its solver sees them, and how the search went.

==========  ===========================================  =======================================
solver      what it works on                             when "auto" takes it
==========  ===========================================  =======================================
"smo"       rows of K through a cache (BlockSMO)         unless the next line applies
"primal"    the columns of X: k(x, z) = <x, z>           a linear kernel on more than 500 dense
            (BoxInterior)                                vectors, more than they have columns, once
                                                         "smo" has cost a seventh of it, or
                                                         all for up to 1600 (Relay)
"nystroem"  coordinates on landmarks (BoxInterior)       never: it is approximate
==========  ===========================================  =======================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._runtime import Step
from ...gram import KernelRows, RowsView
from ...kernels import Kernel
from ...solvers import (
    BlockSMO,
    Dual,
    Duals,
    DualSolution,
    DualSolutions,
    Progress,
    Report,
    Reports,
    Status,
    Whitened,
)
from .._sample import Sample
from ._pairs import Pair, Pairs

__all__ = ["Problem", "following", "merged", "scales"]

_FAR_FROM_ZERO = 1e4  # a mean of so many standard deviations: the column needs centring


@dataclass(frozen=True, eq=False)
class Problem:
    """The points that take part in a fit, as a solver reads them.

    Attributes
    ----------
    sample : Sample
        The points, sorted by class if there are more than two classes.  Their weights include
        those of their classes.
    kernel : Kernel
        Resolved: what predictions evaluate.
    solver : BlockSMO, BoxInterior or Relay
    rows : KernelRows or ndarray
        Of K, or of features F with F F^T = K.
    phi : Whitened or None
        Where features on landmarks come from.
    columns : ndarray or None
        F, beside rows of K, for a solver that may need either.
    class_weights : ndarray of shape (n_classes,) or None
        The factor in the weights of the points of each class.
    """

    sample: Sample
    kernel: Kernel
    solver: Any
    rows: Any
    phi: Whitened | None = None
    columns: np.ndarray | None = None
    class_weights: Any = None

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of classes; for a machine of one function, one pair of all points."""
        if self.sample.classes is None:
            return Pairs(np.zeros(len(self.sample), dtype=np.intp), 2)
        return Pairs(self.sample.labels, len(self.sample.classes))

    def minimize_all(self, duals: Duals, say: Callable[[str], None] | None = None) -> DualSolutions:
        """Solve the dual of each pair of classes."""
        pairs = list(self.pairs)

        def told(p: int) -> Callable[[Progress], None] | None:
            return None if say is None else following(say, self.title(pairs[p]))

        if isinstance(self.solver, BlockSMO):

            def view(p: int) -> RowsView:
                return self.rows.view(*(() if len(pairs) == 1 else pairs[p]))

            return self.solver.minimize_all(self.rows, duals, view, told if say else None)
        each = zip(duals, pairs, range(len(pairs)), strict=True)
        found = (self.minimize(dual, pair, told(p)) for dual, pair, p in each)
        return DualSolutions.of(found, duals)

    def minimize(
        self, dual: Dual, pair: Pair, follow: Callable[[Progress], None] | None = None
    ) -> DualSolution:
        """Solve the dual of the points of a pair of classes."""
        alone = len(self.pairs) == 1
        if isinstance(self.rows, KernelRows):
            rows: Any = self.rows.view() if alone else self.rows.view(*pair)
            if self.columns is not None:
                F = self.columns if alone else self.columns[self.pairs.members(pair)]
                return self.solver.minimize(rows, F, dual, follow)
        else:
            rows = self.rows if alone else self.rows[self.pairs.members(pair)]
        return self.solver.minimize(rows, dual, follow)

    @property
    def weighted_sums(self) -> np.ndarray:
        """The sum of the weights of the points of each class, with the class weights."""
        return np.bincount(self.sample.labels, self.sample.counts)

    @property
    def sums(self) -> np.ndarray:
        """The sum of the sample weights of the points of each class, without the class weights."""
        return self.weighted_sums / self.class_weights

    def names(self, pair: Pair) -> list[Any]:
        """Return the labels that the user has given to the classes of a pair."""
        return self.sample.classes[list(pair)].tolist()

    def title(self, pair: Pair) -> str:
        """Return which of several pairs of classes is meant, as words before others."""
        if len(self.pairs) == 1:
            return ""
        a, b = self.names(pair)
        number = list(self.pairs).index(pair) + 1
        return f"{a} against {b} ({number} of {len(self.pairs)}): "

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows of K were asked for so far, and how many of them were in the cache."""
        if isinstance(self.rows, KernelRows):
            return self.rows.requests, self.rows.hits
        return 0, 0

    @property
    def largest(self) -> float:
        """The largest |k(x, x)|; 0 for features, whose kernel is a Mercer kernel by itself."""
        return self.rows.largest if isinstance(self.rows, KernelRows) else 0.0


def following(say: Callable[[str], None], title: str) -> Callable[[Progress], None]:
    """Return what a search may call to say how far it is."""

    def follow(at: Progress) -> None:
        words = f"{title}{at.n_iter} steps, {at.seconds:.1f} s: violation {at.violation:.2e}, "
        say(Step(f"{words}dual objective {at.objective:.8g}"))

    return follow


def merged(problem: Problem, reports: Reports, before: tuple[int, int], note: str = "") -> Report:
    """Return what all searches did together: sums, and for what is a bound the worst."""
    columns = reports.certificate
    certificate: dict[str, Any] = {
        name: sum(columns[name].tolist()) for name in ("primal", "dual", "gap", "bound")
    }
    certificate["violation"] = float(columns["violation"].max())
    for name in ("n_free", "n_bound", "entries"):
        certificate[name] = sum(columns[name].tolist())
    asked, hits = (now - then for now, then in zip(problem.counts, before, strict=True))
    certificate["cache_hits"] = float(hits / asked) if asked else float("nan")
    certificate["curvature"] = float(columns["curvature"].min())
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


def scales(X: Any, has_C: bool = True) -> str:
    """Say which columns of X are much larger than the others, for a search that did not end."""
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
        return "no column of X varies"
    far = np.flatnonzero(np.abs(mean) > _FAR_FROM_ZERO * np.maximum(std, typical))
    if len(far):
        c = far[np.argmax(np.abs(mean[far]))]
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
    needed = "a smaller C, or more steps," if has_C else "more steps"
    return f"the columns of X are of similar scale: {needed} may be what it needs"
