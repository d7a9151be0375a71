"""What Gaussian processes share: a kernel in the user's spelling, and the search for its theta."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

from sklearn.utils._param_validation import Interval, StrOptions

from ..kernels import Kernel, reads_all
from ._base import KernelEstimator, SklearnGPKernel
from ._gaussian_process_theta import default_kernel
from ._parameters import estimator, parameter

__all__ = ["GaussianProcess"]


@estimator(kw_only=True)
class GaussianProcess(KernelEstimator):
    """An estimator that searches for the theta of its kernel.

    Parameters
    ----------
    optimizer : "fmin_l_bfgs_b", callable or None
        How theta is found; None leaves it as it is.  A function is called as
        ``optimizer(obj_func, initial_theta, bounds=bounds)`` and returns theta and the value;
        ``obj_func(theta, eval_gradient=True)`` is minus the log marginal likelihood.
    n_restarts_optimizer : int
        How often the search starts again, from a theta drawn within the bounds.
    copy_X_train : bool
    """

    kernel: Any = parameter(None, Kernel, SklearnGPKernel, str, default=None)
    optimizer: Any = parameter(
        StrOptions({"fmin_l_bfgs_b"}), callable, None, default="fmin_l_bfgs_b"
    )
    n_restarts_optimizer: int = parameter(Interval(Integral, 0, None, closed="left"), default=0)
    copy_X_train: bool = parameter("boolean", default=True)

    def _reads_values(self, kernel: Any) -> bool:
        if isinstance(kernel, Kernel):
            return reads_all(kernel)
        return super()._reads_values(kernel)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the kernel included: `kernel__length_scale=2.0`."""
        inside = sorted(name for name in params if name.startswith("kernel__"))
        if inside and params.get("kernel", self.kernel) is None:
            raise ValueError(
                f"kernel=None stands for {default_kernel()!r} and has no parameters of its own to "
                f"set; give a kernel, such as 1.0 * RBF(), to set {inside}"
            )
        return super().set_params(**params)

    def _takes(self, X: Any) -> bool:
        if self.kernel is None:
            return True
        if isinstance(self.kernel, SklearnGPKernel):
            return bool(self.kernel.requires_vector_input)
        return super()._takes(X)
