"""What the two estimators with learned support vectors share: everything but the targets.

f(.) = sum_j b_j k(z_j, .) + c,      j = 1 .. m,      z_j anywhere in R^d
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from .._errors import NotDifferentiableError
from .._runtime import budget_in_bytes, check_budget, in_words
from ..expansion import Expansion
from ..gram import Landmarks
from ..kernels import Kernel
from ..solvers import LearnedVectors, Loss, ShortExpansionRisk, Squared
from ._base import KernelLike, NamedKernel, Seed
from ._parameters import COUNT, POSITIVE, estimator, parameter
from ._sample import Sample

__all__ = ["SparseKernelEstimator"]


@estimator()
class SparseKernelEstimator(NamedKernel):
    """An estimator whose f has m learned vectors; see SparseKernelRegressor.

    Parameters
    ----------
    n_vectors : int or str
        m, or what the model may take: "100 kB" stands for as many vectors and weights, in float64,
        as fit.  With m at least the number of points, the vectors are the distinct points: no
        others could do better.
    kernel : str, Kernel, callable or scikit-learn GP kernel
        With derivatives in its points; not "precomputed".
    fit_intercept : bool
        Add a constant c to each f, which is not penalised.
    init : {"auto", "kmeans", "rpcholesky", "uniform"} or array of shape (m, d)
        Where the vectors start: "auto" is at centroids of k-means, for kernels that are no
        function of distances at points chosen by RPCholesky.  An array may be the `vectors_` of
        an earlier fit; its length is then m.
    learn_kernel : bool
        Also learn the free parameters of the kernel, such as its length scales, from the same
        objective.  Best for kernels without a factor of their own: that would only outgrow alpha.
    max_iter : int
        Iterations of L-BFGS; 0 leaves the vectors where they start.
    tol : float
        Stop when ten iterations lowered the objective by less than this part of it.
    random_state : int, RandomState or None
        For the start; None stands for 0.
    """

    n_vectors: int | str = parameter(COUNT, str, default=100)
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    alpha: float = parameter(POSITIVE, default=1e-4)
    fit_intercept: bool = parameter("boolean", default=True)
    init: Any = parameter(
        StrOptions({"auto", "kmeans", "rpcholesky", "uniform"}), "array-like", default="auto"
    )
    learn_kernel: bool = parameter("boolean", default=False)
    max_iter: int = parameter(Interval(Integral, 0, None, closed="left"), default=1000)
    tol: float = parameter(POSITIVE, default=1e-3)
    random_state: Seed = parameter("random_state", default=None)

    @property
    def vectors_(self) -> np.ndarray:
        """The z_j, shape (m, d)."""
        return np.asarray(self.expansion_.points)

    def _require_vectors(self, X: Any) -> None:
        """Refuse points that are no vectors: only these can be moved anywhere."""
        name = type(self).__name__
        if self._precomputed:
            raise ValueError(
                f"{name} moves its vectors to where k was never evaluated, so a precomputed matrix "
                f"is not enough; give the points and the kernel, or use KernelRidge"
            )
        if not self._takes(X):
            raise TypeError(
                f"{name} learns vectors in R^d, but {self.kernel!r} compares points of another "
                f"kind; fit KernelRidge and compress its expansion_ instead"
            )

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss) -> None:
        """Find vectors, weights and intercept for the targets Y of the points that take part."""
        sample = sample.doubled()
        X, w = sample.points, sample.counts
        (n, d), q = X.shape, Y.shape[1]
        self.kernel_: Kernel = sample.resolve(self._make_kernel(self.gamma))
        _require_gradient(self.kernel_, type(self).__name__, d)
        chosen = isinstance(self.init, str)
        m = min(n, _how_many(self.n_vectors, d, q)) if chosen else np.shape(self.init)[0]
        systems = 1 if isinstance(loss, Squared) else q
        held = n * (2 * d + 2) + 6 * n * q + (12 * systems + 8) * (m + 1) ** 2
        check_budget(8 * held, self.max_memory, f"learning {m} vectors from {n} points")
        Z, exact = self._start(X, m)
        risk = ShortExpansionRisk(
            self.kernel_, X, Y, loss, w / w.sum(), self.alpha, self.fit_intercept, self.max_memory
        )
        steps = 0 if exact and not self.learn_kernel else self.max_iter
        self.solver_ = LearnedVectors(steps, self.tol, self.learn_kernel)
        found = self.solver_.minimize(risk, Z, self._say)
        self.report_ = found.report
        if not steps and exact:
            self.report_ = dataclasses.replace(self.report_, message=_EXACT)
        self._say(f"objective {found.fit.value:.6g}: {self.report_.status.value}")
        self.kernel_ = found.fit.kernel
        self.expansion_ = Expansion(self.kernel_, found.fit.vectors, found.fit.weights)
        self.objective_curve_ = found.curve
        self.n_iter_ = found.report.n_iter
        self.dual_coef_ = found.fit.weights
        self.intercept_: Any = found.fit.intercept

    def _start(self, X: Any, m: int) -> tuple[np.ndarray, bool]:
        """Return m vectors to begin with, and whether there is nothing better than they are."""
        if not isinstance(self.init, str):
            Z = check_array(self.init, dtype=np.float64, copy=True, input_name="init")
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"init has {Z.shape[1]} columns, but X has {X.shape[1]}")
            return Z, False
        if m == X.shape[0]:
            return np.unique(_dense(X), axis=0), True
        return _dense(Landmarks(m, self.init, self.random_state).draw(self.kernel_, X)), False


_EXACT = (
    "as many vectors as points are allowed: they are the distinct points, and f is the best "
    "function of the whole RKHS"
)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.array(X)


def _how_many(n_vectors: Any, d: int, q: int) -> int:
    """Return m; a text such as "100 kB" is what m vectors and their weights may take."""
    if not isinstance(n_vectors, str):
        return int(n_vectors)
    try:
        size = budget_in_bytes(n_vectors)
    except ValueError:
        raise ValueError(
            f"n_vectors must be a positive integer, or the size of the model as a text like "
            f"'100 kB', got {n_vectors!r}"
        ) from None
    each = 8 * (d + q)
    if size < each:
        raise ValueError(
            f"n_vectors={n_vectors!r} is less than a single vector takes: {d} coordinates and {q} "
            f"weights are {in_words(each)}"
        )
    return size // each


def _require_gradient(kernel: Kernel, name: str, d: int) -> None:
    point = np.full((1, d), 0.5)
    try:
        kernel.input_gradient(point, point, np.ones((1, 1)))
    except NotDifferentiableError as why:
        raise NotDifferentiableError(
            f"{name} moves its vectors along dk(x, z)/dx, which {kernel} does not have ({why}); "
            f"use another kernel, or fit KernelRidge and compress its expansion_"
        ) from None
