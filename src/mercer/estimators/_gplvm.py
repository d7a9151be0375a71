"""The Gaussian process latent variable model, thin: checks, a start, and scikit-learn's names."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

from .._runtime import progress
from ..kernels import RBF, Constant, White, as_kernel
from ..maps import LatentMap, fit_latent
from ._parameters import COUNT, estimator, fitting, learned, parameter
from ._places import LatentVariables

__all__ = ["GPLVM"]

_KERNEL = 1.0 * RBF(1.0) + Constant(0.1) + White(0.1)


@estimator()
class GPLVM(LatentVariables):
    """x = mu + f(z) + e with a Gaussian process f: a map whose way back is smooth and nonlinear.

        max over Z, theta of  sum_c log N(x_c - mu_c; 0, K(Z)) + sum_i log N(z_i; 0, I)

    The columns x_c of the data are functions of places z_i in a few dimensions, all with the same
    kernel; places and parameters of the kernel are those that make the data most likely, by
    L-BFGS with exact gradients.  A linear kernel has the plane of PCA.  Time grows with n^3.
    `sample` draws x at the places of training points, since N(0, I) is wider than these are.

    Parameters
    ----------
    n_components : int or None
        The dimensions of the map; None is 2, or 1 for one column.
    kernel : Kernel, str or None
        Of places, with the noise as a `White` part; any kernel with derivatives in its points.
        It sees X in a unit in which columns have a mean variance of 1.  None is
        ``1.0*RBF() + Constant(0.1) + White(0.1)``.
    prior : bool
        Whether places are N(0, I); without it, their scale is free, in `fit` and `transform`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The places of the training points.
    kernel_ : Kernel
        With its best parameters.
    model_ : LatentMap
        The map as a value.
    expansion_ : Expansion
        The mean of f, a function of places, in that unit, ``model_.unit``.
    log_likelihood_ : float
        What was maximised.
    n_iter_ : int
        Evaluations of it.
    report_ : Report
        How the search ended.
    n_features_in_ : int

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

    n_components: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    prior: bool = parameter("boolean", default=True)

    model_: LatentMap = learned()

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the most likely places."""
        X = self._given_rows(X)
        start = self._start(X, self.n_components or min(2, X.shape[1]))
        kernel = _KERNEL if self.kernel is None else as_kernel(self.kernel)
        with progress(type(self).__name__, self.verbose) as say:
            found = fit_latent(
                X,
                kernel.resolve(start),
                start,
                prior=self.prior,
                tol=self.tol,
                max_iter=self.max_iter,
                max_memory=self.max_memory,
                say=say,
            )
        return self._settle(found)
