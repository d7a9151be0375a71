"""Every estimator works without numba, and with a numba that lacks private parts mercer uses."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

ROOT = Path(mercer.__file__).resolve().parents[2]
SMOKE = Path(__file__).resolve().parents[1] / "tools" / "smoke.py"
RUN = "\nimport runpy, sys\nsys.argv[0] = {path!r}\nrunpy.run_path({path!r}, run_name='__main__')\n"
STATE = """
import atexit, mercer._core._jit as j
state = lambda: print("state:", j._compiler._has_events, j._compiler._plain is None)
atexit.register(state)
"""
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise {error}
sys.meta_path.insert(0, Block())
"""
# One estimator or kernel for each kind of compiled loop; a fit of all takes a few seconds.
CASES = ("KernelPCA", "KernelRidge", "SVC", "GaussianProcessRegressor", "KernelKMeans",
         "OneClassSVM", "KernelLogisticRegression")  # fmt: skip
# Hide names of numba from `_numba_hooks` alone, so that numba itself still works.
HIDE = """
import builtins
hidden, real_import = set(), builtins.__import__
def limited(name, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__") == "mercer._core._numba_hooks":
        for attribute in fromlist or ():
            if (name, attribute) in hidden:
                raise ImportError(f"cannot import name {attribute!r} from {name!r}")
    return real_import(name, globals, locals, fromlist, level)
builtins.__import__ = limited
"""
HOOKS = {
    "events": "hidden.add(('numba.core', 'event'))",
    "lowering": "hidden.add(('numba.extending', 'type_callable'))",
    "caches": "hidden.add(('numba.core.caching', 'FunctionCache'))",
    "statistics": "import numba.core.dispatcher as m; del m.Dispatcher.stats",
    "target": "hidden.add(('numba.core.registry', 'cpu_target'))",
}
HOOKS["all"] = "\n".join(HOOKS.values())
HOOKS = {name: f"{HIDE}\n{code}\n" for name, code in HOOKS.items()}
# A function of llvmlite or numba that has changed is noticed only when a loop is compiled.
BROKEN_LOWERING = """
import numba.extending as m
real = m.lower_builtin
def lower_builtin(function, *types):
    def broken(context, builder, sig, args):
        raise AttributeError("declare_intrinsic")
    return lambda lowered: real(function, *types)(broken)
m.lower_builtin = lower_builtin
"""


def run(code, *args, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def smoke(before, *args, **environment):
    """Run tools/smoke.py after some statements, and return its standard output."""
    done = run(before + RUN.format(path=str(SMOKE)), *args, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """The results of all estimators with numba."""
    path = tmp_path_factory.mktemp("smoke") / "ordinary.json"
    smoke("", "--results", path)
    assert json.loads(path.read_text())["has_numba"]
    return path


def read(path):
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("hook", ["events", "caches", "statistics", "target"])
def test_results_do_not_depend_on_a_hook(hook, ordinary, tmp_path):
    """These hooks do not change the compiled code, so that all results are identical."""
    out = smoke(HOOKS[hook] + STATE, "--compare", ordinary, *CASES)
    count = re.search(r"(\d+) of (\d+) outputs equal; largest error 0 ", out)
    assert count and count[1] == count[2], out
    assert f"state: {hook != 'events'} True" in out


@pytest.mark.long
@pytest.mark.parametrize("hook", ["lowering", "all"])
def test_results_without_llvm_instructions(hook, ordinary, tmp_path):
    """Other code is compiled, in an empty cache; the results agree within 1e-6."""
    out = smoke(HOOKS[hook] + STATE, "--compare", ordinary, NUMBA_CACHE_DIR=str(tmp_path))
    assert f"state: {hook == 'lowering'} False" in out


@pytest.mark.parametrize("before", [HOOKS["lowering"], BROKEN_LOWERING], ids=["hidden", "broken"])
def test_plain_forms_of_scalar_functions(before, tmp_path):
    """Without numba's low-level interface, or if it fails, documented functions are used."""
    code = """
import numpy as np
from mercer._core import bitcast_float, bitcast_int, fmax, fmin, jit
from mercer._core._jit import _compiler

@jit()
def inner(x):
    return fmax(fmin(x, 1.0), -1.0)

@jit()
def outer(x, out, words):
    for i in range(len(x)):
        out[i] = inner(x[i])
        words[i] = bitcast_int(x[i])
        assert bitcast_float(words[i]) == x[i] or x[i] != x[i]

for dtype in (np.float64, np.float32):
    x = np.array([-3.0, 0.5, 2.0, np.nan], dtype=dtype)
    out, words = np.empty_like(x), np.empty(4, dtype=f"i{x.itemsize}")
    outer(x, out, words)
    assert out.tolist() == [-1.0, 0.5, 1.0, 1.0], out
    assert (words == x.view(words.dtype)).all()
    assert _compiler._plain is not None
    assert len(outer.signatures) == 1 + (dtype == np.float32)
"""
    path = tmp_path / "loops.py"
    path.write_text(code)
    done = run(f"{before}\nimport runpy; runpy.run_path({str(path)!r})")
    assert done.returncode == 0, done.stderr


def test_compilation_is_measured_without_events(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text("from mercer._core import jit\n\n\n@jit()\ndef twice(x):\n    return x + x\n")
    code = f"""
{HOOKS["events"]}
import sys
sys.path.insert(0, {str(tmp_path)!r})
from loops import twice
from mercer._core import COMPILED_FUNCTIONS, compile_seconds
twice.dispatcher()  # imports numba
before = compile_seconds()
assert twice(2.0) == 4.0
print(compile_seconds() - before, *COMPILED_FUNCTIONS)
"""
    first, second = (run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    seconds, *compiled = first.stdout.split()
    assert float(seconds) > 0.005 and compiled == ["loops.twice"]
    assert second.stdout.split()[1:] == []  # read from the cache


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("ModuleNotFoundError(\"No module named 'numba'\")", "No module named 'numba'"),
        ("ImportError('Numba needs NumPy 2.3 or less.')", "Numba needs NumPy 2.3 or less."),
        ("SystemError('initialization of _internal failed')", "initialization of _internal"),
    ],
)
def test_every_estimator_without_numba(error, text, ordinary, tmp_path):
    """All results agree within 1e-6, and there is one warning, which says what to do."""
    path = tmp_path / "results.json"
    names = () if "Module" in error else ("KernelRidge", "SVC, ")
    before = BLOCK.format(error=error)
    smoke(before, "--results", path, "--compare", ordinary, *names)
    found = read(path)
    assert not found["has_numba"] and not found["failures"]
    warned = {w: count for w, count in found["warnings"].items() if "numba" in w}
    (message,) = warned
    assert warned[message] == 1
    kind = error.partition("(")[0]
    assert message.startswith(f"UserWarning: numba is not available ({kind}: {text}")
    assert "pip install -U numba" in message
    assert set(found["warnings"]) - set(warned) <= set(read(ordinary)["warnings"])


def test_the_warning_points_to_the_code_of_the_user(tmp_path):
    path = tmp_path / "user.py"
    path.write_text(
        "import numpy as np\nimport mercer\nX = np.eye(5)\nmercer.SVC().fit(X, X[:, 0])\n"
        "mercer.SVC().fit(X, X[:, 0])\n"
    )
    before = BLOCK.format(error="ImportError()")
    done = run(f"{before}\nimport runpy; runpy.run_path({str(path)!r})")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning") == 1 and f"{path}:4: UserWarning" in done.stderr


def test_the_user_can_choose_the_interpreter():
    out = smoke(STATE, "KernelRidge", NUMBA_DISABLE_JIT="1")
    assert " 0 failed" in out and ", without numba" in out
    assert ", with numba" in smoke("", "KernelRidge", NUMBA_DISABLE_JIT="0")


def test_a_function_that_numba_cannot_compile():
    """Python runs it, and a warning names it."""
    code = """
import warnings
from mercer._core import jit

@jit()
def unsupported(x):
    return type(x).__name__ + "!"

@jit()
def divide(x):
    return 1.0 / x

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert unsupported(2.0) == unsupported(3.0) == "float64!"
    assert divide(0.0) == float("inf") and divide.signatures
(warning,) = [w for w in caught if w.category is UserWarning]
print(warning.message)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("numba could not compile __main__.unsupported (TypingError: ")
    assert "loops run as Python code" in done.stdout


def test_a_failure_that_two_threads_notice_is_reported_once():
    """The second report concerns code that no longer runs, and must not disable the compiler."""
    code = """
import numpy as np
from mercer._core import fmax, jit
from mercer._core._jit import _compiler

@jit()
def positive(x):
    return fmax(x, 0.0)

dispatcher = positive._prepare((-1.0,))
error = AttributeError("declare_intrinsic")
for _ in range(2):
    _compiler.report_failure(positive, dispatcher, error)
assert _compiler._plain is not None and positive._run is None
assert positive(-1.0) == 0.0 and positive.signatures
"""
    done = run(code)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("damage", ["index", "code", "full disk"])
def test_loops_are_compiled_if_the_cache_fails(damage, tmp_path):
    """They are not interpreted, and one warning says what to do."""
    (tmp_path / "loops.py").write_text(
        "from mercer._core import jit\n\n\n@jit()\ndef half(x):\n    return x / 2.0\n\n\n"
        "@jit()\ndef twice(x):\n    return half(x) * 4.0\n"
    )
    code = f"""
import sys, warnings
sys.path.insert(0, {str(tmp_path)!r})
from loops import half, twice
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert twice(3.0) == half(12.0) == 6.0
assert twice.signatures and half.signatures
print(*[w.message for w in caught])
"""
    folder = str(tmp_path / "cache")
    assert run(code, NUMBA_CACHE_DIR=folder).stdout.strip() == ""
    if damage == "full disk":
        code = (
            "import numba.core.caching as m\n"
            "def save(*_):\n    raise OSError(28, 'No space left on device')\n"
            "m.IndexDataCacheFile.save = save\n"
        ) + code
        folder = str(tmp_path / "other")
    else:
        paths = list(Path(folder).rglob("*.nbi" if damage == "index" else "*.nbc"))
        assert paths
        for path in paths:
            path.write_bytes(path.read_bytes()[:40])
    done = run(code, NUMBA_CACHE_DIR=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("numba cannot use its cache of compiled loops") == 1
    assert "If the disk is full, free space" in done.stdout
    assert "Python code" not in done.stdout


def test_errors_of_a_function_are_raised():
    code = """
from mercer._core import jit

@jit()
def fails(n):
    if n > 3:
        raise ValueError("too large")
    return n

assert fails(2) == 2
try:
    fails(4)
except ValueError as error:
    assert str(error) == "too large"
assert fails.signatures
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_compile_without_numba():
    before = BLOCK.format(error="ModuleNotFoundError('no')")
    code = f"{before}\nfrom mercer.compile import main; raise SystemExit(main())"
    done = run(code)
    assert done.returncode == 1
    assert "numba is not available, so that nothing can be compiled" in done.stdout
    code = f"{before}\nimport sys; sys.argv[1:] = ['compile']\n"
    done = run(code + "from mercer.app.cli import main; raise SystemExit(main())")
    assert done.returncode == 1 and "nothing can be compiled" in done.stderr
    assert "Traceback" not in done.stderr
