"""Kernel logistic regression for two or more classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..._core import Points, budget_in_bytes, check_threads, length, warn_caller
from ...blocks import Blocks
from ...expansion import Expansion
from ...gram import working_bytes
from ...kernels import Kernel, expects_precomputed_rows
from ...solvers import (
    GradientDescent,
    Minimum,
    Newton,
    OutOfCoreNewton,
    OutOfCoreRisk,
    Plan,
    RegularisedRisk,
    Report,
    RiskSolver,
    Status,
    WhitenedCoordinates,
    plan_exact_or_landmarks,
    whiten,
)
from .._kernel_estimator import KernelLike, LandmarkMixin
from .._label_encoding import WeightedClassifierMixin, encode_targets
from .._parameters import estimator, fit_method, fitted, parameter, solver
from .._plan_method import n_of
from .._prediction_intervals import PredictionSetMixin
from .._training_sample import Sample

_PATH_SHIFT_RATIO = 0.1  # solver="path": ratio of successive ridge parameters 1 / C
# Warn if components of f that are lost to rounding errors of K could lower the objective by more
# than this fraction of its value.
_MAX_RELATIVE_MISSED = 1e-3


class LogisticProblem(NamedTuple):
    """The data of one fit: resolved kernel, solver, coordinates of the points, and labels."""

    kernel: Kernel
    solver: RiskSolver
    phi: WhitenedCoordinates
    classes: np.ndarray
    labels: np.ndarray
    risk: RegularisedRisk | OutOfCoreRisk  # the latter for points in blocks


def _centre_classes(minimum: Minimum) -> Minimum:
    """Subtract the mean over classes, so that functions and intercepts sum to 0.

    With two classes there is a single function, which is returned unchanged.
    """
    w, b = minimum.weights, minimum.intercept
    if len(b) == 1:
        return minimum
    return minimum._replace(weights=w - w.mean(axis=1, keepdims=True), intercept=b - b.mean())


def _encode_labels(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the targets of the log-loss for the class indices of a block."""
    return encode_targets(labels, n_classes)[0]


@estimator(kw_only=True)
class LogisticEstimator(PredictionSetMixin, LandmarkMixin, WeightedClassifierMixin):
    """Base class of kernel logistic regression; see KernelLogisticRegression.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit intercepts b, which are not penalised. Keep the default unless the classes
        are known to be balanced around f = 0.
    tol : float
        The solver stops when the objective is certified to exceed its minimum by at most this
        fraction of the objective. The default is close to machine precision; 1e-4 is enough for
        predictions.
    max_iter : int or None
        The maximum number of iterations. None means 100 Newton steps, of which a few are usually
        enough, or 10 000 iterations of "gradient", which needs many.
    solver : {"auto", "exact", "newton", "path", "nystroem", "gradient"} or a solver
        See KernelLogisticRegression. A `Newton` or `GradientDescent` object of `mercer.solvers`
        uses its own tol and max_iter.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    tol: float = parameter("positive", default=1e-10)
    max_iter: int | None = parameter("positive integer", None, default=None)
    solver: Any = solver(
        *("newton", "path", "nystroem", "gradient"), given=[Newton, GradientDescent], default="auto"
    )

    n_iter_: int = fitted()
    solver_: Any = fitted()

    _in_passes: ClassVar[bool] = True  # whether the coordinates of points in blocks are not stored
    _extra_copies_of_F: ClassVar[int] = 0  # additional copies of the coordinates F in memory

    # ------------------------------------------------------------------ steps of a fit

    def _problem(self, sample: Sample) -> LogisticProblem:
        """Set up the fit in coordinates in which |f| is the norm of a weight vector."""
        n, q = len(sample), len(sample.classes)
        kernel = sample.resolve(self._make_kernel(self.gamma))
        if sample.drawn is not None and self._in_passes:
            return self._problem_in_passes(sample, kernel)
        values = sample.evaluated(kernel, self.max_memory)
        spec, needed = self._solver_name, self._memory(values, sample)
        phi = whiten(
            values,
            sample.points,
            spec,
            self._chosen,
            needed,
            exact="newton",
            what=f"solver={self.solver!r} for {n} points",
            among=sample.subsample.points,
            max_memory=self.max_memory,
        )
        self._log_progress(phi.message)
        solver = self.solver
        if solver == "gradient":
            solver = GradientDescent(self.tol, self.max_iter or 10_000)
        elif isinstance(solver, str):
            shift_ratio = _PATH_SHIFT_RATIO if spec == "path" else None
            needed_bytes = needed("nystroem" if phi.approximate else "newton", phi.F.shape[1])
            free_bytes = max(budget_in_bytes(self.max_memory) - needed_bytes, 0)
            joint = min(Newton.joint, int(np.sqrt(free_bytes / 24)))
            solver = Newton(self.tol, self.max_iter or 100, shift_ratio, joint)
        targets = encode_targets(sample.labels, q)
        risk = RegularisedRisk(phi.F, *targets, sample.counts, intercept=self.fit_intercept)
        return LogisticProblem(kernel, solver, phi, sample.classes, sample.labels, risk)

    @property
    def _solver_name(self) -> str:
        """The name of the requested solver, also if a solver object was passed."""
        if isinstance(self.solver, str):
            return self.solver
        return "gradient" if isinstance(self.solver, GradientDescent) else "newton"

    def _memory(self, kernel: Kernel, sample: Sample) -> Callable[[str, int], int]:
        """Return a function `needed(solver, m)`: the bytes of a solver with m coordinates."""
        n, q = len(sample), len(sample.classes)
        tiles = working_bytes(kernel, sample.subsample.points, None, 0, check_threads(None))
        return lambda solver, m: tiles + self._bytes(solver, n, m, q)

    def _plan(self, sample: Sample) -> Plan:
        n, kernel = len(sample), self._planned_kernel(sample)
        in_blocks = isinstance(sample.points, Blocks) and self._in_passes
        return plan_exact_or_landmarks(
            f"logistic regression of {n} points, {n_of(len(sample.classes), 'class')}",
            *(kernel, sample.points, self._solver_name, self._chosen),
            squares=3.0 if self._solver_name == "gradient" else 5.0,
            features=(0.0 if in_blocks else 1.0 + self._extra_copies_of_F, 0.6, 5.0),
            needed=(lambda _, m: 0) if in_blocks else self._memory(kernel, sample),
            limit="newton",
            exact="newton",
            steps=8.0,
            max_memory=self.max_memory,
        )

    def _problem_in_passes(self, sample: Sample, kernel: Kernel) -> LogisticProblem:
        """Set up the fit for points in blocks, whose coordinates are computed again in each pass.

        The number of passes is about the number of Newton steps.
        """
        among, q = sample.subsample.points, len(sample.classes)
        self._chosen.require(length(among))
        phi = self._chosen.map(kernel, among)
        encode = partial(_encode_labels, n_classes=q)
        Y, loss = encode_targets(np.zeros(1, dtype=int), q)
        risk = OutOfCoreRisk(
            *(phi, sample.points, sample.labels, sample.counts, encode, loss, Y.shape[1], 1.0),
            intercept=self.fit_intercept,
        )
        empty, message = np.empty((0, len(phi))), f"Nyström on {len(phi)} landmarks"
        whitened = WhitenedCoordinates(
            *(phi.points, empty, phi.factor, empty[:, 0], np.nan, True),
            "; ".join([message, *phi.report_remarks]),
        )
        solver = OutOfCoreNewton(self.tol, self.max_iter or 100, max_memory=self.max_memory)
        return LogisticProblem(kernel, solver, whitened, sample.classes, sample.labels, risk)

    def _bytes(self, solver: str, n: int, m: int, q: int) -> int:
        """Return the bytes a solver needs for m coordinates of n points and q classes."""
        outputs, precomputed_bytes = (1 if q == 2 else q), 8 * n * n * self._precomputed
        coordinate_bytes = 8 * n * m * (1 + self._extra_copies_of_F)
        if solver == "gradient":
            return coordinate_bytes + GradientDescent.workspace(n, m, outputs)
        landmark_bytes = 8 * n * m + precomputed_bytes if solver == "nystroem" else 0
        return coordinate_bytes + landmark_bytes + Newton.workspace(n, m, outputs)

    def _minimize(
        self,
        problem: LogisticProblem,
        risk: RegularisedRisk | OutOfCoreRisk,
        C: float,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Minimum:
        """Return the minimum at this C, centred over the classes.

        At the exact minimum, the functions of all classes sum to 0. Centring an approximate
        minimum reduces the norm and does not change any probability.
        """
        risk = replace(risk, shift=self._shift(C))
        return _centre_classes(
            problem.solver.minimize(risk, start, self._progress_callback, warn=False)
        )

    @staticmethod
    def _shift(C: float) -> float:
        """Return the ridge parameter 1 / C; raise an error if it overflows."""
        with np.errstate(over="ignore"):
            shift = float(np.divide(1.0, C))
        if not np.isfinite(shift):
            raise ValueError(f"C={float(C)!r} is too small, because 1 / C overflows; increase C")
        return shift

    def _make_report(self, problem: LogisticProblem, minimum: Minimum, C: float) -> Report:
        """Rescale the solver's report to the objective C sum_i v_i loss_i + |f|^2 / 2."""
        report, phi = minimum.report, problem.phi
        scales = {"objective": C, "gap": C, "decrement": float(np.sqrt(C))}
        certificate = {name: scales.get(name, 1) * v for name, v in report.certificate.items()}
        with np.errstate(over="ignore"):
            if minimum.sums is None:
                missed = phi.approximation_bound(C * minimum.dual)
            else:
                missed = minimum.sums.approximation_bound(C)
                residual = minimum.sums.relative_residual
                message = f"{phi.message}, relative trace error {residual:.1e}"
                phi = replace(phi, residual=residual, message=message)
        certificate["left out"] = missed
        status, messages = report.status, [phi.message, report.message]
        if not phi.approximate and missed > _MAX_RELATIVE_MISSED * certificate["objective"]:
            warning = (
                f"components of f lost to rounding errors of K could lower the objective of "
                f"{certificate['objective']:.3g} by up to {missed:.1e}; the usual cause is "
                f"features with very large or very different scales. Scale the features, or lower "
                f"C"
            )
            warn_caller(warning, ConvergenceWarning)
            messages.append(warning)
        if phi.approximate or len(messages) > 2:
            certificate["trace left"] = phi.residual
            status = Status.APPROXIMATE if status is Status.CONVERGED else status
        message = "; ".join(filter(None, messages))
        return replace(report, status=status, message=message, certificate=certificate)

    def _set_fitted_attributes(
        self, problem: LogisticProblem, minimum: Minimum, report: Report
    ) -> None:
        """Set the fitted attributes from the result of the minimisation."""
        self.kernel_, self.solver_, self.classes_ = problem.kernel, problem.solver, problem.classes
        A = problem.phi.coefficients(minimum.weights)
        f = Expansion(self.kernel_, problem.phi.points, A)
        self._set_expansion(f, minimum.intercept, flat=False)
        self.n_iter_, self.report_ = report.n_iter, report


@estimator()
class KernelLogisticRegression(LogisticEstimator):
    """Kernel logistic regression.

    Minimises  C sum_i v_i log-loss(y_i, f(x_i) + b) + |f|^2 / 2  over functions f in the RKHS of
    the kernel and intercepts b, with sample weights v_i.

    With two classes, y = +1 or -1, there is one f, log-loss = log(1 + exp(-y f)) and p(y = 1 | x) =
    1 / (1 + exp(-f(x) - b)). With more classes there is one f_c per class and log-loss = -log
    softmax(f)_y. All classes are fitted jointly (multinomial, not one versus rest), and the
    functions sum to 0. Parameters are named as in scikit-learn's LogisticRegression. With the
    linear kernel both models are equivalent: C multiplies the data term, and intercepts are not
    penalised.

    ============ ========================================================= ======================
    solver       method                                                    memory in bytes
    ============ ========================================================= ======================
    "newton"     exact: Newton's method in coordinates F with F F^T = K    about 40 n^2
    "exact"      synonym of "newton"
    "path"       Newton's method along a path of increasing C, ending at C about 40 n^2
    "nystroem"   approximate: Newton's method on `rank` landmarks          16 n rank + 24 rank^2
    "gradient"   exact: accelerated gradient descent; many cheap steps     about 24 n^2
    "auto"       "newton" for up to 5000 points that fit `max_memory`;
                 otherwise "nystroem", with a warning
    ============ ========================================================= ======================

    Parameters
    ----------
    C : float
        The weight of the data term relative to |f|^2 / 2; 1 / C is the ridge parameter. Smaller
        values regularise more. Search a logarithmic grid, for instance 10^-2 to 10^3;
        `KernelLogisticRegressionCV` does this faster than `GridSearchCV`.
    rank : int or None
        The number of landmarks of "nystroem". None means 1000, or all points if there are fewer
        ("auto" takes fewer if these do not fit into `max_memory`). The exact solvers do not use
        landmarks.
    warm_start : bool
        Whether to start from the solution of the previous fit, for instance with another C, which
        saves iterations.

    Attributes
    ----------
    classes_ : ndarray
        The class labels that have points of positive weight.
    expansion_ : Expansion
        The fitted functions: one for two classes, otherwise one per class.
    X_fit_ : points
        The points of the expansion (their indices for a precomputed kernel). These are the
        landmarks with "nystroem", otherwise training points that are linearly independent in the
        RKHS, which are fewer than all points if K is singular.
    dual_coef_ : ndarray of shape (len(X_fit_), n_functions)
        The coefficients of the expansion.
    intercept_ : ndarray of shape (n_functions,)
        The intercepts b.
    n_iter_ : int
        The number of Newton steps, that is, of factorisations of the Hessian. Each factorisation
        is reused for several search directions; ``report_.certificate["corrections"]`` counts the
        directions after the first.
    solver_, report_
        The solver and its report. ``report_.certificate`` contains the objective, the last Newton
        decrement, and the gap, an upper bound of the objective minus its minimum over the span of
        k(x, .) for x in `X_fit_`. "left out" bounds how much functions outside this span could
        lower the objective. They are missing because of rounding errors with an exact solver, and
        because of the landmarks with "nystroem".

    See Also
    --------
    KernelLogisticRegressionCV : Selects C by cross-validation.
    SVC : Labels only; sparse, for more points.
    GaussianProcessClassifier : Learns kernel parameters, and averages over the uncertainty of f.
    KernelMachineClassifier : Other losses and penalties.
    SparseKernelClassifier : The same loss with few learned expansion vectors.
    sklearn.linear_model.LogisticRegression : The linear case, for more columns and sparse data.

    References
    ----------
    Zhu and Hastie, "Kernel logistic regression and the import vector machine", Journal of
    Computational and Graphical Statistics 14, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.predict_proba([[5.9, 3.0, 5.0, 1.8]]).round(2)
    array([[0.  , 0.28, 0.72]])
    >>> model.report_.certificate["gap"] < 1e-8
    True
    """

    C: float = parameter("positive", default=1.0)
    _: KW_ONLY
    warm_start: bool = parameter("boolean", default=False)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights that multiply the losses. Points of weight 0 are ignored.

        Returns
        -------
        self : KernelLogisticRegression
            The fitted estimator.
        """
        previous_kind = self._input_kind()
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        problem = self._problem(sample)
        start = (
            self._start(problem, sample)
            if self.warm_start and previous_kind == self._input_kind()
            else None
        )
        minimum = self._minimize(problem, problem.risk, self.C, start)
        if minimum.report.status is Status.NOT_CONVERGED:
            warn_caller(minimum.report.message, ConvergenceWarning)
        self._set_fitted_attributes(problem, minimum, self._make_report(problem, minimum, self.C))
        self._log_progress(f"{self.n_iter_} steps: {self.report_.status.value}")
        return self

    def _input_kind(self) -> tuple[bool, int | None]:
        """Return whether the input is a precomputed matrix, and its number of features."""
        return self._precomputed, getattr(self, "n_features_in_", None)

    def _start(
        self, problem: LogisticProblem, sample: Sample
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return initial values: the solution of the previous fit, projected on the current span.

        The result is None if the previous fit had other classes or another type of input.
        """
        if not np.array_equal(getattr(self, "classes_", ()), problem.classes):
            return None
        if expects_precomputed_rows(self.kernel_) != self._precomputed:
            return None
        points = problem.phi.points if sample.values is None else sample.rows(problem.phi.points)
        return problem.phi.project(self.expansion_(points)), self.intercept_
