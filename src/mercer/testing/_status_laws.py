"""Check that the status and the residual that a solver reports are true."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._core import NotPositiveDefiniteError
from ..solvers import Status, residual_floor
from ._law import Laws

__all__ = ["check_status"]

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
    y : ndarray, optional
        Right-hand sides; random ones by default.
    shift : float or ndarray
        Value added to the diagonal: one number, or one per point.
    k : int, optional
        Number of eigenpairs to compute; by default a third of the number of points.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

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
        warnings.simplefilter("always")
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
        warnings.simplefilter("always")
        pairs = laws.subject.eigenpairs(gram, k)
    values, U = pairs.values.astype(np.longdouble), pairs.vectors.astype(np.longdouble)
    true = _norms(K @ U - U * values)
    norm = float(np.linalg.norm(K.astype(float)))
    rounding = (
        20.0 * float(np.finfo(gram.dtype).eps) * norm
    )  # 16 eps for the solver, 4 eps for the products in `true`
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
