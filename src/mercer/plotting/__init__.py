"""Plots of kernels, kernel matrices and fitted models with matplotlib.

Every function draws into the given axes or into a new figure, and returns the axes.  It neither
shows nor saves the figure.  matplotlib is an optional dependency, `pip install mercer[plot]`, and
is imported only when a function is called.
"""

from ._clusters import cluster_numbers
from ._embedding import embedding
from ._heatmap import gram_heatmap
from ._line import basis_functions, credible_band, kernel_sections
from ._maps import maps
from ._margin import margin
from ._plane import contours, eigenfunctions, preimage_path
from ._spectrum import spectrum
from ._validity import validity
from ._witness import witness

__all__ = [
    "basis_functions",
    "cluster_numbers",
    "contours",
    "credible_band",
    "eigenfunctions",
    "embedding",
    "gram_heatmap",
    "kernel_sections",
    "maps",
    "margin",
    "preimage_path",
    "spectrum",
    "validity",
    "witness",
]
