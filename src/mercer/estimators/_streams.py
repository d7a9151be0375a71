"""Kernel PCA of points that are seen once, in blocks: landmarks or features, and moments."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._points import length, same_points
from .._runtime import check_budget
from ..expansion import Expansion
from ..gram import FourierMap, gram
from ..kernels import Kernel, Precomputed
from ..solvers import FourierEigen, LowRankEigen, Moments
from ..solvers._lowrank import eigenpairs_of_moments, eigenpairs_of_points, moments_of
from ._components import Components
from ._inverse import Inverse
from ._plan import block_bytes
from ._spectrum import how_many

__all__ = ["Streams"]

_UNKNOWN = 50  # components that landmarks are chosen for, when their number depends on the spectrum


class Streams(Inverse):
    """The part of KernelPCA that works on features: at once, in blocks, and merged."""

    _learn: Any
    _forget: Any
    _weighted: Any
    gamma_: Any

    def _can_stream(self) -> bool:
        if self._precomputed:
            raise ValueError("partial_fit needs points, not a precomputed kernel matrix")
        if not self._by_features and self.eigen_solver != "auto":
            raise ValueError(
                f"partial_fit needs eigen_solver='nystroem' or 'features', which keep a summary of "
                f"the points; {self.eigen_solver!r} needs them all at once"
            )
        return True

    @available_if(_can_stream)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take in more points, which need not be kept.

        Landmarks or features are fixed by the first block, and the moments of the features are
        added up exactly, so that the result does not depend on how the points were cut into blocks.
        The first block should be a fair sample: it provides the landmarks and, for a gamma that
        depends on the data, the gamma.  After an exact fit, which keeps no such summary, it starts
        anew; after one on landmarks or features it goes on.  A compressed model cannot.
        """
        self._check_policy()
        if hasattr(self, "_components"):
            _check_whole(self)
        basis = self._components.basis if hasattr(self, "_components") else None
        fitted = basis is not None
        solver = self.solver_ if fitted else self._feature_solver()
        if not fitted:
            self._forget()
        X = self._check_points(X, reset=basis is None)
        X, _, weights = self._weighted(X, sample_weight)
        if basis is None:
            kernel = self._make_kernel(self.gamma).resolve(X, weights)
            self._check_rank(solver, X)
            phi = solver.map(kernel, X, self._expected(length(X)), self._threads())
        else:
            kernel, phi = self.kernel_, basis.map
        say = self._say if self.verbose else None
        moments = moments_of(phi, X, weights, n_threads=self._threads(), say=say)
        if basis is not None:
            moments = basis.moments.merge(moments)
        gamma = {"gamma_": self.gamma_} if fitted else {}
        self._read_out(X, kernel, solver, phi, moments)
        self.__dict__.update(gamma)  # that of the first block stays
        return self

    def merge(self, other: Streams) -> Self:
        """Return the model of the points of both, which must share landmarks or features.

        Two workers that start from the same landmarks (`landmarks=` the points themselves), or the
        same random features, can each take in their part of the data.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        _check_whole(self, other)
        mine, theirs = self._components.basis, other._components.basis
        if mine is None or theirs is None:
            raise ValueError(
                "only models of eigen_solver='nystroem' or 'features' can be merged; "
                "an exact one needs all points at once"
            )
        if self.kernel_ != other.kernel_ or not _same_map(mine.map, theirs.map):
            raise ValueError(
                "the two models have other landmarks or features, so their moments do not add up; "
                "give both the same points as `landmarks`, or the same random_state"
            )
        result = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(result, name, getattr(self, name))
        X = np.empty((0, getattr(self, "n_features_in_", 1)), dtype=self._dtype)
        moments = mine.moments.merge(theirs.moments)
        result._read_out(X, self.kernel_, self.solver_, mine.map, moments)
        result.gamma_ = self.gamma_
        return result

    def _read_out(self, X: Any, kernel: Kernel, solver: Any, phi: Any, moments: Any) -> None:
        scaled = _times(moments, moments.rows / moments.weight)
        pairs = eigenpairs_of_moments(solver, phi, scaled, self._count)
        parts = Components.of_features(pairs, None, drop_zeros=self._drops_zeros)
        parts = _with_moments(parts, moments)
        for name in ("eigenvectors_", "offset_", "dual_coef_", "X_transformed_fit_", "_inverse"):
            self.__dict__.pop(name, None)  # of points that are not kept
        self._learn(X, kernel, parts, solver, repr(phi), moments.weight)

    def _fit_features(self, X: Any, kernel: Kernel, weights: Any, kept: Any) -> tuple[Any, ...]:
        solver, n = self._feature_solver(), length(X)
        self._check_rank(solver, X)
        needed = solver.workspace(n, self._expected(n)) + block_bytes(X, self._precomputed)
        check_budget(needed, self.max_memory, f"{solver} of {n} points")
        scale = np.ones(n) if weights is None else weights * (n / weights.sum())
        pairs = eigenpairs_of_points(
            solver,
            kernel,
            _symmetric(X) if self._precomputed else X,
            lambda values, total: min(n, self._count(values, total)),
            expected=self._expected(n),
            weights=None if weights is None else scale,
            n_threads=self._threads(),
            say=self._say if self.verbose else None,
        )
        parts = Components.of_features(pairs, np.sqrt(scale), drop_zeros=self._drops_zeros)
        if weights is not None:  # as they were given, for points to come
            parts = _with_moments(parts, _times(pairs.basis.moments, weights.sum() / n))
        if self._precomputed:
            points = kept[parts.expansion.points]  # among all points that were given
            expansion = Expansion(kernel, points, parts.expansion.coefficients)
            parts = dataclasses.replace(parts, expansion=expansion)
        self._check_share(parts)
        errors = parts.left(pairs.basis.distances, np.asarray(parts.scores))
        return parts, solver, repr(pairs.basis.map), errors

    @property
    def _by_features(self) -> bool:
        spec = self.eigen_solver
        named = isinstance(spec, str) and spec in ("nystroem", "features")
        return named or isinstance(spec, (LowRankEigen, FourierEigen))

    def _feature_solver(self) -> Any:
        spec = self.eigen_solver
        if not isinstance(spec, str):
            return spec
        if spec == "features":
            seed = self._seed
            if isinstance(seed, np.random.RandomState):  # no source for SciPy's Sobol points
                seed = int(seed.randint(2**31 - 1))
            return FourierEigen(rank=self.rank, random_state=seed)
        return LowRankEigen(rank=self.rank, landmarks=self.landmarks, random_state=self._seed)

    def _check_rank(self, solver: Any, X: Any) -> None:
        n, vectors = length(X), len(getattr(X, "shape", ())) == 2 and not self._precomputed
        if isinstance(solver, FourierEigen) and not vectors:
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

    def _check_policy(self) -> None:
        if self._by_features and self.indefinite != "raise":
            raise ValueError(
                f"indefinite={self.indefinite!r} needs the whole spectrum, and landmarks or random "
                f"features a positive semidefinite kernel; use eigen_solver='dense' or 'auto'"
            )

    def _check_share(self, parts: Components) -> None:
        wanted = self.n_components
        if wanted is None or wanted >= 1 or not parts.total > 0:
            return
        reached = float(parts.values.sum()) / parts.total
        if reached < wanted * (1.0 - 1e-9):
            warnings.warn(
                f"all {len(parts.values)} components of the landmarks or features explain "
                f"{reached:.2%} of the variance, less than the {wanted:.2%} asked for; raise rank",
                stacklevel=4,
            )

    def _expected(self, n: int) -> int:
        """Return the number of components to choose landmarks for."""
        wanted = self.n_components
        return min(n, _UNKNOWN if wanted is None or wanted < 1 else int(wanted))

    def _count(self, values: np.ndarray, total: float) -> int:
        """Return the number of components to keep, of all eigenvalues that a feature map has."""
        return how_many(values, total, self.n_components)

    @property
    def _drops_zeros(self) -> bool:
        return self.remove_zero_eig or self.n_components is None


def _check_whole(*models: Any) -> None:
    if any(model._components.reduction is not None for model in models):
        raise ValueError(
            "a compressed model cannot go on, as it no longer has the moments of its points; "
            "continue with the original model, and compress that again"
        )


def _times(moments: Moments, factor: float) -> Moments:
    """Return the moments of points whose weights are all multiplied by the factor."""
    if factor == 1.0:
        return moments
    return dataclasses.replace(
        moments,
        weight=moments.weight * factor,
        comoment=moments.comoment * factor,
        residual=moments.residual * factor,
    )


def _with_moments(parts: Components, moments: Moments) -> Components:
    return dataclasses.replace(parts, basis=parts.basis._replace(moments=moments))


def _same_map(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, FourierMap):
        return bool(a.basis == b.basis)
    return len(a) == len(b) and same_points(a.points, b.points)


def _symmetric(K: Any) -> np.ndarray:
    """Return a precomputed matrix made symmetric, as `gram` does, with its warning."""
    return gram(Precomputed(), K).to_array()
