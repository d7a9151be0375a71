"""Landmarks: how many, how they are drawn, and the features on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._points import as_vectors, doubled, length, sliceable, take
from .._runtime import is_count, random_numbers
from ..kernels import Kernel
from ._centroids import centroids, has_centroids, medoids
from ._choose_landmarks import choose_landmarks, choosing_bytes
from ._nystroem import NystroemMap

__all__ = ["METHODS", "RANK", "Landmarks"]

METHODS = ("auto", "kmeans", "medoids", "rpcholesky", "uniform", "kmeans++", "leverage")
RANK = 1000  # landmarks by default


@dataclass(frozen=True)
class Landmarks:
    """A choice of landmarks S, in whose span {k(s, .)} a function is sought.

    Parameters
    ----------
    rank : int, optional
        How many; 1000 by default, or all points if there are fewer.
    method : str or points
        "kmeans" (centroids, for a radial kernel on dense vectors), "medoids" (the points nearest
        to these), a method of `choose_landmarks`, or the landmarks themselves.  "auto": "kmeans"
        where that is possible, else "rpcholesky".
    random_state : int, Generator, RandomState or None
        None stands for 0.

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
        if isinstance(self.method, str) and self.method not in METHODS:
            raise ValueError(
                f"there is no method {self.method!r} to choose landmarks; there are "
                f"{', '.join(map(repr, METHODS))}, or give the landmarks themselves"
            )
        if not isinstance(self.method, str) and not length(self.method):
            raise ValueError("at least one landmark is needed, got none")

    @property
    def given(self) -> bool:
        """Whether the landmarks are given, not chosen."""
        return not isinstance(self.method, str)

    def count(self, n: int) -> int:
        """Return how many there are for n points."""
        if self.given:
            return length(self.method)
        return min(n, RANK if self.rank is None else int(self.rank))

    def require(self, n: int, instead: str = "give the landmarks themselves") -> None:
        """Refuse a rank that n points do not have, and say what to do instead."""
        if not self.given and self.rank is not None and self.rank > n:
            raise ValueError(
                f"rank={self.rank} landmarks are to be chosen among {n} points; ask for fewer, or "
                f"{instead}"
            )

    def workspace(self, n: int) -> int:
        """Return the bytes that drawing them among n points takes."""
        m = self.count(n)
        none = self.given or self.method == "uniform" or m == n
        return 0 if none else choosing_bytes(n, m, held=self.method == "medoids")

    def draw(self, kernel: Kernel, X: Any, n_threads: int | None = None) -> Any:
        """Return the landmarks: those given, or those that the method chooses for the points X."""
        return self.choose(kernel, X, n_threads)[0]

    def choose(
        self, kernel: Kernel, X: Any, n_threads: int | None = None
    ) -> tuple[Any, np.ndarray | None]:
        """Return the landmarks and their places in X, None if they do not come from there."""
        if self.given:
            return self._checked(kernel, X), None
        method, m = self.method, self.count(length(X))
        if method == "auto":
            method = "kmeans" if has_centroids(kernel, X) else "rpcholesky"
        rng = random_numbers(self.random_state)
        if method == "kmeans":
            return centroids(kernel, X, m, random_state=rng, n_threads=n_threads), None
        if method == "medoids":
            chosen = medoids(kernel, X, m, random_state=rng, n_threads=n_threads)
        else:
            chosen = choose_landmarks(kernel, X, m, method, random_state=rng, n_threads=n_threads)
        return take(sliceable(X), chosen), chosen

    def map(self, kernel: Kernel, X: Any, n_threads: int | None = None) -> NystroemMap:
        """Draw them among the points X and factor their kernel matrix."""
        return NystroemMap.on(kernel, self.draw(kernel, X, n_threads), n_threads)

    def _checked(self, kernel: Kernel, X: Any) -> Any:
        if not kernel.on_vectors:
            return self.method
        Z = doubled(as_vectors(self.method, "landmarks"))
        if Z.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks have {Z.shape[1]} columns, but X has {X.shape[1]}; both need the same "
                f"features"
            )
        return Z
