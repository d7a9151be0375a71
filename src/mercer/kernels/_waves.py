"""Fast simultaneous cosine and sine, where random Fourier features spend most of their time.

    C  <-  a cos(P),     S  <-  a sin(P)

For float64, NumPy calls the C library for each entry, once for the cosine and once for the sine.
Here both use the same argument reduction: with k = round(2 p / pi), r = p - k pi / 2 satisfies
|r| <= pi / 4.  Polynomials approximate sin r and cos r.  The last two bits of k determine which of
them is the cosine of p, and the signs.  LLVM compiles the loop to vector instructions.

pi / 2 is subtracted in three parts.  The first two have 33 bits, so that their products with k are
exact for |k| < 2**20 (Cody and Waite).  The polynomials are those of fdlibm's __kernel_sin and
__kernel_cos, whose error is less than one unit in the last place.  NumPy is used for larger phases,
which have few correct digits anyway, and for float32, for which NumPy has vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit, word

__all__ = ["waves"]

_MAX_PHASE = 1e6  # |k| < 2**20 holds for phases up to this size
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds to an integer


@jit()
def _scaled_sincos64(P: Any, a: Any, C: Any, S: Any) -> None:
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
            quadrant = word(z)
            is_odd = (quadrant & 1) != 0
            first = sine if is_odd else cosine
            second = cosine if is_odd else sine
            cosines[j] = a[j] * (-first if ((quadrant + 1) & 2) != 0 else first)
            sines[j] = a[j] * (-second if (quadrant & 2) != 0 else second)


def waves(P: np.ndarray, a: np.ndarray, out: np.ndarray) -> None:
    """Set out <- [a cos(P), a sin(P)], all cosines before all sines.

    P has shape (n, m), the amplitudes `a` have shape (m,), and `out` has shape (n, 2 m).
    """
    m = P.shape[1]
    cosines, sines = out[:, :m], out[:, m:]
    largest = max(P.max(initial=0.0), -P.min(initial=0.0))
    if P.dtype == out.dtype == np.float64 and largest <= _MAX_PHASE:  # False if P contains nan
        _scaled_sincos64(P, a, cosines, sines)
        return
    np.cos(P, out=cosines)
    np.sin(P, out=sines)
    cosines *= a.astype(out.dtype, copy=False)
    sines *= a.astype(out.dtype, copy=False)
