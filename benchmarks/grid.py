"""Every estimator that scikit-learn has too, by n and d: `python -m benchmarks.grid`.

    ratio = least time of scikit-learn / least time of mercer        none below 1 is wanted

of a fit, of the prediction of one row, and of 1000.  Hundreds of cells: both libraries take turns
in one process, the fits are held against each other by the measure of `_models` (machines of
more than 3000 points, both at their default tolerance, with three times the allowance), and what
is beyond a minute of the peer's, or differs, is left out, with a dash.  Landmarks are not compared
by their number: for `Nystroem` the peer has as many components as it needs for the error of 100 of
ours.  The table goes to results/grid.md; memory is the peak beside inputs and outputs of the first
fit, the peer's over ours.
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

from ._measure import measure, settle
from ._models import MODELS, Library, Model
from ._problems import draw, width

SIZES = (100, 300, 1000, 3000, 10_000, 20_000)
COLUMNS = (2, 10, 50)
MOST = {"GaussianProcessRegressor": 1000, "GaussianProcessClassifier": 1000}
MOST |= {"KernelRidge": 10_000, "KernelPCA": 3000, "NuSVC": 10_000}
CHECKED = 3000  # points up to which the peer's machines are solved to 1e-6 for comparison
LARGEST = 10_000  # points in each of the columns; more in the middle one alone
QUERIES, CHECKS = 1000, 200  # rows that are predicted, and those by which results are compared
JOBS = ("fit", "one row", f"{QUERIES} rows", "memory")
LIBRARIES = ("scikit-learn", "mercer")
EQUAL, NUMBERS, SEEDS = "Nystroem", (100, 110, 120, 140, 170, 200, 250, 300, 400, 600, 1000), 3
RESULTS = Path(__file__).parent / "results" / "grid.md"


def least(calls: dict[str, Callable[[], Any]], seconds: float) -> float:
    """The ratio of the least times of both, in turns until so many seconds are over."""
    best, start, rounds = dict.fromkeys(calls, float("inf")), time.perf_counter(), 0
    while rounds < 1 or (time.perf_counter() - start < seconds and rounds < 50):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begun)
        rounds += 1
    return best["scikit-learn"] / best["mercer"]


def components(rule: Model, gamma: float, X: np.ndarray, Q: np.ndarray) -> int:
    """How many components the peer needs for the error of ours, both in the mean over seeds."""

    def error(library: str, m: int) -> float:
        made = (rule.make(Library(library), gamma) for _ in range(SEEDS))
        maps = (phi.set_params(n_components=m, random_state=s) for s, phi in enumerate(made))
        return float(np.mean([rule.found(phi.fit(X), Q) for phi in maps]))

    ours = error("mercer", NUMBERS[0])
    numbers = [m for m in NUMBERS if m <= len(X)]
    return next((m for m in numbers if error("scikit-learn", m) <= ours), numbers[-1])


def cell(model: str, n: int, d: int, seconds: float) -> dict[str, float]:
    """A function of noisy waves, cut into two classes for classifiers."""
    rule = MODELS[model]
    classes = {"classes": 2} if rule.learns == "labels" else {}
    X, y, Q, _ = draw("waves", n, d, noise=0.3, queries=QUERIES, **classes)
    gamma = width(X)
    models = {name: rule.make(Library(name), gamma) for name in LIBRARIES}
    if model == EQUAL:
        models["scikit-learn"].set_params(n_components=components(rule, gamma, X, Q[:CHECKS]))
    models["mercer"].fit(X, y)  # compiles
    scratch = {}
    for name, machine in models.items():
        settle()
        scratch[name] = measure(lambda machine=machine: machine.fit(X, y) and None)[2]
    truth = models["scikit-learn"]
    if "SV" in model and n <= CHECKED:  # whose default tolerance leaves much
        truth = rule.make(Library("scikit-learn"), gamma).set_params(tol=1e-6).fit(X, y)
    apart = rule.error(rule.found(models["mercer"], Q[:CHECKS]), rule.found(truth, Q[:CHECKS]))
    if not apart <= rule.tolerance * (1.0 if n <= CHECKED else 3.0):
        print(f"{model}, n = {n}, d = {d}: results differ by {apart:.1e}, not compared")
        return {}
    found = {"fit": least({k: lambda m=m: m.fit(X, y) for k, m in models.items()}, seconds)}
    for job, rows in (("one row", Q[:1]), (f"{QUERIES} rows", Q)):
        verbs = {k: getattr(m, rule.verb) for k, m in models.items()}
        found[job] = least({k: lambda f=f, R=rows: f(R) for k, f in verbs.items()}, seconds / 3)
    if None not in scratch.values():  # less than a megabyte is an allocator's noise
        theirs, ours = (max(scratch[name], 2**20) for name in LIBRARIES)
        found["memory"] = theirs / ours
    return found


def tables(found: dict[str, dict[tuple[int, int], dict[str, float]]]) -> str:
    """One table for each job: rows of estimators, columns of n and d."""
    sizes = sorted({place for row in found.values() for place in row})
    text = "# Every estimator by n and d\n\nWritten by `python -m benchmarks.grid`: "
    text += "scikit-learn / mercer, above 1 mercer is faster, or takes less memory.\n"
    text += f"For `{EQUAL}`, whose landmarks differ, at equal error: scikit-learn has as many "
    text += f"components as it needs for that of {NUMBERS[0]} of mercer's, at most {NUMBERS[-1]}.\n"
    for job in JOBS:
        text += f"\n| {job} | {' | '.join(f'{n}, {d}' for n, d in sizes)} |\n"
        text += f"|---|{'---|' * len(sizes)}\n"
        for model, row in found.items():
            cells = [row.get(place, {}).get(job) for place in sizes]
            shown = " | ".join("–" if c is None else f"{c:.2g}" for c in cells)
            text += f"| {model} | {shown} |\n"
        every = [c[job] for row in found.values() for c in row.values() if job in c]
        low = sum(c < 1.0 for c in every)
        text += f"\n{job}: median {statistics.median(every):.2g}, worst {min(every):.2g}, "
        text += f"{low} of {len(every)} below 1.\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # that a parameter of a process is on a bound
    found: dict[str, dict[tuple[int, int], dict[str, float]]] = {}
    for n in options.sizes:
        for model in options.models:
            for d in options.columns:
                if n > MOST.get(model, SIZES[-1]) or (n > LARGEST and d != COLUMNS[1]):
                    continue
                row = found.setdefault(model, {})
                row[n, d] = cell(model, n, d, options.seconds)
                shown = "  ".join(f"{job} {ratio:.2g}" for job, ratio in row[n, d].items())
                print(f"{model:28}{n:6}{d:4}  {shown}", flush=True)
    whole = (options.models, options.sizes, options.columns) == (list(MODELS), SIZES, COLUMNS)
    if whole:
        RESULTS.write_text(tables(found))
    print(f"\n{tables(found)}")


if __name__ == "__main__":
    main()
