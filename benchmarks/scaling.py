"""python -m benchmarks.scaling [--picture FILE]: the law T(n, p), measured, and predictions.

    landmarks    T = n t / p                                  t: seconds for a row, on one core
    exact        T = passes (n^2 / (2 p r) + 16 n c / B)      r: entries of K a second and core

The slopes over n are measured in this process on one thread, those over p on a local cluster of
Dask; predictions for other sizes assume the same cores, and B bytes a second between them.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from mercer import Blocks, KernelPCA
from mercer._runtime import threads
from mercer.gram import TiledGram
from mercer.kernels import RBF

LANDMARKS, COLUMNS, ROWS = 256, 20, 8192
SIZES = (32_768, 65_536, 131_072)
EXACT = (4096, 8192, 16_384)
VECTORS = 16  # columns of a product with K
BANDWIDTH = 1e9  # bytes a second, assumed
KRYLOV = 5  # passes of an exact kernel PCA
LONG = ((10**7, 2), (10**8, 16), (10**9, 64))


def points(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, COLUMNS))


def model() -> KernelPCA:
    chosen = points(LANDMARKS)
    return KernelPCA(8, kernel="rbf", gamma=0.02, eigen_solver="nystroem", landmarks=chosen)


def timed(run, repeat: int = 2) -> float:
    """The least time of some runs, after one that compiles."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def by_rows() -> dict[int, float]:
    """Seconds of a fit on landmarks over n, in one thread."""
    blocks = {n: Blocks.of(points(n), ROWS) for n in SIZES}
    with threads(1):
        return {n: timed(lambda X=X: model().fit(X)) for n, X in blocks.items()}


def by_workers() -> dict[int, float]:
    """Seconds of the same on a cluster, over the number of workers."""
    import dask.array as da
    from distributed import Client, LocalCluster

    found = {}
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    for p in (1, 2):
        with LocalCluster(n_workers=p, **options) as cluster, Client(cluster):
            shape = (SIZES[-1], COLUMNS)
            X = da.random.default_rng(0).standard_normal(shape, chunks=(ROWS, COLUMNS))
            found[p] = timed(lambda X=X: model().fit(X))
    return found


def by_pairs() -> dict[int, float]:
    """Seconds of one product with all of K over n, in one thread."""
    found, kernel = {}, RBF(5.0)
    for n in EXACT:
        K, V = TiledGram(kernel, points(n), n_threads=1), np.ones((n, VECTORS))
        found[n] = timed(lambda K=K, V=V: K @ V)
    return found


def slope(times: dict[int, float]) -> float:
    """The exponent of a power law."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def in_words(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to draw the law: a file .png or .svg")
    parser.add_argument("--without-cluster", action="store_true")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors; landmarks {LANDMARKS}, columns {COLUMNS}, blocks {ROWS}")
    rows, pairs = by_rows(), by_pairs()
    a_row = rows[SIZES[-1]] / SIZES[-1]
    rate = EXACT[-1] ** 2 / 2 / pairs[EXACT[-1]]
    print(f"landmarks, one thread: {rows}\n  T ~ n^{slope(rows):.2f}, {1e6 * a_row:.2f} us a row")
    print(f"one product with K:    {pairs}\n  T ~ n^{slope(pairs):.2f}, r = {rate:.2g} entries/s")
    if not options.without_cluster:
        workers = by_workers()
        print(f"landmarks, workers:    {workers}\n  two are {workers[1] / workers[2]:.2f}x one")
    for n, p in LONG:
        print(f"landmarks, n = {n:.0e}, {p} cores: {in_words(n * a_row / p)}")
    n, p = 10**6, 64
    exact = KRYLOV * (n**2 / (2 * p * rate) + 16 * n * VECTORS / BANDWIDTH)
    print(f"exact, n = {n:.0e}, {p} cores, {KRYLOV} passes, B = {BANDWIDTH:.0e}: {in_words(exact)}")
    if options.picture:
        draw(options.picture, rows, pairs, a_row, rate)


def draw(path: str, rows: dict, pairs: dict, a_row: float, rate: float) -> None:
    """Both laws over n, for one core and 64, with what was measured."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    n = np.geomspace(1e4, 1e9, 100)
    for p, style in ((1, "-"), (64, "--")):
        axes.plot(n, n * a_row / p, "C0" + style, label=f"landmarks, {p} cores")
        exact = KRYLOV * (n**2 / (2 * p * rate) + 16 * n * VECTORS / BANDWIDTH)
        axes.plot(n, exact, "C1" + style, label=f"exact, {p} cores")
    axes.plot(list(rows), list(rows.values()), "C0o")
    axes.plot(list(pairs), [KRYLOV * t for t in pairs.values()], "C1o")
    axes.set(xscale="log", yscale="log", xlabel="points n", ylabel="seconds", ylim=(1e-1, 1e9))
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
