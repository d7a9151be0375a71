"""A support vector machine as a picture: its decision, its margin, and the points that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import get_tags

from .._points import length
from .._runtime import entry_point
from ._axes import Axes, Style, legend_below, new_axes, require_matplotlib
from ._labels import LOOKS, labels_of, looks_of_signs, scatter
from ._line import column, draw_band
from ._model import learned
from ._window import EDGED, paint, plane_window, window_around

__all__ = ["margin"]


@entry_point
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
    ax : matplotlib Axes, by default those of a new figure; they are returned
    n_grid : int, optional
        Points per side of the plane at which f is evaluated, 200 by default, or on the line, 400.

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
    if getattr(model, "reduction_", None) is not None:
        m = len(model.expansion_.points)
        raise ValueError(
            f"this {name} is an expansion in {m} points by compress, but the picture needs "
            f"the support vectors - usually the model before compress is meant - try that "
            f"one, or plotting.contours, which draws f alone on a plane"
        )
    learned(model, "at_bound_")
    if get_tags(model).input_tags.pairwise:
        raise ValueError(
            f"this {name} has a precomputed kernel, but a picture needs vectors: f is to be "
            f"evaluated between the points - usually K was given to fit in place of X - try "
            f"the kernel itself, fit to X"
        )
    n, trained = length(X), model.shape_fit_[0]
    if n != trained:
        raise ValueError(
            f"X has {n} points, but this {name} was fitted to {trained} - usually X is another "
            f"part of the data - try the training points, whose support vectors are marked"
        )


def _plane(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    window = plane_window(X, n_grid, "margin")
    points = window.points
    labels = labels_of(y, len(points))
    count = len(getattr(model, "classes_", ()))  # one class has no labels
    several = count > 2
    if several:
        ax = new_axes(ax, (5.8, 5.0))
        winners = np.searchsorted(model.classes_, model.predict(window.grid))
        *sides, heights = window.surface(np.asarray(winners))
        colours = [colour for colour, _ in LOOKS[:count]]
        ax.contourf(*sides, heights, np.arange(count + 1) - 0.5, colors=colours, alpha=0.3)
        for c in range(count):  # each border by itself: between 0 and 2 there is no strip of 1
            ax.contour(*sides, heights == c, [0.5], colors="black", linewidths=1.2)
        window.frame(ax)
    else:
        f = window.evaluate(model.decision_function)
        ax = paint(new_axes(ax, (5.8, 5.0)), window, f, n_levels=12, lines=False)
        if count == 2:
            dashed: Style = {"colors": "black", "linestyles": "--", "linewidths": 1.1}
            ax.contour(*window.surface(f), [-1.0, 1.0], **dashed)
    two_sides = not several and len(labels.names or ()) <= 2
    looks = looks_of_signs(0.02, 0.98) if two_sides else LOOKS
    scatter(ax, points, labels, "0.1", looks, s=26, **EDGED)
    _mark_support(ax, points, model)
    return legend_below(ax)


def _line(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    x = column(X, "X")
    window = window_around(x, n_grid, 0.05)
    if y is None or np.shape(y) != (len(x),):
        raise ValueError(
            f"y has shape {np.shape(y)}, but there are {len(x)} points - a tube is drawn with the "
            f"targets in it, usually y was left out - try margin(model, X, y)"
        )
    target = np.asarray(y, dtype=float)
    epsilon = float(model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon)
    f, names = model.predict(window.grid), (f"± ε = {epsilon:.3g}", "f", "targets")
    ax = new_axes(ax, (6.4, 4.0))
    draw_band(ax, window.sides[0], f, epsilon, (x[:, 0], target), names)
    _mark_support(ax, np.column_stack([x, target]), model)
    ax.spines[["top", "right"]].set_visible(False)
    return legend_below(ax)


def _mark_support(ax: Axes, points: np.ndarray, model: Any) -> None:
    """Mark the free support vectors, and those at their bound."""
    at, bound = points[model.support_], model.at_bound_
    hollow: Style = {"s": 70, "facecolors": "none", "edgecolors": "black", "zorder": 4}
    for some, start, end, marker, width in (
        (at[~bound], "free support vector", "", "o", 1.3),
        (at[bound], "support vector", " at bound", "s", 0.8),
    ):
        if len(some):
            name = f"{len(some)} {start}{'' if len(some) == 1 else 's'}{end}"
            ax.scatter(*some.T, marker=marker, linewidths=width, label=name, **hollow)
