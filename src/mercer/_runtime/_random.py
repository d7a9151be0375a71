"""Random numbers from what users give as random_state."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["generator", "random_numbers"]


def generator(random_state: Any) -> Any:
    """Return the random numbers meant by a seed, or the given generator itself."""
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    return np.random.default_rng(random_state)


def random_numbers(random_state: Any) -> np.random.Generator:
    """Return the generator meant by a seed; None stands for 0."""
    rng = generator(0 if random_state is None else random_state)
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(2**31))
    return rng
