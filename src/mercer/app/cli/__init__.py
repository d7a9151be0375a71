"""The `mercer` command: kernel methods from the shell.

Each command reads a file into a table (`mercer.tables`), preprocesses its columns with a recipe
and calls an estimator.  Command modules import only click and packages that import their modules
when a name is first used, such as `mercer.tables`, so that `--help` and completion are fast.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the `mercer` command and exit with its exit code."""
    missing = [name for name in ("click", "rich") if not _is_installed(name)]
    if missing:
        sys.exit(
            f"mercer: the command line needs {' and '.join(missing)}, not installed by default; "
            f"to install: pip install 'mercer[cli]'"
        )
    from ._main import main as run

    run(arguments)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # for example if sys.modules[name] is None
        return False
