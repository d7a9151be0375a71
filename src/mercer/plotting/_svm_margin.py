"""Plot the decision function, the margin and the support vectors of an SVM."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import get_tags

from .._core import entry_point, length
from ._axes import Axes, Style, legend_below, new_axes, require_attribute, require_matplotlib
from ._class_colours import CLASS_STYLES, diverging_styles, interpret_labels, scatter
from ._plot_window import POINT_STYLE, draw_function, plane_window, window_around
from ._plots_1d import as_column, draw_band

__all__ = ["margin"]


@entry_point
def margin(
    model: Any, X: Any, y: Any = None, ax: Axes | None = None, *, n_grid: int | None = None
) -> Axes:
    """Plot the decision function of an SVM, its margin and its support vectors.

    ======================  =======================================================
    two classes             f in colours, with lines at f = 0 (bold) and f = -1, 1
    more than two classes   the region of each class
    one class               f in colours, with the line f = 0 around the sample
    regression (1 feature)  f, with the tube from f - epsilon to f + epsilon
    ======================  =======================================================

    An open circle marks a free support vector, whose dual coefficient v_i satisfies
    0 < |v_i| < C_i; it lies on the margin.  An open square marks a support vector at its bound,
    |v_i| = C_i, which lies inside the margin or on the wrong side.  With more than two classes, a
    square marks a point that is at its bound for at least one pair of classes.  The attribute
    `at_bound_` of the model distinguishes the two kinds.  Removing all other points from the
    training data would not change the decision function.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, SVR or NuSVR
        A model fitted to X, with one feature for SVR and NuSVR, and two for the others.
        Compressed models and models with a precomputed kernel are not supported.
    X : array-like of shape (n, 2), or (n, 1) for regression
        The training points.
    y : array-like of shape (n,), default=None
        The class labels, which determine the colours; for regression, the targets, which are
        required.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    n_grid : int, default=None
        The number of grid points per axis at which f is evaluated; None means 200 in two
        dimensions and 400 in one.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    """Raise a ValueError if the support vectors of the model are not among the points X."""
    name = type(model).__name__
    if getattr(model, "reduction_", None) is not None:
        m = len(model.expansion_.points)
        raise ValueError(
            f"this {name} was compressed to {m} points, but the plot needs the support vectors, "
            f"which a compressed model does not have - try the model before compress, or "
            f"plotting.contours, which draws only the decision function"
        )
    require_attribute(model, "at_bound_")
    if get_tags(model).input_tags.pairwise:
        raise ValueError(
            f"this {name} has a precomputed kernel, but a plot needs vectors, because f is "
            f"evaluated between the points - usually because K was passed to fit instead of X - "
            f"try to fit to X with a kernel that is not precomputed"
        )
    n, n_fitted = length(X), model.shape_fit_[0]
    if n != n_fitted:
        raise ValueError(
            f"X has {n} points, but this {name} was fitted to {n_fitted} - usually because X "
            f"contains other data - try the training points, which contain the support vectors"
        )


def _plane(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    """Plot a classifier or a one-class SVM in two dimensions."""
    window = plane_window(X, n_grid, "margin")
    points = window.points
    labels = interpret_labels(y, len(points))
    count = len(getattr(model, "classes_", ()))  # a one-class SVM has no labels
    is_multiclass = count > 2
    if is_multiclass:
        ax = new_axes(ax, (5.8, 5.0))
        predicted = np.searchsorted(model.classes_, model.predict(window.grid))
        *sides, regions = window.surface(np.asarray(predicted))
        colours = [colour for colour, _ in CLASS_STYLES[:count]]
        ax.contourf(*sides, regions, np.arange(count + 1) - 0.5, colors=colours, alpha=0.3)
        # Draw the border of one class at a time, because a single contour plot would draw a strip
        # of class 1 between the classes 0 and 2.
        for c in range(count):
            ax.contour(*sides, regions == c, [0.5], colors="black", linewidths=1.2)
        window.frame(ax)
    else:
        f = window.evaluate(model.decision_function)
        ax = draw_function(new_axes(ax, (5.8, 5.0)), window, f, n_levels=12, lines=False)
        if count == 2:
            dashed: Style = {"colors": "black", "linestyles": "--", "linewidths": 1.1}
            ax.contour(*window.surface(f), [-1.0, 1.0], **dashed)
    two_sides = not is_multiclass and len(labels.names or ()) <= 2
    styles = diverging_styles(0.02, 0.98) if two_sides else CLASS_STYLES
    scatter(ax, points, labels, "0.1", styles, s=26, **POINT_STYLE)
    _mark_support(ax, points, model)
    return legend_below(ax)


def _line(model: Any, X: Any, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    """Plot a support vector regression with one feature."""
    x = as_column(X, "X")
    window = window_around(x, n_grid, 0.05)
    if y is None or np.shape(y) != (len(x),):
        raise ValueError(
            f"y has shape {np.shape(y)}, but there are {len(x)} points - usually because y was "
            f"omitted, but the plot of a regression needs the targets - try margin(model, X, y)"
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
    """Mark the free support vectors and those at their bound, with different markers."""
    support, at_bound = points[model.support_], model.at_bound_
    hollow: Style = {"s": 70, "facecolors": "none", "edgecolors": "black", "zorder": 4}
    for selected, start, end, marker, width in (
        (support[~at_bound], "free support vector", "", "o", 1.3),
        (support[at_bound], "support vector", " at bound", "s", 0.8),
    ):
        if len(selected):
            name = f"{len(selected)} {start}{'' if len(selected) == 1 else 's'}{end}"
            ax.scatter(*selected.T, marker=marker, linewidths=width, label=name, **hollow)
