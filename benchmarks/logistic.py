"""Kernel logistic regression, to the same objective C Σ log-loss + ‖f‖²/2 with relative error 1e-6.

With C = 1, two classes, no intercept and a fixed kernel, the minimum is the posterior mode that
scikit-learn's GaussianProcessClassifier computes for its Laplace approximation.  scikit-learn's
LogisticRegression has the same objective on the features of its Nystroem transformer.  With all
points as landmarks it is exact; with fewer, all contenders use the same landmarks.  Two of its
solvers are tried.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ._problems import LABELS, default_gamma, describe, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite


def make_problem(**inputs) -> tuple[np.ndarray, np.ndarray, float]:
    """Return points, labels 0, 1, ..., and γ of a Gaussian kernel with γ E|x − z|² = 1."""
    X, y, *_ = load_problem(**inputs)
    return X, np.unique(y, return_inverse=True)[1], default_gamma(X)


def landmark_indices(n: int, rank: int | None) -> np.ndarray:
    """Return the indices of the points that scikit-learn's Nystroem selects with seed 0."""
    return np.random.RandomState(0).permutation(n)[: rank or n]


def objective(log_proba: np.ndarray, y: np.ndarray, squared_norm: float) -> np.ndarray:
    """Return ‖f‖²/2 minus the log likelihood of the labels."""
    return np.array([0.5 * squared_norm - log_proba[np.arange(len(y)), y].sum()])


def relative_excess(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative distance of the objective from its minimum."""
    return float(abs(result[0] / reference[0] - 1.0))


def mercer(rank: int | None, **inputs) -> Call:
    from mercer import KernelLogisticRegression

    X, y, gamma = make_problem(**inputs)
    nystroem = (
        {"solver": "nystroem", "landmarks": X[landmark_indices(len(X), rank)]} if rank else {}
    )

    def fit() -> np.ndarray:
        model = KernelLogisticRegression(
            gamma=gamma, fit_intercept=False, **({"solver": "newton"} | nystroem)
        ).fit(X, y)
        n_corrections = model.report_.certificate["corrections"]
        fit.note = f"{model.n_iter_} factorisations, {n_corrections} corrections"
        squared_norm = float(np.square(model.expansion_.norm()).sum())
        return objective(model.predict_log_proba(X), y, squared_norm)

    return fit


def gaussian_process(rank: int | None, **inputs) -> Call:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    X, y, gamma = make_problem(**inputs)
    kernel = RBF(np.sqrt(0.5 / gamma))

    def fit() -> np.ndarray:
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        base = model.base_estimator_
        # At the mode f = K (y − π), so ‖f‖² = (y − π)ᵀ f; π is from the step before the last.
        f = kernel(X) @ (base.y_train_ - base.pi_)
        log_proba = -np.logaddexp(0.0, np.column_stack([f, -f]))
        return objective(log_proba, y, float((base.y_train_ - base.pi_) @ f))

    return fit


def on_features(solver: str, rank: int | None, **inputs) -> Call:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression

    X, y, gamma = make_problem(**inputs)
    # With the default tol, lbfgs has a relative error of 1e-4; newton-cholesky is accurate enough.
    tol = 1e-6 if solver == "lbfgs" else 1e-4

    def fit() -> np.ndarray:
        phi = Nystroem(gamma=gamma, n_components=rank or len(X), random_state=0)
        F = phi.fit_transform(X)
        model = LogisticRegression(fit_intercept=False, solver=solver, tol=tol, max_iter=5000)
        model.fit(F, y)
        fit.note = f"{model.n_iter_.max()} iterations"
        return objective(model.predict_log_proba(F), y, float(np.square(model.coef_).sum()))

    return fit


def reference(rank: int | None, **inputs) -> np.ndarray:
    """Return the minimum, by SciPy's L-BFGS on features from the eigenvectors of K_SS."""
    from scipy.optimize import minimize
    from scipy.spatial.distance import cdist
    from scipy.special import log_softmax, softmax

    X, y, gamma = make_problem(**inputs)
    S = X[landmark_indices(len(X), rank)]
    s, V = np.linalg.eigh(np.exp(-gamma * cdist(S, S, "sqeuclidean")))
    positive = s > 1e-13 * s[-1]
    F = np.exp(-gamma * cdist(X, S, "sqeuclidean")) @ (V[:, positive] / np.sqrt(s[positive]))
    Y = np.eye(y.max() + 1)[y]
    # With two classes f = f₁ − f₀ and f₁ = −f₀, so that ‖f₀‖² + ‖f₁‖² = ‖f‖²/2.
    is_binary = Y.shape[1] == 2
    weight = 2.0 if is_binary else 1.0

    def J(x: np.ndarray) -> tuple[float, np.ndarray]:
        w = x.reshape(-1, Y.shape[1])
        f = F @ w
        value = 0.5 * weight * x @ x - np.sum(Y * log_softmax(f, axis=1))
        return value, (weight * w + F.T @ (softmax(f, axis=1) - Y)).ravel()

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-14, "gtol": 1e-7, "maxcor": 30}
    start = np.zeros(F.shape[1] * Y.shape[1])
    return np.array([minimize(J, start, jac=True, method="L-BFGS-B", options=options).fun])


def cases(quick: bool) -> list[Case]:
    n, many, rank = (600, 3000, 100) if quick else (2000, 20_000, 500)
    peers = ("mercer", "LogisticRegression, lbfgs", "LogisticRegression, newton-cholesky")
    common = {"tolerance": 1e-6, "error": relative_excess, "contenders": peers}
    labels = [member for member in LABELS if member["name"] not in ("letter", "pendigits")]
    labels.append({"name": "ijcnn1"})  # replaces the sets with fewer rows
    is_binary = problem_family(LABELS, quick, n=n, rank=None, classes=2)
    five = problem_family(LABELS, quick, n=n, rank=None, classes=5)
    large = problem_family(labels, quick, n=many, rank=rank, classes=2)
    name = "`KernelLogisticRegression.fit`"
    exact_options = common | {"contenders": (), "family": f"{name}, two classes, {n} points"}
    multiclass_options = common | {
        "contenders": peers[:2],
        "family": f"{name}, five classes, {n} points",
    }
    nystroem = common | {"family": f"{name}, two classes, {rank} landmarks of {many} points"}
    return [
        *(Case(f"exact, {describe(inputs)}", inputs, **exact_options) for inputs in is_binary),
        *(Case(f"exact, {describe(inputs)}", inputs, **multiclass_options) for inputs in five),
        *(Case(f"{rank} landmarks, {describe(inputs)}", inputs, **nystroem) for inputs in large),
    ]


SUITE = Suite(
    "kernel logistic regression",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "GaussianProcessClassifier": Contender("sklearn", gaussian_process),
        "LogisticRegression, lbfgs": Contender("sklearn", partial(on_features, "lbfgs"), True),
        "LogisticRegression, newton-cholesky": Contender(
            "sklearn", partial(on_features, "newton-cholesky"), True
        ),
    },
    reference,
)
