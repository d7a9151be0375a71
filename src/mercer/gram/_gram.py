"""gram(): the one table from sizes and wishes to a way of holding K."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import MemoryBudgetError
from .._runtime import budget_in_bytes, check_threads, entry_point, in_words
from ..kernels import Kernel, Precomputed, as_kernel, on_indices
from ._dense import DenseGram
from ._operator import GramOperator, points_length
from ._tiled import TiledGram, working_bytes

__all__ = ["gram"]


@entry_point
def gram(
    kernel: Any,
    X: Any,
    Z: Any = None,
    *,
    storage: str = "auto",
    max_memory: Any = None,
    n_threads: int | None = None,
) -> GramOperator:
    """Return K = k(X, Z) as an operator; `Z=None` means the symmetric K = k(X, X).

    ========== ====================================== ==========================================
    storage    when                                   result
    ========== ====================================== ==========================================
    "dense"    8 n m bytes and tiles fit the budget   DenseGram
               they do not                            MemoryBudgetError, before any allocation
    "tiled"    n rows and a few tiles fit the budget  TiledGram
               they do not                            MemoryBudgetError, before any allocation
    "auto"     the values are given (Precomputed)     DenseGram on them
               Z is given: K is read once             as "tiled"
               k(X, X) fits the budget                DenseGram
               otherwise                              as "tiled"
    ========== ====================================== ==========================================

    Parameters
    ----------
    kernel : Kernel, or what `mercer.kernels.as_kernel` takes
        A Kernel has all its values resolved; for others X resolves them.
    X, Z : points
    storage : {"auto", "dense", "tiled"}
    max_memory : int, str or None
        The budget, in bytes or as "2 GiB"; None for half of the machine's memory.
    n_threads : int, optional
        All processors by default.  Results do not depend on it.

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
    if not isinstance(kernel, Kernel):
        kernel = as_kernel(kernel).resolve(X)
    if storage not in ("auto", "dense", "tiled"):
        raise ValueError(f"storage must be 'auto', 'dense' or 'tiled', got {storage!r}")
    budget = budget_in_bytes(max_memory)
    if isinstance(kernel, Precomputed) and storage != "tiled":
        return _given(kernel, X, Z, n_threads)
    n, m = points_length(X, Z)
    threads = check_threads(n_threads)
    dense = 8 * n * m + working_bytes(kernel, X, Z, 0, threads)
    if storage == "auto":
        storage = "dense" if Z is None and dense <= budget else "tiled"
    if storage == "dense" and dense <= budget:
        return DenseGram(kernel, X, Z, n_threads=n_threads)
    tiled = working_bytes(kernel, X, Z, 1, threads)
    if storage == "dense":
        raise MemoryBudgetError(
            f"K is {n} x {m} and needs {in_words(dense)}, but the budget is {in_words(budget)}; "
            f"storage='tiled' needs {in_words(tiled)}, or raise max_memory"
        )
    if tiled > budget:
        raise MemoryBudgetError(
            f"no plan for the {n} x {m} matrix K fits the budget of {in_words(budget)}: "
            f"dense needs {in_words(dense)}, tiled {in_words(tiled)}; raise max_memory"
        )
    return TiledGram(kernel, X, Z, n_threads=n_threads, max_memory=budget)


def _given(kernel: Precomputed, X: Any, Z: Any, n_threads: int | None) -> DenseGram:
    """Hold the values that the user computed; all of them, in order, without a copy."""
    if Z is not None:
        return DenseGram(kernel, X, Z, n_threads=n_threads)
    values, index = on_indices(kernel, X)
    if not np.array_equal(index, np.arange(len(values.matrix))):
        return DenseGram(values, index, n_threads=n_threads)
    return DenseGram.from_array(values.matrix, kernel, X, n_threads=n_threads)
