"""Blocks: rows of a table of numbers that are looked at one block after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .._points import length
from .._runtime import check_budget
from ._tree import tree

__all__ = ["Blocks", "Rows", "checked", "concatenated", "texts"]


class Rows(NamedTuple):
    """One block: its number, its first row among all, its points, and what belongs to these."""

    place: int
    start: int
    X: np.ndarray
    y: Any = None
    weights: Any = None


class Blocks(ABC):
    """Rows in blocks, which need not be in memory, nor on this machine.

    Make them with `Blocks.of` (an array), `open_blocks` (files), or give a Dask collection to an
    estimator.  They are read again for each pass, and nothing of them is kept.

    Attributes
    ----------
    sizes : tuple of int
        How many rows each block has.
    width : int or None
        Columns; None for one value a row, such as targets.
    names : list of str or None
        Those of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks, KernelRidge
    >>> X = np.linspace(0, 6, 1000)[:, None]
    >>> blocks = Blocks.of(X, rows=300)
    >>> blocks.sizes, blocks.shape
    ((300, 300, 300, 100), (1000, 1))
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", solver="nystroem", rank=20)
    >>> model.fit(blocks, np.sin(X[:, 0])).predict([[1.0]]).round(3)
    array([0.841])
    """

    sizes: tuple[int, ...]
    width: int | None
    names: list[str] | None = None
    y: Any = None  # beside the rows: None, an array, or Blocks of the same sizes
    weights: Any = None

    @staticmethod
    def of(X: Any, rows: int | None = None) -> Blocks:
        """Return an array in blocks of so many rows, about 16 MiB by default."""
        from ._arrays import ArrayBlocks  # which is one of these

        return ArrayBlocks.cut(X, rows)

    # ------------------------------------------------------------------ what they are

    def __len__(self) -> int:
        """Return the number of rows, in all blocks."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return (len(self),) if self.width is None else (len(self), self.width)

    @property
    def ndim(self) -> int:
        """1 for one value a row, else 2."""
        return len(self.shape)

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Of the numbers, as they are given."""

    @property
    def starts(self) -> list[int]:
        """The first row of each block."""
        return [0, *np.cumsum(self.sizes)[:-1].tolist()]

    def __repr__(self) -> str:
        columns = "" if self.width is None else f" x {self.width}"
        return f"<{type(self).__name__}: {len(self)}{columns} in {len(self.sizes)} blocks>"

    # ------------------------------------------------------------------ passes

    def map(self, f: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return ``f(rows, *shared)`` for every block, in their order; one pass."""
        return list(self._answers(f, shared))

    def reduce(
        self, f: Callable[..., Any], merge: Callable[[Any, Any], Any], *shared: Any, say: Any = None
    ) -> Any:
        """Return ``f(rows, *shared)`` of all blocks, merged over the tree; one pass.

        Both are functions of a module, so that another process can find them, and change none of
        what they are given.
        """
        return tree(self._answers(f, shared, say), merge)

    @abstractmethod
    def _answers(
        self, f: Callable[..., Any], shared: Sequence[Any], say: Any = None
    ) -> Iterator[Any]:
        """Yield ``f(rows, *shared)`` of each block."""

    @abstractmethod
    def _with(self, y: Any, weights: Any) -> Self:
        """Return the same rows with these beside them."""

    @abstractmethod
    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        """Return f(block) of every block as rows again, computed when they are asked for.

        `like` has the type of the result, and the shape of one row of it, after the first axis.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many of them a pass has."""

    @abstractmethod
    def spread(
        self,
        f: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        kept: Any,
        given: Any,
        jobs: Sequence[Any],
    ) -> Any:
        """Return f(kept, given, job) of all jobs, merged over the tree, where the blocks are.

        `kept` is the same object again and again, and is sent there once.
        """

    def to_array(self, max_memory: Any = None) -> np.ndarray:
        """Return all rows in one array, if they fit the budget."""
        needed = 16 * len(self) * (self.width or 1)
        check_budget(needed, max_memory, f"all {len(self)} rows in one array")
        return concatenated(self, _points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return all rows, for functions of arrays such as metrics, if they fit the budget."""
        return np.asarray(self.to_array(), dtype=dtype)


def concatenated(blocks: Blocks, f: Callable[..., np.ndarray], *shared: Any) -> np.ndarray:
    """Return ``f(rows, *shared)`` of all blocks below each other, in one pass."""
    out: Any = None
    for start, size, part in zip(blocks.starts, blocks.sizes, blocks.map(f, *shared), strict=True):
        if out is None:
            out = np.empty((len(blocks), *part.shape[1:]), dtype=part.dtype)
        elif not np.can_cast(part.dtype, out.dtype):  # labels of a longer text
            out = out.astype(np.result_type(out, part))
        out[start : start + size] = part
    return np.asarray(out)


def texts(table: Any) -> list[str] | None:
    """Return the names of the columns of a table if all are texts, as scikit-learn wants them."""
    names = list(getattr(table, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _points(rows: Rows) -> np.ndarray:
    return rows.X


def checked(
    place: int, start: int, X: Any, y: Any, weights: Any, width: int | None, size: int
) -> Rows:
    """Return a block as numbers that can be computed with, or say which row of it cannot.

    float32 and float64 stay what they are, and other numbers become float64.
    """
    X = _plain(X)
    if width is not None:
        if X.ndim != 2 or X.shape[1] != width:
            raise ValueError(
                f"block {place} has the shape {X.shape}, but the first one has {width} columns; "
                f"all blocks need the same"
            )
        if X.dtype not in (np.float64, np.float32):
            X = _numbers(X, place, start)
        _refuse_infinite(X, "X", place, start)
        X = np.ascontiguousarray(X)
    for what, beside in (("X", X), ("y", y), ("sample_weight", weights)):
        if beside is not None and length(beside) != size:
            raise ValueError(
                f"block {place} of {what} has {length(beside)} rows, but X has {size} there; the "
                f"usual cause is data that changed between two passes, or other chunks"
            )
    y, weights = (None if part is None else _plain(part) for part in (y, weights))
    if y is not None and y.dtype.kind in "fO":
        _refuse_infinite(y, "y", place, start)
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        _refuse_infinite(weights, "sample_weight", place, start)
        if np.any(weights < 0):
            row = int(np.argmax(weights < 0))
            raise ValueError(
                f"sample_weight must be non-negative, got {weights[row]:g} in block {place}, row "
                f"{row} (row {start + row} of all)"
            )
    return Rows(place, start, X, y, weights)


def _plain(X: Any) -> np.ndarray:
    """Return an array; of a data frame, its values."""
    X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    return X.astype(np.str_) if X.dtype.kind == "O" and X.ndim == 1 and _texts(X) else X


def _texts(y: np.ndarray) -> bool:
    return all(isinstance(value, str) for value in y)


def _missing(values: np.ndarray) -> np.ndarray:
    """Tell which objects stand for a value that is not there: None, NaN, or pandas' NA."""
    found = [v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in values.flat]
    return np.reshape(found, values.shape)


def _numbers(X: np.ndarray, place: int, start: int) -> np.ndarray:
    try:
        if X.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if X.dtype.kind == "O":
            _refuse_infinite(X, "X", place, start)
        raise ValueError(
            f"block {place} holds what is no number ({error}); name the columns that are to be "
            f"points, and leave out the others"
        ) from None


def _refuse_infinite(A: np.ndarray, what: str, place: int, start: int) -> None:
    """Refuse NaN and infinity, and say where they are."""
    if A.dtype.kind != "O":
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(A.sum()):
                return
    bad = _missing(A) if A.dtype.kind == "O" else ~np.isfinite(A)
    if not bad.any():  # their sum alone overflowed
        return
    row = int(np.argmax(bad.reshape(len(A), -1).any(axis=1)))
    value = A[row][bad[row]][0] if A.ndim > 1 else A[row]
    column = f", column {int(np.argmax(bad[row]))}" if A.ndim > 1 else ""
    raise ValueError(
        f"{what} holds {value} in block {place}, row {row}{column} (row {start + row} of all); "
        f"leave out such rows, or fill them, before they are given"
    )
