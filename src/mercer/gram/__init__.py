"""Kernel matrices as linear operators, and feature maps that approximate them.

The function `gram` returns a dense or a tiled operator, depending on the size of the matrix and the
memory budget.  Other classes represent centred and low-rank matrices.
"""

from .._core import former_names
from ._cancellation import MAX_CANCELLATION_ERROR as MAX_CANCELLATION_ERROR
from ._cancellation import ROUNDING_UNITS as ROUNDING_UNITS
from ._cancellation import points_differ as points_differ
from ._cancellation import warn_about_cancellation as warn_about_cancellation
from ._cancellation import warn_if_cancelled as warn_if_cancelled
from ._centred import CentredGram
from ._centred import uncentred as uncentred
from ._dense import DenseGram, iter_grams
from ._dense import can_share_distances as can_share_distances
from ._distributed import DistributedGram
from ._feature_map import FeatureMap, FourierMap
from ._kernel_rows import KernelRows, RowsView
from ._kernel_rows import add_weighted_rows as add_weighted_rows
from ._landmark_selection import CANDIDATES_PER_LANDMARK as CANDIDATES_PER_LANDMARK
from ._landmark_selection import DEFAULT_CANDIDATES as DEFAULT_CANDIDATES
from ._landmark_selection import choose_landmarks
from ._landmarks import DEFAULT_RANK as DEFAULT_RANK
from ._landmarks import LANDMARK_METHODS as LANDMARK_METHODS
from ._landmarks import Landmarks
from ._landmarks import euclidean_kmeans as euclidean_kmeans
from ._landmarks import supports_kmeans_landmarks as supports_kmeans_landmarks
from ._landmarks import unwrap_radial as unwrap_radial
from ._low_rank import LowRankGram
from ._make_gram import gram
from ._make_gram import memoise_if_affordable as memoise_if_affordable
from ._neighbors import nearest_neighbors, radius_neighbors
from ._nystroem_map import NystroemMap
from ._nystroem_map import clip_negative_residual as clip_negative_residual
from ._nystroem_map import factor_landmarks as factor_landmarks
from ._operator import GramOperator
from ._pivoted_cholesky import PartialCholesky, rpcholesky
from ._pivoted_cholesky import residual_tolerances as residual_tolerances
from ._tiled import TiledGram
from ._tiled import fill_gram as fill_gram
from ._tiled import working_bytes as working_bytes
from ._triangular_solve import solve_triangular_rows as solve_triangular_rows

__getattr__ = former_names(__name__)

__all__ = [
    "CentredGram",
    "DenseGram",
    "DistributedGram",
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
    "choose_landmarks",
    "gram",
    "iter_grams",
    "nearest_neighbors",
    "radius_neighbors",
    "rpcholesky",
]
