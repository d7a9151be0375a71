"""A block of a kernel with its derivatives in theta, which weights and vectors are shown to.

    total(W) = sum_ij W_ij k_ij,     pullback(W) = sum_ij W_ij dk_ij / d theta,
    products(V) = k V,               tangents(V) = dk / d theta V

All four come from the same distances and exponentials, which a block computes once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._points import length

if TYPE_CHECKING:
    from ._base import Kernel

__all__ = ["Linearised", "LinearisedScale", "LinearisedSum"]

_STEP = 1e-6  # in log parameters, of differences


class Linearised:
    """k(X, Z) near theta, as every kernel has it: tangents are differences, of six digits."""

    def __init__(self, kernel: Kernel, X: Any, Z: Any) -> None:
        self.kernel, self.X, self.Z = kernel, X, Z

    @cached_property
    def values(self) -> np.ndarray:
        """k(X, Z) itself."""
        return self.kernel(self.X, self.Z)

    def add_to(self, total: np.ndarray) -> None:
        """Add k(X, Z) to an array."""
        total += self.values

    def total(self, W: np.ndarray) -> float:
        """Return sum_ij W_ij k_ij."""
        return float(np.sum(W * self.values))

    def pullback(self, W: np.ndarray) -> np.ndarray:
        """Return sum_ij W_ij dk_ij / d theta, of shape (p,)."""
        return self.kernel.pullback(self.X, self.Z, W)

    def products(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return k V, or k^T V."""
        return np.asarray((self.values.T if transposed else self.values) @ V)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Return dk / d theta V, of shape (p, n, q), or the same of k^T."""
        theta = self.kernel.theta
        rows = length(self.X) if self.Z is None or not transposed else length(self.Z)
        moved = np.empty((theta.size, rows, V.shape[1]))
        for i, step in enumerate(_STEP * np.eye(theta.size)):
            there = Linearised(self.kernel.with_theta(theta + step), self.X, self.Z)
            moved[i] = there.products(V, transposed) - self.products(V, transposed)
        return moved / _STEP


class LinearisedSum(Linearised):
    """k_1 + ... + k_m: their totals add up, their derivatives follow each other."""

    @cached_property
    def terms(self) -> list[Linearised]:
        """The blocks of the children."""
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


class LinearisedScale(Linearised):
    """c k_1: the derivative in log c is c k_1 itself."""

    @cached_property
    def inner(self) -> tuple[Linearised, float]:
        """The block of k_1, and c."""
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
        own = block.products(V, transposed)[None]
        return c * np.concatenate([block.tangents(V, transposed), own])
