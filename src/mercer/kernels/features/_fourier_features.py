"""Fourier features: k(x, z) ≈ phi(x)^T phi(z) for functions k of x - z.

Random features have the form

    phi(x) = sqrt(2/D) [cos(w_1.x), ..., cos(w_m.x), sin(w_1.x), ..., sin(w_m.x)],   m = D/2

By Bochner's theorem, k(x - z) = k(0) E cos(w.(x - z)), where the density of the random frequency w
is the Fourier transform of k.  phi(x)^T phi(z) is the mean of m such cosines (for k(0) = 1).  With
pairs of cosine and sine, no random phase is needed: the variance is smaller than with random
phases, and |phi(x)|^2 = k(0) holds exactly.

The module `_spectral_density` defines the distribution of w for each kernel, and transforms normal
and uniform random numbers into frequencies.  This module generates these numbers: as Sobol points,
in orthogonal blocks, or independently.

The frequencies for the additive chi-squared kernel form a grid.  The term of one column is

    2 x z / (x + z) = sqrt(x z) sech((u - v) / 2),   u = log x,  v = log z,

which is sqrt(x z) times the integral of sech(pi w) exp(i w (u - v)) over all frequencies w.
Replacing the integral by a sum over the grid w = 0, L, -L, 2 L, ... gives the features

    sqrt(L x),   sqrt(2 L x sech(pi j L)) cos(j L u),   sqrt(2 L x sech(pi j L)) sin(j L u)

for j = 1, 2, ... (Vedaldi and Zisserman, TPAMI 2012).  They are 0 at x = 0, so that sparse
points have sparse features.
"""

from __future__ import annotations

import math
import numbers
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from scipy.stats import qmc

from ..._core import ENTRY_WORK, Points, RandomState, numpy_generator, run_in_threads, slices
from .._base import Kernel, node
from .._dataclass import format_brief
from ..vectors._fast_math import scaled_sincos
from ._feature_kernels import _Basis
from ._spectral_density import FrequencyDistribution, SpectralTerm, spectral_terms

_METHODS = ("auto", "orthogonal", "qmc", "iid")
_ROWS_PER_BLOCK = 256  # number of rows whose phases w.x are computed at a time
# Largest mean phase w.x for float32; the error of k is then about 1e-4.  For larger phases, float64
# is used.
_MAX_SINGLE_PHASE = 1000.0
# For kernels whose frequencies are mixtures of normals, "auto" uses Sobol points up to this many
# normal numbers per frequency.  Above it, orthogonal blocks have a smaller error.
_MAX_SOBOL_NORMALS = 25
_BITS = 30  # number of bits of each coordinate of a Sobol point
_MAX_CACHED_COORDINATES = 2**16  # larger sets of Sobol points are not cached for later calls


@node
class FourierBasis(_Basis):
    """Cosine and sine basis functions of given frequencies.

        phi(x) = [a_1 cos(w_1.x), ..., a_m cos(w_m.x), a_1 sin(w_1.x), ..., a_m sin(w_m.x)]

    The kernel of these features is phi(x)^T phi(z) = sum_j a_j^2 cos(w_j.(x - z)).

    Parameters
    ----------
    frequencies : array-like of shape (m, d), or (m,) if the points have one column
        The angular frequencies w_j, 2 pi / period for a known period; `random_features` draws them
        for a given kernel.
    weights : array-like of shape (m,), optional
        The amplitudes a_j >= 0.  By default all are 1 / sqrt(m), so that k(x, x) = 1.

    See Also
    --------
    random_features : Draws the frequencies for a stationary kernel.
    Features : Makes a kernel of a basis.
    Periodic : A kernel with all harmonics of one period.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import FourierBasis
    >>> FourierBasis([0.0, np.pi], weights=[1.0, 2.0])([[0.0], [0.5]]).round(4)
    array([[1., 2., 0., 0.],
           [1., 0., 0., 2.]])
    """

    frequencies: Any
    weights: Any = None

    def _check(self) -> None:
        W = np.array(self.frequencies, dtype=float)
        W = W[:, None] if W.ndim == 1 else W
        if W.ndim != 2 or not W.size or not np.all(np.isfinite(W)):
            raise ValueError(
                f"FourierBasis: frequencies must be finite numbers of shape (m, d) or (m,), "
                f"got shape {np.shape(self.frequencies)}"
            )
        W.setflags(write=False)
        object.__setattr__(self, "frequencies", W)
        if self.weights is not None:
            a = np.array(self.weights, dtype=float)
            if a.shape != (len(W),) or not np.all(np.isfinite(a)) or np.any(a < 0):
                raise ValueError(
                    f"FourierBasis: weights must be {len(W)} finite numbers >= 0, one for each "
                    f"frequency, got shape {a.shape}"
                )
            a.setflags(write=False)
            object.__setattr__(self, "weights", a)

    def __call__(self, X: Points) -> np.ndarray:
        X = self._vectors(X, self.frequencies, "frequencies")
        out = np.empty((X.shape[0], 2 * len(self.frequencies)), dtype=X.dtype)
        self.fill(X, out)
        return out

    def fill(self, X: Points, out: np.ndarray) -> None:
        """Write the features phi(X) to an array, for solvers that compute them in blocks.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points.  The features are computed in their precision, or in float64 for large
            phases.
        out : ndarray of shape (n, 2 m)
            The array that receives the m cosines and then the m sines.
        """
        X = self._vectors(X, self.frequencies, "frequencies")
        W, a = self.frequencies, self._amplitudes()
        single = X.dtype == np.float32
        if single:
            # An upper bound on the mean phase, weighted by the squared amplitudes.
            mean = a**2 @ np.abs(W).sum(axis=1) / max(float(a @ a), 1e-300)
            largest = np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)
            single = mean * largest <= _MAX_SINGLE_PHASE
        transposed = np.ascontiguousarray(W.T, dtype=np.float32 if single else np.float64)
        for rows in slices(len(out), _ROWS_PER_BLOCK):
            scaled_sincos(X[rows] @ transposed, a, out[rows])

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        # The derivative of cos(w.x) is -w sin(w.x), and that of sin(w.x) is w cos(w.x).  Both
        # functions are already in phi.
        phi, m = self(X), len(self.frequencies)
        gradient: np.ndarray = (phi[:, :m] * G[:, m:] - phi[:, m:] * G[:, :m]) @ self.frequencies
        return gradient

    def _amplitudes(self) -> np.ndarray:
        m = len(self.frequencies)
        return np.full(m, m**-0.5) if self.weights is None else self.weights

    def __str__(self) -> str:
        weights = "" if self.weights is None else f", weights={format_brief(self.weights)}"
        return f"FourierBasis(frequencies={format_brief(self.frequencies)}{weights})"


def random_features(
    kernel: Kernel,
    n_columns: int,
    n_features: int,
    *,
    method: str = "auto",
    random_state: RandomState = None,
) -> FourierBasis:
    """Draw random Fourier features of a stationary kernel.

        phi(x)^T phi(z) ≈ k(x, z)

    Supported kernels are RBF, Matern, RationalQuadratic, Cauchy, InverseMultiquadric, Laplacian,
    Periodic and Constant, and their sums, products and integer powers, also inside Normalized,
    Select, Shift, Stretch, Fixed and Bounded.  The diagonal k(x, x) is exact.  In a
    sum, the number of features of each term is proportional to its value k(x, x).

    Parameters
    ----------
    kernel : Kernel
        The stationary kernel, without unresolved rules such as "median".
    n_columns : int
        The number of columns of the points.
    n_features : int
        The number of features D, an even number.  More features give a smaller error, which
        decreases like 1 / sqrt(D) or faster; a few hundred to a few thousand are usual.
    method : {"auto", "orthogonal", "qmc", "iid"}, default="auto"
        How to draw the frequencies.  "qmc" uses Sobol points with a random shift; its error is
        nearly proportional to 1/D in a few dimensions, and best if D is a power of two.
        "orthogonal" makes Gaussian frequencies orthogonal within blocks of `n_columns`; for kernels
        without Gaussian frequencies it is the same as "iid", which draws independently.  "auto" is
        "qmc", except where orthogonal frequencies have a smaller error: for RBF if there are fewer
        frequencies than the square of the number of columns, and for other kernels if a frequency
        requires more than 25 Gaussian numbers.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same basis.

    Returns
    -------
    FourierBasis
        Call it on n points to get their features, shape (n, n_features); `Features(basis)` is the
        approximate kernel.

    See Also
    --------
    finite_features : Exact features, for kernels that have finitely many.
    GaussianSeries : Deterministic features of the RBF for one column.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007. Yu, Suresh,
    Choromanski, Holtmann-Rice and Kumar, "Orthogonal random features", NIPS 2016. Yang, Sindhwani,
    Avron and Mahoney, "Quasi-Monte Carlo feature maps for shift-invariant kernels", ICML 2014.

    Examples
    --------
    >>> from mercer.kernels import Features, Matern, random_features
    >>> k = 2 * Matern(nu=2.5)
    >>> basis = random_features(k, n_columns=2, n_features=1024, random_state=0)
    >>> x, z = [[0.0, 0.0]], [[0.5, 1.0]]
    >>> bool(abs(Features(basis)(x, z) - k(x, z)) < 0.01)
    True
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"random_features needs a kernel, got {kernel!r}; convert it by as_kernel")
    if not isinstance(n_columns, numbers.Integral) or n_columns < 1:
        raise ValueError(f"random_features: n_columns must be a positive integer, got {n_columns}")
    if not isinstance(n_features, numbers.Integral) or n_features < 2 or n_features % 2:
        raise ValueError(
            f"random_features: n_features must be an even number >= 2, because each frequency has "
            f"a cosine and a sine, got {n_features}"
        )
    if method not in _METHODS:
        raise ValueError(f"random_features: method must be one of {_METHODS}, got {method!r}")
    kernel._require_resolved()
    terms, pairs = spectral_terms(kernel, int(n_columns)), int(n_features) // 2
    constants = [term for term in terms if not term.draws]
    terms = [term for term in terms if term.draws]
    if constants:  # the frequency 0 represents the sum of all constants
        terms.append(SpectralTerm(sum(term.size for term in constants), ()))
    if len(terms) > pairs:
        raise ValueError(
            f"random_features: the kernel has {len(terms)} terms, and each needs at least one pair "
            f"of features, but n_features={n_features} gives only {pairs} pairs; use at least "
            f"{2 * len(terms)} features, preferably several hundred per term"
        )
    counts = _pairs_per_term(np.array([term.size if term.draws else 0.0 for term in terms]), pairs)
    rng = numpy_generator(random_state)
    frequencies = np.zeros((pairs, int(n_columns)))
    for rows, term in zip(np.split(np.arange(pairs), np.cumsum(counts)[:-1]), terms, strict=True):
        frequencies[rows] = _draw_frequencies(term, *frequencies[rows].shape, method, rng)
    if len(terms) == 1 and terms[0].size == 1.0:
        return FourierBasis(frequencies)
    sizes = np.array([term.size for term in terms])
    return FourierBasis(frequencies, np.repeat(np.sqrt(sizes / counts), counts))


def skewed_features(
    n_columns: int, n_features: int, *, method: str = "auto", random_state: RandomState = None
) -> FourierBasis:
    """Draw random Fourier features of the skewed chi-squared kernel.

        phi(u)^T phi(v) ≈ prod_c sech((u_c - v_c) / 2)

    For u = log(x + s) and v = log(z + s) this is the skewed chi-squared kernel, the product of
    2 sqrt(x_c + s) sqrt(z_c + s) / (x_c + z_c + 2 s) (Li, Ionescu and Sminchisescu, DAGM 2010).
    The frequencies have the density sech(pi w), whose quantiles are log(tan(pi q / 2)) / pi.

    Parameters
    ----------
    n_columns : int
        The number of columns of the points.
    n_features : int
        The number of features, an even number.
    method : {"auto", "orthogonal", "qmc", "iid"}, default="auto"
        How to draw the frequencies, see `random_features`.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same basis.

    Returns
    -------
    FourierBasis
        Call it on the logarithms u to get their features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import skewed_features
    >>> phi = skewed_features(1, 512, random_state=0)
    >>> F = phi([[0.0], [2.0]])
    >>> bool(abs(F[0] @ F[1] - 1 / np.cosh(1.0)) < 0.01)
    True
    """
    law = FrequencyDistribution(
        (), int(n_columns), lambda U: np.log(np.tan(0.5 * np.pi * U)) / np.pi
    )
    rng, pairs = numpy_generator(random_state), int(n_features) // 2
    return FourierBasis(
        _draw_frequencies(SpectralTerm(1.0, (law,)), pairs, int(n_columns), method, rng)
    )


def _pairs_per_term(sizes: np.ndarray, pairs: int) -> np.ndarray:
    """Return the number of feature pairs of each term: one, plus a number proportional to its size.

    A term of size c with m pairs is c times the mean of m cosines, whose variance is proportional
    to c^2 / m.  If the total number of pairs is fixed, the sum of the variances is smallest if m is
    proportional to c.
    """
    if len(sizes) == 1:
        return np.array([pairs])
    rest = pairs - len(sizes)
    quota = rest * sizes / sizes.sum() if sizes.any() else np.full(len(sizes), rest / len(sizes))
    counts: np.ndarray = np.floor(quota).astype(int)
    counts[np.argsort(counts - quota, kind="stable")[: rest - counts.sum()]] += 1
    return 1 + counts


# ---------------------------------------------------------------------- frequencies


def _draw_frequencies(
    term: SpectralTerm, m: int, columns: int, method: str, rng: np.random.Generator
) -> np.ndarray:
    """Return m frequencies of a term, shape (m, columns)."""
    active = sorted({c for draw in term.draws for c in draw.normals})
    U, Z = _random_numbers(m, sum(draw.uniforms for draw in term.draws), len(active), method, rng)
    frequencies, variances = np.zeros((m, columns)), np.zeros((m, columns))
    for draw in term.draws:
        own, U = U[:, : draw.uniforms], U[:, draw.uniforms :]
        total = variances if draw.normals else frequencies
        total += draw.law(own)
    frequencies[:, active] += np.sqrt(variances[:, active]) * Z
    return frequencies


def _random_numbers(
    m: int, uniforms: int, normals: int, method: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return random uniform numbers, shape (m, uniforms), and normal ones, shape (m, normals)."""
    if method == "auto":
        # m Sobol points cover each pair of coordinates evenly if m >= normals^2.  For a mixture of
        # normals, Sobol points also improve the uniform numbers that determine the variances.
        use_sobol = normals <= _MAX_SOBOL_NORMALS if uniforms else normals**2 <= m
        use_sobol = use_sobol and uniforms + normals <= qmc.Sobol.MAXDIM
        method = "qmc" if use_sobol else "orthogonal"
    if method == "qmc" and uniforms + normals:
        U, Z = np.split(_sobol(m, uniforms + normals, rng), [uniforms], axis=1)
        return U, ndtri(Z)
    U = np.clip(rng.random((m, uniforms)), 0.5**_BITS, 1.0 - 0.5**_BITS)
    if method == "orthogonal" and normals:
        return U, _orthogonal(m, normals, rng)
    return U, rng.standard_normal((m, normals))


def _sobol(m: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return m Sobol points strictly between 0 and 1, randomised by a digital shift (x XOR s).

    Each point is uniformly distributed, and the shift preserves the low discrepancy of the points.
    SciPy's scrambling also randomises the generator matrices.  That takes most of the time, and for
    the few hundred points of typical features the error of k is larger (measured: 10 %).
    """
    if columns > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"random_features: a frequency needs {columns} numbers, but Sobol points have at most "
            f"{qmc.Sobol.MAXDIM} coordinates; use method='auto' or 'orthogonal'"
        )
    # Sobol points are balanced only if their number is a power of two.  Therefore generate the next
    # power of two, and use the first m points.
    power = math.ceil(math.log2(m))
    net = _cached_sobol_net if columns << power <= _MAX_CACHED_COORDINATES else _sobol_net
    points = net(power, columns)[:m] ^ rng.integers(2**_BITS, size=columns, dtype=np.uint32)
    return (points + 0.5) * 0.5**_BITS  # adding 0.5 avoids 0, whose quantile is infinite


def _sobol_net(power: int, columns: int) -> np.ndarray:
    """Return 2^power Sobol points as integers of `_BITS` bits, a read-only array."""
    points = qmc.Sobol(d=columns, scramble=False, bits=_BITS).random_base2(power)
    integers: np.ndarray = (points * 2.0**_BITS).astype(np.uint32)
    integers.setflags(write=False)
    return integers


_cached_sobol_net = lru_cache(maxsize=16)(_sobol_net)


def _orthogonal(m: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return m normal vectors that are orthogonal to each other within blocks of `columns`.

    The directions are columns of Q in a QR factorisation of a random normal matrix.  Multiplied by
    the signs of the diagonal of R, Q is uniformly distributed among the orthogonal matrices.  Each
    direction, multiplied by an independent chi-distributed length, is then exactly normal, so that
    the estimate of k is unbiased.
    """
    rows = min(m, columns)
    Q, R = np.linalg.qr(rng.standard_normal((math.ceil(m / rows), columns, rows)))
    Q *= np.copysign(1.0, np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    directions = Q.transpose(0, 2, 1).reshape(-1, columns)[:m]
    return directions * np.sqrt(rng.chisquare(columns, size=(m, 1)))


# ---------------------------------------------------------------------- additive chi-squared kernel


_ROWS_PER_TASK = 1024  # points that a thread processes at a time, to limit temporary memory


def additive_chi2_features(X: Points, steps: int, interval: float) -> Points:
    """Return approximate features of the additive chi-squared kernel.

    Inner products of the features approximate sum_c 2 x_c z_c / (x_c + z_c).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Histograms, with entries >= 0.
    steps : int
        The number of frequencies 0, L, ..., (steps - 1) L, where L is `interval`.
    interval : float
        The distance L between the frequencies.

    Returns
    -------
    ndarray or CSR matrix of shape (n, (2 * steps - 1) * d)
        d columns for the frequency 0, then d cosines and d sines for each other frequency; sparse
        if X is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import additive_chi2_features
    >>> F = additive_chi2_features(np.array([[1.0], [3.0]]), steps=4, interval=0.4)
    >>> F.shape
    (2, 7)
    >>> bool(abs(F[0] @ F[1] - 2 * 1 * 3 / (1 + 3)) < 0.02)
    True
    """
    if sp.issparse(X):
        parts = _parts(X.data, steps, interval)
        blocks = [sp.csr_array((part, X.indices, X.indptr), shape=X.shape) for part in parts]
        return sp.hstack(blocks, format="csr")
    n, d = X.shape
    out = np.empty((n, (2 * steps - 1) * d), dtype=X.dtype)

    def fill(rows: slice) -> None:
        for j, part in enumerate(_parts(X[rows].ravel(), steps, interval)):
            out[rows, j * d : (j + 1) * d] = part.reshape(-1, d)

    run_in_threads(fill, slices(n, _ROWS_PER_TASK), work=ENTRY_WORK * out.size)
    return out


def _parts(x: np.ndarray, steps: int, interval: float) -> list[np.ndarray]:
    """Return the features of each number in the vector x, as a list of 2 * steps - 1 arrays."""
    positive = x > 0
    roots = np.sqrt(x)
    parts = [np.sqrt(interval).astype(x.dtype) * roots]
    if steps == 1:
        return parts
    phases = interval * np.log(np.where(positive, x, 1))
    pair = np.empty((len(x), 2), dtype=x.dtype)
    scaled_sincos(phases.astype(x.dtype, copy=False)[:, None], np.ones(1), pair)
    c, s = (roots * part for part in pair.T)
    wave, rotation = (c, s), pair.T
    for j in range(1, steps):
        weight = np.sqrt(2.0 * interval / np.cosh(np.pi * j * interval)).astype(x.dtype)
        parts += [weight * wave[0], weight * wave[1]]
        # Compute cos and sin of the next multiple of the phase by the angle addition formulas.
        wave = (
            wave[0] * rotation[0] - wave[1] * rotation[1],
            wave[1] * rotation[0] + wave[0] * rotation[1],
        )
    return parts
