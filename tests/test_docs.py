"""All code in docstrings, the README, the docs and the examples runs."""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import pytest

import mercer
from tools import page_output

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(m.name for m in pkgutil.walk_packages(mercer.__path__, "mercer."))
PAGES = page_output.pages()


def is_slow(page):
    """Return True for the tutorials whose Python code needs several seconds."""
    runs_shell = page_output.has_marker(page.read_text("utf-8"), "run shell")
    return page.parent.name == "tutorials" and not runs_shell


def page_parameter(page):
    """Return a page as a test parameter, marked `data` if it needs external data.

    Slow tutorials are marked `long`; `test_names_in_slow_code_exist` checks them in every run.
    """
    marks = [pytest.mark.long] if is_slow(page) else []
    if page_output.has_marker(page.read_text("utf-8"), "needs data"):
        marks.append(pytest.mark.data)
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


ROOMS = [
    *("mercer", "mercer.kernels", "mercer.kernels.validity", "mercer.gram", "mercer.solvers"),
    *(
        "mercer.models.mean_embedding",
        "mercer.models.gp",
        "mercer.models.kernel_learning",
        "mercer.plotting",
        "mercer.datasets",
    ),
    *("mercer.models.embedding", "mercer.tables", "mercer.testing"),
]
NAMES = [
    (room, name)
    for room in ROOMS
    for name in importlib.import_module(room).__all__
    if inspect.isclass(thing := getattr(importlib.import_module(room), name))
    or inspect.isfunction(thing)
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Examples that take more than a second: `pytest -m long` and `make docs` run them.
SLOW_EXAMPLES = {
    *("deep_autoencoder", "dna", "feature_maps", "karhunen_loeve", "kernel_ica", "kernel_pls"),
    "kernel_search",
    *("manifold_kernels", "mixed_table", "out_of_core", "perceptron_mistakes", "preimage_path"),
    *("primal_and_dual", "reduced_set", "svm_gamma", "svm_gap"),
}


def example_parameter(example):
    marks = [pytest.mark.long] if example.stem in SLOW_EXAMPLES else []
    return pytest.param(example, id=example.name, marks=marks)


class Finder(doctest.DocTestFinder):
    """A doctest finder that also finds the examples of decorated functions."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    runner, module = doctest.DocTestRunner(verbose=False), importlib.import_module(name)
    for examples in Finder().find(module, module.__name__):
        runner.run(examples)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("page", list(map(page_parameter, PAGES)))
def test_code_on_a_page_runs_and_its_output_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    if page_output.has_marker(text, "needs data") and not page_output.data_folder().is_dir():
        pytest.skip("no folder of data sets: set MERCER_DATA")
    if page_output.has_marker(text, "run shell"):
        pytest.importorskip("click")
        pytest.importorskip("rich")
    problems = page_output.outdated(text, page_output.run_page(text, page.name))
    assert not problems, "\n".join([*problems, "run python tools/page_output.py"])


def test_outputs_on_pages_are_compared():
    assert page_output.matches("a 1.0003 [ 2]", "a 1.0004 [2]".replace("[2]", "[ 2]"))
    assert not page_output.matches("a 1.01", "a 1.00") and not page_output.matches("3", "4")
    assert page_output.matches("took ...\ndone", "took long\ndone")
    assert page_output.matches("0.2 s, residual 1e-15", "3 s, residual 8e-16")
    assert page_output.matches("1.00", "1.04", rtol=0.05)
    assert page_output.tolerance("# Title") == 1e-3
    assert page_output.tolerance("<!-- needs data -->\n<!-- numbers to 5 % -->\n# Title") == 0.05
    assert not page_output.matches("", "printed") and not page_output.matches("shown", "")


def test_markers_of_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "# Title\n\n```sh\necho a\nprintf b\n```\n\n```text\na\nb\n```\n"
    assert page_output.run_page(page, "page") == []  # an ordinary page: shell blocks do not run
    marked = f"<!-- needs data -->\n<!-- run shell -->\n\n{page}"
    assert page_output.has_marker(marked, "needs data") and not page_output.has_marker(page, "x")
    results = page_output.run_page(marked, "page")
    assert [printed for _, printed in results] == ["a\nb"]
    assert page_output.outdated(marked, results) == []
    assert page_output.updated(marked, results) == marked
    with pytest.raises(RuntimeError, match="exit code 1"):
        page_output.run_command("false")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_on_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", list(map(example_parameter, EXAMPLES)))
def test_examples_run(example, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    picture = ROOT / "out" / f"{example.stem}.png"
    picture.unlink(missing_ok=True)
    with plt.rc_context():
        plt.switch_backend("Agg")
        runpy.run_path(str(example), run_name="__main__")
        plt.close("all")
    said = capsys.readouterr().out
    assert said
    if "savefig" in example.read_text("utf-8"):
        assert picture.stat().st_size > 20_000
    if example.stem == "digits_kernel_pca":  # this example prints its results
        for words in ("9 components", "the exact total tr(HKH)", "residual", "time", "memory"):
            assert words in said


# --- code that only `pytest -m long` runs -------------------------------------------------------


def mistakes(code):
    """Yield imports of mercer that fail, and calls of imported names with unknown parameters."""
    tree, known = ast.parse(code), {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    if name.name.split(".")[0] == "mercer":
                        importlib.import_module(name.name)
                        known[name.asname or "mercer"] = sys.modules[
                            name.name if name.asname else "mercer"
                        ]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if module.split(".")[0] == "mercer":
                    for name in names:
                        try:
                            exec(f"from {module} import {name.name} as imported", found := {})
                        except ImportError as error:
                            yield f"line {node.lineno}: {error}"
                        else:
                            known[name.asname or name.name] = found["imported"]
    for node in ast.walk(tree):
        try:
            match node:
                case ast.Attribute():
                    resolved(node, known)
                case ast.Call(func=function, keywords=keywords):
                    called = resolved(function, known)
                    parameters = inspect.signature(called).parameters if called else {}
                    if called and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                        names = {keyword.arg for keyword in keywords} - {None}
                        if unknown := names - set(parameters):
                            yield f"line {node.lineno}: {ast.unparse(function)} has no {unknown}"
        except AttributeError as error:
            yield f"line {node.lineno}: {error}"


def resolved(node, known):
    """Return the value of an expression such as `mercer.kernels.RBF`, or None if unknown."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, known)
        return getattr(owner, node.attr) if inspect.ismodule(owner) else None
    return None


def python_code(path):
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return text
    return "".join(block["code"] for block in page_output.python_blocks(text))


@pytest.mark.parametrize(
    "path",
    [
        *(page for page in PAGES if is_slow(page)),
        *(example for example in EXAMPLES if example.stem in SLOW_EXAMPLES),
    ],
    ids=lambda path: path.name,
)
def test_names_in_slow_code_exist(path):
    code = python_code(path)
    assert "mercer" in code and list(mistakes(code)) == []


def test_slow_examples_exist():
    assert {example.stem for example in EXAMPLES} >= SLOW_EXAMPLES


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from mercer import SVC\nSVC(C=2.0).fit(X, y)", 0),
        ("from mercer import SVC, Nothing", 1),
        ("from mercer.nothing import SVC", 1),
        ("from mercer import SVC\nSVC(sigma=2.0)", 1),
        ("import mercer\nmercer.kernels.RBF(length_scale=1.0) + mercer.kernels.RFB()", 1),
        ("import mercer.kernels as k\nk.RBF(gamma=1.0)\nf.nothing(a=1)", 1),
    ],
)
def test_mistakes_in_slow_code_are_found(code, found):
    assert len(set(mistakes(code))) == found


# --- the site, which `make docs` builds ---------------------------------------------------------

DOCS = ROOT / "docs"


def listed(page):
    """Return the documents in the tables of contents of a page, relative to the repository."""
    text = page.read_text("utf-8")
    tables = re.findall(r"^\.\. toctree::\n((?:(?:   .*)?\n)*)", text, re.M)
    tables += re.findall(r"^```{toctree}\n((?:.+\n|\n)*?)```", text, re.M)
    for line in "".join(tables).splitlines():
        if line.strip() and not line.strip().startswith(":"):
            name = re.sub(r".*<(.*)>", r"\1", line.strip())
            yield os.path.normpath(os.path.join(page.parent.relative_to(ROOT), name))


def test_every_page_is_in_a_table_of_contents():
    made = {"gallery", "generated", "_templates"}
    own = [page for page in DOCS.rglob("*.rst") if not made & set(page.parts)]
    found = {name for page in [*own, *PAGES] for name in listed(page)}
    for page in [*PAGES, ROOT / "CHANGELOG.md", *own]:
        name = page.relative_to(ROOT).with_suffix("").as_posix()
        assert name in found or name == "docs/index", f"{name} is in no table of contents"
    for name in found - {"docs/gallery/index"}:
        assert list(ROOT.glob(f"{name}.*")), f"{name} does not exist"


def test_every_public_name_is_in_the_api():
    shown = []
    for page in (DOCS / "api").glob("*.rst"):
        for part in page.read_text("utf-8").split(".. currentmodule:: ")[1:]:
            room, *lines = part.splitlines()
            names = [line.strip() for line in lines if re.fullmatch(r"   \w+", line)]
            shown += [getattr(importlib.import_module(room), name) for name in names]
    assert len({id(thing) for thing in shown}) == len(shown), "a name is listed twice"
    missing = [
        f"{room}.{name}"
        for room, name in NAMES
        if not any(getattr(importlib.import_module(room), name) is thing for thing in shown)
    ]
    assert missing == []


def test_the_topics_of_the_guide_lead_to_examples():
    names = re.findall(r":doc:`gallery/(\w+)`", (DOCS / "guide.rst").read_text("utf-8"))
    assert len(names) > 20 and set(names) <= {example.stem for example in EXAMPLES}
