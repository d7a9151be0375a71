"""Learning the kernel: how kernels agree with each other and with targets, and sums of them."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
