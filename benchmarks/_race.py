"""Run one case: a process for each contender, an accuracy check, then rounds in turn."""

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

from ._suite import BASELINE, N_THREADS, Case, Contender, Suite

MAX_CANDIDATE_RATIO = 1.5  # to the fastest candidate; slower candidates get no further rounds
RESPONSE_TIMEOUT = 1800.0  # seconds to wait for one response of a contender's process
SOURCE_DIR = Path(__file__).parents[1] / "src"
_ENVIRONMENT = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(N_THREADS)
)


class ContenderProcess:
    """A contender in a separate process, which sends one line of JSON for each line of input."""

    def __init__(
        self, suite: str, name: str, inputs: dict, folder: Path, contender: Contender | None = None
    ) -> None:
        self.record = {"status": "ok", "note": "", "seconds": [], "scratch": []}
        if contender and contender.candidate:
            self.record["candidate"] = True
        source_dir = (
            os.environ[contender.source_variable]
            if contender and contender.source_variable
            else str(SOURCE_DIR)
        )
        path = os.pathsep.join(filter(None, [source_dir, os.environ.get("PYTHONPATH")]))
        self.traceback: list[str] = []  # printed but not saved, because it contains local paths
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
                start_new_session=True,  # Ctrl-C reaches only the parent, which ends the children
            )

    def _read_response(self) -> dict:
        if not select.select([self._process.stdout], [], [], RESPONSE_TIMEOUT)[0]:
            return {"failed": f"no response within {RESPONSE_TIMEOUT:.0f} s"}
        if line := self._process.stdout.readline():
            return json.loads(line)
        return {"failed": f"{self._log.read_text()}\nexit code {self._process.wait()}"}

    def receive(self) -> dict | None:
        """Return the next response, or None if the contender dropped out (see its record)."""
        response = self._read_response()
        if "failed" in response:
            self.traceback = response["failed"].strip().splitlines()[-15:]
            # Save only the type of the error, because its message may contain a local path.
            kind = self.traceback[-1].partition(":")[0]
            self.record.update(status="failed", note=f"failed: {kind}")
        elif "missing" in response:
            self.record.update(status="not installed", note="not installed")
        else:
            self.record["note"] = response["note"]
            return response
        self.close()
        return None

    def run_once(self, reference: np.ndarray, case: Case) -> None:
        """Make one call; reject the contender if its result is NaN or not the reference."""
        with suppress(BrokenPipeError):  # the process has ended: `receive` returns the reason
            print("call", file=self._process.stdin, flush=True)
        if (response := self.receive()) is None:
            return
        if self.result.exists():  # `limit` returns no result to compare
            error = case.error(np.load(self.result), reference)
            self.record["error"] = max(error, self.record.get("error", 0.0))
            if not error <= case.tolerance:
                note = f"rejected: relative error {error:.1e} > {case.tolerance:.0e}"
                self.record.update(status="rejected", note=note)
                self.close()
                return
        self.record["seconds"].append(response["seconds"])
        self.record["scratch"].append(response["scratch"])

    def print_status(self) -> None:
        lines = [self.record["note"] or "ready", *self.traceback]
        print(f"  {self.result.stem}:", "\n    ".join(lines), flush=True)

    def close(self) -> None:
        """Kill the process and everything that it started, such as a compiler."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()


def run_case(
    key: str, suite: Suite, case: Case, names: list[str], repeat: int, folder: Path
) -> dict[str, dict]:
    """Run one case and return a record for each contender, including its time ratio to mercer."""
    print(f"{key}: {case.name}", flush=True)
    children: dict[str, ContenderProcess] = {}
    with ExitStack() as stack:
        for name in ["reference", *names]:
            contender = suite.contenders.get(name)
            child = children[name] = ContenderProcess(key, name, case.inputs, folder, contender)
            stack.callback(child.close)
            response = child.receive()
            if name == "reference":
                if response is None:
                    raise RuntimeError("\n".join(child.traceback))
                reference = np.load(children.pop(name).result)
            elif response is not None:
                child.run_once(reference, case)
            child.print_status()
        active = _select_for_rounds(suite, children)
        for number in range(1, repeat + 1):
            for child in active:
                if child.record["status"] == "ok":
                    child.run_once(reference, case)
                    if child.record["status"] != "ok":
                        child.print_status()
            print(f"  round {number} of {repeat}", flush=True)
    records = {name: child.record for name, child in children.items()}
    baseline = records.get(BASELINE, {"status": "absent"})
    for record in records.values():
        comparable = record["status"] == baseline["status"] == "ok"
        record["ratio"] = time_ratio(record["seconds"], baseline["seconds"]) if comparable else None
    return records


def _select_for_rounds(
    suite: Suite, children: dict[str, ContenderProcess]
) -> list[ContenderProcess]:
    """Discard the warm-up times and return the contenders that take part in the rounds.

    Slow contenders, and candidates far behind the fastest, keep their warm-up as their only round.
    """
    warm_ups = {n: c.record["seconds"][0] for n, c in children.items() if c.record["seconds"]}
    candidates = {name for name in warm_ups if suite.contenders[name].candidate}
    fastest = min((warm_ups[name] for name in candidates), default=math.inf)
    active = []
    for name, seconds in warm_ups.items():
        limit = (
            min(suite.max_warm_up, MAX_CANDIDATE_RATIO * fastest)
            if name in candidates
            else suite.max_warm_up
        )
        if seconds <= limit:
            active.append(children[name])
            children[name].record.update(seconds=[], scratch=[])
    return active


def time_ratio(peer_seconds: list[float], mercer_seconds: list[float]) -> list[float]:
    """Return the median, the smallest and the largest ratio peer / mercer over all rounds.

    If the peer has only one round because it is slow, that round is compared with all of mercer's.
    """
    ratios = [t / o for t, o in zip(cycle(peer_seconds), mercer_seconds, strict=False)]
    return [statistics.median(ratios), min(ratios), max(ratios)]
