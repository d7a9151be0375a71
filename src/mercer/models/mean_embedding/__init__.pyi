from ._herding import herd
from ._hsic import hsic
from ._kde_kernel import Window
from ._kernel_thinning import thin
from ._mmd import mmd
from ._parzen_sums import choose_bandwidth, log_sums
from ._sample_summary import Summary
from .hypothesis_tests._independence_test import IndependenceResult, independence_test
from .hypothesis_tests._two_sample_test import TwoSampleResult, two_sample_test

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
