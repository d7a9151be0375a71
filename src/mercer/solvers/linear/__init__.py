"""Solvers for (K + diag(shift)) a = y: direct, iterative, and with an intercept."""

from ._cholesky import Cholesky, Factor, LeastSquares, relative, unit_columns, warn_inaccurate
from ._conjugate_gradient import ConjugateGradient
from ._fallback import Cascade
from ._in_place_matrix import Triangle, matrix_of, mirror
from ._intercept import Bordered, with_constant, with_constant_diagonal
from ._minimum_norm import minimum_norm
from ._mixed_cholesky import MixedCholesky
from ._pcg import Recurrence, check_stopping, columnwise, conjugate_gradients, ended
from ._woodbury import ShiftedLowRank, outer

__all__ = [
    "Bordered",
    "Cascade",
    "Cholesky",
    "ConjugateGradient",
    "Factor",
    "LeastSquares",
    "MixedCholesky",
    "Recurrence",
    "ShiftedLowRank",
    "Triangle",
    "check_stopping",
    "columnwise",
    "conjugate_gradients",
    "ended",
    "matrix_of",
    "minimum_norm",
    "mirror",
    "outer",
    "relative",
    "unit_columns",
    "warn_inaccurate",
    "with_constant",
    "with_constant_diagonal",
]
