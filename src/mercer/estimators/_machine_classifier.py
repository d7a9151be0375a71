"""Classification with any convex loss and any increasing penalty of the norm."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils._param_validation import StrOptions

from ..solvers import Softmax
from ._decisions import LOSSES, Decisions, coded
from ._fitting import fitting
from ._machine import OWN_LOSS, KernelMachine
from ._parameters import estimator, parameter

__all__ = ["KernelMachineClassifier"]


@estimator()
class KernelMachineClassifier(Decisions, KernelMachine):
    """Minimise  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over the RKHS of the kernel.

    By the representer theorem f = sum_i a_i k(x_i, .), whatever the convex loss and the increasing
    g; -a_i is proportional to the slope of the loss at point i.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more: one f_c for each class
    ================= ======================================== ===================================
    "log_loss"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum of that over one vs. rest
    an object         value(y, f), gradient(y, f),             the sum of that over one vs. rest
                      curvature(y, f), y = +1 or -1
    ================= ======================================== ===================================

    "log_loss" is KernelLogisticRegression with C = 1 / (2 alpha).

    Parameters
    ----------
    loss : {"log_loss", "logistic", "squared_hinge"} or object
        See the table; "logistic" is another name of "log_loss".  The methods of an object are
        called with arrays y and f of shape (n,), for the points of positive weight, and return
        arrays: a smooth convex loss, its first and its second derivative in f.

    Attributes
    ----------
    classes_ : ndarray
        The classes that have a positive weight.
    dual_coef_ : ndarray of shape (n, n_functions)
        n_functions is 1 for two classes, else the number of classes.
    X_fit_ : points
        Those of the expansion: the training points of positive weight (for a precomputed kernel
        their indices), or if rounding makes that unsafe some that span the rest; or the landmarks.
    intercept_ : ndarray of shape (n_functions,)
    expansion_ : Expansion
        The fitted functions without intercepts, as a value.
    kernel_ : Kernel
    loss_ : Loss
        The loss that was minimised.
    n_iter_ : int
    report_ : Report
        With `certificate`, as in KernelMachineRegressor.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMachineClassifier("squared_hinge", alpha=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: Any = parameter(StrOptions(LOSSES), OWN_LOSS, default="log_loss")
    alpha: float = 1.0

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        sample = self._sample(X, y, sample_weight, labels=True)
        Y, loss = coded(sample.labels, len(sample.classes), self.loss)
        self._learn(sample, Y, loss)
        self.classes_ = sample.classes
        if isinstance(loss, Softmax):
            self.intercept_ -= self.intercept_.mean()  # the loss does not see a common constant
        return self
