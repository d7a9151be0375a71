"""The kernel matrix as a picture, thinned to a size that a screen can show."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._points import length, take
from ..gram import CentredGram, DenseGram, GramOperator
from ..kernels import Kernel
from ._axes import DIVERGING, SEQUENTIAL, new_axes, require_matplotlib
from ._classes import as_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["gram_heatmap"]


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
        Of a kernel; a matrix and a Gram bring their own.
    order : array-like of shape (n,), optional
        What to sort the points by: their classes, which then are named and parted by lines, or a
        number.  Equal ones keep their order.
    ax : matplotlib Axes, optional
        A new figure by default.
    max_size : int, default=1000
        Of more rows or columns than that, as many are shown, evenly spaced (after sorting), and
        the title says so.  No more of K than that is ever evaluated.

    Returns
    -------
    ax : matplotlib Axes

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
    names, classes = None, np.empty(0)
    if order is not None:
        if n != m:
            raise ValueError(
                f"the matrix is {n} x {m}, and only a square one can be sorted by its points - "
                f"usually k(X, Z) in place of k(X, X) - try without order"
            )
        keys, names, index = as_classes(order, n)
        sorting = np.argsort(keys, kind="stable")
        rows = cols = sorting[rows]
        classes = index[rows]
    values = _values(K, X, rows, cols)

    ax = new_axes(ax, (6.0, 5.0))
    largest = float(np.max(np.abs(values)))
    signed = bool(np.min(values) < 0.0)
    limits = {"vmin": -largest, "vmax": largest} if signed else {"vmin": 0.0, "vmax": largest}
    image = ax.imshow(values, cmap=DIVERGING if signed else SEQUENTIAL, **limits)
    ax.figure.colorbar(image, ax=ax, label=_entry(K))
    whole = f"{n}" if n == m else f"{n} × {m}"
    part = f"{len(rows)}" if n == m else f"{len(rows)} × {len(cols)}"
    ax.set_title(
        f"{whole} points" if values.shape == shape else f"{part} of {whole} points, evenly thinned"
    )
    if names is None:
        ax.set_xticks([])
        ax.set_yticks([])
    else:
        _name_classes(ax, classes, names, "0.2" if signed else "white")
    return ax


def _thinned(n: int, size: int) -> np.ndarray:
    """Return min(n, size) of 0, ..., n - 1, evenly spaced, both ends included."""
    return np.rint(np.linspace(0, n - 1, min(n, size))).astype(np.intp)


def _values(K: Any, X: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Return K[rows][:, cols], and evaluate or copy no more of K than that."""
    if isinstance(K, Kernel):
        return K.resolve(X)(take(X, rows))
    if isinstance(K, CentredGram):
        block = _values(K.gram, X, rows, cols)
        block = block - K.means[rows, None] - K.means[cols] + K.grand_mean
        return K.scale[rows, None] * block * K.scale[cols]
    if isinstance(K, DenseGram):
        K = K.array
    elif isinstance(K, GramOperator):
        return K.block(rows, cols)
    if sp.issparse(K):
        return K.tocsr()[rows][:, cols].toarray()
    return np.asarray(K)[np.ix_(rows, cols)]


def _entry(K: Any) -> str:
    """Return what an entry of the matrix is called."""
    if isinstance(K, CentredGram):
        return "k(xᵢ, xⱼ), centred"
    if isinstance(K, GramOperator) and not K.symmetric:
        return "k(xᵢ, zⱼ)"
    return "k(xᵢ, xⱼ)" if isinstance(K, Kernel | GramOperator) else "Kᵢⱼ"


def _name_classes(ax: Axes, classes: np.ndarray, names: list[str], colour: str) -> None:
    """Part the sorted classes by lines, and name each at its middle."""
    starts = np.searchsorted(classes, np.arange(len(names) + 1))
    for edge in starts[1:-1]:
        ax.axhline(edge - 0.5, color=colour, linewidth=1.0)
        ax.axvline(edge - 0.5, color=colour, linewidth=1.0)
    middles = {  # of a small class, thinning may have left nothing
        name: (first + last - 1) / 2.0
        for name, first, last in zip(names, starts, starts[1:], strict=False)
        if first < last
    }
    ax.set_xticks(list(middles.values()), list(middles))
    ax.set_yticks(list(middles.values()), list(middles))
    ax.tick_params(length=0)
