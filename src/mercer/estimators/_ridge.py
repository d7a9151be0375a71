"""Kernel ridge regression: f = sum_i a_i k(x_i, .) with (K + alpha I) a = y."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from .._points import length, take
from .._runtime import check_budget
from ..blocks import Blocks
from ..expansion import Expansion, Primal
from ..kernels import Kernel, unwrap
from ..solvers import ExactRidge, LandmarkRidge
from ._base import Landmarked, NamedKernel
from ._in_blocks import exactly, gathered, require_landmarks, sampled
from ._parameters import AT_LEAST_0, by_size, estimator, fitting, parameter, solver, threaded
from ._sample import Sample

__all__ = ["KernelRidge", "RidgeEstimator"]


@estimator(kw_only=True)
class RidgeEstimator(MultiOutputMixin, RegressorMixin, Landmarked, NamedKernel):
    """A regressor by least squares with a ridge; see KernelRidge.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit the constant b, which is not penalised.
    solver : {"auto", "exact", "nystroem"}
        "auto" is "exact".
    """

    fit_intercept: bool = parameter("boolean", default=False)
    solver: Any = solver("nystroem", default="auto")

    @property
    def _on_landmarks(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "nystroem"

    def _resolved(self, sample: Sample, gamma: Any) -> Kernel:
        """Return the kernel of the sample.

        With an intercept, f does not depend on where the origin of linear terms is.
        """
        kernel = self._make_kernel(gamma)
        if self.fit_intercept:
            return sample.resolve_about(kernel, check=False)
        return sample.resolve(kernel)

    def _problem(
        self, kernel: Kernel, sample: Sample, alphas: np.ndarray, solver: Any = None
    ) -> Any:
        """Return the problem with an alpha for each target: on all points, or on landmarks."""
        solver = self.solver if solver is None else solver
        data = (kernel, sample.points, sample.targets, sample.weights, alphas, self.fit_intercept)
        common: dict[str, Any] = {"max_memory": self.max_memory, "say": self._teller}
        if isinstance(solver, str) and solver in ("nystroem", "krill"):
            return LandmarkRidge(*data, self._chosen, solver == "krill", **common)
        seed = 0 if self.random_state is None else self.random_state
        options = {"rank": self.rank, "random_state": seed}
        return ExactRidge(*data, solver=by_size(solver), options=options, **common)

    def _blocks_sample(self, X: Blocks, y: Any, sample_weight: Any) -> tuple[Sample, Blocks]:
        """Return a sample of points in blocks, and the blocks with targets and weights."""
        require_landmarks(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} needs targets y: in blocks, or in one array")
        blocks, drawn = sampled(X, self._chosen, y, sample_weight)
        return self._sample(drawn.X, drawn.y, drawn.weights, copy=False), blocks

    def _problem_in_blocks(
        self, kernel: Kernel, sample: Sample, blocks: Blocks, alphas: np.ndarray
    ) -> LandmarkRidge:
        return LandmarkRidge(
            *(kernel, blocks, sample.targets, None, alphas, self.fit_intercept, self._chosen),
            max_memory=self.max_memory,
            say=self._teller,
            among=sample.points,
        )


@estimator()
class KernelRidge(RidgeEstimator):
    """Minimise  sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2  over the RKHS of the kernel.

    A drop-in for scikit-learn's estimator of this name: same parameters, defaults, attributes.
    Two differences: under a name, gamma must be positive, and for "poly" degree a positive integer
    and coef0 non-negative, because nothing else is a Mercer kernel; and a precomputed matrix that
    is not symmetric is symmetrised, with a warning.

    Predictions are computed in tiles and need no memory for k(X, X_fit).

    Parameters
    ----------
    alpha : float or array of shape (n_targets,)
        The ridge, one for all targets or one for each.
    solver : str or a solver
        Exact: "cholesky"; "mixed" (a float32 factor, refined to float64 accuracy); "cg" (conjugate
        gradients, without the n x n matrix); "lstsq" (for singular systems).  Approximate, with f
        in the span of landmarks: "nystroem" (direct), "krill" (iterative, for many landmarks).
        "auto" and "exact" are the same here, exact, and choose by size: see
        `mercer.solvers.choose`; a singular system falls back to least squares, with a warning.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_targets)
    intercept_ : float or ndarray of shape (n_targets,)
        b; 0 without fit_intercept.
    X_fit_ : points
        The training points (their indices for a precomputed kernel), or the landmarks.
    expansion_ : Expansion
        The fitted f, as a value; predictions are f + intercept_.
    kernel_ : Kernel
        The kernel with all its values.
    solver_, report_
        The solver, and what it did.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=10).fit(X, np.sin(6 * X[:, 0]))
    >>> model.predict([[0.5]]).round(2)
    array([0.14])
    >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)  # 5 is far from the data
    >>> bool(10 * std[0] < std[1])
    True
    """

    alpha: float | np.ndarray | list = parameter(AT_LEAST_0, "array-like", default=1)
    _: KW_ONLY
    solver: Any = solver(
        *("cholesky", "mixed", "cg", "lstsq", "nystroem", "krill"),
        given=[HasMethods(["factorize"])],
        default="auto",
    )

    @property
    def _order(self) -> int | None:
        if isinstance(self.solver, str) and self.solver == "lstsq":
            return None  # it asks for none of the signs
        return int(self.fit_intercept)  # with an intercept the coefficients have the sum 0

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the squared errors."""
        self._fit_sample(self._sample(X, y, sample_weight), self.solver)
        return self

    def _fit_sample(self, sample: Sample, solver: Any) -> None:
        alphas = _check_alpha(self.alpha, sample.targets.shape[1])
        self.kernel_: Kernel = self._resolved(sample, self.gamma)
        evaluated = sample.evaluated(self.kernel_, self.max_memory)
        self._ridge = self._problem(evaluated, sample, alphas, solver)
        A, b = self._ridge.solve()
        self._ridge.kernel = unwrap(evaluated)
        if isinstance(self._ridge, LandmarkRidge):
            self.expansion_ = Expansion(self.kernel_, self._ridge.points, A)
        else:
            self.expansion_, self._places = sample.expansion(self.kernel_, A), sample.places
        self._set_expansion(self.expansion_, b, sample.flat)
        self.solver_, self.report_ = self._ridge.chosen, self._ridge.report
        if sample.values is not None:
            del self._ridge  # with the matrix in it

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Fit f to targets in blocks: on landmarks in one pass, else by products with all of K."""
        if not self._on_landmarks:
            with exactly(self, X, "solver", ("auto", "exact", "cg")):
                given = gathered(self, X, y, sample_weight)
                self._fit_sample(self._sample(*given, copy=False), "cg")
            return
        sample, blocks = self._blocks_sample(X, y, sample_weight)
        alphas = _check_alpha(self.alpha, sample.targets.shape[1])
        self.kernel_ = self._resolved(sample, self.gamma)
        self._ridge = self._problem_in_blocks(self.kernel_, sample, blocks, alphas)
        A, b = self._ridge.solve()
        self.expansion_ = Expansion(self.kernel_, self._ridge.points, A)
        self._set_expansion(self.expansion_, b, sample.flat)
        self.solver_, self.report_ = self._ridge.chosen, self._ridge.report

    # ------------------------------------------------------------------ predictions

    @threaded
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return f(x) + b for each point; for a precomputed kernel X is k(X, training points).

        With `return_std` also the standard deviation of f(x) + b, for the Gaussian process whose
        mean f is: prior covariance c k, noise of variance c alpha / w_i, with the c that makes the
        data most likely.  Exact solvers factor the system again at the first call, and keep it if
        there is one alpha.
        """
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        flat = self._one_target
        values = self.expansion_(X) + self.intercept_
        if not return_std:
            return values[:, 0] if flat else values
        self._require_points("standard deviations")
        std = np.sqrt(self._ridge.variance(X))
        return (values[:, 0], std[:, 0]) if flat else (values, std)

    def leave_one_out(self) -> np.ndarray:
        """Return f_-i(x_i) + b_-i: for each training point the prediction without it.

        In closed form, y_i - a_i / P_ii, where a = P y: no further fits.  `KernelRidgeCV` has them
        for many alphas, and for "nystroem".
        """
        check_is_fitted(self)
        self._require_points("leave-one-out predictions")
        if isinstance(self._ridge, LandmarkRidge):
            raise ValueError(
                f"solver={self.solver!r} keeps landmarks, not the training points; use "
                f"KernelRidgeCV(alphas=[alpha], solver='nystroem') and its leave_one_out_"
            )
        without = np.flatnonzero(self._places < 0)
        predictions = np.empty((len(self._places), self._ridge.Y.shape[1]))
        predictions[self._places >= 0] = self._ridge.Y - self._ridge.leave_one_out()
        if len(without):
            predictions[without] = self.expansion_(take(self.X_fit_, without)) + self.intercept_
        return predictions[:, 0] if self._one_target else predictions

    def dual_basis(self, indices: Any = None) -> Expansion:
        """Return the functions psi_i of f = sum_i y_i psi_i, for all training points or some.

        Their values are P k(x): how much each target says about f(x).  Without weights and
        intercept P is (K + alpha I)^-1.
        """
        check_is_fitted(self)
        self._require_points("dual basis functions")
        if isinstance(self._ridge, LandmarkRidge) or len(np.unique(self._ridge.alphas)) > 1:
            raise ValueError("the dual basis needs an exact solver, and one alpha for all targets")
        n, places = length(self.X_fit_), self._places
        wanted = np.arange(n) if indices is None else np.atleast_1d(np.asarray(indices, dtype=int))
        check_budget(32 * n * len(wanted), self.max_memory, f"{len(wanted)} dual basis functions")
        coefficients, own = np.zeros((n, len(wanted))), places[wanted] >= 0
        coefficients[np.ix_(places >= 0, own)] = self._ridge.inverse(places[wanted[own]])
        return Expansion(self.kernel_, self.X_fit_, coefficients)

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        for part in ("_ridge", "_places"):  # they belong to the model before compression
            self.__dict__.pop(part, None)

    def _require_points(self, what: str) -> None:
        if self._precomputed:
            raise ValueError(
                f"{what} need the kernel matrix of the training points, which is not kept for "
                f"kernel='precomputed'; give kernel=Precomputed(K), and indices as points"
            )
        if self.reduction_ is not None:
            raise ValueError(f"{what} are those of the whole model; this one is compressed")
        if isinstance(self.expansion_, Primal):
            raise ValueError(f"{what} are those of the model in the dual; this one has no points")


def _check_alpha(alpha: Any, n_targets: int) -> np.ndarray:
    alpha = np.asarray(alpha, dtype=float)
    if alpha.ndim > 1 or alpha.size not in (1, n_targets):
        raise ValueError(
            f"alpha must be a number or one number per target: got {alpha.size} values "
            f"for {n_targets} targets"
        )
    if not (alpha.min() >= 0 and alpha.max() < np.inf):  # also what is not a number
        raise ValueError(f"alpha must be finite and non-negative, got {alpha!r}")
    return np.broadcast_to(alpha.reshape(-1), (n_targets,))
