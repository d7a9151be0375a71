"""Sketches of the polynomial kernel: products of count sketches, taken by Fourier transforms.

    phi(x) = C_1 y * C_2 y * ... * C_p y,     y = [sqrt(gamma) x, sqrt(c)]

where * is circular convolution, and a count sketch C puts each coordinate, with a random sign, into
one of D buckets.  E phi(x) . phi(z) = (gamma <x, z> + c)^p (Pham and Pagh, KDD 2013).

The mean is right for any buckets, as long as signs are independent of them.  So buckets are not
drawn one by one, but dealt: each gets as many coordinates as any other, up to one.  With D
coordinates or fewer none collide within one sketch, and for p = 1 there is no error at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft, rfft

from .._points import as_vectors, take
from ..kernels import Polynomial
from ._feature_map import FeatureMap

__all__ = ["CountSketchMap"]


@dataclass(frozen=True, eq=False)
class CountSketchMap(FeatureMap):
    """phi(x), D features with E phi(x) . phi(z) = (gamma <x, z> + coef0)^degree.

    Attributes
    ----------
    kernel : Polynomial
    buckets : ndarray of shape (degree, n_columns), of int
        One column more if coef0 is not 0.
    signs : ndarray of shape (degree, n_columns)
    n_features : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import CountSketchMap
    >>> from mercer.kernels import Polynomial
    >>> k = Polynomial(degree=1, coef0=1.0, gamma=1.0)
    >>> phi = CountSketchMap.on(k, n_columns=2, n_features=8, rng=np.random.default_rng(0))
    >>> F = phi.features(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> F @ F.T
    array([[ 6., 12.],
           [12., 26.]])
    """

    kernel: Polynomial
    buckets: np.ndarray
    signs: np.ndarray
    n_features: int

    @classmethod
    def on(
        cls, kernel: Polynomial, n_columns: int, n_features: int, rng: np.random.Generator
    ) -> Self:
        """Deal the coordinates to buckets, and draw their signs."""
        d = n_columns + (kernel.coef0 != 0)
        rounds = -(-d // n_features)
        buckets = [
            np.concatenate([rng.permutation(n_features) for _ in range(rounds)])[:d]
            for _ in range(int(kernel.degree))
        ]
        signs = rng.choice([-1.0, 1.0], size=(int(kernel.degree), d))
        return cls(kernel, np.array(buckets), signs, n_features)

    def __len__(self) -> int:
        return self.n_features

    def __repr__(self) -> str:
        return f"<CountSketchMap to {len(self)} features, {self.kernel}>"

    def _fill(self, X: Any, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        X = as_vectors(take(X, rows), "CountSketchMap")
        product = None
        for C, constant in self._sketches:
            sketch = X @ C
            sketch = sketch.toarray() if sp.issparse(sketch) else sketch
            sketch = sketch.astype(np.float64, copy=False) + constant
            if len(self._sketches) == 1:
                out[...] = sketch
                return
            wave = rfft(sketch, axis=1)
            product = wave if product is None else np.multiply(product, wave, out=product)
        out[...] = irfft(product, n=len(self), axis=1)

    @cached_property
    def _sketches(self) -> list[tuple[sp.csr_array, np.ndarray]]:
        """Each C as a sparse matrix of the columns, and what the constant adds."""
        gamma, coef0 = float(self.kernel.gamma), float(self.kernel.coef0)
        d = self.buckets.shape[1] - (coef0 != 0)
        made = []
        for bucket, sign in zip(self.buckets, self.signs, strict=True):
            place = (np.arange(d), bucket[:d])
            C = sp.csr_array((np.sqrt(gamma) * sign[:d], place), shape=(d, len(self)))
            constant = np.zeros(len(self))
            if coef0:
                constant[bucket[d]] = np.sqrt(coef0) * sign[d]
            made.append((C, constant))
        return made
