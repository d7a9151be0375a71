"""Kernels as nested HTML lists, for notebooks."""

from __future__ import annotations

from html import escape

from .._base import Kernel
from .._fields import brief

__all__ = ["tree"]


def tree(*kernels: Kernel) -> str:
    """Return an HTML list of kernels, with nested lists of the kernels inside them.

    All names and values are escaped, so that they cannot contain HTML.
    """
    return f'<ul style="margin: 0">{"".join(map(_item, kernels))}</ul>' if kernels else ""


def _item(kernel: Kernel) -> str:
    """Return the list item of a kernel: its name, its parameters, and its children."""
    children = dict(kernel._children())
    child_fields = {path.partition("__")[0] for path in children}
    options = [f"{n}={brief(v)}" for n, v in kernel._items() if n not in child_fields]
    line = f"<b>{escape(type(kernel).__name__)}</b> {escape(', '.join(options))}".strip()
    return f"<li>{line}{tree(*children.values())}</li>"
