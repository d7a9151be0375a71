"""Whether something is a kernel: the tree of rules that prove it, or a witness against it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from .._runtime import entry_point
from ..kernels.validity import Validity, Witness
from ._axes import DIVERGING, PALETTE, Axes, Style, new_axes, require_matplotlib
from ._window import paint, plane_window, window_around

__all__ = ["validity"]

_PROVED, _REFUTED, _CONDITIONAL = PALETTE[2], PALETTE[1], PALETTE[4]
_WIDE = 60  # letters of a kernel that are shown


@entry_point
def validity(verdict: Validity, ax: Axes | None = None, *, n_grid: int = 100) -> Axes:
    """Draw a proof as the tree of its rules, or a witness as a function.

    In the tree kernels are green, functions that are only conditionally positive definite are
    orange, and what is not known is red.

    A witness f = sum_i c_i k(x_i, .) has sum_i c_i f(x_i) = c^T K c < 0: mostly f is negative where
    c is positive.  In the plane f is shown in shades, red for positive, with the points in the
    colours of their c; on the line as a curve; for other points there are bars for the c.

    Parameters
    ----------
    verdict : Validity
        From `kernel.validity()`.
    ax : matplotlib Axes, by default those of a new figure; they are returned
    n_grid : int, default=100
        Points at which f is evaluated, per side.

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
            f"got {verdict!r}, which is no verdict - usually the kernel itself - try "
            f"validity(kernel.validity())"
        )
    witness = verdict.counterexample
    if witness is None:
        return _tree(verdict, ax)
    if witness.coefficients is None:
        return _words(witness, ax)
    shape = np.shape(witness.points) if isinstance(witness.points, np.ndarray) else ()
    draw = {1: _line, 2: _plane}.get(shape[1] if len(shape) == 2 else 0, _bars)
    ax = draw(witness, ax, n_grid)
    ax.set_title(f"refuted on {len(witness)} points: c^T K c = {witness.value:.4g}")
    return ax


def _words(witness: Witness, ax: Axes | None) -> Axes:
    """Write down a witness that is no sum: k is not symmetric, say."""
    lines = [wrap(line, 72, subsequent_indent="    ") for line in str(witness).splitlines()]
    text = "\n".join("\n".join(each) for each in lines)
    ax = new_axes(ax, (7.0, 1.0 + 0.25 * text.count("\n")))
    ax.text(0.0, 1.0, text, va="top", transform=ax.transAxes)
    ax.set_title("refuted: no kernel at all", loc="left")
    ax.set_axis_off()
    return ax


def _tree(verdict: Validity, ax: Axes | None) -> Axes:
    rows = list(verdict.rules())
    ax = new_axes(ax, (9.0, 0.9 + 0.62 * len(rows)))
    above: dict[int, int] = {}  # the row of the last node of each depth
    for row, (depth, kernel, claims) in enumerate(rows):
        above[depth] = row
        x, y = 0.4 * depth, -row
        if depth:
            parent = -above[depth - 1]
            elbow = ([x - 0.4, x - 0.4, x], [parent, y, y])
            ax.plot(*elbow, color="0.75", linewidth=1.2, zorder=1)
        colour = _REFUTED if claims.order is None else _CONDITIONAL if claims.order else _PROVED
        ax.plot([x], [y], "o", color=colour, markersize=9, zorder=3)
        ax.text(x + 0.1, y + 0.02, _short(str(kernel)), va="bottom", fontsize=10)
        known = ", ".join(claims.words)
        below = f"{claims.rule or 'not known'}{f'  [{known}]' if known else ''}"
        ax.text(x + 0.1, y - 0.04, below, va="top", fontsize=7.5, color="0.4")
    ax.set(xlim=(-0.15, 0.4 * max(above) + 4.2), ylim=(-len(rows) + 0.4, 0.6))
    ax.set_title(_short(verdict.headline), loc="left")
    ax.set_axis_off()
    return ax


def _short(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."


def _plane(witness: Witness, ax: Axes | None, n_grid: int) -> Axes:
    low, high = witness.points.min(axis=0), witness.points.max(axis=0)
    corner = np.full(2, 0.5 * (high - low).max())  # of a square: few points may lie on a line
    square = np.array([0.5 * (low + high) - corner, 0.5 * (low + high) + corner])
    window = plane_window(square, n_grid, "validity")
    ax = paint(new_axes(ax, (5.8, 5.0)), window, window.evaluate(witness), n_levels=8)
    _scatter(ax, witness, witness.points[:, 0], witness.points[:, 1])
    return ax


def _line(witness: Witness, ax: Axes | None, n_grid: int) -> Axes:
    window = window_around(witness.points, 4 * n_grid, 0.3)
    values, x = window.evaluate(witness), window.sides[0]
    ax = new_axes(ax, (6.0, 4.0))
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    ax.plot(x, values, color="0.15", linewidth=2.0)
    _scatter(ax, witness, window.points[:, 0], witness(window.points))
    ax.set(xlim=(x[0], x[-1]), xlabel="x", ylabel="f = sum c k(x, .)")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _scatter(ax: Axes, witness: Witness, across: np.ndarray, up: np.ndarray) -> None:
    """Draw the points in the colours of their coefficients, and write these beside them."""
    c: Any = witness.coefficients
    top = float(np.abs(c).max())
    look: Style = {"cmap": DIVERGING, "vmin": -top, "vmax": top, "edgecolors": "black", "zorder": 4}
    ax.scatter(across, up, c=c, s=90, **look)
    paper = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    for x, y, weight in zip(across, up, c, strict=True):
        ax.annotate(
            f"{weight:+.2g}",
            (x, y),
            xytext=(8, 6),
            textcoords="offset points",
            fontsize=9,
            bbox=paper,
            zorder=5,
        )


def _bars(witness: Witness, ax: Axes | None, n_grid: int) -> Axes:
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
