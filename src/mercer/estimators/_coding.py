"""Label encoding for data in blocks: find the classes in one pass, then encode each block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..blocks import Blocks, Rows
from ._decisions import coded
from ._sample import class_weights

__all__ = ["LabelEncoding"]


@dataclass(frozen=True)
class LabelEncoding:
    """The classes of labels in blocks, with the encoding of the labels of a block.

    Calling the object with the rows of a block returns the targets that `coded` computes, and the
    weights of the rows multiplied by their class weights.
    """

    classes: np.ndarray
    factors: np.ndarray  # the class weight of each class

    @classmethod
    def of(cls, blocks: Blocks, class_weight: Any, owner: str) -> Self:
        """Find the classes in one pass over the blocks.

        Parameters
        ----------
        blocks : Blocks
            Data with labels y of shape (n,).
        class_weight : dict, "balanced" or None
        owner : str
            The name of the estimator, for error messages.
        """
        if blocks.y is None:
            raise ValueError(f"{owner} needs labels y, as blocks or as one array")
        if np.ndim(blocks.y) != 1:
            raise ValueError(
                f"labels y have the shape {np.shape(blocks.y)}; expected one label per row"
            )
        weight_sums = _class_weight_sums(blocks)
        classes = np.array(list(weight_sums))
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs points of at least 2 classes, but the points of positive weight "
                f"are all of one class: {classes.tolist()}"
            )
        if classes.dtype.kind == "f" and np.any(classes != np.round(classes)):
            raise ValueError(
                f"labels y are numbers such as {classes[classes != np.round(classes)][0]}, which "
                f"are not class labels; for continuous targets use a regressor"
            )
        weights = np.array(list(weight_sums.values()))
        factors = np.ones(len(classes))
        if class_weight is not None:
            factors = class_weights(class_weight, classes, weights)
        return cls(classes, factors)

    @property
    def outputs(self) -> tuple[int, Any]:
        """The number of functions to fit, and their loss."""
        Y, loss = coded(np.zeros(1, dtype=int), len(self.classes))
        return Y.shape[1], loss

    def class_indices(self, y: np.ndarray) -> np.ndarray:
        """Return the index of each label in `classes`.

        Labels that occur only in rows of weight 0 are not in `classes`; their index is arbitrary,
        but valid.
        """
        return np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)

    def __call__(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets of shape (n, q) and the weights of the rows of a block."""
        labels = self.class_indices(rows.y)
        w = np.ones(len(labels)) if rows.weights is None else rows.weights
        return coded(labels, len(self.classes))[0], w * self.factors[labels]


def _class_weight_sums(blocks: Blocks) -> dict[Any, float]:
    """Return the total weight of each class, by label in sorted order, in one pass."""
    return dict(sorted(blocks.reduce(_block_weight_sums, _merge_weight_sums).items()))


def _block_weight_sums(rows: Rows) -> dict[Any, float]:
    """Return the total weight of each class in one block, without classes of weight 0."""
    labels, indices = np.unique(rows.y, return_inverse=True)
    sums = np.bincount(indices, rows.weights, minlength=len(labels))
    return {label: float(w) for label, w in zip(labels.tolist(), sums, strict=True) if w > 0}


def _merge_weight_sums(left: dict[Any, float], right: dict[Any, float]) -> dict[Any, float]:
    """Return the sums of the class weights of two sets of blocks."""
    return {label: left.get(label, 0.0) + right.get(label, 0.0) for label in {**left, **right}}
