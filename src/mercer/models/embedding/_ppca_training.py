"""Probabilistic PCA, x = W z + mu + noise, by maximum likelihood.

Without missing values the solution is W = U (Lambda - noise I)^(1/2), where the diagonal of Lambda
contains the q largest eigenvalues of the covariance matrix (divisor n), and the columns of U are
their eigenvectors; the noise variance is the mean of the other eigenvalues (Tipping & Bishop 1999).
With missing values the model is fitted by expectation maximisation (EM).
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressStep, entry_point, warn_caller
from ._linear_gaussian import LinearGaussian

__all__ = ["PPCAResult", "fit_ppca", "fit_ppca_missing", "fix_signs"]

_MIN_RELATIVE_NOISE = (
    1e-8  # a noise variance below this fraction of the largest variance gives a warning
)


class PPCAResult(NamedTuple):
    """The fitted model, and the mean log likelihood of a row in each iteration."""

    model: LinearGaussian
    log_likelihoods: np.ndarray


@entry_point
def fit_ppca(X: np.ndarray, q: int) -> PPCAResult:
    """Fit probabilistic PCA with q components to data without missing values, in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import fit_ppca
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> model, likelihood = fit_ppca(X, 1)
    >>> round(model.noise, 12), (model.loadings**2).round(12)
    (0.5, array([[4.],
           [0.]]))
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    _, s, axes = np.linalg.svd(X - mean, full_matrices=False)
    eigenvalues = np.zeros(d)
    eigenvalues[: len(s)] = s**2 / n
    noise = _bounded_noise(eigenvalues[q:].mean(), eigenvalues[0] * max(n, d))
    W = fix_signs(axes[:q].T * np.sqrt(np.maximum(eigenvalues[:q] - noise, 0.0)))
    model = LinearGaussian(mean, W, noise)
    return PPCAResult(model, np.array([model.log_density(X).mean()]))


@entry_point
def fit_ppca_missing(
    X: np.ndarray,
    q: int,
    tol: float = 1e-6,
    max_iter: int = 1000,
    log: Function[[str], None] | None = None,
) -> PPCAResult:
    """Fit probabilistic PCA with q components to data with missing values (NaN), by EM.

    The E-step computes the posterior z_i ~ N(m_i, noise C_i) of each row.  The M-step regresses
    each column on z, with an intercept, over the rows in which it is observed.  The likelihood
    never decreases.  The iteration ends when a step increases the log likelihood per row by less
    than `tol`, or after `max_iter` steps.  `log` is called with a progress message after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import fit_ppca_missing
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) @ [[2.0, 1.0, -1.0]]
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> X[::3, 1] = np.nan
    >>> model, likelihoods = fit_ppca_missing(X, 1)
    >>> bool(np.all(np.diff(likelihoods) > 0)), round(model.noise, 2)
    (True, 0.01)
    """
    observed = np.isfinite(X)
    scale = np.nanvar(X, axis=0).max() * max(X.shape)
    # The initial model is fitted to X with missing values replaced by the column means.
    model = fit_ppca(np.where(observed, X, np.nanmean(X, axis=0)), q).model
    likelihoods: list[float] = []
    gain = np.inf
    for step in range(max_iter):
        updated, value = _em_step(model, X, scale)
        likelihoods.append(value)
        if log is not None:
            log(ProgressStep(f"step {step + 1}: log likelihood {value:.6g} per row"))
        gain = value - likelihoods[-2] if step else np.inf
        if gain < tol:
            break
        model = updated
    else:
        warn_caller(
            f"EM stopped after max_iter={max_iter} steps without convergence: the last step "
            f"increased the log likelihood per row by {gain:.1e}, more than tol={tol:.1e}; raise "
            f"max_iter or tol, or use fewer components",
            ConvergenceWarning,
        )
        likelihoods.append(float(model.log_density(X).mean()))
    spread = float(np.nanvar(X, axis=0).max())
    if model.noise < _MIN_RELATIVE_NOISE * spread:
        warn_caller(
            f"the components explain all of the {observed.sum()} observed values: the noise "
            f"variance is only {model.noise:.1e}, for data with a variance of {spread:.1e}, and "
            f"the likelihood is unbounded; use fewer components, or remove rows and columns with "
            f"few values"
        )
    # All rotations of W have the same likelihood; choose orthogonal columns, sorted by length.
    U, s, _ = np.linalg.svd(model.loadings, full_matrices=False)
    rotated = LinearGaussian(model.mean, fix_signs(U * s), model.noise)
    return PPCAResult(rotated, np.array(likelihoods))


def _em_step(model: LinearGaussian, X: np.ndarray, scale: float) -> tuple[LinearGaussian, float]:
    """Return the model after one EM step, and the mean log likelihood before it."""
    (n, d), q = X.shape, model.loadings.shape[1]
    # A and B are the normal equations A_j w_j = B_j of the regression of each column j.
    A, B = np.zeros((d, q + 1, q + 1)), np.zeros((d, q + 1))
    likelihood, squares = 0.0, 0.0
    for rows in model.blocks(n):
        posterior = model.posterior(X[rows])
        likelihood += float(model.log_densities(posterior).sum())
        z = np.concatenate([posterior.mean, np.ones((len(posterior.mean), 1))], axis=1)
        moments = z[:, :, None] * z[:, None, :]
        moments[:, :q, :q] += model.noise * posterior.C
        A += (posterior.observed.T @ moments.reshape(len(z), -1)).reshape(A.shape)
        B += posterior.centred.T @ z
        squares += float(np.sum(posterior.centred**2))
    coefficients = np.linalg.solve(A, B[:, :, None])[:, :, 0]
    # The noise variance is the expected mean of |x - W z - mu|^2 over the observed values.
    noise = (squares - float(np.sum(B * coefficients))) / np.isfinite(X).sum()
    return (
        LinearGaussian(
            model.mean + coefficients[:, q],
            coefficients[:, :q],
            _bounded_noise(noise, scale, quiet=True),
        ),
        likelihood / n,
    )


def _bounded_noise(variance: float, scale: float, quiet: bool = False) -> float:
    """Return the noise variance, raised to the level of rounding errors if it is smaller.

    The likelihood would be unbounded without noise.  If the variance is raised, a warning is issued
    unless `quiet` is True.
    """
    floor = np.finfo(np.float64).eps * float(scale)
    if variance >= floor:
        return float(variance)
    if not quiet:
        warn_caller(
            f"the components leave a variance of {variance:.1e}, which is rounding error, so that "
            f"the likelihood is unbounded; the noise variance is set to {floor:.1e}. Use fewer "
            f"components, or PCA"
        )
    return floor


def fix_signs(W: np.ndarray) -> np.ndarray:
    """Return W with the largest entry of each column made positive, for reproducible signs."""
    largest = np.abs(W).argmax(axis=0)
    signs = np.sign(W[largest, np.arange(W.shape[1])])
    return np.asarray(W * np.where(signs == 0.0, 1.0, signs))
