"""What is written runs: docstrings, the README, the docs, the examples."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(m.name for m in pkgutil.walk_packages(mercer.__path__, "mercer."))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "SUMMARY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
ABSTRACT = {"Kernel", "Radial", "DotProduct", "Prepared", "Wrapper", "GraphKernel"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), verbose=False)
    assert result.failed == 0


def test_every_public_kernel_has_an_example():
    for name in mercer.kernels.__all__:
        thing = getattr(mercer.kernels, name)
        if isinstance(thing, type) and not name.startswith("_"):
            assert name in ABSTRACT or ">>>" in thing.__doc__, name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_on_a_page_runs(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)
    namespace = {"__name__": "page"}
    for block in blocks:  # one after the other, as a reader would
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_on_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(example):
    picture = ROOT / "out" / f"{example.stem}.png"
    picture.unlink(missing_ok=True)
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "savefig" in example.read_text("utf-8"):
        assert picture.stat().st_size > 20_000
    if example.stem == "digits_kernel_pca":  # it says what it did
        for words in ("9 components", "the exact total tr(HKH)", "residual", "time", "memory"):
            assert words in done.stdout
