"""The duals of support vector machines, and what minimises them: rows of K, or features."""

from ._dual import Dual, Duals, DualSolution
from ._interior import BoxInterior
from ._relay import Relay
from ._smo import BlockSMO, Progress
from ._solutions import DualSolutions, Reports

__all__ = ["BlockSMO", "BoxInterior", "Dual", "DualSolution", "DualSolutions"]
__all__ += ["Duals", "Progress", "Relay", "Reports"]
