"""Plots of kernels, kernel matrices and fitted models with matplotlib.

Every function draws into the given axes or into a new figure, and returns the axes.  It neither
shows nor saves the figure.  matplotlib is an optional dependency (install it with
`pip install 'mercer[plot]'`), and is imported only when a function is called.
"""

from ._function_plots import contours, eigenfunctions, embedding, maps, preimage_path, witness
from ._kernel_plots import basis_functions, gram_heatmap, kernel_sections, validity
from ._model_plots import cluster_numbers, credible_band, margin, spectrum

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
