"""Regression and classification with m learned support vectors.

f(.) = sum_j b_j k(z_j, .) + c,      j = 1 .. m,      z_j anywhere in R^d
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from .._errors import NotDifferentiableError
from .._runtime import budget_in_bytes, check_budget, in_words
from ..expansion import Expansion
from ..gram import Landmarks
from ..kernels import Kernel
from ..solvers import LearnedVectors, Loss, ShortExpansionRisk, Squared
from ._base import KernelLike, NamedKernel, Seed
from ._decisions import LOSSES, Decisions
from ._parameters import COUNT, POSITIVE, estimator, fitting, parameter
from ._sample import Sample

__all__ = ["SparseKernelClassifier", "SparseKernelRegressor"]


@estimator()
class SparseKernelEstimator(NamedKernel):
    """An estimator whose f has m learned vectors; see SparseKernelRegressor.

    Parameters
    ----------
    n_vectors : int or str
        m, or what the model may take: "100 kB" stands for as many vectors and weights, in float64,
        as fit.  With m at least the number of points, the vectors are the distinct points: no
        others could do better.
    kernel : str, Kernel, callable or scikit-learn GP kernel
        With derivatives in its points; not "precomputed".
    fit_intercept : bool
        Add a constant c to each f, which is not penalised.
    init : {"auto", "kmeans", "rpcholesky", "uniform"} or array of shape (m, d)
        Where the vectors start: "auto" is at centroids of k-means, for kernels that are no
        function of distances at points chosen by RPCholesky.  An array may be the `vectors_` of
        an earlier fit; its length is then m.
    learn_kernel : bool
        Also learn the free parameters of the kernel, such as its length scales, from the same
        objective.  Best for kernels without a factor of their own: that would only outgrow alpha.
    max_iter : int
        Iterations of L-BFGS; 0 leaves the vectors where they start.
    tol : float
        Stop when ten iterations lowered the objective by less than this part of it.
    random_state : int, RandomState or None
        For the start; None stands for 0.
    """

    n_vectors: int | str = parameter(COUNT, str, default=100)
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    alpha: float = parameter(POSITIVE, default=1e-4)
    fit_intercept: bool = parameter("boolean", default=True)
    init: Any = parameter(
        StrOptions({"auto", "kmeans", "rpcholesky", "uniform"}), "array-like", default="auto"
    )
    learn_kernel: bool = parameter("boolean", default=False)
    max_iter: int = parameter(Interval(Integral, 0, None, closed="left"), default=1000)
    tol: float = parameter(POSITIVE, default=1e-3)
    random_state: Seed = parameter("random_state", default=None)

    @property
    def vectors_(self) -> np.ndarray:
        """The z_j, shape (m, d)."""
        return np.asarray(self.expansion_.points)

    def _require_vectors(self, X: Any) -> None:
        """Refuse points that are no vectors: only these can be moved anywhere."""
        name = type(self).__name__
        if self._precomputed:
            raise ValueError(
                f"{name} moves its vectors to where k was never evaluated, so a precomputed matrix "
                f"is not enough; give the points and the kernel, or use KernelRidge"
            )
        if not self._takes(X):
            raise TypeError(
                f"{name} learns vectors in R^d, but {self.kernel!r} compares points of another "
                f"kind; fit KernelRidge and compress its expansion_ instead"
            )

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss, *, flat: bool = False) -> None:
        """Find vectors, weights and intercept for the targets Y of the points that take part."""
        sample = sample.doubled()
        X, w = sample.points, sample.counts
        (n, d), q = X.shape, Y.shape[1]
        self.kernel_: Kernel = sample.resolve(self._make_kernel(self.gamma))
        _require_gradient(self.kernel_, type(self).__name__, d)
        chosen = isinstance(self.init, str)
        m = min(n, _how_many(self.n_vectors, d, q)) if chosen else np.shape(self.init)[0]
        systems = 1 if isinstance(loss, Squared) else q
        held = n * (2 * d + 2) + 6 * n * q + (12 * systems + 8) * (m + 1) ** 2
        check_budget(8 * held, self.max_memory, f"learning {m} vectors from {n} points")
        Z, exact = self._start(X, m)
        risk = ShortExpansionRisk(
            self.kernel_, X, Y, loss, w / w.sum(), self.alpha, self.fit_intercept, self.max_memory
        )
        steps = 0 if exact and not self.learn_kernel else self.max_iter
        self.solver_ = LearnedVectors(steps, self.tol, self.learn_kernel)
        found = self.solver_.minimize(risk, Z, self._say)
        self.report_ = found.report
        if not steps and exact:
            self.report_ = dataclasses.replace(self.report_, message=_EXACT)
        self._say(f"objective {found.fit.value:.6g}: {self.report_.status.value}")
        self.kernel_ = found.fit.kernel
        f = Expansion(self.kernel_, found.fit.vectors, found.fit.weights)
        self._set_expansion(f, found.fit.intercept, flat)
        self.objective_curve_, self.n_iter_ = found.curve, found.report.n_iter

    def _start(self, X: Any, m: int) -> tuple[np.ndarray, bool]:
        """Return m vectors to begin with, and whether there is nothing better than they are."""
        if not isinstance(self.init, str):
            Z = check_array(self.init, dtype=np.float64, copy=True, input_name="init")
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"init has {Z.shape[1]} columns, but X has {X.shape[1]}")
            return Z, False
        if m == X.shape[0]:
            return np.unique(_dense(X), axis=0), True
        return _dense(Landmarks(m, self.init, self.random_state).draw(self.kernel_, X)), False


_EXACT = (
    "as many vectors as points are allowed: they are the distinct points, and f is the best "
    "function of the whole RKHS"
)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.array(X)


def _how_many(n_vectors: Any, d: int, q: int) -> int:
    """Return m; a text such as "100 kB" is what m vectors and their weights may take."""
    if not isinstance(n_vectors, str):
        return int(n_vectors)
    try:
        size = budget_in_bytes(n_vectors)
    except ValueError:
        raise ValueError(
            f"n_vectors must be a positive integer, or the size of the model as a text like "
            f"'100 kB', got {n_vectors!r}"
        ) from None
    each = 8 * (d + q)
    if size < each:
        raise ValueError(
            f"n_vectors={n_vectors!r} is less than a single vector takes: {d} coordinates and {q} "
            f"weights are {in_words(each)}"
        )
    return size // each


def _require_gradient(kernel: Kernel, name: str, d: int) -> None:
    point = np.full((1, d), 0.5)
    try:
        kernel.input_gradient(point, point, np.ones((1, 1)))
    except NotDifferentiableError as why:
        raise NotDifferentiableError(
            f"{name} moves its vectors along dk(x, z)/dx, which {kernel} does not have ({why}); "
            f"use another kernel, or fit KernelRidge and compress its expansion_"
        ) from None


@estimator()
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
    alpha : float
        The weight of |f|^2 against the *mean* loss: `KernelRidge`'s alpha, divided by n.

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

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the squared errors."""
        self._require_vectors(X)
        sample = self._sample(X, y, sample_weight, copy=False)
        self._learn(sample, sample.targets, Squared(), flat=sample.flat)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for each point."""
        values = self._values(X)
        return values[:, 0] if self._one_target else values


@estimator()
class SparseKernelClassifier(Decisions, SparseKernelEstimator):
    """Minimise  mean_i loss(y_i, f(x_i)) + alpha |f|^2  over f = sum_j b_j k(z_j, .) + c.

    Not only the weights b_j are learned but also the m vectors z_j, which may lie anywhere: the
    model takes m (d + n_functions) numbers, and a prediction m evaluations of k, however many
    training points there are.  All classes share the vectors.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more: one f_c for each class
    ================= ======================================== ===================================
    "logistic"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum of that over one vs. rest
    ================= ======================================== ===================================

    The vectors are moved by L-BFGS, with the best weights for each position (`LearnedVectors`);
    J is not convex in them, and what is found is a local minimum that depends on the start.

    Parameters
    ----------
    alpha : float
        The weight of |f|^2 against the mean loss; 1 / (2 n C) in terms of scikit-learn's C.
    loss : {"logistic", "log_loss", "squared_hinge"}
        See the table; "log_loss" is another name of "logistic".

    Attributes
    ----------
    classes_ : ndarray
        The classes that have a positive weight.
    vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (m, n_functions)
        n_functions is 1 for two classes, else the number of classes.
    intercept_ : ndarray of shape (n_functions,)
    expansion_ : Expansion
        The fitted functions without intercepts, as a value.
    kernel_ : Kernel
        The kernel with all its values, learned or not.
    objective_curve_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never rises.
    n_iter_ : int
    solver_, report_
        The solver, and what it did.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseKernelClassifier(n_vectors=5, alpha=1e-3).fit(X, y)
    >>> model.vectors_.shape
    (5, 4)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _: KW_ONLY
    loss: str = parameter(StrOptions(LOSSES), default="logistic")

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        self._require_vectors(X)
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        self._learn_labels(sample, self.loss)
        return self
