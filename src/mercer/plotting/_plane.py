"""Functions on the plane: contours of one, and of the components of a kernel PCA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from .._points import as_vectors
from ._axes import DIVERGING, SEQUENTIAL, new_axes, new_panels, require_matplotlib
from ._model import check_components, learned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_grid", "contours", "eigenfunctions", "paint", "window_of"]


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
    ax : matplotlib Axes, optional
        A new figure by default.
    n_grid : int, default=100
        f is evaluated at n_grid^2 points.
    n_levels : int, default=8
        Lines on each side of 0.

    Returns
    -------
    ax : matplotlib Axes

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
    window = window_of(X, n_grid)
    values = np.asarray(expansion_or_function(window.grid), dtype=float)
    if values.size != len(window.grid):
        raise ValueError(
            f"the function returned shape {values.shape} for {len(window.grid)} points - usually "
            f"an expansion of several functions - try one of them, f[0]"
        )
    return paint(new_axes(ax, (5.6, 5.0)), window, values, n_levels)


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
    window = window_of(learned(model, "X_fit_") if X is None else X, n_grid, "eigenfunctions")
    if components is None:
        components = range(min(8, len(values)))
    chosen = check_components(components, len(values))
    scores = np.asarray(model.transform(window.grid), dtype=float)
    across, up = (side[-1] - side[0] for side in window.sides)
    height = 0.6 + 2.7 * float(np.clip(up / across, 0.4, 2.0))  # a title, and no empty strips
    panels = new_panels(axes, len(chosen), columns=4, size=(3.0, height))
    for ax, j in zip(panels, chosen, strict=True):
        paint(ax, window, scores[:, j], n_levels=6)
        ax.set_title(f"{j + 1}: eigenvalue {values[j]:.4g}")
    return panels


@dataclass(frozen=True)
class _Window:
    """A rectangle around points of the plane, and a grid in it."""

    points: np.ndarray
    sides: tuple[np.ndarray, np.ndarray]

    @property
    def grid(self) -> np.ndarray:
        """The points of the grid, row by row, shape (n_grid^2, 2)."""
        return np.stack(np.meshgrid(*self.sides), axis=-1).reshape(-1, 2)


def window_of(X: Any, n_grid: int, owner: str = "contours") -> _Window:
    X = as_vectors(X, owner)
    if X.shape[1] != 2:
        raise ValueError(
            f"the points have shape {X.shape}, but the picture is of a plane - usually a model of "
            f"more than two columns - try plotting.embedding, or fit to two columns"
        )
    if len(X) == 0:
        raise ValueError(
            "there are no points, which leaves open which part of the plane to draw - usually "
            "an empty selection - try the points that the model was fitted to"
        )
    check_grid(n_grid)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    low, high = X.min(axis=0), X.max(axis=0)
    reach = 0.12 * np.max(high - low) or 1.0  # the same on all sides; one point has no extent
    across, up = (np.linspace(a - reach, b + reach, n_grid) for a, b in zip(low, high, strict=True))
    return _Window(X, (across, up))


def check_grid(n_grid: Any) -> None:
    """Refuse fewer than two points per side."""
    if not isinstance(n_grid, Integral) or n_grid < 2:
        raise ValueError(
            f"n_grid={n_grid!r} leaves no grid - usually a step or a share in place of the number "
            f"of points per side - try n_grid=100"
        )


def paint(
    ax: Axes,
    window: _Window,
    values: np.ndarray,
    n_levels: int,
    points: bool = True,
    lines: bool = True,
) -> Axes:
    """Draw values on the grid of a window: shades, lines, and points unless somebody else does."""
    heights = values.reshape(len(window.sides[1]), len(window.sides[0]))
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    if high - low <= 1e-9 * abs(largest) or largest == 0.0:  # flat: its lines would be rounding
        levels = largest + np.array([-1.0, 1.0])
        shades: dict[str, Any] = {"cmap": DIVERGING, "vmin": levels[0], "vmax": levels[1]}
    elif low < 0.0 < high:
        levels = np.linspace(-largest, largest, 2 * n_levels + 1)
        # the darkest shades are left out: points and lines must stay visible
        shades = {"cmap": DIVERGING, "vmin": -1.4 * largest, "vmax": 1.4 * largest}
    else:
        levels = np.linspace(low, high, n_levels + 2)
        shades = {"cmap": SEQUENTIAL, "vmin": low, "vmax": high}
    ax.contourf(*window.sides, heights, levels=levels, **shades)
    if lines and len(levels) > 2:
        ax.contour(
            *window.sides,
            heights,
            levels=levels[1:-1],
            colors="0.25",
            linestyles="solid",
            linewidths=0.5,
            alpha=0.6,
        )
    if low < 0.0 < high and len(levels) > 2:
        ax.contour(*window.sides, heights, levels=[0.0], colors="black", linewidths=1.6)
    if points:
        across, up = window.points.T
        ax.scatter(across, up, s=14, color="0.1", edgecolors="white", linewidths=0.5, zorder=3)
    ax.set_xlim(window.sides[0][0], window.sides[0][-1])
    ax.set_ylim(window.sides[1][0], window.sides[1][-1])
    ax.set_aspect("equal", adjustable="box")
    return ax
