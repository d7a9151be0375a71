"""Base class of blocks of rows that are processed one block at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from .._core import MemoryLimit, Points, ProgressCallback, check_budget, length

Result = TypeVar("Result")
# One value or row per point: targets or weights.
RowValues: TypeAlias = "np.ndarray | Blocks | None"


class BlockRows(NamedTuple):
    """The data of one block.

    Attributes
    ----------
    place : int
        Index of the block.
    start : int
        Index of its first row among all rows.
    X : ndarray
        The points of the block; for blocks of targets, the targets.
    y, weights : ndarray or None
        Targets and sample weights of the rows.
    log : callable or None
        Called with progress messages inside the block; only for points in memory.
    """

    place: int
    start: int
    X: Points
    y: Any = None
    weights: Any = None
    log: ProgressCallback | None = None


class BlockPass(NamedTuple):
    """One pass over blocks; see `Blocks.reduce` for the attributes.

    The result is the list of ``f(rows, *shared)``, or its reduction by `merge` if that is given.
    """

    f: Callable[..., Any]
    shared: tuple
    merge: Callable[[Any, Any], Any] | None = None
    log: ProgressCallback | None = None


class SpreadTask(NamedTuple):
    """Computation that is independent of blocks, and is spread over their workers by jobs.

    Attributes
    ----------
    f : callable
        ``f(static, inputs, job)`` returns the result of one job.
    merge : callable
        ``merge(a, b)`` combines two results.
    static : tuple
        Arguments whose second element is the same object in many tasks; they are sent to the
        workers only once.
    inputs : object
        Arguments of this task.
    """

    f: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    static: tuple[object, object]
    inputs: object


class Blocks(ABC):
    """Rows of a data set in blocks, which may be in files or on other computers.

    Estimators accept Blocks in place of the array X, for data that does not fit the memory.  Create
    them with `Blocks.of` (from an array) or `open_blocks` (from files), or pass a Dask collection
    to an estimator.  Each pass over the data reads the blocks again; they are not kept in memory.

    Results are bit-for-bit identical for the same blocks, no matter which thread or worker
    processes which block.

    Attributes
    ----------
    sizes : tuple of int
        Number of rows of each block.
    width : int or None
        Number of columns; None for one value per row, such as targets.
    names : list of str or None
        Names of the columns.
    y, weights : array, Blocks or None
        Targets and sample weights of the rows; Blocks of the same sizes, or an array.

    See Also
    --------
    open_blocks : Blocks of files.

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
    y: Any = None
    weights: Any = None

    @staticmethod
    def of(X: Points, rows: int | None = None) -> Blocks:
        """Split an array or a data frame into blocks.

        Parameters
        ----------
        X : array or data frame
            The rows.  An array may be a memory-mapped file that does not fit in memory.
        rows : int or None, default None
            Number of rows of a block; None means as many as fit in 16 MiB.  Larger blocks need more
            memory and have less overhead.

        Returns
        -------
        Blocks
            The rows in their order; the last block may have fewer rows than the others.
        """
        from ._array_blocks import ArrayBlocks  # avoid a circular import

        return ArrayBlocks.from_array(X, rows)

    # ------------------------------------------------------------------ properties

    def __len__(self) -> int:
        """Return the number of rows in all blocks."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns; only the number of rows if there is one value per row."""
        return (len(self),) if self.width is None else (len(self), self.width)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the rows: 1 for one value per row, else 2."""
        return len(self.shape)

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Data type of the original values."""

    @property
    def starts(self) -> list[int]:
        """Index of the first row of each block."""
        return [0, *np.cumsum(self.sizes)[:-1].tolist()]

    def __repr__(self) -> str:
        columns = "" if self.width is None else f" x {self.width}"
        return f"<{type(self).__name__}: {len(self)}{columns} in {len(self.sizes)} blocks>"

    # ------------------------------------------------------------------ passes

    def map(self, f: Callable[..., Result], *shared: object) -> list[Result]:
        """Apply a function to all blocks, in one pass.

        Parameters
        ----------
        f : callable
            Called with the `BlockRows` of each block, followed by `shared`; see `reduce` for its
            requirements.
        *shared : objects
            Arguments that are the same for all blocks.

        Returns
        -------
        list
            ``f(rows, *shared)`` for each block, in the order of the blocks.
        """
        return self._run(BlockPass(f, shared))

    def reduce(
        self,
        f: Callable[..., Result],
        merge: Callable[[Result, Result], Result],
        *shared: object,
        log: ProgressCallback | None = None,
    ) -> Result:
        """Merge the results ``f(rows, *shared)`` of all blocks over a binary tree, in one pass.

        Parameters
        ----------
        f : callable
            Called with the `BlockRows` of each block, followed by `shared`.
        merge : callable
            ``merge(a, b)`` combines two results.  `f` and `merge` must be defined at the top level
            of a module, so that other processes can import them, and must not modify their
            arguments.
        *shared : objects
            Arguments that are the same for all blocks.
        log : callable or None, default None
            Called with progress messages.

        Returns
        -------
        object
            The merged result.
        """
        return self._run(BlockPass(f, shared, merge, log))

    @abstractmethod
    def _run(self, work: BlockPass) -> Any:
        """Make one pass over the blocks, and return its result."""

    def _with(self, y: RowValues, weights: RowValues) -> Self:
        """Return the same blocks with other targets and weights."""
        return replace(self, y=y, weights=weights)  # type: ignore[type-var]

    @abstractmethod
    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        """Return lazily computed blocks that contain f(block) for every block.

        Parameters
        ----------
        f : callable
            Function of the array of a block; it returns an array with the same number of rows.
        like : ndarray of shape (0, ...) or (n, ...)
            Array with the dtype of the result, and with its shape after the first axis.

        Returns
        -------
        Blocks or Dask array
            The results, with as many rows as these blocks.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """Number of processor cores that a pass uses."""

    @abstractmethod
    def spread(self, task: SpreadTask, jobs: Sequence[object]) -> Any:
        """Run all jobs of a task, and merge the results over a binary tree.

        The jobs run in this process, or on the workers of the Dask cluster that has the blocks.

        Parameters
        ----------
        task : SpreadTask
            The function of a job, the function that merges two results, and the arguments of all
            jobs.
        jobs : sequence of objects
            The argument of each job; at least one.

        Returns
        -------
        object
            The merged result.
        """

    def to_array(self, max_memory: MemoryLimit = None) -> np.ndarray:
        """Return all rows as one array.

        Parameters
        ----------
        max_memory : int, str or None, default None
            Memory budget in bytes, or as a string such as "2 GiB"; None means half of the memory of
            this computer.

        Returns
        -------
        ndarray of shape (n, width) or (n,)
            All rows; one dimension if there is one value per row.

        Raises
        ------
        MemoryBudgetError
            If the array exceeds the memory budget.
        """
        needed = 16 * len(self) * (self.width or 1)
        check_budget(needed, max_memory, f"all {len(self)} rows in one array")
        return concatenate_blocks(self, _points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return all rows as an array, so that NumPy functions and metrics accept blocks."""
        return np.asarray(self.to_array(), dtype=dtype)


def concatenate_blocks(blocks: Blocks, f: Callable[..., np.ndarray], *shared: object) -> np.ndarray:
    """Stack the arrays ``f(rows, *shared)`` of all blocks vertically, in one pass."""
    out: Any = None
    for start, size, part in zip(blocks.starts, blocks.sizes, blocks.map(f, *shared), strict=True):
        if out is None:
            out = np.empty((len(blocks), *part.shape[1:]), dtype=part.dtype)
        elif not np.can_cast(part.dtype, out.dtype):  # such as longer string labels
            out = out.astype(np.result_type(out, part))
        out[start : start + size] = part
    return np.asarray(out)


def string_column_names(table: object) -> list[str] | None:
    """Return the column names of a data frame if all are strings, otherwise None."""
    names = list(getattr(table, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _points(rows: BlockRows) -> np.ndarray:
    """Return the points of a block; passed to `concatenate_blocks` as `f`."""
    return rows.X


def validate_block(
    place: int, start: int, X: Points, y: Any, weights: Any, width: int | None, size: int
) -> BlockRows:
    """Validate the data of one block, and convert it to arrays.

    float32 and float64 are preserved; other numbers are converted to float64.  Error messages
    contain the index of the first invalid row.

    Parameters
    ----------
    place, start : int
        Index of the block, and of its first row among all rows.
    X, y, weights : array-like
        Points, targets and sample weights; the last two may be None.
    width : int or None
        Expected number of columns of X.
    size : int
        Expected number of rows.

    Returns
    -------
    BlockRows
    """
    X = _as_array(X)
    if width is not None:
        if X.ndim != 2 or X.shape[1] != width:
            raise ValueError(
                f"block {place} has the shape {X.shape}, but the first block has {width} columns; "
                f"all blocks must have the same number of columns"
            )
        if X.dtype not in (np.float64, np.float32):
            X = _as_float64(X, place, start)
        _check_finite(X, "X", place, start)
        X = np.ascontiguousarray(X)
    for what, values in (("X", X), ("y", y), ("sample_weight", weights)):
        if values is not None and length(values) != size:
            raise ValueError(
                f"block {place} of {what} has {length(values)} rows, but X has {size} in this "
                f"block; the usual cause is that the data changed between two passes, or that "
                f"{what} has other chunks than X"
            )
    y, weights = (None if part is None else _as_array(part) for part in (y, weights))
    if y is not None and y.dtype.kind in "fO":
        _check_finite(y, "y", place, start)
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        _check_finite(weights, "sample_weight", place, start)
        if np.any(weights < 0):
            row = int(np.argmax(weights < 0))
            raise ValueError(
                f"sample_weight must be non-negative, got {weights[row]:g} in block {place}, row "
                f"{row} (row {start + row} of all)"
            )
    return BlockRows(place, start, X, y, weights)


def _as_array(X: Points) -> np.ndarray:
    """Return an array or the values of a data frame; Python strings become a string array."""
    X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    return X.astype(np.str_) if X.dtype.kind == "O" and X.ndim == 1 and _are_strings(X) else X


def _are_strings(y: np.ndarray) -> bool:
    """Return True if all objects in an array are strings."""
    return all(isinstance(value, str) for value in y)


def _is_missing(values: np.ndarray) -> np.ndarray:
    """Return a mask of the objects that are missing values: None, NaN, or NA of pandas."""
    mask = [v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in values.flat]
    return np.reshape(mask, values.shape)


def _as_float64(X: np.ndarray, place: int, start: int) -> np.ndarray:
    """Convert the points of a block to float64; raise a ValueError if that is impossible."""
    try:
        if X.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if X.dtype.kind == "O":
            _check_finite(X, "X", place, start)
        raise ValueError(
            f"block {place} contains values that are not numbers ({error}); select the numeric "
            f"columns"
        ) from None


def _check_finite(A: np.ndarray, what: str, place: int, start: int) -> None:
    """Raise an error with the position of the first NaN, infinity or missing value, if any."""
    if A.dtype.kind != "O":
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(A.sum()):
                return
    bad = _is_missing(A) if A.dtype.kind == "O" else ~np.isfinite(A)
    if not bad.any():  # all values are finite; only their sum overflowed
        return
    row = int(np.argmax(bad.reshape(len(A), -1).any(axis=1)))
    value = A[row][bad[row]][0] if A.ndim > 1 else A[row]
    column = int(np.argmax(bad[row])) if A.ndim > 1 else None
    where = "" if column is None else f", column {column}"
    raise MissingValueError(
        f"{what} contains {value} in block {place}, row {row}{where} (row {start + row} of all); "
        f"remove such rows, or impute the values, before the fit",
        what,
        start + row,
        column,
    )


class MissingValueError(ValueError):
    """Error for a value that is missing or infinite.

    Parameters
    ----------
    message : str
        The message.
    what : {"X", "y", "sample_weight"}
        The argument that contains the value.
    row : int
        The index of the row among all rows.
    column : int or None
        The index of the column; None if there is only one.
    """

    # The defaults are needed to unpickle the error, which then restores its attributes.
    def __init__(
        self, message: str, what: str = "X", row: int = 0, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.what, self.row, self.column = what, row, column

    def add_position(self, position: str) -> None:
        """Put the position in a file in front of the message, unless it is empty."""
        if position:
            self.args = (f"{position}: {self.args[0]}",)


# --- Reduction over a fixed binary tree, with at most about log2(n) partial results in memory.


def tree_reduce(values: Iterable[Result], merge: Callable[[Result, Result], Result]) -> Result:
    """Reduce values pairwise: merge(merge(v0, v1), merge(v2, v3)), and so on.

    The merge order depends only on the number of values.  If the values are Dask tasks, the result
    is the task graph of the reduction.

    Examples
    --------
    >>> from mercer.blocks import tree_reduce
    >>> tree_reduce("abcdefg", lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    """
    # Height and value of each subtree that is not merged yet.
    pending: list[tuple[int, Result]] = []
    for value in values:
        height = 0
        while pending and pending[-1][0] == height:
            value, height = merge(pending.pop()[1], value), height + 1
        pending.append((height, value))
    if not pending:
        raise ValueError("there are no blocks, so there is nothing to merge")
    result = pending.pop()[1]
    while pending:
        result = merge(pending.pop()[1], result)
    return result
