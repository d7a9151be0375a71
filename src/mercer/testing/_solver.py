"""The laws of a solver."""

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
    """Check a solver by its verbs: `factorize` on K + shift, `eigenpairs` on K.

        (K + shift) alpha = y,        K v = l v,        V^T V = I

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
    factorizes, finds_pairs = hasattr(solver, "factorize"), hasattr(solver, "eigenpairs")
    laws.hold("verbs", factorizes or finds_pairs, "it has neither factorize nor eigenpairs")
    K = np.asarray(gram.to_array(), dtype=float)
    if factorizes:
        random = np.random.default_rng(random_state).normal(size=(len(K), 2))
        _check_factor(laws, solver.factorize(gram, shift), K, random if y is None else y, shift)
    if finds_pairs:
        _check_eigenpairs(laws, gram, K, k or max(1, len(K) // 3))


def _check_factor(laws: Laws, factor: Any, K: np.ndarray, y: np.ndarray, shift: Any) -> None:
    A = K + np.diag(np.broadcast_to(np.asarray(shift, dtype=float), len(K)))
    for right in (y, np.reshape(y, (len(K), -1))[:, 0]):
        kept = right.copy()
        alpha = factor.solve(right)
        laws.hold("solve", alpha.shape == right.shape, f"{right.shape} gives {alpha.shape}")
        laws.hold("solve", np.array_equal(right, kept), "solve changed its right-hand side")
        size = np.linalg.norm(A, 2) * np.linalg.norm(alpha) + np.linalg.norm(right)
        laws.close("solve", A @ alpha, right, "(K + shift) alpha and y", size)
        again = factor.solve(right)
        laws.hold("determinism", np.array_equal(alpha, again), "solving twice differs")
    want = np.linalg.slogdet(A)[1]
    with suppress(NotImplementedError):  # an iterative method may know neither, and says so
        got = factor.logdet()
        laws.close("logdet", got, want, "logdet and numpy's", len(K) + abs(want))
    with suppress(NotImplementedError):
        got, want = factor.inverse_diagonal(), np.linalg.inv(A).diagonal()
        laws.close("inverse diagonal", got, want, "that of the inverse")
    allowed = laws.rtol * size / (np.linalg.norm(right) or 1.0)
    _check_report(laws, factor.report, float(allowed))


def _check_eigenpairs(laws: Laws, gram: Any, K: np.ndarray, k: int) -> None:
    pairs = laws.subject.eigenpairs(gram, k)
    values, vectors = pairs.values, pairs.vectors
    shapes = (values.shape, vectors.shape)
    laws.hold("eigenpairs", shapes == ((k,), (len(K), k)), f"shapes are {shapes} for {k=}")
    laws.hold("eigenpairs", bool(np.all(np.diff(values) <= 0)), f"not descending: {values}")
    scale = np.linalg.norm(K, 2)
    laws.close("eigenpairs", K @ vectors, vectors * values, "K v and lambda v", scale)
    laws.close("orthonormality", vectors.T @ vectors, np.eye(k), "V^T V and I", 1.0)
    residuals = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    laws.close("residuals", pairs.residuals, residuals, "residuals and true ones", scale)
    want = np.linalg.eigvalsh(K)[::-1][:k]
    laws.close("eigenvalues", values, want, "values and numpy's", scale)
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    laws.hold("sign", bool((top > 0).all()), f"largest entries of the vectors are {top}")
    again = laws.subject.eigenpairs(gram, k).vectors
    laws.hold("determinism", np.array_equal(vectors, again), "vectors differ when repeated")
    _check_report(laws, pairs.report, laws.rtol)


def _check_report(laws: Laws, report: Any, allowed: float) -> None:
    fields = ("solver", "status", "n_iter", "residual", "seconds", "message", "certificate")
    missing = [name for name in fields if not hasattr(report, name)]
    laws.hold("report", not missing, f"its report lacks {missing}")
    laws.hold("report", isinstance(report.status.value, str), f"status is {report.status!r}")
    laws.hold("report", 0 <= report.residual <= allowed, f"its residual is {report.residual}")
