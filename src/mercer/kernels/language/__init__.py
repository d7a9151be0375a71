"""Kernels as text: parse an expression, and show a kernel as a LaTeX formula or an HTML tree."""

from ._formula import formula
from ._parse import parse_kernel
from ._tree import tree

__all__ = ["formula", "parse_kernel", "tree"]
