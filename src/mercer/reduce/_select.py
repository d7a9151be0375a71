"""Selection: orthogonal matching pursuit over the points of the expansion itself.

    s = argmax_i |r(x_i)|^2 / d_i,   v = (K - F^T F)[:, s] / sqrt(d_s),   w = r(x_s) / sqrt(d_s)
    r <- r - v w^T,   d <- d - v^2,   |f - g|^2 <- |f - g|^2 - w^2

with r = f - g in the points, g the projection on those chosen so far, and d_i the squared distance
of k(x_i, .) from their span.  The quotient is by how much the squared error falls if i is next: the
choice is greedy, and the errors are exact.  A column of K is read for each point chosen, so that
any points will do, and that n^2 numbers are never held.  Pivots of RPCholesky cost the same and
know K alone: on four regression sets their error was 1.4 to 3 times as large, as they also cover
what no function needs.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from .._errors import NotPositiveDefiniteError
from .._runtime import check_budget, one_blas_thread, quiet
from ..gram import TiledGram
from ._functions import Functions

__all__ = ["Selection"]

_NEAREST = 1e-10  # times the largest k(x, x): points nearer to the span only magnify rounding
_INDEFINITE = 1e-8  # times the largest k(x, x), below 0, cannot be rounding
_ROUNDING = 100.0 * np.finfo(float).eps  # in d, before the smallest d_s so far has magnified it
_FIRST = 256  # rows of F to begin with, if it is not known how many there will be


class Selection:
    """Points of the expansion chosen one after the other; `go_on` resumes where it stopped."""

    @quiet
    def __init__(self, f: Functions) -> None:
        self.f, self._K = f, TiledGram(f.kernel, f.X)
        self._R, self._squares = f.values.copy(), f.squares.copy()
        self._d = np.array(self._K.diagonal(), dtype=np.float64)
        self._largest = self._smallest = float(np.abs(self._d).max())
        self._F = np.empty((0, len(f.A)))
        self._chosen: list[int] = []
        self._errors: list[np.ndarray] = []

    @property
    def places(self) -> np.ndarray:
        """The places of the points in the order of choice, at least one."""
        # Where no point lowers the error, one is as good as any other.
        return np.array(self._chosen or [0], dtype=np.intp)

    @property
    def curve(self) -> np.ndarray:
        """The errors after each of the points, (n_points, m)."""
        return np.array(self._errors or [self._error])

    @property
    def _error(self) -> np.ndarray:
        return np.sqrt(self._squares + self.f.rounding)

    @quiet
    def go_on(self, n_points: int, max_error: float = 0.0) -> Self:
        """Choose points until there are `n_points`.

        There are fewer once no function is off by more than `max_error`, or once the rest is
        rounding.
        """
        rounding, n = self.f.rounding, len(self._d)
        goal = np.maximum(max_error**2 - rounding, rounding)
        with one_blas_thread:  # the bits depend on nothing else
            while (j := len(self._chosen)) < n_points:
                if j and not np.any(self._squares > goal):
                    break
                left = self._d > _NEAREST * self._largest
                squared = np.einsum("ic,ic->i", self._R, self._R)
                gain = np.divide(squared, self._d, out=np.zeros(n), where=left)
                s = int(gain.argmax())
                if not gain[s] > 0.0:
                    break
                if j == len(self._F):
                    self._make_room(min(n_points, 2 * j or _FIRST) if max_error else n_points)
                self._choose(s)
        return self

    def _choose(self, s: int) -> None:
        j, F, d = len(self._chosen), self._F, self._d
        self._smallest = min(self._smallest, d[s])
        root = np.sqrt(d[s])
        v = self._K.block(slice(None), [s])[:, 0] - F[:j, s] @ F[:j]
        v /= root
        w = self._R[s] / root
        F[j] = v
        self._R -= np.outer(v, w)
        d -= v * v
        d[s] = 0.0
        self._squares = np.maximum(self._squares - w * w, 0.0)
        self._chosen.append(s)
        self._errors.append(self._error)
        self._check()

    def _make_room(self, rows: int) -> None:
        F, n = self._F, len(self._d)
        what = f"a choice of {rows} of {n} points"
        check_budget(8 * n * (rows + len(F)), self.f.max_memory, what)
        self._F = np.empty((rows, n))
        self._F[: len(F)] = F

    def _check(self) -> None:
        """Refuse a squared distance below 0 by more than rounding, divided by the smallest d_s."""
        lowest, largest = float(self._d.min()), self._largest
        magnified = _ROUNDING * largest / self._smallest
        if not lowest >= -max(_INDEFINITE, magnified) * largest:  # also if it is NaN
            raise NotPositiveDefiniteError(
                f"after {len(self._chosen)} points the squared distance of another from their span "
                f"is {lowest:.3g}, with k(x, x) up to {largest:.3g}: {self.f.kernel} is not "
                f"positive semidefinite on these points; choose a Mercer kernel"
            )
