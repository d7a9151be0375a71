"""How K is held: as an array, in tiles, centred, of low rank.  `gram` chooses."""

from ._centred import CentredGram
from ._centroids import radial_inside
from ._dense import DenseGram
from ._fourier import FourierMap
from ._gram import gram
from ._landmarks import choose_landmarks, doubled, reads_all, sliceable
from ._lowrank import LowRankGram
from ._nystroem import NystroemMap
from ._operator import GramOperator
from ._rpcholesky import PartialCholesky, rpcholesky
from ._tiled import TiledGram

__all__ = [
    "CentredGram",
    "DenseGram",
    "FourierMap",
    "GramOperator",
    "LowRankGram",
    "NystroemMap",
    "PartialCholesky",
    "TiledGram",
    "choose_landmarks",
    "doubled",
    "gram",
    "radial_inside",
    "reads_all",
    "rpcholesky",
    "sliceable",
]
