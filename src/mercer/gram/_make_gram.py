"""Choose how to store a kernel matrix from its size and the memory budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import (
    MemoryBudgetError,
    MemoryLimit,
    Points,
    Resources,
    entry_point,
    format_bytes,
)
from ..blocks import Blocks
from ..kernels import Kernel, Precomputed, as_index_kernel, as_kernel, memoise, table_bytes
from ._dense import DenseGram
from ._distributed import DistributedGram
from ._operator import GramOperator, gram_shape
from ._tiled import TiledGram, working_bytes


@entry_point
def gram(
    kernel: Kernel | str | Any,
    X: Points,
    Z: Points = None,
    *,
    storage: str = "auto",
    max_memory: MemoryLimit = None,
    n_threads: int | None = None,
    workers: Blocks | None = None,
) -> GramOperator:
    """Return the kernel matrix K = k(X, Z) as a linear operator.

    The class of the operator depends on `storage` and on the memory budget.

    ========== ====================================== ==========================================
    storage    condition                              result
    ========== ====================================== ==========================================
    "dense"    8 n m bytes and tiles fit the budget   DenseGram
               otherwise                              MemoryBudgetError, before any allocation
    "tiled"    a few tiles and vectors fit the budget TiledGram
               the same, X or `workers` are Blocks    DistributedGram
               otherwise                              MemoryBudgetError, before any allocation
    "auto"     the kernel is Precomputed              DenseGram of the stored values
               Z is not None (K is read only once)    same as "tiled"
               X or `workers` are Blocks              same as "tiled"
               k(X, X) fits the budget                DenseGram
               otherwise                              same as "tiled"
    ========== ====================================== ==========================================

    Parameters
    ----------
    kernel : Kernel, str, or anything that `mercer.kernels.as_kernel` accepts
        The parameters of a Kernel must be numbers.  If the kernel is passed in another form,
        parameters that depend on the data, such as gamma='scale', are computed from X.
    X : points or Blocks
        The n points of the rows.  Blocks are gathered in memory.
    Z : points, default None
        The m points of the columns; None means the symmetric matrix k(X, X).
    storage : {"auto", "dense", "tiled"}, default "auto"
        "dense" stores K, and has the fastest products.  "tiled" evaluates K again in every product,
        and needs little memory.
    max_memory : int, str or None, default None
        Memory budget in bytes, or as a string such as "2 GiB"; None means half of the memory of
        this computer.
    n_threads : int or None, default None
        Number of threads; None means all processors.  Results do not depend on it.
    workers : Blocks or None, default None
        Blocks whose workers compute the products with k(X, X); None means X, if X is Blocks.

    Returns
    -------
    GramOperator of shape (n, m)
        The operator; see the table for its class.

    Raises
    ------
    MemoryBudgetError
        If the matrix does not fit the memory budget; see the table.

    See Also
    --------
    DenseGram : K stored as an array.
    TiledGram : K evaluated in every product.
    LowRankGram : Low-rank approximation of K.
    CentredGram : K centred in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> gram(RBF(), X)
    <DenseGram 3x3, float64, RBF(length_scale=1.0)>
    >>> gram("2*RBF() + White(0.1)", X)
    <DenseGram 3x3, float64, 2.0*RBF(length_scale=1.0) + White(noise=0.1)>
    >>> gram(RBF(), X, storage="tiled")
    <TiledGram 3x3, float64, RBF(length_scale=1.0)>
    """
    if isinstance(X, Blocks):
        X, workers = X.to_array(max_memory), X if workers is None else workers
    if not isinstance(kernel, Kernel):
        kernel = as_kernel(kernel).resolve(X)
    if storage not in ("auto", "dense", "tiled"):
        raise ValueError(f"storage must be 'auto', 'dense' or 'tiled', got {storage!r}")
    resources = Resources.of(max_memory, n_threads)
    budget, threads = resources.budget, resources.threads
    if isinstance(kernel, Precomputed) and storage != "tiled":
        return _precomputed_gram(kernel, X, Z, n_threads)
    n, m = gram_shape(X, Z)
    dense_bytes = 8 * n * m + working_bytes(kernel, X, Z, 0, threads)
    if storage == "auto":
        is_stored = Z is None and workers is None and dense_bytes <= budget
        storage = "dense" if is_stored else "tiled"
    if storage == "dense" and dense_bytes <= budget:
        return DenseGram(kernel, X, Z, n_threads=n_threads)
    tiled_bytes = working_bytes(kernel, X, Z, 1, threads)
    if storage == "dense":
        raise MemoryBudgetError(
            f"the {n} x {m} matrix K needs {format_bytes(dense_bytes)}, but the budget is "
            f"{format_bytes(budget)}; use storage='tiled' (needs {format_bytes(tiled_bytes)}), "
            f"or increase max_memory"
        )
    if tiled_bytes > budget:
        raise MemoryBudgetError(
            f"the {n} x {m} matrix K does not fit the memory budget of {format_bytes(budget)}: "
            f"storage='dense' needs {format_bytes(dense_bytes)}, storage='tiled' needs "
            f"{format_bytes(tiled_bytes)}; increase max_memory"
        )
    if workers is not None and Z is None:
        return DistributedGram(kernel, X, workers, n_threads=n_threads, max_memory=budget)
    return TiledGram(kernel, X, Z, n_threads=n_threads, max_memory=budget)


def _precomputed_gram(
    kernel: Precomputed, X: Points, Z: Points, n_threads: int | None
) -> DenseGram:
    """Return a precomputed matrix as a DenseGram; no copy is made if X has all indices in order."""
    if Z is not None:
        return DenseGram(kernel, X, Z, n_threads=n_threads)
    values, index = as_index_kernel(kernel, X)
    if not np.array_equal(index, np.arange(len(values.matrix))):
        return DenseGram(values, index, n_threads=n_threads)
    return DenseGram.from_array(values.matrix, kernel, X, n_threads=n_threads)


# --- Cache the values of costly kernels if the cache fits the memory budget.


_BUDGET_DIVISOR = 4  # cached values may use 1/4 of the budget; K and the solver need the rest


def memoise_if_affordable(kernel: Kernel, n: int, max_memory: MemoryLimit = None) -> Kernel:
    """Return a kernel that caches its values on n points, if the cache fits the memory budget.

    Only parts of the kernel that are marked as costly are cached.  A kernel without such parts is
    returned unchanged.

    Examples
    --------
    >>> from mercer.gram import memoise_if_affordable
    >>> from mercer.kernels import RBF
    >>> memoise_if_affordable(RBF(), 100)
    RBF(length_scale=1.0)
    """
    size = table_bytes(kernel, n)
    if not size or _BUDGET_DIVISOR * size > Resources.of(max_memory).budget:
        return kernel
    return memoise(kernel, n)
