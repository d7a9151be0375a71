"""A `Plan`: how a fit will be computed, with its memory and time, before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._core import MemoryBudgetError, MemoryLimit, NotebookResult, budget_in_bytes, format_bytes
from ._cost_model import Cost

_MIN_TIME_RATIO = 1.05  # options whose predicted times differ by less count as equally fast
_NO_FIT = "does not fit the budget"


@dataclass(frozen=True)
class Option:
    """One way to compute a fit: a solver and a storage, with memory and time.

    Attributes
    ----------
    solver : str
        The name of the solver, as in the parameter of the estimator.
    storage : str
        What is stored: "dense" (the kernel matrix), "tiled" (no matrix), "rows" (a cache of rows),
        "low rank" (features on landmarks), "features", "distributed", or "points".
    memory : int
        The predicted peak memory of the fit in bytes, without the data that are passed to it.
    cost : Cost, default=Cost()
        The predicted work; `cost.seconds` is comparable between the options of a plan.
    exact : bool, default=True
        Whether the result is exact up to rounding and the tolerance of the solver.
    rank : int or None, default=None
        The number of landmarks or features.
    required : int or None, default=None
        The smallest memory budget that the fit accepts, in bytes.  It may be larger than `memory`,
        because it is an upper bound, or smaller, because the fit uses more memory if it can.  None
        means `memory`; in a `Plan`, it is always a number.
    rejection : str, default=""
        Why the option cannot be used; empty if it can.
    reason : str, default=""
        Why the option was chosen, or why it was not.
    passes : str, default=""
        The number of passes over the kernel matrix K, as text such as "3-6"; empty if unknown.
    entries : float or None, default=None
        The number of kernel evaluations.
    low_memory : bool, default=False
        Whether the solver uses its smallest workspace.

    Examples
    --------
    >>> from mercer.solvers import Cost, Option
    >>> Option("cholesky", "dense", 8 * 1000**2, Cost(factors=1e9 / 3)).fits
    True
    """

    solver: str
    storage: str
    memory: int
    cost: Cost = Cost()  # noqa: RUF009
    exact: bool = True
    rank: int | None = None
    required: int | None = None
    rejection: str = ""
    reason: str = ""
    passes: str = ""
    entries: float | None = None
    low_memory: bool = False

    @property
    def eigen_solver(self) -> str:
        """The solver, under the name of the parameter of `KernelPCA`."""
        return self.solver

    @property
    def fits(self) -> bool:
        """Whether the option can be used."""
        return not self.rejection

    def within(self, budget: int) -> Option:
        """Return the option, rejected if it needs more memory than the budget.

        Parameters
        ----------
        budget : int
            Memory budget in bytes.

        Returns
        -------
        Option
            The option, with numbers for `required` and a `rejection` if it does not fit.
        """
        needed = self.memory if self.required is None else self.required
        text = _NO_FIT if self.memory > budget else f"needs a budget of {format_bytes(needed)}"
        rejection = self.rejection or ("" if needed <= budget else text)
        return replace(self, required=needed, rejection=rejection)


@dataclass(frozen=True, repr=False)
class Plan(NotebookResult):
    """How an estimator will be fitted: the chosen solver, and every alternative.

    Printing a plan shows a table, in which the chosen option is marked with ">".

    Attributes
    ----------
    problem : str
        A description of the problem.
    n : int
        The number of points.
    budget : int
        The memory budget in bytes.
    options : tuple of Option
        All options.
    chosen : Option or None
        The option that `fit` will use; None if `fit` will raise a `MemoryBudgetError`.
    advice : str, default=""
        What to do if no option was chosen.
    note : str, default=""
        A remark that is printed below the table.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> plan = KernelPCA(n_components=10, kernel="rbf").plan(np.zeros((50_000, 20)))
    >>> plan.chosen.eigen_solver, plan.chosen.storage
    ('krylov', 'tiled')
    """

    problem: str
    n: int
    budget: int
    options: tuple[Option, ...]
    chosen: Option | None
    advice: str = ""
    note: str = ""

    def __str__(self) -> str:
        lines = [f"{self.problem}, budget {format_bytes(self.budget)}", *self._table()]
        if self.chosen is None:
            lines += [f"  {line}" for line in self.advice.splitlines()]
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)

    @property
    def summary(self) -> str:
        """The chosen option in one line."""
        if self.chosen is None:
            return f"{self.problem}: no method fits the budget of {format_bytes(self.budget)}"
        return f"{self.problem}: {self._describe(self.chosen)}"

    @property
    def seconds(self) -> float:
        """The predicted seconds of the chosen option on one core; infinity if there is none."""
        return np.inf if self.chosen is None else self.chosen.cost.seconds

    def require(self) -> Option:
        """Return the chosen option.

        Returns
        -------
        Option
            The option that `fit` will use.

        Raises
        ------
        MemoryBudgetError
            If no option fits the memory budget; the message lists all options.
        """
        if self.chosen is None:
            raise MemoryBudgetError(f"no exact method fits the memory budget.\n{self}")
        return self.chosen

    def _describe(self, option: Option) -> str:
        rank = "" if option.rank is None else f", rank {option.rank}"
        return (
            f"{option.solver}, {option.storage}{rank}, about {format_bytes(option.memory)} "
            f"({option.reason})"
        )

    def _table(self) -> list[str]:
        """Return the header and the rows of the table; empty columns are left out."""
        times = [option.cost.seconds for option in self.options]
        known = [t for t, option in zip(times, self.options, strict=True) if 0 < t < np.inf]
        exact = [t for t, o in zip(times, self.options, strict=True) if o.exact and 0 < t < np.inf]
        fastest = min(exact or known, default=np.inf)
        columns = {
            "solver": [option.solver for option in self.options],
            "storage": [option.storage for option in self.options],
            "rank": ["" if o.rank is None else f"{o.rank}" for o in self.options],
            "memory": [format_bytes(option.memory) for option in self.options],
            "passes over K": [option.passes for option in self.options],
            "entries of K": ["" if o.entries is None else f"{o.entries:.1e}" for o in self.options],
            "time": [_format_ratio(t / fastest) if t > 0 else "" for t in times],
            "result": ["exact" if option.exact else "approximate" for option in self.options],
            "reason": [option.reason for option in self.options],
        }
        if len(known) < 2:
            columns["time"] = [""] * len(times)
        shown = [[title, *cells] for title, cells in columns.items() if any(cells)]
        numeric = ("rank", "memory", "passes over K", "entries of K", "time")
        padded = []
        for cells in shown:
            width = max(map(len, cells))
            pad = str.rjust if cells[0] in numeric else str.ljust
            padded.append([pad(cell, width) for cell in cells])
        marks = [" ", *(">" if option is self.chosen else " " for option in self.options)]
        return [
            f"{mark} {'  '.join(cells)}".rstrip()
            for mark, cells in zip(marks, zip(*padded, strict=True), strict=True)
        ]


def make_plan(
    problem: str,
    n: int,
    options: Sequence[Option],
    chosen: int | str | None = 0,
    *,
    spec: object = "auto",
    parameter: str = "solver",
    max_memory: MemoryLimit = None,
    because: str = "",
    advice: str = "increase max_memory, or use fewer points",
    note: str = "",
) -> Plan:
    """Return a plan, with a reason for each option.

    Parameters
    ----------
    problem : str
        A description of the problem.
    n : int
        The number of points.
    options : sequence of Option
        The options, without reasons.
    chosen : int, str or None
        The index or the name of the chosen option; None if there is none.
    spec : str or solver, default="auto"
        The value of the parameter of the estimator that requests a solver.
    parameter : str, default="solver"
        The name of this parameter.
    max_memory : int, str or None
        The memory budget.
    because : str
        Why the option was chosen; by default from the comparison with the other options.
    advice : str
        What to do if the chosen option does not fit the budget.
    note : str
        A remark that is printed below the table.

    Examples
    --------
    >>> from mercer.solvers import Cost, Option
    >>> from mercer.solvers._plan import make_plan
    >>> options = [
    ...     Option("direct", "dense", 8 * 10**8, Cost(factors=3e11)),
    ...     Option("iterative", "tiled", 10**7, Cost(entries=5e8)),
    ... ]
    >>> print(make_plan("a system of 10000 points", 10_000, options, 1, max_memory="2 GiB"))
    a system of 10000 points, budget 2.0 GiB
      solver     storage     memory  time  result  reason
      direct     dense    762.9 MiB   15x  exact   15x the time
    > iterative  tiled      9.5 MiB  1.0x  exact   fastest
    """
    budget = budget_in_bytes(max_memory)
    options = [option.within(budget) for option in options]
    if isinstance(chosen, str):
        chosen = next(i for i, option in enumerate(options) if option.solver == chosen)
    best = None if chosen is None else options[chosen]
    is_requested = not (isinstance(spec, str) and spec in ("auto", "exact"))

    def explain(i: int, option: Option) -> str:
        if option.rejection or best is None:
            return option.rejection or "approximate"
        if i == chosen:
            return because or ("requested" if is_requested else _reason_for(best, options))
        return f"{parameter} is {spec!r}" if is_requested else _compare(option, best)

    explained = tuple(replace(o, reason=explain(i, o)) for i, o in enumerate(options))
    taken = explained[chosen] if chosen is not None and explained[chosen].fits else None
    return Plan(problem, n, budget, explained, taken, advice, note)


def _reason_for(chosen: Option, options: Sequence[Option]) -> str:
    """Return why the chosen option is preferred to the others."""
    rivals = [option for option in options if option is not chosen and option.exact == chosen.exact]
    if not rivals or not chosen.cost.seconds:
        return "the only exact method" if len(options) > 1 and chosen.exact else "the only method"
    is_fastest = all(chosen.cost.seconds <= option.cost.seconds for option in rivals)
    return "fastest" if is_fastest else "fastest that fits"


def _compare(option: Option, chosen: Option) -> str:
    """Return why an option that can be used was not chosen."""
    if chosen.exact and not option.exact:
        return "approximate"
    ratio = option.cost.seconds / chosen.cost.seconds if chosen.cost.seconds else np.nan
    if _MIN_TIME_RATIO < ratio < np.inf:
        return f"{_format_ratio(ratio)} the time"
    if option.memory > chosen.memory:
        return f"{_format_ratio(option.memory / max(1, chosen.memory))} the memory"
    return "not preferred"


def _format_ratio(ratio: float) -> str:
    """Return a ratio as text, such as "2.5x"; "-" if it is not known."""
    return f"{ratio:.{1 if ratio < 10 else 0}f}x" if np.isfinite(ratio) else "-"
