"""Sketches of the polynomial kernel: circular convolutions of count sketches.

    phi(x) = C_1 y * C_2 y * ... * C_p y,     y = [sqrt(gamma) x, sqrt(c)]

where * is circular convolution, and a count sketch C puts each coordinate, with a random sign, into
one of D buckets.  E phi(x) . phi(z) = (gamma <x, z> + c)^p (Pham and Pagh, KDD 2013).

The mean is right for any buckets, as long as signs are independent of them.  So buckets are not
drawn one by one, but dealt: each gets as many coordinates as any other, up to one.  With D
coordinates or fewer none collide within one sketch, and for p = 1 there is no error at all.

A convolution with a count sketch is a sum of rotations, one for each coordinate that is not 0.  Of
few coordinates that is quicker than Fourier transforms, which many are left to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft, rfft

from .._points import as_vectors, take
from .._runtime import entry_point, jit
from ..kernels import Polynomial
from ._feature_map import FeatureMap

__all__ = ["CountSketchMap"]

# p + 1 Fourier transforms are quicker than (p - 1) d rotations if d > 180 (p + 1) / (p - 1) D^-1/2:
# measured for D = 100 to 1000, where both take the same time at 160 to 240.
_ROTATIONS = 180.0


@entry_point
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
        width = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
        p = len(self.buckets)
        if width * (p - 1) * np.sqrt(len(self)) > _ROTATIONS * (p + 1):
            self._transform(X, out)
            return
        gamma, coef0 = float(self.kernel.gamma), float(self.kernel.coef0)
        sizes = np.sqrt(gamma) * self.signs
        if coef0:
            sizes[:, -1] *= np.sqrt(coef0 / gamma)
        n, d = X.shape
        if sp.issparse(X):
            entries, columns, ends = X.data, X.indices, X.indptr
        else:  # the same columns for every row
            entries, columns, ends = X.ravel(), np.arange(d), np.arange(0, n * d + 1, d)
        scratch = np.empty(len(self))
        _rotate(entries, columns, ends, self.buckets, sizes, bool(coef0), scratch, out)

    def _transform(self, X: Any, out: np.ndarray) -> None:
        """Set out <- phi(x) by Fourier transforms, of which the product is the convolution."""
        product = None
        for C, constant in self._sketches:
            sketch = X @ C
            sketch = sketch.toarray() if sp.issparse(sketch) else sketch
            wave = rfft(sketch.astype(np.float64, copy=False) + constant, axis=1)
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


@jit()
def _rotate(
    entries: Any,
    columns: Any,
    ends: Any,
    buckets: Any,
    sizes: Any,
    constant: bool,
    turned: Any,
    out: Any,
) -> None:
    """Set the rows of out to the convolutions of the sketches of the points.

    Point i has the entries from ends[i] to ends[i + 1], in these columns or, if there are fewer of
    them than entries, in the same ones as all others.
    """
    dense, last, D = len(columns) < len(entries), buckets.shape[1] - 1, len(turned)
    for i in range(len(out)):
        row, first, many = out[i], ends[i], ends[i + 1] - ends[i]
        for p in range(len(buckets)):
            for j in range(D):
                turned[j] = 0.0
            for e in range(many + constant):
                c, x = last, 1.0
                if e < many:
                    c, x = columns[e if dense else first + e], entries[first + e]
                size, shift = sizes[p, c] * x, buckets[p, c]
                if p == 0:
                    turned[shift] += size
                    continue
                for j in range(shift):
                    turned[j] += size * row[D - shift + j]
                for j in range(D - shift):
                    turned[shift + j] += size * row[j]
            for j in range(D):
                row[j] = turned[j]
