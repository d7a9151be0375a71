"""A Gaussian process given data: its mean is an expansion, its covariance is a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import warn_caller
from .._points import doubled, length, same_points, take
from .._runtime import entry_point
from .._runtime.linalg import solve_triangular
from ..expansion import Expansion, near
from ..gram import solve_rows
from ..kernels import Claims, Kernel, Prepared, node, pair
from ..solvers import Report

__all__ = ["Conditioned", "GivenData", "Posterior"]

_ROWS = 512  # points whose k_S(x) is held at a time
_ROUNDING = 1e-6  # a variance below minus this part of k(x, x) is worth a warning
_LONG = 64  # points beyond which a repr lists nothing


@entry_point
@dataclass(frozen=True, eq=False)
class Posterior:
    """f given the data: mean and covariance of a Gaussian process.

    Attributes
    ----------
    expansion : Expansion
        The mean, one function per target.
    covariance : Kernel or ClassCovariance
        The covariance of f(x) and f(z), usually `Conditioned`; the same for all targets.  Of the
        functions of several classes, which are not independent, that at each point.
    report : Report
        How they were found.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.gp import MarginalLikelihood
    >>> X = np.array([[0.0], [1.0]])
    >>> posterior = MarginalLikelihood(RBF(), X, np.array([1.0, 2.0]), noise=1e-9).posterior()
    >>> posterior.expansion(X).round(4).ravel(), posterior.covariance.diag([[9.0]])
    (array([1., 2.]), array([1.]))
    """

    expansion: Expansion
    covariance: Any
    report: Report

    def moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return means (n, q) and variances (n,), both from one k_S(x), if it is `Conditioned`."""
        f, means = self.expansion, []

        def sections(some: Any) -> np.ndarray:
            K = near(f, f.kernel, some, f.points)
            means.append(K @ f.coefficients)
            return np.array(K, dtype=float, order="C")

        variances = self.covariance.variances(X, sections)
        return np.concatenate([np.zeros((0, len(f))), *means]), variances


@node
class GivenData(Kernel):
    """The covariance of a process with prior covariance `kernel` once data on `points` are known.

    The prior and what the data say of it belong together: `theta` is empty.
    """

    kernel: Kernel
    points: Any = None

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        X = doubled(X)
        child = self.kernel._prepare(X, None if like is None else like.children[0])
        return Prepared(self._features(X), (child,), source=child.source, positions=child.positions)

    @abstractmethod
    def _features(self, X: Any) -> tuple[np.ndarray, ...]:
        """Return the rows of what data tell of each x, from which tiles are made."""

    def _free(self) -> Any:
        self._require_resolved()
        return iter(())

    @property
    def diagonal_bound(self) -> float:
        return self.kernel.diagonal_bound

    def __str__(self) -> str:
        return f"{self.kernel} given {length(self.points)} points"


@entry_point
@node
class Conditioned(GivenData):
    """k(x, z | data) = k(x, z) - phi(x) . phi(z) + psi(x) . psi(z), what data leave open.

        phi(x) = L^-1 k_S(x),     psi(x) = B^-1 phi(x),     k_S(x) = (k(s, x) for s in S)

    The covariance of a Gaussian process with prior covariance k after the values on the points S
    became known, exactly or through noise: then L L^T = K_SS + noise, and there is no psi.  Of a
    process known through inducing points S, L L^T = K_SS, and B B^T tells how well the data have
    fixed the values there.

    The prior and the factors belong together: `theta` is empty.

    Parameters
    ----------
    kernel : Kernel
        The prior k.
    points : points
        S, m of them.
    factor : array of shape (m, m)
        L, lower triangular.
    inner : array of shape (m, m), optional
        B, lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.gp import Conditioned
    >>> S = np.array([[0.0], [2.0]])
    >>> k = Conditioned(RBF(), S, np.linalg.cholesky(RBF()(S)))
    >>> k.diag([[0.0], [1.0], [9.0]]).round(4)
    array([0.    , 0.3519, 1.    ])
    """

    factor: Any = None
    inner: Any = None

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"Conditioned needs a prior Kernel, got {self.kernel!r}")
        m = length(self.points)
        for name in ("factor", "inner"):
            value = getattr(self, name)
            if value is None and name == "inner":
                continue
            L = np.asfortranarray(value, dtype=float)
            if L.shape != (m, m):
                raise ValueError(
                    f"Conditioned: {name} has shape {L.shape}, but there are {m} points; "
                    f"it must have a row and a column for each"
                )
            view = L.view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    def _claims(self, *inner: Claims) -> Claims:
        if inner[0].order != 0:
            return Claims()
        K = self.kernel(self.points, self.points)  # as in k_S(x): without the noise of White
        lowest = np.linalg.eigvalsh(self.factor @ self.factor.T - K)[0]
        known = lowest >= -1e-10 * np.abs(K).max()
        return Claims.of(inner, "Schur complement, since L L^T >= K_SS", 0 if known else None)

    # ------------------------------------------------------------------ evaluation

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out -= P.arrays[0] @ Q.arrays[0].T
        if self.inner is not None:
            out += P.arrays[1] @ Q.arrays[1].T

    def _diag(self, X: Any) -> np.ndarray:
        return self.variances(X, self._sections)

    def variances(self, X: Any, sections: Function[[Any], np.ndarray]) -> np.ndarray:
        """Return k(x, x | data) with the rows k_S(x) of `sections`, which are overwritten."""
        X = doubled(X)
        prior = np.array(self.kernel.diag(X), dtype=float)
        out = prior.copy()
        for start in range(0, len(out), _ROWS):
            rows = slice(start, start + _ROWS)
            phi, *psi = self._solved(sections(take(X, rows)))
            out[rows] -= np.einsum("ij,ij->i", phi, phi)
            for part in psi:
                out[rows] += np.einsum("ij,ij->i", part, part)
        return _not_negative(out, prior)

    def _features(self, X: Any) -> tuple[np.ndarray, ...]:
        return self._solved(self._sections(X))

    def _sections(self, X: Any) -> np.ndarray:
        """Return the rows k_S(x)."""
        P, Q = pair(self.kernel, X, self.points)
        K = np.empty((len(P), len(Q)))
        for start in range(0, len(P), _ROWS):
            rows = slice(start, start + _ROWS)
            self.kernel._tile(P[rows], Q, K[rows])
        return K

    def _solved(self, phi: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the rows phi(x), and psi(x) if there is one, in the place of k_S(x)."""
        solve_rows(self.factor, phi)
        if self.inner is None:
            return (phi,)
        psi = phi.copy()
        solve_rows(self.inner, psi)
        return phi, psi

    # ------------------------------------------------------------------ derivatives

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        # k_S(x) moves with x: it meets L^-T (B^-T B^-1 - I) sum_j W_ij phi(z_j)
        phi = self._features(doubled(X if Z is None else Z))[0]
        G = W @ phi
        if self.inner is not None:
            G -= _solve(self.inner, _solve(self.inner, G), transposed=True)
        meets = _solve(self.factor, G, transposed=True)
        direct = self.kernel.input_gradient(X, Z, W)
        return direct - self.kernel.input_gradient(X, self.points, meets)

    # ------------------------------------------------------------------ a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conditioned):
            return NotImplemented
        return (
            self.kernel == other.kernel
            and same_points(self.points, other.points)
            and np.array_equal(self.factor, other.factor)
            and np.array_equal(self.inner, other.inner)
        )

    def __hash__(self) -> int:
        return hash((Conditioned, self.kernel, tuple(self.factor.diagonal().tolist())))

    def __repr__(self) -> str:
        return super().__repr__() if len(self.factor) <= _LONG else f"<{self}>"


def _solve(L: np.ndarray, G: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return the rows L^-1 g, or L^-T g, of the rows g of G."""
    return solve_triangular(L, G.T, lower=True, trans=int(transposed), check_finite=False).T


def _not_negative(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return variances with what rounding made negative at 0, and a warning if it is much."""
    lowest = np.min(variance + _ROUNDING * prior, initial=0.0)
    if lowest < 0.0:
        warn_caller(
            f"Predicted variances smaller than 0. Setting those variances to 0. "
            f"({np.sum(variance < 0)} of {len(variance)}, the lowest {variance.min():.3g}.) The "
            f"usual cause is a nearly singular kernel matrix: try a larger alpha, or a White() part"
        )
    return np.maximum(variance, 0.0, out=variance)
