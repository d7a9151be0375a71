"""Kernel PCA of many points: exact, exact with growing n, and with landmarks.

The timed call is one fit, from points to a fitted estimator.  Its memory includes the estimator.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ._models import COMPONENTS, rbf
from ._problems import POINTS, default_gamma, describe, load_problem, problem_family
from ._race import time_ratio
from ._suite import Call, Case, Contender, Suite, max_relative_error

REFERENCE_TOLERANCE = 1e-9  # relative error up to which both libraries must agree on the reference
N_CHECKED_ROWS = 64  # number of rows of K in which eigenvectors are checked
ROWS_PER_BLOCK = 20000  # number of points for which the reference computes features at a time


def load_points(**inputs: Any) -> tuple[np.ndarray, float]:
    """Return points, and a γ for which typical entries of K are 1/e²."""
    X = load_problem(**inputs, queries=1).X
    return X, 2.0 * default_gamma(X)


def mercer_pca(gamma: float, **options: Any) -> Any:
    from mercer import KernelPCA

    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, **options)


def sklearn_pca(gamma: float, **options: Any) -> Any:
    from sklearn.decomposition import KernelPCA

    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, copy_X=False, random_state=0, **options)


def call_with_note(fit: Callable[[], Any], result: Callable, note: Callable[[Any], str]) -> Call:
    """Return a call that fits, sets its note, and returns the result of the fitted model."""

    def call() -> np.ndarray:
        model = fit()
        call.note = note(model)
        return result(model)

    return call


def describe_certificate(model: Any) -> str:
    """Return the number of passes over K, and whether it is proved that no component was missed."""
    passes = model.report_.n_iter
    parts = [f"{passes} pass" + "es" * (passes != 1)]
    parts += ["proved" if model.certificate_.nothing_missed else "not proved"]
    return ", ".join(parts)


def append_note(record: dict, text: str) -> None:
    """Append a text to the note of a record."""
    record["note"] = "; ".join(filter(None, [record["note"], text]))


def append_peer_comparison(record: dict, peer: dict, peer_name: str) -> None:
    """Append the time ratio to a peer, over all rounds, and the memory relative to the peer's."""
    ratios = "{:.3g} ({:.3g}–{:.3g})".format(*time_ratio(peer["seconds"], record["seconds"]))
    append_note(record, f"{peer_name} / this: {ratios}")
    memory, peer_memory = record["scratch"][0], peer["scratch"][0]
    if memory is not None and peer_memory:
        append_note(record, f"memory {memory / peer_memory:.2g} of the peer's")


def is_ok(case: dict, name: str = "mercer") -> bool:
    """Return True if a contender finished a case with an accepted result."""
    return case["contenders"].get(name, {"status": "absent"})["status"] == "ok"


# -------------------------------------------------------------- exact, peers with a stored K


def mercer(tol: float | None = None, **inputs: Any) -> Call:
    """Return a fit by block Krylov with the accuracy of the peers; with defaults if tol is None."""
    X, gamma = load_points(**inputs)
    options = {}
    if tol is not None:
        from mercer.solvers import BlockKrylov

        solver = BlockKrylov(tol=tol, prove=False, random_state=0)
        options = {"eigen_solver": solver, "storage": "tiled"}
    return call_with_note(
        lambda: mercer_pca(gamma, **options).fit(X),
        lambda model: model.eigenvalues_,
        describe_certificate,
    )


def scikit(solver: str, tol: float = 0.0, **inputs: Any) -> Call:
    X, gamma = load_points(**inputs)
    return lambda: sklearn_pca(gamma, eigen_solver=solver, tol=tol).fit(X).eigenvalues_


def eigenvalues(**inputs: Any) -> np.ndarray:
    """Return the leading eigenvalues to rounding; both libraries have to agree on them."""
    values = mercer(tol=1e-10, **inputs)()
    difference = max_relative_error(scikit("arpack", **inputs)(), values)
    if not difference <= REFERENCE_TOLERANCE:
        raise RuntimeError(f"no reliable reference: mercer and ARPACK differ by {difference:.1e}")
    return values


def compare_with_fastest_peer(cases: list[dict]) -> None:
    """Compare every setting of mercer with the fastest peer that is accurate enough."""
    for case in cases:
        records = case["contenders"]
        peers = [name for name in PEERS if is_ok(case, name)]
        if not peers:
            continue
        best = min(peers, key=lambda name: statistics.median(records[name]["seconds"]))
        append_note(records[best], "fastest peer")
        for name in records.keys() - PEERS.keys():
            if is_ok(case, name):
                append_peer_comparison(records[name], records[best], "fastest peer")


def exact_cases(quick: bool) -> list[Case]:
    """Return the cases with all peers, or with one of them if `quick`."""
    n = 2000 if quick else 20_000
    return [
        Case(
            describe(inputs),
            inputs,
            tolerance=1e-6,
            error=max_relative_error,
            contenders=tuple(EXACT.contenders)[: 1 - len(PEERS)] if quick else (),
            family=f"`KernelPCA.fit`, 10 components of {n} points, exact",
        )
        for inputs in problem_family(POINTS, quick, n=n)
    ]


PEERS = {
    "scikit-learn, ARPACK tol=1e-3": partial(scikit, "arpack", 1e-3),
    "scikit-learn, ARPACK tol=0": partial(scikit, "arpack", 0.0),
    "scikit-learn, randomized": partial(scikit, "randomized"),
}
EXACT = Suite(
    "exact kernel PCA, 10 components",
    exact_cases,
    {
        "mercer": Contender("mercer", partial(mercer, tol=1e-3)),
        "mercer, default": Contender("mercer", mercer),
    }
    | {name: Contender("sklearn", make, candidate=True) for name, make in PEERS.items()},
    eigenvalues,
    max_warm_up=120.0,
    postprocess=compare_with_fastest_peer,
)

# ------------------------------------------------------------------- exact, with growing n


def eigenpairs_call(**inputs: Any) -> Call:
    """Return a fit whose result is the eigenvectors, with the eigenvalues in the last row."""
    X, gamma = load_points(**inputs)
    return call_with_note(
        lambda: mercer_pca(gamma, eigen_solver="krylov", storage="tiled").fit(X),
        lambda model: np.vstack([model.eigenvectors_, model.eigenvalues_]),
        describe_certificate,
    )


def checked_rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice(n, N_CHECKED_ROWS, replace=False)


def random_gram_rows(**inputs: Any) -> np.ndarray:
    """Return random rows of K, computed from differences, minus the mean of these rows."""
    X, gamma = load_points(**inputs)
    K = rbf(X[checked_rows(len(X))], X, gamma)
    return K - K.mean(axis=0)


def residual(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest ‖K_c u − λu‖ / ‖λu‖ over the components, in the checked rows.

    Because Σᵢ uᵢ = 0, the rows of K_c u and of K u have the same differences from their mean, so K
    does not have to be centred.
    """
    U, values = result[:-1], result[-1]
    expected = U[checked_rows(len(U))]
    expected = (expected - expected.mean(axis=0)) * values
    residuals = np.linalg.norm(reference @ U - expected, axis=0)
    return float(np.max(residuals / np.linalg.norm(expected, axis=0)))


def append_scaling(cases: list[dict]) -> None:
    """Append the time relative to the first case, and p of the least-squares fit time ∝ nᵖ."""
    runs = [(case["inputs"]["n"], case["contenders"]["mercer"]) for case in cases if is_ok(case)]
    if len(runs) < 2:
        return
    n = np.array([n for n, _ in runs], dtype=float)
    seconds = np.array([statistics.median(record["seconds"]) for _, record in runs])
    for (_, record), relative_time in zip(runs[1:], seconds[1:] / seconds[0], strict=True):
        append_note(record, f"{relative_time:.3g} × the time of n={runs[0][0]}")
    exponent = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    append_note(runs[-1][1], f"time ∝ n^{exponent:.2f} over all n")


def scaling_cases(quick: bool) -> list[Case]:
    return [
        Case(f"n={n} d=20", {"name": "plane", "n": n, "d": 20}, 1e-6, residual)
        for n in ((2000, 4000) if quick else (20000, 40000, 100000))
    ]


SCALING = Suite(
    "exact kernel PCA with growing n",
    scaling_cases,
    {"mercer": Contender("mercer", eigenpairs_call)},
    random_gram_rows,
    max_warm_up=60.0,
    postprocess=append_scaling,
)

# --------------------------------------------------------------- approximate, with landmarks


def score_variances(scores: np.ndarray) -> np.ndarray:
    return scores.var(axis=0, ddof=1)


def mercer_landmarks(rank: int, **inputs: Any) -> Call:
    X, gamma = load_points(**inputs)

    def fit() -> tuple[Any, np.ndarray]:
        model = mercer_pca(gamma, eigen_solver="nystroem", rank=rank)
        return model, score_variances(model.fit_transform(X))

    def note(fitted: tuple[Any, np.ndarray]) -> str:
        model, explained = fitted
        total = model.total_variance_ * (len(X) - 1)  # for Nyström, an upper bound
        certified = model.eigenvalue_bounds_[:, 0].sum() / total
        return f"variance {explained.sum():.5f}, certified fraction ≥ {certified:.4f}"

    return call_with_note(fit, lambda fitted: fitted[1], note)


def scikit_landmarks(rank: int, **inputs: Any) -> Call:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    X, gamma = load_points(**inputs)

    def fit() -> np.ndarray:
        features = Nystroem(kernel="rbf", gamma=gamma, n_components=rank, random_state=0)
        return score_variances(make_pipeline(features, PCA(COMPONENTS)).fit_transform(X))

    return call_with_note(fit, lambda result: result, lambda result: f"variance {result.sum():.5f}")


def reference_variances(rank: int, **inputs: Any) -> np.ndarray:
    """Return the variances of scikit-learn's pipeline, with features computed in blocks of rows."""
    from sklearn.kernel_approximation import Nystroem

    X, gamma = load_points(**inputs)
    features = Nystroem(kernel="rbf", gamma=gamma, n_components=rank, random_state=0).fit(X)
    total, squares = np.zeros(rank), np.zeros((rank, rank))
    for start in range(0, len(X), ROWS_PER_BLOCK):
        F = features.transform(X[start : start + ROWS_PER_BLOCK])
        total += F.sum(axis=0)
        squares += F.T @ F
    covariance = (squares - np.outer(total, total) / len(X)) / (len(X) - 1)
    return np.linalg.eigvalsh(covariance)[: -COMPONENTS - 1 : -1]


def shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative amount of variance missing compared with the reference; 0 if none is."""
    return float(np.maximum(0.0, 1.0 - result.sum() / reference.sum()))


def compare_with_pipeline(cases: list[dict]) -> None:
    """Append the comparison with scikit-learn's pipeline, and times relative to the first case."""
    first = cases[0]
    if not is_ok(first):
        return
    record = first["contenders"]["mercer"]
    if is_ok(first, "scikit-learn"):
        append_peer_comparison(record, first["contenders"]["scikit-learn"], "peer")
    unit = statistics.median(record["seconds"])
    for case in filter(is_ok, cases[1:]):
        record = case["contenders"]["mercer"]
        relative_time = statistics.median(record["seconds"]) / unit
        append_note(record, f"{relative_time:.3g} × the time of n={first['inputs']['n']}")


def landmark_cases(quick: bool) -> list[Case]:
    small, large, rank = (4000, 20000, 200) if quick else (200_000, 1_000_000, 1000)
    members = [{"name": name, "d": d} for name, d in SPECTRA]
    plane = {"name": "plane", "n": large, "d": 20, "rank": rank}
    common = {"tolerance": 1e-3, "error": shortfall}
    family = f"`KernelPCA.fit_transform`, {small} points, {rank} landmarks"
    return [
        *(
            Case(describe(inputs), inputs, **common, family=family)
            for inputs in problem_family(members, quick, n=small, rank=rank)
        ),
        Case(describe(plane), plane, **common, contenders=("mercer",)),
    ]


SPECTRA = (("plane", 20), ("curve", 50), ("falling", 20), ("normal", 3), ("normal", 10))
LANDMARKS = Suite(
    "kernel PCA with landmarks, 10 components",
    landmark_cases,
    {
        "mercer": Contender("mercer", mercer_landmarks),
        "scikit-learn": Contender("sklearn", scikit_landmarks),
    },
    reference_variances,
    max_warm_up=90.0,
    postprocess=compare_with_pipeline,
)

SUITES = {"pca-exact": EXACT, "pca-scaling": SCALING, "pca-nystroem": LANDMARKS}
