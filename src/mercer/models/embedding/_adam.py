"""Adam: stochastic gradient descent with one step size per parameter, for many rows or parameters.

L-BFGS needs the gradient of all rows in each of its thousands of steps.  Adam makes one step per
mini-batch, that is, many steps in the same time.  The steps are noisy, so that single precision is
sufficient, which takes half the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._core import ignore_overflow, run_in_threads, slices

_VALUES_PER_BLOCK = 2**15  # parameters updated at a time, so that their five arrays fit in a cache


@dataclass(frozen=True)
class Adam:
    """Options of the training by mini-batches with the method Adam.

    The learning rate increases linearly during the first steps, and then decreases to 0 along a
    cosine.

    Parameters
    ----------
    batch_size : int, default=256
        The number of rows of a mini-batch, at most the number of rows.
    learning_rate_init : float, default=2e-3
        The largest learning rate.  Decrease it if the loss increases at the start.
    validation_fraction : float, default=0
        The fraction of the rows that is held out.  If it is positive, the parameters with the
        smallest error on these rows are the result.
    n_iter_no_change : int, default=10
        The fit stops if the error on the held-out rows has not decreased for that many epochs.

    See Also
    --------
    fit_autoencoder : Train an autoencoder with these options.

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, for
    the cosine.

    Examples
    --------
    >>> from mercer.models.embedding import Adam
    >>> Adam(batch_size=100)
    Adam(batch_size=100, learning_rate_init=0.002)
    """

    batch_size: int = 256
    learning_rate_init: float = 2e-3
    validation_fraction: float = 0.0
    n_iter_no_change: int = 10

    # The decay of the averages of gradients and of their squares, and the constant that avoids
    # division by zero: the values of Kingma and Ba.
    _mean_decay = 0.9
    _square_decay = 0.999
    _epsilon = 1e-8
    # The learning rate increases during this number of steps, but at most a tenth of all steps,
    # because the averages of the squares are inaccurate at first.
    _warm_up = 100

    def __repr__(self) -> str:
        early = f", validation_fraction={self.validation_fraction}" * (self.validation_fraction > 0)
        return (
            f"Adam(batch_size={self.batch_size}, learning_rate_init={self.learning_rate_init}"
            f"{early})"
        )

    def learning_rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step, which counts from 1.

        Parameters
        ----------
        step : int
            The number of the step.
        n_steps : int
            The number of all steps.

        Returns
        -------
        float
            The learning rate.
        """
        increase = min(1.0, step / max(1.0, min(self._warm_up, 0.1 * n_steps)))
        return self.learning_rate_init * increase * (0.5 + 0.5 * np.cos(np.pi * step / n_steps))


class AdamResult(NamedTuple):
    """The final parameters, and a record of the iterations.

    `theta` are the parameters, `losses` the mean losses of the mini-batches of each epoch, `epoch`
    the number of the epoch of `theta`, `validation` the error on held-out rows at `theta` (nan
    without such rows), and `stopped_early` whether this error had stopped decreasing.
    """

    theta: np.ndarray
    losses: list[float]
    epoch: int
    validation: float
    stopped_early: bool

    @property
    def decrease(self) -> float:
        """The relative decrease of the loss in the last tenth of the epochs, or in the last one."""
        n = len(self.losses)
        before = self.losses[-1 - max(1, n // 10)] if n > 1 else np.inf
        return 1.0 - self.losses[-1] / before if before else 0.0


@ignore_overflow
def adam_minimise(
    objective: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]],
    theta: np.ndarray,
    n: int,
    options: Adam,
    max_epochs: int,
    rng: np.random.Generator,
    *,
    validate: Callable[[np.ndarray], float] | None = None,
    report_epoch: Callable[[int, float, float], None] = lambda epoch, loss, validation: None,
) -> AdamResult:
    """Minimise a mean over n rows by Adam.

    Parameters
    ----------
    objective : callable
        ``objective(theta, rows)`` returns the estimates of the value and the gradient from some
        rows.
    theta : ndarray
        The initial parameters, which are overwritten.
    n : int
        The number of rows.
    options : Adam
        Batch size, learning rate and early stopping.
    max_epochs : int
        The largest number of passes over the rows.
    rng : Generator
        The random generator, for the order of the rows.
    validate : callable, optional
        Returns the error on held-out rows.
    report_epoch : callable
        ``report_epoch(epoch, loss, validation)`` is called after each epoch with the mean of the
        losses of its mini-batches and the error on held-out rows.

    Returns
    -------
    AdamResult
        The parameters after the last epoch or, with `validate`, those with the smallest error.

    Raises
    ------
    ValueError
        If the loss becomes infinite or nan.
    """
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    blocks = slices(len(theta), _VALUES_PER_BLOCK)
    # Batches of nearly equal size, so that the last one is not noisier than the others.
    n_batches = -(-n // options.batch_size)
    n_steps, step = max_epochs * n_batches, 0
    losses: list[float] = []
    best, best_epoch, smallest = theta, 0, np.inf
    validation, stopped_early = np.nan, False
    for epoch in range(1, max_epochs + 1):
        loss = 0.0
        for rows in np.array_split(rng.permutation(n), n_batches):
            step += 1
            value, gradient = objective(theta, rows)
            loss += value * len(rows) / n
            if not np.isfinite(value):
                break
            _update(theta, gradient, m, v, blocks, step, n_steps, options)
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss became {loss} in epoch {epoch}, in step {step} of Adam; the usual cause "
                f"is a learning rate that is too large: decrease "
                f"learning_rate_init={options.learning_rate_init:g}"
            )
        if validate is not None:
            validation = validate(theta)
            if validation < smallest:
                best, best_epoch, smallest = theta.copy(), epoch, validation
        losses.append(loss)
        report_epoch(epoch, loss, validation)
        stopped_early = validate is not None and epoch - best_epoch >= options.n_iter_no_change
        if stopped_early:
            break
    if validate is None:
        return AdamResult(theta, losses, max_epochs, np.nan, False)
    return AdamResult(best, losses, best_epoch, smallest, stopped_early)


def _update(
    theta: np.ndarray,
    gradient: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    blocks: list[slice],
    step: int,
    n_steps: int,
    options: Adam,
) -> None:
    """Make one step; theta and the averages m and v are overwritten."""
    a, b = options._mean_decay, options._square_decay
    root = float(np.sqrt(1.0 - b**step))  # removes the bias of v, which starts at 0
    length = options.learning_rate(step, n_steps) * root / (1.0 - a**step)
    epsilon = options._epsilon * root

    def update(block: slice) -> None:
        g, mean, square = gradient[block], m[block], v[block]
        mean += (1.0 - a) * (g - mean)
        g *= g
        square += (1.0 - b) * (g - square)
        np.sqrt(square, out=g)
        g += epsilon
        np.divide(mean, g, out=g)
        g *= length
        theta[block] -= g

    run_in_threads(update, blocks, work=20.0 * len(theta))
