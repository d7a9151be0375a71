"""Prediction intervals and prediction sets with a guaranteed coverage (conformal prediction).

A score measures how badly a prediction fits an observation: the absolute error, or the distance of
an observation from an interval of quantiles, or 1 minus the probability of a class.  With n scores
of points that a model has not seen, the ceil(coverage (n + 1))-th smallest score bounds the score
of a new observation with the requested probability (split conformal prediction).  The jackknife+
and cross-conformal prediction (CV+) use the training points instead, each with the score of a model
that was fitted without it.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._core import Points, budget_in_bytes, length, slices, take
from ..expansion import Primal
from ..solvers import interval_bounds, interval_rank, warn_if_infinite
from ._parameters import estimator, fitted, predict_method
from ._training_sample import check_weights

_MAX_BLOCK_BYTES = 2**25  # bytes of one array of bounds, for some new points and all scores


@estimator(kw_only=True)
class ConformalMixin(BaseEstimator):
    """Base class of estimators with prediction intervals or sets.

    Attributes
    ----------
    calibration_scores_ : ndarray of shape (n_calibration,) or (n_calibration, n_targets)
        The scores of the observations that were passed to `conformalize`: absolute errors, or for
        classes 1 minus the probability of the observed class.
    fold_models_ : list
        The models of the folds, if `conformalize` was called with `cv`; otherwise empty.
    """

    calibration_scores_: np.ndarray = fitted(per_point=True)
    fold_models_: list = fitted(per_point=True)
    _score_folds: np.ndarray = fitted(per_point=True)

    @predict_method
    def conformalize(
        self, X: Points, y: ArrayLike, *, cv: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Compute scores of observations, which determine the size of intervals or sets.

        Call it after `fit`. The fitted model and its predictions do not change. Another `fit`
        removes the scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            With ``cv=None``, points that were not used in `fit`, nor to choose parameters (split
            conformal prediction). Otherwise the training points.
        y : array-like of shape (n,) or (n, n_targets)
            Their targets or labels.
        cv : int, splitter or None, default=None
            The number of folds, or a splitter. A copy of the model is fitted for each fold, and
            stored, and the scores are those of the points outside its training data
            (cross-conformal prediction, CV+). Use it if there are too few points to hold out some
            of them.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights for the fits on folds.

        Returns
        -------
        self : estimator
            The same estimator.

        Notes
        -----
        The scores belong to the fitted model: they are stored in model files, but not in the models
        that `compress` and `to_primal` return, whose errors are different.

        References
        ----------
        Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", Springer, 2005.

        Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals of
        Statistics 49, 2021.
        """
        check_is_fitted(self, "kernel_")  # a Gaussian process predicts before `fit`
        if cv is None and sample_weight is not None:
            raise ValueError(
                "sample_weight is only used for the fits on folds; without cv, scores are computed "
                "for the fitted model, and each point counts once. Omit sample_weight"
            )
        y = np.asarray(y)
        n = length(X)
        if len(y) != n:
            raise ValueError(f"X has {n} points, but y has {len(y)} values")
        folds, models = np.zeros(n, dtype=np.int64), list[Any]()
        if cv is None:
            scores = self._scores(X, y)
        else:
            folds, models = self._fit_folds(X, y, cv, sample_weight)
            parts = [np.flatnonzero(folds == k) for k in range(len(models))]
            scores_of_folds = [
                self._scores(take(X, rows), y[rows], model)
                for rows, model in zip(parts, models, strict=True)
            ]
            order = np.argsort(np.concatenate(parts))
            scores = np.concatenate(scores_of_folds)[order]
        self.calibration_scores_, self._score_folds, self.fold_models_ = scores, folds, models
        return self

    def _scores(self, X: Points, y: np.ndarray, model: Any = None) -> np.ndarray:
        """Return the score of each observation under a model; None means this one."""
        raise NotImplementedError

    def _fit_folds(
        self, X: Points, y: np.ndarray, cv: Any, sample_weight: ArrayLike | None
    ) -> tuple[np.ndarray, list]:
        """Return the fold of each point, and the models that were fitted without each fold."""
        from sklearn.model_selection import check_cv  # slow to import, and rarely needed

        if getattr(self, "_precomputed", False):
            raise ValueError(
                "cv cannot be used with kernel='precomputed', because each fold has other training "
                "points; pass points that were not used in `fit`, without cv, or use "
                "kernel=Precomputed(K) with indices as points"
            )
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        n, folds, models = len(y), np.full(len(y), -1), []
        is_classifier = hasattr(self, "classes_")
        splitter = check_cv(cv, y, classifier=is_classifier)
        for k, (train, test) in enumerate(splitter.split(np.zeros((n, 1)), y)):
            if np.any(folds[test] >= 0):
                raise ValueError(f"cv={cv!r} has points in several test folds; use KFold")
            folds[test] = k
            options = {} if weights is None else {"sample_weight": weights[train]}
            models.append(clone(self).fit(take(X, train), y[train], **options))
        if np.any(folds < 0):
            raise ValueError(
                f"{np.sum(folds < 0)} of {n} points are in no test fold of cv={cv!r}; use KFold"
            )
        return folds, models

    def _conformal_models(self) -> list[tuple[Any, np.ndarray]]:
        """Return pairs of a model and the indices of its scores."""
        models = self.fold_models_ or [self]
        return [(m, np.flatnonzero(self._score_folds == k)) for k, m in enumerate(models)]


@estimator(kw_only=True)
class IntervalMixin(ConformalMixin):
    """Mixin for regressors with prediction intervals.

    A subclass whose leave-one-out predictions have a closed form implements `_jackknife_bounds`.
    """

    @predict_method
    def predict_interval(self: Any, X: Points, coverage: float = 0.9) -> np.ndarray:
        """Return intervals that contain new observations with a given probability.

        If `conformalize` was not called, `KernelRidge`, `KernelRidgeCV` and
        `GaussianProcessRegressor` use the jackknife+, whose leave-one-out predictions have a closed
        form. No model is fitted again, but for an exact solver the first call factorises a matrix
        of shape (n, n), as `fit` does. The parameters of the kernel, the ridge penalty and the
        landmarks are the same in all leave-one-out models. After `conformalize`, and for all other
        models, the intervals are those of split or cross-conformal prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. If X is in blocks, so is the result.
        coverage : float, default=0.9
            The nominal probability, between 0 and 1. If there are fewer than coverage /
            (1 - coverage) calibration points, the intervals are infinite, with a warning.

        Returns
        -------
        ndarray of shape (n, 2) or (n, n_targets, 2)
            The lower and upper bounds. Several targets have separate intervals, each with this
            coverage; the probability that all of them contain their targets is lower.

        Notes
        -----
        **Guarantee.** For any distribution, and for models that are wrong, the interval of a new
        point contains its observation with a probability of at least `coverage` after
        ``conformalize(X, y)`` with held-out points, and of at least 2 coverage - 1 with the
        jackknife+ or ``conformalize(X, y, cv=...)`` (for cv, up to a term that vanishes as n
        grows). In practice, the coverage of the latter is also close to `coverage`. The probability
        is an average over new points and over training samples: it may be lower for some regions
        of X.

        **Assumptions.** The training points, calibration points and new points must be
        exchangeable: all orders in which they could have been observed are equally probable, as for
        independent draws from one distribution. There is no guarantee for time series, for new
        points from another distribution (covariate shift, drift), for groups of related rows, and
        for extrapolation. Nor is there one for the jackknife+ if parameters were chosen with the
        same data, by `KernelRidgeCV`, `tune` or maximum likelihood, because the leave-one-out
        errors are then too small. The coverage is too low by some per cent if many combinations
        were compared on less than 200 points, and nearly nominal for many points. In this case use
        ``conformalize(X, y, cv=10)``, which repeats the choice of `KernelRidgeCV` in each fold, or
        held-out data.

        Sample weights are used in the fits. Each point of positive weight then counts once.

        References
        ----------
        Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals of
        Statistics 49, 2021.

        Romano, Patterson and Candès, "Conformalized quantile regression", NeurIPS 2019.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self, "kernel_")
        if hasattr(self, "calibration_scores_"):
            return self._conformal_bounds(X, coverage)
        bounds = self._jackknife_bounds(X, coverage)
        return bounds[:, 0] if self._has_single_target else bounds

    def _jackknife_bounds(self, X: Points, coverage: float) -> np.ndarray:
        """Return the intervals of the jackknife+, of shape (n, n_targets, 2)."""
        raise ValueError(
            f"{type(self).__name__} has no leave-one-out predictions in closed form, so that "
            f"prediction intervals need scores. Call `conformalize(X, y)` with data that were not "
            f"used in `fit`, or `conformalize(X, y, cv=5)` with the training data, which fits 5 "
            f"more models"
        )

    def _prediction_range(self: Any, X: Points) -> np.ndarray:
        """Return the predicted lower and upper bounds, which are equal for point predictions.

        The shape is (n, 2) or (n, n_targets, 2).
        """
        predictions = self.predict(X)
        return np.stack([predictions, predictions], axis=-1)

    def _scores(self: Any, X: Points, y: np.ndarray, model: Any = None) -> np.ndarray:
        bounds = (model or self)._prediction_range(X)
        y = np.asarray(y, dtype=float)
        if y.shape != bounds.shape[:-1]:
            raise ValueError(f"y has shape {y.shape}, but predictions have {bounds.shape[:-1]}")
        if not np.all(np.isfinite(y)):
            raise ValueError(
                "y contains NaN or infinity; remove the points whose targets are missing"
            )
        return np.maximum(bounds[..., 0] - y, y - bounds[..., 1])

    def _conformal_bounds(self: Any, X: Points, coverage: float) -> np.ndarray:
        """Return the intervals of split or cross-conformal prediction."""
        scores, r = self.calibration_scores_, length(X)
        n, shape = len(scores), (r, *scores.shape[1:], 2)
        warn_if_infinite(n, coverage)
        models, scores = self._conformal_models(), scores.reshape(n, -1)
        ranges = [m._prediction_range(X).reshape(r, -1, 2) for m, _ in models]
        out = np.empty((r, scores.shape[1], 2))
        block = min(_MAX_BLOCK_BYTES, budget_in_bytes(self.max_memory) // 32)
        for c, column in enumerate(scores.T):
            if len(models) == 1:
                k = interval_rank(n, coverage)
                radius = np.inf if k > n else np.partition(column, k - 1)[k - 1]
                out[:, c] = ranges[0][:, c] + [-radius, radius]
                continue
            for rows in slices(r, max(1, block // (8 * n))):
                low, high = np.empty((2, rows.stop - rows.start, n))
                for (_, index), bounds in zip(models, ranges, strict=True):
                    low[:, index] = bounds[rows, c, :1] - column[index]
                    high[:, index] = bounds[rows, c, 1:] + column[index]
                out[rows, c] = interval_bounds(low, high, coverage)
        crossed = out[..., 0] > out[..., 1]  # quantiles whose correction is negative
        out[crossed] = out[crossed].mean(axis=-1, keepdims=True)
        return out.reshape(shape)


@estimator(kw_only=True)
class PredictionSetMixin(ConformalMixin):
    """Mixin for classifiers with prediction sets."""

    @predict_method
    def predict_set(self: Any, X: Points, coverage: float = 0.9) -> np.ndarray:
        """Return sets of classes that contain the true class with a given probability.

        `conformalize` must be called first, with data that were not used in `fit`, or with the
        training data and `cv`. A class belongs to the set of a point if its score is not larger
        than most scores of the calibration points. The score is 1 minus the probability of the
        class or, for models without probabilities, the largest decision value of another class
        minus that of this class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. If X is in blocks, so is the result.
        coverage : float, default=0.9
            The nominal probability, between 0 and 1. If there are fewer than coverage /
            (1 - coverage) calibration points, the sets contain all classes, with a warning.

        Returns
        -------
        ndarray of bool, shape (n, n_classes)
            Whether the set of each point contains each class, in the order of `classes_`. Points
            between classes have larger sets. A set may be empty, if the point is unlike all
            calibration points of any class.

        Notes
        -----
        **Guarantee.** For any distribution, the set of a new point contains its class with a
        probability of at least `coverage` after ``conformalize(X, y)`` with held-out points, and of
        at least 2 coverage - 1, up to a term that vanishes as n grows, with ``cv``. The points must
        be exchangeable, as for independent draws from one distribution; there is no guarantee for
        time series or if the distribution changes. The probability is an average over all points,
        and may be lower for a rare class.

        References
        ----------
        Sadinle, Lei and Wasserman, "Least ambiguous set-valued classifiers with bounded error
        levels", Journal of the American Statistical Association 114, 2019.

        Romano, Sesia and Candès, "Classification with valid and adaptive coverage", NeurIPS 2020.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self, "kernel_")
        if not hasattr(self, "calibration_scores_"):
            raise ValueError(
                "prediction sets need scores. Call `conformalize(X, y)` with data that were not "
                "used in `fit`, or `conformalize(X, y, cv=5)` with the training data, which fits 5 "
                "more models"
            )
        n = len(self.calibration_scores_)
        warn_if_infinite(n, coverage)
        counts = np.zeros((length(X), len(self.classes_)), dtype=np.int64)
        for model, index in self._conformal_models():
            scores = np.sort(self.calibration_scores_[index])
            counts += np.searchsorted(scores, self._class_scores(X, model), side="left")
        return counts < interval_rank(n, coverage)

    def _scores(self: Any, X: Points, y: np.ndarray, model: Any = None) -> np.ndarray:
        column = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if y.ndim != 1 or np.any(unknown := self.classes_[column] != y):
            labels = "two-dimensional" if y.ndim != 1 else np.unique(y[unknown]).tolist()
            raise ValueError(
                f"y must contain labels from {self.classes_.tolist()}, but contains {labels}"
            )
        return np.asarray(self._class_scores(X, model or self)[np.arange(len(y)), column])

    def _class_scores(self: Any, X: Points, model: Any) -> np.ndarray:
        """Return the score of each class at each point; inf for classes that a model lacks."""
        if hasattr(model, "predict_proba"):
            values = 1.0 - model.predict_proba(X)
        else:
            values = model._values_by_class(X)
            best = np.partition(values, -2, axis=1)[:, -2:]
            largest_other = np.where(values == best[:, 1:], best[:, :1], best[:, 1:])
            values = largest_other - values
        scores = np.full((len(values), len(self.classes_)), np.inf)
        scores[:, np.searchsorted(self.classes_, model.classes_)] = values
        return scores

    def _values_by_class(self: Any, X: Points) -> np.ndarray:
        """Return one decision value per class, of shape (n, n_classes)."""
        values = self.decision_function(X)
        return np.column_stack([-values, values]) if values.ndim == 1 else values


def check_coverage(coverage: Any) -> float:
    """Return the coverage as a float; raise an error unless it is between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, Real):
        raise TypeError(f"coverage must be a number between 0 and 1, got {coverage!r}")
    if not 0.0 < float(coverage) < 1.0:
        raise ValueError(
            f"coverage must be between 0 and 1 (exclusive), such as 0.9, got {coverage!r}; it is a "
            f"probability, not a percentage"
        )
    return float(coverage)


def reject_without_points(model: Any, what: str) -> None:
    """Raise an error if a model was compressed, so that it does not contain the training points."""
    if model.reduction_ is not None:
        raise ValueError(f"{what} are not available for a compressed model; use the original model")
    if isinstance(model.expansion_, Primal):
        raise ValueError(
            f"{what} are not available after to_primal, because the model stores no points; use "
            f"the original model"
        )
