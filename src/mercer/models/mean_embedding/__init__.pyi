from ._herding import herd
from ._hsic import hsic
from ._kde_kernel import DensityKernel
from ._kernel_thinning import thin
from ._mmd import mmd
from ._parzen_sums import choose_bandwidth
from ._parzen_sums import log_kernel_sums as log_kernel_sums
from ._weighted_coreset import Summary
from .hypothesis_tests._independence_test import IndependenceResult, independence_test
from .hypothesis_tests._two_sample_test import TwoSampleResult, two_sample_test

__all__ = [
    "DensityKernel",
    "IndependenceResult",
    "Summary",
    "TwoSampleResult",
    "choose_bandwidth",
    "herd",
    "hsic",
    "independence_test",
    "mmd",
    "thin",
    "two_sample_test",
]
