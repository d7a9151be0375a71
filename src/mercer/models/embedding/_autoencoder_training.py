"""The autoencoder: an encoder f and a decoder g, trained so that g(f(x)) is close to x.

The objective is the fraction of the variance that is lost, plus weight decay,

    E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2

where W_j are the weight matrices of the layers.
The points are centred and divided by one common scale, so that E does not depend on their units.  E
has many local minima.  L-BFGS therefore starts from several random initialisations, and the report
contains the spread of the final values.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    ProgressCallback,
    ProgressStep,
    Stopwatch,
    entry_point,
    ordered_sum,
    slices,
    warn_caller,
)
from ...solvers import Report, Status
from ._adam import Adam, adam_minimise
from ._embedding_search import fix_signs, minimise_from_starts, standardise

_ROWS_PER_BLOCK = 512  # number of rows of X that are propagated through the network at a time
# The same for mini-batches.  Smaller blocks are slower, because each one writes a whole gradient.
_BATCH_ROWS_PER_BLOCK = 128
# Blocks are summed in this fixed number of groups, so that the result does not depend on the number
# of threads.
_N_GROUPS = 4
_LBFGS_MEMORY = 20  # number of past steps that L-BFGS stores
_VALUES_PER_BLOCK = 2**18  # number of values of the widest layer in memory at a time

_Activation: TypeAlias = Function[[np.ndarray], np.ndarray]
# The activation function s(x), and its derivative s'(x) as a function of the value s(x).
ACTIVATIONS: dict[str, tuple[_Activation, _Activation]] = {
    "tanh": (np.tanh, lambda s: 1.0 - s * s),
    "logistic": (lambda x: 0.5 + 0.5 * np.tanh(0.5 * x), lambda s: s * (1.0 - s)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda s: (s > 0.0).astype(s.dtype)),
    "identity": (lambda x: x, np.ones_like),
}


@dataclass(frozen=True, eq=False)
class MLP:
    """A multilayer perceptron with a linear output layer.

    It computes f(x) = A_m(s(A_(m-1)(... s(A_1(x))))) with A_j(x) = x W_j + b_j.

    Parameters
    ----------
    weights : tuple of ndarrays of shape (n_in, n_out)
        The weight matrices W_j.
    biases : tuple of ndarrays of shape (n_out,)
        The biases b_j.
    activation : {"tanh", "logistic", "relu", "identity"}, default="tanh"
        The activation function s of the hidden layers.

    See Also
    --------
    fit_autoencoder : Fit an encoder and a decoder, both of this class.

    References
    ----------
    Rumelhart, Hinton and Williams, "Learning representations by back-propagating errors", Nature
    323, 1986.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import MLP
    >>> f = MLP((np.eye(2), np.array([[1.0], [-1.0]])), (np.zeros(2), np.ones(1)), "tanh")
    >>> f(np.array([[0.0, 0.0], [5.0, -5.0]])).round(3)
    array([[1.],
           [3.]])
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: str = "tanh"

    @classmethod
    def of(cls, theta: np.ndarray, sizes: tuple[int, ...], activation: str) -> MLP:
        """Create a network of given layer sizes, whose arrays are views of a parameter vector.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            The parameters W_1, b_1, W_2, b_2, ...
        sizes : tuple of int
            The number of units of each layer, from the input to the output.
        activation : {"tanh", "logistic", "relu", "identity"}
            The activation function of the hidden layers.

        Returns
        -------
        MLP
            The network.
        """
        weights, biases, start = [], [], 0
        for a, b in pairwise(sizes):
            weights.append(theta[start : start + a * b].reshape(a, b))
            biases.append(theta[start + a * b : start + (a + 1) * b])
            start += (a + 1) * b
        return cls(tuple(weights), tuple(biases), activation)

    @property
    def theta(self) -> np.ndarray:
        """All parameters W_1, b_1, W_2, b_2, ... in one vector."""
        pairs = zip(self.weights, self.biases, strict=True)
        return np.concatenate([part.ravel() for pair in pairs for part in pair])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return f(x) for each row of X, computed in blocks of rows.

        Parameters
        ----------
        X : ndarray of shape (n, n_in)
            The inputs.

        Returns
        -------
        ndarray of shape (n, n_out)
            The outputs.
        """
        widest = max(W.shape[1] for W in self.weights)
        blocks = slices(len(X), max(1, _VALUES_PER_BLOCK // widest))
        return np.concatenate([self.values(X[rows])[-1] for rows in blocks])

    def values(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the input of each layer (after the activation), followed by the output f(X).

        Parameters
        ----------
        X : ndarray of shape (n, n_in)
            The inputs of the network.

        Returns
        -------
        list of ndarrays of shape (n, n_units)
            One array more than there are layers; the first is X, the last f(X).
        """
        s, _ = ACTIVATIONS[self.activation]
        outputs = [X]
        for j, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if j:
                outputs[j] = s(outputs[j])
            outputs.append(outputs[j] @ W + b)
        return outputs

    def pullback(
        self,
        values: list[np.ndarray],
        G: np.ndarray,
        out: np.ndarray | None = None,
        by_X: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Back-propagate the gradient of a scalar with respect to f(X), to theta and X.

        Parameters
        ----------
        values : list of ndarrays
            The result of the method `values` for X.
        G : ndarray of shape (n, n_out)
            The gradient with respect to f(X).
        out : ndarray of shape (n_parameters,), optional
            The array for `by_theta`.
        by_X : bool, default=True
            False saves the time of the gradient with respect to X, which is then undefined.

        Returns
        -------
        by_theta : ndarray of shape (n_parameters,)
            The gradient with respect to theta.
        by_X : ndarray of shape (n, n_in)
            The gradient with respect to X.
        """
        _, derivative = ACTIVATIONS[self.activation]
        sizes = (*(len(W) for W in self.weights), self.weights[-1].shape[1])
        if out is None:
            out = np.empty(sum((a + 1) * b for a, b in pairwise(sizes)), dtype=G.dtype)
        gradient = MLP.of(out, sizes, self.activation)
        for j in reversed(range(len(self.weights))):
            np.matmul(values[j].T, G, out=gradient.weights[j])
            np.sum(G, axis=0, out=gradient.biases[j])
            if j or by_X:
                G = G @ self.weights[j].T
            if j:
                G *= derivative(values[j])
        return out, G


class AutoencoderResult(NamedTuple):
    """The encoder and decoder, the final loss of each restart, and the report of the solver."""

    encoder: MLP
    decoder: MLP
    losses: np.ndarray
    report: Report


class ReconstructionLoss:
    """The objective E of the autoencoder and its gradient, as functions of the parameters theta.

        E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2

    E is the fraction of the variance that is lost in the reconstruction, plus weight decay.  theta
    contains the weights and biases of the encoder, followed by those of the decoder.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The points, centred.
    sizes : tuple of int
        The numbers of units of the layers of the encoder, from d to the number of components.
    activation : str
        The activation function; see `MLP`.
    alpha : float
        The factor of the weight decay.

    See Also
    --------
    fit_autoencoder : Minimise this loss.

    References
    ----------
    Kramer, "Nonlinear principal component analysis using autoassociative neural networks", AIChE
    Journal 37, 1991.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import ReconstructionLoss
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0]])
    >>> E = ReconstructionLoss(X, (2, 1), "tanh", alpha=0.0)
    >>> value, slope = E(np.zeros(E.size))  # all points are mapped to their mean, 0
    >>> value, slope.shape
    (1.0, (7,))
    """

    def __init__(
        self, X: np.ndarray, sizes: tuple[int, ...], activation: str, alpha: float
    ) -> None:
        self._X, self._sizes, self._activation = X, sizes, activation
        self._n_encoder = sum((a + 1) * b for a, b in pairwise(sizes))
        self.size = self._n_encoder + sum((b + 1) * a for a, b in pairwise(sizes))
        self._total_variance = float(np.sum(np.square(X), dtype=np.float64))
        weights = np.ones(self.size, dtype=X.dtype)
        for half in self.halves(weights):
            for b in half.biases:
                b[:] = 0.0
        self._decay = alpha * weights  # 0 for biases, which have no weight decay

    def halves(self, theta: np.ndarray) -> tuple[MLP, MLP]:
        """Return the encoder and the decoder, whose arrays are views of theta.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            All parameters.

        Returns
        -------
        encoder : MLP
            The network from d inputs to q outputs.
        decoder : MLP
            The network from q inputs to d outputs.
        """
        return (
            MLP.of(theta[: self._n_encoder], self._sizes, self._activation),
            MLP.of(theta[self._n_encoder :], self._sizes[::-1], self._activation),
        )

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Draw initial weights, uniform within +-sqrt(6 / (n_in + n_out)) (Glorot and Bengio).

        Parameters
        ----------
        rng : Generator
            The random number generator.

        Returns
        -------
        ndarray of shape (size,)
            The initial theta; biases are 0.

        References
        ----------
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", AISTATS 2010.
        """
        theta = np.zeros(self.size)
        for half in self.halves(theta):
            for W, b in zip(half.weights, half.biases, strict=True):
                limit = np.sqrt(6.0 / sum(W.shape))
                W[:] = rng.uniform(-limit, limit, size=W.shape)
                b[:] = rng.uniform(-limit, limit, size=b.shape)
        return theta

    def __call__(
        self, theta: np.ndarray, rows: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """Return the loss E and its gradient with respect to theta, in the precision of X.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            All parameters.
        rows : ndarray of int, optional
            The rows of a mini-batch; the result is then the estimate of E from these rows.

        Returns
        -------
        value : float
            The loss.
        gradient : ndarray of shape (size,)
            Its gradient.
        """
        X = self._X if rows is None else self._X[rows]
        encoder, decoder = self.halves(theta)

        def term(block: slice) -> np.ndarray:
            x = X[block]
            encoded = encoder.values(x)
            decoded = decoder.values(encoded[-1])
            error = decoded[-1] - x
            result = np.empty(self.size + 1, dtype=X.dtype)
            result[-1] = np.vdot(error, error)
            error *= 2.0
            _, G = decoder.pullback(decoded, error, result[self._n_encoder : -1])
            encoder.pullback(encoded, G, result[: self._n_encoder], by_X=False)
            return result

        blocks = slices(len(X), _ROWS_PER_BLOCK if rows is None else _BATCH_ROWS_PER_BLOCK)
        total = ordered_sum(term, blocks, _N_GROUPS, work=3.0 * len(X) * self.size)
        total *= len(self._X) / (len(X) * self._total_variance)
        decay = self._decay * theta
        value = float(total[-1]) + float(decay @ theta)
        gradient = total[:-1]
        decay *= 2.0
        gradient += decay
        return value, gradient

    def lost_variance(self, theta: np.ndarray) -> float:
        """Return the fraction of the variance that is lost, without weight decay.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            All parameters.

        Returns
        -------
        float
            The first term of E.
        """
        encoder, decoder = self.halves(theta)

        def term(block: slice) -> float:
            error = decoder(encoder(self._X[block])) - self._X[block]
            return float(np.vdot(error, error))

        blocks = slices(len(self._X), _ROWS_PER_BLOCK)
        work = 1.0 * len(self._X) * self.size
        return float(ordered_sum(term, blocks, _N_GROUPS, work=work)) / self._total_variance


@entry_point
def fit_autoencoder(
    X: np.ndarray,
    q: int,
    hidden: tuple[int, ...] = (20,),
    activation: str = "tanh",
    alpha: float = 1e-4,
    n_init: int = 3,
    tol: float = 1e-4,
    max_iter: int = 5000,
    rng: np.random.Generator | None = None,
    log: ProgressCallback | None = None,
    adam: Adam | None = None,
) -> AutoencoderResult:
    """Fit an autoencoder; return the best of `n_init` runs from random initialisations.

    The bottleneck layer is linear, so the embedding can be rotated and shifted without changing the
    reconstructions.  It is rotated to its principal axes and shifted to mean 0.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The points.
    q : int
        The dimension of the embedding.
    hidden : tuple of int, default=(20,)
        The numbers of units of the hidden layers between X and the embedding; the decoder mirrors
        them.  More units fit more strongly curved manifolds, and need more data.
    activation : {"tanh", "logistic", "relu", "identity"}, default="tanh"
        The activation function of the hidden layers.
    alpha : float, default=1e-4
        The factor of the weight decay.  Increase it if reconstructions of new points are much worse
        than those of the training points.
    n_init : int, default=3
        The number of random initialisations.  Increase it if the losses of the runs differ much.
    tol : float, default=1e-4
        L-BFGS stops when all entries of the gradient of the loss are below this value in modulus.
        For Adam, the largest relative decrease of the loss in the last tenth of the epochs that
        does not cause a warning, for instance 0.01.
    max_iter : int, default=5000
        The maximum number of L-BFGS steps per run, or the number of epochs of Adam.
    rng : Generator, optional
        The random generator; by default, one with the seed 0.
    log : function, optional
        Function that is called with a progress message after each step.
    adam : Adam, optional
        Train by mini-batches, in single precision, with these options; by default by L-BFGS.

    Returns
    -------
    AutoencoderResult
        The `encoder` and `decoder` (both `MLP`), the `losses` of all runs in an array of shape
        (n_init,), and the `report`.

    See Also
    --------
    Autoencoder : The estimator.
    ReconstructionLoss : The loss that is minimised.

    References
    ----------
    Kramer, "Nonlinear principal component analysis using autoassociative neural networks", AIChE
    Journal 37, 1991.

    Hinton and Salakhutdinov, "Reducing the dimensionality of data with neural networks", Science
    313, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.embedding import fit_autoencoder
    >>> t = np.linspace(-1.0, 1.0, 50)[:, None]
    >>> result = fit_autoencoder(np.hstack([t, t**2]), 1, (5,), rng=np.random.default_rng(0))
    >>> result.losses.shape, bool(result.losses.min() < 0.01)
    ((3,), True)
    """
    rng = np.random.default_rng(0) if rng is None else rng
    sizes = (X.shape[1], *hidden, q)
    Y, mean, scale = standardise(X)
    if adam is not None:
        single = Y.astype(np.float32)
        del Y  # single precision needs half of the memory
        halves, losses, report = _train_by_adam(
            single, sizes, activation, alpha, n_init, tol, max_iter, rng, log, adam
        )
        return AutoencoderResult(*_in_units_of_data(*halves, X, mean, scale), losses, report)
    E = ReconstructionLoss(Y, sizes, activation, alpha)
    best, losses, report = minimise_from_starts(
        E,
        (E.start(rng) for _ in range(n_init)),
        name="loss",
        max_iter=max_iter,
        memory=_LBFGS_MEMORY,
        residual=lambda run: float(np.abs(run.jac).max()),
        tol=tol,
        describe=lambda run, step, value: (
            f"restart {run} of {n_init}, step {step}: {value:.4g} of the variance lost"
        ),
        log=log,
        gtol=tol,
    )
    if report.status is Status.NOT_CONVERGED:
        warn_caller(
            f"L-BFGS stopped after {best.nit} steps (max_iter={max_iter}) with a gradient of "
            f"{report.residual:.1e}, more than tol={tol:.1e}; at this point a fraction "
            f"{best.fun:.3g} of the variance is lost. Raise max_iter or tol, or use fewer hidden "
            f"units",
            ConvergenceWarning,
        )
    return AutoencoderResult(*_in_units_of_data(*E.halves(best.x), X, mean, scale), losses, report)


def _train_by_adam(
    Y: np.ndarray,
    sizes: tuple[int, ...],
    activation: str,
    alpha: float,
    n_init: int,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    log: ProgressCallback | None,
    adam: Adam,
) -> tuple[tuple[MLP, MLP], np.ndarray, Report]:
    """Train by mini-batches; return the encoder and decoder, the losses, and the report."""
    watch, held_out = Stopwatch(), None
    n_held_out = int(np.ceil(adam.validation_fraction * len(Y)))
    if n_held_out:
        if n_held_out >= len(Y):
            raise ValueError(
                f"validation_fraction={adam.validation_fraction} of {len(Y)} points leaves none to "
                f"train on; decrease it, or set early_stopping=False"
            )
        order = rng.permutation(len(Y))
        held_out = ReconstructionLoss(Y[order[:n_held_out]], sizes, activation, 0.0)
        Y = Y[order[n_held_out:]]
    E = ReconstructionLoss(Y, sizes, activation, alpha)
    runs, losses = [], []
    for run in range(1, n_init + 1):

        def report_epoch(epoch: int, loss: float, validation: float, run: int = run) -> None:
            if log is not None:
                start = f"restart {run} of {n_init}, " * (n_init > 1)
                held = "" if held_out is None else f", {validation:.4g} of held-out rows"
                text = f"{start}epoch {epoch} of {max_iter}: {loss:.4g} of the variance lost{held}"
                log(ProgressStep(text, epoch, max_iter))

        runs.append(
            adam_minimise(
                *(E, E.start(rng).astype(np.float32), len(Y), adam, max_iter, rng),
                validate=None if held_out is None else held_out.lost_variance,
                report_epoch=report_epoch,
            )
        )
        losses.append(E(runs[-1].theta))
    values = np.array([value for value, _ in losses])
    chosen = int(np.argmin(values if held_out is None else [run.validation for run in runs]))
    best = runs[chosen]
    certificate = {
        "loss": float(values[chosen]),
        "gradient": float(np.abs(losses[chosen][1]).max()),
    }
    certificate |= {"spread": float(np.ptp(values)), "restarts": n_init}
    if best.stopped_early:
        message = (
            f"stopped early: the error on {n_held_out} held-out rows has not decreased for "
            f"{adam.n_iter_no_change} epochs"
        )
    else:
        message = f"the learning rate has decreased to 0 over {max_iter} epochs"
    if held_out is not None:
        certificate |= {"validation_loss": best.validation, "epoch": best.epoch}
    status = Status.CONVERGED if best.decrease <= tol else Status.NOT_CONVERGED
    if best.stopped_early:
        status = Status.APPROXIMATE
    elif status is Status.NOT_CONVERGED:
        warn_caller(
            f"Adam ended after {max_iter} epochs (max_iter={max_iter}), but the loss decreased by "
            f"{100 * best.decrease:.2g} % in the last tenth of them, more than tol={tol:.1g}; "
            f"it is {values[chosen]:.3g} now. Raise max_iter or tol",
            ConvergenceWarning,
        )
    report = Report(
        solver=repr(adam),
        status=status,
        n_iter=len(best.losses),
        residual=best.decrease,
        seconds=watch.seconds,
        message=message,
        certificate=certificate,
    )
    return E.halves(best.theta.astype(np.float64)), values, report


def _in_units_of_data(
    encoder: MLP, decoder: MLP, X: np.ndarray, mean: np.ndarray, scale: float
) -> tuple[MLP, MLP]:
    """Convert encoder and decoder to the units of X, and rotate the embedding to principal axes."""
    halves = encoder, decoder
    encoder_weights, decoder_weights = ([W.copy() for W in half.weights] for half in halves)
    encoder_biases, decoder_biases = ([b.copy() for b in half.biases] for half in halves)
    encoder_biases[0] -= mean @ encoder_weights[0] / scale
    encoder_weights[0] /= scale
    decoder_biases[-1] = mean + scale * decoder_biases[-1]
    decoder_weights[-1] *= scale
    Z = MLP(tuple(encoder_weights), tuple(encoder_biases), encoder.activation)(X)
    centre = Z.mean(axis=0)
    axes = fix_signs(np.linalg.eigh((Z - centre).T @ (Z - centre))[1][:, ::-1])
    decoder_biases[0] += centre @ decoder_weights[0]
    decoder_weights[0] = axes.T @ decoder_weights[0]
    encoder_biases[-1] = (encoder_biases[-1] - centre) @ axes
    encoder_weights[-1] = encoder_weights[-1] @ axes
    return MLP(tuple(encoder_weights), tuple(encoder_biases), encoder.activation), MLP(
        tuple(decoder_weights), tuple(decoder_biases), encoder.activation
    )
