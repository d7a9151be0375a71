"""How far each "auto" is from the best of its alternatives: `python -m benchmarks.auto`.

    ratio = processor time of "auto" / least processor time of the alternatives

over a declared family of problems: sizes, columns, components, spectra, real sets and drawn ones.
One BLAS thread and processor time, so that other work on the machine matters little; the least of
`--repeat` rounds.  It ends with the median and the worst ratio of each suite.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._problems import draw, there

NOISE = 0.02  # seconds that count as none, of both sides

Problem = tuple[str, Callable[[str], Any], list[str]]


def sets(n: int) -> Iterator[tuple[str, np.ndarray]]:
    yield "normal", draw("normal", n, 20).X
    yield "falling", draw("falling", n, 20).X
    yield "wide", draw("plane", n, 150).X
    for name in filter(there, ("usps", "letter")):
        yield name, draw(name, n).X


def pca(sizes: tuple[int, ...]) -> Iterator[Problem]:
    from mercer import KernelPCA

    for n in sizes:
        for (name, X), k in itertools.product(sets(n), (2, 10, 30, 100, 300)):
            if k > n // 4:
                continue

            def fit(way: str, X: np.ndarray = X, k: int = k) -> Any:
                solver, _, storage = way.partition(", ")
                options = {"eigen_solver": solver, "storage": storage or "auto"}
                return KernelPCA(k, kernel="rbf", gamma="scale", n_jobs=1, **options).fit(X)

            ways = ["dense", "krylov, dense", "krylov, tiled"]
            yield f"{name} {n}x{X.shape[1]} k={k}", fit, ways


def ridge(sizes: tuple[int, ...]) -> Iterator[Problem]:
    from mercer import KernelRidge

    for n in sizes:
        for (name, X), alpha in itertools.product(sets(n), (1.0, 1e-2)):
            y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(n)

            def fit(way: str, X: Any = X, y: Any = y, alpha: float = alpha) -> Any:
                return KernelRidge(alpha, kernel="rbf", solver=way, n_jobs=1).fit(X, y)

            ways = ["cholesky", "mixed", "cg"]
            yield f"{name} {n}x{X.shape[1]} alpha={alpha:g}", fit, ways


def svm(sizes: tuple[int, ...]) -> Iterator[Problem]:
    from mercer import SVC

    rng = np.random.default_rng(2)
    for n in sizes:
        made: list[tuple[str, np.ndarray, np.ndarray]] = []
        for name, d, classes in (("line", 20, 2), ("line", 300, 2), ("blobs", 60, 2)):
            made.append((name, *draw(name, n, d, classes=classes)[:2]))
        zeros = (rng.random((n, 200)) < 0.1).astype(float)
        made.append(("0/1", zeros, zeros @ rng.standard_normal(200) > 0))
        for name in filter(there, ("usps", "letter")):
            X, y, *_ = draw(name, n)
            made += [(f"{name}, one or not", X, y == y[0]), (name, X, y)]
        for (name, X, y), C in itertools.product(made, (1.0, 10.0)):

            def fit(way: str, X: Any = X, y: Any = y, C: float = C) -> Any:
                return SVC(kernel="linear", C=C, solver=way, n_jobs=1).fit(X, y)

            yield f"{name} {n}x{X.shape[1]} C={C:g}", fit, ["smo", "primal"]


SUITES = {
    "pca": (pca, (500, 1500, 3000)),
    "ridge": (ridge, (2500, 5000)),
    "svm": (svm, (1000, 3000)),
}


def measured(fit: Callable[[str], Any], way: str, repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        fit(way)
        best = min(best, time.process_time() - start)
        if best > 2.0:
            break
    return float(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=list(SUITES))
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for suite in options.suites:
        problems, sizes = SUITES[suite]
        ratios = []
        for title, fit, ways in problems(tuple(options.sizes or sizes)):
            if not ratios:
                fit("auto")  # compiles
            times = {way: measured(fit, way, options.repeat) for way in ("auto", *ways)}
            auto = times.pop("auto")
            way = min(times, key=lambda way: times[way])
            ratios.append((auto + NOISE) / (times[way] + NOISE))
            shown = "  ".join(f"{name} {seconds / auto:5.2f}" for name, seconds in times.items())
            print(
                f"{suite:6}{title:32} auto / best {ratios[-1]:5.2f}   of auto: {shown}", flush=True
            )
        print(
            f"{suite}: median {np.median(ratios):.2f}, worst {max(ratios):.2f} of {len(ratios)}\n"
        )


if __name__ == "__main__":
    main()
