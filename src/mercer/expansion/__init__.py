"""Functions of an RKHS: dual form sum_i a_i k(x_i, .) and primal form <w, phi(.)>."""

from ._expansion import Expansion
from ._near import near
from ._primal import Primal
from ._sizes import Sizes, primal_or_dual

__all__ = ["Expansion", "Primal", "Sizes", "near", "primal_or_dual"]
