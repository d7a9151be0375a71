"""Kernels of strings: against the sparse product alone, a library in C, and published areas.

`strings`: K of 10 000 DNA strings by words of length 5, against the sparse product of features that
are there already; K of 500 news articles by subsequences, against strkernels, whose kernel of this
name is our SubsequenceSum.  `strings-auc`: areas under the ROC curve on test sets, by mercer alone,
against those that were published for gapped kernels on the same sets and splits.
"""

from __future__ import annotations

import gzip
import json

import numpy as np

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

PROBES = 40  # rows of K that are compared
FOLDER = DATA / "strings"
DECAY = 0.5

# ------------------------------------------------------------------------------------- inputs


def records(name: str) -> list[dict]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def dna(n: int, size: int) -> list[str]:
    letters = np.random.default_rng(0).choice(list("ACGT"), size=(n, size))
    return ["".join(row) for row in letters]


def articles(n: int, size: int) -> list[str]:
    """Return the beginnings of articles, in ASCII: strkernels counts the bytes of UTF-8."""
    texts = [f"{r['title']} {r['body']}" for r in records("reuters21578_modapte") if r["body"]]
    return [text.encode("ascii", "replace").decode()[:size] for text in texts[:n]]


# -------------------------------------------------------------------------- who takes part


def mercer(job: str, n: int, size: int, length: int) -> Call:
    from mercer.gram import gram
    from mercer.kernels import Normalized, Spectrum, SubsequenceSum

    if job == "words":
        X, kernel = dna(n, size), Spectrum(length)
    else:
        X, kernel = articles(n, size), Normalized(SubsequenceSum(length, DECAY))
    gram(kernel, X[:20], storage="dense")  # what is compiled on first use
    return lambda: gram(kernel, X, storage="dense").to_array()[:PROBES]


def product(job: str, n: int, size: int, length: int) -> Call:
    from mercer.kernels import Spectrum

    phi = Spectrum(length).features(dna(n, size))
    return lambda: (phi @ phi.T)[:PROBES].toarray()


def strkernels(job: str, n: int, size: int, length: int) -> Call:
    from strkernels import SubsequenceStringKernel

    X, kernel = articles(n, size), SubsequenceStringKernel(maxlen=length, ssk_lambda=DECAY)
    return lambda: kernel(X, X)[:PROBES]


def reference(job: str, n: int, size: int, length: int) -> np.ndarray:
    """Return the first rows of K, by counting, or for a few pairs by the recurrence of Lodhi."""
    K = np.full((PROBES, n), np.nan)
    if job == "words":
        from sklearn.feature_extraction.text import CountVectorizer

        X = dna(n, size)
        counts = CountVectorizer(analyzer="char", ngram_range=(length, length)).fit_transform(X)
        return np.asarray((counts[:PROBES] @ counts.T).toarray(), dtype=float)
    X = articles(n, size)
    for i, j in ((0, 0), (0, 1), (1, 5), (2, 3), (4, 6)):
        norms = [_subsequences(X[a], X[a], length) for a in (i, j)]
        K[i, j] = _subsequences(X[i], X[j], length) / np.sqrt(norms[0] * norms[1])
    return K


def _subsequences(s: str, t: str, length: int) -> float:
    same = np.array([[a == b for b in t] for a in s])
    S, total = DECAY**2 * same, 0.0
    for _ in range(length):
        total += S.sum()
        D = np.zeros((len(s) + 1, len(t) + 1))
        for i, row in enumerate(S):
            for j, value in enumerate(row):
                D[i + 1, j + 1] = value + DECAY * (D[i, j + 1] + D[i + 1, j]) - DECAY**2 * D[i, j]
        S = DECAY**2 * same * D[:-1, :-1]
    return total


WORDS = ((10_000, 200, 5), (10_000, 200, 3), (5000, 500, 5), (20_000, 50, 6), (3000, 1000, 4))
TEXTS = ((500, 300, 4), (500, 300, 2), (200, 600, 4), (500, 100, 6), (300, 200, 3))


def cases(quick: bool) -> list[Case]:
    words, texts = (((1000, 200, 5),), ((60, 300, 4),)) if quick else (WORDS, TEXTS)
    jobs = [("words", "Spectrum", "sparse product", shape) for shape in words]
    if FOLDER.exists():
        jobs += [("subsequences", "SubsequenceSum", "strkernels", shape) for shape in texts]
    return [
        Case(
            f"{kernel}({length}) n={n}, length {size}",
            {"job": job, "n": n, "size": size, "length": length},
            contenders=("mercer", peer),
            family=f"K of n strings by `{kernel}`",
        )
        for job, kernel, peer, (n, size, length) in jobs
    ]


# ---------------------------------------------------------------------- published areas

# (g, k), C, and the area of the exact gapped kernel, from the results of FastSK (Blakely et al.,
# 2020); for the protein sets g and k are not noted there, and ours, as C is everywhere
PUBLISHED = {
    "ctcf_dna": ((13, 6), 1.0, 0.9696),
    "scop_1.34": ((6, 4), 1.0, 1.0),
    "scop_2.19": ((7, 4), 0.3, 0.895),
}
SMALLEST = 0.01  # difference of areas that is one, if the standard error is smaller


def area(name: str) -> Call:
    from sklearn.metrics import roc_auc_score

    from mercer import SVC
    from mercer.kernels import Gapped, Normalized

    parts = {"train": ([], []), "test": ([], [])}
    for record in records(name):
        X, y = parts[record["split"]]
        X.append(record["seq"])
        y.append(record["label"])
    (g, k), C, published = PUBLISHED[name]

    def call() -> np.ndarray:
        model = SVC(kernel=Normalized(Gapped(g, k)), C=C).fit(*parts["train"])
        found = roc_auc_score(parts["test"][1], model.decision_function(parts["test"][0]))
        call.note = f"area {found:.4f}, published {published:.4f}"
        return np.array([found])

    return call


def missing(result: np.ndarray, reference: np.ndarray) -> float:
    return max(0.0, float(reference[0] - result[0]))


def standard_error(area: float, labels: list[int]) -> float:
    """That of an area, by Hanley and McNeil (1982): six or nine positives do not tell much."""
    m = sum(label == 1 for label in labels)
    n, square = len(labels) - m, area**2
    spread = (m - 1) * (area / (2 - area) - square) + (n - 1) * (2 * square / (1 + area) - square)
    return float(np.sqrt((area * (1 - area) + spread) / (m * n)))


def area_cases(quick: bool) -> list[Case]:
    there = [name for name in PUBLISHED if (FOLDER / f"{name}.jsonl.gz").exists()]
    found = []
    for name in there[2:] if quick else there:
        places, _, published = PUBLISHED[name]
        labels = [record["label"] for record in records(name) if record["split"] == "test"]
        tolerance = max(SMALLEST, standard_error(published, labels))
        found.append(Case(f"{name} (g, k) = {places}", {"name": name}, tolerance, missing))
    return found


SUITES = {
    "strings": Suite(
        "matrices of strings",
        cases,
        {
            "mercer": Contender("mercer", mercer),
            "sparse product": Contender("scipy", product),
            "strkernels": Contender("strkernels", strkernels),
        },
        reference,
    ),
    "strings-auc": Suite(
        "published areas under the ROC curve",
        area_cases,
        {"mercer": Contender("mercer", area)},
        lambda name: np.array([PUBLISHED[name][2]]),
        slow=0.0,
    ),
}
