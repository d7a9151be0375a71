"""Regression and classification with a small number m of learned expansion vectors.

f(.) = sum_j b_j k(z_j, .) + c,      j = 1 .. m,      with vectors z_j anywhere in R^d
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..._core import NotDifferentiableError, Points, budget_in_bytes, check_budget, format_bytes
from ...blocks import Blocks
from ...expansion import Expansion
from ...gram import Landmarks
from ...kernels import Kernel
from ...solvers import (
    CuttingPlanes,
    Hinge,
    LearnedVectors,
    Loss,
    ReducedExpansionRisk,
    Squared,
    landmark_bytes,
    max_stored_cuts,
    tile_bytes,
)
from .._kernel_estimator import DualEstimator, DualRegressor, KernelLike, Seed
from .._label_encoding import CLASSIFICATION_LOSSES, WeightedClassifierMixin
from .._parameters import estimator, fit_method, fitted, parameter
from .._plan_method import n_of
from .._training_sample import Sample


@estimator()
class SparseKernelEstimator(DualEstimator):
    """Base class of SparseKernelRegressor and SparseKernelClassifier.

    Parameters
    ----------
    n_vectors : int or str
        The number m of vectors, or the size of the model as a string: "100 kB" means as many
        vectors as fit in this size together with their weights, in float64. Double it until the
        validation score no longer improves. If m is at least the number of points, the vectors are
        the distinct training points, which is optimal.
    kernel : str, Kernel, callable or scikit-learn GP kernel
        The kernel must be differentiable in its points; "precomputed" is not allowed.
    fit_intercept : bool
        Whether to add an intercept c to each f, which is not penalised.
    init : {"auto", "kmeans", "rpcholesky", "uniform"} or array of shape (m, d)
        Initial vectors.  "auto" uses the centroids of k-means for kernels that are functions of
        distances, and otherwise points chosen by RPCholesky.  An array, such as the `vectors_` of
        an earlier fit, also determines m.
    learn_kernel : bool
        Whether to learn the free parameters of the kernel, such as length scales, with the same
        objective.  Not recommended for kernels with a free scale factor: scaling the kernel up
        is equivalent to making alpha smaller.
    max_iter : int
        Maximum number of L-BFGS iterations; with 0 the vectors keep their initial values.
    tol : float
        The solver stops when ten iterations reduce the objective by less than this fraction.
    random_state : int, RandomState or None
        Seed for the choice of initial vectors; None means 0.

    Attributes
    ----------
    vectors_, X_fit_ : ndarray of shape (m, d)
        The learned vectors z_j.
    kernel_ : Kernel
        The kernel with all parameters resolved or learned.
    objective_curve_ : ndarray of shape (n_iter_ + 1,)
        The objective at the initial vectors and after each iteration; it never increases.
    n_iter_ : int
        Number of L-BFGS iterations.
    solver_, report_
        The solver that was used, and its report.
    """

    n_vectors: int | str = parameter("positive integer", str, default=100)
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    alpha: float = parameter("positive", default=1e-4)
    fit_intercept: bool = parameter("boolean", default=True)
    init: Any = parameter({"auto", "kmeans", "rpcholesky", "uniform"}, "array-like", default="auto")
    learn_kernel: bool = parameter("boolean", default=False)
    max_iter: int = parameter("non-negative integer", default=1000)
    tol: float = parameter("positive", default=1e-3)
    random_state: Seed = parameter("random_state", default=None)

    n_iter_: int = fitted()
    objective_curve_: np.ndarray = fitted()
    solver_: LearnedVectors | CuttingPlanes = fitted()

    _accepts_blocks: ClassVar[bool] = True

    def _gathers_blocks(self) -> bool:
        return True  # each of several hundred steps needs all points

    @property
    def vectors_(self) -> np.ndarray:
        """The learned vectors z_j, shape (m, d)."""
        return np.asarray(self.expansion_.points)

    def _require_vectors(self, X: Points) -> None:
        """Raise an error if X is not an array of vectors, because only vectors can be optimised."""
        name = type(self).__name__
        if self._precomputed:
            raise ValueError(
                f"{name} evaluates the kernel at new vectors, which a precomputed matrix does not "
                f"allow; pass points and a kernel, or use KernelRidge"
            )
        if not isinstance(X, Blocks) and not self._expects_matrix(X):
            raise TypeError(
                f"{name} learns vectors in R^d, but the points of {self.kernel!r} are not vectors; "
                f"fit KernelRidge instead and compress its expansion_"
            )

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss, *, flat: bool = False) -> None:
        """Learn vectors, weights and intercepts for the targets Y; set the fitted attributes."""
        sample = sample.doubled()
        X, w = sample.points, sample.counts
        (n, d), q = X.shape, Y.shape[1]
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        _require_gradient(self.kernel_, type(self).__name__, d)
        m = self._count_vectors(n, d, q)
        is_hinge = isinstance(loss, Hinge)
        squared = isinstance(loss, Squared)
        required = _learning_bytes(n, d, q, m, squared=squared, hinge=is_hinge)
        check_budget(required, self.max_memory, f"learning {m} vectors from {n} points")
        if is_hinge and m < n and isinstance(self.init, str) and self.init == "auto":
            Z, is_optimal = np.empty((0, d)), False
        else:
            Z, is_optimal = self._initial_vectors(X, m)
        risk = ReducedExpansionRisk(
            self.kernel_, X, Y, loss, w / w.sum(), self.alpha, self.fit_intercept, self.max_memory
        )
        max_iter = 0 if is_optimal and not self.learn_kernel else self.max_iter
        self.solver_ = LearnedVectors(max_iter, self.tol, self.learn_kernel)
        if is_hinge:
            n_vectors = len(Z) or m
            self.solver_ = CuttingPlanes(n_vectors, self.max_iter, self.tol, self.random_state)
        result = self.solver_.minimize(risk, Z, self._log_progress)
        self.report_ = result.report
        if not max_iter and is_optimal and not is_hinge:
            self.report_ = dataclasses.replace(self.report_, message=_EXACT_MESSAGE)
        self._log_progress(f"objective {result.fit.value:.6g}: {self.report_.status.value}")
        self.kernel_ = result.fit.kernel
        f = Expansion(self.kernel_, result.fit.vectors, result.fit.weights)
        self._set_expansion(f, result.fit.intercept, flat)
        self.objective_curve_, self.n_iter_ = result.curve, result.report.n_iter

    def _count_vectors(self, n: int, d: int, q: int) -> int:
        """Return the number of vectors for n points with d columns, and q functions."""
        if isinstance(self.init, str):
            return min(n, _number_of_vectors(self.n_vectors, d, q))
        return int(np.shape(self.init)[0])

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        self._require_vectors(sample.points)
        (n, d), q = sample.points.shape, 1
        if sample.labels is not None:
            q = 1 if len(sample.classes) == 2 else len(sample.classes)
        elif sample.targets is not None:
            q = sample.targets.shape[1]
        m = self._count_vectors(n, d, q)
        is_hinge = getattr(self, "loss", None) == "hinge"
        required = _learning_bytes(n, d, q, m, squared=sample.labels is None, hinge=is_hinge)
        tiles = tile_bytes(self._planned_kernel(sample), sample.points)
        memory = required + landmark_bytes(n, m, 0.0, 1.0, 0.0) + tiles
        option = {"solver": "vectors", "storage": "low rank", "exact": False, "rank": m}
        problem = f"{n_of(m, 'vector')} learned from {n} points"
        return problem, {**option, "extra": memory, "required": required, "copies": 0.0}

    def _initial_vectors(self, X: Points, m: int) -> tuple[np.ndarray, bool]:
        """Return the initial vectors, and whether they are optimal already."""
        if not isinstance(self.init, str):
            Z = check_array(self.init, dtype=np.float64, copy=True, input_name="init")
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"init has {Z.shape[1]} columns, but X has {X.shape[1]}")
            return Z, False
        if m == X.shape[0]:
            return np.unique(_dense(X), axis=0), True
        return _dense(Landmarks(m, self.init, self.random_state).draw(self.kernel_, X)), False


_EXACT_MESSAGE = (
    "n_vectors is at least the number of points, so the vectors are the distinct training points, "
    "and f is the minimiser over the whole RKHS"
)


def _dense(X: Points) -> np.ndarray:
    """Return a dense copy of X."""
    return X.toarray() if sp.issparse(X) else np.array(X)


def _number_of_vectors(n_vectors: Any, d: int, q: int) -> int:
    """Convert `n_vectors`, an integer or a size such as "100 kB", to a number of vectors."""
    if not isinstance(n_vectors, str):
        return int(n_vectors)
    try:
        size = budget_in_bytes(n_vectors)
    except ValueError:
        raise ValueError(
            f"n_vectors must be a positive integer, or the size of the model as a string such as "
            f"'100 kB', got {n_vectors!r}"
        ) from None
    bytes_per_vector = 8 * (d + q)
    if size < bytes_per_vector:
        raise ValueError(
            f"n_vectors={n_vectors!r} is too small for a single vector: {d} coordinates and {q} "
            f"weights need {format_bytes(bytes_per_vector)}"
        )
    return size // bytes_per_vector


def _require_gradient(kernel: Kernel, name: str, d: int) -> None:
    """Raise an error if the kernel is not differentiable in its points."""
    point = np.full((1, d), 0.5)
    try:
        kernel.input_gradient(point, point, np.ones((1, 1)))
    except NotDifferentiableError as why:
        raise NotDifferentiableError(
            f"{name} needs the gradient dk(x, z)/dx, which {kernel} does not have ({why}); use "
            f"another kernel, or fit KernelRidge and compress its expansion_"
        ) from None


@estimator()
class SparseKernelRegressor(SparseKernelEstimator, DualRegressor):
    """Kernel ridge regression with a small number of learned expansion vectors.

        minimise  mean_i |y_i - f(x_i)|^2 + alpha |f|^2   over   f = sum_j b_j k(z_j, .) + c

    Both the weights b_j and the m vectors z_j are learned; the vectors need not be training
    points.  The model consists of m (d + n_targets) numbers, and a prediction needs m evaluations
    of k, independent of the number of training points.  The objective is never larger than for a
    Nyström approximation on the initial vectors, and usually much smaller.

    The vectors are optimised by L-BFGS, with the optimal weights for each choice of the vectors
    (`LearnedVectors`).  The objective is not convex in the vectors, so the result is a local
    minimum that depends on the initial vectors.

    Parameters
    ----------
    alpha : float
        Regularisation: the weight of |f|^2 relative to the *mean* loss. It corresponds to the alpha
        of `KernelRidge` divided by n. Search a logarithmic grid, for instance 10^-8 to 10^-1.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
        The weights b_j.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept c.
    expansion_ : Expansion
        The fitted f without the intercept.

    See Also
    --------
    KernelRidge : Expansion of f in all training points.
    compress : Reduces the number of points of any fitted model.
    SparseKernelClassifier : For class labels.
    Nystroem : Features from landmarks that are not optimised.
    sklearn.kernel_ridge.KernelRidge : Expansion of f in all training points.

    References
    ----------
    Wu, Schölkopf and Bakır, "A direct method for building sparse kernel learning algorithms",
    Journal of Machine Learning Research 7, 2006.

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

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit f to the targets y.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training points, or data in blocks (`open_blocks`, Dask arrays).
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors.

        Returns
        -------
        self : SparseKernelRegressor
            The fitted estimator.
        """
        self._require_vectors(X)
        sample = self._sample(X, y, sample_weight, copy=False)
        self._learn(sample, sample.targets, Squared(), flat=sample.flat)
        return self


@estimator()
class SparseKernelClassifier(SparseKernelEstimator, WeightedClassifierMixin):
    """Kernel classifier with a small number of learned expansion vectors.

        minimise  mean_i loss(y_i, f(x_i)) + alpha |f|^2   over   f = sum_j b_j k(z_j, .) + c

    Both the weights b_j and the m vectors z_j are learned; the vectors need not be training
    points.  The model consists of m (d + n_functions) numbers, and a prediction needs m
    evaluations of k, independent of the number of training points.  All classes share the vectors.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more classes: one f_c per class
    ================= ======================================== ===================================
    "logistic"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum over classes, one vs. rest
    "hinge"           max(0, 1 - y f)                          the sum over classes, one vs. rest
    ================= ======================================== ===================================

    With solver="lbfgs", the vectors are optimised by L-BFGS, with the optimal weights for each
    choice of the vectors (`LearnedVectors`).  The objective is not convex in the vectors, so the
    result is a local minimum that depends on the initial vectors.

    With solver="cutting-plane", for the hinge loss, vectors are added one by one (`CuttingPlanes`).
    Each is the pre-image of a cutting plane of the SVM, and is not moved later.  For these vectors
    the weights are optimal up to a duality gap.  `report_.certificate` contains the gap, the number
    of cuts, the relative residual of the cuts that the vectors do not represent and, for at most
    10 000 points in the cuts, a lower bound of the objective for any number of vectors.

    Parameters
    ----------
    alpha : float
        Regularisation: the weight of |f|^2 relative to the mean loss. It corresponds to 1 / (2 n
        C), where C is the parameter of scikit-learn's LogisticRegression. Search a logarithmic
        grid, for instance 10^-8 to 10^-1.
    loss : {"logistic", "log_loss", "squared_hinge", "hinge"}
        See the table; "log_loss" is a synonym of "logistic".
    solver : {"lbfgs", "cutting-plane"}
        How the vectors are found. "lbfgs" needs a smooth loss; "cutting-plane" needs loss="hinge",
        and gives larger errors for very few vectors. With "cutting-plane", `max_iter` is the
        maximum number of cutting planes of each function, and `tol` the duality gap relative to
        the objective. init="auto" starts without vectors; other initial vectors are not changed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the points of positive weight, sorted.
    dual_coef_ : ndarray of shape (m, n_functions)
        The weights b_j.  n_functions is 1 for two classes, otherwise the number of classes.
    intercept_ : ndarray of shape (n_functions,)
        The intercepts c.
    expansion_ : Expansion
        The fitted functions without intercepts.

    See Also
    --------
    KernelLogisticRegression : Expansion of f in all training points.
    SVC : Expansion in support vectors, whose number is not limited.
    compress : Reduces the number of points of any fitted model.
    SparseKernelRegressor : For numeric targets.
    sklearn.svm.SVC : Expansion in support vectors.

    References
    ----------
    Wu, Schölkopf and Bakır, "A direct method for building sparse kernel learning algorithms",
    Journal of Machine Learning Research 7, 2006.

    Joachims and Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning 76, 2009.

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
    >>> svm = SparseKernelClassifier(5, alpha=1e-3, loss="hinge", solver="cutting-plane").fit(X, y)
    >>> bool(svm.score(X, y) > 0.9), svm.report_.status.name
    (True, 'CONVERGED')
    """

    _: KW_ONLY
    loss: str = parameter({*CLASSIFICATION_LOSSES, "hinge"}, default="logistic")
    solver: str = parameter({"lbfgs", "cutting-plane"}, default="lbfgs")

    @property
    def _decision_loss(self) -> str:
        return self.loss

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit f to the labels y.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training points, or data in blocks (`open_blocks`, Dask arrays).
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the losses.

        Returns
        -------
        self : SparseKernelClassifier
            The fitted estimator.
        """
        self._require_vectors(X)
        self._check_solver()
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        self._learn_labels(sample, self.loss)
        return self

    def _check_solver(self) -> None:
        """Raise an error if the solver cannot minimise the loss, or cannot learn the kernel."""
        if (self.loss == "hinge") != (self.solver == "cutting-plane"):
            raise ValueError(
                f"solver={self.solver!r} does not minimise loss={self.loss!r}: 'lbfgs' needs a "
                f"smooth loss, and 'cutting-plane' minimises only the hinge loss. Pass "
                f"solver='cutting-plane' with loss='hinge', or solver='lbfgs' with another loss"
            )
        if self.solver == "cutting-plane" and self.learn_kernel:
            raise ValueError(
                "solver='cutting-plane' does not learn the parameters of the kernel; pass "
                "learn_kernel=False, or solver='lbfgs' with a smooth loss"
            )


def _learning_bytes(n: int, d: int, q: int, m: int, *, squared: bool, hinge: bool = False) -> int:
    """Return the memory for learning m vectors from n points in d dimensions, in bytes.

    `q` is the number of functions, and `squared` whether the loss is squared, so that all functions
    have the same linear system.  For the hinge loss, the slopes of the cutting planes are stored.
    """
    systems = 1 if squared else q
    if hinge:
        n_cuts = max_stored_cuts(m)
        return 8 * (n * (2 * d + 2) + 8 * n * q + 8 * (m + 1) ** 2) + 4 * n * n_cuts * (q + 3)
    return 8 * (n * (2 * d + 2) + 6 * n * q + (12 * systems + 8) * (m + 1) ** 2)
