"""A support vector machine as a picture: its decision, its margin, and the points that hold it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import DIVERGING, MARKERS, PALETTE, new_axes, require_matplotlib
from ._classes import as_classes
from ._line import column
from ._model import learned
from ._plane import paint, window_of

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

    A free support vector, 0 < |a_i| < C_i, lies on the margin: an open circle.  One at its bound,
    |a_i| = C_i, lies inside of the margin or on the wrong side: an open square.  All other points
    could be left out of the sample, and the picture would be the same.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, or SVR, NuSVR of points on a line
        Fitted to X.
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
    support = learned(model, "support_")
    if hasattr(model, "decision_function"):
        return _plane(model, X, y, support, ax, n_grid or 200)
    return _line(model, X, y, support, ax, n_grid or 400)


def _plane(model: Any, X: Any, y: Any, support: Any, ax: Axes | None, n_grid: int) -> Axes:
    window = window_of(X, n_grid)
    points: np.ndarray = window.points
    classes: Any = getattr(model, "classes_", None)
    kind = None if y is None else as_classes(y, len(points))
    several = classes is not None and len(classes) > 2
    if several:
        ax = new_axes(ax, (5.8, 5.0))
        winners = np.asarray(np.searchsorted(classes, model.predict(window.grid)))
        _regions(ax, window, winners, len(classes))
        held = _in_some_margin(model, points[support])
    else:
        f = np.asarray(model.decision_function(window.grid), dtype=float)
        ax = paint(new_axes(ax, (5.8, 5.0)), window, f, n_levels=12, points=False, lines=False)
        signs = np.ones(1)
        if classes is not None:
            signs = np.repeat([-1.0, 1.0], model.n_support_)
            heights = f.reshape(n_grid, n_grid)
            ax.contour(
                *window.sides, heights, [-1.0, 1.0], colors="black", linestyles="--", linewidths=1.1
            )
        least = 0.0 if classes is None else 1.0
        held = signs * model.decision_function(points[support]) < least - _slack(model)
    _sample(ax, points, kind, several)
    _support(ax, points[support], held)
    return _named(ax)


def _line(model: Any, X: Any, y: Any, support: Any, ax: Axes | None, n_grid: int) -> Axes:
    x = column(X, "X")
    if y is None or np.shape(y) != (len(x),):
        raise ValueError(
            f"y has shape {np.shape(y)}, but there are {len(x)} points - a tube is drawn with the "
            f"targets in it, usually y was left out - try margin(model, X, y)"
        )
    target = np.asarray(y, dtype=float)
    reach = 0.05 * float(np.ptp(x)) or 1.0
    grid = np.linspace(x.min() - reach, x.max() + reach, n_grid)
    f = model.predict(grid[:, None])
    away = np.abs(target - model.predict(x))[support]
    # nu-SVR finds epsilon itself: no support vector is inside of the tube, and some are on its edge
    epsilon = float(model.get_params().get("epsilon", away.min(initial=np.inf)))
    ax = new_axes(ax, (6.4, 4.0))
    if np.isfinite(epsilon):
        style: dict[str, Any] = {"color": PALETTE[5], "alpha": 0.35, "linewidth": 0}
        ax.fill_between(grid, f - epsilon, f + epsilon, label=f"± ε = {epsilon:.3g}", **style)
    ax.plot(grid, f, color=PALETTE[0], linewidth=2.0, label="f")
    ax.plot(x[:, 0], target, ".", color=PALETTE[6], markersize=5, label="targets")
    at = np.column_stack([x[support, 0], target[support]])
    _support(ax, at, away > epsilon + _slack(model))
    ax.set_xlabel("x")
    ax.margins(x=0.0)
    ax.spines[["top", "right"]].set_visible(False)
    return _named(ax)


def _slack(model: Any) -> float:
    """Return how far from the margin a free support vector may be."""
    report = getattr(model, "report_", None)
    known = None if report is None else report.certificate.get("violation")
    return 2.0 * model.tol if known is None else max(2.0 * known, 1e-8)


def _in_some_margin(model: Any, points: np.ndarray) -> np.ndarray:
    """Return which support vectors of several classes are inside of the margin of some pair."""
    own = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    f = np.asarray(model.expansion_(points)) + model.intercept_
    held, slack = np.zeros(len(points), dtype=bool), _slack(model)
    for pair, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
        for c, sign in ((i, 1.0), (j, -1.0)):
            held |= (own == c) & (sign * f[:, pair] < 1.0 - slack)
    return held


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
