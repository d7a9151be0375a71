"""The target of a pre-image problem, and the distance of phi(z) to it.

    Psi = sum_i g_i phi(x_i),    |phi(z) - Psi|^2 = J(z) + |Psi|^2,    J(z) = k(z, z) - 2 Psi(z)

Several targets on the same points are processed together, with one block k(Z, X) and one matrix
product for all of them.

A constant factor of the kernel, or a constant added to it, does not change the minimum of J.  Both
are removed first; the remaining kernel is often radial or a dot-product kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._core import Points, length, same_points, slices, take
from ...gram import gram
from ...kernels import (
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

_MAX_BLOCK_ENTRIES = 2**21  # at most this many entries of k(Z, X) are computed at a time


class FixedPointTerms(NamedTuple):
    """Terms of the fixed-point equation: J(z) = k(z, z) - 2 Psi(z) is stationary if a = b z.

    p is the profile of the kernel, g_i are the coefficients of the target, and s_i = |z - x_i|^2.
    Radial kernel: a = sum_i w_i x_i, b = sum_i w_i with w_i = g_i p'(s_i) / p'(0).
    Dot-product kernel: a = sum_i g_i p'(<z, x_i>) x_i, b = p'(|z|^2).
    """

    J: np.ndarray
    a: np.ndarray
    b: np.ndarray
    magnitude: np.ndarray  # sum_i |w_i|; if |b| is far smaller, b is only a rounding error
    scale: np.ndarray  # a, b and magnitude are divided by this number, to avoid underflow


class PreImageTarget:
    """Targets Psi_c = sum_i G[c, i] phi(x_i) of a pre-image problem, and candidate pre-images.

    Parameters
    ----------
    kernel : Kernel
    points : points
        The n points x_i; if they are vectors, they must be a dense float64 array.
    G : ndarray of shape (q, n)
        The coefficients, with one row per target.
    candidates : points, optional
        Points among which nearest neighbours are searched; the x_i by default.
    """

    def __init__(
        self, kernel: Kernel, points: Points, G: np.ndarray, candidates: Points = None
    ) -> None:
        self.core: Any
        self.core, self.factor, self.constant = core_of(kernel)
        self.is_radial = isinstance(self.core, Radial)
        self.is_dot_product = isinstance(self.core, DotProduct)
        self.points, self.G = points, np.ascontiguousarray(G, dtype=float)
        self.candidates = points if candidates is None else candidates

    def __len__(self) -> int:
        return len(self.G)

    # ------------------------------------------------------------------ values at the points

    @cached_property
    def values(self) -> np.ndarray:
        """The values Psi_c(x_i) at the points, shape (q, n)."""
        return np.asarray(gram(self.core, self.points, storage="tiled") @ self.G.T).T

    @cached_property
    def candidate_values(self) -> np.ndarray:
        """The values of Psi_c at the candidates, shape (q, n_candidates)."""
        if (
            same_points(self.candidates, self.points)
            and not self.core.domain.distinguishes_observations
        ):
            return self.values
        # a new object, so that `White` treats the candidates as new observations
        candidates = take(self.candidates, slice(None))
        K = gram(self.core, candidates, self.points, storage="tiled")
        return np.asarray(K @ self.G.T).T

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """The squared norms |Psi_c|^2 under `core`, the kernel without factor and constant."""
        squares = np.einsum("ci,ci->c", self.G, self.values)
        if not np.all(np.isfinite(squares)):
            raise ValueError(
                f"|f|^2 is not finite: the coefficients (up to {np.abs(self.G).max():.3g}) or the "
                f"points are too large for {self.core}; scale them"
            )
        return squares

    @cached_property
    def candidate_costs(self) -> np.ndarray:
        """Costs J_c of the candidates, up to a constant for each c, shape (q, n_candidates)."""
        if isinstance(self.core, Linear):  # subtract the mean to reduce cancellation
            mean = np.mean(self.candidates, axis=0)
            X, T = self.candidates - mean, self.G @ self.points - mean
            return np.einsum("ij,ij->i", X, X) - 2.0 * T @ X.T
        return self.core.diag(self.candidates) - 2.0 * self.candidate_values

    @cached_property
    def scale(self) -> float:
        """The spread (root mean square) of the points, which is the unit of step lengths."""
        X = np.asarray(self.points)
        spread = float(np.sqrt(np.mean((X - X.mean(axis=0)) ** 2)))
        return spread if spread > 0 else max(1.0, float(np.abs(X).max(initial=0.0)))

    def neighbours(self, count: int) -> np.ndarray:
        """Return the indices of the candidates nearest to each target, shape (q, count)."""
        cost, count = self.candidate_costs, min(count, length(self.candidates))
        nearest = np.argpartition(cost, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(cost, nearest, axis=1), axis=1, kind="stable")
        return np.take_along_axis(nearest, order, axis=1)

    @cached_property
    def lower(self) -> float | None:
        """Smallest coordinate for which the kernel is defined, or None if there is no limit."""
        return 0.0 if _requires_nonnegative(self.core) else None

    def clip(self, Z: np.ndarray) -> np.ndarray:
        """Return Z with all coordinates raised to `lower`, if there is such a bound."""
        return Z if self.lower is None else np.maximum(Z, self.lower)

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of each coordinate of the points."""
        return np.min(self.points, axis=0), np.max(self.points, axis=0)

    # ------------------------------------------------------------------ values at any z

    def residuals(self, Z: Points) -> np.ndarray:
        """Return |phi(z_c) - Psi_c|^2 for one z_c per target, with the complete kernel."""
        total = self.G.sum(axis=1)
        constant_residual = self.constant * (1.0 - total) ** 2
        if isinstance(self.core, Linear):  # avoid differences of large squares
            return self.factor * np.sum((Z - self.G @ self.points) ** 2, axis=1) + constant_residual
        costs = self.costs(Z, np.arange(len(self)))
        squares = costs + self.squared_norms
        magnitude = np.abs(self.core.diag(Z)) + np.abs(costs) + np.abs(self.squared_norms)
        if np.any(squares < -1e-8 * magnitude):
            c = int(np.argmin(squares / magnitude))
            raise ValueError(
                f"|phi(z) - f|^2 is {squares[c]:.3g} < 0 for function {c}: {self.core} is not "
                f"positive semidefinite on these points. If it is conditionally positive definite "
                f"of order 1, the coefficients must sum to 1, but they sum to {total[c]:.3g}"
            )
        return self.factor * np.maximum(squares, 0.0) + constant_residual

    def costs(self, Z: Points, rows: np.ndarray) -> np.ndarray:
        """Return J_c(z) for the targets with indices `rows`, each at its own row of Z."""
        return self._in_blocks(lambda Z, G: (self._cost(Z, G),), Z, rows)[0]

    def block(self, Z: Points) -> np.ndarray:
        """Return k(Z, points); Z is prepared relative to `points`.

        Thus a point of Z that is far away does not reduce the precision of the other rows.
        """
        Q = self._prepared_points
        P = self.core.prepare(Z, like=Q)
        return self.core.tile(P, Q, np.empty((len(P), len(Q))))

    def slopes(self, Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return J_c(z) and its gradient for the targets `rows`, each at its own row of Z."""
        slopes = self._radial_slopes if self.is_radial else self._generic_slopes
        values, gradients = self._in_blocks(slopes, Z, rows)
        return values, gradients

    def fixed_point_terms(self, Z: np.ndarray, rows: np.ndarray) -> FixedPointTerms:
        """Return the terms of the fixed-point equation a = b z, each target at its own row of Z."""
        terms = self._radial_terms if self.is_radial else self._dot_product_terms
        return FixedPointTerms(*self._in_blocks(terms, Z, rows))

    def _in_blocks(
        self, function: Callable[..., tuple[np.ndarray, ...]], Z: Points, rows: np.ndarray
    ) -> list[np.ndarray]:
        """Return the results of function(Z, G), evaluated in blocks of the targets `rows`."""
        results = [
            function(take(Z, block), self.G[rows[block]])
            for block in row_blocks(len(rows), length(self.points))
        ]
        return [np.concatenate(columns) for columns in zip(*results, strict=True)]

    def _cost(self, Z: Points, G: np.ndarray) -> np.ndarray:
        return np.asarray(self.core.diag(Z) - 2.0 * np.einsum("ci,ci->c", self.block(Z), G))

    def _radial_terms(self, Z: np.ndarray, G: np.ndarray) -> FixedPointTerms:
        kernel = self.core
        _, s = self._squared_distances(Z)
        if isinstance(kernel, RBF):  # the derivative p' is a multiple of the profile p
            nearest = s.min(axis=1)
            scale = np.exp(-0.5 * nearest)
            W = np.exp(-0.5 * (s - nearest[:, None])) * G
            inner = scale * W.sum(axis=1)
        else:
            scale = np.ones(len(Z))
            W = kernel._finite_slope(s) * (G / self.slope_at_zero)
            inner = np.einsum("ci,ci->c", kernel.profile(s), G)
        J, magnitude = self.at_zero - 2.0 * inner, np.abs(W).sum(axis=1)
        return FixedPointTerms(J, W @ self.points, W.sum(axis=1), magnitude, scale)

    def _dot_product_terms(self, Z: np.ndarray, G: np.ndarray) -> FixedPointTerms:
        kernel = self.core
        t, self_products = Z @ self.points.T, np.einsum("cj,cj->c", Z, Z)
        a, b = (G * kernel.slope(t)) @ self.points, kernel.slope(self_products.copy())
        J = kernel.profile(self_products) - 2.0 * np.einsum("ci,ci->c", kernel.profile(t), G)
        return FixedPointTerms(J, a, b, np.abs(b), np.ones(len(Z)))

    # ------------------------------------------------------------------ radial and dot product

    def invert(self, values: np.ndarray) -> np.ndarray:
        """Return the squared distances or inner products for which the kernel has these values."""
        kernel = self.core
        if isinstance(kernel, Linear):
            return values
        if isinstance(kernel, Polynomial):
            root = np.sign(values) * np.abs(values) ** (1.0 / kernel.degree)
            return (root - kernel.coef0) / float(kernel.gamma)
        if isinstance(kernel, RBF):
            return -2.0 * np.log(values)
        X = np.asarray(self.candidates) / kernel._scale(np.shape(self.candidates)[1])
        max_distance = float(np.sum(np.ptp(X, axis=0) ** 2)) or 1.0
        low, high = (np.full(values.shape, factor * max_distance) for factor in (1e-18, 1e8))
        for _ in range(60):  # bisection in the logarithm of s
            middle = np.sqrt(low * high)
            is_below = kernel.profile(middle.copy()) > values
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return np.sqrt(low * high)

    @cached_property
    def _prepared_points(self) -> Prepared:
        return self.core.prepare(self.points)

    @cached_property
    def slope_at_zero(self) -> float:
        """The slope p'(0) of the profile of a radial kernel, or -1 if it is 0 or not finite."""
        slope = float(self.core._finite_slope(np.zeros((1, 1)))[0, 0])
        return slope if slope < 0 else -1.0

    @property
    def at_zero(self) -> float:
        """The value k(z, z) of a radial kernel, the same for all z."""
        return self.core._value_at_zero()

    def _squared_distances(self, Z: np.ndarray) -> tuple[Prepared, np.ndarray]:
        """Return the prepared Z, and its squared distances to the points, in length scales."""
        Q = self._prepared_points
        P = self.core.prepare(Z, like=Q)
        return P, self.core._statistic(P, Q, np.empty((len(P), len(Q))))

    def _radial_slopes(self, Z: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kernel = self.core
        P, s = self._squared_distances(Z)
        M = kernel._finite_slope(s)
        M *= G
        gradient = -2.0 * kernel._statistic_gradient(P, self._prepared_points, s, M)
        return self.at_zero - 2.0 * np.einsum("ci,ci->c", kernel.profile(s), G), gradient

    def _generic_slopes(self, Z: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = self.core._diag_gradient(Z, np.ones(len(Z)))
        return self._cost(Z, G), gradient - 2.0 * self.core.input_gradient(Z, self.points, G)


def core_of(kernel: Kernel) -> tuple[Kernel, float, float]:
    """Split a kernel into f k' + c, where f and c are numbers, and return k', f and c."""
    factor, constant = 1.0, 0.0
    while True:
        if isinstance(kernel, (Fixed, Bounded)):
            kernel = kernel.kernel
        elif isinstance(kernel, Scale) and kernel.factor > 0:
            factor, kernel = factor * kernel.factor, kernel.kernel
        elif isinstance(kernel, Sum):
            varying = [term for term in kernel.terms if not isinstance(term, Constant)]
            if len(varying) != 1:
                return kernel, factor, constant
            constants = [term.value for term in kernel.terms if isinstance(term, Constant)]
            constant += factor * sum(constants)
            kernel = varying[0]
        else:
            return kernel, factor, constant


def _requires_nonnegative(kernel: Kernel) -> bool:
    """Return True if the kernel, or a part of it, is defined only on non-negative vectors."""
    nonnegative = getattr(kernel, "_nonnegative", False)
    return bool(nonnegative) or any(_requires_nonnegative(child) for _, child in kernel._children())


def row_blocks(count: int, width: int) -> list[slice]:
    """Split `count` rows of `width` entries into slices of at most 2^21 entries."""
    return slices(count, max(1, _MAX_BLOCK_ENTRIES // max(1, width)))
