"""Kernel learning: alignment of kernels, weights of several kernels, search for a structure."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
