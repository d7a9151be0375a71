"""Kernels that wrap another kernel k_1: base class, fixed or bounded parameters, normalisation."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._base import Kernel, node
from .._dataclass import FormattedExpression, format_brief, format_operand
from .._jacobian import KernelLinearisation
from .._prepared import Prepared
from .._properties import NORMALISED, SAME, Properties

__all__ = ["Bounded", "Fixed", "Normalized", "Wrapper"]


@node
class Wrapper(Kernel):
    """Base class of kernels that wrap another kernel k_1.

        k(x, z) = k_1(x, z), unless a subclass overrides it

    Parameters
    ----------
    kernel : Kernel
        The wrapped kernel k_1.

    Examples
    --------
    >>> from mercer.kernels import RBF, Normalized, Wrapper
    >>> k = Normalized(RBF())
    >>> isinstance(k, Wrapper), k.kernel
    (True, RBF(length_scale=1.0))
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"{type(self).__name__} needs a kernel, got {self.kernel!r}")
        super().__post_init__()

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        frame = like.children[0] if like is not None else None
        return Prepared.from_children(self.kernel._prepare(self._inner_points(X), frame))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)

    def _diag(self, X: Any) -> np.ndarray:
        return self.kernel.diag(self._inner_points(X))

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        return {"kernel": self.kernel.pullback(*self._both(X, Z), W)}

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        return self.kernel.input_gradient(*self._both(X, Z), W)

    def _neighbours(self, X: Any) -> Any:
        return self.kernel._neighbours(X) if self._inner_points(X) is X else None

    def _written(self, write: Function[[Any], str]) -> FormattedExpression:
        """Return the expression as text, in the form Name(k_1, option=value, ...)."""
        (_, kernel), *options = self._items()
        arguments = [write(kernel), *(f"{name}={write(value)}" for name, value in options)]
        return FormattedExpression(f"{type(self).__name__}({', '.join(arguments)})")

    def _both(self, X: Any, Z: Any) -> tuple[Any, Any]:
        """Return the points at which k_1 is evaluated, for X and for Z (None if Z is None)."""
        return self._inner_points(X), None if Z is None else self._inner_points(Z)

    @property
    def diagonal_bound(self) -> float:
        return self.kernel.diagonal_bound


@node
class _SameValues(Wrapper):
    """Base class of wrappers that only change how the parameters of k_1 are tuned."""

    _latex: ClassVar[str] = "<kernel>"
    _preserves_distances: ClassVar[bool] = True

    def _properties(self, *inner: Properties) -> Properties:
        return replace(inner[0], rule=SAME)

    def _float32_error_bound(self, P: Prepared) -> float | None:
        return self.kernel._float32_error_bound(P.children[0])

    def _written(self, write: Function[[Any], str]) -> FormattedExpression:
        return (
            format_operand(self.kernel, write) if write is format_brief else super()._written(write)
        )


@node
class Fixed(_SameValues):
    """Kernel whose parameters are fixed, so that a parameter search does not change them.

        k(x, z) = k_1(x, z)

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1.

    Examples
    --------
    >>> from mercer.kernels import Fixed, RBF
    >>> Fixed(RBF()).theta
    array([], dtype=float64)
    """

    def _free(self) -> Any:
        self._require_resolved()
        return iter(())


@node
class Bounded(_SameValues):
    """Kernel with bounds on its parameters, for a parameter search.

        k(x, z) = k_1(x, z)

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1.
    limits : tuple, default=(1e-5, 1e5)
        A pair (low, high) for all parameters, or one such pair for each entry of `kernel.theta`.
        The limits are those of the parameters themselves, not of their logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Bounded, RBF
    >>> np.exp(Bounded(RBF(), limits=(0.1, 10.0)).bounds).round(4)
    array([[ 0.1, 10. ]])
    """

    limits: Any = (1e-5, 1e5)

    def _check(self) -> None:
        limits = np.asarray(self.limits, dtype=float)
        if limits.ndim not in (1, 2) or limits.shape[-1] != 2:
            raise ValueError(
                f"Bounded: limits must be (low, high) or one such pair per parameter, "
                f"got {self.limits!r}"
            )
        if not (np.all(limits > 0) and np.all(limits[..., 0] < limits[..., 1])):
            raise ValueError(f"Bounded: limits must satisfy 0 < low < high, got {self.limits!r}")

    @property
    def bounds(self) -> np.ndarray:
        """The logarithms of `limits`, shape (p, 2)."""
        limits = np.log(np.asarray(self.limits, dtype=float))
        p = self.kernel.theta.size
        if limits.ndim == 2 and len(limits) != p:
            raise ValueError(
                f"Bounded has {len(limits)} pairs of limits for the {p} parameters "
                f"{self.kernel.theta_names}"
            )
        return np.broadcast_to(limits, (p, 2)).copy()

    def _linearise(self, X: Any, Z: Any) -> KernelLinearisation:
        return self.kernel.linearise(X, Z)


@node
class Normalized(Wrapper):
    """Normalised kernel: the cosine of the angle between two points in the feature space of k_1.

        k(x, z) = k_1(x, z) / sqrt(k_1(x, x) k_1(z, z))

    The value is 0 if k_1(x, x) = 0 or k_1(z, z) = 0; otherwise k(x, x) = 1.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1, with k_1(x, x) >= 0.

    Examples
    --------
    >>> from mercer.kernels import Linear, Normalized
    >>> Normalized(Linear())([[3.0]], [[5.0]])
    array([[1.]])
    """

    diagonal_bound: ClassVar[float] = 1.0

    def _properties(self, *inner: Properties) -> Properties:
        (k,) = inner
        return Properties.of(
            inner,
            NORMALISED,
            0 if k.order == 0 else None,
            strict=k.strict,
            nonnegative=k.nonnegative,
            # Where k_1(x, x) = 0, the normalised kernel is also 0, not 1.
            unit_diagonal=k.strict or k.unit_diagonal,
            infinitely_divisible=k.infinitely_divisible,
            stationary=k.stationary,
        )

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        child = self.kernel._prepare(X, like.children[0] if like is not None else None)
        return Prepared.from_children(child, arrays=(self._inverse_norms(X).astype(child.dtype),))

    def features(self, X: Any, like: Any = None) -> Any:
        """Return the features phi_1(x) / |phi_1(x)|, if k_1 has explicit features phi_1.

        Parameters
        ----------
        X : n points
        like : points, optional
            The columns are the features that occur in these points; by default those that occur in
            X.

        Returns
        -------
        CSR array of shape (n, number of features)
        """
        phi = self.kernel.features(X, like)  # type: ignore[attr-defined]
        return sp.diags_array(self._inverse_norms(X)) @ phi

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out *= P.arrays[0][:, None]
        out *= Q.arrays[0]

    def _diag(self, X: Any) -> np.ndarray:
        norms = self._inverse_norms(X)
        return (norms > 0).astype(norms.dtype)

    def _diag_prepared(self, P: Prepared) -> np.ndarray:
        return (P.arrays[0] > 0).astype(P.dtype)

    def _inverse_norms(self, X: Any) -> np.ndarray:
        """Return k_1(x, x)^(-1/2) for each point x, or 0 if k_1(x, x) = 0."""
        with np.errstate(over="ignore"):
            diagonal = self.kernel.diag(X)
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"Normalized: k(x, x) overflows for {self.kernel} and some x; scale the features"
            )
        if np.any(diagonal < 0):
            raise ValueError(
                f"Normalized: k(x, x) = {diagonal.min():.3g} < 0 for some x, so {self.kernel} is "
                f"not a Mercer kernel and cannot be normalised; use one that is, such as RBF()"
            )
        norms = np.sqrt(diagonal)
        return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)

    # Derivatives of the normalised kernel k~, with n(x) = k_1(x, x):
    #     dk~(x, z) = dk_1(x, z) / sqrt(n(x) n(z)) - k~(x, z) / 2 (dn(x) / n(x) + dn(z) / n(z))

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        direct, rows, columns = self._weights(X, Z, W)
        gradient = self.kernel.pullback(X, Z, direct)
        gradient -= self.kernel._diag_pullback(X, rows)
        gradient -= self.kernel._diag_pullback(X if Z is None else Z, columns)
        return {"kernel": gradient}

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        direct, rows, _ = self._weights(X, Z, W)
        return self.kernel.input_gradient(X, Z, direct) - self.kernel._diag_gradient(X, rows)

    def _weights(self, X: Any, Z: Any, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weights of dk_1(x, z), dn(x) and dn(z) in sum_ij W_ij dk~(x_i, z_j).

        k~ is the normalised kernel, and n(x) = k_1(x, x).
        """
        a = self._inverse_norms(X)
        b = a if Z is None else self._inverse_norms(Z)
        weighted = 0.5 * W * self(X, Z)
        rows, columns = weighted.sum(axis=1) * a**2, weighted.sum(axis=0) * b**2
        return W * a[:, None] * b, rows, columns
