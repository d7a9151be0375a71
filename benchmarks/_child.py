"""Run one contender in a separate process.

The arguments are the name of a suite, the name of a contender, the inputs as JSON, and the file
for the result.  The process prepares the contender and then makes one call for each line on
standard input.  Each response is one line of JSON on the original standard output.  Anything that
the contender prints goes to standard error, so that it does not mix with the responses.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback

import numpy as np

from . import SUITES
from ._measure import measure, release_freed_memory


def responses(suite: str, name: str, inputs: str, path: str):
    """Yield one dictionary when the contender is ready, and then one for each call.

    Each has a "note"; those of calls also have "seconds" and "scratch" (bytes).
    """
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
        if turn < 2:  # the warm-up and the first round, which is the one that measures memory
            release_freed_memory()
        result, seconds, scratch = measure(call)
        if hasattr(call, "untimed_result"):  # computed outside of the timed call
            result = call.untimed_result()
        if result is not None:
            np.save(path, result)
        del result
        yield {"note": getattr(call, "note", ""), "seconds": seconds, "scratch": scratch}


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        for response in responses(*sys.argv[1:]):
            print(json.dumps(response), file=channel, flush=True)
    except Exception:
        print(json.dumps({"failed": traceback.format_exc()}), file=channel, flush=True)
