"""What is known about a kernel: the points that it accepts, and its mathematical properties.

The method `_domain(*inner)` of a kernel returns a `Domain`, given those of its children.

The method `_properties(*inner)` of a kernel returns its known properties, given those of its
children:

    order                   0 for a Mercer kernel; m if k is conditionally positive definite of
                            order m, that is, c^T K c >= 0 for all c orthogonal to the polynomials
                            of degree below m; None if nothing is known
    strict                  c^T K c > 0 if all points are different and c is not 0
    infinitely_divisible    k^p is a Mercer kernel for every real p > 0

These statements hold in exact arithmetic; rounding errors are not considered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .._core import Points

# The names of the rules that prove properties, as shown to users.
SUM = "sum of kernels"
SCALE = "positive multiple of a kernel"
PRODUCT = "product of kernels (Schur)"
TENSOR = "tensor product of kernels on columns"
RANK_ONE = "f(x) f(z)"
MAP = "k(phi(x), phi(z))"
POWER = "integer power of a kernel"
SERIES = "power series with coefficients >= 0"
NORMALISED = "f(x) k(x, z) f(z) with f(x) = k(x, x)^(-1/2)"
SCHOENBERG = "Schoenberg: exp of a conditionally positive definite kernel of order 1"
MIXTURE = "Schoenberg: completely monotone in |x - z|^2, a mixture of Gaussians"
FEATURES = "inner product of features"
SAME = "the same function"


@dataclass(frozen=True)
class Domain:
    """What the points of a kernel are, and how it is evaluated on them.

    `kernel.domain` returns it.  Authors of new kernels construct it in `_domain`.

    Attributes
    ----------
    kind : str
        "vectors", "nonnegative" (vectors without negative entries), "sets", "bags", "strings",
        "texts", "graphs", "rankings", "categories", "indices", "collections" (of points), or "" if
        the points may be anything.
    on_vectors : bool
        Whether the points must be rows of a matrix of numbers.
    accepts_matrix : bool
        Whether the points may be the rows of a numeric matrix, with finite entries.
    discrete : bool
        Whether the points are discrete (sets, rankings), even if they are given as numeric rows.
    selects_by_name : bool
        Whether a node of the expression selects columns of a table by name.
    selects_objects : bool
        Whether a node selects columns whose values need not be numbers, such as strings.
    checks_training_points : bool
        Whether `resolve` raises an error for training points from which nothing can be learned.
    distinguishes_observations : bool
        Whether k(X, Z) can differ from k(X) for a copy Z of X, as for the noise of `White`.
    costly : bool
        Whether a single value is so expensive that it should be stored, not recomputed.
    pullback_in_tiles : bool
        Whether `pullback(X, Z, W)` is implemented for a Z that is not X.

    See Also
    --------
    Properties : What is known about the values of a kernel, such as positive definiteness.

    Examples
    --------
    >>> from mercer.kernels import RBF, Jaccard, Spectrum
    >>> RBF().domain.kind, RBF().domain.on_vectors
    ('vectors', True)
    >>> (Jaccard() + 1).domain.discrete, (2 * Spectrum(3)).domain.kind
    (True, 'strings')
    """

    kind: str = ""
    on_vectors: bool = False
    accepts_matrix: bool = True
    discrete: bool = False
    selects_by_name: bool = False
    selects_objects: bool = False
    checks_training_points: bool = False
    distinguishes_observations: bool = False
    costly: bool = False
    pullback_in_tiles: bool = True

    @classmethod
    def of(cls, inner: Sequence[Domain], **known: Any) -> Domain:
        """Return the domain of a kernel that is composed of other kernels.

        Parameters
        ----------
        inner : sequence of Domain
            The domains of the children.
        **known : keyword arguments
            Attributes that do not depend on the children, by name; they replace the derived ones.

        Returns
        -------
        Domain
            The joint domain.  Its `kind` is that of the children, or "" if they differ.

        Examples
        --------
        >>> from mercer.kernels import RBF, Constant, Domain
        >>> Domain.of([RBF().domain, Constant().domain], costly=True).kind
        'vectors'
        """
        kinds = {domain.kind for domain in inner} - {""}
        if kinds == {"vectors", "nonnegative"}:
            kinds = {"nonnegative"}
        joint: dict[str, Any] = {f.name: any_has(inner, f.name) for f in fields(cls)}
        joint["kind"] = kinds.pop() if len(kinds) == 1 else ""
        if joint["selects_by_name"] or joint["selects_objects"]:
            joint["on_vectors"] = False  # the rows of a table, which may contain other values
        for name in ("accepts_matrix", "pullback_in_tiles"):
            joint[name] = all_have(inner, name)
        return cls(**joint | known)


@dataclass(frozen=True)
class Properties:
    """Known properties of a kernel, derived from its expression without evaluating it.

    `kernel.properties` returns them.  Authors of new kernels construct them in `_properties`;
    state only what is proved for all points.

    Attributes
    ----------
    rule : str
        The rule that proves the properties, or the reason why k is not a Mercer kernel.
    order : int or None
        0 for a Mercer kernel, m > 0 for a kernel that is conditionally positive definite of order
        m, None if neither is known.
    strict : bool
        Whether k is known to be strictly positive definite.  Here and below, False means that the
        property is not known to hold.
    nonnegative : bool
        Whether k(x, z) >= 0 for all points.
    unit_diagonal : bool
        Whether k(x, x) = 1 for all points.
    infinitely_divisible : bool
        Whether k^p is a Mercer kernel for every real p > 0.
    stationary : bool
        Whether k(x, z) depends only on x - z.
    columns : int or None
        The properties hold for points with at most this many columns; None means any number.
    diagonal_bound : float
        An upper bound on k(x, x) for all x; inf if no bound is known, or if k is only conditionally
        positive definite.
    against : points or None
        Points whose Gram matrix probably has a negative eigenvalue if k is not a Mercer kernel; the
        search for a counterexample starts with them.

    See Also
    --------
    Domain : What the points of a kernel are.
    mercer.validity : Checks a kernel by these properties, and by a search for a counterexample.

    Examples
    --------
    >>> from mercer.kernels import RBF, Distance, Linear
    >>> known = (RBF() + Linear()).properties
    >>> known.rule, known.order, known.strict
    ('sum of kernels', 0, True)
    >>> Distance().properties.words
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
    diagonal_bound: float = field(default=math.inf, repr=False)
    against: Points = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.unit_diagonal:
            object.__setattr__(self, "diagonal_bound", 1.0)

    @classmethod
    def of(
        cls, inner: Sequence[Properties], rule: str, order: int | None, **known: Any
    ) -> Properties:
        """Return the properties of a kernel that is composed of other kernels.

        Parameters
        ----------
        inner : sequence of Properties
            The properties of the children.  `columns` and `against` are taken from them.
        rule : str
            The closure rule that proves the order, such as "sum of kernels".
        order : int or None
            The order of the new kernel; None if it is unknown.
        **known : keyword arguments
            Other properties of the new kernel, by name.

        Returns
        -------
        Properties
            The properties of the new kernel.  If `order` is None, its rule is "".
        """
        limits = [c.columns for c in inner if c.columns is not None]
        # The other children may be user-defined functions that do not accept the points of this
        # child, so the points are used only if something is known about every child.
        compatible = all(c.order is not None or c.against is not None for c in inner)
        points = [c.against for c in inner if compatible and c.against is not None]
        joint: dict[str, Any] = {"columns": min(limits, default=None)}
        joint["against"] = points[0] if points else None
        return cls(rule if order is not None else "", order, **joint | known)

    @classmethod
    def exponential(cls, rule: str, **known: Any) -> Properties:
        """Return the properties of a Mercer kernel of the form exp(-d) with d(x, x) = 0.

        Such a kernel is non-negative, infinitely divisible, and has k(x, x) = 1.

        Parameters
        ----------
        rule : str
            The theorem that proves that exp(-t d) is a Mercer kernel for every t > 0.
        **known : keyword arguments
            Other properties, by name, such as `strict=True` or `stationary=True`.

        Returns
        -------
        Properties
            The properties, with order 0.
        """
        names = ("nonnegative", "unit_diagonal", "infinitely_divisible")
        return cls(rule, 0, **dict.fromkeys(names, True), **known)

    def derived(self, rule: str, order: int | None, **changes: Any) -> Properties:
        """Return these properties with the rule and order of a function of this kernel.

        Parameters
        ----------
        rule : str
            The closure rule that proves the order of the new kernel.
        order : int or None
            The order of the new kernel; None if it is unknown.
        **changes : keyword arguments
            Properties that the function changes, by name, such as `unit_diagonal=False`.

        Returns
        -------
        Properties
            The properties of the new kernel.  If `order` is None, its rule is "".
        """
        return replace(self, rule=rule if order is not None else "", order=order, **changes)

    def proves(self, order: int, columns: float | None = None) -> bool:
        """Return True if the kernel is known to be conditionally positive definite of some order.

        Parameters
        ----------
        order : int
            The order; 0 means positive semidefinite.  A lower order implies every higher order.
        columns : int or None, default=None
            The number of columns of the points, if they are vectors.  Some kernels are positive
            definite only for few columns.

        Returns
        -------
        bool
            Whether the property is proved; False means that it is not known.

        Examples
        --------
        >>> from mercer.kernels import Distance
        >>> Distance().properties.proves(0), Distance().properties.proves(1)
        (False, True)
        """
        if columns is not None and self.columns is not None and columns > self.columns:
            return False
        return self.order is not None and self.order <= order

    @property
    def limit(self) -> str:
        """The restriction under which the properties hold, as text; empty if they always hold."""
        if self.columns is None:
            return ""
        return f"for points with at most {self.columns} column{'s' * (self.columns > 1)}"

    @property
    def words(self) -> list[str]:
        """The known properties as a list of strings."""
        if self.order is None:
            return []
        holds = {
            "strictly positive definite": self.strict and not self.order,
            "conditionally positive definite of order " + str(self.order): self.order > 0,
            "non-negative": self.nonnegative,
            "k(x, x) = 1": self.unit_diagonal,
            "infinitely divisible": self.infinitely_divisible,
            "stationary": self.stationary,
            self.limit: self.columns is not None,
        }
        return [text for text, is_known in holds.items() if is_known]


def all_have(inner: Sequence[Properties] | Sequence[Domain], name: str) -> bool:
    """Return True if all values of `inner` have the property with this name."""
    return all(getattr(each, name) for each in inner)


def any_has(inner: Sequence[Properties] | Sequence[Domain], name: str) -> bool:
    """Return True if one of the values of `inner` has the property with this name."""
    return any(getattr(each, name) for each in inner)


def highest_order(inner: Sequence[Properties]) -> int | None:
    """Return the highest order among the children, or None if the order of one is unknown.

    Every child is conditionally positive definite of this order, because order m implies all higher
    orders.
    """
    orders = [c.order for c in inner]
    return None if None in orders else max(orders, default=0)  # type: ignore[type-var]
