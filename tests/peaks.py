"""How much memory a call takes beyond what was there: the peak of the resident pages.

The kernel keeps the peak (VmHWM in /proc/self/status) and forgets it on request (a 5 written to
/proc/self/clear_refs), so that nothing has to be sampled, and what compiled code and LAPACK
allocate counts as well.  Compilers and the buffers of the BLAS are warmed up beforehand: they
belong to the process, not to a fit.
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
from mercer._runtime import one_blas_thread, thread_count

# A C library that keeps freed blocks, or hands out a large one from the hole that a smaller one
# left, would be measured along with mercer: with these, pages go back when they are freed.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}

COLUMNS = 10
SECONDS = 20  # after which a call is stopped: what it took until then counts
stopped = threading.Event()


def resident(what: str) -> int:
    """Return the bytes of VmRSS, the pages in memory, or VmHWM, the most they ever were."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return 1024 * int(line.split()[1])
    raise LookupError(what)


def peak(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return the bytes that a call took beyond what was there, and what it returned, if it did."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, result = resident("VmRSS"), None
    stopped.clear()
    signal.alarm(SECONDS)
    try:
        result = call()
    except Exception:
        if not stopped.is_set():  # what is stopped in the middle may fail in its own way
            raise
    finally:
        signal.alarm(0)
    return resident("VmHWM") - before, result


def stop(*_: Any) -> None:
    """Stop a call that takes long."""
    stopped.set()
    raise TimeoutError


def warm_up() -> None:
    """Let every BLAS make its buffers, alone and within a pool, and the compiler its code."""

    def multiply(dtype: Any) -> None:
        A = np.ones((1500, 1500), dtype=dtype)
        A @ A  # NumPy's
        scipy.linalg.lapack.get_lapack_funcs("potrf", (A,))(A + 1500 * np.eye(1500, dtype=dtype))

    for dtype in (np.float32, np.float64):
        multiply(dtype)
        with one_blas_thread, ThreadPoolExecutor(thread_count()) as pool:
            list(pool.map(multiply, [dtype] * thread_count()))
    for machine in (SVR(), SVC(cache_size=1)):  # 1800 variables, several blocks
        machine.fit(*problem(machine, 900))


def problem(estimator: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and targets: three classes, or values above 0."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, COLUMNS))
    if get_tags(estimator).input_tags.positive_only:
        X = np.abs(X)
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, (np.digitize(f, [-1.0, 1.0]) if is_classifier(estimator) else np.exp(0.3 * f))


def apply(model: Any, X: np.ndarray) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield all that the model says of these points."""
    predict = signature(model.predict if hasattr(model, "predict") else apply).parameters
    if "return_std" in predict and getattr(model, "solver", None) != "krill":  # it has none
        yield "std", lambda: np.stack(model.predict(X, return_std=True))
    for name in ("transform", "decision_function", "predict_proba", "score_samples", "predict"):
        if hasattr(model, name):
            yield name, lambda name=name: getattr(model, name)(X)


def measure(estimator: Any, n: int, budget: int) -> dict[str, Any]:
    """Return the peak of a fit and of all that it says of n points, in MiB, or who refused."""
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
            found[name] = (size - getattr(result, "nbytes", 0)) / 2**20  # the output is not its own
        except MemoryBudgetError as error:
            found[name] = f"refused: {error}"
    return found


def main(*cells: str) -> None:
    """Print a line of JSON for each number:n:budget, an estimator of the zoo, points and MiB."""
    from zoo import ESTIMATORS

    warnings.simplefilter("ignore")  # a search that stops early is another test's business
    signal.signal(signal.SIGALRM, stop)
    warm_up()
    for number, n, budget in (map(int, cell.split(":")) for cell in cells):
        estimator = ESTIMATORS[number]
        for small in (300, min(n, 1000)):  # compiles what each way of holding K needs
            measure(estimator, small, budget)
        found = {"n": n, "budget": budget, **measure(estimator, n, budget)}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
