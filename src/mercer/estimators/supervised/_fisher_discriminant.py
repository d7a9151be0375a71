"""Kernel Fisher discriminant analysis."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, check_budget
from ...expansion import Expansion
from ...gram import gram
from ...kernels import Kernel, unwrap
from ...solvers import (
    Discriminants,
    ExactPath,
    ExactRidge,
    LandmarkRidge,
    Plan,
    RidgePath,
    plan_exact_or_landmarks,
    plan_ridge,
)
from .._kernel_estimator import KernelLike, LandmarkMixin
from .._label_encoding import DecisionMixin
from .._parameters import estimator, fit_method, fitted, parameter, predict_method, solver
from .._plan_method import n_of
from .._prediction_intervals import PredictionSetMixin
from .._training_sample import Sample

_RELATIVE_ALPHAS = np.logspace(-8, 2, 21)  # alpha="auto" tries these times the mean of k(x, x)


@dataclass(frozen=True, eq=False)
class IndicatorRegression:
    """Coefficients A and intercepts b of kernel ridge regression of the class indicators."""

    alpha: float
    A: Any = None
    b: Any = None
    points: Any = None  # landmarks; None for the exact solver
    report: Any = None
    errors: Any = None  # leave-one-out errors, if they were computed
    alphas: Any = None
    scores: Any = None


@estimator()
class KernelFisherDiscriminant(
    PredictionSetMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    LandmarkMixin,
    DecisionMixin,
):
    """Fisher discriminant analysis in the feature space of a kernel.

    Finds directions f in which the classes are far apart and the points of each class close
    together, by maximising

        <f, B f> / (<f, W f> + alpha |f|^2),

    where B and W are the scatter operators between and within classes in the RKHS, as sums over
    points (Mika et al. 1999; Baudat and Anouar 2000). There are n_classes - 1 such directions.
    Predictions model the classes in these directions as Gaussians with a common covariance. The
    linear kernel with a small alpha and within="fit" is equivalent to scikit-learn's
    LinearDiscriminantAnalysis.

    The directions are computed by kernel ridge regression of the class indicators, with an
    intercept. For two classes with n_1 and n_2 of the n points, this is, up to a factor, the
    regression of targets n / n_1 for the first class and -n / n_2 for the second. The leave-one-out
    errors of ridge regression have a closed form, which is used to choose alpha="auto".

    Parameters
    ----------
    alpha : float or "auto"
        The ridge parameter, the weight of |f|^2 relative to the scatter within classes. "auto"
        tries 21 values, from 1e-8 to 100 times the mean of k(x, x), and chooses the one with the
        smallest squared leave-one-out error.
    priors : array of shape (n_classes,) or None
        Prior probabilities of the classes; None means the class frequencies. They affect
        predictions, but not the directions. Set them if the classes are more or less frequent in
        use than in training.
    n_components : int or None
        The number of directions that `transform` returns; None means all, n_classes - 1.
    within : {"leave_one_out", "fit"}
        How the class means and the covariance for `predict` and probabilities are estimated.
        "leave_one_out" uses the score of each point under a model fitted without it, computed in
        closed form. "fit" uses the scores of the fitted model, with scatter W + alpha. With
        flexible kernels, "fit" gives probabilities that are much too confident, but it does not
        need an n x n matrix.
    solver : {"auto", "exact", "nystroem"}
        "auto" means "exact"; "nystroem" restricts f to the span of landmarks, for more than about
        10^4 points.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    priors_ : ndarray
        The prior probabilities used in predictions.
    means_ : ndarray of shape (n_classes, n_classes - 1)
        The class means in the coordinates of `transform`.
    discriminant_ratios_ : ndarray of shape (n_classes - 1,)
        The ratio of the scatter between classes to the scatter within, for each direction, in
        decreasing order.
    explained_variance_ratio_ : ndarray
        `discriminant_ratios_` divided by their sum, for the directions that `transform` returns.
    alpha_ : float
        The ridge parameter used.
    leave_one_out_ : ndarray of shape (n, n_classes)
        For each point, the class indicators predicted by a model fitted without it.
    alphas_, scores_ : ndarray
        The values of alpha that were tried, and their mean squared leave-one-out errors. These two
        and `leave_one_out_` are not set with a numeric alpha and within="fit".
    expansion_ : Expansion
        The directions; scores are ``expansion_(X) + intercept_``.
    X_fit_, dual_coef_, intercept_
        The points, coefficients and intercepts of the directions.
    report_ : Report
        How the regression was solved.

    See Also
    --------
    KernelPCA : A projection without labels.
    SVC : Often more accurate if only labels are needed.
    KernelLogisticRegression : Probabilities without the assumption of Gaussian classes.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : The linear case.

    Notes
    -----
    Sample weights are not supported. If one of two copies of a point is left out, the
    other copy still predicts it, so a weight of 2 and a repeated point would give different
    results.

    References
    ----------
    Mika, Rätsch, Weston, Schölkopf and Müller, "Fisher discriminant analysis with kernels", Neural
    Networks for Signal Processing IX, 1999.

    Baudat and Anouar, "Generalized discriminant analysis using a kernel approach", Neural
    Computation 12, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelFisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant().fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.score(X, y) > 0.97
    True
    """

    alpha: float | str = parameter("positive", {"auto"}, default="auto")
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    priors: Any = parameter("array-like", None, default=None)
    n_components: int | None = parameter("positive integer", None, default=None)
    within: str = parameter({"leave_one_out", "fit"}, default="leave_one_out")
    solver: Any = solver("nystroem", default="auto")

    priors_: np.ndarray = fitted()
    means_: np.ndarray = fitted()
    discriminant_ratios_: np.ndarray = fitted()
    explained_variance_ratio_: np.ndarray = fitted()
    alpha_: float = fitted()
    leave_one_out_: np.ndarray = fitted()
    alphas_: np.ndarray = fitted()
    scores_: np.ndarray = fitted()
    _decide: tuple = fitted()
    _n_features_out: int = fitted()

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Fit the discriminant directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,)
            Class labels, numbers or strings.

        Returns
        -------
        self : KernelFisherDiscriminant
            The fitted estimator.
        """
        sample = self._sample(X, y, labels=True).doubled()
        sample = dataclasses.replace(sample, weights=None)
        n_classes = len(sample.classes)
        if self.n_components is not None and self.n_components > n_classes - 1:
            raise ValueError(
                f"n_components cannot be larger than n_classes - 1 = {n_classes - 1}, got "
                f"{self.n_components}"
            )
        if len(sample) <= n_classes:
            raise ValueError(
                f"The number of samples must exceed the number of classes: n_samples = "
                f"{len(sample)}, n_classes = {n_classes}; otherwise the scatter within classes "
                f"cannot be estimated"
            )
        if self.priors is not None and np.shape(self.priors) != (n_classes,):
            raise ValueError(
                f"priors has shape {np.shape(self.priors)}, but there are {n_classes} classes: "
                f"{sample.classes.tolist()}"
            )
        kernel = sample.resolve_centred(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(kernel, self.max_memory)
        sample = sample.with_indicators()
        regression, w = self._regress(evaluated, sample), sample.counts
        if regression.points is None:
            residuals = regression.alpha * regression.A
        else:
            f = Expansion(evaluated, regression.points, regression.A)
            residuals = sample.targets - sample.evaluate(f) - regression.b
        unwrap(evaluated)
        discriminants = Discriminants.of(residuals, sample.labels, w)
        A = regression.A @ discriminants.mixing
        f = (
            sample.expansion(kernel, A)
            if regression.points is None
            else Expansion(kernel, regression.points, A)
        )
        self._set_expansion(
            f, (regression.b - discriminants.shares) @ discriminants.mixing, flat=False
        )
        priors = _check_priors(self.priors, discriminants.shares)
        if self.within == "leave_one_out":
            self._decide = discriminants.left_out(priors, regression.errors, sample.labels, w)
        else:
            self._decide = discriminants.decisions(priors)
        if regression.errors is not None:
            self.leave_one_out_ = sample.scatter(sample.targets - regression.errors)
            self.alphas_, self.scores_ = regression.alphas, regression.scores
        self.kernel_, self.classes_, self.priors_ = kernel, sample.classes, priors
        self.means_, self.discriminant_ratios_ = discriminants.means, discriminants.ratios
        self.alpha_, self.report_ = regression.alpha, regression.report
        self._n_features_out = self.n_components or n_classes - 1
        total = max(float(discriminants.ratios.sum()), np.finfo(float).tiny)
        self.explained_variance_ratio_ = discriminants.ratios[: self._n_features_out] / total
        self._log_progress(
            f"alpha = {self.alpha_:.3g}, scatter ratios {discriminants.ratios.round(3)}"
        )
        return self

    def _plan(self, sample: Sample) -> Plan:
        n, needs_path = len(sample), isinstance(self.alpha, str) or self.within != "fit"
        kernel, q = self._planned_kernel(sample), len(sample.classes)
        problem = f"discriminants of {n} points, {n_of(q, 'class')}"
        if not needs_path:
            spec = "auto" if self.solver == "exact" else self.solver
            options: dict[str, Any] = {"columns": q, "max_memory": self.max_memory}
            return plan_ridge(problem, kernel, sample.points, spec, self._chosen, **options)
        return plan_exact_or_landmarks(
            *(problem, kernel, sample.points, self.solver, self._chosen),
            squares=2.0,
            features=(0.0, 3.0, 4.5),
            needed=lambda solver, m: 24 * n * n if solver != "nystroem" else 0,
            steps=4.0,
            max_memory=self.max_memory,
        )

    def _regress(self, kernel: Kernel, sample: Sample) -> IndicatorRegression:
        """Regress the class indicators on the points; choose the best alpha if it is "auto"."""
        n, q = sample.targets.shape
        data, seen = (kernel, sample.points, sample.targets, None), sample.subsample.points
        options: dict[str, Any] = {"max_memory": self.max_memory, "log": self._progress_callback}
        use_landmarks, auto = self.solver == "nystroem", isinstance(self.alpha, str)
        alphas = np.array([1.0 if auto else self.alpha], dtype=float)
        if auto:
            mean_diagonal = float(np.mean(kernel.diag(seen)))
            alphas = _RELATIVE_ALPHAS * (mean_diagonal or 1.0)
        elif self.within == "fit":  # leave-one-out errors are not needed
            alpha_per_class = np.full(q, float(self.alpha))
            problem: Any = (
                LandmarkRidge(*data, alpha_per_class, True, self._chosen, among=seen, **options)
                if use_landmarks
                else ExactRidge(*data, alpha_per_class, True, **options)
            )
            A, b = problem.solve()
            points = problem.points if use_landmarks else None
            return IndicatorRegression(float(self.alpha), A, b, points, problem.report)
        path: RidgePath
        error_bytes = 16 * n * q * len(alphas)
        if use_landmarks:
            check_budget(error_bytes, self.max_memory, f"leave-one-out errors of {n} points")
            problem = LandmarkRidge(*data, alphas[:1], True, self._chosen, among=seen, **options)
            path = problem.path()
        else:
            purpose = (
                f"the leave-one-out errors of {n} points (solver='nystroem' needs less, and so "
                f"does a numeric alpha with within='fit')"
            )
            check_budget(24 * n * n + error_bytes, self.max_memory, purpose)
            K = gram(kernel, sample.points, storage="dense", max_memory=self.max_memory)
            path = ExactPath(K, sample.targets, intercept=True)
        regression = self._search(path, alphas, sample)
        A, b = path.solve(regression.alpha)
        return dataclasses.replace(
            regression, A=A, b=b, points=path.points if use_landmarks else None, report=path.report
        )

    def _search(self, path: RidgePath, alphas: np.ndarray, sample: Sample) -> IndicatorRegression:
        """Return the best alpha with its leave-one-out errors, and the scores of all alphas."""
        if len(alphas) > 1:
            alphas = alphas[path.usable(alphas)]
        if not len(alphas):
            raise ValueError(
                "all candidates for alpha are smaller than the rounding errors of K; the usual "
                "cause is a kernel that is not positive semidefinite: choose a Mercer kernel, or "
                "set alpha"
            )
        scores, best_score, best_errors = np.empty(len(alphas)), np.inf, None
        for j, errors in enumerate(path.leave_one_out(alphas)):
            score = float(np.mean(np.sum(np.square(errors), axis=1)))
            scores[j] = score if np.isfinite(score) else np.inf
            if scores[j] < best_score:
                best_score, best_errors = scores[j], errors
        if best_errors is None:
            raise ValueError(
                "leave-one-out errors are not finite for any alpha that was tried; the usual cause "
                "is very large feature values: scale the features, or set a larger alpha"
            )
        return IndicatorRegression(
            float(alphas[np.argmin(scores)]), errors=best_errors, alphas=alphas, scores=scores
        )

    def _values(self, X: Points) -> np.ndarray:
        """Return log-probabilities of the classes up to a constant; for two classes, log-odds."""
        check_is_fitted(self)
        G, g = self._decide
        return np.asarray(super()._values(X) @ G + g)

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Project points on the discriminant directions.

        Over the training points, the projections have mean 0, and their covariance within classes,
        including the contribution of alpha, is the identity.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_components)
            The projections, in decreasing order of `discriminant_ratios_`. There are n_classes - 1
            if `n_components` is None.
        """
        check_is_fitted(self)
        return np.asarray(super()._values(X)[:, : self._n_features_out])


def _check_priors(priors: Any, class_frequencies: np.ndarray) -> np.ndarray:
    """Return the normalised priors, or the class frequencies if priors is None."""
    if priors is None:
        return class_frequencies
    p = np.asarray(priors, dtype=float)
    if not (np.all(np.isfinite(p)) and np.all(p > 0)):
        raise ValueError(f"priors must be positive, got {p.tolist()}")
    return np.asarray(p / p.sum())
