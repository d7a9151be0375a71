"""Trust-region Newton steps within bounds, with approximate second derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class _TrustRegionTuning:
    """Tolerances and limits of the trust-region steps; theta contains logarithms of parameters."""

    # Largest trust-region radius, in log parameters.
    max_step: float = 2.0
    # Lower limit of the diagonal of the curvature matrix B, which scales the parameters.  An entry
    # is 0 if the objective does not depend on the parameter.
    min_information: float = 1e-12
    # Multipliers of active bounds below this, relative to the largest gradient entry, count as 0.
    gradient_rounding: float = 1e-9
    # Lower limit of the eigenvalues of the scaled B, relative to the largest one.
    min_relative_curvature: float = 1e-9
    # Curvature is estimated only from steps shorter than this, in log parameters: along longer
    # steps it changes too much.
    max_learning_step: float = 0.5
    # Number of recent steps that are used to correct B.
    n_corrections: int = 3
    # A step corrects B only if the ratio of the observed curvature to that predicted by B is below
    # this value or above its inverse.
    agreement_ratio: float = 0.6
    # Observed curvature below this fraction of the predicted one is not used: BFGS updates need
    # positive curvature.
    min_curvature_ratio: float = 0.05


_TUNING = _TrustRegionTuning()


@dataclass
class QuadraticModel:
    """Quadratic model v + g^T e - 1/2 e^T B e of an objective at theta + d, for a step d.

        e = exp(d) - 1 for a noise variance, else e = d

    v and g are the value and gradient at theta, which contains the logarithms of the parameters.  K
    + noise is linear in the noise variance, and if this variance is small, the objective is nearly
    linear in it as well.  In the logarithm of the variance, the objective would flatten
    exponentially, and all steps would be short.

    B approximates minus the second derivatives.  Along recent short steps, the gradients at both
    ends give the actual curvature.  Where it differs from B, BFGS updates correct B.

    Parameters
    ----------
    bounds : ndarray of shape (p, 2)
        The bounds of theta.
    noise_mask : ndarray of shape (p,), optional
        Mask of the parameters that are noise variances.
    radius : float or ndarray of shape (p,), default=1
        The trust-region radius for each parameter; `update` adapts it.
    steps : list of pairs of ndarrays
        Each recent step e, with the decrease of the gradient along it.
    """

    bounds: np.ndarray
    noise_mask: np.ndarray | bool = False
    radius: float | np.ndarray = 1.0
    steps: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def bfgs_corrected(self, B: np.ndarray) -> np.ndarray:
        """Return B with BFGS corrections for the curvature along the last steps."""
        for s, y in self.steps[-_TUNING.n_corrections :]:
            Bs = B @ s
            observed, predicted = s @ y, s @ Bs
            if (
                observed > _TUNING.min_curvature_ratio * predicted > 0.0
                and not _TUNING.agreement_ratio * predicted
                < observed
                < predicted / _TUNING.agreement_ratio
            ):
                B = B - np.outer(Bs, Bs) / predicted + np.outer(y, y) / observed
        return B

    def step(self, theta: np.ndarray, g: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best step d within the bounds and the trust region, and its predicted gain."""
        scale = np.sqrt(np.maximum(B.diagonal(), _TUNING.min_information))
        w, V = np.linalg.eigh(B / np.outer(scale, scale))
        # w[-1] >= 1 unless B is 0 (a flat objective); max(w[-1], 1) keeps H invertible even then
        H = (V * np.maximum(w, _TUNING.min_relative_curvature * max(w[-1], 1.0))) @ V.T
        low, high = np.clip(self.bounds.T - theta, -self.radius, self.radius)
        e_low, e_high = self._to_model_step(low), self._to_model_step(high)
        e = np.clip(
            _maximise_in_box(H, g / scale, e_low * scale, e_high * scale) / scale, e_low, e_high
        )
        d = np.where(self.noise_mask, np.log1p(np.where(self.noise_mask, e, 0.0)), e)
        return np.clip(d, low, high), float(g @ e - 0.5 * e @ B @ e)

    def _to_model_step(self, d: np.ndarray) -> np.ndarray:
        """Return e = exp(d) - 1 for noise variances, else e = d."""
        return np.where(self.noise_mask, np.expm1(d), d)

    def min_useful_gain(self, s: np.ndarray, predicted_gain: float) -> float:
        """Return the gain above which the derivatives at the end of a step s are needed.

        They are needed if the step is accepted, or if it is short enough to correct B.
        """
        return -predicted_gain if np.abs(s).max() < _TUNING.max_learning_step else 0.0

    def update(
        self,
        s: np.ndarray,
        g: np.ndarray,
        new_gradient: np.ndarray,
        actual_gain: float,
        predicted_gain: float,
    ) -> bool:
        """Update the model after a step s from gradient g; return whether to accept the step."""
        e = self._to_model_step(s)
        # A new gradient of 0 means that it was not computed.
        if np.abs(s).max() < _TUNING.max_learning_step and new_gradient.any():
            ratio = np.where(self.noise_mask, 1.0 + e, 1.0)  # the derivative of e in the step s
            self.steps.append((e, g - new_gradient / ratio))
        if actual_gain < 0.25 * predicted_gain:
            # Shrink the radius to the maximum of the parabola through the values at both ends of
            # the step, but to no less than 0.1 and no more than 0.5 of the step.
            linear_gain = g @ e
            fraction = (
                0.5 * linear_gain / (linear_gain - actual_gain)
                if -np.inf < actual_gain < linear_gain
                else 0.0
            )
            self.radius = np.minimum(self.radius, min(max(fraction, 0.1), 0.5) * np.abs(s))
        elif actual_gain > 0.5 * predicted_gain:
            self.radius = np.minimum(_TUNING.max_step, 4.0 * self.radius)
        return actual_gain > 0.0


def _maximise_in_box(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the d in a box around 0 that maximises g^T d - 1/2 d^T H d.

    This is an active-set method: `free` marks the variables that are not fixed at a bound.
    """
    d = np.zeros(g.size)
    free = ((low < 0.0) | (g > 0.0)) & ((high > 0.0) | (g < 0.0))
    for _ in range(4 * g.size + 4):
        move = np.zeros(g.size)
        move[free] = np.linalg.solve(H[np.ix_(free, free)], (g - H @ d)[free])
        distance = np.where(move > 0.0, high - d, np.where(move < 0.0, low - d, np.inf))
        fraction = np.divide(distance, move, out=np.full(g.size, np.inf), where=move != 0.0)
        if fraction.min(initial=np.inf) < 1.0:  # stop at the first bound and fix that variable
            blocking = int(np.argmin(fraction))
            d = np.clip(d + max(fraction[blocking], 0.0) * move, low, high)
            d[blocking], free[blocking] = (high if move[blocking] > 0.0 else low)[blocking], False
            continue
        d = d + move
        multipliers = np.where(free, 0.0, (g - H @ d) * np.where(d >= high, -1.0, 1.0))
        if not multipliers.max(initial=0.0) > _TUNING.gradient_rounding * np.abs(g).max(
            initial=0.0
        ):
            break
        free[np.argmax(multipliers)] = True  # free the variable whose release gains most
    return d
