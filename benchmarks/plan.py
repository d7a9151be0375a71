"""Predicted against measured memory and time of every fit: `python -m benchmarks.plan`.

    ratio = memory that `plan` predicts / peak resident memory during `fit`

Each fit runs in a fresh process, after the data were created and after a fit to a few points that
loads the compiled loops.  The peak is relative to the resident memory before the fit.  The second
table forces each option of a plan in turn, and compares the order of the predicted times with the
order of the processor times (`--times`).
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must be set before NumPy is imported

import argparse
import json
import subprocess
import sys
import time
import warnings
from itertools import combinations
from typing import Any

import numpy as np

from ._measure import peak_memory, release_freed_memory

COLUMNS, WARM_UP_POINTS = 20, 300
TOLERANCE = 1.5  # a prediction is accurate if it is within this factor of the measured peak
MIN_PEAK = 2**23  # smaller peaks are not compared, because the allocator rounds them
# Fits that take minutes at the largest sizes are measured only up to this many points.
MAX_POINTS = {"GPLVM": 1000, "BayesianGPLVM": 1000, "KernelLogisticRegressionCV": 2000}

# The estimators, their options, and the solvers that are forced in turn.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GaussianProcessClassifier": ("labels", {"optimizer": None}),
    "GaussianProcessRegressor": ("targets", {"optimizer": None}),
    "GaussianProcessRegressor, nystroem": ("targets", {"optimizer": None, "solver": "nystroem"}),
    "GaussianProcessRegressor, cg": ("targets", {"optimizer": None, "solver": "cg"}),
    "KernelRidge": ("targets", {"kernel": "rbf"}),
    "KernelRidge, cholesky": ("targets", {"kernel": "rbf", "solver": "cholesky"}),
    "KernelRidge, mixed": ("targets", {"kernel": "rbf", "solver": "mixed"}),
    "KernelRidge, cg": ("targets", {"kernel": "rbf", "solver": "cg"}),
    "KernelRidge, nystroem": ("targets", {"kernel": "rbf", "solver": "nystroem"}),
    "KernelRidge, lstsq": ("targets", {"kernel": "rbf", "solver": "lstsq"}),
    "KernelRidge, krill": ("targets", {"kernel": "rbf", "solver": "krill"}),
    "KernelRidgeCV": ("targets", {"kernel": "rbf"}),
    "KernelRidgeCV, nystroem": ("targets", {"kernel": "rbf", "solver": "nystroem"}),
    "RFMRegressor": ("targets", {"max_rounds": 1, "search_points": 200}),
    "RFMRegressor, nystroem": (
        "targets",
        {"max_rounds": 1, "search_points": 200, "solver": "nystroem"},
    ),
    "RFMClassifier": ("labels", {"max_rounds": 1, "search_points": 200}),
    "KernelPCA": ("", {"n_components": 5, "kernel": "rbf"}),
    "KernelPCA, dense": ("", {"n_components": 5, "kernel": "rbf", "eigen_solver": "dense"}),
    "KernelPCA, krylov": (
        "",
        {"n_components": 5, "kernel": "rbf", "eigen_solver": "krylov", "storage": "dense"},
    ),
    "KernelPCA, nystroem": ("", {"n_components": 5, "kernel": "rbf", "eigen_solver": "nystroem"}),
    "KernelPCA, features": ("", {"n_components": 5, "kernel": "rbf", "eigen_solver": "features"}),
    "KernelKMeans": ("", {"n_clusters": 5, "kernel": "rbf"}),
    "KernelKMeans, nystroem": ("", {"n_clusters": 5, "kernel": "rbf", "solver": "nystroem"}),
    "KernelKNeighborsClassifier": ("labels", {}),
    "KernelKNeighborsRegressor": ("targets", {}),
    "KernelRadiusNeighborsClassifier": ("labels", {}),
    "KernelLogisticRegression": ("labels", {}),
    "KernelLogisticRegression, nystroem": ("labels", {"solver": "nystroem"}),
    "KernelLogisticRegressionCV": ("labels", {"Cs": 3, "cv": 2}),
    "KernelMachineRegressor": ("targets", {}),
    "KernelMachineRegressor, nystroem": ("targets", {"solver": "nystroem"}),
    "KernelMachineClassifier": ("labels", {}),
    "KernelFisherDiscriminant": ("labels", {}),
    "KernelFisherDiscriminant, nystroem": ("labels", {"solver": "nystroem"}),
    "KernelCCA": ("view", {}),
    "KernelCCA, nystroem": ("view", {"solver": "nystroem"}),
    "KernelPLS": ("view", {}),
    "KernelPerceptron": ("labels", {}),
    "KernelRecursiveLeastSquares": ("targets", {}),
    "OnlineKernelRegressor": ("targets", {}),
    "SparseKernelRegressor": ("targets", {}),
    "SparseKernelClassifier": ("labels", {}),
    "ParzenDensity": ("", {}),
    "GPLVM": ("", {"max_iter": 3}),
    "BayesianGPLVM": ("", {"max_iter": 3}),
    "ProbabilisticPCA": ("", {}),
    "MetricMDS": ("", {"max_iter": 5, "n_init": 1}),
    "KernelICA": ("", {"max_iter": 5}),
    "NeuroScale": ("", {"max_iter": 5, "n_init": 1}),
    "Autoencoder": ("", {"max_iter": 5, "n_init": 1}),
    "AdditiveChi2Sampler": ("", {}),
    "ExplicitFeatures": ("", {}),
    "Nystroem": ("", {}),
    "PolynomialCountSketch": ("", {}),
    "RandomFeatures": ("", {}),
    "RBFSampler": ("", {}),
    "SkewedChi2Sampler": ("", {}),
    "SVC": ("labels", {}),
    "SVC, linear": ("labels", {"kernel": "linear"}),
    "SVC, primal": ("labels", {"kernel": "linear", "solver": "primal"}),
    "SVC, nystroem": ("labels", {"solver": "nystroem"}),
    "NuSVC": ("labels", {"nu": 0.2}),
    "SVR": ("targets", {}),
    "NuSVR": ("targets", {}),
    "OneClassSVM": ("", {}),
}


def make_data(kind: str, n: int) -> tuple[Any, ...]:
    """Return n points in the unit cube and, depending on `kind`, targets, labels or a view."""
    rng = np.random.default_rng(0)
    X = rng.random((n, COLUMNS))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    second = {"targets": y, "labels": np.digitize(y, np.quantile(y, (1 / 3, 2 / 3)))}
    second["view"] = np.c_[y, X[:, :4] + rng.standard_normal((n, 4))]
    return (X, second[kind]) if kind else (X,)


def run(name: str, n: int, **forced: str) -> dict[str, Any]:
    """Return the predicted memory and time of one fit, and those measured in this process."""
    import mercer.estimators

    warnings.simplefilter("ignore")
    kind, options = MODELS[name]
    model = getattr(mercer.estimators, name.partition(",")[0])(**options | forced)
    model.fit(*make_data(kind, WARM_UP_POINTS))
    data = make_data(kind, n)
    plan = model.plan(*data)

    def fit() -> None:
        model.fit(*data)

    release_freed_memory()
    start = time.process_time()
    result: dict[str, Any] = {"peak": peak_memory(fit) or 0, "seconds": time.process_time() - start}
    if plan.chosen is not None:
        chosen = plan.chosen
        result |= {"solver": f"{chosen.solver}, {chosen.storage}", "memory": chosen.memory}
    return result


def run_in_process(name: str, n: int) -> dict[str, Any] | None:
    """Return the result of `run` in a fresh process; None if it failed."""
    command = [sys.executable, "-m", "benchmarks.plan", "--run", name, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name:36} {n:6}  failed: {done.stderr.strip().splitlines()[-1][:100]}", flush=True)
        return None
    return json.loads(done.stdout)


def compare_memory(names: list[str], sizes: list[int]) -> None:
    """Print predicted and measured memory of each estimator, and how many predictions are right."""
    print(f"{'estimator':36} {'points':>6}  {'solver, storage':24} predicted  measured  ratio")
    ratios = []
    for name in names:
        for n in sizes:
            if n > MAX_POINTS.get(name.partition(",")[0], np.inf):
                continue
            if (result := run_in_process(name, n)) is None:
                continue
            ratio = result["memory"] / max(result["peak"], 1)
            counts = max(result["peak"], result["memory"]) >= MIN_PEAK
            ratios += [ratio] if counts else []
            print(
                f"{name:36} {n:6}  {result['solver']:24} {result['memory'] / 2**20:5.0f} MiB "
                f"{result['peak'] / 2**20:5.0f} MiB  "
                + (f"{ratio:5.2f}" if counts else "    -")
                + ("" if not counts or 1 / TOLERANCE <= ratio <= TOLERANCE else "  !"),
                flush=True,
            )
    right = [1 / TOLERANCE <= ratio <= TOLERANCE for ratio in ratios]
    print(f"within a factor of {TOLERANCE}: {sum(right)} of {len(right)}")


# For each estimator: the data, its parameters, and the parameters that force each option.
FORCED: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "KernelRidge": (
        "targets",
        {"kernel": "rbf", "rank": 300},
        [{"solver": name} for name in ("cholesky", "mixed", "cg", "lstsq", "nystroem", "krill")],
    ),
    "KernelPCA": (
        "",
        {"n_components": 5, "kernel": "rbf", "rank": 300},
        [
            *({"eigen_solver": "krylov", "storage": storage} for storage in ("dense", "tiled")),
            *({"eigen_solver": name} for name in ("dense", "nystroem")),
        ],
    ),
    "KernelLogisticRegression": (
        "labels",
        {"rank": 300},
        [{"solver": name} for name in ("newton", "nystroem")],
    ),
    "GaussianProcessRegressor": (
        "targets",
        {"optimizer": None, "rank": 300, "alpha": 0.1},
        [{"solver": name} for name in ("cholesky", "nystroem", "cg")],
    ),
    "KernelKMeans": (
        "",
        {"n_clusters": 5, "kernel": "rbf", "rank": 300, "n_init": 1},
        [{"solver": name} for name in ("exact", "nystroem")],
    ),
    "SVC": (
        "labels",
        {"kernel": "linear", "rank": 300},
        [{"solver": name} for name in ("smo", "primal", "nystroem")],
    ),
}


def compare_times(names: list[str], sizes: list[int]) -> None:
    """Print predicted and measured times of the options, and how many pairs are in order."""
    import mercer.estimators

    warnings.simplefilter("ignore")
    right = total = 0
    for name, n in ((name, n) for name in names if name in FORCED for n in sizes):
        kind, options, forced = FORCED[name]
        data, times = make_data(kind, n), []
        for choice in forced:
            model = getattr(mercer.estimators, name)(n_jobs=1, **options | choice)
            model.fit(*make_data(kind, WARM_UP_POINTS))
            predicted, start = model.plan(*data).seconds, time.process_time()
            model.fit(*data)
            times.append((predicted, time.process_time() - start))
            title = ", ".join(map(str, choice.values()))
            print(f"{name:26} {n:6}  {title:16} {predicted:8.3f} s predicted {times[-1][1]:8.3f} s")
        pairs = list(combinations(times, 2))
        right += sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs)
        total += len(pairs)
    print(f"pairs of options in the right order: {right} of {total}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="estimators; all by default")
    parser.add_argument("--sizes", type=int, nargs="*", default=[2000, 4000, 8000])
    parser.add_argument("--times", action="store_true", help="compare times instead of memory")
    parser.add_argument("--run", nargs=2, metavar=("NAME", "POINTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run[0], int(options.run[1]))))
        return
    wanted = options.names or list(MODELS)
    names = [name for name in MODELS if name in wanted or name.partition(",")[0] in wanted]
    if options.times:
        compare_times(options.names or list(FORCED), options.sizes)
    else:
        compare_memory(names, options.sizes)


if __name__ == "__main__":
    main()
