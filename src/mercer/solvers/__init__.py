"""Numerical solvers: linear systems, eigenproblems, regularised risks and quadratic programs.

A solver is an immutable object that stores only its options.  Its main method, such as
`factorize`, `eigenpairs` or `minimize`, takes the problem as an argument.  A `Report` describes how
the solver ended.
"""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
