"""Kernel ridge regression with an intercept b, as a bordered linear system.

    [ C   1 ] [a]   [y]
    [ 1^T 0 ] [b] = [0],       C = K + diag(alpha / w)

    u = C^-1 1,   b = u^T y / u^T 1,   a = C^-1 (y - b 1) = P y,   P = C^-1 - u u^T / u^T 1

The factorisation of C may come from any solver.  With sample weights w, the matrix
M = S K S + alpha I with S = diag(sqrt w) is factorised instead, and C^-1 = S M^-1 S.  M stays well
conditioned when some weights are tiny.  Without an intercept, P = C^-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import entry_point, slices
from .._report import Report, worst_report
from ._cholesky import Factor

_COLUMNS_PER_BLOCK = 256  # `explained` solves for this many columns at a time to limit memory


@entry_point
class BorderedSystem:
    """Kernel ridge regression from a factorised system, with or without an intercept.

    It computes the coefficients, leave-one-out errors and predictive variances.  The coefficients
    are a = P y, with P = C^-1 - u u^T / u^T 1 and u = C^-1 1, where C = K + diag(alpha / w) for
    sample weights w.  Without an intercept, P = C^-1.

    Parameters
    ----------
    factor : Factor
        A factorisation of C or, if `root` is given, of M = S K S + alpha I with S = diag(root).
    root : ndarray of shape (n,), optional
        Positive square roots of the sample weights.
    intercept : bool
        Whether the model has an intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import BorderedSystem, Cholesky
    >>> K = gram(Linear(), [[0.0], [1.0], [2.0]])
    >>> system = BorderedSystem(Cholesky().factorize(K, 0.1), intercept=True)
    >>> a, b = system.solve(np.array([[5.0], [7.0], [9.0]]))
    >>> b.round(4)  # with a smaller ridge: 5
    array([5.0952])
    """

    def __init__(self, factor: Factor, root: np.ndarray | None = None, *, intercept: bool) -> None:
        self.factor, self.root, self.intercept = factor, root, intercept
        self._u = self._inverse(np.ones((factor.size, 1)))[:, 0] if intercept else None
        self._reports_of_u: list[Report] = [factor.report] if intercept else []

    def solve(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients a of shape (n, q), and the intercepts b of shape (q,)."""
        return solve_with_intercept(self._inverse(Y), self._u, Y)

    @property
    def report(self) -> Report:
        """The report of the last solve, or that of u = C^-1 1 if it is worse.

        u affects every solution.
        """
        return worst_report([self.factor.report, *self._reports_of_u])

    def inverse(self, columns: Any = None) -> np.ndarray:
        """Return the columns of P with these indices; all columns by default.

        Column i of P contains the coefficients of the fit to the i-th unit vector.
        """
        n = self.factor.size
        columns = np.arange(n) if columns is None else columns
        E = np.zeros((n, len(columns)))
        E[columns, np.arange(len(columns))] = 1.0
        return self.solve(E)[0]

    def leave_one_out(self, A: np.ndarray) -> np.ndarray:
        """Return the leave-one-out errors y_i - f_-i(x_i) = a_i / P_ii.

        Here f_-i is the fit without point i.  The array A of shape (n, q) contains the coefficients
        a for each of the q outputs.
        """
        diagonal = self.factor.inverse_diagonal()
        if self.root is not None:
            diagonal = diagonal * np.square(self.root)
        scaled: np.ndarray = A / inverse_diagonal_with_intercept(diagonal, self._u)[:, None]
        return scaled

    def explained(self, K: np.ndarray) -> np.ndarray:
        """Return by how much the training data reduce the prior variance k(x, x) of new points x.

        The reduction is k_x^T C^-1 k_x for each column k_x of K = k(training points, new points).
        Here C is the regularised kernel matrix of the training points, and u = C^-1 1.  With an
        intercept, it is smaller by (1 - u^T k_x)^2 / u^T 1, the variance of the intercept.
        """
        out = np.empty(K.shape[1])
        for columns in slices(K.shape[1], _COLUMNS_PER_BLOCK):
            block = K[:, columns]
            out[columns] = np.einsum("ij,ij->j", block, self._inverse(block))
        if self._u is not None:
            out -= np.square(1.0 - self._u @ K) / self._u.sum()
        return out

    def _inverse(self, Y: np.ndarray) -> np.ndarray:
        """Return C^-1 Y."""
        if self.root is None:
            return np.asarray(self.factor.solve(Y))
        solution: np.ndarray = self.root[:, None] * self.factor.solve(self.root[:, None] * Y)
        return solution


def solve_with_intercept(
    A: np.ndarray, u: np.ndarray | None, Y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients and intercepts of kernel ridge regression.

    Given A = C^-1 Y and u = C^-1 1 for the regularised kernel matrix C, the intercepts are
    b = u^T Y / u^T 1, and the coefficients A - u b.  If u is None, there is no intercept: the
    coefficients are A, and b = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import solve_with_intercept
    >>> Y = np.array([[1.0], [3.0]])  # C = I: the coefficients are the differences from the mean
    >>> solve_with_intercept(Y, np.ones(2), Y)
    (array([[-1.],
           [ 1.]]), array([2.]))
    """
    if u is None:
        return A, np.zeros(Y.shape[1])
    b = u @ Y / u.sum()
    return A - u[:, None] * b, b


def inverse_diagonal_with_intercept(diagonal: np.ndarray, u: np.ndarray | None) -> np.ndarray:
    """Return the diagonal of P = C^-1 - u u^T / u^T 1, given that of C^-1 and u = C^-1 1.

    If u is None, there is no intercept, and P = C^-1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import inverse_diagonal_with_intercept
    >>> inverse_diagonal_with_intercept(np.ones(2), np.ones(2))
    array([0.5, 0.5])
    """
    return diagonal if u is None else diagonal - np.square(u) / u.sum()
