"""Numerical solvers: linear systems, eigenproblems, regularised risks and quadratic programs.

A solver is an immutable object that holds only its options.  Its method, such as `factorize`,
`eigenpairs` or `minimize`, takes the problem and returns the solution with a `Report`.
"""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
