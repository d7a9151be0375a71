"""Features of points in blocks: phi(x_1), phi(x_2), ... for a map phi to R^m."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from .._points import length, sliceable
from .._runtime import ENTRY_WORK, entry_point, is_count, run, slices

__all__ = ["FeatureMap"]

_STRIP = 2**22  # bytes of the features that one task computes
_STRIPS = 8  # strips in a block, which has 32 MiB


@entry_point
class FeatureMap(ABC):
    """A map phi whose products approximate a kernel; `len` is the number m of features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import FeatureMap, Landmarks
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = Landmarks(8).map(RBF(), X)
    >>> isinstance(phi, FeatureMap), len(phi), phi.features(X).shape
    (True, 8, (50, 8))
    """

    in_single: ClassVar[bool] = False  # whether `_fill` works in float32, too

    @abstractmethod
    def __len__(self) -> int: ...

    def __getstate__(self) -> dict[str, Any]:
        kept = {field.name for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {n: v for n, v in self.__dict__.items() if n in kept}  # without what is at hand

    @abstractmethod
    def _fill(self, X: Any, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        """Set out <- phi(x_i), i in rows; not whitened, the values that phi is made of."""

    def features(
        self,
        X: Any,
        *,
        n_threads: int | None = None,
        dtype: Any = np.float64,
        squares: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return phi(x_i) in the rows of an array of shape (n, m) and this precision.

        `squares`, of shape (n,), is set to |phi(x_i)|^2 on the way.
        """
        X = sliceable(X)
        rows = slice(0, length(X))
        return self._some_features(X, rows, n_threads, dtype=dtype, squares=squares)

    def blocks(
        self,
        X: Any,
        rows: int | None = None,
        *,
        n_threads: int | None = None,
        whiten: bool = True,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice of X, its features), `rows` at a time or about 32 MiB.

        Only these rows of X are looked at: X may be a memory map larger than the memory.  Without
        `whiten`, k_S(x) takes the place of phi(x).
        """
        if rows is not None and not is_count(rows):
            raise ValueError(f"rows must be a positive integer or None, got {rows!r}")
        X = sliceable(X)
        for part in slices(length(X), _STRIPS * self._strip if rows is None else int(rows)):
            yield part, self._some_features(X, part, n_threads, whiten)

    def _some_features(
        self,
        X: Any,
        rows: slice,
        n_threads: int | None,
        whiten: bool = True,
        dtype: Any = np.float64,
        squares: np.ndarray | None = None,
    ) -> np.ndarray:
        out = np.empty((rows.stop - rows.start, len(self)), dtype=dtype)

        def strip(part: slice) -> None:
            mine = out[part.start - rows.start : part.stop - rows.start]
            in_place = mine.dtype == np.float64 or self.in_single
            exact = mine if in_place else np.empty(mine.shape)  # in float64, and rounded once
            self._fill(X, part, exact, whiten)
            if squares is not None:
                np.einsum("ij,ij->i", exact, exact, out=squares[part])
            if exact is not mine:
                mine[...] = exact

        run(strip, self._strips(rows), n_threads, self._work(len(out)))
        return out

    def _work(self, rows: int) -> float:
        """Return the multiplications that the features of some rows take, roughly."""
        kernel, entries = getattr(self, "kernel", None), rows * len(self)
        if kernel is None:  # random features
            return entries * ENTRY_WORK
        return float(kernel._evaluation_work(entries, len(self)))

    def _strips(self, rows: slice) -> list[slice]:
        """Cut rows into the parts of one task each; their size depends on m alone, as bits must."""
        starts = range(rows.start, rows.stop, self._strip) or [rows.start]
        return [slice(start, min(start + self._strip, rows.stop)) for start in starts]

    @property
    def _strip(self) -> int:
        return int(np.clip(_STRIP // (8 * max(1, len(self))), 64, 4096))
