"""Frozen values that solve: `factorize` systems, `eigenpairs` of K, `minimize` risks, ..."""

from . import _choose, _cost, _report, clusters, dual, eigen, linear, online, ridge, risk, views
from ._choose import *
from ._cost import *
from ._report import *
from .clusters import *
from .dual import *
from .eigen import *
from .linear import *
from .online import *
from .ridge import *
from .risk import *
from .views import *

__all__ = _choose.__all__ + _cost.__all__ + _report.__all__ + linear.__all__ + eigen.__all__
__all__ += ridge.__all__ + risk.__all__ + dual.__all__
__all__ += clusters.__all__ + online.__all__ + views.__all__
