"""A fit and its predictions stay within `max_memory`, or raise a MemoryBudgetError.

All memory that a call adds to the process counts; see `peaks`.  By default only a few estimators
are checked.  To check all of them with three sizes and three budgets, which takes long, run
`pytest -m memory tests/test_memory.py`; `-rA` shows the peaks.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import peaks
import pytest
from zoo import ESTIMATORS

from mercer import (
    SVC,
    SVR,
    ExplicitFeatures,
    KernelCCA,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
)

SIZES, BUDGETS = (1000, 4000, 16_000), (20, 50, 200)  # numbers of points; budgets in MiB
# (condition, n points, budget in MiB): checks the first estimator of the zoo that satisfies it
CASES = [
    (SVC, lambda e: e.solver == "auto", 4000, 10),
    (SVR, lambda e: e.kernel == "laplacian", 1000, 20),
    (KernelRidge, lambda e: e.solver == "lstsq", 1000, 20),
    (KernelPCA, lambda e: e.n_components == 0.9, 1000, 50),
    (KernelLogisticRegression, lambda e: e.C == 100.0, 4000, 20),
    (KernelCCA, lambda e: e.solver == "auto", 4000, 20),
    (ExplicitFeatures, lambda e: e.kernel != "linear", 16_000, 20),
]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(),
    reason="only Linux can reset the peak memory of a process",
)


def measured(*cells):
    """Measure each cell (index in the zoo, n, budget) in a separate process."""
    done = subprocess.run(
        [sys.executable, peaks.__file__, *(":".join(map(str, cell)) for cell in cells)],
        env={**os.environ, **peaks.ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def over(found):
    """Return the calls that exceeded the budget, with their peaks."""
    budget = found["budget"]
    calls = {name: size for name, size in found.items() if name not in ("n", "budget")}
    return {c: size for c, size in calls.items() if not isinstance(size, str) and size > budget}


def test_some_estimators_stay_within_their_budget():
    numbers = [
        next(i for i, e in enumerate(ESTIMATORS) if type(e) is kind and condition(e))
        for kind, condition, *_ in CASES
    ]
    cells = [(number, n, budget) for number, (*_, n, budget) in zip(numbers, CASES, strict=True)]
    found = measured(*cells)
    assert len(found) == len(CASES)
    assert not isinstance(found[0]["fit"], str)  # 10 MiB are enough for 4000 points
    for cell, peak in zip(cells, found, strict=True):
        assert not over(peak), f"{ESTIMATORS[cell[0]]}: {peak}"


@pytest.mark.memory
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_every_estimator_stays_within_its_budget(number):
    estimator = ESTIMATORS[number]
    found = measured(*((number, n, budget) for n in SIZES for budget in BUDGETS))
    for what in found:
        sys.stdout.write(f"{number} {json.dumps(what)}\n")
    assert len(found) == len(SIZES) * len(BUDGETS)
    assert not any(over(what) for what in found), f"{estimator}: {[*filter(over, found)]}"
