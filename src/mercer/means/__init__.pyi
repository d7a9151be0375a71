from ._herding import herd
from ._hsic import hsic
from ._independence import IndependenceResult, independence_test
from ._mmd import mmd
from ._parzen import choose_bandwidth, log_sums
from ._summary import Summary
from ._thinning import thin
from ._two_sample import TwoSampleResult, two_sample_test
from ._window import Window

__all__ = [
    "IndependenceResult",
    "Summary",
    "TwoSampleResult",
    "Window",
    "choose_bandwidth",
    "herd",
    "hsic",
    "independence_test",
    "log_sums",
    "mmd",
    "thin",
    "two_sample_test",
]
