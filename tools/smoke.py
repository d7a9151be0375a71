"""Fit every public estimator of an installed mercer to small data, and compare the results.

    python tools/smoke.py                                 fit, predict, save and load everything
    python tools/smoke.py --results linux.json            also write a summary of all outputs
    python tools/smoke.py --compare linux.json            also compare the outputs with that file

The script needs only mercer, so that it can check a wheel without the repository.  Public
estimators are found by introspection; `STRUCTURED` adds kernels for strings, graphs and histograms.
Each model is saved and loaded, and the outputs of the loaded model must be bit-for-bit identical.
The data do not depend on the platform.

The exit code is 1 if a case fails, or if an output differs from the file by more than
`rtol * factor` relative to its largest absolute value.  `OPTIMISED` lists the factors.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

import mercer
from mercer import kernels

N_POINTS, N_NEW = 30, 6
N_VALUES = 200  # at most that many values of an output are written to the summary
METHODS = (
    *("predict", "predict_proba", "decision_function", "transform"),
    *("score_samples", "inverse_transform"),
)
# How much more than other outputs these may differ, relative to `--rtol`.  The models minimise a
# function until its gradient is small, so that rounding errors change the point where they stop.
OPTIMISED = {
    "Autoencoder": 1e2,
    "BayesianGPLVM": 1e5,
    "GPLVM": 1e5,
    "GaussianProcessClassifier": 1e3,
    "GaussianProcessRegressor": 1e3,
    "KernelICA": 1e3,
    "MetricMDS": 1e3,
    "NeuroScale": 1e3,
    "RFMClassifier": 1e3,
    "RFMRegressor": 1e3,
}
_FLOAT32_FACTOR = 100.0  # the same for points in float32
# Parameters instead of the defaults.  All components of a linear kernel explain the points exactly,
# so that `score_samples` would return the logarithm of rounding errors.
# A few iterations of an autoencoder amplify rounding errors less than hundreds do.
PARAMETERS: dict[str, dict[str, Any]] = {
    "Autoencoder": {"max_iter": 10},
    "KernelPCA": {"n_components": 2, "kernel": "rbf"},
}
STRINGS = ["ACGTACGTAC", "ACGTTTGACC", "CCGATTACAG", "GATTACAGAT", "TTGACCAGTA", "ACCAGTTTGA"]


def estimator_names() -> list[str]:
    """Return the names of all estimators that `mercer` exports."""
    found = {name: getattr(mercer, name) for name in mercer.__all__}
    return [n for n, kind in found.items() if inspect.isclass(kind) and hasattr(kind, "fit")]


def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Return training points and new points with positive features, equal on all platforms.

    They are near a parabola, so that models of low dimension are well determined.
    """
    u = np.random.default_rng(0).random((N_POINTS + N_NEW, 4))
    t = u[:, 3]
    X = np.column_stack([t, 0.1 + 3.0 * (t - 0.5) ** 2, 1.0 - t * t]) + 0.1 * u[:, :3]
    return X[:N_POINTS], X[N_POINTS:]


def structured_cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (name, model, training points, new points) for points that are not plain vectors."""
    k: Any = kernels
    X, new = vectors()
    rng = np.random.default_rng(1)
    edges = [[(u, v) for u in range(5) for v in range(u) if rng.random() < 0.6] for _ in range(6)]
    graphs = k.Graphs.from_edges(edges, labels=[list("CNOCN")] * 6)
    for kernel in (k.Subsequence(2), k.AllSubsequences(), k.LocalAlignment(), k.Gapped(5, 3),
                   k.Mismatch(3, 1, "ACGT"), k.Spectrum(2)):  # fmt: skip
        yield f"SVC, {kernel}", mercer.SVC(kernel=kernel), STRINGS, STRINGS[:3]
    for kernel in (k.ShortestPath(), k.Graphlet(), k.Graphlet(size=4, connected=True),
                   k.WeisfeilerLehman(2), k.RandomWalk(decay=0.1, labelled=True),
                   k.RandomWalk(decay=0.01, kind="geometric")):  # fmt: skip
        model = mercer.KernelRidge(alpha=0.1, kernel=kernel)
        yield f"KernelRidge, {kernel}", model, graphs, graphs[:3]
    for kernel in (k.Laplacian(), k.Chi2(), k.HistogramIntersection(), k.Matern(0.5)):
        yield f"KernelPCA, {kernel}", mercer.KernelPCA(2, kernel=kernel), X, new
    X32, new32 = X.astype(np.float32), new.astype(np.float32)
    for kernel in (k.RBF(0.5), k.MinMax()):
        model = mercer.KernelRidge(alpha=0.1, kernel=kernel)
        yield f"KernelRidge, float32, {kernel}", model, X32, new32
    others: dict[str, Any] = {
        "KernelPCA, tiled": mercer.KernelPCA(2, kernel="rbf", eigen_solver="krylov",
                                             storage="tiled", random_state=0),
        "KernelPCA, Nystroem": mercer.KernelPCA(2, kernel="rbf", eigen_solver="nystroem", rank=8,
                                                random_state=0),
        "KernelPerceptron, budget": mercer.KernelPerceptron(True, budget=8),
        "KernelRecursiveLeastSquares, budget": mercer.KernelRecursiveLeastSquares(budget=8),
        "OnlineKernelRegressor, budget": mercer.OnlineKernelRegressor("huber", budget=8),
    }  # fmt: skip
    for name, model in others.items():
        yield name, model, X, new


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (name, model, training points, new points) for everything that is checked."""
    X, new = vectors()
    for name in estimator_names():
        model = getattr(mercer, name)(**PARAMETERS.get(name, {}))
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        yield name, model, X, new
    yield from structured_cases()


def targets(model: Any, X: Any) -> np.ndarray:
    """Return labels for a classifier, and positive numbers for other models."""
    f = np.arange(len(X)) * 7 % 5 / 5  # for points that are not vectors
    if isinstance(X, np.ndarray):
        f = X[:, 0] * (2.0 - X[:, 0]) + 0.2 * f
    if model.__sklearn_tags__().estimator_type == "classifier":
        return np.array(["no", "yes"])[(f > np.median(f)).astype(int)]
    return 1.0 + f


def outputs(model: Any, new: Any) -> dict[str, np.ndarray]:
    """Return the results of all methods that the model has for new points."""
    found: dict[str, np.ndarray] = {}
    for method in METHODS:
        if not hasattr(model, method):
            continue
        argument = found.get("transform") if method == "inverse_transform" else new
        try:
            value = getattr(model, method)(argument)
        except (NotImplementedError, NotFittedError):  # an option excludes this method
            continue
        found[method] = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
    return found


def summary(value: np.ndarray) -> dict[str, Any]:
    """Return a digest of an output and, for comparisons with a tolerance, its first values."""
    contiguous = np.ascontiguousarray(value)
    text = contiguous.dtype.kind in "OU"
    data = "\n".join(map(str, contiguous.ravel())).encode() if text else contiguous.tobytes()
    listed = contiguous.ravel()[:N_VALUES].tolist()
    return {
        "digest": hashlib.sha256(data).hexdigest()[:16],
        "shape": list(contiguous.shape),
        "values": [v if isinstance(v, str) else float(f"{float(v):.12g}") for v in listed],
    }


def run_case(model: Any, X: Any, new: Any, folder: Path) -> dict[str, Any]:
    """Fit a model, and check that a saved and loaded copy has identical outputs."""
    model.fit(X, targets(model, X))
    found = outputs(model, new)
    if not found and hasattr(model, "embedding_"):
        found["embedding_"] = model.embedding_
    path = folder / "model.safetensors"
    mercer.save(model, path)
    again = outputs(mercer.load(path), new)
    for method, value in again.items():
        if not np.array_equal(value, found[method], equal_nan=value.dtype.kind == "f"):
            raise AssertionError(f"{method} of the loaded model has other values")
    for method, value in found.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise AssertionError(f"{method} returned values that are not finite")
    return {method: summary(value) for method, value in found.items()}


def run(selected: list[str], log: Callable[[str], None]) -> dict[str, Any]:
    """Run all cases whose name contains one of the selected texts; without any, all cases."""
    results: dict[str, Any] = {}
    failures: dict[str, str] = {}
    warned: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model, X, new in cases():
            if selected and not any(text in name for text in selected):
                continue
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    results[name] = run_case(model, X, new, Path(folder))
                except Exception as error:  # report it, and run the other cases
                    failures[name] = f"{type(error).__name__}: {error}"
                    log(f"FAILED {name}: {failures[name]}")
            seconds[name] = round(time.perf_counter() - start, 3)
            warned.update(f"{w.category.__name__}: {w.message}" for w in caught)
    return {
        "mercer": mercer.__version__,
        "platform": f"{platform.python_implementation()} {platform.python_version()}, "
        f"{sys.platform} {platform.machine()}, NumPy {np.__version__}",
        "has_numba": "numba" in sys.modules and not sys.modules["numba"].config.DISABLE_JIT,
        "seconds": seconds,
        "failures": failures,
        "warnings": dict(warned),
        "results": results,
    }


def relative_error(found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """Return the largest difference of two summaries, relative to the largest absolute value."""
    if found["digest"] == wanted["digest"]:
        return 0.0
    a, b = found["values"], wanted["values"]
    if found["shape"] != wanted["shape"] or len(a) != len(b):
        return np.inf
    if any(isinstance(value, str) for value in (*a, *b)):
        return 0.0 if a == b else np.inf
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    scale = max(float(np.abs(y).max(initial=0.0)), 1e-300)
    return float(np.abs(x - y).max(initial=0.0)) / scale


def compare(
    found: dict[str, Any], wanted: dict[str, Any], rtol: float, log: Callable[[str], None]
) -> bool:
    """Compare two summaries, log every difference beyond the tolerance, and return the verdict."""
    identical = total = 0
    worst, where, ok = 0.0, "none", True
    for name, methods in found["results"].items():
        reference_methods = wanted["results"].get(name, {})
        for method in sorted(reference_methods.keys() - methods.keys()):
            ok = False
            log(f"MISSING {name}.{method} is only in the other file")
        for method, value in methods.items():
            reference = reference_methods.get(method)
            if reference is None:
                log(f"NEW {name}.{method} is not in the other file")
                continue
            error = relative_error(value, reference)
            total, identical = total + 1, identical + (error == 0.0)
            limit = rtol * OPTIMISED.get(name, _FLOAT32_FACTOR if "float32" in name else 1.0)
            if error / limit > worst:
                worst, where = error / limit, f"{name}.{method}"
            if error > limit:
                ok = False
                log(f"DIFFERENT {name}.{method}: relative error {error:.2g}, limit {limit:.2g}")
    log(f"{identical} of {total} outputs equal; largest error {worst:.2g} of the limit, {where}")
    return ok and total > 0


def main(arguments: list[str] | None = None) -> int:
    """Run the cases that the arguments select, and return an exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, help="write a summary of all outputs to this file")
    parser.add_argument("--compare", type=Path, help="compare with a file written by --results")
    parser.add_argument("--rtol", type=float, default=1e-6, help="relative tolerance (1e-6)")
    parser.add_argument("names", nargs="*", help="run only cases whose name contains one of these")
    options = parser.parse_args(arguments)

    def log(text: str) -> None:
        print(text, flush=True)

    found = run(options.names, log)
    log(f"mercer {found['mercer']} from {os.path.dirname(mercer.__file__)}")
    log(found["platform"] + (", with numba" if found["has_numba"] else ", without numba"))
    log(f"{len(found['results'])} cases passed, {len(found['failures'])} failed, "
        f"{sum(found['seconds'].values()):.1f} s")  # fmt: skip
    if options.results:
        text = json.dumps(found, indent=1, sort_keys=True) + "\n"
        options.results.write_text(text, "utf-8", newline="\n")
    ok = not found["failures"] and bool(found["results"])
    if options.compare:
        wanted = json.loads(options.compare.read_text("utf-8"))
        ok = compare(found, wanted, options.rtol, log) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
