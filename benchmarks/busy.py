"""Small problems on a busy computer: `python -m benchmarks.busy`.

    ratio = wall time with one busy process per processor / wall time alone

If processors are shared fairly, the ratio is about 1.5 for one thread and 2 for all threads.  A
larger ratio means that the call waits for threads that have no processor.  The column `processor`
is the processor time without busy processes; if it exceeds the wall time, several threads have
been working or spinning.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ._suite import N_THREADS

MAX_RATIO = 2.5  # largest ratio that is accepted


def small_problems() -> dict[str, Callable[[], Any]]:
    """Return small fits, predictions and tests, as functions without arguments."""
    from mercer import (
        GPLVM,
        SVC,
        Autoencoder,
        BayesianGPLVM,
        GaussianProcessRegressor,
        KernelKMeans,
        KernelPCA,
        KernelRidge,
        MetricMDS,
        compress,
        independence_test,
        two_sample_test,
    )
    from mercer.kernels import RBF, White

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 12))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=1000)
    labels = (X[:, 0] * X[:, 1] > 0).astype(int)
    pca = KernelPCA(5, kernel="rbf").fit(X)
    scores = pca.transform(X)
    ridge = KernelRidge(kernel="rbf").fit(X, y)
    process = 1.0 * RBF(1.0) + White(0.1)
    return {
        "KernelPCA.fit 1000": lambda: KernelPCA(5, kernel="rbf").fit(X),
        "KernelRidge.fit 1000": lambda: KernelRidge(kernel="rbf").fit(X, y),
        "SVC.fit 300": lambda: SVC().fit(X[:300], labels[:300]),
        "GaussianProcessRegressor.fit 300": lambda: GaussianProcessRegressor(process).fit(
            X[:300], y[:300]
        ),
        "KernelKMeans.fit 1000": lambda: KernelKMeans(5, random_state=0).fit(X),
        "pre-images 1000 x 12": lambda: pca.inverse_transform(scores, method="auto"),
        "GPLVM.fit 344": lambda: GPLVM(2).fit(X[:344]),
        "BayesianGPLVM.fit 150": lambda: BayesianGPLVM(2, random_state=0).fit(X[:150]),
        "Autoencoder.fit 100": lambda: Autoencoder(2, random_state=0, n_init=1).fit(X[:100]),
        "MetricMDS.fit 300": lambda: MetricMDS(2, random_state=0).fit(X[:300]),
        "independence_test 300": lambda: independence_test(X[:300], X[:300, :2], random_state=0),
        "two_sample_test 300": lambda: two_sample_test(X[:300], X[300:600], random_state=0),
        "compress 1000 to 50": lambda: compress(ridge, 50, random_state=0),
        "predict 1 row, 100 times": lambda: [ridge.predict(X[:1]) for _ in range(100)],
        "predict 1000 rows": lambda: ridge.predict(X),
    }


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_processors(processes: int = N_THREADS) -> Iterator[None]:
    """Keep the processors busy with processes that run an endless loop."""
    context = multiprocessing.get_context("spawn")
    spinning = [context.Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    try:
        time.sleep(1.0)  # wait until they have started
        yield
    finally:
        for process in spinning:
            process.terminate()
            process.join()


def smallest_times(call: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Return the smallest wall time and the smallest processor time of several calls."""
    times = []
    for _ in range(repeat):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    return min(wall for wall, _ in times), min(processor for _, processor in times)


def main() -> int:
    """Measure all problems alone and on busy processors; return 1 if a ratio is too large."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy")
    parser.add_argument("names", nargs="*", help="parts of problem names (default: all)")
    parser.add_argument("--repeat", type=int, default=3, metavar="R", help="rounds (default: 3)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    selected = {
        name: call
        for name, call in small_problems().items()
        if not options.names or any(part in name for part in options.names)
    }
    for call in selected.values():
        call()  # compile before timing
    alone = {name: smallest_times(call, options.repeat) for name, call in selected.items()}
    with busy_processors():
        while_busy = {name: smallest_times(call, options.repeat) for name, call in selected.items()}
    print(f"{'':34} {'alone':>9} {'processor':>9} {'busy':>9} {'ratio':>6}")
    ratios = {name: while_busy[name][0] / alone[name][0] for name in selected}
    for name in selected:
        wall, processor = alone[name]
        print(
            f"{name:34} {wall:9.3f} {processor:9.3f} {while_busy[name][0]:9.3f} {ratios[name]:6.1f}"
        )
    print(f"the largest ratio is {max(ratios.values()):.1f}; up to {MAX_RATIO} is accepted")
    return int(max(ratios.values()) > MAX_RATIO)


if __name__ == "__main__":
    raise SystemExit(main())
