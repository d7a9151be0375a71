"""Labels in blocks: the classes, found in one pass, and the targets that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..blocks import Blocks, Rows
from ._decisions import coded
from ._sample import class_weights

__all__ = ["Coding"]


@dataclass(frozen=True)
class Coding:
    """Targets and weights of a block, from its labels: what `coded` makes of them."""

    classes: np.ndarray
    factors: np.ndarray  # the weight of each class

    @classmethod
    def of(cls, blocks: Blocks, class_weight: Any, owner: str) -> Self:
        """Find the classes, in one pass."""
        if blocks.y is None:
            raise ValueError(f"{owner} needs labels y: in blocks, or in one array")
        if np.ndim(blocks.y) != 1:
            raise ValueError(f"labels y have the shape {np.shape(blocks.y)}; one for each row")
        sums = _classes_of(blocks)
        classes = np.array(list(sums))
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs points of at least 2 classes, but those of positive weight are all "
                f"of one class: {classes.tolist()}"
            )
        if classes.dtype.kind == "f" and np.any(classes != np.round(classes)):
            raise ValueError(
                f"labels y are numbers such as {classes[classes != np.round(classes)][0]}, which "
                f"name no classes; for numbers take a regressor"
            )
        weights = np.array(list(sums.values()))
        factors = np.ones(len(classes))
        if class_weight is not None:
            factors = class_weights(class_weight, classes, weights)
        return cls(classes, factors)

    @property
    def outputs(self) -> tuple[int, Any]:
        """How many functions there are, and their loss."""
        Y, loss = coded(np.zeros(1, dtype=int), len(self.classes))
        return Y.shape[1], loss

    def places(self, y: np.ndarray) -> np.ndarray:
        """Return the places of labels among the classes; those of rows without weight are any."""
        return np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)

    def __call__(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        labels = self.places(rows.y)
        w = np.ones(len(labels)) if rows.weights is None else rows.weights
        return coded(labels, len(self.classes))[0], w * self.factors[labels]


def _classes_of(blocks: Blocks) -> dict[Any, float]:
    """Return the weight of each class, by its label, in one pass."""
    return dict(sorted(blocks.reduce(_classes, _added).items()))


def _classes(rows: Rows) -> dict[Any, float]:
    labels, places = np.unique(rows.y, return_inverse=True)
    sums = np.bincount(places, rows.weights, minlength=len(labels))
    return {label: float(w) for label, w in zip(labels.tolist(), sums, strict=True) if w > 0}


def _added(one: dict[Any, float], other: dict[Any, float]) -> dict[Any, float]:
    return {label: one.get(label, 0.0) + other.get(label, 0.0) for label in {**one, **other}}
