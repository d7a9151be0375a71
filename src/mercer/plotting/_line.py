"""Functions on the line: sections of a kernel, and the basis functions it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Features, Kernel
from ._axes import PALETTE, SEQUENTIAL, new_axes, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["basis_functions", "kernel_sections"]


def kernel_sections(kernel: Kernel, at: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Draw k(x, x') as a function of x on the line, for each fixed x'.

    A cross on the axis marks x'.  Sections are what every expansion is a sum of.

    Parameters
    ----------
    kernel : Kernel
    at : float or array-like
        The x'.
    x : array-like of shape (m,) or (m, 1)
    ax : matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    ax : matplotlib Axes

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
            f"got {kernel!r}, which is no Kernel - usually a name or a function - "
            f"try mercer.kernels.as_kernel, or basis_functions for a basis"
        )
    x, at = column(x, "x"), column(np.atleast_1d(np.asarray(at, dtype=float)), "at")
    values = np.asarray(kernel.resolve(x)(x, at))
    ax = new_axes(ax, (6.0, 4.0))
    for c, colour in enumerate(_colours(len(at))):
        name = f"x' = {at[c, 0]:g}".replace("-", "\N{MINUS SIGN}")
        ax.plot(x[:, 0], values[:, c], color=colour, linewidth=2.0, label=name)
        ax.plot(
            at[c],
            [0.0],
            "x",
            color=colour,
            markersize=9,
            markeredgewidth=2.5,
            transform=ax.get_xaxis_transform(),  # on the axis, wherever the values are
            clip_on=False,
            zorder=5,
        )
    if len(at) <= 3:
        ax.legend(framealpha=0.85, edgecolor="none")
    elif len(at) <= 10:  # so many curves leave no room among them
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    ax.set_ylabel("k(x, x')")
    return _finished(ax, x)


def basis_functions(basis: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Draw the functions phi_m of a basis on the line, whose kernel is sum_m phi_m(x) phi_m(x').

    Parameters
    ----------
    basis : callable or Features
        Takes points of shape (n, 1), returns an array of shape (n, M); of a kernel `Features`
        its basis is meant.
    x : array-like of shape (n,) or (n, 1)
    ax : matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    ax : matplotlib Axes

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
    x = column(x, "x")
    basis = basis.basis if isinstance(basis, Features) else basis
    if not callable(basis) or isinstance(basis, Kernel):
        raise TypeError(
            f"got {basis!r}, which is no basis - usually a kernel that is not made of one - "
            f"try a function of the points, or kernel_sections for a kernel"
        )
    phi = basis(x)
    phi = np.asarray(phi.toarray() if hasattr(phi, "toarray") else phi)
    if phi.ndim != 2 or len(phi) != len(x):
        raise ValueError(
            f"the basis returned shape {phi.shape} for {len(x)} points - usually features in "
            f"rows - try a function that returns one row per point, ({len(x)}, M)"
        )
    ax = new_axes(ax, (6.0, 4.0))
    for values, colour in zip(phi.T, _colours(phi.shape[1]), strict=True):
        ax.plot(x[:, 0], values, color=colour, linewidth=1.6)
    ax.set_ylabel("φₘ(x)")
    return _finished(ax, x)


def column(x: Any, name: str) -> np.ndarray:
    """Return points on the line as a column."""
    x = np.asarray(x, dtype=float)
    if x.size == 0 or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] != 1):
        raise ValueError(
            f"{name} has shape {x.shape}, but the picture has one axis for it - usually points "
            f"with several columns - try one column, such as numpy.linspace(-1, 1, 200)"
        )
    return x.reshape(-1, 1)


def _colours(count: int) -> list[Any]:
    """Return a few colours far apart, or many along a scale that says which comes first."""
    if count <= 3:
        return list(PALETTE[:count])
    import matplotlib

    # up to 0.9: the last of the scale is too bright for a line on white
    return [matplotlib.colormaps[SEQUENTIAL](t) for t in np.linspace(0.0, 0.9, count)]


def _finished(ax: Axes, x: np.ndarray) -> Axes:
    ax.set_xlim(x.min(), x.max())
    ax.set_xlabel("x")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
