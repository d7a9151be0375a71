"""Kernel PCA: the leading eigenfunctions of the covariance of phi(x)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..expansion import Expansion
from ..gram import CentredGram, gram
from ..gram._budget import check_budget
from ..kernels import Kernel
from ..solvers import EIGEN, Cholesky, choose
from ._base import KernelEstimator, points_of
from ._spectrum import checked_spectrum, summary

__all__ = ["KernelPCA"]


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Principal components w_j of the points phi(x_i) in feature space.

        w_j = sum_i a_ij (phi(x_i) - mu),    K_c u_j = l_j u_j,    a_j = u_j / sqrt(l_j)

    with K_c the centred kernel matrix.  The score of x is <w_j, phi(x) - mu>.

    A drop-in for scikit-learn's estimator of this name: same parameters, defaults, attributes, with
    the two differences that KernelRidge names.  Beside it: exact explained-variance ratios,
    residuals, scores of new points in tiles, and, where the kernel matrix does not fit
    `max_memory`, ARPACK on a matrix that is never held.

    Parameters
    ----------
    n_components : int or None, default=None
        None for all with a positive eigenvalue.
    kernel, gamma, degree, coef0, kernel_params
        As in KernelRidge.
    alpha : float, default=1.0
        The ridge of the inverse transform.
    fit_inverse_transform : bool, default=False
        Learn the map from scores back to points by kernel ridge regression.
    eigen_solver : "auto", "dense", "arpack", "randomized" or a solver, default="auto"
    tol, max_iter
        Of ARPACK; 0 and None for machine precision and its own limit.
    iterated_power : int or "auto", default="auto"
        Of the randomized solver.
    remove_zero_eig : bool, default=False
        Drop components whose eigenvalue is 0; otherwise their scores are 0.
    random_state : int, RandomState or None, default=None
        Of the start of ARPACK and the randomized solver; None stands for 0, so that fits repeat.
    copy_X : bool, default=True
        If False, X is kept without a copy and must not be changed afterwards.
    n_jobs : int or None, default=None
        Threads; None for all processors.  Results do not depend on it.
    storage : "auto", "dense" or "tiled", default="auto"
        How the kernel matrix is held; see `mercer.gram.gram`.
    max_memory : int, str or None, default=None
        Bytes, or "2 GiB"; None for half of the machine's memory.
    verbose : int, default=0

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components_,)
        Of the centred kernel matrix, not divided by n.
    eigenvectors_ : ndarray of shape (n, n_components_)
        Of unit norm, the entry of largest modulus positive.
    explained_variance_ : ndarray
        eigenvalues_ / (n - 1), as in PCA.
    explained_variance_ratio_ : ndarray
        eigenvalues_ divided by the trace of the centred kernel matrix: the exact total.
    total_variance_ : float
        That trace / (n - 1).
    residuals_ : ndarray
        |K_c u_j - l_j u_j|: an exact eigenvalue lies within it of eigenvalues_[j].
    expansion_ : Expansion
        The components w_j, of unit norm in the RKHS.
    X_fit_, gamma_, kernel_, n_components_, solver_, report_
    dual_coef_, X_transformed_fit_
        Of the inverse transform, if it was fitted.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import circles
    >>> X, _ = circles(200, random_state=0)
    >>> scores = KernelPCA(n_components=2, kernel="rbf", gamma=2.0).fit_transform(X)
    >>> scores.shape
    (200, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **KernelEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [
            StrOptions({"auto", "dense", "arpack", "randomized"}),
            HasMethods(["eigenpairs"]),
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        "n_jobs": [None, Integral],
        "storage": [StrOptions({"auto", "dense", "tiled"})],
    }

    def __init__(
        self,
        n_components: Any = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: Any = None,
        alpha: Any = 1.0,
        fit_inverse_transform: Any = False,
        eigen_solver: Any = "auto",
        tol: Any = 0,
        max_iter: Any = None,
        iterated_power: Any = "auto",
        remove_zero_eig: Any = False,
        random_state: Any = None,
        copy_X: Any = True,
        n_jobs: Any = None,
        storage: Any = "auto",
        max_memory: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.storage = storage
        self.max_memory = max_memory
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the points X; y is ignored."""
        if self.fit_inverse_transform and self._precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        for learned in ("dual_coef_", "X_transformed_fit_", "_inverse"):
            self.__dict__.pop(learned, None)  # of an earlier fit
        X = self._check_points(X, reset=True, copy=self.copy_X and not self._precomputed)
        self._dtype = _precision(X)
        self.kernel_: Kernel = self._make_kernel(self.gamma).resolve(X)
        self.gamma_ = self._resolved_gamma(X)
        K = gram(
            self.kernel_,
            X,
            storage=self.storage,
            max_memory=self.max_memory,
            n_threads=self._threads(),
        )
        self._say(f"centring {K!r}")
        centred = CentredGram(K)
        n = centred.shape[0]
        total, size = centred.trace(), float(np.abs(K.diagonal()).sum())
        wanted = n if self.n_components is None else min(n, self.n_components)
        spec = self.eigen_solver
        if isinstance(spec, str) and spec == "arpack" and wanted == n:
            warnings.warn(
                f"ARPACK finds fewer than n eigenpairs, but {wanted} of n = {n} are asked for; "
                f"the dense solver is used",
                stacklevel=3,
            )
            spec = "dense"
        self.solver_ = choose(
            EIGEN,
            centred,
            spec,
            k=None if wanted == n else wanted,
            tol=self.tol,
            max_iter=self.max_iter,
            n_iter=self.iterated_power,
            random_state=0 if self.random_state is None else self.random_state,
        )
        self._say(f"{wanted} components by {self.solver_}")
        if hasattr(self.solver_, "workspace"):
            needed = 8 * n * n + self.solver_.workspace(n, wanted)
            check_budget(
                needed, self.max_memory, f"a dense eigenproblem of {n} points, {wanted} components,"
            )
        pairs = self.solver_.eigenpairs(centred, wanted, overwrite=True)
        self._say(f"largest relative residual {pairs.report.residual:.1e}")

        values = checked_spectrum(pairs.values, size)
        drop = self.remove_zero_eig or self.n_components is None
        kept = values > 0 if drop else np.ones(len(values), dtype=bool)
        self.eigenvalues_ = values[kept]
        self.eigenvectors_ = pairs.vectors[:, kept]
        self.residuals_ = pairs.residuals[kept]
        self.explained_variance_ = self.eigenvalues_ / max(n - 1, 1)
        self.total_variance_ = total / max(n - 1, 1)
        self.explained_variance_ratio_ = (
            self.eigenvalues_ / total if total > 0 else np.zeros_like(self.eigenvalues_)
        )
        self.report_ = pairs.report
        self.n_components_ = len(self.eigenvalues_)

        roots = np.sqrt(self.eigenvalues_)
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
        coefficients, self._offset = centred.centre_expansion(self.eigenvectors_ * inverse)
        self.X_fit_ = points_of(self.kernel_, X)
        self.expansion_ = Expansion(self.kernel_, self.X_fit_, coefficients)
        self._held = repr(K)
        if self.fit_inverse_transform:
            self._fit_inverse(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """Fit, and return the scores u_j sqrt(l_j) of the training points, (n, n_components_)."""
        self.fit(X, **params)
        return self._training_scores()

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of X, (n, n_components_), in tiles of bounded memory."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        scores = self.expansion_(X, n_threads=self._threads()) - self._offset
        return scores.astype(np.result_type(self._dtype, _precision(X)), copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the learned pre-images of scores X, (n, n_features)."""
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available."
            )
        check_is_fitted(self, "_inverse")
        return self._inverse(np.asarray(X), n_threads=self._threads())

    def summary(self) -> str:
        """Return what was fitted, how well, and at what cost, as text."""
        check_is_fitted(self)
        return summary(self)

    def _threads(self) -> int | None:
        return None if self.n_jobs is None else effective_n_jobs(self.n_jobs)

    def _training_scores(self) -> np.ndarray:
        scores = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        return scores.astype(self._dtype, copy=False)

    def _fit_inverse(self, X: Any) -> None:
        if sp.issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        self.X_transformed_fit_ = scores = self._training_scores()
        kernel = self._make_kernel(self.gamma_).resolve(scores)
        K = gram(
            kernel,
            scores,
            storage="dense",
            max_memory=self.max_memory,
            n_threads=self._threads(),
        )
        self.dual_coef_ = Cholesky().factorize(K, self.alpha, overwrite=True).solve(X)
        self._inverse = Expansion(kernel, scores, self.dual_coef_)

    def _resolved_gamma(self, X: Any) -> Any:
        """Return the number that gamma stands for; 1 / n_features if it is None."""
        if not isinstance(self.gamma, str):
            columns = X.shape[1] if getattr(X, "ndim", 0) == 2 else 1
            return 1.0 / columns if self.gamma is None else self.gamma
        kernel = self.kernel_
        if hasattr(kernel, "gamma"):
            return kernel.gamma
        scale = getattr(kernel, "length_scale", None)
        if scale is None or np.ndim(scale):
            return self.gamma  # a kernel without a gamma: the rule was not used
        return 1.0 / scale if type(kernel).__name__ == "Laplacian" else 0.5 / scale**2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _precision(X: Any) -> np.dtype:
    dtype = np.dtype(getattr(X, "dtype", float))
    return dtype if dtype.kind == "f" else np.dtype(float)
