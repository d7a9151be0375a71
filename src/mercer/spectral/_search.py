"""The search for the components: which solver, how K is held, how many to keep.

By an exact eigensolver on the centred Gram; or by features, of landmarks or random waves, whose
moments add up exactly over blocks of points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._errors import warn_caller
from .._points import length, same_points
from .._runtime import check_budget, entry_point
from ..gram import CentredGram, FourierMap, Landmarks, gram
from ..kernels import Kernel, Precomputed
from ..solvers import (
    EIGEN,
    DenseEigen,
    EigenPairs,
    FourierEigen,
    LowRankEigen,
    Moments,
    choose,
    eigenpairs_of_moments,
    eigenpairs_of_points,
    moments_of,
    signs_of,
)
from ._components import Components
from ._plan import LEAN, Plan, affordable, feature_bytes, fits_dense, make_plan
from ._spectrum import checked_spectrum, gains_of, how_many, mended

__all__ = ["ComponentSearch", "Found", "same_map"]

_FIRST = 16  # components tried first when a share of the variance is asked for
_FEW = 500  # points for which LAPACK is the quickest in any case
_UNKNOWN = 50  # components expected when their number depends on the spectrum


class Found(NamedTuple):
    """What a search has found, and by what; `errors` are those of the points, if these are held."""

    components: Components
    solver: Any
    held: str
    weight: float | None  # the sum of the weights
    errors: np.ndarray | None = None


@entry_point
@dataclass(frozen=True, eq=False)
class ComponentSearch:
    """What is wanted of a kernel PCA; the parameters are those of the estimator."""

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
    say: Callable[[str], None] | None = None

    @property
    def by_features(self) -> bool:
        """Whether the eigensolver works on features, and can take in points in blocks."""
        spec = self.eigen_solver
        named = isinstance(spec, str) and spec in ("nystroem", "features")
        return named or isinstance(spec, (LowRankEigen, FourierEigen))

    def check(self) -> None:
        """Refuse wishes that exclude each other."""
        if self.by_features and self.indefinite != "raise":
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, and landmarks or random "
                f"features a positive semidefinite kernel; use eigen_solver='dense' or 'auto'"
            )

    def plan(self, kernel: Kernel, X: Any) -> Plan:
        """Return what each method would cost for these points, before anything is allocated."""
        rank = self.landmarks.rank
        return make_plan(kernel, X, self.n_components, self.storage, rank, self.max_memory)

    def fit(self, kernel: Kernel, X: Any, weights: np.ndarray | None) -> Found:
        """Find the components of the points X."""
        run = self._by_features if self.by_features else self._exact
        return run(kernel, X, weights)

    # ------------------------------------------------------------------ exact solvers

    def _exact(self, kernel: Kernel, X: Any, weights: np.ndarray | None) -> Found:
        n, whole = length(X), self.indefinite != "raise"
        wanted = n if self.n_components is None or whole else self.n_components
        spec, storage = self._planned(kernel, X)
        K = gram(kernel, X, storage=storage, max_memory=self.max_memory)
        centred = CentredGram(K, weights)
        solver = self._exact_solver(centred, spec, wanted)
        if whole and not isinstance(solver, DenseEigen):
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, which {solver} does not "
                f"find; use eigen_solver='dense' or 'auto'"
            )
        if self.say is not None:
            self.say(f"{wanted:g} components of {K!r} by {solver}")
        pairs = self._leading_pairs(centred, solver, wanted)
        if self.say is not None:
            residual = pairs.report.residual
            self.say(f"largest residual {residual:.1e} of the largest eigenvalue")
        parts = self._exact_components(centred, pairs, X)
        errors = parts.left(centred.squared_distances(), np.asarray(parts.scores))
        weight = None if weights is None else float(weights.sum())
        return Found(parts, solver, repr(K), weight, errors)

    def _planned(self, kernel: Kernel, X: Any) -> tuple[Any, str]:
        """Return the eigensolver and the storage that the parameters and the budget ask for."""
        spec, storage = self.eigen_solver, self.storage
        if isinstance(spec, str) and (spec, storage) == ("krylov", "auto"):
            ways = [way for way in self.plan(kernel, X).options if way.eigen_solver == spec]
            storage = next((way.storage for way in ways if way.fits), storage)
        if not (isinstance(spec, str) and spec == "auto"):
            return spec, storage
        few = length(X) <= _FEW and storage == "auto"
        if self.indefinite != "raise" or (few and fits_dense(kernel, X, self.max_memory)):
            return "dense", "dense"
        chosen = self.plan(kernel, X).require()
        if not chosen.lean:
            return chosen.eigen_solver, chosen.storage
        options = {"tol": self.tol, "max_iter": self.max_iter, "random_state": self._seed}
        return replace(LEAN, **options), chosen.storage

    def _exact_solver(self, centred: CentredGram, spec: Any, wanted: Any) -> Any:
        n = centred.shape[0]
        few = self.indefinite != "raise" or wanted < n
        if isinstance(spec, str) and spec == "arpack" and not few:
            warn_caller(
                f"ARPACK finds fewer than n eigenpairs, but {wanted} of n = {n} are asked for; "
                f"the dense solver is used"
            )
            spec = "dense"
        return choose(
            EIGEN,
            centred,
            spec,
            k=None if wanted == n else wanted,
            tol=self.tol,
            max_iter=self.max_iter,
            n_iter=self.iterated_power,
            random_state=self._seed,
        )

    def _leading_pairs(self, centred: CentredGram, solver: Any, wanted: int | float) -> EigenPairs:
        """Return as many eigenpairs as are wanted; for a share of the variance, in growing sets."""
        n = centred.shape[0]

        def run(k: int, start: np.ndarray | None = None) -> EigenPairs:
            chosen = affordable(solver, centred.gram, k, self.max_memory)
            more: dict[str, Any] = {} if start is None else {"start": start}
            if isinstance(chosen, DenseEigen) and self.indefinite == "raise":
                more["keep"] = keep  # of what is dropped no residuals are computed
            return chosen.eigenpairs(centred, k, overwrite=True, say=self.say, **more)

        def keep(values: np.ndarray) -> int:
            k = how_many(values, centred.trace(), wanted) if wanted < 1 else len(values)
            size = float(np.abs(centred.uncentred_diagonal).sum())
            positive = int(np.sum(checked_spectrum(values, size) > 0)) if self.drop_zeros else k
            return max(1, min(k, positive))

        if wanted >= 1:
            return run(min(n, int(wanted)))
        k = n if isinstance(solver, DenseEigen) else min(n, _FIRST)
        pairs = run(k)
        while k < n:
            reached = float(pairs.values.sum()) / max(centred.trace(), 1e-300)
            if self.say is not None:
                self.say(f"{k} components explain {reached:.2%}")
            if reached >= wanted:
                break
            k = min(n, 2 * k)
            pairs = run(k, pairs.vectors)
        return pairs.first(how_many(pairs.values, centred.trace(), wanted))

    def _exact_components(self, centred: CentredGram, pairs: EigenPairs, points: Any) -> Components:
        """Check or mend the spectrum, and return the components in all points."""
        size = float(np.abs(centred.uncentred_diagonal).sum())
        if self.indefinite == "raise":
            pairs = replace(pairs, values=checked_spectrum(pairs.values, size))
            gains, total, k = gains_of(pairs.values), centred.trace(), len(pairs.values)
            if pairs.values.sum() > total + 1e-8 * (size + abs(total)):
                message = (
                    f"{pairs.report.message} the eigenvalues printed add up to more than the trace "
                    f"{total:.6g} of all: there are negative ones, and shares and errors mean "
                    f"little; see indefinite="
                )
                pairs = replace(pairs, report=replace(pairs.report, message=message))
        else:
            pairs, gains = mended(pairs, self.indefinite, size)
            total = float(pairs.values.sum())
            k = how_many(pairs.values, total, self.n_components)
        if self.drop_zeros:
            k = min(k, int(np.sum(pairs.values > 0)))
        pairs = pairs.first(k)
        if np.any(centred.scale != centred.scale[0]):  # the signs that repeated points would have
            signs = signs_of(pairs.vectors / centred.scale[:, None])
            pairs = replace(pairs, vectors=pairs.vectors * signs)
        return Components.exact(centred, pairs, points, gains[:k], total)

    # ------------------------------------------------------------------ features

    def _by_features(self, kernel: Kernel, X: Any, weights: np.ndarray | None) -> Found:
        solver, n = self._feature_solver(), length(X)
        self._check_rank(solver, X)
        given = isinstance(kernel, Precomputed)
        needed = feature_bytes(solver, X, self._expected(n), self.n_components, given)
        check_budget(needed, self.max_memory, f"{solver} of {n} points")
        scale = np.ones(n) if weights is None else weights * (n / weights.sum())
        pairs = eigenpairs_of_points(
            solver,
            kernel,
            X,
            lambda values, total: min(n, self._count(values, total)),
            expected=self._expected(n),
            weights=None if weights is None else scale,
            say=self.say,
        )
        parts = Components.of_features(pairs, np.sqrt(scale), drop_zeros=self.drop_zeros)
        if weights is not None:  # as they were given, for points to come
            parts = parts.with_moments(pairs.basis.moments.times(weights.sum() / n))
        self._check_share(parts)
        errors = parts.left(pairs.basis.distances, np.asarray(parts.scores))
        weight = None if weights is None else float(weights.sum())
        return Found(parts, solver, repr(pairs.basis.map), weight, errors)

    def rank(self, n: int) -> int:
        """Return the number of landmarks or features for n points."""
        return int(self._feature_solver().features(n, self._expected(n)))

    def begin(self, kernel: Kernel, X: Any) -> tuple[Any, Any]:
        """Return the solver and the feature map that a first block of points fixes."""
        solver = self._feature_solver()
        self._check_rank(solver, X)
        return solver, solver.map(kernel, X, self._expected(length(X)))

    def moments(self, phi: Any, X: Any, weights: np.ndarray | None) -> Moments:
        """Return the moments of the features of a block of points."""
        return moments_of(phi, X, weights, say=self.say)

    def read_out(self, solver: Any, phi: Any, moments: Moments) -> Found:
        """Return the components of points of which only the moments are left."""
        scaled = moments.times(moments.rows / moments.weight)
        pairs = eigenpairs_of_moments(solver, phi, scaled, self._count)
        parts = Components.of_features(pairs, None, drop_zeros=self.drop_zeros)
        return Found(parts.with_moments(moments), solver, repr(phi), moments.weight)

    def _feature_solver(self) -> Any:
        spec = self.eigen_solver
        if not isinstance(spec, str):
            return spec
        if spec != "features":
            return LowRankEigen(self.landmarks.rank, self.landmarks.method, self._seed)
        seed = self._seed
        if isinstance(seed, np.random.RandomState):  # no source for SciPy's Sobol points
            seed = int(seed.randint(2**31 - 1))
        return FourierEigen(rank=self.landmarks.rank, random_state=seed)

    @property
    def _seed(self) -> Any:
        seed = self.landmarks.random_state
        return 0 if seed is None else seed

    def _check_rank(self, solver: Any, X: Any) -> None:
        n = length(X)
        if isinstance(solver, FourierEigen) and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                "random features are functions of vectors, and these points are none; "
                "use eigen_solver='nystroem'"
            )
        if isinstance(solver, LowRankEigen):
            more = "give more points (partial_fit takes them from the first block)"
            solver.choice(1).require(n, more)
        wanted, most = self.n_components, solver.features(n, self._expected(n))
        if wanted is not None and min(wanted, n) > most:
            raise ValueError(
                f"{wanted} components are asked for, but there are {most} landmarks or features; "
                f"raise rank, or ask for fewer"
            )

    def _check_share(self, parts: Components) -> None:
        wanted = self.n_components
        if wanted is None or wanted >= 1 or not parts.total > 0:
            return
        reached = float(parts.values.sum()) / parts.total
        if reached < wanted * (1.0 - 1e-9):
            warn_caller(
                f"all {len(parts.values)} components of the landmarks or features explain "
                f"{reached:.2%} of the variance, less than the {wanted:.2%} asked for; raise rank"
            )

    def _expected(self, n: int) -> int:
        """Return the number of components to choose landmarks for."""
        wanted = self.n_components
        return min(n, _UNKNOWN if wanted is None or wanted < 1 else int(wanted))

    def _count(self, values: np.ndarray, total: float) -> int:
        """Return the number of components to keep, of all eigenvalues that a feature map has."""
        return how_many(values, total, self.n_components)


def same_map(a: Any, b: Any) -> bool:
    """Tell whether two feature maps are the same, so that moments of their features add up."""
    if type(a) is not type(b):
        return False
    if isinstance(a, FourierMap):
        return bool(a.basis == b.basis)
    return len(a) == len(b) and same_points(a.points, b.points)
