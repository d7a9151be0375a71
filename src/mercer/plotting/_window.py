"""A part of the line or of the plane around points, and a function on it."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._points import as_vectors
from ._axes import DIVERGING, SEQUENTIAL, Axes, Style

__all__ = ["EDGED", "Window", "paint", "plane_window", "window_around"]

EDGED: Style = {"edgecolors": "white", "linewidths": 0.5, "zorder": 3}  # points on shades


class Window(NamedTuple):
    """An interval or a rectangle around points, and a grid in it."""

    points: np.ndarray
    sides: tuple[np.ndarray, ...]

    @property
    def grid(self) -> np.ndarray:
        """The points of the grid, row by row, shape (n_grid^d, d)."""
        return np.stack(np.meshgrid(*self.sides), axis=-1).reshape(-1, len(self.sides))

    def evaluate(self, f: Callable[[np.ndarray], Any], name: str = "function") -> np.ndarray:
        """Return f at the points of the grid."""
        grid = self.grid
        values = np.asarray(f(grid), dtype=float)
        if values.size != len(grid):
            raise ValueError(
                f"the {name} returned shape {values.shape} for {len(grid)} points - usually an "
                f"expansion of several functions - try one of them, f[0]"
            )
        return values.ravel()

    def surface(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return values on the grid as matplotlib takes them: across, up, and a matrix."""
        across, up = self.sides
        return across, up, values.reshape(len(up), len(across))

    def frame(self, ax: Axes) -> Axes:
        """Let the axes show the rectangle, at the same scale in both directions."""
        across, up = self.sides
        ax.set(xlim=across[[0, -1]], ylim=up[[0, -1]])
        ax.set_aspect("equal", adjustable="box")
        return ax


def plane_window(X: Any, n_grid: int, owner: str = "contours") -> Window:
    """Return the part of the plane around X, and a little more."""
    X = as_vectors(X, owner)
    if X.shape[1] != 2:
        raise ValueError(
            f"the points have shape {X.shape}, but the picture is of a plane - usually a model of "
            f"more than two columns - try plotting.embedding, or fit to two columns"
        )
    if X.shape[0] == 0:
        raise ValueError(
            "there are no points, which leaves open which part of the plane to draw - usually "
            "an empty selection - try the points that the model was fitted to"
        )
    return window_around(X, n_grid, 0.12)


def window_around(X: Any, n_grid: Any, reach: float) -> Window:
    """Return the window that is larger than the extent of X by the share `reach` on every side."""
    if not isinstance(n_grid, Integral) or n_grid < 2:
        raise ValueError(
            f"n_grid={n_grid!r} leaves no grid - usually a step or a share in place of the number "
            f"of points per side - try n_grid=100"
        )
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    low, high = X.min(axis=0), X.max(axis=0)
    border = reach * np.max(high - low) or 1.0  # the same on all sides; one point has no extent
    sides = np.linspace(low - border, high + border, int(n_grid), axis=1)
    return Window(X, tuple(sides))


def paint(ax: Axes, window: Window, values: np.ndarray, n_levels: int, lines: bool = True) -> Axes:
    """Draw values on the grid of a window: shades, the line 0 and, if wanted, lines between."""
    surface = window.surface(values)
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    signed = low < 0.0 < high
    if high - low <= 1e-9 * abs(largest) or largest == 0.0:  # flat: its lines would be rounding
        levels, cmap, signed = largest + np.array([-1.0, 1.0]), DIVERGING, False
    elif signed:
        levels, cmap = np.linspace(-largest, largest, 2 * n_levels + 1), DIVERGING
    else:
        levels, cmap = np.linspace(low, high, n_levels + 2), SEQUENTIAL
    # The darkest shades of both signs are left out: points and lines must stay visible.
    vmin, vmax = levels[[0, -1]] * (1.4 if signed else 1.0)
    ax.contourf(*surface, levels=levels, cmap=cmap, vmin=vmin, vmax=vmax)
    if lines and len(levels) > 2:
        thin: Style = {"colors": "0.25", "linestyles": "solid", "linewidths": 0.5, "alpha": 0.6}
        ax.contour(*surface, levels=levels[1:-1], **thin)
    if signed:
        ax.contour(*surface, levels=[0.0], colors="black", linewidths=1.6)
    return window.frame(ax)
