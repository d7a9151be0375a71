"""Process data in blocks of rows, out of core or distributed.

The rows may be in memory, in files, or in a Dask collection.  A pass applies a function to each
block and merges the results pairwise, over a fixed binary tree.  The merge order depends only on
the number of blocks.  Therefore results are bit-for-bit identical for the same blocks, no matter
which thread or worker processes which block.
"""

from ._array_blocks import ArrayBlocks, LocalBlocks, rows_per_block
from ._blocks import BlockRows, Blocks, concatenate_blocks, tree_reduce, validate_block
from ._blocks import SpreadTask as SpreadTask
from ._dask_blocks import DaskBlocks, is_dask
from ._row_passes import (
    RowSample,
    as_blocks,
    hash_rows,
    is_chunked,
    map_rows,
    reduce_rows,
    sample_rows,
    select_rows,
    with_targets,
)

__all__ = [
    "ArrayBlocks",
    "BlockRows",
    "Blocks",
    "DaskBlocks",
    "LocalBlocks",
    "RowSample",
    "as_blocks",
    "concatenate_blocks",
    "hash_rows",
    "is_chunked",
    "is_dask",
    "map_rows",
    "reduce_rows",
    "rows_per_block",
    "sample_rows",
    "select_rows",
    "tree_reduce",
    "validate_block",
    "with_targets",
]
