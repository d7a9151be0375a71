"""Kernels as text: parse an expression, and show a kernel as a LaTeX formula or an HTML tree."""

from ._display import formula, html_tree
from ._parser import parse_kernel

__all__ = ["formula", "html_tree", "parse_kernel"]
