"""A search through sums and products of kernels, by marginal likelihood (Duvenaud et al., 2013).

    expression = sum of terms + noise,     term = factor x product of base kernels

From the best expression so far the next ones come by three moves: add a base kernel as a term,
multiply a term by one, put another in the place of one.  Each is judged by its BIC,

    log p(y | theta) - p/2 log n,     at the best theta,     p the number of parameters

and the search ends when no move raises that, or at the end of its budget.  An expression keeps the
theta of the one it was made from, and a new base kernel is tried at several scales; periods come
from the periodogram of what the best expression leaves unexplained.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.signal import lombscargle

from .._runtime import entry_point
from ..gp import Capabilities, MarginalLikelihood, maximise
from ..kernels import RBF, Bounded, Kernel, Periodic, Product, Scale, Select, Sum, White

__all__ = ["ExpressionSearch", "Story", "Tried"]

_SCALES = (0.05, 0.3, 2.0)  # length scales that are tried, in units of those of the base kernel
_FACTORS = (1.0, 0.1)  # factors of a new term, in units of the variance of the targets
_PEAKS = 2  # of each periodogram whose periods are tried
_STEPS = 40  # of a climb, at most
_ROUGH = 10.0  # a hundredth of this is the gain of a last step
_FINALISTS = 3  # of a level are climbed to the end
_NOISE = 0.1  # where the noise starts
_FREQUENCIES = 2000
_WORTH = 1.0  # a gain of the BIC below this is not worth a longer expression

Term = tuple[float, tuple[Kernel, ...]]  # a factor and base kernels


@dataclass(frozen=True)
class Tried:
    """An expression, and what it was worth."""

    level: int
    words: str
    bic: float
    log_likelihood: float
    parameters: int


@dataclass(frozen=True, eq=False)
class Story:
    """What a search tried, in order; `print` it.

    Attributes
    ----------
    tried : list of Tried
    kernel : Kernel
        The best expression, with its noise.
    message : str
        Why it ended.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import search_kernels
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> found = search_kernels(X, 2 * X[:, 0] + 1, [RBF(), Linear()], max_levels=1)
    >>> len(found.story.tried)
    2
    """

    tried: list[Tried]
    kernel: Kernel
    message: str

    @property
    def best(self) -> Tried:
        """The expression of the largest BIC."""
        return max(self.tried, key=lambda one: one.bic)

    def __str__(self) -> str:
        lines = []
        for level in range(max(one.level for one in self.tried) + 1):
            mine = sorted((t for t in self.tried if t.level == level), key=lambda t: -t.bic)
            lines.append(f"level {level}: {len(mine)} expressions")
            lines += [
                f"  BIC {one.bic:10.2f}  log likelihood {one.log_likelihood:10.2f}  {one.words}"
                for one in mine[:3]
            ]
            lines += ["  ..."] if mine[3:] else []
        return "\n".join([*lines, f"best: {self.best.words}", self.message])


class _Rough:
    """A likelihood whose last hundredths do not matter: a climb ends when a step gains less."""

    capabilities: ClassVar[Capabilities] = Capabilities(standard_error=True)

    def __init__(self, objective: MarginalLikelihood) -> None:
        self.X, self.value_and_gradient = objective.X, objective.value_and_gradient

    def standard_error(self, theta: Any) -> float:
        return _ROUGH


@dataclass(frozen=True, eq=False)
class _Expression:
    """A sum of terms, and noise."""

    terms: tuple[Term, ...]
    noise: float = _NOISE

    @cached_property
    def kernel(self) -> Sum:
        parts = (Scale(Product(b) if b[1:] else b[0], factor) for factor, b in self.terms)
        return Sum((*parts, White(self.noise)))

    @property
    def words(self) -> str:
        """The expression without its numbers, whatever the order of its parts."""
        return " + ".join(sorted(" × ".join(sorted(map(_name, b))) for _, b in self.terms))

    def at(self, kernel: Kernel) -> _Expression:
        """Return the expression with the parameters of its kernel at another theta."""
        *scaled, white = kernel.terms  # type: ignore[attr-defined]
        terms = tuple(
            (s.factor, s.kernel.factors if isinstance(s.kernel, Product) else (s.kernel,))
            for s in scaled
        )
        return _Expression(terms, white.noise)


@entry_point
class ExpressionSearch:
    """A greedy search; see the module.

    Parameters
    ----------
    X, y : points and targets
        The targets with mean 0 and variance 1.
    base : sequence of Kernel
        Each at a typical scale.
    max_levels, max_evaluations : int
        How many moves are made at most, and how many likelihoods computed.
    say : function, optional
    max_memory : int, str or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.learning import ExpressionSearch
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> story = ExpressionSearch(X, X[:, 0] / X.std(), [RBF(), Linear()], 1, 60).run()
    >>> len(story.tried)
    2
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        base: Sequence[Kernel],
        max_levels: int,
        max_evaluations: int,
        say: Function[[str], None] | None = None,
        max_memory: Any = None,
    ) -> None:
        self.X, self.y, self.base, self.say, self.max_memory = X, y, base, say, max_memory
        self.max_levels, self.left, self.most = max_levels, max_evaluations, max_evaluations
        self.tried: list[Tried] = []

    def run(self) -> Story:
        """Return what was tried."""
        best: tuple[float, _Expression] = (-np.inf, _Expression(()))
        message = f"it ended after {self.max_levels} levels, which are all that were allowed"
        for level in range(self.max_levels):
            rough: list[tuple[float, _Expression]] = []
            for starts in self._moves(best[1], self._periods(best[1])):
                if self.left <= 0:
                    break
                values = [self._objective(start).value() for start in starts]
                self.left -= len(starts)
                rough.append(self._climb(starts[int(np.argmax(values))], level, _Rough))
            rough.sort(key=lambda pair: -pair[0])
            found = [self._climb(e, level) for _, e in rough[:_FINALISTS] if self.left > 0]
            top = max(found, key=lambda pair: pair[0], default=best)
            gain, best = top[0] - best[0], top if top[0] > best[0] else best
            if self.say is not None:
                self.say(f"level {level}: BIC {best[0]:.2f}, {best[1].words}")
            if self.left <= 0:
                message = f"it ended at the budget of {self.most} likelihoods"
                break
            if gain <= _WORTH:
                message = f"no further move raises the BIC by more than {_WORTH:g}"
                break
        return Story(self.tried, best[1].kernel, message)

    def _climb(
        self, e: _Expression, level: int, view: Any = lambda objective: objective
    ) -> tuple[float, _Expression]:
        """Return the BIC of an expression at the best theta near its own, and that."""
        kernel = e.kernel
        found = maximise(view(self._objective(e)), kernel.theta, kernel.bounds, max_iter=_STEPS)
        self.left -= found.evaluations
        p = found.theta.size
        bic = float(found.value - 0.5 * p * np.log(len(self.y)))
        others = [t for t in self.tried if t.words != e.words]  # an earlier climb was a rough one
        self.tried = [*others, Tried(level, e.words, bic, float(found.value), p)]
        return bic, e.at(kernel.with_theta(found.theta))

    def _objective(self, expression: _Expression) -> MarginalLikelihood:
        return MarginalLikelihood(expression.kernel, self.X, self.y, max_memory=self.max_memory)

    def _moves(
        self, e: _Expression, periods: dict[int, list[float]]
    ) -> Iterator[list[_Expression]]:
        """Yield the expressions one move away, each at several starts."""
        seen = {one.words for one in self.tried}
        new = [list(_starts(k, periods)) for k in self.base]
        for starts in new:
            yield from _unseen(
                [
                    _Expression((*e.terms, (factor, (k,))), e.noise)
                    for k in starts
                    for factor in _FACTORS
                ],
                seen,
            )
        for i, (factor, inside) in enumerate(e.terms):

            def put(*kernels: Kernel, i: int = i, factor: float = factor) -> _Expression:
                return _Expression((*e.terms[:i], (factor, kernels), *e.terms[i + 1 :]), e.noise)

            for starts in new:
                if not any(_absorbs(starts[0], k) for k in inside):
                    yield from _unseen([put(*inside, k) for k in starts], seen)
                for j in range(len(inside)):
                    others = (*inside[:j], *inside[j + 1 :])
                    if not any(_absorbs(starts[0], k) for k in others):
                        yield from _unseen([put(*others, k) for k in starts], seen)

    def _periods(self, e: _Expression) -> dict[int, list[float]]:
        """Return periods of the targets, and of what is left of them, along each column."""
        if not isinstance(self.X, np.ndarray) or self.X.ndim != 2:
            return {}
        rests = [self.y]
        if e.terms:
            means, _ = self._objective(e).leave_one_out()
            rests.append(self.y - means[:, 0])
        return {
            j: [period for rest in rests for period in _peaks(x, rest)]
            for j, x in enumerate(self.X.T)
        }


def _unseen(starts: list[_Expression], seen: set[str]) -> Iterator[list[_Expression]]:
    """Yield the starts of an expression that was not tried before."""
    if starts[0].words not in seen:
        seen.add(starts[0].words)
        yield starts


def _absorbs(a: Kernel, b: Kernel) -> bool:
    """Tell whether the product of two kernels is of their own kind: RBF x RBF is an RBF."""
    return isinstance(_inside(a), RBF) and _name(a) == _name(b)


def _inside(kernel: Kernel) -> Kernel:
    """Return a base kernel without what selects columns and bounds parameters."""
    return _inside(kernel.kernel) if isinstance(kernel, (Select, Bounded)) else kernel


def _name(kernel: Kernel) -> str:
    inside = type(_inside(kernel)).__name__
    return f"{inside}[{kernel.columns[0]}]" if isinstance(kernel, Select) else inside


def _starts(kernel: Kernel, periods: dict[int, list[float]]) -> Iterator[Kernel]:
    """Yield a base kernel at several scales, or periods."""
    inner = _inside(kernel)
    column = kernel.columns[0] if isinstance(kernel, Select) else 0
    if isinstance(inner, Periodic):
        # where the data suggest none, the period that was given
        changes = [{"period": period} for period in periods.get(column, ())] or [{}]
    elif isinstance(scale := getattr(inner, "length_scale", None), float):
        changes = [{"length_scale": scale * s} for s in _SCALES]
    else:
        changes = [{}]
    prefix, outer = "", kernel
    while outer is not inner:
        prefix, outer = prefix + "kernel__", outer.kernel  # type: ignore[attr-defined]
    for change in changes:
        yield kernel.set_params(**{prefix + name: value for name, value in change.items()})


def _peaks(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the periods at which the periodogram of y, without its linear trend, peaks."""
    gaps = np.diff(np.unique(x))
    if len(gaps) < 4:
        return []
    y = y - np.polyval(np.polyfit(x - x.mean(), y, 1), x - x.mean())
    span = float(np.ptp(x))
    frequencies = np.linspace(2.0 / span, 0.5 / float(np.median(gaps)), _FREQUENCIES)
    if not np.any(y) or frequencies[-1] <= frequencies[0]:
        return []
    power = lombscargle(x, y, 2.0 * np.pi * frequencies)
    inner = power[1:-1]
    tops = 1 + np.flatnonzero((inner >= power[:-2]) & (inner >= power[2:]))
    order = tops[np.argsort(-power[tops], kind="stable")][:_PEAKS]
    return [float(1.0 / f) for f in frequencies[order]]
