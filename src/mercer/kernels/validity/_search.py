"""The search for a witness: c^T K c < 0.

In this order, so that what is found first is small: points that the kernel itself points at; then,
on Gram matrices of points drawn at several scales and in several dimensions, k(x, x) < 0, two
points, the smallest eigenvalue; on the line the sign of the spectrum, if k depends on x - z; then
downhill from the best so far, along the gradient of the smallest eigenvalue,

    d/dx_i  c^T K c  =  2 c_i sum_j c_j d_1 k(x_i, x_j),

or, for objects, by small changes of one of them.  A witness is shrunk to few points.  What is drawn
depends on the seed alone, and how much of it on a number of matrices, not on a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ..._errors import NotDifferentiableError
from ..._points import concatenate, length, take
from .._base import Kernel
from .._callable import Callable, point
from ._points import changes, draws, kinds_of, size_of, typical
from ._spectrum import is_stationary, negative_waves
from ._witness import (
    ALLOWANCE,
    Witness,
    complement,
    lowest,
    matrix,
    noise_along_steps,
    shrink,
    unit_of,
    witness_at,
)

__all__ = ["Evidence", "declared_witness", "find_witness"]

_MOST_COLUMNS = 64  # up to which a number of columns is looked for that a kernel takes
_SMALL = 6  # points that a witness is to have at most
_STEPS = 25  # downhill
_FLAT = 100.0  # a smallest eigenvalue of as many times its rounding is none
_SMOOTH = ("vectors", "nonnegative", "bags")  # points that can be moved a little
_DIFFER = 1e-6  # k(x, z) and k(z, x) that differ by this part are of no function
_UNSEEN = 1e-6  # assumed relative error of a function of objects, which may compute in float32
_RANDOM = 1e-3  # and so are two evaluations of one value that do; less may be noise


@dataclass(frozen=True)
class Evidence:
    """What a search has seen that found nothing.

    Attributes
    ----------
    n_grams : int
        Gram matrices that were looked at.
    n_points : int
        Points of the largest of them.
    lowest : float
        The smallest eigenvalue seen, relative to the largest of its matrix.
    failure : str
        Why points could not be evaluated, if none could.
    total : int
        How many points there are, of a kernel that is a matrix; 0 if there is no end of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import validity
    >>> found = validity(lambda x, z: np.exp(-abs(x - z).sum()), random_state=0)
    >>> found.status, found.evidence.lowest > -1e-9
    ('unknown', True)
    """

    n_grams: int = 0
    n_points: int = 0
    lowest: float = np.inf
    failure: str = ""
    total: int = 0

    def __str__(self) -> str:
        if not self.n_grams:
            return f"no points could be evaluated ({self.failure}); give some, validity(X)"
        seen = f"of {self.n_grams} Gram matrices of up to {self.n_points} points"
        if self.total:
            seen = f"on {self.n_points} of the {self.total} points of the matrix"
        return f"the smallest eigenvalue {seen} was {self.lowest:.2g} of the largest"


def declared_witness(kernel: Kernel, order: int = 0, columns: int | None = None) -> Witness | None:
    """Return a witness on the points that the kernel itself points at; None if it is proved.

    It costs a matrix of a few points, and nothing for a kernel that is proved or unknown.

    Examples
    --------
    >>> from mercer.kernels import RBF, Sigmoid
    >>> from mercer.kernels.validity import declared_witness
    >>> declared_witness(RBF()) is None, declared_witness(Sigmoid()).value < 0
    (True, True)
    """
    claims = kernel.claims
    if claims.against is None or claims.proves(order, columns) or kernel._unresolved:
        return None
    points = claims.against
    if columns is not None and points.shape[1] < columns:
        points = np.pad(points, ((0, 0), (0, columns - points.shape[1])))
    try:
        return witness_at(kernel, points, order)
    except (TypeError, ValueError):  # another number of columns is wanted
        return None


def find_witness(
    kernel: Kernel,
    X: Any,
    order: int,
    n_grams: int,
    rng: np.random.Generator,
    tol: float | None = None,
) -> tuple[Witness | None, Evidence]:
    """Return a witness, or None and what was seen instead."""
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if (found := declared_witness(kernel, order, columns)) is not None:
        return found, Evidence()
    search = _Search(kernel, X, order, rng, tol)
    witness = search.run(n_grams)
    if witness is not None and _beyond(witness.points, X):
        reason = f"{witness.reason}; these points lie outside of the range of X"
        witness = replace(witness, reason=reason)
    return witness, replace(search.evidence, total=size_of(kernel))


def _beyond(points: Any, X: Any) -> bool:
    """Tell whether some points, rows of numbers, are not in the box around X."""
    if not all(isinstance(rows, np.ndarray) and rows.ndim == 2 for rows in (points, X)):
        return False
    return bool(np.any((points < X.min(axis=0)) | (points > X.max(axis=0))))


class _Search:
    """The state of a search: what it has seen, and the points that came closest."""

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        order: int,
        rng: np.random.Generator,
        tol: float | None = None,
    ) -> None:
        self.kernel, self.X, self.order, self.rng = kernel, X, order, rng
        self.given = self.tol = tol
        self.unit = unit_of(kernel, tol)
        self.evidence = Evidence()
        self.strange = kernel.claims.order is None  # somebody else's code may be inside

    def run(self, n_grams: int) -> Witness | None:
        kinds = kinds_of(self.kernel, self.X)
        if self.order > 1:  # there are no polynomials of other points
            kinds = tuple(kind for kind in kinds if kind in ("vectors", "nonnegative"))
        taken = {kind: columns for kind in kinds if (columns := self._columns(kind))}
        for kind, columns in taken.items():
            self._see_noise(kind, columns)
            found = next(self._found(kind, columns, -(-n_grams // len(taken))), None)
            if found is not None:
                return self._smaller(kind, found)
        return None if taken else self._undefined(kinds)

    def _see_noise(self, kind: str, columns: tuple[int, ...]) -> None:
        """Allow for the noise in the values of a function, seen at typical points.

        Objects cannot be moved a little, so that noise is not seen, and more is allowed for.
        """
        self.tol = self.given
        if not self.strange:
            return
        if kind not in _SMOOTH:
            self.tol = _UNSEEN if self.given is None else self.given
        self.unit = unit_of(self.kernel, self.tol)
        if kind not in _SMOOTH:
            return
        for points in typical(kind, self.X, columns[-1]):
            K = self._values(points)
            if K is not None and np.abs(K).max() > 0.0:
                seen = 10.0 * noise_along_steps(self.kernel, points) / float(np.abs(K).max())
                if ALLOWANCE * self.unit < seen:
                    self.tol, self.unit = seen, unit_of(self.kernel, seen)

    def _found(self, kind: str, columns: tuple[int, ...], n_grams: int) -> Iterator[Witness]:
        """Yield witnesses on points of a kind."""
        sampled = draws(kind, self.kernel, self.X, columns, self.rng)
        first, last = islice(sampled, n_grams // 2), islice(sampled, n_grams - n_grams // 2)
        closest: dict[Any, tuple[float, Any]] = {}  # depth and points, by their columns
        for source in (first, self._waves(kind, columns), last):
            for points in source:
                found, depth = self.look(points)
                if found is not None:
                    yield found
                key = getattr(points, "shape", ())[1:]
                if depth < closest.get(key, (np.inf, None))[0]:
                    closest[key] = depth, points
        for _, points in closest.values():
            if (found := self.descend(kind, points)) is not None:
                yield found

    # ------------------------------------------------------------------ looking

    def look(self, points: Any) -> tuple[Witness | None, float]:
        """Return a witness on these points, if there is one, and how close they come."""
        K = self._values(points)
        if K is None:
            return None, np.inf
        first = not self.evidence.n_grams
        self._record(K)
        if first and self.strange and (found := self._no_function(K, points)) is not None:
            return found, -np.inf
        depth, _ = lowest(K, complement(points, self.order), self.unit)
        return witness_at(self.kernel, points, self.order, K, self.tol), depth

    def _values(self, points: Any) -> np.ndarray | None:
        """Return k(points), None if it cannot be evaluated there."""
        try:
            K = matrix(self.kernel, points)
        except Exception as error:  # whatever a function does with points that it does not expect
            self.evidence = replace(self.evidence, failure=f"{type(error).__name__}: {error}")
            return None
        return K if len(K) and np.isfinite(K).all() else None

    def _record(self, K: np.ndarray) -> None:
        values = np.linalg.eigvalsh(K)
        relative = float(values[0] / max(abs(values[-1]), abs(values[0]), 1e-300))
        old = self.evidence
        self.evidence = Evidence(
            old.n_grams + 1, max(old.n_points, len(K)), min(old.lowest, relative)
        )

    def _columns(self, kind: str) -> tuple[int, ...]:
        """Return the numbers of columns that the kernel takes, the first three of them.

        For points without columns (1,); () if the kernel does not take such points.
        """
        if kind not in (*_SMOOTH, "rows of 0 and 1"):
            some = next(draws(kind, self.kernel, self.X, (1,), np.random.default_rng(0)), None)
            return () if some is None or self._values(some) is None else (1,)
        if self.X is not None:
            return (self.X.shape[1],)
        found: list[int] = []
        for d in range(1, _MOST_COLUMNS + 1):
            if self._values(np.arange(1.0, 2 * d + 1.0).reshape(2, d)) is not None:
                found.append(d)
            if len(found) == 3 or (not found and self.strange and d > 8):
                break
        return tuple(found)

    def _waves(self, kind: str, columns: tuple[int, ...]) -> Iterator[np.ndarray]:
        for d in columns if kind == "vectors" else ():
            try:
                if is_stationary(self.kernel, d):
                    yield from negative_waves(self.kernel, d)
            except Exception:  # it is not defined everywhere
                return

    # ------------------------------------------------------------------ what is no function

    def _no_function(self, K: np.ndarray, points: Any) -> Witness | None:
        """Return a witness against k(x, z) = k(z, x), or against values that change."""
        n, size, last = len(K), np.abs(K).max(), np.arange(len(K))[::-1]
        block, again = (
            np.asarray(self.kernel(points, take(points, last)), dtype=float)[:, ::-1]
            for _ in range(2)
        )
        change = np.abs(block - again)
        noise = max(_DIFFER, self.tol or 0.0) * size
        noise = max(
            noise, 10.0 * float(change.max()), 10.0 * noise_along_steps(self.kernel, points)
        )
        if change.max() > _RANDOM * size:
            i, j = np.unravel_index(int(np.argmax(change)), change.shape)
            reason = (
                f"k is no function: k(x, z) = {block[i, j]:.6g}, and when evaluated again "
                f"{again[i, j]:.6g}"
            )
            return self._plain(points, [int(i), int(j)], float(-change[i, j]), reason)
        gap = np.abs(block - block.T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > noise:
            reason = f"k is not symmetric: k(x, z) = {block[i, j]:.6g}, k(z, x) = {block[j, i]:.6g}"
            return self._plain(points, [int(i), int(j)], float(-gap[i, j]), reason)
        pair = [0, n - 1]
        alone = matrix(self.kernel, take(points, np.array(pair)))
        other = np.abs(alone - K[np.ix_(pair, pair)])
        if n > 2 and other.max() > noise:
            a, b = np.unravel_index(int(np.argmax(other)), other.shape)
            reason = (
                f"k is no function of two points: k(x, z) = {K[pair[a], pair[b]]:.6g} among {n} "
                f"points, and {alone[a, b]:.6g} without the others"
            )
            return self._plain(points, pair, float(-other.max()), reason)
        return None

    def _plain(self, points: Any, rows: list[int], value: float, reason: str) -> Witness:
        some = take(points, np.array(rows))
        return Witness(self.kernel, some, None, value, 0.0, self.order, reason)

    def _undefined(self, kinds: tuple[str, ...]) -> Witness | None:
        """Return a witness if k(x, x) is infinite, or not a number, wherever one looks."""
        if not isinstance(self.kernel, Callable) or "vectors" not in kinds:
            return None
        X = np.arange(1.0, 6.0)[:, None] if self.X is None else take(self.X, slice(5))
        K = np.zeros((length(X), length(X)))
        try:
            P = self.kernel.prepare(X)
            with np.errstate(all="ignore"):
                self.kernel._fill(P, P, K)
        except Exception:  # as above
            return None
        values = K.diagonal()
        if np.isfinite(values).any():
            return None
        reason = f"k(x, x) = {values[0]:g} is not a number, for every x that was tried"
        return self._plain(X, [0], -np.inf, reason)

    # ------------------------------------------------------------------ downhill

    def _smaller(self, kind: str, found: Witness) -> Witness:
        """Return a witness of at most six points in place of a larger one, if there is one."""
        if len(found) <= _SMALL or found.coefficients is None:
            return found
        return self.descend(kind, found.points) or found

    def descend(self, kind: str, points: Any) -> Witness | None:
        """Go downhill from the best six of these points."""
        K = matrix(self.kernel, points)
        some = take(points, shrink(K, points, self.order, _SMALL, self.unit))
        smooth = isinstance(some, np.ndarray) and kind in _SMOOTH
        change = None if smooth else changes(kind, self.kernel, some if self.X is None else self.X)
        if not smooth and change is None:
            return None
        depth, c = lowest(matrix(self.kernel, some), complement(some, self.order), self.unit)
        for _ in range(_STEPS):
            if smooth and 0.0 <= depth < _FLAT:
                break  # points have come together: nothing but rounding is left
            for moved in self._steps(some, c) if smooth else self._changed(some, change):
                moved = np.abs(moved) if smooth and kind != "vectors" else moved
                values = self._values(moved)
                if values is None:
                    continue
                deeper, direction = lowest(values, complement(moved, self.order), self.unit)
                if deeper < depth:
                    some, depth, c = moved, deeper, direction
                    break
            else:
                if smooth:
                    break
        return witness_at(self.kernel, some, self.order, None, self.tol) if depth < -1.0 else None

    def _steps(self, X: np.ndarray, c: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the points moved against the gradient of c^T K c, less and less."""
        G = c[:, None] * self._slopes(X, c)
        size = (float(np.ptp(X, axis=0).max()) or 1.0) / (float(np.abs(G).max()) or 1.0)
        for power in range(6):
            yield X - size * 0.3**power * G

    def _slopes(self, X: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return sum_j c_j dk(x_i, x_j) / dx_i, by differences if there are no derivatives."""
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
            except Exception:  # a point has left the domain
                continue
        return np.where(np.isfinite(out), out, 0.0)

    def _changed(self, points: Any, change: Any) -> Iterator[Any]:
        """Yield the points with one of them changed a little."""
        for i in range(length(points)):
            new = change(point(points, i), self.rng)
            new = np.asarray(new)[None] if isinstance(points, np.ndarray) else [new]
            others = take(points, np.delete(np.arange(length(points)), i))
            yield concatenate(others, new)
