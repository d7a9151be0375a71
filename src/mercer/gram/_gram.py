"""gram(): the one table from sizes and wishes to a way of holding K."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._errors import MemoryBudgetError
from .._runtime import budget_in_bytes, check_threads, in_words
from ..kernels import Kernel, Precomputed
from ._dense import DenseGram
from ._operator import GramOperator, points_length
from ._tiled import TiledGram, working_bytes

__all__ = ["gram"]

_ASYMMETRY = 1e-8  # of the largest entry, before a precomputed matrix is called asymmetric


def gram(
    kernel: Kernel,
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
    "dense"    8 n m bytes fit the budget             DenseGram
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
    kernel : Kernel
        With all its values resolved.
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
    >>> gram(RBF(), X, storage="tiled")
    <TiledGram 3x3, float64, RBF(length_scale=1.0)>
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"gram needs a Kernel, got {kernel!r}; mercer.kernels.as_kernel turns names, "
            f"functions and scikit-learn's kernels into one"
        )
    if storage not in ("auto", "dense", "tiled"):
        raise ValueError(f"storage must be 'auto', 'dense' or 'tiled', got {storage!r}")
    budget = budget_in_bytes(max_memory)
    if isinstance(kernel, Precomputed) and kernel.matrix is None and storage != "tiled":
        given = _given(kernel, X, Z)
        given.n_threads = n_threads
        return given
    n, m = points_length(X, Z)
    dense = 8 * n * m
    tiled = working_bytes(kernel, X, Z, 1, check_threads(n_threads))
    if storage == "auto":
        storage = "dense" if Z is None and dense <= budget else "tiled"
    if storage == "dense":
        if dense > budget:
            raise MemoryBudgetError(
                f"K is {n} x {m} and needs {in_words(dense)}, but the budget is "
                f"{in_words(budget)}; storage='tiled' needs {in_words(tiled)}, "
                f"or raise max_memory"
            )
        return DenseGram(kernel, X, Z, n_threads=n_threads)
    if tiled > budget:
        raise MemoryBudgetError(
            f"no plan for the {n} x {m} matrix K fits the budget of {in_words(budget)}: "
            f"dense needs {in_words(dense)}, tiled {in_words(tiled)}; raise max_memory"
        )
    return TiledGram(kernel, X, Z, n_threads=n_threads, max_memory=budget)


def _given(kernel: Precomputed, X: Any, Z: Any) -> DenseGram:
    """Hold the values that the user computed; the symmetric part, with a warning, if need be."""
    if Z is not None:
        K = kernel(X, Z)
        return DenseGram.from_array(K, kernel, X, Z)
    kernel.diag(X)  # checks that X is square and finite
    X = X.toarray() if hasattr(X, "toarray") else X
    K = np.asarray(X) if np.asarray(X).dtype in (np.float32, np.float64) else np.asarray(X, float)
    largest = np.abs(K).max(initial=0.0)
    for start in range(0, len(K), 512):
        part = slice(start, start + 512)
        gap = np.abs(K[part] - K[:, part].T).max()
        if gap > _ASYMMETRY * largest:
            warnings.warn(
                f"the precomputed matrix is not symmetric: K and its transpose differ by "
                f"{gap:.3g}, with entries up to {largest:.3g}; its symmetric part (K + K.T) / 2 "
                f"is used. The usual cause is a wrong order of rows or columns",
                UserWarning,
                stacklevel=3,
            )
            K = 0.5 * (K + K.T)
            break
    return DenseGram.from_array(K, kernel, X)
