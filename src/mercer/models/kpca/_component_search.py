"""Computation of the components of a kernel PCA, with the choice of solver and storage.

The components come from an exact eigensolver on the centred Gram matrix, or from the moments
(mean and scatter matrix) of features, given by landmarks or random Fourier features.
Moments of blocks of points can be added without loss of accuracy.  Negative eigenvalues of an
indefinite matrix are an error, or are repaired (`repair_spectrum`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    budget_in_bytes,
    check_budget,
    check_threads,
    entry_point,
    length,
    same_points,
    warn_caller,
)
from ...blocks import Blocks
from ...gram import (
    CentredGram,
    DistributedGram,
    FourierMap,
    Landmarks,
    TiledGram,
    gram,
    working_bytes,
)
from ...kernels import Kernel, Precomputed
from ...solvers import (
    EIGEN,
    LOW_MEMORY_KRYLOV,
    BlockKrylov,
    DenseEigen,
    EigenPairs,
    FourierEigen,
    LowRankEigen,
    Moments,
    Plan,
    canonical_signs,
    certify,
    choose,
    dense_eigen_bytes,
    eigenpairs_of_moments,
    eigenpairs_of_points,
    feature_moments,
    feature_solver_bytes,
    plan_eigenproblem,
    prefers_dense_eigen,
)
from ._components import Components, rounding_floor

# --- Validation of the eigenvalues, and repair of indefinite spectra.

INDEFINITE_POLICIES = ("raise", "clip", "flip", "shift")


def check_psd_eigenvalues(values: np.ndarray, uncentred_trace: float) -> np.ndarray:
    """Return the eigenvalues of a positive semidefinite matrix, with rounding errors set to 0.

    Parameters
    ----------
    values : ndarray of shape (k,)
        The computed eigenvalues of the centred kernel matrix.
    uncentred_trace : float
        The trace of the matrix before centring, which determines the size of rounding errors.

    Returns
    -------
    ndarray of shape (k,)
        The eigenvalues; those below `rounding_floor` are set to 0.

    Raises
    ------
    ValueError
        If an eigenvalue is significantly negative: below -1e-5 times the largest one (-5e-3 in
        float32).
    """
    is_float32 = values.dtype == np.float32
    max_negative = 5e-3 if is_float32 else 1e-5
    rounding = float(np.finfo(values.dtype).eps) * uncentred_trace
    largest, smallest = values.max(initial=0.0), values.min(initial=0.0)
    if smallest < -10.0 * rounding:
        if largest <= rounding:
            raise ValueError(
                f"All eigenvalues are negative (the largest is {values.max():.3g}): "
                f"the kernel is not positive semidefinite on these points; choose another kernel"
            )
        if smallest < -max_negative * largest:
            raise ValueError(
                f"There are significant negative eigenvalues ({-smallest / largest:g} of the "
                f"maximum positive). Either the kernel is not positive semidefinite on these "
                f"points (the sigmoid kernel usually is not), or the matrix is not a kernel "
                f"matrix. Request fewer components, choose another kernel, or choose how to repair "
                f"the spectrum: indefinite='clip', 'flip' or 'shift'"
            )
    values = values.copy()
    values[values < rounding_floor(values, largest, uncentred_trace)] = 0.0
    return values


def repair_spectrum(
    pairs: EigenPairs, policy: str, uncentred_trace: float
) -> tuple[EigenPairs, np.ndarray]:
    """Change the spectrum of an indefinite matrix so that all eigenvalues are nonnegative.

    Returns the changed eigenpairs, and the factors c of the scores, for each eigenvalue l:

    ======= ============================ =================================
    policy  new eigenvalue               factor c of the scores
    ======= ============================ =================================
    clip    max(l, 0)                    1 / sqrt(l)
    flip    |l|                          sign(l) / sqrt(|l|)
    shift   l - min l                    sqrt(l - min l) / l
    ======= ============================ =================================

    The score of x on component j is c_j u_j^T k_c(x), where u_j is the eigenvector and k_c(x)
    contains the centred kernel values of x and the training points.  For the training points it is
    u_j sqrt(l_j), with the new eigenvalue l_j; the same linear map is applied to new points.
    """
    eigenvalues = pairs.values.astype(float)
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    floor = rounding_floor(eigenvalues, largest, uncentred_trace)
    if policy == "clip":
        repaired = np.maximum(eigenvalues, 0.0)
    elif policy == "flip":
        repaired = np.abs(eigenvalues)
    else:
        lowest = float(eigenvalues.min(initial=0.0))
        shift = -lowest if lowest < -floor else 0.0
        # Centring makes the constant vector an eigenvector with eigenvalue 0.  This eigenvalue is
        # not shifted, because the constant vector is not a direction of variance.
        repaired = np.where(np.abs(eigenvalues) > floor, eigenvalues + shift, 0.0)
    repaired[repaired < floor] = 0.0
    has_variance = (repaired > 0) & (np.abs(eigenvalues) > floor)
    score_factors = np.zeros_like(repaired)
    np.divide(np.sqrt(repaired), eigenvalues, out=score_factors, where=has_variance)
    order = np.argsort(-repaired, kind="stable")
    values, residuals = repaired[order], pairs.residuals[order]
    vectors, slack = pairs.vectors[:, order], pairs.certificate.slack
    certificate = certify(values, residuals, len(values), slack=slack, following=-np.inf)
    changed = {"values": values, "vectors": vectors, "residuals": residuals}
    return replace(pairs, certificate=certificate, **changed), score_factors[order]


def inverse_sqrt(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(l) for each eigenvalue l, and 0 where l is 0."""
    roots = np.sqrt(values)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)


def n_components_for(values: np.ndarray, total: float, wanted: int | float | None) -> int:
    """Return the number of components that satisfies the request `wanted`.

    Parameters
    ----------
    values : ndarray
        The eigenvalues, in descending order.
    total : float
        The total variance.
    wanted : int, float or None
        A number of components, a fraction of the variance in (0, 1), or None for all.
    """
    n = len(values)
    if wanted is None:
        return n
    if wanted < 1:
        if not total > 0:
            return min(n, 1)
        reached = np.cumsum(values) >= wanted * total * (1.0 - 1e-12)
        return int(np.argmax(reached)) + 1 if reached.any() else n
    return min(n, int(wanted))


# --- The search for the components.

# If a fraction of the variance is requested, this many components are computed first; the number is
# doubled until the fraction is reached.
_INITIAL_COMPONENTS = 16
# If the number of components depends on the spectrum, landmarks are chosen for this many
# components.
_EXPECTED_COMPONENTS = 50


class ComponentSearchResult(NamedTuple):
    """The result of `ComponentSearch`: the components, and how they were computed."""

    components: Components
    solver: Any
    held: str  # repr of the Gram matrix or feature map, for the summary
    weight: float | None  # sum of the sample weights; None without weights
    errors: np.ndarray | None = None  # reconstruction errors of the training points, if available


@entry_point
@dataclass(frozen=True, eq=False)
class ComponentSearch:
    """Computes the components of a kernel PCA; the parameters are those of `KernelPCA`.

    If `drop_zeros` is True, components without variance are removed.  `log` is a function that is
    called with lines of progress text.  `workers` are blocks, whose workers compute the products
    with K (`DistributedGram`).
    """

    n_components: int | float | None = None
    eigen_solver: Any = "auto"
    tol: float = 0.0
    max_iter: int | None = None
    iterated_power: int | str = "auto"
    storage: str = "auto"
    indefinite: str = "raise"
    drop_zeros: bool = False
    landmarks: Landmarks = Landmarks()  # noqa: RUF009
    max_memory: Any = None
    log: Callable[[str], None] | None = None
    workers: Blocks | None = None

    @property
    def by_features(self) -> bool:
        """Whether the eigensolver works on features, and can therefore process points in blocks."""
        spec = self.eigen_solver
        named = isinstance(spec, str) and spec in ("nystroem", "features")
        return named or isinstance(spec, (LowRankEigen, FourierEigen))

    def check(self) -> None:
        """Raise an error if parameters contradict each other."""
        if self.by_features and self.indefinite != "raise":
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, which landmarks and "
                f"random features do not provide; use eigen_solver='dense' or 'auto'"
            )

    def plan(self, kernel: Kernel, X: Points) -> Plan:
        """Return the plan that `fit` follows: solver and storage, without evaluating K."""
        spec, wanted = self.eigen_solver, self.n_components
        if self.indefinite != "raise":
            spec, wanted = ("dense" if spec in ("auto", "exact") else spec), None
        if isinstance(X, Blocks) and not self.by_features:
            spec = "krylov"
        return plan_eigenproblem(
            kernel,
            X,
            wanted,
            self.storage,
            spec=spec,
            features=self._feature_solver() if self.by_features else None,
            rank=self.landmarks.rank,
            max_memory=self.max_memory,
        )

    def fit(self, kernel: Kernel, X: Points, weights: np.ndarray | None) -> ComponentSearchResult:
        """Compute the components of the points X."""
        run = self._fit_features if self.by_features else self._fit_exact
        return run(kernel, X, weights)

    # ------------------------------------------------------------------ exact solvers

    def _fit_exact(
        self, kernel: Kernel, X: Points, weights: np.ndarray | None
    ) -> ComponentSearchResult:
        """Compute the components with an eigensolver on the centred Gram matrix."""
        n, needs_all = length(X), self.indefinite != "raise"
        wanted = n if self.n_components is None or needs_all else self.n_components
        spec, storage = self._choose_solver_and_storage(kernel, X)
        K = gram(kernel, X, storage=storage, max_memory=self.max_memory, workers=self.workers)
        centred = CentredGram(K, weights)
        solver = self._exact_solver(centred, spec, wanted)
        if needs_all and not isinstance(solver, DenseEigen):
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, which {solver} does not "
                f"compute; use eigen_solver='dense' or 'auto'"
            )
        if self.log is not None:
            self.log(f"{wanted:g} components of {K!r} by {solver}")
        pairs = self._leading_pairs(centred, solver, wanted)
        if self.log is not None:
            residual = pairs.report.residual
            self.log(f"largest residual: {residual:.1e}, relative to the largest eigenvalue")
        components = self._exact_components(centred, pairs, X)
        return _search_result(components, solver, repr(K), weights, centred.squared_distances())

    def _choose_solver_and_storage(self, kernel: Kernel, X: Points) -> tuple[Any, str]:
        """Return the eigensolver and the storage for the parameters and the memory budget."""
        spec, storage = self.eigen_solver, self.storage
        if not isinstance(spec, str) or spec not in ("auto", "krylov"):
            return spec, storage
        if spec == "krylov" and storage != "auto":
            return spec, storage
        if spec == "krylov":
            chosen = self.plan(kernel, X).chosen
            return spec, storage if chosen is None else chosen.storage
        if self.indefinite != "raise" or prefers_dense_eigen(kernel, X, storage, self.max_memory):
            return "dense", "dense"
        chosen = self.plan(kernel, X).require()
        if not chosen.low_memory:
            return chosen.solver, chosen.storage
        return replace(LOW_MEMORY_KRYLOV, **self._iteration), chosen.storage

    @property
    def _iteration(self) -> dict[str, Any]:
        """The options of iterative solvers."""
        return {"tol": self.tol, "max_iter": self.max_iter, "random_state": self._seed}

    def _exact_solver(self, centred: CentredGram, spec: Any, wanted: Any) -> Any:
        """Return the eigensolver for a name, or the user-supplied one."""
        n = centred.shape[0]
        is_partial = self.indefinite != "raise" or wanted < n
        if isinstance(spec, str) and spec == "arpack" and not is_partial:
            warn_caller(
                f"ARPACK can compute at most n - 1 eigenpairs, but {wanted} of n = {n} were "
                f"requested; the dense solver is used instead"
            )
            spec = "dense"
        k = None if wanted == n else wanted
        return choose(EIGEN, centred, spec, k=k, n_iter=self.iterated_power, **self._iteration)

    def _leading_pairs(self, centred: CentredGram, solver: Any, wanted: int | float) -> EigenPairs:
        """Return the requested leading eigenpairs.

        If a fraction of the variance is requested, the number of eigenpairs is doubled until they
        explain this fraction.
        """
        n = centred.shape[0]

        def run(k: int, start: np.ndarray | None = None) -> EigenPairs:
            chosen = fit_solver_to_budget(solver, centred.gram, k, self.max_memory)
            kwargs: dict[str, Any] = {} if start is None else {"start": start}
            if isinstance(chosen, DenseEigen) and self.indefinite == "raise":
                kwargs["keep"] = n_kept  # residuals are computed only for these components
            return chosen.eigenpairs(centred, k, overwrite=True, log=self.log, **kwargs)

        def n_kept(values: np.ndarray) -> int:
            k = n_components_for(values, centred.trace(), wanted) if wanted < 1 else len(values)
            uncentred_trace = float(np.abs(centred.uncentred_diagonal).sum())
            if self.drop_zeros:
                k = min(k, int(np.sum(check_psd_eigenvalues(values, uncentred_trace) > 0)))
            return max(1, k)

        if wanted >= 1:
            return run(min(n, int(wanted)))
        k = n if isinstance(solver, DenseEigen) else min(n, _INITIAL_COMPONENTS)
        pairs = run(k)
        while k < n:
            explained = float(pairs.values.sum()) / max(centred.trace(), 1e-300)
            if self.log is not None:
                self.log(f"{k} components explain {explained:.2%} of the variance")
            if explained >= wanted:
                break
            k = min(n, 2 * k)
            pairs = run(k, pairs.vectors)
        return pairs.first(n_components_for(pairs.values, centred.trace(), wanted))

    def _exact_components(
        self, centred: CentredGram, pairs: EigenPairs, points: Points
    ) -> Components:
        """Validate or repair the spectrum; return the components as expansions in all points."""
        uncentred_trace = float(np.abs(centred.uncentred_diagonal).sum())
        if self.indefinite == "raise":
            pairs = replace(pairs, values=check_psd_eigenvalues(pairs.values, uncentred_trace))
            score_factors, total, k = inverse_sqrt(pairs.values), centred.trace(), len(pairs.values)
            if pairs.values.sum() > total + 1e-8 * (uncentred_trace + abs(total)):
                message = (
                    f"{pairs.report.message} the sum of the computed eigenvalues exceeds the trace "
                    f"{total:.6g}: the matrix has negative eigenvalues, so the explained variance "
                    f"and the errors are not reliable; see the parameter `indefinite`"
                )
                pairs = replace(pairs, report=replace(pairs.report, message=message))
        else:
            pairs, score_factors = repair_spectrum(pairs, self.indefinite, uncentred_trace)
            total = float(pairs.values.sum())
            k = n_components_for(pairs.values, total, self.n_components)
        if self.drop_zeros:
            k = min(k, int(np.sum(pairs.values > 0)))
        pairs = pairs.first(k)
        # With weights, choose the signs that repeated points would give.
        if np.any(centred.scale != centred.scale[0]):
            signs = canonical_signs(pairs.vectors / centred.scale[:, None])
            pairs = replace(pairs, vectors=pairs.vectors * signs)
        return Components.exact(centred, pairs, points, score_factors[:k], total)

    # ------------------------------------------------------------------ features

    def _fit_features(
        self, kernel: Kernel, X: Points, weights: np.ndarray | None
    ) -> ComponentSearchResult:
        """Compute the components from landmarks or random features."""
        solver, n = self._feature_solver(), length(X)
        self._check_rank(solver, X)
        expected, is_precomputed = self._expected_components(n), isinstance(kernel, Precomputed)
        needed = feature_solver_bytes(solver, X, expected, self.n_components, is_precomputed)
        check_budget(needed, self.max_memory, f"{solver} of {n} points")
        scale = np.ones(n) if weights is None else weights * (n / weights.sum())
        pairs = eigenpairs_of_points(
            solver,
            kernel,
            X,
            lambda values, total: min(n, self._n_components(values, total)),
            expected=expected,
            weights=None if weights is None else scale,
            log=self.log,
        )
        components = Components.from_features(pairs, np.sqrt(scale), drop_zeros=self.drop_zeros)
        if weights is not None:  # restore the original scale, so that later blocks can be added
            components = components.with_moments(pairs.basis.moments.times(weights.sum() / n))
        self._check_variance(components)
        basis = pairs.basis
        return _search_result(components, solver, repr(basis.map), weights, basis.distances)

    def rank(self, n: int) -> int:
        """Return the number of landmarks or features for n points."""
        return int(self._feature_solver().features(n, self._expected_components(n)))

    def begin(self, kernel: Kernel, X: Points) -> tuple[Any, Any]:
        """Return the solver and the feature map, which is chosen from the first block X."""
        solver = self._feature_solver()
        self._check_rank(solver, X)
        return solver, solver.map(kernel, X, self._expected_components(length(X)))

    def moments(self, phi: Any, X: Points, weights: np.ndarray | None) -> Moments:
        """Return the moments of the features of a block of points."""
        return feature_moments(phi, X, weights, log=self.log)

    def components_from_moments(
        self, solver: Any, phi: Any, moments: Moments
    ) -> ComponentSearchResult:
        """Return the components from the moments of the features."""
        scaled = moments.times(moments.rows / moments.weight)
        pairs = eigenpairs_of_moments(solver, phi, scaled, self._n_components)
        components = Components.from_features(pairs, None, drop_zeros=self.drop_zeros)
        components = components.with_moments(moments)
        return ComponentSearchResult(components, solver, repr(phi), moments.weight)

    def _feature_solver(self) -> Any:
        """Return the eigensolver on landmarks or random features."""
        spec = self.eigen_solver
        if not isinstance(spec, str):
            return spec
        if spec != "features":
            return LowRankEigen(self.landmarks.rank, self.landmarks.method, self._seed)
        seed = self._seed
        if isinstance(seed, np.random.RandomState):  # SciPy's Sobol sampler does not accept it
            seed = int(seed.randint(2**31 - 1))
        return FourierEigen(rank=self.landmarks.rank, random_state=seed)

    @property
    def _seed(self) -> Any:
        """The random seed; 0 if `random_state` is None."""
        seed = self.landmarks.random_state
        return 0 if seed is None else seed

    def _check_rank(self, solver: Any, X: Points) -> None:
        """Raise an error if there are too few points or features for the requested components."""
        n = length(X)
        if isinstance(solver, FourierEigen) and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                "random features require vectors, but these points are not vectors; "
                "use eigen_solver='nystroem'"
            )
        if isinstance(solver, LowRankEigen):
            advice = "use more points (partial_fit chooses them from the first block)"
            solver.choice(1).require(n, advice)
        wanted, n_features = self.n_components, solver.features(n, self._expected_components(n))
        if wanted is not None and min(wanted, n) > n_features:
            raise ValueError(
                f"{wanted} components are requested, but there are only {n_features} landmarks or "
                f"features; increase rank, or request fewer components"
            )

    def _check_variance(self, components: Components) -> None:
        """Warn if all components together explain less than the requested fraction of variance."""
        wanted = self.n_components
        if wanted is None or wanted >= 1 or not components.total > 0:
            return
        explained = float(components.values.sum()) / components.total
        if explained < wanted * (1.0 - 1e-9):
            warn_caller(
                f"all {len(components.values)} components of the landmarks or features explain "
                f"{explained:.2%} of the variance, less than the requested {wanted:.2%}; increase "
                f"rank"
            )

    def _expected_components(self, n: int) -> int:
        """Return the number of components that is assumed when landmarks are chosen."""
        wanted = self.n_components
        return min(n, _EXPECTED_COMPONENTS if wanted is None or wanted < 1 else int(wanted))

    def _n_components(self, values: np.ndarray, total: float) -> int:
        """Return the number of components to keep, given the eigenvalues from all features."""
        return n_components_for(values, total, self.n_components)


def _search_result(
    components: Components,
    solver: Any,
    held: str,
    weights: np.ndarray | None,
    distances: np.ndarray,
) -> ComponentSearchResult:
    """Return the result, with the errors of training points at these `distances` from the mean."""
    errors = components.reconstruction_errors(distances, np.asarray(components.scores))
    weight = None if weights is None else float(weights.sum())
    return ComponentSearchResult(components, solver, held, weight, errors)


def same_feature_map(a: Any, b: Any) -> bool:
    """Whether two feature maps are the same, so that moments of their features can be added."""
    if type(a) is not type(b):
        return False
    if isinstance(a, FourierMap):
        return bool(a.basis == b.basis)
    return len(a) == len(b) and same_points(a.points, b.points)


def fit_solver_to_budget(solver: Any, K: Any, k: int, max_memory: MemoryLimit) -> Any:
    """Return the solver, with a smaller workspace if the memory budget requires it.

    Raises a MemoryBudgetError if k components of K do not fit at all.
    """
    n = K.shape[0]
    if isinstance(K, (TiledGram, DistributedGram)):
        matrix_bytes = working_bytes(K.kernel, K.X, None, k + 16, check_threads(K.n_threads))
    else:
        matrix_bytes = 8 * n * n
    # User-defined solvers may not have a method `workspace`.
    workspace = getattr(solver, "workspace", lambda n, k: 0)
    if isinstance(solver, BlockKrylov) and matrix_bytes + workspace(n, k) > budget_in_bytes(
        max_memory
    ):
        solver = replace(solver, rank=0, prove=False)
        workspace = solver.workspace
    name, needed = f"{solver}", matrix_bytes + workspace(n, k)
    if isinstance(solver, DenseEigen):
        name, needed = "a dense eigenproblem", dense_eigen_bytes(n, k)
    check_budget(needed, max_memory, f"{name} of {n} points, {k} components,")
    return solver
