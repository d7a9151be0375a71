"""Learners that see points one after the other: a perceptron, and regressors by least squares."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from .._errors import warn_caller
from .._points import concatenate, length, take
from .._runtime import check_budget
from ..expansion import Expansion
from ..gram import gram
from ..kernels import Kernel, forget
from ..solvers import (
    BudgetPerceptron,
    Norma,
    OnlineLearner,
    Perceptron,
    RecursiveLeastSquares,
    Report,
    Schedule,
    Status,
)
from ._base import KernelLike, NamedKernel, Seed
from ._decisions import Decisions, coded
from ._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._sample import Sample, class_weights

__all__ = ["KernelPerceptron", "KernelRecursiveLeastSquares", "OnlineKernelRegressor"]

_HELD = 4096  # points whose K is held for several passes, if it fits the memory


@estimator(kw_only=True)
class OnlineEstimator(NamedKernel):
    """An estimator that learns from one point after the other.

    Parameters
    ----------
    budget : int or None
        At most so many points are kept; None for all that are needed.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    budget: int | None = parameter(COUNT, None, default=None)

    n_iter_: int = learned()
    t_: int = learned()
    mistakes_: np.ndarray = learned()
    kernel_: Kernel = learned()
    _learner: OnlineLearner = learned()
    _kept: Any = learned()

    def _can_stream(self) -> bool:
        if self._precomputed:
            raise AttributeError(
                "partial_fit needs points, not a precomputed kernel matrix: new points would have "
                "no values with the old ones; give kernel=Precomputed(K), and indices as points"
            )
        return True

    def _check_memory(self, learner: OnlineLearner) -> None:
        kept = "of online learning" if self.budget is None else f"on budget={self.budget} points"
        check_budget(learner.workspace(), self.max_memory, f"a model {kept}")

    def _resolved(self, sample: Sample) -> Kernel:
        return sample.resolve(self._make_kernel(self.gamma))

    def _pass_over(
        self,
        learner: OnlineLearner,
        sample: Sample,
        Y: np.ndarray,
        kernel: Kernel,
        schedule: Schedule,
    ) -> None:
        """Learn from points that stay, pass by pass."""
        self._check_memory(learner)
        evaluated, n = sample.evaluated(kernel, self.max_memory), len(sample)
        held = sample.values is not None or (n <= _HELD and schedule.max_iter > 1)
        K = gram(
            evaluated,
            sample.points,
            storage="auto" if held else "tiled",
            max_memory=self.max_memory,
        )
        report, mistakes = schedule.run(learner, K, Y, sample.counts, self._teller)
        forget(evaluated)
        if report.status is Status.NOT_CONVERGED:
            warn_caller(report.message, ConvergenceWarning)
        self._keep(learner, sample.points, kernel, report, mistakes)

    def _take_in(self, sample: Sample, Y: np.ndarray, make: Any) -> None:
        """Learn from further points, which come once."""
        new, known = sample.points, hasattr(self, "_learner")
        if known:
            # a copy learns: an interrupted call has changed nothing
            learner, kernel, before = deepcopy(self._learner), self.kernel_, self.mistakes_
            points = concatenate(self._kept, new)
        else:
            kernel, before = self._resolved(sample), np.zeros(0)
            learner, points = make(kernel), new
        self._check_memory(learner)
        places = np.arange(length(points))
        K = gram(kernel, points, storage="tiled", max_memory=self.max_memory)
        first = len(places) - len(sample)
        _, mistakes = learner.learn(K, places[first:], Y, sample.counts)
        counts = np.append(before, mistakes.sum())
        report = Report(
            type(learner).__name__,
            Status.APPROXIMATE,
            len(counts),
            message=f"{int(learner.seen.max())} points seen, one after the other",
            certificate=learner.certificate,
        )
        self._say(f"{counts[-1]:.0f} mistakes at {len(sample)} points: {len(learner.support)} kept")
        self._keep(learner, points, kernel, report, counts)

    def _keep(
        self,
        learner: OnlineLearner,
        points: Any,
        kernel: Kernel,
        report: Report,
        mistakes: np.ndarray,
    ) -> None:
        """Set all that was learned; of the points, only those that f needs stay."""
        A, b = learner.solution()
        self._kept = take(points, learner.support)
        learner.support = np.arange(len(learner.support))
        shown = self._kept
        if not len(A):  # no point was of any use, so f is 0; an expansion has a point at least
            shown, A = take(points, np.arange(1)), np.zeros((1, A.shape[1]))
        self._learner, self.kernel_, self.report_ = learner, kernel, report
        self.n_iter_, self.t_, self.mistakes_ = report.n_iter, int(learner.seen.max()), mistakes
        self._set_expansion(Expansion(kernel, shown, A), b, self._flat)

    @property
    def _flat(self) -> bool:
        return False

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("_learner", "_kept"):  # they belong to the model before compression
            self.__dict__.pop(part, None)

    def _require_whole(self) -> None:
        if hasattr(self, "expansion_") and not hasattr(self, "_learner"):
            raise ValueError("a compressed model cannot learn further; go on with the one before")


@estimator()
class KernelPerceptron(Decisions, OnlineEstimator):
    """Add each point on the wrong side:  if y (f(x) + b) <= 0:  f <- f + y k(x, .),  b <- b + y.

    Two classes have one f; more, one f for each against the rest.  With the linear kernel this is
    scikit-learn's Perceptron, whose names it has.  If a function of norm 1 separates the points
    with the margin rho, and k(x, x) <= R^2, at most (R / rho)^2 mistakes are made in all passes.

    With a `budget` a mistake that the points kept can express is written in them, and one too many
    takes the place of the point that f needs least; the others take over what they can of it.

    Parameters
    ----------
    average : bool
        Take the mean of the f after each point, which is steadier than the last.
    budget : int or None
        At most so many points are kept, and budget^2 numbers beside them; None for all mistakes.
    fit_intercept : bool
        Whether b changes.
    max_iter : int
        Passes over the points of `fit`; `partial_fit` makes one.
    tol : float or None
        An f stops when its mean loss, max(0, -y f), was not this much below its best in
        `n_iter_no_change` passes, or after a pass without a mistake; None to make `max_iter`
        passes, or as many as there are mistakes in.
    n_iter_no_change : int
    shuffle : bool
        Take the points of `fit` in a new order in each pass.
    random_state : int, RandomState or None
        For these orders; None stands for 0, so that fits repeat.
    class_weight : dict, "balanced" or None
        What a mistake adds, y k(x, .), is multiplied by these.  In `partial_fit` not "balanced",
        which needs all points.

    Attributes
    ----------
    classes_ : ndarray
    expansion_ : Expansion
        The f, as a value: one function for two classes, else one for each.
    X_fit_ : points
        The points that f is expanded in.
    dual_coef_ : ndarray of shape (len(X_fit_), n_functions)
    intercept_ : ndarray of shape (n_functions,)
    mistakes_ : ndarray of shape (n_iter_,)
        How many mistakes all functions made in each pass, or in each call of `partial_fit`.
    n_iter_ : int
    t_ : int
        How many points were seen, those of each pass counted.
    kernel_ : Kernel
        The kernel with all its values.
    report_ : Report
        Its certificate has the number of points, and for a budget how many were removed and how
        far that moved f, in the norm of the RKHS, all steps added up.

    Notes
    -----
    Points have no weights: a perceptron depends on their order, and one of weight 2 is not the
    same as two.  Repeat points to have them seen more often.

    Examples
    --------
    >>> from mercer import KernelPerceptron
    >>> from mercer.datasets import circles
    >>> X, y = circles(200, random_state=0)
    >>> model = KernelPerceptron(gamma=2.0).fit(X, y)
    >>> model.score(X, y), int(model.mistakes_[-1])
    (1.0, 0)
    """

    average: bool = parameter("boolean", default=False)
    _: KW_ONLY
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter(COUNT, default=1000)
    tol: float | None = parameter(AT_LEAST_0, None, default=1e-3)
    n_iter_no_change: int = parameter(COUNT, default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    def _has_probabilities(self) -> bool:
        raise AttributeError(
            "a perceptron has no probabilities; use decision_function, KernelLogisticRegression, "
            "or scikit-learn's CalibratedClassifierCV"
        )

    def _made(self, n_classes: int) -> Perceptron:
        q = 1 if n_classes == 2 else n_classes
        if self.budget is None:
            return Perceptron(q, self.fit_intercept, average=self.average)
        return BudgetPerceptron(
            q, self.fit_intercept, average=self.average, budget=int(self.budget)
        )

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Make passes over the points until they are on their sides, or no more is gained."""
        sample = self._sample(X, y, labels=True).doubled()
        n_classes = len(sample.classes)
        Y = coded(sample.labels, n_classes, "perceptron")[0]
        schedule = Schedule(
            self.max_iter, self.tol, self.n_iter_no_change, self.shuffle, self.random_state
        )
        self._pass_over(self._made(n_classes), sample, Y, self._resolved(sample), schedule)
        self.classes_ = sample.classes
        return self

    @available_if(lambda model: model._can_stream())
    @fitting
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """See these points once, in their order; only mistakes are kept.

        The first call must name all classes that will come.  It also resolves rules like
        gamma="scale", so it should be a fair sample.
        """
        self._require_whole()
        known = hasattr(self, "_learner")
        if not known and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        named = self.classes_ if classes is None else np.unique(classes)
        if known and not np.array_equal(named, self.classes_):
            raise ValueError(
                f"classes={named.tolist()} are not those of the first call to partial_fit, "
                f"{self.classes_.tolist()}"
            )
        if len(named) < 2:
            raise ValueError(f"KernelPerceptron needs at least 2 classes, got {named.tolist()}")
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all points at once; for partial_fit give the "
                "weights, as compute_class_weight of scikit-learn finds them for a sample"
            )
        X, y = self._check_points(X, y, reset=not known, supervised=True, labels=True)
        check_classification_targets(y)
        unseen = np.setdiff1d(y, named)
        if len(unseen):
            raise ValueError(
                f"y has the labels {unseen.tolist()}, which are not among the classes "
                f"{named.tolist()}; name all of them in the first call to partial_fit"
            )
        weights = None
        labels = np.searchsorted(named, y)
        if self.class_weight is not None:
            weights = class_weights(self.class_weight, named, np.ones(len(named)))[labels]
        sample = Sample.of(X, weights, order=self._order).doubled()
        Y = coded(labels, len(named), "perceptron")[0]
        self._take_in(sample, Y, lambda kernel: self._made(len(named)))
        self.classes_ = named
        return self


@estimator(kw_only=True)
class OnlineRegressor(MultiOutputMixin, RegressorMixin, OnlineEstimator):
    """A regressor that learns from one point after the other."""

    _columns: int | None = learned()

    @property
    def _flat(self) -> bool:
        return self._columns is None

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point; for a precomputed kernel X is k(X, training points)."""
        values = self._values(X)
        return values[:, 0] if self._flat else values

    def _see(self, sample: Sample, make: Any) -> None:
        """Learn from points that come once, and check that targets are as before."""
        columns = None if sample.flat else sample.targets.shape[1]
        if hasattr(self, "_learner") and columns != self._columns:
            raise ValueError(
                f"y has {columns or 'one column and no second axis'}, but had "
                f"{self._columns or 'one column and no second axis'} in the first call to "
                f"partial_fit; give as many targets each time"
            )
        self._columns = columns
        self._take_in(sample, sample.targets, make)


@estimator()
class KernelRecursiveLeastSquares(OnlineRegressor):
    """Minimise  sum_t w_t (y_t - f(x_t))^2 + alpha |f|^2  after each point, in O(m^2).

    f lives on m points that do not depend on each other: x is kept if more than the part nu of
    k(x, x) is outside of the span of those before, and counts as its projection otherwise (Engel,
    Mannor and Meir, 2004).  With nu = 0, and points that all differ, f is that of KernelRidge.

    Parameters
    ----------
    nu : float
        Which part of k(x, x) must be new for a point to be kept: larger for fewer points.
    alpha : float
        The ridge.
    budget : int or None
        At most so many points are kept; further ones count as their projections.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    X_fit_ : points
        Those kept.
    expansion_ : Expansion
    n_iter_, t_ : int
        Calls of `partial_fit` (1 for `fit`), and points seen.
    kernel_, report_

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRecursiveLeastSquares
    >>> X = np.linspace(0, 6, 1000)[:, None]
    >>> model = KernelRecursiveLeastSquares(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), model.predict([[1.5]]).round(2)
    (22, array([1.]))
    """

    nu: float = parameter(AT_LEAST_0, default=1e-3)
    _: KW_ONLY
    alpha: float = parameter(POSITIVE, default=1e-3)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """See the points once, in their order; weights multiply the squared errors."""
        sample = self._sample(X, y, sample_weight).doubled()
        self._columns = None if sample.flat else sample.targets.shape[1]
        once = Schedule(max_iter=1, tol=None, shuffle=False)
        kernel = self._resolved(sample)
        self._pass_over(self._made(sample), sample, sample.targets, kernel, once)
        return self

    @available_if(lambda model: model._can_stream())
    @fitting
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """See further points; the first call also resolves rules like gamma="scale"."""
        self._require_whole()
        reset = not hasattr(self, "_learner")
        sample = self._sample(X, y, sample_weight, reset=reset).doubled()
        self._see(sample, lambda kernel: self._made(sample))
        return self

    def _made(self, sample: Sample) -> RecursiveLeastSquares:
        budget = None if self.budget is None else int(self.budget)
        # rounding alone must not make a point look new
        nu, q = max(float(self.nu), 1e-10), sample.targets.shape[1]
        return RecursiveLeastSquares(q, False, nu=nu, alpha=float(self.alpha), budget=budget)


@estimator()
class OnlineKernelRegressor(OnlineRegressor):
    """Descend  E loss(y, f(x) + b) + alpha |f|^2 / 2  by a step at each point (NORMA).

        f <- (1 - eta_t alpha) f - eta_t loss' k(x, .),        b <- b - eta_t loss'

    with eta_t = eta0 / sqrt(t) (Kivinen, Smola and Williamson, 2004).  With a `budget`, a point too
    many takes the place of the one whose part of f, |a_s| sqrt(k(x_s, x_s)), is smallest: old ones
    decay.

    Parameters
    ----------
    loss : {"squared_error", "huber", "epsilon_insensitive"}
        (y - p)^2 / 2; the same up to |y - p| = epsilon and linear beyond;
        max(0, |y - p| - epsilon), which adds no point that is predicted well.
    epsilon : float
    alpha : float
        The decay: the weight of |f|^2 / 2.
    eta0 : float or None
        The first step; None for 1 / k(x, x), with the largest k(x, x) of the first points, and 1
        for the constant b.
    fit_intercept : bool
        Whether b changes.
    max_iter : int
        Passes over the points of `fit`; `partial_fit` makes one.
    tol : float or None
        Stop when the loss was not this part of its best below it in `n_iter_no_change` passes; None
        to make `max_iter` passes.
    n_iter_no_change : int
    shuffle : bool
        Take the points of `fit` in a new order in each pass.
    random_state : int, RandomState or None
        For these orders; None stands for 0, so that fits repeat.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    intercept_ : float or ndarray of shape (n_targets,)
    X_fit_ : points
    expansion_ : Expansion
    eta0_ : float
    n_iter_, t_ : int
        Passes, and points seen, those of each pass counted.
    kernel_, report_

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> model = OnlineKernelRegressor(gamma=1.0, budget=200).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), bool(abs(model.predict([[1.5]])[0] - 1) < 0.1)
    (200, True)
    """

    loss: str = parameter(
        StrOptions({"squared_error", "huber", "epsilon_insensitive"}), default="squared_error"
    )
    _: KW_ONLY
    epsilon: float = parameter(AT_LEAST_0, default=0.1)
    alpha: float = parameter(AT_LEAST_0, default=1e-4)
    eta0: float | None = parameter(POSITIVE, None, default=None)
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter(COUNT, default=1000)
    tol: float | None = parameter(AT_LEAST_0, None, default=1e-2)
    n_iter_no_change: int = parameter(COUNT, default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Make passes over the points until no more is gained."""
        sample = self._sample(X, y).doubled()
        self._columns = None if sample.flat else sample.targets.shape[1]
        kernel = self._resolved(sample)
        schedule = Schedule(
            self.max_iter,
            self.tol,
            self.n_iter_no_change,
            self.shuffle,
            self.random_state,
            relative=True,
        )
        learner = self._made(sample, kernel)
        self._pass_over(learner, sample, sample.targets, kernel, schedule)
        return self

    @available_if(lambda model: model._can_stream())
    @fitting
    def partial_fit(self, X: Any, y: Any) -> Self:
        """See further points once, in their order; the first call also resolves gamma and eta0."""
        self._require_whole()
        sample = self._sample(X, y, reset=not hasattr(self, "_learner")).doubled()
        self._see(sample, lambda kernel: self._made(sample, kernel))
        return self

    def _made(self, sample: Sample, kernel: Kernel) -> Norma:
        largest = float(np.max(sample.evaluated(kernel).diag(sample.points)))
        size = largest + self.fit_intercept  # of the features, the constant among them
        self.eta0_ = 1.0 / max(size, np.finfo(float).tiny) if self.eta0 is None else self.eta0
        if self.eta0_ * self.alpha >= 1:
            raise ValueError(
                f"eta0 * alpha = {self.eta0_ * self.alpha:.3g} must be below 1: a step takes away "
                f"this part of f"
            )
        return Norma(
            sample.targets.shape[1],
            self.fit_intercept,
            loss=self.loss,
            epsilon=float(self.epsilon),
            eta=float(self.eta0_),
            alpha=float(self.alpha),
            budget=None if self.budget is None else int(self.budget),
        )
