"""Reduced sets: approximations sum_i A_ic k(x_i, .) ~ sum_j B_jc k(z_j, .) with fewer points.

All functions share the points Z, for which the best coefficients are B = K_zz^-1 K_zx A.  The
methods differ in Z: some of the x_i, cluster centres, or freely optimised points.
"""

from ._reduce import reduce
from ._reduction import Reduction
from ._reduction_request import CompressionRequest

__all__ = ["CompressionRequest", "Reduction", "reduce"]
