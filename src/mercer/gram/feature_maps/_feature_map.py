"""Base class of feature maps, which map points to vectors in R^m in blocks of points."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ..._core import (
    ENTRY_WORK,
    Points,
    as_csr,
    entry_point,
    is_count,
    length,
    run_in_threads,
    slices,
)
from ...blocks import BlockRows, Blocks, map_rows

_STRIP_BYTES = 2**22  # one task computes about this many bytes of features
_STRIPS_PER_BLOCK = 8  # `blocks` yields blocks of 8 strips, which are 32 MiB


@entry_point
class FeatureMap(ABC):
    """Feature map phi whose inner products approximate a kernel.

    `len(phi)` is the number m of features.

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

    supports_float32: ClassVar[bool] = False  # whether `_fill` accepts a float32 output

    @abstractmethod
    def __len__(self) -> int: ...

    def __getstate__(self) -> dict[str, Any]:
        fields = {field.name for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        # Cached properties are not stored, because they can be computed again.
        return {name: value for name, value in self.__dict__.items() if name in fields}

    @abstractmethod
    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        """Set out <- phi(x_i) for i in rows.

        If `whiten` is False, maps with landmarks S set out <- k(x_i, S) instead; others ignore it.
        """

    def features(
        self,
        X: Points,
        *,
        n_threads: int | None = None,
        dtype: Any = np.float64,
        squares: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the features of the points X.

        Parameters
        ----------
        X : points or Blocks
            The features of `Blocks` are computed in one pass, in float64.
        n_threads : int, optional
            Number of threads; all processors by default.  The result does not depend on it.
        dtype : dtype, default float64
            Precision of the result.
        squares : ndarray of shape (n,), optional
            Output array that is set to |phi(x_i)|^2.

        Returns
        -------
        ndarray of shape (n, m)
            phi(x_i) in row i.
        """
        if isinstance(X, Blocks):
            return map_rows(X, _features_of_rows, self)
        X = as_csr(X)
        rows = slice(0, length(X))
        return self._some_features(X, rows, n_threads, dtype=dtype, squares=squares)

    def blocks(
        self,
        X: Points,
        rows: int | None = None,
        *,
        n_threads: int | None = None,
        whiten: bool = True,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield pairs (slice of X, features of these points).

        A block has `rows` points, or about 32 MiB of features by default.  Only the rows of the
        current block are read, so that X may be a memory-mapped array larger than the main memory.
        With `whiten=False`, a map with landmarks S yields k(x, S) instead of phi(x).
        """
        if rows is not None and not is_count(rows):
            raise ValueError(f"rows must be a positive integer or None, got {rows!r}")
        X = as_csr(X)
        for part in slices(
            length(X), _STRIPS_PER_BLOCK * self._strip_rows if rows is None else int(rows)
        ):
            yield part, self._some_features(X, part, n_threads, whiten)

    def _some_features(
        self,
        X: Points,
        rows: slice,
        n_threads: int | None,
        whiten: bool = True,
        dtype: Any = np.float64,
        squares: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the features of the points X[rows]; see `features`."""
        out = np.empty((rows.stop - rows.start, len(self)), dtype=dtype)

        def strip(part: slice) -> None:
            target = out[part.start - rows.start : part.stop - rows.start]
            in_place = target.dtype == np.float64 or self.supports_float32
            # Otherwise compute in float64, and round once at the end.
            computed = target if in_place else np.empty(target.shape)
            self._fill(X, part, computed, whiten)
            if squares is not None:
                np.einsum("ij,ij->i", computed, computed, out=squares[part])
            if computed is not target:
                target[...] = computed

        run_in_threads(strip, self._strips(rows), n_threads, self._work(len(out)))
        return out

    def _work(self, rows: int) -> float:
        """Estimate the number of multiplications to compute the features of `rows` points."""
        kernel, entries = getattr(self, "kernel", None), rows * len(self)
        if kernel is None:  # the map does not evaluate a kernel
            return entries * ENTRY_WORK
        return float(kernel._evaluation_work(entries, len(self)))

    def _strips(self, rows: slice) -> list[slice]:
        """Split rows into one slice per task.

        The size of a slice depends only on the number of features, so that results do not depend on
        the number of threads.
        """
        starts = range(rows.start, rows.stop, self._strip_rows) or [rows.start]
        return [slice(start, min(start + self._strip_rows, rows.stop)) for start in starts]

    @property
    def _strip_rows(self) -> int:
        """Number of rows that one task computes."""
        return int(np.clip(_STRIP_BYTES // (8 * max(1, len(self))), 64, 4096))


def _features_of_rows(rows: BlockRows, phi: FeatureMap) -> np.ndarray:
    return phi.features(rows.X)
