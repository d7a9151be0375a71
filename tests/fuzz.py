"""Random strings for the kernel parser, from almost valid to noise, reproducible by their seed.

``python tests/fuzz.py 100000`` prints the average parsing time and the slowest string.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import zoo

from mercer import KernelSyntaxError, parse_kernel
from mercer.kernels import Kernel
from mercer.kernels import __all__ as NAMES

SEEDS = [repr(entry.kernel) for entry in zoo.KERNELS if len(repr(entry.kernel)) < 300]
WORDS = [*NAMES, "rbf", "poly", "linear", "gauss", "matern", "slice", "None", "True", "inf", "nan"]
WORDS += ["length_scale", "kernel", "p", "x", "__class__", "__import__", "eval", "os", "lambda"]
SIGNS = [*"+-*/()[]{},=:.'\"\\^@!#~;&|<>?$%_ \t\n", "**", "(", ")", "()", ", ", "\0", "é", "𝔘"]
NUMBERS = ["0", "1", "2.5", "-1", "1e-5", "1e308", "1e999", "1e-999", ".5", "7.", "10" * 40, "00"]
STRINGS = ["'median'", '"auto"', "b'ACGT'", "'\\x41'", "'\\q'", "'\\U0011ffff'", "''"]


def texts(n, seed):
    """Yield n strings: expressions of the grammar, mutated reprs of kernels, and noise."""
    rng = np.random.default_rng(seed)
    makers = [*[sentence] * 5, *[mutated] * 10, *[noise] * 4, nested]
    for _ in range(n):
        yield makers[rng.integers(len(makers))](rng)


def sentence(rng, depth=3):
    """Return a grammatical expression, whose names and values may not make sense together."""
    kind = rng.integers(8) if depth else rng.integers(3)
    if kind < 3:
        return str(rng.choice([WORDS, NUMBERS, STRINGS][kind]))
    inner = [sentence(rng, depth - 1) for _ in range(rng.integers(4))]
    if kind == 3:
        return f"{rng.choice(WORDS)}({', '.join(inner)})"
    if kind == 4:
        return f"{rng.choice(WORDS)}({', '.join(f'{rng.choice(WORDS)}={x}' for x in inner)})"
    if kind == 5:
        return str(rng.choice(["({})", "[{}]", "({},)", "{{1: {}}}"])).format(", ".join(inner))
    return str(rng.choice([" + ", "*", "**", " - ", ""])).join(inner)


def mutated(rng):
    """Return the repr of a kernel with pieces deleted, repeated or replaced."""
    text = str(rng.choice(SEEDS))
    for _ in range(rng.integers(5)):
        i, j = sorted(rng.integers(len(text) + 1, size=2))
        j = min(j, i + 8)
        piece = [text[i:j] * 2, "", str(rng.choice(SIGNS)), str(rng.choice(NUMBERS + WORDS))]
        text = text[:i] + piece[rng.integers(4)] + text[j:]
    return text


def noise(rng):
    """Return random tokens, or random bytes."""
    if rng.random() < 0.5:
        pieces = rng.choice(SIGNS + WORDS + NUMBERS + STRINGS, size=rng.integers(1, 30))
        return "".join(pieces)
    return rng.bytes(int(rng.integers(1, 60))).decode("latin-1")


def nested(rng):
    """Return a kernel inside many nested brackets; some closing brackets may be missing."""
    depth = int(10 ** rng.uniform(0, 4))
    opening, closing = (("(", ")"), ("[", "]"), ("Exp(", ")"), ("2*(", ")"), ("RBF()+", ""))[
        rng.integers(5)
    ]
    return opening * depth + "RBF()" + closing * int(depth * rng.choice([1, 1, 0.9]))


def survives(text):
    """Return whether a string is a valid kernel, and the parsing time in seconds.

    The only exception that the parser may raise is KernelSyntaxError.
    """
    start = time.process_time()
    try:
        kernel = parse_kernel(text)
    except KernelSyntaxError as error:
        spent = time.process_time() - start
        assert 0 <= error.position <= len(text)
        assert len(str(error).splitlines()[-2]) < 140
        return False, spent
    spent = time.process_time() - start
    assert isinstance(kernel, Kernel)
    if len(again := repr(kernel)) <= 100_000:
        assert parse_kernel(again) == kernel
    return True, spent


if __name__ == "__main__":
    found = [(*survives(text), text[:80]) for text in texts(int(sys.argv[1]), seed=0)]
    kernels, times, _ = zip(*found, strict=True)
    print(f"{len(found)} texts, {sum(kernels)} kernels, {np.mean(times) * 1e6:.0f} us each")
    print("slowest:", *max(found, key=lambda each: each[1])[1:])
