"""Approximate features of the additive chi-squared kernel sum_c 2 x_c z_c / (x_c + z_c).

The term of one column is

    2 x z / (x + z) = sqrt(x z) sech((u - v) / 2),   u = log x,  v = log z,

which is sqrt(x z) times the integral of sech(pi w) exp(i w (u - v)) over all frequencies w.
Replacing the integral by a sum over the grid w = 0, L, -L, 2 L, ... gives the features

    sqrt(L x),   sqrt(2 L x sech(pi j L)) cos(j L u),   sqrt(2 L x sech(pi j L)) sin(j L u)

for j = 1, 2, ... (Vedaldi and Zisserman, TPAMI 2012).  They are 0 at x = 0, so that sparse
points have sparse features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import ENTRY_WORK, Points, run_in_threads, slices
from ..vectors._fast_math import scaled_sincos

_ROWS_PER_TASK = 1024  # points that a thread processes at a time, to limit temporary memory


def additive_chi2_features(X: Points, steps: int, interval: float) -> Any:
    """Return approximate features of the additive chi-squared kernel.

    Inner products of the features approximate sum_c 2 x_c z_c / (x_c + z_c).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Histograms, with entries >= 0.
    steps : int
        The number of frequencies 0, L, ..., (steps - 1) L, where L is `interval`.
    interval : float
        The distance L between the frequencies.

    Returns
    -------
    ndarray or CSR matrix of shape (n, (2 * steps - 1) * d)
        d columns for the frequency 0, then d cosines and d sines for each other frequency; sparse
        if X is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import additive_chi2_features
    >>> F = additive_chi2_features(np.array([[1.0], [3.0]]), steps=4, interval=0.4)
    >>> F.shape
    (2, 7)
    >>> bool(abs(F[0] @ F[1] - 2 * 1 * 3 / (1 + 3)) < 0.02)
    True
    """
    if sp.issparse(X):
        parts = _parts(X.data, steps, interval)
        blocks = [sp.csr_array((part, X.indices, X.indptr), shape=X.shape) for part in parts]
        return sp.hstack(blocks, format="csr")
    n, d = X.shape
    out = np.empty((n, (2 * steps - 1) * d), dtype=X.dtype)

    def fill(rows: slice) -> None:
        for j, part in enumerate(_parts(X[rows].ravel(), steps, interval)):
            out[rows, j * d : (j + 1) * d] = part.reshape(-1, d)

    run_in_threads(fill, slices(n, _ROWS_PER_TASK), work=ENTRY_WORK * out.size)
    return out


def _parts(x: np.ndarray, steps: int, interval: float) -> list[np.ndarray]:
    """Return the features of each number in the vector x, as a list of 2 * steps - 1 arrays."""
    positive = x > 0
    roots = np.sqrt(x)
    parts = [np.sqrt(interval).astype(x.dtype) * roots]
    if steps == 1:
        return parts
    phases = interval * np.log(np.where(positive, x, 1))
    pair = np.empty((len(x), 2), dtype=x.dtype)
    scaled_sincos(phases.astype(x.dtype, copy=False)[:, None], np.ones(1), pair)
    c, s = (roots * part for part in pair.T)
    wave, rotation = (c, s), pair.T
    for j in range(1, steps):
        weight = np.sqrt(2.0 * interval / np.cosh(np.pi * j * interval)).astype(x.dtype)
        parts += [weight * wave[0], weight * wave[1]]
        # Compute cos and sin of the next multiple of the phase by the angle addition formulas.
        wave = (
            wave[0] * rotation[0] - wave[1] * rotation[1],
            wave[1] * rotation[0] + wave[0] * rotation[1],
        )
    return parts
