"""What the objectives on many points share: data, landmarks, and a budget for both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._errors import NotDifferentiableError
from .._points import doubled, length, sliceable
from .._runtime import check_budget, generator
from ..gram import Landmarks
from ..kernels import on_indices
from ._noise import signal
from ._objective import Objective
from ._projection import Projection

__all__ = ["Landmarked"]

_RANK = 500  # landmarks by default, few because a search passes over them dozens of times


@dataclass(frozen=True, eq=False)
class Landmarked(Objective):
    """An objective on landmarks S, chosen once for the kernel given and held still from then on."""

    rank: int | None = None
    landmarks: Any = "auto"
    random_state: Any = None
    max_memory: Any = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel._require_resolved()
        try:
            generator(self.random_state)
        except (TypeError, ValueError) as why:
            raise ValueError(
                f"random_state must be None, an integer of at least 0, or a generator, got "
                f"{self.random_state!r}"
            ) from why
        m, drawing = self._chosen.count(len(self.Y)), 4 * self._chosen.workspace(len(self.Y))
        needed = max(drawing, self.workspace())
        check_budget(needed, self.max_memory, f"{type(self).__name__} on {m} landmarks")

    def workspace(self) -> int:
        (n, q), m = self.Y.shape, self._chosen.count(len(self.Y))
        return Projection.workspace(n, m, q, self.n_threads)

    @cached_property
    def points(self) -> Any:
        """The landmarks S, in the order of their choice."""
        kernel, X = on_indices(self.kernel, self.X)
        if self._chosen.given or self._chosen.count(length(X)) < length(X):
            X = self._chosen.draw(signal(kernel), X, self.n_threads)
        return doubled(sliceable(X))

    def _held_still(self) -> dict[str, Any]:
        return {"landmarks": self.points}

    @property
    def _chosen(self) -> Landmarks:
        rank = _RANK if self.rank is None else self.rank
        return Landmarks(rank, self.landmarks, self.random_state)

    def _projection(self, theta: Any) -> Projection:
        return Projection.on(self._at(theta), self.X, self.noise, self.points, self.n_threads)

    def _require_gradient(self) -> None:
        if self.kernel.theta.size and not self.kernel.pullback_in_tiles:
            raise NotDifferentiableError(
                f"{self.kernel} has derivatives of k(X) alone, not of its tiles, and all of them "
                f"at once would need n x n numbers; use a kernel of mercer's own, "
                f"solver='cholesky', or optimizer=None"
            )
