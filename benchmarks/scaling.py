"""Measure how time grows with n and workers: python -m benchmarks.scaling [--picture FILE].

    landmarks    T = n t / p                                  t: seconds per row, on one core
    exact        T = passes (n^2 / (2 p r) + 16 n c / B)      r: entries of K per second and core

The dependence on n is measured in this process on one thread, the dependence on the number p of
workers on a local Dask cluster.  Predictions for other sizes assume the same cores, and a bandwidth
of B bytes per second between them; c is the number of columns of V.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from mercer import Blocks, KernelPCA
from mercer._core import resource_scope
from mercer.gram import TiledGram
from mercer.kernels import RBF

N_LANDMARKS, N_COLUMNS, ROWS_PER_BLOCK = 256, 20, 8192
SIZES = (32_768, 65_536, 131_072)  # numbers of points for fits with landmarks
EXACT_SIZES = (4096, 8192, 16_384)  # numbers of points for products with all of K
N_VECTORS = 16  # columns of V in the product K @ V
BANDWIDTH = 1e9  # assumed bytes per second between workers
KRYLOV_PASSES = 5  # passes over K of an exact kernel PCA
PREDICTED = ((10**7, 2), (10**8, 16), (10**9, 64))  # points and cores for which times are predicted


def points(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, N_COLUMNS))


def model() -> KernelPCA:
    landmarks = points(N_LANDMARKS)
    return KernelPCA(8, kernel="rbf", gamma=0.02, eigen_solver="nystroem", landmarks=landmarks)


def smallest_time(run, repeat: int = 2) -> float:
    """Return the smallest time of several runs, after one run that compiles."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def time_by_rows() -> dict[int, float]:
    """Return the seconds of a fit with landmarks for each n, on one thread."""
    blocks = {n: Blocks.of(points(n), ROWS_PER_BLOCK) for n in SIZES}
    with resource_scope(n_threads=1):
        return {n: smallest_time(lambda X=X: model().fit(X)) for n, X in blocks.items()}


def time_by_workers() -> dict[int, float]:
    """Return the seconds of a fit with landmarks on a cluster, for each number of workers."""
    import dask.array as da
    from distributed import Client, LocalCluster

    times = {}
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    for p in (1, 2):
        with LocalCluster(n_workers=p, **options) as cluster, Client(cluster):
            shape = (SIZES[-1], N_COLUMNS)
            X = da.random.default_rng(0).standard_normal(shape, chunks=(ROWS_PER_BLOCK, N_COLUMNS))
            times[p] = smallest_time(lambda X=X: model().fit(X))
    return times


def time_by_product_size() -> dict[int, float]:
    """Return the seconds of one product with all of K for each n, on one thread."""
    times, kernel = {}, RBF(5.0)
    for n in EXACT_SIZES:
        K, V = TiledGram(kernel, points(n), n_threads=1), np.ones((n, N_VECTORS))
        times[n] = smallest_time(lambda K=K, V=V: K @ V)
    return times


def fit_exponent(times: dict[int, float]) -> float:
    """Return the exponent p of the least-squares fit time ∝ nᵖ."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def format_duration(seconds: float) -> str:
    """Return a duration as text, such as "2.5 h"."""
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def main() -> None:
    """Measure, print the fitted exponents and predictions, and draw them if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="file for the figure (.png or .svg)")
    parser.add_argument("--without-cluster", action="store_true")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} processors; {N_LANDMARKS} landmarks, {N_COLUMNS} columns, "
        f"{ROWS_PER_BLOCK} rows per block"
    )
    rows, products = time_by_rows(), time_by_product_size()
    seconds_per_row = rows[SIZES[-1]] / SIZES[-1]
    rate = EXACT_SIZES[-1] ** 2 / 2 / products[EXACT_SIZES[-1]]
    print(
        f"landmarks, one thread: {rows}\n"
        f"  T ~ n^{fit_exponent(rows):.2f}, {1e6 * seconds_per_row:.2f} us per row"
    )
    print(
        f"one product with K:    {products}\n"
        f"  T ~ n^{fit_exponent(products):.2f}, r = {rate:.2g} entries/s"
    )
    if not options.without_cluster:
        workers = time_by_workers()
        print(
            f"landmarks, workers:    {workers}\n"
            f"  two workers are {workers[1] / workers[2]:.2f}x as fast as one"
        )
    for n, p in PREDICTED:
        print(f"landmarks, n = {n:.0e}, {p} cores: {format_duration(n * seconds_per_row / p)}")
    n, p = 10**6, 64
    exact = KRYLOV_PASSES * (n**2 / (2 * p * rate) + 16 * n * N_VECTORS / BANDWIDTH)
    print(
        f"exact, n = {n:.0e}, {p} cores, {KRYLOV_PASSES} passes, B = {BANDWIDTH:.0e}: "
        f"{format_duration(exact)}"
    )
    if options.picture:
        draw_scaling(options.picture, rows, products, seconds_per_row, rate)


def draw_scaling(
    path: str, rows: dict, products: dict, seconds_per_row: float, rate: float
) -> None:
    """Plot the time of both methods as a function of n, for 1 and 64 cores, with measurements."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    n = np.geomspace(1e4, 1e9, 100)
    for p, style in ((1, "-"), (64, "--")):
        axes.plot(n, n * seconds_per_row / p, "C0" + style, label=f"landmarks, {p} core(s)")
        exact = KRYLOV_PASSES * (n**2 / (2 * p * rate) + 16 * n * N_VECTORS / BANDWIDTH)
        axes.plot(n, exact, "C1" + style, label=f"exact, {p} core(s)")
    axes.plot(list(rows), list(rows.values()), "C0o")
    axes.plot(list(products), [KRYLOV_PASSES * t for t in products.values()], "C1o")
    axes.set(xscale="log", yscale="log", xlabel="points n", ylabel="seconds", ylim=(1e-1, 1e9))
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
