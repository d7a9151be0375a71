"""Regression with m learned support vectors."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context

from .._points import take
from ..solvers._losses import Squared
from ._sparse import SparseKernelEstimator
from ._weights import check_weights

__all__ = ["SparseKernelRegressor"]


class SparseKernelRegressor(MultiOutputMixin, RegressorMixin, SparseKernelEstimator):
    """Minimise  mean_i |y_i - f(x_i)|^2 + alpha |f|^2  over f = sum_j b_j k(z_j, .) + c.

    Not only the weights b_j are learned but also the m vectors z_j, which may lie anywhere: the
    model takes m (d + n_targets) numbers, and a prediction m evaluations of k, however many
    training points there are.  At the same m it is at least as close to the training data as a
    Nyström approximation on the vectors it starts from, and usually far closer.

    The vectors are moved by L-BFGS, with the best weights for each position (`LearnedVectors`);
    J is not convex in them, and what is found is a local minimum that depends on the start.

    Parameters
    ----------
    n_vectors : int or str, default=100
        m, or what the model may take: "100 kB" stands for as many vectors and weights, in float64,
        as fit.  With m at least the number of points, the vectors are the distinct points: no
        others could do better, and f is that of kernel ridge regression.
    kernel : str, Kernel, callable or scikit-learn GP kernel, default="rbf"
        With derivatives in its points; not "precomputed".
    gamma : float, "scale", "auto", "median" or None, default="scale"
        For kernels given by name; None for 1 / n_features.
    degree, coef0 : float, default=3, 1
        For "poly" and "sigmoid".
    kernel_params : dict, default=None
        Further arguments of a callable.
    alpha : float, default=1e-4
        The weight of |f|^2 against the *mean* loss: `KernelRidge`'s alpha, divided by n.
    fit_intercept : bool, default=True
        Add a constant c, which is not penalised.
    init : {"auto", "kmeans", "rpcholesky", "uniform"} or array of shape (m, d), default="auto"
        Where the vectors start: "auto" is at centroids of k-means, for kernels that are no
        function of distances at points chosen by RPCholesky.  An array may be the `vectors_` of
        an earlier fit; its length is then m.
    learn_kernel : bool, default=False
        Also learn the free parameters of the kernel, such as its length scales, from the same
        objective.  Best for kernels without a factor of their own: that would only outgrow alpha.
    max_iter : int, default=1000
        Iterations of L-BFGS; 0 leaves the vectors where they start.
    tol : float, default=1e-3
        Stop when ten iterations lowered the objective by less than this part of it.
    max_memory : int, str or None, default=None
        Bytes, or "2 GiB", for the work; None for half of the machine's memory.
    random_state : int, RandomState or None, default=None
        For the start; None stands for 0.
    verbose : int, default=0
        1 to write the objective every ten iterations.

    Attributes
    ----------
    vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    intercept_ : float or ndarray of shape (n_targets,)
    expansion_ : Expansion
        The fitted f without the intercept, as a value.
    kernel_ : Kernel
        The kernel with all its values, learned or not.
    objective_curve_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never rises.
    n_iter_ : int
    solver_, report_
        The solver, and what it did.

    See Also
    --------
    KernelRidge : f with all training points in it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SparseKernelRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(12 * X[:, 0] ** 2)
    >>> model = SparseKernelRegressor(n_vectors=8, gamma=40, alpha=1e-7).fit(X, y)
    >>> model.vectors_.shape
    (8, 1)
    >>> bool(model.score(X, y) > 0.999)
    True
    """

    _parameter_constraints: ClassVar[dict] = SparseKernelEstimator._parameter_constraints

    def __init__(
        self,
        n_vectors: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: Any = None,
        alpha: Any = 1e-4,
        fit_intercept: Any = True,
        init: Any = "auto",
        learn_kernel: Any = False,
        max_iter: Any = 1000,
        tol: Any = 1e-3,
        max_memory: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.n_vectors = n_vectors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.init = init
        self.learn_kernel = learn_kernel
        self.max_iter = max_iter
        self.tol = tol
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the squared errors."""
        X, y = self._check_vectors(X, y, reset=True, multi_output=True, y_numeric=True)
        w = check_weights(sample_weight, X)
        some = np.flatnonzero(w)
        Y = y.reshape(len(y), -1).astype(float)
        self._learn(take(X, some), Y[some], w[some], Squared())
        if y.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], float(self.intercept_[0])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for each point."""
        values = self._values(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values
