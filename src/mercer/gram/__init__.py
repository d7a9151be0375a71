"""How K is held: as an array, in tiles, centred.  `gram` chooses."""

from ._centred import CentredGram
from ._dense import DenseGram
from ._gram import gram
from ._operator import GramOperator
from ._tiled import TiledGram

__all__ = ["CentredGram", "DenseGram", "GramOperator", "TiledGram", "gram"]
