"""Support vector machines with a single function: SVR, nu-SVR, and the one-class SVM."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..._core import Points
from ...solvers import BlockSMO, BoxInterior, CoreSet, Dual, Duals, DualSolutions
from .._parameters import estimator, fit_method, fitted, parameter, predict_method, solver
from .._prediction_intervals import IntervalMixin
from ._svm_base import SupportVectorMachine
from ._svm_training import SVMProblem

# The threshold rho is lowered by this fraction of the largest |f|, so that rounding errors do not
# turn support vectors on the boundary, where f = rho, into outliers.
_RHO_SLACK = 1e-8


class _SupportVectorRegressor(IntervalMixin, RegressorMixin, SupportVectorMachine):
    """Base class of SVR and NuSVR."""

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit f to the targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,)
            Targets. Scale them to a variance of about 1 if the parameters have their defaults.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which multiply C for each point. Points of weight 0 or less are ignored.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        sample = self._training_sample(X, y, sample_weight)
        dual = self._dual(sample.targets[:, 0], sample.counts)
        self._solve_and_set(self._problem(sample), Duals.of([dual], np.arange(dual.n)))
        return self

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the targets of points, as f(x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            The predictions.
        """
        return self._values(X)[:, 0]

    @property
    @abstractmethod
    def _penalty(self) -> float: ...

    @abstractmethod
    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        """Return the dual problem for the targets y and the weights w of the points."""


@estimator(kw_only=True)
class SVR(_SupportVectorRegressor):
    """Support vector regression with the epsilon-insensitive loss.

        minimise  1/2 |f|^2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)

    Points closer to f + b than epsilon, inside the "tube", do not contribute to f; the other
    points are the support vectors.  A drop-in replacement for scikit-learn's `SVR`.

    Parameters
    ----------
    C : float
        The penalty of points outside the tube; positive, may be infinite. A smaller C means
        stronger regularisation. The range of y is a good first value; then search a logarithmic
        grid, for instance 10^-2 to 10^3.
    epsilon : float
        Half of the width of the tube, in units of y. Errors smaller than epsilon cost nothing, so
        choose the accuracy that you need, or about the standard deviation of the noise. A larger
        epsilon gives fewer support vectors.

    Attributes
    ----------
    support_ : ndarray of int
        The rows of X that are support vectors.
    support_vectors_ : points
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        Coefficients v_i of f = sum_i v_i k(x_i, .).
    at_bound_ : ndarray of bool, shape (n_support_vectors,)
        True for support vectors outside the tube, where |v_i| = C w_i; the others are on its
        boundary.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    coef_ : ndarray of shape (1, n_features)
        The weights of a linear kernel: f(x) = <coef_, x>.
    expansion_ : Expansion
        The function f, without the intercept; an expansion in landmarks for "nystroem".
    n_iter_ : int
        Number of solver steps.
    fit_status_ : int
        0 if the solver converged, otherwise 1.
    report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVC.

    See Also
    --------
    NuSVR : Learns epsilon from the fraction of points outside the tube.
    KernelRidge : Squared loss, with a solution in closed form.
    KernelMachineRegressor : Other robust losses, and quantiles.
    GaussianProcessRegressor : Predictions with standard deviations.
    sklearn.svm.SVR : The same model in LIBSVM.
    sklearn.svm.LinearSVR : A linear model for millions of sparse rows.

    References
    ----------
    Drucker, Burges, Kaufman, Smola and Vapnik, "Support vector regression machines", NIPS 1996.

    Smola and Schölkopf, "A tutorial on support vector regression", Statistics and Computing 14,
    2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = SVR(C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    >>> len(model.support_) < 20
    True
    """

    C: float = parameter("positive or infinite", default=1.0)
    epsilon: float = parameter("non-negative", default=0.1)

    @property
    def _penalty(self) -> float:
        return self.C

    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        return Dual.regress(y, self.C * w, float(self.epsilon))


@estimator(kw_only=True)
class NuSVR(_SupportVectorRegressor):
    """Support vector regression that learns the width of the tube (nu-SVR).

        minimise  1/2 |f|^2 + C (nu W epsilon + sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon))

    W is the sum of the weights w_i, and epsilon, half of the width of the tube around f + b, is
    optimised together with f and b.  At most a fraction nu of the total weight lies outside the
    tube, and the support vectors have at least the fraction nu of it.  A drop-in replacement for
    scikit-learn's `NuSVR`.

    Parameters
    ----------
    nu : float
        Upper bound on the fraction of points outside the tube, and lower bound on the fraction of
        support vectors, in (0, 1]. A smaller nu gives a wider tube and a sparser model.
    C : float
        The penalty of points outside the tube; positive and finite. A smaller C means stronger
        regularisation. The range of y is a good first value; then search a logarithmic grid, for
        instance 10^-2 to 10^3.

    Attributes
    ----------
    epsilon_ : float
        Half of the width of the tube, in units of y.
    support_, support_vectors_, n_support_, dual_coef_, at_bound_, intercept_, coef_
        As in SVR.
    expansion_, n_iter_, fit_status_, report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVR.

    See Also
    --------
    SVR : The width of the tube is a parameter.
    NuSVC : Classification with the parameter nu.
    KernelMachineRegressor : Other robust losses, and quantiles.
    sklearn.svm.NuSVR : The same model in LIBSVM.

    References
    ----------
    Schölkopf, Smola, Williamson and Bartlett, "New support vector algorithms", Neural Computation
    12, 2000.

    Chang and Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent
    Systems and Technology 2, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = NuSVR(nu=0.2, C=10.0).fit(X, y)
    >>> outside = np.abs(y - model.predict(X)) > model.epsilon_ + 0.01
    >>> bool(np.mean(outside) <= 0.2)
    True
    """

    nu: float = parameter("fraction", default=0.5)
    C: float = parameter("positive", default=1.0)

    epsilon_: float = fitted()

    @property
    def _penalty(self) -> float:
        return self.C

    def _dual(self, y: np.ndarray, w: np.ndarray) -> Dual:
        return Dual.nu_regress(y, self.C * w, float(self.nu))

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        m = solutions.multipliers[0]
        self.epsilon_ = float(max(0.5 * (m[1] - m[0]), 0.0))
        return super()._set_extra_attributes(problem, solutions)


@estimator(kw_only=True)
class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """One-class support vector machine: finds a region that contains most of the points.

        minimise  1/2 |f|^2 - nu W rho + sum_i w_i max(0, rho - f(x_i))   over f and rho

    W is the sum of the weights w_i.  Points with f(x) < rho are outliers.  At most a fraction nu
    of the total weight lies outside the region f >= rho, and the support vectors have at least
    the fraction nu of it.  For a density kernel such as the Gaussian, the region estimates a level
    set of the density.  A drop-in replacement for scikit-learn's `OneClassSVM`.

    Parameters
    ----------
    nu : float
        Upper bound on the fraction of training outliers, in (0, 1]. Choose the fraction of training
        points that may be contaminated; the default, 0.5 as in scikit-learn, is too large for most
        data. With nu = 1 / W, no training point may be an outlier, and the region is the smallest
        enclosing ball in feature space.
    tol : float
        The solver stops when the optimality conditions are violated by at most this, in units of f.
        With "core-set" it stops when both the objective and the squared radius of the enclosing
        ball are known up to the factor (1 + tol)^2.
    solver : {"auto", "exact", "smo", "primal", "nystroem", "core-set"} or a solver
        "core-set": exact up to `tol`, with a growing subset of the points and passes over all
        points, in memory or in blocks; for a small nu, because at least the fraction nu of the
        weight are support vectors. The other solvers are described in `NuSVR`; "auto" and "exact"
        never choose "core-set". A solver object is a `BlockSMO`, a `BoxInterior` (for a linear
        kernel) or a `CoreSet` of `mercer.solvers`.

    Attributes
    ----------
    support_ : ndarray of int
        The rows of X that are support vectors.
    support_vectors_ : points
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_support_vectors)
        Coefficients v_i of f = sum_i v_i k(x_i, .), between 0 and the weight w_i of each point.
    at_bound_ : ndarray of bool
        True for support vectors outside the region, where v_i = w_i.  The others are on its
        boundary, where f = rho.
    offset_, intercept_ : ndarray of shape (1,)
        The threshold rho and its negative; `decision_function` is `score_samples` - `offset_`.
    radius_ : float
        Radius of the ball in feature space that is the region, for kernels with constant k(x, x);
        the model of support vector data description (SVDD).
    coef_, expansion_, n_iter_, fit_status_, report_, reports_, shape_fit_, gamma_, kernel_, solver_
        As in SVR.

    See Also
    --------
    KernelPCA : Detects outliers by their reconstruction error.
    ParzenDensity : Estimates the density itself.
    SVC : If there are labels.
    sklearn.svm.OneClassSVM : The same model in LIBSVM.
    sklearn.ensemble.IsolationForest : For many points and columns of different types; needs no
        kernel.

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 13, 2001.

    Tax and Duin, "Support vector data description", Machine Learning 54, 2004, for the ball.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> bool(abs(np.mean(model.predict(X) == -1) - 0.1) < 0.05)
    True
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    nu: float = parameter("fraction", default=0.5)
    solver: Any = solver(
        *("smo", "primal", "nystroem", "core-set"),
        given=[BlockSMO, BoxInterior, CoreSet],
        default="auto",
    )

    _has_core_set: ClassVar[bool] = True

    offset_: np.ndarray = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the region that contains most of the points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem" or
            "core-set".
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points; points of weight 0 or less are ignored.

        Returns
        -------
        self : OneClassSVM
            The fitted estimator.
        """
        sample = self._training_sample(X, sample_weight=sample_weight)
        problem = self._problem(sample)
        if isinstance(problem.solver, CoreSet):
            total = float(self.nu) * float(sample.counts.sum())
            solutions = self._fit_core_sets(problem, self._duals, total)
        else:
            solutions = self._solve_and_set(problem, self._duals(problem))
        slack = min(_RHO_SLACK * float(np.abs(solutions.values).max()), self.tol)
        self.offset_ = solutions.multipliers[0] - slack
        self.intercept_ = -self.offset_
        return self

    def _duals(self, problem: SVMProblem) -> Duals:
        dual = Dual.one_class(problem.sample.counts, float(self.nu))
        return Duals.of([dual], np.arange(dual.n))

    @property
    def radius_(self) -> float:
        """Radius of the ball in feature space that contains the points with f(x) >= rho.

        It is the model of support vector data description (SVDD), with the centre f / sum_i v_i.
        It needs a kernel with constant k(x, x), such as the Gaussian kernel.
        """
        check_is_fitted(self)
        if self._precomputed:
            raise AttributeError(
                "radius_ needs k(x, x) of the support vectors, which are not stored for "
                "kernel='precomputed'; fit with kernel=Precomputed(K) and indices as points"
            )
        diagonal = np.asarray(self.kernel_.diag(self.support_vectors_), dtype=float)
        if np.ptp(diagonal) > 1e-9 * np.abs(diagonal).max():
            raise AttributeError(
                f"radius_ needs a kernel with constant k(x, x), because only then the one-class "
                f"SVM is the smallest enclosing ball; for {self.kernel_}, k(x, x) of the support "
                f"vectors is between {diagonal.min():.4g} and {diagonal.max():.4g}. Divide the "
                f"kernel by sqrt(k(x, x) k(z, z)), or choose a Gaussian kernel"
            )
        v = self.dual_coef_[0] / self.dual_coef_.sum()
        f = self.score_samples(self.support_vectors_) / self.dual_coef_.sum()
        squared = diagonal[0] + v @ f - 2.0 * float(self.offset_[0]) / self.dual_coef_.sum()
        return float(np.sqrt(max(squared, 0.0)))

    @predict_method
    def decision_function(self, X: Points) -> np.ndarray:
        """Return f(x) - rho, which is positive inside the region and negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            The values f(x) - rho.
        """
        return self._values(X)[:, 0]

    @predict_method
    def score_samples(self, X: Points) -> np.ndarray:
        """Return f(x) for each point, without subtracting the threshold rho.

        Use it to rank points, or with your own threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            The values f(x); low values mean outliers.
        """
        return self.decision_function(X) + self.offset_

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Classify points as inliers or outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of int, shape (n,)
            +1 for points inside the region and -1 for outliers.
        """
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
