"""The embeddings that were fitted most recently, so that undo does not fit a model again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...kernels import Kernel
from ._embeddings import Embedding

_MAX_STORED_EMBEDDINGS = 8  # at most this many embeddings are stored for each scene


class FittedModels:
    """The embeddings that were fitted most recently to the training points of a scene.

    All pages that show the scene share them.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Embedding, Kernel | None]] = []  # the most recent is the last
        self._lock = threading.Lock()

    def add(self, embedding: Embedding, kernel: Kernel | None = None) -> None:
        """Store an embedding; `kernel` defines its distances if the points are not vectors.

        Models that the user passed and the data itself are not stored, because requests do not
        fit them.
        """
        if embedding.name in ("given", "data"):
            return
        with self._lock:
            others = [pair for pair in self._entries if pair[0].model is not embedding.model]
            self._entries = [*others, (embedding, kernel)][-_MAX_STORED_EMBEDDINGS:]

    def find(self, is_wanted: Callable[[Embedding, Kernel | None], bool]) -> Embedding | None:
        """Return the most recent embedding that satisfies a condition; None if there is none."""
        with self._lock:
            entries = self._entries[::-1]
        found = next((pair for pair in entries if is_wanted(*pair)), None)
        if found is None:
            return None
        self.add(*found)
        return found[0]
