"""Dual problems of support vector machines, and solvers on rows of K or on features."""

from ._dual import Dual, DualSolution

from ._dual import Duals as Duals  # isort: skip
from ._interior import BoxInterior
from ._relay import Relay
from ._smo import BlockSMO, Progress

from ._solutions import DualSolutions as DualSolutions  # isort: skip
from ._solutions import Reports as Reports  # isort: skip

__all__ = ["BlockSMO", "BoxInterior", "Dual", "DualSolution", "Progress", "Relay"]
