"""Exceptions and warnings of mercer.

Each class derives from the builtin exception that a caller would expect, so that code written for
NumPy or scikit-learn also catches it.  A message says what happened (with numbers), the usual
cause, and what to do.
"""

import sys
import warnings

import numpy as np

_MAX_CONTEXT = 60  # characters of the text shown on either side of a syntax error


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A matrix that must be positive definite is not positive definite.

    The usual causes are a kernel that is not positive semidefinite, duplicate points without noise,
    and rounding errors.  A larger regularisation (alpha, noise or shift) helps against the last
    two.

    See Also
    --------
    validity : Check whether a kernel is positive semidefinite.
    check_gram : Check a kernel matrix.

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
    """Two expansions were combined, but have different kernels and thus are in different RKHSs.

    Create both with the same kernel, including its parameters.

    See Also
    --------
    Expansion : Functions in an RKHS.

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
    """A kernel has no finite value for its parameters: it overflows, or its series diverges.

    A hyperparameter search assigns an infinite loss to such parameters and continues.
    """


class KernelSyntaxError(ValueError):
    """A string is not a valid kernel expression.

    Attributes
    ----------
    problem : str
        Description of the error.
    text : str
        The string that was parsed.
    position : int
        Index of the offending character in `text`.

    See Also
    --------
    parse_kernel : Parse a kernel expression.

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
        """Return the problem, the line that contains it, and a caret below its position."""
        before, after = self.text[: self.position], self.text[self.position :]
        left, right = before.rpartition("\n")[2], after.partition("\n")[0]
        left = left if len(left) <= _MAX_CONTEXT else f"...{left[3 - _MAX_CONTEXT :]}"
        right = right if len(right) <= _MAX_CONTEXT else f"{right[: _MAX_CONTEXT - 3]}..."
        line = "".join(c if c.isprintable() else " " for c in left + right)
        return f"{self.problem}\n  {line}\n  {' ' * len(left)}^"


class NotDifferentiableError(TypeError):
    """A derivative was requested of a kernel that is not differentiable.

    Gradients and pre-images by gradient descent need points that are vectors, and a kernel that
    implements `input_gradient`.

    See Also
    --------
    Expansion.gradient : The gradients of an expansion.

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
    """A computation would exceed the memory budget; raised before memory is allocated.

    Increase `max_memory`, or choose a solver or an approximation that needs less memory; the
    message names the memory that is needed.

    See Also
    --------
    mercer.gram.gram : Kernel matrices that are computed in tiles.
    Nystroem : Low-rank approximation.

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
    the 100000 x 100000 matrix K needs 74.5 GiB, but the budget is 1.0 GiB
    """


class ModelFileError(ValueError):
    """A file does not contain a readable model; the message describes the problem and its location.

    See Also
    --------
    load : Load a model.

    Examples
    --------
    >>> import tempfile
    >>> from mercer import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError:
    ...         print("an empty file is not a model")
    an empty file is not a model
    """


class NotMercerWarning(UserWarning):
    """The kernel of a model is known not to be positive semidefinite (not a Mercer kernel).

    The model is fitted nevertheless, but its optimisation problem may not be convex, and distances
    in feature space may be imaginary.  Choose another kernel, unless the similarity is given.

    See Also
    --------
    validity : Find a proof or a counterexample.

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
    """A Gram matrix that is computed in tiles had to be converted to a full matrix.

    The computation needs memory for n x n numbers.  Use an iterative or approximate solver to avoid
    this.

    See Also
    --------
    mercer.gram.gram : Kernel matrices that are computed in tiles.

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


def not_finite_error(kernel: object, what: str = "K", where: str = "these points") -> ValueError:
    """Return the ValueError for a kernel matrix with infinite or NaN entries."""
    return ValueError(
        f"{what} has entries that are not finite; the usual cause is that the kernel {kernel} "
        f"overflows on {where}. Scale the features"
    )


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of user code that called mercer."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _SKIPPED_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


# Packages whose stack frames `warn_caller` skips.
_SKIPPED_PACKAGES = {"mercer", "sklearn", "scipy", "functools", "contextlib"}
