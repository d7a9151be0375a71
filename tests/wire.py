"""Decode the messages that the explorer sends to the browser, and collect those of a controller."""

import json
import struct
import threading

import numpy as np

from mercer.app.explorer._controller import Controller


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


class Talk:
    """A session and the messages that it has sent."""

    def __init__(self, scene, **options):
        self.said = []
        self.came = threading.Condition()
        self.controller = Controller(scene, self.hear, **options)

    def hear(self, data):
        with self.came:
            self.said.append(unpack(data))
            self.came.notify_all()

    def ask(self, **question):
        self.controller.handle(question)

    def next(self, kind):
        """Wait for a message of a type, and return the last one."""
        with self.came:
            assert self.came.wait_for(lambda: self.all(kind), timeout=20), self.said
            found = self.all(kind)[-1]
            self.said.clear()
        return found

    def all(self, kind):
        return [one for one in self.said if one["kind"] == kind]
