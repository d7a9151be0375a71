"""Pieces of the Python that a command prints for --show-code."""

from __future__ import annotations

from typing import Any

from ..tables import Source

__all__ = ["called", "opened"]


def called(name: str, parameters: dict[str, Any]) -> str:
    """Return the text of a call with keywords."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def opened(source: Source, reading: dict[str, Any]) -> str:
    """Return the text that opens a source again; the standard input is read from there."""
    path = "-" if source.name == "standard input" else source.name
    options = "".join(f", {key}={value!r}" for key, value in reading.items())
    return f"open_table({path!r}{options})"
