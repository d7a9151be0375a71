"""F F^T in place of K for a test: Nyström features that do not know which point came first.

A permutation test with the kernel f(x) . f(z) has its exact level for any features f that are
chosen from the points without regard to their order, however few: only its power depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._points import length, sliceable, take
from ..gram import LowRankGram, choose_landmarks
from ..kernels import Kernel
from ._order import UnorderableError, canonical_order
from ._samples import Sample, moved

__all__ = ["landmark_gram", "landmark_grams", "truncation"]


def landmark_grams(
    samples: Iterable[Sample], rank: int, rng: np.random.Generator, max_memory: Any, required: bool
) -> list[LowRankGram]:
    """Return F F^T for each kernel with its points, or nothing if there are no features for one.

    If they are `required`, the reason why there are none is raised.
    """
    try:
        return [landmark_gram(kernel, X, rank, rng, max_memory) for kernel, X in samples]
    except (NotPositiveDefiniteError, UnorderableError):
        if required:
            raise
        return []


def landmark_gram(
    kernel: Kernel, X: Any, rank: int, rng: np.random.Generator, max_memory: Any
) -> LowRankGram:
    """Return F F^T with `rank` landmarks, drawn by randomly pivoted Cholesky."""
    kernel, X = moved(kernel, sliceable(X))
    try:
        order = canonical_order(X, kernel)
    except UnorderableError as error:
        raise UnorderableError(
            f"landmarks must not know which point came first, or the level of the test is wrong, "
            f"but {error}; take method='permutation', or points that are vectors, texts, numbers, "
            f"or tuples, lists and sets of them"
        ) from error
    drawn = choose_landmarks(kernel, take(X, order), min(rank, length(X)), random_state=rng)
    return LowRankGram(kernel, X, order[drawn], max_memory=max_memory)


def truncation(K: LowRankGram) -> float:
    """Return tr(K - F F^T) / tr K."""
    left = K.residual_trace
    return left / (left + float(K.diagonal().sum())) if left > 0.0 else 0.0
