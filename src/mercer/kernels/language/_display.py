r"""Show a kernel as a LaTeX formula of k(x, z), or as an HTML tree.

A kernel class may define a LaTeX template, in which field names in angle brackets are replaced by
the values of the fields:

    _latex = r"\exp\left(-\left\|\frac{x - z}{<length_scale>}\right\|^2\right)"

A kernel without a template is written with its name and parameters, for example
`\operatorname{Spectrum}_{p = 3}\left(x, z\right)`.
"""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

import numpy as np

from .._base import Kernel
from .._dataclass import format_brief
from ..algebra._closure_rules import Power, Product, Scale, Sum

__all__ = ["formula", "html_tree"]


_SPECIAL = {c: rf"\{c}" for c in "{}$&#_%"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_WRAPPED_ONLY = "<kernel>"  # template of a wrapper whose formula is that of the wrapped kernel


def formula(kernel: Kernel) -> str:
    """Return the formula of k(x, z) in LaTeX."""
    match kernel:
        case Sum(terms):
            return " + ".join(map(formula, terms))
        case Product(factors):
            return r" \cdot ".join(map(_factor, factors))
        case Scale(inner, number):
            factor = _factor(inner)
            # Put a dot between two numbers, which would otherwise look like one number.
            separator = r" \cdot " if factor[0].isdigit() else r"\,"
            return f"{_value(number)}{separator}{factor}"
        case Power(inner, exponent):
            return rf"\left({formula(inner)}\right)^{{{_value(exponent)}}}"
    fields = dict(kernel._items())
    if kernel._latex:
        return re.sub(r"<(\w+)>", lambda match: _value(fields[match[1]]), kernel._latex)
    children = {path.partition("__")[0]: None for path, _ in kernel._children()}
    arguments = ", ".join(_value(fields[name]) for name in children) or "x, z"
    options = [
        rf"\text{{{_text(n)}}} = {_value(v)}" for n, v in fields.items() if n not in children
    ]
    subscript = f"_{{{', '.join(options)}}}" if options else ""
    return rf"\operatorname{{{_text(type(kernel).__name__)}}}{subscript}\left({arguments}\right)"


def _factor(kernel: Kernel) -> str:
    """Return the formula of a factor, in brackets if it is a sum or begins with a minus sign."""
    text = formula(kernel)
    while kernel._latex == _WRAPPED_ONLY:
        kernel = kernel.kernel  # type: ignore[attr-defined]
    needs_brackets = isinstance(kernel, Sum) or text.startswith(("-", r"\sum"))
    return rf"\left({text}\right)" if needs_brackets else text


def _value(value: Any) -> str:
    """Return the LaTeX code of the value of a field."""
    if isinstance(value, Kernel):
        return formula(value)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, (list, tuple)) and np.size(value) <= 12:
        return rf"\left({', '.join(map(_value, value))}\right)"
    return rf"\text{{{_text(value if isinstance(value, str) else format_brief(value))}}}"


def _number(value: float) -> str:
    """Return the LaTeX code of a number with up to six digits, in brackets if it is negative."""
    size = r"\infty" if math.isinf(value) else f"{abs(value):.6g}"
    digits, _, exponent = size.partition("e")
    text = rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits
    return f"(-{text})" if value < 0 else text


def _text(text: str) -> str:
    """Return the text with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(c, c) for c in text)


# --- Kernels as nested HTML lists, for notebooks.


def html_tree(*kernels: Kernel) -> str:
    """Return an HTML list of kernels, with nested lists of the kernels inside them.

    All names and values are escaped, so that they cannot contain HTML.
    """
    return f'<ul style="margin: 0">{"".join(map(_item, kernels))}</ul>' if kernels else ""


def _item(kernel: Kernel) -> str:
    """Return the list item of a kernel: its name, its parameters, and its children."""
    children = dict(kernel._children())
    child_fields = {path.partition("__")[0] for path in children}
    options = [f"{n}={format_brief(v)}" for n, v in kernel._items() if n not in child_fields]
    line = f"<b>{escape(type(kernel).__name__)}</b> {escape(', '.join(options))}".strip()
    return f"<li>{line}{html_tree(*children.values())}</li>"
