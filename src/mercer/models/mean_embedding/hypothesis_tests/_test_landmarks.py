"""Low-rank kernel matrices F F^T for permutation tests, from Nyström features.

A permutation test with the kernel f(x) . f(z) has an exact level if the features f do not depend on
the order of the points.  The number of features affects only its power.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...._core import NotPositiveDefiniteError, as_csr, length, take
from ....gram import LowRankGram, choose_landmarks
from ....kernels import Kernel
from .._canonical_order import UnorderableError, canonical_order
from .._sample_validation import KernelAndPoints, centre_linear_terms

__all__ = ["landmark_gram", "landmark_grams", "truncation"]


def landmark_grams(
    samples: Iterable[KernelAndPoints],
    rank: int,
    rng: np.random.Generator,
    max_memory: Any,
    required: bool,
) -> list[LowRankGram]:
    """Return F F^T for each pair (kernel, points), or an empty list if a pair has no features.

    There are no features if the kernel is not positive definite, or if the points have no canonical
    order.  If `required` is True, an error with the reason is raised instead.
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
    """Return F F^T with `rank` landmarks, which are chosen independently of the order of X."""
    kernel, X = centre_linear_terms(kernel, as_csr(X))
    try:
        order = canonical_order(X, kernel)
    except UnorderableError as error:
        raise UnorderableError(
            f"the landmarks must not depend on the order of the points, because otherwise the "
            f"level of the test would be wrong, but {error}; use method='permutation', or points "
            f"that are vectors, strings, numbers, or tuples, lists and sets of these"
        ) from error
    landmarks = choose_landmarks(kernel, take(X, order), min(rank, length(X)), random_state=rng)
    return LowRankGram(kernel, X, order[landmarks], max_memory=max_memory)


def truncation(K: LowRankGram) -> float:
    """Return the relative truncation error tr(K - F F^T) / tr K."""
    residual = K.residual_trace
    return residual / (residual + float(K.diagonal().sum())) if residual > 0.0 else 0.0
