"""Compile all numba functions of mercer ahead of time: ``python -m mercer.compile``.

Run it when you build a container image or set up a cluster.  Otherwise each function is compiled
when it is first called, which takes seconds, and is then stored in numba's cache.  This module
fits all models on small data, so that every function is called with the types that the library
uses.  The environment variable `NUMBA_CACHE_DIR` sets the cache folder; the default is next to the
source files or, if that is not writable, in the user's cache folder.
"""

from __future__ import annotations

import importlib
import operator
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from os.path import commonpath
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import estimators, kernels
from ._core import (
    COMPILED_FUNCTIONS,
    JIT_FUNCTIONS,
    NotDifferentiableError,
    Points,
    Progress,
    ProgressStep,
    compile_seconds,
    format_bytes,
    has_compiler,
    take,
)
from .expansion import add_products, make_evaluators
from .gram import gram
from .models import mean_embedding as means

__all__ = ["CompileResult", "compile_loops", "main"]

_PACKAGES = ("kernels", "gram", "solvers", "expansion", "models", "estimators")
_N_POINTS, _N_FEATURES = 40, 3  # size of the data for most of the fits
_N_LARGE = 2300  # number of points for which SVMs use their blocked solver
_STRINGS = ["ACGTACGTAC", "ACGTTTGACC", "CCGATTACAG", "GATTACAGAT"]


@dataclass(frozen=True)
class CompileResult:
    """Result of `compile_loops`.

    Attributes
    ----------
    loops : int
        Number of functions in the library that numba compiles.
    signatures : int
        Total number of signatures (combinations of argument types) of these functions.
    fresh : int
        Number of signatures that this call compiled, because they were not in the cache.
    seconds : float
        Compilation time.
    missing : tuple of str
        Names of functions that no fit called; they are compiled when they are first used.
    folder : str or None
        Common parent folder of the cache files; None if there is no writable folder.
    size : int
        Total size of the cache files in bytes.
    """

    loops: int
    signatures: int
    fresh: int
    seconds: float
    missing: tuple[str, ...]
    folder: str | None
    size: int

    def __str__(self) -> str:
        head = f"{self.signatures} signatures of {self.loops} functions"
        work = "all were already compiled"
        if self.fresh:
            work = f"{self.fresh} compiled in {self.seconds:.1f} s"
        cache = "not stored, because no cache folder is writable"
        if self.folder is not None:
            cache = f"{format_bytes(self.size)} in {self.folder}"
        missing = f"; not called: {', '.join(self.missing)}" if self.missing else ""
        return f"{head}: {work}; {cache}{missing}"


def compile_loops(log: Callable[[str], None] | None = None) -> CompileResult:
    """Compile all numba functions for the types that the library uses, and store them on disk.

    Parameters
    ----------
    log : callable, optional
        Function that is called with a progress message after each fit.

    Returns
    -------
    CompileResult
        Number of functions and signatures, compilation time, and location of the cache.

    Raises
    ------
    ImportError
        If numba is not available.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the error contains the information
        available = has_compiler()
    if not available:
        raise ImportError(
            "numba is not available, so that nothing can be compiled; install a version of numba "
            "that supports this Python and NumPy (pip install -U numba), and do not set "
            "NUMBA_DISABLE_JIT. Without numba, mercer works, but its loops run as Python code"
        )
    for folder in _PACKAGES:
        package = importlib.import_module(f"{__package__}.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    loops = [loop for loop in JIT_FUNCTIONS if loop.name.startswith(f"{__package__}.")]
    before, known, tasks = compile_seconds(), len(COMPILED_FUNCTIONS), list(_tasks())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for category in (UserWarning, RuntimeWarning):  # irrelevant for these small, random data
            warnings.simplefilter("ignore", category)
        for done, (name, task) in enumerate(tasks, start=1):
            task()
            if log is not None:
                fresh = len(COMPILED_FUNCTIONS) - known
                text = f"{done} of {len(tasks)} fits, {fresh} functions compiled: {name}"
                log(ProgressStep(text, done, len(tasks)))
    fresh = len(COMPILED_FUNCTIONS) - known
    files = [file for loop in loops for file in loop.files]
    return CompileResult(
        len(loops),
        len(files) or sum(len(loop.signatures) for loop in loops),
        fresh,
        compile_seconds() - before if fresh else 0.0,
        tuple(loop.name for loop in loops if not (loop.signatures or loop.files)),
        commonpath({file.parent for file in files}) if files else None,
        sum(file.stat().st_size for file in files),
    )


def main() -> int:
    """Compile all functions, print progress and the result, and return an exit code."""
    with Progress("mercer.compile") as log:
        try:
            result = compile_loops(log)
        except ImportError as error:
            log(str(error))
            return 1
        log(str(result))
    return 1 if result.missing else 0


# ---------------------------------------------------------------------- small fits


def _tasks() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, task) pairs; together, the tasks call every compiled function."""
    rng = np.random.default_rng(0)
    X = rng.random((_N_POINTS, _N_FEATURES))
    for dtype in (np.float64, np.float32):
        narrow: np.ndarray = X.astype(dtype)
        wide: np.ndarray = np.tile(narrow, 4)
        for name in estimators.__all__:
            kind = getattr(estimators, name)
            if hasattr(kind, "fit"):
                yield f"{name}, {dtype.__name__}", partial(_fit, kind(), narrow)
        for Z in (narrow, wide, sp.csr_array(np.where(wide > wide.mean(), wide, 0))):
            for kernel in _vector_kernels(Z.shape[1]):
                yield f"{kernel}, {dtype.__name__}", partial(_evaluate, kernel, Z)
    for kernel, points in _structured_kernels(rng):
        yield str(kernel), partial(_evaluate, kernel, points)
    large = rng.normal(size=(_N_LARGE, _N_FEATURES))
    for model in _variants():
        yield type(model).__name__, partial(_fit, model, X)
    for dtype in (np.float64, np.float32):
        K = gram(kernels.RBF(), large.astype(dtype), storage="tiled")
        yield f"products, {dtype.__name__}", partial(operator.matmul, K, np.ones((_N_LARGE, 3)))
    yield "SVC, blocks", partial(_fit, estimators.SVC(C=100.0), large)
    yield "SVC, pairs", partial(estimators.SVC().fit, X, np.arange(_N_POINTS) % 10)
    streamed = estimators.SVC(cache_size=2)  # in MB: too small to store the kernel matrix
    yield "SVC, one pair at a time", partial(streamed.fit, large[:800], np.arange(800) % 20)
    for Z in (X, np.round(X)):
        yield "accelerate", partial(_add_products, Z)
    y = X[:, 0] + X[:, 1]
    yield "thin", partial(means.thin, large[:64], 8)
    yield "two_sample_test", partial(means.two_sample_test, X, X + 0.1)
    yield "independence_test", partial(means.independence_test, X, y[:, None])


def _fit(model: Any, X: np.ndarray) -> None:
    """Fit a model to labels or real targets, then call `predict` and `transform` if they exist."""
    f = X[:, 0] - X[:, 1]
    try:
        model.fit(X, (f > np.median(f)).astype(int))
    except ValueError:  # not a classifier
        model.fit(X, f)
    for method in ("predict", "transform"):
        if hasattr(model, method):
            getattr(model, method)(X)


def _add_products(X: np.ndarray) -> None:
    """Compute sums of kernel values with all evaluators for points of this kind."""
    for evaluator in make_evaluators(kernels.RBF(), X):
        out = np.zeros((len(X), 2))
        for _ in add_products(evaluator, evaluator.rows(X), np.arange(len(X)), out + 1, out, True):
            pass


def _variants() -> list[Any]:
    """Return estimators whose options use compiled functions that the defaults do not use."""
    e = estimators
    return [
        e.KernelPerceptron(True, budget=10),
        e.KernelRecursiveLeastSquares(budget=10),
        e.OnlineKernelRegressor("huber", budget=10),
        e.KernelPCA(2, kernel="rbf", eigen_solver="krylov", storage="tiled"),
        e.KernelPCA(2, kernel="rbf", eigen_solver="nystroem", rank=10),
        e.KernelPCA(2, kernel="rbf", eigen_solver="features", rank=20),
        e.KernelRidge(kernel="rbf", solver="cg"),
        e.Nystroem(n_components=10),
        e.KernelRidgeCV(kernel="rbf"),
    ]


def _vector_kernels(n_features: int) -> list[Any]:
    k = kernels
    return [
        k.RBF(0.5),
        k.Matern(0.5),
        k.Laplacian(),
        k.Laplacian([1.0] * n_features),
        k.Chi2(),
        k.HistogramIntersection(),
        k.MinMax(),
    ]


def _structured_kernels(rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield kernels for strings and graphs, each with points to evaluate it on."""
    k = kernels
    string_kernels: list[Any] = [
        k.Subsequence(2),
        k.AllSubsequences(),
        k.LocalAlignment(),
        k.Mismatch(3, 1, "ACGT"),
        k.Mismatch(5, 2, "ACGT"),
        k.Gapped(10, 5),
    ]
    edges = [[(u, v) for u in range(5) for v in range(u) if rng.random() < 0.6] for _ in range(4)]
    graphs = k.Graphs.from_edges(edges, labels=[list("CNOCN")] * 4)
    graph_kernels: list[Any] = [
        k.ShortestPath(),
        k.Graphlet(),
        k.Graphlet(size=4, connected=True),
        k.RandomWalk(decay=0.1, labelled=True),
        k.RandomWalk(decay=0.01, kind="geometric"),
    ]
    yield from ((kernel, _STRINGS) for kernel in string_kernels)
    yield from ((kernel, graphs) for kernel in graph_kernels)


def _evaluate(kernel: Any, X: Points) -> None:
    """Evaluate a kernel, a product with its kernel matrix, and its derivatives if they exist."""
    some = take(X, np.arange(2))
    K, values = gram(kernel, X, storage="tiled"), kernel(some, X)
    K @ np.ones((K.shape[0], 2))
    with suppress(NotDifferentiableError):
        kernel.pullback(X, some, values.T)
        kernel.input_gradient(X, some, values.T)


if __name__ == "__main__":  # pragma: no cover - a test marked long runs it in a process
    sys.exit(main())
