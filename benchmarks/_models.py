"""Kernel ridge regression and kernel PCA: the estimators, and their equations for reference."""

from __future__ import annotations

import numpy as np

COMPONENTS = 10
ALPHA = 1.0


def problem(n: int, d: int, seed: int):
    """Points whose columns shrink, so that leading eigenvalues are apart; y; γ = 1/(2d)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 0.9 ** np.arange(d)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y, 1.0 / (2 * d)


def estimator(library: str, model: str, gamma: float):
    if library == "mercer":
        from mercer import KernelPCA, KernelRidge
    else:
        from sklearn.decomposition import KernelPCA
        from sklearn.kernel_ridge import KernelRidge
    if model == "ridge":
        return KernelRidge(alpha=ALPHA, kernel="rbf", gamma=gamma)
    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="arpack", random_state=0)


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """exp(−γ‖x − z‖²), from differences."""
    from scipy.spatial.distance import cdist

    K = cdist(X, Z, "sqeuclidean")
    K *= -gamma
    return np.exp(K, out=K)


def ridge_coefficients(X: np.ndarray, y: np.ndarray, gamma: float) -> np.ndarray:
    """(K + αI)⁻¹ y."""
    from scipy.linalg import solve

    K = rbf(X, X, gamma)
    K.flat[:: len(K) + 1] += ALPHA
    return solve(K, y, assume_a="pos", overwrite_a=True)


def centred(K: np.ndarray, means: np.ndarray) -> np.ndarray:
    """⟨φ(x) − μ, φ(xⱼ) − μ⟩ from k(x, xⱼ) and the column means of the training K."""
    return K - K.mean(axis=1, keepdims=True) - means + means.mean()


def principal_pairs(X: np.ndarray, gamma: float):
    """Leading eigenvalues, eigenvectors of the centred K, and the column means of K."""
    from scipy.sparse.linalg import eigsh

    K = rbf(X, X, gamma)
    means = K.mean(axis=0)
    values, vectors = eigsh(centred(K, means), COMPONENTS, v0=np.ones(len(K)) + X[:, 0])
    return values[::-1], vectors[:, ::-1], means
