"""Print pip constraints that pin each package to the lowest version that pyproject.toml allows.

    python tools/minimum_versions.py > constraints.txt

`make test-minimum` installs mercer with these constraints and runs the tests, which shows that the
declared minimum versions are true. Only requirements of the form `name>=version` are pinned. Other
packages, such as type checkers and packages that are installed because others need them, get their
newest version that is compatible with the pinned ones.

The interpreter that runs this file must be the lowest Python version, because old releases of
compiled packages have no wheels for new Python versions.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([\w.]+)\s*(?:,[^;]*)?(?:;.*)?")


def lowest(requirements: Iterable[str]) -> dict[str, str]:
    """Return the lowest version of each package for which the requirements contain one."""
    found: dict[str, str] = {}
    for requirement in requirements:
        if not (match := REQUIREMENT.fullmatch(requirement)):
            continue
        name, version = match[1].lower().replace("_", "-"), match[2]
        if found.setdefault(name, version) != version:
            raise ValueError(f"pyproject.toml declares {name}>={found[name]} and {name}>={version}")
    return found


def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]


def declared() -> dict[str, str]:
    """Return the lowest versions of Python, of the dependencies and of all extras."""
    metadata = project()
    extras = metadata["optional-dependencies"].values()
    requirements = [*metadata["dependencies"], *(r for extra in extras for r in extra)]
    return lowest([f"python{metadata['requires-python']}", *requirements])


def main() -> int:
    """Print the constraints; return the exit status."""
    versions = declared()
    python, running = versions.pop("python"), ".".join(map(str, sys.version_info[:2]))
    if running != python:
        print(
            f"The lowest versions are tested with Python {python}, but this is Python {running}.\n"
            f"Name the interpreter: make PYTHON=python{python} test-minimum",
            file=sys.stderr,
        )
        return 1
    for name, version in sorted(versions.items()):
        print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
