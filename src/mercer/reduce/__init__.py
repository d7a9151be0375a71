"""Reduced sets: sum_i A_ic k(x_i, .) ~ sum_j B_jc k(z_j, .) with fewer points, arrays in and out.

All functions share the points Z.  Given them, the best coefficients are B = K_zz^-1 K_zx A, and
what remains is the choice of Z: some of the x_i, centres of clusters, or points moved freely.
"""

from ._reduce import reduce
from ._reduction import Reduction
from ._validation import Request

__all__ = ["Reduction", "Request", "reduce"]
