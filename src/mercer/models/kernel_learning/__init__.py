"""Kernel learning: kernel alignment, multiple kernel learning, and kernel structure search."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
