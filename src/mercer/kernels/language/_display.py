r"""Show a kernel as a LaTeX formula of k(x, z), or as an HTML tree.

`TEMPLATES` contains the formulas of classes and their subclasses.  Field names in angle brackets
are replaced by the values of the fields.  A kernel without a template is written with its name and
parameters, for example `\operatorname{Spectrum}_{p = 3}\left(x, z\right)`.
"""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

import numpy as np

from .._base import Kernel
from .._dataclass import format_brief
from ..algebra._closure_rules import Exp, Power, Product, Scale, Sum
from ..algebra._input_maps import Periodic
from ..algebra._wrappers import SameValues
from ..categories._category_kernels import Equal
from ..sets._set_kernels import Intersection, Jaccard
from ..vectors._constant import Constant, White
from ..vectors._dot_product import Bilinear, Cosine, Linear, Polynomial, Sigmoid
from ..vectors._histogram import AdditiveChi2, Chi2, HistogramIntersection, Laplacian
from ..vectors._radial_kernels import (
    RBF,
    Cauchy,
    Distance,
    InverseMultiquadric,
    Multiquadric,
    RationalQuadratic,
)

_SCALED = r"\left\|\frac{x - z}{<length_scale>}\right\|"  # |x - z| / l
_CHI2_SUM = r"\sum_c \frac{(x_c - z_c)^2}{x_c + z_c}"
TEMPLATES: dict[type[Kernel], str] = {
    AdditiveChi2: "-" + _CHI2_SUM,
    Bilinear: r"x^\top A z",
    Cauchy: rf"\left(1 + {_SCALED}^2\right)^{{-1}}",
    Chi2: rf"\exp\left(-<gamma> {_CHI2_SUM}\right)",
    Constant: "<value>",
    Cosine: r"\frac{x^\top z}{\|x\|\,\|z\|}",
    Distance: rf"-{_SCALED}^{{<exponent>}}",
    Equal: r"\tfrac{1}{d} \sum_{c=1}^d [x_c = z_c]",
    Exp: r"\exp\left(<kernel>\right)",
    HistogramIntersection: r"\sum_c \min(x_c, z_c)",
    Intersection: r"|x \cap z|",
    InverseMultiquadric: rf"\left(1 + {_SCALED}^2\right)^{{-1/2}}",
    Jaccard: r"\frac{|x \cap z|}{|x \cup z|}",
    Laplacian: rf"\exp\left(-{_SCALED}_1\right)",
    Linear: r"x^\top z",
    Multiquadric: rf"-\left(1 + {_SCALED}^2\right)^{{1/2}}",
    Periodic: (
        r"\exp\left(-\frac{2}{<length_scale>^2} "
        r"\sum_c \sin^2 \frac{\pi (x_c - z_c)}{<period>}\right)"
    ),
    Polynomial: r"\left(<gamma>\,x^\top z + <coef0>\right)^{<degree>}",
    RBF: rf"\exp\left(-\tfrac{{1}}{{2}}{_SCALED}^2\right)",
    RationalQuadratic: (rf"\left(1 + \frac{{1}}{{2 \cdot <alpha>}}{_SCALED}^2\right)^{{-<alpha>}}"),
    SameValues: "<kernel>",
    Sigmoid: r"\tanh\left(<gamma>\,x^\top z + <coef0>\right)",
    White: r"<noise>\,\delta_{xz}",
}

_SPECIAL = {c: rf"\{c}" for c in "{}$&#_%"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


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
    template = next((TEMPLATES[cls] for cls in type(kernel).__mro__ if cls in TEMPLATES), "")
    if template:
        return re.sub(r"<(\w+)>", lambda match: _value(fields[match[1]]), template)
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
    while isinstance(kernel, SameValues):
        kernel = kernel.kernel
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
