"""Plot a kernel matrix as a heat map, subsampled if it is large."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import entry_point, length, take
from ..gram import CentredGram, DenseGram, GramOperator
from ..kernels import Kernel
from ._axes import DIVERGING, SEQUENTIAL, Axes, new_axes, require_matplotlib
from ._class_colours import interpret_labels

__all__ = ["gram_heatmap"]


@entry_point
def gram_heatmap(
    kernel_or_matrix_or_gram: Any,
    X: Any = None,
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
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    max_size : int, default=1000
        The maximum number of rows and columns.  Of a larger matrix, only evenly spaced rows and
        columns (after sorting) are evaluated and plotted, and the title states this.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    require_matplotlib()
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


def _entries(K: Any, X: Any, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, str]:
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
