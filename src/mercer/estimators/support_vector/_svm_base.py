"""Base class of the support vector machines; subclasses define their dual problems.

    f = sum_i v_i k(x_i, .) + b,     where v_i is nonzero only for support vectors

The dual of each SVM is a quadratic program with box constraints; see `mercer.solvers.Dual`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from ..._core import Points, budget_in_bytes, check_budget, length, warn_caller
from ...expansion import Expansion, Primal
from ...gram import KernelRows, gram
from ...kernels import Kernel, Linear, Precomputed, as_index_kernel
from ...solvers import (
    MIN_SVM_CACHE_BYTES,
    BlockSMO,
    BoxInterior,
    CoreSet,
    Duals,
    DualSolutions,
    FallbackChain,
    Plan,
    Reports,
    SMOThenInteriorPoint,
    Status,
    StopReason,
    WhitenedCoordinates,
    choose_svm_solver,
    plan_svm,
)
from .._blockwise import require_landmarks
from .._kernel_estimator import (
    NO_TARGETS,
    ExpansionEstimator,
    KernelLike,
    LandmarkMixin,
    NamedKernelEstimator,
)
from .._parameters import (
    FittedPoints,
    estimator,
    exact_as_auto,
    fitted,
    parameter,
    predict_method,
    solver,
)
from .._plan_method import n_of
from .._training_sample import Sample
from ._svm_training import PairExpansion, SVMProblem, describe_scales, merge_reports

# The kernel is reported as indefinite if some k(x, x) + k(z, z) - 2 k(x, z) is negative and larger
# in magnitude than this fraction of the largest k(x, x); smaller ones may be rounding errors.
_NEGATIVE_CURVATURE = 1e-5


@estimator(kw_only=True)
class SupportVectorMachine(LandmarkMixin, NamedKernelEstimator, ExpansionEstimator):
    """Base class of SVC, NuSVC, SVR, NuSVR and OneClassSVM.

    Parameters
    ----------
    shrinking : bool
        Whether to leave out points whose coefficients are expected to stay at their bounds, which
        makes iterations faster. All points are checked again at the end, so the result has the same
        accuracy.
    tol : float
        The solver stops when the optimality conditions are violated by at most this, in units of f.
        The default is accurate enough for predictions; use 1e-5 to compare coefficients.
    cache_size : float or "auto"
        Size of the cache for rows of K in MB, within `max_memory`; "auto" means all of
        `max_memory`. A larger cache helps if the kernel is expensive to evaluate.  Cheap kernels
        are evaluated about as fast as the cache is read.
    max_iter : int
        Maximum number of solver steps for each pair of classes; -1 means a very high limit that
        only prevents endless loops. If the limit is reached, a warning gives advice on scaling.
    solver : {"auto", "exact", "smo", "primal", "nystroem"} or a solver
        "smo": exact, uses rows of K. "primal": exact, uses the columns of X, for a linear kernel.
        "nystroem": approximate, with f in the span of landmarks; use it for more than about 10^5
        points. "auto" and "exact" are the same here. They use "smo", except for a linear kernel and
        a dense X with more than 500 rows and fewer columns than rows. In that case they start with
        "smo" and switch to "primal" if "smo" takes longer than 1/7 of the time estimated for
        "primal", or, with up to 1600 points, longer than the whole of that time
        (`SMOThenInteriorPoint`). A solver object is a `BlockSMO` or, for a linear kernel, a
        `BoxInterior` of `mercer.solvers`, with its own tol and max_iter.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    coef0: float = 0.0
    tol: float = parameter("positive", default=1e-3)
    shrinking: bool = parameter("boolean", default=True)
    cache_size: float | str = parameter("positive", {"auto"}, default=200)
    max_iter: int = parameter(Interval(Integral, -1, None, closed="left"), default=-1)
    solver: Any = solver(
        *("smo", "primal", "nystroem"), given=[BlockSMO, BoxInterior], default="auto"
    )
    verbose: int = False

    _vector_validation: ClassVar[dict[str, Any]] = {
        "dtype": np.float64,
        "order": "C",
        "accept_sparse": "csr",
        "accept_large_sparse": False,
    }
    _target_validation: ClassVar[dict[str, Any]] = {"y_numeric": True}

    support_: np.ndarray = fitted(per_point=True)
    support_vectors_: FittedPoints = fitted(per_point=True)
    n_support_: np.ndarray = fitted(per_point=True)
    dual_coef_: np.ndarray = fitted(per_point=True)
    at_bound_: np.ndarray = fitted(per_point=True)
    intercept_: np.ndarray = fitted()
    n_iter_: int | np.ndarray = fitted()
    fit_status_: int = fitted()
    reports_: Annotated[Any, Reports | list] = fitted()  # a list in files of earlier versions
    shape_fit_: tuple = fitted()
    gamma_: Any = fitted()
    solver_: Any = fitted()
    _given_expansion: Annotated[Any, Expansion | Primal | None] = fitted()
    _sparse: bool = fitted()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        return tags

    # ------------------------------------------------------------------ training data

    def _gathers_blocks(self) -> bool:
        if self._uses_core_set:
            return False
        # The interior point method has a variable for each point, and support vectors are stored.
        core_set = ", or a core set: set solver='core-set'" if self._has_core_set else ""
        require_landmarks(self, others=core_set)
        return True

    @property
    def _uses_core_set(self) -> bool:
        """Whether the parameter `solver` requests a core set."""
        is_name = isinstance(self.solver, str) and self.solver == "core-set"
        return is_name or isinstance(self.solver, CoreSet)

    _has_core_set: ClassVar[bool] = False  # whether the solver "core-set" is supported

    @property
    def _squared(self) -> bool:
        """Whether the loss is squared."""
        return False

    def _training_sample(
        self,
        X: Points,
        y: Any = NO_TARGETS,
        sample_weight: ArrayLike | None = None,
        *,
        labels: bool = False,
    ) -> Sample:
        """Check the data of a fit and return them as a sample."""
        if self._precomputed:
            if sp.issparse(X):
                raise TypeError(
                    "Sparse precomputed kernels are not supported, because reading their rows is "
                    "slow and few kernel matrices are sparse; use X.toarray()"
                )
            if len(shape := np.shape(X)) == 2 and shape[0] != shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be a square matrix. Input is a {shape[0]}x{shape[1]} "
                    f"matrix; fit needs the kernel values of all pairs of training points"
                )
        sample = self._sample(X, y, sample_weight, labels=labels, copy=False)
        if sample.values is None and self._expects_matrix(X):
            _check_size(sample.given)
        return sample

    def _check_weights(self, sample_weight: ArrayLike | None, X: Points) -> np.ndarray:
        """Check the weights and set negative ones to 0; error messages are those of LIBSVM."""
        w, n = np.asarray(sample_weight, dtype=float), length(X)
        w = np.full(n, float(w)) if w.ndim == 0 else w
        if w.shape != (n,):
            raise ValueError(
                f"sample_weight and X have incompatible shapes: {w.shape} and {n} points"
            )
        if not np.all(np.isfinite(w)):
            raise ValueError("sample_weight contains NaN or infinity")
        if not np.any(w > 0):
            raise ValueError(
                f"Invalid input - all samples have zero or negative weights. The largest is "
                f"{w.max():g}, and only points of positive weight are used"
            )
        return np.maximum(w, 0.0)

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # order 1 is enough, as the coefficients have a fixed sum (Schoelkopf 2000)

    def _problem(self, sample: Sample) -> SVMProblem:
        """Choose the solver, and return the training problem in the form that it requires."""
        kernel = sample.resolve(self._make_kernel(self.gamma))
        name = exact_as_auto(self.solver)
        if isinstance(name, BlockSMO):
            name = "smo"
        elif isinstance(name, BoxInterior):
            name = "primal"
        elif isinstance(name, CoreSet):
            name = "core-set"
        else:
            name = choose_svm_solver(
                *(kernel, sample.points, name, sample.labels, self.max_memory), self._squared
            )
        if self._squared and name not in ("smo", "core-set"):
            raise ValueError(
                f"loss='squared_hinge' needs solver='smo' or 'core-set', but solver={name!r} is "
                f"for the hinge loss. For landmarks, use KernelMachineClassifier("
                f"'squared_hinge', solver='nystroem')"
            )
        # If SMO needs too much memory, the interior point method may still be possible.
        chain = FallbackChain(["either", "primal"] if name == "either" else [name])
        return chain.run(lambda name: self._problem_for(name, kernel, sample))

    def _plan(self, sample: Sample) -> Plan:
        n, labels = len(sample), sample.labels
        spec: Any = exact_as_auto(self.solver)
        if not isinstance(spec, str):
            names = {BlockSMO: "smo", BoxInterior: "primal", CoreSet: "core-set"}
            spec = names[type(spec)]
        classes = "" if labels is None else f", {n_of(len(sample.classes), 'class')}"
        return plan_svm(
            f"{type(self).__name__} of {n} points{classes}",
            *(self._planned_kernel(sample), sample.points, spec, self._chosen),
            labels=labels,
            regression=sample.targets is not None,
            cache_bytes=None if self.cache_size == "auto" else int(self.cache_size * 2**20),
            max_memory=self.max_memory,
            squared=self._squared,
            has_core_set=self._has_core_set,
        )

    def _problem_for(self, name: str, kernel: Kernel, sample: Sample) -> SVMProblem:
        """Return the training problem for the solver with this name."""
        steps = 200 if self.max_iter < 0 else max(self.max_iter, 1)
        interior_point = BoxInterior(self.tol, steps, max_memory=self.max_memory)
        smo = BlockSMO(self.tol, self.max_iter, self.shrinking)
        user_solver = None if isinstance(self.solver, str) else self.solver
        values = sample.evaluated(kernel, self.max_memory)
        if name == "core-set":
            core_set = CoreSet(self.tol, self.max_iter, self.max_memory)
            return SVMProblem(sample, kernel, user_solver or core_set, values)
        if name == "smo":
            rows, sample = self._kernel_rows(values, sample)
            return SVMProblem(sample, kernel, user_solver or smo, rows)
        if name == "either":  # SMO needs few rows of K until the solver switches
            n, m = sample.points.shape
            reserved = interior_point.workspace(n, m, 2 * n)
            max_cache = max(sample.points.nbytes, MIN_SVM_CACHE_BYTES)
            rows, sample = self._kernel_rows(values, sample, max_cache, reserved)
            relay = SMOThenInteriorPoint(smo, interior_point)
            return SVMProblem(sample, kernel, relay, (rows, sample.points))
        if name == "primal":
            F = self._columns(kernel, sample.points)
            return SVMProblem(sample, kernel, user_solver or interior_point, F)
        phi = WhitenedCoordinates.nystroem(
            values, sample.points, self._chosen, max_memory=self.max_memory
        )
        remaining = budget_in_bytes(self.max_memory) - phi.F.nbytes - phi.factor.nbytes
        interior_point = replace(interior_point, max_memory=max(1, remaining))
        return SVMProblem(sample, kernel, interior_point, phi.F, phi)

    def _shifted_matrix(self, values: Kernel, sample: Sample) -> tuple[Kernel, Points]:
        """Return K plus 1 / (2 C) on its diagonal as a kernel, and the indices as its points."""
        n, C = len(sample), self._penalty or 1.0
        what = f"K of {n} points, which solver='smo' stores for loss='squared_hinge',"
        check_budget(24 * n * n, self.max_memory, f"{what} without solver='core-set'")
        K = np.array(gram(values, sample.points).to_array())
        K[np.diag_indices(n)] += 0.5 / (C * sample.counts)
        return as_index_kernel(Precomputed(), K)

    def _kernel_rows(
        self, values: Kernel, sample: Sample, max_cache: int | None = None, reserved: int = 0
    ) -> tuple[KernelRows, Sample]:
        """Return a cache for rows of K, and the sample, sorted by class if there are several pairs.

        The cache has at most `max_cache` bytes, and `reserved` bytes of the memory budget are left.
        """
        sizes = None
        if sample.classes is not None and len(sample.classes) > 2:
            sizes = np.bincount(sample.labels).tolist()
            sample = sample.take(np.argsort(sample.labels, kind="stable"))
        budget = budget_in_bytes(self.max_memory)
        cache = None if self.cache_size == "auto" else int(self.cache_size * 2**20)
        if max_cache is not None:
            cache = min(cache or budget, max_cache)
        available = max(1, budget - reserved)
        points = sample.points
        if self._squared:
            values, points = self._shifted_matrix(values, sample)
        rows = KernelRows(values, points, sizes=sizes, cache_bytes=cache, max_memory=available)
        return rows, sample

    def _columns(self, kernel: Kernel, points: Points) -> np.ndarray:
        """Return the columns of X, which are the features of a linear kernel."""
        if not isinstance(kernel, Linear):
            raise ValueError(
                f"solver='primal' needs a linear kernel, because it uses the columns of X as "
                f"features; the kernel is {kernel}. Use solver='auto' or 'nystroem'"
            )
        if sp.issparse(points):
            what = f"a dense X of {points.shape[0]} rows and {points.shape[1]} columns"
            check_budget(8 * points.shape[0] * points.shape[1], self.max_memory, what)
            return points.toarray()
        return points

    # ------------------------------------------------------------------ fitted attributes

    def _solve_and_set(self, problem: SVMProblem, duals: Duals, note: str = "") -> DualSolutions:
        """Solve the dual problem of each pair, set the fitted attributes, return the solutions."""
        counts_before = problem.counts
        solutions = problem.minimize_all(duals, self._progress_callback)
        self._set_fit(problem, solutions, counts_before, note)
        return solutions

    def _fit_core_sets(
        self,
        problem: SVMProblem,
        duals: Callable[[SVMProblem], Duals],
        total: float | None = None,
    ) -> DualSolutions:
        """Solve the problem of each pair on a core set, set the fitted attributes."""
        C, log = self._penalty or 1.0, self._progress_callback
        problem, solutions = problem.minimize_core_sets(C, self._squared, total, duals, log)
        self._set_fit(problem, solutions, problem.counts)
        return solutions

    def _set_fit(
        self,
        problem: SVMProblem,
        solutions: DualSolutions,
        counts_before: tuple[int, int],
        note: str = "",
    ) -> None:
        """Set the fitted attributes."""
        self._set_prediction_attributes(problem, solutions, self._margin_divisors(solutions))
        remark = self._set_extra_attributes(problem, solutions)
        self._set_report(problem, solutions, counts_before, note or remark)

    def _margin_divisors(self, solutions: DualSolutions) -> np.ndarray:
        """Return the number by which f and b of each pair are divided to put the margin at +-1."""
        return np.ones(len(solutions))

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        """Set the fitted attributes that depend on the type of SVM; return a remark."""
        self.n_iter_ = int(solutions.reports.n_iter[0])
        return ""

    @property
    def _penalty(self) -> float | None:
        """The parameter C, or None if the SVM does not have one."""
        return None

    def _set_prediction_attributes(
        self, problem: SVMProblem, solutions: DualSolutions, divisors: np.ndarray
    ) -> None:
        """Set the attributes used for prediction; divide f and b of each pair by its divisor."""
        sample, pairs = problem.sample, problem.pairs
        D, is_at_bound = np.zeros((len(sample), pairs.q - 1)), np.zeros(len(sample), dtype=bool)
        members, columns, _ = pairs.all_members
        with np.errstate(divide="ignore", invalid="ignore"):
            D[members, columns] = solutions.coefficients / np.repeat(divisors, pairs.sizes)
            is_at_bound[members[solutions.at_bound]] = True
            intercepts = (
                -solutions.multipliers.sum(axis=1) / solutions.multipliers.shape[1] / divisors
            )
        if not (np.isfinite(D).all() and np.isfinite(intercepts).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain "
                "large values; scale the features"
                + ("" if self._penalty is None else ", or choose a smaller C")
            )
        support = np.flatnonzero((D != 0.0).any(axis=1))
        support = support[pairs.labels[support].argsort(kind="stable")]
        self.kernel_, self.solver_ = problem.kernel, problem.solver
        self.gamma_ = self._resolved_gamma(self.kernel_)
        self._sparse = sp.issparse(sample.given)
        X = sample.given if sample.values is None else sample.values.matrix
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (length(X),)
        self.support_ = sample.kept[support].astype(np.int32)
        is_precomputed = sample.values is not None
        self.support_vectors_ = np.empty((0, 0)) if is_precomputed else sample.rows(self.support_)
        n_classes = 1 if sample.classes is None else pairs.q
        self.n_support_ = np.bincount(pairs.labels[support], minlength=n_classes).astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(D[support].T)
        self.at_bound_ = is_at_bound[support]
        self.intercept_ = intercepts
        self._given_expansion = None
        if problem.phi is not None:
            A = problem.phi.coefficients(problem.phi.F.T @ pairs.functions(D))
            self.expansion_ = Expansion(self.kernel_, problem.phi.points, A)

    def _set_report(
        self,
        problem: SVMProblem,
        solutions: DualSolutions,
        counts_before: tuple[int, int],
        note: str,
    ) -> None:
        """Set the report; warn if the solver did not converge or the kernel is indefinite."""
        self.reports_ = solutions.reports
        self.report_ = merge_reports(problem, self.reports_, counts_before, note)
        self.fit_status_ = int(self.report_.status is Status.NOT_CONVERGED)
        certificate, pairs = self.report_.certificate, len(solutions)
        if self.verbose:
            self._log_progress(
                f"{self.report_.n_iter} steps, {self.report_.seconds:.1f} s: gap "
                f"{certificate['gap']:.2e}, violation {certificate['violation']:.2e}, "
                f"{len(self.support_)} support vectors: {self.report_.status.value}"
            )
        if self.fit_status_:
            p = int(np.argmax(self.reports_.residual))
            worst, stop, has_C = self.reports_[p], solutions.stops[p], self._penalty is not None
            failed = len(self.reports_.failed)
            where = f", in {failed} of {pairs} pairs of classes" if pairs > 1 else ""
            text = (
                "The solver cannot make progress, because further improvements are below rounding "
                "errors; increase tol, or scale down weights or features"
                if stop is StopReason.ROUNDING
                else f"Solver terminated early (max_iter={problem.solver.max_iter}).  Consider "
                f"pre-processing your data with StandardScaler or MinMaxScaler"
            )
            text += (
                f". After {worst.n_iter} steps the optimality conditions are violated by "
                f"{worst.residual:.2e}, and tol is {problem.solver.tol:g}{where}"
            )
            text += f"; {worst.message}" if stop is StopReason.GIVEN_UP else ""
            advice = [describe_scales(problem.sample.given, has_C)]
            if self._penalty == np.inf:
                advice.append("C is infinite, so there is no solution if the classes overlap")
            if isinstance(problem.kernel, Linear) and isinstance(problem.solver, BlockSMO):
                advice.append("solver='primal' is much less sensitive to the scale of the columns")
            if isinstance(problem.solver, CoreSet):
                text, advice = f"The core set did not converge: it {worst.message}{where}", []
            warn_caller("; ".join(filter(None, [text, *advice])), ConvergenceWarning)
        largest = problem.largest
        already_warned = bool(problem.sample.warned)  # a warning about the kernel was issued
        if certificate["curvature"] < -_NEGATIVE_CURVATURE * largest and not already_warned:
            curvatures = self.reports_.certificate["curvature"]
            n_indefinite = np.count_nonzero(curvatures < -_NEGATIVE_CURVATURE * largest)
            warn_caller(
                f"the kernel is not positive semidefinite: k(x, x) + k(z, z) - 2 k(x, z) is as low "
                f"as {certificate['curvature']:.3g}, in {n_indefinite} of {pairs} problems, with "
                f"k(x, x) up to {largest:.3g}; the result is a stationary point, and other solvers "
                f"may find a different one. Choose a Mercer kernel to obtain the minimum"
            )

    # ------------------------------------------------------------------ predictions

    @property  # type: ignore[misc]
    def expansion_(self) -> Expansion:
        """The functions f, without intercepts.

        They are computed from the current `dual_coef_`, unless the model uses landmarks or was
        compressed.
        """
        if self._given_expansion is not None:
            return self._given_expansion
        if self.dual_coef_.shape[1] != self.n_support_.sum():
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: there are "
                f"{self.dual_coef_.shape[1]} support vectors, but n_support_ counts "
                f"{self.n_support_.sum()}"
            )
        is_precomputed = self._is_precomputed_kernel(self.kernel_)
        points = self.support_ if is_precomputed else self.support_vectors_
        return PairExpansion(self.kernel_, points, self.dual_coef_.T, self.n_support_, self)

    @expansion_.setter
    def expansion_(self, f: Expansion) -> None:
        self._given_expansion = f

    @predict_method
    def _values(self, X: Points) -> np.ndarray:
        """Return f(x) + b for each point, shape (n, n_functions)."""
        X = self._check_new(X)
        return self.expansion_(X) + self.intercept_

    def _check_new(self, X: Points) -> Points:
        X = super()._check_new(X)
        if sp.issparse(X) and not self._sparse and not callable(self.kernel):
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data; use "
                f"X.toarray(), or fit on sparse points"
            )
        return X

    @property
    def coef_(self) -> np.ndarray:
        """The weights w of f(x) = <w, x> + b, one row for each f; only for a linear kernel."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        w = self._weights()
        w.flags.writeable = False  # read-only, because changes would not affect predictions
        return w

    def _weights(self) -> np.ndarray:
        """Return the weights of a linear kernel, shape (n_functions, n_features)."""
        f = self.expansion_
        if isinstance(f, Primal):
            return f.weights.T
        return np.asarray((f.points.T @ f.coefficients).T)

    # ------------------------------------------------------------------ private scikit-learn names
    # Code written for scikit-learn (its tests, converters to other formats) also reads and sets
    # private attributes of its SVMs, with the sign convention of LIBSVM: for two classes, f is
    # positive for the first class.

    @property
    def _dual_coef_(self) -> np.ndarray:
        """The coefficients with the sign convention of LIBSVM."""
        return -self.dual_coef_ if self._sign_differs else self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, value: np.ndarray) -> None:
        self.dual_coef_ = -value if self._sign_differs else value

    @property
    def _intercept_(self) -> np.ndarray:
        """The intercepts with the sign convention of LIBSVM."""
        return -self.intercept_ if self._sign_differs else self.intercept_

    @property
    def _sign_differs(self) -> bool:
        """Whether f has the opposite sign of that in LIBSVM."""
        return False

    @property
    def _n_support(self) -> np.ndarray:
        return self.n_support_

    @property
    def _gamma(self) -> float | str | None:
        return self.gamma_


def _check_size(X: Points) -> None:
    """Raise an error if the squares of the features overflow."""
    data = X.data if sp.issparse(X) else X
    if not (isinstance(data, np.ndarray) and data.dtype.kind == "f"):
        return
    with np.errstate(over="ignore"):
        total = float(np.vdot(data, data))
    if np.isinf(total):  # NaN is a missing value, which some kernels support
        raise ValueError(
            f"The dual coefficients or intercepts are not finite: features are as large as "
            f"{np.nanmax(np.abs(data)):.3g}, and their squares overflow. Scale the features"
        )
