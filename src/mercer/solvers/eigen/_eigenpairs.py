"""Eigenpairs as every solver returns them: in order, with a sign, a basis and a certificate.

Eigenvalues descend.  A vector's sign makes its entry of largest modulus positive, the first one if
several are as large.  Where eigenvalues coincide, any basis of their eigenspace is right: the one
chosen depends on the eigenspace alone, not on the solver (if all of it, up to 64 dimensions, is
among the k).  Its first vector is the longest projection of a unit vector e_i, i the lowest index
of those; then the next in what remains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch
from .._report import Report, Status
from ._certificate import Certificate, certify

__all__ = [
    "EigenPairs",
    "check_k",
    "equal_ranges",
    "in_order",
    "measured",
    "norms_of",
    "relative_residual",
    "rounding",
    "signs_of",
]

_LARGEST = 64  # dimensions of an eigenspace up to which its basis is chosen
_TIE = 1e-6  # entries this much smaller than the largest, relatively, count as equal to it


@dataclass(frozen=True)
class EigenPairs:
    """Eigenvalues (k,), descending; eigenvectors (n, k); residuals (k,); what was done.

    `basis` is set by a solver that works in features phi of the points: the feature map and the
    eigenvectors in feature space.

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

    @classmethod
    def reported(
        cls,
        solver: str,
        status: Status,
        watch: Stopwatch,
        values: np.ndarray,
        vectors: np.ndarray,
        residuals: np.ndarray,
        certificate: Certificate,
        *,
        n_iter: int = 0,
        message: str = "",
        basis: Any = None,
    ) -> EigenPairs:
        """Return the pairs with the report of the solver that found them."""
        largest = max(float(np.abs(values).max(initial=0.0)), 1e-300)
        residual = float(residuals.max(initial=0.0)) / largest
        bounds = {"nothing missed": str(certificate), "bounds": certificate}
        report = Report(solver, status, n_iter, residual, watch.seconds, message, bounds)
        return cls(values, vectors, residuals, report, certificate, basis)

    def first(self, k: int) -> EigenPairs:
        """Return the first k pairs alone."""
        basis = self.basis
        return replace(
            self,
            values=self.values[:k],
            vectors=self.vectors[:, :k],
            residuals=self.residuals[:k],
            certificate=self.certificate.first(k),
            basis=None if basis is None else basis._replace(axes=basis.axes[:, :k]),
        )


def measured(
    solver: str,
    times: Callable[[np.ndarray], np.ndarray],
    values: np.ndarray,
    vectors: np.ndarray,
    *,
    norms: tuple[float, float],
    status: Status,
    watch: Stopwatch,
    n_iter: int = 0,
    message: str = "",
    following: float | None = None,
    dtype: Any = None,
    tol: float = 0.0,
    advice: str = "",
) -> EigenPairs:
    """Order the pairs, recompute their residuals with one more product, and certify them.

    `norms` are the squared Frobenius norm of the matrix, and the norm that its rounding goes with;
    `dtype` is its precision, that of the vectors by default.  An iteration that says it has
    converged is believed if each residual is at most `tol` times its eigenvalue, or at rounding.
    """
    dtype = vectors.dtype if dtype is None else dtype
    slack = rounding(dtype, norms[1])
    values, vectors = in_order(values, vectors, slack)
    residuals = np.empty(len(values))
    for start in range(0, len(values), 256):  # by columns, so that no second set of vectors appears
        part = slice(start, start + 256)
        gap = times(vectors[:, part]) - vectors[:, part] * values[part]
        residuals[part] = np.linalg.norm(gap, axis=0)
    floor = rounding(dtype, max(norms[1], float(np.abs(values).max(initial=0.0))))
    far = residuals > np.maximum(tol * np.abs(values), floor)
    if status is Status.CONVERGED and far.any():
        status, left = Status.NOT_CONVERGED, relative_residual(residuals[far], values[far])
        message = f"relative residual {left:.1e} after {n_iter} products, {message}".rstrip(", ")
        warn_caller(
            f"{solver.partition('(')[0]} did not converge: largest relative residual {left:.1e} "
            f"after {n_iter} products, {tol:.1e} was asked for; {advice}",
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
    found = (values, vectors, residuals, certificate)
    return EigenPairs.reported(solver, status, watch, *found, n_iter=n_iter, message=message)


def relative_residual(residuals: np.ndarray, values: np.ndarray) -> float:
    """Return the largest residual relative to its eigenvalue."""
    with np.errstate(over="ignore"):
        return float(np.max(residuals / np.maximum(np.abs(values), 1e-300)))


def norms_of(gram: Any) -> tuple[float, float]:
    """Return |A|_F^2 and the norm that rounding goes with; for other operators inf and 0."""
    if hasattr(gram, "uncentred_norm"):
        return gram.squared_norm(), gram.uncentred_norm
    if hasattr(gram, "with_squares"):
        n = gram.shape[0]
        squared = gram.with_squares(np.zeros((n, 1)), np.ones(n))[1]
        return squared, float(np.sqrt(squared))
    return float("inf"), 0.0


def rounding(dtype: Any, norm: float) -> float:
    """Return how far rounding may move an eigenvalue of a matrix of this norm."""
    return 16.0 * float(np.finfo(dtype).eps) * norm


def in_order(
    values: np.ndarray, vectors: np.ndarray, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Sort descending, choose the basis of equal eigenvalues, and fix the signs."""
    order: Any = slice(None, None, -1)  # what LAPACK finds ascends
    if np.any(values[1:] < values[:-1]):
        order = np.argsort(values, kind="stable")[::-1]
    values, vectors = values[order], vectors[:, order]
    for start, stop in equal_ranges(values, tolerance):
        vectors[:, start:stop] = _canonical(vectors[:, start:stop])
    vectors *= signs_of(vectors)
    return values, vectors


def equal_ranges(values: np.ndarray, tolerance: float) -> list[tuple[int, int]]:
    """Return the ranges of equal eigenvalues whose basis is chosen.

    The null space, and a vast eigenspace, keep the basis they were given.
    """
    ranges, start = [], 0
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i - 1] - values[i] <= tolerance:
            continue
        if 1 < i - start <= _LARGEST and values[i - 1] > tolerance:
            ranges.append((start, i))
        start = i
    return ranges


def signs_of(vectors: np.ndarray) -> np.ndarray:
    """Return the signs that make the first entry of largest modulus positive, column by column.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import signs_of
    >>> signs_of(np.array([[0.6, -0.8], [0.8, 0.6]]))
    array([ 1., -1.])
    """
    if not vectors.size:
        return np.ones(vectors.shape[1], dtype=vectors.dtype)
    size = np.abs(vectors)
    first = np.argmax(size >= (1.0 - _TIE) * size.max(axis=0), axis=0)
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.where(signs == 0, 1.0, signs).astype(vectors.dtype)


def _canonical(U: np.ndarray) -> np.ndarray:
    """Return the basis of span(U) that depends on the span alone; see the module."""
    rotation, rest = np.zeros((U.shape[1], U.shape[1])), U.astype(float)
    for j in range(U.shape[1]):
        length = np.einsum("ij,ij->i", rest, rest)
        i = int(np.argmax(length >= (1.0 - _TIE) * length.max()))
        row = rest[i] - rotation @ (rotation.T @ rest[i])
        rotation[:, j] = row / np.linalg.norm(row)
        rest -= np.outer(rest @ rotation[:, j], rotation[:, j])
    return (U @ rotation).astype(U.dtype)


def check_k(k: int | None, n: int) -> int:
    """Return the number of eigenpairs wanted, all by default."""
    if k is None:
        return n
    if not 1 <= k <= n:
        raise ValueError(f"the number of eigenpairs must lie between 1 and n = {n}, got {k}")
    return int(k)
