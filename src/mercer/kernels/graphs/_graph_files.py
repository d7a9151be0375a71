"""Read graphs from files in the TUDataset format and in GraphML."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._graph_conversion import Entries, as_label_array

_FILE_PARTS = (  # a dataset NAME consists of the files NAME_<part>.txt
    "A",
    "graph_indicator",
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "edge_labels",
    "node_attributes",
)


def read_graphml(paths: Any) -> list[Any]:
    """Return the graphs of one or more GraphML files as networkx graphs."""
    try:
        from networkx.readwrite.graphml import GraphMLReader
    except ImportError:
        raise ImportError("reading GraphML requires networkx: pip install networkx") from None
    paths = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    return [graph for path in paths for graph in GraphMLReader()(path=path)]


def read_tudataset(path: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Return the arguments of `Graphs` for a TUDataset, and a label or target for each graph."""
    files = _TUFiles(Path(path))
    edges, owner = files.table("A") - 1, files.table("graph_indicator")[:, 0] - 1
    targets = files.table("graph_labels", required=not files.has("graph_attributes"))
    if targets is None:
        targets = files.table("graph_attributes", dtype=float)
    n = len(targets)
    if len(owner) and not 0 <= owner.min() <= owner.max() < n:
        raise ValueError(
            f"{path}: NAME_graph_indicator.txt refers to graphs {owner.min() + 1} to "
            f"{owner.max() + 1}, but there are labels only for graphs 1 to {n}; the usual cause is "
            f"a truncated file or files of different datasets"
        )
    order = np.argsort(owner, kind="stable")  # group the nodes by graph
    new_number = np.argsort(order)
    if edges.size and not 0 <= edges.min() <= edges.max() < len(owner):
        raise ValueError(
            f"{path}: NAME_A.txt refers to nodes {edges.min() + 1} to {edges.max() + 1}, but "
            f"NAME_graph_indicator.txt has only nodes 1 to {len(owner)}; the usual cause is a "
            f"truncated file or files of different datasets"
        )
    ends = new_number[edges.reshape(-1, 2)]
    labels = files.labels("node_labels", len(owner))
    attributes = files.table("node_attributes", len(owner), dtype=float, required=False)
    arguments = {
        "sizes": np.bincount(owner, minlength=n),
        "entries": Entries(ends[:, 0], ends[:, 1], files.labels("edge_labels", len(ends))),
        "labels": None if labels is None else labels[order],
        "attributes": None if attributes is None else attributes[order],
    }
    return arguments, targets[:, 0] if targets.shape[1] == 1 else targets


class _TUFiles:
    """The contents of the files NAME_<part>.txt of a folder or a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._texts: dict[str, str] = {}
        if path.is_dir():
            for file in sorted(path.iterdir()):
                self._read_part(file.name, file.read_bytes)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    self._read_part(name, lambda name=name: archive.read(name))
        else:
            kind = "neither a folder nor a zip file" if path.exists() else "missing"
            raise FileNotFoundError(
                f"{path} is {kind}; pass a folder with the files NAME_A.txt, "
                f"NAME_graph_indicator.txt and NAME_graph_labels.txt, or a zip file of them"
            )

    def _read_part(self, name: str, read: Any) -> None:
        """Store the text of a file if its name ends with _<part>.txt; `read` returns its bytes."""
        for part in _FILE_PARTS:
            if name.endswith(f"_{part}.txt"):
                try:
                    self._texts[part] = read().decode("utf-8")
                except (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, OSError) as error:
                    raise ValueError(f"{self.path}: {name} cannot be read: {error}") from None

    def has(self, part: str) -> bool:
        """Return True if the file NAME_<part>.txt exists."""
        return part in self._texts

    def table(
        self, part: str, n_rows: int | None = None, *, dtype: Any = np.int64, required: bool = True
    ) -> Any:
        """Return the numbers of a file, one row per line; None if an optional file is missing."""
        if part not in self._texts:
            if not required:
                return None
            raise FileNotFoundError(
                f"{self.path} has no file NAME_{part}.txt, which is required; the parts found are "
                f"{sorted(self._texts) or 'none'}"
            )
        words = self._texts[part].split()  # "1, 2" is split into "1," and "2"
        rows = self._texts[part].strip().count("\n") + 1 if words else 0
        flat = "".join(word if word.endswith(",") else f"{word}," for word in words)
        try:
            values = np.array(flat.rstrip(",").split(",") if flat else [], dtype=dtype)
            table = values.reshape(rows, -1) if rows else values.reshape(0, 1)
        except (ValueError, OverflowError) as error:
            where, reason = _first_bad_line(self._texts[part], dtype) or ("", str(error))
            raise ValueError(
                f"{self.path}: NAME_{part}.txt{where} cannot be read: {reason}"
            ) from None
        if part == "A" and len(table) and table.shape[1] != 2:
            raise ValueError(
                f"{self.path}: NAME_A.txt has {table.shape[1]} numbers per line, but an edge must "
                f"be a pair of nodes"
            )
        if n_rows is not None and len(table) != n_rows:
            raise ValueError(
                f"{self.path}: NAME_{part}.txt has {len(table)} lines, but {n_rows} are expected; "
                f"the file may be truncated"
            )
        return table

    def labels(self, part: str, count: int) -> np.ndarray | None:
        """Return the labels of a file, as tuples if it has several columns; None if missing."""
        table = self.table(part, count, required=False)
        if table is None or table.shape[1] == 1:
            return None if table is None else table[:, 0]
        return as_label_array(list(map(tuple, table.tolist())))


def _first_bad_line(text: str, dtype: Any) -> tuple[str, str] | None:
    """Return the position of the first malformed line, and the reason; None if there is none.

    A line is malformed if it contains text, or more or fewer numbers than the first line.
    """
    expected = None
    for number, line in enumerate(text.strip().splitlines(), start=1):
        cells = line.replace(",", " ").split()
        expected = len(cells) if expected is None else expected
        try:
            np.array(cells, dtype=dtype)
        except (ValueError, OverflowError) as error:
            return f", line {number},", str(error)
        if len(cells) != expected:
            return (
                f", line {number},",
                f"got {len(cells)} numbers, but {expected} in the first line",
            )
    return None
