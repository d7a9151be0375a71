"""Sets and bags: values by definition, every representation of a set, pre-images, errors."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances

from mercer import SVC, Expansion, KernelPCA
from mercer.kernels import (
    RBF,
    BraunBlanquet,
    Dice,
    Explicit,
    HistogramIntersection,
    Intersection,
    Jaccard,
    Linear,
    MeanOf,
    MinMax,
    Normalized,
    Ochiai,
    Overlap,
    Subsets,
    node,
)
from mercer.kernels.sets._set_encoding import SetEncoding
from mercer.kernels.sets._set_kernels import SetKernel

DEFINITIONS = {
    Intersection(): lambda A, B: len(A & B),
    Subsets(): lambda A, B: sum(
        set(C) <= B for m in range(len(A) + 1) for C in itertools.combinations(A, m)
    ),
    Jaccard(): lambda A, B: len(A & B) / len(A | B) if A | B else 1.0,
    Dice(): lambda A, B: 2 * len(A & B) / (len(A) + len(B)) if A or B else 1.0,
    Ochiai(): lambda A, B: (
        len(A & B) / np.sqrt(len(A) * len(B)) if A and B else float(not (A or B))
    ),
    BraunBlanquet(): lambda A, B: len(A & B) / max(len(A), len(B)) if A or B else 1.0,
    MinMax(): lambda A, B: len(A & B) / len(A | B) if A | B else 1.0,
}
every = pytest.mark.parametrize("kernel", DEFINITIONS, ids=str)
sets = st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=5)


def brute(kernel, X, Z):
    return np.array([[DEFINITIONS[kernel](A, B) for B in Z] for A in X], dtype=float)


def rows(X, width=7):
    return np.array([[c in A for c in range(width)] for A in X], dtype=float)


@every
@settings(max_examples=25, deadline=None)
@given(X=sets, Z=sets)
def test_values_in_every_form(kernel, X, Z):
    want = brute(kernel, X, Z)
    np.testing.assert_allclose(kernel(X, Z), want, rtol=1e-15)
    np.testing.assert_allclose(kernel.diag(X), np.diag(brute(kernel, X, X)), rtol=1e-15)
    forms = [rows, lambda S: rows(S) > 0, lambda S: sp.csr_array(rows(S)), list]
    for a, b in itertools.product(forms, forms):
        np.testing.assert_allclose(kernel(a(X), b(Z)), want, rtol=1e-15)


def test_reference_values():
    A, B = [{1, 2, 3}], [{2, 3, 4}]
    assert Intersection()(A, B) == 2
    assert Subsets()(A, B) == 4
    assert Jaccard()(A, B) == 0.5
    assert Dice()(A, B) == pytest.approx(2 / 3, rel=1e-15)
    x, y = [[1.0, 2.0, 0.0]], [[2.0, 1.0, 1.0]]
    assert MinMax()(x, y) == 0.4
    assert HistogramIntersection()(x, y) == 2


@every
def test_two_empty_sets(kernel):
    want = 0.0 if kernel == Intersection() else 1.0
    assert kernel([set()]) == want
    assert kernel.diag([set()]) == want
    assert kernel(np.zeros((1, 4))) == want
    assert kernel(sp.csr_array((1, 4))) == want


def test_elements_of_any_kind_and_unseen_ones():
    X = [{"a", 1, (2, "b"), None}, frozenset({b"x"})]
    Z = [{"a", 1.0, "never seen"}, {b"x", b"y"}]
    np.testing.assert_array_equal(Intersection()(X, Z), [[2, 0], [0, 1]])
    # elements that occur only in Z count
    np.testing.assert_allclose(Jaccard()(X, Z), [[2 / 5, 0], [0, 0.5]])
    assert Normalized(Intersection())(Z[1:], X[1:]) == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("kernel", [Intersection(), Ochiai()], ids=str)
def test_explicit_features(kernel):
    X, Z = [{1, 2}, set(), {2, 3, 4}], [{2, 9}, set()]
    assert isinstance(kernel, Explicit)
    phi, psi = kernel.features(X), kernel.features(Z, like=X)
    np.testing.assert_allclose((phi @ phi.T).toarray(), kernel(X), rtol=1e-15)
    np.testing.assert_allclose((psi @ phi.T).toarray(), kernel(Z, X), rtol=1e-15)


def test_dense_rows_and_sparse_ones_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    for density in (0.02, 0.5):  # sparse and dense products
        X = rng.random((60, 300)) < density
        want = 1.0 - pairwise_distances(X, metric="jaccard")
        for form in (X, X.astype(int), sp.csr_array(X), sp.csc_array(X)):
            np.testing.assert_allclose(Jaccard()(form), want, atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5)), min_size=2, max_size=5)
)
def test_bags(X):
    def value(x, z):
        keys = [*x, *(e for e in z if e not in x)]
        low, high = (sum(f(x.get(e, 0), z.get(e, 0)) for e in keys) for f in (min, max))
        return low / high if high else 1.0

    want = np.array([[value(x, z) for z in X] for x in X])
    table = np.array([[x.get(e, 0) for e in "abcd"] for x in X], dtype=float)
    for form in ([Counter(x) for x in X], table, sp.csr_array(table), table.astype(int)):
        np.testing.assert_allclose(MinMax()(form), want, rtol=1e-15)
    np.testing.assert_allclose(MinMax()(table, sp.csr_array(table)), want, rtol=1e-15)


def test_subsets_have_a_weight():
    X = [{1, 2, 3}, {2, 3, 4}]
    np.testing.assert_allclose(Subsets(0.5)(X), [[1.5**3, 1.5**2], [1.5**2, 1.5**3]])
    with pytest.raises(ValueError, match="point 1 has 2000 elements, and 2 to that power overflow"):
        Subsets()([{1}, set(range(2000))])
    assert np.isfinite(Subsets(1e-3)([set(range(2000))])).all()


def test_mean_of_instances():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(m, 2)) for m in (3, 1, 5, 2)]
    want = np.array([[RBF()(a, b).mean() for b in X] for a in X])
    k = MeanOf(RBF())
    np.testing.assert_allclose(k(X), want, rtol=1e-14)
    np.testing.assert_allclose(k.diag(X), np.diag(want), rtol=1e-14)
    np.testing.assert_allclose(k(X[1:], X), want[1:], rtol=1e-14)
    np.testing.assert_allclose(np.diag(Normalized(k)(X)), 1.0)
    np.testing.assert_array_equal(k([np.empty((0, 2))], X), np.zeros((1, 4)))
    words = [["cat", "dog"], ["cow"]]
    np.testing.assert_array_equal(
        MeanOf(Intersection())([[set(w) for w in x] for x in words]), [[1.5, 1.0], [1.0, 3.0]]
    )
    both = MeanOf(RBF("median")).resolve(X, np.array([1.0, 0.0, 0.0, 1.0]))
    assert both == MeanOf(RBF("median")).resolve([X[0], X[3]])


def test_many_instances_come_in_parts():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(m, 1)) for m in rng.integers(0, 200, size=40)]
    sums = np.array([x.mean() if len(x) else 0.0 for x in X])
    np.testing.assert_allclose(MeanOf(Linear())(X), np.outer(sums, sums), atol=1e-12)


# ---------------------------------------------------------------------- pre-images


def all_sets(X):
    elements = sorted(set().union(*X))
    return [set(c) for m in range(len(elements) + 1) for c in itertools.combinations(elements, m)]


@pytest.mark.parametrize("kernel", [Intersection(), Dice(), Ochiai(), BraunBlanquet()], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_preimages_are_the_best_of_all_sets(kernel, seed):
    rng = np.random.default_rng(seed)
    X = [set(np.flatnonzero(rng.random(6) < 0.4).tolist()) for _ in range(5)]
    C = rng.normal(size=(5, 4)) + 0.2
    f = Expansion(kernel, X, C)
    candidates = all_sets(X)
    costs = kernel.diag(candidates)[:, None] - 2 * f(candidates)
    least = costs.min(axis=0) + f.norm() ** 2
    for form in (list(X), rows(X, 6), sp.csr_array(rows(X, 6))):
        found = Expansion(kernel, form, C).preimage()
        assert type(found.points) is type(form)
        np.testing.assert_allclose(found.residuals, least, atol=1e-12)
        assert set(found.methods) == {"exact"}


def test_the_mean_of_sets_is_what_most_of_them_have():
    X = [{"a", "b"}, {"b", "c"}, {"b", "a", "d"}]
    assert Expansion.mean(Intersection(), X).preimage().points == [{"a", "b"}]
    nearest = Expansion.mean(Jaccard(), X).preimage()
    assert nearest.points[0] in X
    assert nearest.methods == ("nearest",)


# ---------------------------------------------------------------------- estimators and errors


def test_estimators_take_sets():
    X = [{1, 2}, {2, 3}, {1, 2, 3}, {7, 8}, {8, 9}, {7, 9}]
    for form in (X, rows(X, 10), sp.csr_array(rows(X, 10))):
        scores = KernelPCA(1, kernel=Jaccard()).fit_transform(form)[:, 0]
        assert len(set(np.sign(scores[:3]))) == 1
        assert np.sign(scores[0]) != np.sign(scores[3])
        near = KernelPCA(1, kernel=Dice()).fit(form).denoise(form)
        np.testing.assert_array_equal(Dice()(near, form)[:3, 3:], 0.0)
    model = SVC(kernel=Jaccard()).fit(X, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.predict([{2, 100}, {9}]), [0, 1])


def test_the_overlap_coefficient_is_refused_with_its_counterexample():
    with pytest.raises(ValueError, match=r"\{1\}, \{2\} and \{1, 2\}.*1 - sqrt\(2\) = -0.414"):
        Overlap()
    X = [{1}, {2}, {1, 2}]
    K = [[len(A & B) / min(len(A), len(B)) for B in X] for A in X]
    np.testing.assert_allclose(np.linalg.eigvalsh(K)[0], 1 - np.sqrt(2), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Jaccard()([{1}, 7]), TypeError, "Jaccard: point 1 is 7, not a set"),
        (lambda: Jaccard()([{1}, "ab"]), TypeError, "point 1 is 'ab', not a set"),
        (lambda: Jaccard()([{1}, {"a": 2}]), TypeError, "not a set; use MinMax for bags"),
        (lambda: Jaccard()([[1, 2], [3]]), TypeError, r"point 0 is \[1, 2\], not a set"),
        (lambda: Jaccard()([{1}, {2, 1j}]), TypeError, "the elements of point 1 must be numbers"),
        (
            lambda: Jaccard()([[1, 0], [1, 2]]),
            ValueError,
            "point 1 has the entry 2 in column 1, but sets must have entries 0 and 1",
        ),
        (
            lambda: Dice()(sp.csr_array([[1, 0.0], [0, 0.5]])),
            ValueError,
            "Dice: point 1 has the entry 0.5 in column 1",
        ),
        (lambda: MinMax()([[1.0, -2.0]]), ValueError, "point 0 has the entry -2 in column 1"),
        (lambda: MinMax()([[1.0, np.nan]]), ValueError, "the entry nan in column 1"),
        (lambda: MinMax()([{}, {"a": -1}]), ValueError, "point 1 contains an element -1 times"),
        (lambda: MinMax()([{"a": "b"}]), TypeError, "count that is not a number"),
        (
            lambda: Jaccard()(np.ones((2, 3)), np.ones((2, 4))),
            ValueError,
            "sets with 3 columns and sets with 4 columns;",
        ),
        (lambda: Subsets(0.0), ValueError, "Subsets: weight must be positive"),
        (lambda: MeanOf(2), TypeError, "MeanOf needs a kernel, got 2"),
        (lambda: MeanOf(RBF())([[[1.0]], 3]), TypeError, "point 1 is 3, not a set of instances"),
        (
            lambda: MeanOf(RBF())([[[1.0]], [[1.0, 2.0]]]),
            ValueError,
            r"point 1 has shape \(1, 2\), but a set of vectors must have shape \(m, 1\)",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_columns_are_elements():
    matrix = SetEncoding(np.array([[1, 0, 1]]), "")
    assert sorted(matrix.columns.tolist()) == sorted(SetEncoding([{0, 1, 2}], "").columns.tolist())


def test_repeated_entries_of_a_sparse_matrix_are_added():
    X = sp.coo_array((np.ones(4), ([0, 0, 0, 1], [0, 0, 1, 1])), shape=(2, 3))
    np.testing.assert_array_equal(MinMax()(X), MinMax()([[2, 1, 0], [0, 1, 0]]))
    with pytest.raises(ValueError, match="point 0 has the entry 2 in column 0"):
        Jaccard()(X)


def test_instances_in_sparse_matrices():
    X = [np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 3.0]])]
    sparse = [sp.csr_array(instances) for instances in X]
    np.testing.assert_allclose(MeanOf(RBF())(sparse), MeanOf(RBF())(X), rtol=1e-14)


def test_elements_that_contain_other_objects_are_refused():
    for element in ((1, object()), frozenset([object()])):
        with pytest.raises(TypeError, match="the elements of point 1 must be numbers, strings or"):
            Jaccard()([{1}, {element}])


def test_a_profile_may_return_a_new_array():
    @node
    class Ochiai(SetKernel):
        """|A n B| / sqrt(|A| |B|), the cosine of two sets."""

        def profile(self, a, s, t):
            return a / np.sqrt(s * t)

    X = [{1, 2}, {2, 3, 4}, {1, 2, 3}]
    expected = [[len(a & b) / np.sqrt(len(a) * len(b)) for b in X] for a in X]
    np.testing.assert_allclose(Ochiai()(X), expected, rtol=1e-6)
