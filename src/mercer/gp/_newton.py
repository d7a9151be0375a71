"""Steps of Newton's within bounds, from a curvature that is only roughly known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import lsq_linear

__all__ = ["Model"]

_LONGEST = 3.0  # in log parameters: no step is longer
_LEAST = 1e-12  # information, below which nothing is known of a parameter
_FLAT = 1e-9  # curvature, as a part of the largest, below which a direction counts as this curved
_AGREED = 0.05  # a change of slope below this part of the expected is no curvature to learn


@dataclass
class Model:
    """What is believed of a function near theta: v + g^T d - 1/2 d^T B d.

    The information B is known roughly at every theta, and exactly along the steps that were
    taken, where the slopes at both ends tell: those correct it (BFGS).

    Parameters
    ----------
    bounds : ndarray of shape (p, 2)
    """

    bounds: np.ndarray
    damping: float = 0.0
    reach: float = _LONGEST
    steps: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def corrected(self, B: np.ndarray) -> np.ndarray:
        """Return B with the curvature seen along the last steps."""
        for s, y in self.steps[-len(B) :]:
            Bs = B @ s
            if s @ y > _AGREED * (s @ Bs) > 0.0:
                B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (s @ y)
        return B

    def step(self, theta: np.ndarray, g: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best step within bounds and within reach, and what it is expected to gain."""
        scale = np.sqrt(np.maximum(B.diagonal(), _LEAST))
        H = B / np.outer(scale, scale)
        H.flat[:: len(H) + 1] += self.damping
        w, V = np.linalg.eigh(H)
        root = np.sqrt(np.maximum(w, _FLAT * w[-1]))  # |R^T u - R^-1 g|^2 is least, R R^T = H
        low, high = np.clip((self.bounds.T - theta), -self.reach, self.reach) * scale
        high = np.maximum(high, low + 1e-9 * scale)
        u = lsq_linear(root[:, None] * V.T, (V.T @ (g / scale)) / root, (low, high), "bvls").x
        d = u / scale
        return d, float(g @ d - 0.5 * d @ B @ d)

    def judge(self, s: np.ndarray, y: np.ndarray, gained: float, expected: float) -> bool:
        """Learn from a step s, along which slopes fell by y; return whether to take it."""
        if not gained > 0.0:
            self.damping = max(4.0 * self.damping, 1.0)
            self.reach = 0.5 * float(np.abs(s).max())
            return False
        self.steps.append((s, y))
        if gained < 0.25 * expected:
            self.damping = max(2.0 * self.damping, 0.25)
        elif gained > 0.5 * expected:
            self.damping = self.damping / 4.0 if self.damping > 0.1 else 0.0
            self.reach = min(_LONGEST, 2.0 * self.reach)
        return True
