"""Parameters of `reduce`, and their validation."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..._core import is_count
from ...kernels import Kernel, expects_precomputed_rows

__all__ = ["METHODS", "CompressionRequest"]

METHODS = ("auto", "select", "kmeans", "construct")


@dataclass(frozen=True)
class CompressionRequest:
    """The parameters of `Expansion.compress`; see there for their meaning."""

    n_points: int | None
    max_error: float | None = None
    method: str = "auto"
    max_iter: int = 100
    random_state: Any = None
    max_memory: Any = None

    def check(self, kernel: Kernel, A: np.ndarray) -> None:
        """Raise ValueError for parameters that are invalid for functions with coefficients A."""
        n, m = A.shape
        if not A.size:
            raise ValueError(f"an expansion of {m} functions on {n} points cannot be compressed")
        if n_bad := int(np.count_nonzero(~np.isfinite(A))):
            raise ValueError(
                f"{n_bad} of {A.size} coefficients are not finite; the usual cause is a model that "
                f"diverged, or a division by 0"
            )
        if self.method not in METHODS:
            names = ", ".join(map(repr, METHODS))
            raise ValueError(f"method must be one of {names}, got {self.method!r}")
        if (self.n_points is None) == (self.max_error is None):
            passed = "neither" if self.n_points is None else "both"
            raise ValueError(f"compress needs either n_points or max_error, got {passed}")
        if self.n_points is not None:
            _check_count("n_points", self.n_points)
            if self.n_points > n or self.n_points == n > 1:
                raise ValueError(
                    f"n_points={self.n_points} must be smaller than the present number of points, "
                    f"{n}; otherwise there is nothing to compress"
                )
        elif not _is_positive(self.max_error):
            raise ValueError(
                f"max_error must be a positive number, the allowed error in the RKHS norm, got "
                f"{self.max_error!r}; if no error is allowed, do not compress"
            )
        elif self.method == "kmeans":
            raise ValueError(
                "method='kmeans' needs n_points, because its error is not known in advance; "
                "use method='select' with max_error"
            )
        _check_count("max_iter", self.max_iter)
        if expects_precomputed_rows(kernel):
            raise ValueError(
                "Precomputed() does not store the kernel values between training points, which are "
                "needed to compute errors; use Precomputed(K), with indices as points"
            )
        self._check_seed()

    def _check_seed(self) -> None:
        seed = self.seed
        is_generator = isinstance(seed, (np.random.Generator, np.random.RandomState))
        if not is_generator and not (is_count(seed, 0) and seed < 2**32):
            raise ValueError(
                f"random_state must be an integer from 0 to 2^32 - 1, a Generator, a RandomState "
                f"or None, got {seed!r}"
            )

    @property
    def seed(self) -> Any:
        """The seed or generator of k-means; 0 if random_state is None."""
        return 0 if self.random_state is None else self.random_state


def _check_count(name: str, value: Any) -> None:
    if not is_count(value):
        raise ValueError(f"{name} must be a positive integer, got {value!r}")


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < np.inf
