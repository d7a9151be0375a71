"""exp in place: the one transcendental function that kernel matrices spend their time in.

    T  <-  exp(min(scale * T, 0))

NumPy has a vectorised float64 exp only where AVX-512 is; elsewhere it calls the C library once
per entry.  A polynomial written with additions, multiplications and integer shifts is turned
into vector instructions by LLVM on every machine, and is several times faster there.

With k = round(x / log 2) and r = x - k log 2, |r| <= log(2)/2,

    exp(x) = 2**k * p(r),

p the Taylor polynomial of degree 13 (6 in float32), whose truncation error is below the last
bit.  The shift by 1.5 * 2**52 rounds to nearest and leaves k in the low bits, where it is moved
into the exponent.  Arguments are capped at 0, because a squared distance that rounding made
negative stands for 0.  Results below the smallest normal number are 0; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["exp_inplace"]

_LOG2E = 1.4426950408889634
# log 2 in two parts: k * high is exact for the k that occur, low carries the rest.
_HIGH64, _LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_HIGH32, _LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND64 = 6755399441055744.0  # 1.5 * 2**52
_ROUND32 = np.float32(12582912.0)  # 1.5 * 2**23


@numba.njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _exp64(T: Any, scale: float) -> None:
    for i in range(T.shape[0]):
        row = T[i]
        for j in range(row.shape[0]):
            t = scale * row[j]
            x = max(min(t, 0.0), -708.0)
            z = x * _LOG2E + _ROUND64
            k = z - _ROUND64
            r = (x - k * _HIGH64) - k * _LOW64
            p = 1.6059043836821613e-10
            p = p * r + 2.08767569878681e-09
            p = p * r + 2.505210838544172e-08
            p = p * r + 2.755731922398589e-07
            p = p * r + 2.7557319223985893e-06
            p = p * r + 2.48015873015873e-05
            p = p * r + 0.0001984126984126984
            p = p * r + 0.001388888888888889
            p = p * r + 0.008333333333333333
            p = p * r + 0.041666666666666664
            p = p * r + 0.16666666666666666
            p = p * r + 0.5
            p = p * r + 1.0
            p = p * r + 1.0
            shifted = np.float64(z).view(np.int64) << 52
            value = np.int64(np.float64(p).view(np.int64) + shifted).view(np.float64)
            row[j] = value if t >= -708.0 else (0.0 if t < -708.0 else t)  # t: not a number


@numba.njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
def _exp32(T: Any, scale: Any) -> None:
    one, half = np.float32(1.0), np.float32(0.5)
    zero, floor = np.float32(0.0), np.float32(-87.0)
    log2e = np.float32(_LOG2E)
    c3, c4 = np.float32(1.0 / 6.0), np.float32(1.0 / 24.0)
    c5, c6 = np.float32(1.0 / 120.0), np.float32(1.0 / 720.0)
    for i in range(T.shape[0]):
        row = T[i]
        for j in range(row.shape[0]):
            t = scale * row[j]
            x = max(min(t, zero), floor)
            z = x * log2e + _ROUND32
            k = z - _ROUND32
            r = (x - k * _HIGH32) - k * _LOW32
            p = c6
            p = p * r + c5
            p = p * r + c4
            p = p * r + c3
            p = p * r + half
            p = p * r + one
            p = p * r + one
            shifted = np.int32(np.float32(z).view(np.int32) << 23)
            value = np.int32(np.float32(p).view(np.int32) + shifted).view(np.float32)
            row[j] = value if t >= floor else (zero if t < floor else t)


def exp_inplace(T: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Overwrite the 2-D array T with exp(min(scale * T, 0)) and return it."""
    if T.dtype == np.float64:
        _exp64(T, float(scale))
    else:
        _exp32(T, np.float32(scale))
    return T
