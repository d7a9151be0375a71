"""Checks of Gram operators and solvers, and of the status that a solver reports."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._core import NotDifferentiableError, NotPositiveDefiniteError, length
from ..solvers import Status, residual_floor
from ._finite_differences import Laws


def check_gram(
    gram: Any, reference: np.ndarray | None = None, *, rtol: float = 1e-10, random_state: int = 0
) -> None:
    """Check that all methods of a Gram operator are consistent with its matrix K.

    Parameters
    ----------
    gram : GramOperator
        The operator to check; it must be small enough to be converted to an array.
    reference : ndarray of shape (n, m) or None, default None
        The expected matrix.  None checks only agreement with `gram.to_array()`.
    rtol : float, default 1e-10
        Allowed error, relative to the largest entry of K; at least 100 times the machine epsilon of
        the dtype of K.
    random_state : int, default 0
        Seed of the random vectors.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    mercer.gram.GramOperator : The base class of Gram operators.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.testing import check_gram
    >>> X = np.random.default_rng(0).normal(size=(8, 2))
    >>> check_gram(gram("RBF()", X, storage="tiled"), gram("RBF()", X).to_array()) is None
    True
    """
    laws, rng = Laws(gram, rtol), np.random.default_rng(random_state)
    K = gram.to_array()
    n, m = gram.shape
    laws.require("shape", K.shape == (n, m), f"to_array() is {K.shape}, the Gram {gram.shape}")
    laws.require("shape", length(gram.X) == n, f"{length(gram.X)} points X, shape {gram.shape}")
    laws.require("dtype", K.dtype == gram.dtype, f"to_array() is {K.dtype}, the Gram {gram.dtype}")
    if reference is not None:
        laws.require_close("matrix", K, reference, "to_array() and the reference")

    scale = np.abs(K).max(initial=0.0)
    laws = Laws(gram, max(rtol, 100 * float(np.finfo(K.dtype).eps)))
    V, U = rng.normal(size=(m, 3)).astype(K.dtype), rng.normal(size=(n, 3)).astype(K.dtype)
    for v in (V, V[:, 0], V[:, :1]):
        laws.require_close("matmul", gram @ v, K @ v, "K @ v and the matrix @ v", scale * m)
    laws.require("determinism", np.array_equal(gram @ V, gram @ V), "K @ V differs when repeated")
    for flipped in (gram.H, gram.T):
        laws.require_close("adjoint", flipped @ U, K.T @ U, "K^T @ u and the matrix", scale * n)
    left, right = np.vdot(U, gram @ V), np.vdot(gram.H @ U, V)
    laws.require_close("adjoint", left, right, "<u, K v> and <K^T u, v>", scale * n * m)

    some, others = rng.integers(n, size=max(1, n // 2)), rng.permutation(m)[: max(1, m // 2)]
    mask = np.isin(np.arange(n), some)
    for i in (some, mask, slice(0, 2), 0):
        laws.require_close("rows", gram.rows(i), K[i], f"rows({i}) and the matrix", scale)
    for i, j in ((some, others), (mask, slice(None)), (slice(1, None), slice(0, 2))):
        laws.require_close("block", gram.block(i, j), K[i][:, j], "block and the matrix", scale)
    laws.require_close("diagonal", gram.diagonal(), K.diagonal(), "diagonal and the matrix", scale)
    if gram.Z is None:
        laws.require_close("symmetry", K, K.T, "K and its transpose")

    U, V = U.astype(float), V.astype(float)
    try:
        want = gram.kernel.pullback(gram.X, gram.Z, U @ V.T)
    except NotDifferentiableError:
        return
    size = scale * np.sum(np.abs(U) @ np.abs(V.T))
    laws.require_close("pullback", gram.pullback(U, V), want, "pullback(U, V) and U V^T", size)


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
    y : ndarray of shape (n,) or (n, q) or None, default None
        Right-hand sides; None means random ones.
    shift : float or ndarray of shape (n,), default 0.1
        Value added to the diagonal: one number, or one per point for weighted problems.
    k : int or None, default None
        Number of eigenpairs to compute; None means a third of the number of points.
    rtol : float, default 1e-8
        Allowed residual, relative to |K| |solution| + |y|.
    random_state : int, default 0
        Seed of the random right-hand sides.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    check_status : Check the status that a solver reports.

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
    detail = "it has neither factorize nor eigenpairs"
    laws.require("methods", has_factorize or has_eigenpairs, detail)
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


# Allowed residual of a backward stable solution a of A a = y, in units of eps |A| |a|.  It is large
# enough for all solvers of mercer.
_STABLE_RESIDUAL = 64.0


def check_status(
    solver: Any, gram: Any, y: np.ndarray | None = None, *, shift: Any = 0.1, k: int | None = None
) -> None:
    """Check that the status reported by a solver is true, and that it warns of failures.

    Residuals are recomputed in extended precision.

    - A solver that reports CONVERGED or DIRECT for (K + shift) a = y must have reached its
      tolerance, or the level of rounding errors if that is at most 1e-6 |y| (1e-3 |y| for K in
      float32).
    - For eigenpairs, the tolerance is relative to each eigenvalue, and rounding errors are allowed.
    - INACCURATE and NOT_CONVERGED must come with a ConvergenceWarning that contains the residual.
      APPROXIMATE and SINGULAR need no warning, because the user has requested them.
    - A solver may raise NotPositiveDefiniteError if the matrix is numerically not positive
      definite.

    Parameters
    ----------
    solver : object
        Solver with the methods `factorize(gram, shift)`, `eigenpairs(gram, k)`, or both.
    gram : GramOperator
        Operator of a symmetric matrix, small enough to be converted to an array.  It may be
        ill-conditioned.
    y : ndarray of shape (n,) or (n, q) or None, default None
        Right-hand sides; None means random ones.
    shift : float or ndarray of shape (n,), default 0.1
        Value added to the diagonal: one number, or one per point.
    k : int or None, default None
        Number of eigenpairs to compute; None means a third of the number of points.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    check_solver : Check residuals, determinants and eigenpairs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import DenseEigen
    >>> from mercer.testing import check_status
    >>> check_status(DenseEigen(), gram("RBF()", np.arange(6.0)[:, None])) is None
    True
    """
    laws, K = Laws(solver, 0.0), np.asarray(gram.to_array(), dtype=np.longdouble)
    if y is None:
        y = np.random.default_rng(0).normal(size=(len(K), 2))
    if hasattr(solver, "factorize"):
        A = K + np.diag(np.broadcast_to(np.asarray(shift, dtype=np.longdouble), len(K)))
        try:
            _check_system(laws, solver.factorize(gram, shift), gram.dtype, A, y)
        except NotPositiveDefiniteError as error:
            _check_refusal(laws, A.astype(float), gram.dtype, error)
    if hasattr(solver, "eigenpairs"):
        _check_pairs(laws, gram, K, k or max(1, len(K) // 3))


def _check_system(laws: Laws, factor: Any, dtype: Any, A: np.ndarray, y: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        a = factor.solve(y)
    Y, a = np.reshape(y, (len(A), -1)), np.reshape(a, (len(A), -1)).astype(np.longdouble)
    size = np.where(Y.any(axis=0), _norms(Y), 1.0)
    true = _norms(Y - A @ a) / size
    eps = np.finfo(dtype).eps
    rounding = _STABLE_RESIDUAL * eps * (1.0 + np.linalg.norm(A.astype(float)) * _norms(a) / size)
    report = factor.report
    excess = np.max(np.abs(true.max() - report.residual) - 0.1 * true.max() - rounding.max())
    text = f"the reported residual is {report.residual:.3e}, the true one {true.max():.3e}"
    laws.require("residual", excess <= 0.0 or not np.isfinite(true.max()), text)
    if report.status in (Status.CONVERGED, Status.DIRECT):
        tol = getattr(laws.subject, "tol", 0.0)
        allowed = np.maximum(tol, np.minimum(rounding, 1.1 * residual_floor(dtype))) + 8 * eps
        text = f"{report.status.name} with a relative residual of {true.max():.3e}, where tol is "
        text += f"{tol:.1e} and rounding explains {rounding[np.argmax(true)]:.1e}"
        laws.require("honest status", np.all(true <= allowed), text)
    _check_warnings(laws, report.status, report.residual, caught)


def _check_refusal(laws: Laws, A: np.ndarray, dtype: Any, error: Exception) -> None:
    """Check that the matrix is not positive definite numerically, as the solver's error says."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(A.diagonal()), np.finfo(float).tiny))
    for B in (A, A * scale * scale[:, None]):  # the matrix itself, and scaled to a unit diagonal
        values = np.linalg.eigvalsh(B)
        if values[0] <= len(A) * _STABLE_RESIDUAL * float(np.finfo(dtype).eps) * abs(values[-1]):
            return
    laws.require("a definite matrix is solved", False, f"the solver raises: {error}")


def _check_pairs(laws: Laws, gram: Any, K: np.ndarray, k: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        pairs = laws.subject.eigenpairs(gram, k)
    values, U = pairs.values.astype(np.longdouble), pairs.vectors.astype(np.longdouble)
    true = _norms(K @ U - U * values)
    norm = float(np.linalg.norm(K.astype(float)))
    # 16 eps for the solver, 4 eps for the products in `true`
    rounding = 20.0 * float(np.finfo(gram.dtype).eps) * norm
    status = pairs.report.status
    if status in (Status.CONVERGED, Status.DIRECT):
        tol = 0.0 if status is Status.DIRECT else getattr(laws.subject, "tol", 0.0) or 1e-8
        allowed = np.maximum(1.01 * tol * np.abs(values), rounding)
        text = f"{status.name} with the residuals {true.astype(float)} of the eigenvalues "
        text += f"{pairs.values}, where tol is {tol:.1e} and rounding {rounding:.1e}"
        laws.require("honest status", np.all(true <= allowed), text)
    if pairs.certificate.nothing_missed:
        exact = np.linalg.eigvalsh(K.astype(float))[::-1][: len(values)]
        bounds = pairs.certificate
        inside = (bounds.lower - rounding <= exact) & (exact <= bounds.upper + rounding)
        laws.require("certificate", inside.all(), f"{exact} are not inside {bounds}")
    far = true > 0
    relative = float(np.max(true[far] / np.maximum(np.abs(values[far]), 1e-300), initial=0.0))
    _check_warnings(laws, status, relative, caught)


def _check_warnings(laws: Laws, status: Status, residual: float, caught: list) -> None:
    """Require a warning with the residual if the solver failed, and no warning otherwise."""
    texts = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    if status in (Status.INACCURATE, Status.NOT_CONVERGED):
        numbers = [float(x) for t in texts for x in re.findall(r"\d\.\de[+-]\d+|inf", t)]
        close = [x for x in numbers if x == residual or abs(x - residual) <= 0.3 * residual]
        text = f"{status.name} with {residual:.2e}, but the warnings are {texts}"
        is_reported = close or "eigenpairs after" in str(texts)
        laws.require("failures are reported", is_reported, text)
    else:
        text = f"{status.name}, but the warnings are {texts}"
        laws.require("only failures are reported", not texts, text)


def _norms(V: np.ndarray) -> np.ndarray:
    """Return the norms of the columns of V in its precision, without overflow."""
    largest = np.maximum(np.abs(V).max(axis=0, initial=0.0), np.finfo(float).tiny)
    return np.asarray(largest * np.sqrt(np.square(V / largest).sum(axis=0)))
