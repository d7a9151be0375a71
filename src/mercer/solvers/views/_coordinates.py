"""Whitened coordinates of two views, exact or from landmarks, within one memory budget."""

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
    """Return the whitened coordinates of both views.

    Parameters
    ----------
    kernels : pair of Kernel
    points : pair of points
    spec : str
        "auto", "nystroem" or the name of an exact solver; see `whiten`.
    landmarks : pair of Landmarks
    workspace : function
        `workspace(n, m, m_y)` returns the bytes that the solver needs in addition to the
        coordinates, for n points with m and m_y coordinates.
    max_memory : int, str or None
        Memory budget.

    Returns
    -------
    phi, psi : Whitened

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
    tile_bytes = max(
        working_bytes(k, X, None, 0, threads) for k, X in zip(kernels, points, strict=True)
    )

    def needed(solver: str, m: int, m_y: int) -> int:
        """Return the peak memory in bytes.

        The peak occurs while the second view is computed (the first is already in memory), or
        while the solver uses both.
        """
        if solver == "nystroem":
            selection_bytes = replace(landmarks[1], rank=m_y).workspace(n)
            whitening_bytes = selection_bytes + 8 * (n * m_y + 3 * m_y * m_y)
        else:
            whitening_bytes = 24 * n * n
        solving_bytes = 8 * (n * m_y + m_y * m_y) + workspace(n, m, m_y)
        return tile_bytes + 8 * (n * m + m * m) + max(whitening_bytes, solving_bytes)

    common: dict[str, Any] = {"exact": "exact", "max_memory": max_memory}
    common["what"] = f"two views of {n} points"
    (k_x, k_y), (X, Y), (landmarks_x, landmarks_y) = kernels, points, landmarks
    phi = whiten(k_x, X, spec, landmarks_x, lambda s, m: needed(s, m, m), **common)
    m = phi.F.shape[1]
    return phi, whiten(k_y, Y, spec, landmarks_y, lambda s, m_y: needed(s, m, m_y), **common)
