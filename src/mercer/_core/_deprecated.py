"""Former import paths and names, which work for one more release with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = [
    "FORMER_MODULES",
    "FORMER_NAMES",
    "former_name",
    "former_names",
    "install_former_modules",
]

# Packages that moved: former path -> present path.
FORMER_MODULES = {
    "mercer.cli": "mercer.app.cli",
    "mercer.comparison": "mercer.app.comparison",
    "mercer.explorer": "mercer.app.explorer",
    "mercer.gp": "mercer.models.gp",
    "mercer.learning": "mercer.models.kernel_learning",
    "mercer.maps": "mercer.models.embedding",
    "mercer.means": "mercer.models.mean_embedding",
    "mercer.preimage": "mercer.expansion.preimage",
    "mercer.reduce": "mercer.expansion.reduced_set",
    "mercer.spectral": "mercer.models.kpca",
    "mercer.tables": "mercer.app.tables",
}

# Public names that changed, by package: former name -> present name, with its package if it moved.
FORMER_NAMES: dict[str, dict[str, str]] = {
    "mercer.gram": {
        "CountSketchMap": "mercer.estimators.CountSketchMap",
        "FlippedMap": "mercer.estimators.FlippedMap",
    },
}


def _warn(former: str, present: str, stacklevel: int) -> None:
    """Warn that a name will be removed, and name its replacement."""
    warnings.warn(
        f"{former} is deprecated and will be removed in the next release; use {present} instead",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def former_name(package: str, name: str) -> Any:
    """Return the object that had `name` in `package`, with a DeprecationWarning.

    Parameters
    ----------
    package : str
        Full name of the package, such as "mercer.solvers".
    name : str
        An attribute that the package does not have.

    Raises
    ------
    AttributeError
        If the package never had this name.
    """
    former = f"{package}.{name}"
    if former in FORMER_MODULES:
        return importlib.import_module(former)  # the finder below warns
    present = FORMER_NAMES.get(package, {}).get(name)
    if present is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home, _, attribute = present.rpartition(".")
    _warn(former, present if home else f"{package}.{present}", stacklevel=3)
    return getattr(importlib.import_module(home or package), attribute)


def former_names(package: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that has former names and imports its parts eagerly."""
    return lambda name: former_name(package, name)


class _FormerModules(MetaPathFinder, Loader):
    """Import a package from its present path when a former path is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in FORMER_MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        present = FORMER_MODULES[module.__name__]
        _warn(module.__name__, present, stacklevel=2)
        # The import system returns what is in sys.modules after this call.
        sys.modules[module.__name__] = importlib.import_module(present)


def install_former_modules() -> None:
    """Make the former import paths importable; called once by `import mercer`."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
