"""Kernel CCA and PLS: functions of two views of the same points that vary together."""

from ._cca_pls import CanonicalCorrelations, PartialLeastSquares
from ._views import TwoViewResult, View
from ._views import columnwise_correlations as columnwise_correlations
from ._views import two_view_coordinates as two_view_coordinates
from ._views import two_view_memory as two_view_memory

__all__ = ["CanonicalCorrelations", "PartialLeastSquares", "TwoViewResult", "View"]
__all__ += []
