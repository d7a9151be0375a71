"""What is known of a kernel, and by which rule: the vocabulary of proofs.

A node says in `_claims(*inner)` what follows from what is known of its children:

    order                   0 for a Mercer kernel; m for one that is conditionally positive definite
                            of order m, c^T K c >= 0 for all c orthogonal to the polynomials of
                            degree below m; None if nothing is known
    strict                  c^T K c > 0 for different points and c not 0
    infinitely_divisible    k^p is a Mercer kernel for every real p > 0

A claim is one about mathematics: it holds for numbers without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "FEATURES",
    "MAP",
    "MIXTURE",
    "NORMALISED",
    "POWER",
    "PRODUCT",
    "RANK_ONE",
    "SAME",
    "SCALE",
    "SCHOENBERG",
    "SERIES",
    "SUM",
    "TENSOR",
    "Claims",
]

SUM = "sum of kernels"
SCALE = "positive multiple of a kernel"
PRODUCT = "product of kernels (Schur)"
TENSOR = "tensor product of kernels on columns"
RANK_ONE = "f(x) f(z)"
MAP = "k(phi(x), phi(z))"
POWER = "integer power of a kernel"
SERIES = "power series with coefficients >= 0"
NORMALISED = "f(x) k(x, z) f(z) with f(x) = k(x, x)^(-1/2)"
SCHOENBERG = "Schoenberg: exp of what is conditionally positive definite of order 1"
MIXTURE = "Schoenberg: completely monotone in |x - z|^2, a mixture of Gaussians"
FEATURES = "inner product of features"
SAME = "the same function"


@dataclass(frozen=True)
class Claims:
    """What is known of a kernel.

    Attributes
    ----------
    rule : str
        What proves it; for a kernel that is none, why it is none.
    order : int or None
    strict, nonnegative, unit_diagonal, infinitely_divisible, stationary : bool
        False says that it is not known.
    columns : int or None
        The claims hold for points of at most so many columns.
    against : points or None
        A few points at which one may look for a negative eigenvalue first.

    Examples
    --------
    >>> from mercer.kernels import RBF, Distance, Linear
    >>> claims = (RBF() + Linear()).claims
    >>> claims.rule, claims.order, claims.strict
    ('sum of kernels', 0, True)
    >>> Distance().claims.words
    ['conditionally positive definite of order 1', 'stationary']
    """

    rule: str = ""
    order: int | None = None
    strict: bool = False
    nonnegative: bool = False
    unit_diagonal: bool = False
    infinitely_divisible: bool = False
    stationary: bool = False
    columns: int | None = None
    against: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, inner: Sequence[Claims], rule: str, order: int | None, **known: Any) -> Claims:
        """Return the claims of a node over children: limits and points to look at are theirs."""
        limits = [c.columns for c in inner if c.columns is not None]
        # Points are made up for kernels whose points are known.  Of others nobody knows them.
        sure = all(c.order is not None or c.against is not None for c in inner)
        against = next((c.against for c in inner if c.against is not None), None) if sure else None
        given: dict[str, Any] = {"columns": min(limits, default=None), "against": against} | known
        return cls(rule if order is not None else "", order, **given)

    def proves(self, order: int, columns: float | None = None) -> bool:
        """Tell whether k is conditionally positive definite of this order (0: at all)."""
        if columns is not None and self.columns is not None and columns > self.columns:
            return False
        return self.order is not None and self.order <= order

    @property
    def limit(self) -> str:
        """The restriction on the points under which the claims hold, in words; "" for none."""
        if self.columns is None:
            return ""
        return f"for points of at most {self.columns} column{'s' * (self.columns > 1)}"

    @property
    def words(self) -> list[str]:
        """The properties that are known, in words."""
        if self.order is None:
            return []
        named = {
            "strictly positive definite": self.strict and not self.order,
            "conditionally positive definite of order " + str(self.order): self.order > 0,
            "non-negative": self.nonnegative,
            "k(x, x) = 1": self.unit_diagonal,
            "infinitely divisible": self.infinitely_divisible,
            "stationary": self.stationary,
            self.limit: self.columns is not None,
        }
        return [word for word, holds in named.items() if holds]


def every(inner: Sequence[Claims], name: str) -> bool:
    """Tell whether all children have a property."""
    return all(getattr(c, name) for c in inner)


def highest(inner: Sequence[Claims]) -> int | None:
    """Return the order that all children have: who is of an order is of every higher one."""
    orders = [c.order for c in inner]
    return None if None in orders else max(orders, default=0)  # type: ignore[type-var]
