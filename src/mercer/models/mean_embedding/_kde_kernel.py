"""Radial kernels as probability densities, p(x) = k(x) / c with c the integral of k over R^d.

    kernel               log k                                            c / l^d
    RBF                  -s / 2                                           (2 pi)^(d/2)
    Laplacian            -s                                               2^d
    Matern               log(2^(1-nu) u^nu K_nu(u) / G(nu)), u^2 = 2 nu s
                                          (2 pi / nu)^(d/2) G(nu + d/2) / G(nu)
    RationalQuadratic    -alpha log(1 + s / (2 alpha)), alpha > d/2
                                          (2 pi alpha)^(d/2) G(alpha - d/2) / G(alpha)

with the length scale l, s = |x / l|^2 (for the Laplacian |x / l|_1), and the Gamma function G.  The
last two densities are scale mixtures of normal distributions: their variance has a Gamma
distribution (Matern) or an inverse Gamma distribution (RationalQuadratic).  Samples are drawn by
first drawing the variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, kve

from ..._core import entry_point
from ...kernels import RBF, Kernel, Laplacian, Matern, Prepared, RationalQuadratic

__all__ = ["DensityKernel"]


@entry_point
@dataclass(frozen=True, eq=False)
class DensityKernel:
    """A radial kernel, normalised to a probability density on R^d, for density estimation.

    Parameters
    ----------
    kernel : RBF, Laplacian, Matern or RationalQuadratic
        The kernel, whose length scale includes the bandwidth.
    d : int
        The dimension of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import DensityKernel
    >>> DensityKernel.of(RBF(), 0.5, d=2).scale
    array([0.5, 0.5])
    """

    kernel: Any
    d: int

    @classmethod
    def of(cls, kernel: Kernel, bandwidth: float, d: int) -> DensityKernel:
        """Create the density for a kernel whose length scale is multiplied by `bandwidth`."""
        if not isinstance(kernel, (RBF, Laplacian, Matern, RationalQuadratic)):
            raise ValueError(
                f"{kernel} cannot be used as a density: only RBF, Laplacian, Matern and "
                f"RationalQuadratic kernels have a known normalisation; choose one of them"
            )
        if isinstance(kernel, RationalQuadratic) and not kernel.alpha > 0.5 * d:
            raise ValueError(
                f"{kernel} has no finite integral in {d} dimensions, because it decays like "
                f"r^-{2 * kernel.alpha:g}; choose alpha > {0.5 * d:g}, or another kernel"
            )
        if isinstance(kernel, Matern) and kernel.nu == np.inf:
            kernel = RBF(kernel.length_scale)
        kernel.diag(np.zeros((1, d)))  # raises if there are not d length scales
        scale = np.asarray(kernel.length_scale, dtype=float) * bandwidth
        width = tuple(scale.tolist()) if scale.ndim else float(scale)
        return cls(replace(kernel, length_scale=width), d)

    @property
    def scale(self) -> np.ndarray:
        """The length scale of each column, shape (d,)."""
        return np.broadcast_to(np.asarray(self.kernel.length_scale, dtype=float), (self.d,))

    @property
    def log_constant(self) -> float:
        """The logarithm of the integral of k over R^d, which normalises the density."""
        k, half = self.kernel, 0.5 * self.d
        if isinstance(k, Laplacian):
            unit = self.d * np.log(2.0)
        elif isinstance(k, RBF):
            unit = half * np.log(2.0 * np.pi)
        elif isinstance(k, Matern):
            unit = half * np.log(2.0 * np.pi / k.nu) + gammaln(k.nu + half) - gammaln(k.nu)
        else:
            unit = half * np.log(2.0 * np.pi * k.alpha) + gammaln(k.alpha - half) - gammaln(k.alpha)
        return float(unit + np.log(self.scale).sum())

    def log_tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> np.ndarray:
        """Write log k(P, Q) to `out` and return it; it is finite even where k underflows to 0."""
        k = self.kernel
        k._statistic(P, Q, out)
        if isinstance(k, (Laplacian, RBF)):
            out *= -1.0 if isinstance(k, Laplacian) else -0.5
        elif isinstance(k, Matern):
            _log_matern(k.nu, out)
        else:
            out[...] = -k.alpha * np.log1p(out * (0.5 / k.alpha))
        return out

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n points from the density; shape (n, d)."""
        k, half = self.kernel, 0.5 * self.d
        if isinstance(k, Laplacian):
            return rng.laplace(size=(n, self.d)) * self.scale
        points = rng.normal(size=(n, self.d)) * self.scale
        if isinstance(k, Matern):
            points *= np.sqrt(rng.gamma(k.nu + half, 1.0 / k.nu, size=(n, 1)))
        elif isinstance(k, RationalQuadratic):
            points *= np.sqrt(k.alpha / rng.gamma(k.alpha - half, size=(n, 1)))
        return points


def _log_matern(nu: float, s: np.ndarray) -> None:
    """Replace scaled squared distances s by log k, for the Matern kernel, in place."""
    u = np.sqrt(s, out=s)
    u *= np.sqrt(2.0 * nu)
    if nu == 0.5:
        np.negative(u, out=u)
    elif nu in (1.5, 2.5):
        np.subtract(np.log1p(u if nu == 1.5 else u + u * u / 3.0), u, out=u)
    else:
        constant = (1.0 - nu) * np.log(2.0) - gammaln(nu)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log = constant + nu * np.log(u) + np.log(kve(nu, u)) - u
            # Where K_nu overflows, u is so small that the first term of the series suffices.
            near = -u * u / (4.0 * (nu - 1.0)) if nu > 1.0 else np.zeros_like(u)
            # Where kve fails, u is so large that K_nu(u) = sqrt(pi / (2 u)) e^-u in float64.
            far = constant + (nu - 0.5) * np.log(u) + 0.5 * np.log(0.5 * np.pi) - u
        u[...] = np.where(np.isfinite(log), log, np.where(u < 1.0, near, far))
