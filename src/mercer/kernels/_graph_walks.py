"""Kernels of graphs by their walks."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._errors import KernelRangeError
from .._runtime import jit
from ._base import node, parameter
from ._claims import FEATURES, Claims
from ._graph_collection import Graphs
from ._graphs import GraphKernel
from ._prepared import Prepared
from ._vectors import check_positive

__all__ = ["RandomWalk"]

_KINDS = ("exponential", "geometric")
_LIMIT = 700.0  # exp of more overflows
_TERMS = 100_000  # of a series


@node
class RandomWalk(GraphKernel):
    """k(x, z) = sum_l c_l (number of pairs of walks of length l), c_l = decay^l / l! or decay^l.

    A pair of walks is a walk in the product of the two graphs, with adjacency A_x kron A_z:

        exponential    k(x, z) = 1' exp(decay A_x kron A_z) 1
        geometric      k(x, z) = 1' (I - decay A_x kron A_z)^-1 1

    Without labels and directions, A = U diag(mu) U' gives s = (U'1)^2 for each graph and
    k(x, z) = sum_ij s_i t_j exp(decay mu_i nu_j), or 1 / (1 - decay mu_i nu_j).

    Parameters
    ----------
    decay : float
    kind : "exponential" or "geometric"
    labelled : bool
        Whether the two walks of a pair must pass nodes and edges with equal labels.

    Notes
    -----
    One eigenvalue problem per graph, then O(n n') per pair; with labels, or directions, a series
    whose terms cost O(edges edges') each.  Weights of edges multiply along a walk.  The geometric
    series diverges, and the kernel raises, unless decay rho(A)^2 < 1 for every graph, of spectral
    radius rho.  With a decay small enough for the largest graph, walks of length 1 outweigh all
    others ("halting"): prefer the exponential kind, which always converges.

    References
    ----------
    T. Gärtner, P. Flach and S. Wrobel, "On graph kernels", COLT 2003; S. V. N. Vishwanathan,
    N. N. Schraudolph, R. Kondor and K. M. Borgwardt, "Graph kernels", JMLR 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RandomWalk
    >>> edge = [(0, 1)]  # two walks of every length: 4 exp(decay) pairs
    >>> RandomWalk(decay=0.5)([edge]) / np.exp(0.5)
    array([[4.]])
    """

    decay: float = parameter(0.1)
    kind: str = "exponential"
    labelled: bool = False

    def _check(self) -> None:
        check_positive("RandomWalk", "decay", self.decay)
        if self.kind not in _KINDS:
            raise ValueError(f"RandomWalk: kind must be one of {_KINDS}, got {self.kind!r}")
        if not isinstance(self.labelled, (bool, np.bool_)):
            raise TypeError(f"RandomWalk: labelled must be True or False, got {self.labelled!r}")

    costly: ClassVar[bool] = True

    def _claims(self, *inner: Claims) -> Claims:
        return Claims(f"{FEATURES}: the walks of every length; the limit of their sums", 0)

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        X = self._graphs(X)
        spectra, radii = _spectra(X)
        self._check_converges(radii)
        if self.labelled or X.directed:
            return Prepared((X.offsets[:-1], X.sizes), frame=_Product.of(X, self.labelled))
        return Prepared((spectra.starts, spectra.counts), frame=spectra)

    def _check_converges(self, radii: np.ndarray) -> None:
        if not len(radii):
            return
        worst = int(np.argmax(radii))
        rho = float(radii[worst])
        if self.kind == "geometric" and self.decay * rho**2 >= 1.0:
            raise KernelRangeError(
                f"RandomWalk: the geometric series diverges for graph {worst}, whose adjacency "
                f"matrix has the spectral radius {rho:.6g}: decay={self.decay:g} must be below "
                f"1 / radius^2 = {1.0 / rho**2:.6g}; lower it, or take kind='exponential'"
            )
        if self.kind == "exponential" and self.decay * rho**2 > _LIMIT:
            raise KernelRangeError(
                f"RandomWalk: exp(decay radius^2) overflows for graph {worst}, of spectral radius "
                f"{rho:.6g}; keep decay={self.decay:g} below {_LIMIT / rho**2:.3g}"
            )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._tile_by_pairs(P, Q, out)

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return self._sums(P, Q, i, j, False)

    def _sums(
        self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray, slope: bool
    ) -> np.ndarray:
        """Return k, or its derivative in log decay, for a list of pairs."""
        if type(P.frame) is not type(Q.frame):
            raise ValueError(
                "RandomWalk: one of the two collections is directed and one is not; make them "
                "alike by as_directed()"
            )
        geometric, out = self.kind == "geometric", np.empty(len(i))
        sums = _spectral_sums if isinstance(P.frame, _Spectra) else _series
        a, b = ((p.arrays[0][k], p.arrays[1][k]) for p, k in ((P, i), (Q, j)))
        sums(*P.frame.arrays, *Q.frame.arrays, *a, *b, float(self.decay), geometric, slope, out)
        if np.isnan(out).any():
            worst = int(np.argmax(np.isnan(out)))
            raise KernelRangeError(
                f"RandomWalk: the geometric series has not converged after {_TERMS} terms for the "
                f"points {P.index[i[worst]]} and {Q.index[j[worst]]}: decay={self.decay:g} is too "
                f"close to where it diverges; lower it, or take kind='exponential'"
            )
        return out

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        P = self._prepare(X, None)
        Q = P if Z is None else self._prepare(Z, P)
        i, j = np.nonzero(W)
        return {"decay": float(W[i, j] @ self._sums(P, Q, i, j, True))}


class _Spectra(NamedTuple):
    """Eigenvalues mu and weights s of graphs, one after the other."""

    starts: np.ndarray
    counts: np.ndarray
    mu: np.ndarray
    s: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.mu, self.s


def _spectra(X: Graphs) -> tuple[_Spectra, np.ndarray]:
    """Return the spectra of all graphs, and their radii; graphs of one size are solved together."""
    mu, s = np.zeros(X.offsets[-1]), np.zeros(X.offsets[-1])
    radii = np.zeros(len(X))
    for n in np.unique(X.sizes[X.sizes > 0]):
        alike = np.flatnonzero(X.sizes == n)
        for some in np.array_split(alike, int(np.ceil(len(alike) * n * n / 2**21))):
            A = _dense(X, some, n)
            nodes = X.offsets[some][:, None] + np.arange(n)
            if X.directed:
                radii[some] = np.abs(np.linalg.eigvals(A)).max(axis=1)
            else:
                values, U = np.linalg.eigh(A)
                mu[nodes], s[nodes] = values, U.sum(axis=1) ** 2
                radii[some] = np.abs(values).max(axis=1)
    # What is orthogonal to 1 counts for nothing, and symmetric graphs have much of it.
    kept = s > 1e-26 * np.repeat(X.sizes, X.sizes) ** 2
    counts = np.bincount(X.owner[kept], minlength=len(X))
    return _Spectra(np.cumsum(counts) - counts, counts, mu[kept], s[kept]), radii


def _dense(X: Graphs, rows: np.ndarray, n: int) -> np.ndarray:
    """Return adjacency matrices of graphs of n nodes, shape (m, n, n)."""
    some = X[rows]
    A = np.zeros((len(rows), n, n))
    graph = some.owner[some.source]
    first = some.offsets[graph]
    weights = 1.0 if some.weights is None else some.weights
    A[graph, some.source - first, some.indices - first] = weights
    return A


class _Product(NamedTuple):
    """What walks in products of graphs need: entries, and the labels that must agree."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    codes: np.ndarray
    edge_codes: np.ndarray

    @classmethod
    def of(cls, X: Graphs, labelled: bool) -> _Product:
        ones = np.ones(len(X.indices)) if X.weights is None else X.weights
        codes, marks = X.codes, X.edge_codes
        if not labelled:
            codes, marks = np.zeros_like(codes), np.zeros_like(marks)
        return cls(X.indptr, X.indices, ones, codes, marks)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(self)


@jit("reassoc")
def _spectral_sums(
    mu: Any, s: Any, nu: Any, t: Any, a: Any, m: Any, b: Any, n: Any,
    decay: Any, geometric: Any, slope: Any, out: Any,
) -> None:  # fmt: skip
    """Fill out[p] <- sum_ij s_i t_j f(decay mu_i nu_j), or f'(x) x in place of f."""
    for p in range(len(out)):
        total = 0.0
        for i in range(a[p], a[p] + m[p]):
            part = 0.0
            for j in range(b[p], b[p] + n[p]):
                x = decay * mu[i] * nu[j]
                if geometric:
                    value = 1.0 / (1.0 - x)
                    if slope:
                        value *= value * x
                else:
                    value = np.exp(x)
                    if slope:
                        value *= x
                part += t[j] * value
            total += s[i] * part
        out[p] = total


@jit()
def _series(
    indptr: Any, indices: Any, weights: Any, codes: Any, marks: Any,
    indptr2: Any, indices2: Any, weights2: Any, codes2: Any, marks2: Any,
    a: Any, m: Any, b: Any, n: Any, decay: Any, geometric: Any, slope: Any, out: Any,
) -> None:  # fmt: skip
    """Fill out[p] <- sum_l c_l 1' W^l 1, W of the nodes and edges with equal labels; or l c_l."""
    for p in range(len(out)):
        v = np.zeros((m[p], n[p]))
        for i in range(m[p]):
            for j in range(n[p]):
                v[i, j] = 1.0 if codes[a[p] + i] == codes2[b[p] + j] else 0.0
        step = np.empty_like(v)
        total = 0.0 if slope else v.sum()
        for length in range(1, _TERMS + 1):
            step[:] = 0.0
            for i in range(m[p]):
                for e in range(indptr[a[p] + i], indptr[a[p] + i + 1]):
                    k = indices[e] - a[p]
                    for j in range(n[p]):
                        if codes[a[p] + i] != codes2[b[p] + j]:
                            continue
                        for f in range(indptr2[b[p] + j], indptr2[b[p] + j + 1]):
                            if marks[e] == marks2[f]:
                                w = weights[e] * weights2[f]
                                step[i, j] += w * v[k, indices2[f] - b[p]]
            factor = decay if geometric else decay / length
            size = 0.0
            term = 0.0
            for i in range(m[p]):
                for j in range(n[p]):
                    v[i, j] = factor * step[i, j]
                    term += v[i, j]
                    size += abs(v[i, j])
            total += length * term if slope else term
            # Terms may grow at first: 1e-17 of the sum and falling is the end.
            if (length + 1) * size <= 1e-17 * abs(total) or size == 0.0:
                break
        else:
            total = np.nan  # still not the end
        out[p] = total
