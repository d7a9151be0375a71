"""Random Fourier features of points, in blocks: the same verbs as NystroemMap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._points import as_vectors, take
from ..kernels import FourierBasis, Kernel, random_features
from ._feature_map import FeatureMap

__all__ = ["FourierMap"]


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
        options: dict[str, Any] = {"method": method, "random_state": random_state}
        return cls(kernel, random_features(kernel, n_columns, n_features, **options))

    def __len__(self) -> int:
        return 2 * len(self.basis.frequencies)

    def __repr__(self) -> str:
        return f"<FourierMap to {len(self)} features, {self.kernel}>"

    def _fill(self, X: Any, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        out[...] = self.basis(as_vectors(take(X, rows), "FourierMap"))
