"""Kernel PCA of many points: exact, exact as n grows, and on landmarks.

What is timed is one fit, from points to a fitted estimator; its memory is all that the estimator
and the fit take.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ._models import COMPONENTS, rbf
from ._problems import POINTS, draw, family, title, width
from ._race import ratio
from ._suite import Call, Case, Contender, Suite, greatest_error

AGREEMENT = 1e-9  # of the two libraries, on the eigenvalues that serve as reference
PROBES = 64  # rows of K in which eigenvectors are checked
STRIP = 20000  # points that the reference maps to landmarks at a time


def problem(**inputs: Any) -> tuple[np.ndarray, float]:
    """Points, and a γ at which typical entries of K are 1/e²."""
    X = draw(**inputs, queries=1).X
    return X, 2.0 * width(X)


def ours(gamma: float, **options: Any) -> Any:
    from mercer import KernelPCA

    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, **options)


def theirs(gamma: float, **options: Any) -> Any:
    from sklearn.decomposition import KernelPCA

    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma, copy_X=False, random_state=0, **options)


def noted(fit: Callable[[], Any], result: Callable, note: Callable[[Any], str]) -> Call:
    """A call that fits and returns the result; the note on what was fitted goes with it."""

    def call() -> np.ndarray:
        model = fit()
        call.note = note(model)
        return result(model)

    return call


def proof(model: Any) -> str:
    """Passes over K, and whether it is proved that no larger eigenvalue was missed."""
    passes = model.report_.n_iter
    words = [f"{passes} pass" + "es" * (passes != 1)]
    words += ["proved" if model.certificate_.nothing_missed else "not proved"]
    return ", ".join(words)


def remark(record: dict, text: str) -> None:
    record["note"] = "; ".join(filter(None, [record["note"], text]))


def remark_on_peer(record: dict, peer: dict, called: str) -> None:
    """Add the ratio of the times, round by round, and the share of the peer's memory."""
    times = "{:.3g} ({:.3g}–{:.3g})".format(*ratio(peer["seconds"], record["seconds"]))
    remark(record, f"{called} / this: {times}")
    memory, whole = record["scratch"][0], peer["scratch"][0]
    if memory is not None and whole:
        remark(record, f"memory {memory / whole:.2g} of its")


def good(case: dict, name: str = "mercer") -> bool:
    return case["contenders"].get(name, {"status": "absent"})["status"] == "ok"


# ---------------------------------------------------------------------- exact, against a stored K


def mercer(tol: float | None = None, **inputs: Any) -> Call:
    """Block Krylov at the accuracy of the peers; without a tolerance, all defaults."""
    X, gamma = problem(**inputs)
    options = {}
    if tol is not None:
        from mercer.solvers import BlockKrylov

        solver = BlockKrylov(tol=tol, prove=False, random_state=0)
        options = {"eigen_solver": solver, "storage": "tiled"}
    return noted(lambda: ours(gamma, **options).fit(X), lambda model: model.eigenvalues_, proof)


def scikit(solver: str, tol: float = 0.0, **inputs: Any) -> Call:
    X, gamma = problem(**inputs)
    return lambda: theirs(gamma, eigen_solver=solver, tol=tol).fit(X).eigenvalues_


def eigenvalues(**inputs: Any) -> np.ndarray:
    """Leading eigenvalues to rounding, on which both libraries have to agree."""
    found = mercer(tol=1e-10, **inputs)()
    apart = greatest_error(scikit("arpack", **inputs)(), found)
    if not apart <= AGREEMENT:
        raise RuntimeError(f"the reference is in doubt: mercer and ARPACK differ by {apart:.1e}")
    return found


def against_peers(cases: list[dict]) -> None:
    """Set every setting of mercer against the fastest peer that is accurate enough."""
    for case in cases:
        records = case["contenders"]
        peers = [name for name in PEERS if good(case, name)]
        if not peers:
            continue
        best = min(peers, key=lambda name: statistics.median(records[name]["seconds"]))
        remark(records[best], "fastest peer")
        for name in records.keys() - PEERS.keys():
            if good(case, name):
                remark_on_peer(records[name], records[best], "fastest peer")


def exact_cases(quick: bool) -> list[Case]:
    """All peers; for a quick check one of them."""
    n = 2000 if quick else 20_000
    return [
        Case(
            title(inputs),
            inputs,
            tolerance=1e-6,
            error=greatest_error,
            contenders=tuple(EXACT.contenders)[: 1 - len(PEERS)] if quick else (),
            family=f"`KernelPCA.fit`, 10 components of {n} points, exact",
        )
        for inputs in family(POINTS, quick, n=n)
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
    slow=120.0,
    remarks=against_peers,
)

# ---------------------------------------------------------------------- exact, as n grows


def pairs(**inputs: Any) -> Call:
    """Eigenvectors, and the eigenvalues below them."""
    X, gamma = problem(**inputs)
    return noted(
        lambda: ours(gamma, eigen_solver="krylov", storage="tiled").fit(X),
        lambda model: np.vstack([model.eigenvectors_, model.eigenvalues_]),
        proof,
    )


def probes(n: int) -> np.ndarray:
    return np.random.default_rng(n).choice(n, PROBES, replace=False)


def rows(**inputs: Any) -> np.ndarray:
    """Random rows of K, from differences, less their mean."""
    X, gamma = problem(**inputs)
    K = rbf(X[probes(len(X))], X, gamma)
    return K - K.mean(axis=0)


def residual(result: np.ndarray, reference: np.ndarray) -> float:
    """The greatest ‖K_c u − λu‖ / ‖λu‖ in the probed rows.

    As Σᵢ uᵢ = 0, rows of K_c u differ from their mean as rows of K u do: K need not be centred.
    """
    U, values = result[:-1], result[-1]
    expected = U[probes(len(U))]
    expected = (expected - expected.mean(axis=0)) * values
    apart = np.linalg.norm(reference @ U - expected, axis=0)
    return float(np.max(apart / np.linalg.norm(expected, axis=0)))


def growth(cases: list[dict]) -> None:
    """Add the time in units of the first case, and p of the least-squares fit time ∝ nᵖ."""
    runs = [(case["inputs"]["n"], case["contenders"]["mercer"]) for case in cases if good(case)]
    if len(runs) < 2:
        return
    n = np.array([n for n, _ in runs], dtype=float)
    seconds = np.array([statistics.median(record["seconds"]) for _, record in runs])
    for (_, record), times in zip(runs[1:], seconds[1:] / seconds[0], strict=True):
        remark(record, f"{times:.3g} × the time of n={runs[0][0]}")
    power = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    remark(runs[-1][1], f"time ∝ n^{power:.2f} over all n")


def scaling_cases(quick: bool) -> list[Case]:
    return [
        Case(f"n={n} d=20", {"name": "plane", "n": n, "d": 20}, 1e-6, residual)
        for n in ((2000, 4000) if quick else (20000, 40000, 100000))
    ]


SCALING = Suite(
    "exact kernel PCA as n grows",
    scaling_cases,
    {"mercer": Contender("mercer", pairs)},
    rows,
    slow=60.0,
    remarks=growth,
)

# ---------------------------------------------------------------------- approximate, on landmarks


def variances(scores: np.ndarray) -> np.ndarray:
    return scores.var(axis=0, ddof=1)


def mercer_landmarks(rank: int, **inputs: Any) -> Call:
    X, gamma = problem(**inputs)

    def fit() -> tuple[Any, np.ndarray]:
        model = ours(gamma, eigen_solver="nystroem", rank=rank)
        return model, variances(model.fit_transform(X))

    def note(fitted: tuple[Any, np.ndarray]) -> str:
        model, captured = fitted
        total = model.total_variance_ * (len(X) - 1)  # for Nyström, an upper bound
        certain = model.eigenvalue_bounds_[:, 0].sum() / total
        return f"variance {captured.sum():.5f}, certified share ≥ {certain:.4f}"

    return noted(fit, lambda fitted: fitted[1], note)


def scikit_landmarks(rank: int, **inputs: Any) -> Call:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    X, gamma = problem(**inputs)

    def fit() -> np.ndarray:
        features = Nystroem(kernel="rbf", gamma=gamma, n_components=rank, random_state=0)
        return variances(make_pipeline(features, PCA(COMPONENTS)).fit_transform(X))

    return noted(fit, lambda captured: captured, lambda captured: f"variance {captured.sum():.5f}")


def captured(rank: int, **inputs: Any) -> np.ndarray:
    """The variances of scikit-learn's pipeline; its features pass in strips, for any n."""
    from sklearn.kernel_approximation import Nystroem

    X, gamma = problem(**inputs)
    map_ = Nystroem(kernel="rbf", gamma=gamma, n_components=rank, random_state=0).fit(X)
    total, squares = np.zeros(rank), np.zeros((rank, rank))
    for start in range(0, len(X), STRIP):
        F = map_.transform(X[start : start + STRIP])
        total += F.sum(axis=0)
        squares += F.T @ F
    covariance = (squares - np.outer(total, total) / len(X)) / (len(X) - 1)
    return np.linalg.eigvalsh(covariance)[: -COMPONENTS - 1 : -1]


def shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """What the components capture less than the reference's, relatively; more is no error."""
    return float(np.maximum(0.0, 1.0 - result.sum() / reference.sum()))


def against_pipeline(cases: list[dict]) -> None:
    first = cases[0]
    if not good(first):
        return
    record = first["contenders"]["mercer"]
    if good(first, "scikit-learn"):
        remark_on_peer(record, first["contenders"]["scikit-learn"], "peer")
    unit = statistics.median(record["seconds"])
    for case in filter(good, cases[1:]):
        record = case["contenders"]["mercer"]
        times = statistics.median(record["seconds"]) / unit
        remark(record, f"{times:.3g} × the time of n={first['inputs']['n']}")


def landmark_cases(quick: bool) -> list[Case]:
    small, large, rank = (4000, 20000, 200) if quick else (200_000, 1_000_000, 1000)
    members = [{"name": name, "d": d} for name, d in SPECTRA]
    plane = {"name": "plane", "n": large, "d": 20, "rank": rank}
    common = {"tolerance": 1e-3, "error": shortfall}
    words = f"`KernelPCA.fit_transform`, {small} points on {rank} landmarks"
    return [
        *(
            Case(title(inputs), inputs, **common, family=words)
            for inputs in family(members, quick, n=small, rank=rank)
        ),
        Case(title(plane), plane, **common, contenders=("mercer",)),
    ]


SPECTRA = (("plane", 20), ("curve", 50), ("falling", 20), ("normal", 3), ("normal", 10))
LANDMARKS = Suite(
    "kernel PCA on landmarks, 10 components",
    landmark_cases,
    {
        "mercer": Contender("mercer", mercer_landmarks),
        "scikit-learn": Contender("sklearn", scikit_landmarks),
    },
    captured,
    slow=90.0,
    remarks=against_pipeline,
)

SUITES = {"pca-exact": EXACT, "pca-scaling": SCALING, "pca-nystroem": LANDMARKS}
