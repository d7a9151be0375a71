"""Base classes of the objectives: validated data, the kernel at a theta, and landmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ...._core import (
    KernelRangeError,
    NotDifferentiableError,
    NotPositiveDefiniteError,
    as_csr,
    as_float64,
    as_generator,
    check_budget,
    entry_point,
    length,
    take,
)
from ....gram import Landmarks
from ....kernels import Kernel, as_index_kernel
from .._inducing_projection import Projection
from .._noise_split import without_noise

__all__ = ["UNDEFINED", "Capabilities", "InducingPointObjective", "Objective"]


# Errors which mean that the objective is not defined at a theta.
UNDEFINED = (NotPositiveDefiniteError, KernelRangeError)

# Default number of landmarks: small, because an optimisation evaluates the objective dozens of
# times, and the cost of each evaluation grows with the square of this number.
_DEFAULT_RANK = 500
_MAX_TARGET = 1e100  # squares of larger targets, and quotients of squares, could overflow


@entry_point
@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """Base class of the objectives: a function of theta for points X with targets Y.

    theta is the vector of the logarithms of the free kernel parameters.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance.
    X : points
        The n observations.
    Y : array of shape (n,) or (n, q)
        Their targets.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K; not part of theta.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import MarginalLikelihood, Objective
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

    # Advice in the error message if K + noise is not positive definite, as in scikit-learn.
    remedy: ClassVar[str] = (
        "gradually increasing the 'alpha' parameter of your GaussianProcessRegressor estimator"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"an objective needs a Kernel, got {self.kernel!r}")
        n, Y = length(self.X), np.asarray(self.Y, dtype=float)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != n or not n:
            raise ValueError(
                f"targets of shape {Y.shape} do not fit {n} points: there must be at least one "
                f"point, and one row of targets for each"
            )
        if not np.all(np.isfinite(Y)):
            raise ValueError("some targets are not finite; remove those observations")
        largest = float(np.abs(Y).max(initial=0.0))
        if largest > _MAX_TARGET:
            raise ValueError(
                f"targets as large as {largest:.1e} overflow when they are squared; divide them by "
                f"a constant"
            )
        noise = np.asarray(self.noise, dtype=float)
        if noise.shape not in ((), (n,)):
            raise ValueError(f"noise must be a number or have shape ({n},), got {noise.shape}")
        if not np.all(np.isfinite(noise)) or np.any(noise < 0):
            raise ValueError(f"noise must be finite and not negative, got {noise.min():.3g}")
        data = {"X": as_float64(self.X), "Y": Y, "noise": noise if noise.ndim else float(noise)}
        self.__dict__.update(data)

    @abstractmethod
    def workspace(self) -> int:
        """Return the memory, in bytes, that an evaluation with gradient needs."""

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        return Capabilities(subset=True)

    @property
    def start(self) -> np.ndarray:
        """The theta of the kernel that the objective was created with."""
        return self.kernel.theta

    def value(self, theta: Any = None) -> float:
        """Return the objective at theta, or -inf where it is not defined.

        It is not defined if K + noise is not numerically positive definite, or if kernel values
        overflow.
        """
        try:
            return self._value(theta)
        except UNDEFINED:
            return -np.inf

    def value_and_gradient(self, theta: Any = None) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; -inf and 0 if it is not defined."""
        self._require_gradient()
        try:
            return self._value_and_gradient(theta)
        except UNDEFINED:
            return -np.inf, np.zeros(self.start.size)

    @abstractmethod
    def _value(self, theta: Any) -> float:
        """Return the objective at theta; raise an error in `UNDEFINED` if it is not defined."""

    @abstractmethod
    def _value_and_gradient(self, theta: Any) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; raise errors as `_value` does."""

    @abstractmethod
    def _require_gradient(self) -> None:
        """Raise an error if a gradient is not available or exceeds the memory budget."""

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective restricted to the observations `rows`, with the same landmarks."""
        noise = self.noise if np.ndim(self.noise) == 0 else self.noise[rows]
        X, Y = take(self.X, rows), self.Y[rows]
        return replace(self, X=X, Y=Y, noise=noise, **self._fixed_choices())

    def _fixed_choices(self) -> dict[str, Any]:
        """Return the fields, such as landmarks, that `subset` copies rather than chooses again."""
        return {}

    def _kernel_at(self, theta: Any) -> Kernel:
        """Return the kernel with the parameters theta; None means its current parameters."""
        return self.kernel if theta is None else self.kernel.with_theta(theta)


@dataclass(frozen=True, eq=False)
class InducingPointObjective(Objective):
    """Base class of the objectives that use landmarks S (inducing points).

    The landmarks are chosen once, for the initial kernel, and do not change with theta.
    """

    rank: int | None = None
    landmarks: Any = "auto"
    random_state: Any = None
    max_memory: Any = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel._require_resolved()
        try:
            as_generator(self.random_state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"random_state must be None, an integer of at least 0, or a generator, got "
                f"{self.random_state!r}"
            ) from error
        m, selection = (
            self._landmark_choice.count(len(self.Y)),
            4 * self._landmark_choice.workspace(len(self.Y)),
        )
        needed = max(selection, self.workspace())
        check_budget(needed, self.max_memory, f"{type(self).__name__} on {m} landmarks")

    def workspace(self) -> int:
        (n, q), m = self.Y.shape, self._landmark_choice.count(len(self.Y))
        return Projection.workspace(n, m, q, self.n_threads)

    @cached_property
    def points(self) -> Any:
        """The landmarks S, in the order in which they were chosen."""
        kernel, X = as_index_kernel(self.kernel, self.X)
        if self._landmark_choice.given or self._landmark_choice.count(length(X)) < length(X):
            X = self._landmark_choice.draw(without_noise(kernel), X, self.n_threads)
        return as_float64(as_csr(X))

    def _fixed_choices(self) -> dict[str, Any]:
        return {"landmarks": self.points}

    @property
    def _landmark_choice(self) -> Landmarks:
        """The method that chooses the landmarks."""
        rank = _DEFAULT_RANK if self.rank is None else self.rank
        return Landmarks(rank, self.landmarks, self.random_state)

    def _projection(self, theta: Any) -> Projection:
        return Projection.on(
            self._kernel_at(theta), self.X, self.noise, self.points, self.n_threads
        )

    def _require_gradient(self) -> None:
        if self.kernel.theta.size and not self.kernel.pullback_in_tiles:
            raise NotDifferentiableError(
                f"the derivatives of {self.kernel} can only be computed for the whole matrix k(X), "
                f"not for its tiles, but this solver does not store n x n numbers; use a mercer "
                f"kernel, solver='cholesky', or optimizer=None"
            )


# --- Optional methods of an objective that `maximise` may call.


@dataclass(frozen=True)
class Capabilities:
    """Which optional methods an objective supports; all are False by default.

    `maximise` calls an optional method only if it is True in the objective's `capabilities`.  An
    objective that wraps another one sets only those to True that the wrapped one supports as well,
    even if it defines all of the methods.

    Attributes
    ----------
    subset : bool
        ``subset(rows)`` returns the objective restricted to some of the observations.
    standard_error : bool
        The value is an estimate, and ``standard_error(theta)`` returns its standard error.
    information : bool
        ``with_information(theta, above)`` also returns approximate second derivatives, and
        ``noise_mask`` marks the parameters that are noise variances.
    cheap_information : bool
        ``with_information`` costs about as much as a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import InducingBound, MarginalLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> MarginalLikelihood(RBF(), X, X, 0.1).capabilities.information
    True
    >>> InducingBound(RBF(), X, X, 0.1).capabilities.information
    False
    """

    subset: bool = False
    standard_error: bool = False
    information: bool = False
    cheap_information: bool = False
