"""What a suite is: cases, contenders, and a reference they all have to meet."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BASELINE = "mercer"
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

Call = Callable[[], "np.ndarray | None"]


def relative_error(result: np.ndarray, reference: np.ndarray) -> float:
    """‖result − reference‖ / ‖reference‖ in the Frobenius norm, where the reference is known."""
    if result.shape != reference.shape:
        return math.inf
    known = np.isfinite(reference)
    truth, found = np.where(known, reference, 0.0), np.where(known, result, 0.0)
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def error_up_to_sign(result: np.ndarray, reference: np.ndarray) -> float:
    """The same when every column, such as an eigenvector, may have either sign."""
    if result.shape != reference.shape:
        return math.inf
    signs = np.where(np.nansum(result * reference, axis=0) < 0, -1.0, 1.0)
    return relative_error(result * signs, reference)


def greatest_error(result: np.ndarray, reference: np.ndarray) -> float:
    """The greatest relative error of an entry."""
    if result.shape != reference.shape:
        return math.inf
    return float(np.max(np.abs(result - reference) / np.abs(reference)))


@dataclass(frozen=True)
class Contender:
    """`make(**inputs)` gets everything ready and returns the call that is measured.

    `package` is looked for first: a missing peer is skipped, whereas an ImportError inside a
    package that is there counts as a failure.  A `candidate` is one of several settings of a peer:
    it may be refused, and one that falls far behind the fastest has its warm-up as its only round.
    If the call has a `note`, the table shows it; if it has `found`, that is called off the clock
    for the result.  `tree` names a variable of the environment with the
    folder of other sources to import.
    """

    package: str
    make: Callable[..., Call]
    candidate: bool = False
    tree: str = ""


@dataclass(frozen=True)
class Case:
    """The same seeded inputs for every contender, and how closely their results must agree.

    Cases of one `family` (without one: of one suite) are summed up by the median of their ratios
    and the worst.
    """

    name: str
    inputs: dict
    tolerance: float = 1e-9
    error: Callable[[np.ndarray, np.ndarray], float] = relative_error  # result, reference
    contenders: tuple[str, ...] = ()  # empty: all of the suite
    family: str = ""


@dataclass(frozen=True)
class Suite:
    """`reference(**inputs)` is the float64 result; NaN marks entries it leaves unchecked.

    `remarks(cases)` may add to the notes what only several records together can tell, and return
    a text to be kept with them.
    """

    title: str
    cases: Callable[[bool], list[Case]]
    contenders: dict[str, Contender]
    reference: Callable[..., np.ndarray]
    give_up: float = math.inf  # seconds; a slower peer sits out the cases that follow
    slow: float = 20.0  # seconds; a warm-up longer than this is the contender's only round
    remarks: Callable[[list[dict]], str | None] = lambda cases: None
