"""Functions in an RKHS, in dual form sum_i a_i k(x_i, .) or primal form <w, phi(.)>."""

from ._expansion import Expansion
from ._prepared_cache import cross_kernel_cached
from ._primal_dual_cost import PrimalDualSizes, primal_or_dual
from ._primal_form import Primal

__all__ = ["Expansion", "Primal", "PrimalDualSizes", "cross_kernel_cached", "primal_or_dual"]
