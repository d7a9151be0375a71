"""One contender in an interpreter of its own: gets ready, then one call per line of input.

The arguments are a suite, a contender, its inputs as JSON and the file for its result.  Every
answer is one line of JSON on the original standard output; what the contender prints is kept
out of it, on standard error.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback

import numpy as np

from . import SUITES
from ._measure import measure, settle


def answers(suite: str, name: str, inputs: str, path: str):
    """Yield {"note": …} when ready and then, for one call each, "seconds" and "scratch" too."""
    if name == "reference":
        np.save(path, SUITES[suite].reference(**json.loads(inputs)))
        yield {"note": ""}
        return
    contender = SUITES[suite].contenders[name]
    if importlib.util.find_spec(contender.package) is None:
        yield {"missing": contender.package}
        return
    call = contender.make(**json.loads(inputs))
    yield {"note": getattr(call, "note", "")}
    for turn, _ in enumerate(sys.stdin):
        if turn < 2:  # the warm-up, and the first round, from which memory is taken
            settle()
        result, seconds, scratch = measure(call)
        if hasattr(call, "found"):  # what is compared and was not to be timed
            result = call.found()
        if result is not None:
            np.save(path, result)
        del result
        yield {"note": getattr(call, "note", ""), "seconds": seconds, "scratch": scratch}


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        for answer in answers(*sys.argv[1:]):
            print(json.dumps(answer), file=channel, flush=True)
    except Exception:
        print(json.dumps({"failed": traceback.format_exc()}), file=channel, flush=True)
