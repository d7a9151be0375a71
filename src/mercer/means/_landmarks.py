"""F F^T in place of K for a test: Nyström features that do not know which point came first.

A permutation test with the kernel f(x) . f(z) has its exact level for any features f that are
chosen from the points without regard to their order, however few: only its power depends on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._points import length, take
from ..gram import GramOperator, LowRankGram, choose_landmarks
from ..gram._landmarks import sliceable
from ..kernels import Kernel
from ._samples import canonical_order

__all__ = ["landmark_gram", "truncation"]

_RANK = 100  # by default


def landmark_gram(
    kernel: Kernel, X: Any, rank: Any, rng: np.random.Generator, max_memory: Any
) -> LowRankGram:
    """Return F F^T with `rank` landmarks, drawn by randomly pivoted Cholesky."""
    X = sliceable(X)
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, (int, np.integer))):
        raise ValueError(f"rank must be a positive integer or None, got {rank!r}")
    count = min(_RANK if rank is None else int(rank), length(X))
    order = canonical_order(X)
    chosen = order[choose_landmarks(kernel, take(X, order), count, random_state=rng)]
    return LowRankGram(kernel, X, chosen, max_memory=max_memory)


def truncation(K: GramOperator) -> float:
    """Return tr(K - F F^T) / tr K, 0 for a K that is not approximated."""
    if not isinstance(K, LowRankGram):
        return 0.0
    left = K.residual_trace
    return left / (left + float(K.diagonal().sum())) if left > 0.0 else 0.0
