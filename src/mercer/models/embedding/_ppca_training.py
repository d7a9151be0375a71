"""Probabilistic PCA, the linear-Gaussian model x = W z + mu + noise, by maximum likelihood.

Without missing values the solution is W = U (Lambda - noise I)^(1/2), where the diagonal of Lambda
contains the q largest eigenvalues of the covariance matrix (divisor n), and the columns of U are
their eigenvectors; the noise variance is the mean of the other eigenvalues (Tipping & Bishop 1999).
With missing values (NaN) the model is fitted by expectation maximisation (EM).  Missing values are
integrated out: the observed values of a point are again Gaussian, with the corresponding rows of W.
A mask marks the observed values, so that points with different missing values are processed
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import ProgressCallback, ProgressStep, entry_point, slices, warn_caller
from ._embedding_search import fix_signs

# A noise variance below this fraction of the largest variance gives a warning.
_MIN_RELATIVE_NOISE = 1e-8
_ENTRIES_PER_BLOCK = 2**21  # number of entries of q x q matrices that are in memory at a time


@dataclass(frozen=True, eq=False)
class LatentPosterior:
    """The posterior z | x ~ N(mean, noise C) of the latent coordinates of each row, with C = M^-1.

    M = W^T W + noise I, as in `LinearGaussian`.  `observed` is the mask of the observed values.
    `centred` is x - mu where observed, and 0 elsewhere.  Without missing values, all rows have the
    same C, which is stored once.
    """

    mean: np.ndarray
    C: np.ndarray
    log_determinant: np.ndarray  # log determinant of M
    observed: np.ndarray
    centred: np.ndarray


@entry_point
@dataclass(frozen=True, eq=False)
class LinearGaussian:
    """The linear-Gaussian latent variable model of probabilistic PCA.

    x = W z + mu + e with z ~ N(0, I) and e ~ N(0, noise I), so that x ~ N(mu, W W^T + noise I).
    With M = W^T W + noise I, the posterior is z | x ~ N(M^-1 W^T (x - mu), noise M^-1).  For a row
    with missing values (NaN), W contains only the rows of the observed columns.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        The mean mu.
    loadings : ndarray of shape (d, q)
        The loadings W.
    noise : float
        The variance of the noise e; positive.

    See Also
    --------
    fit_ppca : Fit the model to complete data.
    fit_ppca_missing : Fit the model to data with missing values.
    ProbabilisticPCA : The estimator.

    References
    ----------
    Tipping and Bishop, "Probabilistic principal component analysis", Journal of the Royal
    Statistical Society B 61, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import LinearGaussian
    >>> model = LinearGaussian(np.zeros(2), np.array([[1.0], [1.0]]), 0.5)
    >>> model.place(np.array([[1.0, 1.0], [1.0, np.nan]])).round(3)
    array([[0.8  ],
           [0.667]])
    >>> model.log_density(np.array([[0.0, 0.0]])).round(3)
    array([-1.949])
    """

    mean: np.ndarray
    loadings: np.ndarray
    noise: float

    @property
    def n_components(self) -> int:
        """The number of latent dimensions q."""
        return int(self.loadings.shape[1])

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the posterior mean of the latent coordinates z for each row of X.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points; NaN marks missing values.

        Returns
        -------
        ndarray of shape (n, q)
            The latent coordinates; 0 for a row without observed values.
        """
        return self._by_blocks(X, lambda posterior: posterior.mean)

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Return log p(x) of the observed values of each row; 0 if all values are missing.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points; NaN marks missing values.

        Returns
        -------
        ndarray of shape (n,)
            The log densities.
        """
        return self._by_blocks(X, self.log_densities)

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return the expected x = W z + mu for given latent coordinates.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
            The latent coordinates.

        Returns
        -------
        ndarray of shape (n, d)
            The expected points.
        """
        return np.asarray(Z @ self.loadings.T + self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw points x from the model, including the noise.

        Parameters
        ----------
        n : int
            The number of points.
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (n, d)
            The points.
        """
        d, q = self.loadings.shape
        noise = np.sqrt(self.noise) * rng.standard_normal((n, d))
        return self.expected(rng.standard_normal((n, q))) + noise

    def posterior(self, X: np.ndarray) -> LatentPosterior:
        """Return the posterior of z for each row of X.

        If values are missing, each row needs a q x q matrix; use `blocks` to limit the number of
        rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The points; NaN marks missing values.

        Returns
        -------
        LatentPosterior
            The means of shape (n, q), and the matrices C with the covariances noise C: one of shape
            (q, q) per row, or a single one if no values are missing.
        """
        (_, q), W = self.loadings.shape, self.loadings
        observed = np.isfinite(X)
        centred = np.where(observed, X - self.mean, 0.0)
        if observed.all():
            M = np.broadcast_to(W.T @ W, (1, q, q))  # M is the same for all rows
        else:
            outer_products = (W[:, :, None] * W[:, None, :]).reshape(-1, q * q)
            M = (observed @ outer_products).reshape(-1, q, q)
        M = M + self.noise * np.eye(q)
        C = np.linalg.inv(M)
        mean = np.einsum("nij,nj->ni", np.broadcast_to(C, (len(X), q, q)), centred @ W)
        return LatentPosterior(mean, C, np.linalg.slogdet(M)[1], observed, centred)

    def log_densities(self, posterior: LatentPosterior) -> np.ndarray:
        """Return log p(x) of the observed values of each row x, given its latent posterior.

        log p(x) = -(m log 2 pi + log det + |x - mu - W z|^2 / noise + |z|^2) / 2

        for m observed values, the posterior mean z, and the covariance determinant det.

        Parameters
        ----------
        posterior : LatentPosterior
            The result of `posterior` for these rows.

        Returns
        -------
        ndarray of shape (n,)
            The log densities.
        """
        q, m = self.loadings.shape[1], posterior.observed.sum(axis=1)
        residual = posterior.observed * (posterior.centred - posterior.mean @ self.loadings.T)
        distance = np.sum(residual**2, axis=1) / self.noise + np.sum(posterior.mean**2, axis=1)
        determinant = posterior.log_determinant + (m - q) * np.log(self.noise)
        return np.asarray(-0.5 * (m * np.log(2.0 * np.pi) + determinant + distance))

    def blocks(self, n: int) -> list[slice]:
        """Split n rows into slices, small enough to store one q x q matrix per row.

        Parameters
        ----------
        n : int
            The number of rows.

        Returns
        -------
        list of slice
            Consecutive slices that cover all rows.
        """
        return slices(n, max(1, _ENTRIES_PER_BLOCK // (self.loadings.shape[1] + 1) ** 2))

    def _by_blocks(
        self, X: np.ndarray, function: Callable[[LatentPosterior], np.ndarray]
    ) -> np.ndarray:
        return np.concatenate([function(self.posterior(X[rows])) for rows in self.blocks(len(X))])


class PPCAResult(NamedTuple):
    """The fitted model, and the mean log likelihood of a row in each iteration."""

    model: LinearGaussian
    log_likelihoods: np.ndarray


@entry_point
def fit_ppca(X: np.ndarray, q: int) -> PPCAResult:
    """Fit probabilistic PCA with q components to data without missing values, in closed form.

    The loadings are the q leading eigenvectors of the covariance matrix, scaled by the square roots
    of eigenvalue minus noise.  The noise variance is the mean of the other eigenvalues.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The training points.
    q : int
        The number of components, smaller than d.  Compare the log likelihood of held-out points for
        several values to choose it.

    Returns
    -------
    PPCAResult
        The `model`, a `LinearGaussian`, and `log_likelihoods`, the mean log likelihood of a row in
        an array of shape (1,).

    See Also
    --------
    fit_ppca_missing : The same for data with missing values.
    ProbabilisticPCA : The estimator.

    References
    ----------
    Tipping and Bishop, "Probabilistic principal component analysis", Journal of the Royal
    Statistical Society B 61, 1999.

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
    log: ProgressCallback | None = None,
) -> PPCAResult:
    """Fit probabilistic PCA with q components to data with missing values (NaN), by EM.

    The E-step computes the posterior z_i ~ N(m_i, noise C_i) of each row.  The M-step regresses
    each column on z, with an intercept, over the rows in which it is observed.  The likelihood
    never decreases.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The training points; NaN marks missing values.
    q : int
        The number of components, smaller than d.
    tol : float, default=1e-6
        The iteration ends when a step increases the log likelihood per row by less than this.
    max_iter : int, default=1000
        The maximum number of steps.  EM converges slowly if many values are missing or the noise is
        small; then increase this number.
    log : function, optional
        Function that is called with a progress message after each step.

    Returns
    -------
    PPCAResult
        The `model`, a `LinearGaussian`, and `log_likelihoods`, the mean log likelihood of a row in
        each iteration, an array of shape (n_iter,).

    See Also
    --------
    fit_ppca : The closed form for complete data.
    ProbabilisticPCA : The estimator.

    References
    ----------
    Tipping and Bishop, "Probabilistic principal component analysis", Journal of the Royal
    Statistical Society B 61, 1999.

    Ilin and Raiko, "Practical approaches to principal component analysis in the presence of missing
    values", JMLR 11, 2010.

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
    noise = _bounded_noise(noise, scale, quiet=True)
    updated = LinearGaussian(model.mean + coefficients[:, q], coefficients[:, :q], noise)
    return updated, likelihood / n


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
