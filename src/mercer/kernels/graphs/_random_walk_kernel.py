"""The random-walk kernel on graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._core import KernelRangeError, Points, jit
from .._base import node, option, parameter
from .._evaluation import ParameterGradients, Prepared
from .._pairwise_kernels import PairwiseKernel
from .._parameter_checks import flag, one_of, positive
from .._properties import FEATURES, Properties
from ._graph_collection import Graphs
from ._graph_kernels import GraphKernel

_MAX_EXPONENT = 700.0  # exp overflows in float64 for slightly larger arguments
_MAX_TERMS = 100_000  # a series that needs more terms is reported as not converged


@node
class RandomWalk(PairwiseKernel, GraphKernel):
    """Random-walk kernel: a weighted count of the pairs of walks of equal length in two graphs.

        exponential    k(x, z) = 1' exp(decay A_x kron A_z) 1
        geometric      k(x, z) = 1' (I - decay A_x kron A_z)^-1 1

    A_x and A_z are the adjacency matrices, and 1 is the vector of ones.  A pair of walks of equal
    length is a walk in the product of the two graphs, whose adjacency matrix is A_x kron A_z.  A
    pair of walks of length l has the weight decay^l / l! (exponential) or
    decay^l (geometric).

    Parameters
    ----------
    decay : float, default=0.1
        The decay of the weights with the length, > 0.  Tunable.  If it is small, long walks have
        little weight.  A value below 1 / D^2, where D is the largest degree, makes the geometric
        series converge.
    kind : {"exponential", "geometric"}, default="exponential"
        How the weights depend on the length.  The exponential series always converges.
    labelled : bool, default=False
        Whether the nodes and edges of the two walks must have equal labels.

    See Also
    --------
    WeisfeilerLehman : Subtrees instead of walks; faster and usually more accurate on labelled
        graphs.
    ShortestPath : Shortest paths only, which do not go back and forth.

    Notes
    -----
    For undirected graphs without labels, let A_x = U diag(mu) U' be the eigendecomposition of one
    graph and s = (U'1)^2, and let nu and t be the same for the other graph.  Then k(x, z) =
    sum_ij s_i t_j f(decay mu_i nu_j), where f(v) = exp(v) or 1 / (1 - v).  The cost for a pair of
    graphs is the product of their numbers of nodes.  With labels or directions, the series is
    summed term by term, and the cost of a term is the product of the numbers of edges.  Edge
    weights are multiplied along a walk.

    The geometric series converges only if decay rho^2 < 1 for the largest spectral radius rho of
    the adjacency matrices; otherwise the kernel raises `KernelRangeError`.  With such a
    small decay, walks of length 1 often dominate all others ("halting"), so prefer the exponential
    kind.

    References
    ----------
    Gärtner, Flach and Wrobel, "On graph kernels", COLT 2003; Vishwanathan, Schraudolph, Kondor
    and Borgwardt, "Graph kernels", JMLR 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RandomWalk
    >>> edge = [(0, 1)]  # it has 2 walks of every length, so that k = 4 exp(decay)
    >>> RandomWalk(decay=0.5)([edge]) / np.exp(0.5)
    array([[4.]])
    """

    decay: float = parameter(0.1, positive)
    kind: str = option("exponential", one_of("exponential", "geometric"))
    labelled: bool = option(False, flag)

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(f"{FEATURES}: the walks of all lengths, as a limit of finite sums", 0)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = self._graphs(X)
        spectra, counts, radii = _eigendecompose(X)
        self._check_converges(radii)
        if self.labelled or X.directed:
            return Prepared((X.offsets[:-1], X.sizes), frame=_ProductGraphData.of(X, self.labelled))
        return Prepared((np.cumsum(counts) - counts, counts), frame=spectra)

    def _check_converges(self, radii: np.ndarray) -> None:
        """Raise a KernelRangeError if the series diverges or overflows for some graph."""
        if not len(radii):
            return
        worst = int(np.argmax(radii))
        rho = float(radii[worst])
        if self.kind == "geometric" and self.decay * rho**2 >= 1.0:
            raise KernelRangeError(
                f"RandomWalk: the geometric series diverges for graph {worst}, whose adjacency "
                f"matrix has the spectral radius {rho:.6g}: decay={self.decay:g} must be below "
                f"1 / radius^2 = {1.0 / rho**2:.6g}; lower decay, or use kind='exponential'"
            )
        if self.kind == "exponential" and self.decay * rho**2 > _MAX_EXPONENT:
            raise KernelRangeError(
                f"RandomWalk: exp(decay radius^2) overflows for graph {worst}, whose spectral "
                f"radius is {rho:.6g}: decay={self.decay:g} must be below "
                f"{_MAX_EXPONENT / rho**2:.3g}"
            )

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return self._sums(P, Q, i, j, False)

    def _sums(
        self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray, derivative: bool
    ) -> np.ndarray:
        """Return k, or its derivative with respect to log decay, for pairs of graphs (i, j)."""
        if type(P.frame) is not type(Q.frame):
            raise ValueError(
                "RandomWalk: one of the two collections is directed and the other is not; convert "
                "the undirected one with as_directed()"
            )
        geometric, out = self.kind == "geometric", np.empty(len(i))
        sums = _spectral_sums if isinstance(P.frame, _Spectra) else _series_sums
        a, b = ((p.arrays[0][k], p.arrays[1][k]) for p, k in ((P, i), (Q, j)))
        sums(*P.frame, *Q.frame, *a, *b, float(self.decay), geometric, derivative, out)
        if np.isnan(out).any():
            worst = int(np.argmax(np.isnan(out)))
            raise KernelRangeError(
                f"RandomWalk: the geometric series did not converge within {_MAX_TERMS} terms for "
                f"the points {P.index[i[worst]]} and {Q.index[j[worst]]}, because "
                f"decay={self.decay:g} is close to the value at which it diverges; lower decay, or "
                f"use kind='exponential'"
            )
        return out

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        P = self._prepare(X, None)
        Q = P if Z is None else self._prepare(Z, P)
        i, j = np.nonzero(W)
        return {"decay": float(W[i, j] @ self._sums(P, Q, i, j, True))}


class _Spectra(NamedTuple):
    """Eigenvalues mu and weights s = (U'1)^2 of the adjacency matrices of all graphs.

    U contains the eigenvectors, and 1 is the vector of ones.  The values of each graph are
    consecutive.
    """

    mu: np.ndarray
    s: np.ndarray


def _eigendecompose(X: Graphs) -> tuple[_Spectra, np.ndarray, np.ndarray]:
    """Return the spectra of all graphs, their numbers of eigenvalues, and their spectral radii.

    Graphs of equal size are decomposed together, in batches.
    """
    mu, s = np.zeros(X.offsets[-1]), np.zeros(X.offsets[-1])
    radii = np.zeros(len(X))
    for n in np.unique(X.sizes[X.sizes > 0]):
        same_size = np.flatnonzero(X.sizes == n)
        # Limit the adjacency matrices of a batch to 2**21 entries, or 16 MB.
        for batch in np.array_split(same_size, int(np.ceil(len(same_size) * n * n / 2**21))):
            A = _dense(X, batch, n)
            nodes = X.offsets[batch][:, None] + np.arange(n)
            if X.directed:
                radii[batch] = np.abs(np.linalg.eigvals(A)).max(axis=1)
            else:
                values, U = np.linalg.eigh(A)
                mu[nodes], s[nodes] = values, U.sum(axis=1) ** 2
                radii[batch] = np.abs(values).max(axis=1)
    # Eigenvectors that are orthogonal to the vector of ones contribute nothing; graphs with
    # symmetries have many of them.
    relevant = s > 1e-26 * np.repeat(X.sizes, X.sizes) ** 2
    counts = np.bincount(X.owner[relevant], minlength=len(X))
    return _Spectra(mu[relevant], s[relevant]), counts, radii


def _dense(X: Graphs, rows: np.ndarray, n: int) -> np.ndarray:
    """Return the adjacency matrices of m graphs of n nodes each, shape (m, n, n)."""
    chosen = X[rows]
    A = np.zeros((len(rows), n, n))
    graph = chosen.owner[chosen.source]
    first = chosen.offsets[graph]
    weights = 1.0 if chosen.weights is None else chosen.weights
    A[graph, chosen.source - first, chosen.indices - first] = weights
    return A


class _ProductGraphData(NamedTuple):
    """Adjacency entries and label codes, from which walks in product graphs are counted."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    codes: np.ndarray
    edge_codes: np.ndarray

    @classmethod
    def of(cls, X: Graphs, labelled: bool) -> _ProductGraphData:
        """Return the data of X; if `labelled` is False, all label codes are 0."""
        values = np.ones(len(X.indices)) if X.weights is None else X.weights
        codes, edges = X.codes, X.edge_codes
        if not labelled:
            codes, edges = np.zeros_like(codes), np.zeros_like(edges)
        return cls(X.indptr, X.indices, values, codes, edges)


@jit("reassoc")
def _spectral_sums(
    mu: np.ndarray, s: np.ndarray, nu: np.ndarray, t: np.ndarray,
    a: np.ndarray, m: np.ndarray, b: np.ndarray, n: np.ndarray,
    decay: float, geometric: bool, derivative: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Set out[p] to sum_ij s_i t_j f(decay mu_i nu_j), with f(x) = exp(x) or 1 / (1 - x).

    If `derivative` is True, f'(x) x replaces f(x).  For pair p, i runs over the m[p] entries that
    start at a[p], and j over the n[p] entries that start at b[p].
    """
    for p in range(len(out)):
        total = 0.0
        for i in range(a[p], a[p] + m[p]):
            part = 0.0
            for j in range(b[p], b[p] + n[p]):
                x = decay * mu[i] * nu[j]
                if geometric:
                    value = 1.0 / (1.0 - x)
                    if derivative:
                        value *= value * x
                else:
                    value = np.exp(x)
                    if derivative:
                        value *= x
                part += t[j] * value
            total += s[i] * part
        out[p] = total


@jit()
def _series_sums(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray,
    codes: np.ndarray, edge_codes: np.ndarray,
    indptr2: np.ndarray, indices2: np.ndarray, weights2: np.ndarray,
    codes2: np.ndarray, edge_codes2: np.ndarray,
    a: np.ndarray, m: np.ndarray, b: np.ndarray, n: np.ndarray,
    decay: float, geometric: bool, derivative: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Set out[p] to sum_l c_l 1' W^l 1 for each pair p, with c_l = decay^l or decay^l / l!.

    W is the adjacency matrix of the product graph, whose nodes and edges are pairs with equal
    labels.  If `derivative` is True, l c_l replaces c_l.  If a series does not converge, the result
    is NaN.
    """
    for p in range(len(out)):
        v = np.zeros((m[p], n[p]))
        for i in range(m[p]):
            for j in range(n[p]):
                v[i, j] = 1.0 if codes[a[p] + i] == codes2[b[p] + j] else 0.0
        step = np.empty_like(v)
        total = 0.0 if derivative else v.sum()
        for length in range(1, _MAX_TERMS + 1):
            step[:] = 0.0
            for i in range(m[p]):
                for e in range(indptr[a[p] + i], indptr[a[p] + i + 1]):
                    k = indices[e] - a[p]
                    for j in range(n[p]):
                        if codes[a[p] + i] != codes2[b[p] + j]:
                            continue
                        for f in range(indptr2[b[p] + j], indptr2[b[p] + j + 1]):
                            if edge_codes[e] == edge_codes2[f]:
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
            total += length * term if derivative else term
            # Stop when the term is negligible in double precision; the first terms may increase.
            if (length + 1) * size <= 1e-17 * abs(total) or size == 0.0:
                break
        else:
            total = np.nan  # no convergence within _MAX_TERMS
        out[p] = total
