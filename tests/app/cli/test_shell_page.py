"""Every command in the README and the docs runs, and help does not import the library."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from shell import ENVIRONMENT

from mercer.app.cli._main import app
from tools import page_output

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page):
    text = page.read_text("utf-8")
    if page_output.has_marker(text, "run shell"):
        return []  # tests/test_docs.py runs these commands and compares their output
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.name
)
def test_commands_on_a_page_run(page, mercer, tmp_path):
    """A plain `mercer` command runs in this process, any other line in a shell."""
    shim = tmp_path / "bin" / "mercer"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from mercer.app.cli import main; main()" "$@"\n'
    )
    shim.chmod(0o755)
    environment = {**ENVIRONMENT, "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}"}
    for line in commands(page):  # in the order of the page
        words = shlex.split(line)
        place = words[-1] if words[-2] == ">" else None
        if words[0] == "mercer" and "|" not in words:
            ran = mercer(*words[1 : -2 if place else None])
            assert ran.code == 0, f"{line}\n{ran}"
            if place:
                Path(place).write_text(ran.out)
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, env=environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_every_command_is_on_the_page():
    said = (ROOT / "docs" / "shell.md").read_text("utf-8")
    names = {name for name in app.commands if name != "test"} | {"test two-sample"}
    assert [name for name in sorted(names) if f"mercer {name}" not in said] == []


def test_help_imports_nothing_heavy():
    """`--help` of the group and of every command, all in one new process."""
    tests = app.commands["test"].commands
    calls = [[], *([name] for name in app.commands), *(["test", name] for name in tests)]
    code = (
        "import sys\nfrom mercer.app.cli import main\n"
        f"for call in {calls!r}:\n"
        "    try:\n        main([*call, '--help'])\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        "heavy = {'sklearn', 'numba', 'numpy', 'scipy', 'rich', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: mercer") == len(calls)
