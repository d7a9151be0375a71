"""Probabilistic PCA: the most likely x = W z + mu + noise, in closed form or, with gaps, by EM.

Without gaps W = U (Lambda - noise I)^(1/2) for the q largest eigenvalues Lambda of the covariance
(divisor n) and their directions U, and the noise is the mean of the others (Tipping & Bishop 1999).
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import Step, entry_point
from ._linear_gaussian import LinearGaussian

__all__ = ["FittedLinear", "principal", "signed", "with_gaps"]

_NOTHING = 1e-8  # of the largest variance: a noise below it explains no value


class FittedLinear(NamedTuple):
    """A model, and the mean log likelihoods of a row on the way to it."""

    model: LinearGaussian
    log_likelihoods: np.ndarray


@entry_point
def principal(X: np.ndarray, q: int) -> FittedLinear:
    """Return the most likely model with q latent dimensions for rows without gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import principal
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> model, likelihood = principal(X, 1)
    >>> round(model.noise, 12), (model.loadings**2).round(12)
    (0.5, array([[4.],
           [0.]]))
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    _, s, axes = np.linalg.svd(X - mean, full_matrices=False)
    eigenvalues = np.zeros(d)
    eigenvalues[: len(s)] = s**2 / n
    noise = _noise(eigenvalues[q:].mean(), eigenvalues[0] * max(n, d))
    W = signed(axes[:q].T * np.sqrt(np.maximum(eigenvalues[:q] - noise, 0.0)))
    model = LinearGaussian(mean, W, noise)
    return FittedLinear(model, np.array([model.log_density(X).mean()]))


@entry_point
def with_gaps(
    X: np.ndarray,
    q: int,
    tol: float = 1e-6,
    max_iter: int = 1000,
    say: Function[[str], None] | None = None,
) -> FittedLinear:
    """Return the most likely model of what is there, by expectation and maximisation.

    Given where rows are, z_i ~ N(m_i, noise C_i), each column is a regression on z with an
    intercept, over the rows that have it; given these, rows are placed anew.  The likelihood never
    falls.  It ends where a step gains less than `tol` per row.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import with_gaps
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) @ [[2.0, 1.0, -1.0]]
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> X[::3, 1] = np.nan
    >>> model, likelihoods = with_gaps(X, 1)
    >>> bool(np.all(np.diff(likelihoods) > 0)), round(model.noise, 2)
    (True, 0.01)
    """
    there = np.isfinite(X)
    scale = np.nanvar(X, axis=0).max() * max(X.shape)
    model = principal(np.where(there, X, np.nanmean(X, axis=0)), q).model  # a start
    likelihoods: list[float] = []
    gain = np.inf
    for step in range(max_iter):
        better, value = _maximised(model, X, scale)
        likelihoods.append(value)
        if say is not None:
            say(Step(f"step {step + 1}: log likelihood {value:.6g} a row"))
        gain = value - likelihoods[-2] if step else np.inf
        if gain < tol:
            break
        model = better
    else:
        warn_caller(
            f"EM has taken max_iter={max_iter} steps, and the last one still gained {gain:.1e} in "
            f"log likelihood per row, more than tol={tol:.1e}; raise max_iter or tol, or ask for "
            f"fewer components",
            ConvergenceWarning,
        )
        likelihoods.append(float(model.log_density(X).mean()))
    spread = float(np.nanvar(X, axis=0).max())
    if model.noise < _NOTHING * spread:
        warn_caller(
            f"the components explain all of the {there.sum()} values that are there: a noise of "
            f"{model.noise:.1e} is left of a variance of {spread:.1e}, and the likelihood grows "
            f"without end; ask for fewer components, or leave out rows and columns with few values"
        )
    U, s, _ = np.linalg.svd(model.loadings, full_matrices=False)  # any turn of W is as likely
    turned = LinearGaussian(model.mean, signed(U * s), model.noise)
    return FittedLinear(turned, np.array(likelihoods))


def _maximised(model: LinearGaussian, X: np.ndarray, scale: float) -> tuple[LinearGaussian, float]:
    """Return the model after a step, and the mean log likelihood before it."""
    (n, d), q = X.shape, model.loadings.shape[1]
    A, B = np.zeros((d, q + 1, q + 1)), np.zeros((d, q + 1))  # of the regressions A_j w_j = B_j
    likelihood, squares = 0.0, 0.0
    for rows in model.blocks(n):
        found = model.posterior(X[rows])
        likelihood += float(model.log_densities(found).sum())
        z = np.concatenate([found.mean, np.ones((len(found.mean), 1))], axis=1)
        moments = z[:, :, None] * z[:, None, :]
        moments[:, :q, :q] += model.noise * found.C
        A += (found.there.T @ moments.reshape(len(z), -1)).reshape(A.shape)
        B += found.rest.T @ z
        squares += float(np.sum(found.rest**2))
    V = np.linalg.solve(A, B[:, :, None])[:, :, 0]
    # sum of |x - W z - mu|^2 over what is there, in expectation, at the minimum
    noise = (squares - float(np.sum(B * V))) / np.isfinite(X).sum()
    return (
        LinearGaussian(model.mean + V[:, q], V[:, :q], _noise(noise, scale, quiet=True)),
        likelihood / n,
    )


def _noise(variance: float, scale: float, quiet: bool = False) -> float:
    """Return a variance that is not lost in rounding; otherwise the likelihood has no maximum."""
    least = np.finfo(np.float64).eps * float(scale)
    if variance >= least:
        return float(variance)
    if not quiet:
        warn_caller(
            f"the components leave a variance of {variance:.1e} over, which is rounding, so that "
            f"the likelihood grows without end; the noise is set to {least:.1e}. Ask for fewer "
            f"components, or for PCA"
        )
    return least


def signed(W: np.ndarray) -> np.ndarray:
    """Return W with the largest entry of each column positive, so that fits repeat."""
    largest = np.abs(W).argmax(axis=0)
    signs = np.sign(W[largest, np.arange(W.shape[1])])
    return np.asarray(W * np.where(signs == 0.0, 1.0, signs))
