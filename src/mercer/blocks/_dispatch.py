"""Detect data in blocks, and combine points with targets and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import Points, length
from ._blocks import Blocks
from ._dask_blocks import DaskBlocks, is_dask


def is_chunked(X: Points) -> bool:
    """Return True if X consists of blocks: an instance of `Blocks`, or a Dask collection.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Blocks
    >>> from mercer.blocks import is_chunked
    >>> is_chunked(np.zeros((3, 2))), is_chunked(Blocks.of(np.zeros((3, 2))))
    (False, True)
    """
    return isinstance(X, Blocks) or is_dask(X)


def as_blocks(X: Points, what: str = "X") -> Blocks:
    """Return X as Blocks; a Dask collection is wrapped.

    `what` is the name of the argument for error messages.
    """
    return X if isinstance(X, Blocks) else DaskBlocks.from_dask(X, what)


def with_targets(X: Points, y: Any = None, weights: Any = None) -> Blocks:
    """Return the blocks of X together with targets y and sample weights.

    y and `weights` may be blocks of the same sizes as those of X, or arrays in memory.
    """
    blocks = as_blocks(X)
    parts = [
        _validated(blocks, part, what) for part, what in ((y, "y"), (weights, "sample_weight"))
    ]
    return blocks._with(*parts)


def _validated(blocks: Blocks, part: Any, what: str) -> Any:
    """Validate targets or weights: one value per row, and the same block sizes as the points."""
    if part is None:
        return None
    if not is_chunked(part):
        part = np.asarray(part)
        if part.ndim == 0 or length(part) != len(blocks):
            raise ValueError(f"{what} has the shape {part.shape}, but X has {len(blocks)} rows")
        return part
    part = as_blocks(part, what)
    if part.sizes == blocks.sizes:
        return part
    if len(part) != len(blocks):
        raise ValueError(f"{what} has {len(part)} rows, but X has {len(blocks)}")
    i = next(i for i, (a, b) in enumerate(zip(part.sizes, blocks.sizes, strict=False)) if a != b)
    raise ValueError(
        f"{what} is split into {len(part.sizes)} blocks, and X into {len(blocks.sizes)}; block {i} "
        f"has {part.sizes[i]} rows in {what} and {blocks.sizes[i]} in X: split both in the same way"
    )
