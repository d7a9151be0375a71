"""Multilayer perceptrons: the encoder and the decoder of an autoencoder."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core import slices

__all__ = ["ACTIVATIONS", "MLP"]

_VALUES_PER_BLOCK = 2**18  # number of values of the widest layer in memory at a time

# The activation function s(x), and its derivative s'(x) as a function of the value s(x).
ACTIVATIONS: dict[str, tuple[Function[[Any], Any], Function[[Any], Any]]] = {
    "tanh": (np.tanh, lambda s: 1.0 - s * s),
    "logistic": (lambda x: 0.5 + 0.5 * np.tanh(0.5 * x), lambda s: s * (1.0 - s)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda s: (s > 0.0).astype(float)),
    "identity": (lambda x: x, np.ones_like),
}


@dataclass(frozen=True, eq=False)
class MLP:
    """A multilayer perceptron with a linear output layer.

    It computes f(x) = A_m(s(A_(m-1)(... s(A_1(x))))) with A_j(x) = x W_j + b_j.

    Parameters
    ----------
    weights : tuple of ndarrays of shape (n_in, n_out)
        The weight matrices W_j.
    biases : tuple of ndarrays of shape (n_out,)
        The biases b_j.
    activation : {"tanh", "logistic", "relu", "identity"}, default="tanh"
        The activation function s of the hidden layers.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import MLP
    >>> f = MLP((np.eye(2), np.array([[1.0], [-1.0]])), (np.zeros(2), np.ones(1)), "tanh")
    >>> f(np.array([[0.0, 0.0], [5.0, -5.0]])).round(3)
    array([[1.],
           [3.]])
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str = "tanh"

    @classmethod
    def of(cls, theta: np.ndarray, sizes: tuple[int, ...], activation: str) -> MLP:
        """Create layers of these sizes, as views of the vector theta of W_1, b_1, W_2, b_2, ..."""
        weights, biases, start = [], [], 0
        for a, b in pairwise(sizes):
            weights.append(theta[start : start + a * b].reshape(a, b))
            biases.append(theta[start + a * b : start + (a + 1) * b])
            start += (a + 1) * b
        return cls(tuple(weights), tuple(biases), activation)

    @property
    def theta(self) -> np.ndarray:
        """All parameters W_1, b_1, W_2, b_2, ... in one vector."""
        pairs = zip(self.weights, self.biases, strict=True)
        return np.concatenate([part.ravel() for pair in pairs for part in pair])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x) for each row of X, computed in blocks of rows."""
        widest = max(W.shape[1] for W in self.weights)
        blocks = slices(len(X), max(1, _VALUES_PER_BLOCK // widest))
        return np.concatenate([self.values(X[rows])[-1] for rows in blocks])

    def values(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the input of each layer (after the activation), followed by the output f(X)."""
        s, _ = ACTIVATIONS[self.activation]
        outputs = [X]
        for j, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if j:
                outputs[j] = s(outputs[j])
            outputs.append(outputs[j] @ W + b)
        return outputs

    def pullback(self, values: list[np.ndarray], G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Back-propagate G, the gradient of a scalar with respect to f(X), to theta and X.

        `values` is the result of the method `values` for X.  Returns the gradients with respect to
        theta and X.
        """
        _, derivative = ACTIVATIONS[self.activation]
        parts: list[np.ndarray] = []
        for j in reversed(range(len(self.weights))):
            parts = [(values[j].T @ G).ravel(), G.sum(axis=0), *parts]
            G = G @ self.weights[j].T
            if j:
                G *= derivative(values[j])
        return np.concatenate(parts), G
