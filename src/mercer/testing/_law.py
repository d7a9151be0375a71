"""How a law fails: with its name and with numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["close", "hold", "unchanged"]


def hold(law: str, subject: Any, condition: Any, detail: str) -> None:
    """Raise an AssertionError naming the law unless the condition holds."""
    if not condition:
        raise AssertionError(f"law {law!r} fails for {subject!r}: {detail}")


def close(
    law: str, subject: Any, got: Any, want: Any, rtol: float, what: str, scale: Any = None
) -> None:
    """Require |got - want| <= rtol * scale, by default relative to the largest entry wanted."""
    got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
    if got.shape != want.shape:
        hold(law, subject, False, f"{what}: shape {got.shape}, expected {want.shape}")
    if scale is None:
        scale = np.abs(want).max(initial=0.0)
    error, allowed = np.abs(got - want), rtol * scale + np.finfo(float).tiny
    bad = ~(error <= allowed)  # NaN is bad
    if bad.any():
        where = tuple(map(int, np.unravel_index(np.argmax(np.where(bad, error, -1)), error.shape)))
        hold(
            law,
            subject,
            False,
            f"{what} differ in {bad.sum()} of {bad.size} entries, most at {where}: "
            f"got {got[where]:.10g}, expected {want[where]:.10g}, "
            f"allowed {np.broadcast_to(allowed, error.shape)[where]:.3g}",
        )


def unchanged(law: str, subject: Any, now: Any, before: Any) -> None:
    for a, b in zip(now, before, strict=True):
        if sp.issparse(a):
            same = a.dtype == b.dtype and (a != b).nnz == 0
        elif isinstance(a, np.ndarray):
            same = a.dtype == b.dtype and np.array_equal(a, b)
        else:
            same = list(a) == list(b)
        hold(law, subject, same, "the points were changed in place")
