"""Axes, colours and legends that all plots share."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError

__all__ = [
    "DIVERGING",
    "PALETTE",
    "SEQUENTIAL",
    "Axes",
    "Style",
    "check_components",
    "legend_below",
    "new_axes",
    "require_attribute",
    "require_matplotlib",
]


if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any  # matplotlib is imported only when a plot is drawn


Style = dict[str, Any]  # keyword arguments of matplotlib functions

# The palette of Okabe and Ito, whose colours are distinguishable with any form of colour blindness,
# without their yellow, which is hardly visible on a white background.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def require_matplotlib() -> None:
    """Raise an ImportError if matplotlib is not installed; called before long computations."""
    try:
        import matplotlib.figure  # noqa: F401 - checks that it can be imported
    except ImportError as error:
        raise ImportError(
            f"matplotlib cannot be imported ({error}) - it is an optional dependency of mercer "
            f"that is needed for plots - try pip install mercer[plot]"
        ) from error


def new_axes(ax: Axes | None, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return `ax`, or the axes of a new figure if `ax` is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def legend_below(ax: Axes) -> Axes:
    """Place the legend below the axes, where it does not cover any points."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    return ax


# --- Check that a model has the fitted attributes and components that a plot needs.


def require_attribute(model: Any, name: str) -> Any:
    """Return a fitted attribute of a model; raise a NotFittedError if it does not exist."""
    try:
        return getattr(model, name)
    except AttributeError:
        raise NotFittedError(
            f"this {type(model).__name__} has no {name} - usually because it was not fitted yet, "
            f"or is another kind of model - try fit(X) first"
        ) from None


def check_components(components: Sequence[int], available: int) -> list[int]:
    """Return components as a list of int; raise a ValueError if one does not exist."""
    for j in components:
        if isinstance(j, bool) or not isinstance(j, Integral) or not 0 <= j < available:
            raise ValueError(
                f"component {j!r} does not exist: there are only {available}, counted from 0 - "
                f"usually the model was fitted with a smaller n_components - "
                f"try components below {available}, or fit with more"
            )
    return [int(j) for j in components]
