"""Gaussian process latent variable model: scikit-learn interface to `mercer.models.embedding`."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

from ..._core import Points, progress
from ...kernels import RBF, Constant, White, as_kernel
from ...models.embedding import GPLVMModel, fit_gplvm
from .._parameters import POSITIVE_INTEGER, estimator, fit_method, fitted_attribute, parameter
from .._training_sample import Sample
from ._latent_model import GPLVMBase

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
        The dimension of the embedding; None means 2, or 1 if X has one column.
    kernel : Kernel, str or None
        The kernel on latent coordinates, with the noise as a `White` term. Any kernel with
        derivatives with respect to its points is allowed. It is fitted to X divided by a constant,
        ``model_.unit``, so that the mean variance of the columns is 1. None means ``1.0*RBF() +
        Constant(0.1) + White(0.1)``.
    prior : bool
        Whether z has the prior N(0, I). Without it the scale of the embedding is undetermined, in
        `fit` and in `transform`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The latent coordinates of the training points.
    kernel_ : Kernel
        The kernel with its optimised parameters.
    model_ : GPLVMModel
        The fitted model as an immutable object.
    expansion_ : Expansion
        The posterior mean of f as a function of z, in units of ``model_.unit``.
    log_likelihood_ : float
        The maximised objective.
    n_iter_ : int
        The number of evaluations of the objective.
    report_ : Report
        How the optimisation ended.
    n_features_in_ : int
        The number of columns of X.

    References
    ----------
    Lawrence (2005), Probabilistic non-linear principal component analysis with Gaussian process
    latent variable models.

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

    n_components: int | None = parameter(POSITIVE_INTEGER, None, default=None)
    _: KW_ONLY
    prior: bool = parameter("boolean", default=True)

    model_: GPLVMModel = fitted_attribute()

    @fit_method
    def fit(self, X: Points, y: Any = None) -> Self:
        """Find the latent coordinates and kernel parameters of maximal likelihood."""
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
