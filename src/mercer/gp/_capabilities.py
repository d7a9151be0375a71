"""The optional methods of an objective that a search may call."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capabilities"]


@dataclass(frozen=True)
class Capabilities:
    """Which optional methods an objective has; the default is none of them.

    `maximise` calls an optional method only if the objective's `capabilities` list it.  An
    objective that wraps another one lists the methods that it forwards *and* that the inner
    objective has, so that having a method of some name never stands for being able to call it.

    Attributes
    ----------
    subset : bool
        ``subset(rows)`` returns the objective on some of the observations.
    standard_error : bool
        ``standard_error(theta)`` is the standard error of the value, which is an estimate.
    information : bool
        ``with_information(theta, above)`` returns approximate second derivatives as well, and
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
