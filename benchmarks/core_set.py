"""SVMs with the squared hinge loss on a core set: objective, test error, and very many points.

The objective of a fit is ½‖f‖² + C Σᵢ max(0, 1 − yᵢ (f(xᵢ) + b))².  It is computed here from the
fitted coefficients, in float64, and compared with its exact minimum.  The minimum is that of a
hard-margin SVM with the kernel matrix K + I / (2 C), computed by scikit-learn to a tolerance of
1e-8.  The note shows the test errors of the squared hinge loss and of the hinge loss.

The checkerboard of Tsang, Kwok and Cheung (2005) is read from a file in blocks.  It has
`CORE_SET_ROWS` rows (an environment variable; default 100 000), and the objective is compared with
the dual objective of the same fit, because the exact minimum is not available.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from ._measure import peak_memory
from ._problems import Problem, is_available, load_problem
from ._suite import Call, Case, Contender, Suite
from ._svm import scale_gamma

TOL = 0.01
C = 10.0
CHECKERBOARD = {"C": 500.0, "gamma": 0.1875, "tol": 0.05}
MAX_ROWS = int(os.environ.get("CORE_SET_ROWS", "100000"))
# Labels of sets with more than two classes are the parity of the class.
SETS = {
    "checkerboard": 1500,
    "moons": 1500,
    "circles": 1500,
    "breast_cancer": 0,
    "digits": 0,
    "banana": 2000,
    "image": 0,
    "twonorm": 2000,
    "svmguide1": 2000,
    "pendigits": 2000,
}


def checkerboard(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(0.0, 4.0, (n, 2))
    return X, np.floor(X).sum(axis=1) % 2


def two_classes(name: str, n: int) -> Problem:
    """Return a data set with labels 0 and 1."""
    from sklearn.datasets import make_circles, make_moons

    if name == "checkerboard":
        return Problem(*checkerboard(n, 0), *checkerboard(n, 1))
    if name in ("moons", "circles"):
        make = make_moons if name == "moons" else make_circles
        sets = [make(n, noise=0.15, random_state=seed) for seed in (0, 1)]
        return Problem(*sets[0], *sets[1])
    X, y, Q, truth = load_problem(name, n, queries=n)
    names, labels = np.unique(y, return_inverse=True)
    return Problem(X, labels % 2, Q, np.searchsorted(names, truth) % 2)


def objective(f: np.ndarray, b: float, a: np.ndarray, support: np.ndarray, y: np.ndarray) -> float:
    """Return the objective of f = Σ aⱼ k(xⱼ, ·) from its values at all points."""
    slack = np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * (f + b))
    return float(0.5 * a @ f[support] + C * slack @ slack)


def mercer(solver: str, name: str, n: int, rows: int = 0) -> Call:
    from mercer import SVC

    if rows:
        return large(rows)
    X, y, Q, truth = two_classes(name, n)
    gamma = scale_gamma(X)
    options = {"tol": TOL} if solver == "core-set" else {"tol": 1e-6}

    def call() -> np.ndarray:
        model = SVC(C=C, gamma=gamma, loss="squared_hinge", solver=solver, **options).fit(X, y)

        def value() -> np.ndarray:
            f = model.decision_function(X) - model.intercept_[0]
            total = objective(f, model.intercept_[0], model.dual_coef_[0], model.support_, y)
            hinge = np.mean(SVC(C=C, gamma=gamma).fit(X, y).predict(Q) != truth)
            error, counts = np.mean(model.predict(Q) != truth), len(model.support_)
            passes = model.report_.certificate.get("passes", 0)
            call.note = (
                f"test error {error:.4f}, hinge loss {hinge:.4f}; {counts} of {len(X)} points are "
                f"support vectors, {passes} passes"
            )
            return np.array([total])

        call.untimed_result = value

    return call


def large(rows: int) -> Call:
    """Return the fit of a checkerboard that is read from a file in blocks."""
    from mercer import SVC, open_blocks

    folder = Path(tempfile.mkdtemp())
    X, y = checkerboard(rows, 0)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    Q, truth = checkerboard(20_000, 1)
    blocks, targets = (open_blocks(folder / name, rows=2**16) for name in ("X.npy", "y.npy"))

    def call() -> np.ndarray:
        model = SVC(loss="squared_hinge", solver="core-set", **CHECKERBOARD)
        memory = peak_memory(lambda: model.fit(blocks, targets))
        found = model.report_.certificate
        call.note = (
            f"test error {np.mean(model.predict(Q) != truth):.4f}, {len(model.support_)} support "
            f"vectors, {found['passes']} passes, peak {(memory or 0) / 2**20:.0f} MB"
        )
        return np.array([found["primal"] / found["dual"]])

    return call


def scikit_learn(name: str, n: int) -> Call:
    """Return the exact fit, as a hard-margin SVM with the kernel matrix K + I / (2 C)."""
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    X, y, Q, truth = two_classes(name, n)
    gamma = scale_gamma(X)

    def call() -> np.ndarray:
        K = rbf_kernel(X, gamma=gamma)
        K[np.diag_indices(len(K))] += 0.5 / C
        model = SVC(kernel="precomputed", C=1e10, tol=1e-8).fit(K, y)
        a, support, b = model.dual_coef_[0], model.support_, model.intercept_[0]
        f = rbf_kernel(X, X[support], gamma=gamma) @ a
        error = np.mean((rbf_kernel(Q, X[support], gamma=gamma) @ a + b > 0) != truth)
        call.note = f"test error {error:.4f}"
        return np.array([objective(f, b, a, support, y)])

    return call


def reference(name: str, n: int, rows: int = 0) -> np.ndarray:
    return np.ones(1) if rows else scikit_learn(name, n)()


def relative_excess(result: np.ndarray, minimum: np.ndarray) -> float:
    """Return √(objective / minimum) − 1, which is at most `tol` for a core set."""
    return float(np.sqrt(max(result[0] / minimum[0], 1.0)) - 1.0)


def cases(quick: bool) -> list[Case]:
    """Return a case for each available set, and the checkerboard in blocks."""
    generated = list(SETS)[:3]
    names = [name for name in SETS if name in generated or is_available(name)]
    small = [
        Case(
            name,
            {"name": name, "n": 300 if quick else SETS[name]},
            *(TOL, relative_excess),
            family=f"squared hinge loss, C = {C:g}, objective to a factor of {(1 + TOL) ** 2:.4g}",
        )
        for name in (names[:2] if quick else names)
    ]
    rows = 5000 if quick else MAX_ROWS
    large = Case(
        f"checkerboard in blocks, n={rows}",
        {"name": "checkerboard", "n": rows, "rows": rows},
        *(CHECKERBOARD["tol"], relative_excess, ("mercer",)),
        family="checkerboard read from a file",
    )
    return [*small, large]


def make_exact(name: str, n: int, rows: int = 0) -> Call:
    return mercer("smo", name, n)


def make_core_set(name: str, n: int, rows: int = 0) -> Call:
    return mercer("core-set", name, n, rows)


SUITE = Suite(
    "SVM with the squared hinge loss, core set and exact",
    cases,
    {
        "mercer": Contender("mercer", make_core_set),
        "mercer, smo": Contender("mercer", make_exact),
        "scikit-learn": Contender("sklearn", scikit_learn),
    },
    reference,
    max_warm_up=0.0,
)
