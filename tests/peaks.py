"""Measure the memory that a call adds to the process: the peak of its resident pages.

Linux records the peak (VmHWM in /proc/self/status) and resets it on request (a 5 written to
/proc/self/clear_refs).  Nothing has to be sampled, and memory allocated by compiled code and LAPACK
is included.  Compilers and BLAS buffers are warmed up beforehand, because they belong to the
process, not to a fit.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from mercer import SVC, SVR, MemoryBudgetError
from mercer._core import one_blas_thread, thread_count

# Return freed memory to the system immediately.  Otherwise the C library may keep freed blocks,
# or split a large block, and this would be measured as memory of mercer.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}

COLUMNS = 10
SECONDS = 20  # a call is interrupted after this time; its peak until then counts
stopped = threading.Event()


def resident(what: str) -> int:
    """Return the bytes of VmRSS (pages currently in memory) or of VmHWM (their peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])
    raise LookupError(what)


def peak(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return the peak memory of a call in bytes, and its result, or None if it was interrupted."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, result = resident("VmRSS"), None
    stopped.clear()
    signal.alarm(SECONDS)
    try:
        result = call()
    except Exception:
        if not stopped.is_set():  # an interrupted call may raise any exception
            raise
    finally:
        signal.alarm(0)
    return resident("VmHWM") - before, result


def stop(*_: Any) -> None:
    """Interrupt a call that takes too long (signal handler)."""
    stopped.set()
    raise TimeoutError


def warm_up() -> None:
    """Allocate the buffers of every BLAS, alone and in a thread pool, and compile all functions."""

    def multiply(dtype: Any) -> None:
        A = np.ones((1500, 1500), dtype=dtype)
        A @ A  # the BLAS of NumPy
        scipy.linalg.lapack.get_lapack_funcs("potrf", (A,))(A + 1500 * np.eye(1500, dtype=dtype))

    for dtype in (np.float32, np.float64):
        multiply(dtype)
        with one_blas_thread, ThreadPoolExecutor(thread_count()) as pool:
            list(pool.map(multiply, [dtype] * thread_count()))
    for model in (SVR(), SVC(cache_size=1)):  # 1800 variables, several blocks
        model.fit(*problem(model, 900))


def problem(estimator: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and targets: three classes, or positive values."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, COLUMNS))
    if get_tags(estimator).input_tags.positive_only:
        X = np.abs(X)
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, (np.digitize(f, [-1.0, 1.0]) if is_classifier(estimator) else np.exp(0.3 * f))


def apply(model: Any, X: np.ndarray) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the names of all output methods of a model, with calls for these points."""
    predict = signature(model.predict if hasattr(model, "predict") else apply).parameters
    # "krill" has no standard deviations
    if "return_std" in predict and getattr(model, "solver", None) != "krill":
        yield "std", lambda: np.stack(model.predict(X, return_std=True))
    for name in ("transform", "decision_function", "predict_proba", "score_samples", "predict"):
        if hasattr(model, name):
            yield name, lambda name=name: getattr(model, name)(X)


def measure(estimator: Any, n: int, budget: int) -> dict[str, Any]:
    """Return the peaks of a fit and of all outputs for n points in MiB, or the error messages."""
    X, y = problem(estimator, n)
    model = clone(estimator)
    if hasattr(model, "max_memory"):
        model.set_params(max_memory=f"{budget} MiB")
    found: dict[str, Any] = {}
    try:
        size, fitted = peak(lambda: model.fit(X, y))
    except MemoryBudgetError as error:
        return {"fit": f"refused: {error}"}
    found["fit"] = size / 2**20
    if fitted is None:
        return {**found, "stopped": f"after {SECONDS} s"}
    for name, call in apply(model, X):
        try:
            size, result = peak(call)
            found[name] = (size - getattr(result, "nbytes", 0)) / 2**20  # without the output itself
        except MemoryBudgetError as error:
            found[name] = f"refused: {error}"
    return found


def main(*cells: str) -> None:
    """Print a line of JSON for each cell, index:n:budget (index in zoo.ESTIMATORS, points, MiB)."""
    from zoo import ESTIMATORS

    warnings.simplefilter("ignore", UserWarning)  # convergence warnings are tested elsewhere
    signal.signal(signal.SIGALRM, stop)
    warm_up()
    for number, n, budget in (map(int, cell.split(":")) for cell in cells):
        estimator = ESTIMATORS[number]
        for small in (300, min(n, 1000)):  # compile the functions for every storage of K
            measure(estimator, small, budget)
        found = {"n": n, "budget": budget, **measure(estimator, n, budget)}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
