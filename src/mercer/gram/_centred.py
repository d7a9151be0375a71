"""Centre a kernel matrix in feature space without forming H K H.

For weights w that sum to 1, centring replaces the features phi by phi - mu with the mean
mu = sum_j w_j phi(x_j).  The centred kernel matrix is

    K_c = (I - 1 w^T) K (I - w 1^T).

Kernel PCA needs the eigenpairs of S K_c S with S = diag(sqrt(n w)); for equal weights S = I.  H is
the usual centring matrix I - 1 1^T / n.
A product with S K_c S costs one product with K.  Traces, diagonals and error bounds also need the
means K w and the sum of squares of K.  Both are computed during the first product with several
columns, so that K is not evaluated again for them.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._core import entry_point, not_finite_error, slices
from ._dense import DenseGram
from ._operator import GramOperator


@entry_point
class CentredGram(LinearOperator):  # type: ignore[misc]  # SciPy has no types
    """Kernel matrix centred in feature space, as a linear operator.

    Kernel PCA and other methods subtract the mean mu of the features phi(x_i).  The operator does
    this without forming the centred matrix: a product costs one product with K.

    For weights w that sum to 1, the operator is S K_c S with K_c = (I - 1 w^T) K (I - w 1^T) and
    S = diag(sqrt(n w)).  For equal weights it is the usual H K H with H = I - 1 1^T / n.

    Parameters
    ----------
    gram : GramOperator
        The symmetric matrix K = k(X, X).
    weights : array-like of shape (n,), default None
        Non-negative weights of the points; they are normalised to sum to 1.  None means equal
        weights.

    Attributes
    ----------
    gram : GramOperator
        The uncentred matrix K.
    weights : ndarray of shape (n,)
        The weights w, which sum to 1.
    scale : ndarray of shape (n,)
        The diagonal of S.
    uncentred_diagonal : ndarray of shape (n,)
        The diagonal of K.
    means : ndarray of shape (n,)
        K w, the inner product of each phi(x_i) with the mean mu.
    grand_mean : float
        w^T K w = |mu|^2.

    References
    ----------
    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation, 1998.

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
            raise ValueError("centring needs a symmetric kernel matrix k(X, X); got k(X, Z) with Z")
        n = gram.shape[0]
        if n == 0:
            raise ValueError("centring needs at least one point, got none")
        self.gram = gram
        self.weights = np.full(n, 1.0 / n) if weights is None else _normalised(weights, n)
        self.scale = np.ones(n) if weights is None else np.sqrt(n * self.weights)
        # The diagonal is computed now, because `release` may overwrite K.
        self.uncentred_diagonal = np.asarray(gram.diagonal(), float)
        self._means: np.ndarray | None = None
        self._squares: float | None = None  # sum_ij S_ii^2 S_jj^2 K_ij^2
        super().__init__(dtype=gram.dtype, shape=gram.shape)

    @property
    def kernel(self) -> Any:
        """The kernel of the uncentred matrix."""
        return self.gram.kernel

    @property
    def means(self) -> np.ndarray:
        """The weighted mean of each row of K, K w."""
        if self._means is None:
            with np.errstate(over="ignore", invalid="ignore"):
                self._store_means(np.asarray(self.gram @ self.weights, dtype=float))
        return self._means  # type: ignore[return-value]

    @property
    def grand_mean(self) -> float:
        """The squared norm of the mean in feature space, w^T K w."""
        return float(self.weights @ self.means)

    # ------------------------------------------------------------------ products

    def rounded(self) -> CentredGram | None:
        """Return this operator with K in float32 but the same means, or None.

        Returns
        -------
        CentredGram of shape (n, n) or None
            None if K is not available in float32; see `GramOperator.rounded`.
        """
        single = self.gram.rounded()
        if single is None:
            return None
        self.uncentred_norm  # noqa: B018 - computed now, so that both operators share the result
        other = copy(self)
        other.gram = single
        return other

    def part(self, rows: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return some rows of a product, without computing the other rows.

        Parameters
        ----------
        rows : array of int of shape (r,)
            Indices of the rows.
        V : ndarray of shape (n, c)
            The right-hand factor.

        Returns
        -------
        ndarray of shape (r, c)
            The rows of the product of the operator with V.
        """
        U = self._inner(V)
        Y = np.asarray(self.gram.part(rows, U), dtype=float) - self.means @ U
        return np.asarray(self.scale[rows, None] * Y)

    def _inner(self, V: np.ndarray) -> np.ndarray:
        """Return (I - w 1^T) S V."""
        U: np.ndarray = self.scale[:, None] * V
        U -= self.weights[:, None] * U.sum(axis=0)
        return U

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        U = self._inner(V)
        if self._squares is None and U.shape[1] > 1:
            U = np.concatenate([U, self.weights[:, None]], axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                Y, self._squares = self.gram.with_squares(U, self.scale**2)
            Y = np.asarray(Y, dtype=float)
            self._store_means(Y[:, -1].copy())
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

    def _store_means(self, means: np.ndarray) -> None:
        """Store K w unless it is already stored; raise an error if it is not finite."""
        if not np.isfinite(self.weights @ means):
            raise not_finite_error(self.gram.kernel)
        if self._means is None:
            self._means = means

    # ------------------------------------------------------------------ norms and traces

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the operator, n w_i |phi(x_i) - mu|^2.

        Returns
        -------
        ndarray of shape (n,)
            For equal weights, these are the squared distances to the mean.
        """
        diagonal: np.ndarray = self.scale**2 * self.squared_distances()
        return diagonal

    def squared_distances(self) -> np.ndarray:
        """Return the squared distances of the points to their mean in feature space.

        |phi(x_i) - mu|^2 = K_ii - 2 (K w)_i + w^T K w

        Returns
        -------
        ndarray of shape (n,)
            They may be slightly negative because of rounding.
        """
        return self.uncentred_diagonal - 2.0 * self.means + self.grand_mean

    def trace(self) -> float:
        """Return the exact trace, n times the total variance.

        For equal weights this is sum_i K_ii - 1^T K 1 / n.

        Returns
        -------
        float
            The sum of all eigenvalues of the operator.
        """
        return float(self.diagonal().sum())

    @property
    def uncentred_norm(self) -> float:
        """The Frobenius norm of S K S before centring; rounding errors are proportional to it.

        If the squares overflow or underflow, the result is the sum of the absolute values of the
        diagonal, which is an upper bound of the norm if K is positive semidefinite.
        """
        if self._squares is None:
            Y, self._squares = self.gram.with_squares(self.weights[:, None], self.scale**2)
            self._store_means(np.asarray(Y, dtype=float)[:, 0])
        if self._in_range:
            return float(np.sqrt(self._squares))
        return float(np.sum(self.scale**2 * np.abs(self.uncentred_diagonal)))

    @property
    def _in_range(self) -> bool:
        """Whether the sum of the squared entries of K neither overflows nor underflows."""
        squares = self._squares or 0.0
        return 1e-250 < squares < 1e250 or not np.any(self.uncentred_diagonal)

    def squared_norm(self) -> float:
        """Return the squared Frobenius norm of the centred matrix.

        |S K_c S|_F^2 = |S K S|_F^2 - 2 n^2 sum_i w_i (K w)_i^2 + n^2 (w^T K w)^2

        Returns
        -------
        float
            The sum of the squared eigenvalues.  The result is inf, which is a valid upper bound, if
            the squares overflow or underflow.
        """
        n, size = self.shape[0], self.uncentred_norm
        if not self._in_range:
            return float("inf")
        means = 2.0 * float(self.weights @ self.means**2) - self.grand_mean**2
        return float(size**2 - n**2 * means)

    # ------------------------------------------------------------------ dense arrays

    def to_array(self) -> np.ndarray:
        """Return the centred matrix as a new array.

        Returns
        -------
        ndarray of shape (n, n)
            S K_c S.
        """
        return self._centre(self.gram.to_array())

    def release(self) -> np.ndarray:
        """Centre the array of a DenseGram in place and return it.

        The DenseGram cannot be used afterwards; see `DenseGram.release`.  Other operators remain
        usable, and the result is a new array.

        Returns
        -------
        ndarray of shape (n, n)
            S K_c S.
        """
        if isinstance(self.gram, DenseGram):
            self.uncentred_norm  # noqa: B018 - computed now, because error bounds need it later
            return self._centre(self.gram.release())
        return self.to_array()

    def _centre(self, K: np.ndarray) -> np.ndarray:
        """Centre and scale the array K in place, and return it."""
        # Updating K in strips of rows avoids a second n x n array.
        means, scale = self.means.astype(K.dtype), self.scale.astype(K.dtype)
        grand_mean, is_weighted = self.grand_mean, bool(np.any(scale != 1.0))
        for rows in slices(len(K), 256):
            K[rows] -= means
            K[rows] -= (means[rows] - grand_mean)[:, None]
            if is_weighted:
                K[rows] *= scale[rows, None]
                K[rows] *= scale
        return K

    def centre_expansion(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rewrite sum_i beta_i (phi(x_i) - mu) as an expansion in the uncentred phi(x_i).

        Parameters
        ----------
        beta : ndarray of shape (n, c)
            Coefficients of the centred features, one function per column.

        Returns
        -------
        gamma : ndarray of shape (n, c)
            beta - w (1^T beta), the coefficients of phi(x_i).
        offset : ndarray of shape (c,)
            gamma^T K w, the inner product with mu.  The score of a point x is
            sum_i gamma_i k(x_i, x) - offset.
        """
        gamma = beta - self.weights[:, None] * beta.sum(axis=0)
        return gamma, gamma.T @ self.means


def uncentred(gram: GramOperator | CentredGram) -> GramOperator:
    """Return the operator that a `CentredGram` wraps, or the operator itself."""
    return gram.gram if isinstance(gram, CentredGram) else gram


def _normalised(weights: Any, n: int) -> np.ndarray:
    """Validate the weights of n points and scale them to sum to 1."""
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,):
        raise ValueError(f"weights have shape {weights.shape}, but there are {n} points")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError("weights must be finite, non-negative, and not all zero")
    normalised: np.ndarray = weights / weights.sum()
    return normalised
