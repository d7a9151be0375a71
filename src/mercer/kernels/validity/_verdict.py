"""The verdict: proved, with the rules that prove it; refuted, with a witness; or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._points import as_vectors
from ..._runtime import entry_point, is_count, random_numbers
from .._base import Kernel
from .._claims import Claims
from .._precomputed import on_indices, reads_all
from .._specs import as_kernel
from ._points import draws
from ._search import Evidence, find_witness
from ._witness import Witness

__all__ = ["Validity", "validity"]


@dataclass(frozen=True, eq=False)
class Validity:
    """Whether a function of two points is a Mercer kernel, and how one knows.

    Attributes
    ----------
    kernel : Kernel
    status : "proved", "refuted" or "unknown"
        A proof is about mathematics: rounding may still make a matrix indefinite.
    order : int
        What was asked: 0 for a Mercer kernel, m for one that is conditionally positive definite of
        order m.
    witness : Witness or None
        Of a kernel that is refuted.
    evidence : Evidence or None
        What a search saw that found no witness.

    Examples
    --------
    >>> from mercer.kernels import RBF, Sigmoid
    >>> RBF().validity().status
    'proved'
    >>> bool(Sigmoid().validity())
    True
    """

    kernel: Kernel
    status: str
    order: int = 0
    witness: Witness | None = None
    evidence: Evidence | None = None

    @property
    def claims(self) -> Claims:
        """What is known of the kernel."""
        return self.kernel.claims

    def rules(self) -> Iterator[tuple[int, Kernel, Claims]]:
        """Yield (depth, kernel, claims) for every node of the expression, from the top."""
        yield from _walk(self.kernel, 0)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        what = "a Mercer kernel"
        if self.order:
            what = f"conditionally positive definite of order {self.order}"
        known, m = "", self.claims.order
        if self.status == "refuted" and m:
            known = f", but conditionally positive definite of order {m}"
            known += ": kernel PCA, MMD and k-means accept it" if m == 1 else ""
        if self.status == "proved":
            where = ", ".join(filter(None, [_DOMAINS.get(self.kernel.domain), self.claims.limit]))
            return f"proved: {what}{f', {where}' if where else ''}"  # the tree shows the kernel
        verb = "is not" if self.status == "refuted" else "may be"
        return f"{self.status}: {self.kernel} {verb} {what}{known}"

    def __str__(self) -> str:
        if self.status == "proved":
            return "\n".join([self.headline, *_tree(self.kernel)])
        return f"{self.headline}\n{self.witness or self.evidence}"


def _examples(kernel: Kernel, rng: np.random.Generator) -> Any:
    """Return points on which rules such as "median" can be resolved."""
    if kernel.domain in ("", "vectors", "nonnegative"):
        return np.abs(rng.normal(size=(100, 1)))
    return next(draws(kernel.domain, kernel, None, (1,), rng))


_DOMAINS = {"nonnegative": "for points without negative entries"}


def _walk(kernel: Kernel, depth: int) -> Iterator[tuple[int, Kernel, Claims]]:
    yield depth, kernel, kernel.claims
    for _, child in kernel._children():
        yield from _walk(child, depth + 1)


def _tree(kernel: Kernel, front: str = "", below: str = "") -> Iterator[str]:
    """Yield a line for each node: the kernel, its rule, and what else is known."""
    claims = kernel.claims
    also = f"  [{', '.join(claims.words)}]" if claims.words else ""
    yield f"{front}{kernel}: {claims.rule}{also}"
    children = [child for _, child in kernel._children()]
    for i, child in enumerate(children):
        last = i == len(children) - 1
        yield from _tree(
            child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


@entry_point
def validity(
    kernel: Any,
    X: Any = None,
    *,
    order: int = 0,
    n_grams: int = 120,
    random_state: Any = None,
    tol: float | None = None,
) -> Validity:
    """Check whether k is a Mercer kernel: positive semidefinite on all finite sets of points.

        sum_ij c_i c_j k(x_i, x_j) >= 0     for all points x_i and coefficients c_i

    A kernel made of known ones by the closure rules is *proved*, with the tree of rules.  For
    others a witness is looked for, points and coefficients for which the sum is negative beyond
    rounding: then it is *refuted*.  Otherwise it is *unknown*, and the evidence tells what was
    seen.

    Parameters
    ----------
    kernel : Kernel, function, name, or what else `as_kernel` takes
    X : points, optional
        Examples of points, the first that are looked at; others are drawn around them.  Without
        them, points of the kind that the kernel takes are drawn; for a function: vectors in one to
        three columns, words, sets, rankings, whatever it does not refuse.
    order : int, default=0
        Ask instead whether it is conditionally positive definite of this order: for c orthogonal to
        all polynomials of degree below it, for order 1 those with sum c = 0.
    n_grams : int, default=120
        Gram matrices, of 24 points each, that are looked at before giving up.
    random_state : int, Generator, RandomState or None
        None stands for 0, so that verdicts repeat.
    tol : float or None, default=None
        The error of the values of k, relative to the largest of them: the tolerance of an
        integration, or the precision of its arithmetic.  A witness must be negative beyond what
        such errors can do.  None is 1e-8 for functions and 0 for kernels of mercer; noise that is
        seen in the values, of float32 or float16 for instance, is added in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import validity
    >>> from mercer.kernels import RBF, Linear
    >>> print(validity(RBF() + Linear() ** 2).status)
    proved
    >>> verdict = validity(lambda x, z: np.tanh(x @ z))
    >>> verdict.status, len(verdict.witness), verdict.witness.value < -verdict.witness.margin
    ('refuted', 2, True)
    >>> validity(lambda x, z: np.exp(-abs(x - z).sum())).status  # it is one, but who knows
    'unknown'
    """
    k = as_kernel(kernel)
    if not is_count(order, 0):
        raise ValueError(f"order must be 0, 1, 2, ..., got {order!r}")
    if not is_count(n_grams):
        raise ValueError(f"n_grams must be a positive integer, got {n_grams!r}")
    if tol is not None and not 0.0 <= tol < 1.0:
        raise ValueError(
            f"tol is the relative error of values of k, at least 0 and below 1, got {tol!r}"
        )
    if X is not None and k.on_vectors:
        X = as_vectors(X, "validity")
    columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else None
    if k.claims.proves(order, columns):
        return Validity(k, "proved", order)
    if reads_all(k):
        if X is None:
            raise ValueError(
                "validity of a precomputed kernel needs the matrix: give it as X, or see check_gram"
            )
        k, X = on_indices(k, X)
    rng = random_numbers(random_state)
    if k._unresolved:
        k = k._untaught().resolve(_examples(k, rng) if X is None else X)
    witness, evidence = find_witness(k, X, order, n_grams, rng, tol)
    if witness is not None:
        return Validity(k, "refuted", order, witness=witness)
    return Validity(k, "unknown", order, evidence=evidence)
