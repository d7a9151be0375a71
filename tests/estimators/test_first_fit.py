"""Compilation is reported, and its time is not part of the reported fit time."""

import inspect
import os
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from zoo import ESTIMATORS

import mercer._core._jit as jit_module
from mercer._core import JitFunction

TALKATIVE = {
    repr(type(e)): e for e in ESTIMATORS if "verbose" in inspect.signature(type(e)).parameters
}
SECONDS = 0.05  # simulated compilation time of each function


@pytest.fixture
def slow(monkeypatch):
    """Delay the first call of every compiled function, as if it had to be compiled."""
    called, seconds, real = {}, {}, JitFunction.__call__

    def call(self, *args):
        if called.setdefault(self.name, self) is self and not hasattr(self, "warm"):
            self.warm = True
            with jit_module._compile_clock:
                jit_module._report_compilation(self.name)
                time.sleep(seconds.get("each", 0.0))
        return real(self, *args)

    monkeypatch.setattr(JitFunction, "__call__", call)
    yield called, seconds
    for loop in called.values():
        del loop.warm


def reports(model):
    found = [getattr(model, "report_", None), *(getattr(model, "reports_", None) or [])]
    return [r for r in found if hasattr(r, "seconds")]


@pytest.mark.parametrize("name", TALKATIVE)
def test_compiling_is_reported_and_not_counted(name, slow, capsys):
    slow, delay = slow
    model = clone(TALKATIVE[name])
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 3)))
    f = X[:, 0] - X[:, 1]
    y = (f > 0).astype(int) if is_classifier(model) else np.abs(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clone(model).fit(X, y)  # the real compilation
        for loop in slow.values():
            del loop.warm
        slow.clear()
        delay["each"] = SECONDS
        capsys.readouterr()
        start = time.perf_counter()
        model.set_params(verbose=1).fit(X, y)
        seconds = time.perf_counter() - start
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(line.startswith(f"[{type(model).__name__}] ") for line in lines)
    told = {m[1] for line in lines if (m := re.search(r"compiling (\S+) \(", line))}
    assert told == set(slow)
    for report in reports(model):
        assert report.seconds <= seconds - SECONDS * len(slow)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.set_params(verbose=0).fit(X, y)
    assert capsys.readouterr().out == ""


def test_a_first_fit_says_what_is_compiled(tmp_path):
    code = """
import numpy as np
from mercer import SVC
from mercer._core import compile_seconds
X = np.random.default_rng(0).normal(size=(50, 3))
model = SVC(verbose=1).fit(X, X[:, 0] > 0)
assert model.report_.seconds < 0.5 * compile_seconds(), model.report_.seconds
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^\[SVC\] compiling mercer\.(\S+) \(once", done.stdout, re.M)
    assert sorted(told) == [
        "kernels.vectors._fast_math._exp64",
        "kernels.vectors._radial._direct_squared_distances",
        "solvers.svm._smo_steps.take_steps",
    ]
