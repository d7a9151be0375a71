"""Decode the messages that the explorer sends to the browser."""

import json
import struct

import numpy as np


def unpack(data):
    size, _ = struct.unpack("<II", data[:8])
    body = data[8 + size :]

    def seen(value):
        if "$" not in value:
            return value
        kind, start, count = value["$"]
        return np.frombuffer(body, f"<{kind}", count, start)

    assert size % 8 == 0
    return json.loads(data[8 : 8 + size], object_hook=seen)
