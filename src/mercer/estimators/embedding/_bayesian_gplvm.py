"""Bayesian Gaussian process latent variable model as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from ..._core import Points, progress, seeded_generator
from ...kernels import RBF, as_kernel
from ...models.embedding import BayesianGPLVMModel, default_ard_kernel, fit_bayesian_gplvm
from ...models.gp import LatentBound
from .._kernel_estimator import Seed
from .._parameters import POSITIVE_INTEGER, estimator, fit_method, fitted_attribute, parameter
from .._plan_method import n_of
from .._training_sample import Sample
from ._latent_model import GPLVMBase


@estimator()
class BayesianGPLVM(GPLVMBase):
    """Bayesian GPLVM, a nonlinear embedding that determines its own dimension.

    The model is x = mu + f(z) + e with a Gaussian process f, noise e and latent coordinates
    z ~ N(0, I). The latent coordinates are integrated out approximately: the fit maximises a lower
    bound of the log likelihood (Titsias and Lawrence, 2010),

        max over q, theta of  <log p(X | Z)>_q - KL(q || N(0, I)),     q(z_i) = N(m_i, diag S_i)

    where q is the approximate posterior of the latent coordinates with means m_i and variances S_i,
    and theta are the kernel parameters. f is represented by its values at n_inducing points. Each
    latent dimension has a length scale l. If the data do not need a dimension, its l grows, its z
    returns to the prior N(0, I), and its relevance var(m) / l^2 goes to 0. Dimensions are sorted by
    decreasing relevance. Time grows as n n_inducing^2 and memory as n.

    Parameters
    ----------
    n_components : int or None
        The maximum number of latent dimensions. None means 10, or the number of rows or columns
        of X if that is smaller.
    n_inducing : int
        The number of inducing points, at most the number of points. More inducing points are more
        accurate and slower.
    kernel : Kernel, str or None
        The covariance of f: v*RBF(l) or Linear(), with one length scale per dimension. The kernel
        is fitted to X divided by a constant, ``model_.unit``, so that the mean variance of the
        columns is 1. None means an RBF with v = 1 and length scales from PCA: l_1 = 1, and larger
        for directions in which the data vary less.
    random_state : int, RandomState or None
        Seed for choosing the training points whose initial coordinates are the initial inducing
        points. None means 0.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The posterior means m of the latent coordinates of the training points.
    variances_ : ndarray of shape (n, n_components)
        The posterior variances S of the latent coordinates.
    relevance_ : ndarray of shape (n_components,)
        The relevance var(m) / l^2 of each dimension, in decreasing order.
    active_ : ndarray of shape (n_components,)
        Whether each dimension changes x by more than the noise: d v var(m) / l^2 > s, where d is
        the number of columns, v the kernel variance and s the noise variance of the scaled data.
    n_active_ : int
        The number of active dimensions. They come first.
    noise_variance_ : float
        The variance of e.
    kernel_ : Kernel
        The kernel with its optimised parameters.
    model_ : BayesianGPLVMModel
        The fitted model as an immutable object.
    expansion_ : Expansion
        The posterior mean of f as a function of z, in units of ``model_.unit``.
    log_likelihood_ : float
        The maximised lower bound of the log likelihood.
    n_iter_ : int
        The number of evaluations of the bound.
    report_ : Report
        How the optimisation ended.
    n_features_in_ : int
        The number of columns of X.

    References
    ----------
    Titsias & Lawrence (2010), Bayesian Gaussian process latent variable model.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import BayesianGPLVM
    >>> t = np.linspace(-1.5, 1.5, 60)
    >>> X = np.c_[t, t**2 / 2, np.sin(2 * t)] + 0.05 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = BayesianGPLVM(n_inducing=10).fit(X)
    >>> model.n_active_, model.transform(X[:5]).shape
    (1, (5, 3))
    """

    n_components: int | None = parameter(POSITIVE_INTEGER, None, default=None)
    _: KW_ONLY
    n_inducing: int = parameter(POSITIVE_INTEGER, default=50)
    random_state: Seed = parameter("random_state", default=None)

    model_: BayesianGPLVMModel = fitted_attribute()

    @fit_method
    def fit(self, X: Points, y: Any = None) -> Self:
        """Fit the model by maximising the lower bound of the log likelihood."""
        X = self._check_training_data(X)
        start = self._start(X, self.n_components or min(_DEFAULT_MAX_COMPONENTS, *X.shape))
        if self.kernel is None:
            kernel = default_ard_kernel(X, start.shape[1])
        else:
            kernel = as_kernel(self.kernel).resolve(start)
        inducing_rows = seeded_generator(self.random_state).permutation(len(X))[: self.n_inducing]
        with progress(type(self).__name__, self.verbose) as log:
            result = fit_bayesian_gplvm(
                X,
                kernel,
                start,
                start[np.sort(inducing_rows)],
                tol=self.tol,
                max_iter=self.max_iter,
                max_memory=self.max_memory,
                log=log,
            )
        return self._settle(result)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, m = len(sample), min(self.n_inducing, len(sample))
        q = self.n_components or min(_DEFAULT_MAX_COMPONENTS, *sample.points.shape)
        bound = LatentBound(RBF(np.ones(q)), sample.points, q, m)
        option = {"solver": "lbfgs", "storage": "low rank", "exact": False, "rank": m}
        problem = f"latent variables of {n} points, {n_of(m, 'inducing point')}"
        return problem, {**option, "extra": bound.workspace(), "required": bound.workspace()}

    @property
    def variances_(self) -> np.ndarray:
        """The posterior variances S of the latent coordinates."""
        return self.model_.variances

    @property
    def noise_variance_(self) -> float:
        """The variance of the noise e, in the units of X."""
        return self.model_.unit**2 * self.model_.noise

    @property
    def relevance_(self) -> np.ndarray:
        """The relevance var(m) / l^2 of each dimension, in decreasing order."""
        return self.model_.relevance

    @property
    def active_(self) -> np.ndarray:
        """Whether each latent dimension changes x by more than the noise."""
        return self.model_.active

    @property
    def n_active_(self) -> int:
        """The number of active dimensions."""
        return int(self.active_.sum())

    def _words(self) -> list[str]:
        """Return the lines of `summary` about dimensions, relevance and noise."""
        q, relevance = self.embedding_.shape[1], ", ".join(f"{r:.2g}" for r in self.relevance_)
        return [
            f"active     {self.n_active_} of {q} dimensions",
            f"relevance  {relevance}",
            f"noise      {self.noise_variance_:.3g}",
        ]


_DEFAULT_MAX_COMPONENTS = 10  # maximum number of latent dimensions for n_components=None
