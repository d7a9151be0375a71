"""Plots of kernels, kernel matrices and fitted models with matplotlib.

Every function draws into the given axes or into a new figure, and returns the axes.  It neither
shows nor saves the figure.  matplotlib is an optional dependency (install it with
`pip install mercer[plot]`), and is imported only when a function is called.
"""

from ._cluster_number_plot import cluster_numbers
from ._eigenvalue_plot import spectrum
from ._embedding_grid import maps
from ._embedding_plot import embedding
from ._gram_heatmap import gram_heatmap
from ._plots_1d import basis_functions, credible_band, kernel_sections
from ._plots_2d import contours, eigenfunctions, preimage_path
from ._svm_margin import margin
from ._validity_plot import validity
from ._witness_plot import witness

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
