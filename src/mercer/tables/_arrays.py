"""NPY and NPZ: arrays of NumPy, whose columns are numbered."""

from __future__ import annotations

import re
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ._source import Source
from ._table import MAX_EXACT, TEXT, Table, TableError, integer_column, nearest

__all__ = ["Arrays"]

_SETS = {  # words in the names of arrays, with one letter before them as in "Xtrain"
    "train": "(train|training|trn)",
    "valid": "(valid|validation|val|dev)",
    "test": "(test|testing|tst)",
}

_BROKEN: tuple[type[Exception], ...] = (
    ValueError,
    EOFError,
    OSError,
    KeyError,
    TypeError,
    SyntaxError,
    OverflowError,
)
_BROKEN += (zipfile.BadZipFile, zlib.error, tokenize.TokenError, UnicodeDecodeError, MemoryError)
_BROKEN += (NotImplementedError, RecursionError, AttributeError, IndexError)


class Arrays(Source):
    """One array of a .npy, read where it lies, or those of a .npz that have as many rows.

    Parameters
    ----------
    arrays : names, optional
        Which ones of a .npz to take; all, unless given.  "X=X_test" takes X_test and calls it X.
    """

    def __init__(self, path: Path, name: str = "", arrays: Sequence[str] = ()) -> None:
        super().__init__(path, name)
        self.arrays = tuple(arrays)

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        """The columns by name: views of the arrays."""
        columns: dict[str, np.ndarray] = {}
        found = self._load()
        if not self.arrays:
            self._check_one_table(found)
        rows = {name: len(array) for name, array in found.items()}
        if len(set(rows.values())) > 1:
            some = ", ".join(f"{name} {count}" for name, count in rows.items())
            most = max(rows.values(), key=list(rows.values()).count)
            together = ",".join(name for name, count in rows.items() if count == most)
            raise TableError(
                f"{self.name} has arrays of different length: {some} - usually training and test "
                f"sets in one file - name those that belong together: --arrays {together}"
            )
        origins: dict[str, str] = {}
        for name, array in found.items():
            if array.dtype.names:
                made = {field: array[field] for field in array.dtype.names}
            elif array.ndim == 1:
                made = {name: array}
            else:
                made = {f"{name}{j + 1}": array[:, j] for j in range(array.shape[1])}
            for called in made:
                if called in origins:
                    raise TableError(
                        f"{self.name}: the arrays {origins[called]!r} and {name!r} both have a "
                        f"column {called!r} - the columns of a matrix 'x' are called x1, x2, ... - "
                        f"rename one of the arrays: --arrays {origins[called]},other={name}"
                    )
            origins |= dict.fromkeys(made, name)
            columns |= made
        for name, column in columns.items():
            if column.ndim != 1 or column.dtype.kind not in "biufUS":
                raise TableError(
                    f"{self.name}, field {name!r}: values of the type {column.dtype} and shape "
                    f"{column.shape[1:]} are neither numbers nor text - convert them to float"
                )
        return columns

    def _check_one_table(self, found: dict[str, np.ndarray]) -> None:
        """Raise a TableError if the arrays are several tables, although they have equal lengths."""
        sets = {name: _set_of(name) for name in found}
        matrices = [n for n, array in found.items() if array.ndim == 2 and not array.dtype.names]
        rows = {len(array) for array in found.values()}
        several = len(set(sets.values()) - {""}) > 1
        if len(rows) > 1 or (len(matrices) < 2 and not several):
            return
        some = ", ".join(f"{name} {array.shape}" for name, array in found.items())
        first = matrices[0] if matrices else next(iter(found))
        same = [n for n in found if sets[n] == sets[first] and (n == first or n not in matrices)]
        what = "arrays of several sets" if several else f"{len(matrices)} arrays with columns"
        cause = "training and test sets in one file" if several else "features and targets"
        raise TableError(
            f"{self.name} has {what}: {some} - usually {cause}, which are not one table - name the "
            f"arrays of the table: --arrays {','.join(same)}"
        )

    def _load(self) -> dict[str, np.ndarray]:
        which = ""
        try:
            with self.path.open("rb") as raw:
                if raw.read(6) == b"\x93NUMPY":
                    array = np.load(self.path, mmap_mode="r", allow_pickle=False)
                    return {"x": self._checked("", array)}
                raw.seek(0)
                with np.load(raw, allow_pickle=False) as file:
                    found = {}
                    for called, name in self._wanted(file.files):
                        which = f", array {name!r}"
                        found[called] = self._checked(which, file[name])
                    return found
        except TableError:
            raise
        except _BROKEN as error:
            raise self._broken(which, error) from None

    def _wanted(self, known: list[str]) -> list[tuple[str, str]]:
        """Return what each array is to be called, and its name in the file."""
        wanted = [(text.split("=")[0], text.split("=")[-1]) for text in self.arrays or known]
        for _, name in wanted:
            if name not in known:
                raise TableError(
                    f"{self.name} has no array {name!r}{nearest(name, known)} it has "
                    f"{', '.join(known)}"
                )
        if not known:
            raise TableError(f"{self.name} has no arrays in it")
        origins: dict[str, str] = {}
        for called, name in wanted:
            if called in origins:
                raise TableError(
                    f"{self.name}: the arrays {origins[called]!r} and {name!r} are both to be "
                    f"called {called!r} - usually a name that was typed twice - give each array a "
                    f"different name: --arrays {called}={origins[called]},NAME={name}"
                )
            origins[called] = name
        return wanted

    def _checked(self, which: str, array: np.ndarray) -> np.ndarray:
        if array.ndim not in (1, 2):
            raise TableError(
                f"{self.name}{which}: shape {array.shape}, but a table has one row per point - "
                f"reshape it to (n, d)"
            )
        return array

    def _broken(self, which: str, error: Exception) -> TableError:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in text or "Python objects" in text:
            text = "Python objects inside, which are not read as they could run code"
        return TableError(
            f"{self.name}{which}: the header or the data cannot be read: {text} - usually a file "
            f"of another kind, or one that was cut off - save it again with numpy.save"
        )

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        n = len(next(iter(self._columns.values()), ()))
        booleans = tuple(name for name, c in self._columns.items() if c.dtype.kind == "b")
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            columns = {
                name: _plain(column[part], kinds[name] if kinds else None)
                for name, column in self._columns.items()
            }
            self.share = min(1.0, (start + rows) / n)
            yield Table(columns, self.name, None, start, booleans=booleans)


def _set_of(name: str) -> str:
    """Return "train", "valid" or "test" if the name of an array contains it, else ""."""
    for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name):
        for kind, pattern in _SETS.items():
            if re.fullmatch(rf"[a-z]?{pattern}", word.lower()):
                return kind
    return ""


def _plain(column: np.ndarray, kind: str | None = None) -> Any:
    if column.dtype.kind in "US":
        return (
            np.char.decode(column, "utf-8").astype(object)
            if column.dtype.kind == "S"
            else (column.astype(object))
        )
    found = np.asarray(column, dtype=np.float64)
    if column.dtype.kind in "iu" and (kind == TEXT or np.any(np.abs(found) >= MAX_EXACT)):
        return integer_column(column.tolist(), kind)
    return found
