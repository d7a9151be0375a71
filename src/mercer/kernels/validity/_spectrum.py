"""The spectrum of a function of x - z (Bochner): where it is negative, k is no kernel.

For the points x_j = h j of a lattice, j in {0 ... m-1}^d, and f(l) = k(h l, 0),

    c^* K c  =  sum_l  prod_a (m - |l_a|)  f(l) e^(i w l),      c_j = e^(i w j),

so that one FFT of f gives the values of as many witnesses as it has frequencies w.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._base import Kernel

__all__ = ["is_stationary", "negative_waves"]

_SIDES = {1: 256, 2: 20, 3: 8}  # points of the lattice along each of d axes
_STEPS = (0.2, 0.05, 1.0, 0.01, 5.0)
_FEW = 16  # points of a wave on the line


def is_stationary(kernel: Kernel, d: int) -> bool:
    """Tell whether k(x, z) looks like a function of x - z."""
    if kernel.claims.stationary:
        return True
    X = np.random.default_rng(0).normal(size=(5, d))
    here, there = kernel(X), kernel(X + 0.77)
    return bool(np.allclose(here, there, rtol=1e-9, atol=1e-9 * np.abs(here).max()))


def negative_waves(kernel: Kernel, d: int) -> Iterator[np.ndarray]:
    """Yield points on which a wave of a negative frequency can be seen."""
    if d not in _SIDES:
        return
    m = _SIDES[d]
    lags = np.stack(np.meshgrid(*[np.arange(-m, m)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.prod(m - np.abs(lags), axis=1)
    origin = int(np.flatnonzero(~lags.any(axis=1))[0])
    for step in _STEPS:
        with np.errstate(all="ignore"):
            f = np.array(kernel(np.zeros((1, d)), lags * step), dtype=float)[0]
            f[origin] = kernel.diag(np.zeros((1, d)))[0]
        if not np.isfinite(f).all():
            continue
        terms = np.fft.ifftshift((f * weights).reshape([2 * m] * d))
        values = np.fft.fftn(terms).real
        if values.min() >= -1e-9 * np.abs(terms).sum():
            continue
        place = np.unravel_index(int(np.argmin(values)), values.shape)
        w = np.abs([np.fft.fftfreq(2 * m)[p] for p in place]) * 2.0 * np.pi / step
        length = np.pi / float(np.sqrt(w @ w) or np.pi / (m * step))  # half a wave
        for h in (length, length / 2.0, length / 3.0):
            yield _lattice(_FEW if d == 1 else 5 if d == 2 else 3, d) * h
        yield _lattice(min(m, 128 if d == 1 else 12 if d == 2 else 5), d) * step


def _lattice(side: int, d: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(float(side))] * d), axis=-1).reshape(-1, d)
