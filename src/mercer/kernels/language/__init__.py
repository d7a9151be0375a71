"""Kernels as text: parse an expression, and show a kernel as a LaTeX formula or an HTML tree."""

from ._display import formula, tree
from ._parser import parse_kernel

__all__ = ["formula", "parse_kernel", "tree"]
