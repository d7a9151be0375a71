"""Base class of the objectives, and the split of a kernel into latent variance and noise.

An objective is a function of theta, the logarithms of the free kernel parameters, for points X with
targets Y.  The variance of an observation has two parts:

    latent(x) = k(x, x')  for another observation x' with the same features
    noise(x) = k(x, x) - latent(x)

Here k is a kernel that may contain `White` terms; only these contribute noise.  Low-rank
approximations of K treat the noise separately, because it has full rank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ..._core import (
    KernelRangeError,
    NotPositiveDefiniteError,
    Points,
    as_float64,
    entry_point,
    length,
    slices,
    take,
)
from ...blocks import Blocks
from ...kernels import Bounded, Constant, Fixed, Kernel, Power, Product, Radial, Scale, Sum, White

# Values of the logarithms of the free kernel parameters; None means those of the kernel.
Theta: TypeAlias = np.ndarray | Sequence[float] | None

# Errors which mean that the objective is not defined at a theta.
UNDEFINED = (NotPositiveDefiniteError, KernelRangeError)

_MAX_TARGET = 1e100  # squares of larger targets, and quotients of squares, could overflow
# Number of points per block when a whole block of K is evaluated only for its diagonal.  With
# larger blocks, the cost per point grows and the overhead per block shrinks.
_DIAGONAL_CHUNK = 64


@dataclass(frozen=True)
class Capabilities:
    """Which optional methods an objective supports; all are False by default.

    `maximise` calls an optional method only if it is True in the objective's `capabilities`.  An
    objective that wraps another one sets only those to True that the wrapped one supports as well,
    even if it defines all of the methods.

    Attributes
    ----------
    subset : bool
        ``subset(rows)`` returns the objective restricted to some of the observations.
    standard_error : bool
        The value is an estimate, and ``standard_error(theta)`` returns its standard error.
    information : bool
        ``with_information(theta, above)`` also returns approximate second derivatives, and
        ``noise_mask`` marks the parameters that are noise variances.
    cheap_information : bool
        ``with_information`` costs about as much as a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import InducingBound, MarginalLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> MarginalLikelihood(RBF(), X, X, 0.1).capabilities.information
    True
    >>> InducingBound(RBF(), X, X, 0.1).capabilities.information
    False
    """

    subset: bool = False
    standard_error: bool = False
    information: bool = False
    cheap_information: bool = False


@entry_point
@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """Base class of the objectives: a function of theta for points X with targets Y.

    theta is the vector of the logarithms of the free kernel parameters.  `maximise` finds the theta
    with the largest value.  Subclasses define the value, for example a marginal likelihood.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance.  Its parameters are the starting point; they must be numbers.
    X : points
        The n observations; for `InducingBound` also `Blocks`.
    Y : array of shape (n,) or (n, q)
        Their targets.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K; not part of theta.  To optimise the noise, leave it 0
        and add a `White` term to the kernel.

    See Also
    --------
    MarginalLikelihood : Exact objective, for up to about 10 000 points.
    InducingBound : Lower bound from inducing points, for more points.
    StochasticLikelihood : Estimate by conjugate gradients.
    LaplaceLikelihood : Objective for class labels.
    maximise : Maximise an objective.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import MarginalLikelihood, Objective
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> f = MarginalLikelihood(RBF(), X, X[:, 0], noise=0.1)
    >>> isinstance(f, Objective), round(f.value(), 3)
    (True, -1.908)
    """

    kernel: Kernel
    X: Points | Blocks
    Y: np.ndarray
    noise: float | np.ndarray = 0.0

    # Advice in the error message if K + noise is not positive definite, as in scikit-learn.
    remedy: ClassVar[str] = (
        "gradually increasing the 'alpha' parameter of your GaussianProcessRegressor estimator"
    )
    # Whether X may be `Blocks`, because the objective depends on X only through sums over rows.
    _accepts_blocks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"an objective needs a Kernel, got {self.kernel!r}")
        n, Y = length(self.X), np.asarray(self.Y, dtype=float)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != n or not n:
            raise ValueError(
                f"targets of shape {Y.shape} do not fit {n} points: there must be at least one "
                f"point, and one row of targets for each"
            )
        if not np.all(np.isfinite(Y)):
            raise ValueError("some targets are not finite; remove those observations")
        largest = float(np.abs(Y).max(initial=0.0))
        if largest > _MAX_TARGET:
            raise ValueError(
                f"targets as large as {largest:.1e} overflow when they are squared; divide them by "
                f"a constant"
            )
        noise = np.asarray(self.noise, dtype=float)
        if noise.shape not in ((), (n,)):
            raise ValueError(f"noise must be a number or have shape ({n},), got {noise.shape}")
        if not np.all(np.isfinite(noise)) or np.any(noise < 0):
            raise ValueError(f"noise must be finite and not negative, got {noise.min():.3g}")
        X = self.X
        if not isinstance(X, Blocks):
            X = as_float64(X)
        elif not self._accepts_blocks:
            raise TypeError(
                f"{type(self).__name__} needs all points in memory, got {X!r}; pass X.to_array(), "
                f"or use inducing points (InducingBound, solver='nystroem')"
            )
        self.__dict__.update(X=X, Y=Y, noise=noise if noise.ndim else float(noise))

    @abstractmethod
    def workspace(self) -> int:
        """Return the memory, in bytes, that an evaluation with gradient needs.

        Returns
        -------
        int
            The number of bytes, to compare with the memory budget.
        """

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        return Capabilities(subset=not isinstance(self.X, Blocks))

    @property
    def start(self) -> np.ndarray:
        """The theta of the kernel that the objective was created with."""
        return self.kernel.theta

    def value(self, theta: Theta = None) -> float:
        """Return the objective at theta, or -inf where it is not defined.

        It is not defined if K + noise is not numerically positive definite, or if kernel values
        overflow.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        float
            The value.
        """
        try:
            return self._value(theta)
        except UNDEFINED:
            return -np.inf

    def value_and_gradient(self, theta: Theta = None) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; -inf and 0 if it is not defined.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        value : float
            The objective.
        gradient : ndarray of shape (p,)
            Its derivatives in theta.
        """
        self._require_gradient()
        try:
            return self._value_and_gradient(theta)
        except UNDEFINED:
            return -np.inf, np.zeros(self.start.size)

    @abstractmethod
    def _value(self, theta: Theta) -> float:
        """Return the objective at theta; raise an error in `UNDEFINED` if it is not defined."""

    @abstractmethod
    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        """Return the objective and its derivatives in theta; raise errors as `_value` does."""

    @abstractmethod
    def _require_gradient(self) -> None:
        """Raise an error if a gradient is not available or exceeds the memory budget."""

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective restricted to some of the observations, with the same landmarks.

        Parameters
        ----------
        rows : ndarray of int
            The indices of the observations.

        Returns
        -------
        Objective
            An objective of the same class, for ``X[rows]`` and ``Y[rows]``.
        """
        noise = self.noise if isinstance(self.noise, float) else self.noise[rows]
        X, Y = take(self.X, rows), self.Y[rows]
        return replace(self, X=X, Y=Y, noise=noise, **self._fixed_choices())

    def _fixed_choices(self) -> dict[str, Any]:
        """Return the fields, such as landmarks, that `subset` copies rather than chooses again."""
        return {}

    def _kernel_at(self, theta: Theta) -> Kernel:
        """Return the kernel with the parameters theta; None means its current parameters."""
        return self.kernel if theta is None else self.kernel.with_theta(theta)


# --- Latent variance and noise of an observation.


def latent_and_noise(kernel: Kernel, X: Points) -> tuple[np.ndarray, np.ndarray]:
    """Return the latent and the noise part of k(x_i, x_i), each of shape (n,).

    Examples
    --------
    >>> from mercer.kernels import Linear, White
    >>> from mercer.models.gp._gp_objective import latent_and_noise
    >>> latent_and_noise(Linear() + 3 * White(0.1), [[1.0], [2.0]])
    (array([1., 4.]), array([0.3, 0.3]))
    """
    total = np.asarray(kernel.diag(X), dtype=float)
    if not kernel.domain.distinguishes_observations:
        return total, np.zeros_like(total)
    # Computing both parts term by term avoids a subtraction, which would reduce the precision.
    match kernel:
        case White():
            return np.zeros_like(total), total
        case Sum(terms):
            latent, noise = np.sum([latent_and_noise(k, X) for k in terms], axis=0)
            return latent, noise
        case Scale(inner, factor):
            latent, noise = latent_and_noise(inner, X)
            return factor * latent, factor * noise
        case Fixed(inner) | Bounded(inner):
            return latent_and_noise(inner, X)
    latent = np.empty_like(total)
    for rows in slices(len(total), _DIAGONAL_CHUNK):
        points = take(X, rows)
        # k(X, Z) treats its arguments as different observations, so that it contains no noise
        latent[rows] = kernel(points, points).diagonal()
    return latent, total - latent


def diagonal_pullback(kernel: Kernel, X: Points, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return sum_i a_i d latent(x_i) / d theta + b_i d noise(x_i) / d theta.

    latent(x) + noise(x) = k(x, x), as in `latent_and_noise`.
    """
    match kernel:  # in these cases, the diagonal of K can be computed without a block of K
        case White() | Constant():
            weights = b if isinstance(kernel, White) else a
            return np.full(kernel.theta.size, weights @ kernel.diag(X))
        case Radial():  # the diagonal is the same for all points
            return kernel._diag_pullback(take(X, slice(0, 1)), np.array([a.sum()]))
        case Sum(terms):
            return np.concatenate([diagonal_pullback(k, X, a, b) for k in terms])
        case Bounded(inner):
            return diagonal_pullback(inner, X, a, b)
        case Scale(inner, factor) if factor > 0:
            latent, noise = latent_and_noise(inner, X)
            own_gradient = factor * float(a @ latent + b @ noise)
            return np.append(diagonal_pullback(inner, X, factor * a, factor * b), own_gradient)
        case Product(factors) if not kernel.domain.distinguishes_observations:
            diagonals = np.array([k.diag(X) for k in factors])
            others = [np.prod(np.delete(diagonals, i, axis=0), axis=0) for i in range(len(factors))]
            parts = [
                diagonal_pullback(k, X, a * w, b) for k, w in zip(factors, others, strict=True)
            ]
            return np.concatenate(parts)
    if not kernel.domain.distinguishes_observations:
        return kernel._diag_pullback(X, a)
    total = kernel._diag_pullback(X, b)
    for rows in slices(len(a), _DIAGONAL_CHUNK):
        points = take(X, rows)
        total += kernel.pullback(points, points, np.diag(a[rows] - b[rows]))
    return total


def noise_parameter_mask(kernel: Kernel) -> np.ndarray:
    """Return a mask of the entries of theta that are variances of additive `White` terms.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp._gp_objective import noise_parameter_mask
    >>> noise_parameter_mask(2 * RBF() + White())
    array([False, False,  True])
    """
    match kernel:
        case White():
            return np.ones(kernel.theta.size, dtype=bool)
        case Sum(terms):
            return np.concatenate([noise_parameter_mask(k) for k in terms])
        case Bounded(inner):
            return noise_parameter_mask(inner)
    return np.zeros(kernel.theta.size, dtype=bool)


def without_noise(kernel: Kernel) -> Kernel:
    """Return the kernel without its noise terms, for choosing landmarks.

    A kernel that consists of noise only is returned unchanged.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp._gp_objective import without_noise
    >>> without_noise(2 * RBF() + White())
    2.0*RBF(length_scale=1.0)
    """
    latent = _noise_free_part(kernel)
    return kernel if latent is None else latent


def _noise_free_part(kernel: Kernel) -> Kernel | None:
    """Return the kernel without noise terms, or None if it consists of noise only.

    Constant factors of a product become a `Scale`.
    """
    match kernel:
        case White():
            return None
        case Fixed(inner) | Bounded(inner):
            return _noise_free_part(inner)
        case Scale() | Power():
            latent = _noise_free_part(kernel.kernel)
            return None if latent is None else replace(kernel, kernel=latent)
        case Sum(terms):
            parts = [part for k in terms if (part := _noise_free_part(k)) is not None]
            return Sum(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)
        case Product(factors):
            parts = [part for k in factors if (part := _noise_free_part(k)) is not None]
            if len(parts) < len(factors):
                return None
            others = [k for k in parts if not isinstance(k, Constant)]
            factor = float(np.prod([k.value for k in parts if isinstance(k, Constant)]))
            if not others:
                return Constant(factor)
            product = Product(tuple(others)) if len(others) > 1 else others[0]
            return product if len(others) == len(parts) else Scale(product, factor)
    return kernel
