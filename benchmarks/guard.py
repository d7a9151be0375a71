"""Has anything become slower?  This tree against an older one: `guard --against COMMIT`.

A short list of calls of every kind, the two trees in turn, each in a process of its own.  Of the
ratios now / before of R rounds, the k-th least is a lower confidence limit of their median,

    P(median < k-th least)  =  P(Binomial(R, 1/2) < k)  ≤  5 %

and a call is slower if that limit is above 1.1.  Such a call is measured once more, in other
processes, before the run fails.  A call whose result differs from the older tree's fails too: what
is meant to be better is to be looked at, and named.
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

BEFORE = "MERCER_BEFORE"  # the variable with the folder of the older sources
ROUNDS, QUICK = 15, 5  # five are the fewest of which anything follows
MARGIN = 0.1
LEVEL = 0.05


def ratios_of(before: list[float], now: list[float]) -> list[float]:
    """now / before by rounds; a lone round, of who was too slow for more, is set against all."""
    rounds = max(len(before), len(now))
    before, now = (times * rounds if len(times) == 1 else times for times in (before, now))
    return [n / b for n, b in zip(now, before, strict=True)]


def lower_limit(before: list[float], now: list[float]) -> float:
    """A lower confidence limit of the median of now / before; −∞ for less than five rounds."""
    ratios = sorted(ratios_of(before, now))
    rounds, total, k = len(ratios), 0.0, -1
    while (total := total + math.comb(rounds, k + 1) / 2**rounds) <= LEVEL:
        k += 1
    return ratios[k] if k >= 0 else -math.inf


def slower(case: dict) -> bool:
    """Whether this tree takes longer for a case, beyond noise."""
    records = [case["contenders"][name] for name in ("before", "mercer")]
    if any(record["status"] != "ok" for record in records):
        return False
    return lower_limit(*(record["seconds"] for record in records)) > 1.0 + MARGIN


def differs(case: dict) -> bool:
    """Whether this tree fails, or has another result; the older one may not have the call."""
    now, before = (case["contenders"][name]["status"] for name in ("mercer", "before"))
    return now != "ok" or before == "refused"


def remarks(cases: list[dict]) -> str:
    lines = ["| call | now / before | |", "|---|---|---|"]
    for case in cases:
        now, before = (case["contenders"][name] for name in ("mercer", "before"))
        if now["status"] == before["status"] == "ok":
            ratios = ratios_of(before["seconds"], now["seconds"])
            shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        else:
            shown = "not compared: " + (before["note"] if now["status"] == "ok" else now["note"])
        lines.append(f"| {case['name']} | {shown} | {'slower' if slower(case) else ''} |")
    return "\n".join(lines)


@contextmanager
def older(commit: str) -> Iterator[None]:
    """The sources of a commit in a folder that goes away, named by the environment."""
    command = ["git", "-C", str(Path(__file__).parents[1]), "archive", commit, "src"]
    packed = subprocess.run(command, stdout=subprocess.PIPE).stdout  # git says what is wrong
    if not packed:
        sys.exit(f"there are no sources of {commit} to compare with")
    with tempfile.TemporaryDirectory(prefix="mercer-before-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        os.environ[BEFORE] = os.path.join(folder, "src")
        try:
            yield
        finally:
            del os.environ[BEFORE]


# ------------------------------------------------------------------------------- what is called


def call(kind: str, **inputs: Any) -> Call:
    if kind == "model":
        return _models.contender("mercer")(**inputs)
    if kind == "product":
        return kv.mercer(**inputs)
    if kind == "test":
        return means.ours("permutation", **inputs)
    return first.process("mercer", **inputs)


def reference(**inputs: Any) -> np.ndarray:
    ready = call(**inputs)
    result = ready()
    return ready.found() if hasattr(ready, "found") else result


def cases(quick: bool) -> list[Case]:
    found = []
    for model, rule in _models.MODELS.items():
        process = model.startswith("Gaussian")
        for n in (300,) if quick or process else (300, 2000):
            inputs = {"name": "waves", "n": n, "d": 8, "noise": 0.3, "queries": 1000}
            inputs |= {"classes": 2} if rule.learns == "labels" else {}
            for job in ("fit", 1) if n == 300 else ("fit", 1000):
                verb = "fit" if job == "fit" else f"{rule.verb} of {job}"
                given = {"kind": "model", "model": model, "job": job, **inputs}
                name = f"{model}.{verb} n={n}"
                found.append(Case(name, given, max(rule.tolerance, 1e-6), rule.error))
    points = {"kind": "product", "name": "normal", "n": 4000, "columns": 12, "dtype": "float64"}
    found += [Case(f"K @ V d={d}", points | {"d": d}) for d in ((3,) if quick else (3, 50))]
    samples = {"kind": "test", "permutations": 99, "n": 500, "d": 5, "seed": 0}
    tests = ("two samples", "independence")
    found += [Case(f"{test} n=500", samples | {"test": test}) for test in tests]
    return [*found, Case("import", {"kind": "first", "name": "import"}, 0.0, first.different)]


SUITE = Suite(
    "this tree against an older one",
    cases,
    {
        "mercer": Contender("mercer", call),
        "before": Contender("mercer", call, tree=BEFORE),
    },
    reference,
    slow=60.0,
    remarks=remarks,
)
