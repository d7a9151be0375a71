"""The laws of a solver."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ._law import close, hold

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
    """Check a solver by its verbs: `factorize` on K + shift, `eigenpairs` on K.

    Parameters
    ----------
    solver : object
        With `factorize(gram, shift)`, `eigenpairs(gram, k)`, or both.
    gram : GramOperator
        Symmetric, and small enough to be written out.
    y : ndarray, optional
        Right-hand sides; random ones by default.
    shift : float or ndarray
        Added to the diagonal; one number per point stands for weights.
    k : int, optional
        How many eigenpairs to ask for; by default a third of them.
    rtol : float
        Allowed residual, relative to |K| |solution| + |y|.
    random_state : int
        Seed of the right-hand sides.

    Raises
    ------
    AssertionError
        Naming the law.
    """
    hold(
        "verbs",
        solver,
        hasattr(solver, "factorize") or hasattr(solver, "eigenpairs"),
        "it has neither factorize nor eigenpairs",
    )
    K = np.asarray(gram.to_array(), dtype=float)
    if y is None:
        y = np.random.default_rng(random_state).normal(size=(len(K), 2))
    if hasattr(solver, "factorize"):
        _check_factor(solver, gram, K, y, shift, rtol)
    if hasattr(solver, "eigenpairs"):
        _check_eigenpairs(solver, gram, K, k or max(1, len(K) // 3), rtol)


def _check_factor(
    solver: Any, gram: Any, K: np.ndarray, y: np.ndarray, shift: Any, rtol: float
) -> None:
    A = K + np.diag(np.broadcast_to(np.asarray(shift, dtype=float), len(K)))
    factor = solver.factorize(gram, shift)
    for right in (y, np.reshape(y, (len(K), -1))[:, 0]):
        kept = right.copy()
        alpha = factor.solve(right)
        hold("solve", solver, alpha.shape == right.shape, f"{right.shape} gives {alpha.shape}")
        hold("solve", solver, np.array_equal(right, kept), "solve changed its right-hand side")
        size = np.linalg.norm(A, 2) * np.linalg.norm(alpha) + np.linalg.norm(right)
        close("solve", solver, A @ alpha, right, rtol, "(K + shift) alpha and y", size)
        again = factor.solve(right)
        hold("determinism", solver, np.array_equal(alpha, again), "solving twice differs")
    want = np.linalg.slogdet(A)[1]
    with suppress(NotImplementedError):  # an iterative method may know neither, and says so
        got = factor.logdet()
        close("logdet", solver, got, want, rtol, "logdet and numpy's", len(K) + abs(want))
    with suppress(NotImplementedError):
        got, want = factor.inverse_diagonal(), np.linalg.inv(A).diagonal()
        close("inverse diagonal", solver, got, want, rtol, "that of the inverse")
    _check_report(solver, factor.report, float(rtol * size / (np.linalg.norm(right) or 1.0)))


def _check_eigenpairs(solver: Any, gram: Any, K: np.ndarray, k: int, rtol: float) -> None:
    pairs = solver.eigenpairs(gram, k)
    values, vectors = pairs.values, pairs.vectors
    shapes = (values.shape, vectors.shape)
    hold("eigenpairs", solver, shapes == ((k,), (len(K), k)), f"shapes are {shapes} for {k=}")
    hold("eigenpairs", solver, bool(np.all(np.diff(values) <= 0)), f"not descending: {values}")
    scale = np.linalg.norm(K, 2)
    close("eigenpairs", solver, K @ vectors, vectors * values, rtol, "K v and lambda v", scale)
    close("orthonormality", solver, vectors.T @ vectors, np.eye(k), rtol, "V^T V and I", 1.0)
    residuals = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    close("residuals", solver, pairs.residuals, residuals, rtol, "residuals and true ones", scale)
    want = np.linalg.eigvalsh(K)[::-1][:k]
    close("eigenvalues", solver, values, want, rtol, "values and numpy's", scale)
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    hold("sign", solver, bool((top > 0).all()), f"largest entries of the vectors are {top}")
    again = solver.eigenpairs(gram, k).vectors
    hold("determinism", solver, np.array_equal(vectors, again), "vectors differ when repeated")
    _check_report(solver, pairs.report, rtol)


def _check_report(solver: Any, report: Any, allowed: float) -> None:
    fields = ("solver", "status", "n_iter", "residual", "seconds", "message", "certificate")
    missing = [name for name in fields if not hasattr(report, name)]
    hold("report", solver, not missing, f"its report lacks {missing}")
    hold("report", solver, isinstance(report.status.value, str), f"status is {report.status!r}")
    hold("report", solver, 0 <= report.residual <= allowed, f"its residual is {report.residual}")
