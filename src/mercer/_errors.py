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
    "KernelRangeError",
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
    """A matrix that had to be positive definite is not.

    Examples
    --------
    >>> from mercer import NotPositiveDefiniteError
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Precomputed
    >>> from mercer.solvers import Cholesky
    >>> try:
    ...     Cholesky().factorize(gram(Precomputed(), [[0.0, 1.0], [1.0, 0.0]]), shift=0.5)
    ... except NotPositiveDefiniteError:
    ...     print("an eigenvalue of -1, and a shift of 0.5")
    an eigenvalue of -1, and a shift of 0.5
    """


class KernelMismatchError(ValueError):
    """Two expansions live in different spaces: their kernels differ.

    Examples
    --------
    >>> from mercer import Expansion, KernelMismatchError
    >>> from mercer.kernels import RBF
    >>> try:
    ...     Expansion.mean(RBF(1.0), [[0.0]]) + Expansion.mean(RBF(2.0), [[0.0]])
    ... except KernelMismatchError:
    ...     print("functions of two different spaces have no sum")
    functions of two different spaces have no sum
    """


class KernelRangeError(ValueError):
    """A kernel has no finite value at its parameters: it overflows, or its series diverges.

    A search over parameters treats such parameters as infinitely bad and goes on.
    """


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

    Examples
    --------
    >>> from mercer import KernelSyntaxError, parse_kernel
    >>> try:
    ...     parse_kernel("0.5*gauss(2) + Linear()")
    ... except KernelSyntaxError as error:
    ...     print(error)
    unknown name 'gauss'; did you mean RBF?
      0.5*gauss(2) + Linear()
          ^
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
    """A derivative was asked of a kernel that has none.

    Examples
    --------
    >>> from mercer import Expansion, NotDifferentiableError
    >>> from mercer.kernels import Callable
    >>> f = Expansion.mean(Callable(lambda s, t: float(s == t), "pair"), ["a", "b"])
    >>> try:
    ...     f.gradient(["a"])
    ... except NotDifferentiableError:
    ...     print("words have no gradient")
    words have no gradient
    """


class MemoryBudgetError(MemoryError):
    """No plan fits the byte budget; raised before anything is allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MemoryBudgetError
    >>> from mercer.gram import gram
    >>> X = np.broadcast_to(0.0, (100_000, 2))
    >>> try:
    ...     gram("RBF()", X, storage="dense", max_memory="1 GiB")
    ... except MemoryBudgetError as error:
    ...     print(str(error).split(";")[0])
    K is 100000 x 100000 and needs 74.5 GiB, but the budget is 1.0 GiB
    """


class ModelFileError(ValueError):
    """A file holds no model that can be read; the message says what is wrong with it, and where.

    Examples
    --------
    >>> import tempfile
    >>> from mercer import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError:
    ...         print("an empty file is no model")
    an empty file is no model
    """


class NotMercerWarning(UserWarning):
    """A model was given a function of two points that is known not to be a Mercer kernel.

    Examples
    --------
    >>> import warnings
    >>> from mercer import KernelRidge, NotMercerWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = KernelRidge(kernel="sigmoid").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> any(issubclass(w.category, NotMercerWarning) for w in caught)
    True
    """


class DensifyWarning(UserWarning):
    """Something held in tiles had to be turned into a full matrix.

    Examples
    --------
    >>> import warnings
    >>> from mercer import DensifyWarning
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Cholesky
    >>> K = gram("RBF()", [[0.0], [1.0]], storage="tiled")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     factor = Cholesky().factorize(K, shift=0.1)
    >>> [w.category is DensifyWarning for w in caught]
    [True]
    """


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
