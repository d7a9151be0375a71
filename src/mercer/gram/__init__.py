"""Kernel matrices as linear operators, and feature maps that approximate them.

`gram` chooses between a dense array and a tiled operator from the size and the memory budget.
Other classes represent centred and low-rank matrices.
"""

from ._cancellation import LOST as LOST
from ._cancellation import ROUNDING as ROUNDING
from ._cancellation import differ as differ
from ._cancellation import warn_if_cancelled as warn_if_cancelled
from ._cancellation import warn_of_cancellation as warn_of_cancellation
from ._centred import CentredGram
from ._centroids import has_centroids, lloyd, radial_inside
from ._choose_landmarks import CANDIDATES, PER_LANDMARK, choose_landmarks
from ._count_sketch import CountSketchMap
from ._dense import DenseGram
from ._feature_map import FeatureMap
from ._flipped import FlippedMap
from ._fourier import FourierMap
from ._gram import gram
from ._landmarks import METHODS, RANK, Landmarks
from ._lowrank import LowRankGram
from ._memoise import memoise_if_affordable
from ._nearest import nearest, within
from ._nystroem import NystroemMap, factor_landmarks, without_rounding
from ._operator import GramOperator
from ._row_cache import add_rows
from ._rows import KernelRows, RowsView
from ._rpcholesky import PartialCholesky, rpcholesky, significance
from ._shared import grams, share_distances
from ._tiled import TiledGram, elsewhere, fill, working_bytes
from ._triangular import solve_rows

__all__ = [
    "CANDIDATES",
    "METHODS",
    "PER_LANDMARK",
    "RANK",
    "CentredGram",
    "CountSketchMap",
    "DenseGram",
    "FeatureMap",
    "FlippedMap",
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
