"""Compare every estimator that scikit-learn also has, by n and d: `python -m benchmarks.grid`.

    ratio = smallest time of scikit-learn / smallest time of mercer        (the goal is at least 1)

This is computed for a fit, for the prediction of one row, and of 1000 rows.  There are hundreds of
cells, so both libraries take turns in one process.  The results of the fits are compared by the
error measure in `_models`; for SVMs with more than 3000 points, where both use their default
tolerance, three times the error is accepted.  Cells in which scikit-learn needs more than a minute,
or in which the results differ, are left out (a dash).  `Nystroem` is compared at equal error:
scikit-learn gets as many components as it needs for the error of 100 components of mercer.  The
tables are written to results/grid.md.  Memory is the peak of the first fit besides inputs and
outputs, scikit-learn's divided by mercer's.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._measure import measure, release_freed_memory
from ._models import MODELS, Library, Model
from ._problems import default_gamma, load_problem

SIZES = (100, 300, 1000, 3000, 10_000, 20_000)
COLUMNS = (2, 10, 50)
# Largest n for each estimator; more would take scikit-learn over a minute.
MAX_POINTS = {"GaussianProcessRegressor": 1000, "GaussianProcessClassifier": 1000}
MAX_POINTS |= {"KernelRidge": 10_000, "KernelPCA": 3000, "NuSVC": 10_000}
MAX_POINTS_EXACT_SVM = 3000  # up to this n, scikit-learn solves SVMs with tol=1e-6 as reference
MAX_POINTS_ALL_COLUMNS = 10_000  # with more points, only the middle value of COLUMNS is used
N_QUERIES, N_CHECKED_QUERIES = 1000, 200  # rows to predict, and how many of them are compared
JOBS = ("fit", "one row", f"{N_QUERIES} rows", "memory")
LIBRARIES = ("scikit-learn", "mercer")
# The estimator that is compared at equal error, the numbers of components to try, and the number
# of seeds to average over.
EQUAL_ERROR_MODEL, COMPONENT_NUMBERS, N_SEEDS = (
    "Nystroem",
    (100, 110, 120, 140, 170, 200, 250, 300, 400, 600, 1000),
    3,
)
RESULTS_FILE = Path(__file__).parent / "results" / "grid.md"


def time_ratio(calls: dict[str, Callable[[], Any]], seconds: float) -> float:
    """Return the ratio of the smallest times of both libraries, which take turns.

    They are called until `seconds` have passed, at least once and at most 50 times each.
    """
    best, start, rounds = dict.fromkeys(calls, float("inf")), time.perf_counter(), 0
    while rounds < 1 or (time.perf_counter() - start < seconds and rounds < 50):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
        rounds += 1
    return best["scikit-learn"] / best["mercer"]


def components_for_equal_error(spec: Model, gamma: float, X: np.ndarray, Q: np.ndarray) -> int:
    """Return how many components scikit-learn needs for mercer's error, averaged over seeds."""

    def error(library: str, m: int) -> float:
        new = (spec.make(Library(library), gamma) for _ in range(N_SEEDS))
        samplers = (
            sampler.set_params(n_components=m, random_state=s) for s, sampler in enumerate(new)
        )
        return float(np.mean([spec.compared_result(sampler.fit(X), Q) for sampler in samplers]))

    target = error("mercer", COMPONENT_NUMBERS[0])
    candidates = [m for m in COMPONENT_NUMBERS if m <= len(X)]
    return next((m for m in candidates if error("scikit-learn", m) <= target), candidates[-1])


def compare_cell(model: str, n: int, d: int, seconds: float) -> dict[str, float]:
    """Return the ratios of one estimator for given n and d, or {} if the results differ.

    The data are the generated set "waves", with two classes for classifiers.
    """
    spec = MODELS[model]
    classes = {"classes": 2} if spec.targets == "labels" else {}
    X, y, Q, _ = load_problem("waves", n, d, noise=0.3, queries=N_QUERIES, **classes)
    gamma = default_gamma(X)
    models = {name: spec.make(Library(name), gamma) for name in LIBRARIES}
    if model == EQUAL_ERROR_MODEL:
        models["scikit-learn"].set_params(
            n_components=components_for_equal_error(spec, gamma, X, Q[:N_CHECKED_QUERIES])
        )
    models["mercer"].fit(X, y)  # compile before timing
    scratch = {}
    for name, estimator in models.items():
        release_freed_memory()
        scratch[name] = measure(lambda estimator=estimator: estimator.fit(X, y) and None)[2]
    reference = models["scikit-learn"]
    if "SV" in model and n <= MAX_POINTS_EXACT_SVM:  # the default tolerance of SVMs is too coarse
        reference = spec.make(Library("scikit-learn"), gamma).set_params(tol=1e-6).fit(X, y)
    difference = spec.error(
        spec.compared_result(models["mercer"], Q[:N_CHECKED_QUERIES]),
        spec.compared_result(reference, Q[:N_CHECKED_QUERIES]),
    )
    if not difference <= spec.tolerance * (1.0 if n <= MAX_POINTS_EXACT_SVM else 3.0):
        print(f"{model}, n = {n}, d = {d}: results differ by {difference:.1e}, not compared")
        return {}
    results = {"fit": time_ratio({k: lambda m=m: m.fit(X, y) for k, m in models.items()}, seconds)}
    for job, rows in (("one row", Q[:1]), (f"{N_QUERIES} rows", Q)):
        methods = {k: getattr(m, spec.predict_method) for k, m in models.items()}
        results[job] = time_ratio(
            {k: lambda f=f, R=rows: f(R) for k, f in methods.items()}, seconds / 3
        )
    if None not in scratch.values():  # below one megabyte, the allocator dominates
        peer_bytes, mercer_bytes = (max(scratch[name], 2**20) for name in LIBRARIES)
        results["memory"] = peer_bytes / mercer_bytes
    return results


def format_tables(results: dict[str, dict[tuple[int, int], dict[str, float]]]) -> str:
    """Return one table for each job, with a row for each estimator and a column for each (n, d)."""
    sizes = sorted({cell for row in results.values() for cell in row})
    text = "# Every estimator by n and d\n\nGenerated by `python -m benchmarks.grid`: "
    text += "ratios scikit-learn / mercer. Above 1, mercer is faster or needs less memory.\n"
    fewest, most = COMPONENT_NUMBERS[0], COMPONENT_NUMBERS[-1]
    text += (
        f"`{EQUAL_ERROR_MODEL}` is compared at equal error: scikit-learn has as many components "
    )
    text += f"as it needs for the error of mercer with {fewest} components, at most {most}.\n"
    for job in JOBS:
        text += f"\n| {job} | {' | '.join(f'{n}, {d}' for n, d in sizes)} |\n"
        text += f"|---|{'---|' * len(sizes)}\n"
        for model, row in results.items():
            cells = [row.get(cell, {}).get(job) for cell in sizes]
            shown = " | ".join("–" if c is None else f"{c:.2g}" for c in cells)
            text += f"| {model} | {shown} |\n"
        ratios = [c[job] for row in results.values() for c in row.values() if job in c]
        n_below = sum(c < 1.0 for c in ratios)
        text += f"\n{job}: median {statistics.median(ratios):.2g}, worst {min(ratios):.2g}, "
        text += f"{n_below} of {len(ratios)} below 1.\n"
    return text


def main() -> None:
    """Fill the grid and print its tables; write them to results/grid.md if the grid is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--seconds", type=float, default=1.0, help="time budget for each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # kernel parameters of a Gaussian process at a bound
    results: dict[str, dict[tuple[int, int], dict[str, float]]] = {}
    for n in options.sizes:
        for model in options.models:
            for d in options.columns:
                if n > MAX_POINTS.get(model, SIZES[-1]) or (
                    n > MAX_POINTS_ALL_COLUMNS and d != COLUMNS[1]
                ):
                    continue
                row = results.setdefault(model, {})
                row[n, d] = compare_cell(model, n, d, options.seconds)
                shown = "  ".join(f"{job} {ratio:.2g}" for job, ratio in row[n, d].items())
                print(f"{model:28}{n:6}{d:4}  {shown}", flush=True)
    is_complete = (options.models, options.sizes, options.columns) == (list(MODELS), SIZES, COLUMNS)
    if is_complete:
        RESULTS_FILE.write_text(format_tables(results))
    print(f"\n{format_tables(results)}")


if __name__ == "__main__":
    main()
