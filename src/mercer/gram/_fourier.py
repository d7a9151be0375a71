"""Random Fourier features of points, in blocks: the same verbs as NystroemMap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._points import as_vectors, length, sliceable, take
from .._runtime import run
from ..kernels import FourierBasis, Kernel, random_features

__all__ = ["FourierMap"]

_STRIP = 512  # rows of one task
_BLOCK = 2**25  # bytes of the features of a block


@dataclass(frozen=True, eq=False)
class FourierMap:
    """phi(x) with E phi(x) . phi(z) = k(x, z), for a kernel that has random Fourier features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import FourierMap
    >>> from mercer.kernels import RBF
    >>> phi = FourierMap.on(RBF(), n_columns=2, n_features=64, random_state=0)
    >>> phi.features(np.zeros((3, 2))).shape
    (3, 64)
    """

    kernel: Kernel
    basis: FourierBasis

    @classmethod
    def on(
        cls,
        kernel: Kernel,
        n_columns: int,
        n_features: int,
        *,
        method: str = "auto",
        random_state: Any = None,
    ) -> Self:
        """Draw the frequencies; see `mercer.kernels.random_features`."""
        return cls(
            kernel,
            random_features(
                kernel, n_columns, n_features, method=method, random_state=random_state
            ),
        )

    def __len__(self) -> int:
        return 2 * len(self.basis.frequencies)

    def __repr__(self) -> str:
        return f"<FourierMap to {len(self)} features, {self.kernel}>"

    def features(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """Return phi(x_i) in the rows of an array of shape (n, D)."""
        X = sliceable(X)
        out = np.empty((length(X), len(self)))

        def strip(start: int) -> None:
            rows = slice(start, start + _STRIP)
            out[rows] = self.basis(as_vectors(take(X, rows), "FourierMap"))

        run(strip, range(0, len(out), _STRIP), n_threads)
        return out

    def blocks(
        self, X: Any, rows: int | None = None, *, n_threads: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice of X, its features), `rows` at a time or about 32 MiB."""
        X = sliceable(X)
        step = max(1, _BLOCK // (8 * len(self))) if rows is None else rows
        for start in range(0, length(X), step):
            part = slice(start, min(start + step, length(X)))
            yield part, self.features(take(X, part), n_threads=n_threads)
