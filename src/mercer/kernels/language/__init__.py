"""The language of kernels: read from text, shown as formulas and as trees."""

from ._formula import formula
from ._parse import parse_kernel
from ._tree import tree

__all__ = ["formula", "parse_kernel", "tree"]
