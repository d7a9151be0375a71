"""What the five support vector machines share: everything but their duals.

    f = sum_i v_i k(x_i, .) + b,     v_i = 0 but for the support vectors

The dual of each is a quadratic program in a box; see `mercer.solvers.Dual`.
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

from ..._errors import MemoryBudgetError, warn_caller
from ..._points import length, take
from ..._runtime import budget_in_bytes, check_budget
from ...blocks import Blocks
from ...expansion import Expansion, Primal, near
from ...gram import KernelRows
from ...kernels import Kernel, Linear
from ...solvers import (
    BlockSMO,
    BoxInterior,
    Duals,
    DualSolutions,
    Relay,
    Report,
    Status,
    Whitened,
    linear_machine,
)
from .._base import NO_TARGETS, KernelLike, Landmarked, NamedKernel
from .._in_blocks import gathered, require_landmarks
from .._parameters import POSITIVE, by_size, estimator, learned, parameter, solver, threaded
from .._sample import Sample
from ._pairs import FEW_ENTRIES, expansion_of_pairs, values_of_pairs
from ._problem import Problem, merged, scales

__all__ = ["SupportVectorMachine"]


# Rounding does not explain a negative curvature of more than this times the largest k(x, x).
_NEGATIVE_CURVATURE = 1e-5
_LEAST_CACHE = 2**24  # bytes for rows of K beside the columns of X


@estimator(kw_only=True)
class SupportVectorMachine(Landmarked, NamedKernel):
    """A machine whose f is an expansion in support vectors; see SVC.

    Parameters
    ----------
    shrinking : bool
        Leave out points that will stay where they are, and look at all of them again at the end.
    tol : float
        How much the conditions of a minimum may be violated, in units of f.
    cache_size : float or "auto"
        A limit for the rows of K that are kept, in MB, within `max_memory`; "auto" for all of that.
        More helps where an entry of K is expensive; where it is not, rows are evaluated as fast as
        memory is found for them.
    max_iter : int
        Steps of the solver, for each pair of classes; -1 for a limit that only guards against
        searches without end.  Their end warns, and says what to scale.
    solver : {"auto", "exact", "smo", "primal", "nystroem"} or a solver
        "smo": exact, from rows of K.  "primal": exact, from the columns of X, for a linear kernel.
        "nystroem": f in the span of landmarks, for more points than exact solvers can serve.
        "auto" and "exact" are the same here: "smo" and, for more than 500 dense vectors, more than
        they have columns, and a linear kernel, "primal" as soon as "smo" has cost a seventh of what
        that would, or for up to 1600 as much (a `Relay`).  Or a `BlockSMO` or, for a linear kernel,
        a `BoxInterior` of `mercer.solvers`, with a tol and max_iter of its own.
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

    n_support_: np.ndarray = learned()
    classes_: np.ndarray = learned()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        return tags

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Gather the points and fit to these, if their features on landmarks fit the budget.

        An interior point has a state for each of them, and support vectors are kept.
        """
        require_landmarks(self)
        self.fit(*gathered(self, X, y, sample_weight))

    # ------------------------------------------------------------------ what a fit is given

    def _sample_of(
        self, X: Any, y: Any = NO_TARGETS, sample_weight: Any = None, *, labels: bool = False
    ) -> tuple[Sample, Any]:
        """Return the points of positive weight in float64, and the targets of all that came."""
        if self._precomputed and sp.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported: a K with zeros that are not stored "
                "is rare, and reading its rows slow; use X.toarray()"
            )
        supervised = y is not NO_TARGETS
        checked = self._check_points(X, y, reset=True, supervised=supervised, labels=labels)
        X, y = checked if supervised else (checked, None)
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} "
                f"matrix; fit needs the values of all training points with each other"
            )
        if not self._precomputed and self._takes(X):
            _check_size(X)
        weights = None if sample_weight is None else _check_weights(sample_weight, length(X))
        return Sample.of(X, weights, precomputed=self._precomputed, order=self._order), y

    @property
    def _order(self) -> int | None:
        return 1  # the coefficients have a fixed sum (Schoelkopf 2000)

    def _problem(self, sample: Sample) -> Problem:
        """Return the points as the solver reads them that is to have them."""
        kernel: Kernel = sample.resolve(self._make_kernel(self.gamma))
        values, points = sample.evaluated(kernel, self.max_memory), sample.points
        name, given = by_size(self.solver), None
        if not isinstance(name, str):
            name, given = "smo" if isinstance(name, BlockSMO) else "primal", name
        elif name == "auto":
            name = "smo"
            if isinstance(kernel, Linear) and isinstance(points, np.ndarray):
                n, m = points.shape
                largest = n  # of the problems of two classes
                if sample.classes is not None:
                    largest = int(np.sort(np.bincount(sample.labels))[-2:].sum())
                name = linear_machine(n, m, largest, self.max_memory)
        steps = 200 if self.max_iter < 0 else max(self.max_iter, 1)
        inside = BoxInterior(self.tol, steps, max_memory=self.max_memory)
        if name in ("smo", "either"):
            several = sample.classes is not None and len(sample.classes) > 2
            cache = None if self.cache_size == "auto" else int(self.cache_size * 2**20)
            budget = budget_in_bytes(self.max_memory)
            if name == "either":  # few rows of K are read before the interior point takes over
                cache = min(cache or budget, max(points.nbytes, _LEAST_CACHE))
                budget -= inside.workspace(n, m, 2 * n)
            solver: Any = given or BlockSMO(self.tol, self.max_iter, self.shrinking)
            try:
                rows = KernelRows(
                    values,
                    points,
                    sizes=np.bincount(sample.labels).tolist() if several else None,
                    cache_bytes=cache,
                    max_memory=max(1, budget),
                )
            except MemoryBudgetError:
                if name == "smo":
                    raise
                name = "primal"  # which needs less
            else:
                if name == "smo":
                    return Problem(sample, kernel, solver, rows)
                return Problem(sample, kernel, Relay(solver, inside), rows, columns=points)
        solver = given or inside
        if name == "primal":
            if not isinstance(kernel, Linear):
                raise ValueError(
                    f"solver='primal' works on the columns of X, which only a linear kernel has as "
                    f"its features; the kernel is {kernel}. Use solver='auto', or 'nystroem'"
                )
            if sp.issparse(points):
                what = f"X of {points.shape[0]} rows and {points.shape[1]} columns without gaps"
                check_budget(8 * points.shape[0] * points.shape[1], self.max_memory, what)
                points = points.toarray()
            return Problem(sample, kernel, solver, points)
        phi = Whitened.nystroem(values, points, self._chosen, max_memory=self.max_memory)
        left = budget_in_bytes(self.max_memory) - phi.F.nbytes - phi.factor.nbytes
        return Problem(sample, kernel, replace(solver, max_memory=max(1, left)), phi.F, phi)

    # ------------------------------------------------------------------ what a fit has learned

    def _learn(self, problem: Problem, duals: Duals, note: str = "") -> DualSolutions:
        """Solve the dual of each pair, set all that a fit learns, and return the solutions."""
        before = problem.counts
        found = problem.minimize_all(duals, self._say if self.verbose else None)
        self._keep(problem, found, self._scales(found))
        self._tell(problem, found, before, note or self._read(problem, found))
        return found

    def _scales(self, found: DualSolutions) -> np.ndarray:
        """Return what f and b are to be divided by, so that the margin is at f + b = +-1."""
        return np.ones(len(found))

    def _read(self, problem: Problem, found: DualSolutions) -> str:
        """Set what a machine learns beside f and b; return what the report is to say of it."""
        return ""

    def _keep(self, problem: Problem, found: DualSolutions, divisors: np.ndarray) -> None:
        """Set what predictions need, from solutions that are to be divided by these numbers."""
        sample, pairs = problem.sample, problem.pairs
        D, held = np.zeros((len(sample), pairs.q - 1)), np.zeros(len(sample), dtype=bool)
        members, columns, _ = pairs.everybody
        with np.errstate(divide="ignore", invalid="ignore"):
            D[members, columns] = found.coefficients / np.repeat(divisors, pairs.sizes)
            held[members[found.at_bound]] = True
            intercepts = -found.multipliers.sum(axis=1) / found.multipliers.shape[1] / divisors
        if not (np.isfinite(D).all() and np.isfinite(intercepts).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain "
                "large values; scale the features" + (", or choose a smaller C" * self._has_C)
            )
        some = np.flatnonzero((D != 0.0).any(axis=1))
        some = some[pairs.labels[some].argsort(kind="stable")]
        steps = found.reports.n_iter.astype(np.int32)
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
        self.support_ = sample.kept[some].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else take(X, self.support_)
        self.n_support_ = np.bincount(pairs.labels[some], minlength=n_classes).astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(D[some].T)
        self.at_bound_ = held[some]
        self.intercept_ = intercepts
        self._given_expansion: Expansion | None = None
        if problem.phi is not None:
            A = problem.phi.coefficients(problem.phi.F.T @ pairs.functions(D))
            self.expansion_ = Expansion(self.kernel_, problem.phi.points, A)

    def _tell(
        self, problem: Problem, found: DualSolutions, before: tuple[int, int], note: str
    ) -> None:
        """Set the report, and warn of what a user has to know."""
        self.reports_ = found.reports
        self.report_: Report = merged(problem, self.reports_, before, note)
        self.fit_status_ = int(self.report_.status is Status.NOT_CONVERGED)
        certificate, pairs = self.report_.certificate, len(found)
        if self.verbose:
            self._say(
                f"{self.report_.n_iter} steps, {self.report_.seconds:.1f} s: gap "
                f"{certificate['gap']:.2e}, violation {certificate['violation']:.2e}, "
                f"{len(self.support_)} support vectors: {self.report_.status.value}"
            )
        if self.fit_status_:
            worst = self.reports_[int(np.argmax(self.reports_.residual))]
            failed = len(self.reports_.failed)
            where = f", in {failed} of {pairs} pairs of classes" if pairs > 1 else ""
            early = isinstance(problem.solver, BlockSMO) and "max_iter" not in worst.message
            text = (
                "The solver cannot go on: what is left to gain is lost in rounding; raise tol, or "
                "choose smaller weights or features"
                if early
                else f"Solver terminated early (max_iter={problem.solver.max_iter}).  Consider "
                f"pre-processing your data with StandardScaler or MinMaxScaler"
            )
            text += (
                f". After {worst.n_iter} steps the conditions of a minimum are violated by "
                f"{worst.residual:.2e}, and tol is {problem.solver.tol:g}{where}"
            )
            text += f"; {worst.message}" if "given up" in worst.message else ""
            advice = [scales(problem.sample.given, self._has_C)]
            if self._has_C and np.isinf(self.C):
                advice.append("C is infinite: no such f exists if the classes overlap")
            if isinstance(problem.kernel, Linear) and isinstance(problem.solver, BlockSMO):
                advice.append("solver='primal' minds the scale of columns much less")
            warn_caller("; ".join(filter(None, [text, *advice])), ConvergenceWarning)
        largest = problem.largest
        known = bool(problem.sample.warned)  # and then the user has been told
        if certificate["curvature"] < -_NEGATIVE_CURVATURE * largest and not known:
            curvatures = self.reports_.certificate["curvature"]
            bent = np.count_nonzero(curvatures < -_NEGATIVE_CURVATURE * largest)
            warn_caller(
                f"the kernel is not positive semidefinite: k(x, x) + k(z, z) - 2 k(x, z) was down "
                f"to {certificate['curvature']:.3g}, in {bent} of {pairs} problems, with k(x, x) "
                f"up to {largest:.3g}; what was found is a stationary point, which other solvers "
                f"need not find. Choose a Mercer kernel for a minimum"
            )

    @property
    def _has_C(self) -> bool:
        return hasattr(self, "C")

    # ------------------------------------------------------------------ predictions

    @property  # type: ignore[misc]
    def expansion_(self) -> Expansion:
        """f: from `dual_coef_` as it is now, but for landmarks and reduced sets."""
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

    @threaded
    def _values(self, X: Any) -> np.ndarray:
        """Return f(x_i) + b, (n, number of functions)."""
        X = self._check_new(X)
        if isinstance(self.kernel_, Linear):
            return np.asarray(X @ self._weights().T) + self.intercept_
        if self._is_small(X):
            K = near(self, self.kernel_, X, self.support_vectors_)
            return values_of_pairs(K, self.dual_coef_, self.n_support_) + self.intercept_
        return self.expansion_(X) + self.intercept_

    def _is_small(self, X: Any) -> bool:
        """Tell whether all of k(X, support vectors) is one small block of dense vectors."""
        given, dual = self._given_expansion is None, self.__dict__.get("dual_coef_")
        if not given or dual is None or self._precomputed or not self.kernel_.on_vectors:
            return False
        V = self.support_vectors_
        dense = isinstance(X, np.ndarray) and isinstance(V, np.ndarray)
        whole = dense and len(V) == dual.shape[1] == self.n_support_.sum()
        return whole and len(V) > 0 and len(X) * len(V) <= FEW_ENTRIES

    def _check_new(self, X: Any) -> Any:
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
        """The w of f(x) = <w, x> + b, one row for each f; of a linear kernel only."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        w = self._weights()
        w.flags.writeable = False  # to set it would change no prediction
        return w

    def _weights(self) -> np.ndarray:
        f = self.expansion_
        if isinstance(f, Primal):
            return f.weights.T
        return np.asarray((f.points.T @ f.coefficients).T)

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("support_", "support_vectors_", "n_support_", "dual_coef_", "at_bound_"):
            self.__dict__.pop(part, None)  # it has no support vectors any more

    # ------------------------------------------------------------------ scikit-learn's names
    # Code written for scikit-learn (its own tests, converters to other formats) also reads, and
    # sets, what LIBSVM calls the coefficients: for two classes those of the first one's f.

    @property
    def _dual_coef_(self) -> np.ndarray:
        return -self.dual_coef_ if self._flipped else self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, value: np.ndarray) -> None:
        self.dual_coef_ = -value if self._flipped else value

    @property
    def _intercept_(self) -> np.ndarray:
        return -self.intercept_ if self._flipped else self.intercept_

    @property
    def _flipped(self) -> bool:
        return len(getattr(self, "classes_", ())) == 2

    @property
    def _n_support(self) -> np.ndarray:
        return self.n_support_

    @property
    def _gamma(self) -> Any:
        return self.gamma_


def _check_size(X: Any) -> None:
    """Refuse vectors whose squares overflow."""
    data = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore"):
        total = float(np.vdot(data, data))
    if not np.isfinite(total):
        raise ValueError(
            f"The dual coefficients or intercepts are not finite: features are as large as "
            f"{np.abs(data).max():.3g}, and their squares overflow. Scale the features"
        )


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the weights of the points, 0 for those to be left out; errors are LIBSVM's."""
    w = np.asarray(sample_weight, dtype=float)
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight and X have incompatible shapes: {w.shape} and {n} points")
    if not np.all(np.isfinite(w)):
        raise ValueError("sample_weight contains NaN or infinity")
    if not np.any(w > 0):
        raise ValueError(
            f"Invalid input - all samples have zero or negative weights. The largest is "
            f"{w.max():g}, and only points of positive weight take part"
        )
    return np.maximum(w, 0.0)
