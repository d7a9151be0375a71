"""A support vector machine as a picture: its decision, its margin, and the points that hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._points import length
from ..estimators._svm import SupportVectorMachine
from ._axes import DIVERGING, MARKERS, PALETTE, new_axes, require_matplotlib
from ._classes import as_classes
from ._line import column
from ._model import learned
from ._plane import check_grid, paint, window_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["margin"]


def margin(
    model: Any, X: Any, y: Any = None, ax: Axes | None = None, *, n_grid: int | None = None
) -> Axes:
    """Draw the decision of a support vector machine, its margin and its support vectors.

    =====================  =======================================================
    two classes            f in shades, with the lines f = 0 (heavy) and f = -1, 1
    several classes        their regions
    one class              f in shades, with the line f = 0 around the sample
    regression, on a line  f, with the tube f - epsilon, f + epsilon
    =====================  =======================================================

    A free support vector, 0 < |v_i| < C_i, lies on the margin: an open circle.  One at its bound,
    |v_i| = C_i, lies inside of the margin or on the wrong side: an open square.  Which is which
    the model knows (`at_bound_`); of several classes, a square is at its bound in some pair.  All
    other points could be left out of the sample, and the picture would be the same.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, or SVR, NuSVR of points on a line
        Fitted to X; neither compressed nor of a precomputed kernel.
    X : array-like of shape (n, 2), or (n, 1) for regression
        The training points.
    y : array-like of shape (n,), optional
        Their labels, for colours; of regression the targets, which then are needed.
    ax : matplotlib Axes, optional
        A new figure by default.
    n_grid : int, optional
        Points per side of the plane at which f is evaluated, 200 by default, or on the line, 400.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import SVC
    >>> from mercer.plotting import margin
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> ax = margin(SVC(kernel="linear", C=10.0).fit(X, y), X, y, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2 free support vectors']
    """
    require_matplotlib()
    _check(model, X)
    if hasattr(model, "decision_function"):
        return _plane(model, X, y, ax, 200 if n_grid is None else n_grid)
    return _line(model, X, y, ax, 400 if n_grid is None else n_grid)


def _check(model: Any, X: Any) -> None:
    """Refuse a model without support vectors in sight, and points that are not its own."""
    name = type(model).__name__
    if isinstance(model, SupportVectorMachine) and hasattr(model, "expansion_"):
        if model._precomputed:
            raise ValueError(
                f"this {name} has a precomputed kernel, but a picture needs vectors: f is to be "
                f"evaluated between the points - usually K was given to fit in place of X - try "
                f"the kernel itself, fit to X"
            )
        if model.reduction_ is not None:
            m = len(model.expansion_.points)
            raise ValueError(
                f"this {name} is an expansion in {m} points by compress, but the picture needs "
                f"the support vectors - usually the model before compress is meant - try that "
                f"one, or plotting.contours, which draws f alone on a plane"
            )
    learned(model, "at_bound_")
    n, trained = length(X), model.shape_fit_[0]
    if n != trained:
        raise ValueError(
            f"X has {n} points, but this {name} was fitted to {trained} - usually X is another "
            f"part of the data - try the training points, whose support vectors are marked"
        )


def _plane(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    window = window_of(X, n_grid, "margin")
    points: np.ndarray = window.points
    classes: Any = getattr(model, "classes_", None)
    kind = None if y is None else as_classes(y, len(points))
    several = classes is not None and len(classes) > 2
    if several:
        ax = new_axes(ax, (5.8, 5.0))
        winners = np.asarray(np.searchsorted(classes, model.predict(window.grid)))
        _regions(ax, window, winners, len(classes))
    else:
        f = np.asarray(model.decision_function(window.grid), dtype=float)
        ax = paint(new_axes(ax, (5.8, 5.0)), window, f, n_levels=12, points=False, lines=False)
        if classes is not None:
            heights = f.reshape(n_grid, n_grid)
            ax.contour(
                *window.sides, heights, [-1.0, 1.0], colors="black", linestyles="--", linewidths=1.1
            )
    _sample(ax, points, kind, several)
    _support(ax, points[model.support_], model.at_bound_)
    return _named(ax)


def _line(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    x = column(X, "X")
    check_grid(n_grid)
    if y is None or np.shape(y) != (len(x),):
        raise ValueError(
            f"y has shape {np.shape(y)}, but there are {len(x)} points - a tube is drawn with the "
            f"targets in it, usually y was left out - try margin(model, X, y)"
        )
    target = np.asarray(y, dtype=float)
    reach = 0.05 * float(np.ptp(x)) or 1.0
    grid = np.linspace(x.min() - reach, x.max() + reach, n_grid)
    f = model.predict(grid[:, None])
    epsilon = float(model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon)
    ax = new_axes(ax, (6.4, 4.0))
    style: dict[str, Any] = {"color": PALETTE[5], "alpha": 0.35, "linewidth": 0}
    ax.fill_between(grid, f - epsilon, f + epsilon, label=f"± ε = {epsilon:.3g}", **style)
    ax.plot(grid, f, color=PALETTE[0], linewidth=2.0, label="f")
    ax.plot(x[:, 0], target, ".", color=PALETTE[6], markersize=5, label="targets")
    _support(ax, np.column_stack([x[:, 0], target])[model.support_], model.at_bound_)
    ax.set_xlabel("x")
    ax.margins(x=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    return _named(ax)


def _regions(ax: Axes, window: Any, winners: np.ndarray, count: int) -> None:
    heights = winners.reshape(len(window.sides[1]), len(window.sides[0]))
    colours = [PALETTE[c % len(PALETTE)] for c in range(count)]
    ax.contourf(*window.sides, heights, np.arange(count + 1) - 0.5, colors=colours, alpha=0.3)
    for c in range(count):  # each border by itself: between 0 and 2 there is no strip of 1
        ax.contour(*window.sides, heights == c, [0.5], colors="black", linewidths=1.2)
    ax.set_xlim(window.sides[0][0], window.sides[0][-1])
    ax.set_ylim(window.sides[1][0], window.sides[1][-1])
    ax.set_aspect("equal", adjustable="box")


def _sample(ax: Axes, points: np.ndarray, kind: Any, several: bool) -> None:
    """Draw the points, on the plane of two classes in the shades of their side."""
    import matplotlib

    style: dict[str, Any] = {"s": 26, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
    if kind is None or kind[1] is None:
        ax.scatter(*points.T, color="0.1", **style)
        return
    shades = matplotlib.colormaps[DIVERGING]
    two = [shades(0.02), shades(0.98)]
    colours = PALETTE if several or len(kind[1]) > 2 else two
    for c, name in enumerate(kind[1]):
        round_, colour = divmod(c, len(colours))
        marker = MARKERS[(c if len(colours) == 2 else round_) % len(MARKERS)]
        of_class = kind[2] == c
        ax.scatter(*points[of_class].T, color=colours[colour], marker=marker, label=name, **style)


def _support(ax: Axes, at: np.ndarray, held: np.ndarray) -> None:
    """Mark the free support vectors, and those held at their bound."""
    for some, words, marker, width in (
        (~held, "free support vector", "o", 1.3),
        (held, "support vector at bound", "s", 0.8),
    ):
        if count := int(np.count_nonzero(some)):
            ax.scatter(
                at[some, 0],
                at[some, 1],
                s=70,
                marker=marker,
                facecolors="none",
                edgecolors="black",
                linewidths=width,
                label=f"{count} {words if count == 1 else words.replace('vector', 'vectors')}",
                zorder=4,
            )


def _named(ax: Axes) -> Axes:
    """Put the legend under the picture: points may be anywhere in it."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    return ax
