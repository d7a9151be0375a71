"""The lowest supported versions of packages, with which `make test-minimum` runs the tests."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USERS = ("plot", "graphs", "dask", "cli", "explore")  # the other extras are for developers


@pytest.fixture(scope="module")
def tool():
    path = ROOT / "tools" / "minimum_versions.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lowest_versions_of_requirements(tool):
    found = tool.lowest(
        [
            "numpy>=2.0",
            "Pandas >= 2.2.2, != 2.3.0",
            "dask[array, dataframe]>=2024.8",
            "pytest_xdist>=3.2; sys_platform == 'linux'",
            "ruff",
            "torch==2.13.0",
            "mercer[all]",
        ]
    )
    assert found == {"numpy": "2.0", "pandas": "2.2.2", "dask": "2024.8", "pytest-xdist": "3.2"}


def test_two_lowest_versions_of_a_package(tool):
    assert tool.lowest(["numpy>=2.0", "numpy>=2.0"]) == {"numpy": "2.0"}
    with pytest.raises(ValueError, match=r"declares numpy>=2\.0 and numpy>=2\.1"):
        tool.lowest(["numpy>=2.0", "numpy>=2.1"])


def packages_of_users(project):
    """Return the packages that mercer imports or accepts data of."""
    extras = project["optional-dependencies"]
    users = [requirement for name in USERS for requirement in extras[name]]
    names = {re.match(r"[\w-]+", text)[0] for text in [*project["dependencies"], *users]}
    return names - {"mercer"} | {"pandas", "polars"}


def test_the_constraints_pin_every_package_of_users(tool, capsys, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    assert tool.main() == 0
    pinned = dict(line.split("==") for line in capsys.readouterr().out.splitlines())
    assert packages_of_users(tool.project()) <= set(pinned) and "python" not in pinned


def test_another_python_version(tool, capsys, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    assert tool.main() == 1
    captured = capsys.readouterr()
    assert not captured.out
    assert "with Python 3.11, but this is Python 3.13" in captured.err
    assert "make PYTHON=python3.11 test-minimum" in captured.err


def test_the_table_of_versions_in_the_documentation(tool):
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", page, re.M)
    names = packages_of_users(tool.project()) | {"python"}
    declared = {name: version for name, version in tool.declared().items() if name in names}
    assert {name.lower(): version for name, version in rows} == declared
