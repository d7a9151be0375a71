"""The centred alignment of two kernels: the cosine between their centred matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import as_float64, as_vectors, entry_point, length, memory_scope, one_blas_thread
from ...gram import GramOperator, gram, memoise_if_affordable
from ...kernels import Kernel, Linear, Precomputed, as_kernel
from ._gram_inner_products import GramInnerProducts

__all__ = ["alignment", "target_gram", "targets_to_matrix", "tiled_gram"]


@entry_point
@one_blas_thread
@memory_scope()
def alignment(
    k1: Any, k2: Any, X: Any = None, *, sample_weight: Any = None, max_memory: Any = None
) -> float:
    """Return the centred alignment of two kernels, or of a kernel and targets, on the points X.

    The alignment is <A, B> / (|A| |B|), where A and B are the centred kernel matrices.  It is 1 for
    kernels that differ only by a positive factor and a constant, and about 0 for kernels that
    measure unrelated properties.  Without centring, any two kernels with positive values would
    appear aligned (Cortes, Mohri and Rostamizadeh, JMLR 2012).  The matrices are evaluated in tiles
    and never stored.

    Parameters
    ----------
    k1, k2 : Kernel, str, callable, matrix or targets
        A kernel; a symmetric (n, n) matrix; or targets y, for which the kernel matrix is y y^T.
        Kernel parameters that depend on the data, such as "median", are computed from X with its
        weights.  Targets are floats of shape (n,) or (n, q), or labels of shape (n,), which are
        one-hot encoded.  Integers of shape (n,) are labels.
    X : points
        The n points; not needed if k1 and k2 are matrices or targets.
    sample_weight : array of shape (n,), optional
        Weights of the points.  A point of weight 2 counts as two points, also when kernel
        parameters are computed from the data; a point of weight 0 is ignored.
    max_memory : int, str or None, default=None
        The memory budget, as in `mercer.gram.gram`.

    Returns
    -------
    float
        The alignment, between -1 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import alignment
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> round(alignment(Linear(), 3 * Linear() + 5, X), 3)
    1.0
    >>> round(alignment(RBF(1.0), np.where(X[:, 0] > 0, "right", "left"), X), 3)
    0.796
    """
    points = None if X is None else as_float64(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if points is not None:
        _check_weights(weights, length(points))
    grams = [_as_gram(k, points, weights, name, max_memory) for k, name in ((k1, "k1"), (k2, "k2"))]
    (n, _), (m, _) = (K.shape for K in grams)
    if n != m:
        raise ValueError(f"k1 has {n} points and k2 has {m}: both must refer to the same points")
    _check_weights(weights, n)
    inner = GramInnerProducts.of(grams, weights, max_memory=max_memory)
    for name, norm2 in zip(("k1", "k2"), inner.products.diagonal(), strict=True):
        if not norm2 > 0:
            raise ValueError(
                f"{name} is constant on these {n} points: its centred matrix is 0, so the "
                f"alignment is not defined; use another kernel, or targets that vary"
            )
    return float(inner.alignments[0, 1])


def tiled_gram(kernel: Kernel, X: Any, max_memory: Any = None) -> GramOperator:
    """Return K as an operator that evaluates tiles; a `Precomputed` matrix is used directly."""
    storage = "auto" if isinstance(kernel, Precomputed) else "tiled"
    kernel = memoise_if_affordable(kernel, length(X), max_memory)
    return gram(kernel, X, storage=storage, max_memory=max_memory)


def target_gram(Y: np.ndarray) -> GramOperator:
    """Return Y Y^T for targets Y, which are shifted to mean 0 first."""
    return gram(Linear(), Y - Y.mean(axis=0), storage="tiled")


def targets_to_matrix(y: Any) -> np.ndarray:
    """Return targets as a float array of shape (n, q).

    A 1-D array of any other type than float contains labels, which are one-hot encoded.

    Examples
    --------
    >>> from mercer.models.kernel_learning._kernel_alignment import targets_to_matrix
    >>> targets_to_matrix(["a", "b", "a"])
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """
    y = np.asarray(y)
    if y.ndim == 1 and y.dtype.kind != "f":
        classes, labels = np.unique(y, return_inverse=True)
        return np.eye(len(classes))[labels]
    return np.asarray(as_vectors(y[:, None] if y.ndim == 1 else y, "the targets"), dtype=float)


def _check_weights(weights: np.ndarray | None, n: int) -> None:
    if weights is not None and (
        weights.shape != (n,) or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf
    ):
        raise ValueError(f"sample_weight must be {n} numbers >= 0, not all of them 0")


def _as_gram(
    k: Any, X: Any, weights: np.ndarray | None, name: str, max_memory: Any
) -> GramOperator:
    if isinstance(k, (str, Kernel)) or callable(k):
        if X is None:
            raise ValueError(
                f"{name} is a kernel, so X is needed; pass the points on which to evaluate it"
            )
        kernel = as_kernel(k).resolve(X, weights)
        return tiled_gram(kernel, X, max_memory)
    values = np.asarray(k)
    if values.ndim == 2 and values.shape[0] == values.shape[1] and len(values) > 1:
        return tiled_gram(Precomputed(values), np.arange(len(values)), max_memory)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            f"{name} must be a kernel, a square matrix or targets, got an array of shape "
            f"{values.shape}"
        )
    return target_gram(targets_to_matrix(values))
