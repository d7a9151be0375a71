"""Plots of functions in two dimensions: contours, kernel PCA components, pre-image paths."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._core import entry_point
from ..expansion import Expansion
from ..expansion.preimage import PreImageTarget
from ._axes import (
    PALETTE,
    Axes,
    Style,
    check_components,
    legend_below,
    new_axes,
    require_attribute,
    require_matplotlib,
)
from ._plot_window import POINT_STYLE, PlotWindow, draw_function, plane_window

__all__ = ["contours", "eigenfunctions", "preimage_path"]

_MAX_COLUMNS = 4  # maximum number of panels per row of a new figure
_ITERATIVE_METHODS = ("fixed_point", "regularized", "gradient")  # methods of `Expansion.preimage`


@entry_point
def contours(
    expansion_or_function: Callable[[np.ndarray], Any],
    X: Any,
    ax: Axes | None = None,
    *,
    n_grid: int = 100,
    n_levels: int = 8,
) -> Axes:
    """Plot the contour lines of a function of two variables, with the points X.

    If the function f changes sign, red means positive, blue means negative, and the line f = 0 is
    bold.  Otherwise brighter colours mean higher values.

    Parameters
    ----------
    expansion_or_function : Expansion of one function, or callable
        The function f.  It maps points of shape (m, 2) to values of shape (m,) or (m, 1).
    X : array-like of shape (n, 2)
        The points to draw, which also determine the plotted region.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    n_grid : int, default=100
        The number of grid points per axis; f is evaluated at n_grid^2 points.
    n_levels : int, default=8
        The number of contour lines on each side of 0.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    """Plot the components x -> <w_j, phi(x) - mu> of a kernel PCA of points with two columns.

    w_j is a principal direction in feature space, and mu is the mean.  Each component
    has its own panel, with the eigenvalue in the title, and its own colour scale.

    Parameters
    ----------
    model : KernelPCA
        A model fitted to points with two columns.
    X : array-like of shape (n, 2), default=None
        The points to draw; None draws the training points.
    components : sequence of int, default=None
        The components, counted from 0; None means the first eight.
    n_grid : int, default=80
        The number of grid points per axis.  The model is evaluated once, at n_grid^2 points.
    axes : array of matplotlib Axes, default=None
        The axes to draw into, at least one per component.  None creates a new figure with four
        panels per row.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes of each component.

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
    values = require_attribute(model, "eigenvalues_")
    window = plane_window(
        require_attribute(model, "X_fit_") if X is None else X, n_grid, "eigenfunctions"
    )
    if components is None:
        components = range(min(8, len(values)))
    chosen = check_components(components, len(values))
    scores = np.asarray(model.transform(window.grid), dtype=float)
    panels = _new_panels(len(chosen), window) if axes is None else _user_panels(axes, len(chosen))
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
    """Plot the iterations z of a pre-image algorithm over the contours of |phi(z) - f|.

    Parameters
    ----------
    expansion : Expansion of one function
        The function f whose pre-image is computed, on points with two columns.
    start : array-like of shape (m, 2)
        The start of each path.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    method : {"fixed_point", "regularized", "gradient"}, default="fixed_point"
        The algorithm, as in `Expansion.preimage`.
    n_steps : int, default=50
        The maximum number of iterations of each path.
    n_grid : int, default=100
        The number of grid points per axis; the residual is evaluated at n_grid^2 points.

    Returns
    -------
    matplotlib Axes
        The axes.

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
            f"the expansion has {len(expansion)} functions, but the plot can show only one - "
            f"usually because all reconstructions were passed - try f[0]"
        )
    if method not in _ITERATIVE_METHODS:
        raise ValueError(
            f"method={method!r} has no path to plot - usually because it is not iterative - try "
            f"one of {_ITERATIVE_METHODS}"
        )
    start = np.atleast_2d(np.asarray(start, dtype=float))
    window = plane_window(expansion.points, n_grid)
    target = PreImageTarget(expansion.kernel, window.points, expansion.coefficients.T)
    grid = window.grid if target.lower is None else np.maximum(window.grid, target.lower)
    squares = target.costs(grid, np.zeros(len(grid), dtype=int)) + target.squared_norms
    distance = np.sqrt(target.factor * np.maximum(squares, 0.0))
    from matplotlib.patheffects import withStroke

    ax = _with_points(new_axes(ax, (5.6, 5.0)), window, distance, 8)
    for i, path in enumerate(_path(expansion, z, method, n_steps) for z in start):
        colour = PALETTE[(i + 1) % len(PALETTE)]
        # A white outline makes the path visible on any background colour.
        outline = [withStroke(linewidth=3.0, foreground="white")]
        ax.plot(*path.T, color=colour, linewidth=1.5, path_effects=outline, zorder=4)
        ax.scatter(path[:, 0], path[:, 1], s=12, color=colour, zorder=4)
        for z, marker, size, label in ((path[0], "o", 7, "start"), (path[-1], "*", 14, "end")):
            end_style: Style = {"markeredgecolor": colour, "markersize": size, "zorder": 5}
            ax.plot(*z, marker, color="white", label=None if i else label, **end_style)
    return legend_below(ax)


def _with_points(ax: Axes, window: PlotWindow, values: np.ndarray, n_levels: int) -> Axes:
    """Draw a function on the grid of a window, and the points of the window."""
    draw_function(ax, window, values, n_levels)
    horizontal, vertical = window.points.T
    ax.scatter(horizontal, vertical, s=14, color="0.1", **POINT_STYLE)
    return ax


def _user_panels(axes: Any, count: int) -> np.ndarray:
    """Return the first `count` of the axes that the user has passed."""
    flat = np.ravel(np.asarray(axes, dtype=object))
    if len(flat) < count:
        raise ValueError(
            f"there are {count} functions to draw, but only {len(flat)} axes - usually because "
            f"the grid has too few rows - try plt.subplots with more panels, or fewer components"
        )
    return flat[:count]


def _new_panels(count: int, window: PlotWindow) -> np.ndarray:
    """Return the axes of a new figure, with the aspect ratio of the window."""
    import matplotlib.pyplot as plt

    horizontal, vertical = (side[-1] - side[0] for side in window.sides)
    # The height of a panel in inches; 0.6 is the height of the title.
    height = 0.6 + 2.7 * float(np.clip(vertical / horizontal, 0.4, 2.0))
    columns = min(_MAX_COLUMNS, count)
    rows = -(-count // columns)
    figure = plt.figure(figsize=(3.0 * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for unused in grid[count:]:
        figure.delaxes(unused)
    for lowest in grid[max(0, count - columns) : count]:  # the lowest panel of each column
        lowest.tick_params(labelbottom=True)
    return grid[:count]


def _path(expansion: Expansion, z: np.ndarray, method: str, n_steps: int) -> np.ndarray:
    """Return z after 0, 1, 2, ... iterations, until convergence."""
    path = [z]
    with warnings.catch_warnings():
        # Warnings are ignored, because the iteration is stopped early on purpose.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for step in range(1, n_steps + 1):
            result = expansion.preimage(method, start=z[None], max_iter=step)
            path.append(result.points[0])
            if result.report.n_iter < step:
                break
    return np.array(path)
