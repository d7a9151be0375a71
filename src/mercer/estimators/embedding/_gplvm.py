"""Gaussian process latent variable models: scikit-learn interface to `mercer.models.embedding`.

`GPLVM` finds the latent coordinates of maximal likelihood, and `BayesianGPLVM` an approximate
posterior distribution of them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from ..._core import Points, progress, seeded_generator
from ...kernels import RBF, Constant, Kernel, White, as_kernel
from ...models.embedding import (
    BayesianGPLVMModel,
    GPLVMModel,
    default_ard_kernel,
    fit_bayesian_gplvm,
    fit_gplvm,
    pca_scores,
    scale_to_unit_variance,
)
from ...models.gp import LatentBound
from .._kernel_estimator import ExpansionEstimator, Seed, Shrink
from .._parameters import estimator, fit_method, fitted, parameter
from .._plan_method import n_of
from .._training_sample import Sample
from ..decomposition._kernel_pca import KernelPCA
from ._latent_model import LatentModelMixin, require_distinct_rows


@estimator(kw_only=True)
class GPLVMBase(LatentModelMixin, ExpansionEstimator):
    """Base class of the GPLVMs, which optimise the latent coordinates of the training points.

    Parameters
    ----------
    init : {"pca", "kernel_pca"} or array of shape (n, n_components)
        Initial latent coordinates. "pca" and "kernel_pca" are scaled to variance 1 in each
        dimension. The objective has many local optima, and random initial coordinates usually lead
        to a bad one. Try both, and compare `log_likelihood_`.
    tol : float
        The optimisation stops when each of ten iterations improves the log likelihood per entry of
        X by less than this. Smaller values take more iterations.
    max_iter : int
        Maximum number of iterations. If it is reached, `report_` shows it.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its optimised parameters.
    expansion_ : Expansion
        The posterior mean of f as a function of z, in units of ``model_.unit``.
    n_iter_, report_ : int, Report
        The number of evaluations of the objective, and how the optimisation ended.
    """

    kernel: Any = parameter(None, Kernel, str, default=None)
    init: Any = parameter({"pca", "kernel_pca"}, "array-like", default="pca")
    tol: float = parameter("positive", default=1e-4)
    max_iter: int = parameter("positive integer", default=1000)

    log_likelihood_: float = fitted()

    def summary(self) -> str:
        """Return a text with the kernel, the number of points and the report of the optimiser.

        Returns
        -------
        str
            Several lines, to print.
        """
        check_is_fitted(self)
        n, q = self.embedding_.shape
        head = f"{type(self).__name__} of {n} points in {q} dimension{'s' if q != 1 else ''}"
        lines = [f"kernel     {self.kernel_}", *self._words(), *str(self.report_).splitlines()]
        return "\n  ".join([head, *lines])

    def _words(self) -> list[str]:
        """Return the lines of the summary that are specific to the estimator."""
        return []

    @property
    def embedding_(self) -> np.ndarray:
        """The latent coordinates of the training points, shape (n, n_components)."""
        return np.asarray(self.model_.places)

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the optimiser."""
        return self.report_.n_iter

    def _check_training_data(self, X: Points) -> np.ndarray:
        """Check the training data and return a copy; raise an error if all rows are equal."""
        X = self._check(X, reset=True, copy=True, ensure_min_samples=2)
        require_distinct_rows(len(X), not np.ptp(X, axis=0).any())
        return X

    def _settle(self, result: Any) -> Self:
        """Set the fitted attributes from the result of the optimiser, and log progress."""
        self.model_, self.log_likelihood_, self.report_ = result
        self.expansion_ = self.model_.expansion
        self.kernel_ = self.expansion_.kernel
        name = next(iter(self.report_.certificate))
        self._log_progress(
            "; ".join([f"{name} {self.log_likelihood_:.6g}, {self.kernel_}", *self._words()])
        )
        return self

    def _start(self, X: np.ndarray, q: int) -> np.ndarray:
        """Return the initial latent coordinates, shape (n, q)."""
        n, d = X.shape
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init", estimator=self)
            if start.shape != (n, q):
                raise ValueError(
                    f"init has shape {start.shape}, but the embedding has shape {(n, q)}"
                )
            return start
        if self.init == "kernel_pca":
            if q >= n:
                raise ValueError(
                    f"n_components={q}, but kernel PCA of {n} points has at most {n - 1} "
                    f"dimensions; pass initial coordinates as init"
                )
            model = KernelPCA(n_components=q, kernel="rbf", gamma="median")
            return scale_to_unit_variance(model.fit_transform(X))
        if q > min(n, d):
            raise ValueError(
                f"n_components={q}, but PCA of {n} points has at most {min(n, d)} dimensions for "
                f"n_features={d}; pass initial coordinates as init, or init='kernel_pca'"
            )
        return scale_to_unit_variance(pca_scores(X, q))

    def _is_precomputed_kernel(self, kernel: Any) -> bool:
        return False  # the kernel compares latent coordinates, so X is never a kernel matrix

    def _compress(self, shrink: Shrink) -> None:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be compressed; fit it to fewer points instead")


_DEFAULT_KERNEL = 1.0 * RBF(1.0) + Constant(0.1) + White(0.1)


@estimator()
class GPLVM(GPLVMBase):
    """Gaussian process latent variable model, a nonlinear embedding with a smooth inverse.

    The model is x = mu + f(z) + e with a Gaussian process f, noise e and low-dimensional latent
    coordinates z. The columns x_c of the data are functions of z that share one kernel. L-BFGS with
    exact gradients finds the coordinates Z and the kernel parameters theta of maximal likelihood:

        max over Z, theta of  sum_c log N(x_c - mu_c; 0, K(Z)) + sum_i log N(z_i; 0, I)

    With a linear kernel the embedding spans the same subspace as PCA. Time grows as n^3. `sample`
    draws x at latent coordinates of training points instead of coordinates from the prior, because
    the prior N(0, I) is wider than the distribution of these coordinates.

    Parameters
    ----------
    n_components : int or None
        The dimension of the embedding; None means 2, or 1 if X has one column. Use `BayesianGPLVM`
        to determine it from the data.
    kernel : Kernel, str or None
        The kernel on latent coordinates, with the noise as a `White` term. Any kernel with
        derivatives with respect to its points is allowed. It is fitted to X divided by a constant,
        ``model_.unit``, so that the mean variance of the columns is 1. None means ``1.0*RBF() +
        Constant(0.1) + White(0.1)``.
    prior : bool
        Whether z has the prior N(0, I). Without it the scale of the embedding is undetermined, in
        `fit` and in `transform`, so keep the default unless you compare with other implementations.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The latent coordinates of the training points.
    model_ : GPLVMModel
        The fitted model as an immutable object.
    log_likelihood_ : float
        The maximised objective.

    See Also
    --------
    BayesianGPLVM : Determines the dimension, and its time grows as n instead of n^3.
    ProbabilisticPCA : The linear case.
    KernelPCA : A nonlinear embedding without local optima, for points of any type.
    Autoencoder : A neural network, for more points.
    sklearn.decomposition.KernelPCA : scikit-learn has no GPLVM; this is its closest nonlinear
        embedding with an inverse.

    References
    ----------
    Lawrence, "Probabilistic non-linear principal component analysis with Gaussian process latent
    variable models", Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GPLVM
    >>> t = np.linspace(-1, 1, 50)
    >>> X = np.c_[t, t**2, t**3] + 0.01 * np.random.default_rng(0).normal(size=(50, 3))
    >>> model = GPLVM(1).fit(X)
    >>> z = model.transform(X[:3])
    >>> bool(np.abs(model.inverse_transform(z) - X[:3]).max() < 0.1)
    True
    """

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    prior: bool = parameter("boolean", default=True)

    model_: GPLVMModel = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Find the latent coordinates and kernel parameters of maximal likelihood.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data without missing values; standardise the columns if their units differ.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : GPLVM
            The fitted estimator.
        """
        X = self._check_training_data(X)
        start = self._start(X, self.n_components or min(2, X.shape[1]))
        kernel = _DEFAULT_KERNEL if self.kernel is None else as_kernel(self.kernel)
        with progress(type(self).__name__, self.verbose) as log:
            result = fit_gplvm(
                X,
                kernel.resolve(start),
                start,
                prior=self.prior,
                tol=self.tol,
                max_iter=self.max_iter,
                max_memory=self.max_memory,
                log=log,
            )
        return self._settle(result)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n = len(sample)
        option = {"solver": "lbfgs", "storage": "dense", "exact": False, "extra": 46 * n * n}
        return f"latent variables of {n} points", {**option, "required": 64 * n * n}


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
        The maximum number of latent dimensions. None means 10, or the number of rows or columns of
        X if that is smaller. Choose it too large rather than too small, and read `n_active_`.
    n_inducing : int
        The number of inducing points, at most the number of points. More inducing points are more
        accurate and slower: time grows as n n_inducing^2. 20 to 100 are typical.
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
    model_ : BayesianGPLVMModel
        The fitted model as an immutable object.
    log_likelihood_ : float
        The maximised lower bound of the log likelihood.

    See Also
    --------
    GPLVM : Point estimates of the latent coordinates, and any differentiable kernel.
    ProbabilisticPCA : The linear case.
    KernelPCA : A nonlinear embedding without local optima, for points of any type.
    sklearn.decomposition.KernelPCA : scikit-learn has no GPLVM; this is its closest nonlinear
        embedding with an inverse.

    References
    ----------
    Titsias and Lawrence, "Bayesian Gaussian process latent variable model", AISTATS 2010.

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

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    n_inducing: int = parameter("positive integer", default=50)
    random_state: Seed = parameter("random_state", default=None)

    model_: BayesianGPLVMModel = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Fit the model by maximising the lower bound of the log likelihood.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data without missing values; standardise the columns if their units differ.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : BayesianGPLVM
            The fitted estimator.
        """
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
