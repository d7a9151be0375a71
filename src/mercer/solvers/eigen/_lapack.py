"""The leading eigenpairs of a symmetric operator, K u = l u, by well-known libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Stopwatch, entry_point, generator
from ..._runtime.linalg import eigh
from .._cost import CACHE, Cost
from .._report import Status
from ..linear import Triangle, matrix_of
from ._eigenpairs import EigenPairs, check_k, measured, norms_of

__all__ = ["Arpack", "DenseEigen", "RandomizedEigen"]

_SMALL = 500  # points up to which three more matrices are no matter
_PRECISION = 1e-12  # a relative residual that ARPACK may leave where it was asked for none


@entry_point
@dataclass(frozen=True)
class DenseEigen:
    """LAPACK on the whole matrix: n^3 operations, 8 n^2 bytes.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import DenseEigen
    >>> DenseEigen().eigenpairs(gram(Linear(), [[3.0], [4.0]]), 1).values.round(10)
    array([25.])
    """

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the vectors, and what LAPACK and sorting take."""
        return 8 * n * (3 * k + 26 + (3 * n if _at_once(n, k + 1) else 0))

    def cost(self, n: int, k: int, read: Cost) -> Cost:
        """Return what k pairs of n points take, K being an array that is read some times."""
        pairs = Cost(reductions=4.0 / 3.0 * n**3, products=8.0 * n * n * k, calls=100)
        # half of the reduction is products with vectors, which read K from memory if it is large
        slow = Cost(read=n**3 / 2.0 if 8 * n * n > CACHE else 0.0)
        return pairs + slow + 10.0 * read

    def eigenpairs(
        self,
        gram: Any,
        k: int | None = None,
        *,
        overwrite: bool = False,
        keep: Callable[[np.ndarray], int] | None = None,
        **_: Any,
    ) -> EigenPairs:
        """Return the k largest eigenpairs, all by default.

        `overwrite` spends the Gram's array; `keep` is told those eigenvalues, descending, and
        says how many of the pairs to return.
        """
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        norms = norms_of(gram)
        K = Triangle(matrix_of(gram, overwrite))
        values, vectors = _leading(K, min(k + 1, n))  # one more shows the gap below the last
        if keep is not None:
            k = keep(values[: -k - 1 : -1])
        following = float(values[-k - 1]) if k < n else -np.inf
        return measured(
            repr(self),
            K.times,
            values[len(values) - k :],
            vectors[:, vectors.shape[1] - k :],
            norms=norms,
            status=Status.DIRECT,
            watch=watch,
            following=following,
        )


def _at_once(n: int, more: int) -> bool:
    """Tell whether to divide and conquer; see `_leading`."""
    return 6 * more > n and n <= _SMALL


def _leading(K: Triangle, more: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenpairs of K, ascending: all that are asked for, or all there are.

    A few are found one by one, which from a sixth of them on takes longer than all at once.  Divide
    and conquer is the fastest for all, and takes three matrices more: for small ones only.
    """
    n = len(K.work)
    every: dict[str, Any] = {"lower": True, "check_finite": False}
    if _at_once(n, more):
        return eigh(K.work, driver="evd", **every)
    if more < n:
        values, vectors = eigh(K.work, subset_by_index=(n - more, n - 1), overwrite_a=True, **every)
        if len(values) == more:  # LAPACK loses pairs of a degenerate spectrum
            return values, vectors
        K.restore()
        return eigh(K.work, driver="evd", overwrite_a=True, **every)
    return eigh(K.work, overwrite_a=True, **every)


@entry_point
@dataclass(frozen=True)
class Arpack:
    """Implicitly restarted Lanczos: one product with K per step, no copy of K.

    Parameters
    ----------
    tol : float
        Of each residual |A u - t u|, relative to its eigenvalue; 0 for machine precision, which
        has converged at 1e-12.
    max_iter : int, optional
        Restarts; ARPACK's default is 10 n.
    random_state : int or None
        Seeds the starting vector, uniform in [-1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import Arpack
    >>> X = np.arange(10.0)[:, None]
    >>> pairs = Arpack(random_state=0).eigenpairs(gram("RBF()", X), 2)
    >>> pairs.values.round(3)
    array([2.412, 2.15 ])
    """

    tol: float = 0.0
    max_iter: int | None = None
    random_state: Any = None

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the space, its images, and the vectors."""
        return 8 * n * (2 * max(2 * k + 1, 20) + 2 * k)

    def eigenpairs(self, gram: LinearOperator, k: int | None = None, **_: Any) -> EigenPairs:
        """Return the k largest eigenpairs, 1 <= k < n."""
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        if k >= n:
            raise ValueError(
                f"ARPACK finds fewer than n eigenpairs: {k} asked for, n is {n}; "
                f"use eigen_solver='dense' or fewer components"
            )
        counted = _Counting(gram)
        start = generator(self.random_state).uniform(-1.0, 1.0, n).astype(gram.dtype)
        status, message = Status.CONVERGED, ""
        try:
            values, vectors = eigsh(
                counted, k, which="LA", tol=self.tol, maxiter=self.max_iter, v0=start, **_seed()
            )
        except ArpackNoConvergence as stopped:
            values, vectors = stopped.eigenvalues, stopped.eigenvectors
            if not len(values):
                raise
            status = Status.NOT_CONVERGED
            message = f"{len(values)} of {k} eigenpairs after {counted.products} products"
            warn_caller(
                f"ARPACK found {message}; the others are missing. Raise max_iter "
                f"(now {self.max_iter}) or tol (now {self.tol:g})",
                ConvergenceWarning,
            )
        except ArpackError:
            if np.any(gram @ start):
                raise
            # K maps the start to 0, as only a K that is 0 does: every vector is an eigenvector
            values, vectors = np.zeros(k, dtype=gram.dtype), np.eye(n, k, dtype=gram.dtype)
            message, counted.products = "K is 0", 0
        return measured(
            repr(self),
            gram.dot,
            values,
            vectors,
            norms=norms_of(gram),
            status=status,
            watch=watch,
            n_iter=counted.products,
            message=message,
            tol=max(self.tol, _PRECISION),
            advice="the usual cause is a K far from size 1: ARPACK has absolute floors. Scale it",
        )


@entry_point
@dataclass(frozen=True)
class RandomizedEigen:
    """Rayleigh-Ritz in the range of K^q times a random block (Halko, Martinsson & Tropp 2011).

    Parameters
    ----------
    n_iter : int or "auto"
        q: 4, or 7 if fewer than a tenth of the eigenpairs are asked for.
    n_oversamples : int
        Extra columns of the block.
    random_state : int or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.solvers import RandomizedEigen
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> pairs = RandomizedEigen(random_state=0).eigenpairs(gram("RBF()", X), 2)
    >>> bool(pairs.residuals.max() < 1e-8)
    True
    """

    n_iter: int | str = "auto"
    n_oversamples: int = 10
    random_state: Any = None

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the block, its image, and the vectors."""
        return 8 * n * (3 * (k + self.n_oversamples) + k)

    def eigenpairs(self, gram: LinearOperator, k: int | None = None, **_: Any) -> EigenPairs:
        """Return approximations of the k eigenpairs largest in modulus, with their residuals."""
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        steps = (7 if k < 0.1 * n else 4) if self.n_iter == "auto" else int(self.n_iter)
        if k + self.n_oversamples >= n and hasattr(gram, "to_array"):
            values, vectors = eigh(gram.to_array())  # the range of a block as large as K is all
        else:
            block = generator(self.random_state).standard_normal((n, k + self.n_oversamples))
            Q = np.linalg.qr(gram @ block[:, :n].astype(gram.dtype))[0]
            for _step in range(steps):
                Q = np.linalg.qr(gram @ Q)[0]
            KQ = gram @ Q
            values, inner = eigh(Q.T @ KQ)
            vectors = Q @ inner
        chosen = np.sort(np.argsort(np.abs(values))[::-1][:k])
        values, vectors = values[chosen], vectors[:, chosen]
        return measured(
            repr(self),
            gram.dot,
            values,
            vectors,
            norms=norms_of(gram),
            status=Status.APPROXIMATE,
            watch=watch,
            n_iter=steps + 2,
        )


def _seed() -> dict[str, Any]:
    """Return what makes ARPACK repeatable where it draws anew: when its space is exhausted."""
    known = "rng" in inspect.signature(eigsh).parameters  # since SciPy 1.17
    return {"rng": np.random.default_rng(0)} if known else {}


class _Counting(LinearOperator):
    """Another operator, counting the columns it is multiplied with."""

    def __init__(self, inner: LinearOperator) -> None:
        self.inner, self.products = inner, 0
        super().__init__(dtype=inner.dtype, shape=inner.shape)

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        self.products += 1
        return self.inner @ v
