"""Grids around points in one or two dimensions, and functions evaluated on them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._core import as_vectors
from ._axes import DIVERGING, SEQUENTIAL, Axes, Style

__all__ = ["POINT_STYLE", "PlotWindow", "draw_function", "plane_window", "window_around"]

# Style of points on a coloured background; a white edge makes them visible.
POINT_STYLE: Style = {"edgecolors": "white", "linewidths": 0.5, "zorder": 3}


class PlotWindow(NamedTuple):
    """Points, and a regular grid in an interval or rectangle around them.

    `sides` are the coordinates of the grid along each axis.
    """

    points: np.ndarray
    sides: tuple[np.ndarray, ...]

    @property
    def grid(self) -> np.ndarray:
        """The grid points, row by row, of shape (n_grid^d, d)."""
        return np.stack(np.meshgrid(*self.sides), axis=-1).reshape(-1, len(self.sides))

    def evaluate(self, f: Callable[[np.ndarray], Any], name: str = "function") -> np.ndarray:
        """Return the values of f at the grid points; `name` is used in error messages."""
        grid = self.grid
        values = np.asarray(f(grid), dtype=float)
        if values.size != len(grid):
            raise ValueError(
                f"the {name} returned shape {values.shape} for {len(grid)} points - usually "
                f"because it is an expansion of several functions - try one of them, such as f[0]"
            )
        return values.ravel()

    def surface(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the arguments of `contour`: x, y, and the grid values as a matrix."""
        horizontal, vertical = self.sides
        return horizontal, vertical, values.reshape(len(vertical), len(horizontal))

    def frame(self, ax: Axes) -> Axes:
        """Set the limits of the axes to the rectangle, with the same scale on both axes."""
        horizontal, vertical = self.sides
        ax.set(xlim=horizontal[[0, -1]], ylim=vertical[[0, -1]])
        ax.set_aspect("equal", adjustable="box")
        return ax


def plane_window(X: Any, n_grid: int, owner: str = "contours") -> PlotWindow:
    """Return a window that is slightly larger than the extent of X, which has two columns.

    `owner` is the name of the plot in error messages.
    """
    X = as_vectors(X, owner)
    if X.shape[1] != 2:
        raise ValueError(
            f"the points have shape {X.shape}, but the plot has two dimensions - usually because "
            f"the model has more than two features - try plotting.embedding, or fit to two columns"
        )
    if X.shape[0] == 0:
        raise ValueError(
            "there are no points, so the region to draw is not defined - usually because a "
            "selection is empty - try the points that the model was fitted to"
        )
    return window_around(X, n_grid, 0.12)


def window_around(X: Any, n_grid: Any, margin: float) -> PlotWindow:
    """Return a window that extends beyond X by the fraction `margin` of its extent."""
    if not isinstance(n_grid, Integral) or n_grid < 2:
        raise ValueError(
            f"n_grid={n_grid!r} must be an integer of at least 2, the number of grid points per "
            f"axis - usually because a step size was passed - try n_grid=100"
        )
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    low, high = X.min(axis=0), X.max(axis=0)
    # width of the border on all sides; 1 if the extent is 0
    border = margin * np.max(high - low) or 1.0
    sides = np.linspace(low - border, high + border, int(n_grid), axis=1)
    return PlotWindow(X, tuple(sides))


def draw_function(
    ax: Axes, window: PlotWindow, values: np.ndarray, n_levels: int, lines: bool = True
) -> Axes:
    """Draw grid values as filled contours, with a bold line at 0 and optional thin lines."""
    surface = window.surface(values)
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    signed = low < 0.0 < high
    # the function is constant up to rounding
    if high - low <= 1e-9 * abs(largest) or largest == 0.0:
        levels, cmap, signed = largest + np.array([-1.0, 1.0]), DIVERGING, False
    elif signed:
        levels, cmap = np.linspace(-largest, largest, 2 * n_levels + 1), DIVERGING
    else:
        levels, cmap = np.linspace(low, high, n_levels + 2), SEQUENTIAL
    # The darkest colours of both signs are not used, so that points and lines stay visible.
    vmin, vmax = levels[[0, -1]] * (1.4 if signed else 1.0)
    ax.contourf(*surface, levels=levels, cmap=cmap, vmin=vmin, vmax=vmax)
    if lines and len(levels) > 2:
        thin: Style = {"colors": "0.25", "linestyles": "solid", "linewidths": 0.5, "alpha": 0.6}
        ax.contour(*surface, levels=levels[1:-1], **thin)
    if signed:
        ax.contour(*surface, levels=[0.0], colors="black", linewidths=1.6)
    return window.frame(ax)
