"""The Bayesian latent variable model, thin: checks, a start, and scikit-learn's names."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from .._runtime import progress, random_numbers
from ..kernels import as_kernel
from ..maps import BayesianMap, default_relevance, fit_bayesian
from ._base import Seed
from ._parameters import COUNT, estimator, fitting, learned, parameter
from ._places import LatentVariables

__all__ = ["BayesianGPLVM"]


@estimator()
class BayesianGPLVM(LatentVariables):
    """x = mu + f(z) + e with z ~ N(0, I) integrated out: a map that finds its own dimension.

        max over q, theta of  <log p(X | Z)>_q - KL(q || N(0, I)),     q(z_i) = N(m_i, diag S_i)

    A bound on the log likelihood of the data, with f known through its values at inducing points
    (Titsias & Lawrence).  Each dimension has a length scale l: where the data need none of it, l
    grows, z returns to N(0, I), and the relevance var(m) / l^2 falls to 0.  Dimensions come in the
    order of their relevance.  Time grows with n m^2 for m inducing points, and memory with n.

    Parameters
    ----------
    n_components : int or None
        The most dimensions; None is 10, or as many as PCA has.
    n_inducing : int
        Inducing points, at most as many as points.
    kernel : Kernel, str or None
        v*RBF(l), or Linear(), each with a length scale for each dimension.  It sees X in a unit in
        which columns have a mean variance of 1.  None is an RBF with v = 1, whose l are those of
        PCA: l_1 = 1, and the others larger as the data vary less in their direction.
    random_state : int, RandomState or None
        Draws the points whose places the inducing points start at; None stands for 0.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        m, the means of the places of the training points, dimensions in the order of relevance.
    variances_ : ndarray of shape (n, n_components)
        S.
    relevance_ : ndarray of shape (n_components,)
        var(m) / l^2 of each dimension, falling.
    active_ : ndarray of shape (n_components,)
        Which dimensions move x by more than the noise does: d v var(m) / l^2 > s for d columns and
        a noise of s, in that unit.
    n_active_ : int
        How many; they come first.
    noise_variance_ : float
        The variance of e.
    kernel_ : Kernel
        With its best parameters.
    model_ : BayesianMap
        The map as a value.
    expansion_ : Expansion
        The mean of f, a function of places, in that unit, ``model_.unit``.
    log_likelihood_ : float
        The bound on it, which was maximised.
    n_iter_ : int
        Evaluations of it.
    report_ : Report
        How the search ended.
    n_features_in_ : int

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

    n_components: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    n_inducing: int = parameter(COUNT, default=50)
    random_state: Seed = parameter("random_state", default=None)

    model_: BayesianMap = learned()

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the map whose bound is highest."""
        X = self._given_rows(X)
        start = self._start(X, self.n_components or min(_MOST, *X.shape))
        if self.kernel is None:
            kernel = default_relevance(X, start.shape[1])
        else:
            kernel = as_kernel(self.kernel).resolve(start)
        drawn = random_numbers(self.random_state).permutation(len(X))[: self.n_inducing]
        with progress(type(self).__name__, self.verbose) as say:
            found = fit_bayesian(
                X,
                kernel,
                start,
                start[np.sort(drawn)],
                tol=self.tol,
                max_iter=self.max_iter,
                max_memory=self.max_memory,
                say=say,
            )
        return self._settle(found)

    @property
    def variances_(self) -> np.ndarray:
        return self.model_.variances

    @property
    def noise_variance_(self) -> float:
        return self.model_.unit**2 * self.model_.noise

    @property
    def relevance_(self) -> np.ndarray:
        return self.model_.relevance

    @property
    def active_(self) -> np.ndarray:
        return self.model_.active

    @property
    def n_active_(self) -> int:
        return int(self.active_.sum())

    def _words(self) -> list[str]:
        q, shown = self.embedding_.shape[1], ", ".join(f"{r:.2g}" for r in self.relevance_)
        return [
            f"active     {self.n_active_} of {q} dimensions",
            f"relevance  {shown}",
            f"noise      {self.noise_variance_:.3g}",
        ]


_MOST = 10  # dimensions, unless more are asked for
