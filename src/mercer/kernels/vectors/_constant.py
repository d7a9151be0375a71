"""Kernels that do not depend on the positions of the points: constants and white noise."""

from __future__ import annotations

import numpy as np

from ..._core import Points, length
from .._base import Kernel, node, parameter
from .._evaluation import KernelLinearisation, ParameterGradients, Prepared, linearisation
from .._parameter_checks import nonnegative
from .._properties import RANK_ONE, Domain, Properties


@node
class _PositionIndependent(Kernel):
    """Base class of kernels that do not depend on the positions of the points.

    Their gradient with respect to the points is 0.  The only field of such a kernel is
    the number k(x, x).
    """

    def _diag(self, X: Points) -> np.ndarray:
        return np.full(length(X), float(self._items()[0][1]))

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        dtype = getattr(X, "dtype", None)
        single = dtype == np.float32
        return Prepared(positions=range(length(X)), dtype=np.float32 if single else np.float64)

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        return np.zeros((length(X), np.shape(X)[1] if np.ndim(X) == 2 else 0))


@node
class Constant(_PositionIndependent):
    """Constant kernel, for points of any kind.

        k(x, z) = value

    Adding it to a kernel, `k + 1.0`, adds an intercept to the model.

    Parameters
    ----------
    value : float, default=1.0
        The constant, >= 0.  Tunable.  In a Gaussian process it is the prior variance of the
        intercept, in squared units of the target.

    See Also
    --------
    White : Noise on the diagonal instead of a constant.
    Scale : Multiplication by a number, `2 * k`.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear() + 1
    Linear() + 1.0
    """

    value: float = parameter(1.0, nonnegative)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(
            f"{RANK_ONE} with f constant",
            0,
            nonnegative=True,
            unit_diagonal=self.value == 1,
            infinitely_divisible=True,
            stationary=True,
            diagonal_bound=float(self.value),
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = self.value

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        return {"value": self.value * np.sum(W)}


@node
class White(_PositionIndependent):
    """White noise kernel: the covariance of independent noise in each observation.

        k(x, z) = noise if x and z are the same observation, else 0

    Two observations can be different even if their values are equal: `k(X)` is noise times the
    identity matrix, even if a row of X occurs twice, and `k(X, Z)` is 0, even if Z equals X.

    Parameters
    ----------
    noise : float, default=1.0
        The variance of the noise, >= 0, in squared units of the target.  Tunable: a Gaussian
        process learns it.  A tenth of the variance of the target is a reasonable start.

    See Also
    --------
    Constant : The same value for all pairs.
    mercer.GaussianProcessRegressor : Its parameter `alpha` adds a fixed noise instead.

    References
    ----------
    Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006, section 2.2.

    Examples
    --------
    >>> from mercer.kernels import White
    >>> White(noise=0.5)([[1.0], [1.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    noise: float = parameter(1.0, nonnegative)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(
            "K is a multiple of the identity",
            0,
            strict=self.noise > 0,
            nonnegative=True,
            unit_diagonal=self.noise == 1,
            infinitely_divisible=True,
            diagonal_bound=float(self.noise),
        )

    def _domain(self, *inner: Domain) -> Domain:
        return Domain(distinguishes_observations=True)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        out[P.coincidences(Q)] = self.noise

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        return {"noise": self.noise * np.trace(W) if Z is None else 0.0}


@linearisation.register(White)
class _LinearisedWhite(KernelLinearisation):
    """The linearisation of `White`, which computes products with noise * I without forming it."""

    kernel: White

    def add_to(self, total: np.ndarray) -> None:
        if self.Z is None:
            total.flat[:: len(total) + 1] += self.kernel.noise

    def total(self, W: np.ndarray) -> float:
        return self.kernel.noise * float(np.trace(W)) if self.Z is None else 0.0

    def pullback(self, W: np.ndarray) -> np.ndarray:
        return np.full(self.kernel._n_free_parameters, self.total(W))

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        if self.Z is None:
            return self.kernel.noise * V
        return np.zeros((length(self.Z if transposed else self.X), V.shape[1]))

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return self.products(V, transposed)[None][: self.kernel._n_free_parameters]
