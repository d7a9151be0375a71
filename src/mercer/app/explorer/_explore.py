"""The function `explore`, and the class `Explorer` that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Points, entry_point, is_table, length
from ...estimators import KernelPCA
from ...kernels import Graphs, Kernel
from ...tables import (
    NumberColumn,
    Recipe,
    Table,
    TextColumn,
    TypedColumn,
    UnreadableColumn,
    array_column,
    as_microseconds,
    column_from_texts,
    is_missing_value,
    object_column,
)
from ._controller import Controller
from ._drawings import as_drawable_graphs, graph_columns
from ._embeddings import Embedding, as_vectors, embedding_of
from ._model_requests import (
    aligned_pane,
    distinct,
    plan_model,
    requested_model,
    second_options,
)
from ._scene import Scene
from ._serialize import asset, missing_package, page, script
from ._sessions import read_session
from ._view_code import view_code

Columns = dict[str, TypedColumn]  # columns of a table by name: arrays, or `Graphs`
_MAX_TABLE_COLUMNS = 2000  # vectors with more columns are left out of the table


class Explorer:
    """Interactive view of embeddings: in a notebook, as an HTML file, or on a local server.

    `explore` returns this object.  A notebook displays it; `save` writes it as a page; `show` opens
    it in a browser.

    Parameters
    ----------
    scene : Scene
        The points, their table and their embeddings; `explore` creates it.

    Attributes
    ----------
    selection : ndarray of int
        The indices of the rows that are selected in the notebook, counted from 0.
    filtered : ndarray of int
        The indices of the rows that satisfy the filters in the notebook, counted from 0.
    selections : dict of str to ndarray of int
        The indices of the rows of each named selection in the notebook.

    See Also
    --------
    explore : Create an explorer for a fitted model.

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
        """The current scene, including changes that the user made in the notebook."""
        return self._scene if self._component is None else self._component.controller.scene

    @property
    def selection(self) -> np.ndarray:
        """The indices of the rows that are selected in the notebook, an array of shape (m,)."""
        if self._component is None:
            return np.zeros(0, dtype=np.int64)
        return self._component.controller.selection

    @property
    def filtered(self) -> np.ndarray:
        """The indices of the rows that satisfy the filters in the notebook, shape (m,).

        Without filters, these are all rows.
        """
        if self._component is None:
            return np.arange(len(self._scene))
        return self._component.controller.filtered

    @property
    def selections(self) -> dict[str, np.ndarray]:
        """The named selections in the notebook: the indices of their rows, by name."""
        return {} if self._component is None else dict(self._component.controller.selections)

    def load_session(self, session: str | PathLike[str]) -> Explorer:
        """Show a session that was saved with *Save session* on a page.

        A session contains the models, colours, zoom, filters and selections of a page.  If it does
        not fit the points, the page shows it as far as possible and reports the differences.

        Parameters
        ----------
        session : str or path
            The JSON file of the session.

        Returns
        -------
        Explorer
            This object, so that ``explore(...).load_session("session.json").show()`` works.
        """
        self._scene = replace(self._scene, session=read_session(session))
        if self._component is not None:
            self._component.controller.reply("session", text=self._scene.session)
        return self

    def html(self, *, preimages: int = 0) -> str:
        """Return a self-contained HTML page, which does not contain the model.

        Parameters
        ----------
        preimages : int, default=0
            Number of grid positions per axis; the pre-images of all grid positions are computed and
            stored in the page.  Without a server, only these pre-images can be shown.  The size of
            the page grows with the square of this number.

        Returns
        -------
        str
            The page.
        """
        message = self.scene.to_message(live=False, preimages=preimages)
        return page(message | {"code": view_code(self.scene, self.selection)})

    def save(self, path: str | PathLike[str], *, preimages: int = 0) -> None:
        """Write the page that `html` returns to a file.

        Parameters
        ----------
        path : str or path
            The HTML file to write.
        preimages : int, default=0
            Number of grid positions per axis whose pre-images are stored in the page; see `html`.
        """
        Path(path).write_text(self.html(preimages=preimages), "utf-8", newline="\n")

    def show(self, *, port: int = 0, open_browser: bool = True) -> Any:
        """Serve the explorer on 127.0.0.1 in a background thread, and open it in a browser.

        Parameters
        ----------
        port : int, default=0
            Port of the server; 0 means any free port.
        open_browser : bool, default=True
            Whether to open the page in a browser.

        Returns
        -------
        ExplorerServer
            The server.  Its attribute `url` is the address, which contains an access token; its
            method `stop` stops it.
        """
        from ._server import serve

        server = serve(lambda: self.scene, port=port, title=self._scene.title).start()
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        return server

    def panel(self, height: str = "640px") -> Any:
        """Return the explorer as a Panel component, for use in a Panel application.

        Parameters
        ----------
        height : str, default="640px"
            CSS height of the component.

        Returns
        -------
        panel.viewable.Viewable
            The component; it requires the package `panel`.
        """
        _import_panel()
        if self._component is None:
            self._component = _component_class()(self._scene, height)
        return self._component

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        try:
            panel = _import_panel()
        except ImportError as error:  # a message, because notebooks show a traceback otherwise
            return {"text/plain": f"{self!r}\n{error}"}
        # Load the scripts of Panel from local files. They are sent with each display, because the
        # notebook may have been opened again since the last one, while the kernel continued.
        panel.extension(inline=True)
        return self.panel()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        embeddings = " and ".join(e.title for e in self.scene.embeddings)
        return f"<Explorer: {len(self.scene)} points, {embeddings}>"


def _import_panel() -> Any:
    """Return the module panel, or raise an ImportError with instructions to install it."""
    try:
        import panel
    except ImportError as error:
        raise missing_package("panel") from error
    return panel


@cache
def _component_class() -> Any:
    """Return the class of the Panel component; panel is imported only when it is needed."""
    import param
    from panel.custom import JSComponent

    class Component(JSComponent):
        """A Panel component that shows a scene in a notebook or in a Panel application."""

        css_height = param.String(default="640px", doc="CSS height of the component.")

        _esm = script() + asset("panel.js")
        _stylesheets = [asset("view.css"), ":host { display: block; width: 100%; }"]  # noqa: RUF012

        def __init__(self, scene: Scene, css_height: str = "640px") -> None:
            self.controller = Controller(scene, self._send_msg)
            super().__init__(css_height=css_height, sizing_mode="stretch_width")

        def _handle_msg(self, data: Any) -> None:
            self.controller.handle(data)

        def _cleanup(self, root: Any = None) -> None:
            super()._cleanup(root)
            if not self._models:  # the last page that shows the component was closed
                self.controller.close()

    return Component


@entry_point
def explore(
    model: Any,
    X: Points = None,
    *,
    second: Any = "auto",
    table: Any = None,
    color: Any = None,
    image_shape: tuple[int, ...] | None = None,
    title: str | None = None,
) -> Explorer:
    """Explore the embedding of a fitted model interactively.

    Use it to find clusters and outliers, to look up which points they are, and to see pre-images of
    positions in the embedding.

    Parameters
    ----------
    model : fitted estimator with `transform`
        Usually a `KernelPCA`; `ProbabilisticPCA` and other models with `transform` also work.
    X : points, optional
        The points to show.  If the model is a kernel PCA, the default is its training points.
    second : str, Kernel, fitted estimator or None, default="auto"
        The second embedding: a kernel such as ``"Laplacian(1.0)"`` for a second kernel PCA, "data"
        (two columns of X), the name of a model of `compare` such as "kernel-pca", "ppca", "t-sne",
        "umap", "isomap", "gplvm" or "sammon", a fitted model, or None.  If the model is a kernel
        PCA, "auto" means "data" for vectors with two columns and "ppca" for vectors with more
        columns; otherwise it means None.
    table : Table, data frame or mapping of names to columns, optional
        Additional columns to show for each point.
    color : str or array, optional
        Name or values of the column that colours the points.
    image_shape : tuple of int, optional
        Shape of the images, (rows, columns) or (rows, columns, 3), if the points are images.
    title : str, optional
        Title of the page.

    Returns
    -------
    Explorer
        The explorer, which a notebook displays; see also `Explorer.show` and `Explorer.save`.

    See Also
    --------
    compare : Compare the embeddings of several models.
    mercer.plotting.embedding : A static plot.

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
                f"this {type(model).__name__} does not store the points it was fitted to; pass "
                f"the points to show as X"
            )
    own, recipe = _point_columns(X)
    columns = own | _columns(table, length(X))
    if color is not None and not isinstance(color, str):
        name = str(getattr(color, "name", None) or "color")
        columns[name] = _column(color, length(X))
        color = name
    dense = as_vectors(X)
    # Keep a table, because models check column names.
    points = X if dense is None or is_table(X) else dense
    return Explorer(
        Scene(
            title or f"{type(model).__name__} of {length(X)} points",
            _as_table(columns),
            points,
            tuple(_embeddings(model, points, second, [] if recipe is None else recipe.features)),
            recipe=recipe,
            color=color,
            image=image_shape,
        )
    )


def _embeddings(
    model: Any, X: Points, second: Any, names: list[str], *, trained: bool = False
) -> list[Embedding]:
    """Return the embedding by the model and, if requested, a second embedding."""
    first = embedding_of(model, X, trained=trained)
    is_kernel_pca = isinstance(model, KernelPCA)
    if isinstance(second, str) and second == "auto":
        offered = [key for key, _ in second_options(X)] if is_kernel_pca else []
        second = next((key for key in ("ppca", "data") if key in offered), None)
    if isinstance(second, (str, Kernel)):
        request, like = requested_model(second, X, first), model if is_kernel_pca else KernelPCA()
        kernel, old = getattr(model, "kernel_", None), aligned_pane(request, first)
        other = plan_model(request, X, names, kernel, like, old).fit()
    else:
        other = None if second is None else embedding_of(second, X)
    other = distinct(other, first)
    return [first] if other is None else [first, other]


# --- columns --------------------------------------------------------------------------------------


def _fitted_recipe(recipe: Recipe, encoders: tuple[Any, ...]) -> Recipe:
    """Return a recipe for columns that are already points, without fitting it."""
    recipe.encoders_, recipe.treatments_ = encoders, ()
    recipe.target_text_, recipe.notations_ = False, {}
    return recipe


def _point_columns(X: Points) -> tuple[Columns, Recipe | None]:
    """Return the points as table columns, and the recipe that converts columns to points."""
    dense = as_vectors(X)
    if dense is not None and dense.shape[1] <= _MAX_TABLE_COLUMNS:
        d = dense.shape[1]
        names = [str(n) for n in X.columns] if is_table(X) else [f"x{j + 1}" for j in range(d)]
        features = [X[name] for name in X.columns] if is_table(X) else np.asarray(X).T
        columns = {names[j]: _column(values, len(dense)) for j, values in enumerate(features)}
        encoders = tuple(NumberColumn(name) for name in names)
        return columns, _fitted_recipe(Recipe(columns=tuple(names)), encoders)
    if is_table(X) and len(X.shape) == 2:
        return {str(name): _column(X[name], length(X)) for name in X.columns}, None
    if hasattr(X, "toarray") or dense is not None:
        squares = X.multiply(X) if hasattr(X, "toarray") else np.square(X)
        norms = np.sqrt(np.asarray(squares.sum(axis=1), dtype=float)).reshape(-1)
        return {"norm": TypedColumn(norms)}, None
    if isinstance(X[0], str):
        recipe = Recipe(points="texts", columns=("text",))
        recipe = _fitted_recipe(recipe, (TextColumn("text", None),))
        return {"text": _column(X, length(X))}, recipe
    graphs = as_drawable_graphs(X)
    numbers = {} if graphs is None else graph_columns(graphs)
    return {"point": TypedColumn(X)} | {k: TypedColumn(v) for k, v in numbers.items()}, None


def _as_table(columns: Columns) -> Table:
    booleans = tuple(name for name, column in columns.items() if column.is_boolean)
    values = {name: column.values for name, column in columns.items()}
    return Table(values, "the table", booleans=booleans)


def _columns(table: Any, n: int) -> Columns:
    """Return the columns of a table, data frame or mapping as a dict; {} for None."""
    if isinstance(table, Table):
        return {
            name: TypedColumn(column, name in table.booleans)
            for name, column in _shown_columns(table).columns.items()
        }
    names = () if table is None else table if isinstance(table, Mapping) else table.columns
    return {str(name): _column(table[name], n) for name in names}


def _column(values: Any, n: int) -> TypedColumn:
    """Convert values to a column of n numbers, dates, or strings with None for missing values."""
    if length(values) != n:
        raise ValueError(f"a column has {length(values)} values, but there are {n} points")
    if isinstance(values, Graphs):
        return TypedColumn(values)
    try:
        array = np.asarray(values)
    except ValueError:  # sequences of different lengths
        raise ValueError(
            "a column needs one value per point, but it contains sequences; convert them to texts"
        ) from None
    if array.ndim != 1:
        raise ValueError(f"a column needs one value per point, but its shape is {array.shape}")
    if array.dtype.kind in "biuf":
        return TypedColumn(array_column(array), is_boolean=array.dtype.kind == "b")
    cells = [None if is_missing_value(v) else v for v in array.tolist()]
    if array.dtype.kind == "M":
        column = TypedColumn(as_microseconds(array))
    else:  # strings stay strings, even if they look like dates or numbers
        has_text = any(isinstance(v, str) for v in cells)
        column = object_column(cells, "text" if has_text else None)
    if isinstance(column.values, UnreadableColumn):
        return TypedColumn(column_from_texts(None if v is None else str(v) for v in cells))
    return column


def scene_from_table(
    *, title: str, table: Table, recipe: Recipe, model: Any, second: str, **more: Any
) -> Scene:
    """Fit a model to the rows of a table and return the scene.

    The scene contains the rows that the recipe keeps, the embedding by the model, and the second
    embedding named `second`.  `more` are other attributes of the `Scene`.
    """
    points, kept = recipe.transform(table), recipe.kept_rows(table)
    model.fit(points)
    names = recipe.features if recipe.points == "vectors" else []
    embeddings = _embeddings(model, points, second, names, trained=True)
    rows = None if len(kept) == len(table) else kept + 1
    table = _shown_columns(table.take(kept))
    return Scene(title, table, points, tuple(embeddings), recipe=recipe, rows=rows, **more)


def _shown_columns(table: Table) -> Table:
    """Return the table without columns that cannot be read."""
    columns = {
        name: column
        for name, column in table.columns.items()
        if not isinstance(column, UnreadableColumn)
    }
    return replace(table, columns=columns)
