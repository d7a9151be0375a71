"""Text kernels: scikit-learn's values, learned weights, errors."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel
from sklearn.model_selection import GridSearchCV

from mercer import SVC, KernelPCA
from mercer.kernels import BagOfNgrams, BagOfWords, Normalized
from mercer.kernels._dataclass import format_brief

TRAIN = [
    "The cat sat on the mat, and the cat slept.",
    "A dog ran; the dog barked!",
    "Cats and dogs: mammals, both of them",
    "le chat était là",
    "",
    "stock prices fell on Monday as markets ran out of hope",
]
TEST = ["the dog sat", "markets and mammals, quokka", "quokka", "   "]


@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        (BagOfWords(), TfidfVectorizer()),
        (BagOfWords((1, 2)), TfidfVectorizer(ngram_range=(1, 2))),
        (
            BagOfWords(sublinear_tf=True, smooth_idf=False),
            TfidfVectorizer(sublinear_tf=True, smooth_idf=False),
        ),
        (
            BagOfWords(options={"stop_words": "english", "min_df": 2, "binary": True}),
            TfidfVectorizer(stop_words="english", min_df=2, binary=True),
        ),
        (BagOfNgrams(), TfidfVectorizer(analyzer="char", ngram_range=(3, 3))),
        (
            BagOfNgrams((1, 4), options={"lowercase": False, "strip_accents": "unicode"}),
            TfidfVectorizer(
                analyzer="char", ngram_range=(1, 4), lowercase=False, strip_accents="unicode"
            ),
        ),
    ],
    ids=str,
)
def test_the_values_are_those_of_scikit_learn(kernel, peer):
    phi = peer.fit_transform(TRAIN)
    k = kernel.resolve(TRAIN)
    assert k.tfidf == dict(zip(peer.get_feature_names_out(), peer.idf_, strict=True))
    np.testing.assert_allclose(k(TRAIN), linear_kernel(phi), rtol=0, atol=5e-15)
    psi = peer.transform(TEST)
    np.testing.assert_allclose(k(TEST, TRAIN), linear_kernel(psi, phi), rtol=0, atol=5e-15)
    np.testing.assert_allclose(k.diag(TEST), linear_kernel(psi).diagonal(), rtol=0, atol=5e-15)
    mine = k.features(TEST, like=TRAIN)
    np.testing.assert_allclose((mine @ k.features(TRAIN).T).toarray(), k(TEST, TRAIN), atol=5e-15)


def test_counts_need_no_training():
    texts = [*TRAIN, *TEST]
    want = cosine_similarity(CountVectorizer().fit_transform(texts))
    k = BagOfWords(tfidf=False)
    np.testing.assert_allclose(k(texts), want, atol=5e-15)
    np.testing.assert_allclose(k(TEST, TRAIN), want[6:, :6], atol=5e-15)  # unknown words count
    assert k.resolve(TRAIN) == k


def test_weights_are_a_value():
    with pytest.raises(
        ValueError, match=r"BagOfWords has tfidf=True, which must be computed from data"
    ):
        BagOfWords()(TRAIN)
    k = BagOfWords().resolve(TRAIN)
    assert k.resolve(TEST) is k
    assert eval(repr(k), {"BagOfWords": BagOfWords}) == k
    assert len(str(k)) < 80
    assert (Normalized(BagOfWords()) + 1).resolve(TRAIN) == Normalized(k) + 1
    mine = {"cat": 2.0, "dog": 1.0}
    own = BagOfWords(tfidf=mine)
    mine["dog"] = 9.0
    assert own(["cat dog emu"], ["dog"]) == pytest.approx(1 / np.sqrt(5))


def test_a_text_of_weight_two_counts_twice_and_one_of_weight_zero_not():
    weights = np.array([2.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    repeated = [text for text, w in zip(TRAIN, weights, strict=True) for _ in range(int(w))]
    left, right = BagOfWords().resolve(TRAIN, weights).tfidf, BagOfWords().resolve(repeated).tfidf
    assert left.keys() == right.keys()
    np.testing.assert_allclose(list(left.values()), [right[name] for name in left], rtol=1e-15)


def test_bytes_unicode_and_empty_texts():
    k = BagOfNgrams((1, 2), tfidf=False)
    np.testing.assert_allclose(k(["été", "日本"], ["été".encode(), "日"]).round(3)[0], [1, 0])
    assert k(["日本"], ["日"])[0, 0] == pytest.approx(1 / np.sqrt(3))
    np.testing.assert_array_equal(k(["", "a"]), [[0, 0], [0, 1]])
    assert BagOfWords(tfidf=False)(["", "!"]).tolist() == [[0, 0], [0, 0]]


def test_estimators_learn_the_weights():
    texts = ["cat dog", "dog cat cow", "cow cat", "red blue", "blue green red", "green"] * 3
    labels = [0, 0, 0, 1, 1, 1] * 3
    model = SVC(kernel=BagOfWords()).fit(texts, labels)
    np.testing.assert_array_equal(model.predict(["a dog", "blue"]), [0, 1])
    pca = KernelPCA(2, kernel=BagOfNgrams()).fit(texts)
    np.testing.assert_allclose(pca.transform(texts), pca.fit_transform(texts), atol=1e-12)
    grid = {"kernel__ngrams": [(1, 1), (1, 2)], "kernel__tfidf": [True, False]}
    search = GridSearchCV(SVC(kernel=BagOfWords()), grid, cv=3).fit(texts, labels)
    assert search.best_score_ == 1.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: BagOfWords(tfidf=False)(["a", 7]), TypeError, "point 1 is 7, not a string"),
        (lambda: BagOfWords(tfidf=False)("cat"), TypeError, "collection of texts, got the single"),
        (lambda: BagOfWords().resolve(["", "!"]), ValueError, "BagOfWords: empty vocabulary"),
        (lambda: BagOfWords((2, 1)), ValueError, "1 <= shortest <= longest"),
        (
            lambda: BagOfWords(2),
            TypeError,
            r"ngrams must be a pair of integers \(shortest, longest\), got 2",
        ),
        (lambda: BagOfWords(tfidf="yes"), TypeError, "tfidf must be True, False, or a dictionary"),
        (lambda: BagOfWords(options={"analyser": 1}), ValueError, "unknown option 'analyser'"),
        (lambda: BagOfWords(options=[1]), TypeError, "options must be a dict"),
        (
            lambda: BagOfWords(tfidf=False, options={"min_df": 2}),
            ValueError,
            "min_df selects terms by their counts",
        ),
        (
            lambda: BagOfWords(options={"min_df": 3, "max_df": 2}).resolve(TRAIN),
            ValueError,
            r"BagOfWords: max_df corresponds to < documents than min_df \(",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "options",
    [{"min_df": 3}, {"min_df": 0.4}, {"max_df": 2}, {"max_df": 0.5}, {"max_features": 3}],
    ids=str,
)
@pytest.mark.parametrize("seed", range(5))
def test_limits_of_the_vocabulary_count_weights(options, seed):
    weights = np.random.default_rng(seed).integers(0, 4, size=len(TRAIN))
    repeated = [text for text, w in zip(TRAIN, weights, strict=True) for _ in range(w)]
    kernel = BagOfWords(options=options)
    theirs = TfidfVectorizer(**options)
    try:
        theirs.fit(repeated)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            kernel.resolve(TRAIN, weights.astype(float))
    else:
        expected = dict(zip(theirs.get_feature_names_out(), theirs.idf_, strict=True))
        assert kernel.resolve(TRAIN, weights.astype(float)).tfidf == pytest.approx(expected)
        assert kernel.resolve(repeated).tfidf == pytest.approx(expected)


def test_weights_below_one_leave_the_vocabulary_as_it_is():
    weights = np.full(len(TRAIN), 1 / 30)
    assert set(BagOfWords().resolve(TRAIN, weights).tfidf) == set(BagOfWords().resolve(TRAIN).tfidf)
    with pytest.raises(ValueError, match="'min_df' parameter"):
        BagOfWords(options={"min_df": -1}).resolve(TRAIN)


def test_the_most_frequent_terms_by_fractional_weights():
    kernel = BagOfWords(options={"max_features": 1})
    texts = ["cat cat", "dog", "cow"]
    assert list(kernel.resolve(texts, np.array([0.5, 1.25, 0.9])).tfidf) == ["dog"]
    assert list(kernel.resolve(texts, np.array([0.5, 0.8, 0.9])).tfidf) == ["cat"]


def test_many_weights_are_abbreviated():
    weights = {f"word{i}": 1.0 for i in range(20)}
    assert str(BagOfWords(tfidf=weights)) == "BagOfWords(ngrams=(1, 1), tfidf=20 weights)"
    assert format_brief(weights) == "{20 entries}"
    assert format_brief([[1.0, 2.0], [3.0]] * 9) == "[18 entries]"  # a ragged list
