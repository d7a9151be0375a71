"""Rows in blocks: what a pass over points needs, and nothing of where they are.

    reduce(f, merge) = merge over a fixed binary tree of f(block 0), f(block 1), ...

In memory, in files, or as a collection of Dask: the tree is one over the numbers of the blocks, so
that the bits of a result depend on the blocks alone, and not on who worked on which.
"""

from ._arrays import ArrayBlocks, LocalBlocks, rows_of_a_block
from ._blocks import Blocks, Rows, checked, concatenated
from ._dask import DaskBlocks, is_dask
from ._door import as_blocks, beside, in_blocks
from ._sample import Drawn, draw
from ._tree import tree

__all__ = [
    "ArrayBlocks",
    "Blocks",
    "DaskBlocks",
    "Drawn",
    "LocalBlocks",
    "Rows",
    "as_blocks",
    "beside",
    "checked",
    "concatenated",
    "draw",
    "in_blocks",
    "is_dask",
    "rows_of_a_block",
    "tree",
]
