"""Rules of the code base: layers, imports, and constructs that a library must not contain."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import mercer
from mercer._version import __version__

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mercer"
FILES = sorted(PACKAGE.rglob("*.py"))
PICKLES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}

# Matches /name/name, unless the first slash belongs to a word, a URL or a relative path.
ABSOLUTE_PATH = re.compile(r"(?<![\w./:~*)\]}>-])/[A-Za-z]\w*/\w")

SOURCES = {path: path.read_text("utf-8") for path in FILES}


def faults(check, files=FILES):
    """Return the modules for which `check` finds something, with what it finds."""
    found = {path.relative_to(PACKAGE).as_posix(): list(check(path)) for path in files}
    return {name: faults for name, faults in found.items() if faults}


@cache
def parsed(path):
    return ast.parse(SOURCES[path])


def run(*command):
    """Run a command at the root of the repository; if it fails, show its output."""
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def forbidden_constructs(source):
    """Yield (line, name) for every construct in `source` that a library must not contain."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert():
                # python -O removes assertions, and their messages do not help users
                yield node.lineno, "assert"
            case ast.Call(func=ast.Name(id="eval" | "exec" | "print" as name)):
                yield node.lineno, name
            case ast.Import(names=names) if PICKLES & {a.name.split(".")[0] for a in names}:
                yield node.lineno, "pickle"
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in PICKLES:
                yield node.lineno, "pickle"
            case ast.keyword(arg="allow_pickle", value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield node.lineno, "pickle"


def early_returns(source):
    """Yield (line, name) for every `return` in a test function.

    A test that returns early passes without a check.  A test that cannot run is skipped with a
    reason or not generated; `hypothesis.assume` rejects an example.
    """
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test"):
            nodes = list(function.body)
            while nodes:
                node = nodes.pop()
                if isinstance(node, ast.Return):
                    yield node.lineno, function.name
                if not isinstance(node, ast.FunctionDef | ast.ClassDef):  # defined in the test
                    nodes += ast.iter_child_nodes(node)


def filters_of_every_category(source):
    """Yield (line, function) for each filter that also applies to deprecation warnings.

    A filter is specific if it names a category or a message, or if it turns warnings into errors.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="simplefilter" as name), args=[action], keywords=[]
            ):
                if not (isinstance(action, ast.Constant) and action.value == "error"):
                    yield node.lineno, name
            case ast.Call(
                func=ast.Attribute(attr="filterwarnings" as name),
                args=[ast.Constant(value="ignore" | "always" | "default" | "once" | "module")],
                keywords=[],
            ):
                yield node.lineno, name


def test_layers():
    run(Path(sys.executable).with_name("lint-imports"), "--no-cache")


def test_the_table_of_layers_is_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [
        {name for name in layer.split(" | ") if not name.startswith("(")}
        for layer in contract["contracts"][0]["layers"]
    ]
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("\n## Layers\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", section, re.M)
    table = [set(re.findall(r"`(\w+)`", row)) for row in rows]
    assert table == [layer for layer in layers if layer]


def private_imports(path):
    """Yield the imports of a module from private modules of another package."""
    package = path.relative_to(PACKAGE).parts[0]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            depth = len(path.relative_to(PACKAGE).parts) - node.level
            parts = [*path.relative_to(PACKAGE).parts[:depth], *node.module.split(".")]
            if parts[0] != package and any(part.startswith("_") for part in parts[1:]):
                yield node.lineno, ".".join(parts)


def test_no_module_imports_private_modules_of_another_package():
    assert len(FILES) > 200 and faults(private_imports) == {}


def linear_algebra(path):
    """Yield the functions and modules of linear algebra that a module uses."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Attribute(attr="linalg" | "eigh" | "svd" | "cholesky" as name):
                yield node.lineno, name
            case ast.ImportFrom(module=str(name)) if name.startswith("scipy.linalg"):
                yield node.lineno, name


def test_estimators_do_no_linear_algebra():
    files = [path for path in FILES if path.is_relative_to(PACKAGE / "estimators")]
    assert len(files) > 20 and faults(linear_algebra, files) == {}
    assert faults(linear_algebra)  # other packages do


def test_import_is_silent_and_leaves_matplotlib_alone():
    code = "import mercer, sys; assert 'matplotlib' not in sys.modules"
    run(sys.executable, "-W", "error", "-c", code)


def test_version():
    assert mercer.__version__ == __version__


def test_every_module_has_a_docstring():
    assert [path for path in FILES if not ast.get_docstring(parsed(path))] == []


def test_no_module_has_a_forbidden_construct():
    assert faults(lambda path: forbidden_constructs(SOURCES[path])) == {}


def test_no_test_returns_early():
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = {path.name: list(early_returns(path.read_text("utf-8"))) for path in files}
    assert len(files) > 100 and {name: lines for name, lines in found.items() if lines} == {}


def test_warnings_of_coming_removals_are_not_filtered():
    """Neither mercer nor its tests hide a DeprecationWarning or FutureWarning of a dependency."""
    tests = {path: path.read_text("utf-8") for path in sorted(ROOT.glob("tests/**/*.py"))}
    assert sum("simplefilter" in source for source in tests.values()) > 20
    found = {
        str(path.relative_to(ROOT)): list(filters_of_every_category(source))
        for path, source in {**SOURCES, **tests}.items()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("warnings.simplefilter('ignore')", [1]),
        ("warnings.simplefilter('always')", [1]),
        ("warnings.simplefilter('ignore', UserWarning)", []),
        ("warnings.simplefilter('ignore', category=UserWarning)", []),
        ("warnings.simplefilter('error')", []),
        ("warnings.filterwarnings('ignore')", [1]),
        ("warnings.filterwarnings('ignore', 'nu=0.5 leaves no margin')", []),
        ("@pytest.mark.filterwarnings('ignore')\ndef test(): pass", [1]),
        ("@pytest.mark.filterwarnings('ignore::UserWarning')\ndef test(): pass", []),
    ],
)
def test_filters_of_every_category_are_found_precisely(source, lines):
    assert [line for line, _ in filters_of_every_category(source)] == lines


def test_no_module_contains_an_absolute_path():
    assert faults(lambda path: filter(ABSOLUTE_PATH.search, SOURCES[path].splitlines())) == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("assert x", ["assert"]),
        ("print(x)", ["print"]),
        ("f(eval('x'))", ["eval"]),
        ("import os, pickle", ["pickle"]),
        ("from pickle import loads", ["pickle"]),
        ("np.load(f, allow_pickle=True)", ["pickle"]),
        ("np.load(f, allow_pickle=False)", []),
        ("'print(x)'; model.eval(); pprint(x)  # assert", []),
    ],
)
def test_forbidden_constructs_are_found_precisely(source, names):
    assert [name for _, name in forbidden_constructs(source)] == names


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def test():\n    if x:\n        return\n    assert y", [3]),
        ("class T:\n    def test_x(self):\n        return", [3]),
        ("def test():\n    def f():\n        return 1\n    assert f()", []),
        ("def helper():\n    return 1", []),
    ],
)
def test_early_returns_are_found_precisely(source, lines):
    assert [line for line, _ in early_returns(source)] == lines


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("open('/home/someone/x.npz')", True),
        ("# see /usr/share/x", True),
        ("https://doi.org/10.1000/a/b", False),
        ("mean/median/mode", False),
        ("a / b / c, (a + b)/c/d, ../x/y, ./x/y, ~/x/y", False),
    ],
)
def test_absolute_paths_are_found_precisely(line, found):
    assert bool(ABSOLUTE_PATH.search(line)) == found
