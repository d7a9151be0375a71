"""Blocks of rows for out-of-core and distributed passes over data.

    reduce(f, merge) = merge over a fixed binary tree of f(block 0), f(block 1), ...

The rows may be in memory, in files, or in a Dask collection.  The merge order depends only on the
number of blocks.  Therefore results are bit-for-bit identical for the same blocks, no matter which
thread or worker processed which block.
"""

from ._array_blocks import ArrayBlocks, LocalBlocks, rows_of_a_block
from ._blocks import Blocks, Rows, checked, concatenated, tree
from ._dask_blocks import DaskBlocks, is_dask
from ._dispatch import as_blocks, beside, in_blocks
from ._row_sample import Drawn, draw

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
