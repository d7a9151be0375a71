"""Run the command in this process, and create example files."""

import sys

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
from mercer.app.cli import main


class Ran:
    """The exit code, standard output and standard error of a command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


@pytest.fixture
def mercer(capsys, monkeypatch, tmp_path):
    """Run `mercer` in this process, in a temporary folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        arguments = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["mercer", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Ran(end.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def people(tmp_path):
    """Write rows of numbers and strings, some missing, with a target of each kind."""
    rng = np.random.default_rng(0)
    lines = ["age,height,city,price,kind"]
    for i in range(80):
        age, height = rng.normal(40, 10), rng.normal(170, 9)
        city = ["Bonn", "Ulm", "Köln"][i % 3]
        shown = "" if i == 7 else f"{height:.3f}"
        lines.append(f"{age:.3f},{shown},{city},{age + height:.4f},{'old' if age > 40 else 'new'}")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
