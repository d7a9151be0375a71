"""Fast vectorised exp, cos and sin, on which kernels spend much of their time.

The exponential is computed in place:

    T  <-  exp(min(scale * T, 0))

NumPy has a vectorised float64 exp only on processors with AVX-512; on others it calls the C library
for each entry.  A polynomial written with additions, multiplications and integer shifts is compiled
to vector instructions by LLVM on every processor, and is several times faster than those calls.

With t = scale * T / log 2, k = round(t) and r = t - k, |r| <= 1/2,

    exp(scale * T) = 2**k * p(r),

where p is the polynomial of degree 11 (6 in float32) that interpolates 2**r at Chebyshev points;
its error is below the rounding error.  It is evaluated by Estrin's scheme, so that the processor
can compute several terms in parallel.  Adding 1.5 * 2**52 to t rounds it to k and leaves k in the
low bits of the sum, which are then shifted into the exponent of the result.

The error of the result is a few units in the last place, plus a relative error of |t| eps from the
rounding of t, which is not larger than the effect of rounding T.  Arguments are capped at 0,
because a positive exponent comes from a squared distance that is negative by rounding.  Results
below the smallest normal number are 0; NaN stays NaN.
"""

from __future__ import annotations

import numpy as np

from ..._core import bitcast_float, bitcast_int, fmax, fmin, jit

_LOG2E = 1.4426950408889634
_ROUND64 = 6755399441055744.0  # 1.5 * 2**52: adding it rounds a float64 to an integer
_ROUND32 = np.float32(12582912.0)  # 1.5 * 2**23: adding it rounds a float32 to an integer


@jit()
def _exp64(T: np.ndarray, scale: float) -> None:
    """Implement `exp_inplace` in float64."""
    scale = scale * _LOG2E
    for i in range(T.shape[0]):
        row = T[i]
        for j in range(row.shape[0]):
            t = scale * row[j]
            x = fmax(fmin(t, 0.0), -1022.0)
            z = x + _ROUND64
            r = x - (z - _ROUND64)
            r2 = r * r
            r4 = r2 * r2
            low = (1.0 + 0.6931471805599453 * r) + (
                0.24022650695910158 + 0.055504108664821625 * r
            ) * r2
            middle = (0.009618129107587256 + 0.001333355814640647 * r) + (
                0.00015403530463724353 + 1.5252733841556773e-05 * r
            ) * r2
            high = (1.3215432535912375e-06 + 1.0178057087733941e-07 * r) + (
                7.074194297288521e-09 + 4.4558179083360645e-10 * r
            ) * r2
            p = low + r4 * (middle + r4 * high)
            value = bitcast_float(bitcast_int(p) + (bitcast_int(z) << 52))
            row[j] = value if t >= -1022.0 else (0.0 if t < -1022.0 else t)  # NaN stays NaN


@jit()
def _exp32(T: np.ndarray, scale: np.float32) -> None:
    """Implement `exp_inplace` in float32."""
    scale = scale * np.float32(_LOG2E)
    zero, floor, one = np.float32(0.0), np.float32(-126.0), np.float32(1.0)
    c1, c2, c3 = np.float32(0.693147207), np.float32(0.240226509), np.float32(0.0555032723)
    c4, c5, c6 = np.float32(0.00961805668), np.float32(0.00134004282), np.float32(0.000154614447)
    for i in range(T.shape[0]):
        row = T[i]
        for j in range(row.shape[0]):
            t = scale * row[j]
            x = fmax(fmin(t, zero), floor)
            z = x + _ROUND32
            r = x - (z - _ROUND32)
            r2 = r * r
            p = (one + c1 * r) + r2 * ((c2 + c3 * r) + r2 * ((c4 + c5 * r) + r2 * c6))
            value = bitcast_float(np.int32(bitcast_int(p) + (bitcast_int(z) << 23)))
            row[j] = value if t >= floor else (zero if t < floor else t)


@_exp64.without_numba
@_exp32.without_numba
def _exp_numpy(T: np.ndarray, scale: float) -> None:
    np.multiply(T, scale, out=T)
    np.minimum(T, 0.0, out=T)
    np.exp(T, out=T)
    T[np.finfo(T.dtype).tiny > T] = 0.0


def exp_inplace(T: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Overwrite the 2-D array T with exp(min(scale * T, 0)) and return it.

    Parameters
    ----------
    T : ndarray of shape (n, m), float64 or float32
    scale : float, default=1.0

    Returns
    -------
    ndarray
        The array T itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import exp_inplace
    >>> exp_inplace(np.array([[0.0, -1.0]]), 2.0).round(4)
    array([[1.    , 0.1353]])
    """
    if T.dtype == np.float64:
        _exp64(T, float(scale))
    else:
        _exp32(T, np.float32(scale))
    return T


# --- Fast simultaneous cosine and sine, the most expensive part of random Fourier features.


_MAX_PHASE = 1e6  # largest phase; its number of quarter turns is below 2**20


@jit()
def _scaled_sincos64(P: np.ndarray, a: np.ndarray, C: np.ndarray, S: np.ndarray) -> None:
    for i in range(P.shape[0]):
        row, cosines, sines = P[i], C[i], S[i]
        for j in range(row.shape[0]):
            p = row[j]
            z = p * 0.6366197723675814 + _ROUND64
            k = z - _ROUND64
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
            quadrant = bitcast_int(z)
            is_odd = (quadrant & 1) != 0
            first = sine if is_odd else cosine
            second = cosine if is_odd else sine
            cosines[j] = a[j] * (-first if ((quadrant + 1) & 2) != 0 else first)
            sines[j] = a[j] * (-second if (quadrant & 2) != 0 else second)


@_scaled_sincos64.without_numba
def _scaled_sincos_numpy(P: np.ndarray, a: np.ndarray, C: np.ndarray, S: np.ndarray) -> None:
    np.multiply(np.cos(P), a, out=C)
    np.multiply(np.sin(P), a, out=S)


def scaled_sincos(P: np.ndarray, a: np.ndarray, out: np.ndarray) -> None:
    """Write [a cos(P), a sin(P)] to `out`, with all cosines before all sines.

    P has shape (n, m), the amplitudes `a` have shape (m,), and `out` has shape (n, 2 m).
    """
    m = P.shape[1]
    cosines, sines = out[:, :m], out[:, m:]
    largest = max(P.max(initial=0.0), -P.min(initial=0.0))
    # The second condition is False if P contains NaN.
    if P.dtype == out.dtype == np.float64 and largest <= _MAX_PHASE:
        _scaled_sincos64(P, a, cosines, sines)
        return
    np.cos(P, out=cosines)
    np.sin(P, out=sines)
    cosines *= a.astype(out.dtype, copy=False)
    sines *= a.astype(out.dtype, copy=False)
