"""Kernel ridge regression: f = sum_i a_i k(x_i, .), where (K + alpha I) a = y."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, check_budget, length, take
from ...expansion import Expansion
from ...kernels import Kernel, unwrap
from ...solvers import ExactRidge, LandmarkRidge, Plan, plan_ridge, warn_if_infinite
from .._blockwise import require_products
from .._kernel_estimator import DualRegressor, LandmarkMixin
from .._parameters import (
    estimator,
    exact_as_auto,
    fit_method,
    fitted,
    parameter,
    predict_method,
    solver,
)
from .._plan_method import n_of
from .._prediction_intervals import IntervalMixin, reject_without_points
from .._training_sample import Sample


@estimator(kw_only=True)
class RidgeEstimator(IntervalMixin, LandmarkMixin, DualRegressor):
    """Base class of KernelRidge and KernelRidgeCV.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised. Set it to True if the targets are not
        centred and the kernel decreases to 0 with the distance, as "rbf".
    solver : {"auto", "exact", "nystroem"}
        "auto" and "exact" use all points; "nystroem" restricts f to the span of landmarks.
    """

    fit_intercept: bool = parameter("boolean", default=False)
    solver: Any = solver("nystroem", default="auto")

    _ridge: ExactRidge | LandmarkRidge = fitted(per_point=True)

    @property
    def _on_landmarks(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "nystroem"

    def _resolve_kernel(self, sample: Sample, gamma: Any) -> Kernel:
        """Return the kernel with its parameters resolved on the sample.

        With an intercept, predictions do not depend on the origin of linear kernels, which is then
        moved to the mean of the points to avoid cancellation.
        """
        kernel = self._make_kernel(gamma)
        if self.fit_intercept:
            return sample.resolve_centred(kernel, check=False)
        return sample.resolve(kernel)

    def _problem(
        self, kernel: Kernel, sample: Sample, alphas: np.ndarray, solver: Any = None
    ) -> Any:
        """Return the ridge problem on all points or on landmarks, with one alpha per target."""
        solver = self.solver if solver is None else solver
        data = (kernel, sample.points, sample.targets, sample.weights, alphas, self.fit_intercept)
        common: dict[str, Any] = {"max_memory": self.max_memory, "log": self._progress_callback}
        if isinstance(solver, str) and solver in ("nystroem", "krill"):
            among = sample.subsample.points
            return LandmarkRidge(*data, self._chosen, solver == "krill", among=among, **common)
        seed = 0 if self.random_state is None else self.random_state
        options = {"rank": self.rank, "random_state": seed}
        return ExactRidge(*data, solver=exact_as_auto(solver), options=options, **common)

    def _jackknife_bounds(self, X: Points, coverage: float) -> np.ndarray:
        X = self._check_new(X)
        self._require_points("prediction intervals by the jackknife+")
        ridge = getattr(self, "_ridge", None)
        if ridge is None:
            raise ValueError(
                "the model contains no targets, because it was saved by an earlier version; fit "
                "it again, or use `conformalize` with data that were not used in `fit`"
            )
        warn_if_infinite(ridge.n_left_out, coverage)
        return np.asarray(ridge.intervals(X, coverage))

    def _require_points(self, what: str) -> None:
        """Raise an error if the training points, needed for `what`, are not stored."""
        if self._precomputed:
            raise ValueError(
                f"{what} need the kernel matrix of the training points, which is not stored for "
                f"kernel='precomputed'; use kernel=Precomputed(K) and indices as points"
            )
        reject_without_points(self, what)


@estimator()
class KernelRidge(RidgeEstimator):
    """Kernel ridge regression: least squares with an L2 penalty in the RKHS of a kernel.

        minimise  sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2

    A drop-in replacement for scikit-learn's `KernelRidge`, with the same parameters, defaults and
    attributes.  There are two differences.  For a kernel given by name, gamma must be positive,
    and for "poly" the degree must be a positive integer and coef0 non-negative, because the
    kernel is not a Mercer kernel otherwise.  A precomputed matrix that is not symmetric is
    symmetrised, with a warning.

    Predictions are computed in tiles, so the matrix k(X, X_fit_) is never stored as a whole.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,)
        Regularisation, one value for all targets or one for each. Larger values give smoother
        functions. It equals the noise variance of a Gaussian process with the same kernel: if a
        fraction q of the variance of standardised targets is noise, start with alpha = q. Search a
        logarithmic grid, for instance 10^-6 to 10^2; `KernelRidgeCV` does this without refitting.
    solver : str or a solver
        Exact solvers: "cholesky"; "mixed" (a float32 factor, refined to float64 accuracy); "cg"
        (conjugate gradients, does not store the n x n matrix); "lstsq" (for singular systems).
        Approximate solvers, with f in the span of landmarks: "nystroem" (direct) and "krill"
        (sketched conjugate gradients, for many landmarks). "auto" and "exact" are the same here:
        they choose an exact solver by the number of points, see `mercer.solvers.choose`. If the
        system is singular, they fall back to least squares, with a warning. For more than about
        10^5 points, use "nystroem".

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_targets)
        Coefficients of f.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b; 0 if fit_intercept is False.
    X_fit_ : points
        The training points (their indices for a precomputed kernel), or the landmarks.
    expansion_ : Expansion
        The fitted f; predictions are f + intercept_.
    solver_, report_
        The solver that was used, and its report.

    See Also
    --------
    KernelRidgeCV : Selects alpha and gamma by leave-one-out errors.
    GaussianProcessRegressor : Learns kernel parameters by maximum likelihood.
    SVR : Robust against outliers, and sparse.
    KernelMachineRegressor : Other losses, such as quantiles and counts.
    SparseKernelRegressor : Few learned expansion vectors.
    KernelRecursiveLeastSquares : The same model for streams of points.
    sklearn.kernel_ridge.KernelRidge : The same model, with a dense solver only.
    sklearn.linear_model.Ridge : The linear case, for more rows than columns.

    References
    ----------
    Saunders, Gammerman and Vovk, "Ridge regression learning algorithm in dual variables", ICML
    1998.

    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge
    regression", arXiv:2304.12465, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=10).fit(X, np.sin(6 * X[:, 0]))
    >>> model.predict([[0.5]]).round(2)
    array([0.14])
    >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)  # 5 is far from the data
    >>> bool(10 * std[0] < std[1])
    True
    """

    alpha: float | np.ndarray | list = parameter("non-negative", "array-like", default=1)
    _: KW_ONLY
    solver: Any = solver(
        *("cholesky", "mixed", "cg", "lstsq", "nystroem", "krill"),
        given=[HasMethods(["factorize"])],
        default="auto",
    )

    solver_: Any = fitted()
    _places: np.ndarray = fitted(per_point=True)

    def _plan(self, sample: Sample) -> Plan:
        n, q = sample.targets.shape
        return plan_ridge(
            f"kernel ridge regression of {n} points, {n_of(q, 'target')}",
            self._planned_kernel(sample),
            sample.points,
            self.solver,
            self._chosen,
            columns=q,
            alphas=len(np.unique(_check_alpha(self.alpha, q))),
            max_memory=self.max_memory,
        )

    def _gathers_blocks(self) -> bool:
        if not self._on_landmarks:
            require_products(self, "solver", ("auto", "exact", "cg"))
        return not self._on_landmarks

    @property
    def _required_cpd_order(self) -> int | None:
        if isinstance(self.solver, str) and self.solver == "lstsq":
            return None  # least squares does not need a positive definite matrix
        # With an intercept the coefficients sum to 0, so a conditionally positive definite kernel
        # of order 1 is enough.
        return int(self.fit_intercept)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit f to the targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver "auto", "exact", "cg" or
            "nystroem"; only "nystroem" does not load all of them.
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors. Points of weight 0 are ignored.

        Returns
        -------
        self : KernelRidge
            The fitted estimator.
        """
        sample = self._sample(X, y, sample_weight)
        solver = self.solver if sample.workers is None else "cg"
        alphas = _check_alpha(self.alpha, sample.targets.shape[1])
        self.kernel_ = self._resolve_kernel(sample, self.gamma)
        evaluated = sample.evaluated(self.kernel_, self.max_memory)
        ridge = self._problem(evaluated, sample, alphas, solver)
        A, b = ridge.solve(sample.workers) if isinstance(ridge, ExactRidge) else ridge.solve()
        ridge.kernel = unwrap(evaluated)
        if isinstance(ridge, LandmarkRidge):
            f = Expansion(self.kernel_, ridge.points, A)
        else:
            f, self._places = sample.expansion(self.kernel_, A), sample.places
        self._set_expansion(f, b, sample.flat)
        self.solver_, self.report_ = ridge.chosen, ridge.report
        if sample.values is None:  # otherwise it contains the matrix, which must not be stored
            if isinstance(ridge, LandmarkRidge):
                seen = sample.subsample
                ridge.calibrate(None, seen.points, seen.targets, seen.weights)
            self._ridge = ridge
        return self

    # ------------------------------------------------------------------ predictions

    @predict_method
    def predict(self, X: Points, return_std: bool = False) -> Any:
        """Return predictions f(x) + b and, if requested, their standard deviations.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.
        return_std : bool, default=False
            Whether to return the posterior standard deviation of f(x) + b for the Gaussian process
            with prior covariance c k and noise variance c alpha / w_i, whose posterior mean is f.
            The factor c maximises the likelihood. Exact solvers factor the system again at the
            first call, and store the factor if there is a single alpha.

        Returns
        -------
        predictions : ndarray of shape (n,) or (n, n_targets)
            The predictions; one-dimensional if y was one-dimensional in `fit`.
        std : ndarray of the same shape
            The standard deviations, without noise; only if `return_std` is True.
        """
        X = self._check_new(X)
        flat = self._has_single_target
        values = self.expansion_(X) + self.intercept_
        if not return_std:
            return values[:, 0] if flat else values
        self._require_points("standard deviations")
        std = np.sqrt(self._ridge.variance(X))
        return (values[:, 0], std[:, 0]) if flat else (values, std)

    def leave_one_out(self) -> np.ndarray:
        """Return the leave-one-out prediction f_-i(x_i) + b_-i of each training point.

        f_-i and b_-i are fitted without point i. They have a closed form, y_i - a_i / P_ii with P =
        (K + alpha I)^-1 and a = P y (without weights and intercept), so no model is refitted.
        `KernelRidgeCV` computes them for many alphas, and for solver="nystroem".

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            One prediction for each training point; compare them with y to estimate the error on new
            points.
        """
        check_is_fitted(self)
        self._require_points("leave-one-out predictions")
        if isinstance(self._ridge, LandmarkRidge):
            raise ValueError(
                f"solver={self.solver!r} stores landmarks instead of the training points; use "
                f"KernelRidgeCV(alphas=[alpha], solver='nystroem') and its leave_one_out_"
            )
        zero_weight = np.flatnonzero(self._places < 0)
        predictions = np.empty((len(self._places), self._ridge.Y.shape[1]))
        predictions[self._places >= 0] = self._ridge.Y - self._ridge.leave_one_out()
        if len(zero_weight):
            predictions[zero_weight] = (
                self.expansion_(take(self.X_fit_, zero_weight)) + self.intercept_
            )
        return predictions[:, 0] if self._has_single_target else predictions

    def dual_basis(self, indices: Any = None) -> Expansion:
        """Return the dual basis functions psi_i, for which f = sum_i y_i psi_i.

        The value psi_i(x) is the influence of the target y_i on the prediction at x.  The vector
        of all psi_i(x) is P k(x), where k(x) has the entries k(x_i, x); without weights and
        intercept, P = (K + alpha I)^-1.

        Parameters
        ----------
        indices : array-like of int or None, default=None
            Indices of the training points whose functions are returned; None for all.

        Returns
        -------
        Expansion
            One function for each index.
        """
        check_is_fitted(self)
        self._require_points("dual basis functions")
        if isinstance(self._ridge, LandmarkRidge) or len(np.unique(self._ridge.alphas)) > 1:
            raise ValueError("the dual basis needs an exact solver and one alpha for all targets")
        n, positions = length(self.X_fit_), self._places
        selected = (
            np.arange(n) if indices is None else np.atleast_1d(np.asarray(indices, dtype=int))
        )
        check_budget(
            32 * n * len(selected), self.max_memory, f"{len(selected)} dual basis functions"
        )
        coefficients, has_weight = np.zeros((n, len(selected))), positions[selected] >= 0
        coefficients[np.ix_(positions >= 0, has_weight)] = self._ridge.inverse(
            positions[selected[has_weight]]
        )
        return Expansion(self.kernel_, self.X_fit_, coefficients)


def _check_alpha(alpha: Any, n_targets: int) -> np.ndarray:
    """Check alpha and return an array with one value per target."""
    alpha = np.asarray(alpha, dtype=float)
    if alpha.ndim > 1 or alpha.size not in (1, n_targets):
        raise ValueError(
            f"alpha must be a number or one number per target: got {alpha.size} values "
            f"for {n_targets} targets"
        )
    if not (alpha.min() >= 0 and alpha.max() < np.inf):  # NaN fails this test as well
        raise ValueError(f"alpha must be finite and non-negative, got {alpha!r}")
    return np.broadcast_to(alpha.reshape(-1), (n_targets,))
