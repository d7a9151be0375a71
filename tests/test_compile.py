"""Ahead-of-time compilation with mercer.compile."""

import os
import re
import subprocess
import sys

import pytest

from mercer.compile import CompileResult, compile_loops

FIT = """
import sys; sys.path.insert(0, "tests")
import numpy as np
from mercer import *
from mercer._core import COMPILED_FUNCTIONS
X = np.random.default_rng(0).normal(size=(120, 4))
SVC().fit(X, X[:, 0] > 0).predict(X)
GaussianProcessRegressor().fit(X, X[:, 0]).predict(X)
KernelPerceptron(budget=20).fit(X, X[:, 0] > 0)
KernelKNeighborsClassifier(kernel="laplacian").fit(X, X[:, 0] > 0).predict(X)
SparseKernelRegressor(5).fit(X, X[:, 0])
assert COMPILED_FUNCTIONS == [], COMPILED_FUNCTIONS
"""


def test_everything_is_compiled_once(tmp_path):
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
    count = re.search(
        r"\[mercer.compile\] (\d+) signatures of (\d+) functions: (\d+) compiled", first
    )
    assert count[1] == count[3] and int(count[1]) >= int(count[2])
    assert f"iB in {tmp_path}" in first and "not called" not in first
    assert f"{count[1]} signatures of {count[2]} functions: all were already compiled" in second


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
