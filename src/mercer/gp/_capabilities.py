"""The optional methods of an objective that `maximise` may call."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capabilities"]


@dataclass(frozen=True)
class Capabilities:
    """Which optional methods an objective supports; all are False by default.

    `maximise` calls an optional method only if the objective's `capabilities` list it.  A wrapper
    around another objective may define all of the methods.  It lists only those that the wrapped
    objective supports as well, because the others would fail.

    Attributes
    ----------
    subset : bool
        ``subset(rows)`` returns the objective restricted to some of the observations.
    standard_error : bool
        The value is an estimate, and ``standard_error(theta)`` returns its standard error.
    information : bool
        ``with_information(theta, above)`` also returns approximate second derivatives, and
        ``noises`` marks the parameters that are noise variances.
    cheap_information : bool
        ``with_information`` costs about as much as a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import InducingBound, MarginalLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 5)[:, None]
    >>> MarginalLikelihood(RBF(), X, X, 0.1).capabilities.information
    True
    >>> InducingBound(RBF(), X, X, 0.1).capabilities.information
    False
    """

    subset: bool = False
    standard_error: bool = False
    information: bool = False
    cheap_information: bool = False
