"""Centring in feature space as algebra: H K H is never formed.

With weights w (sum 1), phi is replaced by phi - mu, mu = sum_j w_j phi(x_j):

    K_c = (I - 1 w^T) K (I - w 1^T)

and kernel PCA needs the eigenpairs of S K_c S, S = diag(sqrt(n w)); for equal weights S = I.
A product with it needs no more than a product with K.  The means K w and the sum of squares of K,
which traces, diagonals and certificates need, ride along with the first product of several columns,
so that they cost no pass over K of their own.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._errors import not_finite
from .._runtime import entry_point, slices
from ._dense import DenseGram
from ._operator import GramOperator

__all__ = ["CentredGram"]


@entry_point
class CentredGram(LinearOperator):
    """S K_c S as an operator on top of a symmetric Gram.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        w, summing to 1.
    scale : ndarray of shape (n,)
        The diagonal of S.
    means : ndarray of shape (n,)
        K w, the value of mu at each point.
    grand_mean : float
        w^T K w = |mu|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import CentredGram, gram
    >>> from mercer.kernels import Linear
    >>> K = CentredGram(gram(Linear(), [[1.0], [2.0], [6.0]]))
    >>> K.to_array()
    array([[ 4.,  2., -6.],
           [ 2.,  1., -3.],
           [-6., -3.,  9.]])
    >>> float(K.trace())
    14.0
    """

    def __init__(self, gram: GramOperator, weights: Any = None) -> None:
        if not gram.symmetric:
            raise ValueError("centring needs a symmetric Gram k(X, X); got one with Z")
        n = gram.shape[0]
        if n == 0:
            raise ValueError("centring needs at least one point, got none")
        self.gram = gram
        self.weights = np.full(n, 1.0 / n) if weights is None else _normalised(weights, n)
        self.scale = np.ones(n) if weights is None else np.sqrt(n * self.weights)
        self.uncentred_diagonal = np.asarray(gram.diagonal(), float)  # K may be given away later
        self._means: np.ndarray | None = None
        self._squares: float | None = None  # sum_ij S_ii^2 S_jj^2 K_ij^2
        super().__init__(dtype=gram.dtype, shape=gram.shape)

    @property
    def kernel(self) -> Any:
        """The kernel of the Gram underneath."""
        return self.gram.kernel

    @property
    def means(self) -> np.ndarray:
        """K w."""
        if self._means is None:
            with np.errstate(over="ignore", invalid="ignore"):
                self._keep(np.asarray(self.gram @ self.weights, dtype=float))
        return self._means  # type: ignore[return-value]

    @property
    def grand_mean(self) -> float:
        """w^T K w."""
        return float(self.weights @ self.means)

    # ------------------------------------------------------------------ products

    def rounded(self) -> CentredGram | None:
        """Return the same with K in tiles of float32, and the means of this one; see there."""
        single = self.gram.rounded()
        if single is None:
            return None
        self.uncentred_norm  # noqa: B018 - so that both have the same numbers
        other = copy(self)
        other.gram = single
        return other

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return these rows of the product with V."""
        U = self._inner(V)
        Y = np.asarray(self.gram.part(rows, U), dtype=float) - self.means @ U
        return np.asarray(self.scale[rows, None] * Y)

    def _inner(self, V: np.ndarray) -> np.ndarray:
        """Return (I - w 1^T) S V."""
        U = self.scale[:, None] * V
        U -= self.weights[:, None] * U.sum(axis=0)
        return U

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        U = self._inner(V)
        if self._squares is None and U.shape[1] > 1:
            U = np.concatenate([U, self.weights[:, None]], axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                Y, self._squares = self.gram.with_squares(U, self.scale**2)
            Y = np.asarray(Y, dtype=float)
            self._keep(Y[:, -1].copy())
            Y = Y[:, :-1]
        else:
            Y = np.asarray(self.gram @ U, dtype=float)
        Y -= self.weights @ Y
        Y *= self.scale[:, None]
        return Y.astype(np.result_type(self.dtype, V.dtype), copy=False)

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(np.reshape(v, (-1, 1)))

    def _adjoint(self) -> CentredGram:
        return self

    def _transpose(self) -> CentredGram:
        return self

    def _keep(self, means: np.ndarray) -> None:
        if not np.isfinite(self.weights @ means):
            raise not_finite(self.gram.kernel)
        if self._means is None:
            self._means = means

    # ------------------------------------------------------------------ numbers

    def diagonal(self) -> np.ndarray:
        """Return n w_i |phi(x_i) - mu|^2."""
        return self.scale**2 * self.squared_distances()

    def squared_distances(self) -> np.ndarray:
        """Return |phi(x_i) - mu|^2 = K_ii - 2 (K w)_i + w^T K w."""
        return self.uncentred_diagonal - 2.0 * self.means + self.grand_mean

    def trace(self) -> float:
        """Return the total variance times n, exactly: sum K_ii - 1^T K 1 / n for equal weights."""
        return float(self.diagonal().sum())

    @property
    def uncentred_norm(self) -> float:
        """The Frobenius norm of S K S, before centring: what rounding is measured against.

        Its trace instead, for a positive semidefinite K not less, if squares are out of range.
        """
        if self._squares is None:
            Y, self._squares = self.gram.with_squares(self.weights[:, None], self.scale**2)
            self._keep(np.asarray(Y, dtype=float)[:, 0])
        if self._in_range:
            return float(np.sqrt(self._squares))
        return float(np.sum(self.scale**2 * np.abs(self.uncentred_diagonal)))

    @property
    def _in_range(self) -> bool:
        """Whether squares of the entries of K are numbers: neither overflow nor underflow."""
        squares = self._squares or 0.0
        return 1e-250 < squares < 1e250 or not np.any(self.uncentred_diagonal)

    def squared_norm(self) -> float:
        """Return |S K_c S|_F^2 = |S K S|_F^2 - 2 n^2 sum w_i (K w)_i^2 + n^2 (w^T K w)^2.

        inf, of which nothing follows, if the squares are out of the range of numbers.
        """
        n, size = self.shape[0], self.uncentred_norm
        if not self._in_range:
            return float("inf")
        means = 2.0 * float(self.weights @ self.means**2) - self.grand_mean**2
        return size**2 - n**2 * means

    # ------------------------------------------------------------------ as an array

    def to_array(self) -> np.ndarray:
        """Return the centred matrix as an array of its own."""
        return self._centre(self.gram.to_array())

    def release(self) -> np.ndarray:
        """Centre the Gram's own array in place and hand it over; see DenseGram.release."""
        if isinstance(self.gram, DenseGram):
            self.uncentred_norm  # noqa: B018 - certificates ask for it when the array is gone
            return self._centre(self.gram.release())
        return self.to_array()

    def _centre(self, K: np.ndarray) -> np.ndarray:
        # one rank-two update by strips of rows, so that no second matrix appears
        means, scale = self.means.astype(K.dtype), self.scale.astype(K.dtype)
        grand_mean, uneven = self.grand_mean, bool(np.any(scale != 1.0))
        for rows in slices(len(K), 256):
            K[rows] -= means
            K[rows] -= (means[rows] - grand_mean)[:, None]
            if uneven:
                K[rows] *= scale[rows, None]
                K[rows] *= scale
        return K

    def centre_expansion(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn sum_i beta_i (phi(x_i) - mu) into coefficients of phi(x_i), and its value at mu.

        Returns gamma = beta - w (1^T beta) and <., mu> = gamma^T K w, so that the score of x is
        sum_i gamma_i k(x_i, x) minus that value.
        """
        gamma = beta - self.weights[:, None] * beta.sum(axis=0)
        return gamma, gamma.T @ self.means


def _normalised(weights: Any, n: int) -> np.ndarray:
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,):
        raise ValueError(f"weights have shape {weights.shape}, but there are {n} points")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError("weights must be finite, non-negative, and not all zero")
    return weights / weights.sum()
