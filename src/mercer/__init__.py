"""Kernel methods built on the representer theorem, f = sum_i a_i k(x_i, .).

The layers: points -> kernel -> Gram operator -> solver -> expansion -> predict, transform, ...
"""

from ._core import attach, install_former_modules

__getattr__, __dir__, __all__ = attach(__name__, __file__)

install_former_modules()
