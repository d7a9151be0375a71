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


@dataclass(frozen=True)
class Contender:
    """`make(**inputs)` gets everything ready and returns the call that is measured.

    `package` is looked for first: a missing peer is skipped, whereas an ImportError inside a
    package that is there counts as a failure.
    """

    package: str
    make: Callable[..., Call]


@dataclass(frozen=True)
class Case:
    """The same seeded inputs for every contender, and how closely their results must agree."""

    name: str
    inputs: dict
    tolerance: float = 1e-9
    up_to_sign: bool = False  # of each column, as for eigenvectors
    contenders: tuple[str, ...] = ()  # empty: all of the suite


@dataclass(frozen=True)
class Suite:
    """`reference(**inputs)` is the float64 result; NaN marks entries it leaves unchecked."""

    title: str
    cases: Callable[[bool], list[Case]]
    contenders: dict[str, Contender]
    reference: Callable[..., np.ndarray]
    give_up: float = math.inf  # seconds; a slower peer sits out the cases that follow


def relative_error(result: np.ndarray, reference: np.ndarray, up_to_sign: bool) -> float:
    """‖result − reference‖ / ‖reference‖ in the Frobenius norm, where the reference is known."""
    if result.shape != reference.shape:
        return math.inf
    known = np.isfinite(reference)
    truth, found = np.where(known, reference, 0.0), np.where(known, result, 0.0)
    if up_to_sign:
        found = found * np.where((found * truth).sum(axis=0) < 0, -1.0, 1.0)
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
