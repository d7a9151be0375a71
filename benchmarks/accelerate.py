"""Predictions of accelerated models, which must be identical to those of the original models.

Support vector machines with the Gaussian kernel and γ = "scale" are fitted to real sets.  The timed
call predicts new points with `mercer.accelerate(model, X)`, with the model itself, and with
scikit-learn's class, which gets the support vectors and coefficients of the same model.  The fit
and the call of `accelerate` are not timed.

Test sets are small, so that the new points are mixtures (1 - t) x + t x' of two random test rows
with t < 0.2.  For a9a, whose columns are 0 or 1, they have the first columns of one row and the
other columns of the other.  A result with a single different class is rejected.  Values of a
regression may differ by the tolerance of the accelerated model, 1 % of their standard deviation.

`python -m benchmarks.accelerate` compares 10⁶ predictions of all models, and prints how many points
each level has decided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._problems import is_available, load_problem
from ._suite import Call, Case, Contender, Suite
from ._svm import scale_gamma

MODELS: dict[str, tuple[str, str, int, dict]] = {
    # name of the case: estimator, data set, training rows (0 for all), parameters
    "letter": ("SVC", "letter", 0, {"C": 10.0}),
    "pendigits": ("SVC", "pendigits", 0, {"C": 10.0}),
    "usps": ("SVC", "usps", 0, {"C": 10.0}),
    "mnist": ("SVC", "mnist", 10_000, {"C": 10.0}),
    "a9a": ("SVC", "a9a", 20_000, {"C": 1.0}),
    "ijcnn1": ("SVC", "ijcnn1", 20_000, {"C": 10.0}),
    "outliers of cod-rna": ("OneClassSVM", "cod-rna", 20_000, {"nu": 0.1}),
    "outliers of letter": ("OneClassSVM", "letter", 0, {"nu": 0.1}),
    "keggdirected": ("SVR", "keggdirected", 20_000, {"C": 1.0, "epsilon": 0.1}),
}
FAMILIES = {"SVC": "`SVC.predict`", "OneClassSVM": "`OneClassSVM.predict`", "SVR": "`SVR.predict`"}
TIMED_QUERIES = 20_000


def fit_model(name: str, n: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the fitted model, its training points, and the test rows."""
    import mercer

    estimator, data, rows, parameters = MODELS[name]
    X, y, Q, _ = load_problem(data, n or rows)
    model = getattr(mercer, estimator)(gamma=scale_gamma(X), **parameters)
    return model.fit(X, y), X, Q


def make_queries(name: str, Q: np.ndarray, n: int) -> np.ndarray:
    """Return n points made of pairs of test rows."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(Q), size=(2, n))
    if name == "a9a":
        columns = np.arange(Q.shape[1])
        return np.where(columns < rng.integers(Q.shape[1], size=(n, 1)), Q[i], Q[j])
    t = rng.uniform(0.0, 0.2, size=(n, 1))
    return (1.0 - t) * Q[i] + t * Q[j]


def accelerated(name: str, n: int, queries: int) -> Call:
    """Return the prediction of the accelerated model; its note has the levels."""
    from mercer import accelerate

    model, X, Q = fit_model(name, n)
    fast = accelerate(model, X)
    points = make_queries(name, Q, queries)

    def call() -> np.ndarray:
        return fast.predict(points)

    fast.predict(points[:1000])
    total = sum(fast.statistics_.values())
    levels = [f"{level} {count / total:.0%}" for level, count in fast.statistics_.items()]
    call.note = f"{len(model.support_)} support vectors; " + ", ".join(levels)
    return call


def full_model(name: str, n: int, queries: int) -> Call:
    """Return the prediction of the model itself."""
    model, _, Q = fit_model(name, n)
    points = make_queries(name, Q, queries)

    def call() -> np.ndarray:
        return model.predict(points)

    return call


def scikit_model(name: str, n: int, queries: int) -> Call:
    """Return the prediction of scikit-learn's class with the coefficients of the same model."""
    import sklearn.svm

    model, X, Q = fit_model(name, n)
    points = make_queries(name, Q, queries)
    peer = getattr(sklearn.svm, type(model).__name__)(gamma=model.gamma)
    labels = np.arange(200) % len(getattr(model, "classes_", "ab"))
    peer.fit(X[:200], labels)  # sets the other attributes
    peer._gamma = model.gamma
    for attribute in ("support_", "support_vectors_", "_n_support", "_dual_coef_", "_intercept_"):
        value = np.array(getattr(model, attribute))
        setattr(peer, attribute, np.ascontiguousarray(value))
    if len(peer._n_support) == 1:  # LIBSVM reads two numbers
        peer._n_support = np.append(peer._n_support, 0).astype(np.int32)
    if hasattr(model, "classes_"):
        peer.classes_ = model.classes_
    peer._sparse = False

    def call() -> np.ndarray:
        return peer.predict(points)

    return call


def reference(name: str, n: int, queries: int) -> np.ndarray:
    """Return the predictions of the model, computed in small batches."""
    model, _, Q = fit_model(name, n)
    points = make_queries(name, Q, queries)
    return np.concatenate([model.predict(part) for part in np.array_split(points, 7)])


def different_classes(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the number of predictions that differ."""
    return float(np.count_nonzero(result != reference))


def largest_difference(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest difference of two predictions, relative to their standard deviation."""
    return float(np.abs(result - reference).max() / reference.std())


def cases(quick: bool) -> list[Case]:
    n, queries = (1000, 2000) if quick else (0, TIMED_QUERIES)
    names = ["pendigits", "outliers of letter"] if quick else list(MODELS)
    is_value = {name: MODELS[name][0] == "SVR" for name in names}
    return [
        Case(
            f"{name}, {queries} queries",
            {"name": name, "n": n, "queries": queries},
            # The tolerance is 1 % of the standard deviation for the training points.
            tolerance=0.02 if is_value[name] else 0.0,
            error=largest_difference if is_value[name] else different_classes,
            family=FAMILIES[MODELS[name][0]],
        )
        for name in names
        if is_available(MODELS[name][1])
    ]


SUITE = Suite(
    "accelerated models with identical predictions",
    cases,
    {
        "mercer": Contender("mercer", accelerated),
        "mercer, full model": Contender("mercer", full_model),
        "scikit-learn": Contender("sklearn", scikit_model),
    },
    reference,
)


def main(total: int = 10**6) -> None:
    """Compare `total` predictions of accelerated models with those of the models, and print."""
    from mercer import accelerate

    names = [name for name in MODELS if is_available(MODELS[name][1])]
    for name in names:
        model, X, Q = fit_model(name)
        fast, differences, worst = accelerate(model, X), 0, 0.0
        points = make_queries(name, Q, -(-total // len(names)))
        for part in np.array_split(points, -(-len(points) // TIMED_QUERIES)):
            truth, result = model.predict(part), fast.predict(part)
            if fast.tolerance is None:
                differences += int(np.count_nonzero(truth != result))
            else:
                worst = max(worst, float(np.abs(truth - result).max()))
                differences += int(np.count_nonzero(np.abs(truth - result) > fast.tolerance))
        print(f"{name}: d = {X.shape[1]}, {len(points)} queries, {differences} differences")
        if fast.tolerance is not None:
            print(f"largest error {worst:.1e}, tolerance {fast.tolerance:.1e}")
        print(fast.plan(), flush=True)


if __name__ == "__main__":
    main()
