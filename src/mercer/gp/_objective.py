"""What objectives share: data, checked once, the kernel at a theta; landmarks, if they have any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from .._errors import KernelRangeError, NotDifferentiableError, NotPositiveDefiniteError
from .._points import doubled, length, sliceable, take
from .._runtime import check_budget, entry_point, generator
from ..gram import Landmarks
from ..kernels import Kernel, on_indices
from ._capabilities import Capabilities
from ._noise import signal
from ._projection import Projection

__all__ = ["UNDEFINED", "Landmarked", "Objective"]

UNDEFINED = (NotPositiveDefiniteError, KernelRangeError)  # the objective has no value at a theta

_RANK = 500  # landmarks by default, few because a search passes over them dozens of times
_LARGEST_TARGET = 1e100  # its square, and quotients of squares, do not overflow


@entry_point
@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """An objective in theta, of points X with targets Y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import MarginalLikelihood, Objective
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> f = MarginalLikelihood(RBF(), X, X[:, 0], noise=0.1)
    >>> isinstance(f, Objective), round(f.value(), 3)
    (True, -1.908)
    """

    kernel: Kernel
    X: Any
    Y: np.ndarray
    noise: Any = 0.0

    remedy: ClassVar[str] = (  # for a matrix that is not positive definite, in scikit-learn's words
        "gradually increasing the 'alpha' parameter of your GaussianProcessRegressor estimator"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"an objective needs a Kernel, got {self.kernel!r}")
        n, Y = length(self.X), np.asarray(self.Y, dtype=float)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != n or not n:
            raise ValueError(f"targets of shape {Y.shape} do not fit {n} points: one row each")
        if not np.all(np.isfinite(Y)):
            raise ValueError("some targets are not finite; remove those observations")
        largest = float(np.abs(Y).max(initial=0.0))
        if largest > _LARGEST_TARGET:
            raise ValueError(
                f"targets as large as {largest:.1e} overflow when they are squared; divide them by "
                f"a constant"
            )
        noise = np.asarray(self.noise, dtype=float)
        if noise.shape not in ((), (n,)):
            raise ValueError(f"noise must be a number or have shape ({n},), got {noise.shape}")
        if not np.all(np.isfinite(noise)) or np.any(noise < 0):
            raise ValueError(f"noise must be finite and not negative, got {noise.min():.3g}")
        data = {"X": doubled(self.X), "Y": Y, "noise": noise if noise.ndim else float(noise)}
        self.__dict__.update(data)

    @abstractmethod
    def workspace(self) -> int:
        """Return the bytes that a value with its gradient takes."""

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that a search may call."""
        return Capabilities(subset=True)

    @property
    def start(self) -> np.ndarray:
        """The theta that was given."""
        return self.kernel.theta

    def value(self, theta: Any = None) -> float:
        """Return the objective at theta, -inf where it is lost in rounding: see `_value`."""
        try:
            return self._value(theta)
        except UNDEFINED:
            return -np.inf

    def value_and_gradient(self, theta: Any = None) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; -inf and 0 where it has no value."""
        self._require_gradient()
        try:
            return self._value_and_gradient(theta)
        except UNDEFINED:
            return -np.inf, np.zeros(self.start.size)

    @abstractmethod
    def _value(self, theta: Any) -> float:
        """Return the objective; an error of `UNDEFINED` if it has no value at theta."""

    @abstractmethod
    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives."""

    @abstractmethod
    def _require_gradient(self) -> None:
        """Refuse a gradient that cannot be had, or takes too much."""

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective of some of the observations, on the same landmarks if it has any."""
        noise = self.noise if np.ndim(self.noise) == 0 else self.noise[rows]
        X, Y = take(self.X, rows), self.Y[rows]
        return replace(self, X=X, Y=Y, noise=noise, **self._held_still())

    def _held_still(self) -> dict[str, Any]:
        """Return what was chosen for all observations, and stays for some of them."""
        return {}

    def _at(self, theta: Any) -> Kernel:
        return self.kernel if theta is None else self.kernel.with_theta(theta)


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
