"""Reduced sets: approximations sum_i A_ic k(x_i, .) ~ sum_j B_jc k(z_j, .) with fewer points.

All functions share the new points Z.  For given Z, the best coefficients are
B = k(Z, Z)^-1 k(Z, X) A.  The methods differ in the choice of Z: some of the x_i, cluster centres,
or optimised points.
"""

from ._reduce import CompressionRequest, Reduction, reduce

__all__ = ["CompressionRequest", "Reduction", "reduce"]
