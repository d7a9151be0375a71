"""Check whether a function is a Mercer kernel: the public function `validity` and its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    FormerAttribute,
    Points,
    RandomState,
    as_vectors,
    entry_point,
    is_count,
    seeded_generator,
)
from .._as_kernel import as_kernel, without_targets
from .._base import Kernel
from .._precomputed import as_index_kernel, expects_precomputed_rows
from .._properties import Properties
from ._counterexample import Counterexample
from ._counterexample_search import Evidence, find_counterexample
from ._test_points import sample_points


@dataclass(frozen=True, eq=False)
class Validity:
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

    witness = FormerAttribute("counterexample")
    claims = FormerAttribute("properties")

    @property
    def properties(self) -> Properties:
        """The known properties of the kernel."""
        return self.kernel.properties

    def rules(self) -> Iterator[tuple[int, Kernel, Properties]]:
        """Yield (depth, kernel, known properties) for the kernel and then all kernels inside it."""
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


def _examples(kernel: Kernel, rng: np.random.Generator) -> Any:
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
        The number of Gram matrices, of up to 24 points each, that the search examines.
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
    if X is not None and k.on_vectors:
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
