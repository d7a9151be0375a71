"""Kernel logistic regression with C chosen by cross-validation."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, get_scorer_names, log_loss, make_scorer

from ..._core import Points, warn_caller
from ...solvers import Minimum, RegularisedRisk, Report, Status
from .._blockwise import in_memory
from .._label_encoding import encode_targets
from .._parameters import estimator, fit_method, fitted, parameter
from .._training_sample import check_positive_numbers, check_weights, split_folds
from ._kernel_logistic import KernelLogisticRegression, LogisticEstimator, LogisticProblem


@estimator()
class KernelLogisticRegressionCV(LogisticEstimator):
    """Kernel logistic regression with cross-validated C.

    The kernel matrix is evaluated and factored only once, K = F F^T. The rows of F are coordinates
    of the points, so each fold uses a subset of these rows. Each fold is fitted for increasing C,
    starting from the solution for the previous C. With "nystroem" the landmarks are chosen once
    among all points, without using the labels. Likewise, scales such as gamma="scale" are computed
    once from all points.

    Parameters
    ----------
    Cs : int or array of floats
        The values of C to try, or the number of values between 1e-4 and 1e4, as in
        LogisticRegressionCV. If the best C is the smallest or the largest, extend the range.
    cv : int, splitter, iterable or None
        The cross-validation splits: a number of stratified folds, a scikit-learn splitter, or an
        iterable of index pairs; None means 5 stratified folds.
    scoring : str, callable or None
        The name of a scikit-learn scorer, or a function scorer(model, X, y), where the model is a
        fitted KernelLogisticRegression; None means accuracy. The default, "neg_log_loss",
        evaluates probabilities, like LogisticRegressionCV from scikit-learn 1.11 on. Scores use
        sample_weight if the scorer supports it.
    refit : bool
        Whether to fit all points again with the best C. If False, the model is the average of the
        functions of the folds, each at the best C of its fold, `C_` is the average of these C, and
        the report has no certificate of optimality.

    Attributes
    ----------
    C_ : float
        The best C; the smallest one if several have the same score.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C that were tried.
    scores_ : ndarray of shape (n_folds, n_Cs)
        The score of each fold for each C.
    best_score_ : float
        The mean score over the folds at the best C. If `refit` is False, the mean of the best
        scores of the folds.
    classes_, expansion_, X_fit_, dual_coef_, intercept_, n_iter_, kernel_, solver_, report_
        As in KernelLogisticRegression, for the final fit.

    See Also
    --------
    KernelLogisticRegression : The model for a single C.
    KernelRidgeCV : Selects alpha and gamma of regression.
    tune : Optimises kernel parameters as well.
    sklearn.linear_model.LogisticRegressionCV : The linear case.
    sklearn.model_selection.GridSearchCV : Searches gamma and other parameters too; slower.

    References
    ----------
    Zhu and Hastie, "Kernel logistic regression and the import vector machine", Journal of
    Computational and Graphical Statistics 14, 2005.

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

    Cs: int | np.ndarray | list = parameter("positive integer", "array-like", default=10)
    _: KW_ONLY
    cv: Any = parameter("cv_object", default=None)
    scoring: Any = parameter(set(get_scorer_names()), callable, None, default="neg_log_loss")
    refit: bool = parameter("boolean", default=True)

    C_: float = fitted()
    Cs_: np.ndarray = fitted()
    scores_: np.ndarray = fitted()
    best_score_: float = fitted()

    _in_passes = False  # each fold selects rows of the coordinates F
    _extra_copies_of_F = 1  # each fold makes a copy of its training rows of F

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose C by cross-validation and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights that multiply the losses, and weight the scores if the scorer supports it.

        Returns
        -------
        self : KernelLogisticRegressionCV
            The fitted estimator.
        """
        Cs = self.Cs
        Cs = check_positive_numbers(
            np.logspace(-4, 4, int(Cs)) if isinstance(Cs, Integral) else Cs, "Cs"
        )
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        y = in_memory(y)
        score_weights = (
            None if sample_weight is None else check_weights(sample_weight, sample.given)
        )
        problem = self._problem(sample)
        y, scorer = np.asarray(y).ravel(), _Scorer(self.scoring, problem.classes)
        fold_results: list[_FoldResult] = []
        for train, test in split_folds(self.cv, X, y, sample, classifier=True):
            rows = sample.kept[test]
            w = None if score_weights is None else score_weights[rows]
            # Scorers receive the test points only to pass them to `_FoldModel`, which recognises
            # them; for points in blocks, their indices serve as well.
            points = sample.rows(rows) if sample.drawn is None else rows
            held_out = points, y[rows], w
            fold_results.append(self._fit_fold(problem, Cs, train, test, held_out, scorer))
            self._log_progress(
                f"fold {len(fold_results)}: scores {np.round(fold_results[-1].scores, 4).tolist()}"
            )
        scores = np.array([result.scores for result in fold_results])
        weights = np.mean([result.best.weights for result in fold_results], axis=0)
        intercept = np.mean([result.best.intercept for result in fold_results], axis=0)
        if self.refit:
            best = _best_index(scores.mean(axis=0), Cs)
            C, score = float(Cs[best]), float(scores[:, best].mean())
            minimum = self._minimize(problem, problem.risk, C, (weights, intercept))
            _warn_once([*fold_results, _FoldResult(scores[0], minimum, [(C, minimum.report)])])
            report = self._make_report(problem, minimum, C)
        else:
            best_indices = [_best_index(fold_scores, Cs) for fold_scores in scores]
            C = float(np.mean(Cs[best_indices]))
            score = float(np.mean(scores[np.arange(len(best_indices)), best_indices]))
            minimum = fold_results[-1].best._replace(weights=weights, intercept=intercept)
            _warn_once(fold_results)
            report = _mean_report(problem, [result.best.report for result in fold_results])
        self.Cs_, self.scores_, self.C_, self.best_score_ = Cs, scores, C, score
        self._set_fitted_attributes(problem, minimum, report)
        return self

    def _fit_fold(
        self,
        problem: LogisticProblem,
        Cs: np.ndarray,
        train: np.ndarray,
        test: np.ndarray,
        held_out: tuple[Any, np.ndarray, np.ndarray | None],
        scorer: _Scorer,
    ) -> _FoldResult:
        """Fit one fold for all C; return the scores in the order of Cs, and the best minimum."""
        risk, q = cast(RegularisedRisk, problem.risk), len(problem.classes)
        present = np.unique(problem.labels[train])
        if len(present) < 2:
            raise ValueError(
                f"the training points of a fold have only {len(present)} class; the usual "
                f"causes are a class with very few points, and folds of sorted points. Use "
                f"stratified folds, or add points of the rare class"
            )
        Y, loss = encode_targets(np.searchsorted(present, problem.labels[train]), len(present))
        fold_risk = replace(risk, F=risk.F[train], Y=Y, loss=loss, weights=risk.weights[train])
        F, scores, reports = risk.F[test], np.full(len(Cs), np.nan), []
        start, best, best_score = None, None, np.nan
        for c in np.argsort(Cs, kind="stable"):
            C = float(Cs[c])
            minimum = self._minimize(problem, fold_risk, C, start)
            start = minimum.weights, minimum.intercept
            reports.append((C, minimum.report))
            minimum = minimum if len(present) == q else _add_missing_classes(minimum, present, q)
            model = self._fold_model(problem, minimum, present, C)
            values = F @ minimum.weights + model.intercept_
            model.cached = held_out[0], values[:, 0] if q == 2 else values
            scores[c] = scorer(model, *held_out)
            if best is None or np.isnan(best_score) or scores[c] > best_score:
                best = minimum
            best_score = np.fmax(best_score, scores[c])
        return _FoldResult(scores, best, reports)

    def _fold_model(
        self, problem: LogisticProblem, minimum: Minimum, present: np.ndarray, C: float
    ) -> _FoldModel:
        """Return the minimum of a fold as a fitted model for the scorer.

        Classes that are not in the training points of the fold have probability 0.
        """
        names = KernelLogisticRegression().get_params(deep=False).keys() & self.get_params().keys()
        model = _FoldModel(C, **{name: getattr(self, name) for name in names})
        unseen = np.setdiff1d(np.arange(len(problem.classes)), present)
        intercept = minimum.intercept.copy()
        intercept[unseen] = -np.inf
        model._set_fitted_attributes(problem, minimum._replace(intercept=intercept), minimum.report)
        if hasattr(self, "n_features_in_"):
            model.n_features_in_ = self.n_features_in_
        return model


class _FoldResult(NamedTuple):
    """The scores of one fold for all C, its best model, and the report for each C."""

    scores: np.ndarray
    best: Any
    reports: list[tuple[float, Report]]


class _FoldModel(KernelLogisticRegression):
    """A fitted model with cached decision values at the test points of its fold."""

    cached: Any = None, None  # the test points and the decision values at them

    def decision_function(self, X: Points) -> np.ndarray:
        """Return f(x) + b, from the cache if X is the array of test points."""
        held_out, values = self.cached
        return values if X is held_out else super().decision_function(X)


class _Scorer:
    """Wrapper of a scorer that is given by name or as a function.

    The log-loss is called with all class labels, because some may be missing in a fold.
    """

    def __init__(self, scoring: Any, classes: np.ndarray) -> None:
        if isinstance(scoring, str) and scoring == "neg_log_loss":
            self.call = make_scorer(
                log_loss, greater_is_better=False, response_method="predict_proba", labels=classes
            )
        else:
            self.call = get_scorer("accuracy" if scoring is None else scoring)
        measure = getattr(self.call, "_score_func", self.call)
        self.accepts_weights = "sample_weight" in inspect.signature(measure).parameters

    def __call__(
        self, model: _FoldModel, X: Points, y: np.ndarray, weights: np.ndarray | None
    ) -> float:
        """Return the score; weights are used only if the scorer accepts them."""
        options = {"sample_weight": weights} if weights is not None and self.accepts_weights else {}
        return float(self.call(model, X, y, **options))


def _best_index(scores: np.ndarray, Cs: np.ndarray) -> int:
    """Return the index of the best score.

    Among equal scores, the smallest C is chosen. NaN counts as the worst score.
    """
    if np.isnan(scores).all():
        raise ValueError(
            "all scores are nan; the usual cause is a scorer that needs all classes in each fold. "
            "Use fewer folds, stratified folds, or another scoring"
        )
    order = np.argsort(Cs, kind="stable")
    return int(order[np.nanargmax(scores[order])])


def _warn_once(fold_results: list[_FoldResult]) -> None:
    """Issue one warning for all fits that did not converge."""
    reports = [item for result in fold_results for item in result.reports]
    failed = [item for item in reports if item[1].status is Status.NOT_CONVERGED]
    if failed:
        C, report = failed[0]
        warn_caller(
            f"{len(failed)} of {len(reports)} fits did not converge. The first of them, with "
            f"C={C:g}: {report.message}",
            ConvergenceWarning,
        )


def _mean_report(problem: LogisticProblem, reports: list[Report]) -> Report:
    """Return the report of the averaged model, which does not minimise any objective."""
    status = Status.APPROXIMATE if problem.phi.approximate else Status.CONVERGED
    if any(report.status is Status.NOT_CONVERGED for report in reports):
        status = Status.NOT_CONVERGED
    return Report(
        solver=repr(problem.solver),
        status=status,
        n_iter=sum(report.n_iter for report in reports),
        seconds=sum(report.seconds for report in reports),
        message=f"{problem.phi.message}; average of the {len(reports)} models of the folds",
        certificate={"trace left": problem.phi.residual} if problem.phi.approximate else {},
    )


def _add_missing_classes(minimum: Minimum, present: np.ndarray, q: int) -> Minimum:
    """Extend a model of the classes `present` to q classes; the others have f = 0 and b = 0."""
    w, b = np.zeros((len(minimum.weights), q)), np.zeros(q)
    if len(present) == 2:  # split the log-odds evenly between both classes
        w[:, present] = 0.5 * minimum.weights * [-1.0, 1.0]
        b[present] = 0.5 * minimum.intercept * [-1.0, 1.0]
    else:
        w[:, present], b[present] = minimum.weights, minimum.intercept
    return minimum._replace(weights=w, intercept=b)
