"""The law of honest status: what a solver claims of itself is true."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import NotPositiveDefiniteError
from ..solvers import Status, enough
from ._law import Laws

__all__ = ["check_status"]

_STABLE = 64.0  # of eps |A| |a|: what a backward stable method leaves, on matrices that are tested


def check_status(
    solver: Any, gram: Any, y: np.ndarray | None = None, *, shift: Any = 0.1, k: int | None = None
) -> None:
    """Check that CONVERGED and DIRECT are true of the matrix itself, and that all else is said.

    Residuals are computed afresh, in extended precision.  A solver that claims to have solved
    (K + shift) a = y must have reached its tolerance, or what rounding leaves if that is at most
    1e-6 of |y| (1e-3 for a K in float32); one that claims eigenpairs, its tolerance relative to
    each eigenvalue, or rounding.  Another status (but for APPROXIMATE and SINGULAR, which were
    asked for) comes with a ConvergenceWarning that has the number.  To refuse a matrix that is not
    positive definite is honest, too.

    Parameters
    ----------
    solver : object
        With `factorize(gram, shift)`, `eigenpairs(gram, k)`, or both.
    gram : GramOperator
        Symmetric, and small enough to be written out: as hard as you like.
    y : ndarray, optional
        Right-hand sides; random ones by default.
    shift : float or ndarray
        Added to the diagonal.
    k : int, optional
        How many eigenpairs to ask for; by default a third of them.

    Raises
    ------
    AssertionError
        Naming the law.

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
        except NotPositiveDefiniteError as why:
            _check_refusal(laws, A.astype(float), gram.dtype, why)
    if hasattr(solver, "eigenpairs"):
        _check_pairs(laws, gram, K, k or max(1, len(K) // 3))


def _check_system(laws: Laws, factor: Any, dtype: Any, A: np.ndarray, y: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        a = factor.solve(y)
    Y, a = np.reshape(y, (len(A), -1)), np.reshape(a, (len(A), -1)).astype(np.longdouble)
    size = np.where(Y.any(axis=0), _norms(Y), 1.0)
    true = _norms(Y - A @ a) / size
    eps = np.finfo(dtype).eps
    rounding = _STABLE * eps * (1.0 + np.linalg.norm(A.astype(float)) * _norms(a) / size)
    report = factor.report
    measured = np.max(np.abs(true.max() - report.residual) - 0.1 * true.max() - rounding.max())
    text = f"it reports {report.residual:.3e}, and the true one is {true.max():.3e}"
    laws.hold("residual", measured <= 0.0 or not np.isfinite(true.max()), text)
    if report.status in (Status.CONVERGED, Status.DIRECT):
        tol = getattr(laws.subject, "tol", 0.0)
        allowed = np.maximum(tol, np.minimum(rounding, 1.1 * enough(dtype))) + 8 * eps
        text = f"{report.status.name} with a relative residual of {true.max():.3e}, where tol is "
        text += f"{tol:.1e} and rounding explains {rounding[np.argmax(true)]:.1e}"
        laws.hold("honest status", np.all(true <= allowed), text)
    _check_said(laws, report.status, report.residual, said)


def _check_refusal(laws: Laws, A: np.ndarray, dtype: Any, why: Exception) -> None:
    """Allow a refusal only of a matrix that rounding does not tell from a singular one."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(A.diagonal()), np.finfo(float).tiny))
    for B in (A, A * scale * scale[:, None]):  # of rows as they are, and of rows of size 1
        values = np.linalg.eigvalsh(B)
        if values[0] <= len(A) * _STABLE * float(np.finfo(dtype).eps) * abs(values[-1]):
            return
    laws.hold("a definite matrix is solved", False, f"it refuses: {why}")


def _check_pairs(laws: Laws, gram: Any, K: np.ndarray, k: int) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pairs = laws.subject.eigenpairs(gram, k)
    values, U = pairs.values.astype(np.longdouble), pairs.vectors.astype(np.longdouble)
    true = _norms(K @ U - U * values)
    norm = float(np.linalg.norm(K.astype(float)))
    rounding = 20.0 * float(np.finfo(gram.dtype).eps) * norm  # 16 of them, and those of products
    status = pairs.report.status
    if status in (Status.CONVERGED, Status.DIRECT):
        tol = 0.0 if status is Status.DIRECT else getattr(laws.subject, "tol", 0.0) or 1e-8
        allowed = np.maximum(1.01 * tol * np.abs(values), rounding)
        text = f"{status.name} with the residuals {true.astype(float)} of the eigenvalues "
        text += f"{pairs.values}, where tol is {tol:.1e} and rounding {rounding:.1e}"
        laws.hold("honest status", np.all(true <= allowed), text)
    if pairs.certificate.nothing_missed:
        exact = np.linalg.eigvalsh(K.astype(float))[::-1][: len(values)]
        bounds = pairs.certificate
        inside = (bounds.lower - rounding <= exact) & (exact <= bounds.upper + rounding)
        laws.hold("certificate", inside.all(), f"{exact} are not inside {bounds}")
    far = true > 0
    relative = float(np.max(true[far] / np.maximum(np.abs(values[far]), 1e-300), initial=0.0))
    _check_said(laws, status, relative, said)


def _check_said(laws: Laws, status: Status, residual: float, said: list) -> None:
    """Require a warning with the number where there is no solution, and only there."""
    texts = [str(w.message) for w in said if issubclass(w.category, ConvergenceWarning)]
    if status in (Status.INACCURATE, Status.NOT_CONVERGED):
        numbers = [float(x) for t in texts for x in re.findall(r"\d\.\de[+-]\d+|inf", t)]
        close = [x for x in numbers if x == residual or abs(x - residual) <= 0.3 * residual]
        text = f"{status.name} with {residual:.2e}, and what it said was {texts}"
        said_so = close or "eigenpairs after" in str(texts)
        laws.hold("what is no solution is said", said_so, text)
    else:
        text = f"{status.name}, but {texts}"
        laws.hold("only what is no solution is said", not texts, text)


def _norms(V: np.ndarray) -> np.ndarray:
    """Return the norms of the columns, in their own precision."""
    largest = np.maximum(np.abs(V).max(axis=0, initial=0.0), np.finfo(float).tiny)
    return np.asarray(largest * np.sqrt(np.square(V / largest).sum(axis=0)))
