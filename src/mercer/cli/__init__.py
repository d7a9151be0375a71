"""`mercer`, the command: kernel methods from the shell.

Commands are thin: a file becomes a table (`mercer.tables`), a recipe makes points of it, and an
estimator of mercer does the rest.  The commands import click and nothing heavy, so that help and
completion answer at once.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command `mercer`, and leave with its exit code."""
    missing = [name for name in ("click", "rich") if not _is_installed(name)]
    if missing:
        sys.exit(
            f"mercer: the command needs {' and '.join(missing)}, not installed here - usually "
            f"because mercer was installed without its extra - try: pip install 'mercer[cli]'"
        )
    from ._app import main as run

    run(arguments)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # the import is blocked
        return False
