"""Exact objectives of Gaussian processes and kernel ridge regression.

All of them are functions of C = K + noise, through a = C^-1 y, p = diag C^-1 and log det C, from a
Cholesky factorisation of C.  Let U, v and c be the derivatives of an objective in a, p and log det
C.  Because dC^-1 = -C^-1 dC C^-1, one formula gives all gradients:

    d value = sum_ij W_ij dC_ij,     W = -1/2 (B a^T + a B^T) - C^-1 diag(v) C^-1 + c C^-1,
    B = C^-1 U

The criteria of kernel ridge regression with an intercept b are

    min_f,b  sum_i w_i |y_i - f(x_i) - b|^2 + alpha |f|^2,     C = K + alpha diag(1/w)
    P = C^-1 - u u^T / 1^T u,  u = C^-1 1   (without b, P = C^-1),     a = P y,     p = diag P

    "loo"         leave-one-out: sum_i w_i e_i^2 / sum w, where e_i = a_i / p_i is the error at
                  point i of a fit without this point
    "gcv"         generalised cross-validation: n sum_i w_i r_i^2 / (sum_i 1 - h_i)^2, with the
                  residuals r_i = alpha a_i / w_i and the leverages h_i = 1 - alpha p_i / w_i; it is
                  invariant to rotations of the observations
    "likelihood"  marginal likelihood det(C / c)^-1/2 exp(-y^T C^-1 y / 2 c), maximised over the
                  scale c; the intercept b is integrated out

and P replaces C^-1 in the gradient.  (With an intercept, det C is replaced by the determinant of
the restricted likelihood, det C times 1^T u.)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._core import (
    MemoryLimit,
    NotPositiveDefiniteError,
    Stopwatch,
    check_budget,
    check_choice,
    entry_point,
    length,
)
from ..._core.linalg import blas
from ...expansion import Expansion
from ...kernels import Kernel
from ...solvers import Report, Status, status_of, warn_inaccurate
from ...solvers.linear import mirror_lower_triangle
from ._exact_solve import (
    FactorizedCovariance,
    TileWeights,
    fits_one_block,
    pullback_workspace,
    symmetric_tile,
)
from ._gp_objective import UNDEFINED, Capabilities, Objective, Theta, noise_parameter_mask
from ._posterior import Conditioned, Posterior

RIDGE_CRITERIA = ("loo", "gcv", "likelihood")

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class DenseObjective(Objective):
    """Base class of the objectives that store n x n arrays."""

    max_memory: MemoryLimit = None

    @property
    def _n_square_arrays(self) -> int:
        """The number of n x n arrays that a gradient needs."""
        return 1

    @property
    def _classes_text(self) -> str:
        """The number of classes as part of a text, if it matters for the memory."""
        return ""

    def workspace(self) -> int:
        n = length(self.X)
        return 8 * n * n * self._n_square_arrays + pullback_workspace(n, self.kernel)

    @cached_property
    def _workspace(self) -> int:
        return self.workspace()

    def _require_gradient(self) -> None:
        text = f"a gradient on {length(self.X)} points{self._classes_text}"
        check_budget(self._workspace, self.max_memory, text)


@dataclass(frozen=True, eq=False)
class ExactObjective(DenseObjective):
    """Base class of the objectives of Gaussian processes that factorise C = K + noise exactly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        n = length(self.X)
        check_budget(8 * n * n, self.max_memory, f"a Gaussian process on {n} points")

    @abstractmethod
    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        """Return the objective, given A = C^-1 Y."""

    def _value(self, theta: Theta) -> float:
        return self._log_objective(*self._solve(theta))

    def posterior(self, theta: Theta = None) -> Posterior:
        """Return the mean and covariance of f given the data.

        If K + noise is numerically singular although the noise is positive, the noise is smaller
        than the rounding errors of K.  A jitter of the size of these errors is then added to the
        diagonal and recorded in the report.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        Posterior
            The mean as an `Expansion` of q functions on the n observations, and the covariance as a
            `Conditioned` kernel.

        Raises
        ------
        NotPositiveDefiniteError
            If K + noise is not positive definite.
        """
        watch = Stopwatch()
        kernel = self._kernel_at(theta)
        system, jitter = self._jittered_system(kernel)
        A = system.solve(self.Y)
        certificate = {"log marginal likelihood": log_density(system, A, self.Y)}
        residual, message = system.residual(A, self.Y), ""
        if jitter:
            certificate["jitter"] = jitter
            message = (
                f"K + noise was numerically singular: {jitter:.2e} was added to its diagonal, "
                f"in addition to a noise of {np.min(self.noise):.2e}"
            )
        status, message = status_of(Status.DIRECT, message, residual)
        report = Report(
            solver="Cholesky()",
            status=status,
            residual=residual,
            seconds=watch.seconds,
            message=message,
            certificate=certificate,
        )
        if status is Status.INACCURATE:
            warn_inaccurate(report)
        covariance = Conditioned(kernel, self.X, system.lower())
        return Posterior(Expansion(kernel, self.X, A), covariance, report)

    def leave_one_out(self, theta: Theta = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictive mean and variance of each y_i given all other targets.

        They follow from one factorisation of K + noise; no model is fitted again.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        means : ndarray of shape (n, q)
            The predictive means, one column per target.
        variances : ndarray of shape (n,)
            The predictive variances, including the noise.

        References
        ----------
        Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
        5.4.2.
        """
        system, A = self._solve(theta)
        inverse = system.invert().diagonal()
        return self.Y - A / inverse[:, None], 1.0 / inverse

    def _solve(
        self, theta: Theta, *, with_derivatives: bool = False
    ) -> tuple[FactorizedCovariance, np.ndarray]:
        """Return the factorisation of C = K + noise, and A = C^-1 Y."""
        single_block = with_derivatives and self._is_single_block
        system = FactorizedCovariance(
            self._kernel_at(theta), self.X, self.noise, self.max_memory, single_block=single_block
        )
        return system, system.solve(self.Y)

    @cached_property
    def _is_single_block(self) -> bool:
        return fits_one_block(self.kernel, self.X)

    def _jittered_system(self, kernel: Kernel) -> tuple[FactorizedCovariance, float]:
        """Factorise C = K + noise, with a jitter if needed; return the factors and the jitter.

        The jitter starts at the size of the rounding errors of K and grows by factors of 10.  If
        an observation has no noise, no jitter is tried.
        """
        n, smallest_noise = length(self.X), float(np.min(self.noise))
        rounding = 4.0 * _EPS * float(np.sum(np.abs(kernel.diag(self.X))))
        jitters = [rounding * 10.0**i for i in range(4)] if smallest_noise > 0.0 else []
        for jitter in (0.0, *jitters):
            try:
                noise = self.noise + jitter
                return FactorizedCovariance(kernel, self.X, noise, self.max_memory), jitter
            except NotPositiveDefiniteError as error:
                reason = error
        raise NotPositiveDefiniteError(
            f"{reason}, with a noise of {smallest_noise:.3g} for {n} points. The usual causes are "
            f"repeated or nearby points without noise, and a kernel that is not positive "
            f"semidefinite. Try a larger noise (alpha), or add White() to the kernel"
        )


def log_density(system: FactorizedCovariance, A: np.ndarray, Y: np.ndarray) -> float:
    """Return sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi), given A = C^-1 Y."""
    n, q = Y.shape
    fit = float(np.einsum("ic,ic->", Y, A))
    return float(-0.5 * (fit + q * (system.logdet() + n * np.log(2.0 * np.pi))))


@entry_point
@dataclass(frozen=True, eq=False)
class MarginalLikelihood(ExactObjective):
    """Exact log marginal likelihood of a Gaussian process, with its gradient.

    Maximise it to choose kernel parameters from the training data alone, without cross-validation.
    An evaluation takes O(n^3) time and one n x n array.

        log p(Y | theta) = sum_c -1/2 (y_c^T C^-1 y_c + log det C + n log 2 pi),  C = K + noise
        d log p = sum_ij W_ij dK_ij,     W = 1/2 (A A^T - q C^-1),     A = C^-1 Y

    for q targets that share the kernel.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, including the noise as a `White` term if theta should contain it.
        Its parameters must be numbers, not rules that depend on data, such as gamma="scale".
    X : points
        The n observations, in any form that the kernel accepts.
    Y : array of shape (n,) or (n, q)
        The targets; the prior mean is 0.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K.  It is not part of theta.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    See Also
    --------
    GaussianProcessRegressor : The estimator that maximises this likelihood.
    LeaveOneOut : Predictive density, more robust if the model is wrong.
    InducingBound : Lower bound, for more points than fit into an n x n array.
    maximise : Maximise an objective.

    Notes
    -----
    The weights W are computed tile by tile from C^-1, which overwrites C.  A gradient therefore
    needs one n x n array and some tiles of 512 x 512 numbers, for any number of parameters.
    Kernels whose derivatives cannot be computed by tiles (wrapped scikit-learn kernels and
    precomputed ones) need about 2 + 3 p more n x n arrays, for p parameters.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
    5.4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import MarginalLikelihood
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> objective = MarginalLikelihood(RBF(0.3) + White(0.01), X, np.sin(6 * X))
    >>> value, gradient = objective.value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (11.77, array([ 0.58, -6.97]))
    """

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        cheap = self.kernel.domain.pullback_in_tiles and not self.kernel.domain.costly
        return Capabilities(subset=True, information=True, cheap_information=cheap)

    @property
    def noise_mask(self) -> np.ndarray:
        """Mask of the entries of theta that are noise variances."""
        return noise_parameter_mask(self.kernel)

    def with_information(
        self, theta: Theta = None, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the objective, its gradient, and the average information matrix B.

            B_ij = 1/2 sum_c a_c^T dK_i C^-1 dK_j a_c,     a_c = C^-1 y_c,   dK_i = dK / d theta_i

        B approximates minus the second derivatives.  If K is linear in its parameters, it is the
        average of the observed and the expected (Fisher) information (Gilmour, Thompson and
        Cullis).  It is positive semidefinite at every theta, and needs only products with vectors.

        Parameters
        ----------
        theta : array of shape (p,), optional
            By default, the parameters of `kernel`.
        above : float, optional
            Derivatives are computed only if the value is greater than this.  Otherwise the
            gradient and B are 0, which costs a third as much.

        Returns
        -------
        tuple of float, ndarray of shape (p,) and ndarray of shape (p, p)
            The value, the gradient and B; -inf, 0 and 0 if K + noise is not positive definite.

        References
        ----------
        Gilmour, Thompson and Cullis, "Average information REML: an efficient algorithm for variance
        parameter estimation in linear mixed models", Biometrics 51, 1995.
        """
        self._require_gradient()
        p = self.kernel.theta.size
        try:
            system, A = self._solve(theta, with_derivatives=True)
        except UNDEFINED:
            return -np.inf, np.zeros(p), np.zeros((p, p))
        value = self._log_objective(system, A)
        if not value > above:
            return value, np.zeros(p), np.zeros((p, p))
        inverse = system.invert()
        gradient, T = system.derivatives(self._weights(inverse, A), A)
        # R has q p columns, the products (dK / d theta_i) a_c.
        R = np.asfortranarray(np.moveaxis(T, 0, 2).reshape(len(A), -1))
        solved = blas.dsymm(1.0, inverse, R, lower=1)
        B = np.einsum("icp,icr->pr", R.reshape(len(A), -1, p), solved.reshape(len(A), -1, p))
        return value, gradient, 0.5 * B

    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        return log_density(system, A, self.Y)

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        system, A = self._solve(theta, with_derivatives=True)
        value, weights = self._log_objective(system, A), self._weights(system.invert(), A)
        return value, system.derivatives(weights)[0]

    def _weights(self, inverse: np.ndarray, A: np.ndarray) -> TileWeights:
        """Return a function that computes tiles of W = 1/2 (A A^T - q C^-1)."""
        q = self.Y.shape[1]

        def weights(rows: slice, cols: slice) -> np.ndarray:
            tile, inverse_tile = A[rows] @ A[cols].T, symmetric_tile(inverse, rows, cols)
            tile -= inverse_tile if q == 1 else q * inverse_tile
            tile *= 0.5
            return tile

        return weights


@entry_point
@dataclass(frozen=True, eq=False)
class LeaveOneOut(ExactObjective):
    """Leave-one-out log predictive density of a Gaussian process, with its gradient.

        sum_ic log p(y_ic | all other y_jc, theta)

    from one factorisation of C = K + noise: given the others, y_i is normal with mean
    y_i - a_i / g_i and variance 1 / g_i, where a = C^-1 y and g is the diagonal of C^-1.

    It measures how well the model predicts, whereas the marginal likelihood measures how probable
    the data are under the model.  It is more robust if the model is wrong (Rasmussen and Williams,
    2006, section 5.4).

    Parameters
    ----------
    kernel : Kernel
        The prior covariance, including the noise as a `White` term if theta should contain it.
    X : points
        The n observations.
    Y : array of shape (n,) or (n, q)
        The targets; the prior mean is 0.
    noise : float or array of shape (n,), default=0
        Variance added to the diagonal of K.  It is not part of theta.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    See Also
    --------
    MarginalLikelihood : Probability of the data under the model.
    RidgeCriterion : Leave-one-out error of kernel ridge regression, without variances.

    References
    ----------
    Sundararajan and Keerthi, "Predictive approaches for choosing hyperparameters in Gaussian
    processes", Neural Computation 13, 2001.

    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
    5.4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import LeaveOneOut
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> value, gradient = LeaveOneOut(RBF(0.3) + White(0.01), X, np.sin(6 * X)).value_and_gradient()
    >>> round(value, 2), gradient.round(2)
    (23.67, array([ 1.85, -9.61]))
    """

    @property
    def _n_square_arrays(self) -> int:
        return 2

    def _log_objective(self, system: FactorizedCovariance, A: np.ndarray) -> float:
        # The value alone also needs C^-1, and therefore costs nearly as much as a gradient.
        return _log_predictive(A, system.invert().diagonal()).value

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        system, A = self._solve(theta, with_derivatives=True)
        inverse = system.invert()
        criterion = _log_predictive(A, inverse.diagonal().copy())
        weights, _ = _criterion_weights(criterion, A, inverse)
        return criterion.value, system.derivatives(weights)[0]


class Criterion(NamedTuple):
    """The value of an objective, with its derivatives in a, p and log det C (module docstring)."""

    value: float
    by_a: np.ndarray
    by_p: np.ndarray | None
    by_logdet: float


def _log_predictive(A: np.ndarray, g: np.ndarray) -> Criterion:
    """Return the leave-one-out log density, given A = C^-1 Y and g = diag C^-1."""
    ratios = A / g[:, None]
    logs = A.shape[1] * np.sum(np.log(g) - np.log(2.0 * np.pi))
    value = 0.5 * float(logs - np.sum(A * ratios))
    return Criterion(value, -ratios, 0.5 * (A.shape[1] / g + np.sum(ratios**2, axis=1)), 0.0)


def _criterion_weights(
    criterion: Criterion, A: np.ndarray, P: np.ndarray
) -> tuple[TileWeights, np.ndarray]:
    """Return a function that computes tiles of W, and the diagonal of W (module docstring).

    P is C^-1, valid in its lower triangle.  It is overwritten.
    """
    c = criterion.by_logdet
    B = blas.dsymm(1.0, P, criterion.by_a, lower=1)
    diagonal = c * P.diagonal() - np.einsum("ic,ic->i", A, B)
    if criterion.by_p is not None:
        # A criterion with v has c = 0, so that P can be replaced by P diag(v) P here.
        mirror_lower_triangle(P)
        root = np.multiply(P, np.sqrt(criterion.by_p), out=P)
        P, c = blas.dsyrk(1.0, root, lower=1), -1.0
        diagonal -= P.diagonal()

    def weights(rows: slice, cols: slice) -> np.ndarray:
        tile = A[rows] @ B[cols].T
        tile += B[rows] @ A[cols].T
        tile *= -0.5
        tile += c * symmetric_tile(P, rows, cols)
        return tile

    return weights, diagonal


@entry_point
@dataclass(frozen=True, eq=False)
class RidgeCriterion(DenseObjective):
    """Objective for choosing kernel parameters and alpha of kernel ridge regression.

    For "loo" and "gcv" the value is -N/2 log(mean squared error), where N = n q is the number of
    targets; this is on the scale of a log likelihood, as `maximise` expects.  For "likelihood" it
    is the log marginal likelihood.  theta contains the parameters of the kernel and, if `free`,
    log alpha.

    Parameters
    ----------
    kernel : Kernel
        The kernel.  Its free parameters are part of theta.
    X : points
        The n training points.
    Y : array of shape (n,) or (n, q)
        The targets.
    noise : float or array of shape (n,), default=0
        The inverse sample weights 1 / w; 0 means that all weights are 1.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.
    alpha : float, default=1
        The regularisation parameter; the initial value if `free`.
    free : bool, default=True
        Whether log alpha is part of theta.
    intercept : bool, default=False
        Whether the model has an intercept.
    criterion : {"loo", "gcv", "likelihood"}, default="loo"
        Leave-one-out error, generalised cross-validation, or marginal likelihood.  "loo" estimates
        the squared error of predictions directly.  "gcv" is less sensitive to single points with a
        large influence.  "likelihood" is less noisy for few points, but assumes that the prior is
        adequate.

    See Also
    --------
    KernelRidgeCV : Kernel ridge regression that chooses alpha.
    tune : Choose the parameters of an estimator.

    References
    ----------
    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics 21, 1979.

    Wahba, "A comparison of GCV and GML for choosing the smoothing parameter in the generalized
    spline smoothing problem", Annals of Statistics 13, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import RidgeCriterion
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> objective = RidgeCriterion(RBF(0.3), X, np.sin(6 * X), alpha=0.01)
    >>> value, gradient = objective.value_and_gradient()
    >>> f"{objective.error(value):.5f}", gradient.round(2)
    ('0.00117', array([-12.06,  -9.19]))
    """

    alpha: float = 1.0
    free: bool = True
    intercept: bool = False
    criterion: str = "loo"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("criterion", self.criterion, *RIDGE_CRITERIA)
        if not np.any(self.noise):
            self.__dict__["noise"] = 1.0

    @property
    def _n_square_arrays(self) -> int:
        return 1 if self.criterion == "likelihood" else 2

    @property
    def start(self) -> np.ndarray:
        kernel_theta = self.kernel.theta
        return np.append(kernel_theta, np.log(self.alpha)) if self.free else kernel_theta

    @property
    def n_targets(self) -> int:
        """The number N of targets, minus one per column if an intercept is integrated out."""
        n, q = self.Y.shape
        return q * (n - (self.intercept and self.criterion == "likelihood"))

    def error(self, value: float) -> float:
        """Convert a value of the objective to a mean squared error; "likelihood" is unchanged.

        Parameters
        ----------
        value : float
            A value of the objective.

        Returns
        -------
        float
            exp(-2 value / N), in the squared units of the targets.
        """
        if self.criterion == "likelihood":
            return value
        return float(np.exp(-2.0 * value / self.n_targets))

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that `maximise` may call."""
        return Capabilities(subset=True, standard_error=True)

    def standard_error(self, theta: Theta = None) -> float:
        """Return the approximate standard error of the value, over random data sets of this size.

        The mean of N squared normal errors has a relative standard error of sqrt(2 / N).  An
        optimisation can stop when its steps gain much less than this.

        Parameters
        ----------
        theta : array of shape (p,), optional
            Ignored: the standard error does not depend on theta.

        Returns
        -------
        float
            The standard error, sqrt(N / 2).
        """
        return float(np.sqrt(0.5 * self.n_targets))

    def split(self, theta: Theta) -> tuple[Kernel, float]:
        """Return the kernel and alpha for theta.

        Parameters
        ----------
        theta : array of shape (p,) or None
            The logarithms of the free kernel parameters and, if `free`, of alpha.  None means the
            initial values.

        Returns
        -------
        kernel : Kernel
            The kernel with these parameters.
        alpha : float
            The regularisation parameter.
        """
        theta = self.start if theta is None else np.asarray(theta, dtype=float)
        if not self.free:
            return self.kernel.with_theta(theta), self.alpha
        return self.kernel.with_theta(theta[:-1]), float(np.exp(theta[-1]))

    def _value(self, theta: Theta) -> float:
        return self._solve(theta)[-1].value

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        system, regularisation, A, P, result = self._solve(theta)
        weights, diagonal = _criterion_weights(result, A, P)
        gradient, _ = system.derivatives(weights)
        if self.free:
            gradient = np.append(gradient, np.sum(diagonal * regularisation))
        return result.value, gradient

    def _solve(
        self, theta: Theta
    ) -> tuple[FactorizedCovariance, np.ndarray, np.ndarray, np.ndarray, Criterion]:
        """Return the system, alpha / w, a = P y, P (lower triangle only), and the criterion."""
        kernel, alpha = self.split(theta)
        n, Y = length(self.X), self.Y
        regularisation = np.broadcast_to(alpha * np.asarray(self.noise), (n,))
        system = FactorizedCovariance(kernel, self.X, regularisation, self.max_memory)
        logdet = system.logdet()
        solved = system.solve(np.column_stack([np.ones(n), Y]))
        P, u, A = system.invert(), solved[:, 0], solved[:, 1:]
        if self.intercept:
            total = float(u.sum())
            A = A - np.outer(u, u @ Y / total)
            P = blas.dsyr(-1.0 / total, u, lower=1, a=P, overwrite_a=1)
            logdet += np.log(total)
        result = self._evaluate(A, P.diagonal().copy(), logdet)
        if not np.isfinite(result.value):
            raise NotPositiveDefiniteError("the criterion is not finite because of rounding errors")
        return system, regularisation, A, P, result

    def _evaluate(self, A: np.ndarray, p: np.ndarray, logdet: float) -> Criterion:
        """Compute the criterion from the coefficients A, p = diag P and the log determinant."""
        n, N = len(A), self.n_targets
        w = np.broadcast_to(1.0 / np.asarray(self.noise), (n,))
        with np.errstate(all="ignore"):
            if self.criterion == "likelihood":
                S, q = float(np.sum(self.Y * A)), self.Y.shape[1]
                value = -0.5 * (N * (np.log(2.0 * np.pi * S / N) + 1.0) + q * logdet)
                return Criterion(value, -0.5 * N / S * self.Y, None, -0.5 * q)
            if self.criterion == "loo":
                errors = w[:, None] * A**2 / p[:, None] ** 2
                S = float(errors.sum())
                by_a = -N / S * w[:, None] * A / p[:, None] ** 2
                by_p, mean = N / S * errors.sum(axis=1) / p, S / (w.sum() * A.shape[1])
            else:
                S, T = float(np.sum(A**2 / w[:, None])), float(np.sum(p / w))
                by_a = -N / S * A / w[:, None]
                by_p, mean = N / (T * w), n * S / (T**2 * A.shape[1])
            return Criterion(-0.5 * N * np.log(mean), by_a, by_p, 0.0)
