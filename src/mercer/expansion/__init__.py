"""Functions in an RKHS, in dual form sum_i a_i k(x_i, .) or primal form <w, phi(.)>."""

from ._bounded_values import Evaluator as Evaluator
from ._bounded_values import QueryRows as QueryRows
from ._bounded_values import add_products as add_products
from ._bounded_values import is_binary as is_binary
from ._bounded_values import make_evaluators as make_evaluators
from ._bounded_values import value_errors as value_errors
from ._expansion import Expansion, cross_kernel_cached
from ._greedy_projection import GreedyProjection as GreedyProjection
from ._greedy_projection import regress_on_columns as regress_on_columns
from ._primal_form import Primal, PrimalDualSizes, primal_or_dual

__all__ = ["Expansion", "Primal", "PrimalDualSizes", "cross_kernel_cached", "primal_or_dual"]
