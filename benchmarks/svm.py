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
from ._problems import draw, family, there, title
from ._suite import Call, Case, Contender, Suite

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

    def __init__(self, make: Callable, C: float, **which) -> None:
        self._which = which | {"C": C}
        self._X, self._y, *_ = draw(**which)
        self._make = partial(make, C=C, gamma=_svm.scale(self._X))
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


def best(C: float, **which) -> np.ndarray:
    """Return the dual objective at a tolerance of 1e-5, if a primal one proves it."""
    X, y, *_ = draw(**which)
    model = mercer(C=C, gamma=_svm.scale(X), tol=1e-5).fit(X, y)
    result = _svm.packed(model.support_, model.dual_coef_)
    lower, upper = (of(result, C, **which) for of in (_svm.dual, _svm.primal))
    if not upper - lower <= SHORT * lower:
        raise RuntimeError(f"the reference is only known to be between {lower} and {upper}")
    return np.array([lower])


def shortfall(which: dict, result: np.ndarray, reference: np.ndarray) -> float:
    """How much of the greatest dual objective is missing, as a part of it."""
    return 1.0 - _svm.dual(result, **which) / float(reference[0])


SETS = tuple({"name": name} for name in ("a9a", "ijcnn1", "cod-rna", "letter"))
SETS += ({"name": "covtype", "n": 20_000},)


def fit_cases(quick: bool) -> list[Case]:
    few = {"n": 2000} if quick else {}
    return [
        Case(
            f"{inputs['name']} C={C:g}",
            inputs | {"C": C},
            SHORT,
            partial(shortfall, inputs | {"C": C}),
            family="`SVC.fit`, real sets of 15 000 to 50 000 rows, C = 1 and 100",
        )
        for inputs in family(SETS, quick, **few)
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


def predictor(make: Callable, **inputs) -> Call:
    """Return a call that predicts, and returns how far its decisions are from their formula."""
    X, y, Q, _ = draw(**inputs)
    gamma = _svm.scale(X)
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
    return [
        Case(
            f"{title(inputs)}, at most {queries} queries",
            inputs,
            1e-9,
            deviation,
            family=f"`SVC.predict` by a model of {n} rows",
        )
        for inputs in family(SETS, quick, n=n, queries=queries)
    ]


# --------------------------------------------------------------------------------------- MNIST

ENOUGH = 0.983


def digits(n: int) -> Call:
    X, y, Q, truth = draw("mnist", 0 if n == 60_000 else n)
    mercer().fit(X[:500], y[:500])  # what is compiled on first use

    def call() -> np.ndarray:
        model = mercer(C=10.0, gamma=0.026).fit(X, y)
        share = np.mean(model.predict(Q) == truth)
        call.note = f"{100 * share:.2f} % right, {len(model.support_)} support vectors"
        return np.array([share])

    return call


def digits_cases(quick: bool) -> list[Case]:
    n = 2000 if quick else 60_000
    return [Case(f"n={n}", {"n": n}, 0.15 if quick else 0.0, missing)] if there("mnist") else []


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
