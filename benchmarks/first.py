"""The first fit in a fresh process, when nothing has been compiled.

The timed call is a new process: it starts, imports, and fits 300 points twice.  The Numba cache is
an empty folder; the bytecode of all modules exists, as it does after an installation.  The note
splits the time into the import, the overhead of the first call (first fit minus second fit:
compilation and deferred imports), and the fit itself.  The target is two seconds.  The case
`import` compares `import mercer` with the import of only the third-party modules that mercer loads.
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

from ._models import SKLEARN_MODULE
from ._suite import Call, Case, Contender, Suite

TARGET_SECONDS = 2.0  # seconds from import to the end of the first fit
CLASSIFIERS = (
    *("SVC", "NuSVC", "GaussianProcessClassifier", "KernelFisherDiscriminant"),
    *("KernelKNeighborsClassifier", "KernelLogisticRegression", "KernelLogisticRegressionCV"),
    *("KernelMachineClassifier", "KernelPerceptron", "KernelRadiusNeighborsClassifier"),
    *("RFMClassifier", "SparseKernelClassifier"),
)
REGRESSORS = (
    *("SVR", "NuSVR", "GaussianProcessRegressor", "KernelKNeighborsRegressor"),
    *("KernelMachineRegressor", "KernelRecursiveLeastSquares", "KernelRidge", "KernelRidgeCV"),
    *("OnlineKernelRegressor", "RFMRegressor", "SparseKernelRegressor"),
)
POINTS = (
    *("KernelKMeans", "KernelPCA", "Nystroem", "OneClassSVM", "ParzenDensity", "RBFSampler"),
    *("PolynomialCountSketch", "RandomFeatures", "SkewedChi2Sampler", "AdditiveChi2Sampler"),
    *("ExplicitFeatures", "ProbabilisticPCA", "GPLVM", "BayesianGPLVM", "Autoencoder"),
    *("MetricMDS", "NeuroScale", "KernelICA"),
)
VIEWS = ("KernelCCA", "KernelPLS")
ESTIMATORS = (*CLASSIFIERS, *REGRESSORS, *POINTS, *VIEWS)

_START_CODE = "import time; start = time.perf_counter(); import json, sys, warnings\n"
_FIT_CODE = """
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
    method = next(m for m in ("predict", "transform", "score_samples") if hasattr(fitted, m))
    output = np.asarray(getattr(fitted, method)(X[:10]), dtype=float)
    fits.append((time.perf_counter() - begin, float(np.linalg.norm(output))))
(first, a), (second, b) = fits
print(json.dumps([ready - start, first, second, a, b]))
"""
_IMPORT_CODE = "import mercer\nprint(json.dumps([time.perf_counter() - start, 0, 0, 1, 1]))\n"
_THIRD_PARTY_CODE = """
from importlib import import_module
for name in json.loads(sys.argv[1]):
    import_module(name)
print(json.dumps([time.perf_counter() - start, 0, 0, 1, 1]))
"""
_LOADED_MODULES_CODE = "import sys, json; {}print(json.dumps([*sys.modules]))"


def _run_python(code: str, *arguments: str, **variables: str) -> list:
    """Run code in a new Python process and return the last line of its output, parsed as JSON."""
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise RuntimeError(completed.stderr)
    return json.loads(completed.stdout.splitlines()[-1])


@cache
def _compile_bytecode() -> None:
    """Write the bytecode of mercer, as pip does; Python may have been configured not to."""
    import mercer

    compileall.compile_dir(Path(mercer.__file__).parent, quiet=1)


def _third_party_modules() -> list[str]:
    """Return the third-party modules that are loaded with mercer, in the order of loading."""
    before, after = (
        _run_python(_LOADED_MODULES_CODE.format(line)) for line in ("", "import mercer; ")
    )
    names = [name for name in after if name not in set(before)]
    return [name for name in names if name.partition(".")[0] != "mercer" and name[0] != "_"]


def make_process_call(library: str, name: str) -> Call:
    """Return a call that starts Python; its result is the difference between the two fits."""
    _compile_bytecode()
    if name == "import":
        modules = [] if library == "mercer" else [_importable_modules(_third_party_modules())]
        code, arguments = (
            (_IMPORT_CODE, ()) if library == "mercer" else (_THIRD_PARTY_CODE, modules)
        )
    else:
        names_by_target = {"classes": CLASSIFIERS, "values": REGRESSORS, "views": VIEWS, "": POINTS}
        target = next(target for target, names in names_by_target.items() if name in names)
        module = "mercer" if library == "mercer" else SKLEARN_MODULE[name]
        code, arguments = _FIT_CODE, (module, name, target)

    def call() -> np.ndarray:
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as empty:
            imports, first, second, a, b = _run_python(
                _START_CODE + code, *arguments, NUMBA_CACHE_DIR=empty
            )
        total = imports + first
        call.note = f"import {imports:.2f} s"
        if first:
            overhead = max(0.0, first - second)
            call.note += f", first-call overhead {overhead:.2f} s, fit {second:.3f} s"
        if total > TARGET_SECONDS and library == "mercer":
            call.note += f": {total:.1f} s, above {TARGET_SECONDS:g}"
        return np.array([a - b])

    return call


def _importable_modules(names: list[str]) -> str:
    """Return the modules that can be imported by name, as a JSON list."""
    from importlib.util import find_spec

    def exists(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except (ImportError, ValueError, AttributeError):
            return False

    return json.dumps([name for name in names if exists(name)])


def result_difference(result: np.ndarray, _: np.ndarray) -> float:
    """Return the absolute difference of the two fits, or infinity if it is not finite."""
    return float(np.abs(result).max()) if np.isfinite(result).all() else np.inf


def cases(quick: bool) -> list[Case]:
    fit_contenders = ("mercer", "scikit-learn")
    import_contenders = ("mercer", "imports alone")
    names = ("SVC", "KernelRidge", "KernelPCA", "KernelCCA") if quick else ESTIMATORS
    return [
        Case(
            "import",
            {"name": "import"},
            0.0,
            result_difference,
            import_contenders,
            family="`import mercer`",
        ),
        *(
            Case(
                name,
                {"name": name},
                1e-6,
                result_difference,
                fit_contenders if name in SKLEARN_MODULE else fit_contenders[:1],
                family="first fit of 300 points, including import and compilation",
            )
            for name in names
        ),
    ]


def slow_first_fits(cases: list[dict]) -> str:
    """Return a text that lists the estimators above the target time."""
    notes = {case["name"]: case["contenders"]["mercer"]["note"] for case in cases}
    slow = [f"{name} ({note.rpartition(': ')[2]})" for name, note in notes.items() if ": " in note]
    return (
        f"More than {TARGET_SECONDS:g} s from import to the end of the first fit: "
        f"{', '.join(slow) or 'none'}."
    )


SUITE = Suite(
    "first fit in a fresh process",
    cases,
    {
        "mercer": Contender("mercer", partial(make_process_call, "mercer")),
        "scikit-learn": Contender("sklearn", partial(make_process_call, "scikit-learn")),
        "imports alone": Contender("sklearn", partial(make_process_call, "others")),
    },
    lambda name: np.zeros(1),
    postprocess=slow_first_fits,
)
