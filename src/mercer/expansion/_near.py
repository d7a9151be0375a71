"""k(X, points) for a few X: what the points are prepared to is kept for the next ones.

Predictions for one point after the other would else prepare all points of a model each time, which
takes longer than the values.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .._runtime import entry_point
from ..kernels import Kernel, Prepared

__all__ = ["near"]

_LARGEST = 2**22  # entries of points that are kept prepared: 32 MiB, and as much for tiles


class _Known(NamedTuple):
    """Points, what they were, and what that was prepared to."""

    kernel: Kernel
    points: np.ndarray
    before: np.ndarray
    prepared: Prepared

    def holds(self, kernel: Kernel, points: np.ndarray) -> bool:
        """Tell whether these are the points still, also if their owner writes to them."""
        same = self.kernel is kernel and self.points is points
        return same and (not points.flags.writeable or bool((points == self.before).all()))


# by whom they belong to, and no part of its state: neither copied nor stored
_kept: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()


@entry_point
def near(owner: Any, kernel: Kernel, X: Any, points: Any) -> np.ndarray:
    """Return k(X, points) for a few X; `owner` is whom the points belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.expansion import near
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.ones(2))
    >>> near(f, f.kernel, np.array([[3.0]]), f.points)
    array([[3., 6.]])
    """
    if not (kernel.on_vectors and _is_dense(X) and _is_dense(points) and points.size <= _LARGEST):
        return np.asarray(kernel(X, points))
    known = _kept.get(owner)
    if known is None or not known.holds(kernel, points):
        before = points.copy() if points.flags.writeable else points
        known = _kept[owner] = _Known(kernel, points, before, kernel.prepare(points))
    Q = known.prepared
    P = kernel.prepare(X, like=Q)
    if P.dtype != Q.dtype:  # only together can they be in one precision
        return np.asarray(kernel(X, points))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks, and says why
        return kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=Q.dtype))


def _is_dense(X: Any) -> bool:
    return type(X) is np.ndarray and X.ndim == 2 and len(X) > 0
