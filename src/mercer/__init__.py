"""Kernel methods built on the representer theorem, f = sum_i a_i k(x_i, .).

The layers: points -> kernel -> Gram operator -> solver -> expansion -> predict, transform, ...
"""

from ._core import attach, check_platform, install_former_modules

check_platform()
__getattr__, __dir__, __all__ = attach(__name__, __file__)

install_former_modules()
