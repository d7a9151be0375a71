"""The centred alignment of two kernels: the cosine of the angle between their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._points import as_vectors, doubled, length
from .._runtime import entry_point, one_blas_thread, reserving
from ..gram import GramOperator, gram, memoise_if_affordable
from ..kernels import Kernel, Linear, Precomputed, as_kernel
from ._pairing import Pairing

__all__ = ["alignment", "as_targets", "held_in_tiles", "target_gram"]


@entry_point
@one_blas_thread
@reserving()
def alignment(
    k1: Any, k2: Any, X: Any = None, *, sample_weight: Any = None, max_memory: Any = None
) -> float:
    """Return <A, B> / (|A| |B|) for the centred matrices A and B of two kernels on the points X.

    1 for kernels that differ by a factor and a constant; about 0 for kernels that see unrelated
    things.  Centring matters: without it, any two kernels of positive values are aligned (Cortes,
    Mohri and Rostamizadeh, JMLR 2012).  In tiles: neither matrix is held.

    Parameters
    ----------
    k1, k2 : Kernel, str, callable, matrix or targets
        A kernel, with rules such as "median" resolved on the weighted X; a symmetric matrix (n, n);
        or targets, for which the kernel is y y^T: numbers (n,) or (n, q), or labels (n,), which
        become a column of zeros and ones for each class.  Integers are labels, floats numbers.
    X : points
        Not needed for two matrices or targets.
    sample_weight : array of shape (n,), optional
        A point of weight 2 counts as two points, in the rules of the kernels too; a point of weight
        0 is absent.
    max_memory : int, str or None
        As in `gram`.

    Returns
    -------
    float

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
    from_X = None if X is None else doubled(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if from_X is not None:
        _check_weights(weights, length(from_X))
    grams = [_as_gram(k, from_X, weights, name, max_memory) for k, name in ((k1, "k1"), (k2, "k2"))]
    (n, _), (m, _) = (K.shape for K in grams)
    if n != m:
        raise ValueError(f"k1 has {n} points and k2 has {m}: both must be over the same points")
    _check_weights(weights, n)
    pairing = Pairing.of(grams, weights, max_memory=max_memory)
    for name, size in zip(("k1", "k2"), pairing.products.diagonal(), strict=True):
        if not size > 0:
            raise ValueError(
                f"{name} is constant on these {n} points: nothing is left of it after centring, "
                f"and an angle with nothing is not defined"
            )
    return float(pairing.alignments[0, 1])


def held_in_tiles(kernel: Kernel, X: Any, max_memory: Any = None) -> GramOperator:
    """Return K as an operator that evaluates tiles; values that were given are read."""
    storage = "auto" if isinstance(kernel, Precomputed) else "tiled"
    kernel = memoise_if_affordable(kernel, length(X), max_memory)
    return gram(kernel, X, storage=storage, max_memory=max_memory)


def target_gram(Y: np.ndarray) -> GramOperator:
    """Return Y Y^T, of targets that are shifted to their mean."""
    return gram(Linear(), Y - Y.mean(axis=0), storage="tiled")


def as_targets(y: Any) -> np.ndarray:
    """Return targets as numbers, (n, q): columns of zeros and ones for labels, which are no floats.

    Examples
    --------
    >>> from mercer.learning._alignment import as_targets
    >>> as_targets(["a", "b", "a"])
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
            raise ValueError(f"{name} is a kernel, so X is needed: the points to compare it on")
        kernel = as_kernel(k).resolve(X, weights)
        return held_in_tiles(kernel, X, max_memory)
    values = np.asarray(k)
    if values.ndim == 2 and values.shape[0] == values.shape[1] and len(values) > 1:
        return held_in_tiles(Precomputed(values), np.arange(len(values)), max_memory)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            f"{name} must be a kernel, a square matrix or targets, got an array of shape "
            f"{values.shape}"
        )
    return target_gram(as_targets(values))
