"""Packages whose parts are imported when they are used (PEP 562).

What there is, and where, stands once: in the stub beside the package, `__init__.pyi`, which type
checkers read as well.  It has nothing but imports and `__all__`.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["attach", "foreign"]


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from the stub beside its file.

    Examples
    --------
    >>> import mercer
    >>> mercer.SVC  # which imports what support vector machines need
    <class 'mercer.estimators.svm._svc.SVC'>
    >>> "SVR" in dir(mercer)
    True
    """
    public: list[str] = []  # `name as name` is there, and not in `__all__`
    homes: dict[str, str | None] = {}  # the module of each name; None for a module itself
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            homes |= {part.name: node.module for part in node.names}
            public += [part.name for part in node.names if part.asname is None]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = importlib.import_module(f"{package}.{home or name}")
        value = module if home is None else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*homes, *vars(sys.modules[package])}), public


class _Foreign(type):
    """A class of a module of others, which is not imported for its sake."""

    def __instancecheck__(cls, value: Any) -> bool:
        module = sys.modules.get(cls.__module__)
        return module is not None and isinstance(value, getattr(module, cls.__name__))


@cache
def foreign(module: str, name: str) -> Any:
    """Return what stands for a class in `isinstance`: nothing is one before its module is imported.

    Examples
    --------
    >>> from mercer._lazy import foreign
    >>> Fraction = foreign("fractions", "Fraction")
    >>> from fractions import Fraction as theirs
    >>> isinstance(theirs(1, 2), Fraction), isinstance(0.5, Fraction)
    (True, False)
    """
    return _Foreign(name, (), {"__module__": module})
