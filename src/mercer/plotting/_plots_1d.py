"""Plots of functions of one variable: kernel sections, basis functions, predictive bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import entry_point
from ..kernels import Features, Kernel
from ._axes import PALETTE, SEQUENTIAL, Axes, Style, new_axes, require_matplotlib

__all__ = ["as_column", "basis_functions", "credible_band", "draw_band", "kernel_sections"]


@entry_point
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
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    require_matplotlib()
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


@entry_point
def basis_functions(basis: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Plot the functions phi_m of a basis, which define a kernel sum_m phi_m(x) phi_m(x').

    Parameters
    ----------
    basis : callable or Features
        A function that maps points of shape (n, 1) to an array of shape (n, M), or a kernel
        `Features`, whose basis is plotted.
    x : array-like of shape (n,) or (n, 1)
        The points at which the functions are evaluated.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    require_matplotlib()
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


@entry_point
def credible_band(
    model: Any, x: Any, X: Any = None, y: Any = None, *, width: float = 2.0, ax: Axes | None = None
) -> Axes:
    """Plot the predictive mean m(x) and standard deviation s(x) of a model, as m(x) +- width s(x).

    Parameters
    ----------
    model : estimator
        A fitted model whose `predict` accepts ``return_std=True``, such as
        GaussianProcessRegressor or KernelRidge.
    x : array-like of shape (n,) or (n, 1)
        The points at which the model is evaluated, in ascending order.
    X, y : array-like, default=None
        Observations, which are drawn as points.
    width : float, default=2.0
        The number of standard deviations on each side of the mean.  With 2, the band contains f(x)
        with a probability of about 95 % if the model is correct.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelRidge
    >>> from mercer.plotting import credible_band
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = KernelRidge(0.1, kernel="rbf").fit(X, [0.0, 1.0, 0.0])
    >>> ax = credible_band(model, np.linspace(-1, 3, 50), ax=Figure().subplots())
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    require_matplotlib()
    x = as_column(x, "x")
    try:
        mean, deviation = model.predict(x, return_std=True)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__} does not predict standard deviations - usually because it is "
            f"not a probabilistic model - try GaussianProcessRegressor or KernelRidge"
        ) from error
    if np.ndim(mean) != 1:
        raise ValueError(
            f"the model has {np.shape(mean)[1]} targets, but the plot can show only one - "
            f"try a model fitted to one of them"
        )
    if not width > 0:
        raise ValueError(f"width must be a positive number of standard deviations, got {width!r}")
    observed = None if X is None or y is None else (np.ravel(X), np.ravel(y))
    names = f"± {width:g} standard deviations", "mean", "observations"
    ax = new_axes(ax, (6.4, 4.0))
    return draw_band(ax, x[:, 0], mean, width * deviation, observed, names)


def as_column(x: Any, name: str) -> np.ndarray:
    """Return points with one coordinate as an array of shape (n, 1)."""
    x = np.asarray(x, dtype=float)
    if x.size == 0 or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] != 1):
        raise ValueError(
            f"{name} has shape {x.shape}, but the plot has only one axis for it - usually because "
            f"there are several columns - try one column, such as numpy.linspace(-1, 1, 200)"
        )
    return x.reshape(-1, 1)


def draw_band(
    ax: Axes, x: np.ndarray, f: np.ndarray, half_width: Any, observed: Any, names: Sequence[str]
) -> Axes:
    """Draw the curve f, the band from f - half_width to f + half_width, and observations if any.

    `observed` is None or a pair of arrays x and y.  `names` are the legend labels of the band, the
    curve and the observations.
    """
    shade: Style = {"color": PALETTE[5], "alpha": 0.35, "linewidth": 0}
    ax.fill_between(x, f - half_width, f + half_width, label=names[0], **shade)
    ax.plot(x, f, color=PALETTE[0], linewidth=2.0, label=names[1])
    if observed is not None:
        ax.plot(*observed, ".", color=PALETTE[6], markersize=5, label=names[2])
    ax.set_xlabel("x")
    ax.margins(x=0.0)
    return ax


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
    ax.spines[["top", "right"]].set_visible(False)
    return ax
