"""How close the "auto" choices are to the best alternative: `python -m benchmarks.auto`.

    ratio = processor time of "auto" / smallest processor time of the alternatives

The problems vary in size, columns, components and spectrum; some are real data, some generated.
One BLAS thread and processor time are used, so that other programs on the computer have little
influence.  The smallest time of `--repeat` rounds counts.  The output ends with the median and the
worst ratio of each suite.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # must be set before NumPy is imported

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._problems import is_available, load_problem

NEGLIGIBLE_SECONDS = 0.02  # added to both times, so that ratios of very short times are close to 1

# A title, a function that fits with a given solver, and the names of the solvers.
Problem = tuple[str, Callable[[str], Any], list[str]]


def datasets(n: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield generated and real point sets of n points, with their names."""
    yield "normal", load_problem("normal", n, 20).X
    yield "falling", load_problem("falling", n, 20).X
    yield "wide", load_problem("plane", n, 150).X
    for name in filter(is_available, ("usps", "letter")):
        yield name, load_problem(name, n).X


def pca(sizes: tuple[int, ...]) -> Iterator[Problem]:
    """Yield problems for `KernelPCA(eigen_solver="auto")`."""
    from mercer import KernelPCA

    for n in sizes:
        for (name, X), k in itertools.product(datasets(n), (2, 10, 30, 100, 300)):
            if k > n // 4:
                continue

            def fit(solver: str, X: np.ndarray = X, k: int = k) -> Any:
                eigen_solver, _, storage = solver.partition(", ")
                options = {"eigen_solver": eigen_solver, "storage": storage or "auto"}
                return KernelPCA(k, kernel="rbf", gamma="scale", n_jobs=1, **options).fit(X)

            solvers = ["dense", "krylov, dense", "krylov, tiled"]
            yield f"{name} {n}x{X.shape[1]} k={k}", fit, solvers


def ridge(sizes: tuple[int, ...]) -> Iterator[Problem]:
    """Yield problems for `KernelRidge(solver="auto")`."""
    from mercer import KernelRidge

    for n in sizes:
        for (name, X), alpha in itertools.product(datasets(n), (1.0, 1e-2)):
            y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(n)

            def fit(solver: str, X: Any = X, y: Any = y, alpha: float = alpha) -> Any:
                return KernelRidge(alpha, kernel="rbf", solver=solver, n_jobs=1).fit(X, y)

            solvers = ["cholesky", "mixed", "cg"]
            yield f"{name} {n}x{X.shape[1]} alpha={alpha:g}", fit, solvers


def svm(sizes: tuple[int, ...]) -> Iterator[Problem]:
    """Yield problems for `SVC(kernel="linear", solver="auto")`."""
    from mercer import SVC

    rng = np.random.default_rng(2)
    for n in sizes:
        problems_with_labels: list[tuple[str, np.ndarray, np.ndarray]] = []
        for name, d, classes in (("line", 20, 2), ("line", 300, 2), ("blobs", 60, 2)):
            problems_with_labels.append((name, *load_problem(name, n, d, classes=classes)[:2]))
        binary = (rng.random((n, 200)) < 0.1).astype(float)
        problems_with_labels.append(("0/1", binary, binary @ rng.standard_normal(200) > 0))
        for name in filter(is_available, ("usps", "letter")):
            X, y, *_ = load_problem(name, n)
            problems_with_labels += [
                (f"{name}, one class against the rest", X, y == y[0]),
                (name, X, y),
            ]
        for (name, X, y), C in itertools.product(problems_with_labels, (1.0, 10.0)):

            def fit(solver: str, X: Any = X, y: Any = y, C: float = C) -> Any:
                return SVC(kernel="linear", C=C, solver=solver, n_jobs=1).fit(X, y)

            yield f"{name} {n}x{X.shape[1]} C={C:g}", fit, ["smo", "primal"]


SUITES = {
    "pca": (pca, (500, 1500, 3000)),
    "ridge": (ridge, (2500, 5000)),
    "svm": (svm, (1000, 3000)),
}


def processor_time(fit: Callable[[str], Any], solver: str, repeat: int) -> float:
    """Return the smallest processor time of `repeat` fits; stop early if one takes over 2 s."""
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        fit(solver)
        best = min(best, time.process_time() - start)
        if best > 2.0:
            break
    return float(best)


def main() -> None:
    """Print the ratios of all problems, and their median and maximum for each suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for suite in options.suites:
        problems, sizes = SUITES[suite]
        ratios = []
        for name, fit, solvers in problems(tuple(options.sizes or sizes)):
            if not ratios:
                fit("auto")  # compile before timing
            times = {
                solver: processor_time(fit, solver, options.repeat) for solver in ("auto", *solvers)
            }
            auto = times.pop("auto")
            solver = min(times, key=lambda solver: times[solver])
            ratios.append((auto + NEGLIGIBLE_SECONDS) / (times[solver] + NEGLIGIBLE_SECONDS))
            shown = "  ".join(f"{name} {seconds / auto:5.2f}" for name, seconds in times.items())
            print(
                f"{suite:6}{name:32} auto / best {ratios[-1]:5.2f}   relative to auto: {shown}",
                flush=True,
            )
        print(
            f"{suite}: median {np.median(ratios):.2f}, worst {max(ratios):.2f} "
            f"over {len(ratios)} problems\n"
        )


if __name__ == "__main__":
    main()
