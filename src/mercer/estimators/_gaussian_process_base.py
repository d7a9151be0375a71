"""Base class of Gaussian process estimators: the kernel parameter and the optimisation of theta."""

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
    """Base class of estimators that optimise the hyper-parameters theta of their kernel.

    Parameters
    ----------
    optimizer : "fmin_l_bfgs_b", callable or None
        The optimiser of theta; None keeps the theta of `kernel`. A callable is called as
        ``optimizer(obj_func, initial_theta, bounds=bounds)`` and returns the best theta and the
        value of ``obj_func`` there; ``obj_func(theta, eval_gradient=True)`` is minus the log
        marginal likelihood.
    n_restarts_optimizer : int
        The number of additional starts of the optimiser, from random values of theta within the
        bounds.
    copy_X_train : bool
        Whether to store a copy of the training points. Without a copy, changes of X change the
        model.
    """

    kernel: Any = parameter(None, Kernel, SklearnGPKernel, str, default=None)
    optimizer: Any = parameter(
        StrOptions({"fmin_l_bfgs_b"}), callable, None, default="fmin_l_bfgs_b"
    )
    n_restarts_optimizer: int = parameter(Interval(Integral, 0, None, closed="left"), default=0)
    copy_X_train: bool = parameter("boolean", default=True)

    def _reads_values(self, kernel: Any) -> bool:
        """Return True if X is a matrix of kernel values for this kernel specification."""
        if isinstance(kernel, Kernel):
            return reads_all(kernel)
        return super()._reads_values(kernel)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator and of its kernel, such as `kernel__length_scale=2.0`."""
        kernel_params = sorted(name for name in params if name.startswith("kernel__"))
        if kernel_params and params.get("kernel", self.kernel) is None:
            raise ValueError(
                f"kernel=None stands for {default_kernel()!r}, whose parameters cannot be set; "
                f"pass a kernel, such as 1.0 * RBF(), to set {kernel_params}"
            )
        return super().set_params(**params)

    def _takes(self, X: Any) -> bool:
        """Return True if X must be a numeric matrix."""
        if self.kernel is None:
            return True
        if isinstance(self.kernel, SklearnGPKernel):
            return bool(self.kernel.requires_vector_input)
        return super()._takes(X)
