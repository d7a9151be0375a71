"""tree(): a kernel as nested lists in HTML."""

from __future__ import annotations

from html import escape

from .._base import Kernel
from .._fields import brief

__all__ = ["tree"]


def tree(*kernels: Kernel) -> str:
    """Return kernels and the kernels inside them as a list in HTML, of nothing but text."""
    return f'<ul style="margin: 0">{"".join(map(_item, kernels))}</ul>' if kernels else ""


def _item(kernel: Kernel) -> str:
    children = dict(kernel._children())
    families = {path.partition("__")[0] for path in children}
    options = [f"{n}={brief(v)}" for n, v in kernel._items() if n not in families]
    line = f"<b>{escape(type(kernel).__name__)}</b> {escape(', '.join(options))}".strip()
    return f"<li>{line}{tree(*children.values())}</li>"
