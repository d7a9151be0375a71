"""Radial kernels: functions of the squared scaled distance s, each with the slope of its profile.

RBF, Matern, rational quadratic, Cauchy and inverse multiquadric kernels are positive definite.

Multiquadric, thin-plate and distance kernels are only conditionally positive definite.  Of order m,
this means that c^T K c >= 0 for all vectors c that are orthogonal to the polynomials of degree
below m.  For order 1 the condition on c is sum c_i = 0; a centred kernel matrix is then positive
semidefinite.  These kernels have minus signs because without them they would not have this
property.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import kve, rgamma, xlogy

from .._base import node, option, parameter
from .._parameter_checks import positive, require
from .._properties import MIXTURE, Properties
from ._fast_math import exp_inplace
from ._radial import Radial


@node
class _Mixture(Radial):
    """Base class of radial kernels that are mixtures of Gaussians.

    k(x, z) is the integral of w(t) exp(-t |x - z|^2) over t > 0, with a weight function w >= 0.
    """

    is_decreasing: ClassVar[bool] = True

    def _properties(self, *inner: Properties) -> Properties:
        return Properties.exponential(MIXTURE, strict=True, stationary=True)


@node
class RBF(_Mixture):
    """Gaussian kernel, also called RBF or squared exponential kernel.

        k(x, z) = exp(-|x - z|^2 / (2 length_scale^2))

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The distance over which the kernel decreases: one number, or one per column.  Tunable.  It
        can also be a rule that `resolve` (or `fit` of an estimator) replaces by a value for the
        data: "median", "scale", "auto", "scott" or "silverman", see Notes.  A small value gives
        functions that change over short distances, and a large value gives smooth functions.
        "median" is a good first guess if the columns have comparable scales; refine it by
        cross-validation or by the marginal likelihood.  One value per column (automatic relevance
        determination) needs more data, but ignores columns whose length scale becomes large.

    See Also
    --------
    Matern : For functions that are less smooth, such as physical processes.
    RationalQuadratic : If the data vary on several length scales.
    Laplacian : For rough functions, and less sensitive to outliers.
    LocalRBF : If the density of the points varies strongly.
    Periodic : For functions that repeat.
    random_features : Approximate explicit features, for many points.

    Notes
    -----
    `RBF.from_gamma(gamma)` returns the kernel exp(-gamma |x - z|^2), which has
    gamma = 1 / (2 length_scale^2).

    The rules choose gamma, and therefore the length scale, from n points with d columns:

    =========== ============================ =====================================================
    rule        gamma                        length scale of a radial kernel
    =========== ============================ =====================================================
    "median"    1 / (2 m^2)                  m, the median distance between two different points
    "scale"     1 / (d Var)                  sqrt(d Var / 2), with the variance Var of all entries
    "auto"      1 / d                        sqrt(d / 2)
    "scott"     1 / (2 h^2)                  h = s n^(-1 / (d + 4))
    "silverman" 1 / (2 h^2)                  h = s (n (d + 2) / 4)^(-1 / (d + 4))
    =========== ============================ =====================================================

    s^2 is the mean of the variances of the columns.  "median" suits kernel PCA and two-sample
    tests, "scale" and "auto" are compatible with scikit-learn, and "scott" and "silverman" are for
    density estimation; h decreases with n.  If X has more than 1000 rows, the median is that of
    1000 evenly spaced rows.  A sample weight counts as a number of repetitions.

    References
    ----------
    Schölkopf and Smola, "Learning with kernels", MIT Press, 2002. Rasmussen and Williams, "Gaussian
    processes for machine learning", MIT Press, 2006, section 4.2. Silverman, "Density estimation
    for statistics and data analysis", 1986, and Scott, "Multivariate density estimation", 1992
    (rules for h).

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> RBF(length_scale=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    >>> RBF("median").resolve([[0.0], [1.0], [3.0]])
    RBF(length_scale=2.0)
    """

    _profile_accepts_negative: ClassVar[bool] = True

    def profile(self, s: np.ndarray) -> np.ndarray:
        return exp_inplace(s, -0.5)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 * self.profile(s.copy())

    def _jet(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        k = self.profile(s.copy())
        return k, -0.5 * k, {}


@node
class Matern(_Mixture):
    """Matern kernel, a generalisation of the RBF with a smoothness parameter.

        k(x, z) = 2^(1-nu) / Gamma(nu) u^nu K_nu(u),  u = sqrt(2 nu) |x - z| / length_scale

    K_nu is the modified Bessel function of the second kind.

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The distance over which the kernel decreases: one number, one per column, or a rule such as
        "median".  Tunable.  The notes of `RBF` define the rules and how to choose the value.
    nu : float, default=1.5
        The smoothness, 0 < nu <= 100 or inf.  A process with this covariance is m times mean-square
        differentiable for all m < nu.  nu = 1/2 gives exp(-|x - z| / length_scale), and nu = inf
        gives the RBF.  The values 1/2, 3/2 and 5/2 have closed forms and are fast; all others
        require the Bessel function.  3/2 and 5/2 are usual for regression; data hardly distinguish
        larger values from the RBF.

    See Also
    --------
    RBF : For very smooth functions.
    RationalQuadratic : If the data vary on several length scales.
    Laplacian : The product over the columns of the kernel with nu = 1/2.

    References
    ----------
    Matérn, "Spatial variation", 1960 (second edition: Springer, 1986). Rasmussen and Williams,
    "Gaussian processes for machine learning", MIT Press, 2006, section 4.2. Grosswald, "The Student
    t-distribution of any degree of freedom is infinitely divisible", Zeitschrift für
    Wahrscheinlichkeitstheorie, 1976 (k^p for real p).

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    nu: float = 1.5

    _has_kink_at_zero: ClassVar[bool] = True

    # The Matern kernel is a mixture of Gaussians.  It is infinitely divisible because its spectral
    # density, Student's t distribution, is infinitely divisible (Grosswald 1976).

    def _check(self) -> None:
        if not (isinstance(self.nu, (int, float, np.number)) and self.nu > 0):
            raise ValueError(f"Matern: nu must be positive (or inf), got {self.nu!r}")
        if 100 < self.nu < np.inf:
            raise ValueError(
                f"Matern: nu must be at most 100 (or inf), got {self.nu!r}; for larger values, the "
                f"kernel differs from the RBF by less than one percent, so use RBF instead"
            )

    def profile(self, s: np.ndarray) -> np.ndarray:
        if self.nu == np.inf:
            return exp_inplace(s, -0.5)
        if self.nu not in (0.5, 1.5, 2.5):
            return _bessel(self.nu, np.sqrt(2.0 * self.nu * s))
        r = np.sqrt(s, out=s)
        r *= np.sqrt(2.0 * self.nu)
        if self.nu == 0.5:
            return exp_inplace(r, -1.0)
        polynomial = 1.0 + r if self.nu == 1.5 else 1.0 + r + r * r / 3.0
        k: np.ndarray = np.multiply(exp_inplace(r, -1.0), polynomial, out=r)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        if self.nu == np.inf:
            return -0.5 * np.exp(-0.5 * s)
        u = np.sqrt(2.0 * self.nu * s)
        if self.nu == 0.5:
            return -0.5 * np.exp(-u) / u
        if self.nu == 1.5:
            return -1.5 * np.exp(-u)
        if self.nu == 2.5:
            return -5.0 / 6.0 * (1.0 + u) * np.exp(-u)
        # The derivative of u^nu K_nu(u) is -u^nu K_(nu-1)(u), and du/ds = nu / u.
        if self.nu > 1:
            return -0.5 * self.nu / (self.nu - 1.0) * _bessel(self.nu - 1.0, u)
        slope: np.ndarray = -self.nu * rgamma(self.nu) * _decay(self.nu - 1.0, 1.0 - self.nu, u)
        return slope

    def _jet(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        if self.nu not in (1.5, 2.5):
            return super()._jet(s)
        u = np.sqrt(s)
        u *= np.sqrt(2.0 * self.nu)
        decay = exp_inplace(u.copy(), -1.0)
        if self.nu == 1.5:
            u += 1.0
            u *= decay
            decay *= -1.5
            return u, decay, {}
        slope = u + 1.0
        np.multiply(u, u, out=u)
        u *= 1.0 / 3.0
        u += slope
        u *= decay
        slope *= decay
        slope *= -5.0 / 6.0
        return u, slope, {}


@node
class RationalQuadratic(_Mixture):
    """Rational quadratic kernel, a mixture of RBF kernels with different length scales.

        k(x, z) = (1 + |x - z|^2 / (2 alpha length_scale^2))^(-alpha)

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The distance over which the kernel decreases: one number, one per column, or a rule such as
        "median".  Tunable.  The notes of `RBF` define the rules and how to choose the value.
    alpha : float, default=1.0
        The exponent, > 0.  Tunable.  A small alpha mixes length scales over a wide range, so that k
        decreases slowly; for alpha -> inf the kernel becomes the RBF.  Learn it with a Gaussian
        process, or try 0.1, 1 and 10.

    See Also
    --------
    RBF : If one length scale describes the data.
    Cauchy : The same kernel with alpha = 1, up to the length scale.
    InverseMultiquadric : The same kernel with alpha = 1/2.

    References
    ----------
    Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006, section 4.2.

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[2.0]]).round(4)
    array([[0.3333]])
    """

    alpha: float = parameter(1.0, positive)

    def profile(self, s: np.ndarray) -> np.ndarray:
        s *= 0.5 / self.alpha
        return exp_inplace(np.log1p(s, out=s), -self.alpha)

    def slope(self, s: np.ndarray) -> np.ndarray:
        k = self.profile(s.copy())
        k *= -0.5
        slope: np.ndarray = np.divide(k, 1.0 + s * (0.5 / self.alpha), out=k)
        return slope

    def parameter_slopes(self, s: np.ndarray) -> dict[str, np.ndarray]:
        return self._jet(s)[2]

    def _jet(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        q = s * (0.5 / self.alpha)
        logarithm = np.log1p(q)
        change = _log_excess(q, logarithm)
        k = exp_inplace(logarithm, -self.alpha)
        change *= -self.alpha
        change *= k
        q += 1.0
        slope = np.divide(k, q, out=q)
        slope *= -0.5
        return k, slope, {"alpha": change}


@node
class Cauchy(_Mixture):
    """Cauchy kernel, which decreases with the inverse square of the distance.

        k(x, z) = 1 / (1 + |x - z|^2 / length_scale^2)

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The distance over which the kernel decreases: one number, one per column, or a rule such as
        "median".  Tunable.  The notes of `RBF` define the rules and how to choose the value.

    See Also
    --------
    RBF : Decreases faster; prefer it unless distant points should influence each other.
    RationalQuadratic : With alpha = 1 the same kernel, up to the length scale; alpha is tunable.
    InverseMultiquadric : Decreases more slowly.

    References
    ----------
    Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006, section 4.2.
    Schoenberg, "Metric spaces and completely monotone functions", Annals of Mathematics 39, 1938
    (positive definiteness).

    Examples
    --------
    >>> from mercer.kernels import Cauchy
    >>> Cauchy()([[0.0]], [[1.0]])
    array([[0.5]])
    """

    def profile(self, s: np.ndarray) -> np.ndarray:
        s += 1.0
        k: np.ndarray = np.reciprocal(s, out=s)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -np.square(1.0 / (1.0 + s))  # dividing before squaring avoids overflow


@node
class InverseMultiquadric(_Mixture):
    """Inverse multiquadric kernel, which decreases with the inverse of the distance.

        k(x, z) = 1 / sqrt(1 + |x - z|^2 / length_scale^2)

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The distance over which the kernel decreases: one number, one per column, or a rule such as
        "median".  Tunable.  The notes of `RBF` define the rules and how to choose the value.

    See Also
    --------
    Multiquadric : Grows with the distance; for interpolation.
    Cauchy : Decreases with the square of the distance.
    RationalQuadratic : With alpha = 1/2 the same kernel; alpha is tunable.

    References
    ----------
    Micchelli, "Interpolation of scattered data: distance matrices and conditionally positive
    definite functions", Constructive Approximation 2, 1986. Wendland, "Scattered data
    approximation", Cambridge University Press, 2005.

    Examples
    --------
    >>> from mercer.kernels import InverseMultiquadric
    >>> InverseMultiquadric()([[0.0]], [[3.0**0.5]])
    array([[0.5]])
    """

    def profile(self, s: np.ndarray) -> np.ndarray:
        s += 1.0
        np.sqrt(s, out=s)
        k: np.ndarray = np.reciprocal(s, out=s)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 * (1.0 + s) ** -1.5


def _bessel(nu: float, u: np.ndarray) -> np.ndarray:
    """Return 2 / Gamma(nu) (u/2)^nu K_nu(u), the Matern profile, which is 1 at u = 0."""
    value: np.ndarray = 2.0 * rgamma(nu) * _decay(nu, nu, u)
    # Where K_nu overflows, u is so small that a few terms of the power series suffice.
    small = ~np.isfinite(value)
    q = np.square(u[small]) / 4.0
    term = series = np.ones_like(q)
    for k in range(1, min(8, int(np.ceil(nu)))):
        term = term * q / (k * (k - nu))
        series = series + term
    value[small] = series
    return value


def _decay(p: float, order: float, u: np.ndarray) -> np.ndarray:
    """Return (u/2)^p K_order(u), with the modified Bessel function K of this order.

    The result is not finite where K_order(u) exceeds 1e300.
    """
    # For u > 2000 the result is 0 for all p <= 100, and for much larger u kve returns NaN, so u is
    # limited to 2000.  kve(u) is e^u K(u).  The factor e^-u is split into two factors e^(-u/2), one
    # for the power and one for kve, so that neither product overflows or underflows.
    half = 0.5 * np.minimum(u, 2000.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = kve(order, 2.0 * half)
        scaled[scaled > 1e300] = np.inf
        decay = np.exp(-half)
        product: np.ndarray = np.power(half, p) * decay * (scaled * decay)
        return product


def _log_excess(q: np.ndarray, logarithm: np.ndarray) -> np.ndarray:
    """Return log(1 + q) - q / (1 + q) for q >= 0, without cancellation near 0."""
    excess = logarithm - q / (1.0 + q)
    small = q < 0.1
    # With t = q / (2 + q), the result is 2 t^2 / (1 + t) + 2 (t^3 / 3 + t^5 / 5 + ...).
    t = q[small]
    t /= 2.0 + t
    square, tail = t * t, np.zeros_like(t)
    for k in range(13, 1, -2):
        tail = square * (tail + 1.0 / k)
    excess[small] = 2.0 * (square / (1.0 + t) + t * tail)
    return excess


# ---------------------------------------------------------------------- conditional definiteness


@node
class _ConditionallyPositiveDefinite(Radial):
    """Base class of functions of the distance that are only conditionally positive definite."""

    @property
    @abstractmethod
    def _proof(self) -> tuple[str, int, list[float]]:
        """A triple: the rule that proves the order, the order, and a counterexample.

        The counterexample is a list of positions on a line, in units of the length scale; the
        matrix of these points is not positive semidefinite.
        """

    def _properties(self, *inner: Properties) -> Properties:
        rule, order, positions = self._proof
        against: np.ndarray | None = None
        if not isinstance(self.length_scale, str):
            scale = np.atleast_1d(np.asarray(self.length_scale, dtype=float))
            against = np.outer(positions, scale / np.sqrt(scale.size))
        return Properties(rule, order, stationary=True, against=against)


@node
class Multiquadric(_ConditionallyPositiveDefinite):
    """Multiquadric kernel: minus a smooth function that grows with the distance.

        k(x, z) = -sqrt(1 + |x - z|^2 / l^2)

    It is not a Mercer kernel, but conditionally positive definite of order 1.

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data, as for `RBF`.

    See Also
    --------
    InverseMultiquadric : A Mercer kernel, which every estimator accepts.
    ThinPlate : Interpolation that does not depend on a length scale.
    Distance : Not smooth at distance 0.

    References
    ----------
    Hardy, "Multiquadric equations of topography and other irregular surfaces", Journal of
    Geophysical Research 76, 1971. Micchelli, "Interpolation of scattered data: distance matrices
    and conditionally positive definite functions", Constructive Approximation 2, 1986.

    Examples
    --------
    >>> from mercer.kernels import Multiquadric
    >>> Multiquadric()([[0.0]], [[3.0**0.5]])
    array([[-2.]])
    """

    is_decreasing: ClassVar[bool] = True

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        return "Bernstein: sqrt(1 + |x - z|^2) is conditionally negative definite", 1, [0.0]

    def profile(self, s: np.ndarray) -> np.ndarray:
        s += 1.0
        np.sqrt(s, out=s)
        k: np.ndarray = np.negative(s, out=s)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 / np.sqrt(1.0 + s)


@node
class ThinPlate(_ConditionallyPositiveDefinite):
    """Thin-plate spline kernel, for smooth interpolation of scattered data.

        k(x, z) = r^2 log r (degree 2) or -r^4 log r (degree 4),  r = |x - z| / l

    It is not a Mercer kernel, but conditionally positive definite: of order 2 for degree 2, and of
    order 3 for degree 4.  With the opposite signs it would not have this property.

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data, as for `RBF`.
    degree : {2, 4}, default=2
        The power of r.  Degree 4 gives smoother functions.  Choose 2 unless second derivatives of
        the interpolant must be smooth.

    See Also
    --------
    Multiquadric : Order 1 instead of 2, with a length scale that matters.
    RBF : A Mercer kernel, which every estimator accepts.

    References
    ----------
    Duchon, "Splines minimizing rotation-invariant semi-norms in Sobolev spaces", in Constructive
    Theory of Functions of Several Variables, Springer, 1977. Wahba, "Spline models for
    observational data", SIAM, 1990.

    Examples
    --------
    >>> from mercer.kernels import ThinPlate
    >>> ThinPlate()([[0.0]], [[0.0], [2.0]]).round(4)
    array([[0.    , 2.7726]])
    """

    degree: int = option(2, require(lambda degree: degree in (2, 4), "2 or 4"))

    _has_kink_at_zero: ClassVar[bool] = True

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        rule = "Micchelli: a derivative of the profile in |x - z|^2 is completely monotone"
        return rule, 1 + self.degree // 2, [0.0, 2.0 if self.degree == 2 else 0.5]

    def profile(self, s: np.ndarray) -> np.ndarray:
        k: np.ndarray = 0.5 * xlogy(s, s) if self.degree == 2 else -0.5 * xlogy(s * s, s)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        slope: np.ndarray = (
            0.5 * (np.log(s) + 1.0) if self.degree == 2 else -(xlogy(s, s) + 0.5 * s)
        )
        return slope


@node
class Distance(_ConditionallyPositiveDefinite):
    """Minus a power of the distance.

        k(x, z) = -|x - z|^b / l^b,  0 < b <= 2

    It is not a Mercer kernel, but conditionally positive definite of order 1.  For b = 1 it is the
    kernel of the energy distance; for b = 2, centring it gives twice the linear kernel (for l = 1).

    Parameters
    ----------
    length_scale : float, array-like of shape (d,), or str, default=1.0
        The length scale l, or one per column.  Tunable.  A rule such as "median" is also possible;
        `resolve` replaces it by a value for the data, as for `RBF`.
    exponent : float, default=1.0
        The exponent b, in (0, 2].  1 is usual; a smaller b gives less weight to large distances,
        and b = 2 leads to linear methods only.

    See Also
    --------
    Laplacian : The exponential of an L1 distance, a Mercer kernel.
    Linear : The Mercer kernel to which centring reduces the case b = 2.
    Multiquadric : Smooth at distance 0.

    References
    ----------
    Schoenberg, "Metric spaces and positive definite functions", Transactions of the American
    Mathematical Society 44, 1938. Schölkopf, "The kernel trick for distances", NIPS 2000.
    Sejdinovic, Sriperumbudur, Gretton and Fukumizu, "Equivalence of distance-based and RKHS-based
    statistics in hypothesis testing", Annals of Statistics 41, 2013 (energy distance).

    Examples
    --------
    >>> from mercer.kernels import Distance
    >>> Distance()([[0.0, 0.0]], [[3.0, 4.0]])
    array([[-5.]])
    """

    exponent: float = 1.0

    is_decreasing: ClassVar[bool] = True
    _has_kink_at_zero: ClassVar[bool] = True

    def _check(self) -> None:
        if not (isinstance(self.exponent, (int, float, np.number)) and 0 < self.exponent <= 2):
            raise ValueError(
                f"Distance: exponent must lie in (0, 2], got {self.exponent!r}; "
                f"with an exponent above 2, the kernel is not conditionally positive definite of "
                f"order 1"
            )

    @property
    def _proof(self) -> tuple[str, int, list[float]]:
        rule = "Schoenberg: |x - z|^b, 0 < b <= 2, is conditionally negative definite"
        return rule, 1, [0.0, 1.0]

    def profile(self, s: np.ndarray) -> np.ndarray:
        np.sqrt(s, out=s) if self.exponent == 1 else np.power(s, 0.5 * self.exponent, out=s)
        k: np.ndarray = np.negative(s, out=s)
        return k

    def slope(self, s: np.ndarray) -> np.ndarray:
        return -0.5 * self.exponent * s ** (0.5 * self.exponent - 1.0)
