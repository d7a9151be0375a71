"""Lazy imports: the submodules of a package are imported when they are first used (PEP 562).

The stub file `__init__.pyi` of a package lists its public names and their modules.  It contains
only imports and `__all__`, and type checkers read it, too.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ._deprecated import former_name


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, read from its stub file.

    Examples
    --------
    >>> import mercer
    >>> mercer.SVC  # imports the modules that SVC needs
    <class 'mercer.estimators.support_vector._svc.SVC'>
    >>> "SVR" in dir(mercer)
    True
    """
    public: list[str] = []  # names for `__all__`, without those imported as `import name as name`
    modules: dict[str, str | None] = {}  # module of each name; None if the name is a module
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            modules |= {part.name: node.module for part in node.names}
            public += [part.name for part in node.names if part.asname is None]

    def get(name: str) -> Any:
        if name not in modules:
            return former_name(package, name)
        source = modules[name]
        module = importlib.import_module(f"{package}.{source or name}")
        value = module if source is None else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*modules, *vars(sys.modules[package])}), public


class _OptionalType(type):
    """Metaclass of placeholders for classes whose modules may not have been imported."""

    def __instancecheck__(cls, value: Any) -> bool:
        module = sys.modules.get(cls.__module__)
        return module is not None and isinstance(value, getattr(module, cls.__name__))


@cache
def optional_type(module: str, name: str) -> Any:
    """Return a placeholder for a class of an optional dependency, for use in `isinstance`.

    The module is not imported.  Unless it is imported elsewhere, no object can be an instance of
    the class, so that `isinstance` returns False.

    Examples
    --------
    >>> from mercer._core._lazy import optional_type
    >>> Fraction = optional_type("fractions", "Fraction")
    >>> from fractions import Fraction as RealFraction
    >>> isinstance(RealFraction(1, 2), Fraction), isinstance(0.5, Fraction)
    (True, False)
    """
    return _OptionalType(name, (), {"__module__": module})
