"""Helpers that generate the Python code printed by --show-code."""

from __future__ import annotations

from typing import Any

from ..tables import Source

__all__ = ["call_code", "open_table_code"]


def call_code(name: str, parameters: dict[str, Any]) -> str:
    """Return the source code of a call with keyword arguments."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def open_table_code(source: Source, read_options: dict[str, Any]) -> str:
    """Return the source code of the `open_table` call that opens a source."""
    path = "-" if source.name == "standard input" else source.name
    options = "".join(f", {key}={value!r}" for key, value in read_options.items())
    return f"open_table({path!r}{options})"
