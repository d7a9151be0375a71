"""What all kernels on vectors share: checks, and products of dense and sparse rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import as_vectors
from .._runtime import blas_threads
from ._bandwidth import RULES
from ._base import Kernel, node
from ._prepared import Prepared
from ._sparse import shared_products

__all__ = [
    "VectorKernel",
    "check_gamma",
    "check_length_scale",
    "check_positive",
    "inner_products",
    "per_column",
]

_DENSE = 1 << 22  # entries of sparse rows that are made dense at a time: 32 MiB
_SHARE = 0.02  # of the pairs of rows: a column in which more of them meet is for a BLAS


@node
class VectorKernel(Kernel):
    """A kernel whose points are the rows of a 2-D array or CSR matrix."""

    @property
    def on_vectors(self) -> bool:
        return True

    def _vectors(self, X: Any, like: Prepared | None = None) -> Any:
        """Check X and, against `like`, its number of columns."""
        X = as_vectors(X, type(self).__name__)
        if like is not None:
            self._same_width(like.arrays[0].shape[1], X.shape[1])
        return X

    def _operands(self, X: Any, Z: Any) -> tuple[Any, Any]:
        X = self._vectors(X)
        if Z is None:
            return X, X
        Z = self._vectors(Z)
        self._same_width(X.shape[1], Z.shape[1])
        return X, Z

    def _same_width(self, p: int, q: int) -> None:
        if p != q:
            raise ValueError(
                f"{type(self).__name__} compares points with {p} and with {q} columns; "
                f"both sides need the same features"
            )


def inner_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T, for any mixture of dense and CSR rows."""
    if sp.issparse(X) and sp.issparse(Z):
        _sparse_products(X, Z, out)
    elif sp.issparse(X) or sp.issparse(Z):
        out[...] = X @ Z.T
    else:
        np.matmul(X, Z.T, out=out)


def _sparse_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T of sparse rows.

    A multiplication takes a sparse product some 50 times as long as a BLAS (measured: 2 to 6 ns
    against 0.05), but it does only those of two stored entries.  So columns that many rows have go
    to the one, and all others to the other.
    """
    columns = X.shape[1]
    in_X, in_Z = (np.bincount(A.indices, minlength=columns) for A in (X, Z))
    common = in_X * in_Z > _SHARE * out.size
    if not common.any():
        shared_products(X, Z, out)
    elif common.all():
        _dense_products(X, Z, out)
    else:
        _dense_products(X[:, common], Z[:, common], out)
        shared_products(X[:, ~common], Z[:, ~common], out, add=True)


def _dense_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Set out <- X Z^T of sparse rows, made dense a few at a time."""
    step = max(1, _DENSE // X.shape[1])
    with blas_threads(min(out.shape)):
        for i in range(0, X.shape[0], step):
            A = X[i : i + step].toarray()
            for j in range(0, Z.shape[0], step):
                np.matmul(A, Z[j : j + step].toarray().T, out=out[i : i + step, j : j + step])


def check_positive(
    owner: str, name: str, value: Any, *, zero: bool = False, vector: bool = False
) -> None:
    """Refuse a parameter that is not a positive (with `zero`: non-negative) finite number."""
    unfit = isinstance(value, (bool, np.bool_)) or np.iscomplexobj(value)
    if unfit or (np.ndim(value) > 0 and not vector):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}")
    try:
        lowest = float(np.min(value))
        finite = bool(np.all(np.isfinite(value)))
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}") from None
    if math.isnan(lowest) or not finite or lowest < 0 or (lowest == 0 and not zero):
        wanted = "non-negative" if zero else "positive"
        raise ValueError(f"{owner}: {name} must be {wanted} and finite, got {value!r}")


def check_gamma(owner: str, gamma: Any) -> None:
    """Refuse a gamma that is neither a positive number nor a rule."""
    if not isinstance(gamma, str):
        check_positive(owner, "gamma", gamma)
    elif gamma not in RULES:
        raise ValueError(
            f"{owner}: gamma must be a positive number or one of {RULES}, got {gamma!r}"
        )


def check_length_scale(owner: str, value: Any) -> None:
    """Refuse a length scale that is neither a rule nor positive numbers, one or one per column."""
    if isinstance(value, str):
        if value not in RULES:
            raise ValueError(
                f"{owner}: length_scale must be positive numbers or one of {RULES}, got {value!r}"
            )
    elif np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{owner}: length_scale must be a number or one number per column, "
            f"got shape {np.shape(value)}"
        )
    else:
        check_positive(owner, "length_scale", value, vector=True)


def per_column(owner: str, value: Any, columns: int) -> Any:
    """Return a length scale as a float, or as an array with one entry for each column."""
    if np.ndim(value) == 0:
        return float(value)
    scale = np.asarray(value, dtype=float)
    if scale.size != columns:
        raise ValueError(
            f"{owner} has {scale.size} length scales, but the points have {columns} columns"
        )
    return scale
