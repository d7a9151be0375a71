"""Kernel logistic regression whose C is chosen by cross-validation."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, get_scorer_names, log_loss, make_scorer
from sklearn.utils._param_validation import StrOptions

from .._errors import warn_caller
from ..solvers import Minimum, Report, Status
from ._cross_validation import folds, numbers
from ._decisions import coded
from ._logistic import KernelLogisticRegression, LogisticEstimator, Problem
from ._parameters import COUNT, estimator, fitting, parameter
from ._sample import check_weights

__all__ = ["KernelLogisticRegressionCV"]


@estimator()
class KernelLogisticRegressionCV(LogisticEstimator):
    """KernelLogisticRegression with the C of the best mean score over folds.

    K is evaluated and factored once, F F^T = K: with coordinates for all points, a fold is a choice
    of rows of F, because the minimiser lies in the span of its own points whatever else there is.
    Along increasing C each fit begins where the last has ended.  (With "nystroem" landmarks are
    chosen once, among all points; labels have no say in it.  The same goes for data-dependent
    scales such as gamma="scale".)

    Parameters
    ----------
    Cs : int or array of floats
        The values of C, or how many between 1e-4 and 1e4, as in LogisticRegressionCV.
    cv : int, splitter, iterable or None
        None for 5 stratified folds.
    scoring : str or callable
        A name of scikit-learn's, or scorer(model, X, y), where the model is a fitted
        KernelLogisticRegression; None for accuracy.  The default judges
        probabilities, as LogisticRegressionCV does from scikit-learn 1.11 on.  Where sample_weight
        is given, scores are weighted with it if the scorer can.
    refit : bool
        Fit to all points with the best C.  Otherwise the functions of the folds, each at its own
        best C, are averaged, and so is C; the report has no certificate then.

    Attributes
    ----------
    C_ : float
        The best C; of equal ones the smallest.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
    best_score_ : float
        The mean over the folds at the best C; without `refit`, the mean of their best scores.
    classes_, expansion_, X_fit_, dual_coef_, intercept_, n_iter_, kernel_, solver_, report_
        As in KernelLogisticRegression, of the last fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelLogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegressionCV(Cs=[0.1, 10.0, 1000.0]).fit(X, y)
    >>> model.C_
    1000.0
    >>> model.scores_.shape
    (5, 3)
    """

    Cs: int | np.ndarray | list = parameter(COUNT, "array-like", default=10)
    _: KW_ONLY
    cv: Any = parameter("cv_object", default=None)
    scoring: Any = parameter(
        StrOptions(set(get_scorer_names())), callable, None, default="neg_log_loss"
    )
    refit: bool = parameter("boolean", default=True)

    _copies = 1  # the rows of F that a fold trains with

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C and fit f to the labels y, (n,); weights multiply the losses."""
        Cs = self.Cs
        Cs = numbers(np.logspace(-4, 4, int(Cs)) if isinstance(Cs, Integral) else Cs, "Cs")
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        given = None if sample_weight is None else check_weights(sample_weight, sample.given)
        problem = self._problem(sample)
        y, scorer = np.asarray(y).ravel(), _Scorer(self.scoring, problem.classes)
        paths: list[_Path] = []
        for train, test in folds(self.cv, X, y, sample, classifier=True):
            rows = sample.kept[test]
            w = None if given is None else given[rows]
            held_out = sample.rows(rows), y[rows], w
            paths.append(self._path(problem, Cs, train, test, held_out, scorer))
            self._say(f"fold {len(paths)}: scores {np.round(paths[-1].scores, 4).tolist()}")
        scores = np.array([path.scores for path in paths])
        weights = np.mean([path.best.weights for path in paths], axis=0)
        intercept = np.mean([path.best.intercept for path in paths], axis=0)
        if self.refit:
            best = _best(scores.mean(axis=0), Cs)
            C, score = float(Cs[best]), float(scores[:, best].mean())
            found = self._minimize(problem, problem.risk, C, (weights, intercept))
            _warn_once([*paths, _Path(scores[0], found, [(C, found.report)])])
            report = self._certified(problem, found, C)
        else:
            each = [_best(of_fold, Cs) for of_fold in scores]
            C = float(np.mean(Cs[each]))
            score = float(np.mean(scores[np.arange(len(each)), each]))
            found = paths[-1].best._replace(weights=weights, intercept=intercept)
            _warn_once(paths)
            report = _mean_report(problem, [path.best.report for path in paths])
        self.Cs_, self.scores_, self.C_, self.best_score_ = Cs, scores, C, score
        self._keep(problem, found, report)
        return self

    def _path(
        self,
        problem: Problem,
        Cs: np.ndarray,
        train: np.ndarray,
        test: np.ndarray,
        held_out: tuple[Any, np.ndarray, np.ndarray | None],
        scorer: _Scorer,
    ) -> _Path:
        """Return the scores of one fold, in the order of Cs, and the best minimum."""
        risk, q = problem.risk, len(problem.classes)
        present = np.unique(problem.labels[train])
        if len(present) < 2:
            raise ValueError(
                f"a fold has training points of {len(present)} class only; the usual cause is a "
                f"class with very few points. Use fewer folds, or stratified ones"
            )
        Y, loss = coded(np.searchsorted(present, problem.labels[train]), len(present))
        part = replace(risk, F=risk.F[train], Y=Y, loss=loss, weights=risk.weights[train])
        F, scores, reports = risk.F[test], np.full(len(Cs), np.nan), []
        start, best, highest = None, None, np.nan
        for c in np.argsort(Cs, kind="stable"):
            C = float(Cs[c])
            here = self._minimize(problem, part, C, start)
            start = here.weights, here.intercept
            reports.append((C, here.report))
            here = here if len(present) == q else _filled(here, present, q)
            model = self._model(problem, here, present, C)
            values = F @ here.weights + model.intercept_
            model.known = held_out[0], values[:, 0] if q == 2 else values
            scores[c] = scorer(model, *held_out)
            if best is None or np.isnan(highest) or scores[c] > highest:
                best = here
            highest = np.fmax(highest, scores[c])
        return _Path(scores, best, reports)

    def _model(self, problem: Problem, found: Minimum, present: np.ndarray, C: float) -> _Fold:
        """Return a fitted model; classes that its fold has not seen have the probability 0."""
        names = KernelLogisticRegression().get_params(deep=False).keys() & self.get_params().keys()
        model = _Fold(C, **{name: getattr(self, name) for name in names})
        unseen = np.setdiff1d(np.arange(len(problem.classes)), present)
        intercept = found.intercept.copy()
        intercept[unseen] = -np.inf
        model._keep(problem, found._replace(intercept=intercept), found.report)
        if hasattr(self, "n_features_in_"):
            model.n_features_in_ = self.n_features_in_
        return model


class _Path(NamedTuple):
    """The scores of a fold, its best minimum, and a report for each C."""

    scores: np.ndarray
    best: Any
    reports: list[tuple[float, Report]]


class _Fold(KernelLogisticRegression):
    """A fitted model that knows its values at the points held out."""

    known: Any = None, None  # the points held out, and its values there

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b."""
        held_out, values = self.known
        return values if X is held_out else super().decision_function(X)


class _Scorer:
    """The scorer of a name or function; the log-loss is told of classes that a fold lacks."""

    def __init__(self, scoring: Any, classes: np.ndarray) -> None:
        if isinstance(scoring, str) and scoring == "neg_log_loss":
            self.call = make_scorer(
                log_loss, greater_is_better=False, response_method="predict_proba", labels=classes
            )
        else:
            self.call = get_scorer("accuracy" if scoring is None else scoring)
        measure = getattr(self.call, "_score_func", self.call)
        self.weighs = "sample_weight" in inspect.signature(measure).parameters

    def __call__(self, model: _Fold, X: Any, y: np.ndarray, weights: np.ndarray | None) -> float:
        options = {"sample_weight": weights} if weights is not None and self.weighs else {}
        return float(self.call(model, X, y, **options))


def _best(scores: np.ndarray, Cs: np.ndarray) -> int:
    """Return where the best score is; of equal ones, that of the smallest C; nan is the worst."""
    if np.isnan(scores).all():
        raise ValueError(
            "every score is nan; the usual cause is a scorer that needs all classes in each fold. "
            "Use fewer folds, stratified ones, or another scoring"
        )
    order = np.argsort(Cs, kind="stable")
    return int(order[np.nanargmax(scores[order])])


def _warn_once(paths: list[_Path]) -> None:
    reports = [item for path in paths for item in path.reports]
    failed = [item for item in reports if item[1].status is Status.NOT_CONVERGED]
    if failed:
        C, report = failed[0]
        warn_caller(
            f"{len(failed)} of {len(reports)} fits did not converge, the first with C={C:g}: "
            f"{report.message}",
            ConvergenceWarning,
        )


def _mean_report(problem: Problem, reports: list[Report]) -> Report:
    """Return the report of a mean of functions, which minimises nothing itself."""
    status = Status.APPROXIMATE if problem.phi.approximate else Status.CONVERGED
    if any(report.status is Status.NOT_CONVERGED for report in reports):
        status = Status.NOT_CONVERGED
    return Report(
        solver=repr(problem.solver),
        status=status,
        n_iter=sum(report.n_iter for report in reports),
        seconds=sum(report.seconds for report in reports),
        message=f"{problem.phi.message}; the mean of {len(reports)} functions, one for each fold",
        certificate={"trace left": problem.phi.residual} if problem.phi.approximate else {},
    )


def _filled(found: Minimum, present: np.ndarray, q: int) -> Minimum:
    """Return functions for all classes: 0 for those that a fold has not seen."""
    w, b = np.zeros((len(found.weights), q)), np.zeros(q)
    if len(present) == 2:  # one function, half of it against each
        w[:, present] = 0.5 * found.weights * [-1.0, 1.0]
        b[present] = 0.5 * found.intercept * [-1.0, 1.0]
    else:
        w[:, present], b[present] = found.weights, found.intercept
    return found._replace(weights=w, intercept=b)
