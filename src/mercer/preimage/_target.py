"""The point of feature space that is looked for, and how far any phi(z) is from it.

    Psi = sum_i g_i phi(x_i),    |phi(z) - Psi|^2 = J(z) + |Psi|^2,    J(z) = k(z, z) - 2 Psi(z)

Several targets on the same points are worked on together, so that one block k(Z, X) and one GEMM
serve them all.  A factor of the kernel scales J, and a constant added to it moves J: neither moves
its minimum, so both are taken off, which shows the radial or dot-product kernel inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._points import length, same_points, take
from .._runtime import slices
from ..gram import gram
from ..kernels import (
    RBF,
    Bounded,
    Constant,
    DotProduct,
    Fixed,
    Kernel,
    Linear,
    Polynomial,
    Prepared,
    Radial,
    Scale,
    Sum,
)

__all__ = ["Attraction", "Target", "core_of", "parts"]

_ENTRIES = 2**21  # entries of k(Z, X) that are held at a time


class Attraction(NamedTuple):
    """Where the points pull z: J(z) is stationary where a = b z.

    Radial: a = sum_i w_i x_i, b = sum_i w_i with w_i = g_i p'(s_i) / p'(0).  Dot product:
    a = sum_i g_i p'(<z, x_i>) x_i, b = p'(|z|^2).
    """

    J: np.ndarray
    a: np.ndarray
    b: np.ndarray
    size: np.ndarray  # sum_i |w_i|: a b far smaller than this is rounding
    unit: np.ndarray  # what a, b and size have been divided by, to stay in range far away


class Target:
    """q targets Psi_c = sum_i G[c, i] phi(x_i), and the candidates among which to look first.

    Parameters
    ----------
    kernel : Kernel
    points : points
        The x_i; vectors as a dense float64 array.
    G : ndarray of shape (q, n)
    candidates : points
        From which nearest neighbours are taken; the x_i by default.
    """

    def __init__(self, kernel: Kernel, points: Any, G: np.ndarray, candidates: Any = None) -> None:
        self.core: Any
        self.core, self.factor, self.constant = core_of(kernel)
        self.is_radial = isinstance(self.core, Radial)
        self.is_dot_product = isinstance(self.core, DotProduct)
        self.points, self.G = points, np.ascontiguousarray(G, dtype=float)
        self.candidates = points if candidates is None else candidates

    def __len__(self) -> int:
        return len(self.G)

    # ------------------------------------------------------------------ what is known beforehand

    @cached_property
    def values(self) -> np.ndarray:
        """Psi_c at the points, (q, n)."""
        return np.asarray(gram(self.core, self.points, storage="tiled") @ self.G.T).T

    @cached_property
    def candidate_values(self) -> np.ndarray:
        """Psi_c at the candidates, (q, number of candidates)."""
        if same_points(self.candidates, self.points) and not self.core.tells_observations_apart:
            return self.values
        candidates = take(self.candidates, slice(None))  # a view: other observations to `White`
        K = gram(self.core, candidates, self.points, storage="tiled")
        return np.asarray(K @ self.G.T).T

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """|Psi_c|^2, of the kernel without its factor and constant."""
        squares = np.einsum("ci,ci->c", self.G, self.values)
        if not np.all(np.isfinite(squares)):
            raise ValueError(
                f"|f|^2 is not finite: coefficients, up to {np.abs(self.G).max():.3g}, or points "
                f"are too large for {self.core}; scale them"
            )
        return squares

    @cached_property
    def candidate_costs(self) -> np.ndarray:
        """J_c at the candidates, up to a constant for each c, (q, number of candidates)."""
        if isinstance(self.core, Linear):  # about the mean, which may be large and cancels
            mean = np.mean(self.candidates, axis=0)
            X, T = self.candidates - mean, self.G @ self.points - mean
            return np.einsum("ij,ij->i", X, X) - 2.0 * T @ X.T
        return self.core.diag(self.candidates) - 2.0 * self.candidate_values

    @cached_property
    def scale(self) -> float:
        """The spread of the vectors, against which steps are measured."""
        X = np.asarray(self.points)
        spread = float(np.sqrt(np.mean((X - X.mean(axis=0)) ** 2)))
        return spread if spread > 0 else max(1.0, float(np.abs(X).max(initial=0.0)))

    def neighbours(self, count: int) -> np.ndarray:
        """Return the places of the candidates nearest to Psi_c, the nearest first, (q, count)."""
        cost, count = self.candidate_costs, min(count, length(self.candidates))
        some = np.argpartition(cost, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(cost, some, axis=1), axis=1, kind="stable")
        return np.take_along_axis(some, order, axis=1)

    @cached_property
    def lower(self) -> float | None:
        """The smallest coordinate that the kernel takes, if there is one."""
        return 0.0 if _nonnegative(self.core) else None

    def clip(self, Z: np.ndarray) -> np.ndarray:
        """Return points with no coordinate below that."""
        return Z if self.lower is None else np.maximum(Z, self.lower)

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinates of the points."""
        return np.min(self.points, axis=0), np.max(self.points, axis=0)

    # ------------------------------------------------------------------ at any point

    def residuals(self, Z: Any) -> np.ndarray:
        """Return |phi(z_c) - Psi_c|^2 under the whole kernel, for one z_c per target."""
        total = self.G.sum(axis=1)
        apart = self.constant * (1.0 - total) ** 2
        if isinstance(self.core, Linear):  # no difference of large squares is needed
            return self.factor * np.sum((Z - self.G @ self.points) ** 2, axis=1) + apart
        costs = self.costs(Z, np.arange(len(self)))
        squares = costs + self.squared_norms
        size = np.abs(self.core.diag(Z)) + np.abs(costs) + np.abs(self.squared_norms)
        if np.any(squares < -1e-8 * size):
            c = int(np.argmin(squares / size))
            raise ValueError(
                f"|phi(z) - f|^2 is {squares[c]:.3g} < 0 for function {c}: {self.core} is not "
                f"positive semidefinite there. If it is conditionally so, of order 1, coefficients "
                f"must sum to 1, and here they sum to {total[c]:.3g}"
            )
        return self.factor * np.maximum(squares, 0.0) + apart

    def costs(self, Z: Any, rows: np.ndarray) -> np.ndarray:
        """Return J_c(z) for the targets `rows`, each with its own z."""
        return self._in_parts(lambda Z, G: (self._cost(Z, G),), Z, rows)[0]

    def block(self, Z: Any) -> np.ndarray:
        """Return k(Z, points) in the frame of the points: a z far away costs others no digits."""
        P = self.core.prepare(Z, like=self._frame)
        return self.core.tile(P, self._frame, np.empty((len(P), len(self._frame))))

    def slopes(self, Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return J_c(z) and its gradient in z, for the targets `rows`, each with its own z."""
        slopes = self._radial_slopes if self.is_radial else self._any_slopes
        values, gradients = self._in_parts(slopes, Z, rows)
        return values, gradients

    def attractions(self, Z: np.ndarray, rows: np.ndarray) -> Attraction:
        """Return J(z), and the a, b with a = b z where J is stationary; see Attraction."""
        attraction = self._radial_attraction if self.is_radial else self._dot_attraction
        return Attraction(*self._in_parts(attraction, Z, rows))

    def _in_parts(
        self, function: Callable[..., tuple[np.ndarray, ...]], Z: Any, rows: np.ndarray
    ) -> list[np.ndarray]:
        """Return what function(z, g) gives for z and g of each target, a part of them at a time."""
        found = [
            function(take(Z, part), self.G[rows[part]])
            for part in parts(len(rows), length(self.points))
        ]
        return [np.concatenate(whole) for whole in zip(*found, strict=True)]

    def _cost(self, Z: Any, G: np.ndarray) -> np.ndarray:
        return np.asarray(self.core.diag(Z) - 2.0 * np.einsum("ci,ci->c", self.block(Z), G))

    def _radial_attraction(self, Z: np.ndarray, G: np.ndarray) -> Attraction:
        kernel = self.core
        _, s = self._squared(Z)
        if isinstance(kernel, RBF):  # p' and p are the same exponential
            low = s.min(axis=1)
            unit = np.exp(-0.5 * low)
            W = np.exp(-0.5 * (s - low[:, None])) * G
            inner = unit * W.sum(axis=1)
        else:
            unit = np.ones(len(Z))
            W = kernel._finite_slope(s) * (G / self.slope_at_zero)
            inner = np.einsum("ci,ci->c", kernel.profile(s), G)
        J, size = self.at_zero - 2.0 * inner, np.abs(W).sum(axis=1)
        return Attraction(J, W @ self.points, W.sum(axis=1), size, unit)

    def _dot_attraction(self, Z: np.ndarray, G: np.ndarray) -> Attraction:
        kernel = self.core
        t, own = Z @ self.points.T, np.einsum("cj,cj->c", Z, Z)
        a, b = (G * kernel.slope(t)) @ self.points, kernel.slope(own.copy())
        J = kernel.profile(own) - 2.0 * np.einsum("ci,ci->c", kernel.profile(t), G)
        return Attraction(J, a, b, np.abs(b), np.ones(len(Z)))

    # ------------------------------------------------------------------ kinds of kernels

    def invert(self, values: np.ndarray) -> np.ndarray:
        """Return s (radial) or <x, z> (dot product) at which the kernel has these values."""
        kernel = self.core
        if isinstance(kernel, Linear):
            return values
        if isinstance(kernel, Polynomial):
            root = np.sign(values) * np.abs(values) ** (1.0 / kernel.degree)
            return (root - kernel.coef0) / kernel.gamma
        if isinstance(kernel, RBF):
            return -2.0 * np.log(values)
        X = np.asarray(self.candidates) / kernel._scale(np.shape(self.candidates)[1])
        widest = float(np.sum(np.ptp(X, axis=0) ** 2)) or 1.0
        low, high = np.full(values.shape, 1e-18 * widest), np.full(values.shape, 1e8 * widest)
        for _ in range(60):  # bisection in log s, to far more digits than a distance is known to
            middle = np.sqrt(low * high)
            beyond = kernel.profile(middle.copy()) > values
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.sqrt(low * high)

    @cached_property
    def _frame(self) -> Prepared:
        return self.core.prepare(self.points)

    @cached_property
    def slope_at_zero(self) -> float:
        """p'(0) of a radial kernel, or -1 where it is 0 or not finite."""
        slope = float(self.core._finite_slope(np.zeros((1, 1)))[0, 0])
        return slope if slope < 0 else -1.0

    @property
    def at_zero(self) -> float:
        """k(z, z) of a radial kernel."""
        return self.core._at_zero()

    def _squared(self, Z: np.ndarray) -> tuple[Prepared, np.ndarray]:
        """Return Z prepared, and its squared scaled distances to the points."""
        P = self.core.prepare(Z, like=self._frame)
        return P, self.core._statistic(P, self._frame, np.empty((len(P), len(self._frame))))

    def _radial_slopes(self, Z: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kernel = self.core
        P, s = self._squared(Z)
        M = kernel._finite_slope(s)
        M *= G
        gradient = -2.0 * kernel._pulled(P, self._frame, s, M)
        return self.at_zero - 2.0 * np.einsum("ci,ci->c", kernel.profile(s), G), gradient

    def _any_slopes(self, Z: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = self.core._diag_gradient(Z, np.ones(len(Z)))
        return self._cost(Z, G), gradient - 2.0 * self.core.input_gradient(Z, self.points, G)


def core_of(kernel: Kernel) -> tuple[Kernel, float, float]:
    """Return k', f, c with kernel = f k' + c."""
    factor, constant = 1.0, 0.0
    while True:
        if isinstance(kernel, (Fixed, Bounded)):
            kernel = kernel.kernel
        elif isinstance(kernel, Scale) and kernel.factor > 0:
            factor, kernel = factor * kernel.factor, kernel.kernel
        elif isinstance(kernel, Sum):
            moving = [term for term in kernel.terms if not isinstance(term, Constant)]
            if len(moving) != 1:
                return kernel, factor, constant
            flat = [term.value for term in kernel.terms if isinstance(term, Constant)]
            constant += factor * sum(flat)
            kernel = moving[0]
        else:
            return kernel, factor, constant


def _nonnegative(kernel: Kernel) -> bool:
    """Tell whether the kernel, or one inside it, compares histograms."""
    own = getattr(kernel, "_nonnegative", False)
    return bool(own) or any(_nonnegative(child) for _, child in kernel._children())


def parts(count: int, width: int) -> list[slice]:
    """Return slices of `count` rows, so that rows times `width` stay few."""
    return slices(count, max(1, _ENTRIES // max(1, width)))
