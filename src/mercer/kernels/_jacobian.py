"""A block K = k(X, Z) of kernel values together with its derivatives with respect to theta.

    total(W) = sum_ij W_ij K_ij,     pullback(W) = sum_ij W_ij dK_ij / d theta,
    products(V) = K V,               tangents(V) = (dK / d theta) V

All four methods share the same distances and exponentials, which are computed once per block.
"""

from __future__ import annotations

from functools import cached_property, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Points, length

if TYPE_CHECKING:
    from ._base import Kernel

# Step of the finite differences with respect to theta.  It balances truncation error and
# cancellation, so that about six digits are correct.
_STEP = 1e-6


class KernelLinearisation:
    """The block K = k(X, Z) with its derivatives with respect to theta, for any kernel.

    The tangents are finite differences with about six correct digits.  Subclasses for particular
    kernels compute them analytically.
    """

    def __init__(self, kernel: Kernel, X: Points, Z: Points) -> None:
        self.kernel, self.X, self.Z = kernel, X, Z

    @cached_property
    def values(self) -> np.ndarray:
        """The block k(X, Z), shape (n, m)."""
        return self.kernel(self.X, self.Z)

    def add_to(self, total: np.ndarray) -> None:
        """Add k(X, Z) to an array, in place."""
        total += self.values

    def total(self, W: np.ndarray) -> float:
        """Return sum_ij W_ij K_ij."""
        return float(np.sum(W * self.values))

    def pullback(self, W: np.ndarray) -> np.ndarray:
        """Return sum_ij W_ij dK_ij / d theta, shape (p,)."""
        return self.kernel.pullback(self.X, self.Z, W)

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return K V, or K^T V if `transposed`."""
        return np.asarray((self.values.T if transposed else self.values) @ V)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return (dK / d theta) V, shape (p, n, q), or (dK^T / d theta) V if `transposed`."""
        theta = self.kernel.theta
        rows = length(self.X) if self.Z is None or not transposed else length(self.Z)
        differences = np.empty((theta.size, rows, V.shape[1]))
        for i, step in enumerate(_STEP * np.eye(theta.size)):
            shifted = KernelLinearisation(self.kernel.with_theta(theta + step), self.X, self.Z)
            differences[i] = shifted.products(V, transposed) - self.products(V, transposed)
        return differences / _STEP


@singledispatch
def linearisation(kernel: Kernel, X: Points, Z: Points) -> KernelLinearisation:
    """Return the linearisation of a kernel; classes with a faster one register a function."""
    return KernelLinearisation(kernel, X, Z)


class SumLinearisation(KernelLinearisation):
    """The linearisation of a sum k_1 + ... + k_m; its theta concatenates those of the terms."""

    @cached_property
    def terms(self) -> list[KernelLinearisation]:
        """The linearisations of the terms."""
        return [child.linearise(self.X, self.Z) for _, child in self.kernel._children()]

    @cached_property
    def values(self) -> np.ndarray:
        total = np.array(self.terms[0].values)
        for term in self.terms[1:]:
            term.add_to(total)
        return total

    def total(self, W: np.ndarray) -> float:
        return sum(term.total(W) for term in self.terms)

    def pullback(self, W: np.ndarray) -> np.ndarray:
        return np.concatenate([term.pullback(W) for term in self.terms])

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.asarray(sum(term.products(V, transposed) for term in self.terms))

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.concatenate([term.tangents(V, transposed) for term in self.terms])


class ScaleLinearisation(KernelLinearisation):
    """The linearisation of c k_1; its derivative with respect to log c is c k_1 itself."""

    @cached_property
    def inner(self) -> tuple[KernelLinearisation, float]:
        """The linearisation of k_1, and the factor c."""
        kernel: Any = self.kernel
        return kernel.kernel.linearise(self.X, self.Z), kernel.factor

    @cached_property
    def values(self) -> np.ndarray:
        block, c = self.inner
        return c * block.values

    def total(self, W: np.ndarray) -> float:
        block, c = self.inner
        return c * block.total(W)

    def pullback(self, W: np.ndarray) -> np.ndarray:
        block, c = self.inner
        return c * np.append(block.pullback(W), block.total(W))

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        block, c = self.inner
        return c * block.products(V, transposed)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        block, c = self.inner
        in_log_c = block.products(V, transposed)[None]
        return c * np.concatenate([block.tangents(V, transposed), in_log_c])
