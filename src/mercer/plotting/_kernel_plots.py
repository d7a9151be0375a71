"""Plots of a kernel: sections, basis functions, the kernel matrix, and proofs of validity."""

from __future__ import annotations

from numbers import Integral
from textwrap import wrap
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import DIVERGING, SEQUENTIAL, Points, length, take
from ..gram import CentredGram, DenseGram, GramOperator
from ..kernels import Features, Kernel
from ..kernels.validity import Counterexample, Validity
from ._axes import (
    PALETTE,
    Axes,
    Style,
    as_column,
    draw_curve,
    draw_function,
    interpret_labels,
    new_axes,
    open_frame,
    plane_window,
    plot,
    window_around,
)

_PROVED, _REFUTED, _CONDITIONAL = PALETTE[2], PALETTE[1], PALETTE[4]
_MAX_SHOWN_CHARACTERS = 60  # longer kernel expressions are truncated


@plot
def kernel_sections(kernel: Kernel, at: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Plot k(x, x') as a function of x, for fixed values of x'.

    A cross on the horizontal axis marks each x'.  Every kernel expansion is a linear combination of
    such functions.

    Parameters
    ----------
    kernel : Kernel
        A kernel on points with one column.
    at : float or array-like
        The values of x'.
    x : array-like of shape (m,) or (m, 1)
        The values of x at which the kernel is evaluated.

    See Also
    --------
    basis_functions : Plot the features of a kernel.
    gram_heatmap : Plot the kernel matrix of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import kernel_sections
    >>> ax = kernel_sections(RBF(0.3), [0.0, 1.0], np.linspace(-1, 2, 61), ax=Figure().subplots())
    >>> [line.get_label() for line in ax.lines[::2]]
    ["x' = 0", "x' = 1"]
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"got {kernel!r}, which is not a Kernel - usually because it is a name or a function - "
            f"try mercer.kernels.as_kernel, or basis_functions for a basis"
        )
    x, at = as_column(x, "x"), as_column(np.atleast_1d(np.asarray(at, dtype=float)), "at")
    values = np.asarray(kernel.resolve(x)(x, at))
    ax = new_axes(ax, (6.0, 4.0))
    for c, colour in enumerate(_colours(len(at))):
        label = f"x' = {at[c, 0]:g}".replace("-", "\N{MINUS SIGN}")
        ax.plot(x[:, 0], values[:, c], color=colour, linewidth=2.0, label=label)
        on_axis: Style = {"transform": ax.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        ax.plot(at[c], [0.0], "x", color=colour, markersize=9, markeredgewidth=2.5, **on_axis)
    if len(at) <= 3:
        ax.legend(framealpha=0.85, edgecolor="none")
    elif len(at) <= 10:  # with more curves, there is no space for a legend
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return _finish_axes(ax, x, "k(x, x')")


@plot
def basis_functions(basis: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Plot the functions phi_m of a basis, which define a kernel sum_m phi_m(x) phi_m(x').

    Parameters
    ----------
    basis : callable or Features
        A function that maps points of shape (n, 1) to an array of shape (n, M), or a kernel
        `Features`, whose basis is plotted.
    x : array-like of shape (n,) or (n, 1)
        The points at which the functions are evaluated.

    See Also
    --------
    kernel_sections : Plot the kernel that a basis defines.
    mercer.kernels.Features : The kernel of a basis.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer.kernels import GaussianBasis
    >>> from mercer.plotting import basis_functions
    >>> basis = GaussianBasis(centres=np.linspace(-1, 1, 11), width=0.2)
    >>> ax = basis_functions(basis, np.linspace(-1, 1, 50), ax=Figure().subplots())
    >>> len(ax.lines)
    11
    """
    x = as_column(x, "x")
    basis = basis.basis if isinstance(basis, Features) else basis
    if not callable(basis) or isinstance(basis, Kernel):
        raise TypeError(
            f"got {basis!r}, which is not a basis - usually because it is a kernel - "
            f"try a function of the points, or kernel_sections for a kernel"
        )
    phi = basis(x)
    phi = np.asarray(phi.toarray() if hasattr(phi, "toarray") else phi)
    if phi.ndim != 2 or len(phi) != len(x):
        raise ValueError(
            f"the basis returned shape {phi.shape} for {len(x)} points - usually because "
            f"features are in rows - try a function that returns one row per point, ({len(x)}, M)"
        )
    ax = new_axes(ax, (6.0, 4.0))
    for values, colour in zip(phi.T, _colours(phi.shape[1]), strict=True):
        ax.plot(x[:, 0], values, color=colour, linewidth=1.6)
    return _finish_axes(ax, x, "φₘ(x)")


def _colours(count: int) -> list[Any]:
    """Return up to three distinct colours, or more in the order of a sequential colormap."""
    if count <= 3:
        return list(PALETTE[:count])
    import matplotlib

    # The end of the colormap is too bright for a line on a white background.
    return [matplotlib.colormaps[SEQUENTIAL](t) for t in np.linspace(0.0, 0.9, count)]


def _finish_axes(ax: Axes, x: np.ndarray, ylabel: str) -> Axes:
    """Set the limits and labels of the axes, and remove the upper and right frame."""
    ax.set(xlim=(x.min(), x.max()), xlabel="x", ylabel=ylabel)
    return open_frame(ax)


@plot
def gram_heatmap(
    kernel_or_matrix_or_gram: Any,
    X: Points = None,
    order: Any = None,
    ax: Axes | None = None,
    max_size: int = 1000,
) -> Axes:
    """Plot the matrix K_ij = k(x_i, x_j) as a heat map.

    If the points are sorted by class, a kernel that separates the classes shows bright squares
    along the diagonal.

    Parameters
    ----------
    kernel_or_matrix_or_gram : Kernel, array of shape (n, m), or Gram operator
        The kernel or its matrix.
    X : points, default=None
        The points; required for a kernel, and not accepted for a matrix.
    order : array-like of shape (n,), default=None
        Values by which the points are sorted: numbers, or class labels, which are shown at the axes
        and separated by lines.  The sort is stable.
    max_size : int, default=1000
        The maximum number of rows and columns.  Of a larger matrix, only evenly spaced rows and
        columns (after sorting) are evaluated and plotted, and the title states this.

    See Also
    --------
    mercer.gram.gram : Compute kernel matrices.
    alignment : Measure the agreement of a kernel with class labels.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer.datasets import three_clusters
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import gram_heatmap
    >>> X, y = three_clusters(3000, random_state=0)
    >>> ax = gram_heatmap(RBF(0.2), X, order=y, ax=Figure().subplots(), max_size=300)
    >>> ax.get_title()
    '300 of 3000 points, evenly spaced'
    """
    if not isinstance(max_size, Integral) or max_size < 2:
        raise ValueError(
            f"max_size={max_size!r} must be an integer of at least 2, the number of rows and "
            f"columns - usually because a fraction was passed - try max_size=1000"
        )
    K = kernel_or_matrix_or_gram
    if isinstance(K, Kernel) == (X is None):
        received = "a kernel without points" if X is None else f"points and a {type(K).__name__}"
        raise ValueError(
            f"got {received} - a kernel requires points X, and a matrix or a Gram operator must be "
            f"passed without X - try gram_heatmap(kernel, X) or gram_heatmap(K)"
        )
    shape = (length(X),) * 2 if isinstance(K, Kernel) else np.shape(K)
    if len(shape) != 2 or not all(shape):
        raise ValueError(
            f"got shape {shape}, which is not that of a kernel matrix - usually because points "
            f"were passed instead of a matrix - try gram_heatmap(kernel, X)"
        )
    n, m = shape
    rows, cols = _evenly_spaced(n, max_size), _evenly_spaced(m, max_size)
    labels = interpret_labels(None, n)
    if order is not None:
        if n != m:
            raise ValueError(
                f"the matrix is {n} x {m}, but only a square matrix can be sorted by its points - "
                f"usually because it is k(X, Z) instead of k(X, X) - try without order"
            )
        labels = interpret_labels(order, n)
        rows = cols = np.argsort(labels.values, kind="stable")[rows]
    values, label = _entries(K, X, rows, cols)

    ax = new_axes(ax, (6.0, 5.0))
    largest = float(np.max(np.abs(values)))
    has_negative = bool(np.min(values) < 0.0)
    lowest, colormap = (-largest, DIVERGING) if has_negative else (0.0, SEQUENTIAL)
    image = ax.imshow(values, cmap=colormap, vmin=lowest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, label=label)
    total, shown = (f"{a}" if n == m else f"{a} × {b}" for a, b in (shape, values.shape))
    title = f"{shown} of {total} points, evenly spaced"
    ax.set_title(f"{total} points" if values.shape == shape else title)
    if labels.names is None:
        ax.set(xticks=[], yticks=[])
    else:
        _label_classes(ax, labels.classes[rows], labels.names, "0.2" if has_negative else "white")
    return ax


def _evenly_spaced(n: int, size: int) -> np.ndarray:
    """Return min(n, size) evenly spaced indices from 0 to n - 1, including both ends."""
    return np.rint(np.linspace(0, n - 1, min(n, size))).astype(np.intp)


def _entries(K: Any, X: Points, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, str]:
    """Return K[rows][:, cols] and a label for the colour bar; nothing else is evaluated."""
    if isinstance(K, Kernel):
        return K.resolve(X)(take(X, rows)), "k(xᵢ, xⱼ)"
    if isinstance(K, CentredGram):
        block, name = _entries(K.gram, X, rows, cols)
        block = block - K.means[rows, None] - K.means[cols] + K.grand_mean
        return K.scale[rows, None] * block * K.scale[cols], f"{name}, centred"
    if isinstance(K, GramOperator):
        name = "k(xᵢ, xⱼ)" if K.symmetric else "k(xᵢ, zⱼ)"
        is_dense = isinstance(K, DenseGram)
        return K.array[np.ix_(rows, cols)] if is_dense else K.block(rows, cols), name
    if sp.issparse(K):
        return K.tocsr()[rows][:, cols].toarray(), "Kᵢⱼ"
    return np.asarray(K)[np.ix_(rows, cols)], "Kᵢⱼ"


def _label_classes(ax: Axes, classes: np.ndarray, names: list[str], colour: str) -> None:
    """Separate the sorted classes by lines, and label each class at its middle."""
    present, starts, counts = np.unique(classes, return_index=True, return_counts=True)
    for edge in starts[1:] - 0.5:
        ax.axhline(edge, color=colour, linewidth=1.0)
        ax.axvline(edge, color=colour, linewidth=1.0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(starts + (counts - 1) / 2.0, [names[c] for c in present])
    ax.tick_params(length=0)


@plot
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
    n_grid : int, default=100
        The number of grid points per axis at which f is evaluated.

    See Also
    --------
    mercer.validity : Check whether a function is a kernel.
    check_gram : Check a kernel matrix.

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
    ax = new_axes(ax, (6.0, 4.0))
    draw_curve(ax, window, window.evaluate(witness), "f = sum c k(x, .)")
    _scatter(ax, witness, window.points[:, 0], witness(window.points))
    return ax


def _scatter(
    ax: Axes, witness: Counterexample, horizontal: np.ndarray, vertical: np.ndarray
) -> None:
    """Draw the points in the colours of their coefficients, with the coefficients as labels."""
    c: Any = witness.coefficients
    largest = float(np.abs(c).max())
    style: Style = {"cmap": DIVERGING, "vmin": -largest, "vmax": largest, "zorder": 4}
    ax.scatter(horizontal, vertical, c=c, s=90, edgecolors="black", **style)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
    above: Style = {"xytext": (8, 6), "textcoords": "offset points", "zorder": 5, "bbox": box}
    for x, y, weight in zip(horizontal, vertical, c, strict=True):
        ax.annotate(f"{weight:+.2g}", (x, y), fontsize=9, **above)


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
    return open_frame(ax)
