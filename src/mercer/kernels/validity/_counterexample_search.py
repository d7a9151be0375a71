"""Search for a counterexample: points and coefficients with c^T K c < 0.

Cheap tests that give small counterexamples come first:

1. points at which the kernel is known to be indefinite (`properties.against`),
2. Gram matrices of random points, at several scales and numbers of columns, in which k(x, x) < 0,
   two points violate the Cauchy-Schwarz inequality, or the smallest eigenvalue is negative,
3. negative values of the spectrum, if k depends only on x - z,
4. gradient descent from the best points so far, with the gradient of the smallest eigenvalue,

       d/dx_i  c^T K c  =  2 c_i sum_j c_j d_1 k(x_i, x_j),

   where d_1 k is the derivative of k in its first argument; for points that are not vectors, small
   random changes of one point.

A counterexample is reduced to few points.  Results are reproducible: the random points depend only
on the seed, and the search is limited by a number of matrices, not by time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ..._core import NotDifferentiableError, Points, concatenate, length, take
from .._base import Kernel
from .._pairwise_kernels import Callable, get_point
from ._counterexample import (
    ROUNDING_ALLOWANCE,
    Counterexample,
    counterexample_at,
    estimate_noise,
    most_negative_direction,
    polynomial_complement,
    reduce_points,
    rounding_unit,
    symmetric_gram,
)
from ._test_points import (
    is_stationary,
    n_matrix_points,
    perturbation,
    point_kinds,
    points_of_negative_spectrum,
    sample_points,
    typical_vectors,
)

_CONTINUOUS_KINDS = ("vectors", "nonnegative", "bags")  # kinds of points that allow small steps


@dataclass(frozen=True)
class _CounterexampleTuning:
    """Constants of the search for a counterexample."""

    max_columns: int = 64  # test whether k accepts points with 1 to this many columns
    max_points: int = 6  # larger counterexamples are reduced to this size if possible
    max_steps: int = 25  # maximum number of steps of a descent
    # A descent stops if 0 <= c^T K c < `flat_depth` times its rounding error: the points have
    # converged to the same point, and only rounding errors remain.
    flat_depth: float = 100.0
    # Relative difference of k(x, z) and k(z, x) above which k is not symmetric.
    min_asymmetry: float = 1e-6
    # Assumed relative error of functions of points that are not vectors; they may use float32.
    object_error: float = 1e-6
    # If two evaluations of the same value have a larger relative difference than this, k is not a
    # function; a smaller difference may be noise.
    min_random_change: float = 1e-3


_TUNING = _CounterexampleTuning()


@dataclass(frozen=True)
class Evidence:
    """Statistics of a search that found no counterexample.

    Attributes
    ----------
    n_grams : int
        The number of Gram matrices that were examined.
    n_points : int
        The number of points of the largest of these matrices.
    lowest : float
        The smallest eigenvalue found, relative to the largest eigenvalue of its matrix.
    failure : str
        The error that the kernel raised, if it could not be evaluated on any test points.
    total : int
        The number of points of a precomputed matrix; 0 for other kernels.

    See Also
    --------
    mercer.validity : The search that these statistics describe.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import validity
    >>> result = validity(lambda x, z: np.exp(-abs(x - z).sum()), random_state=0)
    >>> result.status, result.evidence.lowest > -1e-9
    ('unknown', True)
    """

    n_grams: int = 0
    n_points: int = 0
    lowest: float = np.inf
    failure: str = ""
    total: int = 0

    def __str__(self) -> str:
        if not self.n_grams:
            return (
                f"the kernel could not be evaluated on any test points ({self.failure}); pass "
                f"some points as X"
            )
        where = f"of {self.n_grams} Gram matrices of up to {self.n_points} points"
        if self.total:
            where = f"on {self.n_points} of the {self.total} points of the matrix"
        return f"the smallest eigenvalue {where} was {self.lowest:.2g} times the largest"


def known_counterexample(
    kernel: Kernel, order: int = 0, columns: int | None = None
) -> Counterexample | None:
    """Return a counterexample on points at which the kernel is known to be indefinite.

    This evaluates a kernel matrix of a few points, and nothing at all if the kernel is proved to be
    valid or if no such points are known.

    Parameters
    ----------
    kernel : Kernel
        The kernel to check.
    order : int, default=0
        The property to refute: 0 for positive semidefinite, m for conditionally positive definite
        of order m.
    columns : int or None, default=None
        The number of columns of the points, if it is known.

    Returns
    -------
    Counterexample or None
        None if the kernel is proved to be valid, or if no counterexample is known.

    See Also
    --------
    validity : Also searches for unknown counterexamples.

    References
    ----------
    Schölkopf and Smola, "Learning with kernels", MIT Press, 2002. Berg, Christensen and Ressel,
    "Harmonic analysis on semigroups", Springer, 1984.

    Examples
    --------
    >>> from mercer.kernels import RBF, Sigmoid
    >>> from mercer.kernels.validity import known_counterexample
    >>> known_counterexample(RBF()) is None, known_counterexample(Sigmoid()).value < 0
    (True, True)
    """
    properties = kernel.properties
    if properties.against is None or properties.proves(order, columns) or kernel._unresolved:
        return None
    points = properties.against
    if columns is not None and points.shape[1] < columns:
        points = np.pad(points, ((0, 0), (0, columns - points.shape[1])))
    try:
        return counterexample_at(kernel, points, order)
    except (TypeError, ValueError):  # the kernel requires another number of columns
        return None


def find_counterexample(
    kernel: Kernel,
    X: Points,
    order: int,
    n_grams: int,
    rng: np.random.Generator,
    tol: float | None = None,
) -> tuple[Counterexample | None, Evidence]:
    """Return a counterexample or None, and the statistics of the search."""
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if (known := known_counterexample(kernel, order, columns)) is not None:
        return known, Evidence()
    search = _CounterexampleSearch(kernel, X, order, rng, tol)
    example = search.run(n_grams)
    if example is not None and _is_outside(example.points, X):
        reason = f"{example.reason}; these points are outside the range of X"
        example = replace(example, reason=reason)
    return example, replace(search.evidence, total=n_matrix_points(kernel))


def _is_outside(points: Points, X: Points) -> bool:
    """Return True if some points are outside the bounding box of X; both must be 2-D arrays."""
    if not all(isinstance(rows, np.ndarray) and rows.ndim == 2 for rows in (points, X)):
        return False
    return bool(np.any((points < X.min(axis=0)) | (points > X.max(axis=0))))


class _CounterexampleSearch:
    """A search for a counterexample on random points; `evidence` contains its statistics."""

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        order: int,
        rng: np.random.Generator,
        tol: float | None = None,
    ) -> None:
        self.kernel, self.X, self.order, self.rng = kernel, X, order, rng
        self.user_tol = self.tol = tol
        self.unit = rounding_unit(kernel, tol)
        self.evidence = Evidence()
        # The kernel may contain a user-supplied function, which may be inexact or not symmetric.
        self.may_be_inexact = kernel.properties.order is None

    def run(self, n_grams: int) -> Counterexample | None:
        """Return a counterexample, or None if none is found in `n_grams` Gram matrices."""
        kinds = point_kinds(self.kernel, self.X)
        if self.order > 1:  # polynomials are defined only for vectors
            kinds = tuple(kind for kind in kinds if kind in ("vectors", "nonnegative"))
        accepted = {kind: columns for kind in kinds if (columns := self._accepted_columns(kind))}
        for kind, columns in accepted.items():
            self._measure_noise(kind, columns)
            examples = self._counterexamples(kind, columns, -(-n_grams // len(accepted)))
            example = next(examples, None)
            if example is not None:
                return self._reduced(kind, example)
        return None if accepted else self._undefined(kinds)

    def _measure_noise(self, kind: str, columns: tuple[int, ...]) -> None:
        """Set `tol` to the noise of the values of a user-supplied function at typical points.

        For points that are not vectors, noise cannot be measured by small steps, and a larger error
        is assumed.
        """
        self.tol = self.user_tol
        if not self.may_be_inexact:
            return
        if kind not in _CONTINUOUS_KINDS:
            self.tol = _TUNING.object_error if self.user_tol is None else self.user_tol
        self.unit = rounding_unit(self.kernel, self.tol)
        if kind not in _CONTINUOUS_KINDS:
            return
        for points in typical_vectors(kind, self.X, columns[-1]):
            K = self._gram(points)
            if K is not None and np.abs(K).max() > 0.0:
                noise = 10.0 * estimate_noise(self.kernel, points) / float(np.abs(K).max())
                if ROUNDING_ALLOWANCE * self.unit < noise:
                    self.tol, self.unit = noise, rounding_unit(self.kernel, noise)

    def _counterexamples(
        self, kind: str, columns: tuple[int, ...], n_grams: int
    ) -> Iterator[Counterexample]:
        """Yield counterexamples on points of this kind."""
        samples = sample_points(kind, self.kernel, self.X, columns, self.rng)
        first, last = islice(samples, n_grams // 2), islice(samples, n_grams - n_grams // 2)
        # For each number of columns, the smallest depth (see `examine`) and its points.
        closest: dict[tuple[int, ...], tuple[float, Points]] = {}
        for source in (first, self._spectral_points(kind, columns), last):
            for points in source:
                example, depth = self.examine(points)
                if example is not None:
                    yield example
                key = getattr(points, "shape", ())[1:]
                if depth < closest.get(key, (np.inf, None))[0]:
                    closest[key] = depth, points
        for _, points in closest.values():
            if (example := self.descend(kind, points)) is not None:
                yield example

    # ------------------------------------------------------------------ Gram matrices

    def examine(self, points: Points) -> tuple[Counterexample | None, float]:
        """Return a counterexample on these points or None, and the depth of their Gram matrix.

        The depth is the smallest c^T K c relative to its rounding error.
        """
        K = self._gram(points)
        if K is None:
            return None, np.inf
        is_first = not self.evidence.n_grams
        self._record(K)
        if is_first and self.may_be_inexact:
            example = self._check_function(K, points)
            if example is not None:
                return example, -np.inf
        depth, _ = most_negative_direction(K, polynomial_complement(points, self.order), self.unit)
        return counterexample_at(self.kernel, points, self.order, K, self.tol), depth

    def _gram(self, points: Points) -> np.ndarray | None:
        """Return k(points), or None if it cannot be evaluated there or is not finite."""
        try:
            K = symmetric_gram(self.kernel, points)
        except Exception as error:  # a user-supplied function may raise any exception
            self.evidence = replace(self.evidence, failure=f"{type(error).__name__}: {error}")
            return None
        return K if len(K) and np.isfinite(K).all() else None

    def _record(self, K: np.ndarray) -> None:
        """Update the statistics of the search."""
        values = np.linalg.eigvalsh(K)
        relative = float(values[0] / max(abs(values[-1]), abs(values[0]), 1e-300))
        old = self.evidence
        self.evidence = Evidence(
            old.n_grams + 1, max(old.n_points, len(K)), min(old.lowest, relative)
        )

    def _accepted_columns(self, kind: str) -> tuple[int, ...]:
        """Return up to three numbers of columns that the kernel accepts.

        The result is (1,) for points without columns, and () if the kernel does not accept this
        kind of points.
        """
        if kind not in (*_CONTINUOUS_KINDS, "rows of 0 and 1"):
            samples = sample_points(kind, self.kernel, self.X, (1,), np.random.default_rng(0))
            points = next(samples, None)
            return () if points is None or self._gram(points) is None else (1,)
        if self.X is not None:
            return (self.X.shape[1],)
        accepted: list[int] = []
        for d in range(1, _TUNING.max_columns + 1):
            if self._gram(np.arange(1.0, 2 * d + 1.0).reshape(2, d)) is not None:
                accepted.append(d)
            if len(accepted) == 3 or (not accepted and self.may_be_inexact and d > 8):
                break
        return tuple(accepted)

    def _spectral_points(self, kind: str, columns: tuple[int, ...]) -> Iterator[np.ndarray]:
        """Yield points chosen from the spectrum of k, if k seems to be stationary."""
        for d in columns if kind == "vectors" else ():
            try:
                if is_stationary(self.kernel, d):
                    yield from points_of_negative_spectrum(self.kernel, d)
            except Exception:  # k is not defined on all these points
                return

    # ------------------------------------------------------------------ not a symmetric function

    def _check_function(self, K: np.ndarray, points: Points) -> Counterexample | None:
        """Return a counterexample if k is not a symmetric function of two points, or None.

        This is the case if k(x, z) and k(z, x) differ, if a second evaluation gives a different
        value, or if k(x, z) depends on the other points of the matrix.
        """
        n, size, last = len(K), np.abs(K).max(), np.arange(len(K))[::-1]
        block, again = (
            np.asarray(self.kernel(points, take(points, last)), dtype=float)[:, ::-1]
            for _ in range(2)
        )
        change = np.abs(block - again)
        noise = max(_TUNING.min_asymmetry, self.tol or 0.0) * size
        noise = max(noise, 10.0 * float(change.max()), 10.0 * estimate_noise(self.kernel, points))
        if change.max() > _TUNING.min_random_change * size:
            i, j = np.unravel_index(int(np.argmax(change)), change.shape)
            reason = (
                f"k is not a function: k(x, z) = {block[i, j]:.6g}, but a second evaluation gives "
                f"{again[i, j]:.6g}"
            )
            return self._plain(points, [int(i), int(j)], float(-change[i, j]), reason)
        gap = np.abs(block - block.T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > noise:
            reason = f"k is not symmetric: k(x, z) = {block[i, j]:.6g}, k(z, x) = {block[j, i]:.6g}"
            return self._plain(points, [int(i), int(j)], float(-gap[i, j]), reason)
        pair = [0, n - 1]
        alone = symmetric_gram(self.kernel, take(points, np.array(pair)))
        difference = np.abs(alone - K[np.ix_(pair, pair)])
        if n > 2 and difference.max() > noise:
            a, b = np.unravel_index(int(np.argmax(difference)), difference.shape)
            reason = (
                f"k is not a function of two points: k(x, z) = {K[pair[a], pair[b]]:.6g} in a "
                f"matrix of {n} points, but {alone[a, b]:.6g} without the others"
            )
            return self._plain(points, pair, float(-difference.max()), reason)
        return None

    def _plain(self, points: Points, rows: list[int], value: float, reason: str) -> Counterexample:
        """Return a counterexample without coefficients."""
        subset = take(points, np.array(rows))
        return Counterexample(self.kernel, subset, None, value, 0.0, self.order, reason)

    def _undefined(self, kinds: tuple[str, ...]) -> Counterexample | None:
        """Return a counterexample if k(x, x) is infinite or NaN at all test points, else None."""
        if not isinstance(self.kernel, Callable) or "vectors" not in kinds:
            return None
        X = np.arange(1.0, 6.0)[:, None] if self.X is None else take(self.X, slice(5))
        K = np.zeros((length(X), length(X)))
        try:
            P = self.kernel.prepare(X)
            with np.errstate(all="ignore"):
                self.kernel._fill(P, P, K)
        except Exception:  # a function may raise anything for points it does not expect
            return None
        values = K.diagonal()
        if np.isfinite(values).any():
            return None
        reason = f"k(x, x) = {values[0]:g} is not finite, for all x that were tried"
        return self._plain(X, [0], -np.inf, reason)

    # ------------------------------------------------------------------ descent

    def _reduced(self, kind: str, example: Counterexample) -> Counterexample:
        """Try to reduce a counterexample to six points; return it unchanged if that fails."""
        if len(example) <= _TUNING.max_points or example.coefficients is None:
            return example
        return self.descend(kind, example.points) or example

    def descend(self, kind: str, points: Points) -> Counterexample | None:
        """Return a counterexample found by descent from the best six of these points, or None."""
        K = symmetric_gram(self.kernel, points)
        rows = reduce_points(K, points, self.order, _TUNING.max_points, self.unit)
        best = take(points, rows)
        smooth = isinstance(best, np.ndarray) and kind in _CONTINUOUS_KINDS
        examples = best if self.X is None else self.X
        change = None if smooth else perturbation(kind, self.kernel, examples)
        if not smooth and change is None:
            return None
        K = symmetric_gram(self.kernel, best)
        depth, c = most_negative_direction(K, polynomial_complement(best, self.order), self.unit)
        for _ in range(_TUNING.max_steps):
            if smooth and 0.0 <= depth < _TUNING.flat_depth:
                break  # the points have converged to the same point; see `flat_depth`
            for moved in self._gradient_steps(best, c) if smooth else self._changed(best, change):
                moved = np.abs(moved) if smooth and kind != "vectors" else moved
                values = self._gram(moved)
                if values is None:
                    continue
                basis = polynomial_complement(moved, self.order)
                new_depth, direction = most_negative_direction(values, basis, self.unit)
                if new_depth < depth:
                    best, depth, c = moved, new_depth, direction
                    break
            else:
                if smooth:
                    break
        if not depth < -1.0:
            return None
        return counterexample_at(self.kernel, best, self.order, None, self.tol)

    def _gradient_steps(self, X: np.ndarray, c: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the points moved against the gradient of c^T K c, by decreasing steps."""
        G = c[:, None] * self._slopes(X, c)
        size = (float(np.ptp(X, axis=0).max()) or 1.0) / (float(np.abs(G).max()) or 1.0)
        for power in range(6):
            yield X - size * 0.3**power * G

    def _slopes(self, X: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return sum_j c_j dk(x_i, x_j) / dx_i.

        Central differences are used for kernels without derivatives.
        """
        try:
            return np.asarray(self.kernel.input_gradient(X, None, np.tile(c, (len(X), 1))))
        except (NotDifferentiableError, ValueError, TypeError):
            pass
        h = 1e-5 * (float(np.ptp(X, axis=0).max()) or 1.0)
        out = np.zeros_like(X)
        for a in range(X.shape[1]):
            step = np.zeros(X.shape[1])
            step[a] = h
            try:
                with np.errstate(all="ignore"):
                    out[:, a] = (self.kernel(X + step, X) - self.kernel(X - step, X)) @ c / (2 * h)
            except Exception:  # a moved point is outside the domain of k
                continue
        return np.where(np.isfinite(out), out, 0.0)

    def _changed(self, points: Points, change: Any) -> Iterator[Points]:
        """For each point, yield a copy of all points in which this point is changed at random."""
        for i in range(length(points)):
            new = change(get_point(points, i), self.rng)
            new = np.asarray(new)[None] if isinstance(points, np.ndarray) else [new]
            others = take(points, np.delete(np.arange(length(points)), i))
            yield concatenate(others, new)
