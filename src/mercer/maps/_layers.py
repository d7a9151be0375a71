"""Affine maps with a function between them: the two halves of an autoencoder."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._runtime import slices

__all__ = ["ACTIVATIONS", "Layers"]

_NUMBERS = 2**18  # of values of the widest layer at a time

# s(x), and s'(x) by the value s(x)
ACTIVATIONS: dict[str, tuple[Function[[Any], Any], Function[[Any], Any]]] = {
    "tanh": (np.tanh, lambda s: 1.0 - s * s),
    "logistic": (lambda x: 0.5 + 0.5 * np.tanh(0.5 * x), lambda s: s * (1.0 - s)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda s: (s > 0.0).astype(float)),
    "identity": (lambda x: x, np.ones_like),
}


@dataclass(frozen=True, eq=False)
class Layers:
    """f(x) = A_m(s(A_(m-1)(... s(A_1(x))))) with A_j(x) = x W_j + b_j; the last has no s.

    Parameters
    ----------
    weights : tuple of ndarrays
        W_j, of shape (from, to).
    biases : tuple of ndarrays
        b_j.
    activation : {"tanh", "logistic", "relu", "identity"}
        s.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import Layers
    >>> f = Layers((np.eye(2), np.array([[1.0], [-1.0]])), (np.zeros(2), np.ones(1)), "tanh")
    >>> f(np.array([[0.0, 0.0], [5.0, -5.0]])).round(3)
    array([[1.],
           [3.]])
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str = "tanh"

    @classmethod
    def of(cls, theta: np.ndarray, sizes: tuple[int, ...], activation: str) -> Layers:
        """Return layers of these sizes that look into a vector of all W_1, b_1, W_2, b_2, ..."""
        weights, biases, start = [], [], 0
        for a, b in pairwise(sizes):
            weights.append(theta[start : start + a * b].reshape(a, b))
            biases.append(theta[start + a * b : start + (a + 1) * b])
            start += (a + 1) * b
        return cls(tuple(weights), tuple(biases), activation)

    @property
    def theta(self) -> np.ndarray:
        """All W_1, b_1, W_2, b_2, ... in one vector."""
        pairs = zip(self.weights, self.biases, strict=True)
        return np.concatenate([part.ravel() for pair in pairs for part in pair])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x) for each row, a block of rows at a time."""
        widest = max(W.shape[1] for W in self.weights)
        blocks = slices(len(X), max(1, _NUMBERS // widest))
        return np.concatenate([self.values(X[rows])[-1] for rows in blocks])

    def values(self, X: np.ndarray) -> list[np.ndarray]:
        """Return X and the values of all layers."""
        s, _ = ACTIVATIONS[self.activation]
        found = [X]
        for j, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if j:
                found[j] = s(found[j])
            found.append(found[j] @ W + b)
        return found

    def pullback(self, values: list[np.ndarray], G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients in theta and in X of a function whose gradient in f(X) is G."""
        _, slope = ACTIVATIONS[self.activation]
        parts: list[np.ndarray] = []
        for j in reversed(range(len(self.weights))):
            parts = [(values[j].T @ G).ravel(), G.sum(axis=0), *parts]
            G = G @ self.weights[j].T
            if j:
                G *= slope(values[j])
        return np.concatenate(parts), G
