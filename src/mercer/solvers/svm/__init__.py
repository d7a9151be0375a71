"""Dual problems of support vector machines, and solvers that use rows of K or explicit features."""

from ._dual_problem import Dual, DualSolution

from ._dual_problem import Duals as Duals  # isort: skip
from ._block_smo import BlockSMO
from ._block_smo import DualProgress as DualProgress
from ._box_interior_point import BoxInterior
from ._smo_then_interior_point import SMOThenInteriorPoint

from ._dual_solutions import DualSolutions as DualSolutions  # isort: skip
from ._dual_solutions import Reports as Reports  # isort: skip

__all__ = [
    "BlockSMO",
    "BoxInterior",
    "Dual",
    "DualSolution",
    "SMOThenInteriorPoint",
]
