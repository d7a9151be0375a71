"""The method `plan` of all estimators: how a fit will be computed, with its memory and time."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import validate_data

from .._core import Points, length
from ..blocks import Blocks, with_targets
from ..solvers import Plan, plan_stored_points
from ._blockwise import in_memory
from ._parameters import fit_method
from ._training_sample import Sample


class PlanMixin:
    """Mixin that adds the method `plan` to an estimator."""

    @fit_method
    def plan(self, X: Points, y: ArrayLike | None = None) -> Plan:
        """Return how `fit` will be computed: its solver, memory and time, and the alternatives.

        X and y are validated, but the model is not fitted, and no kernel matrix is computed.

        Parameters
        ----------
        X : points or blocks
            The points that would be passed to `fit`. Only their number, their type and the number
            of columns matter.
        y : array-like of shape (n,) or (n, n_targets), or None, default=None
            The targets or labels that would be passed to `fit`. None means one target, or two
            classes of equal size.

        Returns
        -------
        Plan
            A table to print, with the memory of each solver and its time relative to the fastest.
            The chosen option is `plan.chosen`; it is None if `fit` would raise a
            `MemoryBudgetError`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelRidge
        >>> X = np.broadcast_to(0.0, (30_000, 10))
        >>> plan = KernelRidge(kernel="rbf", max_memory="2 GiB").plan(X)
        >>> print(plan.summary[:46])
        kernel ridge regression of 30000 points, 1 tar
        >>> plan.chosen.solver, plan.chosen.storage
        ('cg', 'tiled')
        """
        model = copy(self)  # validation sets attributes
        return model._plan(model._plan_sample(X, y))

    def _plan_sample(self, X: Points, y: ArrayLike | None) -> Sample:
        """Return the validated sample of a plan; points in blocks are not loaded."""
        model: Any = self
        in_blocks, labels = isinstance(X, Blocks), is_classifier(self)
        if not in_blocks and (check := getattr(self, "_check", None)) is not None:
            return Sample.of(check(X, reset=True))
        if not in_blocks and not hasattr(self, "_sample"):
            return Sample.of(validate_data(self, X, dtype=np.float64))
        if in_blocks:
            if hasattr(self, "_gathers_blocks"):
                self._gathers_blocks()  # raises an error if blocks are not supported
            sample = Sample.of(X, order=None)
        if not (labels or is_regressor(self)):
            return sample if in_blocks else model._sample(X, copy=False)
        if y is None:
            y = np.arange(length(X)) % 2 if labels else np.broadcast_to(0.0, length(X))
        if in_blocks:
            targets = np.asarray(in_memory(with_targets(X, y, None).y))
            return model._with_targets(sample, targets, labels)
        return model._sample(X, y, labels=labels, copy=False)

    def _plan(self, sample: Sample) -> Plan:
        """Return the plan for a validated sample; by default, there are no alternatives."""
        problem, option = self._planned_option(sample)
        budget = getattr(self, "max_memory", None)
        return plan_stored_points(problem, sample.points, max_memory=budget, **option)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        """Return a description of the problem, and arguments of `plan_stored_points`.

        By default, the points are only stored.
        """
        return f"{type(self).__name__} of {len(sample)} points", {}


def n_of(count: int, thing: str) -> str:
    """Return a number with a noun, such as "1 target" or "3 classes"."""
    plural = f"{thing}es" if thing.endswith("s") else f"{thing}s"
    return f"{count} {thing if count == 1 else plural}"
