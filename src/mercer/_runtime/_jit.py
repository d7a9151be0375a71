"""Compiled loops: no lock on the interpreter, kept on disk where there is a place for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["jit"]


def jit(*fastmath: str) -> Callable[[Callable], Any]:
    """Compile a function at its first call; "contract", fusing a * b + c, is always allowed."""

    def compiled(function: Callable) -> Any:
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": {"contract", *fastmath},
        }
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder can be written to: compile again in every process
            return numba.njit(**options)(function)

    return compiled
