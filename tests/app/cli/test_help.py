"""Help pages: short texts in lists, readable paragraphs, and examples that run."""

import contextlib
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from sklearn.datasets import load_digits

from mercer.app.cli import main
from mercer.app.cli._main import app
from mercer.tables import Table


def pages():
    """Return the command or group of each help page, by its words after `mercer`."""
    found = {(): app}
    for name, command in app.commands.items():
        found[(name,)] = command
        for inner, leaf in getattr(command, "commands", {}).items():
            found[(name, inner)] = leaf
    return found


PAGES = pages()
each_page = pytest.mark.parametrize(
    "words", list(PAGES), ids=lambda words: "-".join(words) or "all"
)


def examples(command):
    """Return the commands below "Examples:" in a help text."""
    below = (command.help or "").partition("Examples:\n")[2]
    return [line.strip() for line in below.splitlines() if line.strip().startswith("mercer ")]


def write_examples():
    """Write a small file under each name that the examples use, in the current folder."""
    rng = np.random.default_rng(0)

    def write(name, n, **more):
        columns = {"age": rng.normal(40, 9, n), "height": rng.normal(170, 9, n), **more}
        with open(name, "w") as file:
            Table(columns).write(file)

    write("data.csv", 24, label=np.arange(24) % 3)
    write("before.csv", 30)
    write("after.csv", 30)
    for name, n in (("houses.csv", 40), ("new-houses.csv", 20)):
        write(name, n, id=np.arange(n), price=rng.normal(3e5, 1e4, n))
    words = np.array(["good", "bad", "fine", "poor"], dtype=object)
    with open("reviews.csv", "w") as file:
        Table({"text": words[np.arange(24) % 4], "stars": rng.normal(size=24)}).write(file)
    X, digit = load_digits(return_X_y=True)
    with open("digits.csv", "w") as file:
        Table({"digit": digit[:60], **{f"p{j}": X[:60, j] for j in range(64)}}).write(file)
    sequences = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "GATACA", "CGCGCC"] * 2
    lines = [f">s{i}\n{sequence}\n" for i, sequence in enumerate(sequences)]
    Path("dna.fasta").write_text("".join(lines))
    pa = pytest.importorskip("pyarrow")
    kinds = np.array(["T", "B"])[np.arange(40) % 2].tolist()
    parquet = {"size": rng.normal(size=40), "volume": rng.normal(size=40), "kind": kinds}
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(parquet), "cells.parquet")
    for command in (
        "fit ridge houses.csv --target price -q -o model.mercer",
        "pca data.csv --color label -q -o out",
    ):
        with pytest.raises(SystemExit) as end:
            main(command.split())
        assert end.value.code == 0


@pytest.fixture(scope="module")
def example_files(tmp_path_factory):
    """Return a folder with the files, which the tests copy."""
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.chdir(folder):
        write_examples()
    return folder


@pytest.fixture
def files(mercer, example_files, tmp_path):
    """Copy the files to the current folder."""
    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)


@each_page
def test_examples_of_help_pages_run(words, mercer, files, monkeypatch):
    server = SimpleNamespace(url="http://localhost", wait=lambda: None, is_busy=False)
    server.start = lambda: server
    monkeypatch.setattr("mercer.app.explorer.serve", lambda *args, **more: server)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    compiled = SimpleNamespace(loops=1, fresh=0, folder="")
    monkeypatch.setattr("mercer.compile.compile_loops", lambda update: compiled)
    X, digit = load_digits(return_X_y=True)
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda return_X_y: (X[:200], digit[:200]))
    lines = examples(PAGES[words])
    assert lines
    for line in lines:
        arguments = shlex.split(line)[1:]
        output = arguments.pop() if ">" in arguments else None
        arguments = [word for word in arguments if word != ">"]
        done = mercer(*arguments)
        refuted = line == 'mercer check "Sigmoid()"'
        assert done.code == (1 if refuted else 0), f"{line}\n{done}"
        if output is not None:
            Path(output).write_text(done.out)
            assert done.out


@each_page
def test_help_pages_are_readable(words, mercer):
    done = mercer(*words, "--help")
    assert done.code == 0 and "\b" not in done.out and r"\b" not in done.out
    assert "\n  Examples:\n    mercer " in done.out
    command = PAGES[words]
    with click.Context(command, info_name="mercer"):
        listed = done.out.partition("\nCommands:\n")[2].partition("\n\n")[0]
        assert "..." not in listed
    first = (command.help or "").splitlines()[0]
    assert first.endswith(".") and (len(first) <= 62 or not words), first


@each_page
def test_reference_page_is_readable(words):
    """The page docs/command_line.rst is generated by sphinx-click."""
    ext = pytest.importorskip("sphinx_click.ext")
    command = PAGES[words]
    context = click.Context(command, info_name=" ".join(["mercer", *words]))
    lines = [*ext._format_description(context), *ext._format_options(context)]
    assert lines and not [line for line in lines if "\b" in line or r"\b" in line]


def test_help_says_where_output_goes(mercer):
    told = " ".join(mercer("--help").out.split())
    assert "Results go to standard output or to a file, messages to standard error" in told
    assert "130 interrupted" in told
    predict = " ".join(mercer("predict", "--help").out.split())
    assert "the uncertainty of the fitted function and the noise of one observation" in predict
    assert "Print only the result, warnings and errors" in predict
