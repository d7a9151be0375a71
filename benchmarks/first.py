"""The first fit in a fresh process, with nothing compiled before: what a newcomer waits for.

What is timed is a process of its own: it starts, imports, and fits 300 points twice.  The cache of
Numba is an empty folder; the bytecode of all modules is there, as it is after an installation.  The
note parts its seconds: the import, the first use (first fit less second: compiling, and imports
that were put off), and the fit itself.  Two seconds are wanted.  `import` sets `import mercer`
against the import of the modules of others that it loads.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np

from ._models import HOMES
from ._suite import Call, Case, Contender, Suite

WANTED = 2.0  # seconds
CLASSIFIERS = (
    *("SVC", "NuSVC", "GaussianProcessClassifier", "KernelFisherDiscriminant"),
    *("KernelKNeighborsClassifier", "KernelLogisticRegression", "KernelLogisticRegressionCV"),
    *("KernelMachineClassifier", "KernelPerceptron", "KernelRadiusNeighborsClassifier"),
    "SparseKernelClassifier",
)
REGRESSORS = (
    *("SVR", "NuSVR", "GaussianProcessRegressor", "KernelKNeighborsRegressor"),
    *("KernelMachineRegressor", "KernelRecursiveLeastSquares", "KernelRidge", "KernelRidgeCV"),
    *("OnlineKernelRegressor", "SparseKernelRegressor"),
)
POINTS = (
    *("KernelKMeans", "KernelPCA", "Nystroem", "OneClassSVM", "ParzenDensity", "RBFSampler"),
    *("PolynomialCountSketch", "RandomFeatures", "SkewedChi2Sampler", "AdditiveChi2Sampler"),
    *("ExplicitFeatures", "ProbabilisticPCA", "GPLVM", "BayesianGPLVM", "Autoencoder"),
    "MetricMDS",
)
VIEWS = ("KernelCCA", "KernelPLS")
ESTIMATORS = (*CLASSIFIERS, *REGRESSORS, *POINTS, *VIEWS)

_START = "import time; start = time.perf_counter(); import json, sys, warnings\n"
_FIT = """
from importlib import import_module
import numpy as np
model = getattr(import_module(sys.argv[1]), sys.argv[2])
ready = time.perf_counter()
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = np.abs(rng.standard_normal((300, 5)))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(300)
y = {"classes": y > np.median(y), "values": y, "views": np.c_[y, X[:, 2]]}.get(sys.argv[3])
fits = []
for _ in range(2):
    begin = time.perf_counter()
    fitted = model().fit(X) if y is None else model().fit(X, y)
    verb = next(v for v in ("predict", "transform", "score_samples") if hasattr(fitted, v))
    answer = np.asarray(getattr(fitted, verb)(X[:10]), dtype=float)
    fits.append((time.perf_counter() - begin, float(np.linalg.norm(answer))))
(first, a), (second, b) = fits
print(json.dumps([ready - start, first, second, a, b]))
"""
_IMPORT = "import mercer\nprint(json.dumps([time.perf_counter() - start, 0, 0, 1, 1]))\n"
_OTHERS = """
from importlib import import_module
for name in json.loads(sys.argv[1]):
    import_module(name)
print(json.dumps([time.perf_counter() - start, 0, 0, 1, 1]))
"""
_LOADED = "import sys, json; {}print(json.dumps([*sys.modules]))"


def _python(code: str, *arguments: str, **variables: str) -> list:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


@cache
def _install() -> None:
    """Write the bytecode of mercer, as pip does: Python itself may have been told not to."""
    import mercer

    compileall.compile_dir(Path(mercer.__file__).parent, quiet=1)


def _needed() -> list[str]:
    """The modules of others that are loaded with mercer, in their order."""
    before, after = (_python(_LOADED.format(line)) for line in ("", "import mercer; "))
    names = [name for name in after if name not in set(before)]
    return [name for name in names if name.partition(".")[0] != "mercer" and name[0] != "_"]


def process(library: str, name: str) -> Call:
    """A call that starts Python; its result is that both fits gave the same finite answer."""
    _install()
    if name == "import":
        needed = [] if library == "mercer" else [_importable(_needed())]
        code, arguments = (_IMPORT, ()) if library == "mercer" else (_OTHERS, needed)
    else:
        kinds = {"classes": CLASSIFIERS, "values": REGRESSORS, "views": VIEWS, "": POINTS}
        kind = next(kind for kind, names in kinds.items() if name in names)
        home = "mercer" if library == "mercer" else HOMES[name]
        code, arguments = _FIT, (home, name, kind)

    def call() -> np.ndarray:
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as empty:
            imports, first, second, a, b = _python(_START + code, *arguments, NUMBA_CACHE_DIR=empty)
        total = imports + first
        call.note = f"import {imports:.2f} s"
        if first:
            call.note += f", first use {max(0.0, first - second):.2f} s, the fit {second:.3f} s"
        if total > WANTED and library == "mercer":
            call.note += f": {total:.1f} s, above {WANTED:g}"
        return np.array([a - b])

    return call


def _importable(names: list[str]) -> str:
    """Those that can be imported by their name alone, as JSON."""
    from importlib.util import find_spec

    def found(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except (ImportError, ValueError, AttributeError):
            return False

    return json.dumps([name for name in names if found(name)])


def different(result: np.ndarray, _: np.ndarray) -> float:
    return float(np.abs(result).max()) if np.isfinite(result).all() else np.inf


def cases(quick: bool) -> list[Case]:
    both = ("mercer", "scikit-learn")
    limits = ("mercer", "imports alone")
    names = ("SVC", "KernelRidge", "KernelPCA", "KernelCCA") if quick else ESTIMATORS
    return [
        Case("import", {"name": "import"}, 0.0, different, limits, family="`import mercer`"),
        *(
            Case(
                name,
                {"name": name},
                1e-6,
                different,
                both if name in HOMES else both[:1],
                family="the first fit of 300 points, import and compiling included",
            )
            for name in names
        ),
    ]


def above(cases: list[dict]) -> str:
    notes = {case["name"]: case["contenders"]["mercer"]["note"] for case in cases}
    late = [f"{name} ({note.rpartition(': ')[2]})" for name, note in notes.items() if ": " in note]
    return (
        f"Above {WANTED:g} s from import to the end of the first fit: {', '.join(late) or 'none'}."
    )


SUITE = Suite(
    "the first fit in a fresh process",
    cases,
    {
        "mercer": Contender("mercer", partial(process, "mercer")),
        "scikit-learn": Contender("sklearn", partial(process, "scikit-learn")),
        "imports alone": Contender("sklearn", partial(process, "others")),
    },
    lambda name: np.zeros(1),
    remarks=above,
)
