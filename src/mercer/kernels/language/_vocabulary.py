"""The names that kernel expressions may use, and suggestions for misspelt or unknown names."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable as Function
from collections.abc import Iterable
from functools import cache, partial
from importlib import import_module
from typing import Any

from .._base import Kernel
from .._dataclass import Value
from .._sklearn_kernels import KERNEL_NAMES, from_name

CONSTANTS = {"None": None, "True": True, "False": False, "inf": float("inf")}

# scikit-learn's kernel names.  They may be used with or without arguments: rbf, poly(degree=2).
SKLEARN_NAMES: dict[str, Function[..., Kernel]] = {
    name: partial(from_name, name) for name in KERNEL_NAMES
}

# For each kernel, its names in other libraries, simplified by `_simplify`.
_SYNONYMS = {
    "RBF": "gauss gaussian normal se squaredexponential exponentiatedquadratic",
    "Matern": "ou ornsteinuhlenbeck exponential",
    "RationalQuadratic": "rq ratquad",
    "Periodic": "expsinesquared sine seasonal per stdperiodic",
    "Linear": "dot dotproduct lin inner",
    "Polynomial": "quadratic cubic",
    "White": "noise whitekernel whitenoise nugget",
    "Constant": "constantkernel bias const",
    "Sigmoid": "tanh mlp neural",
    "Cosine": "cosinesimilarity angle",
    "InverseMultiquadric": "imq",
    "ThinPlate": "tps thinplatespline spline",
    "Distance": "energy brownian",
    "HistogramIntersection": "histogram min minimum",
    "Jaccard": "tanimoto",
    "Spectrum": "ngram kmer string",
    "Subsequence": "ssk gapweighted",
    "WeisfeilerLehman": "wl weisfeiler",
    "RandomWalk": "rw walk",
    "Power": "exponentiation pow",
    "Sum": "add plus",
    "Product": "mul times prod",
    "Select": "columns activedims",
    "Shift": "translate offset",
    "Stretch": "ard",
    "Normalized": "normalised normalize normalise",
}


@cache
def vocabulary() -> dict[str, Any]:
    """Return a dictionary {name: class or function} of all names that an expression may use.

    These are the kernels and basis functions of mercer.kernels, scikit-learn's kernel names, and
    `slice`.
    """
    from mercer import kernels

    public = {name: vars(kernels)[name] for name in kernels.__all__}
    # Import MultipleKernel here, not at the top, because its package imports this module.
    public["MultipleKernel"] = import_module("mercer.models.kernel_learning").MultipleKernel
    classes = {
        name: cls
        for name, cls in public.items()
        if inspect.isclass(cls) and issubclass(cls, Value) and not inspect.isabstract(cls)
    }
    return classes | SKLEARN_NAMES | {"slice": slice}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name, such as "; did you mean RBF?" for "gauss".

    The result is "" if no known name is similar.
    """
    if len(name) > 40:
        return ""
    # If two names simplify to the same name, the last one in the table is suggested.  Reverse
    # sorting puts RBF after rbf.
    simple, known = _simplify(name), sorted(known, reverse=True)
    table = {_simplify(other): other for other in known}
    close = difflib.get_close_matches(simple, table, 1)
    synonyms = (other for other in known if simple in _SYNONYMS.get(other, "").split())
    best = table.get(simple) or next(synonyms, None) or (table[close[0]] if close else None)
    return f"; did you mean {best}?" if best else ""


def _simplify(name: str) -> str:
    """Return the name in lower case, without underscores and without the ending "kernel"."""
    return name.lower().replace("_", "").removesuffix("kernel") or name
