"""Utilities for all packages: errors, points, memory budget, threads, compilation, progress."""

from ._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
