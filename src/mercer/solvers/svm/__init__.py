"""Dual problems of support vector machines, and solvers that use rows of K or explicit features."""

from ._block_smo import BlockSMO
from ._box_interior_point import BoxInterior
from ._core_set import CoreProblem, CoreSet
from ._core_set import CoreSolution as CoreSolution
from ._dual_problem import Dual
from ._dual_problem import Duals as Duals
from ._dual_solutions import DualProgress as DualProgress
from ._dual_solutions import DualSolution
from ._dual_solutions import DualSolutions as DualSolutions
from ._dual_solutions import FollowCallback as FollowCallback
from ._dual_solutions import ReadableRows as ReadableRows
from ._dual_solutions import Reports as Reports
from ._dual_solutions import StopReason as StopReason

__all__ = ["BlockSMO", "BoxInterior", "CoreProblem", "CoreSet", "Dual", "DualSolution"]
