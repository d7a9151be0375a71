"""The linear-Gaussian model of probabilistic PCA, x = W z + mu + noise.

Missing values (NaN) are integrated out: the observed values of a point are again Gaussian, with the
corresponding rows of W.  A mask marks the observed values, so that points with different missing
values are processed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import entry_point, slices

__all__ = ["LatentPosterior", "LinearGaussian"]

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
        The variance of the noise e.

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
        """Return the posterior mean of z for each row of X, shape (n, q)."""
        return self._by_blocks(X, lambda posterior: posterior.mean)

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Return log p(x) of the observed values of each row; 0 if all values are missing."""
        return self._by_blocks(X, self.log_densities)

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return the expected x = W z + mu for each row of Z, shape (n, d)."""
        return np.asarray(Z @ self.loadings.T + self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n points x from the model."""
        d, q = self.loadings.shape
        noise = np.sqrt(self.noise) * rng.standard_normal((n, d))
        return self.expected(rng.standard_normal((n, q))) + noise

    def posterior(self, X: np.ndarray) -> LatentPosterior:
        """Return the posterior of z for each row of X.

        If values are missing, each row needs a q x q matrix; use `blocks` to limit the number of
        rows.
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
        """
        q, m = self.loadings.shape[1], posterior.observed.sum(axis=1)
        residual = posterior.observed * (posterior.centred - posterior.mean @ self.loadings.T)
        distance = np.sum(residual**2, axis=1) / self.noise + np.sum(posterior.mean**2, axis=1)
        determinant = posterior.log_determinant + (m - q) * np.log(self.noise)
        return np.asarray(-0.5 * (m * np.log(2.0 * np.pi) + determinant + distance))

    def blocks(self, n: int) -> list[slice]:
        """Split n rows into slices, small enough to store one q x q matrix per row."""
        return slices(n, max(1, _ENTRIES_PER_BLOCK // (self.loadings.shape[1] + 1) ** 2))

    def _by_blocks(self, X: np.ndarray, function: Any) -> np.ndarray:
        return np.concatenate([function(self.posterior(X[rows])) for rows in self.blocks(len(X))])
