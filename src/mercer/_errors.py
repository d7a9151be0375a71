"""What can go wrong, by name.

Each class extends the builtin a caller would have caught anyway, so that code written for NumPy
or scikit-learn keeps working.  Messages say what happened (with numbers), the usual cause, and
what to try.
"""

import sys
import warnings

import numpy as np

__all__ = [
    "DensifyWarning",
    "KernelMismatchError",
    "MemoryBudgetError",
    "NotDifferentiableError",
    "NotMercerWarning",
    "NotPositiveDefiniteError",
    "not_finite",
    "warn_caller",
]


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A matrix that had to be positive definite is not."""


class KernelMismatchError(ValueError):
    """Two expansions live in different spaces: their kernels differ."""


class NotDifferentiableError(TypeError):
    """A derivative was asked of a kernel that has none."""


class MemoryBudgetError(MemoryError):
    """No plan fits the byte budget; raised before anything is allocated."""


class NotMercerWarning(UserWarning):
    """A model was given a function of two points that is known not to be a Mercer kernel."""


class DensifyWarning(UserWarning):
    """Something held in tiles had to be turned into a full matrix."""


def not_finite(kernel: object, what: str = "K", where: str = "these points") -> ValueError:
    """Return the error for a kernel matrix with inf or nan in it."""
    return ValueError(
        f"{what} has entries that are not finite; the usual cause is a kernel that overflows on "
        f"{where}: {kernel}. Scale the features"
    )


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of mercer and what it calls that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


_INSIDE = {"mercer", "sklearn", "scipy", "functools", "contextlib"}
