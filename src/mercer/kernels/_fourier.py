"""Random Fourier features: k(x, z) ≈ phi(x)^T phi(z) for functions k of x - z.

    phi(x) = sqrt(2/D) [cos(w_1.x), ..., cos(w_m.x), sin(w_1.x), ..., sin(w_m.x)],   m = D/2

Bochner: k(x - z) = k(0) E cos(w.(x - z)), where the law of w is the Fourier transform of k, and
phi(x)^T phi(z) is the mean of m such cosines.  Pairs of cosine and sine need no random phase: the
variance is smaller, and |phi(x)|^2 = k(0) holds exactly.

Which law it is for which kernel, and how normal and uniform numbers become frequencies, is said in
`_spectrum`; here, where the numbers come from: Sobol points, orthogonal blocks, independent draws.
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

from .._runtime import slices
from ._base import Kernel, node
from ._features import _Basis
from ._fields import brief
from ._spectrum import Draw, Term, spectrum
from ._waves import waves

__all__ = ["FourierBasis", "random_features", "skewed_features"]

_METHODS = ("auto", "orthogonal", "qmc", "iid")
_ROWS = 256  # rows whose phases are held at a time
_PHASE = 1000.0  # float32 phases of this mean size put an error of 1e-4 on k; beyond, use float64
_SOBOL = 25  # normal numbers per frequency; with more, orthogonal blocks are better than a mixture
_BITS = 30  # of a Sobol point
_KEPT = 2**16  # coordinates of Sobol points that are kept for the next draw


@node
class FourierBasis(_Basis):
    """phi(x) = [a_j cos(w_j.x), ..., a_j sin(w_j.x), ...]: waves, all cosines before all sines.

    The kernel is phi(x)^T phi(z) = sum_j a_j^2 cos(w_j.(x - z)).

    Parameters
    ----------
    frequencies : array-like of shape (m, d), or (m,) for points on the line
        The w_j; `random_features` draws them for a given kernel.
    weights : array-like of shape (m,), optional
        The a_j >= 0.  By default all are 1 / sqrt(m), so that k(x, x) = 1.

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

    def __post_init__(self) -> None:
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

    def __call__(self, X: Any) -> np.ndarray:
        X = self._vectors(X, self.frequencies, "frequencies")
        out = np.empty((X.shape[0], 2 * len(self.frequencies)), dtype=X.dtype)
        self.fill(X, out)
        return out

    def fill(self, X: Any, out: np.ndarray) -> None:
        """Set out <- phi(X), in the precision of X or a higher one."""
        X = self._vectors(X, self.frequencies, "frequencies")
        W, a = self.frequencies, self._amplitudes()
        single = X.dtype == np.float32
        if single:
            mean = a**2 @ np.abs(W).sum(axis=1) / max(float(a @ a), 1e-300)
            largest = np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)
            single = mean * largest <= _PHASE
        turned = np.ascontiguousarray(W.T, dtype=np.float32 if single else np.float64)
        for rows in slices(len(out), _ROWS):
            waves(X[rows] @ turned, a, out[rows])

    def pullback(self, X: Any, G: np.ndarray) -> np.ndarray:
        # a cosine has the slope -w sine, a sine w cosine: both are in phi already
        phi, m = self(X), len(self.frequencies)
        return (phi[:, :m] * G[:, m:] - phi[:, m:] * G[:, :m]) @ self.frequencies

    def _amplitudes(self) -> np.ndarray:
        m = len(self.frequencies)
        return np.full(m, m**-0.5) if self.weights is None else self.weights

    def __str__(self) -> str:
        weights = "" if self.weights is None else f", weights={brief(self.weights)}"
        return f"FourierBasis(frequencies={brief(self.frequencies)}{weights})"


def random_features(
    kernel: Kernel,
    n_columns: int,
    n_features: int,
    *,
    method: str = "auto",
    random_state: Any = None,
) -> FourierBasis:
    """Return a basis phi with phi(x)^T phi(z) ≈ k(x, z) for a stationary kernel.

    Kernels: RBF, Matern, RationalQuadratic, Cauchy, InverseMultiquadric, Laplacian, Periodic and
    Constant, and what sums, products, integer powers, Normalized, Select, Shift, Stretch, Fixed and
    Bounded make of them.  The diagonal k(x, x) is exact.  The terms of a sum share the features in
    proportion to their k(0).

    Parameters
    ----------
    kernel : Kernel
    n_columns : int
        The number of columns of the points.
    n_features : int
        The number of features D, even.
    method : {"auto", "orthogonal", "qmc", "iid"}
        "qmc" takes Sobol points, shifted at random, with an error near 1/D in a few dimensions;
        best if D is a power of two.  "orthogonal" makes Gaussian frequencies orthogonal in blocks
        of `n_columns`, and is no different from "iid" for kernels without any.  "auto" is "qmc",
        except where orthogonal ones leave less: for RBF if there are fewer frequencies than the
        square of the number of columns, for others if a frequency takes more than 25 Gaussian
        numbers.
    random_state : None, int or Generator
        The same seed gives the same basis.

    Returns
    -------
    FourierBasis
        To be called on points, or made a kernel by `Features(basis)`.

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
        raise TypeError(f"random_features needs a kernel, got {kernel!r}; as_kernel reads others")
    if not isinstance(n_columns, numbers.Integral) or n_columns < 1:
        raise ValueError(f"random_features: n_columns must be a positive integer, got {n_columns}")
    if not isinstance(n_features, numbers.Integral) or n_features < 2 or n_features % 2:
        raise ValueError(
            f"random_features: n_features={n_features}, but features come in pairs, a cosine and "
            f"a sine of each frequency; give an even number of at least 2"
        )
    if method not in _METHODS:
        raise ValueError(f"random_features: method must be one of {_METHODS}, got {method!r}")
    kernel._require_resolved()
    terms, pairs = spectrum(kernel, int(n_columns)), int(n_features) // 2
    flat = [term for term in terms if not term.draws]
    terms = [term for term in terms if term.draws]
    if flat:  # one frequency, 0, is enough for all constants
        terms.append(Term(sum(term.size for term in flat), ()))
    if len(terms) > pairs:
        raise ValueError(
            f"random_features: {len(terms)} terms need a pair of features each, but "
            f"n_features={n_features} makes {pairs} pairs; give at least {2 * len(terms)}, and "
            f"some hundreds for each term"
        )
    shares = _share(np.array([term.size if term.draws else 0.0 for term in terms]), pairs)
    rng = np.random.default_rng(random_state)
    frequencies = np.zeros((pairs, int(n_columns)))
    for rows, term in zip(np.split(np.arange(pairs), np.cumsum(shares)[:-1]), terms, strict=True):
        frequencies[rows] = _draw(term, *frequencies[rows].shape, method, rng)
    if len(terms) == 1 and terms[0].size == 1.0:
        return FourierBasis(frequencies)
    sizes = np.array([term.size for term in terms])
    return FourierBasis(frequencies, np.repeat(np.sqrt(sizes / shares), shares))


def skewed_features(
    n_columns: int, n_features: int, *, method: str = "auto", random_state: Any = None
) -> FourierBasis:
    """Return a basis phi with phi(u)^T phi(v) ≈ prod_c sech((u_c - v_c) / 2).

    With u = log(x + s) that is the skewed chi-squared kernel, the product of
    2 sqrt(x_c + s) sqrt(z_c + s) / (x_c + z_c + 2 s) (Li, Ionescu and Sminchisescu, DAGM 2010).
    The frequencies have the density sech(pi w), whose quantiles are log(tan(pi q / 2)) / pi.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import skewed_features
    >>> phi = skewed_features(1, 512, random_state=0)
    >>> F = phi([[0.0], [2.0]])
    >>> bool(abs(F[0] @ F[1] - 1 / np.cosh(1.0)) < 0.01)
    True
    """
    law = Draw((), int(n_columns), lambda U: np.log(np.tan(0.5 * np.pi * U)) / np.pi)
    rng, pairs = np.random.default_rng(random_state), int(n_features) // 2
    return FourierBasis(_draw(Term(1.0, (law,)), pairs, int(n_columns), method, rng))


def _share(sizes: np.ndarray, pairs: int) -> np.ndarray:
    """Return how many pairs each term gets: one, and a part of the rest in proportion to size.

    A mean of m_t cosines times c_t has variance c_t^2 / m_t; the sum is least for m_t ~ c_t.
    """
    if len(sizes) == 1:
        return np.array([pairs])
    rest = pairs - len(sizes)
    quota = rest * sizes / sizes.sum() if sizes.any() else np.full(len(sizes), rest / len(sizes))
    shares = np.floor(quota).astype(int)
    shares[np.argsort(shares - quota, kind="stable")[: rest - shares.sum()]] += 1
    return 1 + shares


# ---------------------------------------------------------------------- frequencies


def _draw(term: Term, m: int, columns: int, method: str, rng: np.random.Generator) -> np.ndarray:
    """Return m frequencies of a term, shape (m, columns)."""
    active = sorted({c for draw in term.draws for c in draw.normals})
    U, Z = _numbers(m, sum(draw.uniforms for draw in term.draws), len(active), method, rng)
    frequencies, variances = np.zeros((m, columns)), np.zeros((m, columns))
    for draw in term.draws:
        mine, U = U[:, : draw.uniforms], U[:, draw.uniforms :]
        total = variances if draw.normals else frequencies
        total += draw.law(mine)
    frequencies[:, active] += np.sqrt(variances[:, active]) * Z
    return frequencies


def _numbers(
    m: int, uniforms: int, normals: int, method: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return m rows of uniform and m rows of normal numbers."""
    if method == "auto":
        # m points resolve the pairs of coordinates if m >= normals^2; a mixture needs its law, too
        few = normals <= _SOBOL if uniforms else normals**2 <= m
        few = few and uniforms + normals <= qmc.Sobol.MAXDIM
        method = "qmc" if few else "orthogonal"
    if method == "qmc" and uniforms + normals:
        U, Z = np.split(_sobol(m, uniforms + normals, rng), [uniforms], axis=1)
        return U, ndtri(Z)
    U = np.clip(rng.random((m, uniforms)), 0.5**_BITS, 1.0 - 0.5**_BITS)
    if method == "orthogonal" and normals:
        return U, _orthogonal(m, normals, rng)
    return U, rng.standard_normal((m, normals))


def _sobol(m: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return m Sobol points, each uniform, strictly between 0 and 1: (x XOR s) with a random s.

    The shift keeps the net.  SciPy scrambles its matrices, too, which takes most of the time, and
    leaves more of k over for the few hundred points that features are made of (measured: 10 %).
    """
    if columns > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"random_features: a frequency takes {columns} numbers, but Sobol points have at most "
            f"{qmc.Sobol.MAXDIM} coordinates; use method='auto' or 'orthogonal'"
        )
    power = math.ceil(math.log2(m))  # only a power of two is balanced: the first m of the next one
    net = _kept_net if columns << power <= _KEPT else _net
    points = net(power, columns)[:m] ^ rng.integers(2**_BITS, size=columns, dtype=np.uint32)
    return (points + 0.5) * 0.5**_BITS  # the middles of cells: quantiles of 0 are infinite


def _net(power: int, columns: int) -> np.ndarray:
    """Return 2^power Sobol points as integers of so many bits, not to be written to."""
    points = qmc.Sobol(d=columns, scramble=False, bits=_BITS).random_base2(power)
    points = (points * 2.0**_BITS).astype(np.uint32)
    points.setflags(write=False)
    return points


_kept_net = lru_cache(maxsize=16)(_net)


def _orthogonal(m: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return m normal vectors, orthogonal to each other within blocks of `columns`.

    The signs of R make Q uniform among the orthogonal matrices, so that each row, with a length of
    its own, is exactly normal: the estimate of k stays unbiased.
    """
    rows = min(m, columns)
    Q, R = np.linalg.qr(rng.standard_normal((math.ceil(m / rows), columns, rows)))
    Q *= np.copysign(1.0, np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    directions = Q.transpose(0, 2, 1).reshape(-1, columns)[:m]
    return directions * np.sqrt(rng.chisquare(columns, size=(m, 1)))
