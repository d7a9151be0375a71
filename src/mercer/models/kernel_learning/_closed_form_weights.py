"""Kernel weights v >= 0 from closed-form rules: equal weights, and alignment with the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import nnls

from ..._core import warn_caller
from ..._core.linalg import eigh
from ...kernels import Kernel, Scale, Sum

__all__ = [
    "WeightingProblem",
    "align_weights",
    "alignf_weights",
    "equal_weights",
    "equal_weights_if_all_zero",
    "weighted_sum",
]

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class WeightingProblem:
    """The data from which the weights of p kernels are computed.

    Attributes
    ----------
    kernels : sequence of Kernel
        The p kernels, scaled to comparable size, with numbers instead of rules such as "median".
    X : points
        The n training points.
    Y : ndarray of shape (n, q)
        The targets.
    weights : ndarray of shape (n,) or None
        Weights of the points.
    products : ndarray of shape (p, p)
        The inner products M_kl = <A_k, A_l> of the centred kernel matrices.
    with_target : ndarray of shape (p,)
        The inner products a_k = <A_k, T> with the centred T = Y Y^T.
    target_norm2 : float
        The squared norm <T, T>.
    max_memory : int, str or None
        The memory budget.
    """

    kernels: Sequence[Kernel]
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    products: np.ndarray
    with_target: np.ndarray
    target_norm2: float
    max_memory: Any = None

    @property
    def counts(self) -> np.ndarray:
        """The weights of the points; ones if `weights` is None."""
        return np.ones(len(self.Y)) if self.weights is None else self.weights

    @cached_property
    def alignments(self) -> np.ndarray:
        """The alignment of each kernel with the targets; 0 for a constant kernel."""
        return np.array([self.alignment(e) for e in np.eye(len(self.kernels))])

    def select(self, mask: np.ndarray) -> WeightingProblem:
        """Return the problem restricted to the kernels that a Boolean mask selects."""
        indices = np.flatnonzero(mask).tolist()
        return replace(
            self,
            kernels=[self.kernels[i] for i in indices],
            products=self.products[np.ix_(indices, indices)],
            with_target=self.with_target[indices],
        )

    def alignment(self, v: np.ndarray) -> float:
        """Return the alignment of sum_k v_k K_k with the targets."""
        norm2 = float(v @ self.products @ v) * self.target_norm2
        return float(v @ self.with_target / np.sqrt(norm2)) if norm2 > 0 else 0.0

    @property
    def has_classes(self) -> bool:
        """Whether the targets are one-hot encoded classes."""
        Y = self.Y
        return Y.shape[1] > 1 and bool(np.all((Y == 0) | (Y == 1)) and np.all(Y.sum(axis=1) == 1))

    @property
    def signs(self) -> np.ndarray:
        """The targets +-1 of one-vs-rest classifiers, one per column; one column for 2 classes."""
        return 2.0 * (self.Y[:, 1:] if self.Y.shape[1] == 2 else self.Y) - 1.0


def weighted_sum(kernels: Sequence[Kernel], factors: np.ndarray) -> Sum:
    """Return the kernel sum_k factor_k k_k over the kernels with a positive factor."""
    pairs = zip(kernels, factors.tolist(), strict=True)
    return Sum(tuple(Scale(k, factor) for k, factor in pairs if factor > 0))


def equal_weights(problem: WeightingProblem) -> np.ndarray:
    """Return a weight of 1 for each kernel; the caller normalises the weights."""
    return np.ones(len(problem.kernels))


def align_weights(problem: WeightingProblem) -> np.ndarray:
    """Return each kernel's alignment with the targets as its weight, or 0 if negative (ALIGN)."""
    return np.maximum(problem.alignments, 0.0)


def alignf_weights(problem: WeightingProblem) -> np.ndarray:
    """Return the weights that maximise the alignment of the sum with the targets (ALIGNF).

    The weights v >= 0 minimise v^T M v - 2 v^T a, where M_kl = <A_k, A_l> and a_k = <A_k, T> are
    the inner products of the centred matrices.  This is the non-negative least squares problem
    |S v - b| with S^T S = M and S^T b = a, computed from the eigenvectors of M.  Eigenvalues at the
    level of rounding, which mean that kernels are linearly dependent, are dropped; no ridge is
    added to M.
    """
    norms = np.sqrt(problem.products.diagonal())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    values, Q = eigh(problem.products * scale * scale[:, None])
    significant = values > len(values) * 8 * _EPS * max(values[-1], 0.0)
    root = np.sqrt(values[significant])
    S, b = (
        root[:, None] * Q[:, significant].T,
        (Q[:, significant].T @ (scale * problem.with_target)) / root,
    )
    v, _ = nnls(S, b / max(np.abs(b).max(initial=0.0), 1e-300))
    return np.asarray(v * scale)


def equal_weights_if_all_zero(v: np.ndarray, problem: WeightingProblem) -> np.ndarray:
    """Return v; if all weights are 0, warn and return equal weights."""
    if np.any(v > 0):
        return v
    warn_caller(
        f"none of the {len(v)} kernels is aligned with the targets: the largest alignment is "
        f"{problem.alignments.max():.2g}, so all weights would be 0. Equal weights are used "
        f"instead; try other kernels or other columns of X"
    )
    return equal_weights(problem)
