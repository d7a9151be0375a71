"""Kernel density estimation: densities from radial kernels, sums of kernels, and bandwidths.

A radial kernel gives the density p(x) = k(x) / c, with c the integral of k over R^d:

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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, kve
from sklearn.exceptions import ConvergenceWarning

from ..._core import ENTRY_WORK, entry_point, run_in_threads, slices, warn_caller
from ...kernels import RBF, Kernel, Laplacian, Matern, Prepared, RationalQuadratic, exp_inplace


@dataclass(frozen=True)
class _ParzenTuning:
    """Tile sizes, and limits of the leave-one-out bandwidth search ("loo")."""

    # Rows and columns of a tile of kernel values, the same as in the tiled product K @ V.
    tile_rows: int = 384
    tile_columns: int = 384
    # Range of bandwidths that "loo" searches, relative to Silverman's rule times the spread of X.
    loo_range: tuple[float, float] = (1e-3, 1e2)
    # Number of bandwidths on a logarithmic grid that are evaluated before the best one is refined.
    loo_grid_size: int = 16


_TUNING = _ParzenTuning()


@entry_point
@dataclass(frozen=True, eq=False)
class DensityKernel:
    """A radial kernel, normalised to a probability density on R^d, for density estimation.

        p(x) = k(x, 0) / c,    c = the integral of k(x, 0) over R^d

    Parameters
    ----------
    kernel : RBF, Laplacian, Matern or RationalQuadratic
        The kernel, whose length scale includes the bandwidth.  `DensityKernel.of` multiplies a
        length scale by a bandwidth.
    d : int
        The dimension of the points.

    See Also
    --------
    ParzenDensity : Kernel density estimation with this density.
    choose_bandwidth : Choose the bandwidth.

    References
    ----------
    Parzen, "On estimation of a probability density function and mode", Annals of Mathematical
    Statistics 33, 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import DensityKernel
    >>> DensityKernel.of(RBF(), 0.5, d=2).scale
    array([0.5, 0.5])
    """

    kernel: RBF | Laplacian | Matern | RationalQuadratic
    d: int

    @classmethod
    def of(cls, kernel: Kernel, bandwidth: float, d: int) -> DensityKernel:
        """Create the density for a kernel whose length scale is multiplied by a bandwidth.

        Parameters
        ----------
        kernel : RBF, Laplacian, Matern or RationalQuadratic
            The kernel.  A rational quadratic kernel needs alpha > d / 2, so that its integral is
            finite.
        bandwidth : float
            The factor of the length scale; see `choose_bandwidth`.
        d : int
            The dimension of the points.

        Returns
        -------
        DensityKernel
            The normalised kernel.

        Raises
        ------
        ValueError
            If the kernel has no known or no finite normalisation.
        """
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
        """Write log k(P, Q) to `out` and return it; it is finite even where k underflows to 0.

        Parameters
        ----------
        P, Q : Prepared
            n and m points, prepared by the kernel.
        out : ndarray of shape (n, m)
            The array that receives the values.  It must be C-contiguous and of type float64.

        Returns
        -------
        ndarray of shape (n, m)
            `out`, without the normalisation by `log_constant`.
        """
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
        """Draw points from the density, which is centred at 0.

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, d)
            The points.
        """
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


# ---------------------------------------------------------------------- sums and bandwidths


@entry_point
def log_kernel_sums(
    density: DensityKernel, X: np.ndarray, Z: np.ndarray | None, w: np.ndarray
) -> np.ndarray:
    """Return log sum_j w_j k(x_i, z_j) for each row x_i of X.

    The sums run over tiles.  The largest term so far is factored out of each sum, so that no sum
    overflows or underflows.

    Parameters
    ----------
    density : DensityKernel
        The kernel k.
    X : ndarray of shape (n, d)
        The points at which the sums are evaluated.
    Z : ndarray of shape (m, d) or None
        The centres z_j.  None means X itself; the sum at x_i then leaves out the point x_i.
    w : ndarray of shape (m,)
        Positive weights.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import DensityKernel, log_kernel_sums
    >>> density = DensityKernel.of(RBF(), 1.0, d=1)
    >>> log_kernel_sums(density, np.array([[50.0]]), np.zeros((1, 1)), np.ones(1))
    array([-1250.])
    """
    log_w = np.log(w)
    Q = density.kernel.prepare(X if Z is None else Z)
    # X is prepared relative to Z, so that a distant x does not reduce the precision of others.
    P = Q if Z is None else density.kernel.prepare(X, like=Q)
    out = np.empty(len(P))

    def rows(part: slice) -> Iterator[None]:
        Pi = P[part]
        scratch = np.empty(len(Pi) * _TUNING.tile_columns)
        largest, total = np.full(len(Pi), -np.inf), np.zeros(len(Pi))
        for cols, Qj in tiles:
            yield
            T = density.log_tile(Pi, Qj, scratch[: len(Pi) * len(Qj)].reshape(len(Pi), -1))
            T += log_w[cols]
            if Z is None:
                T[Pi.coincidences(Qj)] = -np.inf
            new_largest = np.maximum(largest, T.max(axis=1))
            T -= np.where(np.isfinite(new_largest), new_largest, 0.0)[:, None]
            with np.errstate(invalid="ignore"):  # a sum without terms gives -inf - (-inf)
                total *= np.where(largest == new_largest, 1.0, np.exp(largest - new_largest))
            total += exp_inplace(T, 1.0).sum(axis=1)
            largest = new_largest
        out[part] = largest + np.log(total)

    tiles: list[tuple[slice, Prepared]] = [
        (cols, Q[cols]) for cols in slices(len(Q), _TUNING.tile_columns)
    ]
    run_in_threads(rows, slices(len(P), _TUNING.tile_rows), work=2.0 * ENTRY_WORK * len(P) * len(Q))
    return out


@entry_point
def choose_bandwidth(rule: str, kernel: Kernel, X: np.ndarray, w: np.ndarray) -> float:
    """Return the bandwidth of a kernel density estimate by a rule.

    Parameters
    ----------
    rule : {"scott", "silverman", "loo"}
        Scott's rule, Silverman's rule, or the maximum of the leave-one-out likelihood.  The first
        two depend only on the dimension and the effective number of points, 1 / sum_i w_i^2.  They
        suit a single mode; use "loo" for several modes, which takes about 30 passes over the pairs
        of points.
    kernel : Kernel
        The kernel, whose length scale the bandwidth multiplies.
    X : ndarray of shape (n, d)
        The points.
    w : ndarray of shape (n,)
        Weights of the points, with sum 1.

    Returns
    -------
    float
        The bandwidth, a factor of the length scale.

    See Also
    --------
    ParzenDensity : Kernel density estimation, which calls this function.

    References
    ----------
    Scott, "Multivariate Density Estimation", Wiley, 1992.

    Silverman, "Density Estimation for Statistics and Data Analysis", Chapman and Hall, 1986.

    Duin, "On the choice of smoothing parameters for Parzen estimators of probability density
    functions", IEEE Transactions on Computers 25, 1976.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import choose_bandwidth
    >>> X, w = np.zeros((32, 1)), np.full(32, 1 / 32)
    >>> choose_bandwidth("scott", RBF(), X, w)
    0.5
    """
    d = X.shape[1]
    n = 1.0 / float(w @ w)  # effective number of points; len(X) for equal weights
    if rule == "scott":
        return float(n ** (-1.0 / (d + 4)))
    silverman = float((n * (d + 2) / 4.0) ** (-1.0 / (d + 4)))
    return silverman if rule == "silverman" else _leave_one_out(kernel, X, w, silverman)


def _leave_one_out(kernel: Kernel, X: np.ndarray, w: np.ndarray, silverman: float) -> float:
    """Return the bandwidth that maximises the leave-one-out log likelihood.

    It is sum_i w_i log p_i(x_i), where p_i is the density estimated without x_i.
    """
    if len(X) < 2:
        raise ValueError(
            "bandwidth='loo' leaves out one point at a time and needs at least 2 points, got 1 "
            "sample; pass a number as bandwidth"
        )
    scaled = X / DensityKernel.of(kernel, 1.0, X.shape[1]).scale
    spread = float(np.sqrt(np.mean(w @ (scaled - w @ scaled) ** 2)))
    heaviest, other_weights = np.argmax(w), 1.0 - w
    # 1 - w would suffer from cancellation where w is nearly 1.
    other_weights[heaviest] = np.delete(w, heaviest).sum()
    if not spread > 0.0:
        raise ValueError(
            "bandwidth='loo' maximises a likelihood that has no maximum if all points are equal; "
            "pass a number as bandwidth"
        )

    def loss(log_h: float) -> float:
        density = DensityKernel.of(kernel, float(np.exp(log_h)), X.shape[1])
        log_sums = log_kernel_sums(density, X, None, w)
        return -float(w @ (log_sums - np.log(other_weights) - density.log_constant))

    low, high = np.log(silverman * spread) + np.log(_TUNING.loo_range)
    grid = np.linspace(low, high, _TUNING.loo_grid_size)
    best = int(np.argmin([loss(g) for g in grid]))
    if best in (0, _TUNING.loo_grid_size - 1):
        end, cause = "upper", "too few points, or outliers, which you can leave out"
        if best == 0:
            end, cause = "lower", "duplicate points, which you can replace by weights"
        warn_caller(
            f"the leave-one-out likelihood has no maximum for bandwidths from {np.exp(low):.3g} "
            f"to {np.exp(high):.3g}, so the {end} end is used; the usual cause is {cause}. You can "
            f"also pass a number as bandwidth",
            ConvergenceWarning,
        )
        return float(np.exp(grid[best]))
    bounds = (grid[best - 1], grid[best + 1])
    result = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(result.x))
