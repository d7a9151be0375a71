"""Short displays of results in notebooks and in IPython."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from html import escape
from numbers import Real
from typing import Any

import numpy as np

# Colours are inherited from the notebook, so that the text is readable on light and dark pages.
_INHERITED = "color:inherit;background:none"
_MAX_LINE = 100  # characters of the repr of a result


def html_result(title: str, rows: Iterable[tuple[str, str]] = (), text: str = "") -> str:
    """Return a result as HTML: a title, a table of names and values, and preformatted text.

    Parameters
    ----------
    title : str
        The heading, usually the name of the class.
    rows : iterable of (str, str)
        Names and values.
    text : str
        Text whose line breaks and spaces are kept.

    Examples
    --------
    >>> from mercer._core import html_result
    >>> html_result("Report", [("status", "converged")]).count("<tr>")
    1
    """
    cell = f"text-align:left;vertical-align:top;padding:0 1em 0 0;{_INHERITED}"
    body = "".join(
        f'<tr><th style="{cell};font-weight:normal;opacity:0.7">{escape(name)}</th>'
        f'<td style="{cell}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    table = f'<table style="margin:0;border:none;{_INHERITED}">{body}</table>' if body else ""
    block = (
        f'<pre style="margin:0;overflow-x:auto;{_INHERITED}">{escape(text)}</pre>' if text else ""
    )
    return f'<div class="mercer-result"><strong>{escape(title)}</strong>{table}{block}</div>'


class NotebookResult:
    """Mixin for results: a table in notebooks, `str` in IPython, and a repr in one line.

    By default the notebook shows `str` if the class defines it, and otherwise the fields of the
    dataclass.  A dataclass needs ``repr=False`` to inherit the short repr.
    """

    def _display_rows(self) -> list[tuple[str, str]]:
        """Return names and values for the notebook; an empty list shows `str` instead."""
        if type(self).__str__ is not object.__str__ or not dataclasses.is_dataclass(self):
            return []
        return [
            (field.name.replace("_", " "), format_value(value))
            for field in dataclasses.fields(self)
            if field.repr and (value := getattr(self, field.name)) is not None
        ]

    def __repr__(self) -> str:
        name, line = type(self).__name__, str(self).partition("\n")[0]
        line = line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 3]}..."
        return f"<{name}: {line}>"

    def _repr_html_(self) -> str:
        rows = self._display_rows()
        return html_result(type(self).__name__, rows, "" if rows else str(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        rows = [] if cycle else self._display_rows()
        width = max((len(name) for name, _ in rows), default=0)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        printer.text("\n".join([type(self).__name__, *lines]) if rows else str(self))


def format_value(value: Any) -> str:
    """Return a value with four digits, and an array by its shape if it is long."""
    if isinstance(value, NotebookResult):
        return repr(value)
    if isinstance(value, np.ndarray):
        is_short = value.ndim <= 1 and value.size <= 8
        return np.array2string(value, precision=4) if is_short else f"array of shape {value.shape}"
    if isinstance(value, Real) and not isinstance(value, (int, np.integer, bool)):
        return f"{float(value):.4g}"
    if isinstance(value, (tuple, list)) and len(value) <= 8:
        return ", ".join(map(format_value, value))
    return str(value)
