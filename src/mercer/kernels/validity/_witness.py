"""Witnesses: a few points and coefficients with c^T K c < 0, certain in spite of rounding.

    c^T K c  <  -(n^2 + 10^5) u max|K| |c|_1^2

The sum itself has an error below n^2 u max|K| |c|_1^2, and 10^5 u is allowed for the values of K.
For kernels of mercer u is the unit of float64, and larger for values computed in float32.

A function of the user may compute in lower precision, or integrate with a tolerance.  Its values
are taken to have a relative error of 10^-8, unless `tol` is given, and 10^5 u is that error.  Ten
times the noise that is seen is added: how much K changes if it is evaluated again, if the points
are moved by their own rounding, and how far second differences of K along small steps are from
those of a smooth function (`noise_along_steps`), which reveals values in float32 or float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._points import length, take
from ..._runtime.linalg import eigh
from .._base import Kernel
from .._callable import Callable, point

__all__ = [
    "ALLOWANCE",
    "Witness",
    "certify",
    "complement",
    "lowest",
    "margin",
    "matrix",
    "noise_along_steps",
    "shrink",
    "unit_of",
    "witness_at",
]

ALLOWANCE = 1e5  # units of rounding that a value of k may be off by
_DOUBLE = 2.0**-53
_SINGLE = 2.0**-31  # so that the allowance is 800 units of float32
_HALF = 2.0**-18  # the same for float16
_FUNCTION_ERROR = 1e-8  # assumed relative error of a function's values, as of SciPy's quad
_STEPS = (-26, -22, -18, -14, -10, -6, -2)  # powers of 2: relative steps along which noise is seen
_STEPPED = 8  # points of which second differences are taken
_QUANTILE = 0.9  # of second differences: a kink at a few pairs is not noise
_DROP = 24  # points from which on they are dropped one by one


@dataclass(frozen=True, eq=False)
class Witness:
    """Points and coefficients that show that k is not positive semidefinite.

    Attributes
    ----------
    kernel : Kernel
    points : points
    coefficients : ndarray or None
        c; None if no sum was needed, because k is not symmetric, say.
    value : float
        c^T K c < 0.
    margin : float
        By how much rounding may have changed the value; it is below -margin.
    order : int
        c is orthogonal to the polynomials of degree below this.
    reason : str
        What was seen, in a line.
    noise : float
        The error of the values of k that is taken into account, relative to the largest of them.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> found = Sigmoid().validity().witness
    >>> found.value < -found.margin
    True
    """

    kernel: Kernel
    points: Any
    coefficients: np.ndarray | None
    value: float
    margin: float
    order: int = 0
    reason: str = ""
    noise: float = 0.0

    def __len__(self) -> int:
        return length(self.points)

    def __call__(self, X: Any) -> np.ndarray:
        """Return sum_i c_i k(x_i, x), which no function of a Hilbert space of kernels is."""
        if self.coefficients is None:
            raise ValueError(f"this witness has no coefficients: {self.reason}")
        return np.asarray(self.kernel(X, self.points) @ self.coefficients)

    def __str__(self) -> str:
        lines = [self.reason]
        c = [None] * len(self) if self.coefficients is None else self.coefficients
        for i, weight in enumerate(c):
            front = "" if weight is None else f"c = {weight:9.4g}   "
            lines.append(f"  {front}x = {_shown(point(self.points, i))}")
        return "\n".join(lines)


def _shown(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return np.array2string(x, precision=4, threshold=8, suppress_small=True)
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------------- numbers


def matrix(kernel: Kernel, X: Any) -> np.ndarray:
    """Return k(X) in double precision, its two halves averaged."""
    with np.errstate(all="ignore"):
        K = np.asarray(kernel(X))
    if K.dtype == np.float64 and np.array_equal(K, K.T):
        return K
    return 0.5 * (K.astype(float) + K.T)


def unit_of(kernel: Kernel, tol: float | None = None) -> float:
    """Return the unit u of rounding of the values of a kernel, or of a function with an error."""
    if tol is None:
        tol = 0.0 if kernel.claims.order is not None else _FUNCTION_ERROR
    return max(_DOUBLE, tol / ALLOWANCE)


def margin(K: np.ndarray, c: np.ndarray, unit: float = _DOUBLE) -> float:
    """Return what rounding may change c^T K c by."""
    size = np.abs(K).max(initial=0.0) * np.abs(c).sum() ** 2
    return float((len(c) ** 2 + ALLOWANCE) * unit * size)


def complement(X: Any, order: int) -> np.ndarray | None:
    """Return a basis of the c orthogonal to polynomials of degree < order; None for all c."""
    if order == 0:
        return None
    powers = np.ones((length(X), 1))
    if order > 1:
        Y = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        Y = (Y - Y.mean(axis=0)) / (np.abs(Y - Y.mean(axis=0)).max(initial=0.0) or 1.0)
        for _ in range(order - 1):
            powers = np.hstack([powers, (powers[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)])
    U, s, _ = np.linalg.svd(powers, full_matrices=True)
    return U[:, int(np.sum(s > 1e-10 * s[0])) :]


def lowest(
    K: np.ndarray, basis: np.ndarray | None = None, unit: float = _DOUBLE
) -> tuple[float, np.ndarray]:
    """Return the c in the span of a basis for which c^T K c is clearest below 0, and how clear.

    That is c^T K c in units of what rounding may do to it: below -1 is certain.  c is an
    eigenvector of K, or of K scaled to k(x, x) = 1, which sees points of small k(x, x) as well.
    """
    if basis is not None and not basis.shape[1]:
        return np.inf, np.zeros(len(K))
    diagonal = K.diagonal()
    scales = [np.ones(len(K))]
    if basis is None and diagonal.min() > 0 and diagonal.max() > 2.0 * diagonal.min():
        scales.append(1.0 / np.sqrt(diagonal))
    best = (np.inf, scales[0])
    for scale in scales:
        scaled = K * np.outer(scale, scale) if basis is None else basis.T @ K @ basis
        _, vectors = eigh(scaled, subset_by_index=(0, 0), check_finite=False)
        c = scale * vectors[:, 0] if basis is None else basis @ vectors[:, 0]
        allowed = margin(K, c, unit)
        depth = float(c @ K @ c) / allowed if allowed > 0 else 0.0
        best = min(best, (depth, c), key=lambda pair: pair[0])
    return best


def shrink(K: np.ndarray, X: Any, order: int, least: int = 1, unit: float = _DOUBLE) -> np.ndarray:
    """Return the places of few points that are still a witness, dropped one by one.

    Down to `least` points if that is given, whether they are a witness or not.
    """
    keep = np.arange(len(K))
    while len(keep) > _DROP:  # those of little weight, many at a time
        _, c = lowest(K[np.ix_(keep, keep)], complement(take(X, keep), order), unit)
        size = max(_DROP, int(0.8 * len(keep)))
        rest = keep[np.sort(np.argsort(-np.abs(c), kind="stable")[:size])]
        part = K[np.ix_(rest, rest)]
        if least == 1 and lowest(part, complement(take(X, rest), order), unit)[0] > -10.0:
            return keep
        keep = rest
    while len(keep) > least:
        rests = [np.delete(keep, i) for i in range(len(keep))]
        depths = [
            lowest(K[np.ix_(rest, rest)], complement(take(X, rest), order), unit)[0]
            for rest in rests
        ]
        best = int(np.argmin(depths))
        if least == 1 and depths[best] > -10.0:
            break
        keep = rests[best]
    return keep


# ---------------------------------------------------------------------- certificates


def certify(kernel: Kernel, X: Any, order: int = 0, tol: float | None = None) -> Witness | None:
    """Return the witness on all of these points, None if rounding might explain it."""
    n = length(X)
    K = matrix(kernel, X)
    if not np.isfinite(K).all():
        return None
    reverse = np.arange(n)[::-1]
    again = matrix(kernel, take(X, reverse))[np.ix_(reverse, reverse)]
    size = np.abs(K).max(initial=0.0)
    if not (np.isfinite(again).all() and size > 0):
        return None
    unit, noise = unit_of(kernel, tol), float(np.abs(K - again).max())
    if kernel(X).dtype == np.float32:
        unit = max(unit, _SINGLE)
    if kernel.claims.order is None:
        unit = max(unit, _unit_of_values(kernel, X))
        noise = max([noise, *(float(np.abs(K - moved).max()) for moved in _nudged(kernel, X))])
    basis = complement(X, order)
    _, c = lowest(K, basis, unit)
    c = c / np.abs(c).max()
    if c[np.argmax(np.abs(c))] < 0:
        c = -c
    value, allowed = float(c @ K @ c), margin(K, c, unit)
    if kernel.claims.order is None and value < -allowed - 10.0 * noise * np.abs(c).sum() ** 2:
        noise = max(noise, noise_along_steps(kernel, X))  # costs some evaluations: at the end
    allowed += 10.0 * noise * np.abs(c).sum() ** 2
    if basis is not None:  # c is orthogonal to polynomials but for rounding
        allowed += 2.0 * size * np.abs(c).sum() * n * 1e-13 * np.abs(c).max()
    allowed = float(allowed)
    if not value < -allowed:
        return None
    error = float(ALLOWANCE * unit + 10.0 * noise / size)
    reason = _reason(K, value, allowed, order)
    if kernel.claims.order is None:
        reason += f", for values with a relative error of {error:.1g}"
    return Witness(kernel, X, c, value, allowed, order, reason, error)


def _nudged(kernel: Kernel, X: Any) -> Iterator[np.ndarray]:
    """Yield K of points whose coordinates are rounded otherwise: moved by up to two units."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or kernel.discrete:
        return
    rng = np.random.default_rng(0)
    for _ in range(4):
        moved = X + np.spacing(X) * rng.integers(-2, 3, X.shape)
        try:
            K = matrix(kernel, moved)
        except Exception:  # a point has left the domain
            continue
        if np.isfinite(K).all():
            yield K


def noise_along_steps(kernel: Kernel, X: Any) -> float:
    """Return the size of the noise in values of k, 0 if none is seen.

    Second differences k(x + h) - 2 k(x) + k(x - h) of a smooth function fall with h^2.  Those of
    values that were rounded stay as large as the rounding.
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or kernel.discrete:
        return 0.0
    if not len(X):
        return 0.0
    X = X[np.unique(np.linspace(0, len(X) - 1, _STEPPED).astype(int))]
    rng = np.random.default_rng(0)
    sizes = np.maximum(np.abs(X), 0.1 * np.abs(X).max())
    # Pairs that share a coordinate are left out: there may be a kink, or codes are compared.
    apart = (X[:, None] != X[None]).all(axis=2) | np.eye(len(X), dtype=bool)
    upper, here = np.triu(apart), matrix(kernel, X)
    direction = sizes * rng.uniform(0.5, 1.0, X.shape) * rng.choice([-1.0, 1.0], X.shape)
    changes: list[np.ndarray] = []
    for power in _STEPS:
        step = 2.0**power * direction
        try:
            change = matrix(kernel, X + step) - 2.0 * here + matrix(kernel, X - step)
        except Exception:  # a point has left the domain
            break
        # Pairs that have left the domain are compared at no step.
        upper &= np.isfinite(change)
        changes.append(np.abs(change))
    if not upper.any() or len(changes) < 2:
        return 0.0
    found = np.array([np.quantile(change[upper], _QUANTILE) for change in changes])
    excess = found[:-1] - found[1:] / 64.0  # a smooth part would be 1 / 256
    return float(max(excess.max(), 0.0))


def _unit_of_values(kernel: Kernel, X: Any) -> float:
    """Return the unit of float32 or float16 if a function in the kernel returns only such values.

    Values such as halves are exact in every precision, and integers are.
    """
    heard: list[list[np.ndarray]] = []
    matrix(_listening(kernel, heard), X)
    unit = _DOUBLE
    for values in (np.concatenate(values) for values in heard if values):
        if _representable(values, np.float16):
            fine = values[np.mod(64.0 * values, 1.0) != 0.0]  # and not k / 2^m for a small m
            unit = max(unit, _HALF if 2 * len(fine) > len(values) else _DOUBLE)
        elif _representable(values, np.float32):
            unit = max(unit, _SINGLE)
    return unit


def _listening(kernel: Kernel, heard: list[list[np.ndarray]]) -> Kernel:
    """Return the kernel, whose functions write down what they return, in a list for each."""
    if not isinstance(kernel, Callable):
        inside = {path: _listening(child, heard) for path, child in kernel._children()}
        return kernel._with(inside) if inside else kernel
    function, values = kernel.function, list[np.ndarray]()
    heard.append(values)

    def listening(x: Any, z: Any, **params: Any) -> Any:
        value = function(x, z, **params)
        numbers = value.toarray() if hasattr(value, "toarray") else value
        values.append(np.ravel(np.asarray(numbers, dtype=float)))
        return value

    return replace(kernel, function=listening)


def _representable(K: np.ndarray, dtype: Any) -> bool:
    with np.errstate(over="ignore"):
        return np.array_equal(K, K.astype(dtype))


def _reason(K: np.ndarray, value: float, allowed: float, order: int) -> str:
    end = f"rounding accounts for less than {allowed:.2g}"
    if len(K) == 1:
        return f"k(x, x) = {K[0, 0]:.6g} < 0; {end}"
    if len(K) == 2 and order == 0 and K[0, 1] ** 2 > K[0, 0] * K[1, 1] >= 0:
        return (
            f"k(x, z)^2 = {K[0, 1] ** 2:.6g} > k(x, x) k(z, z) = {K[0, 0] * K[1, 1]:.6g}, so that "
            f"c^T K c = {value:.6g} < 0; {end}"
        )
    where = "" if order == 0 else ", with sum c = 0" if order == 1 else f", of order {order}"
    return f"c^T K c = {value:.6g} < 0 on {len(K)} points{where}; {end}"


def witness_at(
    kernel: Kernel,
    X: Any,
    order: int = 0,
    K: np.ndarray | None = None,
    tol: float | None = None,
) -> Witness | None:
    """Return a witness on few of these points, if there is one; K is k(X), if it is known."""
    K = matrix(kernel, X) if K is None else K
    if not len(K) or not np.isfinite(K).all():
        return None
    for rows in _candidates(K, X, order, unit_of(kernel, tol)):
        if (found := certify(kernel, take(X, rows), order, tol)) is not None:
            return found
    return None


def _candidates(K: np.ndarray, X: Any, order: int, unit: float) -> Any:
    """Yield places of points at which to look: one, two, then few of all."""
    diagonal = K.diagonal()
    if order == 0:
        if diagonal.min() < 0:
            yield np.array([np.argmin(diagonal)])
        i, j = np.triu_indices(len(K), 1)
        if len(i):
            scale = np.maximum(diagonal[i] * diagonal[j], 0.0)
            excess = K[i, j] ** 2 - scale
            worst = int(np.argmax(excess / np.maximum(K[i, j] ** 2 + scale, 1e-300)))
            if excess[worst] > 0:
                yield np.array([i[worst], j[worst]])
    if lowest(K, complement(X, order), unit)[0] < -1.0:
        rows = shrink(K, X, order, unit=unit)
        yield rows
        if len(rows) < len(K):
            yield np.arange(len(K))
