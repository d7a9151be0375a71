"""Where a picture goes: the axes of the caller, or new ones; and the colours it is drawn in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any  # matplotlib is imported when something is drawn

__all__ = [
    "DIVERGING",
    "PALETTE",
    "SEQUENTIAL",
    "Axes",
    "Style",
    "legend_below",
    "new_axes",
    "require_matplotlib",
]

Style = dict[str, Any]  # keywords of matplotlib

# The colours of Okabe and Ito, which people with any form of colour blindness can tell apart,
# without their yellow, which is lost on white paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def require_matplotlib() -> None:
    """Raise at once, before anything is computed, if there is nothing to draw with."""
    try:
        import matplotlib.figure  # noqa: F401 - to see whether it is there
    except ImportError as error:
        raise ImportError(
            f"matplotlib cannot be imported ({error}) - mercer installs it only if asked to, "
            f"because nothing but the pictures needs it - try pip install mercer[plot]"
        ) from error


def new_axes(ax: Axes | None, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def legend_below(ax: Axes) -> Axes:
    """Put the legend under the picture: points may be anywhere in it."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)
    return ax
