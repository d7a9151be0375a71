"""The names of the language, and what somebody who wrote another one may have meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable as Function
from collections.abc import Iterable
from functools import cache, partial
from importlib import import_module
from typing import Any

from .._base import Kernel
from .._fields import Value
from .._sklearn import KERNEL_NAMES, from_name

__all__ = ["CONSTANTS", "SHORT", "meant", "vocabulary"]

CONSTANTS = {"None": None, "True": True, "False": False, "inf": float("inf")}

# scikit-learn's names, which need no brackets: rbf, poly(degree=2)
SHORT: dict[str, Function[..., Kernel]] = {name: partial(from_name, name) for name in KERNEL_NAMES}

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
    """Return the kernels and bases of mercer.kernels by name, and slices of columns."""
    from mercer import kernels

    public = {name: vars(kernels)[name] for name in kernels.__all__}
    # the one kernel that lives in a room above this one, which is looked for when text is read
    public["MultipleKernel"] = import_module("mercer.learning").MultipleKernel
    found = {
        name: cls
        for name, cls in public.items()
        if inspect.isclass(cls) and issubclass(cls, Value) and not inspect.isabstract(cls)
    }
    return found | SHORT | {"slice": slice}


def meant(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean RBF?" for gauss, or nothing if no known name is near."""
    if len(name) > 40:
        return ""
    simple, known = _simple(name), sorted(known, reverse=True)  # RBF rather than rbf
    table = {_simple(one): one for one in known}
    near = difflib.get_close_matches(simple, table, 1)
    synonyms = (one for one in known if simple in _SYNONYMS.get(one, "").split())
    found = table.get(simple) or next(synonyms, None) or (table[near[0]] if near else None)
    return f"; did you mean {found}?" if found else ""


def _simple(name: str) -> str:
    return name.lower().replace("_", "").removesuffix("kernel") or name
