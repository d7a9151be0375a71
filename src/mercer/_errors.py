"""What can go wrong, by name.

Each class extends the builtin a caller would have caught anyway, so that code written for NumPy
or scikit-learn keeps working.  Messages say what happened (with numbers), the usual cause, and
what to try.
"""

import sys
import warnings

import numpy as np

_SHOWN = 60  # characters of a text on either side of a mistake

__all__ = [
    "DensifyWarning",
    "KernelMismatchError",
    "KernelSyntaxError",
    "MemoryBudgetError",
    "ModelFileError",
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


class KernelSyntaxError(ValueError):
    """A text describes no kernel.

    Attributes
    ----------
    problem : str
        What is wrong.
    text : str
        What was to be read.
    position : int
        Where in the text the problem is, from 0.
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem, text, position)
        self.problem, self.text, self.position = problem, text, position

    def __str__(self) -> str:
        """Return the problem, the line of the text, and a caret under the place."""
        before, after = self.text[: self.position], self.text[self.position :]
        left, right = before.rpartition("\n")[2], after.partition("\n")[0]
        left = left if len(left) <= _SHOWN else f"...{left[3 - _SHOWN :]}"
        right = right if len(right) <= _SHOWN else f"{right[: _SHOWN - 3]}..."
        line = "".join(c if c.isprintable() else " " for c in left + right)
        return f"{self.problem}\n  {line}\n  {' ' * len(left)}^"


class NotDifferentiableError(TypeError):
    """A derivative was asked of a kernel that has none."""


class MemoryBudgetError(MemoryError):
    """No plan fits the byte budget; raised before anything is allocated."""


class ModelFileError(ValueError):
    """A file holds no model that can be read; the message says what is wrong with it, and where."""


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
