"""python -m benchmarks [SUITE ...] [--quick] [--repeat R]: see benchmarks/README.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from . import QUOTED, SUITES, guard
from ._race import race
from ._report import draw_cost, environment, publish, speed, write_table
from ._suite import BASELINE

HOME = Path(__file__).parent
RESULTS = HOME / "results"
QUICK = HOME.parent / "out" / "benchmarks"


def run(name: str, quick: bool, repeat: int, folder: Path, only: Collection[str] = ()) -> dict:
    """All cases of a suite, or some; a contender slower than the suite allows sits out the rest."""
    suite, cases, out = SUITES[name], [], set()
    for case in suite.cases(quick):
        if only and case.name not in only:
            continue
        names = [c for c in case.contenders or suite.contenders if c not in out]
        records = race(name, suite, case, names, repeat, folder)
        slow = {c for c, r in records.items() if max(r["seconds"], default=0.0) > suite.give_up}
        if slow := slow - {BASELINE}:
            print(f"  {', '.join(sorted(slow))}: too slow for the cases that follow")
            out |= slow
        facts = {"name": case.name, "family": case.family, "inputs": case.inputs}
        cases.append(facts | {"tolerance": case.tolerance, "contenders": records})
    found = {"title": suite.title, "quick": quick, "environment": environment(), "cases": cases}
    if text := suite.remarks(cases):
        print(f"\n{text}", flush=True)
        found["text"] = text
    return found


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


def guarded(commit: str, quick: bool, repeat: int, folder: Path) -> bool:
    """Say whether no call is slower, or other, than at a commit; suspects are measured twice."""
    with guard.older(commit):
        found = run("guard", quick, repeat, folder)
        others = [case["name"] for case in found["cases"] if guard.differs(case)]
        suspects = {case["name"] for case in found["cases"] if guard.slower(case)}
        if suspects:
            print(f"once more: {', '.join(sorted(suspects))}")
            again = run("guard", quick, repeat, folder, suspects)
            suspects = {case["name"] for case in again["cases"] if guard.slower(case)}
    print(f"not the results of {commit}: {', '.join(others) or 'none'}")
    print(f"slower than {commit}: {', '.join(sorted(suspects)) or 'nothing'}")
    return not (suspects or others)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="few and small cases, kept in out/")
    parser.add_argument("--repeat", type=int, metavar="R", help="rounds (5; quick: 2)")
    parser.add_argument("--against", metavar="COMMIT", default="HEAD~1", help="for guard")
    parser.add_argument("--table", action="store_true", help="print what was recorded, run nothing")
    parser.add_argument("--publish", action="store_true", help="write it into the two pages")
    options = parser.parse_args()
    if unknown := {word for word in options.suites if not members(word)}:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    asked = [name for word in options.suites for name in members(word)]
    if options.publish:
        publish(HOME.parent / "README.md", speed(RESULTS, QUOTED, peers_only=True))
        publish(HOME / "SUMMARY.md", speed(RESULTS))
    if options.table:
        print(speed(QUICK if options.quick else RESULTS, tuple(asked)))
    if options.table or options.publish:
        return 0
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat takes a positive number of rounds")
    if "guard" in asked and options.repeat is not None and options.repeat < guard.QUICK:
        parser.error(f"nothing follows from fewer than {guard.QUICK} rounds of the guard")
    repeat = options.repeat or (2 if options.quick else 5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that children end too

    results, good, table = QUICK if options.quick else RESULTS, True, ""
    results.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(asked or [name for name in SUITES if name != "guard"]):
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as folder:
            if name == "guard":
                rounds = options.repeat or (guard.QUICK if options.quick else guard.ROUNDS)
                good &= guarded(options.against, options.quick, rounds, Path(folder))
                continue
            found = run(name, options.quick, repeat, Path(folder))
        (results / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        if name == "cost":
            draw_cost(found, results / "cost.png")
        table = write_table(results)
        if not sound(name, found):
            print(f"{name}: a contender failed or was refused, or {BASELINE} is missing")
            good = False
    print(f"\n{table}")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
