"""What a caller of `reduce` may ask for, checked."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._runtime import is_count
from ..kernels import Kernel, reads_all

__all__ = ["METHODS", "Request"]

METHODS = ("auto", "select", "kmeans", "construct")


@dataclass(frozen=True)
class Request:
    """The parameters of `Expansion.compress`, which describes them."""

    n_points: int | None
    max_error: float | None = None
    method: str = "auto"
    max_iter: int = 100
    random_state: Any = None
    max_memory: Any = None

    def check(self, kernel: Kernel, A: np.ndarray) -> None:
        """Refuse what cannot be done for the functions with coefficients A."""
        n, m = A.shape
        if not A.size:
            raise ValueError(f"there is nothing to compress: {m} functions on {n} points")
        if bad := int(np.count_nonzero(~np.isfinite(A))):
            raise ValueError(
                f"{bad} of {A.size} coefficients are not finite; the usual cause is a model that "
                f"diverged, or a division by 0"
            )
        if self.method not in METHODS:
            names = ", ".join(map(repr, METHODS))
            raise ValueError(
                f"there is no method {self.method!r} to compress by; there are {names}"
            )
        if (self.n_points is None) == (self.max_error is None):
            given = "neither is" if self.n_points is None else "both are"
            raise ValueError(f"compress needs n_points or max_error, one of the two; {given} given")
        if self.n_points is not None:
            _check_count("n_points", self.n_points)
            if self.n_points > n or self.n_points == n > 1:
                raise ValueError(
                    f"n_points={self.n_points} is not fewer than the {n} points there are: there "
                    f"is nothing to compress"
                )
        elif not _is_positive(self.max_error):
            raise ValueError(
                f"max_error must be a positive number, the error allowed in the norm of the RKHS, "
                f"got {self.max_error!r}; without any error, keep the expansion as it is"
            )
        elif self.method == "kmeans":
            raise ValueError(
                "method='kmeans' needs n_points, as its error is known only afterwards; "
                "use method='select' with max_error"
            )
        _check_count("max_iter", self.max_iter)
        if reads_all(kernel):
            raise ValueError(
                "Precomputed() has no values for two training points given by their indices, which "
                "errors are made of; keep the matrix: Precomputed(K), with indices as points"
            )
        self._check_seed()

    def _check_seed(self) -> None:
        seed = self.seed
        generator = isinstance(seed, (np.random.Generator, np.random.RandomState))
        if not generator and not (is_count(seed, 0) and seed < 2**32):
            raise ValueError(
                f"random_state must be an integer from 0 to 2^32 - 1, a Generator, a RandomState "
                f"or None, got {seed!r}"
            )

    @property
    def seed(self) -> Any:
        """What k-means draws from: 0 for None."""
        return 0 if self.random_state is None else self.random_state


def _check_count(name: str, value: Any) -> None:
    if not is_count(value):
        raise ValueError(f"{name} must be a positive integer, got {value!r}")


def _is_positive(value: Any) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and 0.0 < float(value) < np.inf
