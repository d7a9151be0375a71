"""Weights of kernels, v >= 0 with sum 1, in closed form: their mean, and alignment with targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import nnls

from .._errors import warn_caller
from .._runtime.linalg import eigh
from ..kernels import Kernel, Scale, Sum

__all__ = ["Candidates", "aligned", "alignf", "average", "combined", "or_average"]

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Candidates:
    """Kernels to be weighed, what they are weighed on, and their centred inner products.

    Attributes
    ----------
    kernels : sequence of Kernel
        Resolved, of comparable size.
    X : points
    Y : ndarray of shape (n, q)
    weights : ndarray of shape (n,) or None
    products : ndarray of shape (p, p)
        M_kl = <A_k, A_l> of the centred matrices.
    with_target : ndarray of shape (p,)
        a_k = <A_k, T>, T = Y Y^T centred.
    target : float
        <T, T>.
    """

    kernels: Sequence[Kernel]
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    products: np.ndarray
    with_target: np.ndarray
    target: float
    max_memory: Any = None

    @property
    def counts(self) -> np.ndarray:
        """The weights of the points, 1 for each if none were given."""
        return np.ones(len(self.Y)) if self.weights is None else self.weights

    @cached_property
    def alignments(self) -> np.ndarray:
        """The alignment of each kernel with the targets; 0 for a constant kernel."""
        return np.array([self.alignment(e) for e in np.eye(len(self.kernels))])

    def some(self, kept: np.ndarray) -> Candidates:
        """Return some of the kernels, by a mask."""
        places = np.flatnonzero(kept).tolist()
        return replace(
            self,
            kernels=[self.kernels[i] for i in places],
            products=self.products[np.ix_(places, places)],
            with_target=self.with_target[places],
        )

    def alignment(self, v: np.ndarray) -> float:
        """Return the alignment of sum_k v_k K_k with the targets."""
        square = float(v @ self.products @ v) * self.target
        return float(v @ self.with_target / np.sqrt(square)) if square > 0 else 0.0

    @property
    def classes(self) -> bool:
        """Whether the targets are indicators of classes."""
        Y = self.Y
        return Y.shape[1] > 1 and bool(np.all((Y == 0) | (Y == 1)) and np.all(Y.sum(axis=1) == 1))

    @property
    def signs(self) -> np.ndarray:
        """A column of +-1 for each class against the others; one column for two classes."""
        return 2.0 * (self.Y[:, 1:] if self.Y.shape[1] == 2 else self.Y) - 1.0


def combined(kernels: Sequence[Kernel], factors: np.ndarray) -> Sum:
    """Return sum_k factor_k k_k over the kernels of positive factor."""
    pairs = zip(kernels, factors.tolist(), strict=True)
    return Sum(tuple(Scale(k, factor) for k, factor in pairs if factor > 0))


def average(c: Candidates) -> np.ndarray:
    """Return 1 / p for each."""
    return np.ones(len(c.kernels))


def aligned(c: Candidates) -> np.ndarray:
    """Return the alignment of each kernel with the targets, 0 where that is negative (ALIGN)."""
    return np.maximum(c.alignments, 0.0)


def alignf(c: Candidates) -> np.ndarray:
    """Return argmin_{v >= 0} v^T M v - 2 v^T a: the sum whose alignment is largest (ALIGNF).

    Non-negative least squares |S v - b| with S^T S = M and S^T b = a, from the eigenvectors of M:
    directions in which the kernels are dependent are left out, and nothing is added to M.
    """
    norms = np.sqrt(c.products.diagonal())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    values, Q = eigh(c.products * scale * scale[:, None])
    kept = values > len(values) * 8 * _EPS * max(values[-1], 0.0)
    root = np.sqrt(values[kept])
    S, b = root[:, None] * Q[:, kept].T, (Q[:, kept].T @ (scale * c.with_target)) / root
    v, _ = nnls(S, b / max(np.abs(b).max(initial=0.0), 1e-300))
    return np.asarray(v * scale)


def or_average(v: np.ndarray, c: Candidates) -> np.ndarray:
    """Return v; if no kernel has anything to do with the targets, equal weights and a warning."""
    if np.any(v > 0):
        return v
    warn_caller(
        f"none of the {len(v)} kernels is aligned with the targets: the largest alignment is "
        f"{c.alignments.max():.2g}, so that all weights would be 0. The kernels are averaged "
        f"instead; other kernels, or other columns, may know more about these targets"
    )
    return average(c)
