"""Learning the kernel: how kernels agree with each other and with targets, and sums of them."""

from ._alignment import alignment

__all__ = ["alignment"]
