"""Kernel ridge regression as a problem: its solution, leave-one-out errors and variances.

    J(f, b) = sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2

`ExactRidge` seeks f among all functions, through a solver of (K + alpha / w) a = y;
`LandmarkRidge` in the span of landmarks.  The same f is the posterior mean of a Gaussian process
with the covariance c k and noise of variance c alpha / w, for every c > 0.  The c that makes the
data most likely has a closed form, c = min J / (alpha n), and scales the variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..._errors import NotPositiveDefiniteError, warn_caller
from ..._points import length
from ..._runtime import budget_in_bytes, check_budget, check_threads, entry_point
from ...blocks import Blocks
from ...gram import Landmarks, TiledGram, gram, working_bytes
from ...kernels import Kernel, Precomputed
from .._choose import LINEAR, choose
from .._report import Report, Status, worst
from ..eigen import LowRankEigen
from ..linear import Bordered, LeastSquares
from ._krill import Krill
from ._path import BlockedPath, NystroemPath, for_each

__all__ = ["ExactRidge", "LandmarkRidge"]

_BLOCK = 2**25  # bytes of k(points, z) held at a time


@dataclass(eq=False)
class _Ridge:
    """The problem: points, targets, and an alpha for each target."""

    kernel: Kernel
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    alphas: np.ndarray
    intercept: bool


@entry_point
@dataclass(eq=False)
class ExactRidge(_Ridge):
    """Ridge regression on all points, one factorisation for each distinct alpha.

    Parameters
    ----------
    kernel : Kernel
    X : points
    Y : ndarray of shape (n, q)
    weights : ndarray of shape (n,) or None
        Positive.
    alphas : ndarray of shape (q,)
    intercept : bool
    solver : str or solver
    options : dict
        For a solver given by name.
    max_memory : int, str or None
    say : function
        Called with a line of text before and after each factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ExactRidge
    >>> X, alphas = np.array([[0.0], [1.0], [2.0]]), np.array([0.1])
    >>> ridge = ExactRidge(RBF(), X, np.sin(X), None, alphas, intercept=False)
    >>> coefficients, intercept = ridge.solve()
    >>> coefficients.ravel().round(3)
    array([-0.488,  0.783,  0.455])
    """

    solver: Any = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    max_memory: Any = None
    say: Callable[[str], None] | None = None
    chosen: Any = None
    report: Report | None = None
    _kept: dict[float, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}, "say": None}  # factors are computed again

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients (n, q) and the intercepts (q,)."""
        A, b, reports = np.empty(self.Y.shape), np.empty(len(self.alphas)), []
        for part in self._parts():
            A[:, part.columns], b[part.columns] = part.A, part.b
            reports.append(part.system.report)
            if self.say is not None:
                self.say(f"residual {reports[-1].residual:.1e}")
        self.report = worst(reports)
        return A, b

    def leave_one_out(self) -> np.ndarray:
        """Return y_i - f_-i(x_i) - b_-i, (n, q): the errors of the fits without point i."""
        if len(self.Y) - self.intercept < 1:
            raise ValueError(
                "leave-one-out with an intercept needs at least two points, got n_samples = 1"
            )
        errors = np.empty(self.Y.shape)
        for part in self._parts(keep=True):
            self._require_definite(part, "leave-one-out errors")
            errors[:, part.columns] = part.system.leave_one_out(part.A)
        return errors

    def inverse(self, columns: Any = None) -> np.ndarray:
        """Return columns of the matrix P with a = P y; there must be one alpha."""
        (part,) = self._parts(keep=True)
        return part.system.inverse(columns)

    def variance(self, Z: Any) -> np.ndarray:
        """Return the predictive variance at each z, (len(Z), q)."""
        left = np.empty((length(Z), len(self.alphas)))
        left[:] = self.kernel.diag(Z)[:, None]
        block = min(_BLOCK, budget_in_bytes(self.max_memory) // 32)  # beside what solves it
        tiles, step = TiledGram(self.kernel, Z, self.X), max(1, block // (8 * length(self.X)))
        for part in self._parts(keep=True):
            self._require_definite(part, "standard deviations")
            for start in range(0, len(left), step):
                rows = np.arange(start, min(start + step, len(left)))
                explained = part.system.explained(tiles.rows(rows).T)
                left[np.ix_(rows, part.columns)] -= explained[:, None]
            # min J / alpha = (y - b)^T a
            gap = self.Y[:, part.columns] - part.b
            scale = np.einsum("ic,ic->c", gap, part.A)
            left[:, part.columns] *= np.maximum(scale, 0.0) / max(1, len(self.Y) - self.intercept)
        return np.maximum(left, 0.0)

    @staticmethod
    def _require_definite(part: _Part, what: str) -> None:
        """Refuse what only K + alpha > 0 has; a least-squares solution may come from less."""
        factor = part.system.factor
        if factor.report.status is Status.SINGULAR:
            raise NotPositiveDefiniteError(
                f"{what} need a positive definite system, and this one is singular: "
                f"{factor.report.message}. Take a larger alpha"
            )
        if part.least_squares:
            try:
                factor.logdet()
            except NotPositiveDefiniteError as why:
                raise NotPositiveDefiniteError(
                    f"{what} need a positive definite system ({why}). The usual cause is a kernel "
                    f"that is not positive semidefinite: there is no Gaussian process behind it"
                ) from None

    # ------------------------------------------------------------------ systems

    def _parts(self, keep: bool = False) -> Iterator[_Part]:
        """Yield the solution for each distinct alpha.

        With `keep` its factor is remembered, but not several of them: they are large.
        """
        distinct = sorted(set(self.alphas.tolist()))
        keep = keep and len(distinct) == 1
        K = None
        for alpha in distinct:
            if alpha not in self._kept:
                if K is None:
                    K = self._gram(len(distinct))
                part = self._solved(K, alpha, last=alpha == distinct[-1])
                if not keep:
                    yield part
                    continue
                self._kept[alpha] = part
            yield self._kept[alpha]

    def _solved(self, K: Any, alpha: float, last: bool) -> _Part:
        if self.say is not None:
            self.say(f"{self.chosen} of {K!r}, alpha = {alpha:g}")
        columns = np.flatnonzero(self.alphas == alpha)
        try:
            return self._part(self.chosen, K, alpha, columns, overwrite=last)
        except NotPositiveDefiniteError as why:
            if self.solver != "auto":
                raise
            warn_caller(
                f"Singular matrix in solving dual problem. Using least-squares solution "
                f"instead. ({why})"
            )
            self.chosen = LeastSquares()
            K = self._dense(2) if last else K
            return self._part(self.chosen, K, alpha, columns, overwrite=last)

    def _part(
        self, solver: Any, K: Any, alpha: float, columns: np.ndarray, overwrite: bool
    ) -> _Part:
        root, shift = None, np.asarray(alpha)
        if self.weights is not None and hasattr(K, "scaled"):
            root = np.sqrt(self.weights)  # K is S K S already
        elif self.weights is not None:
            with np.errstate(over="ignore"):
                shift = alpha / self.weights
            if not np.all(np.isfinite(shift)):
                raise ValueError(
                    f"sample_weight goes down to {self.weights.min():.3g}, and alpha / weight "
                    f"overflows; give such points the weight 0, or use solver='cholesky'"
                )
        factor = solver.factorize(K, shift, overwrite=overwrite)
        system = Bordered(factor, root, intercept=self.intercept)
        Y, mean = self.Y[:, columns], np.zeros(len(columns))
        if self.intercept:  # without their mean, so that a large one costs no digits
            mean = np.average(Y, axis=0, weights=self.weights)
        A, b = system.solve(Y - mean)
        return _Part(columns, system, A, b + mean, isinstance(solver, LeastSquares))

    def _gram(self, alphas: int) -> Any:
        """Choose the solver, and hold K in the way that it needs."""
        given = isinstance(self.kernel, Precomputed)
        n, held = length(self.X), None
        if given:
            held = gram(self.kernel, self.X, max_memory=self.max_memory)
        left = budget_in_bytes(self.max_memory) - self._tiles(1)
        self.chosen = choose(
            LINEAR,
            held,
            self.solver,
            n=n,
            kernel=self.kernel,
            X=self.X,
            columns=self.Y.shape[1],
            max_memory=max(1, left),
            **self.options,
        )
        if given or self.chosen.storage == "dense":
            return self._dense(alphas, held)
        return gram(self.kernel, self.X, storage="tiled", max_memory=self.max_memory)

    def _dense(self, alphas: int, held: Any = None) -> Any:
        """Return S K S as an array."""
        # Cholesky works in K itself; eigenvectors, or a K kept for the next alpha, are a second one
        n = length(self.X)
        copies = 1 + (alphas > 1 or isinstance(self.chosen, LeastSquares))
        copies += held is not None and self.weights is not None  # what is given is not written to
        needed = 8 * n * n * copies + (self._tiles(0) if held is None else 0)
        check_budget(needed, self.max_memory, f"kernel ridge regression of {n} points")
        K: Any = held
        if K is None:
            K = gram(self.kernel, self.X, storage="dense", max_memory=self.max_memory)
        return K if self.weights is None else K.scaled(np.sqrt(self.weights))

    def _tiles(self, columns: int) -> int:
        """Return the bytes of the points and tiles that K comes from."""
        return working_bytes(self.kernel, self.X, None, columns, check_threads(None))


class _Part(NamedTuple):
    """The solution for the targets that share an alpha."""

    columns: np.ndarray
    system: Bordered
    A: np.ndarray
    b: np.ndarray
    least_squares: bool


@entry_point
@dataclass(eq=False)
class LandmarkRidge(_Ridge):
    """Ridge regression with f in the span of the k(s, .) of landmarks s.

    Parameters
    ----------
    kernel, X, Y, weights, alphas, intercept
        As in `ExactRidge`.
    landmarks : Landmarks
    iterative : bool
        Solve by `Krill`, for many landmarks, instead of with the features of all points.
    max_memory : int, str or None
    say : function
    among : points, optional
        For X in `Blocks`, with targets and weights beside them: a sample of the points, among
        which landmarks are chosen.  Y is then that of the sample, for its shape alone.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.gram import Landmarks
    >>> from mercer.solvers import LandmarkRidge
    >>> X, alphas = np.linspace(0, 6, 500)[:, None], np.array([0.1])
    >>> ridge = LandmarkRidge(RBF(), X, np.sin(X), None, alphas, False, Landmarks(10))
    >>> coefficients, intercept = ridge.solve()
    >>> f = RBF()(X, ridge.points) @ coefficients
    >>> bool(np.abs(f - np.sin(X)).max() < 0.1)
    True
    """

    landmarks: Landmarks = Landmarks()  # noqa: RUF009
    iterative: bool = False
    max_memory: Any = None
    say: Callable[[str], None] | None = None
    chosen: str = "nystroem"
    report: Report | None = None
    points: Any = None
    among: Any = None  # the points to choose landmarks among, for `X` in blocks
    _path: NystroemPath | None = None
    _n: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "say": None}

    def path(self) -> NystroemPath | BlockedPath:
        """Choose the landmarks and read the features of all points: this solves every alpha."""
        n = length(self.X)
        self.landmarks.require(n)
        m = self.landmarks.count(n)
        some = n if self.among is None else length(self.among)
        needed = LowRankEigen(m).workspace(some, 1)
        check_budget(needed, self.max_memory, f"a fit on {m} landmarks")
        phi = self.landmarks.map(self.kernel, self.X if self.among is None else self.among)
        if self.say is not None:
            self.say(f"features by {phi!r}")
        if isinstance(self.X, Blocks):
            return BlockedPath(phi, self.X, intercept=self.intercept, say=self.say)
        return NystroemPath(
            phi,
            self.X,
            self.Y,
            self.weights,
            intercept=self.intercept,
            max_memory=self.max_memory,
            say=self.say,
        )

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients on `points`, (m, q), and the intercepts (q,)."""
        if np.any(self.alphas <= 0):
            raise ValueError(
                f"a fit on landmarks needs alpha > 0, got {self.alphas.min():g}; without a ridge "
                f"their system is singular as soon as two of them are close"
            )
        if self.iterative:
            return self._krill()
        path = self.path()
        A, b, self.report = path.solve_each(self.alphas)
        self._forget(path.rows)
        self.points, self._path = path.points, path.forget()
        return A, b

    def variance(self, Z: Any) -> np.ndarray:
        """Return the predictive variance at each z, (len(Z), q).

        What the landmarks cannot see of k(z, z) stays uncertain in full.
        """
        path = self._path
        if path is None:
            raise ValueError(
                "'krill' keeps no factorisation to read standard deviations from; "
                "use solver='nystroem'"
            )
        out, n = np.empty((length(Z), len(self.alphas))), max(1, self._n - self.intercept)
        diagonal = self.kernel.diag(Z)
        for rows, F in path.phi.blocks(Z):
            beyond = np.maximum(diagonal[rows] - np.einsum("ij,ij->i", F, F), 0.0)
            for alpha in np.unique(self.alphas):
                columns = np.flatnonzero(self.alphas == alpha)
                scale = np.maximum(path.objective(alpha)[columns], 0.0) / (alpha * n)
                known = path.variance(F, alpha)
                out[rows, columns] = (beyond + known)[:, None] * scale
        return out

    def _krill(self) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the targets and, where b is free, for the constant 1, and put them together."""
        n, q = self.Y.shape
        right = np.c_[self.Y, np.ones(n)] if self.intercept else self.Y
        w = np.ones(n) if self.weights is None else self.weights

        def solve(alpha: float) -> tuple[np.ndarray, np.ndarray, Report]:
            solver = Krill(
                self.landmarks.rank,
                self.landmarks.method if self.points is None else self.points,
                random_state=self.landmarks.random_state,
                max_memory=self.max_memory,
            )
            self.points, W, report = solver.regress(
                self.kernel, self.X, right, alpha, self.weights, say=self.say
            )
            if not self.intercept:
                return W, np.zeros(q), report
            left = right - TiledGram(self.kernel, self.X, self.points) @ W
            b = w @ left[:, :-1] / (w @ left[:, -1])
            return W[:, :-1] - W[:, -1:] * b, b, report

        A, b, self.report = for_each(self.alphas, solve)
        if self.report.status is Status.CONVERGED:  # in the span of the landmarks
            self.report = replace(self.report, status=Status.APPROXIMATE)
        self._forget(len(self.Y))
        return A, b

    def _forget(self, n: int) -> None:
        """Let go of the data: a model on landmarks is small."""
        self._n, self.among = n, None
        self.X, self.weights = None, None
        self.Y = self.Y[:0]
