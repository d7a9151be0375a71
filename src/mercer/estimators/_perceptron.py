"""The perceptron with a kernel, whose points are its mistakes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..solvers import BudgetPerceptron, Perceptron, Schedule
from ._base import Seed
from ._decisions import Decisions, coded
from ._online import OnlineEstimator
from ._parameters import AT_LEAST_0, COUNT, estimator, fitting, parameter
from ._sample import Sample, class_weights

__all__ = ["KernelPerceptron"]


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
        Its certificate has the number of points, and for a budget how many were removed, and how
        far removals and projections moved f, in the norm of the RKHS, all steps added up.

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
