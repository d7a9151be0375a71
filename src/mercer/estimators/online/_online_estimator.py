"""Base class of the online estimators, with `fit` in several passes and `partial_fit`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import Points, budget_in_bytes, concatenate, length, take, warn_caller
from ...expansion import Expansion
from ...gram import gram
from ...kernels import Kernel, unwrap
from ...solvers import OnlineLearner, Report, Schedule, Status, tile_bytes
from .._kernel_estimator import KernelLike, NamedKernelEstimator
from .._parameters import POSITIVE_INTEGER, estimator, fitted_attribute, parameter
from .._training_sample import Sample

# With at most this many points, K is stored for several passes if it fits the memory budget
# (128 MB in float64); with more points, entries of K are evaluated again in each pass.
_MAX_POINTS_STORED_GRAM = 4096
_BLOCK_ROWS = 256  # number of points whose kernel values are computed together


@estimator(kw_only=True)
class OnlineEstimator(NamedKernelEstimator):
    """Base class of the estimators that learn from one point at a time.

    Parameters
    ----------
    budget : int or None
        Maximum number of points in the expansion of f; None means no limit.  A smaller budget makes
        predictions faster and less accurate.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    budget: int | None = parameter(POSITIVE_INTEGER, None, default=None)

    n_iter_: int = fitted_attribute()
    t_: int = fitted_attribute()
    mistakes_: np.ndarray = fitted_attribute()
    kernel_: Kernel = fitted_attribute()
    _learner: OnlineLearner = fitted_attribute()
    _kept: Any = fitted_attribute()
    _flat: bool = fitted_attribute()

    def _can_stream(self) -> bool:
        """Return True if `partial_fit` is available; raise AttributeError otherwise."""
        if self._precomputed:
            raise AttributeError(
                "partial_fit does not support kernel='precomputed', because kernel values between "
                "new and old points would be missing; use kernel=Precomputed(K) and indices as "
                "points"
            )
        return True

    def _resolve_kernel(self, sample: Sample) -> Kernel:
        """Return the kernel with its parameters resolved on the points of the sample."""
        return sample.resolve(self._make_kernel(self.gamma))

    def _learn_passes(
        self,
        learner: OnlineLearner,
        sample: Sample,
        Y: np.ndarray,
        kernel: Kernel,
        schedule: Schedule,
    ) -> None:
        """Learn from points in memory, in as many passes as the schedule specifies."""
        learner.max_memory = self.max_memory
        evaluated, n = sample.evaluated(kernel, self.max_memory), len(sample)
        store_gram = sample.values is not None or self._stores_gram(n, schedule.max_iter)
        K = gram(
            evaluated,
            sample.points,
            storage="auto" if store_gram else "tiled",
            max_memory=self.max_memory,
        )
        report, mistakes = schedule.run(learner, K, Y, sample.counts, self._progress_callback)
        unwrap(evaluated)
        if report.status is Status.NOT_CONVERGED:
            warn_caller(report.message, ConvergenceWarning)
        self._set_fitted(learner, sample, sample.points, kernel, report, mistakes)

    @staticmethod
    def _stores_gram(n: int, max_iter: int) -> bool:
        """Whether K is stored, if it fits the memory budget, because it is read several times."""
        return n <= _MAX_POINTS_STORED_GRAM and max_iter > 1

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, kernel = len(sample), self._planned_kernel(sample)
        m = min(n, getattr(self, "budget", None) or n)
        tiles, matrix = tile_bytes(kernel, sample.points), 8 * n * n
        stored = self._stores_gram(n, getattr(self, "max_iter", 1))
        stored &= matrix + tiles <= budget_in_bytes(self.max_memory)
        memory = tiles + matrix * stored + self._workspace(m)
        option = {"solver": "online", "storage": "dense" if stored else "tiled", "exact": False}
        rank = None if m == n else m
        return f"{type(self).__name__} of {n} points", {**option, "extra": memory, "rank": rank}

    def _workspace(self, m: int) -> int:
        """Return the memory for m points in the expansion, in bytes."""
        return 16 * m * _BLOCK_ROWS

    def _learn_stream(self, sample: Sample, Y: np.ndarray, make_learner: Any) -> None:
        """Learn from new points in one pass; the first call creates the learner."""
        new_points, is_continued = sample.points, hasattr(self, "_learner")
        if is_continued:
            # Update a copy, so that an interrupted call leaves the estimator unchanged.
            learner, kernel, past_mistakes = deepcopy(self._learner), self.kernel_, self.mistakes_
            points = concatenate(self._kept, new_points)
        else:
            kernel, past_mistakes = self._resolve_kernel(sample), np.zeros(0)
            learner, points = make_learner(kernel), new_points
        learner.max_memory = self.max_memory
        indices = np.arange(length(points))
        K = gram(kernel, points, storage="tiled", max_memory=self.max_memory)
        first = len(indices) - len(sample)
        _, mistakes = learner.learn(K, indices[first:], Y, sample.counts)
        counts = np.append(past_mistakes, mistakes.sum())
        report = Report(
            type(learner).__name__,
            Status.APPROXIMATE,
            len(counts),
            message=f"{int(learner.seen.max())} points processed, one at a time",
            certificate=learner.certificate,
        )
        self._log_progress(
            f"{counts[-1]:.0f} {learner.counted} at {len(sample)} new points; "
            f"{len(learner.support)} points are stored"
        )
        self._set_fitted(learner, sample, points, kernel, report, counts)

    def _set_fitted(
        self,
        learner: OnlineLearner,
        sample: Sample,
        points: Points,
        kernel: Kernel,
        report: Report,
        mistakes: np.ndarray,
    ) -> None:
        """Set the fitted attributes; only the points in the expansion of f are stored."""
        A, b = learner.solution()
        flat = sample.targets is not None and sample.flat
        self._kept = take(points, learner.support)
        learner.support = np.arange(len(learner.support))
        expansion_points = self._kept
        if not len(A):  # f = 0, but an expansion needs at least one point
            expansion_points, A = take(points, np.arange(1)), np.zeros((1, A.shape[1]))
        self._learner, self.kernel_, self.report_ = learner, kernel, report
        self.n_iter_, self.t_, self.mistakes_ = report.n_iter, int(learner.seen.max()), mistakes
        self._flat = flat
        self._set_expansion(Expansion(kernel, expansion_points, A), b, flat)

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("_learner", "_kept"):  # state of the uncompressed model, now invalid
            self.__dict__.pop(part, None)

    def _refuse_compressed(self) -> None:
        """Raise an error if the model was compressed, because it cannot be updated."""
        if hasattr(self, "expansion_") and not hasattr(self, "_learner"):
            raise ValueError(
                "a compressed model cannot be updated by partial_fit; use the original model"
            )
