"""Small problems next to busy processes take at most 2.5 times as long as alone."""

import multiprocessing
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from one_thread import needs_counts
from threadpoolctl import threadpool_limits

from mercer import GPLVM, SVC, KernelPCA, KernelRidge

MOST = 2.5
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 12))
PCA = KernelPCA(5, kernel="rbf").fit(X)
SCORES = PCA.transform(X)
CALLS = {
    "a fit": lambda: KernelRidge(kernel="rbf").fit(X, X[:, 0]),
    "a pre-image": lambda: PCA.inverse_transform(SCORES, method="auto"),
    "a GPLVM": lambda: GPLVM(2, tol=1e-2).fit(X[:344]),
    "an SVC": lambda: SVC().fit(X[:300], X[:300, 0] > 0),
}


def spin():
    while True:
        pass


def waits(call):
    """Return the wall time of a call, and the processor time and queueing time of its thread."""
    stat = Path(f"/proc/self/task/{os.getpid()}/schedstat")
    queue = int(stat.read_text().split()[1])
    wall, processor = time.perf_counter(), time.thread_time()
    call()
    wall, processor = time.perf_counter() - wall, time.thread_time() - processor
    return wall, processor, (int(stat.read_text().split()[1]) - queue) / 1e9


@pytest.mark.long
@needs_counts
@pytest.mark.parametrize("name", CALLS)
def test_a_busy_machine_costs_no_more_than_a_share_of_the_processors(name):
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    with warnings.catch_warnings(), threadpool_limits(limits=2, user_api="blas"):
        warnings.simplefilter("ignore", UserWarning)
        CALLS[name]()  # compile first
        alone = min(waits(CALLS[name])[1] for _ in range(3))
        for other in others:
            other.start()
        try:
            time.sleep(1.0)
            wall, _, queue = min(waits(CALLS[name]) for _ in range(3))
        finally:
            for other in others:
                other.terminate()
                other.join()
    # The time in the run queue belongs to the other processes, however many there are.  The
    # remaining time is the computation itself, and waiting for mercer's own threads.
    fair = max(wall - queue, 0.0)
    assert min(wall / alone, 1.0 + fair / alone) <= MOST
