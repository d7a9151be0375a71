"""Base class of feature maps, which map points to vectors in R^m in blocks of points."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from .._core import (
    ENTRY_WORK,
    Points,
    RandomState,
    as_csr,
    as_vectors,
    entry_point,
    is_count,
    length,
    run_in_threads,
    slices,
    take,
)
from ..blocks import BlockRows, Blocks, map_rows
from ..kernels import FourierBasis, Kernel, random_features

_STRIP_BYTES = 2**22  # one task computes about this many bytes of features
_STRIPS_PER_BLOCK = 8  # `blocks` yields blocks of 8 strips, which are 32 MiB


@entry_point
class FeatureMap(ABC):
    """Base class of feature maps phi whose inner products approximate a kernel.

    k(x, z) ~ phi(x) . phi(z) with phi(x) in R^m, and `len(phi)` is m.  A linear method on the
    features then replaces a kernel method, at a cost that is linear in the number of points.

    See Also
    --------
    NystroemMap : Features that depend on landmarks; they adapt to the data.
    FourierMap : Random features of a stationary kernel; they do not depend on the data.

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
        """Yield the features of the points, in blocks of rows.

        Only the rows of the current block are read, so that X may be a memory-mapped array larger
        than the main memory.

        Parameters
        ----------
        X : points
            The n points.
        rows : int or None, default None
            Number of points of a block; None means about 32 MiB of features.
        n_threads : int or None, default None
            Number of threads; None means all processors.  The result does not depend on it.
        whiten : bool, default True
            If False, a map with landmarks S yields k(x, S) instead of phi(x); others ignore it.

        Yields
        ------
        part : slice
            Indices of the points of the block.
        features : ndarray of shape (r, m)
            Features of these r points.
        """
        if rows is not None and not is_count(rows):
            raise ValueError(f"rows must be a positive integer or None, got {rows!r}")
        X = as_csr(X)
        step = _STRIPS_PER_BLOCK * self._strip_rows if rows is None else int(rows)
        for part in slices(length(X), step):
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


@entry_point
@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Random Fourier features whose inner products approximate a stationary kernel.

    The features are cosines and sines of w . x for random frequencies w.  The expected value of
    phi(x) . phi(z) over the frequencies is k(x, z), and the error decreases with the number of
    features.  The map does not depend on the data, so that it can be made before any point is
    known.  With the same number of features, a `NystroemMap` usually has a smaller error.  Use
    `FourierMap.on` to make a map.

    Attributes
    ----------
    kernel : Kernel
        A kernel for which `mercer.kernels.random_features` is available.
    basis : FourierBasis
        The frequencies and their weights.
    phase : float or None, default None
        Phase of the last cosine if the number of features is odd; see `odd`.

    See Also
    --------
    NystroemMap : Features that depend on landmarks.
    mercer.kernels.random_features : Draw the frequencies.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import FourierMap
    >>> from mercer.kernels import RBF
    >>> phi = FourierMap.on(RBF(), n_columns=2, n_features=64, random_state=0)
    >>> phi.features(np.zeros((3, 2))).shape
    (3, 64)
    """

    supports_float32: ClassVar[bool] = True

    kernel: Kernel
    basis: FourierBasis
    phase: float | None = None

    @classmethod
    def on(
        cls,
        kernel: Kernel,
        n_columns: int,
        n_features: int,
        *,
        method: str = "auto",
        random_state: RandomState = None,
    ) -> Self:
        """Draw the frequencies of a map.

        Parameters
        ----------
        kernel : Kernel
            A kernel that `mercer.kernels.random_features` supports, such as RBF or Matern.
        n_columns : int
            Number of columns of the points.
        n_features : int
            Number of features m, an even number.  More features give a smaller error.
        method : {"auto", "orthogonal", "qmc", "iid"}, default "auto"
            How to draw the frequencies; see `mercer.kernels.random_features`.
        random_state : int, Generator, RandomState or None, default None
            Seed or source of random numbers.

        Returns
        -------
        FourierMap
            The map to R^m.
        """
        options: dict[str, Any] = {"method": method, "random_state": random_state}
        return cls(kernel, random_features(kernel, n_columns, n_features, **options))

    def odd(self, rng: np.random.Generator) -> Self:
        """Return a map with one feature fewer, and thus an odd number of features.

        One cosine cos(w.x + b) replaces the last pair of cosine and sine.  If b is uniform on [0, 2
        pi), the mean of 2 cos(w.x + b) cos(w.z + b) is cos(w.(x - z)), so that the inner products
        remain unbiased.  If w = 0, the cosine is constant and the sine is 0, which is just omitted.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the random phase b.

        Returns
        -------
        FourierMap
            The map to R^(m - 1).
        """
        W, a, m = self.basis.frequencies, self.basis.weights, len(self.basis.frequencies)
        if not W[-1].any():
            return replace(self, phase=0.0)
        if a is None:
            a = np.full(m, np.sqrt(2.0 / (2 * m - 1)))
        else:
            a = a * np.where(np.arange(m) < m - 1, 1.0, np.sqrt(2.0))
        return replace(self, basis=FourierBasis(W, a), phase=float(rng.uniform(0.0, 2.0 * np.pi)))

    def as_cosines(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features as shifted cosines, phi(x) = sqrt(2 / D) cos(x W + b) for D features.

        Sines are written as cosines with a phase of -pi / 2.

        Returns
        -------
        W : ndarray of shape (d, D)
            The frequencies, one per column.
        b : ndarray of shape (D,)
            The phases.
        """
        W, m = self.basis.frequencies, len(self.basis.frequencies)
        shifts = np.repeat([0.0, -0.5 * np.pi], m)
        if self.phase is not None:
            shifts[m - 1] = self.phase
        return np.concatenate([W, W]).T[:, : len(self)], shifts[: len(self)]

    def __len__(self) -> int:
        return 2 * len(self.basis.frequencies) - (self.phase is not None)

    def __repr__(self) -> str:
        return f"<FourierMap to {len(self)} features, {self.kernel}>"

    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        X = as_vectors(take(X, rows), "FourierMap")
        if self.phase is None:
            self.basis.fill(X, out)
            return
        pairs, m = self.basis(X), len(self.basis.frequencies)
        out[...] = pairs[:, :-1]
        out[:, m - 1] *= np.cos(self.phase)
        out[:, m - 1] -= np.sin(self.phase) * pairs[:, -1]
