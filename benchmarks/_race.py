"""The race of one case: a process for every contender, accuracy first, then rounds in turn."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
from contextlib import ExitStack, suppress
from itertools import cycle
from pathlib import Path

import numpy as np

from ._suite import BASELINE, THREADS, Case, Contender, Suite

BEHIND = 1.5  # times the fastest candidate; a slower one is not called again
PATIENCE = 1800.0  # seconds for one answer of a child
SOURCES = Path(__file__).parents[1] / "src"
_ENVIRONMENT = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)
)


class Child:
    """A contender in its own process, which answers one line of JSON to one line of input."""

    def __init__(
        self, suite: str, name: str, inputs: dict, folder: Path, who: Contender | None = None
    ) -> None:
        self.record = {"status": "ok", "note": "", "seconds": [], "scratch": []}
        if who and who.candidate:
            self.record["candidate"] = True
        tree = os.environ[who.tree] if who and who.tree else str(SOURCES)
        path = os.pathsep.join(filter(None, [tree, os.environ.get("PYTHONPATH")]))
        self.traceback: list[str] = []  # for the terminal only: it names folders
        self.result, self._log = folder / f"{name}.npy", folder / f"{name}.log"
        self.result.unlink(missing_ok=True)
        arguments = [suite, name, json.dumps(inputs), str(self.result)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks._child", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | _ENVIRONMENT | {"PYTHONPATH": path},
                text=True,
                start_new_session=True,  # Ctrl-C reaches the parent alone, which ends us all
            )

    def _read(self) -> dict:
        if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
            return {"failed": f"no answer within {PATIENCE:.0f} s"}
        if line := self._process.stdout.readline():
            return json.loads(line)
        return {"failed": f"{self._log.read_text()}\nexit code {self._process.wait()}"}

    def answer(self) -> dict | None:
        """Return the next answer, or None for a child that dropped out; its record says why."""
        answer = self._read()
        if "failed" in answer:
            self.traceback = answer["failed"].strip().splitlines()[-15:]
            kind = self.traceback[-1].partition(":")[0]  # the message may name a folder
            self.record.update(status="failed", note=f"failed: {kind}")
        elif "missing" in answer:
            self.record.update(status="not installed", note="not installed")
        else:
            self.record["note"] = answer["note"]
            return answer
        self.close()
        return None

    def turn(self, reference: np.ndarray, case: Case) -> None:
        """Call once, and refuse a result that is not the reference's, NaN included."""
        with suppress(BrokenPipeError):  # the answer says why
            print("call", file=self._process.stdin, flush=True)
        if (answer := self.answer()) is None:
            return
        if self.result.exists():  # a limit computes nothing that could be compared
            error = case.error(np.load(self.result), reference)
            self.record["error"] = max(error, self.record.get("error", 0.0))
            if not error <= case.tolerance:
                note = f"refused: relative error {error:.1e} > {case.tolerance:.0e}"
                self.record.update(status="refused", note=note)
                self.close()
                return
        self.record["seconds"].append(answer["seconds"])
        self.record["scratch"].append(answer["scratch"])

    def say(self) -> None:
        lines = [self.record["note"] or "ready", *self.traceback]
        print(f"  {self.result.stem}:", "\n    ".join(lines), flush=True)

    def close(self) -> None:
        """End the child and whatever it started, such as a compiler."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()


def race(
    key: str, suite: Suite, case: Case, names: list[str], repeat: int, folder: Path
) -> dict[str, dict]:
    """Run one case and return a record for each contender, with its ratio to mercer."""
    print(f"{key}: {case.name}", flush=True)
    children: dict[str, Child] = {}
    with ExitStack() as stack:
        for name in ["reference", *names]:
            who = suite.contenders.get(name)
            child = children[name] = Child(key, name, case.inputs, folder, who)
            stack.callback(child.close)
            ready = child.answer()
            if name == "reference":
                if ready is None:
                    raise RuntimeError("\n".join(child.traceback))
                reference = np.load(children.pop(name).result)
            elif ready is not None:
                child.turn(reference, case)
            child.say()
        racing = _forget_warm_ups(suite, children)
        for number in range(1, repeat + 1):
            for child in racing:
                if child.record["status"] == "ok":
                    child.turn(reference, case)
                    if child.record["status"] != "ok":
                        child.say()
            print(f"  round {number} of {repeat}", flush=True)
    records = {name: child.record for name, child in children.items()}
    ours = records.get(BASELINE, {"status": "absent"})
    for record in records.values():
        comparable = record["status"] == ours["status"] == "ok"
        record["ratio"] = ratio(record["seconds"], ours["seconds"]) if comparable else None
    return records


def _forget_warm_ups(suite: Suite, children: dict[str, Child]) -> list[Child]:
    """Return who races; for the slow, and candidates far behind, the warm-up was the only round."""
    warm_ups = {n: c.record["seconds"][0] for n, c in children.items() if c.record["seconds"]}
    candidates = {name for name in warm_ups if suite.contenders[name].candidate}
    fastest = min((warm_ups[name] for name in candidates), default=math.inf)
    racing = []
    for name, seconds in warm_ups.items():
        limit = min(suite.slow, BEHIND * fastest) if name in candidates else suite.slow
        if seconds <= limit:
            racing.append(children[name])
            children[name].record.update(seconds=[], scratch=[])
    return racing


def ratio(theirs: list[float], ours: list[float]) -> list[float]:
    """Median, least and greatest ratio theirs / ours, round by round.

    A contender too slow for every round is set against all of ours with the one it has.
    """
    ratios = [t / o for t, o in zip(cycle(theirs), ours, strict=False)]
    return [statistics.median(ratios), min(ratios), max(ratios)]
