"""Counterexamples for stationary functions, from negative values of their spectrum.

By Bochner's theorem, a function of x - z is a Mercer kernel if and only if its Fourier transform is
non-negative.  For the points x_j = h j of a lattice, j in {0 ... m-1}^d, and f(l) = k(h l, 0),

    c^* K c  =  sum_l  prod_a (m - |l_a|)  f(l) e^(i w l),      c_j = e^(i w j).

One FFT therefore gives c^* K c for all frequencies w.  A frequency for which it is negative gives a
counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._base import Kernel

__all__ = ["is_stationary", "points_of_negative_spectrum"]

_LATTICE_SIDES = {1: 256, 2: 20, 3: 8}  # number of lattice points along each axis, by dimension d
_LATTICE_STEPS = (0.2, 0.05, 1.0, 0.01, 5.0)  # lattice spacings h, in the order they are tried
# For d = 1, number of points that sample a wave whose frequency has a negative spectral value.
_WAVE_POINTS = 16


def is_stationary(kernel: Kernel, d: int) -> bool:
    """Return True if k is known to depend only on x - z, or seems to, on a few random points."""
    if kernel.properties.stationary:
        return True
    X = np.random.default_rng(0).normal(size=(5, d))
    K, translated = kernel(X), kernel(X + 0.77)
    return bool(np.allclose(K, translated, rtol=1e-9, atol=1e-9 * np.abs(K).max()))


def points_of_negative_spectrum(kernel: Kernel, d: int) -> Iterator[np.ndarray]:
    """Yield lattices that sample the frequency at which the spectrum of k is most negative.

    Nothing is yielded if no negative value of the spectrum is found.
    """
    if d not in _LATTICE_SIDES:
        return
    m = _LATTICE_SIDES[d]
    lags = np.stack(np.meshgrid(*[np.arange(-m, m)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.prod(m - np.abs(lags), axis=1)
    origin = int(np.flatnonzero(~lags.any(axis=1))[0])
    for step in _LATTICE_STEPS:
        with np.errstate(all="ignore"):
            f = np.array(kernel(np.zeros((1, d)), lags * step), dtype=float)[0]
            f[origin] = kernel.diag(np.zeros((1, d)))[0]
        if not np.isfinite(f).all():
            continue
        terms = np.fft.ifftshift((f * weights).reshape([2 * m] * d))
        values = np.fft.fftn(terms).real
        if values.min() >= -1e-9 * np.abs(terms).sum():
            continue
        index = np.unravel_index(int(np.argmin(values)), values.shape)
        w = np.abs([np.fft.fftfreq(2 * m)[i] for i in index]) * 2.0 * np.pi / step
        half_wave = np.pi / float(np.sqrt(w @ w) or np.pi / (m * step))
        for h in (half_wave, half_wave / 2.0, half_wave / 3.0):
            yield _lattice(_WAVE_POINTS if d == 1 else 5 if d == 2 else 3, d) * h
        yield _lattice(min(m, 128 if d == 1 else 12 if d == 2 else 5), d) * step


def _lattice(side: int, d: int) -> np.ndarray:
    """Return the integer points {0, ..., side - 1}^d, shape (side^d, d)."""
    return np.stack(np.meshgrid(*[np.arange(float(side))] * d), axis=-1).reshape(-1, d)
