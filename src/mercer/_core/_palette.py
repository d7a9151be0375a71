"""Colours of classes and numbers in the figures, the report and the explorer.

The class colours of each theme were chosen by maximising the smallest CIEDE2000 difference of all
pairs, for normal vision and for protanopia, deuteranopia and tritanopia (Machado et al. 2009),
under the condition that the WCAG contrast with the background is at least 3.  The first colours,
which are used most often, differ most.  Colour k has a similar hue in both themes.
"""

from __future__ import annotations

from typing import Any

PAPER = {"light": "#ffffff", "dark": "#14181f"}
CLASS_COLOURS = {
    "light": (
        "#0060f0",
        "#b43c0c",
        "#008454",
        "#e46c84",
        "#a89000",
        "#009ce4",
        "#84486c",
        "#780000",
        "#54186c",
        "#0000cc",
        "#906c9c",
        "#00543c",
    ),
    "dark": (
        "#546cf0",
        "#e49000",
        "#90b484",
        "#d8483c",
        "#e4f030",
        "#60a8ff",
        "#fcc0cc",
        "#9c6c6c",
        "#c09cc0",
        "#d8d8ff",
        "#8478a8",
        "#9cfca8",
    ),
}
OTHER_COLOUR = {"light": "#8b95a3", "dark": "#7c8796"}  # missing values, and classes without colour

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"  # names of colormaps in matplotlib
# Viridis at equally spaced positions, for pages, which do not use matplotlib.
_VIRIDIS = (
    (68, 1, 84),
    (72, 40, 120),
    (62, 74, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (110, 206, 88),
    (181, 222, 43),
    (253, 231, 37),
)
# The part of viridis that is visible on the background of each theme.
_SEQUENTIAL_RANGE = {"light": (0.0, 0.92), "dark": (0.18, 1.0)}


def page_palette() -> dict[str, Any]:
    """Return the colours as JSON values for the script of a page."""
    return {
        "paper": PAPER,
        "classes": CLASS_COLOURS,
        "other": OTHER_COLOUR,
        "sequential": _VIRIDIS,
        "sequentialRange": _SEQUENTIAL_RANGE,
    }
