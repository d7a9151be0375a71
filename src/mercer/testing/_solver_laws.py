"""Checks of a solver for linear systems and eigenpairs of a kernel matrix."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ._law import Laws

__all__ = ["check_solver"]


def check_solver(
    solver: Any,
    gram: Any,
    y: np.ndarray | None = None,
    *,
    shift: Any = 0.1,
    k: int | None = None,
    rtol: float = 1e-8,
    random_state: int = 0,
) -> None:
    """Check the methods of a solver: `factorize` for K + shift, `eigenpairs` for K.

        (K + shift) alpha = y,        K v = lambda v,        V^T V = I

    V is the matrix of the eigenvectors v.

    Parameters
    ----------
    solver : object
        Solver with the methods `factorize(gram, shift)`, `eigenpairs(gram, k)`, or both.
    gram : GramOperator
        Operator of a symmetric matrix, small enough to be converted to an array.
    y : ndarray, optional
        Right-hand sides; random ones by default.
    shift : float or ndarray
        Value added to the diagonal: one number, or one per point for weighted problems.
    k : int, optional
        Number of eigenpairs to compute; by default a third of the number of points.
    rtol : float
        Allowed residual, relative to |K| |solution| + |y|.
    random_state : int
        Seed of the random right-hand sides.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Cholesky
    >>> from mercer.testing import check_solver
    >>> check_solver(Cholesky(), gram("RBF()", np.arange(6.0)[:, None])) is None
    True
    """
    laws = Laws(solver, rtol)
    has_factorize, has_eigenpairs = hasattr(solver, "factorize"), hasattr(solver, "eigenpairs")
    laws.require(
        "methods", has_factorize or has_eigenpairs, "it has neither factorize nor eigenpairs"
    )
    K = np.asarray(gram.to_array(), dtype=float)
    if has_factorize:
        random = np.random.default_rng(random_state).normal(size=(len(K), 2))
        _check_factor(laws, solver.factorize(gram, shift), K, random if y is None else y, shift)
    if has_eigenpairs:
        _check_eigenpairs(laws, gram, K, k or max(1, len(K) // 3))


def _check_factor(laws: Laws, factor: Any, K: np.ndarray, y: np.ndarray, shift: Any) -> None:
    A = K + np.diag(np.broadcast_to(np.asarray(shift, dtype=float), len(K)))
    for right in (y, np.reshape(y, (len(K), -1))[:, 0]):
        original = right.copy()
        alpha = factor.solve(right)
        laws.require("solve", alpha.shape == right.shape, f"{right.shape} gives {alpha.shape}")
        laws.require("solve", np.array_equal(right, original), "solve changed its right-hand side")
        size = np.linalg.norm(A, 2) * np.linalg.norm(alpha) + np.linalg.norm(right)
        laws.require_close("solve", A @ alpha, right, "(K + shift) alpha and y", size)
        again = factor.solve(right)
        laws.require(
            "determinism", np.array_equal(alpha, again), "a second solve gives a different result"
        )
    want = np.linalg.slogdet(A)[1]
    with suppress(NotImplementedError):  # iterative solvers need not implement logdet
        got = factor.logdet()
        laws.require_close("logdet", got, want, "logdet and numpy's", len(K) + abs(want))
    with suppress(NotImplementedError):  # iterative solvers need not implement inverse_diagonal
        got, want = factor.inverse_diagonal(), np.linalg.inv(A).diagonal()
        laws.require_close("inverse diagonal", got, want, "inverse_diagonal and numpy's")
    allowed = laws.rtol * size / (np.linalg.norm(right) or 1.0)
    _check_report(laws, factor.report, float(allowed))


def _check_eigenpairs(laws: Laws, gram: Any, K: np.ndarray, k: int) -> None:
    pairs = laws.subject.eigenpairs(gram, k)
    values, vectors = pairs.values, pairs.vectors
    shapes = (values.shape, vectors.shape)
    laws.require("eigenpairs", shapes == ((k,), (len(K), k)), f"shapes are {shapes} for {k=}")
    laws.require("eigenpairs", bool(np.all(np.diff(values) <= 0)), f"not descending: {values}")
    scale = np.linalg.norm(K, 2)
    laws.require_close("eigenpairs", K @ vectors, vectors * values, "K v and lambda v", scale)
    laws.require_close("orthonormality", vectors.T @ vectors, np.eye(k), "V^T V and I", 1.0)
    residuals = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    laws.require_close(
        "residuals", pairs.residuals, residuals, "reported and true residuals", scale
    )
    want = np.linalg.eigvalsh(K)[::-1][:k]
    laws.require_close("eigenvalues", values, want, "values and numpy's", scale)
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    laws.require("sign", bool((top > 0).all()), f"largest entries of the vectors are {top}")
    again = laws.subject.eigenpairs(gram, k).vectors
    laws.require("determinism", np.array_equal(vectors, again), "vectors differ when repeated")
    _check_report(laws, pairs.report, laws.rtol)


def _check_report(laws: Laws, report: Any, allowed: float) -> None:
    fields = ("solver", "status", "n_iter", "residual", "seconds", "message", "certificate")
    missing = [name for name in fields if not hasattr(report, name)]
    laws.require("report", not missing, f"its report lacks {missing}")
    laws.require("report", isinstance(report.status.value, str), f"status is {report.status!r}")
    laws.require("report", 0 <= report.residual <= allowed, f"its residual is {report.residual}")
