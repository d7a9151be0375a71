"""Settings for landmarks: how many to choose, and by which method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    Points,
    as_csr,
    as_float64,
    as_vectors,
    is_count,
    length,
    seeded_generator,
    take,
)
from ...kernels import Kernel
from ..feature_maps._nystroem_map import NystroemMap
from ._kmeans_landmarks import kmeans_centroids, kmeans_medoids, supports_kmeans_landmarks
from ._landmark_selection import choose_landmarks, landmark_choice_bytes

LANDMARK_METHODS = ("auto", "kmeans", "medoids", "rpcholesky", "uniform", "kmeans++", "leverage")
DEFAULT_RANK = 1000  # default number of landmarks; time grows with its square, memory linearly


@dataclass(frozen=True)
class Landmarks:
    """Specification of the landmarks S of a Nyström approximation.

    The approximation represents functions as linear combinations of k(s, .) for s in S.

    Parameters
    ----------
    rank : int, optional
        Number of landmarks; 1000 by default, or all points if there are fewer.
    method : str or points, default "auto"
        "kmeans" (centroids, for a radial kernel on dense vectors), "medoids" (the points nearest
        to the centroids), a method of `choose_landmarks`, or the landmarks themselves.  "auto" is
        "kmeans" if that is possible, else "rpcholesky".
    random_state : int, Generator, RandomState or None
        Seed or source of random numbers; None means 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> Landmarks(20).map(RBF(), X)
    <NystroemMap on 20 landmarks, RBF(length_scale=1.0)>
    """

    rank: int | None = None
    method: Any = "auto"
    random_state: Any = None

    def __post_init__(self) -> None:
        if self.rank is not None and not is_count(self.rank):
            raise ValueError(f"rank must be a positive integer or None, got {self.rank!r}")
        if isinstance(self.method, str) and self.method not in LANDMARK_METHODS:
            raise ValueError(
                f"unknown landmark method {self.method!r}; choose one of "
                f"{', '.join(map(repr, LANDMARK_METHODS))}, or pass the landmarks themselves"
            )
        if not isinstance(self.method, str) and not length(self.method):
            raise ValueError("the landmarks that were passed are empty; pass at least one")

    @property
    def given(self) -> bool:
        """Whether the user supplied the landmarks themselves instead of a method."""
        return not isinstance(self.method, str)

    def count(self, n: int) -> int:
        """Return the number of landmarks for n points."""
        if self.given:
            return length(self.method)
        return min(n, DEFAULT_RANK if self.rank is None else int(self.rank))

    def require(self, n: int, instead: str = "pass the landmarks themselves") -> None:
        """Raise an error if more landmarks are requested than there are points.

        `instead` is an alternative that the error message suggests.
        """
        if not self.given and self.rank is not None and self.rank > n:
            raise ValueError(
                f"rank={self.rank} landmarks cannot be chosen among {n} points; request fewer, or "
                f"{instead}"
            )

    def workspace(self, n: int) -> int:
        """Return the bytes needed to choose the landmarks among n points."""
        m = self.count(n)
        needs_nothing = self.given or self.method == "uniform" or m == n
        return 0 if needs_nothing else landmark_choice_bytes(n, m, dense=self.method == "medoids")

    def draw(self, kernel: Kernel, X: Points, n_threads: int | None = None) -> Any:
        """Return the user-supplied landmarks, or choose landmarks for the points X."""
        return self.choose(kernel, X, n_threads)[0]

    def choose(
        self, kernel: Kernel, X: Points, n_threads: int | None = None
    ) -> tuple[Any, np.ndarray | None]:
        """Return the landmarks and their indices in X.

        The indices are None if the landmarks are not points of X.
        """
        if self.given:
            return self._validated_points(kernel, X), None
        method, m = self.method, self.count(length(X))
        if method == "auto":
            method = "kmeans" if supports_kmeans_landmarks(kernel, X) else "rpcholesky"
        rng = seeded_generator(self.random_state)
        if method == "kmeans":
            return kmeans_centroids(kernel, X, m, random_state=rng, n_threads=n_threads), None
        if method == "medoids":
            chosen = kmeans_medoids(kernel, X, m, random_state=rng, n_threads=n_threads)
        else:
            chosen = choose_landmarks(kernel, X, m, method, random_state=rng, n_threads=n_threads)
        return take(as_csr(X), chosen), chosen

    def map(self, kernel: Kernel, X: Points, n_threads: int | None = None) -> NystroemMap:
        """Choose landmarks for the points X, and return their Nyström feature map."""
        return NystroemMap.on(kernel, self.draw(kernel, X, n_threads), n_threads)

    def _validated_points(self, kernel: Kernel, X: Points) -> Any:
        """Return the user-supplied landmarks after validation."""
        if not kernel.domain.on_vectors:
            return self.method
        Z = as_float64(as_vectors(self.method, "landmarks"))
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have {Z.shape[1]} columns, but X has {X.shape[1]}; both need the same "
                f"features"
            )
        return Z
