"""Functions in an RKHS, in dual form sum_i a_i k(x_i, .) or primal form <w, phi(.)>."""

from ._expansion import Expansion, cross_kernel_cached
from ._primal_form import Primal, PrimalDualSizes, primal_or_dual

__all__ = ["Expansion", "Primal", "PrimalDualSizes", "cross_kernel_cached", "primal_or_dual"]
