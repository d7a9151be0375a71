"""Base class of the support vector machines; subclasses define their dual problems.

    f = sum_i v_i k(x_i, .) + b,     where v_i is nonzero only for support vectors

The dual of each SVM is a quadratic program with box constraints; see `mercer.solvers.Dual`.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._core import MemoryBudgetError, budget_in_bytes, check_budget, length, take, warn_caller
from ...blocks import Blocks
from ...expansion import Expansion, Primal, cross_kernel_cached
from ...gram import KernelRows
from ...kernels import Kernel, Linear
from ...solvers import (
    BlockSMO,
    BoxInterior,
    Duals,
    DualSolutions,
    Report,
    SMOThenInteriorPoint,
    Status,
    WhitenedCoordinates,
    choose_linear_svm_solver,
)
from .._blockwise import gather_blocks, require_landmarks
from .._kernel_estimator import NO_TARGETS, KernelLike, LandmarkMixin, NamedKernelEstimator
from .._parameters import (
    POSITIVE,
    estimator,
    exact_as_auto,
    fitted_attribute,
    parameter,
    predict_method,
    solver,
)
from .._training_sample import Sample
from ._one_vs_one import MAX_STORED_ENTRIES, expansion_of_pairs, values_of_pairs
from ._svm_training import SVMProblem, describe_scales, merge_reports

__all__ = ["SupportVectorMachine"]


# The kernel is reported as indefinite if some k(x, x) + k(z, z) - 2 k(x, z) is negative and larger
# in magnitude than this fraction of the largest k(x, x); smaller ones may be rounding errors.
_NEGATIVE_CURVATURE = 1e-5
# If the solver may switch from SMO to the interior point method, the cache for rows of K is limited
# to this many bytes, or to the size of X if that is larger.
_MIN_CACHE_BYTES = 2**24


@estimator(kw_only=True)
class SupportVectorMachine(LandmarkMixin, NamedKernelEstimator):
    """Base class of SVC, NuSVC, SVR, NuSVR and OneClassSVM.

    Parameters
    ----------
    shrinking : bool
        Whether to leave out points whose coefficients are expected to stay at their bounds, which
        makes iterations faster.  All points are checked again at the end.
    tol : float
        The solver stops when the optimality conditions are violated by at most this, in units of f.
    cache_size : float or "auto"
        Size of the cache for rows of K in MB, within `max_memory`; "auto" means all of
        `max_memory`. A larger cache helps if the kernel is expensive to evaluate.  Cheap kernels
        are evaluated about as fast as the cache is read.
    max_iter : int
        Maximum number of solver steps for each pair of classes; -1 means a very high limit that
        only prevents endless loops.  If the limit is reached, a warning gives advice on scaling.
    solver : {"auto", "exact", "smo", "primal", "nystroem"} or a solver
        "smo": exact, uses rows of K.  "primal": exact, uses the columns of X, for a linear kernel.
        "nystroem": approximate, with f in the span of landmarks, for large numbers of points.
        "auto" and "exact" are the same here.  They use "smo", except for a linear kernel and a
        dense X with more than 500 rows and fewer columns than rows.  In that case they start with
        "smo" and switch to "primal" if "smo" takes longer than 1/7 of the time estimated for
        "primal", or, with up to 1600 points, longer than the whole of that time
        (`SMOThenInteriorPoint`).  A solver object is a `BlockSMO` or, for a linear kernel, a
        `BoxInterior` of `mercer.solvers`, with its own tol and max_iter.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    coef0: float = 0.0
    tol: float = parameter(POSITIVE, default=1e-3)
    shrinking: bool = parameter("boolean", default=True)
    cache_size: float | str = parameter(POSITIVE, StrOptions({"auto"}), default=200)
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

    n_support_: np.ndarray = fitted_attribute()
    classes_: np.ndarray = fitted_attribute()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        return tags

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Load the points of all blocks into memory and fit to them with solver="nystroem".

        The points must fit in memory, because the interior point method has a variable for each
        point, and support vectors are stored.
        """
        require_landmarks(self)
        self.fit(*gather_blocks(self, X, y, sample_weight))

    # ------------------------------------------------------------------ training data

    def _sample_of(
        self, X: Any, y: Any = NO_TARGETS, sample_weight: Any = None, *, labels: bool = False
    ) -> tuple[Sample, Any]:
        """Check the data; return the points of positive weight, and the targets of all points."""
        if self._precomputed and sp.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported, because reading their rows is slow "
                "and few kernel matrices are sparse; use X.toarray()"
            )
        supervised = y is not NO_TARGETS
        checked = self._check_points(X, y, reset=True, supervised=supervised, labels=labels)
        X, y = checked if supervised else (checked, None)
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} "
                f"matrix; fit needs the kernel values of all pairs of training points"
            )
        if not self._precomputed and self._expects_matrix(X):
            _check_size(X)
        weights = None if sample_weight is None else _check_weights(sample_weight, length(X))
        return Sample.of(
            X, weights, precomputed=self._precomputed, order=self._required_cpd_order
        ), y

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # order 1 is enough, as the coefficients have a fixed sum (Schoelkopf 2000)

    def _problem(self, sample: Sample) -> SVMProblem:
        """Choose the solver, and return the training problem in the form that it requires."""
        kernel: Kernel = sample.resolve(self._make_kernel(self.gamma))
        values, points = sample.evaluated(kernel, self.max_memory), sample.points
        name, user_solver = exact_as_auto(self.solver), None
        if not isinstance(name, str):
            name, user_solver = "smo" if isinstance(name, BlockSMO) else "primal", name
        elif name == "auto":
            name = "smo"
            if isinstance(kernel, Linear) and isinstance(points, np.ndarray):
                n, m = points.shape
                largest = n  # number of points of the largest two-class problem
                if sample.classes is not None:
                    largest = int(np.sort(np.bincount(sample.labels))[-2:].sum())
                name = choose_linear_svm_solver(n, m, largest, self.max_memory)
        steps = 200 if self.max_iter < 0 else max(self.max_iter, 1)
        interior_point = BoxInterior(self.tol, steps, max_memory=self.max_memory)
        if name in ("smo", "either"):
            is_multiclass = sample.classes is not None and len(sample.classes) > 2
            cache = None if self.cache_size == "auto" else int(self.cache_size * 2**20)
            budget = budget_in_bytes(self.max_memory)
            if name == "either":  # SMO needs few rows of K until the solver switches
                cache = min(cache or budget, max(points.nbytes, _MIN_CACHE_BYTES))
                budget -= interior_point.workspace(n, m, 2 * n)
            solver: Any = user_solver or BlockSMO(self.tol, self.max_iter, self.shrinking)
            try:
                rows = KernelRows(
                    values,
                    points,
                    sizes=np.bincount(sample.labels).tolist() if is_multiclass else None,
                    cache_bytes=cache,
                    max_memory=max(1, budget),
                )
            except MemoryBudgetError:
                if name == "smo":
                    raise
                name = "primal"  # this solver needs less memory
            else:
                if name == "smo":
                    return SVMProblem(sample, kernel, solver, rows)
                return SVMProblem(
                    sample,
                    kernel,
                    SMOThenInteriorPoint(solver, interior_point),
                    rows,
                    columns=points,
                )
        solver = user_solver or interior_point
        if name == "primal":
            if not isinstance(kernel, Linear):
                raise ValueError(
                    f"solver='primal' needs a linear kernel, because it uses the columns of X as "
                    f"features; the kernel is {kernel}. Use solver='auto' or 'nystroem'"
                )
            if sp.issparse(points):
                what = f"a dense X of {points.shape[0]} rows and {points.shape[1]} columns"
                check_budget(8 * points.shape[0] * points.shape[1], self.max_memory, what)
                points = points.toarray()
            return SVMProblem(sample, kernel, solver, points)
        phi = WhitenedCoordinates.nystroem(values, points, self._chosen, max_memory=self.max_memory)
        remaining = budget_in_bytes(self.max_memory) - phi.F.nbytes - phi.factor.nbytes
        return SVMProblem(sample, kernel, replace(solver, max_memory=max(1, remaining)), phi.F, phi)

    # ------------------------------------------------------------------ fitted attributes

    def _solve_and_set(self, problem: SVMProblem, duals: Duals, note: str = "") -> DualSolutions:
        """Solve the dual problem of each pair, set the fitted attributes, return the solutions."""
        counts_before = problem.counts
        solutions = problem.minimize_all(duals, self._log_progress if self.verbose else None)
        self._set_prediction_attributes(problem, solutions, self._margin_divisors(solutions))
        self._set_report(
            problem,
            solutions,
            counts_before,
            note or self._set_extra_attributes(problem, solutions),
        )
        return solutions

    def _margin_divisors(self, solutions: DualSolutions) -> np.ndarray:
        """Return the number by which f and b of each pair are divided to put the margin at +-1."""
        return np.ones(len(solutions))

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        """Set additional fitted attributes of a subclass; return a remark for the report."""
        return ""

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
                "large values; scale the features" + (", or choose a smaller C" * self._has_C)
            )
        support = np.flatnonzero((D != 0.0).any(axis=1))
        support = support[pairs.labels[support].argsort(kind="stable")]
        steps = solutions.reports.n_iter.astype(np.int32)
        n_classes = 1
        self.n_iter_: Any = int(steps[0])
        if sample.classes is not None:
            n_classes, self.n_iter_ = pairs.q, steps
            self.classes_, self.class_weight_ = sample.classes, problem.class_weights
        self.kernel_, self.solver_ = problem.kernel, problem.solver
        self.gamma_ = self._resolved_gamma(self.kernel_)
        self._sparse = sp.issparse(sample.given)
        X = sample.given if sample.values is None else sample.values.matrix
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (length(X),)
        self.support_ = sample.kept[support].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else take(X, self.support_)
        self.n_support_ = np.bincount(pairs.labels[support], minlength=n_classes).astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(D[support].T)
        self.at_bound_ = is_at_bound[support]
        self.intercept_ = intercepts
        self._given_expansion: Expansion | None = None
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
        self.report_: Report = merge_reports(problem, self.reports_, counts_before, note)
        self.fit_status_ = int(self.report_.status is Status.NOT_CONVERGED)
        certificate, pairs = self.report_.certificate, len(solutions)
        if self.verbose:
            self._log_progress(
                f"{self.report_.n_iter} steps, {self.report_.seconds:.1f} s: gap "
                f"{certificate['gap']:.2e}, violation {certificate['violation']:.2e}, "
                f"{len(self.support_)} support vectors: {self.report_.status.value}"
            )
        if self.fit_status_:
            worst = self.reports_[int(np.argmax(self.reports_.residual))]
            failed = len(self.reports_.failed)
            where = f", in {failed} of {pairs} pairs of classes" if pairs > 1 else ""
            is_stalled = isinstance(problem.solver, BlockSMO) and "max_iter" not in worst.message
            text = (
                "The solver cannot make progress, because further improvements are below rounding "
                "errors; increase tol, or scale down weights or features"
                if is_stalled
                else f"Solver terminated early (max_iter={problem.solver.max_iter}).  Consider "
                f"pre-processing your data with StandardScaler or MinMaxScaler"
            )
            text += (
                f". After {worst.n_iter} steps the optimality conditions are violated by "
                f"{worst.residual:.2e}, and tol is {problem.solver.tol:g}{where}"
            )
            text += f"; {worst.message}" if "given up" in worst.message else ""
            advice = [describe_scales(problem.sample.given, self._has_C)]
            if self._has_C and np.isinf(self.C):
                advice.append("C is infinite, so there is no solution if the classes overlap")
            if isinstance(problem.kernel, Linear) and isinstance(problem.solver, BlockSMO):
                advice.append("solver='primal' is much less sensitive to the scale of the columns")
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

    @property
    def _has_C(self) -> bool:
        return hasattr(self, "C")

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
        points = self.support_ if self._precomputed else self.support_vectors_
        return expansion_of_pairs(self.kernel_, points, self.dual_coef_, self.n_support_)

    @expansion_.setter
    def expansion_(self, f: Expansion) -> None:
        self._given_expansion = f

    @predict_method
    def _values(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point, shape (n, n_functions)."""
        X = self._check_prediction_points(X)
        if isinstance(self.kernel_, Linear):
            return np.asarray(X @ self._weights().T) + self.intercept_
        if self._fits_in_one_block(X):
            K = cross_kernel_cached(self, self.kernel_, X, self.support_vectors_)
            return values_of_pairs(K, self.dual_coef_, self.n_support_) + self.intercept_
        return self.expansion_(X) + self.intercept_

    def _fits_in_one_block(self, X: Any) -> bool:
        """Return True if X is dense and k(X, support vectors) is small enough to be stored."""
        is_dual, dual = self._given_expansion is None, self.__dict__.get("dual_coef_")
        if not is_dual or dual is None or self._precomputed or not self.kernel_.on_vectors:
            return False
        V = self.support_vectors_
        dense = isinstance(X, np.ndarray) and isinstance(V, np.ndarray)
        is_consistent = dense and len(V) == dual.shape[1] == self.n_support_.sum()
        return is_consistent and len(V) > 0 and len(X) * len(V) <= MAX_STORED_ENTRIES

    def _check_prediction_points(self, X: Any) -> Any:
        """Check points for a prediction and return them."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
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

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("support_", "support_vectors_", "n_support_", "dual_coef_", "at_bound_"):
            self.__dict__.pop(part, None)  # a compressed model has no support vectors

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
        """Whether f has the opposite sign of that in LIBSVM, which is the case for two classes."""
        return len(getattr(self, "classes_", ())) == 2

    @property
    def _n_support(self) -> np.ndarray:
        return self.n_support_

    @property
    def _gamma(self) -> Any:
        return self.gamma_


def _check_size(X: Any) -> None:
    """Raise an error if the squares of the features overflow."""
    data = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore"):
        total = float(np.vdot(data, data))
    if not np.isfinite(total):
        raise ValueError(
            f"The dual coefficients or intercepts are not finite: features are as large as "
            f"{np.abs(data).max():.3g}, and their squares overflow. Scale the features"
        )


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Check the weights and set negative ones to 0; error messages are those of LIBSVM."""
    w = np.asarray(sample_weight, dtype=float)
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight and X have incompatible shapes: {w.shape} and {n} points")
    if not np.all(np.isfinite(w)):
        raise ValueError("sample_weight contains NaN or infinity")
    if not np.any(w > 0):
        raise ValueError(
            f"Invalid input - all samples have zero or negative weights. The largest is "
            f"{w.max():g}, and only points of positive weight are used"
        )
    return np.maximum(w, 0.0)
