"""Kernel methods built on one sentence, the representer theorem: f = sum_i a_i k(x_i, .).

points -> Kernel -> Gram operator -> solver -> Expansion -> predict, transform, ...
"""

from ._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
