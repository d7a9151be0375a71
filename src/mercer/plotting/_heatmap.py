"""The kernel matrix as a picture, thinned to a size that a screen can show."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import length, take
from .._runtime import entry_point
from ..gram import CentredGram, DenseGram, GramOperator
from ..kernels import Kernel
from ._axes import DIVERGING, SEQUENTIAL, Axes, new_axes, require_matplotlib
from ._labels import labels_of

__all__ = ["gram_heatmap"]


@entry_point
def gram_heatmap(
    kernel_or_matrix_or_gram: Any,
    X: Any = None,
    order: Any = None,
    ax: Axes | None = None,
    max_size: int = 1000,
) -> Axes:
    """Draw the matrix K_ij = k(x_i, x_j) as shades.

    Sorted by class, a kernel that knows the classes shows bright squares along the diagonal.

    Parameters
    ----------
    kernel_or_matrix_or_gram : Kernel, array of shape (n, m), or Gram operator
    X : points
        For a kernel; a matrix and a Gram bring their own.
    order : array-like of shape (n,), optional
        What to sort the points by: their classes, which then are named and parted by lines, or a
        number.  Equal ones keep their order.
    ax : matplotlib Axes, by default those of a new figure; they are returned
    max_size : int, default=1000
        If there are more rows or columns, this many are shown, evenly spaced (after sorting), and
        the title says so.  No more of K than that is ever evaluated.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer.datasets import three_clusters
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import gram_heatmap
    >>> X, y = three_clusters(3000, random_state=0)
    >>> ax = gram_heatmap(RBF(0.2), X, order=y, ax=Figure().subplots(), max_size=300)
    >>> ax.get_title()
    '300 of 3000 points, evenly thinned'
    """
    require_matplotlib()
    if not isinstance(max_size, Integral) or max_size < 2:
        raise ValueError(
            f"max_size={max_size!r} leaves nothing to see - it is the number of rows and columns "
            f"drawn, usually mistaken for a share of them - try max_size=1000"
        )
    K = kernel_or_matrix_or_gram
    if isinstance(K, Kernel) == (X is None):
        given = "a kernel without points" if X is None else f"points and a {type(K).__name__}"
        raise ValueError(
            f"got {given}, which makes no matrix - only a kernel needs points X, and a matrix or "
            f"a Gram brings its own - try gram_heatmap(kernel, X) or gram_heatmap(K)"
        )
    shape = (length(X),) * 2 if isinstance(K, Kernel) else np.shape(K)
    if len(shape) != 2 or not all(shape):
        raise ValueError(
            f"got shape {shape}, which is not that of a kernel matrix - usually points in place "
            f"of it - try gram_heatmap(kernel, X)"
        )
    n, m = shape
    rows, cols = _thinned(n, max_size), _thinned(m, max_size)
    labels = labels_of(None, n)
    if order is not None:
        if n != m:
            raise ValueError(
                f"the matrix is {n} x {m}, and only a square one can be sorted by its points - "
                f"usually k(X, Z) in place of k(X, X) - try without order"
            )
        labels = labels_of(order, n)
        rows = cols = np.argsort(labels.values, kind="stable")[rows]
    values, entry = _entries(K, X, rows, cols)

    ax = new_axes(ax, (6.0, 5.0))
    largest = float(np.max(np.abs(values)))
    signed = bool(np.min(values) < 0.0)
    lowest, shades = (-largest, DIVERGING) if signed else (0.0, SEQUENTIAL)
    image = ax.imshow(values, cmap=shades, vmin=lowest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, label=entry)
    whole, part = (f"{a}" if n == m else f"{a} × {b}" for a, b in (shape, values.shape))
    thinned = f"{part} of {whole} points, evenly thinned"
    ax.set_title(f"{whole} points" if values.shape == shape else thinned)
    if labels.names is None:
        ax.set(xticks=[], yticks=[])
    else:
        _name_classes(ax, labels.classes[rows], labels.names, "0.2" if signed else "white")
    return ax


def _thinned(n: int, size: int) -> np.ndarray:
    """Return min(n, size) of 0, ..., n - 1, evenly spaced, both ends included."""
    return np.rint(np.linspace(0, n - 1, min(n, size))).astype(np.intp)


def _entries(K: Any, X: Any, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, str]:
    """Return K[rows][:, cols], of which no more is evaluated or copied, and an entry's name."""
    if isinstance(K, Kernel):
        return K.resolve(X)(take(X, rows)), "k(xᵢ, xⱼ)"
    if isinstance(K, CentredGram):
        block, name = _entries(K.gram, X, rows, cols)
        block = block - K.means[rows, None] - K.means[cols] + K.grand_mean
        return K.scale[rows, None] * block * K.scale[cols], f"{name}, centred"
    if isinstance(K, GramOperator):
        name = "k(xᵢ, xⱼ)" if K.symmetric else "k(xᵢ, zⱼ)"
        dense = isinstance(K, DenseGram)
        return K.array[np.ix_(rows, cols)] if dense else K.block(rows, cols), name
    if sp.issparse(K):
        return K.tocsr()[rows][:, cols].toarray(), "Kᵢⱼ"
    return np.asarray(K)[np.ix_(rows, cols)], "Kᵢⱼ"


def _name_classes(ax: Axes, classes: np.ndarray, names: list[str], colour: str) -> None:
    """Part the sorted classes by lines, and name each at its middle."""
    shown, starts, counts = np.unique(classes, return_index=True, return_counts=True)
    for edge in starts[1:] - 0.5:
        ax.axhline(edge, color=colour, linewidth=1.0)
        ax.axvline(edge, color=colour, linewidth=1.0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(starts + (counts - 1) / 2.0, [names[c] for c in shown])
    ax.tick_params(length=0)
