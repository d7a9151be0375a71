"""Pictures of kernels, of kernel matrices and of fitted models, drawn with matplotlib.

Every function draws into the axes it is given, or into a new figure, and returns the axes; none
shows or saves anything.  matplotlib is an extra, `pip install mercer[plot]`, and is imported when
a function is called.
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
