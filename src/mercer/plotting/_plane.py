"""Functions on the plane: contours of one, the components of a kernel PCA, ways to a pre-image."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._runtime import entry_point
from ..expansion import Expansion
from ..preimage import Target
from ._axes import PALETTE, Axes, Style, legend_below, new_axes, require_matplotlib
from ._model import check_components, learned
from ._window import EDGED, Window, paint, plane_window

__all__ = ["contours", "eigenfunctions", "preimage_path"]

_COLUMNS = 4  # panels in a row of a new figure
_METHODS = ("fixed_point", "regularized", "gradient")  # those of preimage that take steps


@entry_point
def contours(
    expansion_or_function: Callable[[np.ndarray], Any],
    X: Any,
    ax: Axes | None = None,
    *,
    n_grid: int = 100,
    n_levels: int = 8,
) -> Axes:
    """Draw the lines f(x) = c of a function on the plane, with the points X on top.

    Where f changes sign, red is positive, blue negative, and the line f = 0 is heavy.  Otherwise
    bright is high.

    Parameters
    ----------
    expansion_or_function : Expansion of one function, or callable
        Takes points of shape (m, 2), returns values of shape (m,) or (m, 1).
    X : array-like of shape (n, 2)
        The points; the picture reaches a little further than they do.
    ax : matplotlib Axes, by default those of a new figure; they are returned
    n_grid : int, default=100
        f is evaluated at n_grid^2 points.
    n_levels : int, default=8
        Lines on each side of 0.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelRidge
    >>> from mercer.datasets import moons
    >>> from mercer.plotting import contours
    >>> X, y = moons(100, random_state=0)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=2.0).fit(X, 2 * y - 1)
    >>> ax = contours(model.expansion_, X, ax=Figure().subplots())
    >>> ax.get_aspect()
    1.0
    """
    require_matplotlib()
    window = plane_window(X, n_grid)
    values = window.evaluate(expansion_or_function)
    return _with_points(new_axes(ax, (5.6, 5.0)), window, values, n_levels)


@entry_point
def eigenfunctions(
    model: Any,
    X: Any = None,
    components: Sequence[int] | None = None,
    n_grid: int = 80,
    axes: Any = None,
) -> np.ndarray:
    """Draw the score functions x -> <w_j, phi(x) - mu> of a kernel PCA of points in the plane.

    One panel each, with the eigenvalue l_j in its title.  Each has its own scale of colours.

    Parameters
    ----------
    model : KernelPCA
        Fitted to points with two columns.
    X : array-like of shape (n, 2), optional
        The points to draw on top; the training points by default.
    components : sequence of int, optional
        Counted from 0; the first eight by default.
    n_grid : int, default=80
        The model is evaluated at n_grid^2 points, once for all panels.
    axes : array of matplotlib Axes, optional
        At least one for each component; a new figure, four to a row, by default.

    Returns
    -------
    axes : ndarray of matplotlib Axes, one for each component

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import eigenfunctions
    >>> X, _ = three_clusters(90, random_state=3)
    >>> model = KernelPCA(2, kernel="rbf", gamma=10.0).fit(X)
    >>> axes = eigenfunctions(model, n_grid=20, axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['1: eigenvalue 22.08', '2: eigenvalue 21.65']
    """
    require_matplotlib()
    values = learned(model, "eigenvalues_")
    window = plane_window(learned(model, "X_fit_") if X is None else X, n_grid, "eigenfunctions")
    if components is None:
        components = range(min(8, len(values)))
    chosen = check_components(components, len(values))
    scores = np.asarray(model.transform(window.grid), dtype=float)
    panels = _new_panels(len(chosen), window) if axes is None else _given_panels(axes, len(chosen))
    for ax, j in zip(panels, chosen, strict=True):
        _with_points(ax, window, scores[:, j], n_levels=6)
        ax.set_title(f"{j + 1}: eigenvalue {values[j]:.4g}")
    return panels


@entry_point
def preimage_path(
    expansion: Expansion,
    start: Any,
    ax: Axes | None = None,
    *,
    method: str = "fixed_point",
    n_steps: int = 50,
    n_grid: int = 100,
) -> Axes:
    """Draw |phi(z) - f| over the plane, with the steps of an iteration from each start.

    Parameters
    ----------
    expansion : Expansion of one function, on points with two columns
        The f whose pre-image is looked for.
    start : array-like of shape (m, 2)
        Where the paths begin.
    ax : matplotlib Axes, by default those of a new figure; they are returned
    method : {"fixed_point", "regularized", "gradient"}
        Of `Expansion.preimage`.
    n_steps : int, default=50
        At most, for each path.
    n_grid : int, default=100
        The residual is evaluated at n_grid^2 points.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import Expansion
    >>> from mercer.datasets import moons
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import preimage_path
    >>> X, _ = moons(60, random_state=0)
    >>> f = Expansion.mean(RBF(0.4), X)
    >>> ax = preimage_path(f, [[-1.0, 1.0], [2.0, 1.0]], ax=Figure().subplots(), n_grid=20)
    >>> len(ax.lines)  # a path, its start and its end, twice
    6
    """
    require_matplotlib()
    if len(expansion) != 1:
        raise ValueError(
            f"the expansion has {len(expansion)} functions, but one picture shows one of them - "
            f"usually all reconstructions at once - try f[0]"
        )
    if method not in _METHODS:
        raise ValueError(
            f"method={method!r} has no path - usually a method in closed form - try one of "
            f"{_METHODS}"
        )
    start = np.atleast_2d(np.asarray(start, dtype=float))
    window = plane_window(expansion.points, n_grid)
    target = Target(expansion.kernel, window.points, expansion.coefficients.T)
    grid = window.grid if target.lower is None else np.maximum(window.grid, target.lower)
    squares = target.costs(grid, np.zeros(len(grid), dtype=int)) + target.squared_norms
    distance = np.sqrt(target.factor * np.maximum(squares, 0.0))
    from matplotlib.patheffects import withStroke

    ax = _with_points(new_axes(ax, (5.6, 5.0)), window, distance, 8)
    for i, path in enumerate(_path(expansion, z, method, n_steps) for z in start):
        colour = PALETTE[(i + 1) % len(PALETTE)]
        outlined = [withStroke(linewidth=3.0, foreground="white")]  # to be seen on any shade
        ax.plot(*path.T, color=colour, linewidth=1.5, path_effects=outlined, zorder=4)
        ax.scatter(path[:, 0], path[:, 1], s=12, color=colour, zorder=4)
        for z, marker, size, name in ((path[0], "o", 7, "a start"), (path[-1], "*", 14, "its end")):
            ends: Style = {"markeredgecolor": colour, "markersize": size, "zorder": 5}
            ax.plot(*z, marker, color="white", label=None if i else name, **ends)
    return legend_below(ax)


def _with_points(ax: Axes, window: Window, values: np.ndarray, n_levels: int) -> Axes:
    paint(ax, window, values, n_levels)
    across, up = window.points.T
    ax.scatter(across, up, s=14, color="0.1", **EDGED)
    return ax


def _given_panels(axes: Any, count: int) -> np.ndarray:
    flat = np.ravel(np.asarray(axes, dtype=object))
    if len(flat) < count:
        raise ValueError(
            f"{count} functions are to be drawn, but axes holds {len(flat)} - usually a grid "
            f"with a row too few - try plt.subplots with more panels, or fewer components"
        )
    return flat[:count]


def _new_panels(count: int, window: Window) -> np.ndarray:
    """Return the panels of a new figure, whose cells have the proportions of the window."""
    import matplotlib.pyplot as plt

    across, up = (side[-1] - side[0] for side in window.sides)
    height = 0.6 + 2.7 * float(np.clip(up / across, 0.4, 2.0))  # the title needs 0.6 inches
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    figure = plt.figure(figsize=(3.0 * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for empty in grid[count:]:
        figure.delaxes(empty)
    for lowest in grid[max(0, count - columns) : count]:  # the last panel of each column
        lowest.tick_params(labelbottom=True)
    return grid[:count]


def _path(expansion: Expansion, z: np.ndarray, method: str, n_steps: int) -> np.ndarray:
    """Return z after 0, 1, 2, ... steps, until it stands still."""
    path = [z]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        for step in range(1, n_steps + 1):
            found = expansion.preimage(method, start=z[None], max_iter=step)
            path.append(found.points[0])
            if found.report.n_iter < step:
                break
    return np.array(path)
