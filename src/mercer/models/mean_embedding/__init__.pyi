from ._density_estimation import DensityKernel, choose_bandwidth
from ._density_estimation import log_kernel_sums as log_kernel_sums
from ._independence_test import IndependenceResult, independence_test
from ._mean_discrepancies import hsic, mmd
from ._summary import Summary, herd, thin
from ._two_sample_test import TwoSampleResult, two_sample_test

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
