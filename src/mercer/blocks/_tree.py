"""Reduction over a fixed binary tree, with at most about log2(n) partial results in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["tree"]


def tree(values: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Reduce values pairwise: merge(merge(v0, v1), merge(v2, v3)), and so on.

    The merge order depends only on the number of values.  Values may also be lazy, such as Dask
    tasks; then the result is the graph of the reduction.

    Examples
    --------
    >>> from mercer.blocks import tree
    >>> tree("abcdefg", lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    """
    pending: list[tuple[int, Any]] = []  # height of each pending subtree, and its value
    for value in values:
        height = 0
        while pending and pending[-1][0] == height:
            value, height = merge(pending.pop()[1], value), height + 1
        pending.append((height, value))
    if not pending:
        raise ValueError("there is nothing to merge: no blocks")
    result = pending.pop()[1]
    while pending:
        result = merge(pending.pop()[1], result)
    return result
