"""Steps of Newton's within bounds, from a curvature that is only roughly known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Model"]

_LONGEST = 2.0  # in log parameters: no step is longer
_LEAST = 1e-12  # information, below which nothing is known of a parameter
_ROUNDING = 1e-9  # of the slopes
_FLAT = 1e-9  # curvature, as a part of the largest, below which a direction counts as this curved
_LINEAR = 0.5  # along longer steps the curvature changes too much to be learned
_KEPT = 3  # steps from which it is
_NEAR = 0.6  # within this factor of each other, what was told and what was seen agree
_AGREED = 0.05  # a change of slope below this part of the expected is no curvature to learn


@dataclass
class Model:
    """What is believed of a function near theta: v + g^T e - 1/2 e^T B e of a step d.

        e = exp(d) - 1 for a noise, else e = d

    K + noise is linear in a noise itself, and so nearly is the function where little of it is left,
    which in its logarithm levels off like an exponential: there every step would be a short one.

    The information B is known roughly at every theta, and well along the short steps that were
    taken, where the slopes at both ends tell: where these disagree, they correct it (BFGS).

    Parameters
    ----------
    bounds : ndarray of shape (p, 2)
    noises : ndarray of shape (p,)
        Which parameters are variances of noise.
    """

    bounds: np.ndarray
    noises: np.ndarray | bool = False
    reach: float | np.ndarray = 1.0  # of each parameter
    steps: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def corrected(self, B: np.ndarray) -> np.ndarray:
        """Return B with the curvature seen along the last steps."""
        for s, y in self.steps[-_KEPT:]:
            Bs = B @ s
            seen, told = s @ y, s @ Bs
            if seen > _AGREED * told > 0.0 and not _NEAR * told < seen < told / _NEAR:
                B = B - np.outer(Bs, Bs) / told + np.outer(y, y) / seen
        return B

    def step(self, theta: np.ndarray, g: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best step within bounds and within reach, and what it is expected to gain."""
        scale = np.sqrt(np.maximum(B.diagonal(), _LEAST))
        w, V = np.linalg.eigh(B / np.outer(scale, scale))
        # w[-1] >= 1, unless B itself vanishes: the objective is then flat, and H stays invertible
        H = (V * np.maximum(w, _FLAT * max(w[-1], 1.0))) @ V.T
        low, high = np.clip(self.bounds.T - theta, -self.reach, self.reach)
        least, most = self._straight(low), self._straight(high)
        e = np.clip(_within(H, g / scale, least * scale, most * scale) / scale, least, most)
        d = np.where(self.noises, np.log1p(np.where(self.noises, e, 0.0)), e)
        return np.clip(d, low, high), float(g @ e - 0.5 * e @ B @ e)

    def _straight(self, d: np.ndarray) -> np.ndarray:
        """Return e for d."""
        return np.where(self.noises, np.expm1(d), d)

    def least(self, s: np.ndarray, expected: float) -> float:
        """Return the gain above which a step s is taken, or at least learned from."""
        return -expected if np.abs(s).max() < _LINEAR else 0.0

    def judge(
        self, s: np.ndarray, g: np.ndarray, slopes: np.ndarray, gained: float, expected: float
    ) -> bool:
        """Learn from a step s, from slopes g to others; return whether to take it."""
        e = self._straight(s)
        if np.abs(s).max() < _LINEAR and slopes.any():  # of a step that lost much there are none
            ratio = np.where(self.noises, 1.0 + e, 1.0)  # de/dd
            self.steps.append((e, g - slopes / ratio))
        if gained < 0.25 * expected:
            # where the parabola through both values is highest, but not too near
            rise = g @ e
            part = 0.5 * rise / (rise - gained) if -np.inf < gained < rise else 0.0
            self.reach = np.minimum(self.reach, min(max(part, 0.1), 0.5) * np.abs(s))
        elif gained > 0.5 * expected:
            self.reach = np.minimum(_LONGEST, 4.0 * self.reach)
        return gained > 0.0


def _within(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the d in a box around 0 that maximises g^T d - 1/2 d^T H d, by active sets."""
    d = np.zeros(g.size)
    free = ((low < 0.0) | (g > 0.0)) & ((high > 0.0) | (g < 0.0))
    for _ in range(4 * g.size + 4):
        move = np.zeros(g.size)
        move[free] = np.linalg.solve(H[np.ix_(free, free)], (g - H @ d)[free])
        room = np.where(move > 0.0, high - d, np.where(move < 0.0, low - d, np.inf))
        share = np.divide(room, move, out=np.full(g.size, np.inf), where=move != 0.0)
        if share.min(initial=np.inf) < 1.0:  # the first bound on the way is kept from here on
            first = int(np.argmin(share))
            d = np.clip(d + max(share[first], 0.0) * move, low, high)
            d[first], free[first] = (high if move[first] > 0.0 else low)[first], False
            continue
        d = d + move
        pull = np.where(free, 0.0, (g - H @ d) * np.where(d >= high, -1.0, 1.0))
        if not pull.max(initial=0.0) > _ROUNDING * np.abs(g).max(initial=0.0):
            break
        free[np.argmax(pull)] = True  # a bound that holds it back from where it gains
    return d
