"""How a pre-image is found: the residual over the plane, and the steps of a method down to it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..expansion import Expansion
from ..preimage import Target
from ._axes import PALETTE, new_axes, require_matplotlib
from ._plane import paint, window_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["preimage_path"]

_METHODS = ("fixed_point", "regularized", "gradient")


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
    ax : matplotlib Axes, optional
        A new figure by default.
    method : {"fixed_point", "regularized", "gradient"}
        Of `Expansion.preimage`.
    n_steps : int, default=50
        At most, for each path.
    n_grid : int, default=100
        The residual is evaluated at n_grid^2 points.

    Returns
    -------
    ax : matplotlib Axes

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
    window = window_of(expansion.points, n_grid)
    target = Target(expansion.kernel, window.points, expansion.coefficients.T)
    grid = window.grid if target.lower is None else np.maximum(window.grid, target.lower)
    squares = target.costs(grid, np.zeros(len(grid), dtype=int)) + target.squared_norms
    distance = np.sqrt(target.factor * np.maximum(squares, 0.0))
    ax = paint(new_axes(ax, (5.6, 5.0)), window, distance, 8)
    for i, path in enumerate(_path(expansion, z, method, n_steps) for z in start):
        colour = PALETTE[(i + 1) % len(PALETTE)]
        ax.plot(*path.T, "-o", color=colour, markersize=3.5, linewidth=1.5, zorder=4)
        ax.plot(*path[:1].T, "o", color="white", markeredgecolor=colour, markersize=7, zorder=5)
        ax.plot(*path[-1:].T, "*", color="white", markeredgecolor=colour, markersize=14, zorder=5)
    return ax


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
