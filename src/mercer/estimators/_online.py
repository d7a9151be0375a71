"""What estimators that see points one after the other share: passes, streams, and what is kept."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._points import concatenate, length, take
from ..expansion import Expansion
from ..gram import gram
from ..kernels import Kernel, unwrap
from ..solvers import OnlineLearner, Report, Schedule, Status
from ._base import KernelLike, NamedKernel
from ._parameters import COUNT, estimator, learned, parameter
from ._sample import Sample

__all__ = ["OnlineEstimator"]

_HELD = 4096  # points whose K is held for several passes, if it fits the memory


@estimator(kw_only=True)
class OnlineEstimator(NamedKernel):
    """An estimator that learns from one point after the other.

    Parameters
    ----------
    budget : int or None
        At most so many points are kept; None for all that are needed.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    budget: int | None = parameter(COUNT, None, default=None)

    n_iter_: int = learned()
    t_: int = learned()
    mistakes_: np.ndarray = learned()
    kernel_: Kernel = learned()
    _learner: OnlineLearner = learned()
    _kept: Any = learned()
    _flat: bool = learned()

    def _can_stream(self) -> bool:
        if self._precomputed:
            raise AttributeError(
                "partial_fit needs points, not a precomputed kernel matrix: new points would have "
                "no values with the old ones; give kernel=Precomputed(K), and indices as points"
            )
        return True

    def _resolved(self, sample: Sample) -> Kernel:
        return sample.resolve(self._make_kernel(self.gamma))

    def _pass_over(
        self,
        learner: OnlineLearner,
        sample: Sample,
        Y: np.ndarray,
        kernel: Kernel,
        schedule: Schedule,
    ) -> None:
        """Learn from points that stay, pass by pass."""
        learner.max_memory = self.max_memory
        evaluated, n = sample.evaluated(kernel, self.max_memory), len(sample)
        held = sample.values is not None or (n <= _HELD and schedule.max_iter > 1)
        K = gram(
            evaluated,
            sample.points,
            storage="auto" if held else "tiled",
            max_memory=self.max_memory,
        )
        report, mistakes = schedule.run(learner, K, Y, sample.counts, self._teller)
        unwrap(evaluated)
        if report.status is Status.NOT_CONVERGED:
            warn_caller(report.message, ConvergenceWarning)
        self._keep(learner, sample, sample.points, kernel, report, mistakes)

    def _take_in(self, sample: Sample, Y: np.ndarray, make: Any) -> None:
        """Learn from further points, which come once."""
        new, known = sample.points, hasattr(self, "_learner")
        if known:
            # a copy learns: an interrupted call has changed nothing
            learner, kernel, before = deepcopy(self._learner), self.kernel_, self.mistakes_
            points = concatenate(self._kept, new)
        else:
            kernel, before = self._resolved(sample), np.zeros(0)
            learner, points = make(kernel), new
        learner.max_memory = self.max_memory
        places = np.arange(length(points))
        K = gram(kernel, points, storage="tiled", max_memory=self.max_memory)
        first = len(places) - len(sample)
        _, mistakes = learner.learn(K, places[first:], Y, sample.counts)
        counts = np.append(before, mistakes.sum())
        report = Report(
            type(learner).__name__,
            Status.APPROXIMATE,
            len(counts),
            message=f"{int(learner.seen.max())} points seen, one after the other",
            certificate=learner.certificate,
        )
        self._say(
            f"{counts[-1]:.0f} {learner.counted} at {len(sample)} points: "
            f"{len(learner.support)} kept"
        )
        self._keep(learner, sample, points, kernel, report, counts)

    def _keep(
        self,
        learner: OnlineLearner,
        sample: Sample,
        points: Any,
        kernel: Kernel,
        report: Report,
        mistakes: np.ndarray,
    ) -> None:
        """Set all that was learned; of the points, only those that f needs stay."""
        A, b = learner.solution()
        flat = sample.targets is not None and sample.flat
        self._kept = take(points, learner.support)
        learner.support = np.arange(len(learner.support))
        shown = self._kept
        if not len(A):  # no point was of any use, so f is 0; an expansion has a point at least
            shown, A = take(points, np.arange(1)), np.zeros((1, A.shape[1]))
        self._learner, self.kernel_, self.report_ = learner, kernel, report
        self.n_iter_, self.t_, self.mistakes_ = report.n_iter, int(learner.seen.max()), mistakes
        self._flat = flat
        self._set_expansion(Expansion(kernel, shown, A), b, flat)

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("_learner", "_kept"):  # they belong to the model before compression
            self.__dict__.pop(part, None)

    def _require_whole(self) -> None:
        if hasattr(self, "expansion_") and not hasattr(self, "_learner"):
            raise ValueError("a compressed model cannot learn further; go on with the one before")
