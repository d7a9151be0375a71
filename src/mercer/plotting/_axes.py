"""The decorator of all plots, and the axes, colours, legends and grids that they share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.exceptions import NotFittedError

from .._core import CLASS_COLOURS, DIVERGING, SEQUENTIAL, Points, as_vectors, entry_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is imported only when a plot is drawn


Style = dict[str, Any]  # keyword arguments of matplotlib functions

PALETTE = CLASS_COLOURS["light"]


F = TypeVar("F", bound=Callable[..., Any])
_AX = """ax : matplotlib Axes, default=None
    The axes to draw into; None creates a new figure.
"""
_RETURNS = """matplotlib Axes
    The axes.
"""


def plot(function: F) -> F:
    """Decorate a public plot function: check for matplotlib first, and complete the docstring.

    The parameter `ax` is documented here, and the section Returns, unless the function returns
    something else.
    """

    @wraps(function)
    def draw(*args: Any, **options: Any) -> Any:
        require_matplotlib()
        return function(*args, **options)

    body, title, examples = inspect.cleandoc(function.__doc__ or "").partition("Examples\n--------")
    body, see_also, others = body.partition("See Also\n--------")
    parameters, _, returns = body.partition("Returns\n-------\n")
    if "ax" in inspect.signature(function).parameters:
        parameters = f"{parameters.rstrip()}\n{_AX}"
    returns = (returns or _RETURNS).rstrip()
    last = f"{see_also}{others}{title}{examples}\n"
    draw.__doc__ = f"{parameters.rstrip()}\n\nReturns\n-------\n{returns}\n\n{last}"
    return cast(F, entry_point(draw))


def require_matplotlib() -> None:
    """Raise an ImportError if matplotlib is not installed; called before long computations."""
    try:
        import matplotlib.figure  # noqa: F401 - checks that it can be imported
    except ImportError as error:
        raise ImportError(
            f"matplotlib cannot be imported ({error}) - it is an optional dependency of mercer "
            f"that is needed for plots - try pip install 'mercer[plot]'"
        ) from error


def new_axes(ax: Axes | None, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return `ax`, or the axes of a new figure if `ax` is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def open_frame(ax: Axes) -> Axes:
    """Remove the upper and the right side of the frame."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def twin_axes(ax: Axes, xlabel: str, left: str, right: str) -> Axes:
    """Add axes on the right side, and label both vertical axes in the colours of their curves."""
    from matplotlib.ticker import MaxNLocator

    twin = ax.twinx()
    for axes, label, colour in ((ax, left, PALETTE[0]), (twin, right, PALETTE[1])):
        axes.set_ylabel(label, color=colour)
        axes.tick_params(axis="y", colors=colour, which="both")
        axes.spines["top"].set_visible(False)
    ax.set_xlabel(xlabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return twin


def legend_above(ax: Axes, handles: Sequence[Any], n_columns: int = 1) -> Axes:
    """Place the legend above the axes, because two curves may occupy any corner."""
    location: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=handles, frameon=False, ncols=n_columns, **location)
    return ax


def legend_below(ax: Axes) -> Axes:
    """Place the legend below the axes, where it does not cover any points."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    return ax


# --- Check that a model has the fitted attributes and components that a plot needs.


def require_attribute(model: Any, name: str) -> Any:
    """Return a fitted attribute of a model; raise a NotFittedError if it does not exist."""
    try:
        return getattr(model, name)
    except AttributeError:
        raise NotFittedError(
            f"this {type(model).__name__} has no {name} - usually because it was not fitted yet, "
            f"or is another kind of model - try fit(X) first"
        ) from None


def check_components(components: Sequence[int], available: int) -> list[int]:
    """Return components as a list of int; raise a ValueError if one does not exist."""
    for j in components:
        if isinstance(j, bool) or not isinstance(j, Integral) or not 0 <= j < available:
            raise ValueError(
                f"component {j!r} does not exist: there are only {available}, counted from 0 - "
                f"usually the model was fitted with a smaller n_components - "
                f"try components below {available}, or fit with more"
            )
    return [int(j) for j in components]


# The colour and the marker of each class; the marker changes after all colours have been used.
CLASS_STYLES: list[tuple[Any, str]] = [(colour, marker) for marker in "o^sD" for colour in PALETTE]


class Labels(NamedTuple):
    """Labels y as an array, the names of their classes, and the class index of each point.

    All fields are None if there are no labels.  The names are None if the labels are numbers.
    `title` is the name of y, for a colour bar.
    """

    values: np.ndarray | None = None
    names: list[str] | None = None
    classes: np.ndarray | None = None
    title: str = "y"


def interpret_labels(y: Any, n: int) -> Labels:
    """Treat y as class labels if it has strings or at most ten integers, otherwise as numbers."""
    if y is None:
        return Labels()
    title = str(getattr(y, "name", None) or "y")
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"y has shape {y.shape}, but there are {n} points - usually because y belongs to "
            f"another data set - try y of shape ({n},)"
        )
    if y.dtype.kind == "O":
        y = y.astype(str)  # strings of a table; numbers would have a numeric dtype
    values, classes = np.unique(y, return_inverse=True)
    if y.dtype.kind in "iuf":
        is_categorical = len(values) <= 10 and np.all(values == np.rint(values))
        names = [f"{value:g}" for value in values] if is_categorical else None
        return Labels(y, names, classes, title)
    if len(values) > len(CLASS_STYLES):
        raise ValueError(
            f"y has {len(values)} classes, but only {len(CLASS_STYLES)} can be distinguished by "
            f"colour and marker - usually because y identifies each point - try fewer "
            f"classes, or numbers, which are drawn with a colour bar"
        )
    return Labels(y, [str(value) for value in values], classes, title)


def diverging_styles(first: float, second: float) -> list[tuple[Any, str]]:
    """Return the colours and markers of two classes, from positions in the diverging colormap.

    Position 0 is the colour of the lowest value of a function, and 1 that of the highest.
    """
    import matplotlib

    colormap = matplotlib.colormaps[DIVERGING]
    return [(colormap(first), "o"), (colormap(second), "^")]


def scatter(
    ax: Axes,
    points: np.ndarray,
    labels: Labels,
    colour: str = PALETTE[0],
    styles: Sequence[tuple[Any, str]] = CLASS_STYLES,
    **style: Any,
) -> Any:
    """Draw points with one colour and marker per class, or in the colours of their values.

    Without labels, all points have the same `colour`.  Returns the points for a colour bar if the
    labels are numbers, and None otherwise.
    """
    if labels.names is not None:
        for c, (name, (shade, marker)) in enumerate(zip(labels.names, styles, strict=False)):
            of_class = points[labels.classes == c]
            ax.scatter(*of_class.T, color=shade, marker=marker, label=name, **style)
        return None
    if labels.values is not None:
        horizontal, vertical = points.T
        return ax.scatter(horizontal, vertical, c=labels.values, cmap=SEQUENTIAL, **style)
    ax.scatter(*points.T, color=colour, **style)
    return None


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
        values = np.asarray(evaluate_on_grid(f, grid), dtype=float)
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


def evaluate_on_grid(f: Callable[..., Any], grid: np.ndarray, **options: Any) -> Any:
    """Return f(grid), without scikit-learn's warning that an array has no feature names.

    A model that was fitted to a data frame expects its column names; the columns of a grid are in
    the same order, but have no names.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return f(grid, **options)


def plane_window(X: Points, n_grid: int, owner: str = "contours") -> PlotWindow:
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


def window_around(X: Points, n_grid: Any, margin: float) -> PlotWindow:
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


def draw_curve(
    ax: Axes, window: PlotWindow, values: np.ndarray, ylabel: str, label: str | None = None
) -> Axes:
    """Draw the values of a function of one variable on the grid, with a thin line at 0."""
    x = window.sides[0]
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    ax.plot(x, values, color="0.15", linewidth=2.0, label=label)
    ax.set(xlim=(x[0], x[-1]), xlabel="x", ylabel=ylabel)
    return open_frame(ax)


def as_column(x: Any, name: str) -> np.ndarray:
    """Return points with one coordinate as an array of shape (n, 1)."""
    x = np.asarray(x, dtype=float)
    if x.size == 0 or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] != 1):
        raise ValueError(
            f"{name} has shape {x.shape}, but the plot has only one axis for it - usually because "
            f"there are several columns - try one column, such as numpy.linspace(-1, 1, 200)"
        )
    return x.reshape(-1, 1)
