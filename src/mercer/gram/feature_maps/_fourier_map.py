"""Random Fourier features of points, with the interface of `FeatureMap`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..._core import Points, RandomState, as_vectors, entry_point, take
from ...kernels import FourierBasis, Kernel, random_features
from ._feature_map import FeatureMap


@entry_point
@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Random Fourier features whose inner products approximate a kernel.

    The expected value of phi(x) . phi(z) over random frequencies is k(x, z).  Use `FourierMap.on`
    to make a map.

    Attributes
    ----------
    kernel : Kernel
        A kernel for which `mercer.kernels.random_features` is available.
    basis : FourierBasis
        The frequencies and their weights.
    phase : float or None
        Phase of the last cosine if the number of features is odd; see `odd`.

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
        """Draw the frequencies of a map; see `mercer.kernels.random_features`."""
        options: dict[str, Any] = {"method": method, "random_state": random_state}
        return cls(kernel, random_features(kernel, n_columns, n_features, **options))

    def odd(self, rng: np.random.Generator) -> Self:
        """Return a map with one feature fewer, and thus an odd number of features.

        One cosine cos(w.x + b) replaces the last pair of cosine and sine.  If b is uniform on
        [0, 2 pi), the mean of 2 cos(w.x + b) cos(w.z + b) is cos(w.(x - z)), so that the inner
        products remain unbiased.  If w = 0, the cosine is constant and the sine is 0, which is just
        omitted.
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
        """Return W and b such that phi(x) = sqrt(2 / D) cos(x W + b) for D features.

        Sines are written as cosines with a phase of -pi / 2.  W has shape (d, D), b shape (D,).
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
