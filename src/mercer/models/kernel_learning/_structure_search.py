"""Greedy search for a kernel structure, by marginal likelihood (Duvenaud et al., 2013).

    expression = sum of terms + noise,     term = factor x product of base kernels

At each level, new expressions are derived from the best one so far by three moves: add a base
kernel as a term, multiply a term by a base kernel, or replace a base kernel by another.  An
expression is scored by its Bayesian information criterion (BIC, larger is better),

    log p(y | theta) - p/2 log n

for n points and p parameters, at the best theta.  The search ends when no move raises the BIC
enough, or when the budget of evaluations is used up.  The optimisation of a new expression starts
from the parameters of the expression it was derived from, with several starting length scales for
the new base kernel.  The starting values of periods are peaks in the periodograms of the targets
and of the residuals of the best expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.signal import lombscargle

from ..._core import MemoryLimit, Points, ProgressCallback, entry_point
from ...kernels import RBF, Bounded, Kernel, Periodic, Product, Scale, Select, Sum, White
from ..gp import Capabilities, MarginalLikelihood, maximise


@dataclass(frozen=True)
class _StructureSearchTuning:
    """Starting values and limits of the search."""

    # Starting length scales of a new base kernel, relative to the length scale in `base`.
    length_scales: tuple[float, ...] = (0.05, 0.3, 2.0)
    # Starting factors of a new term, relative to the variance of the targets.
    factors: tuple[float, ...] = (1.0, 0.1)
    # Number of peaks of each periodogram that are used as starting periods.
    n_peaks: int = 2
    # Maximum number of iterations of one optimisation of theta.
    max_iter: int = 40
    # Standard error that the coarse optimisation assumes for the likelihood; it stops when a step
    # gains less than about a hundredth of it.
    coarse_standard_error: float = 10.0
    # Number of expressions per level that are optimised to full precision.
    n_finalists: int = 3
    # Starting value of the noise variance, for targets of variance 1.
    noise: float = 0.1
    # Number of frequencies at which a periodogram is evaluated.
    n_frequencies: int = 2000
    # The search continues only if the last level raised the BIC by more than this.
    min_bic_gain: float = 1.0


_TUNING = _StructureSearchTuning()

Term = tuple[float, tuple[Kernel, ...]]  # the factor of a term, and its base kernels


@dataclass(frozen=True)
class Candidate:
    """An expression that was evaluated in the search, with its scores.

    Attributes
    ----------
    level : int
        The level of the search, from 0.
    words : str
        The expression without its parameters, such as "Linear + Periodic × RBF".
    bic : float
        The Bayesian information criterion; larger is better.
    log_likelihood : float
        The log marginal likelihood of the targets.
    parameters : int
        The number of parameters.
    """

    level: int
    words: str
    bic: float
    log_likelihood: float
    parameters: int


@dataclass(frozen=True, eq=False)
class SearchLog:
    """The expressions that a structure search evaluated; `print` it for a report by level.

    Attributes
    ----------
    tried : list of Candidate
        The expressions, in the order in which they were evaluated.
    kernel : Kernel
        The kernel of the best expression, including the noise.
    message : str
        The reason why the search ended.

    See Also
    --------
    search_kernels : Run a structure search.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import search_kernels
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> result = search_kernels(X, 2 * X[:, 0] + 1, [RBF(), Linear()], max_levels=1)
    >>> len(result.story.tried)
    2
    """

    tried: list[Candidate]
    kernel: Kernel
    message: str

    @property
    def best(self) -> Candidate:
        """The expression with the largest BIC."""
        return max(self.tried, key=lambda candidate: candidate.bic)

    def __str__(self) -> str:
        lines = []
        for level in range(max(candidate.level for candidate in self.tried) + 1):
            of_level = sorted((t for t in self.tried if t.level == level), key=lambda t: -t.bic)
            lines.append(f"level {level}: {len(of_level)} expressions")
            lines += [
                f"  BIC {t.bic:10.2f}  log likelihood {t.log_likelihood:10.2f}  {t.words}"
                for t in of_level[:3]
            ]
            lines += ["  ..."] if of_level[3:] else []
        return "\n".join([*lines, f"best: {self.best.words}", self.message])


class _CoarseObjective:
    """A likelihood that the optimiser maximises only roughly, to screen many expressions cheaply.

    Its large standard error makes the optimiser stop when a step gains little.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(standard_error=True)

    def __init__(self, objective: MarginalLikelihood) -> None:
        self.X, self.value_and_gradient = objective.X, objective.value_and_gradient

    def standard_error(self, theta: np.ndarray) -> float:
        return _TUNING.coarse_standard_error


@dataclass(frozen=True, eq=False)
class _Expression:
    """A kernel expression: a sum of terms, each a factor times base kernels, plus noise."""

    terms: tuple[Term, ...]
    noise: float = _TUNING.noise

    @cached_property
    def kernel(self) -> Sum:
        parts = (Scale(Product(b) if b[1:] else b[0], factor) for factor, b in self.terms)
        return Sum((*parts, White(self.noise)))

    @property
    def words(self) -> str:
        """The expression without its parameters, sorted to compare structures."""
        return " + ".join(sorted(" × ".join(sorted(map(_kernel_name, b))) for _, b in self.terms))

    def with_parameters(self, kernel: Kernel) -> _Expression:
        """Return the expression with the parameters of `kernel`, which has the same structure."""
        *scaled, white = kernel.terms  # type: ignore[attr-defined]
        terms = tuple(
            (s.factor, s.kernel.factors if isinstance(s.kernel, Product) else (s.kernel,))
            for s in scaled
        )
        return _Expression(terms, white.noise)


@entry_point
class ExpressionSearch:
    """Greedy search for the sum of products of base kernels with the largest BIC.

    At each level, the best expression so far is extended by one move: a base kernel is added as a
    term, multiplied with a term, or replaced by another one.  An expression is scored by log p(y |
    theta) - p/2 log n, for n points and p parameters at the best theta.

    Parameters
    ----------
    X : points
        The n training points.
    y : ndarray of shape (n,)
        The targets, with mean 0 and variance 1.
    base : sequence of Kernel
        The base kernels, each with a typical length scale.
    max_levels : int
        The maximum number of moves.  Each adds at most one base kernel.
    max_evaluations : int
        The maximum number of evaluations of the marginal likelihood, which limits the time.
    log : function, optional
        Function that is called with a line of progress text after each level.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    See Also
    --------
    search_kernels : The function for users, which also scales the targets.

    References
    ----------
    Duvenaud, Lloyd, Grosse, Tenenbaum and Ghahramani, "Structure discovery in nonparametric
    regression through compositional kernel search", ICML 2013.

    Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.models.kernel_learning import ExpressionSearch
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> log = ExpressionSearch(X, X[:, 0] / X.std(), [RBF(), Linear()], 1, 60).run()
    >>> len(log.tried)
    2
    """

    def __init__(
        self,
        X: Points,
        y: np.ndarray,
        base: Sequence[Kernel],
        max_levels: int,
        max_evaluations: int,
        log: ProgressCallback | None = None,
        max_memory: MemoryLimit = None,
    ) -> None:
        self.X, self.y, self.base, self.log, self.max_memory = X, y, base, log, max_memory
        self.max_levels, self.max_evaluations = max_levels, max_evaluations
        self.n_left = max_evaluations
        self.tried: list[Candidate] = []

    def run(self) -> SearchLog:
        """Run the search, and return the expressions that were evaluated.

        Returns
        -------
        SearchLog
            The candidates in the order of their evaluation, the best kernel, and why the search
            ended.
        """
        best: tuple[float, _Expression] = (-np.inf, _Expression(()))
        message = f"the search ended after max_levels={self.max_levels} levels"
        for level in range(self.max_levels):
            coarse: list[tuple[float, _Expression]] = []
            for starts in self._moves(best[1], self._starting_periods(best[1])):
                if self.n_left <= 0:
                    break
                values = [self._objective(start).value() for start in starts]
                self.n_left -= len(starts)
                coarse.append(self._optimise(starts[int(np.argmax(values))], level, coarse=True))
            coarse.sort(key=lambda pair: -pair[0])
            screened = coarse[: _TUNING.n_finalists]
            finalists = [self._optimise(e, level) for _, e in screened if self.n_left > 0]
            level_best = max(finalists, key=lambda pair: pair[0], default=best)
            gain, best = level_best[0] - best[0], level_best if level_best[0] > best[0] else best
            if self.log is not None:
                self.log(f"level {level}: BIC {best[0]:.2f}, {best[1].words}")
            if self.n_left <= 0:
                limit = f"max_evaluations={self.max_evaluations}"
                message = f"the search ended after {limit} evaluations"
                break
            if gain <= _TUNING.min_bic_gain:
                message = f"no further move raises the BIC by more than {_TUNING.min_bic_gain:g}"
                break
        return SearchLog(self.tried, best[1].kernel, message)

    def _optimise(
        self, expression: _Expression, level: int, coarse: bool = False
    ) -> tuple[float, _Expression]:
        """Optimise the parameters of an expression; return the BIC and the optimised expression."""
        kernel, objective = expression.kernel, self._objective(expression)
        target = _CoarseObjective(objective) if coarse else objective
        result = maximise(target, kernel.theta, kernel.bounds, max_iter=_TUNING.max_iter)
        self.n_left -= result.evaluations
        p = result.theta.size
        bic = float(result.value - 0.5 * p * np.log(len(self.y)))
        # The new result replaces an earlier, coarse result for the same expression.
        others = [t for t in self.tried if t.words != expression.words]
        self.tried = [*others, Candidate(level, expression.words, bic, float(result.value), p)]
        return bic, expression.with_parameters(kernel.with_theta(result.theta))

    def _objective(self, expression: _Expression) -> MarginalLikelihood:
        return MarginalLikelihood(expression.kernel, self.X, self.y, max_memory=self.max_memory)

    def _moves(
        self, expression: _Expression, periods: dict[int, list[float]]
    ) -> Iterator[list[_Expression]]:
        """Yield each expression that is one move away, as a list of variants to start from."""
        seen = {candidate.words for candidate in self.tried}
        new = [list(_starting_kernels(k, periods)) for k in self.base]
        terms, noise = expression.terms, expression.noise
        for starts in new:
            new_terms = [(factor, (k,)) for k in starts for factor in _TUNING.factors]
            yield from _if_unseen([_Expression((*terms, t), noise) for t in new_terms], seen)
        for i, (factor, base_kernels) in enumerate(terms):

            def replace_term(*kernels: Kernel, i: int = i, factor: float = factor) -> _Expression:
                return _Expression((*terms[:i], (factor, kernels), *terms[i + 1 :]), noise)

            for starts in new:
                if not any(_product_is_redundant(starts[0], k) for k in base_kernels):
                    yield from _if_unseen([replace_term(*base_kernels, k) for k in starts], seen)
                for j in range(len(base_kernels)):
                    others = (*base_kernels[:j], *base_kernels[j + 1 :])
                    if not any(_product_is_redundant(starts[0], k) for k in others):
                        yield from _if_unseen([replace_term(*others, k) for k in starts], seen)

    def _starting_periods(self, expression: _Expression) -> dict[int, list[float]]:
        """Return starting periods for each column of X, from the targets and the residuals."""
        if not isinstance(self.X, np.ndarray) or self.X.ndim != 2:
            return {}
        residuals = [self.y]
        if expression.terms:
            means, _ = self._objective(expression).leave_one_out()
            residuals.append(self.y - means[:, 0])
        return {
            j: [period for residual in residuals for period in _periodogram_peaks(x, residual)]
            for j, x in enumerate(self.X.T)
        }


def _if_unseen(starts: list[_Expression], seen: set[str]) -> Iterator[list[_Expression]]:
    """Yield `starts`, variants of one expression, if the expression was not evaluated before."""
    if starts[0].words not in seen:
        seen.add(starts[0].words)
        yield starts


def _product_is_redundant(a: Kernel, b: Kernel) -> bool:
    """Whether a product of two kernels belongs to the same family, such as RBF x RBF."""
    return isinstance(_unwrap(a), RBF) and _kernel_name(a) == _kernel_name(b)


def _unwrap(kernel: Kernel) -> Kernel:
    """Return the kernel inside wrappers that select columns or bound parameters."""
    return _unwrap(kernel.kernel) if isinstance(kernel, (Select, Bounded)) else kernel


def _kernel_name(kernel: Kernel) -> str:
    name = type(_unwrap(kernel)).__name__
    return f"{name}[{kernel.columns[0]}]" if isinstance(kernel, Select) else name


def _starting_kernels(kernel: Kernel, periods: dict[int, list[float]]) -> Iterator[Kernel]:
    """Yield a base kernel with several starting length scales or periods."""
    inner = _unwrap(kernel)
    column = kernel.columns[0] if isinstance(kernel, Select) else 0
    if isinstance(inner, Periodic):
        # If the periodograms give no period, start from the period of the base kernel.
        changes = [{"period": period} for period in periods.get(column, ())] or [{}]
    elif isinstance(scale := getattr(inner, "length_scale", None), float):
        changes = [{"length_scale": scale * s} for s in _TUNING.length_scales]
    else:
        changes = [{}]
    prefix, outer = "", kernel
    while outer is not inner:
        prefix, outer = prefix + "kernel__", outer.kernel  # type: ignore[attr-defined]
    for change in changes:
        yield kernel.set_params(**{prefix + name: value for name, value in change.items()})


def _periodogram_peaks(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the periods of the highest peaks in the periodogram of y, without its linear trend."""
    gaps = np.diff(np.unique(x))
    if len(gaps) < 4:
        return []
    y = y - np.polyval(np.polyfit(x - x.mean(), y, 1), x - x.mean())
    span = float(np.ptp(x))
    frequencies = np.linspace(2.0 / span, 0.5 / float(np.median(gaps)), _TUNING.n_frequencies)
    if not np.any(y) or frequencies[-1] <= frequencies[0]:
        return []
    power = lombscargle(x, y, 2.0 * np.pi * frequencies)
    inner = power[1:-1]
    peaks = 1 + np.flatnonzero((inner >= power[:-2]) & (inner >= power[2:]))
    order = peaks[np.argsort(-power[peaks], kind="stable")][: _TUNING.n_peaks]
    return [float(1.0 / f) for f in frequencies[order]]
