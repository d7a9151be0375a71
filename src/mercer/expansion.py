"""The heart: f(.) = sum_i a_i k(x_i, .), the form of every fitted kernel machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import KernelMismatchError
from ._points import concatenate, length, same_points, take
from .gram import GramOperator, gram
from .kernels import Kernel

__all__ = ["Expansion"]

_ROWS = 512  # points of a gradient worked on at a time


@dataclass(frozen=True, eq=False)
class Expansion:
    """m functions f_c(.) = sum_i coefficients[i, c] k(points[i], .) in the RKHS of `kernel`.

    A value: calling, adding, scaling and indexing it gives numbers or other expansions.

    Parameters
    ----------
    kernel : Kernel
    points : points
        The x_i, n of them.
    coefficients : array of shape (n, m) or (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.array([1.0, 1.0]))
    >>> f([[10.0]])
    array([[30.]])
    >>> f.norm()
    array([3.])
    """

    kernel: Kernel
    points: Any
    coefficients: np.ndarray

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"an Expansion needs a Kernel, got {self.kernel!r}")
        a = np.asarray(self.coefficients)
        a = a[:, None] if a.ndim == 1 else a
        if a.ndim != 2 or len(a) != length(self.points):
            raise ValueError(
                f"coefficients have shape {np.shape(self.coefficients)}, but there are "
                f"{length(self.points)} points; one row per point is needed"
            )
        if np.iscomplexobj(a):
            raise TypeError("coefficients must be real numbers, got complex ones")
        dtype = a.dtype if a.dtype in (np.float32, np.float64) else np.float64
        object.__setattr__(self, "coefficients", np.array(a, dtype=dtype))  # nobody else's

    @classmethod
    def sections(cls, kernel: Kernel, X: Any) -> Expansion:
        """Return the functions k(x_i, .), one for each point of X."""
        return cls(kernel, X, np.eye(length(X)))

    @classmethod
    def mean(cls, kernel: Kernel, X: Any, weights: Any = None) -> Expansion:
        """Return the mean embedding sum_i w_i k(x_i, .), with w_i = 1/n by default.

        Weights are taken as they are; they need not sum to 1.
        """
        n = length(X)
        if n == 0:
            raise ValueError("the mean of no points is not defined")
        w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (n,):
            raise ValueError(f"weights have shape {w.shape}, but there are {n} points")
        return cls(kernel, X, w)

    def __len__(self) -> int:
        """Return m, the number of functions."""
        return self.coefficients.shape[1]

    def __getitem__(self, columns: Any) -> Expansion:
        """Return some of the functions, on the same points."""
        if isinstance(columns, (int, np.integer)):
            columns = [columns]
        return Expansion(self.kernel, self.points, self.coefficients[:, columns])

    def __iter__(self) -> Any:
        return (self[c] for c in range(len(self)))

    # ------------------------------------------------------------------ values

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """Return f_c(x_i), shape (n, m), in tiles: k(X, points) is never held."""
        return np.asarray(
            gram(self.kernel, X, self.points, n_threads=n_threads) @ self.coefficients
        )

    def gradient(self, X: Any) -> np.ndarray:
        """Return df_c/dx at each point of X, shape (n, m, d)."""
        n = length(X)
        parts = []
        for start in range(0, n, _ROWS):
            Xi = take(X, slice(start, start + _ROWS))
            ones = np.ones((length(Xi), 1))
            parts.append(
                np.stack(
                    [
                        self.kernel.input_gradient(Xi, self.points, ones * a)
                        for a in self.coefficients.T
                    ],
                    axis=1,
                )
            )
        if not parts:
            return np.zeros((0, len(self), np.shape(X)[1]))
        return np.concatenate(parts)

    # ------------------------------------------------------------------ geometry

    def inner(self, other: Expansion) -> np.ndarray:
        """Return <f_c, g_e> in the RKHS, shape (m, m')."""
        self._require_same_kernel(other)
        return np.asarray(self.coefficients.T @ (self._against(other) @ other.coefficients))

    def norm(self) -> np.ndarray:
        """Return |f_c| in the RKHS, shape (m,)."""
        a = self.coefficients
        K = self._against(self)
        Ka, sizes = np.hsplit(K @ np.concatenate([a, np.abs(a)], axis=1), 2)
        squared = np.einsum("ic,ic->c", a, Ka)
        # rounding, not mathematics, makes a tiny square negative; a real one is the kernel's fault
        bound = np.einsum("ic,ic->c", np.abs(a), np.abs(sizes))
        if np.any(squared < -max(1e-10, 100 * np.finfo(K.dtype).eps) * bound):
            raise ValueError(
                f"a squared norm is {squared.min():.3g} < 0: {self.kernel} is not positive "
                f"semidefinite on these points"
            )
        return np.sqrt(np.maximum(squared, 0.0))

    def distance(self, other: Expansion) -> np.ndarray:
        """Return |f_c - g_c| in the RKHS, column by column."""
        return (self - other).norm()

    def _against(self, other: Expansion) -> GramOperator:
        same = other is self or same_points(self.points, other.points)
        return gram(self.kernel, self.points, None if same else other.points, storage="tiled")

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        self._require_same_kernel(other)
        if len(self) != len(other):
            raise ValueError(f"cannot add {len(self)} functions to {len(other)}")
        if self.points is other.points or same_points(self.points, other.points):
            return Expansion(self.kernel, self.points, self.coefficients + other.coefficients)
        points = concatenate(self.points, other.points)
        return Expansion(
            self.kernel, points, np.concatenate([self.coefficients, other.coefficients])
        )

    def __sub__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        return self + (-other)

    def __neg__(self) -> Expansion:
        return self * -1.0

    def __mul__(self, factor: Any) -> Expansion:
        """Scale all functions by a number, or each by its own."""
        if isinstance(factor, Expansion):
            return NotImplemented
        factor = np.asarray(factor)
        if factor.dtype == object or factor.shape not in ((), (len(self),)):
            return NotImplemented
        return Expansion(self.kernel, self.points, self.coefficients * factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that numpy.float64(2) * f reaches __rmul__

    def __truediv__(self, factor: Any) -> Expansion:
        if isinstance(factor, Expansion):
            return NotImplemented
        return self * (1.0 / np.asarray(factor, dtype=float))

    def _require_same_kernel(self, other: Expansion) -> None:
        if self.kernel != other.kernel:
            raise KernelMismatchError(
                f"the two expansions live in different spaces: one has the kernel "
                f"{self.kernel}, the other {other.kernel}"
            )

    def __repr__(self) -> str:
        n, m = self.coefficients.shape
        functions = "function" if m == 1 else "functions"
        return f"<Expansion: {m} {functions} on {n} points, {self.kernel}>"
