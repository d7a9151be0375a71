"""The data of the explorer: points, their table and embeddings, and the file they came from."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Points, concatenate, is_table, length, take
from ...models.embedding import embedding_quality
from ...tables import Recipe, Table, as_texts
from ._clusters import (
    DEFAULT_CLUSTERS,
    cluster_column,
    cluster_points,
    describe_clusters,
)
from ._drawings import can_draw, drawings, node_labels, series_columns
from ._embeddings import Embedding, evaluate_in_blocks
from ._fitted_models import FittedModels
from ._neighbour_columns import (
    MAX_COLOR_CLASSES,
    MAX_LABEL_COLUMNS,
    MAX_NEIGHBOUR_POINTS,
    MAX_OTHER_CLASSES,
    NEAREST_DISTANCE,
    label_codes,
    label_disagreement,
    point_neighbours,
    points_kernel,
)
from ._serialize import Message, column_message, pack, point_text
from ._sessions import column_fingerprint

_MAX_INITIAL_VALUES = 2**24  # at most this many table values are sent at first, others on request
# A saved page contains the drawings of all points if there are at most this many, or at most four
# times as many and their drawings are at most this fraction of the page.
_MAX_SAVED_DRAWINGS = 500
_MAX_DRAWING_FRACTION = 0.2
_MAX_COLOR_COMPONENTS = 12  # the page offers at most this many components as colours


def _random_id() -> str:
    return secrets.token_hex(8)


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
    reading : str or None
        The Python expression that opens the file from which the table was read.
    session : str or None
        The session that the page shows when it is opened, as JSON; see `read_session`.
    derived_cache : dict
        Derived columns that have already been computed, by name.
    fitted : FittedModels
        The embeddings that were fitted most recently; all scenes with the same rows share them.
    key, version : str
        Random strings that identify the rows, and the rows with their embeddings.  A page that was
        reconnected sends them, so that it receives only what has changed.
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
    reading: str | None = None
    session: str | None = None
    derived_cache: dict[str, np.ndarray] = field(default_factory=dict)
    fitted: FittedModels = field(default_factory=FittedModels)
    key: str = field(default_factory=_random_id)
    version: str = field(default_factory=_random_id)

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
        return replace(self, embeddings=embeddings, derived_cache={}, version=_random_id())

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
            replace(e, coordinates=np.concatenate([e.coordinates, e.transform(points)]))
            for e in self.embeddings
        )
        rows = np.arange(1, len(self) + 1) if self.rows is None else self.rows
        return replace(
            self,
            table=replace(
                self.table,
                columns=columns,
                lines=None,
                booleans=tuple(n for n in self.table.booleans if n in new.booleans),
            ),
            points=concatenate(self.points, points),
            embeddings=embeddings,
            color="set",
            rows=np.concatenate([rows, 1 + self.recipe.kept_rows(table)]),
            n_fitted=len(self) if self.n_fitted is None else self.n_fitted,
            derived_cache={},
            fitted=FittedModels(),
            key=_random_id(),
            version=_random_id(),
        )

    def with_new_rows(self, embedding: Embedding) -> Embedding:
        """Return an embedding of the training points, with the coordinates of new points added."""
        n = len(embedding.coordinates)
        if n == len(self):
            return embedding
        new = embedding.transform(take(self.points, slice(n, None)))
        return replace(embedding, coordinates=np.concatenate([embedding.coordinates, new]))

    @property
    def projection_note(self) -> str:
        """A note about new rows that are not shown, or "" if both embeddings show them."""
        titles = [e.title for e in self.embeddings if not e.can_transform]
        if self.n_fitted is None or not titles:
            return ""
        return (
            f"{' and '.join(titles)} cannot embed new points, so that it shows only the "
            f"{self.n_fitted} points to which it was fitted."
        )

    # ------------------------------------------------------------------ derived columns

    @property
    def derived(self) -> dict[str, Callable[[], np.ndarray]]:
        """For each column that is computed from the models, a function that returns its values."""
        columns: dict[str, Any] = {}
        for e in self.embeddings:
            columns[f"trustworthiness in {e.title}"] = lambda e=e: self._trustworthiness(e)
            columns[cluster_column(e)] = lambda e=e: self._cluster_of_points(e, DEFAULT_CLUSTERS)
        suffix = ""  # for a second kernel PCA
        for e in self.embeddings:
            if e.is_kernel_pca:
                for j in range(min(_MAX_COLOR_COMPONENTS, e.coordinates.shape[1])):
                    name = f"component {j + 1}{suffix}"
                    columns[name] = lambda e=e, j=j: e.coordinates[:, j]
                columns[f"reconstruction error{suffix}"] = lambda e=e: evaluate_in_blocks(
                    e.model.reconstruction_error, self.points
                )
                suffix = " of the second kernel PCA"
        return self._neighbour_columns | columns

    @cached_property
    def _neighbour_columns(self) -> dict[str, Callable[[], np.ndarray]]:
        """The derived columns that are computed from the nearest neighbours of each point."""
        kernel = points_kernel(self.embeddings, self.points)
        if kernel is None or not 2 <= len(self) <= MAX_NEIGHBOUR_POINTS:
            return {}
        neighbours = cache(lambda: point_neighbours(kernel, self.points))  # used by all columns
        columns: dict[str, Callable[[], np.ndarray]] = {
            NEAREST_DISTANCE: lambda: neighbours().distances[:, 0]
        }

        def disagreement(labels: np.ndarray) -> Callable[[], np.ndarray]:
            return lambda: label_disagreement(neighbours(), labels)

        for name, labels in self._label_columns():
            columns[f"neighbours with another {name}"] = disagreement(labels)
        return columns

    def _label_columns(self) -> list[tuple[str, np.ndarray]]:
        """Return the columns that contain labels, and their classes: the colour and a few others.

        The others are columns with few classes that are not features of vectors.
        """
        used = {encoder.name for encoder in self.recipe.encoders_} if self.recipe else set()
        others = [name for name in self.table.columns if name not in used] if self.features else []
        first = [] if self.color is None else [(self.color, MAX_COLOR_CLASSES)]
        rest = [(name, MAX_OTHER_CLASSES) for name in others if name != self.color]
        found = (
            (name, codes)
            for name, max_classes in [*first, *rest]
            if (codes := label_codes(self.table, name, max_classes)) is not None
        )
        return list(islice(found, MAX_LABEL_COLUMNS))

    def _trustworthiness(self, embedding: Embedding) -> np.ndarray:
        """Return the trustworthiness of the embedding at each point, with 10 neighbours.

        `embedding_quality` may evaluate a random sample; the other points have the value NaN.
        """
        models = [embedding.model, *(e.model for e in self.embeddings)]
        kernels = [model.kernel_ for model in models if getattr(model, "kernel_", None) is not None]
        kernel = None if self.features or not kernels else kernels[0]
        shown = np.column_stack([embedding.axis_values(0), embedding.axis_values(1)]).astype(float)
        known = np.flatnonzero(np.isfinite(shown).all(axis=1))
        points = self.points if len(known) == len(shown) else take(self.points, known)
        quality = embedding_quality(points, shown[known], kernel=kernel)
        values = np.full(len(self), np.nan)
        values[known[quality.rows]] = quality.points.trustworthiness
        return values

    def clusters(self, pane: int, count: int) -> Message:
        """Return the positions, sizes and labels of about `count` clusters in an embedding.

        The derived column of the clusters is replaced, so that it agrees with the labels.
        """
        embedding = self.embeddings[pane]
        labels = self._cluster_of_points(embedding, count)
        self.derived_cache[cluster_column(embedding)] = labels.astype(np.float32)
        return self._cluster_message(embedding)

    def _cluster_of_points(self, embedding: Embedding, count: int) -> np.ndarray:
        """Return the cluster of each point; points without coordinates have the value NaN."""
        labels = cluster_points(embedding, self.points, count)
        return np.where(labels > 0, labels, np.nan)

    def _cluster_message(self, embedding: Embedding) -> Message:
        labels = np.nan_to_num(self.derived_cache[cluster_column(embedding)]).astype(np.int64)
        clusters = describe_clusters(labels, embedding, self.table)
        return {
            "x": [c.x for c in clusters],
            "y": [c.y for c in clusters],
            "sizes": [c.size for c in clusters],
            "texts": [c.text for c in clusters],
        }

    def pane_message(self, embedding: Embedding) -> Message:
        """Return an embedding, and its clusters if they have been computed."""
        if cluster_column(embedding) not in self.derived_cache:
            return embedding.to_message()
        return embedding.to_message() | {"clusters": self._cluster_message(embedding)}

    def column(self, name: str) -> Message:
        """Return the message for a table column or derived column, which is computed if needed."""
        if name in self.table.columns:
            is_pixel = self.image is not None and name in self.features
            boolean = name in self.table.booleans and not is_pixel
            return column_message(name, self.table.columns[name], boolean=boolean)
        if name not in self.derived_cache:
            self.derived_cache[name] = np.asarray(self.derived[name](), dtype=np.float32)
        return column_message(name, self.derived_cache[name], derived=True)

    # ------------------------------------------------------------------ records

    def record(self, points: Points) -> list[tuple[str, str]]:
        """Return (column name, text) pairs that describe one point in the units of the table."""
        if self.recipe is not None and self.recipe.points in ("vectors", "rows"):
            columns: dict[str, Any] = self.recipe.to_texts(points)
        elif self.recipe is not None:
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

    # ------------------------------------------------------------------ drawings

    @cached_property
    def node_labels(self) -> list[str]:
        """The labels of the nodes of all graphs, the most frequent first; [] for other points."""
        return node_labels(self.points)

    def drawings(self, rows: np.ndarray) -> dict[int, Message]:
        """Return the drawings of the points with these indices, by index."""
        return drawings(self.points, rows, self.node_labels)

    def drawing(self, points: Points) -> Message | None:
        """Return the drawing of one point, such as a pre-image; None if it is not drawn."""
        return drawings(points, np.zeros(1, dtype=np.int64), self.node_labels).get(0)

    def _drawings_message(self, names: list[str], *, live: bool) -> Message | None:
        """Return how points are drawn; a saved page contains all drawings if they are small."""
        if self.image is not None:
            return None
        if can_draw(self.points):
            items = {} if live else self._saved_drawings()
            return {"kind": "items", "labels": self.node_labels, "items": items}
        values, kinds = self.table.columns, self.table.kinds
        used = (name for name in self.features if name in names and kinds.get(name) == "numbers")
        series = series_columns({name: values[name] for name in used})
        if not series:
            return None
        return {"kind": "series", "columns": [names.index(name) for name in series]}

    def _saved_drawings(self) -> dict[int, Message]:
        n = len(self)
        if n > 4 * _MAX_SAVED_DRAWINGS:
            return {}
        items = self.drawings(np.arange(n))
        if n <= _MAX_SAVED_DRAWINGS:
            return items
        coordinates = sum(8 * len(e.coordinates) for e in self.embeddings)
        size = len(pack(items))
        return items if size <= _MAX_DRAWING_FRACTION * (size + coordinates) else {}

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
            else {"name": name, "type": self._type(name), "derived": False}
            for j, name in enumerate(names)
        ]
        initial = [c for j, c in enumerate(columns) if j * len(self) < _MAX_INITIAL_VALUES]
        notes = [note for note in (*self.notes, self.projection_note) if note]
        if not live:
            limited = "pre-images between the positions of a grid" if preimages else "pre-images"
            absent = [name for name in self.derived if name not in self.derived_cache]
            columns_ = f", and the columns {', '.join(absent)}" if absent else ""
            notes.append(
                f"This page contains no model. Not available: {limited}, contours of "
                f"eigenfunctions, new fits{columns_}."
            )
        drawings_ = self._drawings_message(names, live=live)
        if not live and drawings_ and drawings_["kind"] == "items" and not drawings_["items"]:
            notes.append("This page does not contain the drawings of the points, to save space.")
        return {
            "kind": "scene",
            "title": self.title,
            "rows": len(self),
            "fingerprint": column_fingerprint(initial),
            "session": self.session,
            "ids": None if self.rows is None else self.rows.astype(np.uint32),
            "columns": columns + self.derived_columns(live=live),
            "color": self.color,
            "image": self._image_message(names),
            "drawings": drawings_,
            "panes": [
                self.pane_message(e) | self._preimage_grid(e, preimages) for e in self.embeddings
            ],
            "notes": notes,
            "controls": None,
        } | (
            {"key": self.key, "version": self.version}
            if live
            else {"components": [e.stored_components() for e in self.embeddings]}
        )

    def _type(self, name: str) -> str:
        """Return the type that the message of a table column will have."""
        values = self.table.columns[name]
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            return "dates"
        is_number = isinstance(values, np.ndarray) and values.dtype.kind == "f"
        return "numbers" if is_number and name not in self.table.booleans else "text"

    def _preimage_grid(self, embedding: Embedding, count: int) -> Message:
        """Return the pre-images at the positions of a grid, in the units of the table."""
        if not count or not embedding.has_inverse or self.recipe is None or not self.features:
            return {}
        positions, box = embedding.grid(count, 0.0)
        preimages = embedding.preimages(positions)
        message: Message = {"count": count}
        if self.image or all(encoder.type == "number" for encoder in self.recipe.encoders_):
            restored = [self.recipe.inverse_transform(preimage.points) for preimage in preimages]
            values = np.array([[c[0] for c in point.values()] for point in restored], "f4")
            message |= {"names": list(restored[0]), "values": values.reshape(-1)}
        else:
            message["records"] = [self.record(preimage.points) for preimage in preimages]
        texts = [preimage.text for preimage in preimages]
        return {"preimages": message | box._asdict() | {"texts": texts}}

    def derived_columns(self, *, live: bool) -> list[Message]:
        """Return the derived columns; only those that have been computed contain values."""
        return [
            self.column(name)
            if name in self.derived_cache
            else {
                "name": name,
                "type": "numbers",
                "derived": True,
                "expensive": not name.startswith("component "),
            }
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
        both = (values, more)
        if all(isinstance(column, np.ndarray) for column in both) and values.dtype != more.dtype:
            both = (as_texts(values), as_texts(more))
        return concatenate(*both)
    absent = None if values.dtype == object else np.nan
    return np.concatenate([values, np.full(len(new), absent, dtype=values.dtype)])


def _format_value(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    text = point_text(value) if not isinstance(value, np.generic) else str(value)
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
