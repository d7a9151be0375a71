"""A source of tables: a file that is read in blocks of rows, as often as one likes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np

from ._table import EMPTY, NUMBER, TEXT, Table, TableError

__all__ = ["STANDARD_INPUT", "Source"]

STANDARD_INPUT = "standard input"  # its name in messages
_ENTRIES, _MOST, _LEAST = 2**22, 2**16, 2**10  # of a block: entries, and rows


class Shape(NamedTuple):
    """What a first reading finds out: how many rows, and what each column holds."""

    rows: int
    kinds: dict[str, str]


class Source(ABC):
    """A file of rows.

    A column holds numbers if all its rows do, which only the last row tells; so the file is read
    once for its shape, and then in blocks of a number of rows that depends on its columns alone.

    Attributes
    ----------
    name : str
        The file as the user named it, for messages.
    path : Path
    share : float
        How much of the file has been read, from 0 to 1, while it is.
    notes : list of str
        What was found out about the file and not told by it: a delimiter, a missing header.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path, self.name = path, name or str(path)
        self.share, self.notes = 0.0, list[str]()
        self._kept: Table | None = None

    @abstractmethod
    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        """Yield tables of so many rows; of the kinds given, or of what each seems to hold."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns there are."""

    @property
    def rows_of_a_block(self) -> int:
        """How many rows are read at a time."""
        return int(np.clip(_ENTRIES // max(1, self.width), _LEAST, _MOST))

    @cached_property
    def shape(self) -> Shape:
        """Read all of it once, and keep it if it is one block."""
        rows, kinds, tables = 0, dict[str, str](), 0
        for table in self._read(self.rows_of_a_block, None):
            rows, tables = rows + len(table), tables + 1
            for name, kind in table.kinds.items():
                kinds[name] = _both(kinds.get(name, EMPTY), kind)
            self._kept = table if tables == 1 else None
        if not rows:
            raise self._without("has no rows")
        return Shape(rows, {n: NUMBER if kind == EMPTY else kind for n, kind in kinds.items()})

    def _without(self, what: str) -> TableError:
        """Return the error of a file with nothing in it."""
        look = f" - look at it with: head {quote(self.name)}"
        return TableError(
            f"{self.name} {what} - usually a file that was cut off, or the output of a command "
            f"that failed{'' if self.name == STANDARD_INPUT else look}"
        )

    @property
    def title(self) -> str:
        """The name of the file, without its folders."""
        return Path(self.name).name or self.name

    def blocks(self, texts: Iterable[str] = ()) -> Iterator[Table]:
        """Yield the rows in blocks, whose columns all have the same kinds.

        Parameters
        ----------
        texts : names
            Columns to read as text, as it is written in the file, even if all of it are numbers.
        """
        kinds = self.shape.kinds
        changed = {name for name in texts if kinds.get(name) == NUMBER}
        if changed:
            yield from self._read(self.rows_of_a_block, kinds | dict.fromkeys(changed, TEXT))
        elif self._kept is not None:
            self.share = 1.0
            yield self._kept
        else:
            yield from self._read(self.rows_of_a_block, kinds)

    def table(self, texts: Iterable[str] = ()) -> Table:
        """Return all rows at once; `texts` as in `blocks`."""
        return Table.joined(list(self.blocks(texts)))

    def sample(self, count: int, random_state: int = 0) -> Table:
        """Return rows drawn at random without repetition, in their order; all if there are few."""
        n = self.shape.rows
        if count >= n:
            return self.table()
        drawn = np.sort(np.random.default_rng(random_state).choice(n, count, replace=False))
        parts, start = [], 0
        for block in self.blocks():
            some = drawn[(drawn >= start) & (drawn < start + len(block))] - start
            parts.append(block.take(some))
            start += len(block)
        return Table.joined(parts)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the file's bytes; of a folder, of those of all its files."""
        digest = hashlib.sha256()
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        for file in files:
            with file.open("rb") as stream:
                while chunk := stream.read(2**20):
                    digest.update(chunk)
        return digest.hexdigest()


def _both(one: str, other: str) -> str:
    """Return what a column holds whose parts hold these."""
    if EMPTY in (one, other):
        return other if one == EMPTY else one
    return TEXT if TEXT in (one, other) else one
