"""The building blocks of a benchmark suite: `Contender`, `Case` and `Suite`.

A suite consists of cases, of contenders that solve them, and of a reference result with which
every contender has to agree.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BASELINE = "mercer"
N_THREADS = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)

Call = Callable[[], "np.ndarray | None"]


def relative_error(result: np.ndarray, reference: np.ndarray) -> float:
    """Return ‖result − reference‖ / ‖reference‖ in the Frobenius norm.

    Entries where the reference is NaN are ignored.
    """
    if result.shape != reference.shape:
        return math.inf
    finite = np.isfinite(reference)
    truth, result = np.where(finite, reference, 0.0), np.where(finite, result, 0.0)
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))


def error_up_to_sign(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative error if each column, such as an eigenvector, may have either sign."""
    if result.shape != reference.shape:
        return math.inf
    signs = np.where(np.nansum(result * reference, axis=0) < 0, -1.0, 1.0)
    return relative_error(result * signs, reference)


def max_relative_error(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest relative error of any entry."""
    if result.shape != reference.shape:
        return math.inf
    return float(np.max(np.abs(result - reference) / np.abs(reference)))


@dataclass(frozen=True)
class Contender:
    """A library, or one setting of a library, that takes part in a suite.

    Parameters
    ----------
    package : str
        The package that has to be installed.  If it is missing, the contender is skipped; an
        ImportError inside an installed package counts as a failure.
    make : callable
        `make(**inputs)` does all preparation and returns the call to be measured.  If that call has
        an attribute `note`, the table shows it.  If it has a function `untimed_result`, that
        function returns the result to be checked, and its time is not counted.
    candidate : bool, default=False
        Whether this is one of several settings of a peer.  A candidate may be rejected.  If it is
        much slower than the fastest candidate, its warm-up is its only round.
    source_variable : str, default=""
        Name of an environment variable with a folder of sources to import instead of this tree.
    """

    package: str
    make: Callable[..., Call]
    candidate: bool = False
    source_variable: str = ""


@dataclass(frozen=True)
class Case:
    """One set of inputs, the same for every contender, and the accuracy required of the results.

    Cases with the same `family` (if empty: all cases of the suite) are summarised by the median and
    the worst of their ratios.
    """

    name: str
    inputs: dict
    tolerance: float = 1e-9
    error: Callable[[np.ndarray, np.ndarray], float] = relative_error  # of (result, reference)
    contenders: tuple[str, ...] = ()  # if empty, all contenders of the suite
    family: str = ""


@dataclass(frozen=True)
class Suite:
    """A benchmark: cases, contenders and the reference.

    `reference(**inputs)` returns the result in float64; entries that are NaN are not checked.
    `postprocess(cases)` may extend the notes of the records, if a note needs several records, and
    may return a text that is saved with the results.
    """

    title: str
    cases: Callable[[bool], list[Case]]
    contenders: dict[str, Contender]
    reference: Callable[..., np.ndarray]
    max_seconds: float = math.inf  # a slower contender is left out of the remaining cases
    max_warm_up: float = 20.0  # seconds; if the warm-up takes longer, it is the only round
    postprocess: Callable[[list[dict]], str | None] = lambda cases: None
