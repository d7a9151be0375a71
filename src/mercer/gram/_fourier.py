"""Random Fourier features of points, in blocks: the same verbs as NystroemMap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from .._points import as_vectors, take
from .._runtime import entry_point
from ..kernels import FourierBasis, Kernel, random_features
from ._feature_map import FeatureMap

__all__ = ["FourierMap"]


@entry_point
@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
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

    in_single: ClassVar[bool] = True

    kernel: Kernel
    basis: FourierBasis
    phase: float | None = None  # for an odd number of features: see `odd`

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
        options: dict[str, Any] = {"method": method, "random_state": random_state}
        return cls(kernel, random_features(kernel, n_columns, n_features, **options))

    def odd(self, rng: np.random.Generator) -> Self:
        """Return the map with one feature less: one cosine cos(w.x + b) in place of the last pair.

        With b uniform on the circle 2 cos(w.x + b) cos(w.z + b) has the mean cos(w.(x - z)), so
        that the products stay unbiased.  A constant, w = 0, needs no sine.
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
        """Return W, (d, D), and b, (D,), with phi(x) = sqrt(2 / D) cos(x W + b): sin u is one."""
        W, m = self.basis.frequencies, len(self.basis.frequencies)
        shifts = np.repeat([0.0, -0.5 * np.pi], m)
        if self.phase is not None:
            shifts[m - 1] = self.phase
        return np.concatenate([W, W]).T[:, : len(self)], shifts[: len(self)]

    def __len__(self) -> int:
        return 2 * len(self.basis.frequencies) - (self.phase is not None)

    def __repr__(self) -> str:
        return f"<FourierMap to {len(self)} features, {self.kernel}>"

    def _fill(self, X: Any, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        X = as_vectors(take(X, rows), "FourierMap")
        if self.phase is None:
            self.basis.fill(X, out)
            return
        pairs, m = self.basis(X), len(self.basis.frequencies)
        out[...] = pairs[:, :-1]
        out[:, m - 1] *= np.cos(self.phase)
        out[:, m - 1] -= np.sin(self.phase) * pairs[:, -1]
