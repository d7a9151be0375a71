"""Random features of the polynomial kernel by tensor sketching."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft, rfft

from ..._core import Points, as_vectors, entry_point, jit, seeded_generator, take
from ...gram import FeatureMap
from ...kernels import Polynomial
from .._parameters import estimator, fit_method, fitted, parameter
from ._feature_transformer import FeatureTransformer


@estimator()
class PolynomialCountSketch(FeatureTransformer):
    """Random features of the polynomial kernel by tensor sketching.

        phi(x) = C_1 y * ... * C_p y,     E phi(x) . phi(z) = (gamma <x, z> + coef0)^p

    Here * is circular convolution, y consists of sqrt(gamma) x and sqrt(coef0), and each count
    sketch C_i sums the coordinates, with random signs, in n_components random buckets.  A drop-in
    replacement for scikit-learn's `PolynomialCountSketch`.  Buckets are assigned without
    replacement, so that coordinates share a bucket only if there are more coordinates than
    features.  The expectation is the same, and the error is smaller.

    Parameters
    ----------
    gamma : float
        Factor of the inner product; choose it so that gamma <x, z> is of the order of 1.
    degree : int
        The degree p. The error grows with p, so degrees above 3 need many features.
    coef0 : float
        The constant term, at least 0. A positive value includes terms of lower degree.
    n_components : int
        Number of features. More features give a smaller error, which decreases as 1 /
        sqrt(n_components); several times the number of columns is a good start.

    Attributes
    ----------
    indexHash_ : ndarray of shape (degree, n_features), one column more if coef0 is not 0
        The bucket of each coordinate.
    bitHash_ : ndarray of the same shape
        The sign of each coordinate.
    kernel_ : Polynomial
        The kernel that is approximated.

    See Also
    --------
    ExplicitFeatures : Exact features of the polynomial kernel, if there are not too many.
    Nystroem : Features of any kernel from landmarks; usually fewer are needed.
    RandomFeatures : Features of stationary kernels such as the RBF kernel.
    sklearn.kernel_approximation.PolynomialCountSketch : Buckets are drawn with replacement.

    References
    ----------
    Pham and Pagh, "Fast and scalable polynomial kernels via explicit feature maps", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PolynomialCountSketch
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> F = PolynomialCountSketch(degree=2, n_components=1024).fit_transform(X)
    >>> bool(np.abs(F @ F.T - (X @ X.T) ** 2).mean() < 0.2)
    True
    """

    _: KW_ONLY
    gamma: float = parameter("positive", default=1.0)
    degree: int = parameter("positive integer", default=2)
    coef0: float = parameter("non-negative", default=0)
    n_components: int = parameter("positive integer", default=100)

    kernel_: Polynomial = fitted()
    indexHash_: np.ndarray = fitted()
    bitHash_: np.ndarray = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Assign columns to random buckets.

        Only the number of columns of X is used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training points, or any points with the same number of columns.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : PolynomialCountSketch
            The fitted estimator.
        """
        X = self._check(X, reset=True)
        self.kernel_ = Polynomial(self.degree, self.coef0, self.gamma)
        rng = seeded_generator(self.random_state)
        self._map = CountSketchMap.on(self.kernel_, X.shape[1], self.n_components, rng)
        self.indexHash_, self.bitHash_ = self._map.buckets, self._map.signs
        return self


# --- Random features of the polynomial kernel (TensorSketch): convolved count sketches.


# For degree p, d columns and D features, the convolutions need p + 1 Fourier transforms or
# (p - 1) d rotations.  The transforms are faster if d > c (p + 1) / (p - 1) D^-1/2, with this
# constant c; in measurements for D = 100 to 1000, both took the same time at c = 160 to 240.
_FOURIER_THRESHOLD = 180.0


@entry_point
@dataclass(frozen=True, eq=False)
class CountSketchMap(FeatureMap):
    """Random features whose inner products approximate a polynomial kernel.

    E phi(x) . phi(z) = (gamma <x, z> + coef0)^degree.  Use `CountSketchMap.on` to create a map.

    Attributes
    ----------
    kernel : Polynomial
    buckets : ndarray of shape (degree, n_columns), of int
        Bucket of each column of X in each sketch; there is one more column if coef0 is not 0.
    signs : ndarray of shape (degree, n_columns)
        Random sign of each column in each sketch, 1.0 or -1.0.
    n_features : int
        Number D of features, which is also the number of buckets.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators import CountSketchMap
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
        """Draw the buckets and signs of a map for points with `n_columns` columns."""
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

    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        X = as_vectors(take(X, rows), "CountSketchMap")
        width = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
        p = len(self.buckets)
        if width * (p - 1) * np.sqrt(len(self)) > _FOURIER_THRESHOLD * (p + 1):
            self._fill_by_fourier(X, out)
            return
        gamma, coef0 = float(self.kernel.gamma), float(self.kernel.coef0)
        sizes = np.sqrt(gamma) * self.signs
        if coef0:
            sizes[:, -1] *= np.sqrt(coef0 / gamma)
        n, d = X.shape
        if sp.issparse(X):
            entries, columns, ends = X.data, X.indices, X.indptr
        else:  # X is dense: every row has the same columns
            entries, columns, ends = X.ravel(), np.arange(d), np.arange(0, n * d + 1, d)
        scratch = np.empty(len(self))
        _fill_by_rotations(entries, columns, ends, self.buckets, sizes, bool(coef0), scratch, out)

    def _fill_by_fourier(self, X: Points, out: np.ndarray) -> None:
        """Write phi(x) to `out`, computing the convolutions by fast Fourier transforms."""
        product = None
        for C, constant in self._sketches:
            sketch = X @ C
            sketch = sketch.toarray() if sp.issparse(sketch) else sketch
            transform = rfft(sketch.astype(np.float64, copy=False) + constant, axis=1)
            product = transform if product is None else np.multiply(product, transform, out=product)
        out[...] = irfft(product, n=len(self), axis=1)

    @cached_property
    def _sketches(self) -> list[tuple[sp.csr_array, np.ndarray]]:
        """For each sketch, a sparse matrix with one row per column of X, and the term of coef0."""
        gamma, coef0 = float(self.kernel.gamma), float(self.kernel.coef0)
        d = self.buckets.shape[1] - (coef0 != 0)
        sketches = []
        for bucket, sign in zip(self.buckets, self.signs, strict=True):
            index = (np.arange(d), bucket[:d])
            C = sp.csr_array((np.sqrt(gamma) * sign[:d], index), shape=(d, len(self)))
            constant = np.zeros(len(self))
            if coef0:
                constant[bucket[d]] = np.sqrt(coef0) * sign[d]
            sketches.append((C, constant))
        return sketches


@jit()
def _fill_by_rotations(
    entries: Any,
    columns: Any,
    ends: Any,
    buckets: Any,
    sizes: Any,
    constant: bool,
    convolved: Any,
    out: Any,
) -> None:
    """Write phi(x_i) to out[i], computing the convolutions by rotations.

    Point i has the entries ends[i] to ends[i + 1], as in a CSR matrix.  If `columns` is shorter
    than `entries`, the points are dense, and all of them have the same columns.
    """
    dense, last, D = len(columns) < len(entries), buckets.shape[1] - 1, len(convolved)
    for i in range(len(out)):
        row, first, count = out[i], ends[i], ends[i + 1] - ends[i]
        for p in range(len(buckets)):
            for j in range(D):
                convolved[j] = 0.0
            for e in range(count + constant):
                c, x = last, 1.0
                if e < count:
                    c, x = columns[e if dense else first + e], entries[first + e]
                size, shift = sizes[p, c] * x, buckets[p, c]
                if p == 0:
                    convolved[shift] += size
                    continue
                for j in range(shift):
                    convolved[j] += size * row[D - shift + j]
                for j in range(D - shift):
                    convolved[shift + j] += size * row[j]
            for j in range(D):
                row[j] = convolved[j]
