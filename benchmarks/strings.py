"""String kernels: time compared with a sparse product and a C library, and published AUCs.

`strings`: K of 10 000 DNA strings by their substrings of length 5, compared with only the sparse
product of features computed beforehand; and K of 500 news articles by subsequences, compared with
strkernels, whose `SubsequenceStringKernel` is mercer's `SubsequenceSum`.  `strings-auc`: areas
under the ROC curve on test sets, by mercer alone, compared with published values for gapped kernels
on the same data and splits.
"""

from __future__ import annotations

import gzip
import json

import numpy as np

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

N_CHECKED_ROWS = 40  # number of rows of K that are compared
FOLDER = DATA / "strings"
DECAY = 0.5

# ------------------------------------------------------------------------------------- inputs


def records(name: str) -> list[dict]:
    """Return the records of a compressed JSON Lines file."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def dna(n: int, size: int) -> list[str]:
    """Return n random DNA strings of the given length."""
    letters = np.random.default_rng(0).choice(list("ACGT"), size=(n, size))
    return ["".join(row) for row in letters]


def articles(n: int, size: int) -> list[str]:
    """Return the beginnings of articles, in ASCII because strkernels counts bytes of UTF-8."""
    texts = [f"{r['title']} {r['body']}" for r in records("reuters21578_modapte") if r["body"]]
    return [text.encode("ascii", "replace").decode()[:size] for text in texts[:n]]


# ------------------------------------------------------------------------------- contenders


def mercer(job: str, n: int, size: int, length: int) -> Call:
    from mercer.gram import gram
    from mercer.kernels import Normalized, Spectrum, SubsequenceSum

    if job == "words":
        X, kernel = dna(n, size), Spectrum(length)
    else:
        X, kernel = articles(n, size), Normalized(SubsequenceSum(length, DECAY))
    gram(kernel, X[:20], storage="dense")  # compile before timing
    return lambda: gram(kernel, X, storage="dense").to_array()[:N_CHECKED_ROWS]


def product(job: str, n: int, size: int, length: int) -> Call:
    """Return a call of the sparse product of features that are computed beforehand."""
    from mercer.kernels import Spectrum

    phi = Spectrum(length).features(dna(n, size))
    return lambda: (phi @ phi.T)[:N_CHECKED_ROWS].toarray()


def strkernels(job: str, n: int, size: int, length: int) -> Call:
    from strkernels import SubsequenceStringKernel

    X, kernel = articles(n, size), SubsequenceStringKernel(maxlen=length, ssk_lambda=DECAY)
    return lambda: kernel(X, X)[:N_CHECKED_ROWS]


def reference(job: str, n: int, size: int, length: int) -> np.ndarray:
    """Return the first rows of K by counting, or entries for a few pairs by Lodhi's recurrence."""
    K = np.full((N_CHECKED_ROWS, n), np.nan)
    if job == "words":
        from sklearn.feature_extraction.text import CountVectorizer

        X = dna(n, size)
        counts = CountVectorizer(analyzer="char", ngram_range=(length, length)).fit_transform(X)
        return np.asarray((counts[:N_CHECKED_ROWS] @ counts.T).toarray(), dtype=float)
    X = articles(n, size)
    for i, j in ((0, 0), (0, 1), (1, 5), (2, 3), (4, 6)):
        norms = [_subsequences(X[a], X[a], length) for a in (i, j)]
        K[i, j] = _subsequences(X[i], X[j], length) / np.sqrt(norms[0] * norms[1])
    return K


def _subsequences(s: str, t: str, length: int) -> float:
    """Return the sum of the subsequence kernels of lengths 1, ..., `length`."""
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


# Numbers of strings, their lengths, and the lengths of substrings or subsequences.
DNA_SIZES = ((10_000, 200, 5), (10_000, 200, 3), (5000, 500, 5), (20_000, 50, 6), (3000, 1000, 4))
ARTICLE_SIZES = ((500, 300, 4), (500, 300, 2), (200, 600, 4), (500, 100, 6), (300, 200, 3))


def cases(quick: bool) -> list[Case]:
    dna_sizes, article_sizes = (
        (((1000, 200, 5),), ((60, 300, 4),)) if quick else (DNA_SIZES, ARTICLE_SIZES)
    )
    jobs = [("words", "Spectrum", "sparse product", shape) for shape in dna_sizes]
    if FOLDER.exists():
        jobs += [("subsequences", "SubsequenceSum", "strkernels", shape) for shape in article_sizes]
    return [
        Case(
            f"{kernel}({length}) n={n}, length {size}",
            {"job": job, "n": n, "size": size, "length": length},
            contenders=("mercer", peer),
            family=f"`{kernel}` kernel matrix of n strings",
        )
        for job, kernel, peer, (n, size, length) in jobs
    ]


# ------------------------------------------------------------------------- published AUCs

# (g, k), C, and the AUC of the exact gapped kernel, from the results of FastSK (Blakely et al.,
# 2020).  C is our choice; so are g and k for the protein sets, for which they are not published.
PUBLISHED = {
    "ctcf_dna": ((13, 6), 1.0, 0.9696),
    "scop_1.34": ((6, 4), 1.0, 1.0),
    "scop_2.19": ((7, 4), 0.3, 0.895),
}
MIN_AUC_TOLERANCE = 0.01  # differences of AUCs up to this value are always accepted


def auc_call(name: str) -> Call:
    """Return a call that fits an SVC and returns its AUC on the test set."""
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
        auc = roc_auc_score(parts["test"][1], model.decision_function(parts["test"][0]))
        call.note = f"AUC {auc:.4f}, published {published:.4f}"
        return np.array([auc])

    return call


def auc_shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """Return how far the AUC is below the published one."""
    return max(0.0, float(reference[0] - result[0]))


def standard_error(auc: float, labels: list[int]) -> float:
    """Return the standard error of an AUC by Hanley and McNeil (1982).

    It is large here, because the protein sets have only six or nine positive test strings.
    """
    m = sum(label == 1 for label in labels)
    n, auc_squared = len(labels) - m, auc**2
    variance = (m - 1) * (auc / (2 - auc) - auc_squared) + (n - 1) * (
        2 * auc_squared / (1 + auc) - auc_squared
    )
    return float(np.sqrt((auc * (1 - auc) + variance) / (m * n)))


def auc_cases(quick: bool) -> list[Case]:
    available = [name for name in PUBLISHED if (FOLDER / f"{name}.jsonl.gz").exists()]
    result = []
    for name in available[2:] if quick else available:
        g_and_k, _, published = PUBLISHED[name]
        labels = [record["label"] for record in records(name) if record["split"] == "test"]
        tolerance = max(MIN_AUC_TOLERANCE, standard_error(published, labels))
        result.append(Case(f"{name} (g, k) = {g_and_k}", {"name": name}, tolerance, auc_shortfall))
    return result


SUITES = {
    "strings": Suite(
        "string kernel matrices",
        cases,
        {
            "mercer": Contender("mercer", mercer),
            "sparse product": Contender("scipy", product),
            "strkernels": Contender("strkernels", strkernels),
        },
        reference,
    ),
    "strings-auc": Suite(
        "published AUCs of string kernels",
        auc_cases,
        {"mercer": Contender("mercer", auc_call)},
        lambda name: np.array([PUBLISHED[name][2]]),
        max_warm_up=0.0,
    ),
}
