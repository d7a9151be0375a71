"""What all layers use: errors, points, memory budget, threads, compiled loops, progress."""

from ._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
