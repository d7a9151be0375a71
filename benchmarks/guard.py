"""Check for performance regressions: this tree against an older commit, `guard --against COMMIT`.

A short list of calls of every kind is run with both trees in turn, each in its own process.  Let
the ratios now / before of R rounds be sorted.  The k-th smallest ratio is a lower confidence bound
of their median, because

    P(median < k-th smallest)  =  P(Binomial(R, 1/2) < k)  ≤  5 %

A call is slower if this bound is above 1.1.  It is then measured again, in new processes, before
the run fails.  A call whose result differs from that of the older tree fails too, so that every
change of a result, even an improvement, is noticed.
"""

from __future__ import annotations

import io
import math
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from . import _models, first, kv, means
from ._suite import Call, Case, Contender, Suite

OLD_SOURCES_VARIABLE = "MERCER_BEFORE"  # environment variable with the folder of the older sources
N_ROUNDS, MIN_ROUNDS = 15, 5  # with fewer than five, nothing is significant at the 5 % level
SLOWDOWN_MARGIN = 0.1  # slowdowns of less than 10 % are accepted
SIGNIFICANCE_LEVEL = 0.05  # probability of an error of the confidence bound


def time_ratios(before: list[float], now: list[float]) -> list[float]:
    """Return now / before for each round.

    If one tree has a single round, because it was too slow for more, it is compared with all rounds
    of the other.
    """
    rounds = max(len(before), len(now))
    before, now = (times * rounds if len(times) == 1 else times for times in (before, now))
    return [n / b for n, b in zip(now, before, strict=True)]


def median_lower_bound(before: list[float], now: list[float]) -> float:
    """Return a lower confidence bound of the median of now / before (−∞ below five rounds)."""
    ratios = sorted(time_ratios(before, now))
    rounds, total, k = len(ratios), 0.0, -1
    while (total := total + math.comb(rounds, k + 1) / 2**rounds) <= SIGNIFICANCE_LEVEL:
        k += 1
    return ratios[k] if k >= 0 else -math.inf


def is_slower(case: dict) -> bool:
    """Return True if this tree is significantly slower in a case."""
    records = [case["contenders"][name] for name in ("before", "mercer")]
    if any(record["status"] != "ok" for record in records):
        return False
    return median_lower_bound(*(record["seconds"] for record in records)) > 1.0 + SLOWDOWN_MARGIN


def has_different_result(case: dict) -> bool:
    """Return True if this tree fails or has a different result.

    The older tree may fail, because it may not have the function yet.
    """
    now, before = (case["contenders"][name]["status"] for name in ("mercer", "before"))
    return now != "ok" or before == "rejected"


def format_results(cases: list[dict]) -> str:
    """Return a table of the ratios of all cases."""
    lines = ["| call | now / before | |", "|---|---|---|"]
    for case in cases:
        now, before = (case["contenders"][name] for name in ("mercer", "before"))
        if now["status"] == before["status"] == "ok":
            ratios = time_ratios(before["seconds"], now["seconds"])
            shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        else:
            shown = "not compared: " + (before["note"] if now["status"] == "ok" else now["note"])
        lines.append(f"| {case['name']} | {shown} | {'slower' if is_slower(case) else ''} |")
    return "\n".join(lines)


@contextmanager
def older_sources(commit: str) -> Iterator[None]:
    """Unpack the sources of a commit into a temporary folder named by OLD_SOURCES_VARIABLE."""
    command = ["git", "-C", str(Path(__file__).parents[1]), "archive", commit, "src"]
    archive_bytes = subprocess.run(command, stdout=subprocess.PIPE).stdout  # git prints errors
    if not archive_bytes:
        sys.exit(f"cannot compare: git has no sources of {commit}")
    with tempfile.TemporaryDirectory(prefix="mercer-before-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive_bytes)) as archive:
            archive.extractall(folder, filter="data")
        os.environ[OLD_SOURCES_VARIABLE] = os.path.join(folder, "src")
        try:
            yield
        finally:
            del os.environ[OLD_SOURCES_VARIABLE]


# ------------------------------------------------------------------------------------- the calls


def make_call(kind: str, **inputs: Any) -> Call:
    """Return the call of a case with mercer."""
    if kind == "model":
        return _models.make_contender("mercer")(**inputs)
    if kind == "product":
        return kv.mercer(**inputs)
    if kind == "test":
        return means.make_mercer_test("permutation", **inputs)
    return first.make_process_call("mercer", **inputs)


def reference(**inputs: Any) -> np.ndarray:
    """Return the result of this tree, with which the older one is compared."""
    call = make_call(**inputs)
    result = call()
    return call.untimed_result() if hasattr(call, "untimed_result") else result


def cases(quick: bool) -> list[Case]:
    result = []
    for model, spec in _models.MODELS.items():
        is_gp = model.startswith("Gaussian")
        for n in (300,) if quick or is_gp else (300, 2000):
            inputs = {"name": "waves", "n": n, "d": 8, "noise": 0.3, "queries": 1000}
            inputs |= {"classes": 2} if spec.targets == "labels" else {}
            for job in ("fit", 1) if n == 300 else ("fit", 1000):
                job_name = "fit" if job == "fit" else f"{spec.predict_method} of {job}"
                case_inputs = {"kind": "model", "model": model, "job": job, **inputs}
                name = f"{model}.{job_name} n={n}"
                result.append(Case(name, case_inputs, max(spec.tolerance, 1e-6), spec.error))
    product_inputs = {
        "kind": "product",
        "name": "normal",
        "n": 4000,
        "columns": 12,
        "dtype": "float64",
    }
    result += [
        Case(f"K @ V d={d}", product_inputs | {"d": d}) for d in ((3,) if quick else (3, 50))
    ]
    test_inputs = {"kind": "test", "permutations": 99, "n": 500, "d": 5, "seed": 0}
    tests = ("two samples", "independence")
    result += [Case(f"{test} n=500", test_inputs | {"test": test}) for test in tests]
    return [
        *result,
        Case("import", {"kind": "first", "name": "import"}, 0.0, first.result_difference),
    ]


SUITE = Suite(
    "this tree against an older one",
    cases,
    {
        "mercer": Contender("mercer", make_call),
        "before": Contender("mercer", make_call, source_variable=OLD_SOURCES_VARIABLE),
    },
    reference,
    max_warm_up=60.0,
    postprocess=format_results,
)
