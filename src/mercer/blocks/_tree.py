"""A sum over a fixed binary tree, in which no more than log2(n) partial sums wait at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["tree"]


def tree(values: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Return merge(merge(v0, v1), merge(v2, v3)) ...: neighbours in pairs, pairs in pairs, and on.

    It depends on the number of values alone who is merged with whom.  Values may also stand for
    such that are computed elsewhere, and later: then the tree is the plan of that.

    Examples
    --------
    >>> from mercer.blocks import tree
    >>> tree("abcdefg", lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, Any]] = []  # height of a subtree, and its value
    for value in values:
        height = 0
        while waiting and waiting[-1][0] == height:
            value, height = merge(waiting.pop()[1], value), height + 1
        waiting.append((height, value))
    if not waiting:
        raise ValueError("there is nothing to merge: no blocks")
    result = waiting.pop()[1]
    while waiting:
        result = merge(waiting.pop()[1], result)
    return result
