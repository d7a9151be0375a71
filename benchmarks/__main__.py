"""python -m benchmarks [SUITE ...] [--quick] [--repeat R]: see benchmarks/README.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from . import SUITES
from ._race import race
from ._report import draw_cost, environment, write_table
from ._suite import BASELINE

RESULTS = Path(__file__).parent / "results"


def run(name: str, quick: bool, repeat: int, folder: Path) -> dict:
    """All cases of a suite; a contender slower than the suite allows sits out the rest."""
    suite, cases, out = SUITES[name], [], set()
    for case in suite.cases(quick):
        names = [c for c in case.contenders or suite.contenders if c not in out]
        records = race(name, suite, case, names, repeat, folder)
        slow = {c for c, r in records.items() if max(r["seconds"], default=0.0) > suite.give_up}
        if slow := slow - {BASELINE}:
            print(f"  {', '.join(sorted(slow))}: too slow for the cases that follow")
            out |= slow
        facts = {"name": case.name, "inputs": case.inputs, "tolerance": case.tolerance}
        cases.append(facts | {"contenders": records})
    suite.remarks(cases)
    return {"title": suite.title, "quick": quick, "environment": environment(), "cases": cases}


def sound(name: str, found: dict) -> bool:
    """Say whether nothing failed, nothing was refused, and there was a baseline.

    Candidates may be refused, but not all of them.
    """
    rivals = {c for c, contender in SUITES[name].contenders.items() if contender.candidate}
    for records in (case["contenders"] for case in found["cases"]):
        tried = {records[c]["status"] for c in rivals & records.keys()}
        statuses = {record["status"] for c, record in records.items() if c not in rivals}
        statuses |= tried - {"refused"} if "ok" in tried else tried
        if records[BASELINE]["status"] != "ok" or not statuses <= {"ok", "not installed"}:
            return False
    return True


def members(word: str) -> list[str]:
    """Return the suites that a word stands for: the one of this name, or those of this family."""
    return [name for name in SUITES if name == word or name.startswith(f"{word}-")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="small n, kept in results/quick")
    parser.add_argument("--repeat", type=int, metavar="R", help="rounds (5; quick: 2)")
    options = parser.parse_args()
    if unknown := {word for word in options.suites if not members(word)}:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    repeat = (2 if options.quick else 5) if options.repeat is None else options.repeat
    if repeat < 1:
        parser.error("--repeat takes a positive number of rounds")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that children end too

    results = RESULTS / "quick" if options.quick else RESULTS
    results.mkdir(parents=True, exist_ok=True)
    good = True
    asked = [name for word in options.suites for name in members(word)]
    for name in dict.fromkeys(asked or SUITES):
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as folder:
            found = run(name, options.quick, repeat, Path(folder))
        (results / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        if name == "cost":
            draw_cost(found, results / "cost.png")
        table = write_table(results)
        good &= sound(name, found)
    print(f"\n{table}")
    if not good:
        print(f"a contender failed or was refused, or {BASELINE} is missing", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
