"""Gaussian process classification: latent functions seen through the logistic function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from .._lazy import foreign
from .._points import length, take
from .._runtime import reserve, slices
from ..expansion import Expansion
from ..gp import LaplaceLikelihood, Posterior, expected_probability, expected_softmax
from ..gram import memoise_if_affordable
from ..solvers import Report, Status, worst
from ._base import Seed, SklearnGPKernel
from ._gaussian_process_base import GaussianProcess
from ._gaussian_process_theta import KernelTranslation, SpelledObjective
from ._parameters import COUNT, estimator, fitting, learned, parameter, threaded
from ._sample import Sample

__all__ = ["GaussianProcessClassifier", "LatentProcess"]

_CompoundKernel = foreign("sklearn.gaussian_process.kernels", "CompoundKernel")
_ROWS = 4096  # points whose covariances of all classes are held at a time


@dataclass(frozen=True, eq=False)
class LatentProcess:
    """A latent function, which tells one class from another or from all others; or one for each."""

    spelled: SpelledObjective
    theta: np.ndarray
    posterior: Posterior
    report: Report

    @property
    def kernel(self) -> Any:
        return self.spelled.translation.at(self.theta)

    @property
    def value(self) -> float:
        return float(self.posterior.report.certificate["log marginal likelihood"])

    @property
    def joint(self) -> bool:
        """Whether it is a function for each class, rather than one."""
        return len(self.posterior.expansion) > 1

    def moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances, or covariances of all functions at each point."""
        f, k = self.posterior.expansion, self.posterior.covariance
        if self.joint:
            return f(X), k(X)
        means, variances = self.posterior.moments(X)
        return means[:, 0], variances

    def probability(self, X: Any) -> np.ndarray:
        if not self.joint:
            return expected_probability(*self.moments(X))
        some = (take(X, rows) for rows in slices(length(X), _ROWS))
        return np.concatenate([expected_softmax(*self.moments(part)) for part in some])


@estimator()
class GaussianProcessClassifier(ClassifierMixin, GaussianProcess):
    """p(y = 1 | x) = E[1 / (1 + exp(-f(x)))] with f a Gaussian process of covariance k.

    Several classes are told apart by several such f, or by one model of all of them,

        p(y = c | x) = E[exp(f_c(x)) / sum_b exp(f_b(x))],     multi_class="multinomial".

    f given the labels is not normal; Laplace's approximation takes the normal distribution at its
    most probable value, and theta maximises the likelihood of that.  A drop-in for scikit-learn's
    estimator of this name, which takes its GP kernels as well as ours.  The expectation of one f is
    taken by quadrature, to some 1e-10, where scikit-learn's sum of five error functions errs by
    1e-4; of more than two by quasi-Monte-Carlo, see `mercer.gp.expected_softmax`.

    Parameters
    ----------
    kernel : Kernel, scikit-learn GP kernel or None
        The prior covariance of f.  None for ``1.0 * RBF(1.0)``, both parameters to be found.
    max_iter_predict : int
        Newton steps to the most probable f, of which a few are enough.
    warm_start : bool
        Whether each search for it begins where the last one ended.
    random_state : int, RandomState or None
        Of the restarts.
    multi_class : {"one_vs_rest", "one_vs_one", "multinomial"}
        Whether more than two classes are told apart each from all others, whose probabilities are
        scaled to sum to 1; in pairs, which vote and have no probabilities; or by the softmax of C
        functions that share one kernel, one likelihood and one theta, with C + 5 arrays of n x n
        in a fit and C in the model.  Two classes have one f, but in the last form one each, whose
        difference has the covariance 2 k.

    Attributes
    ----------
    classes_ : ndarray
    n_classes_ : int
    kernel_ : Kernel or scikit-learn GP kernel
        With the theta found; for several functions of their own a tuple, or scikit-learn's
        CompoundKernel.
    log_marginal_likelihood_value_ : float
        For several functions of their own the mean.
    expansion_ : Expansion
        The most probable f, in the multinomial form with a column for each class.  Otherwise for
        more than two classes `expansions_`, one for each function.
    report_, reports_ : Report, list of Report
        How each f was found, and the worst of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, np.sin(X[:, 0]) > 0)
    >>> model.predict([[1.5], [4.5]])
    array([ True, False])
    >>> bool(model.predict_proba([[1.5]])[0, 1] > 0.9 > model.predict_proba([[3.1]])[0, 1])
    True
    """

    kernel: Any = None
    _: KW_ONLY
    max_iter_predict: int = parameter(COUNT, default=100)
    warm_start: bool = parameter("boolean", default=False)
    random_state: Seed = parameter("random_state", default=None)
    multi_class: str = parameter(
        StrOptions({"one_vs_rest", "one_vs_one", "multinomial"}), default="one_vs_rest"
    )

    classes_: np.ndarray = learned()
    n_classes_: int = learned()
    report_: Report = learned()
    log_marginal_likelihood_value_: np.float64 = learned()

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Find theta and the most probable f for each pair of classes."""
        if isinstance(self.kernel, _CompoundKernel):
            raise ValueError("kernel cannot be a CompoundKernel")
        if self._precomputed:
            raise ValueError(
                "a matrix of values has no k(x, x) of new points: keep the matrix of all points, "
                "Precomputed(matrix), and give indices"
            )
        sample = self._sample(X, y, labels=True, copy=self.copy_X_train).doubled()
        latent = [self._latent(sample, *problem) for problem in self._problems(sample)]
        self.classes_, self.n_classes_ = sample.classes, len(sample.classes)
        self._latents: list[LatentProcess] = latent
        self._form = self.multi_class
        self._settle()
        return self

    def _problems(self, sample: Sample) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the points of each problem with two classes, and whether they are of the second.

        With all classes there is but one problem, and a column for each.
        """
        X, labels, q = sample.points, sample.labels, len(sample.classes)
        if self.multi_class == "multinomial":
            yield X, sample.with_indicators().targets
        elif q == 2:
            yield X, labels == 1
        elif self.multi_class == "one_vs_rest":
            yield from ((X, labels == c) for c in range(q))
        else:
            for a, b in combinations(range(q), 2):
                rows = np.flatnonzero((labels == a) | (labels == b))
                yield take(X, rows), labels[rows] == b

    def _latent(self, sample: Sample, X: Any, targets: np.ndarray) -> LatentProcess:
        each = targets if targets.ndim == 2 else np.column_stack([~targets, targets])
        translation = KernelTranslation(self.kernel, X, each.astype(float))
        sample.judge(translation.kernel)
        objective = LaplaceLikelihood(
            memoise_if_affordable(translation.kernel, length(X), self.max_memory),
            X,
            targets,
            max_memory=self.max_memory,
            max_iter=self.max_iter_predict,
            warm=self.warm_start,
        )
        spelled = SpelledObjective(objective, translation)
        best = spelled.best(
            self.optimizer, self.n_restarts_optimizer, self.random_state, self._teller
        )
        posterior = spelled.posterior(best.theta)
        reserve(8 * length(X) ** 2)  # its factor stays, beside what the next function takes
        report = posterior.report
        if not best.converged:
            report = replace(report, status=Status.NOT_CONVERGED)
        latent = LatentProcess(spelled.unwrapped(), best.theta, posterior, report)
        self._say(f"log marginal likelihood {latent.value:.6g}, {latent.kernel}")
        return latent

    def _settle(self) -> None:
        """Set what users read, from the latent functions."""
        latent = self._latents
        kernels = [one.kernel for one in latent]
        self.kernel_: Any = kernels[0] if len(latent) == 1 else tuple(kernels)
        if len(latent) > 1 and isinstance(self.kernel, SklearnGPKernel):
            from sklearn.gaussian_process.kernels import CompoundKernel

            self.kernel_ = CompoundKernel(kernels)
        self.expansions_: list[Expansion] = [one.posterior.expansion for one in latent]
        self.__dict__.pop("expansion_", None)
        if len(latent) == 1:
            self.expansion_ = self.expansions_[0]
        self.reports_ = [one.report for one in latent]
        self.report_ = worst(self.reports_)
        self.log_marginal_likelihood_value_ = np.float64(np.mean([one.value for one in latent]))

    def _compress(self, shrink: Any) -> None:
        raise ValueError(
            "a Gaussian process classifier also needs the covariance of f, which has no fewer "
            "points; compress its expansion_ to have f alone"
        )

    # ------------------------------------------------------------------ what the model says

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each point."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        if self.n_classes_ == 2:
            f = self.expansion_(X)  # of the second class, and if there are two also of the first
            return self.classes_[(f[:, -1] >= (f[:, 0] if len(f.T) > 1 else 0.0)).astype(int)]
        P = np.column_stack([one.probability(X) for one in self._latents])
        if self._form == "one_vs_one":
            P = _ovr_decision_function((P > 0.5).astype(int), P, self.n_classes_)
        return self.classes_[np.argmax(P, axis=1)]

    def _has_probabilities(self) -> bool:
        form = getattr(self, "_form", self.multi_class)
        if form == "one_vs_one" and getattr(self, "n_classes_", 2) > 2:
            raise AttributeError(
                "one_vs_one multi-class mode does not support predicting probability estimates. "
                "Use one_vs_rest mode instead, or multinomial."
            )
        return True

    @available_if(_has_probabilities)
    @threaded
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of all classes, (n, n_classes)."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        P = np.column_stack([one.probability(X) for one in self._latents])
        if len(P.T) == 1:
            return np.column_stack([1.0 - P, P])
        return P / P.sum(axis=1, keepdims=True)

    @threaded
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at each point, for two classes.

        In the multinomial form those of f_2 - f_1; for more classes those of all f_c, (n, C).
        """
        check_is_fitted(self)
        if len(self._latents) > 1:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for "
                f"binary classification, received {self.n_classes_} classes."
            )
        mean, spread = self._latents[0].moments(self._check_points(X, reset=False))
        if spread.ndim == 1:
            return mean, spread
        if self.n_classes_ > 2:
            return mean, np.einsum("icc->ic", spread)
        sign = np.array([-1.0, 1.0])
        return mean @ sign, spread @ sign @ sign

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log marginal likelihood of theta, and its gradient if asked.

        For one against the rest and for pairs the mean over all functions, at one theta for all of
        them or at one for each, joined; without a gradient.

        Parameters
        ----------
        theta : array, optional
            As in `kernel_`, whose own value is returned by default.
        eval_gradient : bool
        clone_kernel : bool
            If False, the model moves to this theta, with all that it predicts.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        if eval_gradient and len(self._latents) > 1:
            raise NotImplementedError(
                "Gradient of log-marginal-likelihood not implemented for multi-class GPC."
            )
        theta = np.asarray(theta, dtype=float)
        p, q = self._latents[0].theta.size, len(self._latents)
        if theta.shape not in ((p,), (p * q,)):
            allowed = f"{p}" if q == 1 else f"either {p} or {p * q}"
            raise ValueError(
                f"Shape of theta must be {allowed}. Obtained theta with shape {theta.shape}."
            )
        each = np.broadcast_to(theta, (q, p)) if theta.size == p else theta.reshape(q, p)
        pairs = list(zip(self._latents, each, strict=True))
        found = [one.spelled.value(mine, eval_gradient) for one, mine in pairs]
        if not clone_kernel:
            posteriors = [one.spelled.posterior(mine) for one, mine in pairs]
            self._latents = [
                LatentProcess(one.spelled, mine, posterior, posterior.report)
                for (one, mine), posterior in zip(pairs, posteriors, strict=True)
            ]
            self._settle()
        return found[0] if q == 1 else np.float64(np.mean(found))
