"""A function on the line with its credible band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import PALETTE, new_axes, require_matplotlib
from ._line import column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["credible_band"]


def credible_band(
    model: Any, x: Any, X: Any = None, y: Any = None, *, width: float = 2.0, ax: Axes | None = None
) -> Axes:
    """Draw the prediction m(x) of a model on the line, and the band m(x) +- width s(x).

    Parameters
    ----------
    model : estimator
        Fitted, with `predict(x, return_std=True)`: GaussianProcessRegressor, KernelRidge.
    x : array-like of shape (n,) or (n, 1)
        Where to draw, in ascending order.
    X, y : array-like, optional
        Observations, drawn as points.
    width : float
        Of the band, in standard deviations on either side; with 2, f(x) lies in it with a
        probability of 95 % if the model is right.
    ax : matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    ax : matplotlib Axes

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
    x = column(x, "x")
    try:
        mean, deviation = model.predict(x, return_std=True)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__} does not predict standard deviations - usually because it is "
            f"no probabilistic model - try GaussianProcessRegressor or KernelRidge"
        ) from error
    if np.ndim(mean) != 1:
        raise ValueError(
            f"the model has {np.shape(mean)[1]} targets, but a band shows one - "
            f"try a model fitted to one of them"
        )
    if not width > 0:
        raise ValueError(f"width is a positive number of standard deviations, got {width!r}")
    ax = new_axes(ax, (6.4, 4.0))
    ax.fill_between(
        x[:, 0],
        mean - width * deviation,
        mean + width * deviation,
        color=PALETTE[5],
        alpha=0.35,
        linewidth=0,
        label=f"± {width:g} standard deviations",
    )
    ax.plot(x[:, 0], mean, color=PALETTE[0], linewidth=2.0, label="mean")
    if X is not None and y is not None:
        ax.plot(np.ravel(X), np.ravel(y), ".", color=PALETTE[6], markersize=5, label="observations")
    ax.set_xlabel("x")
    ax.margins(x=0.0)
    return ax
