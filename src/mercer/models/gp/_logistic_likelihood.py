"""The logistic likelihood of two classes, p = 1 / (1 + exp(-f)), for the Laplace approximation."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from ..._core import NotPositiveDefiniteError, entry_point, slices
from ..._core.linalg import lapack
from ...kernels import Kernel
from ._posterior import Conditioned

__all__ = ["LogisticCurvature", "expected_probability", "factorize_shifted"]


@dataclass(frozen=True)
class _LogisticTuning:
    """Limits of the quadrature and of the curvature in the logistic likelihood."""

    # The quadrature covers this many standard deviations on each side of the mean, beyond
    # which the normal density is negligible in float64.
    normal_range: float = 9.0
    # Above this standard deviation of f, integrating over a logistic variable instead of f takes
    # fewer nodes.
    wide_std: float = 4.0
    # Number of quadrature nodes on each side of 0, at a distance of 0.75; the logistic density
    # beyond them is below 1e-17.
    logistic_nodes: int = 53
    # Number of points that the quadrature processes at a time, which limits the memory.
    chunk: int = 4096
    # Lower limit of the curvature W, so that 1 / sqrt(W) is finite.
    min_curvature: float = 1e-200


_TUNING = _LogisticTuning()


class LogisticCurvature:
    """The Hessian W = p (1 - p) of -log p(y | f) at one f, and R = (K + W^-1)^-1.

        R = W^1/2 B^-1 W^1/2,     B = I + W^1/2 K W^1/2 = L L^T

    Attributes
    ----------
    P : ndarray of shape (n, 1)
        The probabilities p.
    half_logdet : float
        log det(I + K W) / 2.
    """

    def __init__(self, K: np.ndarray, F: np.ndarray) -> None:
        self.P = self.probabilities(F)
        self.root = np.sqrt(self.P[:, 0] * (1.0 - self.P[:, 0]))
        self.L = factorize_shifted(K, self.root, np.empty(K.shape))
        self.half_logdet = float(np.sum(np.log(np.diag(self.L))))

    @staticmethod
    def probabilities(F: np.ndarray) -> np.ndarray:
        """Return the probability p for each f."""
        return np.asarray(expit(F))

    @staticmethod
    def log_likelihood(F: np.ndarray, Y: np.ndarray) -> float:
        """Return sum_i log p(y_i | f_i)."""
        return -float(np.sum(np.logaddexp(0.0, np.where(Y > 0, -F, F))))

    @staticmethod
    def n_square_arrays(q: int, gradient: bool) -> int:
        """Return the number of n x n arrays that exist at the same time, including K."""
        return 4 if gradient else 3

    def solve(self, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (I + W K)^-1 V = V - R K V."""
        root = self.root[:, None]
        return V - root * lapack.dpotrs(self.L, root * (K @ V), lower=1)[0]

    def gradient_terms(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u = (I - R K) s and R, valid in its lower triangle, for the gradient in theta.

        R, B and W are defined in the class docstring, and s = d(-log det B / 2) / df.  If v is the
        diagonal of (K^-1 + W)^-1 and W' = dW / df, then s = -v W' / 2, and v W = 1 - diag(B^-1).
        """
        R, _ = lapack.dpotri(self.L, lower=1)
        s = -0.5 * (1.0 - np.diag(R)) * (1.0 - 2.0 * self.P[:, 0])
        R *= self.root
        R *= self.root[:, None]
        return self.solve(K, s[:, None]), R

    def covariance(self, kernel: Kernel, X: Any) -> Conditioned:
        """Return the covariance of f given the labels."""
        factor = np.tril(self.L) / np.maximum(self.root, np.sqrt(_TUNING.min_curvature))[:, None]
        return Conditioned(kernel, X, factor)


def factorize_shifted(K: np.ndarray, root: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor L of I + W^1/2 K W^1/2, stored in `out`.

    `root` is the diagonal of W^1/2.  The eigenvalues of the matrix are at least 1 if K is positive
    semidefinite.
    """
    np.multiply(K, root, out=out)
    out *= root[:, None]
    out[np.diag_indices_from(out)] += 1.0
    # out.T is in Fortran order, as LAPACK needs it, and equals `out`, which is symmetric
    L, info = lapack.dpotrf(out.T, lower=1, clean=0, overwrite_a=1)
    if info != 0 or not np.isfinite(L[-1, -1]):
        raise NotPositiveDefiniteError(
            f"I + W^1/2 K W^1/2 is not positive definite (pivot {info} of {len(L)}): the kernel is "
            f"not positive semidefinite on these points; choose a Mercer kernel"
        )
    return np.asarray(L)


@entry_point
def expected_probability(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return E[1 / (1 + exp(-f))] for normal f with the given means and variances.

    Parameters
    ----------
    mean, variance : ndarrays of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    The trapezoidal rule converges exponentially here.  In units of the standard deviation sigma,
    the nearest pole of the logistic function is at the distance pi / sigma from the real line, so
    that a step of 0.8 / sigma has an error of exp(-2 pi^2 / 0.8) = 2e-11.  If sigma is large, this
    would take many nodes.  Then the integral is written as an expectation over a logistic variable
    l, because 1 / (1 + exp(-f)) is the probability of l <= f:

        E[1 / (1 + exp(-f))] = E[Phi((mean - l) / sigma)]

    where Phi is the standard normal distribution function.  The poles of the density of l are at
    the distance pi from the real line, and a step of 0.75 in l is sufficient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import expected_probability
    >>> expected_probability(np.array([0.0, 2.0]), np.array([1.0, 4.0])).round(4)
    array([0.5   , 0.7752])
    """
    sigma: np.ndarray = np.sqrt(np.maximum(variance, 0.0))
    out, wide = np.empty(len(sigma)), sigma > _TUNING.wide_std
    if not wide.all():
        widest = float(sigma[~wide].max())
        steps = int(np.ceil(_TUNING.normal_range * max(1.7, widest / 0.8)))
        x = np.linspace(-_TUNING.normal_range, _TUNING.normal_range, 2 * steps + 1)
        out[~wide] = _weighted_mean(expit, mean[~wide], sigma[~wide], x, np.exp(-0.5 * x**2))
    if wide.any():
        nodes, scale = (
            0.75 * np.arange(-_TUNING.logistic_nodes, _TUNING.logistic_nodes + 1),
            1.0 / sigma[wide],
        )
        density = expit(nodes) * expit(-nodes)
        out[wide] = _weighted_mean(ndtr, mean[wide] * scale, scale, nodes, density)
    # rounding errors must not move a probability to the wrong side of 0.5
    return np.where(mean >= 0.0, np.maximum(out, 0.5), np.minimum(out, 0.5))


def _weighted_mean(
    f: Function[[np.ndarray], np.ndarray],
    a: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """Return the mean of f(a_i + b_i x) over x with weights w, for each i."""
    out = np.empty(len(a))
    for rows in slices(len(a), _TUNING.chunk):
        out[rows] = f(a[rows, None] + b[rows, None] * x) @ w
    return np.asarray(out / w.sum())
