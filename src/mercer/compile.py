"""Compile every loop of the library now, for images and clusters: ``python -m mercer.compile``.

Loops are otherwise compiled when they are first called, and kept in the cache of numba.  Here small
fits of everything call them, in the types that the library uses.  `NUMBA_CACHE_DIR` is the place of
the cache; by default it lies beside the files of the library, or in the user's cache folder.
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

from . import estimators, kernels, means
from ._errors import NotDifferentiableError
from ._points import take
from ._runtime import LOOPS, Progress, Step, compile_seconds, compiling, in_words
from .gram import gram

__all__ = ["Compiled", "compile_loops", "main"]

_ROOMS = ("kernels", "gram", "solvers", "means", "estimators", "gp", "learning", "maps", "preimage")
_POINTS, _COLUMNS = 40, 3
_BLOCKS = 2300  # points from which support vector machines work in blocks
_WORDS = ["ACGTACGTAC", "ACGTTTGACC", "CCGATTACAG", "GATTACAGAT"]


@dataclass(frozen=True)
class Compiled:
    """What `compile_loops` found and made.

    Attributes
    ----------
    loops : int
        Those of the library.
    signatures : int
        The types that they are compiled for, added up.
    fresh : int
        How many of these were not there before.
    seconds : float
        What compiling them took.
    missing : tuple of str
        Loops that no fit has called, which would be compiled later.
    folder : str or None
        Where the code is kept, also in folders below; None if no folder can be written to.
    size : int
        Bytes of these files.
    """

    loops: int
    signatures: int
    fresh: int
    seconds: float
    missing: tuple[str, ...]
    folder: str | None
    size: int

    def __str__(self) -> str:
        head = f"{self.signatures} signatures of {self.loops} loops"
        done = "nothing is left to do"
        if self.fresh:
            done = f"{self.fresh} compiled in {self.seconds:.1f} s"
        where = "no folder can be written to: nothing is kept"
        if self.folder is not None:
            where = f"{in_words(self.size)} in {self.folder}"
        left = f"; not called: {', '.join(self.missing)}" if self.missing else ""
        return f"{head}: {done}; {where}{left}"


def compile_loops(say: Callable[[str], None] | None = None) -> Compiled:
    """Compile every loop for the types that the library uses, and keep the code.

    Parameters
    ----------
    say : function, optional
        Told of the progress.

    Returns
    -------
    Compiled
    """
    for room in _ROOMS:
        package = importlib.import_module(f"{__package__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    loops = [loop for loop in LOOPS if loop.name.startswith(f"{__package__}.")]
    before, tasks = compile_seconds(), list(_tasks())
    fresh: list[str] = []
    with compiling(fresh.append), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what is small and arbitrary here
        for done, (name, task) in enumerate(tasks, start=1):
            task()
            if say is not None:
                words = f"{done} of {len(tasks)} fits, {len(fresh)} loops compiled: {name}"
                say(Step(words, done, len(tasks)))
    files = [file for loop in loops for file in loop.files]
    return Compiled(
        len(loops),
        len(files) or sum(len(loop.signatures) for loop in loops),
        len(fresh),
        compile_seconds() - before if fresh else 0.0,
        tuple(loop.name for loop in loops if not (loop.signatures or loop.files)),
        commonpath({file.parent for file in files}) if files else None,
        sum(file.stat().st_size for file in files),
    )


def main() -> int:
    """Compile, with lines of progress, and say where the code is."""
    with Progress("mercer.compile") as say:
        found = compile_loops(say)
        say(str(found))
    return 1 if found.missing else 0


# ---------------------------------------------------------------------- what calls the loops


def _tasks() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names and small pieces of work, which together call every loop."""
    rng = np.random.default_rng(0)
    X = rng.random((_POINTS, _COLUMNS))
    for dtype in (np.float64, np.float32):
        narrow, wide = X.astype(dtype), np.tile(X, 4).astype(dtype)
        for name in estimators.__all__:
            kind = getattr(estimators, name)
            if hasattr(kind, "fit"):
                yield f"{name}, {dtype.__name__}", partial(_fit, kind(), narrow)
        for Z in (narrow, wide, sp.csr_array(np.where(wide > wide.mean(), wide, 0))):
            for kernel in _vectors(Z.shape[1]):
                yield f"{kernel}, {dtype.__name__}", partial(_tiles, kernel, Z)
    for kernel, points in _structures(rng):
        yield str(kernel), partial(_tiles, kernel, points)
    many = rng.normal(size=(_BLOCKS, _COLUMNS))
    for model in _variants():
        yield type(model).__name__, partial(_fit, model, X)
    for dtype in (np.float64, np.float32):
        K = gram(kernels.RBF(), many.astype(dtype), storage="tiled")
        yield f"products, {dtype.__name__}", partial(operator.matmul, K, np.ones((_BLOCKS, 3)))
    yield "SVC, blocks", partial(_fit, estimators.SVC(C=100.0), many)
    yield "SVC, pairs", partial(estimators.SVC().fit, X, np.arange(_POINTS) % 10)
    small = estimators.SVC(cache_size=2)  # MB: less than K takes
    yield "SVC, one pair at a time", partial(small.fit, many[:800], np.arange(800) % 20)
    y = X[:, 0] + X[:, 1]
    yield "thin", partial(means.thin, many[:64], 8)
    yield "two_sample_test", partial(means.two_sample_test, X, X + 0.1)
    yield "independence_test", partial(means.independence_test, X, y[:, None])


def _fit(model: Any, X: np.ndarray) -> None:
    """Fit on labels or numbers, and ask what can be asked."""
    f = X[:, 0] - X[:, 1]
    labels = getattr(model, "_estimator_type", "") == "classifier" or hasattr(
        model, "predict_proba"
    )
    try:
        model.fit(X, (f > np.median(f)).astype(int))
    except ValueError:
        if labels:
            raise
        model.fit(X, f)
    for ask in ("predict", "transform"):
        if hasattr(model, ask):
            getattr(model, ask)(X)


def _variants() -> list[Any]:
    """Return estimators with the options that lead to other loops than the defaults do."""
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


def _vectors(columns: int) -> list[Any]:
    k = kernels
    return [
        k.RBF(0.5),
        k.Matern(0.5),
        k.Laplacian(),
        k.Laplacian([1.0] * columns),
        k.Chi2(),
        k.HistogramIntersection(),
        k.MinMax(),
    ]


def _structures(rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield kernels of strings, sets and graphs, with points."""
    k = kernels
    strings: list[Any] = [
        k.Subsequence(2),
        k.AllSubsequences(),
        k.LocalAlignment(),
        k.Mismatch(3, 1, "ACGT"),
        k.Mismatch(5, 2, "ACGT"),
        k.Gapped(10, 5),
    ]
    edges = [[(u, v) for u in range(5) for v in range(u) if rng.random() < 0.6] for _ in range(4)]
    graphs = k.Graphs.from_edges(edges, labels=[list("CNOCN")] * 4)
    others: list[Any] = [
        k.ShortestPath(),
        k.Graphlet(),
        k.Graphlet(size=4, connected=True),
        k.RandomWalk(decay=0.1, labelled=True),
        k.RandomWalk(decay=0.01, kind="geometric"),
    ]
    yield from ((kernel, _WORDS) for kernel in strings)
    yield from ((kernel, graphs) for kernel in others)


def _tiles(kernel: Any, X: Any) -> None:
    """Evaluate a kernel, its products and its derivatives on some points."""
    some = take(X, np.arange(2))
    K, values = gram(kernel, X, storage="tiled"), kernel(some, X)
    K @ np.ones((K.shape[0], 2))
    with suppress(NotDifferentiableError):
        kernel.pullback(X, some, values.T)
        kernel.input_gradient(X, some, values.T)


if __name__ == "__main__":
    sys.exit(main())
