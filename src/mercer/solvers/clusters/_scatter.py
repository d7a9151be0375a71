"""What k-means asks of K: squared distances, inertias, and sums over clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._errors import NotPositiveDefiniteError, not_finite
from ..._runtime import quiet, run, slices
from ...gram import ROUNDING, DenseGram, GramOperator, TiledGram, significance

__all__ = ["Scatter"]

_STRIP, _COLUMNS = 1024, 512  # rows and columns of K that a task works on at a time


class Scatter:
    """Points in feature space, seen through K, with their weights: what a round asks of them."""

    @quiet
    def __init__(
        self,
        gram: GramOperator,
        weights: np.ndarray,
        n_clusters: int,
        keys: np.ndarray | None = None,
    ) -> None:
        self.gram, self.n, self.n_clusters = gram, gram.shape[0], n_clusters
        self.weights = np.asarray(weights, dtype=np.float64)
        self.diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
        if not np.isfinite(self.diagonal.sum()):
            raise not_finite(gram.kernel)
        self.scale = float(np.abs(self.diagonal).max(initial=0.0))
        self.floor = significance(gram.dtype)[0] * self.scale
        self.keys = np.arange(float(self.n)) if keys is None else keys
        self.order = np.argsort(self.keys, kind="stable")

    def draw(self, chances: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return points drawn with these chances, in the order of their keys; u is in [0, 1)."""
        total = np.cumsum(chances[self.order])
        places = np.searchsorted(total, u * total[-1], side="right")
        places = np.minimum(places, np.flatnonzero(chances[self.order])[-1])
        return np.asarray(self.order[places])

    def rounding(self, norms: np.ndarray) -> float:
        """Return what a difference of two squared distances must exceed to be one."""
        largest = np.abs(norms[np.isfinite(norms)]).max(initial=self.scale)
        return float(ROUNDING * np.finfo(self.gram.dtype).eps * largest)

    def inertia(self, scores: np.ndarray) -> float:
        """Return sum_i w_i |k(x_i, .) - f|^2, given the distances less k(x_i, x_i)."""
        return float(self.weights @ np.maximum(self.diagonal + scores, 0.0))

    def inertia_of_one(self, sums: np.ndarray) -> float:
        """Return the inertia of all points in one cluster, the variance times the weights."""
        w = self.weights
        return float(w @ self.diagonal - w @ sums.sum(axis=1) / w.sum())

    @quiet
    def distances(self, columns: np.ndarray) -> np.ndarray:
        """Return squared distances of all points from some of them."""
        out = np.empty((self.n, len(columns)))

        def strip(rows: slice) -> None:
            out[rows] = self.gram.block(rows, columns)
            out[rows] *= -2.0
            out[rows] += self.diagonal[rows, None] + self.diagonal[columns]

        work = self.gram.kernel._evaluation_work(out.size)
        run(strip, slices(self.n, _STRIP), self.gram.n_threads, work)
        if not np.isfinite(out.sum()):
            raise not_finite(self.gram.kernel)
        out[columns, np.arange(len(columns))] = 0.0
        if out.min() < -significance(self.gram.dtype)[1] * max(self.scale, out.max()):
            raise NotPositiveDefiniteError(
                f"a squared distance in feature space is {out.min():.3g}, with k(x, x) up to "
                f"{self.scale:.3g}: {self.gram.kernel} is not positive semidefinite on these "
                f"points; choose a Mercer kernel"
            )
        return np.maximum(out, 0.0)

    def repaired(self, labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Give the farthest points to clusters without any, but none that is at its centroid."""
        counts = np.bincount(labels, minlength=self.n_clusters)
        empty = np.flatnonzero(counts == 0)
        if not len(empty):
            return labels
        labels, taken = labels.copy(), 0
        small = self.rounding(np.zeros(0))
        for i in np.argsort(-distances, kind="stable"):
            if taken == len(empty) or distances[i] <= small:
                break
            if counts[labels[i]] > 1:
                counts[labels[i]] -= 1
                labels[i] = empty[taken]
                taken += 1
        return labels

    def moved_singly(
        self, scores: np.ndarray, labels: np.ndarray, masses: np.ndarray, least: float
    ) -> np.ndarray:
        """Move points that lower the inertia by more than `least`, each by itself.

        Without x of weight w, its cluster a has an inertia lower by m_a w / (m_a - w) d_a^2; with
        it, that of b is higher by m_b w / (m_b + w) d_b^2.  Each cluster takes part in one move, so
        that gains add up.
        """
        every, w = np.arange(self.n), self.weights
        squared = np.maximum(self.diagonal[:, None] + scores, 0.0)
        alone = np.bincount(labels, minlength=self.n_clusters)[labels] == 1
        mass = masses[labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(alone, 0.0, mass * w / (mass - w) * squared[every, labels])
            higher = squared * (masses * w[:, None] / (masses + w[:, None]))
        higher[:, masses == 0.0] = higher[every, labels] = np.inf
        to = higher.argmin(axis=1)
        gain = lower - higher[every, to]
        moving, used = labels, np.zeros(self.n_clusters, dtype=bool)
        wanted = np.flatnonzero(gain > least)
        for i in wanted[np.argsort(-gain[wanted], kind="stable")]:
            if not (used[labels[i]] or used[to[i]]):
                moving = labels.copy() if moving is labels else moving
                used[labels[i]] = used[to[i]] = True
                moving[i] = to[i]
        return moving

    def indicators(self, many: list[np.ndarray]) -> np.ndarray:
        """Return w_i in the columns of the clusters that the points are in, for each start."""
        out = np.zeros((self.n, len(many) * self.n_clusters))
        for i, labels in enumerate(many):
            out[np.arange(self.n), i * self.n_clusters + labels] = self.weights
        return out

    def sums(self, many: list[np.ndarray]) -> list[np.ndarray]:
        """Return sum_{j in c} w_j k(x_i, x_j), (n, C) for each start, from one pass over K."""
        S = np.asarray(self.gram @ self.indicators(many), dtype=np.float64)
        if not np.isfinite(S.sum()):
            raise not_finite(self.gram.kernel)
        return [np.ascontiguousarray(part) for part in np.hsplit(S, len(many))]

    def scores(
        self, sums: np.ndarray, labels: np.ndarray, masses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return |f_c|^2 - 2 f_c(x_i), and |f_c|^2; infinite for clusters without points."""
        own = self.weights * sums[np.arange(self.n), labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            norms = np.bincount(labels, own, self.n_clusters) / masses**2
            scores = sums * (-2.0 / masses)
        scores += norms
        empty = masses == 0.0
        norms[empty], scores[:, empty] = np.inf, np.inf
        return scores, norms

    def update(
        self,
        sums: list[np.ndarray],
        moves: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]],
    ) -> None:
        """Bring the sums in line with points that have moved: by their columns, if these are few.

        For each start: the points that moved, the clusters they were in, the labels of all now.
        """
        C = self.n_clusters
        columns = np.unique(np.concatenate([moved for moved, *_ in moves.values()]))
        symmetric = 2 * len(columns) > self.n  # a pass over K evaluates half of it
        if symmetric or not isinstance(self.gram, DenseGram | TiledGram):
            fresh = self.sums([labels for *_, labels in moves.values()])
            for i, S in zip(moves, fresh, strict=True):
                sums[i] = S
            return
        D = np.zeros((len(columns), C * len(moves)))
        for place, (moved, old, labels) in enumerate(moves.values()):
            rows, w = np.searchsorted(columns, moved), self.weights[moved]
            D[rows, place * C + labels[moved]] += w
            D[rows, place * C + old] -= w
        change = _columns_product(self.gram, columns, D)
        for i, part in zip(moves, np.hsplit(change, len(moves)), strict=True):
            sums[i] += part


def _columns_product(gram: DenseGram | TiledGram, columns: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Return K[:, columns] D of a symmetric K."""
    if isinstance(gram, TiledGram):
        P = gram._P
        return np.asarray(TiledGram.on(gram.kernel, P, P[columns], gram.n_threads) @ D)
    K, out = gram.array, np.zeros((gram.shape[0], D.shape[1]))

    def strip(rows: slice) -> Iterator[None]:
        for some in slices(len(columns), _COLUMNS):
            yield
            out[rows] += K[columns[some], rows].T @ D[some]  # by symmetry: rows lie together

    run(strip, slices(len(out), _STRIP), gram.n_threads, work=out.size * len(columns))
    return out
