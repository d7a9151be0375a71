"""Kernel logistic regression: log-odds in the RKHS, for two classes or more."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import budget_in_bytes, check_threads
from ..blocks import Blocks
from ..expansion import Expansion
from ..gram import working_bytes
from ..kernels import Kernel, reads_all
from ..solvers import (
    GradientDescent,
    Minimum,
    Newton,
    NewtonInPasses,
    RegularisedRisk,
    Report,
    RiskInBlocks,
    Status,
    Whitened,
    whiten,
)
from ._base import KernelLike, Landmarked, NamedKernel
from ._coding import Coding
from ._decisions import Decisions, coded
from ._in_blocks import require_landmarks, sampled
from ._parameters import COUNT, POSITIVE, estimator, fitting, parameter, solver
from ._sample import Sample

__all__ = ["KernelLogisticRegression", "LogisticEstimator", "Problem"]

_PATH_FACTOR = 0.1  # between two shifts along a path
_MOST_MISSED = 1e-3  # the part of the objective that rounding of K may hide without a warning


class Problem(NamedTuple):
    """All that a fit knows before it begins to search."""

    kernel: Kernel
    solver: Any
    phi: Whitened
    classes: np.ndarray
    labels: np.ndarray
    risk: Any  # a RegularisedRisk; None for points in blocks


def _without_constant(found: Minimum) -> Minimum:
    """Return functions and intercepts of classes that sum to 0; a single one as it is."""
    w, b = found.weights, found.intercept
    if len(b) == 1:
        return found
    return found._replace(weights=w - w.mean(axis=1, keepdims=True), intercept=b - b.mean())


@estimator(kw_only=True)
class LogisticEstimator(Decisions, Landmarked, NamedKernel):
    """A classifier whose log-odds are functions of the RKHS; see KernelLogisticRegression.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit constants b, which are not penalised.
    tol : float
        Stop when the objective is certified to be at most this part of itself above its minimum.
    max_iter : int or None
        Newton steps, of which a few are enough, or iterations of "gradient", which needs many;
        None for 100 and 10 000.
    solver : {"auto", "exact", "newton", "path", "nystroem", "gradient"} or a solver
        See KernelLogisticRegression; or a `Newton` or `GradientDescent` of `mercer.solvers`, which
        has its own tol and max_iter.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    tol: float = parameter(POSITIVE, default=1e-10)
    max_iter: int | None = parameter(COUNT, None, default=None)
    solver: Any = solver(
        *("newton", "path", "nystroem", "gradient"), given=[Newton, GradientDescent], default="auto"
    )

    _copies: ClassVar[int] = 0  # how many copies of F are made beside it

    # ------------------------------------------------------------------ what a fit is made of

    def _problem(self, sample: Sample) -> Problem:
        """Return what is to be minimised, in coordinates in which |f| = |w|."""
        n, q = len(sample), len(sample.classes)
        kernel = sample.resolve(self._make_kernel(self.gamma))
        values = sample.evaluated(kernel, self.max_memory)
        tiles = working_bytes(values, sample.points, None, 0, check_threads(None))
        spec = self.solver
        if not isinstance(spec, str):
            spec = "gradient" if isinstance(spec, GradientDescent) else "newton"

        def needed(solver: str, m: int) -> int:
            return tiles + self._bytes(solver, n, m, q)

        phi = whiten(
            values,
            sample.points,
            spec,
            self._chosen,
            needed,
            exact="newton",
            what=f"solver={self.solver!r} for {n} points",
            max_memory=self.max_memory,
        )
        self._say(phi.message)
        solver = self.solver
        if solver == "gradient":
            solver = GradientDescent(self.tol, self.max_iter or 10_000)
        elif isinstance(solver, str):
            path = _PATH_FACTOR if spec == "path" else None
            taken = needed("nystroem" if phi.approximate else "newton", phi.F.shape[1])
            spare = max(budget_in_bytes(self.max_memory) - taken, 0)
            joint = min(Newton.joint, int(np.sqrt(spare / 24)))
            solver = Newton(self.tol, self.max_iter or 100, path, joint)
        targets = coded(sample.labels, q)
        risk = RegularisedRisk(phi.F, *targets, sample.counts, intercept=self.fit_intercept)
        return Problem(kernel, solver, phi, sample.classes, sample.labels, risk)

    def _bytes(self, solver: str, n: int, m: int, q: int) -> int:
        """Return the memory for m coordinates of n points and q classes."""
        outputs, given = (1 if q == 2 else q), 8 * n * n * self._precomputed
        rows = 8 * n * m * (1 + self._copies)
        if solver == "gradient":
            return rows + GradientDescent.workspace(n, m, outputs)
        chosen = 8 * n * m + given if solver == "nystroem" else 0
        return rows + chosen + Newton.workspace(n, m, outputs)

    def _minimize(
        self,
        problem: Problem,
        risk: RegularisedRisk,
        C: float,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Minimum:
        """Return the minimum at this C, with functions and intercepts that sum to 0 over classes.

        They do at the exact minimum, up to a common constant in the intercepts that nothing sees;
        making it so lowers |w| and changes no probability.
        """
        risk = replace(risk, shift=self._shift(C))
        return _without_constant(problem.solver.minimize(risk, start, self._teller, warn=False))

    @staticmethod
    def _shift(C: float) -> float:
        with np.errstate(over="ignore"):
            shift = float(np.divide(1.0, C))
        if not np.isfinite(shift):
            raise ValueError(f"C={float(C)!r} is too small: 1 / C overflows. Raise C")
        return shift

    def _certified(
        self, problem: Problem, found: Minimum, C: float, missed: float | None = None
    ) -> Report:
        """Return the report, in units of C sum_i v_i loss_i + |f|^2 / 2."""
        report, phi = found.report, problem.phi
        scales = {"objective": C, "gap": C, "decrement": float(np.sqrt(C))}
        numbers = {name: scales.get(name, 1) * v for name, v in report.certificate.items()}
        if missed is None:
            with np.errstate(over="ignore"):
                missed = phi.approximation_bound(C * found.dual)
        numbers["left out"] = missed
        status, messages = report.status, [phi.message, report.message]
        if not phi.approximate and missed > _MOST_MISSED * numbers["objective"]:
            text = (
                f"the rounding of K hides functions that might lower the objective of "
                f"{numbers['objective']:.3g} by up to {missed:.1e}; the usual cause is features of "
                f"very different, or very large, size. Scale them, or lower C"
            )
            warn_caller(text, ConvergenceWarning)
            messages.append(text)
        if phi.approximate or len(messages) > 2:
            numbers["trace left"] = phi.residual
            status = Status.APPROXIMATE if status is Status.CONVERGED else status
        message = "; ".join(filter(None, messages))
        return replace(report, status=status, message=message, certificate=numbers)

    def _keep(self, problem: Problem, found: Minimum, report: Report) -> None:
        """Set all that a fit has learned."""
        self.kernel_, self.solver_, self.classes_ = problem.kernel, problem.solver, problem.classes
        A = problem.phi.coefficients(found.weights)
        f = Expansion(self.kernel_, problem.phi.points, A)
        self._set_expansion(f, found.intercept, flat=False)
        self.n_iter_, self.report_ = report.n_iter, report


@estimator()
class KernelLogisticRegression(LogisticEstimator):
    """Minimise  C sum_i v_i log-loss(y_i, f(x_i) + b) + |f|^2 / 2  over the RKHS of the kernel.

    Two classes: one f, log-loss = log(1 + exp(-y f)), p(y = 1 | x) = 1 / (1 + exp(-f(x) - b)).
    More: one f_c for each, log-loss = -log softmax(f)_y, all fitted together (multinomial; never
    one class against the rest); they sum to 0.  The names are those of LogisticRegression, to which
    the linear kernel leads back: C multiplies the data term, and intercepts b are not penalised.

    ============ ========================================================= ======================
    solver       method                                                    memory in bytes
    ============ ========================================================= ======================
    "newton"     exact: Newton's method in coordinates F with F F^T = K    about 40 n^2
    "exact"      another name of "newton"
    "path"       the same, along a path of increasing C that ends at C     about 40 n^2
    "nystroem"   Newton's for functions on `rank` landmarks: approximate   16 n rank + 24 rank^2
    "gradient"   exact: accelerated gradient descent; many cheap steps     about 24 n^2
    "auto"       "newton" up to 5000 points that fit `max_memory`; else
                 "nystroem", with a warning
    ============ ========================================================= ======================

    Parameters
    ----------
    C : float
        The weight of the data against |f|^2 / 2; 1 / C is the ridge.
    gamma : float, "scale", "auto", "median" or None
        For kernels given by name.  "scale" is 1 / (n_features Var X), as in SVC: it follows the
        units of the data, so that the default fits data that are not standardised.  Sample
        weights and class weights count in Var X as repetitions of points.  It must keep its
        default if the kernel is a Kernel or a callable.
    rank : int or None
        Landmarks of "nystroem"; None for 1000, or all points if there are fewer ("auto" takes
        fewer if these do not fit `max_memory`).  Exact solvers have no landmarks.
    warm_start : bool
        Begin with the solution of the last fit, for instance at another C.

    Attributes
    ----------
    classes_ : ndarray
        The classes that have points of positive weight.
    expansion_ : Expansion
        The f, as a value: one function for two classes, else one for each.
    X_fit_ : points
        The points that f is expanded in: landmarks, or training points that depend on no others in
        the RKHS (of a singular K fewer than all; indices for a precomputed kernel).
    dual_coef_ : ndarray of shape (len(X_fit_), n_functions)
    intercept_ : ndarray of shape (n_functions,)
    n_iter_ : int
        Newton steps: factors of the second derivatives.  Each serves several directions; how many
        more there were is in ``report_.certificate["corrections"]``.
    kernel_ : Kernel
        The kernel with all its values.
    solver_, report_
        The solver, and what it did.  ``report_.certificate`` has the objective, the last Newton
        decrement, and the gap: the objective is at most so much above its minimum over functions
        on `X_fit_`.  "left out" bounds what all others could lower it by beyond that: for an exact
        solver rounding, for "nystroem" what landmarks cost.

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

    C: float = parameter(POSITIVE, default=1.0)
    _: KW_ONLY
    warm_start: bool = parameter("boolean", default=False)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        known = self._known()
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        problem = self._problem(sample)
        start = self._start(problem, sample) if self.warm_start and known == self._known() else None
        found = self._minimize(problem, problem.risk, self.C, start)
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        self._keep(problem, found, self._certified(problem, found, self.C))
        self._say(f"{self.n_iter_} steps: {self.report_.status.value}")
        return self

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Fit f in the span of landmarks to labels in blocks: a pass for each Newton step."""
        require_landmarks(self)
        blocks, drawn = sampled(X, self._chosen, y, sample_weight)
        coding = Coding.of(blocks, self.class_weight, type(self).__name__)
        sample = self._sample(drawn.X, sample_weight=drawn.weights, copy=False)
        sample = sample.with_classes(coding.classes, coding.places(drawn.y), coding.factors)
        kernel = sample.resolve(self._make_kernel(self.gamma))
        self._chosen.require(len(sample))
        phi = self._chosen.map(kernel, sample.points)
        outputs, loss = coding.outputs
        solver = NewtonInPasses(self.tol, self.max_iter or 100)
        risk = RiskInBlocks(phi, blocks, coding, loss, outputs, 1.0, self.fit_intercept)
        found, sums = self._centred(risk, solver)
        residual = sums.residual_trace / max(sums.trace, float(np.finfo(float).tiny))
        text = f"Nyström on {len(phi)} landmarks, relative trace error {residual:.1e}"
        empty = np.empty((0, len(phi)))
        text = "; ".join([text, *phi.flaws])
        seen = Whitened(phi.points, empty, phi.factor, empty[:, 0], residual, True, text)
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        missed = 0.5 * float(np.square(self.C * sums.residual_bound).sum())
        problem = Problem(kernel, solver, seen, coding.classes, empty, None)
        self._keep(problem, found, self._certified(problem, found, self.C, missed))

    def _centred(self, risk: RiskInBlocks, solver: NewtonInPasses) -> tuple[Minimum, Any]:
        risk = replace(risk, shift=self._shift(self.C))
        found, sums = solver.minimize(risk, self._teller, self.max_memory)
        return _without_constant(found), sums

    def _known(self) -> tuple[bool, int | None]:
        """Return the kind of points: whether rows of values, and of how many numbers."""
        return self._precomputed, getattr(self, "n_features_in_", None)

    def _start(self, problem: Problem, sample: Sample) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the last solution, projected on what f may be now; None if it does not fit."""
        if not np.array_equal(getattr(self, "classes_", ()), problem.classes):
            return None
        if reads_all(self.kernel_) != self._precomputed:
            return None
        at = problem.phi.points if sample.values is None else sample.rows(problem.phi.points)
        return problem.phi.project(self.expansion_(at)), self.intercept_
