"""Check whether a function is a Mercer kernel (`validity`), and whether a matrix is a Gram matrix.

If a matrix A is not a Gram matrix, `check_gram` computes the nearest one.  The positive
semidefinite matrix P that is nearest to A in the Frobenius norm is the symmetric part of A with its
negative eigenvalues set to 0 (Higham 1988).  With the eigenvalues l_i,

    |A - P|_F^2  =  sum over l_i < 0 of l_i^2  +  |(A - A^T) / 2|_F^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    FormerAttribute,
    MemoryLimit,
    NotebookResult,
    Points,
    RandomState,
    as_vectors,
    check_budget,
    entry_point,
    is_count,
    seeded_generator,
)
from ..._core.linalg import eigh
from .._as_kernel import as_kernel, without_targets
from .._base import Kernel
from .._parameter_checks import SYMMETRY_TOLERANCE, asymmetry
from .._precomputed import as_index_kernel, expects_precomputed_rows
from .._properties import Properties
from ._counterexample import Counterexample
from ._counterexample_search import Evidence, find_counterexample
from ._test_points import sample_points


@dataclass(frozen=True, eq=False, repr=False)
class Validity(NotebookResult):
    """The result of `validity`: whether a function is a Mercer kernel, with a proof if possible.

    Printing it shows the proof, the counterexample, or the statistics of the search.

    Attributes
    ----------
    kernel : Kernel
        The kernel that was checked.
    status : {"proved", "refuted", "unknown"}
        The result.  A proof holds in exact arithmetic; rounding may still make a Gram matrix
        indefinite.
    order : int
        The property that was checked: 0 for positive semidefinite, m for conditionally positive
        definite of order m.
    counterexample : Counterexample or None
        The counterexample, if the kernel is refuted.
    evidence : Evidence or None
        The statistics of the search, if the result is unknown.

    See Also
    --------
    mercer.validity : The function that returns it.
    Properties : The known properties of a kernel.

    Examples
    --------
    >>> from mercer.kernels import RBF, Sigmoid
    >>> RBF().validity().status
    'proved'
    >>> Sigmoid().validity().status
    'refuted'
    """

    kernel: Kernel
    status: str
    order: int = 0
    counterexample: Counterexample | None = None
    evidence: Evidence | None = None

    witness = FormerAttribute("counterexample", since="0.1.0", removed_in="0.2.0")
    claims = FormerAttribute("properties", since="0.1.0", removed_in="0.2.0")

    @property
    def properties(self) -> Properties:
        """The known properties of the kernel."""
        return self.kernel.properties

    def rules(self) -> Iterator[tuple[int, Kernel, Properties]]:
        """Iterate over the kernel and all kernels inside it, with their known properties.

        `str(result)` prints them as a tree; use this method to process the proof.

        Yields
        ------
        depth : int
            0 for the kernel itself, 1 for its children, and so on.
        kernel : Kernel
            The kernel at this node of the expression.
        properties : Properties
            Its known properties; `properties.rule` is the closure rule that proves its order.

        Examples
        --------
        >>> from mercer.kernels import RBF, Linear
        >>> for depth, kernel, properties in (RBF() + Linear()).validity().rules():
        ...     print(depth, type(kernel).__name__, properties.order)
        0 Sum 0
        1 RBF 0
        1 Linear 0
        """
        yield from _walk(self.kernel, 0)

    @property
    def headline(self) -> str:
        """The result in one line."""
        what = "a Mercer kernel"
        if self.order:
            what = f"conditionally positive definite of order {self.order}"
        weaker, m = "", self.properties.order
        if self.status == "refuted" and m:
            weaker = f", but conditionally positive definite of order {m}"
            weaker += ": kernel PCA, MMD and k-means accept it" if m == 1 else ""
        if self.status == "proved":
            where = ", ".join(
                filter(None, [_DOMAINS.get(self.kernel.domain.kind), self.properties.limit])
            )
            # `__str__` shows the kernel itself in the first line of the tree.
            return f"proved: {what}{f', {where}' if where else ''}"
        verb = "is not" if self.status == "refuted" else "may be"
        return f"{self.status}: {self.kernel} {verb} {what}{weaker}"

    def __str__(self) -> str:
        if self.status == "proved":
            return "\n".join([self.headline, *_tree(self.kernel)])
        return f"{self.headline}\n{self.counterexample or self.evidence}"


def _examples(kernel: Kernel, rng: np.random.Generator) -> Points:
    """Return random points, from which parameters such as length_scale="median" are computed."""
    if kernel.domain.kind in ("", "vectors", "nonnegative"):
        return np.abs(rng.normal(size=(100, 1)))
    return next(sample_points(kernel.domain.kind, kernel, None, (1,), rng))


# For each restricted domain, text that states the restriction in the result of a proof.
_DOMAINS = {"nonnegative": "for points without negative entries"}


def _walk(kernel: Kernel, depth: int) -> Iterator[tuple[int, Kernel, Properties]]:
    """Yield (depth, kernel, known properties) for the kernel and all kernels inside it."""
    yield depth, kernel, kernel.properties
    for _, child in kernel._children():
        yield from _walk(child, depth + 1)


def _tree(kernel: Kernel, prefix: str = "", child_prefix: str = "") -> Iterator[str]:
    """Yield one line per node: the kernel, the rule that proves it, and other known properties."""
    properties = kernel.properties
    details = f"  [{', '.join(properties.words)}]" if properties.words else ""
    yield f"{prefix}{kernel}: {properties.rule}{details}"
    children = [child for _, child in kernel._children()]
    for i, child in enumerate(children):
        last = i == len(children) - 1
        yield from _tree(
            child,
            child_prefix + ("└─ " if last else "├─ "),
            child_prefix + ("   " if last else "│  "),
        )


@entry_point
def validity(
    kernel: Any,
    X: Points = None,
    *,
    order: int = 0,
    n_grams: int = 120,
    random_state: RandomState = None,
    tol: float | None = None,
) -> Validity:
    """Check whether k is a Mercer kernel, that is, symmetric and positive semidefinite.

        sum_ij c_i c_j k(x_i, x_j) >= 0     for all points x_i and coefficients c_i

    The status of the result is one of three.  *Proved*: the kernel is composed of known kernels by
    closure rules; printing the result shows the tree of rules.  *Refuted*: the search found a
    counterexample, that is, points and coefficients for which the sum is negative beyond rounding
    errors.  *Unknown*: the kernel is not proved, and the search found no counterexample.

    Parameters
    ----------
    kernel : Kernel, callable or str
        The kernel, or anything that `as_kernel` converts to one.
    X : points, optional
        Examples of points.  They are tested first, and then random points near them.  If X is None,
        random points of a kind that the kernel accepts are used.  For a function, all of these
        kinds that it accepts are tried: vectors with one to three columns, strings, sets and
        rankings.
    order : int, default=0
        If m > 0, check instead whether k is conditionally positive definite of order m: the sum is
        non-negative for all c that are orthogonal to the polynomials of degree less than m.  For
        m = 1, these are all c whose entries sum to 0.
    n_grams : int, default=120
        The number of Gram matrices, of up to 24 points each, that the search examines.  Increase it
        for a more thorough search; the time is proportional to it.
    random_state : int, Generator, RandomState or None, default=None
        The random seed or generator.  None means the seed 0, so that results are reproducible.
    tol : float or None, default=None
        The relative error of the values of k, for example the tolerance of a quadrature or the
        precision of float32.  The sum of a counterexample must be negative beyond such errors.
        None means 1e-8 for functions and 0 for the kernels of mercer.  In addition, the noise of
        functions is measured and taken into account.

    Returns
    -------
    Validity
        The result, with its `status` and, if the kernel is refuted, the counterexample.

    See Also
    --------
    check_gram : Checks a matrix instead of a function.
    Kernel.validity : The same as a method.
    known_counterexample : Only evaluates points that are known to refute a kernel.

    References
    ----------
    Mercer, "Functions of positive and negative type, and their connection with the theory of
    integral equations", Philosophical Transactions of the Royal Society A 209, 1909. Aronszajn,
    "Theory of reproducing kernels", Transactions of the American Mathematical Society 68, 1950
    (closure rules). Wendland, "Scattered data approximation", Cambridge University Press, 2005
    (conditional positive definiteness of order m).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import validity
    >>> from mercer.kernels import RBF, Linear
    >>> print(validity(RBF() + Linear() ** 2).status)
    proved
    >>> result = validity(lambda x, z: np.tanh(x @ z))
    >>> example = result.counterexample
    >>> result.status, len(example), example.value < -example.margin
    ('refuted', 2, True)
    >>> validity(lambda x, z: np.exp(-abs(x - z).sum())).status  # a kernel, but without a proof
    'unknown'
    """
    k = as_kernel(kernel)
    if not is_count(order, 0):
        raise ValueError(f"order must be a non-negative integer, got {order!r}")
    if not is_count(n_grams):
        raise ValueError(f"n_grams must be a positive integer, got {n_grams!r}")
    if tol is not None and not 0.0 <= tol < 1.0:
        raise ValueError(
            f"tol, the relative error of k(x, z), must satisfy 0 <= tol < 1, got {tol!r}"
        )
    if X is not None and k.domain.on_vectors:
        X = as_vectors(X, "validity")
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if k.properties.proves(order, columns):
        return Validity(k, "proved", order)
    if expects_precomputed_rows(k):
        if X is None:
            raise ValueError(
                "validity requires the matrix of a precomputed kernel: pass X, or use check_gram"
            )
        k, X = as_index_kernel(k, X)
    rng = seeded_generator(random_state)
    if k._unresolved:
        k = without_targets(k).resolve(_examples(k, rng) if X is None else X)
    example, evidence = find_counterexample(k, X, order, n_grams, rng, tol)
    if example is not None:
        return Validity(k, "refuted", order, counterexample=example)
    return Validity(k, "unknown", order, evidence=evidence)


# ---------------------------------------------------------------------- matrices


@dataclass(frozen=True, eq=False, repr=False)
class GramCheck(NotebookResult):
    """The result of `check_gram`.

    Attributes
    ----------
    n : int
        The number of rows of K.
    finite : bool
        Whether all entries are finite.  If not, `symmetric` and `semidefinite` are False.
    symmetric : bool
        Whether K is symmetric, up to rounding.
    semidefinite : bool
        Whether K is symmetric and positive semidefinite, up to rounding.
    asymmetry : float
        The largest |K_ij - K_ji|; nan if K is not finite.
    eigenvalues : ndarray of shape (n,)
        The eigenvalues of the symmetric part of K in increasing order; empty if K is not finite.
    direction : ndarray of shape (n,), or None
        The unit vector c for which c^T K c is smallest; None if K is not finite.
    nearest : ndarray of shape (n, n), or None
        The nearest positive semidefinite matrix: the symmetric part of K if that is positive
        semidefinite; None if K is not finite.
    distance : float
        The Frobenius norm of K - nearest; inf if K is not finite.

    See Also
    --------
    check_gram : The function that returns it.

    Examples
    --------
    >>> from mercer import check_gram
    >>> check = check_gram([[1.0, 2.0], [2.0, 1.0]])
    >>> check.semidefinite, check.eigenvalues, check.nearest
    (False, array([-1.,  3.]), array([[1.5, 1.5],
           [1.5, 1.5]]))
    """

    n: int
    finite: bool
    symmetric: bool
    semidefinite: bool
    asymmetry: float
    eigenvalues: np.ndarray
    direction: np.ndarray | None
    nearest: np.ndarray | None
    distance: float

    def __str__(self) -> str:
        if not self.finite:
            return f"{self.n} x {self.n}: not a kernel matrix, because some entries are not finite"
        lines = [f"{self.n} x {self.n}: {'' if self.semidefinite else 'not '}positive semidefinite"]
        if not self.symmetric:
            lines[0] = f"{self.n} x {self.n}: not symmetric"
            lines.append(f"  K and its transpose differ by up to {self.asymmetry:.3g}")
        low, high = self.eigenvalues[0], self.eigenvalues[-1]
        negative = int(np.sum(self.eigenvalues < -_ROUNDING_UNIT * self.n * max(high, -low)))
        negative = 0 if self.semidefinite else negative  # ignore rounding errors
        lines.append(f"  eigenvalues from {low:.4g} to {high:.4g}, {negative} of them negative")
        if self.distance > 0:
            lines.append(f"  the nearest kernel matrix is {self.distance:.4g} away (Frobenius)")
        return "\n".join(lines)


# Allowed error of an eigenvalue of an n x n float64 matrix, divided by n times the largest one.
_ROUNDING_UNIT = 4.0 * np.finfo(float).eps


@entry_point
def check_gram(K: Points, *, max_memory: MemoryLimit = None) -> GramCheck:
    """Check whether K is a valid Gram matrix: finite, symmetric and positive semidefinite.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix, dense or sparse.
    max_memory : int, str or None, default=None
        The memory budget, for example "2 GiB"; about four n x n matrices of float64 are needed.  If
        they exceed the budget, an error is raised before anything is allocated.

    Returns
    -------
    GramCheck
        The result, with the eigenvalues, the most negative direction, and the nearest positive
        semidefinite matrix with its distance.  `print` shows a summary.

    Raises
    ------
    ValueError
        If K is not a square matrix of real numbers.

    See Also
    --------
    validity : Checks a kernel instead of a matrix, for all points.
    Precomputed : The kernel of a matrix.

    References
    ----------
    Higham, "Computing a nearest symmetric positive semidefinite matrix", Linear Algebra and its
    Applications 103, 1988.

    Examples
    --------
    >>> from mercer import check_gram
    >>> K = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]  # overlaps of {1}, {2} and {1, 2}
    >>> check = check_gram(K)
    >>> print(check)
    3 x 3: not positive semidefinite
      eigenvalues from -0.4142 to 2.414, 1 of them negative
      the nearest kernel matrix is 0.4142 away (Frobenius)
    >>> check.direction.round(3)
    array([-0.5  , -0.5  ,  0.707])
    """
    if hasattr(K, "toarray"):
        K = K.toarray()
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size or K.dtype.kind not in "biuf":
        raise ValueError(
            f"check_gram takes a square matrix of numbers, got {K.dtype} of shape {K.shape}; to "
            f"check a kernel, use kernel.validity()"
        )
    n = len(K)
    check_budget(4 * 8 * n * n, max_memory, f"check_gram of {n} points")
    if not np.isfinite(K).all():
        empty = np.zeros(0)
        return GramCheck(n, False, False, False, np.nan, empty, None, None, np.inf)
    # Allow for the rounding error of entries in float16 or float32.
    input_eps = float(np.finfo(K.dtype).eps) if K.dtype in (np.float16, np.float32) else 0.0
    A = K.astype(float)
    scale = float(np.abs(A).max()) or 1.0
    A /= scale  # scaling avoids overflow in the norms
    gap, largest = asymmetry(A)
    skew = float(np.linalg.norm(A - A.T)) / 2.0
    symmetric = gap <= max(8.0 * input_eps, SYMMETRY_TOLERANCE) * largest
    A = 0.5 * (A + A.T)
    values, vectors = eigh(A, check_finite=False)
    direction = vectors[:, 0].copy()
    direction *= 1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0
    rounding = n * max(2.0 * input_eps, _ROUNDING_UNIT) * float(np.abs(values).max())
    semidefinite = bool(values[0] >= -rounding)
    nearest, distance = A, skew
    if not semidefinite:
        positive = values > 0
        nearest = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
        distance = float(np.hypot(np.linalg.norm(values[~positive]), skew))
    with np.errstate(over="ignore"):  # the eigenvalues of a matrix of huge entries may overflow
        return GramCheck(
            n,
            True,
            symmetric,
            symmetric and semidefinite,
            gap * scale,
            values * scale,
            direction,
            nearest * scale,
            distance * scale,
        )
