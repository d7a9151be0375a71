"""Features of the additive chi-squared kernel, sum_c 2 x_c z_c / (x_c + z_c), by sampling.

    2 x z / (x + z) = sqrt(x z) sech((u - v) / 2),   u = log x,  v = log z

is sqrt(x z) times the integral of sech(pi w) exp(i w (u - v)).  Its sum over w = 0, L, -L, 2 L, ...
has the features, for each column and j = 1, 2, ...

    sqrt(L x),   sqrt(2 L x sech(pi j L)) cos(j L u),   sqrt(2 L x sech(pi j L)) sin(j L u)

(Vedaldi and Zisserman, TPAMI 2012).  All are 0 at x = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._runtime import ENTRY_WORK, run, slices
from ._waves import waves

__all__ = ["additive_chi2_features"]

_ROWS = 1024  # points worked on at a time


def additive_chi2_features(X: Any, steps: int, interval: float) -> Any:
    """Return the features of X, n columns for w = 0, then a cosine and a sine for each j < steps.

    X is not negative, dense or CSR; the features of sparse points are sparse.

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
        own = [sp.csr_array((part, X.indices, X.indptr), shape=X.shape) for part in parts]
        return sp.hstack(own, format="csr")
    n, d = X.shape
    out = np.empty((n, (2 * steps - 1) * d), dtype=X.dtype)

    def strip(rows: slice) -> None:
        for j, part in enumerate(_parts(X[rows].ravel(), steps, interval)):
            out[rows, j * d : (j + 1) * d] = part.reshape(-1, d)

    run(strip, slices(n, _ROWS), work=ENTRY_WORK * out.size)
    return out


def _parts(x: np.ndarray, steps: int, interval: float) -> list[np.ndarray]:
    """Return the features of numbers, one array for each."""
    positive = x > 0
    roots = np.sqrt(x)
    parts = [np.sqrt(interval).astype(x.dtype) * roots]
    if steps == 1:
        return parts
    phases = interval * np.log(np.where(positive, x, 1))
    pair = np.empty((len(x), 2), dtype=x.dtype)
    waves(phases.astype(x.dtype, copy=False)[:, None], np.ones(1), pair)
    c, s = (roots * part for part in pair.T)
    one, turn = (c, s), pair.T
    for j in range(1, steps):
        size = np.sqrt(2.0 * interval / np.cosh(np.pi * j * interval)).astype(x.dtype)
        parts += [size * one[0], size * one[1]]
        # cos and sin of the next multiple, by the angle's own
        one = (one[0] * turn[0] - one[1] * turn[1], one[1] * turn[0] + one[0] * turn[1])
    return parts
