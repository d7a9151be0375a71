"""The autoencoder: two sets of layers, x -> z -> x, with as little as possible lost on the way.

What is minimised is the part of the variance that is lost, with weight decay,

    E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2,

of points centred and divided by one number, so that E does not depend on their units.  It has many
minima.  L-BFGS starts from several places, and the spread of where it ends is told.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import Step, Stopwatch, entry_point, ordered_sum, slices
from ..solvers import Report, Status
from ._layers import Layers
from ._ppca import signed

__all__ = ["FittedLayers", "LostVariance", "autoencode"]

_ROWS = 512  # of a block
_GROUPS = 4  # of blocks; the number of threads has no say in the order of sums
_PAIRS = 20  # of steps and gradients that L-BFGS remembers


class FittedLayers(NamedTuple):
    """The way to a map and back, the E of all restarts, and what was done."""

    encoder: Layers
    decoder: Layers
    losses: np.ndarray
    report: Report


class LostVariance:
    """E as a function of theta, all weights and biases of both halves, with its gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import LostVariance
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0]])
    >>> E = LostVariance(X, (2, 1), "tanh", alpha=0.0)
    >>> value, slope = E(np.zeros(E.size))  # all points go to 0, which is their mean
    >>> value, slope.shape
    (1.0, (7,))
    """

    def __init__(
        self, X: np.ndarray, sizes: tuple[int, ...], activation: str, alpha: float
    ) -> None:
        self._X, self._sizes, self._activation, self._alpha = X, sizes, activation, alpha
        self._half = sum((a + 1) * b for a, b in pairwise(sizes))
        self.size = self._half + sum((b + 1) * a for a, b in pairwise(sizes))
        self._parts = slices(len(X), _ROWS)
        self._total = float(np.sum(X * X))
        weights = np.ones(self.size)
        for half in self.halves(weights):
            for b in half.biases:
                b[:] = 0.0
        self._decayed = weights  # 1 for weights, 0 for biases

    def halves(self, theta: np.ndarray) -> tuple[Layers, Layers]:
        """Return both halves, which look into theta."""
        return (
            Layers.of(theta[: self._half], self._sizes, self._activation),
            Layers.of(theta[self._half :], self._sizes[::-1], self._activation),
        )

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a theta: weights within sqrt(6 / (from + to)), with which values keep their size."""
        theta = np.zeros(self.size)
        for half in self.halves(theta):
            for W, b in zip(half.weights, half.biases, strict=True):
                most = np.sqrt(6.0 / sum(W.shape))
                W[:] = rng.uniform(-most, most, size=W.shape)
                b[:] = rng.uniform(-most, most, size=b.shape)
        return theta

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return E and its gradient."""
        encoder, decoder = self.halves(theta)

        def term(rows: slice) -> np.ndarray:
            x = self._X[rows]
            there = encoder.values(x)
            back = decoder.values(there[-1])
            lost = back[-1] - x
            second, G = decoder.pullback(back, lost)
            first, _ = encoder.pullback(there, G)
            return np.concatenate([[np.sum(lost * lost)], 2.0 * first, 2.0 * second])

        found = (
            ordered_sum(term, self._parts, _GROUPS, work=3.0 * len(self._X) * len(theta))
            / self._total
        )
        decayed = self._alpha * self._decayed * theta
        return float(found[0] + decayed @ theta), found[1:] + 2.0 * decayed


@entry_point
def autoencode(
    X: np.ndarray,
    q: int,
    hidden: tuple[int, ...] = (20,),
    activation: str = "tanh",
    alpha: float = 1e-4,
    n_init: int = 3,
    tol: float = 1e-4,
    max_iter: int = 5000,
    rng: np.random.Generator | None = None,
    say: Function[[str], None] | None = None,
) -> FittedLayers:
    """Return the best of `n_init` descents from random places.

    The bottleneck is linear, so that the map may be turned and moved without any loss: its axes are
    the principal ones, and its mean is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import autoencode
    >>> t = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> found = autoencode(np.hstack([t, t**2]), 1, (5,), rng=np.random.default_rng(0))
    >>> found.losses.shape, bool(found.losses.min() < 0.01)
    ((3,), True)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    watch, mean = Stopwatch(), X.mean(axis=0)
    largest = float(np.abs(X - mean).max())
    scale = largest * float(np.sqrt(np.mean(((X - mean) / largest) ** 2)))
    E = LostVariance((X - mean) / scale, (X.shape[1], *hidden, q), activation, alpha)
    ends = [_descend(E, E.start(rng), tol, max_iter, k, n_init, say) for k in range(n_init)]
    losses = np.array([end.fun for end in ends])
    best = ends[int(losses.argmin())]
    slope = float(np.abs(best.jac).max())
    if slope > tol:
        warn_caller(
            f"L-BFGS has ended after {best.nit} steps (max_iter={max_iter}) with a slope of "
            f"{slope:.1e}, more than tol={tol:.1e}, where {best.fun:.3g} of the variance is lost; "
            f"raise max_iter or tol, or ask for fewer units",
            ConvergenceWarning,
        )
    report = Report(
        f"L-BFGS(n_init={n_init})",
        Status.CONVERGED if slope <= tol else Status.NOT_CONVERGED,
        int(best.nit),
        slope,
        watch.seconds,
        "",
        {"loss": float(losses.min()), "spread": float(np.ptp(losses)), "restarts": n_init},
    )
    return FittedLayers(*_in_units(*E.halves(best.x), X, mean, scale), losses, report)


def _descend(
    E: LostVariance,
    theta: np.ndarray,
    tol: float,
    max_iter: int,
    k: int,
    n_init: int,
    say: Function[[str], None] | None,
) -> OptimizeResult:
    """Return where L-BFGS ends."""
    steps = 0

    def tell(intermediate_result: OptimizeResult) -> None:
        nonlocal steps
        steps += 1
        if say is not None:
            lost = f"{intermediate_result.fun:.4g} of the variance lost"
            say(Step(f"restart {k + 1} of {n_init}, step {steps}: {lost}"))

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": _PAIRS, "ftol": 0.0}
    return minimize(
        E, theta, jac=True, method="L-BFGS-B", callback=tell, options={**options, "gtol": tol}
    )


def _in_units(
    encoder: Layers, decoder: Layers, X: np.ndarray, mean: np.ndarray, scale: float
) -> tuple[Layers, Layers]:
    """Return both halves for points as they came, with principal axes in between."""
    there, back = ([W.copy() for W in half.weights] for half in (encoder, decoder))
    b, c = ([b.copy() for b in half.biases] for half in (encoder, decoder))
    b[0] -= mean @ there[0] / scale
    there[0] /= scale
    c[-1] = mean + scale * c[-1]
    back[-1] *= scale
    Z = Layers(tuple(there), tuple(b), encoder.activation)(X)
    centre = Z.mean(axis=0)
    axes = signed(np.linalg.eigh((Z - centre).T @ (Z - centre))[1][:, ::-1])
    c[0] += centre @ back[0]
    back[0] = axes.T @ back[0]
    b[-1] = (b[-1] - centre) @ axes
    there[-1] = there[-1] @ axes
    return Layers(tuple(there), tuple(b), encoder.activation), Layers(
        tuple(back), tuple(c), encoder.activation
    )
