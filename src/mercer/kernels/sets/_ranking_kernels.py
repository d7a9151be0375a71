"""Kernels on rankings, which compare the order of all pairs of items.

A point is a row of ranks, one per item: 1 for the first item, and NaN for an item that is not
ranked.  Each pair of items a < b is a feature,

    phi_ab(x) = +1 if x ranks a before b, -1 if b before a.

If x does not determine the order of a and b, phi_ab(x) is its mean over all complete rankings that
agree with x.  This is the convolution kernel of Jiao and Vert, "The Kendall and Mallows kernels for
permutations" (ICML 2015, IEEE PAMI 2018).  If a is ranked and b is not, the mean depends on the
option `unranked`:

- "between": b may be anywhere.  If a is at position p of the r ranked items, b comes before a with
  probability p / (r + 1), so that the mean is 1 - 2p / (r + 1).
- "last": b comes after all ranked items, as in top-k lists, so that the mean is 1.

For two items without ranks, or with equal ranks, the mean is 0.  All kernels in this module are
positive definite, because they are functions of the inner products of these features.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from ..._core import Points, is_table
from .._base import Kernel, node, option, parameter
from .._evaluation import ParameterGradients, Prepared, prepare_pair
from .._parameter_checks import boolean, one_of, positive
from .._properties import FEATURES, SCHOENBERG, Domain, Properties
from ..vectors._dot_product import squared_norms

_UNRANKED = one_of("between", "last")
_MAX_ITEM_PAIRS = 4096  # pairs of items processed at a time, to limit the memory of a tile


class RankingKernel(Kernel):
    """Base class of the kernels on rankings.

        k(x, z) = profile(t, s, u),   t = <phi(x), phi(z)>,  s = |phi(x)|^2,  u = |phi(z)|^2

    The features phi are described in the docstring of this module.
    """

    # The subclasses declare these fields, in different orders, and are decorated with @node.
    unranked: str
    ties: bool

    @abstractmethod
    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        """Return the kernel values, given inner products and norms of the features of two rankings.

        Parameters
        ----------
        t : ndarray of shape (n, m)
            The inner products <phi(x_i), phi(z_j)>, which may be overwritten.
        s : ndarray of shape (n, 1)
            The squared norms |phi(x_i)|^2.
        u : ndarray of shape (m,)
            The squared norms |phi(z_j)|^2.
        pairs : int
            The number of pairs of items.

        Returns
        -------
        ndarray of shape (n, m)
            The kernel values.
        """

    def features(self, X: Points, like: Points = None) -> sp.csr_array:
        """Return the pairwise comparisons of items as features, phi(X) / sqrt(number of pairs).

        The feature of a pair is the mean sign of the comparison of its two items.  Inner products
        of the features are the values of `Kendall`, also if this is a `Mallows` kernel.

        Parameters
        ----------
        X : array-like of shape (n, n_items)
            The rankings: the rank of each item, or NaN for an item without a rank.
        like : array-like of shape (m, n_items), optional
            For consistency with other kernels; it does not change the columns.  If it is given, its
            rankings must have the same number of items as X.

        Returns
        -------
        csr_array of shape (n, n_items * (n_items - 1) / 2)
            The features, one column per pair of items.
        """
        ranks, lead = self._ranks(X)
        if like is not None:
            self._check_same_items(self._ranks(like)[0].shape[1], ranks.shape[1])
        parts = [pair_features(ranks, lead, *items) for items in pair_batches(ranks.shape[1])]
        return sp.csr_array(np.hstack(parts) / np.sqrt(_n_pairs(ranks.shape[1])))

    # ------------------------------------------------------------------ points

    def _ranks(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks, and the lead of each ranked item over an item without a rank.

        The lead is the value of the feature of such a pair: its mean over all complete rankings.
        """
        name = type(self).__name__
        try:
            ranks = np.asarray(X.to_numpy() if is_table(X) else X, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} requires rows of ranks, all of the same length: one number per item, and "
                f"NaN for an item that is not ranked"
            ) from None
        if ranks.ndim != 2 or (len(ranks) and ranks.shape[1] < 2):
            raise ValueError(
                f"{name} requires an array of shape (n, items), with at least two items, got shape "
                f"{ranks.shape}"
            )
        is_ranked = ~np.isnan(ranks)
        bad = is_ranked & ~((ranks >= 0) & (ranks < np.inf))
        if bad.any():
            row, item = np.argwhere(bad)[0]
            raise ValueError(
                f"{name}: point {row} gives item {item} the rank {ranks[row, item]:g}; ranks must "
                f"be 1, 2, ..., or NaN for an item that is not ranked"
            )
        if not self.ties:
            self._check_no_ties(ranks)
        # Positions 1, ..., r among the ranked items; tied items share their mean position.
        positions = rankdata(np.where(is_ranked, ranks, np.inf), axis=1) if ranks.size else ranks
        if self.unranked == "last":
            lead = is_ranked.astype(float)
        else:
            lead = np.where(
                is_ranked, 1.0 - 2.0 * positions / (is_ranked.sum(axis=1)[:, None] + 1.0), 0.0
            )
        return ranks, lead

    def _check_no_ties(self, ranks: np.ndarray) -> None:
        """Raise if two items of a ranking have the same rank."""
        order = np.sort(ranks, axis=1)
        tied = order[:, 1:] == order[:, :-1]
        if tied.any():
            row, position = np.argwhere(tied)[0]
            items = np.flatnonzero(ranks[row] == order[row, position])
            raise ValueError(
                f"{type(self).__name__}: point {row} gives the rank {order[row, position]:g} to "
                f"the items {', '.join(map(str, items))}; pass ties=True if this is intended"
            )

    def _check_same_items(self, p: int, q: int) -> None:
        """Raise a ValueError if two collections of rankings have different numbers of items."""
        if p != q:
            raise ValueError(
                f"{type(self).__name__} cannot compare rankings of {p} items with rankings of {q}; "
                f"both must rank the same items"
            )

    # ------------------------------------------------------------------ tiles

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        ranks, lead = self._ranks(X)
        if like is not None:
            self._check_same_items(like.arrays[0].shape[1], ranks.shape[1])
        return Prepared((ranks, lead, _squared_feature_norms(ranks, lead)))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._feature_products(P, Q, out)
        pairs = _n_pairs(P.arrays[0].shape[1])
        out[...] = self.profile(out, P.arrays[2][:, None], Q.arrays[2], pairs)

    @staticmethod
    def _feature_products(P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Write the inner products <phi(x_i), phi(z_j)> to `out`, in batches to limit memory."""
        out[...] = 0.0
        (x, x_lead, _), (z, z_lead, _) = P.arrays, Q.arrays
        for a, b in pair_batches(x.shape[1]):
            out += pair_features(x, x_lead, a, b) @ pair_features(z, z_lead, a, b).T

    def _diag(self, X: Points) -> np.ndarray:
        ranks, lead = self._ranks(X)
        s = _squared_feature_norms(ranks, lead)
        return np.asarray(self.profile(s.copy(), s, s, _n_pairs(ranks.shape[1])))

    def _domain(self, *inner: Domain) -> Domain:
        # Rankings may contain NaN, for items without a rank.
        return Domain("rankings", accepts_matrix=False, discrete=True)


@node
class Kendall(RankingKernel):
    """Kendall kernel on rankings: Kendall's rank correlation tau, in [-1, 1].

        k(x, z) = (n_concordant - n_discordant) / n_pairs

    n_concordant and n_discordant are the numbers of pairs of items that x and z rank in the same
    and in the opposite order.

    Parameters
    ----------
    unranked : {"between", "last"}, default="between"
        Possible positions of an item without a rank (NaN): anywhere, or after all ranked items, as
        in top-k lists.  For such incomplete rankings, the value is the mean of tau over all
        complete rankings that agree with x and z, and k(x, x) < 1.  Use `Normalized(Kendall())` to
        obtain k(x, x) = 1.
    ties : bool, default=False
        Whether items may have equal ranks.  If they do, the value is the mean over their orders.
        False raises an error for equal ranks, which are often scores passed by mistake.

    See Also
    --------
    Mallows : Decreases exponentially, so that only similar rankings influence each other.
    Linear : On the ranks themselves; up to centring and scaling this is Spearman's rank
        correlation.

    Notes
    -----
    `features` returns the signs of all pairs of items.  For m items, a pair of points takes
    m (m - 1) / 2 multiplications, as part of a matrix product.  All pairs of items have the same
    weight, including those at the end of a list.

    References
    ----------
    Kendall, "A new measure of rank correlation", Biometrika 30, 1938; Jiao and Vert, "The Kendall
    and Mallows kernels for permutations", IEEE PAMI 40, 2018 (also for incomplete rankings).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Kendall
    >>> Kendall()([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[ 1.    ,  0.3333, -1.    ]])
    >>> Kendall()([[1, 2, np.nan]], [[1, 2, 3]]).round(4)
    array([[0.3333]])
    """

    unranked: str = option("between", _UNRANKED)
    ties: bool = option(False, boolean)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(f"{FEATURES}: the signs of all pairs of items", 0, diagonal_bound=1.0)

    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        t /= max(pairs, 1)
        return t


@node
class Mallows(RankingKernel):
    """Mallows kernel on rankings, which decreases with the number of discordant pairs of items.

        k(x, z) = exp(-decay * n_discordant)

    Parameters
    ----------
    decay : float, default=0.1
        The rate of decrease, > 0.  Tunable.  Two random rankings of m items have m (m - 1) / 4
        discordant pairs on average; a few times 4 / (m (m - 1)) is a good initial value.
    unranked : {"between", "last"}, default="between"
        Possible positions of an item without a rank (NaN): anywhere, or after all ranked items, as
        in top-k lists.
    ties : bool, default=False
        Whether items may have equal ranks.  If they do, features are means over their orders.

    See Also
    --------
    Kendall : The correlation itself, linear in the number of discordant pairs, without a parameter.
    RBF : On the ranks themselves.

    Notes
    -----
    The cost is the same as for `Kendall`.  With the features phi of `Kendall`, the number of
    discordant pairs is |phi(x) - phi(z)|^2 / 4.  This formula also defines it for incomplete
    rankings, so that k(x, x) = 1 for every ranking.  For incomplete rankings, the kernel is a
    Gaussian kernel on mean features, not the mean of the kernel over all complete rankings, which
    is expensive.

    References
    ----------
    Mallows, "Non-null ranking models", Biometrika 44, 1957; Jiao and Vert, "The Kendall and Mallows
    kernels for permutations", IEEE PAMI 40, 2018.

    Examples
    --------
    >>> from mercer.kernels import Mallows
    >>> Mallows(decay=0.5)([[1, 2, 3]], [[1, 2, 3], [2, 1, 3], [3, 2, 1]]).round(4)
    array([[1.    , 0.6065, 0.2231]])
    """

    decay: float = parameter(0.1, positive)
    unranked: str = option("between", _UNRANKED)
    ties: bool = option(False, boolean)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties.exponential(SCHOENBERG)

    def profile(self, t: np.ndarray, s: np.ndarray, u: np.ndarray, pairs: int) -> np.ndarray:
        return np.exp(-self.decay * _discordant(t, s, u))

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        P, Q = prepare_pair(self, X, Z)
        t = np.empty((len(P), len(Q)))
        self._feature_products(P, Q, t)
        d = self.decay * _discordant(t, P.arrays[2][:, None], Q.arrays[2])
        return {"decay": -np.sum(W * d * np.exp(-d))}


# ---------------------------------------------------------------------- features


def _n_pairs(m: int) -> int:
    """Return the number of pairs of m items."""
    return m * (m - 1) // 2


def pair_batches(m: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all pairs of items a < b, in batches of up to _MAX_ITEM_PAIRS."""
    first, second = np.triu_indices(m, 1)
    for start in range(0, len(first), _MAX_ITEM_PAIRS):
        part = slice(start, start + _MAX_ITEM_PAIRS)
        yield first[part], second[part]


def pair_features(ranks: np.ndarray, lead: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the features phi_ab of some pairs of items, shape (n, len(a))."""
    signs = np.sign(ranks[:, b] - ranks[:, a])
    # If exactly one of the two items is ranked, the feature is the lead of that item.
    one_sided = np.where(np.isnan(ranks[:, b]), lead[:, a], 0.0)
    one_sided -= np.where(np.isnan(ranks[:, a]), lead[:, b], 0.0)
    return np.where(np.isnan(signs), one_sided, signs)


def _squared_feature_norms(ranks: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return |phi(x)|^2 for each ranking."""
    parts = [
        squared_norms(pair_features(ranks, lead, *items)) for items in pair_batches(ranks.shape[1])
    ]
    return np.sum(parts, axis=0) if parts else np.zeros(len(ranks))


def _discordant(t: np.ndarray, s: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the number of discordant pairs, |phi(x) - phi(z)|^2 / 4 = (s + u - 2t) / 4."""
    distances: np.ndarray = np.maximum(0.25 * (s + u - 2.0 * t), 0.0)
    return distances
