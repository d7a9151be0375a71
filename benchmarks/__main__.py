"""Command line of the benchmarks: python -m benchmarks [SUITE ...] [--quick] [--repeat R].

The options are described in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from . import README_SUITES, SUITES, guard
from ._race import run_case
from ._report import draw_cost, environment, replace_table, speed_table, write_table
from ._suite import BASELINE

BENCHMARKS_DIR = Path(__file__).parent
RESULTS_DIR = BENCHMARKS_DIR / "results"
QUICK_RESULTS_DIR = BENCHMARKS_DIR.parent / "out" / "benchmarks"


def run_suite(
    name: str, quick: bool, repeat: int, folder: Path, only: Collection[str] = ()
) -> dict:
    """Run a suite and return its results as a dictionary that can be saved as JSON.

    `only` restricts the run to the cases with these names.  A contender that takes longer than
    `suite.max_seconds` in one case is left out of the cases that follow.
    """
    suite, cases, excluded = SUITES[name], [], set()
    for case in suite.cases(quick):
        if only and case.name not in only:
            continue
        names = [c for c in case.contenders or suite.contenders if c not in excluded]
        records = run_case(name, suite, case, names, repeat, folder)
        slow = {c for c, r in records.items() if max(r["seconds"], default=0.0) > suite.max_seconds}
        if slow := slow - {BASELINE}:
            print(f"  {', '.join(sorted(slow))}: too slow, left out of the remaining cases")
            excluded |= slow
        facts = {"name": case.name, "family": case.family, "inputs": case.inputs}
        cases.append(facts | {"tolerance": case.tolerance, "contenders": records})
    result = {"title": suite.title, "quick": quick, "environment": environment(), "cases": cases}
    if text := suite.postprocess(cases):
        print(f"\n{text}", flush=True)
        result["text"] = text
    return result


def is_valid_run(name: str, result: dict) -> bool:
    """Return True if mercer ran and no contender failed or was rejected.

    Candidates (alternative settings of one peer) may be rejected, but not all of them.
    """
    candidates = {c for c, contender in SUITES[name].contenders.items() if contender.candidate}
    for records in (case["contenders"] for case in result["cases"]):
        candidate_statuses = {records[c]["status"] for c in candidates & records.keys()}
        statuses = {record["status"] for c, record in records.items() if c not in candidates}
        statuses |= (
            candidate_statuses - {"rejected"} if "ok" in candidate_statuses else candidate_statuses
        )
        if records[BASELINE]["status"] != "ok" or not statuses <= {"ok", "not installed"}:
            return False
    return True


def matching_suites(word: str) -> list[str]:
    """Return the suites that a command-line word selects: an exact name, or a prefix before "-"."""
    return [name for name in SUITES if name == word or name.startswith(f"{word}-")]


def check_regressions(commit: str, quick: bool, repeat: int, folder: Path) -> bool:
    """Return True if no call is slower than at a commit and none has a different result.

    Calls that seem slower are measured a second time before they are reported.
    """
    with guard.older_sources(commit):
        result = run_suite("guard", quick, repeat, folder)
        different = [case["name"] for case in result["cases"] if guard.has_different_result(case)]
        suspects = {case["name"] for case in result["cases"] if guard.is_slower(case)}
        if suspects:
            print(f"measuring again: {', '.join(sorted(suspects))}")
            again = run_suite("guard", quick, repeat, folder, suspects)
            suspects = {case["name"] for case in again["cases"] if guard.is_slower(case)}
    print(f"results that differ from {commit}: {', '.join(different) or 'none'}")
    print(f"slower than {commit}: {', '.join(sorted(suspects)) or 'none'}")
    return not (suspects or different)


def main() -> int:
    """Parse the command line, run the suites and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="few small cases, saved in out/")
    parser.add_argument(
        "--repeat", type=int, metavar="R", help="number of rounds (default: 5, with --quick 2)"
    )
    parser.add_argument(
        "--against", metavar="COMMIT", default="HEAD~1", help="older commit for guard"
    )
    parser.add_argument("--table", action="store_true", help="print recorded results, run nothing")
    parser.add_argument(
        "--publish", action="store_true", help="update tables in README and SUMMARY"
    )
    options = parser.parse_args()
    if unknown := {word for word in options.suites if not matching_suites(word)}:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; choose from {', '.join(SUITES)}")
    requested = [name for word in options.suites for name in matching_suites(word)]
    if options.publish:
        replace_table(
            BENCHMARKS_DIR.parent / "README.md",
            speed_table(RESULTS_DIR, README_SUITES, peers_only=True),
        )
        replace_table(BENCHMARKS_DIR / "SUMMARY.md", speed_table(RESULTS_DIR))
    if options.table:
        folder = QUICK_RESULTS_DIR if options.quick else RESULTS_DIR
        print(speed_table(folder, dict.fromkeys(requested, ())))
    if options.table or options.publish:
        return 0
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat must be a positive number of rounds")
    if "guard" in requested and options.repeat is not None and options.repeat < guard.MIN_ROUNDS:
        parser.error(f"guard needs at least {guard.MIN_ROUNDS} rounds for a significant result")
    repeat = options.repeat or (2 if options.quick else 5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwind, so that child processes end

    results, all_valid, table = QUICK_RESULTS_DIR if options.quick else RESULTS_DIR, True, ""
    results.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(requested or [name for name in SUITES if name != "guard"]):
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as folder:
            if name == "guard":
                rounds = options.repeat or (guard.MIN_ROUNDS if options.quick else guard.N_ROUNDS)
                all_valid &= check_regressions(options.against, options.quick, rounds, Path(folder))
                continue
            result = run_suite(name, options.quick, repeat, Path(folder))
        (results / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        if name == "cost":
            draw_cost(result, results / "cost.png")
        table = write_table(results)
        if not is_valid_run(name, result):
            print(f"{name}: a contender failed or was rejected, or {BASELINE} is missing")
            all_valid = False
    print(f"\n{table}")
    return 0 if all_valid else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
