"""F F^T in place of K for a test: Nyström features that do not know which point came first.

A permutation test with the kernel f(x) . f(z) has its exact level for any features f that are
chosen from the points without regard to their order, however few: only its power depends on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._points import length, sliceable, take
from ..gram import GramOperator, LowRankGram, choose_landmarks
from ..kernels import Kernel
from ._order import UnorderableError, canonical_order
from ._samples import moved

__all__ = ["check_rank", "landmark_gram", "truncation"]

_RANK = 100  # by default


def check_rank(rank: Any) -> int:
    """Return the number of features that is meant."""
    if rank is None:
        return _RANK
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or rank < 1:
        raise ValueError(f"rank must be a positive integer or None, got {rank!r}")
    return int(rank)


def landmark_gram(
    kernel: Kernel, X: Any, rank: int, rng: np.random.Generator, max_memory: Any
) -> LowRankGram:
    """Return F F^T with `rank` landmarks, drawn by randomly pivoted Cholesky."""
    X = moved(kernel, sliceable(X))
    count = min(rank, length(X))
    try:
        order = canonical_order(X, kernel)
    except UnorderableError as error:
        raise UnorderableError(
            f"landmarks must not know which point came first, or the level of the test is wrong, "
            f"but {error}; take method='permutation', or points that are vectors, texts, numbers, "
            f"or tuples, lists and sets of them"
        ) from error
    chosen = order[choose_landmarks(kernel, take(X, order), count, random_state=rng)]
    return LowRankGram(kernel, X, chosen, max_memory=max_memory)


def truncation(K: GramOperator) -> float:
    """Return tr(K - F F^T) / tr K, 0 for a K that is not approximated."""
    if not isinstance(K, LowRankGram):
        return 0.0
    left = K.residual_trace
    return left / (left + float(K.diagonal().sum())) if left > 0.0 else 0.0
