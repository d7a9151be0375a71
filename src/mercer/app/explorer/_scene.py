"""The data of the explorer: points, their table and embeddings, and the file they came from."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Points, concatenate, is_table, length, take
from ...models.embedding import embedding_quality
from ...tables import Recipe, Table, as_texts
from ._embeddings import Embedding
from ._serialize import Message, column_message

_MAX_INITIAL_VALUES = 2**24  # at most this many table values are sent at first, others on request
_MAX_COLOR_COMPONENTS = 12  # the page offers at most this many components as colours


@dataclass(frozen=True, eq=False)
class Scene:
    """Points, their table and their embeddings, as shown by the explorer.

    Attributes
    ----------
    title : str
        Title of the page.
    table : Table
        Table with one row per point.
    points : points
        The points that the models were fitted to, and new points if there are any.
    embeddings : tuple of Embedding
        One or two embeddings of the points.
    recipe : Recipe or None
        The preprocessing that turns rows of the table into points, if they came from a table.
    color : str or None
        The column that colours the points initially.
    image : tuple of int or None
        Image shape, (rows, columns) or (rows, columns, 3), if the points are images.
    rows : ndarray or None
        The row number of each point in its file, counted from 1; None means 1, 2, 3, ...
    n_fitted : int or None
        The models were fitted to the first `n_fitted` points; None means all points.
    notes : tuple of str
        Messages shown on the page.
    derived_cache : dict
        Derived columns that have already been computed, by name.
    """

    title: str
    table: Table
    points: Points
    embeddings: tuple[Embedding, ...]
    recipe: Recipe | None = None
    color: str | None = None
    image: tuple[int, ...] | None = None
    rows: np.ndarray | None = None
    n_fitted: int | None = None
    notes: tuple[str, ...] = ()
    derived_cache: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.color is not None:
            self.table.column(self.color)
        if self.image is not None and int(np.prod(self.image)) != len(self.features):
            shape = "x".join(map(str, self.image))
            raise ValueError(
                f"images of {shape} have {int(np.prod(self.image))} pixels, but points have "
                f"{len(self.features)} columns; usually a column is not a pixel; "
                f"exclude it (--ignore), or use it as the colour (--color)"
            )

    def __len__(self) -> int:
        return length(self.table)

    @property
    def features(self) -> list[str]:
        """The names of the features, if the points are vectors."""
        are_vectors = self.recipe is not None and self.recipe.points == "vectors"
        return self.recipe.features if self.recipe is not None and are_vectors else []

    def with_embeddings(self, embeddings: tuple[Embedding, ...]) -> Scene:
        """Return a scene with other embeddings of the same points."""
        return replace(self, embeddings=embeddings, derived_cache={})

    @property
    def can_project(self) -> bool:
        """Whether rows of another table can be projected into the embeddings."""
        return self.recipe is not None and isinstance(self.points, (np.ndarray, list))

    @property
    def training_points(self) -> Points:
        """The points that the models are fitted to."""
        return self.points if self.n_fitted is None else take(self.points, slice(0, self.n_fitted))

    def projected(self, table: Table) -> Scene:
        """Return the scene with new rows projected into the embeddings.

        The added column `set` contains "data" for the old rows and "new" for the new rows.
        """
        if self.recipe is None or not self.can_project:
            raise ValueError(
                "new rows cannot be projected, because the points do not come from a table"
            )
        new = table.take(self.recipe.kept_rows(table))
        points = self.recipe.transform(table)
        before = self.table.columns.get("set", np.array(["data"] * len(self), dtype=object))
        columns = {
            name: _append_column(values, new, name) for name, values in self.table.columns.items()
        }
        columns["set"] = np.concatenate([before, np.array(["new"] * len(new), dtype=object)])
        embeddings = tuple(
            replace(m, coordinates=np.concatenate([m.coordinates, m.model.transform(points)]))
            for m in self.embeddings
        )
        rows = np.arange(1, len(self) + 1) if self.rows is None else self.rows
        return replace(
            self,
            table=Table(columns, self.table.source),
            points=concatenate(self.points, points),
            embeddings=embeddings,
            color="set",
            rows=np.concatenate([rows, 1 + self.recipe.kept_rows(table)]),
            n_fitted=len(self) if self.n_fitted is None else self.n_fitted,
            derived_cache={},
        )

    # ------------------------------------------------------------------ derived columns

    @property
    def derived(self) -> dict[str, Callable[[], np.ndarray]]:
        """For each column that is computed from the models, a function that returns its values."""
        columns: dict[str, Any] = {}
        for e in self.embeddings:
            columns[f"trustworthiness in {e.title}"] = lambda e=e: self._trustworthiness(e)
        for e in self.embeddings:
            if e.is_kernel_pca:
                for j in range(min(_MAX_COLOR_COMPONENTS, e.coordinates.shape[1])):
                    columns[f"component {j + 1}"] = lambda e=e, j=j: e.coordinates[:, j]
                columns["reconstruction error"] = lambda e=e: e.model.reconstruction_error(
                    self.points
                )
        return columns

    def _trustworthiness(self, embedding: Embedding) -> np.ndarray:
        """Return the trustworthiness of the embedding at each point, with 10 neighbours.

        `embedding_quality` may evaluate a random sample; the other points have the value NaN.
        """
        kernel = None if self.features else embedding.model.kernel_
        shown = np.column_stack([embedding.axis_values(0), embedding.axis_values(1)]).astype(float)
        quality = embedding_quality(self.points, shown, kernel=kernel)
        values = np.full(len(self), np.nan)
        values[quality.rows] = quality.points.trustworthiness
        return values

    def column(self, name: str) -> Message:
        """Return the message for a table column or derived column, which is computed if needed."""
        if name in self.table.columns:
            return column_message(name, self.table.columns[name])
        if name not in self.derived_cache:
            self.derived_cache[name] = np.asarray(self.derived[name](), dtype=np.float32)
        return column_message(name, self.derived_cache[name], derived=True)

    # ------------------------------------------------------------------ records

    def record(self, points: Points) -> list[tuple[str, str]]:
        """Return (column name, text) pairs that describe one point in the units of the table."""
        if self.recipe is not None:
            columns = self.recipe.inverse_transform(points)
        elif is_table(points) and len(points.shape) == 2:
            columns = {str(name): list(points[name]) for name in points.columns}
        else:
            columns = {"point": points}
        return [(name, _format_value(values[0])) for name, values in columns.items()]

    def pixels(self, points: Points) -> np.ndarray | None:
        """Return the pixel values of one point in the units of the table; None if not an image."""
        if self.image is None or self.recipe is None:
            return None
        return np.array(
            [values[0] for values in self.recipe.inverse_transform(points).values()], "f4"
        )

    # ------------------------------------------------------------------ messages

    def to_message(self, *, live: bool, preimages: int = 0) -> Message:
        """Return the scene as a message for the web page.

        Parameters
        ----------
        live : bool
            Whether the page is connected to a server and can request more data.  If False, the
            message contains all columns.
        preimages : int, default=0
            Number of grid positions per axis; their pre-images are included in the message.
        """
        names = list(self.table.columns)
        columns = [
            self.column(name)
            if not live or j * len(self) < _MAX_INITIAL_VALUES
            else {"name": name, "type": "numbers", "derived": False}
            for j, name in enumerate(names)
        ]
        notes = list(self.notes)
        if not live:
            limited = "pre-images between the positions of a grid" if preimages else "pre-images"
            absent = [name for name in self.derived if name not in self.derived_cache]
            columns_ = f", and the columns {', '.join(absent)}" if absent else ""
            notes.append(
                f"This page contains no model. Not available: {limited}, contours of "
                f"eigenfunctions, new fits{columns_}."
            )
        return {
            "kind": "scene",
            "title": self.title,
            "rows": len(self),
            "ids": None if self.rows is None else self.rows.astype(np.uint32),
            "columns": columns + self.derived_columns(live=live),
            "color": self.color,
            "image": self._image_message(names),
            "panes": [e.to_message() | self._preimage_grid(e, preimages) for e in self.embeddings],
            "notes": notes,
            "controls": None,
        }

    def _preimage_grid(self, embedding: Embedding, count: int) -> Message:
        """Return the pre-images at the positions of a grid, in the units of the table."""
        if not count or not embedding.has_inverse or self.recipe is None or not self.features:
            return {}
        positions, box = embedding.grid(count, 0.0)
        preimages = embedding.preimages(positions)
        restored = [self.recipe.inverse_transform(preimage.points) for preimage in preimages]
        values = np.array([[column[0] for column in point.values()] for point in restored], "f4")
        message = {"count": count, "names": list(restored[0]), "values": values.reshape(-1)}
        texts = [preimage.text for preimage in preimages]
        return {"preimages": message | box._asdict() | {"texts": texts}}

    def derived_columns(self, *, live: bool) -> list[Message]:
        """Return the derived columns; only those that have been computed contain values."""
        return [
            self.column(name)
            if name in self.derived_cache
            else {"name": name, "type": "numbers", "derived": True}
            for name in self.derived
            if live or name in self.derived_cache
        ]

    def _image_message(self, names: list[str]) -> Message | None:
        if self.image is None:
            return None
        values = [self.table.columns[name] for name in self.features]
        return {
            "shape": list(self.image),
            "columns": [names.index(name) for name in self.features],
            "low": float(min(np.nanmin(v) for v in values)),
            "high": float(max(np.nanmax(v) for v in values)),
        }


def _append_column(values: Any, new: Table, name: str) -> Any:
    """Append the values of new rows to a column; missing values if they lack the column."""
    if name in new.columns:
        more = new.columns[name]
        if isinstance(values, np.ndarray) and values.dtype == object:
            more = as_texts(more)
        return concatenate(values, more)
    absent = None if values.dtype == object else np.nan
    return np.concatenate([values, np.full(len(new), absent, dtype=values.dtype)])


def _format_value(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    text = str(value)
    return text if len(text) <= 400 else f"{text[:397]}..."


FileStamp = tuple[int, ...] | str | None
_MISSING = "missing"  # `file_stamp` of a file that does not exist


def file_stamp(path: Path | None) -> FileStamp:
    """Return a value that changes when the file changes; None if `path` is None."""
    if path is None:
        return None
    try:
        stat = os.stat(path)
    except OSError:
        return _MISSING
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


class WatchedScene:
    """The scene that new pages show, and the file from which it was read.

    Parameters
    ----------
    scene : function
        Returns the scene in memory.
    path : Path, optional
        The file that the scene was read from.
    read : function, optional
        Reads the file again and returns the new scene.
    stamp : optional
        The value of `file_stamp(path)` before the file was read, so that changes since then are
        detected.
    """

    def __init__(
        self,
        scene: Callable[[], Scene],
        path: Path | None = None,
        read: Callable[[], Scene] | None = None,
        stamp: FileStamp = None,
    ) -> None:
        self._scene, self.path, self._read = scene, path, read
        self.stamp = file_stamp(path) if stamp is None else stamp
        self._lock = threading.Lock()

    @property
    def scene(self) -> Scene:
        """The scene that was read most recently."""
        return self._scene()

    @property
    def can_read(self) -> bool:
        """Whether the file can be read again."""
        return self._read is not None

    @property
    def is_gone(self) -> bool:
        """Whether the file no longer exists."""
        return self.path is not None and file_stamp(self.path) == _MISSING

    def changed_since(self, stamp: FileStamp) -> bool:
        """Return True if the file has changed since `file_stamp` returned this stamp."""
        return self.path is not None and file_stamp(self.path) != stamp

    def refresh(self) -> bool:
        """Read the file again if it has changed since it was last read; return True if so."""
        with self._lock:
            now = file_stamp(self.path)
            if self._read is None or now in (self.stamp, _MISSING):
                return False
            scene = self._read()
            self._scene, self.stamp = (lambda: scene), now
            return True
