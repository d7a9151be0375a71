"""Assertions that report the name of the violated law and the size of the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Laws"]


@dataclass(frozen=True)
class Laws:
    """Assertions about the object `subject`, with the default relative tolerance `rtol`."""

    subject: Any
    rtol: float

    def require(self, law: str, condition: Any, detail: str) -> None:
        """Raise an AssertionError with the name of the law unless the condition is true."""
        if not condition:
            raise AssertionError(f"law {law!r} fails for {self.subject!r}: {detail}")

    def require_close(
        self, law: str, got: Any, want: Any, what: str, scale: Any = None, rtol: float | None = None
    ) -> None:
        """Require |got - want| <= rtol * scale; the default scale is the largest |want|."""
        got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
        self.require(
            law, got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
        )
        scale = np.abs(want).max(initial=0.0) if scale is None else scale
        allowed = (self.rtol if rtol is None else rtol) * scale + np.finfo(float).tiny
        error, allowed = np.broadcast_arrays(np.abs(got - want), allowed)
        bad = ~(error <= allowed)  # NaN counts as an error
        if bad.any():
            worst = np.unravel_index(np.argmax(np.where(bad, error, -1)), error.shape)
            at = tuple(map(int, worst))
            where = f"{what} differ in {bad.sum()} of {bad.size} entries, most at index {at}"
            numbers = f"got {got[at]:.10g}, expected {want[at]:.10g}, allowed {allowed[at]:.3g}"
            self.require(law, False, f"{where}: {numbers}")
