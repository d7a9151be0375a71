"""The door: a model and its points become a scene, and a scene something to look at."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._points import is_table, length
from .._runtime import entry_point
from ..estimators import KernelPCA
from ..tables import Part, Recipe, Table
from ._map import Map
from ._models import map_of, second_map, seconds_for, vectors
from ._page import page
from ._scene import Scene
from ._wire import large_integers

__all__ = ["Explorer", "explore", "scene_of"]

_WIDE = 2000  # columns up to which points have a place in the table


class Explorer:
    """Maps of points to look at: in a notebook, as a page of its own, or on a server.

    Parameters
    ----------
    scene : Scene

    Attributes
    ----------
    selection : ndarray of int
        The rows that are selected in the notebook, counted from 0.

    Examples
    --------
    >>> from mercer import KernelPCA, explore
    >>> from mercer.datasets import circles
    >>> X, y = circles(60, random_state=0)
    >>> explorer = explore(KernelPCA(2, kernel="rbf", gamma=2.0).fit(X), X, color=y)
    >>> explorer
    <Explorer: 60 points, kernel PCA and the data>
    >>> explorer.html().count("<script type=")
    2
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._component: Any = None

    @property
    def scene(self) -> Scene:
        """What is shown, as it is now."""
        return self._scene if self._component is None else self._component.desk.scene

    @property
    def selection(self) -> np.ndarray:
        if self._component is None:
            return np.zeros(0, dtype=np.int64)
        return self._component.desk.selection

    def html(self, *, preimages: int = 0) -> str:
        """Return a page that needs no network, and no model.

        Parameters
        ----------
        preimages : int, default=0
            What would be at a place is computed beforehand, at so many places across and up.
        """
        return page(self.scene.told(live=False, preimages=preimages))

    def save(self, path: str | PathLike[str], *, preimages: int = 0) -> None:
        """Write that page into a file."""
        Path(path).write_text(self.html(preimages=preimages), "utf-8")

    def show(self, *, port: int = 0, open_browser: bool = True) -> Any:
        """Serve the page on 127.0.0.1, in a thread, and open it in a browser.

        Parameters
        ----------
        port : int, default=0
            0 stands for any free port.
        open_browser : bool, default=True

        Returns
        -------
        Serving
            `url` is the address with the token that the server requires; `stop()` ends the server.
        """
        from ._server import serve

        serving = serve(lambda: self.scene, port=port, title=self._scene.title).start()
        if open_browser:
            import webbrowser

            webbrowser.open(serving.url)
        return serving

    def panel(self, height: str = "640px") -> Any:
        """Return the component of Panel, to be placed among others."""
        from ._server import require_panel

        require_panel()
        from ._component import Component

        if self._component is None:
            self._component = Component(self._scene, height)
        return self._component

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from ._server import load_in_notebook

        load_in_notebook()
        return self.panel()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        maps = " and ".join(one.title for one in self.scene.maps)
        return f"<Explorer: {len(self.scene)} points, {maps}>"


@entry_point
def explore(
    model: Any,
    X: Any = None,
    *,
    second: Any = "auto",
    table: Any = None,
    color: Any = None,
    image_shape: tuple[int, ...] | None = None,
    title: str | None = None,
) -> Explorer:
    """Return the maps of a model to look at, with a table of the points.

    Parameters
    ----------
    model : fitted estimator with `transform`
        A `KernelPCA`, above all; also `ProbabilisticPCA` and the like.
    X : points, optional
        Those to look at; the ones that a kernel PCA was fitted to by default.
    second : str, fitted estimator or None
        What the second map shows: "data" (two columns), "ppca", ..., another model, or None.
        "auto" is, beside a kernel PCA, "data" for points in the plane and "ppca" for vectors of
        more columns.
    table : Table, data frame or mapping of names to columns, optional
        What else is known of each point.
    color : str or array, optional
        The column to colour by, or its values.
    image_shape : tuple of int, optional
        Rows and columns of pixels, where points are pictures; (h, w, 3) for colours.
    title : str, optional

    Returns
    -------
    Explorer

    Examples
    --------
    >>> from mercer import KernelPCA, explore
    >>> from mercer.datasets import circles
    >>> X, y = circles(60, random_state=0)
    >>> explore(KernelPCA(2, kernel="rbf", gamma=2.0).fit(X), color=y, second=None)
    <Explorer: 60 points, kernel PCA>
    """
    if X is None:
        X = getattr(model, "X_fit_", None)
        if X is None or not isinstance(model, KernelPCA) or model._components.basis is not None:
            raise ValueError(
                f"this {type(model).__name__} does not hold the points it was fitted to; give the "
                f"points X to look at"
            )
    own, recipe = _columns_of(X)
    columns = own | _columns(table, length(X))
    if color is not None and not isinstance(color, str):
        name = str(getattr(color, "name", None) or "color")
        columns[name] = _column(color, length(X))
        color = name
    dense = vectors(X)
    points = X if dense is None or is_table(X) else dense  # a model knows the names of a table
    return Explorer(
        Scene(
            title or f"{type(model).__name__} of {length(X)} points",
            Table(columns, "the table"),
            points,
            tuple(_maps(model, points, second, [] if recipe is None else recipe.features)),
            recipe=recipe,
            color=color,
            image=image_shape,
        )
    )


def _maps(model: Any, X: Any, second: Any, names: list[str], *, trained: bool = False) -> list[Map]:
    found = [map_of(model, X, trained=trained)]
    if isinstance(second, str) and second == "auto" and not isinstance(model, KernelPCA):
        second = None
    if isinstance(second, str):
        other = second_map(_chosen(second, X), X, names, getattr(model, "kernel_", None))
    else:
        other = None if second is None else map_of(second, X)
    return found if other is None else [*found, other]


def _chosen(second: str, X: Any) -> str:
    """Return what "auto" stands for."""
    if second != "auto":
        return second
    offered = [key for key, _ in seconds_for(X)]
    return next(key for key in ("ppca", "data", "none") if key in offered)


# --- columns --------------------------------------------------------------------------------------


def _columns_of(X: Any) -> tuple[dict[str, Any], Recipe | None]:
    """Return points as columns of a table, and the recipe that makes points of these again."""
    dense = vectors(X)
    if dense is not None and dense.shape[1] <= _WIDE:
        d = dense.shape[1]
        names = [str(n) for n in X.columns] if is_table(X) else [f"x{j + 1}" for j in range(d)]
        given = [X[name] for name in X.columns] if is_table(X) else np.asarray(X).T
        columns = {names[j]: _column(values, len(dense)) for j, values in enumerate(given)}
        parts = tuple(Part(name) for name in names)
        return columns, Recipe(columns=tuple(names), parts=parts)
    if is_table(X) and len(X.shape) == 2:
        return {str(name): _column(X[name], length(X)) for name in X.columns}, None
    if hasattr(X, "toarray") or dense is not None:
        squares = X.multiply(X) if hasattr(X, "toarray") else np.square(X)
        return {"norm": np.sqrt(np.asarray(squares.sum(axis=1), dtype=float)).reshape(-1)}, None
    if isinstance(X[0], str):
        recipe = Recipe(points="texts", columns=("text",), parts=(Part("text"),))
        return {"text": _column(X, length(X))}, recipe
    return {"point": X}, None


def _columns(table: Any, n: int) -> dict[str, Any]:
    if table is None:
        return {}
    if isinstance(table, Table):
        columns: Mapping[str, Any] = table.columns
    elif isinstance(table, Mapping):
        columns = table
    else:
        columns = {str(name): table[name] for name in table.columns}
    return {str(name): _column(values, n) for name, values in columns.items()}


def _column(values: Any, n: int) -> Any:
    """Return values as a column: numbers, or texts."""
    if length(values) != n:
        raise ValueError(f"a column has {length(values)} values, but there are {n} points")
    if not isinstance(values, np.ndarray) and hasattr(values, "adjacency"):
        return values
    found = np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"a column has one value for each point, but its shape is {found.shape}")
    if found.dtype.kind in "biuf":
        cells = large_integers(values if hasattr(values, "dtype") else found)
        if cells is None:
            return found.astype(float, copy=False)
    else:
        cells = found.tolist()
    texts = np.empty(n, dtype=object)
    texts[:] = [None if _is_missing(value) else str(value) for value in cells]
    return texts


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def scene_of(
    *, title: str, table: Table, recipe: Recipe, model: Any, second: str, **more: Any
) -> Scene:
    """Return the scene of a table: rows that the recipe keeps, a model to fit, a second map."""
    points, kept = recipe.transform(table), recipe.kept(table)
    model.fit(points)
    names = recipe.features if recipe.points == "vectors" else []
    maps = _maps(model, points, second, names, trained=True)
    rows = None if len(kept) == len(table) else kept + 1
    return Scene(title, table.take(kept), points, tuple(maps), recipe=recipe, rows=rows, **more)
