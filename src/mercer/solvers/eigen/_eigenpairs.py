"""The result type of all eigensolvers, and its conventions for order, signs and equal eigenvalues.

Eigenvalues are in descending order.  The sign of each eigenvector makes its entry of largest
modulus positive (the first such entry if there are ties).

If eigenvalues coincide, any basis of their eigenspace is valid.  The basis returned here depends
only on the eigenspace and not on the solver, provided that the whole eigenspace is among the k
pairs and has at most 64 dimensions.  It is chosen as follows: project each coordinate vector e_i
onto the eigenspace, and take the longest projection (lowest i if there are ties), normalised, as
the first vector.  The next vectors are found in the same way in the orthogonal complement of the
previous ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from ..._core import Stopwatch, warn_caller
from .._report import Report, Status
from ._certificate import Certificate, certify

_MAX_EIGENSPACE_DIM = 64  # larger eigenspaces keep the solver's basis, to limit the cost
_TIE_TOL = 1e-6  # entries that differ from the largest by at most this fraction count as ties


@dataclass(frozen=True)
class EigenPairs:
    """Eigenpairs of a kernel matrix, as returned by every eigensolver.

    The sign of each eigenvector makes its entry of largest modulus positive, and the basis of equal
    eigenvalues does not depend on the solver.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Eigenvalues in descending order.
    vectors : ndarray of shape (n, k)
        Eigenvectors, one per column.
    residuals : ndarray of shape (k,)
        The norms |A u - l u| of eigenvalue l and eigenvector u, where A is the kernel matrix.
    report : Report
        Solver, status and timing.
    certificate : Certificate
        Certified bounds on the eigenvalues and on the angles of the eigenvectors.
    basis : FeatureBasis or None, default=None
        The feature map and the eigenvectors in feature space, for solvers that work on features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import DenseEigen
    >>> pairs = DenseEigen().eigenpairs(gram("Linear()", np.diag([1.0, 2.0])), 2)
    >>> pairs.values, pairs.first(1).values
    (array([4., 1.]), array([4.]))
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    report: Report
    certificate: Certificate
    basis: Any = None

    def completed(self, watch: Stopwatch) -> EigenPairs:
        """Return the pairs with the residual, the time and the bounds in their report.

        Parameters
        ----------
        watch : Stopwatch
            Measures the elapsed time of the solver.

        Returns
        -------
        EigenPairs
            The same pairs with a new report.
        """
        largest = max(float(np.abs(self.values).max(initial=0.0)), 1e-300)
        report = replace(
            self.report,
            residual=float(self.residuals.max(initial=0.0)) / largest,
            seconds=watch.seconds,
            certificate={"nothing missed": str(self.certificate), "bounds": self.certificate},
        )
        return replace(self, report=report)

    def first(self, k: int) -> EigenPairs:
        """Return the first k pairs.

        Parameters
        ----------
        k : int
            Number of pairs, at most that of this object.

        Returns
        -------
        EigenPairs
            Eigenvalues of shape (k,) and eigenvectors of shape (n, k), with their certificate.
        """
        basis = self.basis
        return replace(
            self,
            values=self.values[:k],
            vectors=self.vectors[:, :k],
            residuals=self.residuals[:k],
            certificate=self.certificate.first(k),
            basis=None if basis is None else basis._replace(axes=basis.axes[:, :k]),
        )


def assemble_eigenpairs(
    report: Report,
    watch: Stopwatch,
    times: Callable[[np.ndarray], np.ndarray],
    norms: tuple[float, float],
    values: np.ndarray,
    vectors: np.ndarray,
    *,
    following: float | None = None,
    dtype: DTypeLike | None = None,
    tol: float = 0.0,
    advice: str = "",
) -> EigenPairs:
    """Sort the pairs, recompute their residuals with one more product, and certify them.

    `report` holds the solver, its status and number of products, and a message.  `times` multiplies
    the matrix by a block of vectors.  `norms` is the result of `matrix_norms`.  `dtype` is the
    precision of the matrix, by default that of the vectors.  The status CONVERGED is kept only if
    each residual is at most `tol` times its eigenvalue, or no larger than rounding errors.
    Otherwise it becomes NOT_CONVERGED, with a warning that ends with `advice`.
    """
    dtype = vectors.dtype if dtype is None else dtype
    slack = eigenvalue_rounding(dtype, norms[1])
    values, vectors = sort_and_fix_signs(values, vectors, slack)
    residuals = np.empty(len(values))
    for start in range(0, len(values), 256):  # chunks avoid a second (n, k) array
        columns = slice(start, start + 256)
        difference = times(vectors[:, columns]) - vectors[:, columns] * values[columns]
        residuals[columns] = np.linalg.norm(difference, axis=0)
    floor = eigenvalue_rounding(dtype, max(norms[1], float(np.abs(values).max(initial=0.0))))
    large = residuals > np.maximum(tol * np.abs(values), floor)
    if report.status is Status.CONVERGED and large.any():
        worst, n_iter = relative_residual(residuals[large], values[large]), report.n_iter
        text = f"relative residual {worst:.1e} after {n_iter} products, {report.message}"
        report = replace(report, status=Status.NOT_CONVERGED, message=text.rstrip(", "))
        warn_caller(
            f"{report.solver.partition('(')[0]} did not converge: largest relative residual "
            f"{worst:.1e} after {n_iter} products, but {tol:.1e} was required; {advice}",
            ConvergenceWarning,
        )
    certificate = certify(
        values,
        residuals,
        len(values),
        squared_norm=norms[0],
        slack=slack,
        floor=float(np.sqrt(8 * np.finfo(dtype).eps)) * norms[1],
        following=following,
    )
    return EigenPairs(values, vectors, residuals, report, certificate).completed(watch)


def relative_residual(residuals: np.ndarray, values: np.ndarray) -> float:
    """Return the largest residual relative to its eigenvalue."""
    with np.errstate(over="ignore"):
        return float(np.max(residuals / np.maximum(np.abs(values), 1e-300)))


def matrix_norms(gram: LinearOperator) -> tuple[float, float]:
    """Return the squared Frobenius norm of A, and the norm to which its rounding is proportional.

    The second norm is the Frobenius norm of A; if A is centred, that of the uncentred matrix.  For
    operators that cannot compute their norm, returns (inf, 0).
    """
    if hasattr(gram, "uncentred_norm"):
        return gram.squared_norm(), gram.uncentred_norm
    if hasattr(gram, "with_squares"):
        n = gram.shape[0]
        squared = gram.with_squares(np.zeros((n, 1)), np.ones(n))[1]
        return squared, float(np.sqrt(squared))
    return float("inf"), 0.0


def eigenvalue_rounding(dtype: DTypeLike, norm: float) -> float:
    """Return a bound on the change of an eigenvalue by rounding, for a matrix of the given norm."""
    return 16.0 * float(np.finfo(dtype).eps) * norm


def sort_and_fix_signs(
    values: np.ndarray, vectors: np.ndarray, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Sort in descending order, choose the bases of degenerate eigenspaces, and fix the signs.

    Eigenvalues that differ by at most `tolerance` count as equal.
    """
    order: slice | np.ndarray = slice(None, None, -1)  # LAPACK returns ascending values
    if np.any(values[1:] < values[:-1]):
        order = np.argsort(values, kind="stable")[::-1]
    values, vectors = values[order], vectors[:, order]
    for start, stop in degenerate_ranges(values, tolerance):
        vectors[:, start:stop] = _canonical_basis(vectors[:, start:stop])
    vectors *= canonical_signs(vectors)
    return values, vectors


def degenerate_ranges(values: np.ndarray, tolerance: float) -> list[tuple[int, int]]:
    """Return the half-open index ranges of equal eigenvalues.

    The null space and eigenspaces of more than 64 dimensions are omitted, because their bases are
    left as the solver returned them.
    """
    ranges, start = [], 0
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i - 1] - values[i] <= tolerance:
            continue
        if 1 < i - start <= _MAX_EIGENSPACE_DIM and values[i - 1] > tolerance:
            ranges.append((start, i))
        start = i
    return ranges


def canonical_signs(vectors: np.ndarray) -> np.ndarray:
    """Return, for each column, the sign that makes its first entry of largest modulus positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import canonical_signs
    >>> canonical_signs(np.array([[0.6, -0.8], [0.8, 0.6]]))
    array([ 1., -1.])
    """
    if not vectors.size:
        return np.ones(vectors.shape[1], dtype=vectors.dtype)
    moduli = np.abs(vectors)
    first = np.argmax(moduli >= (1.0 - _TIE_TOL) * moduli.max(axis=0), axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs).astype(vectors.dtype)


def _canonical_basis(U: np.ndarray) -> np.ndarray:
    """Return a basis of span(U) that depends only on the span, as the module docstring defines."""
    rotation, remainder = np.zeros((U.shape[1], U.shape[1])), U.astype(float)
    for j in range(U.shape[1]):
        lengths = np.einsum("ij,ij->i", remainder, remainder)
        i = int(np.argmax(lengths >= (1.0 - _TIE_TOL) * lengths.max()))
        row = remainder[i] - rotation @ (rotation.T @ remainder[i])
        rotation[:, j] = row / np.linalg.norm(row)
        remainder -= np.outer(remainder @ rotation[:, j], rotation[:, j])
    return (U @ rotation).astype(U.dtype)


def check_k(k: int | None, n: int) -> int:
    """Validate the number of eigenpairs k; None means all n."""
    if k is None:
        return n
    if not 1 <= k <= n:
        raise ValueError(f"the number of eigenpairs must lie between 1 and n = {n}, got {k}")
    return int(k)
