"""Kernel ridge regression with alpha and, optionally, gamma chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names

from ..._core import Points, as_float64, check_budget, take, warn_caller
from ...blocks import Blocks
from ...expansion import Expansion
from ...gram import DenseGram, TiledGram, can_share_distances, gram, iter_grams
from ...kernels import Kernel, Linear
from ...solvers import (
    ExactPath,
    LandmarkRidge,
    NystroemPath,
    Plan,
    RidgePath,
    Status,
    plan_exact_or_landmarks,
    warn_inaccurate,
)
from .._parameters import NumberOrArray, estimator, fit_method, fitted, parameter
from .._plan_method import n_of
from .._training_sample import Sample, check_positive_numbers, split_folds
from ._kernel_ridge import RidgeEstimator

_DEFAULT_ALPHAS = np.geomspace(1e-8, 1e2, 30)  # values in units of the mean of k(x, x)
_KERNELS_WITH_GAMMA = {"rbf", "laplacian", "poly", "polynomial", "sigmoid", "chi2"}


@estimator()
class KernelRidgeCV(RidgeEstimator):
    """Kernel ridge regression that chooses alpha, and optionally gamma, by cross-validation.

    Leave-one-out errors have the closed form

        e_i = a_i / P_ii,     a = P y,     P = (K + alpha I)^-1,

    here without weights and intercept.  One decomposition of K is used for all alphas, and one
    distance matrix for all gammas, so a search costs little more than a few fits.

    As in scikit-learn's `KernelRidge`, the default is a linear kernel without an intercept.  For
    most tables, set ``kernel="rbf"`` and ``fit_intercept=True``.  A warning is issued if the mean
    of y predicts better than a model without an intercept.

    Parameters
    ----------
    alphas : array-like or None
        Values of alpha to try; None means 30 values between 1e-8 and 100 times the mean of k(x, x).
        Values for which K + alpha I is not positive definite, up to rounding, are skipped with a
        warning. If the best alpha is the smallest or the largest, extend the range.
    gammas : array-like or None
        Values of gamma to try, for a kernel given by name, such as ``np.logspace(-4, 0, 9)`` for
        standardised columns; None means only `gamma`.
    scoring : str, callable or None
        A scikit-learn scorer; None means the negative mean squared error.  If sample weights are
        passed to `fit`, the scorer must accept them.
    cv : None, "gcv", int or a splitter
        None means leave-one-out in closed form; "gcv" means generalised cross-validation, which
        cannot be combined with `scoring`; otherwise the number of folds or a splitter, as in
        scikit-learn.
    alpha_per_target : bool
        Whether to choose one alpha for each target; only for leave-one-out without `scoring`, and
        for "gcv".
    store_cv_results : bool
        Whether to store `cv_results_`; only for leave-one-out.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The best alpha.
    gamma_ : float or str or None
        The best of `gammas`, or `gamma`.
    best_score_ : float or ndarray of shape (n_targets,)
        The score of the best alpha and gamma.
    alphas_ : ndarray of shape (n_alphas,)
        The values of alpha that were tried.
    scores_ : ndarray of shape (n_gammas, n_alphas) or (n_gammas, n_alphas, n_targets)
        The scores of all combinations; -inf for values of alpha that were skipped.
    cv_results_ : ndarray of shape (n, n_alphas) or (n, n_targets, n_alphas)
        Squared leave-one-out errors for the best gamma, or predictions if `scoring` is given, as
        in scikit-learn's RidgeCV; only if `store_cv_results` is True.
    leave_one_out_ : ndarray of shape (n,) or (n, n_targets)
        Leave-one-out predictions for the best alpha and gamma; only if cv is None.
    dual_coef_, intercept_, X_fit_, expansion_, kernel_, report_
        As in `KernelRidge`.

    See Also
    --------
    KernelRidge : The model for a single alpha and gamma.
    GaussianProcessRegressor : Learns many kernel parameters by maximum likelihood.
    tune : Optimises many kernel parameters by leave-one-out errors.
    sklearn.linear_model.RidgeCV : The linear case.
    sklearn.model_selection.GridSearchCV : Searches any parameters, with a fit for each combination
        and fold.

    References
    ----------
    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics 21, 1979.

    Rifkin and Lippert, "Notes on regularized least squares", MIT technical report, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100)
    >>> model = KernelRidgeCV(kernel="rbf", gammas=[0.01, 0.1, 1.0, 10.0]).fit(X, y)
    >>> model.gamma_, bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    (0.1, True)
    """

    alphas: Any = parameter("array-like", None, default=None)
    _: KW_ONLY
    gammas: Any = parameter("array-like", None, default=None)
    scoring: Any = parameter(set(get_scorer_names()), callable, None, default=None)
    cv: Any = parameter({"gcv"}, "cv_object", default=None)
    alpha_per_target: bool = parameter("boolean", default=False)
    store_cv_results: bool = parameter("boolean", default=False)

    alpha_: NumberOrArray = fitted()
    alphas_: np.ndarray = fitted()
    gamma_: Any = fitted()
    scores_: np.ndarray = fitted()
    best_score_: NumberOrArray = fitted()
    leave_one_out_: np.ndarray = fitted(per_point=True)
    cv_results_: np.ndarray = fitted(per_point=True)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Try all alphas and gammas, and fit with the best combination.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors, also in the score.

        Returns
        -------
        self : KernelRidgeCV
            The fitted estimator.
        """
        self._check_parameters()
        if isinstance(X, Blocks) and (
            self._uses_folds or self.scoring is not None or self.store_cv_results
        ):
            raise ValueError(
                "for points in blocks, only the mean squared leave-one-out error (cv=None, "
                "scoring=None) and cv='gcv' are supported, and store_cv_results must be False"
            )
        sample = self._sample(X, y, sample_weight)
        gammas = (
            [self.gamma]
            if self.gammas is None
            else check_positive_numbers(self.gammas, "gammas").tolist()
        )
        kernels = [self._resolve_kernel(sample, g) for g in gammas]
        evaluated = [sample.evaluated(kernel, self.max_memory) for kernel in kernels]
        self.alphas_ = self._grid(evaluated, sample)
        splits = split_folds(self.cv, X, np.asarray(y), sample) if self._uses_folds else None
        best_index, best = self._search(evaluated, sample, splits)
        self.kernel_, self.gamma_ = kernels[best_index], gammas[best_index]
        alphas = self.alphas_[best.chosen]
        solution = best.solution or self._refit(evaluated[best_index], sample, alphas)
        if best.solution and solution.report.status is Status.INACCURATE:
            warn_inaccurate(solution.report)  # warn for the best kernel only
        if self.solver == "nystroem":
            f = Expansion(self.kernel_, solution.points, solution.A)
        else:
            f = sample.expansion(self.kernel_, solution.A)
        self._set_expansion(f, solution.b, sample.flat)
        if sample.values is None:  # otherwise it contains the matrix, which must not be stored
            self._ridge = self._problem(self.kernel_, sample, alphas)
            if isinstance(self._ridge, LandmarkRidge):
                seen = sample.subsample
                data = seen.points, seen.targets, seen.weights
                self._ridge.calibrate(solution.path, *data)
        per_target = self.alpha_per_target and not sample.flat
        self.report_, self.alpha_ = solution.report, alphas if per_target else float(alphas[0])
        self.best_score_ = best.scores.max(axis=0) if per_target else best.best
        self._set_point_attributes(best, X, sample)
        self._warn_if_constant_is_better(sample)
        return self

    def _warn_if_constant_is_better(self, sample: Sample) -> None:
        """Warn if the mean of y predicts better than the best model, because of the intercept."""
        if self.fit_intercept or self._uses_folds or self.scoring is not None:
            return
        mean = np.average(sample.targets, axis=0, weights=sample.weights)
        variance = np.average((sample.targets - mean) ** 2, axis=0, weights=sample.weights)
        error = float(-np.mean(self.best_score_))
        # The factors exclude small samples, in which a model can be worse than the mean by chance.
        if error <= 2.0 * variance.mean() or np.mean(mean**2) <= 4.0 * variance.mean():
            return
        linear = self._kernel_spec == "linear" or isinstance(self.kernel_, Linear)
        kernel = " and, for a nonlinear function, kernel='rbf'" if linear else ""
        warn_caller(
            f"KernelRidgeCV predicts worse than the mean of y: the best cross-validated mean "
            f"squared error is {error:.4g}, and the variance of y is {variance.mean():.4g}. The "
            f"usual cause is that the model has no intercept, but the mean of y is not 0. Set "
            f"fit_intercept=True{kernel}, or subtract the mean of y"
        )

    def _score_path(
        self, path: Any, values: np.ndarray, usable: np.ndarray, q: int
    ) -> AlphaSearchResult:
        """Return the scores of all alphas (-inf for unusable ones) and the best solution."""
        if values.ndim == 2 and not self.alpha_per_target:
            values = values.mean(axis=1)
        scores = np.full((len(usable), *values.shape[1:]), -np.inf)
        scores[usable] = np.where(np.isnan(values), -np.inf, values)
        chosen = best_indices(scores, q)
        solution = ExpansionSolution(
            path.points, *path.solve_each(self.alphas_[chosen], warn=False)
        )
        if isinstance(path, NystroemPath):  # prediction intervals need the small factors
            solution = solution._replace(path=path.without_data())
        return AlphaSearchResult(scores, chosen, solution)

    # ------------------------------------------------------------------ the search

    @property
    def _uses_folds(self) -> bool:
        """Whether the score is a mean over folds instead of leave-one-out or GCV."""
        return not (self.cv is None or isinstance(self.cv, str))

    def _check_parameters(self) -> None:
        """Raise an error if parameters contradict each other."""
        if self.alpha_per_target and (self._uses_folds or self.scoring is not None):
            raise ValueError(
                "alpha_per_target=True needs separate errors for each target; use cv=None with "
                "scoring=None, or cv='gcv'"
            )
        if self.scoring is not None and isinstance(self.cv, str):
            raise ValueError("cv='gcv' cannot be combined with scoring; use scoring=None")
        if self.store_cv_results and self.cv is not None:
            raise ValueError("store_cv_results=True needs leave-one-out errors; use cv=None")
        name = self.kernel if isinstance(self.kernel, str) else None
        if self.gammas is not None and name not in _KERNELS_WITH_GAMMA:
            raise ValueError(
                f"gammas requires a kernel given by name, one of {sorted(_KERNELS_WITH_GAMMA)}, "
                f"but the kernel is {self.kernel!r}; search over other parameters with "
                f"GridSearchCV(KernelRidge(...))"
            )

    def _grid(self, kernels: list[Kernel], data: Sample) -> np.ndarray:
        """Return the alphas to try; default values are proportional to the mean of k(x, x)."""
        if self.alphas is not None:
            return check_positive_numbers(self.alphas, "alphas")
        seen = data.subsample
        diagonals = (np.abs(kernel.diag(seen.points)) for kernel in kernels)
        scales = np.array([np.average(d, weights=seen.weights) for d in diagonals])
        scales = scales[scales > 0]
        return _DEFAULT_ALPHAS * (np.exp(np.mean(np.log(scales))) if scales.size else 1.0)

    def _search(
        self, kernels: list[Kernel], data: Sample, splits: list | None
    ) -> tuple[int, AlphaSearchResult]:
        """Return the index of the best kernel, and its scores and solution."""
        best_index, best, scores = 0, None, []
        for j, (kernel, K) in enumerate(zip(kernels, self._grams(kernels, data), strict=True)):
            if splits is None:
                result = self._score_by_path(kernel, K, data)
            else:
                result = self._score_by_folds(kernel, K, data, splits)
            self._log_progress(f"{kernel}: best score {result.best:.6g}")
            scores.append(result.scores)
            if best is None or result.best > best.best:
                best_index, best = j, result
        self.scores_ = np.array(scores)
        if best is None or not np.isfinite(best.best):
            raise ValueError(
                f"no alpha has a finite score (best: {None if best is None else best.best}); the "
                f"usual causes are targets or scores that overflow, and folds with a single point"
            )
        return best_index, best

    def _plan(self, sample: Sample) -> Plan:
        n, q = sample.targets.shape
        n_kernels = 1 if self.gammas is None else len(self.gammas)
        return plan_exact_or_landmarks(
            f"kernel ridge regression of {n} points, {n_of(q, 'target')}, many alphas",
            self._planned_kernel(sample),
            sample.points,
            self.solver,
            self._chosen,
            squares=2.0 + (n_kernels > 1) + 2.0 * self._uses_folds,
            features=(0.0, 3.0, 4.5),
            steps=4.0 * n_kernels,
            max_memory=self.max_memory,
        )

    def _grams(self, kernels: list[Kernel], data: Sample) -> Iterator[DenseGram | None]:
        """Yield K for each kernel, or None if the solver uses landmarks instead of K."""
        n = len(data.targets)
        matrices = 0 if self.solver == "nystroem" else 2 + can_share_distances(kernels)
        matrices += 2 * self._uses_folds if matrices else 0
        in_blocks = data.drawn is not None  # single errors are not stored
        errors = (
            0
            if self._uses_folds or in_blocks
            else 2 * n * data.targets.shape[1] * len(self.alphas_)
        )
        check_budget(
            8 * (n * n * matrices + errors),
            self.max_memory,
            f"a search over {len(kernels)} kernels and {len(self.alphas_)} alphas on {n} points",
        )
        if not matrices:
            yield from [None] * len(kernels)
        elif data.values is not None:
            yield gram(kernels[0], data.points, max_memory=self.max_memory)
        else:
            # K is computed in float64 even for float32 points, because small alphas are below
            # the rounding errors of float32.
            yield from iter_grams(kernels, as_float64(data.points))

    # ------------------------------------------------------------------ leave-one-out and GCV

    def _score_by_path(
        self, kernel: Kernel, K: DenseGram | None, data: Sample
    ) -> AlphaSearchResult:
        """Score all alphas by leave-one-out or GCV, from one decomposition of K."""
        if self.cv is None and len(data.targets) - self.fit_intercept < 1:
            raise ValueError(
                "leave-one-out with an intercept needs at least two points, got n_samples = 1"
            )
        path = self._path(kernel, K, data)
        usable = self._usable_alphas(path, kernel)
        alphas, errors = self.alphas_[usable], None
        if self.cv == "gcv":
            values = -path.gcv(alphas)
        elif data.drawn is not None:
            values = -path.mean_squares(alphas)
        else:
            errors = np.full((len(usable), *data.targets.shape), np.nan)
            errors[usable] = list(path.leave_one_out(alphas))
            values = self._score_errors(errors[usable], data)
        return self._score_path(path, values, usable, data.targets.shape[1])._replace(errors=errors)

    def _path(self, kernel: Kernel, K: DenseGram | None, data: Sample) -> Any:
        """Return the decomposition that yields the solutions for all alphas."""
        if K is None:
            return self._problem(kernel, data, np.ones(data.targets.shape[1])).path()
        return ExactPath(K, data.targets, data.weights, intercept=self.fit_intercept)

    def _usable_alphas(self, path: RidgePath, kernel: Kernel) -> np.ndarray:
        """Return a mask of the alphas with a positive definite system; warn about the others."""
        usable = path.usable(self.alphas_)
        if not usable.any():
            path.solve(self.alphas_.max())  # raises an error or warns, with the reason
            usable = self.alphas_ == self.alphas_.max()
        if not usable.all():
            warn_caller(
                f"{np.sum(~usable)} of {len(usable)} alphas, up to "
                f"{self.alphas_[~usable].max():.3g}, are skipped, because K + alpha I is not "
                f"positive definite up to rounding errors, for {kernel}",
                ConvergenceWarning,
            )
        return usable

    def _score_errors(self, errors: np.ndarray, data: Sample) -> np.ndarray:
        """Turn leave-one-out errors of shape (n_alphas, n, n_targets) into scores.

        Without `scoring` there is one score for each alpha and target; otherwise one for each
        alpha.
        """
        if self.scoring is None:
            return -np.average(np.square(errors), axis=1, weights=data.weights)
        return np.array(
            [
                score_predictions(self.scoring, data.targets - e, data.targets, data.weights)
                for e in errors
            ]
        )

    # ------------------------------------------------------------------ folds

    def _score_by_folds(
        self, kernel: Kernel, K: DenseGram | None, data: Sample, splits: list
    ) -> AlphaSearchResult:
        """Score all alphas by their mean score over the folds."""
        total, usable = np.zeros(len(self.alphas_)), np.ones(len(self.alphas_), dtype=bool)
        for train, test in splits:
            train_sample = data.take(train)
            if K is None:
                path = self._path(kernel, None, train_sample)
                cross_gram: Any = TiledGram(kernel, take(data.points, test), path.points)
            else:
                train_gram = DenseGram.from_array(
                    K.block(train, train), kernel, train_sample.points
                )
                path = self._path(kernel, train_gram, train_sample)
                cross_gram = K.block(test, train)
            usable &= self._usable_alphas(path, kernel)
            weights = None if data.weights is None else data.weights[test]
            for j in np.flatnonzero(usable):
                A, b = path.solve(self.alphas_[j], warn=False)
                values = np.asarray(cross_gram @ A) + b
                total[j] += score_predictions(self.scoring, values, data.targets[test], weights)
            del path, cross_gram  # free the memory before the next fold
        scores = np.where(usable & ~np.isnan(total), total / len(splits), -np.inf)
        return AlphaSearchResult(scores, best_indices(scores, data.targets.shape[1]))

    def _refit(self, kernel: Kernel, data: Sample, alphas: np.ndarray) -> ExpansionSolution:
        """Fit to all points with the best alpha, after cross-validation over folds."""
        problem = self._problem(kernel, data.doubled(), alphas)
        A, b = problem.solve()
        points, path = getattr(problem, "points", None), getattr(problem, "_path", None)
        return ExpansionSolution(points, A, b, problem.report, path)

    # ------------------------------------------------------------------ fitted attributes

    def _set_point_attributes(self, best: AlphaSearchResult, X: Points, sample: Sample) -> None:
        """Set `leave_one_out_` and `cv_results_`, if leave-one-out errors were computed."""
        if best.errors is None:
            return
        Y, indices, flat = sample.targets, sample.kept, sample.flat
        best_errors = best.errors[best.chosen, :, np.arange(Y.shape[1])].T
        predictions = sample.scatter(Y - best_errors)
        if not sample.whole:  # the fitted model predicts points of weight 0
            zero_weight = np.flatnonzero(sample.places < 0)
            predictions[zero_weight] = self._values(take(X, zero_weight))
        self.leave_one_out_ = predictions[:, 0] if flat else predictions
        if self.store_cv_results:
            results = np.full((len(self.alphas_), *predictions.shape), np.nan)
            results[:, indices] = (
                np.square(best.errors) if self.scoring is None else Y - best.errors
            )
            results = results.transpose(1, 2, 0)
            self.cv_results_ = results[:, 0] if flat else results


class ExpansionSolution(NamedTuple):
    """Fitted functions f = sum_i A_i k(points_i, .) + b, and the report of the solver."""

    points: Any
    A: np.ndarray
    b: np.ndarray
    report: Any
    path: NystroemPath | None = None  # for landmarks


class AlphaSearchResult(NamedTuple):
    """The result of a search over alpha for one kernel.

    Contains the scores of all candidates and the index of the best alpha for each target.
    """

    scores: np.ndarray  # shape (n_alphas,), or (n_alphas, q) with one alpha per target
    chosen: np.ndarray  # index of the best alpha for each target, of shape (q,)
    solution: ExpansionSolution | None = None
    errors: np.ndarray | None = None  # leave-one-out errors, of shape (n_alphas, n, q)

    @property
    def best(self) -> float:
        """The best score; if each target has its own scores, the mean of their best scores."""
        return float(np.mean(self.scores.max(axis=0)))


class _IdentityModel(RegressorMixin, BaseEstimator):
    """A model that returns its input as prediction, so that scorers can score predictions."""

    def fit(self, X: Points, y: object = None) -> Self:
        """Return self; there is nothing to fit."""
        return self

    def predict(self, X: Points) -> Points:
        """Return X."""
        return X


def score_predictions(
    scoring: Any, predictions: np.ndarray, Y: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the score of predictions.

    Parameters
    ----------
    scoring : str, callable or None
        A scorer; None means "neg_mean_squared_error".
    predictions : ndarray of shape (n, q)
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """
    scorer = check_scoring(_IdentityModel(), scoring or "neg_mean_squared_error")
    if Y.shape[1] == 1:
        predictions, Y = predictions[:, 0], Y[:, 0]
    if weights is None:
        return float(scorer(_IdentityModel(), predictions, Y))
    try:
        return float(scorer(_IdentityModel(), predictions, Y, sample_weight=weights))
    except TypeError as error:
        raise TypeError(
            f"scoring={scoring!r} does not accept sample_weight ({error}); omit the weights, or "
            f"choose a scorer that accepts them"
        ) from error


def best_indices(scores: np.ndarray, q: int) -> np.ndarray:
    """Return the index of the best alpha for each of q targets, the first one in case of ties."""
    return np.broadcast_to(np.argmax(scores, axis=0), (q,))
