"""Cosines and sines together: what random Fourier features spend their time in.

    C  <-  a cos(P),     S  <-  a sin(P)

NumPy calls the C library for each float64 entry, twice.  Here one reduction serves both: with
k = round(2 p / pi) and r = p - k pi / 2, |r| <= pi / 4, polynomials give sin r and cos r, and the
last two bits of k say which is which, and their signs.  LLVM makes vector instructions of it.

pi / 2 is subtracted in three parts, the first two of 33 bits, so that their products with k are
exact for |k| < 2**20 (Cody and Waite); the polynomials are those of fdlibm's __kernel_sin and
__kernel_cos, off by less than a unit in the last place.  Larger phases, whose digits are few, and
float32, for which NumPy has vector instructions, are left to NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit, word

__all__ = ["waves"]

_LARGEST = 1e6  # phases up to here have |k| < 2**20
_ROUND = 6755399441055744.0  # 1.5 * 2**52


@jit()
def _waves64(P: Any, a: Any, C: Any, S: Any) -> None:
    for i in range(P.shape[0]):
        row, cosines, sines = P[i], C[i], S[i]
        for j in range(row.shape[0]):
            p = row[j]
            z = p * 0.6366197723675814 + _ROUND
            k = z - _ROUND
            r = (p - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11
            r = r - k * 2.02226624879595063154e-21
            t = r * r
            u = t * t
            sine = (8.33333333332248946124e-03 + t * -1.98412698298579493134e-04) + u * (
                (2.75573137070700676789e-06 + t * -2.50507602534068634195e-08)
                + u * 1.58969099521155010221e-10
            )
            sine = r + r * t * (-1.66666666666666324348e-01 + t * sine)
            cosine = (4.16666666666666019037e-02 + t * -1.38888888888741095749e-03) + u * (
                (2.48015872894767294178e-05 + t * -2.75573143513906633035e-07)
                + u * (2.08757232129817482790e-09 + t * -1.13596475577881948265e-11)
            )
            cosine = 1.0 - 0.5 * t + u * cosine
            turns = word(z)
            odd = (turns & 1) != 0
            first = sine if odd else cosine
            second = cosine if odd else sine
            cosines[j] = a[j] * (-first if ((turns + 1) & 2) != 0 else first)
            sines[j] = a[j] * (-second if (turns & 2) != 0 else second)


def waves(P: np.ndarray, a: np.ndarray, out: np.ndarray) -> None:
    """Set out <- [a cos(P), a sin(P)], all cosines before all sines; P is (n, m), out (n, 2 m)."""
    m = P.shape[1]
    cosines, sines = out[:, :m], out[:, m:]
    largest = max(P.max(initial=0.0), -P.min(initial=0.0))
    if P.dtype == out.dtype == np.float64 and largest <= _LARGEST:  # no for what is not a number
        _waves64(P, a, cosines, sines)
        return
    np.cos(P, out=cosines)
    np.sin(P, out=sines)
    cosines *= a.astype(out.dtype, copy=False)
    sines *= a.astype(out.dtype, copy=False)
