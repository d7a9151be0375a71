"""Types of the arguments that most packages share, and checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

# The points of a kernel: a matrix with one row per point (dense or sparse), a data frame, a list of
# strings, sets or graphs, or indices.  Which of them is allowed depends on the kernel, so that no
# static type can say more.
Points: TypeAlias = Any
# A memory budget: a number of bytes, a string such as "2 GiB", or None for the default.
MemoryLimit: TypeAlias = int | float | str | None
# A function that prints or records progress messages.
ProgressCallback: TypeAlias = Callable[[str], None]
# The seed of a random number generator, or a generator; None means a fixed seed.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


def check_choice(name: str, value: object, *options: str) -> None:
    """Raise a ValueError unless the value is one of the options."""
    if value not in options:
        names = ", ".join(map(repr, options[:-1]))
        raise ValueError(f"{name} must be {names} or {options[-1]!r}, got {value!r}")


def is_count(value: object, minimum: float = 1) -> bool:
    """Return True if the value is an integer (not a bool) and at least `minimum`."""
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(is_integer and value >= minimum)  # type: ignore[operator]


# --- Conversion of a `random_state` argument into a random number generator.


def as_generator(random_state: RandomState | Sequence[Any]) -> Any:
    """Return a random number generator; a Generator or RandomState is returned unchanged.

    A sequence of integers is a seed, too.
    """
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    return np.random.default_rng(random_state)


def numpy_generator(random_state: RandomState) -> np.random.Generator:
    """Return a `numpy.random.Generator` for a random_state; None means a new seed.

    If `random_state` is a RandomState, it draws the seed of the generator.
    """
    rng: np.random.Generator | np.random.RandomState = as_generator(random_state)
    if isinstance(rng, np.random.RandomState):  # NumPy accepts it since version 2.2
        return np.random.default_rng(rng.randint(2**31))
    return rng


def seeded_generator(random_state: RandomState) -> np.random.Generator:
    """Return a `numpy.random.Generator` for a random_state; None means the fixed seed 0.

    If `random_state` is a RandomState, it draws the seed of the generator.
    """
    return numpy_generator(0 if random_state is None else random_state)
