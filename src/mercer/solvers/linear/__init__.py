"""Direct and iterative solvers for the linear system (K + diag(shift)) a = y."""

from ._cholesky import Cholesky, Factor, LeastSquares
from ._cholesky import InPlaceSymmetric as InPlaceSymmetric
from ._cholesky import check_shift as check_shift
from ._cholesky import gram_to_array as gram_to_array
from ._cholesky import max_relative_residual as max_relative_residual
from ._cholesky import mirror_lower_triangle as mirror_lower_triangle
from ._cholesky import normalise_columns as normalise_columns
from ._cholesky import warn_inaccurate as warn_inaccurate
from ._conjugate_gradient import ConjugateGradient
from ._intercept import BorderedSystem as BorderedSystem
from ._intercept import inverse_diagonal_with_intercept as inverse_diagonal_with_intercept
from ._intercept import solve_with_intercept as solve_with_intercept
from ._low_rank_systems import ShiftedLowRank
from ._low_rank_systems import minimum_norm_solution as minimum_norm_solution
from ._low_rank_systems import row_gram as row_gram
from ._mixed_cholesky import MixedCholesky
from ._pcg import CGRecurrence as CGRecurrence
from ._pcg import PreconditionedFactor as PreconditionedFactor
from ._pcg import check_stopping_criteria as check_stopping_criteria
from ._pcg import columnwise_dot as columnwise_dot
from ._pcg import conjugate_gradients
from ._pcg import iteration_status as iteration_status

__all__ = [
    "Cholesky",
    "ConjugateGradient",
    "Factor",
    "LeastSquares",
    "MixedCholesky",
    "ShiftedLowRank",
    "conjugate_gradients",
]
