"""Counterexamples: points and coefficients for which c^T K c is negative beyond rounding errors.

    c^T K c  <  -(n^2 + 10^5) u max|K| |c|_1^2

Here K is the n x n kernel matrix and u is the unit roundoff.  The error of the summation is below
n^2 u max|K| |c|_1^2, and a relative error of 10^5 u is allowed for the values of K.  For the
kernels of mercer, u is the unit roundoff of float64, or larger if values are computed in float32.

A user-supplied function may compute in lower precision, or by quadrature with a tolerance.  Its
values are assumed to have a relative error of 10^-8, or `tol` if it is set, and u is chosen so that
10^5 u is this error.  Ten times the measured noise of K is added to the allowed error of its
values.  The noise is the largest of three numbers: the change of K when it is evaluated again, its
change when the points are moved by their rounding error, and the deviation of second differences of
K from those of a smooth function (`estimate_noise`), which detects values that were computed in
float32 or float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..._core import NotebookResult, Points, length, take
from ..._core.linalg import eigh
from .._base import Kernel
from .._pairwise_kernels import Callable, get_point

ROUNDING_ALLOWANCE = 1e5  # allowed relative error of a value of k, in units of u
# The unit roundoff u that is assumed for values of k that are computed in these precisions.
_FLOAT64_UNIT = 2.0**-53
# With this u, the allowed error 1e5 u is about 800 times the unit roundoff of float32.
_FLOAT32_UNIT = 2.0**-31
# With this u, the allowed error 1e5 u is about 800 times the unit roundoff of float16.
_FLOAT16_UNIT = 2.0**-18


@dataclass(frozen=True)
class _CertificateTuning:
    """Constants for estimating the noise, and for reducing a counterexample to few points."""

    # Assumed relative error of a user-supplied function: about the default tolerance of SciPy's
    # `quad`.
    function_error: float = 1e-8
    # Base-2 logarithms of the relative step sizes of the second differences.
    step_exponents: tuple[int, ...] = (-26, -22, -18, -14, -10, -6, -2)
    noise_points: int = 8  # maximum number of points at which the noise is measured
    # Quantile of the second differences that measures the noise; those above it may be due to
    # kinks of k at a few pairs of points.
    noise_quantile: float = 0.9
    # If at most this many points are left, each step tries to remove every point and removes the
    # best one.  Before that, each step removes a fifth of the points, with small coefficients.
    max_one_by_one: int = 24


_TUNING = _CertificateTuning()


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample(NotebookResult):
    """Counterexample: points and coefficients that prove that k is not positive semidefinite.

    Calling it evaluates the function f = sum_i c_i k(x_i, .).

    Attributes
    ----------
    kernel : Kernel
        The kernel k that is not positive semidefinite.
    points : points
        The points x_i.
    coefficients : ndarray or None
        The coefficients c_i; None if they are not needed, for example because k is not symmetric.
    value : float
        The value c^T K c, which is negative.
    margin : float
        A bound on the rounding error of the value, which is below -margin.
    order : int
        The coefficients are orthogonal to all polynomials of degree less than `order`.
    reason : str
        A one-line description of the violation.
    noise : float
        The assumed error of the values of k, relative to the largest value.

    See Also
    --------
    mercer.validity : Searches for a counterexample.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> example = Sigmoid().validity().counterexample
    >>> example.value < -example.margin
    True
    """

    kernel: Kernel
    points: Points
    coefficients: np.ndarray | None
    value: float
    margin: float
    order: int = 0
    reason: str = ""
    noise: float = 0.0

    def __len__(self) -> int:
        return length(self.points)

    def __call__(self, X: Points) -> np.ndarray:
        """Return f(x) = sum_i c_i k(x_i, x) for each x in X.

        If k were a Mercer kernel, sum_i c_i f(x_i) = |f|^2 could not be negative.
        """
        if self.coefficients is None:
            raise ValueError(f"this counterexample has no coefficients: {self.reason}")
        return np.asarray(self.kernel(X, self.points) @ self.coefficients)

    def __str__(self) -> str:
        lines = [self.reason]
        c = [None] * len(self) if self.coefficients is None else self.coefficients
        for i, weight in enumerate(c):
            prefix = "" if weight is None else f"c = {weight:9.4g}   "
            lines.append(f"  {prefix}x = {_format_point(get_point(self.points, i))}")
        return "\n".join(lines)


def _format_point(x: Any) -> str:
    """Return a point as text of limited length."""
    if isinstance(x, np.ndarray):
        return np.array2string(x, precision=4, threshold=8, suppress_small=True)
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------------- numbers


def symmetric_gram(kernel: Kernel, X: Points) -> np.ndarray:
    """Return the symmetric part (K + K^T) / 2 of K = k(X), in float64."""
    with np.errstate(all="ignore"):
        K = np.asarray(kernel(X))
    if K.dtype == np.float64 and np.array_equal(K, K.T):
        return K
    symmetric: np.ndarray = 0.5 * (K.astype(float) + K.T)
    return symmetric


def rounding_unit(kernel: Kernel, tol: float | None = None) -> float:
    """Return the unit roundoff u that is assumed for the values of k.

    `tol` is the relative error of the values; None means 0 for the kernels of mercer and 1e-8 for
    user-supplied functions.
    """
    if tol is None:
        tol = 0.0 if kernel.properties.order is not None else _TUNING.function_error
    return max(_FLOAT64_UNIT, tol / ROUNDING_ALLOWANCE)


def rounding_margin(K: np.ndarray, c: np.ndarray, unit: float = _FLOAT64_UNIT) -> float:
    """Return a bound on the rounding error of c^T K c."""
    size = np.abs(K).max(initial=0.0) * np.abs(c).sum() ** 2
    return float((len(c) ** 2 + ROUNDING_ALLOWANCE) * unit * size)


def polynomial_complement(X: Points, order: int) -> np.ndarray | None:
    """Return a basis of the vectors that are orthogonal to the polynomials of degree < order on X.

    The result is None for order 0, because then all vectors are allowed.
    """
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


def most_negative_direction(
    K: np.ndarray, basis: np.ndarray | None = None, unit: float = _FLOAT64_UNIT
) -> tuple[float, np.ndarray]:
    """Return the smallest c^T K c relative to its rounding error, and the vector c.

    If it is below -1, c^T K c is negative beyond rounding.  c is the eigenvector of the smallest
    eigenvalue of K, restricted to the span of `basis` if it is given.  If k(x, x) varies, K scaled
    to k(x, x) = 1 is also tried, because the eigenvectors of K neglect points with small k(x, x).
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
        allowed = rounding_margin(K, c, unit)
        depth = float(c @ K @ c) / allowed if allowed > 0 else 0.0
        best = min(best, (depth, c), key=lambda pair: pair[0])
    return best


def reduce_points(
    K: np.ndarray, X: Points, order: int, min_points: int = 1, unit: float = _FLOAT64_UNIT
) -> np.ndarray:
    """Return the indices of a few points for which c^T K c is still clearly negative.

    Points are removed greedily.  If `min_points` is larger than 1, points are removed until only
    that number is left, even if they are no longer a counterexample.
    """

    def direction(rows: np.ndarray) -> tuple[float, np.ndarray]:
        basis = polynomial_complement(take(X, rows), order)
        return most_negative_direction(K[np.ix_(rows, rows)], basis, unit)

    keep = np.arange(len(K))
    limit = _TUNING.max_one_by_one
    while len(keep) > limit:  # remove the fifth of the points with the smallest |c_i|
        _, c = direction(keep)
        size = max(limit, int(0.8 * len(keep)))
        rest = keep[np.sort(np.argsort(-np.abs(c), kind="stable")[:size])]
        if min_points == 1 and direction(rest)[0] > -10.0:
            return keep
        keep = rest
    while len(keep) > min_points:
        candidates = [np.delete(keep, i) for i in range(len(keep))]
        depths = [direction(rest)[0] for rest in candidates]
        best = int(np.argmin(depths))
        if min_points == 1 and depths[best] > -10.0:
            break
        keep = candidates[best]
    return keep


# ---------------------------------------------------------------------- certificates


def certify_counterexample(
    kernel: Kernel, X: Points, order: int = 0, tol: float | None = None
) -> Counterexample | None:
    """Return a counterexample on all points of X, or None if c^T K c may be a rounding error."""
    n = length(X)
    K = symmetric_gram(kernel, X)
    if not np.isfinite(K).all():
        return None
    reverse = np.arange(n)[::-1]
    again = symmetric_gram(kernel, take(X, reverse))[np.ix_(reverse, reverse)]
    size = np.abs(K).max(initial=0.0)
    if not (np.isfinite(again).all() and size > 0):
        return None
    unit, noise = rounding_unit(kernel, tol), float(np.abs(K - again).max())
    if kernel(X).dtype == np.float32:
        unit = max(unit, _FLOAT32_UNIT)
    if kernel.properties.order is None:
        unit = max(unit, _unit_of_values(kernel, X))
        noise = max(
            [noise, *(float(np.abs(K - moved).max()) for moved in _perturbed_grams(kernel, X))]
        )
    basis = polynomial_complement(X, order)
    _, c = most_negative_direction(K, basis, unit)
    c = c / np.abs(c).max()
    if c[np.argmax(np.abs(c))] < 0:
        c = -c
    value, allowed = float(c @ K @ c), rounding_margin(K, c, unit)
    if kernel.properties.order is None and value < -allowed - 10.0 * noise * np.abs(c).sum() ** 2:
        # This estimate evaluates k often, so it is computed only if c^T K c is negative beyond the
        # errors considered so far.
        noise = max(noise, estimate_noise(kernel, X))
    allowed += 10.0 * noise * np.abs(c).sum() ** 2
    if basis is not None:  # c is orthogonal to the polynomials only up to rounding
        allowed += 2.0 * size * np.abs(c).sum() * n * 1e-13 * np.abs(c).max()
    allowed = float(allowed)
    if not value < -allowed:
        return None
    error = float(ROUNDING_ALLOWANCE * unit + 10.0 * noise / size)
    reason = _reason(K, value, allowed, order)
    if kernel.properties.order is None:
        reason += f", for values with a relative error of {error:.1g}"
    return Counterexample(kernel, X, c, value, allowed, order, reason, error)


def _perturbed_grams(kernel: Kernel, X: Points) -> Iterator[np.ndarray]:
    """Yield K for points moved by up to two units in the last place, in four random ways."""
    if not _can_be_moved(kernel, X):
        return
    rng = np.random.default_rng(0)
    for _ in range(4):
        moved = X + np.spacing(X) * rng.integers(-2, 3, X.shape)
        try:
            K = symmetric_gram(kernel, moved)
        except Exception:  # a moved point is outside the domain of k
            continue
        if np.isfinite(K).all():
            yield K


def _can_be_moved(kernel: Kernel, X: Points) -> bool:
    """Return True if the points are vectors of floating-point numbers, not discrete ones."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "f" and not kernel.domain.discrete


def estimate_noise(kernel: Kernel, X: Points) -> float:
    """Estimate the absolute noise in the values of k; the result is 0 if there is none.

    For a smooth function k, the second differences k(x + h) - 2 k(x) + k(x - h) decrease like h^2.
    If the values are rounded, the differences do not become smaller than the rounding error.
    """
    if not _can_be_moved(kernel, X) or not len(X):
        return 0.0
    X = X[np.unique(np.linspace(0, len(X) - 1, _TUNING.noise_points).astype(int))]
    rng = np.random.default_rng(0)
    sizes = np.maximum(np.abs(X), 0.1 * np.abs(X).max())
    # Pairs with an equal coordinate are excluded, because k may have a kink there, or may compare
    # codes of categories for equality.
    is_smooth = (X[:, None] != X[None]).all(axis=2) | np.eye(len(X), dtype=bool)
    pairs, K = np.triu(is_smooth), symmetric_gram(kernel, X)
    direction = sizes * rng.uniform(0.5, 1.0, X.shape) * rng.choice([-1.0, 1.0], X.shape)
    differences: list[np.ndarray] = []
    for exponent in _TUNING.step_exponents:
        step = 2.0**exponent * direction
        try:
            difference = (
                symmetric_gram(kernel, X + step) - 2.0 * K + symmetric_gram(kernel, X - step)
            )
        except Exception:  # a moved point is outside the domain of k
            break
        # If a pair leaves the domain for one step size, it is excluded for all.
        pairs &= np.isfinite(difference)
        differences.append(np.abs(difference))
    if not pairs.any() or len(differences) < 2:
        return 0.0
    quantiles = np.array([np.quantile(d[pairs], _TUNING.noise_quantile) for d in differences])
    # Each step is 16 times the previous one.  For a smooth function, the differences of a step are
    # 1 / 256 of those of the next step; anything above 1 / 64 of them is attributed to noise.
    excess = quantiles[:-1] - quantiles[1:] / 64.0
    return float(max(excess.max(), 0.0))


def _unit_of_values(kernel: Kernel, X: Points) -> float:
    """Return the unit roundoff u that is assumed for user-supplied functions in the kernel.

    It is larger if a function returns only values that float32 or float16 can represent.  Integers
    and simple fractions such as 1/2 are ignored, because they are exact in every precision.
    """
    recorded: list[list[np.ndarray]] = []
    symmetric_gram(_recording(kernel, recorded), X)
    unit = _FLOAT64_UNIT
    for values in (np.concatenate(values) for values in recorded if values):
        if _is_representable(values, np.float16):
            # Multiples of 1/64 are exact in all precisions, so they are ignored.
            inexact = values[np.mod(64.0 * values, 1.0) != 0.0]
            unit = max(unit, _FLOAT16_UNIT if 2 * len(inexact) > len(values) else _FLOAT64_UNIT)
        elif _is_representable(values, np.float32):
            unit = max(unit, _FLOAT32_UNIT)
    return unit


def _recording(kernel: Kernel, recorded: list[list[np.ndarray]]) -> Kernel:
    """Return a copy of the kernel that records the values that its functions return.

    For each function, one list of values is appended to `recorded`.
    """
    if not isinstance(kernel, Callable):
        children = {path: _recording(child, recorded) for path, child in kernel._children()}
        return kernel._with(children) if children else kernel
    function, values = kernel.function, list[np.ndarray]()
    recorded.append(values)

    def recording(x: Any, z: Any, **params: Any) -> Any:
        value = function(x, z, **params)
        numbers = value.toarray() if hasattr(value, "toarray") else value
        values.append(np.ravel(np.asarray(numbers, dtype=float)))
        return value

    return replace(kernel, function=recording)


def _is_representable(K: np.ndarray, dtype: DTypeLike) -> bool:
    """Return True if all values can be converted to this type without rounding."""
    with np.errstate(over="ignore"):
        return np.array_equal(K, K.astype(dtype))


def _reason(K: np.ndarray, value: float, allowed: float, order: int) -> str:
    """Return a one-line description of a counterexample."""
    end = f"the rounding error is less than {allowed:.2g}"
    if len(K) == 1:
        return f"k(x, x) = {K[0, 0]:.6g} < 0; {end}"
    if len(K) == 2 and order == 0 and K[0, 1] ** 2 > K[0, 0] * K[1, 1] >= 0:
        return (
            f"k(x, z)^2 = {K[0, 1] ** 2:.6g} > k(x, x) k(z, z) = {K[0, 0] * K[1, 1]:.6g}, so that "
            f"c^T K c = {value:.6g} < 0; {end}"
        )
    condition = "" if order == 0 else ", with sum c = 0" if order == 1 else f", for order {order}"
    return f"c^T K c = {value:.6g} < 0 on {len(K)} points{condition}; {end}"


def counterexample_at(
    kernel: Kernel, X: Points, order: int = 0, K: np.ndarray | None = None, tol: float | None = None
) -> Counterexample | None:
    """Return a counterexample on a few of these points, or None if there is none.

    If K = k(X) has already been computed, it can be passed.
    """
    K = symmetric_gram(kernel, X) if K is None else K
    if not len(K) or not np.isfinite(K).all():
        return None
    for rows in _candidate_subsets(K, X, order, rounding_unit(kernel, tol)):
        example = certify_counterexample(kernel, take(X, rows), order, tol)
        if example is not None:
            return example
    return None


def _candidate_subsets(K: np.ndarray, X: Points, order: int, unit: float) -> Iterator[np.ndarray]:
    """Yield indices of points that may be a counterexample: first one, then two, then several."""
    diagonal = K.diagonal()
    if order == 0:
        if diagonal.min() < 0:
            yield np.array([np.argmin(diagonal)])
        i, j = np.triu_indices(len(K), 1)
        if len(i):
            scale = np.maximum(diagonal[i] * diagonal[j], 0.0)
            excess = K[i, j] ** 2 - scale  # positive if the Cauchy-Schwarz inequality is violated
            worst = int(np.argmax(excess / np.maximum(K[i, j] ** 2 + scale, 1e-300)))
            if excess[worst] > 0:
                yield np.array([i[worst], j[worst]])
    if most_negative_direction(K, polynomial_complement(X, order), unit)[0] < -1.0:
        rows = reduce_points(K, X, order, unit=unit)
        yield rows
        if len(rows) < len(K):
            yield np.arange(len(K))
