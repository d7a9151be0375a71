"""Solvers for (K + diag(shift)) a = y: direct, iterative, and with an intercept."""

from ._cholesky import (
    Cholesky,
    Factor,
    LeastSquares,
    max_relative_residual,
    normalise_columns,
    warn_inaccurate,
)
from ._conjugate_gradient import ConjugateGradient
from ._fallback import FallbackSolver
from ._in_place_matrix import InPlaceSymmetric, gram_to_array, mirror_lower_triangle
from ._intercept import BorderedSystem, inverse_diagonal_with_intercept, solve_with_intercept
from ._minimum_norm import minimum_norm_solution
from ._mixed_cholesky import MixedCholesky
from ._pcg import (
    CGRecurrence,
    check_stopping_criteria,
    columnwise_dot,
    conjugate_gradients,
    iteration_status,
)
from ._woodbury import ShiftedLowRank, row_gram

__all__ = [
    "BorderedSystem",
    "CGRecurrence",
    "Cholesky",
    "ConjugateGradient",
    "Factor",
    "FallbackSolver",
    "InPlaceSymmetric",
    "LeastSquares",
    "MixedCholesky",
    "ShiftedLowRank",
    "check_stopping_criteria",
    "columnwise_dot",
    "conjugate_gradients",
    "gram_to_array",
    "inverse_diagonal_with_intercept",
    "iteration_status",
    "max_relative_residual",
    "minimum_norm_solution",
    "mirror_lower_triangle",
    "normalise_columns",
    "row_gram",
    "solve_with_intercept",
    "warn_inaccurate",
]
