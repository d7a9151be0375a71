"""Kernel matrices as linear operators, and feature maps that approximate them.

`gram` chooses between a dense array and a tiled operator from the size and the memory budget.
Other classes represent centred and low-rank matrices.
"""

from .._core import former_names
from ._cancellation import LOST as LOST
from ._cancellation import ROUNDING as ROUNDING
from ._cancellation import differ as differ
from ._cancellation import warn_if_cancelled as warn_if_cancelled
from ._cancellation import warn_of_cancellation as warn_of_cancellation
from ._centred import CentredGram
from ._dense import DenseGram
from ._kernel_rows import KernelRows, RowsView
from ._length_scale_grid import grams, share_distances
from ._low_rank import LowRankGram
from ._make_gram import gram, memoise_if_affordable
from ._neighbors import nearest, within
from ._operator import GramOperator
from ._row_cache import add_rows
from ._tiled import TiledGram, elsewhere, fill, working_bytes
from ._triangular_solve import solve_rows
from .feature_maps._feature_map import FeatureMap
from .feature_maps._fourier_map import FourierMap
from .feature_maps._nystroem_map import NystroemMap, factor_landmarks, without_rounding
from .landmarks._kmeans_landmarks import has_centroids, lloyd, radial_inside
from .landmarks._landmark_selection import CANDIDATES, PER_LANDMARK, choose_landmarks
from .landmarks._landmark_settings import METHODS, RANK, Landmarks
from .landmarks._pivoted_cholesky import PartialCholesky, rpcholesky, significance

__getattr__ = former_names(__name__)

__all__ = [
    "CANDIDATES",
    "METHODS",
    "PER_LANDMARK",
    "RANK",
    "CentredGram",
    "DenseGram",
    "FeatureMap",
    "FourierMap",
    "GramOperator",
    "KernelRows",
    "Landmarks",
    "LowRankGram",
    "NystroemMap",
    "PartialCholesky",
    "RowsView",
    "TiledGram",
    "add_rows",
    "choose_landmarks",
    "elsewhere",
    "factor_landmarks",
    "fill",
    "gram",
    "grams",
    "has_centroids",
    "lloyd",
    "memoise_if_affordable",
    "nearest",
    "radial_inside",
    "rpcholesky",
    "share_distances",
    "significance",
    "solve_rows",
    "within",
    "without_rounding",
    "working_bytes",
]
