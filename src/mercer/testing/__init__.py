"""The laws of the library, to be run on your own kernels, Grams, solvers and expansions.

    check_kernel(kernel, X)            symmetry, tiles, derivatives, parameters, definiteness
    check_pullback(kernel, X, Z)       d/d theta against differences, alone
    check_input_gradient(kernel, X, Z) d/dx against differences, alone
    check_gram(gram)                   every view of K against the matrix itself
    check_solver(solver, gram, y)      residuals, determinants, eigenpairs
    check_status(solver, gram, y)      what it claims of itself, on matrices as hard as you like
    check_expansion(expansion, X)      the reproducing property and what follows from it
    check_primal(expansion, X)         the same functions as weights of features, and back

Each returns None, or raises an AssertionError that names the law and says by how much it fails.
Nothing here needs a test framework.
"""

from ._differences import check_input_gradient, check_pullback
from ._expansion import check_expansion
from ._gram import check_gram
from ._kernel import check_kernel
from ._primal import check_primal
from ._solver import check_solver
from ._status import check_status

__all__ = [
    "check_expansion",
    "check_gram",
    "check_input_gradient",
    "check_kernel",
    "check_primal",
    "check_pullback",
    "check_solver",
    "check_status",
]
