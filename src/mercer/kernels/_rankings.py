"""Kernels of rankings: which of two items comes first, for all pairs of items.

A point is a row of ranks, one for each item: 1 for the first, and NaN for an item that is not
ranked.  A pair of items a < b is a feature of it,

    phi_ab(x) = +1 if x ranks a before b, -1 if b before a,

and if x leaves that open, the mean over all complete rankings that agree with x: the convolution of
Jiao and Vert, "The Kendall and Mallows kernels for permutations" (ICML 2015, IEEE PAMI 2018).  An
item that is not ranked may be anywhere ("between"): it comes before the one at place p of r ranked
items with probability p / (r + 1), so that the mean is 1 - 2p / (r + 1).  Or it comes after all
that are ranked ("last", top-k lists), and the mean is 1.  Two items without ranks, or with the same
rank, have 0.  All kernels here are functions of inner products of these features, which proves
that they are kernels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from .._points import is_table
from ._base import Kernel, node, parameter
from ._claims import FEATURES, SCHOENBERG, Claims
from ._dot import squared_norms
from ._prepared import Prepared, pair
from ._vectors import check_positive

__all__ = ["Kendall", "Mallows", "RankingKernel"]

_UNRANKED = ("between", "last")
_PAIRS = 4096  # features of a tile that are held at a time


class RankingKernel(Kernel):
    """k(x, z) = profile(t, s, u) of t = <phi(x), phi(z)>, s = |phi(x)|^2 and u = |phi(z)|^2."""

    # Not a node: the fields are those of the kernels, in an order of their own.
    unranked: str
    ties: bool

    def _check(self) -> None:
        if self.unranked not in _UNRANKED:
            raise ValueError(
                f"{type(self).__name__}: unranked must be one of {_UNRANKED}, got {self.unranked!r}"
            )
        if not isinstance(self.ties, (bool, np.bool_)):
            raise TypeError(f"{type(self).__name__}: ties must be a bool, got {self.ties!r}")

    @abstractmethod
    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        """Return the kernel; `t` may be overwritten."""

    def features(self, X: Any, like: Any = None) -> sp.csr_array:
        """Return phi(X) / sqrt(number of pairs), one column for each pair of items.

        `like` is there because other kernels need it: here the columns are always the same.
        """
        ranks, lead = self._ranks(X)
        if like is not None:
            self._same_items(self._ranks(like)[0].shape[1], ranks.shape[1])
        parts = [_signs(ranks, lead, *items) for items in _pairs(ranks.shape[1])]
        return sp.csr_array(np.hstack(parts) / np.sqrt(_count(ranks.shape[1])))

    # ------------------------------------------------------------------ points

    def _ranks(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks, and for each ranked item the mean against one that is not."""
        name = type(self).__name__
        try:
            ranks = np.asarray(X.to_numpy() if is_table(X) else X, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} takes rows of ranks, one number for each item and NaN for one that is not "
                f"ranked, all rows of the same length"
            ) from None
        if ranks.ndim != 2 or (len(ranks) and ranks.shape[1] < 2):
            raise ValueError(
                f"{name} takes rows of ranks of at least two items, shape (n, items), got shape "
                f"{ranks.shape}"
            )
        known = ~np.isnan(ranks)
        bad = known & ~((ranks >= 0) & (ranks < np.inf))
        if bad.any():
            row, item = np.argwhere(bad)[0]
            raise ValueError(
                f"{name}: point {row} gives item {item} the rank {ranks[row, item]:g}; ranks are "
                f"1, 2, ..., or NaN for an item that is not ranked"
            )
        if not self.ties:
            self._refuse_ties(ranks)
        # places 1 ... r among the items that are ranked; the same ones for equal ranks
        places = rankdata(np.where(known, ranks, np.inf), axis=1) if ranks.size else ranks
        if self.unranked == "last":
            lead = known.astype(float)
        else:
            lead = np.where(known, 1.0 - 2.0 * places / (known.sum(axis=1)[:, None] + 1.0), 0.0)
        return ranks, lead

    def _refuse_ties(self, ranks: np.ndarray) -> None:
        order = np.sort(ranks, axis=1)
        twice = order[:, 1:] == order[:, :-1]
        if twice.any():
            row, place = np.argwhere(twice)[0]
            items = np.flatnonzero(ranks[row] == order[row, place])
            raise ValueError(
                f"{type(self).__name__}: point {row} gives the rank {order[row, place]:g} to the "
                f"items {', '.join(map(str, items))}; pass ties=True if equal ranks are meant"
            )

    def _same_items(self, p: int, q: int) -> None:
        if p != q:
            raise ValueError(
                f"{type(self).__name__} compares rankings of {p} and of {q} items; both sides need "
                f"the same items"
            )

    # ------------------------------------------------------------------ tiles

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        ranks, lead = self._ranks(X)
        if like is not None:
            self._same_items(like.arrays[0].shape[1], ranks.shape[1])
        return Prepared((ranks, lead, _norms(ranks, lead)))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._products(P, Q, out)
        pairs = _count(P.arrays[0].shape[1])
        out[...] = self.profile(out, P.arrays[2][:, None], Q.arrays[2], pairs)

    @staticmethod
    def _products(P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Set out <- <phi(x_i), phi(z_j)>, some pairs of items at a time: memory stays small."""
        out[...] = 0.0
        (x, x_lead, _), (z, z_lead, _) = P.arrays, Q.arrays
        for a, b in _pairs(x.shape[1]):
            out += _signs(x, x_lead, a, b) @ _signs(z, z_lead, a, b).T

    def _diag(self, X: Any) -> np.ndarray:
        ranks, lead = self._ranks(X)
        s = _norms(ranks, lead)
        return np.asarray(self.profile(s.copy(), s, s, _count(ranks.shape[1])))

    @property
    def reads_matrix(self) -> bool:
        return False  # NaN has a meaning

    discrete: ClassVar[bool] = True
    domain: ClassVar[str] = "rankings"

    diagonal_bound: ClassVar[float] = 1.0

    # ------------------------------------------------------------------ back to rankings

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        """Return complete rankings to begin with: Borda's, or one of X if it is nearer.

        Borda orders the items by how often they come first, on the average.
        """
        ranks, lead = self._ranks(X)
        m = ranks.shape[1]
        wins = np.zeros((m, C.shape[1]))
        for a, b in _pairs(m):
            means = _signs(ranks, lead, a, b).T @ C
            np.add.at(wins, a, means)
            np.subtract.at(wins, b, means)
        first = 0.0 if np.nanmin(ranks, initial=1.0) == 0 else 1.0
        borda = np.argsort(np.argsort(-wins.T, axis=1, kind="stable"), axis=1) + first
        candidates = np.concatenate([borda, ranks[~np.isnan(ranks).any(axis=1)]])
        costs = self.diag(candidates)[:, None] - 2.0 * self(candidates, X) @ C
        # equal to Borda's but for rounding: then Borda's
        costs[np.arange(len(borda)), np.arange(len(borda))] -= 1e-12
        return candidates[np.argmin(costs, axis=0)]

    def _neighbours(self, X: Any) -> Any:
        return _swaps


@node
class Kendall(RankingKernel):
    """k(x, z) = (concordant pairs - discordant pairs) / (all pairs), Kendall's tau, in [-1, 1].

    Parameters
    ----------
    unranked : {"between", "last"}
        Where an item without a rank (NaN) may be: anywhere, or after all that are ranked, as in
        lists of the best k.  The value is then the mean of tau over all complete rankings that
        agree with the two, and k(x, x) < 1; `Normalized` divides by that.
    ties : bool, default=False
        Whether items may share a rank.  The mean over their orders is taken.

    Notes
    -----
    `features` are the signs of all pairs.  Cost: m (m - 1) / 2 products for each pair of points, in
    one matrix product.  The catch: all pairs count the same, those at the bottom of a list too.
    References: Kendall (1938); Jiao and Vert (2018), whose value for incomplete rankings this is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Kendall
    >>> Kendall()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1.    ,  0.3333, -1.    ]])
    >>> Kendall()([[1, 2, np.nan]], [[1, 2, 3]]).round(4)
    array([[0.3333]])
    """

    unranked: str = "between"
    ties: bool = False

    def _claims(self, *inner: Claims) -> Claims:
        return Claims(f"{FEATURES}: the signs of all pairs of items", 0)

    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        t /= max(pairs, 1)
        return t


@node
class Mallows(RankingKernel):
    """k(x, z) = exp(-decay * number of discordant pairs).

    Parameters
    ----------
    decay : float, default=0.1
        > 0.  Rankings of m items without relation have m (m - 1) / 4 discordant pairs: a few times
        the inverse of that is a good start.
    unranked, ties
        As for `Kendall`.  With the features phi there, the number of discordant pairs is
        |phi(x) - phi(z)|^2 / 4, also where these are means: k(x, x) = 1 for every ranking.

    Notes
    -----
    Cost: that of `Kendall`.  The catch: for incomplete rankings this is no mean of the kernel over
    the complete ones (which needs a sum over all of them), but the Gaussian kernel of the mean
    features.  References: Mallows (1957); Jiao and Vert (2018).

    Examples
    --------
    >>> from mercer.kernels import Mallows
    >>> Mallows(decay=0.5)([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[1.    , 0.6065, 0.2231]])
    """

    decay: float = parameter(0.1)
    unranked: str = "between"
    ties: bool = False

    def _check(self) -> None:
        super()._check()
        check_positive("Mallows", "decay", self.decay)

    def _claims(self, *inner: Claims) -> Claims:
        known = {"nonnegative": True, "unit_diagonal": True, "infinitely_divisible": True}
        return Claims(SCHOENBERG, 0, **known)

    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        return np.exp(-self.decay * _discordant(t, s, u))

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        P, Q = pair(self, X, Z)
        t = np.empty((len(P), len(Q)))
        self._products(P, Q, t)
        d = self.decay * _discordant(t, P.arrays[2][:, None], Q.arrays[2])
        return {"decay": -np.sum(W * d * np.exp(-d))}


# ---------------------------------------------------------------------- features


def _count(m: int) -> int:
    return m * (m - 1) // 2


def _pairs(m: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all pairs of items a < b, some thousand at a time."""
    first, second = np.triu_indices(m, 1)
    for start in range(0, len(first), _PAIRS):
        part = slice(start, start + _PAIRS)
        yield first[part], second[part]


def _signs(ranks: np.ndarray, lead: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return phi_ab for some pairs of items, (n, number of pairs)."""
    signs = np.sign(ranks[:, b] - ranks[:, a])
    # exactly one of them is ranked: its lead over the other
    one_sided = np.where(np.isnan(ranks[:, b]), lead[:, a], 0.0)
    one_sided -= np.where(np.isnan(ranks[:, a]), lead[:, b], 0.0)
    return np.where(np.isnan(signs), one_sided, signs)


def _norms(ranks: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return |phi(x)|^2."""
    parts = [squared_norms(_signs(ranks, lead, *items)) for items in _pairs(ranks.shape[1])]
    return np.sum(parts, axis=0) if parts else np.zeros(len(ranks))


def _discordant(t: np.ndarray, s: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return |phi(x) - phi(z)|^2 / 4, the number of discordant pairs."""
    return np.maximum(0.25 * (s + u - 2.0 * t), 0.0)


def _swaps(z: Any) -> np.ndarray:
    """Return the rankings in which two items at neighbouring places have changed places."""
    z = np.asarray(z, dtype=float)
    order = np.argsort(z, kind="stable")
    order = order[~np.isnan(z[order])]
    changed = np.repeat(z[None], max(len(order) - 1, 0), axis=0)
    rows = np.arange(len(changed))
    changed[rows, order[:-1]], changed[rows, order[1:]] = z[order[1:]], z[order[:-1]]
    return changed
