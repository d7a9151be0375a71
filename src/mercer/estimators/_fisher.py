"""The Fisher discriminant: directions in which classes differ, seen against what is within them."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._runtime import check_budget
from ..expansion import Expansion
from ..gram import TiledGram, gram
from ..kernels import Kernel, unwrap
from ..solvers import Discriminants, ExactPath, ExactRidge, LandmarkRidge, Report, RidgePath
from ._base import KernelEstimator, KernelLike, Landmarked, NamedKernel
from ._decisions import Outputs
from ._parameters import COUNT, POSITIVE, estimator, fitting, learned, parameter, solver
from ._sample import Sample

__all__ = ["KernelFisherDiscriminant"]

_ALPHAS = np.logspace(-8, 2, 21)  # parts of the mean of k(x, x) that alpha="auto" tries


@dataclass(frozen=True, eq=False)
class Regression:
    """The regression of the indicators of the classes on the points."""

    alpha: float
    A: Any = None
    b: Any = None
    points: Any = None  # landmarks, if there are any
    report: Any = None
    errors: Any = None  # of leaving out a point, if that was asked for
    alphas: Any = None
    scores: Any = None


@estimator()
class KernelFisherDiscriminant(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Outputs, Landmarked, NamedKernel
):
    """Maximise  <f, B f> / (<f, W f> + alpha |f|^2):  classes far apart, points of a class near.

    B and W are the scatter between and within classes, sums over points, in the space of the
    kernel (Mika et al. 1999; Baudat and Anouar 2000).  In the n_classes - 1 directions that there
    are, classes are then Gaussians of one covariance.  The linear kernel, a small alpha and
    within="fit" lead back to scikit-learn's LinearDiscriminantAnalysis.

    Directions come from kernel ridge regression on the classes, with an intercept: for two classes
    on the targets (n / n_1, -n / n_2), up to a factor.  The errors of leaving out a point have a
    closed form there, by which alpha="auto" is chosen.

    Parameters
    ----------
    alpha : float or "auto"
        The ridge: how much |f|^2 counts against the scatter within.  "auto" is that of 21, from
        1e-8 to 100 times the mean k(x, x), with the smallest squared leave-one-out errors.
    priors : array of shape (n_classes,) or None
        How probable the classes are; None for their shares of the points.  They have a part in
        predictions, not in the directions.
    n_components : int or None
        How many directions `transform` returns; None for all, n_classes - 1.
    within : {"leave_one_out", "fit"}
        Where `predict` and probabilities have the means and the covariance of the classes from: the
        scores of each point without it, in closed form; or those of the fit, as W + alpha has them,
        which for rich kernels are much too certain, but need no n x n matrix.
    solver : {"auto", "exact", "nystroem"}
        "auto" is "exact"; "nystroem" has f in the span of landmarks.

    Attributes
    ----------
    classes_ : ndarray
    priors_ : ndarray
    means_ : ndarray of shape (n_classes, n_classes - 1)
        Of the classes, in the coordinates of `transform`.
    discriminant_ratios_ : ndarray of shape (n_classes - 1,)
        Scatter between the classes over that within, in each direction, largest first.
    explained_variance_ratio_ : ndarray
        These, over their sum; of the directions that `transform` returns.
    alpha_ : float
    leave_one_out_ : ndarray of shape (n, n_classes)
        For each point, the indicators of the classes as predicted without it.
    alphas_, scores_ : ndarray
        Those tried, and their mean squared leave-one-out errors.  These three are not there if no
        point was left out: a given alpha, and within="fit".
    expansion_ : Expansion
        The directions, as values; scores are these plus `intercept_`.
    X_fit_, dual_coef_, intercept_, kernel_, report_

    Notes
    -----
    Points have no weights: of two copies of a point, each predicts the other when that is left out,
    so that weights and repetitions would not be the same.

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

    alpha: float | str = parameter(POSITIVE, StrOptions({"auto"}), default="auto")
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    priors: Any = parameter("array-like", None, default=None)
    n_components: int | None = parameter(COUNT, None, default=None)
    within: str = parameter(StrOptions({"leave_one_out", "fit"}), default="leave_one_out")
    solver: Any = solver("nystroem", default="auto")

    alpha_: float = learned()
    kernel_: Kernel = learned()
    report_: Report = learned()

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions for the labels y, (n,)."""
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
                f"The number of samples must be more than the number of classes: n_samples = "
                f"{len(sample)}, n_classes = {n_classes}; nothing is known "
                f"of the scatter within them"
            )
        if self.priors is not None and np.shape(self.priors) != (n_classes,):
            raise ValueError(
                f"priors has shape {np.shape(self.priors)}, but there are {n_classes} classes: "
                f"{sample.classes.tolist()}"
            )
        kernel = sample.resolve_about(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(kernel, self.max_memory)
        sample = sample.with_indicators()
        r, w = self._regress(evaluated, sample), sample.counts
        if r.points is None:
            residuals = r.alpha * r.A
        else:
            values = TiledGram(evaluated, sample.points, r.points) @ r.A
            residuals = sample.targets - np.asarray(values) - r.b
        unwrap(evaluated)
        found = Discriminants.of(residuals, sample.labels, w)
        A = r.A @ found.mixing
        f = sample.expansion(kernel, A) if r.points is None else Expansion(kernel, r.points, A)
        self._set_expansion(f, (r.b - found.shares) @ found.mixing, flat=False)
        priors = _checked(self.priors, found.shares)
        if self.within == "leave_one_out":
            self._decide = found.left_out(priors, r.errors, sample.labels, w)
        else:
            self._decide = found.decisions(priors)
        for name in ("alphas_", "scores_", "leave_one_out_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if r.errors is not None:
            self.leave_one_out_ = sample.scatter(sample.targets - r.errors)
            self.alphas_, self.scores_ = r.alphas, r.scores
        self.kernel_, self.classes_, self.priors_ = kernel, sample.classes, priors
        self.means_, self.discriminant_ratios_ = found.means, found.ratios
        self.alpha_, self.report_ = r.alpha, r.report
        self._n_features_out = self.n_components or n_classes - 1
        total = max(float(found.ratios.sum()), np.finfo(float).tiny)
        self.explained_variance_ratio_ = found.ratios[: self._n_features_out] / total
        self._say(f"alpha = {self.alpha_:.3g}, between over within {found.ratios.round(3)}")
        return self

    def _regress(self, kernel: Kernel, sample: Sample) -> Regression:
        """Regress the indicators of the classes on the points."""
        n, q = sample.targets.shape
        data = (kernel, sample.points, sample.targets, None)
        common: dict[str, Any] = {"max_memory": self.max_memory, "say": self._teller}
        landmarks, auto = self.solver == "nystroem", isinstance(self.alpha, str)
        alphas = np.array([1.0 if auto else self.alpha], dtype=float)
        if auto:
            mean = float(np.mean(kernel.diag(sample.points)))
            alphas = _ALPHAS * (mean or 1.0)
        elif self.within == "fit":  # no point is left out
            each = np.full(q, float(self.alpha))
            problem: Any = (
                LandmarkRidge(*data, each, True, self._chosen, **common)
                if landmarks
                else ExactRidge(*data, each, True, **common)
            )
            A, b = problem.solve()
            points = problem.points if landmarks else None
            return Regression(float(self.alpha), A, b, points, problem.report)
        path: RidgePath
        errors = 16 * n * q * len(alphas)
        if landmarks:
            check_budget(errors, self.max_memory, f"leave-one-out errors of {n} points")
            path = LandmarkRidge(*data, alphas[:1], True, self._chosen, **common).path()
        else:
            text = (
                f"leaving out each of {n} points (solver='nystroem' needs less, and so does a "
                f"given alpha with within='fit')"
            )
            check_budget(24 * n * n + errors, self.max_memory, text)
            K = gram(kernel, sample.points, storage="dense", max_memory=self.max_memory)
            path = ExactPath(K, sample.targets, intercept=True)
        found = self._search(path, alphas, sample)
        A, b = path.solve(found.alpha)
        return dataclasses.replace(
            found, A=A, b=b, points=path.points if landmarks else None, report=path.report
        )

    def _search(self, path: RidgePath, alphas: np.ndarray, sample: Sample) -> Regression:
        """Find the alpha of the smallest leave-one-out errors."""
        if len(alphas) > 1:
            alphas = alphas[path.usable(alphas)]
        if not len(alphas):
            raise ValueError(
                "no alpha is above what the rounding of K hides; the usual cause is a kernel that "
                "is not positive semidefinite: choose a Mercer kernel, or give alpha"
            )
        scores, best, kept = np.empty(len(alphas)), np.inf, None
        for j, errors in enumerate(path.leave_one_out(alphas)):
            score = float(np.mean(np.sum(np.square(errors), axis=1)))
            scores[j] = score if np.isfinite(score) else np.inf
            if scores[j] < best:
                best, kept = scores[j], errors
        if kept is None:
            raise ValueError(
                "leave-one-out errors are not finite for any alpha; the usual cause is features of "
                "very large size: scale them, or give a larger alpha"
            )
        return Regression(
            float(alphas[np.argmin(scores)]), errors=kept, alphas=alphas, scores=scores
        )

    def _values(self, X: Any) -> np.ndarray:
        """Return the log-probabilities of classes up to a constant, or log-odds for two."""
        check_is_fitted(self)
        G, g = self._decide
        return np.asarray(KernelEstimator._values(self, X) @ G + g)

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of points in each direction, (n, n_components).

        Their mean over the training points is 0; the covariance within classes is 1, but for the
        part of it that is alpha.
        """
        check_is_fitted(self)
        return np.asarray(KernelEstimator._values(self, X)[:, : self._n_features_out])


def _checked(priors: Any, shares: np.ndarray) -> np.ndarray:
    """Return the priors given, or the shares."""
    if priors is None:
        return shares
    p = np.asarray(priors, dtype=float)
    if not (np.all(np.isfinite(p)) and np.all(p > 0)):
        raise ValueError(f"priors must be positive, got {p.tolist()}")
    return np.asarray(p / p.sum())
