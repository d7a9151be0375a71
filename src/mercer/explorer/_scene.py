"""A scene: points, what is known of each, and one or two maps of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._points import concatenate, is_table, length, take
from ..maps import embedding_quality
from ..tables import Recipe, Table, as_texts
from ._map import Map
from ._wire import column_on_wire

__all__ = ["Scene"]

_AT_ONCE = 2**24  # numbers of columns that a page gets before it asks
_MOST = 12  # components that can be coloured by


@dataclass(frozen=True, eq=False)
class Scene:
    """What there is to be seen.

    Attributes
    ----------
    title : str
    table : Table
        A row for each point.
    points : points
        What the models compare.
    maps : tuple of Map
        Of the same points.
    recipe : Recipe or None
        How rows of the table became points, if they came from one.
    color : str or None
        The column to colour by at first.
    image : tuple of int or None
        Rows and columns of pixels, and 3 for colours, where points are pictures.
    rows : ndarray or None
        The number of each point where it came from, counted from 1; None is 1, 2, 3 ...
    fitted : int or None
        How many points, the first, the models were fitted to; None is all.
    notes : tuple of str
    """

    title: str
    table: Table
    points: Any
    maps: tuple[Map, ...]
    recipe: Recipe | None = None
    color: str | None = None
    image: tuple[int, ...] | None = None
    rows: np.ndarray | None = None
    fitted: int | None = None
    notes: tuple[str, ...] = ()
    known: dict[str, Any] = field(default_factory=dict)  # columns that were derived

    def __post_init__(self) -> None:
        if self.color is not None:
            self.table.column(self.color)
        if self.image is not None and int(np.prod(self.image)) != len(self.features):
            shape = "x".join(map(str, self.image))
            raise ValueError(
                f"pictures of {shape} have {int(np.prod(self.image))} pixels, but points have "
                f"{len(self.features)} columns; the usual cause is a column that is no pixel, "
                f"which can be ignored or coloured by"
            )

    def __len__(self) -> int:
        return length(self.table)

    @property
    def features(self) -> list[str]:
        """The names of the columns of points, if they are vectors."""
        vectors = self.recipe is not None and self.recipe.points == "vectors"
        return self.recipe.features if self.recipe is not None and vectors else []

    def with_maps(self, maps: tuple[Map, ...]) -> Scene:
        """Return the same points in other maps."""
        return replace(self, maps=maps, known={})

    @property
    def projects(self) -> bool:
        """Whether rows of another table can be put into the maps."""
        return self.recipe is not None and isinstance(self.points, (np.ndarray, list))

    @property
    def training(self) -> Any:
        """The points that models are fitted to."""
        return self.points if self.fitted is None else take(self.points, slice(0, self.fitted))

    def projected(self, table: Table) -> Scene:
        """Return the scene with new rows put into the same maps, told apart by a column `set`."""
        if self.recipe is None or not self.projects:
            raise ValueError("these points came from no table, so that rows of one are no points")
        new = table.take(self.recipe.kept(table))
        points = self.recipe.transform(table)
        before = self.table.columns.get("set", np.array(["data"] * len(self), dtype=object))
        columns = {name: _joined(values, new, name) for name, values in self.table.columns.items()}
        columns["set"] = np.concatenate([before, np.array(["new"] * len(new), dtype=object)])
        maps = tuple(
            replace(m, places=np.concatenate([m.places, m.model.transform(points)]))
            for m in self.maps
        )
        rows = np.arange(1, len(self) + 1) if self.rows is None else self.rows
        return replace(
            self,
            table=Table(columns, self.table.source),
            points=concatenate(self.points, points),
            maps=maps,
            color="set",
            rows=np.concatenate([rows, 1 + self.recipe.kept(table)]),
            fitted=len(self) if self.fitted is None else self.fitted,
            known={},
        )

    # ------------------------------------------------------------------ derived columns

    @property
    def derived(self) -> dict[str, Any]:
        """What the models say of each point: names, and functions that find it."""
        found: dict[str, Any] = {}
        for one in self.maps:
            found[f"trustworthiness in {one.title}"] = lambda one=one: self._trust(one)
        for one in self.maps:
            if one.is_kernel_pca:
                for j in range(min(_MOST, one.places.shape[1])):
                    found[f"component {j + 1}"] = lambda one=one, j=j: one.places[:, j]
                found["reconstruction error"] = lambda one=one: one.model.reconstruction_error(
                    self.points
                )
        return found

    def _trust(self, one: Map) -> np.ndarray:
        """Return the trustworthiness of each point at 10 neighbours; NaN for those not drawn."""
        kernel = None if self.features else one.model.kernel_
        shown = np.column_stack([one.coordinates(0), one.coordinates(1)]).astype(float)
        quality = embedding_quality(self.points, shown, kernel=kernel)
        found = np.full(len(self), np.nan)
        found[quality.rows] = quality.points.trustworthiness
        return found

    def column(self, name: str) -> dict[str, Any]:
        """Return a column of the table, or one that is derived now, for the wire."""
        if name in self.table.columns:
            return column_on_wire(name, self.table.columns[name])
        if name not in self.known:
            self.known[name] = np.asarray(self.derived[name](), dtype=np.float32)
        return column_on_wire(name, self.known[name], derived=True)

    # ------------------------------------------------------------------ records

    def record(self, points: Any) -> list[tuple[str, str]]:
        """Return one point in the units of the table, as names and texts."""
        if self.recipe is not None:
            columns = self.recipe.restored(points)
        elif is_table(points) and len(points.shape) == 2:
            columns = {str(name): list(points[name]) for name in points.columns}
        else:
            columns = {"point": points}
        return [(name, _word(values[0])) for name, values in columns.items()]

    def pixels(self, points: Any) -> np.ndarray | None:
        """Return one point as a picture in the units of the table, if points are pictures."""
        if self.image is None or self.recipe is None:
            return None
        return np.array([values[0] for values in self.recipe.restored(points).values()], "f4")

    # ------------------------------------------------------------------ for the view

    def told(self, *, live: bool, preimages: int = 0) -> dict[str, Any]:
        """Return the scene for the wire; a page without a model gets all columns at once.

        And, if wanted, what would be at `preimages` x `preimages` places of each map.
        """
        names, room = list(self.table.columns), _AT_ONCE
        columns = []
        for name in names:
            there = not live or room > 0
            room -= len(self)
            empty = {"name": name, "type": "numbers", "derived": False}
            columns.append(self.column(name) if there else empty)
        notes = list(self.notes)
        if not live:
            places = "between the places of a grid" if preimages else "at a place"
            left = [name for name in self.derived if name not in self.known]
            columns_ = f", and the columns {', '.join(left)}" if left else ""
            notes.append(
                f"This page holds no model. Left out: what would be {places}, lines of "
                f"eigenfunctions, new fits{columns_}."
            )
        return {
            "kind": "scene",
            "title": self.title,
            "rows": len(self),
            "ids": None if self.rows is None else self.rows.astype(np.uint32),
            "columns": columns + self.told_derived(live=live),
            "color": self.color,
            "image": self._pictures(names),
            "panes": [one.told() | self._known_places(one, preimages) for one in self.maps],
            "notes": notes,
            "controls": None,
        }

    def _known_places(self, one: Map, count: int) -> dict[str, Any]:
        """Return what would be at places of a grid, in the units of the table."""
        if not count or not one.decodes or self.recipe is None or not self.features:
            return {}
        places, box = one.grid(count, 0.0)
        found = one.answers(places)
        restored = [self.recipe.restored(answer.points) for answer in found]
        values = np.array([[column[0] for column in point.values()] for point in restored], "f4")
        told = {"count": count, "names": list(restored[0]), "values": values.reshape(-1)}
        words = [answer.words for answer in found]
        return {"preimages": told | box._asdict() | {"words": words}}

    def told_derived(self, *, live: bool) -> list[dict[str, Any]]:
        """Return the columns that models can give, those of them filled that were asked for."""
        return [
            self.column(name)
            if name in self.known
            else {"name": name, "type": "numbers", "derived": True}
            for name in self.derived
            if live or name in self.known
        ]

    def _pictures(self, names: list[str]) -> dict[str, Any] | None:
        if self.image is None:
            return None
        values = [self.table.columns[name] for name in self.features]
        return {
            "shape": list(self.image),
            "columns": [names.index(name) for name in self.features],
            "low": float(min(np.nanmin(v) for v in values)),
            "high": float(max(np.nanmax(v) for v in values)),
        }


def _joined(values: Any, new: Table, name: str) -> Any:
    """Return a column with that of new rows below it; what they do not have is missing."""
    if name in new.columns:
        more = new.columns[name]
        if isinstance(values, np.ndarray) and values.dtype == object:
            more = as_texts(more)
        return concatenate(values, more)
    absent = None if values.dtype == object else np.nan
    return np.concatenate([values, np.full(len(new), absent, dtype=values.dtype)])


def _word(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    text = str(value)
    return text if len(text) <= 400 else f"{text[:397]}..."
