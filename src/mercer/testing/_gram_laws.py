"""Checks of a Gram operator, which represents a kernel matrix K."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import NotDifferentiableError, length
from ._law import Laws

__all__ = ["check_gram"]


def check_gram(
    gram: Any, reference: np.ndarray | None = None, *, rtol: float = 1e-10, random_state: int = 0
) -> None:
    """Check that all methods of a Gram operator are consistent with its matrix K.

    Parameters
    ----------
    gram : GramOperator
        The operator to check; it must be small enough to be converted to an array.
    reference : ndarray, optional
        The expected matrix.  By default, only agreement with `gram.to_array()` is checked.
    rtol : float
        Allowed error, relative to the largest entry of K; at least 100 times the machine epsilon of
        the dtype of K.
    random_state : int
        Seed of the random vectors.

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
