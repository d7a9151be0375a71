"""Checks for user-defined kernels, Gram operators, solvers and expansions.

    check_kernel(kernel, X)            symmetry, tiles, derivatives, parameters, definiteness
    check_pullback(kernel, X, Z)       only the derivative in theta, against finite differences
    check_input_gradient(kernel, X, Z) only the derivative in x, against finite differences
    check_gram(gram)                   products, rows, blocks and diagonal against the full matrix
    check_solver(solver, gram, y)      residuals, determinants, eigenpairs
    check_status(solver, gram, y)      the reported status and residual, also for hard matrices
    check_expansion(expansion, X)      the reproducing property and its consequences
    check_primal(expansion, X)         conversion to weights of explicit features, and back

Each function raises an AssertionError with the name of the violated law and the size of the error,
or returns None if all laws hold.  No test framework is needed.
"""

from ._finite_differences import check_input_gradient, check_pullback
from ._kernel_laws import check_expansion, check_kernel, check_primal
from ._solver_laws import check_gram, check_solver, check_status

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
