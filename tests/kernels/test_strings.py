"""String kernels: brute force for short strings, exact values, alphabets, and errors."""

import pickle
from collections import Counter
from itertools import combinations, product
from math import comb, exp

import numpy as np
import pandas as pd
import pytest
from data_folder import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from mercer import SVC, Expansion, KernelPCA
from mercer.kernels import (
    AllSubsequences,
    Gapped,
    LocalAlignment,
    Mismatch,
    Normalized,
    PairwiseKernel,
    Select,
    Spectrum,
    Subsequence,
    SubsequenceSum,
    WeightedDegree,
    closed_form_preimage,
)
from mercer.kernels.strings import _word_kernels

ALL = [
    Spectrum(2),
    Spectrum(3, blended=True),
    Gapped(3, 2),
    Gapped(10, 5),
    Mismatch(3, 1, "abc"),
    Mismatch(4, 3, "abcdefgh"),
    Subsequence(2),
    SubsequenceSum(2),
    AllSubsequences(),
    LocalAlignment((1.0, -1.0)),
    WeightedDegree(2),
]
every_kernel = pytest.mark.parametrize("kernel", ALL, ids=str)

# ---------------------------------------------------------------------- brute force

strings = st.lists(st.text("abc", max_size=6), min_size=1, max_size=5)
brief = settings(max_examples=40, deadline=None)


def grams(s, p):
    return [s[i : i + p] for i in range(len(s) - p + 1)]


def block(pair, X):
    return np.array([[pair(s, t) for t in X] for s in X], dtype=float)


def differences(u, v):
    return sum(a != b for a, b in zip(u, v, strict=True))


@brief
@given(strings, st.integers(1, 4))
def test_spectrum(X, p):
    def pair(s, t, p=p):
        there = Counter(grams(t, p))
        return sum(there[u] for u in grams(s, p))

    np.testing.assert_array_equal(Spectrum(p)(X), block(pair, X))

    def blended(s, t):
        return sum(0.5 ** (2 * q) * pair(s, t, q) for q in range(1, p + 1))

    k = Spectrum(p, blended=True, decay=0.5)
    np.testing.assert_allclose(k(X), block(blended, X), rtol=1e-14)


@brief
@given(strings, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_gapped(X, g, k, by_features):
    g, k = max(g, k), min(g, k)

    def pair(s, t):
        masks = list(combinations(range(g), k))
        return sum(
            all(u[c] == v[c] for c in mask)
            for u in grams(s, g)
            for v in grams(t, g)
            for mask in masks
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_word_kernels, "_MAX_SPARSE_FEATURES", 10**9 if by_features else 0)
        kernel = Gapped(g, k)
        assert kernel.domain.costly is not by_features
        np.testing.assert_array_equal(kernel(X), block(pair, X))
        np.testing.assert_array_equal(kernel.diag(X), np.diag(block(pair, X)))


@brief
@given(strings, st.sampled_from([(1, 0), (2, 1), (3, 1), (3, 2), (4, 2)]), st.booleans())
def test_mismatch(X, km, by_features):
    k, m = km

    def phi(s, u):
        within = [v for v in grams(s, k) if set(v) <= set("ab")]  # c is not in the alphabet
        return sum(differences(u, v) <= m for v in within)

    def pair(s, t):
        return sum(phi(s, u) * phi(t, u) for u in product("ab", repeat=k))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_word_kernels, "_MAX_SPARSE_FEATURES", 10**9 if by_features else 0)
        np.testing.assert_array_equal(Mismatch(k, m, "ab")(X), block(pair, X))


@brief
@given(strings, st.integers(1, 4), st.sampled_from([0.3, 0.5, 1.0]))
def test_subsequences(X, n, decay):
    def pair(s, t, n=n):
        return sum(
            decay ** (i[-1] - i[0] + j[-1] - j[0] + 2)
            for i in combinations(range(len(s)), n)
            for j in combinations(range(len(t)), n)
            if all(s[a] == t[b] for a, b in zip(i, j, strict=True))
        )

    K = block(pair, X)
    np.testing.assert_allclose(Subsequence(n, decay)(X), K, rtol=1e-12, atol=1e-15)
    total = sum(block(lambda s, t, q=q: pair(s, t, q), X) for q in range(1, n + 1))
    np.testing.assert_allclose(SubsequenceSum(n, decay)(X), total, rtol=1e-12)


@brief
@given(strings)
def test_all_subsequences(X):
    def every(s):
        return Counter("".join(u) for n in range(len(s) + 1) for u in combinations(s, n))

    def pair(s, t):
        there = every(t)
        return sum(count * there[u] for u, count in every(s).items())

    np.testing.assert_array_equal(AllSubsequences()(X), block(pair, X))


@brief
@given(st.lists(st.text("abc", min_size=5, max_size=5), min_size=1, max_size=5), st.integers(1, 6))
def test_weighted_degree(X, d):
    def pair(s, t):
        return sum(
            2 * (d - q + 1) / (d * (d + 1)) * sum(map(str.__eq__, grams(s, q), grams(t, q)))
            for q in range(1, d + 1)
        )

    np.testing.assert_allclose(WeightedDegree(d)(X), block(pair, X), rtol=1e-13, atol=1e-15)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text("ACx", max_size=4), min_size=1, max_size=4), st.booleans())
def test_local_alignment(X, matrix):
    scores = {("A", "A"): 2.0, ("C", "C"): 1.5, ("A", "C"): -0.5, ("C", "A"): -0.5}

    def score(a, b):
        if matrix:
            return scores.get((a, b), -np.inf)
        return 1.0 if a == b else -1.0

    def gap(length):
        return 2.0 + 0.5 * (length - 1) if length else 0.0

    def pair(s, t):
        total = 1.0
        for n in range(1, min(len(s), len(t)) + 1):
            for i in combinations(range(len(s)), n):
                for j in combinations(range(len(t)), n):
                    value = sum(score(s[a], t[b]) for a, b in zip(i, j, strict=True))
                    value -= sum(gap(step - 1) for step in [*np.diff(i), *np.diff(j)])
                    total += exp(0.7 * value)
        return total

    how = ([[2.0, -0.5], [-0.5, 1.5]], "AC") if matrix else ((1.0, -1.0), None)
    k = LocalAlignment(*how, opening=2.0, extension=0.5, beta=0.7)
    K = block(pair, X)
    np.testing.assert_allclose(k(X), K, rtol=1e-12)
    norms = np.sqrt(np.diag(K))
    normalized = k.set_params(normalized=True)
    np.testing.assert_allclose(normalized(X), K / norms / norms[:, None], rtol=1e-12)
    np.testing.assert_allclose(normalized.diag(X), 1.0, rtol=1e-12)


# ---------------------------------------------------------------------- exact values


def test_exact_values_of_subsequences():
    for decay in (0.3, 0.5, 1.0):
        K = Subsequence(2, decay)(["cat"], ["car", "cat"])
        np.testing.assert_allclose(K, [[decay**4, 2 * decay**4 + decay**6]], rtol=1e-14)
    X, pairs = ["ATCG", "ATGG", "TACG", "GCTA"], np.triu_indices(4, 1)
    np.testing.assert_allclose(
        Normalized(Subsequence(3, 0.5))(X)[pairs], [0.25354628, 0.4, 0, 0, 0, 0], atol=1e-8
    )
    np.testing.assert_allclose(
        Normalized(SubsequenceSum(3, 0.5))(X)[pairs],
        [0.74037191, 0.91640867, 0.79256966, 0.68420576, 0.65356968, 0.84210526],
        atol=1e-8,
    )
    K = Normalized(SubsequenceSum(2, 1.0))(["ABCDEFG"], ["EFGHIJK"])
    np.testing.assert_allclose(K, [[6 / 28]], rtol=1e-14)
    K = AllSubsequences()(["gatta", "gatt"], ["cata"])
    np.testing.assert_array_equal(K, [[14], [7]])
    # The normalised K_1 is the cosine of the letter counts, independent of the decay.
    words = ["banana", "cabana", "ab"]
    K = [Normalized(k)(words) for k in (Subsequence(1, 0.2), Subsequence(1, 0.9), Spectrum(1))]
    np.testing.assert_allclose(K[0], K[2], rtol=1e-14)
    np.testing.assert_allclose(K[1], K[2], rtol=1e-14)


def test_exact_values_of_words():
    np.testing.assert_array_equal(Spectrum(2)(["ABAB"], ["BABA", "ABAB"]), [[4, 5]])
    np.testing.assert_allclose(WeightedDegree(3).diag(["ABCDE"]), [13 / 3], rtol=1e-14)
    K = Mismatch(3, 1, "ACGT")(["AAA"], ["AAA", "AAC", "ACC", "CCC"])
    np.testing.assert_array_equal(K, [[10, 4, 2, 0]])
    # Neither alphabets nor collections depend on a single string: AAAA differs from CCCC.
    for k in (Mismatch(3, 1, "ACGT"), Gapped(3, 2), Spectrum(2)):
        assert k(["AAAA"], ["CCCC"])[0, 0] == 0 < k(["AAAA"])[0, 0]
    # A run of r equal positions adds sum_q beta_q max(0, r - q + 1).
    r, d = 7, 4
    beta = [2 * (d - q + 1) / (d * (d + 1)) for q in range(1, d + 1)]
    total = sum(b * (r - q + 1) for q, b in enumerate(beta, start=1))
    np.testing.assert_allclose(WeightedDegree(d)(["A" * r + "C"], ["A" * r + "G"]), [[total]])


@pytest.mark.parametrize(("k", "m", "letters"), [(3, 1, 4), (5, 1, 20), (4, 2, 3), (6, 3, 2)])
def test_weights_of_the_hamming_profile(k, m, letters):
    alphabet = tuple(range(letters))
    w = Mismatch(k, m, alphabet)._weights()
    if m == 1:
        np.testing.assert_array_equal(w, [1 + k * (letters - 1), letters, 2])
    words = [(0,) * (k - d) + (1,) * d for d in range(k + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_word_kernels, "_MAX_SPARSE_FEATURES", 10**9)
        K = Mismatch(k, m, alphabet)(words[:1], words)
    np.testing.assert_array_equal(K[0], np.append(w, np.zeros(k + 1 - len(w))))
    np.testing.assert_array_equal(Gapped(k, 2)._weights(), [comb(k - d, 2) for d in range(k - 1)])


def test_features():
    X, unseen = ["banana", "", "ab"], ["bandana", "xy"]
    for k in (Spectrum(2), Spectrum(2, blended=True), Gapped(3, 2), Mismatch(2, 1, "abn")):
        phi = k.features(X)
        np.testing.assert_allclose((phi @ phi.T).toarray(), k(X), rtol=1e-14)
        K = (k.features(unseen, like=X) @ phi.T).toarray()
        np.testing.assert_allclose(K, k(unseen, X), rtol=1e-14)
    many = Gapped(10, 5)  # evaluated by pairs, but it has features, too
    phi = many.features(["the quick brown fox", "a quick brown dog"])
    np.testing.assert_array_equal(
        (phi @ phi.T).toarray(), many(["the quick brown fox", "a quick brown dog"])
    )


# ---------------------------------------------------------------------- symbols and collections


@every_kernel
def test_strings_bytes_and_sequences_agree(kernel):
    X = ["abc", "abd", "cab", "bbb"]
    K = kernel(X)
    as_bytes = [s.encode() for s in X]
    if not isinstance(kernel, Mismatch):  # its alphabet consists of letters
        np.testing.assert_allclose(kernel([[ord(c) for c in s] for s in X]), K, rtol=1e-14)
    for points in (
        as_bytes,
        [tuple(s) for s in X],
        [list(s) for s in X],
        np.array(X),
        np.array(X, dtype=object)[:, None],
        pd.Series(X, index=[7, 3, 5, 1]),
        pd.DataFrame({"s": X}),
    ):
        np.testing.assert_allclose(kernel(points), K, rtol=1e-14)


@every_kernel
def test_any_unicode(kernel):
    X = ["añ𝔘日", "日本語𝔘", "\ud800abc", "abañ"]  # includes an unpaired surrogate
    K = kernel(X)
    assert K.shape == (4, 4) and np.isfinite(K).all()
    if not isinstance(kernel, Mismatch):  # which depends on the size of the alphabet
        where = dict(zip("añ𝔘日本語\ud800bc", "abcdefgh", strict=False))
        Y = ["".join(where.get(c, "z") for c in s) for s in X]
        np.testing.assert_allclose(K, kernel(Y), rtol=1e-14)


@every_kernel
def test_empty_strings_and_no_strings(kernel):
    assert kernel([], ["abcd"]).shape == (0, 1)
    assert kernel(["abcd"], []).shape == (1, 0)
    assert kernel.diag([]).shape == (0,)
    if isinstance(kernel, WeightedDegree):
        np.testing.assert_array_equal(kernel(["", ""]), np.zeros((2, 2)))
    else:
        # all strings share the empty subsequence
        constant = isinstance(kernel, (AllSubsequences, LocalAlignment))
        np.testing.assert_array_equal(kernel(["", "abcd"], [""]), np.full((2, 1), float(constant)))
        np.testing.assert_array_equal(kernel.diag([""]), [float(constant)])


@every_kernel
def test_pieces_of_a_collection(kernel):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(9)]
    P = kernel.prepare(X)
    rows, columns = np.array([5, 1, 1, 8]), slice(2, 7)
    out = kernel.tile(P[rows], P[columns], np.empty((4, 5)))
    np.testing.assert_allclose(out, kernel(X)[rows][:, columns], rtol=1e-14)
    i, j = rng.integers(9, size=(2, 30))
    if isinstance(kernel, PairwiseKernel):
        np.testing.assert_allclose(kernel._pairs(P, P, i, j), kernel(X)[i, j], rtol=1e-14)
    np.testing.assert_allclose(kernel(X).diagonal(), kernel.diag(X), rtol=1e-14)


def test_long_strings():
    """Byte-sized counters are flushed in time, and so are SIMD lanes of different lengths."""
    rng = np.random.default_rng(1)
    X = ["".join(rng.choice(list("ab"), size=n)) for n in (700, 3, 260, 255, 0, 256, 300, 41, 500)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_word_kernels, "_MAX_SPARSE_FEATURES", 0)
        by_pairs = Gapped(4, 2)(X), Mismatch(4, 1, "ab")(X)
    np.testing.assert_array_equal(by_pairs[0], Gapped(4, 2)(X))
    np.testing.assert_array_equal(by_pairs[1], Mismatch(4, 1, "ab")(X))
    wide = [s.replace("a", "日") for s in X]  # symbols that do not fit into a byte
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_word_kernels, "_MAX_SPARSE_FEATURES", 0)
        np.testing.assert_array_equal(Gapped(4, 2)(wide), by_pairs[0])
        np.testing.assert_array_equal(Gapped(4, 4)(X, wide), Spectrum(4)(X, wide))
    K = Subsequence(3, 0.8)(X)
    for i, j in ((0, 1), (3, 7), (8, 2)):
        np.testing.assert_allclose(Subsequence(3, 0.8)([X[i]], [X[j]])[0, 0], K[i, j], rtol=1e-12)


def test_alphabet_is_that_of_training():
    k = Mismatch(3, 1)
    with pytest.raises(ValueError, match=r"alphabet=None, which must be computed from data; call"):
        k(["ACGT"])
    assert k.resolve(["GATTACA", ""]).alphabet == "ACGT"[:3] + "T"
    assert k.resolve([b"GATTACA"]).alphabet == b"ACGT"
    assert set(k.resolve([[1, 2, 1], [(3, 4)]]).alphabet) == {1, 2, (3, 4)}
    resolved = Normalized(k).resolve(["GATTACA", "ACCA"])
    assert resolved == Normalized(Mismatch(3, 1, "ACGT"))
    # A letter that does not occur in training: words with it contribute nothing.
    np.testing.assert_array_equal(
        resolved.kernel(["GATTACAxGATTACA"], ["TAC"]), 2 * resolved.kernel(["GATTACA"], ["TAC"])
    )


# ---------------------------------------------------------------------- errors


@every_kernel
def test_what_is_not_a_string_is_named(kernel):
    for bad in (7, None, np.nan, {"a"}, np.zeros((1, 1))):
        with pytest.raises(
            TypeError, match=rf"{type(kernel).__name__}: point 2 is .* not a string"
        ):
            kernel(["abcd", "efgh", bad])
    with pytest.raises(
        TypeError, match=r"takes a collection of strings, got the single string 'abcd'"
    ):
        kernel("abcd")
    with pytest.raises(TypeError, match=r"point 1 is b'efgh', but point 0 is 'abcd'; points of"):
        kernel(["abcd", b"efgh"])
    with pytest.raises(TypeError, match=r"compare[sd]? .*(str|bytes)"):
        kernel(["abcd"], [b"abcd"])
    with pytest.raises(TypeError, match=r"symbols of point 1 must be .* index 0 is \[2\]"):
        kernel([[1, 2, 3, 4], [[2], 1, 1, 1]])


def test_weighted_degree_names_the_string_of_another_length():
    with pytest.raises(ValueError, match=r"point 2 has 3 symbols and point 0 has 4; cut the"):
        WeightedDegree(2)(["abcd", "efgh", "abc"])
    with pytest.raises(TypeError, match=r"str of 3 symbols with points that are str of 4"):
        WeightedDegree(2)(["abcd", "efgh"], ["abc"])


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Spectrum(5), "p=5"),
        (Gapped(5, 2), "g=5"),
        (Mismatch(5, 1), "k=5"),
        (Subsequence(5), "n=5"),
        (Normalized(Spectrum(5)) + 2 * Spectrum(5), "p=5"),
    ],
    ids=str,
)
def test_training_strings_that_are_too_short(kernel, name):
    X = ["abc", "abcd", ""]
    text = rf"{name} is longer than every string.* longest of the 3 strings, point 1, has 4 symbols"
    with pytest.raises(ValueError, match=text):
        kernel.resolve(X)
    with pytest.raises(ValueError, match=text):
        SVC(kernel=kernel).fit(X, [0, 1, 1])
    Spectrum(5, blended=True).resolve(X)  # a blended spectrum has shorter words
    # Predicting for short strings is allowed: they have no features.
    model = SVC(kernel=Spectrum(3)).fit(["abcd", "bcde"], [0, 1])
    assert model.predict(["ab"]).shape == (1,)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: Spectrum(0), ValueError, "Spectrum: p must be at least 1, got 0"),
        (lambda: Spectrum(2.0), TypeError, "Spectrum: p must be an integer, got 2.0"),
        (lambda: Spectrum(2, blended=1), TypeError, "blended must be a bool, got 1"),
        (lambda: Spectrum(2, decay=1.5), ValueError, r"decay must be in \(0, 1\], got 1.5"),
        (lambda: Subsequence(2, decay=0), ValueError, r"Subsequence: decay must be in \(0, 1\]"),
        (lambda: Subsequence(True), TypeError, "n must be an integer, got True"),
        (lambda: SubsequenceSum(2, "a"), TypeError, "decay must be a number, got 'a'"),
        (lambda: WeightedDegree(-1), ValueError, "degree must be at least 1, got -1"),
        (lambda: Gapped(3, 4), ValueError, "requires k <= g <= 127, got g=3 and k=4"),
        (lambda: Gapped(200, 4), ValueError, "requires k <= g <= 127, got g=200"),
        (lambda: Mismatch(3, 3), ValueError, "requires m < k <= 127, got k=3 and m=3"),
        (lambda: Mismatch(3, 1, ""), TypeError, "alphabet must be a string or tuple .* got ''"),
        (lambda: Mismatch(3, 1, 4), TypeError, "alphabet must be a string or tuple .* got 4"),
        (lambda: Mismatch(3, 1, "ACCA"), ValueError, "contains a letter twice"),
        (lambda: LocalAlignment("PAM"), ValueError, "scores must be 'BLOSUM62'"),
        (lambda: LocalAlignment((0.0, 1.0)), ValueError, "match at least mismatch"),
        (lambda: LocalAlignment(np.eye(3)), ValueError, "3 rows, so alphabet must have 3 symbols"),
        (lambda: LocalAlignment([[0, 2], [2, 0]], "AB"), ValueError, "eigenvalue -1.72 < 0, so k"),
        (
            lambda: LocalAlignment([[0, 2, -1], [2, 0, -1], [-1, -1, 30.0]], "ABC", beta=1.0),
            ValueError,
            "so k is not a Mercer kernel",
        ),
        (lambda: LocalAlignment(beta=0), ValueError, "beta must be positive"),
        (lambda: LocalAlignment(beta=1e3), ValueError, "beta=1000.0 .* may overflow"),
        (lambda: LocalAlignment(opening=-1), ValueError, "opening must be non-negative"),
        (lambda: LocalAlignment(normalized=2), TypeError, "normalized must be a bool"),
    ],
)  # fmt: skip
def test_refusals(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_overflow_is_reported():
    long = "A" * 600
    with pytest.raises(
        OverflowError, match=r"points 1 and 1 \(600 and 600 symbols\) exceeds 1e308"
    ):
        AllSubsequences()(["A", long])
    with pytest.raises(OverflowError, match=r"normalized=True, a smaller beta"):
        LocalAlignment()([long])
    K = LocalAlignment(normalized=True)([long, long[:-1], "W"])
    np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-12)
    assert 0 < K[0, 1] < 1 and K[0, 2] < 1e-100


def test_the_logarithm_of_local_alignment_is_not_a_kernel():
    X = ["a", "b", "ababb", "bbbbbb", "bbbaaa", "aa", "ba", "abbaba"]
    K = LocalAlignment((1.0, -1.0), beta=0.3)(X)
    assert np.linalg.eigvalsh(K)[0] > 0
    assert np.linalg.eigvalsh(np.log(K))[0] < -0.01


# ---------------------------------------------------------------------- estimators


@every_kernel
def test_through_machines(kernel):
    rng = np.random.default_rng(3)
    X = ["".join(rng.choice(list("abcd"), size=12)) for _ in range(24)]
    y = np.array(["ab" in s for s in X])
    kernel = Normalized(kernel)
    model = SVC(kernel=kernel).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    pca = KernelPCA(2, kernel=kernel)
    np.testing.assert_allclose(pca.fit_transform(X), pca.transform(X), atol=1e-8)
    assert pca.transform(["xyzxyzxyzxyz"]).shape == (1, 2)  # unknown symbols


def test_grid_search_and_tables():
    rng = np.random.default_rng(4)
    X = ["".join(rng.choice(list("ab"), size=9)) for _ in range(30)]
    y = np.array(["aba" in s for s in X])
    grid = {"kernel__kernel__p": [1, 3], "kernel__kernel__blended": [False, True]}
    search = GridSearchCV(SVC(kernel=Normalized(Spectrum(2))), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel__kernel__p"] == 3
    table = pd.DataFrame({"s": X, "x": rng.normal(size=30)})
    np.testing.assert_array_equal(Select(Spectrum(2), "s")(table), Spectrum(2)(X))


def test_evaluated_in_threads():
    X = ["".join(s) for s in np.random.default_rng(5).choice(list("ACGT"), size=(800, 12))]
    for kernel in (Spectrum(3), Gapped(10, 5), Subsequence(2)):
        from mercer.gram import gram

        np.testing.assert_allclose(
            gram(kernel, X, storage="tiled") @ np.ones(800), kernel(X).sum(axis=1), rtol=1e-12
        )


# ---------------------------------------------------------------------- pre-images


def counts(s, p):
    return Counter(grams(s, p))


@brief
@given(st.text("abc", max_size=12), st.integers(1, 4))
def test_the_preimage_of_a_string_has_its_words(s, p):
    f = Expansion(Spectrum(p), [s, "abcabc"], [1.0, 0.0])
    found = f.preimage()
    assert found.methods == ("eulerian",)
    np.testing.assert_allclose(found.residuals, 0.0, atol=1e-9)
    assert counts(found.points[0], p) == counts(s, p)


@brief
@given(st.lists(st.text("ab", max_size=8), min_size=1, max_size=4), st.integers(1, 3))
def test_preimages_are_at_least_as_near_as_the_nearest_string(X, p):
    C = np.random.default_rng(0).normal(size=(len(X), 3))
    f = Expansion(Spectrum(p), X, C)
    auto, nearest = f.preimage(), f.preimage(method="nearest")
    assert np.all(auto.residuals <= nearest.residuals + 1e-9)


def test_preimages_are_joined_and_repaired():
    # Words of two strings without a common node can be joined through a third string.
    f = Expansion(Spectrum(2), ["abababab", "cdcdcdcd", "bcda"], [1.0, 1.0, 0.4])
    found = f.preimage()
    assert {"ab", "ba", "cd", "dc"} <= set(grams(found.points[0], 2))
    assert found.residuals[0] < min(f.preimage(method="nearest").residuals)
    # Two cycles without a common node are joined if that is closer than dropping one of them.
    formula = closed_form_preimage(Spectrum(2), ["aaa", "abbbaa"], np.array([[0.5], [0.5]]))
    assert formula.points == ["aaabba"]
    for X in ([b"abcd", b"bcde"], [("a", 1), ("a", 1, "b")]):
        point = Expansion(Spectrum(2), X, [1.0, 0.0]).preimage().points[0]
        assert point == X[0]


@pytest.mark.parametrize(
    ("kernel", "X"), [(Spectrum(2, blended=True), ["abc", "bcd"]), (Spectrum(2), [])], ids=str
)
def test_spectra_without_a_formula_for_preimages(kernel, X):
    assert closed_form_preimage(kernel, X, np.ones((len(X), 1))) is None


def test_an_alphabet_may_be_a_list():
    X = [("A", 1, "A"), (1, 1, "A")]
    listed, paired = Mismatch(2, 1, alphabet=["A", 1]), Mismatch(2, 1, alphabet=("A", 1))
    assert listed == paired
    np.testing.assert_array_equal(listed(X), paired(X))


# ---------------------------------------------------------------------- real data


@pytest.mark.data
def test_promoters():
    """Leave-one-out on the 106 promoters of UCI: the weighted degree kernel has 90 % accuracy."""
    path = DATA / "strings" / "promoters_uci.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    table = pd.read_json(path, lines=True)
    X, y = table["seq"].tolist(), (table["label"] == "+").to_numpy()
    scores = np.empty(len(X))
    for fold in np.array_split(np.random.default_rng(0).permutation(len(X)), 10):
        train = np.setdiff1d(np.arange(len(X)), fold)
        model = SVC(kernel=WeightedDegree(4)).fit([X[i] for i in train], y[train])
        scores[fold] = model.decision_function([X[i] for i in fold])
    assert roc_auc_score(y, scores) > 0.95
