"""What all objectives share: the data, checked once, and the kernel at a theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._points import take
from ..kernels import Kernel
from ._system import check_data

__all__ = ["Objective"]


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """An objective in theta, of points X with targets Y."""

    kernel: Kernel
    X: Any
    Y: np.ndarray
    noise: Any = 0.0

    def __post_init__(self) -> None:
        data = check_data(self.kernel, self.X, self.Y, self.noise)
        for name, value in zip(("kernel", "X", "Y", "noise"), data, strict=True):
            object.__setattr__(self, name, value)

    @abstractmethod
    def workspace(self) -> int:
        """Return the bytes that a value with its gradient takes."""

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
