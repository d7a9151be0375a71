"""The model of probabilistic PCA: x = W z + mu + noise, all of it Gaussian.

Values that are missing (NaN) are integrated out: what remains of a row is Gaussian again, with the
rows of W that belong to the values that are there.  All rows are treated alike, by a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._runtime import entry_point, slices

__all__ = ["LinearGaussian", "Places"]

_NUMBERS = 2**21  # of M_i at a time


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows are in the latent space: z | x ~ N(mean, noise C), each with its own C = M^-1.

    `there` and `rest` are the mask of the values that are there, and these less mu, else 0.
    """

    mean: np.ndarray
    C: np.ndarray
    log_determinant: np.ndarray  # of M
    there: np.ndarray
    rest: np.ndarray


@entry_point
@dataclass(frozen=True, eq=False)
class LinearGaussian:
    """x = W z + mu + e with z ~ N(0, I) and e ~ N(0, noise I), so that x ~ N(mu, W W^T + noise I).

    With M = W^T W + noise I, z | x ~ N(M^-1 W^T (x - mu), noise M^-1); for a row with gaps W has
    the rows of what is there.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        mu.
    loadings : ndarray of shape (d, q)
        W.
    noise : float
        The variance of e.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import LinearGaussian
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
        """The dimensions of z."""
        return int(self.loadings.shape[1])

    def place(self, X: np.ndarray) -> np.ndarray:
        """Return the means of z | x, (n, q)."""
        return self._by_blocks(X, lambda found: found.mean)

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Return log p(x) of what is there of each row; 0 for a row of gaps."""
        return self._by_blocks(X, self.log_densities)

    def expected(self, Z: np.ndarray) -> np.ndarray:
        """Return W z + mu, (n, d)."""
        return np.asarray(Z @ self.loadings.T + self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n points."""
        d, q = self.loadings.shape
        noise = np.sqrt(self.noise) * rng.standard_normal((n, d))
        return self.expected(rng.standard_normal((n, q))) + noise

    def posterior(self, X: np.ndarray) -> Places:
        """Return where rows are in the latent space; of few rows at a time: see `blocks`."""
        (_, q), W = self.loadings.shape, self.loadings
        there = np.isfinite(X)
        rest = np.where(there, X - self.mean, 0.0)
        if there.all():
            M = np.broadcast_to(W.T @ W, (1, q, q))  # one for all
        else:
            squares = (W[:, :, None] * W[:, None, :]).reshape(-1, q * q)
            M = (there @ squares).reshape(-1, q, q)
        M = M + self.noise * np.eye(q)
        C = np.linalg.inv(M)
        mean = np.einsum("nij,nj->ni", np.broadcast_to(C, (len(X), q, q)), rest @ W)
        return Places(mean, C, np.linalg.slogdet(M)[1], there, rest)

    def log_densities(self, found: Places) -> np.ndarray:
        """Return log p(x) = -(m log 2 pi + log det + |x - mu - W z|^2 / noise + |z|^2) / 2."""
        q, m = self.loadings.shape[1], found.there.sum(axis=1)
        left = found.there * (found.rest - found.mean @ self.loadings.T)
        distance = np.sum(left**2, axis=1) / self.noise + np.sum(found.mean**2, axis=1)
        determinant = found.log_determinant + (m - q) * np.log(self.noise)
        return np.asarray(-0.5 * (m * np.log(2.0 * np.pi) + determinant + distance))

    def blocks(self, n: int) -> list[slice]:
        """Return n rows in parts of which each may have its own M."""
        return slices(n, max(1, _NUMBERS // (self.loadings.shape[1] + 1) ** 2))

    def _by_blocks(self, X: np.ndarray, what: Any) -> np.ndarray:
        return np.concatenate([what(self.posterior(X[rows])) for rows in self.blocks(len(X))])
