"""C classes: f_1, ..., f_C seen through the softmax, p_c = exp(f_c) / sum_b exp(f_b).

All f_c have the prior covariance K, independently.  W couples them at each point, and yet nothing
of size Cn x Cn is formed: with D_c = diag(p_c), as W = D - Pi Pi^T with Pi the D_c stacked,

    B_c = I + D_c^1/2 K D_c^1/2,    E_c = D_c^1/2 B_c^-1 D_c^1/2,    S = sum_c E_c = M M^T,
    J_c = M^-1 E_c,                 R_cd = ((K + W^-1)^-1)_cd = delta_cd E_c - J_c^T J_d,
    log det(I + K W) = sum_c log det B_c + log det S

(Rasmussen and Williams, 2006, algorithm 3.3).  One has sum_c J_c = M^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import helmert
from scipy.special import log_softmax, ndtri, softmax
from scipy.stats import qmc

from .._errors import NotPositiveDefiniteError
from .._points import doubled
from .._runtime import entry_point, slices
from .._runtime.linalg import blas, lapack
from ..kernels import Kernel, pair
from ..solvers.linear import mirror
from ._logistic import expected_probability, factorize_shifted

__all__ = ["ClassCovariance", "SoftmaxCurvature", "expected_softmax"]

_COLUMNS = 64  # of a matrix that are worked on at a time
_LEAST_ROOT = 1e-150  # of a probability, so that it has an inverse
_NUMBERS = 2**20  # that an evaluation holds at a time
_NODES = 12  # 2^12 points at which a softmax is averaged
_BITS = 30
_REFINEMENTS = 2  # solutions of a system, the second of what the first one left


class SoftmaxCurvature:
    """W_cd = delta_cd p_c - p_c p_d at one f, and R = (K + W^-1)^-1; see the module.

    Attributes
    ----------
    P : ndarray of shape (n, C)
    half_logdet : float
        log det(I + K W) / 2.
    """

    def __init__(self, K: np.ndarray, F: np.ndarray) -> None:
        n, q = F.shape
        self.P = self.probabilities(F)
        self.roots = np.sqrt(self.P)
        self.factors = np.empty((q, n, n))  # of the B_c, transposed
        self.S, self.half_logdet = np.zeros((n, n), order="F"), 0.0
        self.diagonals = np.empty((n, q))  # of the B_c^-1
        work = np.empty((n, n))
        for c, (factor, root) in enumerate(zip(self.factors, self.roots.T, strict=True)):
            L = factorize_shifted(K, root, factor)
            self.half_logdet += float(np.sum(np.log(np.diag(L))))
            B = _invert(factor, work)
            self.diagonals[:, c] = np.diag(B)
            for rows in slices(n, _COLUMNS):
                self.S[:, rows] += (root[rows, None] * B[rows] * root).T
        del work, B
        self.M, info = lapack.dpotrf(self.S, lower=1, clean=1)
        if info != 0 or not np.isfinite(self.M[-1, -1]):
            raise NotPositiveDefiniteError(
                f"sum_c (K + 1/p_c)^-1 is not positive definite: pivot {info} of {n}; K is too "
                f"large beside 1, or the kernel is no Mercer kernel on these points"
            )
        self.half_logdet += float(np.sum(np.log(np.diag(self.M))))

    @staticmethod
    def probabilities(F: np.ndarray) -> np.ndarray:
        """Return p of each f."""
        return np.asarray(softmax(F, axis=1))

    @staticmethod
    def log_likelihood(F: np.ndarray, Y: np.ndarray) -> float:
        """Return sum_i log p(y_i | f_i)."""
        return float(np.sum(log_softmax(F, axis=1)[Y > 0]))

    @staticmethod
    def arrays(q: int, gradient: bool) -> int:
        """Return how many n x n arrays there are at a time: K, S, M, work, C factors, and M^-1."""
        return q + (5 if gradient else 4)

    def solve(self, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return A = (I + W K)^-1 V = V - R K V, of V whose columns sum to 0.

        What R loses where K is large would be large in K A: it is found there, and added.
        """
        A = np.zeros_like(V)
        for _ in range(_REFINEMENTS):
            f = self.P * (K @ A)
            r = V - A - f + self.P * f.sum(axis=1, keepdims=True)
            A += r - self._times_R(K @ r)
            A -= A.mean(axis=1, keepdims=True)
        return A

    def _times_R(self, V: np.ndarray) -> np.ndarray:
        """Return R V = E V - E S^-1 sum_c E_c V_c."""
        T = self._times_E(V)
        common = lapack.dpotrs(self.M, T.sum(axis=1), lower=1)[0]
        return T - self._times_E(np.broadcast_to(common[:, None], V.shape))

    def _times_E(self, V: np.ndarray) -> np.ndarray:
        pairs = zip(self.factors, (self.roots * V).T, strict=True)
        return self.roots * np.column_stack([lapack.dpotrs(L.T, v, lower=1)[0] for L, v in pairs])

    def _whiten(self, c: int, out: np.ndarray) -> np.ndarray:
        """Return J_c transposed, in `out`, which may be the array of the factor."""
        J, root = _invert(self.factors[c], out).T, self.roots[:, c]
        J *= root[:, None]
        blas.dtrsm(1.0, self.M, J, lower=1, overwrite_b=1)
        J *= root
        return out

    def pull(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u = (I - R K) s, s = d(-log det(I + K W) / 2) / df, and sum_c R_cc; once.

        At each point s_c = -(r_c - p_c sum_a r_a) / 2 with r_a = p_a (T_aa - 2 sum_b T_ab p_b) and
        T = (K^-1 + W)^-1 the covariance of f given the labels, of which

            p_a^1/2 T_ab p_b^1/2 = delta_ab (1 - (B_a^-1)_ii) + g_a . g_b

        with g_a the column of M^-1 D_a^1/2 (I - B_a^-1), and sum_b p_b^1/2 g_b that of M^-1 - M^T.
        The sum of R_cc has the right numbers in its lower half.
        """
        P, R, work = self.P, self.S, np.empty(K.shape)
        inverse, _ = lapack.dtrtri(self.M, lower=1)
        r = (1.0 - self.diagonals) * (1.0 - 2.0 * P)
        for c, root in enumerate(self.roots.T):
            J = self._whiten(c, work)
            for cols in slices(len(P), _COLUMNS):
                V = inverse[:, cols]
                g = V * root[cols] - J[cols].T / np.maximum(root[cols], _LEAST_ROOT)
                r[cols, c] += np.einsum("ij,ij->j", g, g)
                r[cols, c] -= 2.0 * root[cols] * np.einsum("ij,ij->j", g, V - self.M[cols].T)
            blas.dsyrk(-1.0, J.T, beta=1.0, c=R, trans=1, lower=1, overwrite_c=1)
        s = -0.5 * (r - P * r.sum(axis=1, keepdims=True))
        return self.solve(K, s), R

    def covariance(self, kernel: Kernel, X: Any) -> ClassCovariance:
        """Return the covariance of the f_c given the labels; once."""
        for c, factor in enumerate(self.factors):
            self._whiten(c, factor)
        return ClassCovariance(kernel, X, self.factors)


def _invert(factor: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return (L L^T)^-1 in `out`, from L transposed."""
    if out is not factor:
        out[...] = factor
    lapack.dpotri(out.T, lower=1, overwrite_c=1)
    mirror(out.T)
    return out


@entry_point
@dataclass(frozen=True, eq=False)
class ClassCovariance:
    """cov(f_c(x), f_d(x) | labels) = delta_cd (k(x, x) - sum_b psi_b . psi_c) + psi_c . psi_d.

    psi_c(x) = J_c k_X(x).  The sum of all f_c keeps its prior variance: labels say nothing of it.

    Attributes
    ----------
    kernel : Kernel
        The prior k, the same for all classes.
    points : points
    factors : ndarray of shape (C, n, n)
        The J_c, transposed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> from mercer.kernels import RBF
    >>> X, y = np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2]
    >>> model = GaussianProcessClassifier(1.0 * RBF(), multi_class="multinomial", optimizer=None)
    >>> mean, covariance = model.fit(X, y).latent_mean_and_variance(X[:2])
    >>> np.shape(covariance)
    (2, 3)
    """

    kernel: Kernel
    points: Any
    factors: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        """Return the covariances at each point, (m, C, C)."""
        q, n, _ = self.factors.shape
        P, Q = pair(self.kernel, doubled(X), self.points)
        out = np.empty((len(P), q, q))
        for rows in slices(len(P), max(1, _NUMBERS // (n * q))):
            k = np.empty((len(P[rows]), n))
            self.kernel._tile(P[rows], Q, k)
            psi = np.stack([k @ J for J in self.factors], axis=1)
            out[rows] = psi @ psi.transpose(0, 2, 1)
        prior = np.asarray(self.kernel.diag(doubled(X)), dtype=float)
        np.einsum("icc->ic", out)[...] += prior[:, None] - out.sum(axis=2)
        return out


@cache
def _nodes(q: int) -> np.ndarray:
    """Return normal vectors whose q coordinates sum to 0: scrambled Sobol points."""
    points = qmc.Sobol(d=q - 1, scramble=True, bits=_BITS, seed=np.random.default_rng(0))
    middles = points.random_base2(_NODES) + 0.5 ** (_BITS + 1)  # quantiles of 0 are infinite
    return np.asarray(ndtri(middles) @ helmert(q))


@entry_point
def expected_softmax(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return E[softmax(f)] of f normal with means (m, C) and covariances (m, C, C).

    For two classes by quadrature, to some 1e-10.  For more a mean over 4096 points of a Sobol
    sequence, the same in every call: with 3 classes and f of standard deviation 1 it errs by up to
    1e-4, with 10 by 5e-4; with a standard deviation of 8 by up to 5e-4 and about 5e-3.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import expected_softmax
    >>> expected_softmax(np.array([[2.0, 1.0, 0.0]]), np.eye(3)[None]).round(3)
    array([[0.596, 0.281, 0.123]])
    """
    m, q = mean.shape
    if q == 2:
        variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
        p = expected_probability(mean[:, 1] - mean[:, 0], variance)
        return np.column_stack([1.0 - p, p])
    covariance = covariance - covariance.mean(axis=1, keepdims=True)  # a shift of all f_c is lost
    sizes, V = np.linalg.eigh(covariance - covariance.mean(axis=2, keepdims=True))
    roots = (V * np.sqrt(np.maximum(sizes, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
    nodes, out = _nodes(q), np.empty((m, q))
    for i in range(m):
        out[i] = softmax(mean[i] + nodes @ roots[i], axis=1).mean(axis=0)
    return out / out.sum(axis=1, keepdims=True)
