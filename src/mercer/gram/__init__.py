"""Kernel matrices as linear operators, and feature maps that approximate them.

`gram` chooses between a dense array and a tiled operator from the size and the memory budget.
Other classes represent centred and low-rank matrices.
"""

from .._core import former_names
from ._cancellation import MAX_CANCELLATION_ERROR as MAX_CANCELLATION_ERROR
from ._cancellation import ROUNDING_UNITS as ROUNDING_UNITS
from ._cancellation import points_differ as points_differ
from ._cancellation import warn_about_cancellation as warn_about_cancellation
from ._cancellation import warn_if_cancelled as warn_if_cancelled
from ._centred import CentredGram
from ._dense import DenseGram
from ._kernel_rows import KernelRows, RowsView
from ._length_scale_grid import can_share_distances, iter_grams
from ._low_rank import LowRankGram
from ._make_gram import gram, memoise_if_affordable
from ._neighbors import nearest_neighbors, radius_neighbors
from ._operator import GramOperator
from ._row_cache import add_weighted_rows
from ._tiled import TiledGram, distribute_products, fill_gram, working_bytes
from ._triangular_solve import solve_triangular_rows
from .feature_maps._feature_map import FeatureMap
from .feature_maps._fourier_map import FourierMap
from .feature_maps._nystroem_map import NystroemMap, clip_negative_residual, factor_landmarks
from .landmarks._kmeans_landmarks import euclidean_kmeans, supports_kmeans_landmarks, unwrap_radial
from .landmarks._landmark_selection import (
    CANDIDATES_PER_LANDMARK,
    DEFAULT_CANDIDATES,
    choose_landmarks,
)
from .landmarks._landmark_settings import DEFAULT_RANK, LANDMARK_METHODS, Landmarks
from .landmarks._pivoted_cholesky import PartialCholesky, residual_tolerances, rpcholesky

__getattr__ = former_names(__name__)

__all__ = [
    "CANDIDATES_PER_LANDMARK",
    "DEFAULT_CANDIDATES",
    "DEFAULT_RANK",
    "LANDMARK_METHODS",
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
    "add_weighted_rows",
    "can_share_distances",
    "choose_landmarks",
    "clip_negative_residual",
    "distribute_products",
    "euclidean_kmeans",
    "factor_landmarks",
    "fill_gram",
    "gram",
    "iter_grams",
    "memoise_if_affordable",
    "nearest_neighbors",
    "radius_neighbors",
    "residual_tolerances",
    "rpcholesky",
    "solve_triangular_rows",
    "supports_kmeans_landmarks",
    "unwrap_radial",
    "working_bytes",
]
