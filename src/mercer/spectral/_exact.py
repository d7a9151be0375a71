"""The components of a centred Gram by an exact solver: how many, and of what spectrum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..gram import CentredGram
from ..solvers import DenseEigen, EigenPairs, signs_of
from ._components import Components
from ._spectrum import checked_spectrum, gains_of, how_many, mended

__all__ = ["exact_components", "leading_pairs"]

_FIRST = 16  # components tried first when a share of the variance is asked for


def leading_pairs(
    centred: CentredGram, solver: Any, wanted: int | float, say: Callable[[str], None]
) -> EigenPairs:
    """Return as many eigenpairs as are wanted; for a share of the variance, in growing sets."""
    n = centred.shape[0]
    run = partial(solver.eigenpairs, centred, overwrite=True, say=say)
    if wanted >= 1:
        return run(min(n, int(wanted)))
    if isinstance(solver, DenseEigen):
        pairs = run(n)
    else:
        k, pairs, reached = min(n, _FIRST), None, 0.0
        while pairs is None or (reached < wanted and k < n):
            k = k if pairs is None else min(n, 2 * k)
            pairs = run(k, start=None if pairs is None else pairs.vectors)
            reached = float(pairs.values.sum()) / max(centred.trace(), 1e-300)
            say(f"{k} components explain {reached:.2%}")
    return pairs.first(how_many(pairs.values, centred.trace(), wanted))


def exact_components(
    centred: CentredGram,
    pairs: EigenPairs,
    points: Any,
    *,
    n_components: int | float | None,
    policy: str = "raise",
    drop_zeros: bool = False,
) -> Components:
    """Check or mend the spectrum, and return the components in all points."""
    size = float(np.abs(centred.uncentred_diagonal).sum())
    if policy == "raise":
        pairs = dataclasses.replace(pairs, values=checked_spectrum(pairs.values, size))
        gains, total, k = gains_of(pairs.values), centred.trace(), len(pairs.values)
        if pairs.values.sum() > total + 1e-8 * (size + abs(total)):
            text = (
                f"the eigenvalues printed add up to more than the trace {total:.6g} of all: there "
                f"are negative ones, and shares and errors mean little; see indefinite="
            )
            report = dataclasses.replace(pairs.report, message=f"{pairs.report.message} {text}")
            pairs = dataclasses.replace(pairs, report=report)
    else:
        pairs, gains = mended(pairs, policy, size)
        total = float(pairs.values.sum())
        k = how_many(pairs.values, total, n_components)
    if drop_zeros:
        k = min(k, int(np.sum(pairs.values > 0)))
    pairs = pairs.first(k)
    if not np.all(centred.scale == centred.scale[0]):  # the sign that repeated points would have
        signs = signs_of(pairs.vectors / centred.scale[:, None])
        pairs = dataclasses.replace(pairs, vectors=pairs.vectors * signs)
    return Components.exact(centred, pairs, points, gains[:k], total)
