"""Plot the proof that a function is a kernel as a tree of rules, or a counterexample."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from .._core import entry_point
from ..kernels.validity import Counterexample, Validity
from ._axes import DIVERGING, PALETTE, Axes, Style, new_axes, require_matplotlib
from ._plot_window import draw_function, plane_window, window_around

__all__ = ["validity"]

_PROVED, _REFUTED, _CONDITIONAL = PALETTE[2], PALETTE[1], PALETTE[4]
_MAX_SHOWN_CHARACTERS = 60  # longer kernel expressions are truncated


@entry_point
def validity(verdict: Validity, ax: Axes | None = None, *, n_grid: int = 100) -> Axes:
    """Plot the proof that a function is a kernel as a tree, or a counterexample as a function.

    In the tree, positive definite kernels are green, conditionally positive definite functions are
    orange, and functions without a proof are red.

    A counterexample consists of points x_i and coefficients c_i with c^T K c < 0.  For
    f = sum_i c_i k(x_i, .), this is sum_i c_i f(x_i) < 0, so f is mostly negative where c is
    positive.  With two features, f is shown in colours (red is positive) with the points in the
    colours of their c_i; with one feature, f is a curve; otherwise the c_i are bars.

    Parameters
    ----------
    verdict : Validity
        The result of `kernel.validity()`.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    n_grid : int, default=100
        The number of grid points per axis at which f is evaluated.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer.kernels import RBF, Linear, Sigmoid
    >>> from mercer.plotting import validity
    >>> ax = validity((RBF() + Linear()).validity(), ax=Figure().subplots())
    >>> len(ax.texts)  # three kernels and their rules
    6
    >>> validity(Sigmoid().validity(), ax=Figure().subplots()).get_title()
    'refuted on 2 points: c^T K c = -0.0317'
    """
    require_matplotlib()
    if not isinstance(verdict, Validity):
        raise TypeError(
            f"got {verdict!r}, which is not a Validity result - usually because a kernel was "
            f"passed - try validity(kernel.validity())"
        )
    witness = verdict.counterexample
    if witness is None:
        return _tree(verdict, ax)
    if witness.coefficients is None:
        return _text(witness, ax)
    shape = np.shape(witness.points) if isinstance(witness.points, np.ndarray) else ()
    draw = {1: _line, 2: _plane}.get(shape[1] if len(shape) == 2 else 0, _bars)
    ax = draw(witness, ax, n_grid)
    ax.set_title(f"refuted on {len(witness)} points: c^T K c = {witness.value:.4g}")
    return ax


def _text(witness: Counterexample, ax: Axes | None) -> Axes:
    """Show a counterexample without coefficients as text, for example if k is not symmetric."""
    lines = [wrap(line, 72, subsequent_indent="    ") for line in str(witness).splitlines()]
    text = "\n".join("\n".join(each) for each in lines)
    ax = new_axes(ax, (7.0, 1.0 + 0.25 * text.count("\n")))
    ax.text(0.0, 1.0, text, va="top", transform=ax.transAxes)
    ax.set_title("refuted: not a kernel", loc="left")
    ax.set_axis_off()
    return ax


def _tree(verdict: Validity, ax: Axes | None) -> Axes:
    """Draw the tree of rules: one row per kernel, with its rule and its known properties."""
    rows = list(verdict.rules())
    ax = new_axes(ax, (9.0, 0.9 + 0.62 * len(rows)))
    last_row: dict[int, int] = {}  # the row of the last node at each depth
    for row, (depth, kernel, properties) in enumerate(rows):
        last_row[depth] = row
        x, y = 0.4 * depth, -row
        if depth:
            parent = -last_row[depth - 1]
            elbow = ([x - 0.4, x - 0.4, x], [parent, y, y])
            ax.plot(*elbow, color="0.75", linewidth=1.2, zorder=1)
        colour = (
            _REFUTED if properties.order is None else _CONDITIONAL if properties.order else _PROVED
        )
        ax.plot([x], [y], "o", color=colour, markersize=9, zorder=3)
        ax.text(x + 0.1, y + 0.02, _short(str(kernel)), va="bottom", fontsize=10)
        listed = ", ".join(properties.words)
        caption = f"{properties.rule or 'no known rule'}{f'  [{listed}]' if listed else ''}"
        ax.text(x + 0.1, y - 0.04, caption, va="top", fontsize=7.5, color="0.4")
    ax.set(xlim=(-0.15, 0.4 * max(last_row) + 4.2), ylim=(-len(rows) + 0.4, 0.6))
    ax.set_title(_short(verdict.headline), loc="left")
    ax.set_axis_off()
    return ax


def _short(text: str) -> str:
    """Return the text, truncated if it is longer than 60 characters."""
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[: _MAX_SHOWN_CHARACTERS - 3]}..."


def _plane(witness: Counterexample, ax: Axes | None, n_grid: int) -> Axes:
    """Draw the function f of a counterexample in two dimensions."""
    low, high = witness.points.min(axis=0), witness.points.max(axis=0)
    # The window is a square, because a few points may lie on a line.
    half_side = np.full(2, 0.5 * (high - low).max())
    square = np.array([0.5 * (low + high) - half_side, 0.5 * (low + high) + half_side])
    window = plane_window(square, n_grid, "validity")
    ax = draw_function(new_axes(ax, (5.8, 5.0)), window, window.evaluate(witness), n_levels=8)
    _scatter(ax, witness, witness.points[:, 0], witness.points[:, 1])
    return ax


def _line(witness: Counterexample, ax: Axes | None, n_grid: int) -> Axes:
    """Draw the function f of a counterexample in one dimension."""
    window = window_around(witness.points, 4 * n_grid, 0.3)
    values, x = window.evaluate(witness), window.sides[0]
    ax = new_axes(ax, (6.0, 4.0))
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    ax.plot(x, values, color="0.15", linewidth=2.0)
    _scatter(ax, witness, window.points[:, 0], witness(window.points))
    ax.set(xlim=(x[0], x[-1]), xlabel="x", ylabel="f = sum c k(x, .)")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _scatter(
    ax: Axes, witness: Counterexample, horizontal: np.ndarray, vertical: np.ndarray
) -> None:
    """Draw the points in the colours of their coefficients, with the coefficients as labels."""
    c: Any = witness.coefficients
    largest = float(np.abs(c).max())
    style: Style = {
        "cmap": DIVERGING,
        "vmin": -largest,
        "vmax": largest,
        "edgecolors": "black",
        "zorder": 4,
    }
    ax.scatter(horizontal, vertical, c=c, s=90, **style)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    for x, y, weight in zip(horizontal, vertical, c, strict=True):
        ax.annotate(
            f"{weight:+.2g}",
            (x, y),
            xytext=(8, 6),
            textcoords="offset points",
            fontsize=9,
            bbox=box,
            zorder=5,
        )


def _bars(witness: Counterexample, ax: Axes | None, n_grid: int) -> Axes:
    """Draw the coefficients of a counterexample as bars, for points that are not vectors."""
    c: Any = witness.coefficients
    ax = new_axes(ax, (6.0, 0.8 + 0.4 * len(c)))
    names = [_short(str(x)) for x in witness.points]
    ax.barh(range(len(c)), c, color=[PALETTE[1] if weight > 0 else PALETTE[0] for weight in c])
    ax.set_yticks(range(len(c)), names)
    ax.invert_yaxis()
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.set_xlabel("c")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
