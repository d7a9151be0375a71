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
    """Return F F^T for each (kernel, points); an empty list if one of them has no features.

    A kernel has no features if it is not positive definite, or if its points have no canonical
    order.  If features are `required`, the error that gives the reason is raised instead.
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
            f"landmarks must not depend on the order of the points, or the level of the test is "
            f"wrong, but {error}; use method='permutation', or points that are vectors, strings, "
            f"numbers, or tuples, lists and sets of them"
        ) from error
    landmarks = choose_landmarks(kernel, take(X, order), min(rank, length(X)), random_state=rng)
    return LowRankGram(kernel, X, order[landmarks], max_memory=max_memory)


def truncation(K: LowRankGram) -> float:
    """Return the relative truncation error tr(K - F F^T) / tr K."""
    residual = K.residual_trace
    return residual / (residual + float(K.diagonal().sum())) if residual > 0.0 else 0.0
