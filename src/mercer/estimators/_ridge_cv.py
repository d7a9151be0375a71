"""Kernel ridge regression that chooses its alpha, and its gamma, by leave-one-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import StrOptions

from .._errors import warn_caller
from .._points import doubled, take
from .._runtime import check_budget
from ..blocks import Blocks
from ..expansion import Expansion
from ..gram import DenseGram, TiledGram, gram, grams, share_distances
from ..kernels import Kernel
from ..solvers import (
    ExactPath,
    RidgePath,
    Status,
    warn_inaccurate,
)
from ._cross_validation import Found, Solution, best_places, folds, numbers, score
from ._parameters import estimator, fitting, parameter, threaded
from ._ridge import RidgeEstimator
from ._sample import Sample

__all__ = ["KernelRidgeCV"]

_ALPHAS = np.geomspace(1e-8, 1e2, 30)  # the default, in units of the mean of k(x, x)
_WITH_GAMMA = {"rbf", "laplacian", "poly", "polynomial", "sigmoid", "chi2"}


@estimator()
class KernelRidgeCV(RidgeEstimator):
    """Kernel ridge regression with the alpha, and the gamma, of the smallest validation error.

        e_i = a_i / P_ii,   a = P y:  the errors of n fits that each leave out one point

    One decomposition of K serves all alphas, and one matrix of distances all gammas, so that a
    search costs little more than a few fits.

    Parameters
    ----------
    alphas : array-like or None
        The ridges to try; None for 30 from 1e-8 to 100 times the mean of k(x, x).  Those for
        which K + alpha I is not positive definite, up to rounding, are left out with a warning.
    gammas : array-like or None
        Values of gamma to try as well, for a kernel given by name; None for `gamma` alone.
    scoring : str, callable or None
        A scorer of scikit-learn's; None for the negative mean squared error.  Given sample_weight,
        it must take them.
    cv : None, "gcv", int or a splitter
        None is leave-one-out, in closed form; "gcv" generalised cross-validation, which needs no
        scoring of single points; anything else is scikit-learn's.
    alpha_per_target : bool
        Choose an alpha for each target; only for leave-one-out without `scoring`, and for "gcv".
    store_cv_results : bool
        Keep `cv_results_`; only for leave-one-out.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
    gamma_ : float or str or None
        The best of `gammas`, or `gamma`.
    best_score_ : float or ndarray of shape (n_targets,)
    alphas_ : ndarray
        Those that were tried.
    scores_ : ndarray of shape (n_gammas, n_alphas) or (n_gammas, n_alphas, n_targets)
    cv_results_ : ndarray of shape (n, n_alphas) or (n, n_targets, n_alphas)
        Of the best gamma, if stored: squared leave-one-out errors, or predictions if there is a
        `scoring`, as in scikit-learn's RidgeCV.
    leave_one_out_ : ndarray of shape (n,) or (n, n_targets)
        The prediction for each point without it, for the best alpha; only for leave-one-out.
    dual_coef_, intercept_, X_fit_, expansion_, kernel_, report_
        As in `KernelRidge`.

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
    scoring: Any = parameter(StrOptions(set(get_scorer_names())), callable, None, default=None)
    cv: Any = parameter(StrOptions({"gcv"}), "cv_object", default=None)
    alpha_per_target: bool = parameter("boolean", default=False)
    store_cv_results: bool = parameter("boolean", default=False)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Try all alphas and gammas, and fit with the best; weights also count in the score."""
        self._check_choices()
        sample = self._sample(X, y, sample_weight)
        gammas = [self.gamma] if self.gammas is None else numbers(self.gammas, "gammas").tolist()
        kernels = [self._resolved(sample, g) for g in gammas]
        evaluated = [sample.evaluated(kernel, self.max_memory) for kernel in kernels]
        self.alphas_ = self._grid(evaluated, sample)
        splits = folds(self.cv, X, np.asarray(y), sample) if self._folds else None
        place, best = self._search(evaluated, sample, splits)
        self.kernel_, self.gamma_ = kernels[place], gammas[place]
        alphas = self.alphas_[best.chosen]
        found = best.solution or self._refit(evaluated[place], sample, alphas)
        if best.solution and found.report.status is Status.INACCURATE:
            warn_inaccurate(found.report)  # only the best kernel is worth a warning
        if self.solver == "nystroem":
            f = Expansion(self.kernel_, found.points, found.A)
        else:
            f = sample.expansion(self.kernel_, found.A)
        self._set_expansion(f, found.b, sample.flat)
        each = self.alpha_per_target and not sample.flat
        self.report_, self.alpha_ = found.report, alphas if each else float(alphas[0])
        self.best_score_ = best.scores.max(axis=0) if each else best.best
        self._store(best, X, sample)
        return self

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Try all alphas and gammas on points in blocks: two passes for each gamma."""
        self._check_choices()
        if self._folds or self.scoring is not None or self.store_cv_results:
            raise ValueError(
                "points in blocks are scored by their mean squared leave-one-out error (cv=None, "
                "scoring=None) or by cv='gcv', and no errors of single points are stored"
            )
        sample, blocks = self._blocks_sample(X, y, sample_weight)
        gammas = [self.gamma] if self.gammas is None else numbers(self.gammas, "gammas").tolist()
        kernels = [self._resolved(sample, g) for g in gammas]
        self.alphas_ = self._grid(kernels, sample)
        q, each = sample.targets.shape[1], self.alpha_per_target and not sample.flat
        tried = []
        for kernel in kernels:
            path: Any = self._problem_in_blocks(kernel, sample, blocks, np.ones(q)).path()
            usable = self._usable(path, kernel)
            alphas = self.alphas_[usable]
            found = -(path.gcv(alphas) if self.cv == "gcv" else path.mean_squares(alphas))
            tried.append(self._judged(path, found, usable, q))
        place = int(np.argmax([found.best for found in tried]))
        self.scores_, best = np.array([found.scores for found in tried]), tried[place]
        alphas, solution = self.alphas_[best.chosen], cast(Solution, best.solution)
        self.kernel_, self.gamma_ = kernels[place], gammas[place]
        f = Expansion(self.kernel_, solution.points, solution.A)
        self._set_expansion(f, solution.b, sample.flat)
        self.report_, self.alpha_ = solution.report, alphas if each else float(alphas[0])
        self.best_score_ = best.scores.max(axis=0) if each else best.best
        self._forget()

    def _judged(self, path: Any, found: np.ndarray, usable: np.ndarray, q: int) -> Found:
        """Return the scores of all alphas, those that cannot be used last, and the solution."""
        if found.ndim == 2 and not self.alpha_per_target:
            found = found.mean(axis=1)
        scores = np.full((len(usable), *found.shape[1:]), -np.inf)
        scores[usable] = np.where(np.isnan(found), -np.inf, found)
        chosen = best_places(scores, q)
        solution = Solution(path.points, *path.solve_each(self.alphas_[chosen], warn=False))
        return Found(scores, chosen, solution)

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point; for a precomputed kernel X is k(X, training points)."""
        values = self._values(X)
        return values[:, 0] if self._one_target else values

    # ------------------------------------------------------------------ what is searched

    @property
    def _folds(self) -> bool:
        return not (self.cv is None or isinstance(self.cv, str))

    def _check_choices(self) -> None:
        if self.alpha_per_target and (self._folds or self.scoring is not None):
            raise ValueError(
                "alpha_per_target=True needs the errors of each target: leave-one-out (cv=None) "
                "without scoring, or cv='gcv'"
            )
        if self.scoring is not None and isinstance(self.cv, str):
            raise ValueError("cv='gcv' is a score of its own; leave scoring=None")
        if self.store_cv_results and self.cv is not None:
            raise ValueError("store_cv_results=True needs leave-one-out: cv=None")
        name = self.kernel if isinstance(self.kernel, str) else None
        if self.gammas is not None and name not in _WITH_GAMMA:
            raise ValueError(
                f"gammas belong to a kernel given by name, one of {sorted(_WITH_GAMMA)}, and this "
                f"one is {self.kernel!r}; search over other parameters with "
                f"GridSearchCV(KernelRidge(...))"
            )

    def _grid(self, kernels: list[Kernel], data: Sample) -> np.ndarray:
        if self.alphas is not None:
            return numbers(self.alphas, "alphas")
        diagonals = (np.abs(kernel.diag(data.points)) for kernel in kernels)
        sizes = np.array([np.average(d, weights=data.weights) for d in diagonals])
        sizes = sizes[sizes > 0]
        return _ALPHAS * (np.exp(np.mean(np.log(sizes))) if sizes.size else 1.0)

    def _search(
        self, kernels: list[Kernel], data: Sample, splits: list | None
    ) -> tuple[int, Found]:
        """Return the place of the best kernel, and what it reached."""
        place, best, scores = 0, None, []
        for j, (kernel, K) in enumerate(zip(kernels, self._grams(kernels, data), strict=True)):
            if splits is None:
                found = self._by_path(kernel, K, data)
            else:
                found = self._by_folds(kernel, K, data, splits)
            self._say(f"{kernel}: best score {found.best:.6g}")
            scores.append(found.scores)
            if best is None or found.best > best.best:
                place, best = j, found
        self.scores_ = np.array(scores)
        if best is None or not np.isfinite(best.best):
            raise ValueError(
                f"no alpha has a finite score, the best is {None if best is None else best.best}; "
                f"the usual cause is targets or a scorer that overflow, or folds of one point"
            )
        return place, best

    def _grams(self, kernels: list[Kernel], data: Sample) -> Iterator[DenseGram | None]:
        """Yield K for each kernel, if the solver is to see it."""
        n = len(data.targets)
        matrices = 0 if self.solver == "nystroem" else 2 + share_distances(kernels)
        matrices += 2 * self._folds if matrices else 0
        errors = 0 if self._folds else 2 * n * data.targets.shape[1] * len(self.alphas_)
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
            # in float64, also for float32 points: small alphas are below the rounding of those
            yield from grams(kernels, doubled(data.points))

    # ------------------------------------------------------------------ leave-one-out and GCV

    def _by_path(self, kernel: Kernel, K: DenseGram | None, data: Sample) -> Found:
        if self.cv is None and len(data.targets) - self.fit_intercept < 1:
            raise ValueError(
                "leave-one-out with an intercept needs at least two points, got n_samples = 1"
            )
        path = self._path(kernel, K, data)
        usable = self._usable(path, kernel)
        alphas, errors = self.alphas_[usable], None
        if self.cv == "gcv":
            found = -path.gcv(alphas)
        else:
            errors = np.full((len(usable), *data.targets.shape), np.nan)
            errors[usable] = list(path.leave_one_out(alphas))
            found = self._scores(errors[usable], data)
        return self._judged(path, found, usable, data.targets.shape[1])._replace(errors=errors)

    def _path(self, kernel: Kernel, K: DenseGram | None, data: Sample) -> RidgePath:
        if K is None:
            return self._problem(kernel, data, np.ones(data.targets.shape[1])).path()
        return ExactPath(K, data.targets, data.weights, intercept=self.fit_intercept)

    def _usable(self, path: RidgePath, kernel: Kernel) -> np.ndarray:
        """Return which alphas can be tried; those that cannot are named in a warning."""
        usable = path.usable(self.alphas_)
        if not usable.any():
            path.solve(self.alphas_.max())  # says why it cannot
            usable = self.alphas_ == self.alphas_.max()
        if not usable.all():
            warn_caller(
                f"{np.sum(~usable)} of {len(usable)} alphas, up to "
                f"{self.alphas_[~usable].max():.3g}, are left out: with them K + alpha I is not "
                f"positive definite beyond rounding, for {kernel}",
                ConvergenceWarning,
            )
        return usable

    def _scores(self, errors: np.ndarray, data: Sample) -> np.ndarray:
        """Return the scores of leave-one-out errors (alphas, n, q), for each target if possible."""
        if self.scoring is None:
            return -np.average(np.square(errors), axis=1, weights=data.weights)
        return np.array(
            [score(self.scoring, data.targets - e, data.targets, data.weights) for e in errors]
        )

    # ------------------------------------------------------------------ folds

    def _by_folds(self, kernel: Kernel, K: DenseGram | None, data: Sample, splits: list) -> Found:
        total, usable = np.zeros(len(self.alphas_)), np.ones(len(self.alphas_), dtype=bool)
        for train, test in splits:
            part = data.take(train)
            if K is None:
                path = self._path(kernel, None, part)
                across: Any = TiledGram(kernel, take(data.points, test), path.points)
            else:
                block = DenseGram.from_array(K.block(train, train), kernel, part.points)
                path = self._path(kernel, block, part)
                across = K.block(test, train)
            usable &= self._usable(path, kernel)
            weights = None if data.weights is None else data.weights[test]
            for j in np.flatnonzero(usable):
                A, b = path.solve(self.alphas_[j], warn=False)
                values = np.asarray(across @ A) + b
                total[j] += score(self.scoring, values, data.targets[test], weights)
            del path, across  # before the next ones are made
        scores = np.where(usable & ~np.isnan(total), total / len(splits), -np.inf)
        return Found(scores, best_places(scores, data.targets.shape[1]))

    def _refit(self, kernel: Kernel, data: Sample, alphas: np.ndarray) -> Solution:
        """Fit all points with the best alpha: folds have seen parts of them."""
        whole = self._problem(kernel, data.doubled(), alphas)
        A, b = whole.solve()
        return Solution(getattr(whole, "points", None), A, b, whole.report)

    # ------------------------------------------------------------------ what is kept

    def _store(self, best: Found, X: Any, sample: Sample) -> None:
        self._forget()
        if best.errors is None:
            return
        Y, kept, flat = sample.targets, sample.kept, sample.flat
        mine = best.errors[best.chosen, :, np.arange(Y.shape[1])].T
        predictions = sample.scatter(Y - mine)
        if not sample.whole:  # a point without weight is in no fit: its prediction is the plain one
            without = np.flatnonzero(sample.places < 0)
            predictions[without] = self._values(take(X, without))
        self.leave_one_out_ = predictions[:, 0] if flat else predictions
        if self.store_cv_results:
            results = np.full((len(self.alphas_), *predictions.shape), np.nan)
            results[:, kept] = np.square(best.errors) if self.scoring is None else Y - best.errors
            results = results.transpose(1, 2, 0)
            self.cv_results_ = results[:, 0] if flat else results

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        self._forget()  # what is said of single points is said of the whole model

    def _forget(self) -> None:
        for learned in ("cv_results_", "leave_one_out_"):
            self.__dict__.pop(learned, None)
