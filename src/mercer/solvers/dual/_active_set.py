"""The last digits of a small quadratic program in a box, by its linear equations.

SMO comes close to the minimum, and leaves few variables between their bounds.  If these are the
right ones, their conditions are linear: with F the free variables,

    K_FF d + g_F = m  in each group,     sum of d in each group = 0,

for a move d and the multipliers m.  A variable that meets a bound on the way stays there, and the
others are solved for again.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from ._dual import Dual

__all__ = ["polish"]

_MAX_ROUNDS = 10  # each but the last ends where a variable meets a bound
_SINGULAR_RESIDUAL = 1e-9  # relative: with a larger one A is taken to be singular
_FEW_FREE = 100  # with so few free variables a round is cheap, and all may meet a bound


def polish(K: np.ndarray, dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v with its free variables moved to where their gradients are equal.

    K is that of the variables.  The result need not be better: the caller compares.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.dual import Dual
    >>> from mercer.solvers.dual._active_set import polish
    >>> dual = Dual.classify(np.array([1.0, -1.0]), np.array([9.0, 9.0]))
    >>> polish(np.array([[1.0, -1.0], [-1.0, 1.0]]), dual, np.array([0.4, -0.4]))
    array([ 0.5, -0.5])
    """
    v = v.copy()
    first = np.count_nonzero(dual.free(v))
    for _ in range(_MAX_ROUNDS + (first if first <= _FEW_FREE else 0)):
        free = np.flatnonzero(dual.free(v))
        if not len(free):
            break
        g = K[free] @ v + dual.linear[free]
        ones = (dual.groups[free][:, None] == np.unique(dual.groups[free])).astype(float)
        # The equations of the sums are scaled to the size of K, so that they hold as exactly.
        ones *= 2.0 ** np.frexp(np.abs(K[free, free]).max())[1]
        q = ones.shape[1]
        A = np.block([[K[np.ix_(free, free)], ones], [ones.T, np.zeros((q, q))]])
        d = _solved(A, np.concatenate([-g, np.zeros(q)]))[: len(free)]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(d > 0, (dual.upper[free] - v[free]) / d, np.inf)
            room = np.where(d < 0, (dual.lower[free] - v[free]) / d, room)
        if room.min() >= 1.0:
            v[free] += d
            break
        hit = room <= room.min()
        v[free] += room.min() * d
        v[free[hit]] = np.where(d[hit] > 0, dual.upper[free[hit]], dual.lower[free[hit]])
    return np.clip(v, dual.lower, dual.upper)


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with A x = b; of least norm, which takes longer, if A is singular."""
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        x = np.full(len(b), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.linalg.norm(A @ x - b) <= _SINGULAR_RESIDUAL * np.linalg.norm(b):
            return x
    return np.asarray(lstsq(A, b, check_finite=False)[0])
