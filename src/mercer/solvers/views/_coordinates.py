"""Whitened coordinates of two views, of all points or on landmarks, within one budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..._points import length
from ..._runtime import check_threads, entry_point
from ...gram import Landmarks, working_bytes
from ...kernels import Kernel
from ..risk import Whitened, whiten

__all__ = ["coordinates"]


@entry_point
def coordinates(
    kernels: tuple[Kernel, Kernel],
    points: tuple[Any, Any],
    spec: str,
    landmarks: tuple[Landmarks, Landmarks],
    workspace: Callable[[int, int, int], int],
    *,
    max_memory: Any = None,
) -> tuple[Whitened, Whitened]:
    """Return the coordinates of both views; see `whiten` for what `spec` says.

    `workspace(n, m, m_y)` is what is needed beside them, for so many coordinates of n points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.solvers import coordinates
    >>> X = np.arange(5.0)[:, None]
    >>> spec, marks = "exact", (Landmarks(), Landmarks())
    >>> phi, psi = coordinates((RBF(), Linear()), (X, X), spec, marks, lambda n, m, m_y: 0)
    >>> phi.F.shape, psi.F.shape
    ((5, 5), (5, 1))
    """
    n, threads = length(points[0]), check_threads(None)
    tiles = max(working_bytes(k, X, None, 0, threads) for k, X in zip(kernels, points, strict=True))

    def needed(solver: str, m: int, m_y: int) -> int:
        """Return the bytes: the second view is found beside the first, then both are used."""
        if solver == "nystroem":
            drawing = replace(landmarks[1], rank=m_y).workspace(n)
            finding = drawing + 8 * (n * m_y + 3 * m_y * m_y)
        else:
            finding = 24 * n * n
        used = 8 * (n * m_y + m_y * m_y) + workspace(n, m, m_y)
        return tiles + 8 * (n * m + m * m) + max(finding, used)

    common: dict[str, Any] = {"exact": "exact", "max_memory": max_memory}
    common["what"] = f"two views of {n} points"
    (k_x, k_y), (X, Y), (chosen, chosen_y) = kernels, points, landmarks
    phi = whiten(k_x, X, spec, chosen, lambda s, m: needed(s, m, m), **common)
    m = phi.F.shape[1]
    return phi, whiten(k_y, Y, spec, chosen_y, lambda s, m_y: needed(s, m, m_y), **common)
