"""Support vector machines on real data: fits at equal objectives, predictions, all of MNIST.

`svm-fit`: the Gaussian kernel with γ = "scale", C = 1 and 100.  All else is everybody's default: a
tolerance of 1e-3, a cache of 200 MB.  LIBSVM uses one thread.  What is timed is `fit`; the dual
objective is then recomputed from `support_` and `dual_coef_` (see `_svm.py`).  `svm-predict`:
labels of new points by a model of 10 000 rows.  `svm-mnist`: all ten digits, without subsampling,
by mercer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from . import _svm
from ._suite import Call, Case, Contender, Suite
from .sparse import DATA

SHORT = 1e-4  # of the dual objective: what a tolerance of 1e-3 may leave, for anybody
EQUAL = 1e-6  # what tells two objectives apart

# ----------------------------------------------------------------------------- who takes part


def mercer(**options):
    from mercer import SVC

    return SVC(**options)


def scikit(**options):
    from sklearn.svm import SVC

    return SVC(**options)


def intelex(**options):
    from sklearnex.svm import SVC

    return SVC(**options)


# ------------------------------------------------------------------------------------- to fit


class Fit:
    """The call to measure; its note, and with it the objective, is computed off the clock."""

    def __init__(self, make: Callable, name: str, n: int | None, C: float) -> None:
        self._which = {"C": C, "name": name, "n": n}
        self._X, self._y, _, gamma = _svm.problem(name, n)
        self._make = partial(make, C=C, gamma=gamma)
        few = slice(None, None, max(1, len(self._X) // 500))
        self._make().fit(self._X[few], self._y[few])  # what is compiled on first use
        self._result: np.ndarray | None = None

    def __call__(self) -> np.ndarray:
        model = self._make().fit(self._X, self._y)
        self._result = _svm.packed(model.support_, model.dual_coef_)
        return self._result

    @property
    def note(self) -> str:
        if self._result is None:
            return ""
        objective = _svm.dual(self._result, **self._which)
        return f"dual objective {objective:.9g}, {self._result.shape[1]} support vectors"


def best(name: str, n: int | None, C: float) -> np.ndarray:
    """Return the dual objective at a tolerance of 1e-5, if a primal one proves it."""
    X, y, _, gamma = _svm.problem(name, n)
    model = mercer(C=C, gamma=gamma, tol=1e-5).fit(X, y)
    result = _svm.packed(model.support_, model.dual_coef_)
    lower, upper = (of(result, C, name=name, n=n) for of in (_svm.dual, _svm.primal))
    if not upper - lower <= SHORT * lower:
        raise RuntimeError(f"the reference is only known to be between {lower} and {upper}")
    return np.array([lower])


def shortfall(which: dict, result: np.ndarray, reference: np.ndarray) -> float:
    """How much of the greatest dual objective is missing, as a part of it."""
    return 1.0 - _svm.dual(result, **which) / float(reference[0])


def fit_cases(quick: bool) -> list[Case]:
    there = _svm.available()
    sizes = [{"name": name, "n": 2000 if quick else None} for name in there]
    return [
        Case(f"{size['name']} C={C:g}", size | {"C": C}, SHORT, partial(shortfall, size | {"C": C}))
        for size in (sizes[:2] if quick else sizes)
        for C in (1.0, 100.0)
    ]


def compare(cases: list[dict]) -> None:
    """Refuse mercer where its objective is below any peer's: such a time counts for nothing."""
    for records in (case["contenders"] for case in cases):
        ours = records["mercer"]
        there = {name: record for name, record in records.items() if record["status"] == "ok"}
        if "mercer" not in there:
            continue
        best = min(there, key=lambda name: there[name]["error"])
        short = ours["error"] - there[best]["error"]
        if short > EQUAL:
            note = f"refused: {short:.1e} below {best}'s; {ours['note']}"
            ours.update(status="refused", note=note)
            for record in records.values():
                record["ratio"] = None


# --------------------------------------------------------------------------------- to predict

CHECKED = 500  # of the queries


def predictor(make: Callable, name: str, n: int, queries: int) -> Call:
    """Return a call that predicts, and returns how far its decisions are from their formula."""
    X, y, Q, gamma = _svm.problem(name, n)
    Q = Q[:queries]
    model = make(C=10.0, gamma=gamma, decision_function_shape="ovo").fit(X, y)
    some = np.random.default_rng(1).permutation(len(Q))[:CHECKED]
    fitted = list(_svm.pairs(_svm.packed(model.support_, model.dual_coef_), y))
    truth = np.column_stack([_svm.values(Q[some], X[p.rows], p.a, gamma) for p in fitted])
    truth += model.intercept_
    found = np.asarray(model.decision_function(Q[some])).reshape(truth.shape)
    labels = winners(truth, model.classes_)

    def call() -> np.ndarray:
        agreed = np.mean(model.predict(Q)[some] == labels)
        return np.stack([found * agreed, truth])  # so that a wrong label is an error too

    call.note = f"{len(model.support_)} support vectors"
    return call


def winners(decisions: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class with most votes of one against one, the first of equals."""
    if len(classes) == 2:
        return classes[(decisions[:, 0] > 0).astype(int)]
    votes = np.zeros((len(decisions), len(classes)), dtype=int)
    first, second = np.triu_indices(len(classes), 1)
    for column, (i, j) in enumerate(zip(first, second, strict=True)):
        votes[:, i] += decisions[:, column] > 0
        votes[:, j] += decisions[:, column] <= 0
    return classes[votes.argmax(axis=1)]


def deviation(result: np.ndarray, _) -> float:
    found, truth = result
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def predict_cases(quick: bool) -> list[Case]:
    n, queries = (1000, 2000) if quick else (10_000, 15_000)
    there = [name for name in ("a9a", "ijcnn1", "covtype") if name in _svm.available()]
    return [
        Case(
            f"{name}, {queries} queries",
            {"name": name, "n": n, "queries": queries},
            1e-9,
            deviation,
        )
        for name in there
    ]


# --------------------------------------------------------------------------------------- MNIST

ENOUGH = 0.983


def digits(n: int) -> Call:
    with np.load(DATA / "mnist" / "mnist.npz", allow_pickle=False) as file:
        X, Q = (file[part][:n] / 255.0 for part in ("X_train", "X_test"))
        y, truth = file["y_train"][:n], file["y_test"][:n]
    mercer().fit(X[:500], y[:500])  # what is compiled on first use

    def call() -> np.ndarray:
        model = mercer(C=10.0, gamma=0.026).fit(X, y)
        share = np.mean(model.predict(Q) == truth)
        call.note = f"{100 * share:.2f} % right, {len(model.support_)} support vectors"
        return np.array([share])

    return call


def digits_cases(quick: bool) -> list[Case]:
    there = (DATA / "mnist" / "mnist.npz").exists()
    n = 2000 if quick else 60_000
    return [Case(f"n={n}", {"n": n}, 0.15 if quick else 0.0, missing)] if there else []


def missing(result: np.ndarray, reference: np.ndarray) -> float:
    return max(0.0, float(reference[0] - result[0]))


# -------------------------------------------------------------------------------------- suites


def contenders(use: Callable) -> dict[str, Contender]:
    peers = {
        "mercer": ("mercer", mercer),
        "scikit-learn": ("sklearn", scikit),
        "scikit-learn-intelex": ("sklearnex", intelex),
    }
    return {name: Contender(package, partial(use, make)) for name, (package, make) in peers.items()}


SUITES = {
    "svm-fit": Suite(
        "support vector classification, to the same dual objective",
        fit_cases,
        contenders(Fit),
        best,
        remarks=compare,
    ),
    "svm-predict": Suite(
        "predictions of support vector machines",
        predict_cases,
        contenders(predictor),
        lambda **_: np.zeros(1),
    ),
    "svm-mnist": Suite(
        "all of MNIST, support vector classification",
        digits_cases,
        {"mercer": Contender("mercer", digits)},
        lambda n: np.array([ENOUGH]),
        slow=0.0,
    ),
}
