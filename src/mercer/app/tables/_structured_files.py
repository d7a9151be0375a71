"""Read FASTA files and TUDataset folders of graphs as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets import read_fasta, read_tudataset
from ._table import Table, TableError
from ._table_source import Source

__all__ = ["FastaSource", "GraphFolderSource"]


class SingleBlockSource(Source):
    """Base class of sources that read all rows as one block."""

    width = 2

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(path, name)

    def _table(self) -> Table:
        raise NotImplementedError

    def _read(self, rows: int, kinds: dict[str, str] | None) -> Iterator[Table]:
        try:
            yield self._table()
        except (ValueError, OSError, OverflowError) as error:
            text = str(error)
            raise TableError(text.replace(str(self.path), self.name)) from None

    @property
    def rows_per_block(self) -> int:
        """The maximum number of rows in a block, which is practically unlimited."""
        return 2**62


class FastaSource(SingleBlockSource):
    """A FASTA file, with the columns `name` and `sequence`."""

    def _table(self) -> Table:
        sequences, names = read_fasta(self.path)
        columns = {"name": names, "sequence": sequences}
        arrays = {name: np.array(texts, dtype=object) for name, texts in columns.items()}
        return Table(arrays, self.name, index_columns=("name",))


class GraphFolderSource(SingleBlockSource):
    """A folder or zip file in TUDataset format, with the columns `graph` and `label`."""

    def _table(self) -> Table:
        graphs, labels = read_tudataset(self.path)
        columns: dict[str, Any] = {"graph": graphs}
        labels = np.asarray(labels, dtype=float)
        if labels.ndim == 1:
            columns["label"] = labels
        else:
            columns |= {f"label{j + 1}": column for j, column in enumerate(labels.T)}
        return Table(columns, self.name)
