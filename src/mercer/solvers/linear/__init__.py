"""Solvers for (K + diag(shift)) a = y: direct, iterative, and with an intercept."""

from ._bordered import Bordered, with_constant, with_constant_diagonal
from ._cascade import Cascade
from ._cholesky import Cholesky, Factor, LeastSquares, relative, unit_columns, warn_inaccurate
from ._conjugate import ConjugateGradient
from ._in_place import Triangle, matrix_of, mirror
from ._minimum_norm import minimum_norm
from ._mixed import MixedCholesky
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
