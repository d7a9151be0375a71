"""Ahead-of-time compilation with mercer.compile."""

import os
import re
import subprocess
import sys

import pytest

from mercer.compile import CompileResult, compile_loops, main

FIT = """
import numpy as np
from mercer import *
from mercer._core import COMPILED_FUNCTIONS
known = len(COMPILED_FUNCTIONS)
X = np.random.default_rng(0).normal(size=(120, 4))
SVC().fit(X, X[:, 0] > 0).predict(X)
GaussianProcessRegressor().fit(X, X[:, 0]).predict(X)
KernelPerceptron(budget=20).fit(X, X[:, 0] > 0)
KernelKNeighborsClassifier(kernel="laplacian").fit(X, X[:, 0] > 0).predict(X)
SparseKernelRegressor(5).fit(X, X[:, 0])
assert COMPILED_FUNCTIONS[known:] == [], COMPILED_FUNCTIONS
"""
RESULT = r"\[mercer.compile\] (\d+) signatures of (\d+) functions: "


@pytest.mark.long
def test_everything_is_compiled_once(tmp_path):
    """An empty cache: the first run compiles everything, the second run and a fit nothing."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for command in (["-m", "mercer.compile"], ["-m", "mercer.compile"], ["-c", FIT]):
        done = subprocess.run(
            [sys.executable, *command], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout.splitlines())
    first, second = said[0][-1], said[1][-1]
    assert len(said[0]) <= 13
    count = re.search(RESULT + r"(\d+) compiled", first)
    assert count[1] == count[3] and int(count[1]) >= int(count[2])
    assert f"iB in {tmp_path}" in first and "not called" not in first
    assert f"{count[1]} signatures of {count[2]} functions: all were already compiled" in second


def test_some_functions_are_stored_in_the_cache_folder(tmp_path):
    """As above, with a small part of the fits."""
    code = (
        "import sys, mercer.compile as c\n"
        "fit = lambda: c._fit(c._variants()[0], c.np.eye(40))\n"
        "c._tasks = lambda: [('KernelPerceptron', fit)]\n"
        "sys.exit(c.main())"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stdout + done.stderr  # not all functions were called
        said.append(done.stdout.splitlines()[-1])
    count = re.search(RESULT + r"(\d+) compiled in .* s; .*iB in (.*); not called: mercer", said[0])
    assert 0 < int(count[1]) == int(count[3]) < int(count[2]) and count[4].startswith(str(tmp_path))
    assert f"{count[1]} signatures of {count[2]} functions: all were already compiled" in said[1]


@pytest.mark.filterwarnings("ignore::UserWarning")  # targets without noise
def test_all_functions_are_called(capsys):
    """The command, in this process and with the cache of the other tests."""
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 13
    count = re.search(RESULT, lines[-1])
    assert int(count[1]) >= int(count[2]) and "not called" not in lines[-1]
    exec(FIT, {})


@pytest.mark.long  # the test of the command covers it
def test_the_function():
    told = []
    found = compile_loops(told.append)
    assert found.missing == () and found.fresh <= found.signatures
    assert told[-1].startswith(f"{len(told)} of {len(told)} fits, {found.fresh} functions compiled")


def test_str():
    some = CompileResult(3, 4, 2, 1.5, ("mercer.a",), None, 0)
    assert str(some) == (
        "4 signatures of 3 functions: 2 compiled in 1.5 s; not stored, because no cache folder is "
        "writable; not called: mercer.a"
    )


def test_no_messages_without_a_log(monkeypatch):
    calls = []
    monkeypatch.setattr("mercer.compile._tasks", lambda: [("a fit", lambda: calls.append(1))])
    result = compile_loops()
    assert calls == [1] and result.fresh == 0 and result.loops > 0
