"""Two classes: f seen through the logistic function, p = 1 / (1 + exp(-f))."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from .._errors import NotPositiveDefiniteError
from .._runtime import entry_point, slices
from .._runtime.linalg import lapack
from ..kernels import Kernel
from ._posterior import Conditioned

__all__ = ["LogisticCurvature", "expected_probability", "factorize_shifted"]

_REACH = 9.0  # standard deviations that an expectation looks at
_WIDE = 4.0  # the standard deviation from which the other order takes fewer steps
_LOGISTIC = 53  # steps of 0.75 on each side, beyond which the logistic density is below 1e-17
_CHUNK = 4096  # points worked on at a time
_LEAST_CURVATURE = 1e-200  # so that its root has an inverse


class LogisticCurvature:
    """W = p (1 - p), how curved -log p(y | f) is at one f, and R = (K + W^-1)^-1.

        R = W^1/2 B^-1 W^1/2,     B = I + W^1/2 K W^1/2 = L L^T

    Attributes
    ----------
    P : ndarray of shape (n, 1)
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
        """Return p of each f."""
        return np.asarray(expit(F))

    @staticmethod
    def log_likelihood(F: np.ndarray, Y: np.ndarray) -> float:
        """Return sum_i log p(y_i | f_i)."""
        return -float(np.sum(np.logaddexp(0.0, np.where(Y > 0, -F, F))))

    @staticmethod
    def arrays(q: int, gradient: bool) -> int:
        """Return how many n x n arrays there are at a time, K among them."""
        return 4 if gradient else 3

    def solve(self, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (I + W K)^-1 V = V - R K V."""
        root = self.root[:, None]
        return V - root * lapack.dpotrs(self.L, root * (K @ V), lower=1)[0]

    def pull(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u = (I - R K) s, s = d(-log det B / 2) / df, and R, its lower half.

        With v the diagonal of (K^-1 + W)^-1, s = -v W' / 2, and v W = 1 - diag(B^-1).
        """
        R, _ = lapack.dpotri(self.L, lower=1)
        s = -0.5 * (1.0 - np.diag(R)) * (1.0 - 2.0 * self.P[:, 0])
        R *= self.root
        R *= self.root[:, None]
        return self.solve(K, s[:, None]), R

    def covariance(self, kernel: Kernel, X: Any) -> Conditioned:
        """Return the covariance of f given the labels."""
        factor = np.tril(self.L) / np.maximum(self.root, np.sqrt(_LEAST_CURVATURE))[:, None]
        return Conditioned(kernel, X, factor)


def factorize_shifted(K: np.ndarray, root: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return the factor L of I + W^1/2 K W^1/2, whose eigenvalues are at least 1, held in `out`."""
    np.multiply(K, root, out=out)
    out *= root[:, None]
    out[np.diag_indices_from(out)] += 1.0
    L, info = lapack.dpotrf(out.T, lower=1, clean=0, overwrite_a=1)  # what is symmetric is its own
    if info != 0 or not np.isfinite(L[-1, -1]):
        raise NotPositiveDefiniteError(
            f"I + W^1/2 K W^1/2 is not positive definite: pivot {info} of {len(L)}; the kernel "
            f"is no Mercer kernel on these points"
        )
    return np.asarray(L)


@entry_point
def expected_probability(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return E[1 / (1 + exp(-f))] of f normal with this mean and variance.

    By the trapezoidal rule, which converges exponentially for such functions: the logistic function
    has its nearest pole pi / sigma away from the real line, so that a step of 0.8 / sigma leaves an
    error of exp(-2 pi^2 / 0.8) = 2e-11.  Where sigma is large that would take many steps, and the
    other order takes few: 1 / (1 + exp(-f)) is the probability of l <= f for a logistic l, and

        E = E[Phi((mean - l) / sigma)],

    with the poles of the density of l again at a distance of pi, and a step of 0.75 in l itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import expected_probability
    >>> expected_probability(np.array([0.0, 2.0]), np.array([1.0, 4.0])).round(4)
    array([0.5   , 0.7752])
    """
    sigma: np.ndarray = np.sqrt(np.maximum(variance, 0.0))
    out, wide = np.empty(len(sigma)), sigma > _WIDE
    if not wide.all():
        widest = float(sigma[~wide].max())
        steps = int(np.ceil(_REACH * max(1.7, widest / 0.8)))
        x = np.linspace(-_REACH, _REACH, 2 * steps + 1)
        out[~wide] = _averaged(expit, mean[~wide], sigma[~wide], x, np.exp(-0.5 * x**2))
    if wide.any():
        drawn, scale = 0.75 * np.arange(-_LOGISTIC, _LOGISTIC + 1), 1.0 / sigma[wide]
        density = expit(drawn) * expit(-drawn)
        out[wide] = _averaged(ndtr, mean[wide] * scale, scale, drawn, density)
    return np.where(mean >= 0.0, np.maximum(out, 0.5), np.minimum(out, 0.5))  # not by rounding


def _averaged(
    f: Function[[np.ndarray], np.ndarray],
    a: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """Return the mean of f(a_i + b_i x) with weights w."""
    out = np.empty(len(a))
    for rows in slices(len(a), _CHUNK):
        out[rows] = f(a[rows, None] + b[rows, None] * x) @ w
    return np.asarray(out / w.sum())
