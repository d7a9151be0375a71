"""Graphs from files: the layout of TUDataset, and GraphML."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._graph_sources import Entries, as_values

__all__ = ["read_graphml", "read_tudataset"]

_PARTS = (
    "A",
    "graph_indicator",
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "edge_labels",
    "node_attributes",
)


def read_graphml(paths: Any) -> list[Any]:
    """Return the graphs of GraphML files as networkx graphs."""
    try:
        from networkx.readwrite.graphml import GraphMLReader
    except ImportError:
        raise ImportError("GraphML is read by networkx: pip install networkx") from None
    paths = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    return [graph for path in paths for graph in GraphMLReader()(path=path)]


def read_tudataset(path: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Return the arguments of `Graphs`, and a label or target for each graph."""
    files = _Files(Path(path))
    edges, owner = files.table("A") - 1, files.table("graph_indicator")[:, 0] - 1
    targets = files.table("graph_labels", needed=not files.has("graph_attributes"))
    if targets is None:
        targets = files.table("graph_attributes", dtype=float)
    n = len(targets)
    if len(owner) and not 0 <= owner.min() <= owner.max() < n:
        raise ValueError(
            f"{path}: NAME_graph_indicator.txt names the graphs {owner.min() + 1} to "
            f"{owner.max() + 1}, but labels are there for 1 to {n}"
        )
    order = np.argsort(owner, kind="stable")  # nodes of one graph together
    place = np.argsort(order)
    if edges.size and not 0 <= edges.min() <= edges.max() < len(owner):
        raise ValueError(
            f"{path}: NAME_A.txt names the nodes {edges.min() + 1} to {edges.max() + 1}, but "
            f"NAME_graph_indicator.txt knows 1 to {len(owner)}"
        )
    ends = place[edges.reshape(-1, 2)]
    labels = files.labels("node_labels", len(owner))
    attributes = files.table("node_attributes", len(owner), dtype=float, needed=False)
    arguments = {
        "sizes": np.bincount(owner, minlength=n),
        "entries": Entries(ends[:, 0], ends[:, 1], files.labels("edge_labels", len(ends))),
        "labels": None if labels is None else labels[order],
        "attributes": None if attributes is None else attributes[order],
    }
    return arguments, targets[:, 0] if targets.shape[1] == 1 else targets


class _Files:
    """The texts of the files NAME_<part>.txt of a folder or a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._texts: dict[str, str] = {}
        if path.is_dir():
            for file in sorted(path.iterdir()):
                self._keep(file.name, file.read_bytes)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    self._keep(name, lambda name=name: archive.read(name))
        else:
            kind = "neither a folder nor a zip file" if path.exists() else "not there"
            raise FileNotFoundError(
                f"{path} is {kind}; give a folder with the files NAME_A.txt, "
                f"NAME_graph_indicator.txt and NAME_graph_labels.txt, or a zip file of them"
            )

    def _keep(self, name: str, read: Any) -> None:
        for part in _PARTS:
            if name.endswith(f"_{part}.txt"):
                try:
                    self._texts[part] = read().decode("utf-8")
                except (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, OSError) as error:
                    raise ValueError(f"{self.path}: {name} cannot be read: {error}") from None

    def has(self, part: str) -> bool:
        return part in self._texts

    def table(
        self, part: str, count: int | None = None, *, dtype: Any = np.int64, needed: bool = True
    ) -> Any:
        """Return the numbers of a file, one row per line; None if it may be missing and is."""
        if part not in self._texts:
            if not needed:
                return None
            raise FileNotFoundError(
                f"{self.path} has no file NAME_{part}.txt, which a set of graphs needs; it has "
                f"those of {sorted(self._texts) or 'nothing'}"
            )
        lines = self._texts[part].split()  # "1, 2" falls into "1," and "2"
        rows = self._texts[part].strip().count("\n") + 1 if lines else 0
        flat = "".join(word if word.endswith(",") else f"{word}," for word in lines)
        try:
            values = np.array(flat.rstrip(",").split(",") if flat else [], dtype=dtype)
            table = values.reshape(rows, -1) if rows else values.reshape(0, 1)
        except (ValueError, OverflowError) as error:
            place, why = _first_bad(self._texts[part], dtype) or ("", str(error))
            raise ValueError(f"{self.path}: NAME_{part}.txt{place} cannot be read: {why}") from None
        if part == "A" and len(table) and table.shape[1] != 2:
            raise ValueError(
                f"{self.path}: NAME_A.txt has {table.shape[1]} numbers in a line, but an edge has "
                f"two ends"
            )
        if count is not None and len(table) != count:
            raise ValueError(
                f"{self.path}: NAME_{part}.txt has {len(table)} lines, but {count} are needed"
            )
        return table

    def labels(self, part: str, count: int) -> np.ndarray | None:
        """Return labels; several columns make tuples."""
        table = self.table(part, count, needed=False)
        if table is None or table.shape[1] == 1:
            return None if table is None else table[:, 0]
        return as_values(list(map(tuple, table.tolist())))


def _first_bad(text: str, dtype: Any) -> tuple[str, str] | None:
    """Return the first line that holds anything but numbers, or not as many as the first line."""
    wanted = None
    for number, line in enumerate(text.strip().splitlines(), start=1):
        cells = line.replace(",", " ").split()
        wanted = len(cells) if wanted is None else wanted
        try:
            np.array(cells, dtype=dtype)
        except (ValueError, OverflowError) as error:
            return f", line {number},", str(error)
        if len(cells) != wanted:
            return f", line {number},", f"{len(cells)} numbers, but {wanted} in the first line"
    return None
