"""Inducing points: the Nyström approximation Q + D of K + noise, and a lower bound on log p.

    Q = K_nS K_SS^-1 K_Sn = F F^T,     F = K_nS L^-T,     L L^T = K_SS,     D = diag(noise)

The indices n and S of K denote the n points and the landmarks; Y are the targets.  K_SS contains
no noise, because a landmark is a location, not an observation.  A QR factorisation of [I 0]
stacked on D^-1/2 [F Y] gives the triangular factor

    [R U; 0 V]:     A = I + F^T D^-1 F = R^T R,     w = A^-1 F^T D^-1 Y = R^-1 U,
                    Y^T (Q + D)^-1 Y = V^T V,       log det (Q + D) = log det A + log det D

Forming F^T F instead would lose half of the digits if the noise is small.

The factor, the traces and the gradients are sums over rows (the sum of two triangular factors is
the factor of both, stacked).  They are computed block by block, in O(n m^2) operations and
O(n q + m^2) memory for m landmarks and q targets.  An array is a single block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    MemoryLimit,
    NotDifferentiableError,
    Points,
    RandomState,
    Stopwatch,
    as_csr,
    as_float64,
    as_generator,
    check_budget,
    check_threads,
    entry_point,
    length,
    one_blas_thread,
    run_in_threads,
    slices,
    take,
    warn_caller,
)
from ..._core.linalg import solve_triangular
from ...blocks import BlockRows, Blocks, sample_rows, with_targets
from ...expansion import Expansion
from ...gram import (
    CANDIDATES_PER_LANDMARK,
    DEFAULT_CANDIDATES,
    Landmarks,
    NystroemMap,
    clip_negative_residual,
    factor_landmarks,
    fill_gram,
    residual_tolerances,
    solve_triangular_rows,
)
from ...kernels import Kernel, as_index_kernel, prepare_pair
from ...solvers import LandmarkRidge, NystroemPath, Report, Status
from ._gp_objective import Objective, Theta, diagonal_pullback, latent_and_noise, without_noise
from ._posterior import Conditioned, Posterior

T = TypeVar("T")


@dataclass(frozen=True)
class _InducingTuning:
    """Sizes of the strips of rows, and limits of the bound."""

    # Number of strips that are processed in parallel before their results are merged.  It does not
    # depend on the number of threads, so that the result does not depend on it either.
    strips_per_merge: int = 4
    # Smaller strips would spend most of the time in merging.
    min_strip_rows: int = 256
    # Processing a strip needs this many arrays of its size.
    arrays_per_strip: int = 8
    # Default number of landmarks: small, because an optimisation evaluates the objective dozens of
    # times, and the cost of each evaluation grows with the square of this number.
    default_rank: int = 500
    # Largest mean ratio of the variance that the landmarks do not explain to the noise, without a
    # warning: beyond it, the trace term dominates the bound.
    max_residual_to_noise: float = 10.0


_TUNING = _InducingTuning()


class Strip(NamedTuple):
    """Some rows of a block, with their features and targets; see the module docstring."""

    X: Points
    F: np.ndarray  # (rows, m), the features phi(x)
    Y: np.ndarray  # (rows, q), the targets
    latent: np.ndarray  # k(x, x) without noise
    D: np.ndarray  # the noise variance of each row

    @property
    def residual(self) -> np.ndarray:
        """The diagonal of K - Q without noise; small negative values are rounding errors."""
        return self.latent - np.einsum("ij,ij->i", self.F, self.F)


# `terms(strip, leverage)` returns a matrix A, and the weights a and b of the derivatives of the
# latent variance and of the noise, for the rows of a strip; see `Projection.pullback`.
RowTerms: TypeAlias = Callable[[Strip, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class TriangularFactor(NamedTuple):
    """Triangular factor T = [R U; 0 V] of points and targets, with sums over the points."""

    T: np.ndarray  # (m + q, m + q), upper triangular
    m: int
    n_noiseless: float  # the number of points whose noise is 0
    log_noise: float  # log det D
    ratio: float  # tr D^-1 (K - Q), where K contains no noise
    residual: float  # tr (K - Q)
    latent: float  # tr K
    lowest_residual: float  # smallest entry of the diagonal of K - Q; negative by rounding only
    lowest_noise: float
    minus_largest_latent: float

    @staticmethod
    def merge(*parts: TriangularFactor) -> TriangularFactor:
        """Return the factor of the points of all parts."""
        with one_blas_thread:
            T = np.asarray(np.linalg.qr(np.vstack([part.T for part in parts]), mode="r"))
        sums = np.sum([part[2:7] for part in parts], axis=0).tolist()
        lowest = np.min([part[7:] for part in parts], axis=0).tolist()
        return TriangularFactor(T, parts[0].m, *sums, *lowest)

    @property
    def R(self) -> np.ndarray:
        """The factor R of A = I + F^T D^-1 F, of shape (m, m)."""
        return self.T[: self.m, : self.m]

    @property
    def V(self) -> np.ndarray:
        """The factor V, of shape (q, q), with V^T V = Y^T (Q + D)^-1 Y for the targets Y."""
        return self.T[self.m :, self.m :]

    @property
    def weights(self) -> np.ndarray:
        """The weights w = A^-1 F^T D^-1 Y; the posterior mean at the points is F w."""
        return np.asarray(solve_triangular(self.R, self.T[: self.m, self.m :]))

    @property
    def logdet(self) -> float:
        """The logarithm of det (Q + D)."""
        return 2.0 * float(np.sum(np.log(np.abs(self.R.diagonal())))) + self.log_noise

    @property
    def inverse(self) -> np.ndarray:
        """The inverse of A = I + F^T D^-1 F."""
        half = solve_triangular(self.R, np.eye(self.m))
        return np.asarray(half @ half.T)


@dataclass(frozen=True, eq=False)
class Projection:
    """The Nyström approximation Q + D of K + noise at one theta; create it with `Projection.on`.

    Q = F F^T and D = diag(noise) are defined in the module docstring.

    Attributes
    ----------
    kernel : Kernel
    X : points or Blocks
    map : NystroemMap
        The feature map phi of the landmarks, without noise; the rows of F are phi(x_i).
    noise : float or ndarray of shape (n,)
        The noise that is added to the noise of the kernel; their sum is the diagonal of D.
    lost : float
        A bound on the variance of each dropped landmark that the other landmarks do not
        explain.  Landmarks are dropped if they are linearly dependent.
    n_threads : int or None
        The number of threads; None uses all processors.
    """

    kernel: Kernel
    X: Points | Blocks
    map: NystroemMap
    noise: float | np.ndarray
    lost: float = 0.0
    n_threads: int | None = None

    @classmethod
    def on(
        cls,
        kernel: Kernel,
        X: Points | Blocks,
        noise: float | np.ndarray,
        S: Points,
        n_threads: int | None = None,
    ) -> Self:
        """Return the approximation for the points X, with `noise` added, on the landmarks S."""
        if not isinstance(X, Blocks):
            kernel, X = as_index_kernel(kernel, X)
            X = as_csr(X)
        P, Q = prepare_pair(kernel, S, S)  # a kernel of two arguments contains no noise
        K = np.empty((len(P), len(Q)))
        fill_gram(kernel, P, Q, K, n_threads)
        K = 0.5 * (K + K.T)
        # Scale to a unit diagonal; otherwise landmarks with a small k(s, s) would be dropped.
        diagonal = K.diagonal()
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        L, independent, jitter = factor_landmarks(K / scale / scale[:, None], P.dtype, kernel)
        L = np.asfortranarray(L * scale[independent, None])
        n_dropped = len(K) - len(independent)
        phi = NystroemMap(kernel, take(S, independent), L, independent, n_dropped, jitter)
        largest_dropped = float(np.delete(diagonal, independent).max(initial=0.0))
        lost = residual_tolerances(P.dtype)[0] * largest_dropped
        return cls(kernel, X, phi, noise if np.ndim(noise) else float(noise), lost, n_threads)

    @staticmethod
    def workspace(n: int, m: int, q: int, n_threads: int | None = None) -> int:
        """Return the memory that `factorize` and `pullback` need, in bytes.

        They need strips, triangular factors, and a few vectors, for n points, m landmarks and q
        targets.
        """
        merged = _TUNING.strips_per_merge
        rows, strips = min(n, _strip_rows(m + q)), min(merged, check_threads(n_threads))
        # The strips contain features, weights, and temporary arrays of the kernel.
        strip_numbers = strips * _TUNING.arrays_per_strip * rows * (m + q)
        return 8 * (strip_numbers + (8 + merged) * (m + q) ** 2 + 8 * n * (q + 2))

    def __len__(self) -> int:
        """Return n, the number of points."""
        return length(self.X)

    @cached_property
    def latent(self) -> np.ndarray:
        """The variances k(x, x) without noise, of shape (n,); X must be in memory."""
        return latent_and_noise(self.kernel, self.X)[0]

    @cached_property
    def total_noise(self) -> np.ndarray:
        """The diagonal of D, of shape (n,); X must be in memory."""
        D = latent_and_noise(self.kernel, self.X)[1] + self.noise
        self._require_noise(int(np.sum(~(D > 0.0))))
        return D

    # ------------------------------------------------------------------ sums over the points

    def factorize(self, Y: np.ndarray, extra_noise: float = 0.0) -> TriangularFactor:
        """Return the triangular factor for the targets Y, with `extra_noise` added to the noise.

        Raises
        ------
        NotPositiveDefiniteError
            If k(x, x) - |phi(x)|^2 is negative by more than rounding errors.
        """
        merge = TriangularFactor.merge
        factor: TriangularFactor = self._sum(_factor_of_block, merge, Y, extra_noise)
        self._require_noise(int(factor.n_noiseless))
        lowest, largest = np.array([[factor.lowest_residual], [-factor.minus_largest_latent]])
        clip_negative_residual(lowest, largest, self.kernel)
        T, m = factor.T, factor.m
        T[:m] *= np.where(T.diagonal()[:m] < 0.0, -1.0, 1.0)[:, None]
        return factor

    def pullback(
        self,
        Y: np.ndarray,
        root: np.ndarray,
        E: np.ndarray,
        right: np.ndarray,
        inner: np.ndarray,
        terms: RowTerms,
    ) -> np.ndarray:
        """Return the derivatives in theta of a function of K_nS, K_SS, the latent variance and D.

            sum_ij W_ij dk(x_i, s_j) + sum_ij Z_ij dk(s_i, s_j)
            + sum_i a_i d latent(x_i) + sum_i b_i d noise(x_i)

        Here W = D^-1 F E + A B^T; F and D are defined in the module docstring, and the other
        matrices below.

        Parameters
        ----------
        Y : ndarray of shape (n, q)
            The targets of the strips that `terms` receives.
        root : ndarray of shape (m, m)
            The matrix G, lower triangular, in Fortran order; the leverages are the diagonal of
            F (G G^T)^-1 F^T.
        E : ndarray of shape (m, m)
            The matrix E.
        right : ndarray of shape (m, c)
            The matrix B.
        inner : ndarray of shape (m, m)
            The matrix Z.
        terms : callable
            ``terms(strip, leverage)`` returns the rows of the matrix A, and the weights a and b.
            It must be possible to send it to other processes.
        """
        if not self.kernel.theta.size:
            return np.zeros(0)
        total: np.ndarray = self._sum(_gradient_of_block, np.add, Y, root, E, right, terms)
        S = self.map.points
        return total + self.kernel.pullback(S, S, inner)  # K_SS has no noise

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B, where L L^T = K_SS."""
        return self.map.expansion_coefficients(B)

    def whiten_twice(self, B: np.ndarray) -> np.ndarray:
        """Return L^-T B L^-1 for a symmetric B, where L L^T = K_SS."""
        return self.whiten(self.whiten(B).T)

    def _sum(
        self, f: Callable[..., T], merge: Callable[[T, T], T], Y: np.ndarray, *shared: object
    ) -> T:
        """Merge the results f(rows, Q, *shared) of all blocks; an array is a single block.

        Q is this object without the points and their noise.  The noise of the rows is stored as
        their weights.
        """
        noise = self.noise if isinstance(self.noise, np.ndarray) else None
        if not isinstance(self.X, Blocks):
            return f(BlockRows(0, 0, self.X, Y, noise), self, *shared)
        Q = replace(self, X=None, noise=self.noise if noise is None else 0.0)
        result: T = with_targets(self.X, Y, noise).reduce(f, merge, Q, *shared)
        return result

    def map_strips(self, rows: BlockRows, task: Callable[[Strip], T]) -> Iterator[list[T]]:
        """Call `task` for all strips of a block; yield a list of results per group of strips."""
        phi, X, added = self.map, as_float64(rows.X), self.noise
        latent, D = latent_and_noise(self.kernel, X)
        D = D + (added if rows.weights is None else rows.weights)
        strips = slices(len(D), _strip_rows(len(phi) + rows.y.shape[1]))
        for first in range(0, len(strips), _TUNING.strips_per_merge):
            group = strips[first : first + _TUNING.strips_per_merge]
            results: dict[int, T] = {}

            def process_strip(
                i: int, group: list[slice] = group, results: dict[int, T] = results
            ) -> None:
                strip = group[i]
                F = np.empty((strip.stop - strip.start, len(phi)))
                phi._fill(X, strip, F)
                results[i] = task(Strip(take(X, strip), F, rows.y[strip], latent[strip], D[strip]))

            work = phi._work(group[-1].stop - group[0].start)
            run_in_threads(process_strip, range(len(group)), self.n_threads, work)
            yield [results[i] for i in range(len(group))]

    def _require_noise(self, n_noiseless: int) -> None:
        """Raise an error if the noise of some observations is 0."""
        if n_noiseless:
            raise ValueError(
                f"the noise of {n_noiseless} of {len(self)} observations is 0, but the landmark "
                f"approximation divides by it; add White() to the kernel, or set a noise (alpha) > "
                f"0"
            )


def _strip_rows(columns: int) -> int:
    """Return the number of rows per strip: at least twice the columns, so that merging is cheap."""
    return max(_TUNING.min_strip_rows, 2 * columns)


@one_blas_thread
def _factor_of_block(rows: BlockRows, Q: Projection, extra_noise: float) -> TriangularFactor:
    """Return the triangular factor of a block; that of the first block contains [I 0]."""
    m, q = len(Q.map), rows.y.shape[1]

    def factorize(strip: Strip) -> TriangularFactor:
        has_noise = strip.D > 0.0
        D = np.where(has_noise, strip.D, 1.0)  # noise of 0 is an error that `factorize` reports
        scaled = np.hstack([strip.F, strip.Y])
        scaled /= np.sqrt(D + extra_noise)[:, None]
        residual, latent = strip.residual, strip.latent
        lowest = residual.min(initial=0.0)
        np.maximum(residual, 0.0, out=residual)
        return TriangularFactor(
            np.asarray(np.linalg.qr(scaled, mode="r")),
            m,
            len(D) - int(has_noise.sum()),
            np.sum(np.log(D)),
            np.sum(residual / D),
            residual.sum(),
            latent.sum(),
            lowest,
            D.min(),
            -np.abs(latent).max(),
        )

    merged: list[TriangularFactor] = []
    if rows.start == 0:
        identity = np.diag(np.r_[np.ones(m), np.zeros(q)])
        merged = [TriangularFactor(identity, m, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.inf, 0.0)]
    for parts in Q.map_strips(rows, factorize):
        merged = [TriangularFactor.merge(*merged, *parts)]
    return merged[0]


@one_blas_thread
def _gradient_of_block(
    rows: BlockRows,
    Q: Projection,
    root: np.ndarray,
    E: np.ndarray,
    right: np.ndarray,
    terms: RowTerms,
) -> np.ndarray:
    """Return the sum over the points of a block in `Projection.pullback`."""

    def derivatives(strip: Strip) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        whitened = strip.F.copy()
        solve_triangular_rows(root, whitened)
        A, a, b = terms(strip, np.einsum("ij,ij->i", whitened, whitened))
        W = np.matmul(strip.F, E, out=whitened)
        W /= strip.D[:, None]
        W += A @ right.T
        return Q.kernel.pullback(strip.X, Q.map.points, W), a, b

    results = [part for parts in Q.map_strips(rows, derivatives) for part in parts]
    total = np.sum([gradient for gradient, _, _ in results], axis=0)
    a, b = (np.concatenate([part[i] for part in results]) for i in (1, 2))
    return np.asarray(total + diagonal_pullback(Q.kernel, as_float64(rows.X), a, b))


def describe_landmarks(Q: Projection) -> str:
    """Return a text with the number of landmarks, the number of dropped ones, and the jitter."""
    phi = Q.map
    text = f"{len(phi)} landmarks"
    text += f" ({phi.dropped} linearly dependent ones were dropped)" if phi.dropped else ""
    return text + (f", with {phi.jitter:.1e} k(s, s) added to the diagonal" if phi.jitter else "")


def rounding_certificate(Q: Projection) -> dict[str, float]:
    """Return the jitter and the number of dropped landmarks for the report, without zeros."""
    values = {"jitter": Q.map.jitter, "landmarks dropped": Q.map.dropped}
    return {name: value for name, value in values.items() if value}


# --- Objectives with inducing points.


@dataclass(frozen=True, eq=False)
class InducingPointObjective(Objective):
    """Base class of the objectives that use landmarks S (inducing points).

    The landmarks are chosen once, for the initial kernel, and do not change with theta.
    """

    rank: int | None = None
    landmarks: str | Points = "auto"
    random_state: RandomState = None
    max_memory: MemoryLimit = None
    n_threads: int | None = None
    candidates: Points | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel._require_resolved()
        try:
            as_generator(self.random_state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"random_state must be None, an integer of at least 0, or a generator, got "
                f"{self.random_state!r}"
            ) from error
        choice = self._landmark_choice
        needed = max(4 * choice.workspace(self._n_candidates), self.workspace())
        m = choice.count(len(self.Y))
        check_budget(needed, self.max_memory, f"{type(self).__name__} on {m} landmarks")

    def workspace(self) -> int:
        (n, q), m = self.Y.shape, self._landmark_choice.count(len(self.Y))
        return Projection.workspace(n, m, q, self.n_threads)

    @cached_property
    def points(self) -> Points:
        """The landmarks S, in the order in which they were chosen."""
        kernel, X, choice = self.kernel, self.candidates, self._landmark_choice
        if X is None and not isinstance(self.X, Blocks):
            kernel, X = as_index_kernel(kernel, self.X)
        elif X is None:
            seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
            X = sample_rows(self.X, self._n_candidates, int(seed)).X
        if choice.given or choice.count(length(X)) < length(X):
            X = choice.draw(without_noise(kernel), X, self.n_threads)
        return as_float64(as_csr(X))

    def _fixed_choices(self) -> dict[str, Any]:
        return {"landmarks": self.points}

    @property
    def _landmark_choice(self) -> Landmarks:
        """The method that chooses the landmarks."""
        rank = _TUNING.default_rank if self.rank is None else self.rank
        return Landmarks(rank, self.landmarks, self.random_state)

    @property
    def _n_candidates(self) -> int:
        """The number of points among which the landmarks are chosen."""
        n = len(self.Y)
        if self.candidates is not None:
            return length(self.candidates)
        if not isinstance(self.X, Blocks) or self._landmark_choice.given:
            return n
        m = self._landmark_choice.count(n)
        return min(n, max(DEFAULT_CANDIDATES, CANDIDATES_PER_LANDMARK * m))

    def _projection(self, theta: Theta) -> Projection:
        kernel = self._kernel_at(theta)
        return Projection.on(kernel, self.X, self.noise, self.points, self.n_threads)

    def _require_gradient(self) -> None:
        if self.kernel.theta.size and not self.kernel.domain.pullback_in_tiles:
            raise NotDifferentiableError(
                f"the derivatives of {self.kernel} can only be computed for the whole matrix k(X), "
                f"not for its tiles, but this solver does not store n x n numbers; use a mercer "
                f"kernel, solver='cholesky', or optimizer=None"
            )


@entry_point
@dataclass(frozen=True, eq=False)
class InducingBound(InducingPointObjective):
    """Variational lower bound on the log marginal likelihood, from m inducing points.

        log p(Y) >= sum_c log N(y_c | 0, Q + D) - q/2 tr D^-1 (K - Q),  Q = K_nS K_SS^-1 K_Sn

    Use it if there are too many points for the exact likelihood: an evaluation takes O(n m^2) time
    and O(n + m^2) memory.

    D is the noise, which K and Q do not contain.  S are the m inducing points, here called
    landmarks (Titsias).  The bound uses only the values of f at S.  It never exceeds log p, and
    equals log p for S = X.  Maximising it over theta therefore cannot exploit a poor approximation.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, including the noise as a `White` term if theta should contain it.
    X : points or Blocks
        The n observations, in memory or as `Blocks`.
    Y : array of shape (n,) or (n, q)
        The targets, an array in memory; the prior mean is 0.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K.  It is not part of theta.  The total noise, including
        `White` terms, must be positive.
    rank : int, optional
        The number m of landmarks; by default 500, or all points if there are fewer.  Short length
        scales and many input dimensions need more landmarks.  Increase it until the bound hardly
        changes, or until the warning of `posterior` disappears.
    landmarks : str or points, default="auto"
        "kmeans" (centroids, for a radial kernel on dense vectors), a method of
        `mercer.gram.choose_landmarks`, or the landmarks themselves.  "auto" uses "kmeans" where
        possible, and otherwise "rpcholesky".
    random_state : int, Generator, RandomState or None, default=None
        Random seed for choosing the landmarks; None means 0.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.
    n_threads : int, optional
        Number of threads; by default, all processors.  The result does not depend on it.
    candidates : points, optional
        The points among which the landmarks are chosen; by default X, or a random sample of the
        rows if X is `Blocks`.

    Attributes
    ----------
    points : points
        The landmarks S.

    See Also
    --------
    MarginalLikelihood : Exact likelihood, for fewer points.
    StochasticLikelihood : Estimate by conjugate gradients, without a bias from landmarks.
    mercer.gram.choose_landmarks : Choose landmarks.

    Notes
    -----
    If the variance that the landmarks do not explain is much larger than the noise, the trace term
    dominates the bound, and its optimum says little about the data.  `posterior` then warns.

    The landmarks are chosen once, for the initial kernel, and do not change with theta.  The points
    are processed in strips; no array is larger than n x q or m x m.  For `Blocks`, an evaluation
    reads the blocks once, or twice with its gradient.

    References
    ----------
    Titsias, "Variational learning of inducing variables in sparse Gaussian processes", AISTATS
    2009.

    Burt, Rasmussen and van der Wilk, "Convergence of sparse variational inference in Gaussian
    processes regression", JMLR 21, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import InducingBound, MarginalLikelihood
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> Y = np.sin(9 * X)
    >>> kernel = RBF(0.3) + White(0.1)
    >>> exact = MarginalLikelihood(kernel, X, Y).value()
    >>> for rank in 4, 8:
    ...     gap = exact - InducingBound(kernel, X, Y, rank=rank).value()
    ...     print(f"{rank} landmarks: {gap:.0e} below")
    4 landmarks: 2e+02 below
    8 landmarks: 2e-03 below
    """

    _accepts_blocks: ClassVar[bool] = True

    @one_blas_thread
    def _value(self, theta: Theta) -> float:
        return self._bound(self._projection(theta).factorize(self.Y))

    @one_blas_thread
    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        Q = self._projection(theta)
        factor = Q.factorize(self.Y)
        return self._bound(factor), self._gradient(Q, factor)

    @one_blas_thread
    def posterior(self, theta: Theta = None) -> Posterior:
        """Return the approximate mean and covariance of f given the data.

        The report contains a lower and an upper bound on log p.  The lower one is the objective,
        and the upper one is

            log p(Y) <= sum_c -1/2 (log det (Q + D) + y_c^T (Q + D + t I)^-1 y_c + n log 2 pi)

        with t = tr(K - Q), which is an upper bound on the eigenvalues of K - Q.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        Posterior
            The mean as an `Expansion` of q functions on the m landmarks, and the covariance as a
            `Conditioned` kernel.
        """
        watch = Stopwatch()
        Q = self._projection(theta)
        factor = Q.factorize(self.Y)
        lower, unexplained = self._bound(factor), factor.residual
        text = (
            f"{describe_landmarks(Q)}; they do not explain {unexplained:.3e} of the trace of K, "
            f"{factor.latent:.3e}"
        )
        _warn_poor_landmarks(Q, factor)
        shifted = Q.factorize(self.Y, extra_noise=unexplained)
        report = Report(
            solver=f"InducingBound(rank={len(Q.map)})",
            status=Status.APPROXIMATE,
            seconds=watch.seconds,
            message=text,
            certificate={
                "log p >=": lower,
                "log p <=": self._gaussian(factor, shifted.V),
                **rounding_certificate(Q),
            },
        )
        # For a precomputed kernel, Q.kernel takes indices; the posterior needs the user's kernel.
        kernel = self._kernel_at(theta)
        mean = Expansion(kernel, Q.map.points, Q.whiten(factor.weights))
        covariance = Conditioned(kernel, Q.map.points, Q.map.factor, factor.R.T)
        return Posterior(mean, covariance, report)

    def ridge(self, theta: Theta = None) -> LandmarkRidge:
        """Return the ridge regression on the landmarks whose predictions are the posterior mean.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        LandmarkRidge
            The problem with ridge penalty 1 and the inverse noise variances as weights, solved,
            from which prediction intervals can be computed.
        """
        Q = self._projection(theta)
        data = Q.X, self.Y, 1.0 / Q.total_noise
        problem = LandmarkRidge(Q.kernel, *data, np.ones(self.Y.shape[1]), intercept=False)
        path = NystroemPath(Q.map, *data, intercept=False, max_memory=self.max_memory)
        problem.calibrate(path.without_data(), *data)
        return problem

    # ------------------------------------------------------------------ computations

    def _gaussian(self, factor: TriangularFactor, V: np.ndarray) -> float:
        """Return sum_c log N(y_c | 0, Q + D), with y_c^T (Q + D)^-1 y_c from V^T V."""
        n, q = self.Y.shape
        fit = float(np.sum(V**2))
        return -0.5 * float(fit + q * (factor.logdet + n * np.log(2.0 * np.pi)))

    def _bound(self, factor: TriangularFactor) -> float:
        return self._gaussian(factor, factor.V) - 0.5 * self.Y.shape[1] * factor.ratio

    def _gradient(self, Q: Projection, factor: TriangularFactor) -> np.ndarray:
        """Return the gradient in theta.

        With alpha = (Q + D)^-1 Y, and A, F, L and w as in the module docstring, the
        derivatives of the bound are

        d/dQ = M = 1/2 (alpha alpha^T + q D^-1 F A^-1 F^T D^-1),    F^T alpha = w
        d/dK_nS = 2 M F L^-1 = (alpha w^T + q D^-1 F (I - A^-1)) L^-1
        d/dK_SS = -L^-T F^T M F L^-1 = -1/2 L^-T (w w^T + q (A - 2 I + A^-1)) L^-1
        """
        q, w, inverse = self.Y.shape[1], factor.weights, factor.inverse
        one, A = np.eye(len(w)), factor.R.T @ factor.R
        E = q * Q.whiten(one - inverse).T
        inner = -0.5 * Q.whiten_twice(w @ w.T + q * (A - 2.0 * one + inverse))
        root = np.asfortranarray(factor.R.T)
        return Q.pullback(self.Y, root, E, Q.whiten(w), inner, partial(_bound_terms, w))


def _bound_terms(
    w: np.ndarray, strip: Strip, leverage: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return alpha = (Q + D)^-1 Y, and the derivatives in latent variance and noise."""
    D, q = strip.D, strip.Y.shape[1]
    alpha = (strip.Y - strip.F @ w) / D[:, None]
    on_noise = 0.5 * np.einsum("ic,ic->i", alpha, alpha)
    on_noise += 0.5 * q * (np.maximum(strip.residual, 0.0) + leverage - D) / D**2
    return alpha, -0.5 * q / D, on_noise


def _warn_poor_landmarks(Q: Projection, factor: TriangularFactor) -> None:
    """Warn if the landmarks explain too little, or if rounding makes the bound inexact."""
    ratio = factor.ratio / len(Q)
    if ratio > _TUNING.max_residual_to_noise:
        warn_caller(
            f"{describe_landmarks(Q)} leave {ratio:.1e} times the noise unexplained, on average "
            f"over {len(Q)} points: this term dominates the bound, so that its optimal theta says "
            f"little about the data. The usual cause is noise in the data that the kernel does not "
            f"model. Add White() to the kernel, or try more landmarks (rank), or a larger alpha",
            ConvergenceWarning,
        )
    elif Q.lost > factor.lowest_noise:
        warn_caller(
            f"{describe_landmarks(Q)}, which may leave {Q.lost:.1e} of their variance unexplained, "
            f"but the smallest noise is {factor.lowest_noise:.1e}: the result is not exact even if "
            f"all points are landmarks. Try a larger alpha, or White() in the kernel",
            ConvergenceWarning,
        )
