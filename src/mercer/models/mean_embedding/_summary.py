"""Summaries of a sample by a few weighted points: kernel herding and kernel thinning.

For points S with weights w, the squared distance to the mean embedding mu of all points is

    |sum_s w_s k(s, .) - mu|^2 = w^T K_SS w - 2 w^T mu(S) + |mu|^2

**Herding** selects points greedily.  With the points x_1, ..., x_t selected so far,

    x_(t+1) minimises  sum_(s <= t) k(x, x_s) + k(x, x) / 2 - (t + 1) mu(x)

This choice brings the mean embedding of the t + 1 selected points, with equal weights, as close to
mu as possible.

**Thinning** (Dwivedi and Mackey) halves a sample repeatedly, then improves the best half.
Halving assigns one point of each pair (x, x') to the first half and the other point to the second.
Let psi be the difference of the sums of k over the two halves so far, b^2 = |k(x, .) - k(x', .)|^2
and alpha = psi(x) - psi(x').  The two possible assignments have the probabilities (1 +- alpha / a)
/ 2, so that psi is a random walk in the RKHS with a drift towards 0.  The scale a of the walk is
updated after each pair, for a failure probability delta:

    a = max(b sigma sqrt(2 log(2 / delta)), b^2),   sigma^2 += b^2 (1 + (b^2 - 2 a) sigma^2 / a^2)_+

The mean embeddings of the two halves then differ by about log n / n; those of random halves differ
by about 1 / sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from ..._core import (
    MemoryLimit,
    NotebookResult,
    Points,
    RandomState,
    as_csr,
    check_budget,
    check_choice,
    concatenate,
    entry_point,
    ignore_overflow,
    is_count,
    jit,
    length,
    one_blas_thread,
    run_in_threads,
    seeded_generator,
    slices,
    take,
)
from ..._core.linalg import eigh
from ...expansion import Expansion
from ...gram import TiledGram
from ...kernels import Kernel, Prepared
from ._mean_discrepancies import (
    check_finite,
    clip_squared_distance,
    entry_magnitudes,
    recentred_gram,
    rounding_margin,
    squared_norm,
)
from ._sample_validation import KernelSpec, check_sample, make_kernel, resolve_kernel

_COLUMN_BLOCK = 64  # number of columns of K that are in memory at a time


@dataclass(frozen=True)
class _ThinningTuning:
    """Block sizes, and parameters of the halving stage of kernel thinning."""

    # Number of points whose pairs are assigned from one tile of K, before psi, the difference of
    # the kernel sums of both halves, is updated at the other points.
    points_per_tile: int = 256
    # Number of rows of K in one parallel task that updates these differences psi.
    rows_per_task: int = 1024
    # Number of candidate parts that are retained after a halving; more candidates require more
    # evaluations of K.
    max_candidates: int = 64
    # Bound on the probability that, for some pair in any halving, the assignment probability
    # (1 +- alpha / a) / 2 of the module docstring is outside [0, 1].
    delta: float = 0.5


_TUNING = _ThinningTuning()


@dataclass(frozen=True, eq=False)
class Summary(NotebookResult):
    """A summary of a sample by m weighted points; the result of `herd` and `thin`.

    Attributes
    ----------
    points : points
        The m points of the summary.
    indices : ndarray of shape (m,) or None
        Their indices in X; None if the points were refined and no longer belong to X.
    weights : ndarray of shape (m,)
        The weights of the points, with sum 1.
    mmd : float
        MMD^2, the squared distance to the mean embedding of all of X.  With equal weights it is
        the value of `mmd(points, X, kernel, "biased")`.  It is computed exactly, up to a rounding
        error of about 1e-15 relative to the entries of K.
    kernel : Kernel
        The kernel, with numbers for all parameters that depend on the data, such as "median".

    See Also
    --------
    herd : Select points greedily.
    thin : Select points by kernel thinning.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import thin
    >>> summary = thin(np.random.default_rng(0).normal(size=(200, 2)), 10)
    >>> summary.points.shape, summary.mmd < 0.01
    ((10, 2), True)
    """

    points: Points = field(repr=False)
    indices: np.ndarray | None = field(repr=False)
    weights: np.ndarray = field(repr=False)
    mmd: float
    kernel: Kernel

    @property
    def expansion(self) -> Expansion:
        """The mean embedding sum_s w_s k(s, .) of the summary, as an `Expansion`."""
        return Expansion.mean(self.kernel, self.points, self.weights)


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """The mean embedding mu of the points X, evaluated at all of them.

    K is recentred, which does not change distances to mu, and evaluated in tiles; it is never
    stored.
    """

    K: TiledGram
    values: np.ndarray  # the values mu(x_i) at all points
    diagonal: np.ndarray
    kernel: Kernel
    X: Points

    @classmethod
    @ignore_overflow
    def of(cls, X: Points, kernel: KernelSpec, max_memory: MemoryLimit) -> MeanEmbedding:
        """Validate X, and compute its mean embedding in one pass over K."""
        kernel = make_kernel(kernel)
        X = as_csr(check_sample(kernel, X, "X"))
        kernel, n = resolve_kernel(kernel, X), length(X)
        K = recentred_gram(kernel, X, max_memory)
        values = np.asarray(K @ np.full(n, 1.0 / n))
        check_finite(values, kernel)
        return cls(K, values, np.asarray(K.diagonal()), kernel, X)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, i: int) -> np.ndarray:
        """Return column i of K, the values k(x_j, x_i) for all j."""
        return self.K.block(slice(None), [i])[:, 0]

    def weighted_columns(
        self, selected: np.ndarray, w: np.ndarray, rows: slice | np.ndarray = slice(None)
    ) -> np.ndarray:
        """Return sum_s w_s k(x_j, x_s) over `selected` points x_s, for the x_j in `rows`."""
        parts = slices(len(selected), _COLUMN_BLOCK)
        return np.asarray(sum(self.K.block(rows, selected[p]) @ w[p] for p in parts))

    def squared_distance(self, selected: np.ndarray, w: np.ndarray) -> float:
        """Return |sum_s w_s k(x_s, .) - mu|^2 for `selected` points x_s."""
        self_product = self.weighted_columns(selected, w, selected) @ w
        cross_product, norm2 = w @ self.values[selected], self.values.mean()
        r = entry_magnitudes(self.K)
        sums = abs(self_product) + 2.0 * abs(cross_product) + abs(norm2)
        margin = rounding_margin(self.K.dtype, sums, np.abs(w) @ r[selected] + r.mean())
        value = self_product - 2.0 * cross_product + norm2
        return float(clip_squared_distance(value, margin, self.kernel))

    def summary(self, selected: np.ndarray, weights: str) -> Summary:
        """Return the summary of X by the points with the indices `selected`."""
        w = np.full(len(selected), 1.0 / len(selected))
        if weights == "optimal":
            w = optimal_weights(self.K.block(selected, selected), self.values[selected])
        points = take(self.X, selected)
        return Summary(points, selected, w, self.squared_distance(selected, w), self.kernel)


def optimal_weights(K: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return the weights w with sum 1 that minimise w^T K w - 2 w^T mu.

    The solution has the form w = 1/m + v with sum v = 0, so K needs to be positive definite only
    on vectors of sum 0.  Eigenvalues below 1e-12 times the largest one are dropped, which splits
    the weight equally between points that nearly coincide.
    """
    m = len(K)
    equal = np.full(m, 1.0 / m)
    residual = mu - K @ equal
    centred = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, U = eigh(0.5 * (centred + centred.T))
    positive = values > 1e-12 * max(values[-1], 0.0)
    v = U[:, positive] @ ((U[:, positive].T @ (residual - residual.mean())) / values[positive])
    return equal + v - v.mean()


def _check_options(n_points: int, n: int, weights: str, max_memory: MemoryLimit) -> int:
    """Validate `n_points` and `weights` for a sample of n points; return `n_points` as an int."""
    if not is_count(n_points) or n_points > n:
        raise ValueError(
            f"n_points must be an integer from 1 to {n}, the number of points, got {n_points!r}"
        )
    check_choice("weights", weights, "equal", "optimal")
    if weights == "optimal":
        what = f"the matrix of {n_points} points for their optimal weights"
        check_budget(3 * 8 * int(n_points) ** 2, max_memory, what)
    return int(n_points)


# ---------------------------------------------------------------------- herding


@entry_point
@one_blas_thread
def herd(
    X: Points,
    n_points: int,
    kernel: KernelSpec = None,
    *,
    weights: str = "equal",
    refine: int = 0,
    max_memory: MemoryLimit = None,
) -> Summary:
    """Summarise X by `n_points` of its points, selected greedily to minimise MMD^2 to X.

    Means of smooth functions over the selected points approximate those over X better than means
    over as many random points.  Use the summary as a coreset, as prototypes, or to reduce the
    output of a sampler.

    The selection is nested: its first j points are the result for n_points=j.  Evaluating the mean
    embedding at all points takes one tiled pass over the kernel matrix K; after that, each step
    reads one column of K.

    Parameters
    ----------
    X : points
        The sample of n points.
    n_points : int
        The number m of points to select, without repetition; at most n.
    kernel : Kernel, str, callable or None, default=None
        The kernel; None means the RBF with the median bandwidth.  See `mmd`.
    weights : {"equal", "optimal"}, default="equal"
        "equal" uses 1/m for each point.  "optimal" minimises MMD^2 over all weights of sum 1, which
        may be negative.  Choose "equal" if the summary must be a sample.
    refine : int, default=0
        The maximum number of L-BFGS steps.  They move all selected points jointly to reduce MMD^2.
        The refined points are no longer points of X.  Requires vectors and a differentiable kernel.
        Increase the number until `mmd` of the result hardly changes.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    Summary
        The m points, their indices and weights (arrays of shape (m,)), and their MMD^2 to X.

    See Also
    --------
    thin : Kernel thinning, a randomised alternative with guarantees for about sqrt(n) points.
    Expansion.compress : Approximate any expansion by fewer points.

    References
    ----------
    Chen, Welling and Smola, "Super-samples from kernel herding", UAI 2010.

    Huszár and Duvenaud, "Optimally-weighted herding is Bayesian quadrature", UAI 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import herd
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> summary = herd(X, 20)
    >>> summary.points.shape, bool(summary.mmd < 0.002)
    ((20, 2), True)
    """
    if not is_count(refine, 0):
        raise ValueError(f"refine must be a number of steps (an integer >= 0), got {refine!r}")
    mean = MeanEmbedding.of(X, kernel, max_memory)
    m = _check_options(n_points, len(mean), weights, max_memory)
    selected = np.empty(m, dtype=np.intp)
    # The loop adds k(x, x_s) for each selected x_s; inf prevents selecting a point twice.
    score = 0.5 * mean.diagonal
    for t in range(m):
        selected[t] = np.argmin(score - (t + 1) * mean.values)
        score += mean.column(selected[t])
        score[selected[t]] = np.inf
    summary = mean.summary(selected, weights)
    return _refine_points(mean, summary, weights, refine) if refine else summary


def _refine_points(mean: MeanEmbedding, initial: Summary, weights: str, steps: int) -> Summary:
    """Minimise MMD^2 over the positions of the selected points by L-BFGS.

    The gradient with respect to the point p_i is 2 w_i (f - mu)'(p_i), with f = sum_i w_i k(p_i, .)
    and the weights w_i.
    """
    kernel, m = initial.kernel, len(initial.weights)
    points = initial.points.toarray() if hasattr(initial.points, "toarray") else initial.points
    if not isinstance(points, np.ndarray) or points.ndim != 2:
        raise ValueError(
            f"refine={steps} moves points along a gradient, which requires vectors; use refine=0 "
            f"for other kinds of points"
        )
    mu = Expansion.mean(kernel, mean.X)
    mu_norm2 = float(np.mean(mu(mean.X)))

    def weights_and_mmd(P: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weights of the points P, and MMD^2."""
        K, mu_P = kernel(P), mu(P)[:, 0]
        w = optimal_weights(K, mu_P) if weights == "optimal" else np.full(m, 1.0 / m)
        return w, float(w @ K @ w - 2.0 * w @ mu_P + mu_norm2)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        P = flat.reshape(points.shape)
        # w needs no derivative: equal weights are constant, and at optimal weights the
        # derivative of MMD^2 in w is 0.
        w, value = weights_and_mmd(P)
        gradients = (Expansion(kernel, P, w).gradient(P) - mu.gradient(P))[:, 0]
        return value, (2.0 * w[:, None] * gradients).ravel()

    # MMD^2 is far below 1, so the default tolerances of L-BFGS would stop too early.
    options = {"maxiter": int(steps), "ftol": 1e-14, "gtol": 0.0}
    result = minimize(objective, points.ravel(), jac=True, method="L-BFGS-B", options=options)
    P = result.x.reshape(points.shape)
    w, _ = weights_and_mmd(P)
    # Far from the origin the objective suffers from cancellation.  Report and compare the MMD that
    # is computed from the recentred kernel instead.
    K = recentred_gram(kernel, concatenate(P, mean.X))
    value = squared_norm(K, np.append(w, np.full(len(mean), -1.0 / len(mean))))
    return Summary(P, None, w, value, kernel) if value < initial.mmd else initial


# ---------------------------------------------------------------------- thinning


@entry_point
@one_blas_thread
def thin(
    X: Points,
    n_points: int,
    kernel: KernelSpec = None,
    *,
    weights: str = "equal",
    random_state: RandomState = None,
    max_memory: MemoryLimit = None,
) -> Summary:
    """Summarise X by m = `n_points` of its points through kernel thinning.

    Means of smooth functions over the selected points approximate those over X better than means
    over as many random points.  Use the summary as a coreset, as prototypes, or to reduce the
    output of a sampler.

    Kernel thinning has two stages.  Split: a random subset of m 2^g points, for the largest
    possible g, is halved g times, which gives 2^g candidates of m points each; if there are more
    than 64 parts, only the 64 closest to X are halved further.  Swap: of these candidates and a set
    of m evenly spaced points, the one with the smallest MMD^2 to X is selected.  Each of its points
    in turn is exchanged for the best point of X.  No exchange increases the MMD, so the result is
    never worse than evenly spaced points.

    The computation takes about two passes over the kernel matrix K, plus 2 m of its columns.  K is
    evaluated in blocks and never stored.

    Parameters
    ----------
    X : points
        The sample of n points.
    n_points : int
        The number m of points to select, without repetition; at most n.  About sqrt(n) points have,
        up to logarithmic factors, a distance to X of the size of the sampling error of X itself.
    kernel : Kernel, str, callable or None, default=None
        The kernel; None means the RBF with the median bandwidth.  See `mmd`.
    weights : {"equal", "optimal"}, default="equal"
        "equal" uses 1/m for each point.  "optimal" minimises MMD^2 over all weights of sum 1, which
        may be negative.  Choose "equal" if the summary must be a sample.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for the subset and the assignments; None means the seed 0.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    Summary
        The m points, their indices and weights (arrays of shape (m,)), and their MMD^2 to X.

    See Also
    --------
    herd : Greedy selection, whose first j points are the result for j points.
    Expansion.compress : Approximate any expansion by fewer points.

    References
    ----------
    Dwivedi and Mackey, "Kernel thinning", COLT 2021.

    Dwivedi and Mackey, "Generalized kernel thinning", ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd, thin
    >>> X = np.random.default_rng(0).normal(size=(512, 2))
    >>> summary = thin(X, 32)
    >>> bool(summary.mmd < 0.1 * mmd(X[:32], X, summary.kernel, "biased"))
    True
    """
    mean = MeanEmbedding.of(X, kernel, max_memory)
    n = len(mean)
    m = _check_options(n_points, n, weights, max_memory)
    rng = seeded_generator(random_state)

    def distance(part: np.ndarray) -> float:
        return mean.squared_distance(part, np.full(len(part), 1.0 / len(part)))

    halvings = int(np.log2(n // m))
    parts = [rng.permutation(n)[: m * 2**halvings]]
    for _ in range(halvings):
        delta = _TUNING.delta / halvings
        parts = [half for part in parts for half in _halve(mean.K, part, rng, delta)]
        if len(parts) > _TUNING.max_candidates:
            parts = sorted(parts, key=distance)[: _TUNING.max_candidates]
    parts.append(np.arange(m) * n // m)
    return mean.summary(_swap(mean, min(parts, key=distance)), weights)


def _halve(
    K: TiledGram, index: np.ndarray, rng: np.random.Generator, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Split an even number of points, given by their indices, into two halves with close means."""
    n, P = len(index), K._P[index]  # P is copied once, so that tiles are slices of it
    psi, sides, uniforms = np.zeros(n), np.empty(n), rng.random(n // 2)
    sigma, width = 0.0, np.sqrt(2.0 * np.log(2.0 * n / delta))

    def tile(rows: slice, Q: Prepared) -> np.ndarray:
        return K.kernel.tile(Pi := P[rows], Q, np.empty((len(Pi), len(Q)), dtype=K.dtype))

    for part in slices(n, _TUNING.points_per_tile):
        Q, side, pairs = P[part], sides[part], uniforms[part.start // 2 : part.stop // 2]
        sigma = _assign_pairs(tile(part, Q), psi[part], pairs, sigma, width, side)

        def update_psi(first: int, Q: Prepared = Q, side: np.ndarray = side) -> None:
            rows = slice(first, min(first + _TUNING.rows_per_task, n))
            psi[rows] += tile(rows, Q) @ side

        work = K.kernel._evaluation_work((n - part.stop) * len(side))
        run_in_threads(update_psi, range(part.stop, n, _TUNING.rows_per_task), K.n_threads, work)
    return index[sides < 0], index[sides > 0]


@jit()
def _assign_pairs(
    T: np.ndarray,
    psi: np.ndarray,
    uniforms: np.ndarray,
    sigma: float,
    width: float,
    sides: np.ndarray,
) -> float:
    """Assign one point of each pair to side -1 and one to side +1; return the updated sigma.

    T is the tile of K for these points.  psi is updated in place for the pairs that follow.
    """
    for i in range(len(uniforms)):
        x, y = 2 * i, 2 * i + 1
        b2 = max(T[x, x] + T[y, y] - 2.0 * T[x, y], 0.0)
        a = max(np.sqrt(b2) * sigma * width, b2)
        if a > 0.0 and uniforms[i] < 0.5 * (1.0 - (psi[x] - psi[y]) / a):
            x, y = y, x
        if a > 0.0:
            growth = max(1.0 + (b2 - 2.0 * a) * (sigma / a) ** 2, 0.0)
            sigma = np.sqrt(sigma**2 + b2 * growth)
        sides[x], sides[y] = -1.0, 1.0
        for j in range(2 * i + 2, len(psi)):
            psi[j] += T[j, y] - T[j, x]
    return sigma


def _swap(mean: MeanEmbedding, selected: np.ndarray) -> np.ndarray:
    """Exchange each selected point in turn for the point of X that minimises the MMD."""
    selected, m = selected.copy(), len(selected)
    score = mean.weighted_columns(selected, np.ones(m)) + 0.5 * mean.diagonal - m * mean.values
    available = np.ones(len(mean), dtype=bool)
    available[selected] = False
    for i, old in enumerate(selected):
        available[old] = True
        score -= (column := mean.column(old))
        new = int(np.argmin(np.where(available, score, np.inf)))
        if not score[new] < score[old]:
            new = old
        available[new] = False
        score += column if new == old else mean.column(new)
        selected[i] = new
    return selected
