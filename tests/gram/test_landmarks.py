"""Test randomly pivoted Cholesky and the choice of landmarks."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from mercer import NotPositiveDefiniteError
from mercer._core import as_csr, as_float64
from mercer._core._without_gil import argument_kinds
from mercer.gram import DenseGram, Landmarks, TiledGram, choose_landmarks, gram, rpcholesky
from mercer.gram import _triangular_solve as triangular
from mercer.kernels import (
    RBF,
    Callable,
    Cosine,
    Distance,
    Exp,
    Linear,
    Matern,
    Multiquadric,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 10))  # two strips, the last one incomplete
METHODS = ["rpcholesky", "uniform", "kmeans++", "leverage"]
CLEVER = ["rpcholesky", "kmeans++", "leverage"]


def assert_factors(part, K, rtol=1e-10):
    """Check that FᵀF is the Nyström approximation of K on the pivots, and check its residual."""
    scale, S = np.abs(K).max(), part.pivots
    assert len(set(S.tolist())) == len(S)
    assert part.factor.shape == (len(S), len(K))
    assert part.factor.dtype == part.residual.dtype == np.float64
    approximation = part.factor.T @ part.factor
    np.testing.assert_allclose(approximation[S], K[S], atol=rtol * scale)
    if len(S) and np.linalg.cond(K[np.ix_(S, S)]) < 1e6:
        nystroem = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
        np.testing.assert_allclose(approximation, nystroem, atol=rtol * scale)
    np.testing.assert_allclose(part.residual, np.diag(K - approximation), atol=rtol * scale)
    assert part.residual.min() >= 0
    assert not part.residual[S].any()
    assert part.trace == part.residual.sum()


# ---------------------------------------------------------------------- the factor


@pytest.mark.parametrize("hold", [DenseGram, TiledGram])
@pytest.mark.parametrize("kernel", [RBF(3.0), Matern(2.0, nu=0.5) + White(0.1), Polynomial(2)])
def test_the_factor_is_that_of_the_pivots(hold, kernel):
    part = rpcholesky(hold(kernel, X), 60, random_state=0)
    assert len(part.pivots) == 60
    assert_factors(part, kernel(X))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    columns=st.integers(1, 12),
    rank=st.integers(1, 50),
    scale=st.floats(0.05, 50.0),
    seed=st.integers(0, 1000),
)
def test_any_points_any_rank(n, columns, rank, scale, seed):
    points = np.random.default_rng(seed).normal(size=(n, columns)).round(1)
    K = TiledGram(2.0 * RBF(scale), points)
    part = rpcholesky(K, rank, random_state=seed)
    assert 1 <= len(part.pivots) <= min(n, rank)
    assert_factors(part, K.to_array(), rtol=1e-8)
    if len(part.pivots) < min(n, rank):  # the residual is 0
        assert part.residual.max() <= 1e-11


def test_the_first_pivots_are_a_shorter_draw():
    part = rpcholesky(DenseGram(RBF(3.0), X[:300]), 30, random_state=0)
    F, S = part.factor[:12], part.pivots[:12]
    K = RBF(3.0)(X[:300])
    np.testing.assert_allclose(F.T @ F, K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]))


def plain_probabilities(K, length):
    """Return the probability of every sequence of pivots for sequential draws."""
    chances = {}
    for S in itertools.permutations(range(len(K)), length):
        R, p = K.copy(), 1.0
        for s in S:
            p *= max(R[s, s], 0.0) / np.trace(R)
            R = R - np.outer(R[:, s], R[s]) / R[s, s]
        chances[S] = p
    return chances


def distance_probabilities(K, length):
    """Return the probability of every sequence of k-means++ draws; the first is uniform."""
    D = np.diag(K)[:, None] - 2 * K + np.diag(K)
    chances = {}
    for S in itertools.permutations(range(len(K)), length):
        p = 1.0 / len(K)
        for j in range(1, length):
            nearest = D[:, S[:j]].min(axis=1)
            p *= nearest[S[j]] / nearest.sum()
        chances[S] = p
    return chances


def assert_drawn_from(chances, sample, draws=2000):
    """Pearson's chi-squared test; a correct sampler fails for one in ten thousand seeds."""
    seen = dict.fromkeys(chances, 0)
    for _ in range(draws):
        seen[tuple(sample().tolist())] += 1
    expected = draws * np.array(list(chances.values()))
    counts = np.array(list(seen.values()))
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    assert counts.sum() == draws
    statistic = np.sum((counts - expected) ** 2 / np.maximum(expected, 1e-300))
    assert statistic < chi2.ppf(1 - 1e-4, len(counts) - 1)


SIX = np.array([[0.0], [0.1], [0.4], [1.0], [1.2], [3.0]])


def test_rejection_keeps_the_distribution_of_plain_draws():
    K = DenseGram(2.0 * RBF(0.7) + Linear(), SIX)
    source = np.random.default_rng(1)
    chances = plain_probabilities(K.to_array(), 3)
    assert sum(chances.values()) == pytest.approx(1.0)
    assert_drawn_from(chances, lambda: rpcholesky(K, 3, random_state=source).pivots)


def test_draws_by_distance_have_their_distribution():
    kernel, source = RBF(0.7), np.random.default_rng(2)
    chances = distance_probabilities(kernel(SIX), 3)
    assert_drawn_from(
        chances, lambda: choose_landmarks(kernel, SIX, 3, "kmeans++", random_state=source)
    )


def test_it_comes_close_to_the_best_approximation():
    K = DenseGram(RBF(4.0), X[:300])
    best = np.linalg.eigvalsh(K.array)[:-30].sum()
    assert np.mean([rpcholesky(K, 60, random_state=seed).trace for seed in range(5)]) < best


# ---------------------------------------------------------------------- stopping


def test_the_rank_of_a_kernel_is_found():
    for kernel, rank in ((Linear(), 10), (Polynomial(1), 11), (Polynomial(2), 66)):
        part = rpcholesky(TiledGram(kernel, X), 100, random_state=0)
        assert len(part.pivots) == rank
        assert part.trace < 1e-9 * kernel.diag(X).sum()
        assert_factors(part, kernel(X), rtol=1e-9)


def test_smooth_kernels_stop_before_rounding_rules():
    points = np.linspace(0, 1, 400)[:, None]
    part = rpcholesky(DenseGram(RBF(1.0), points), 100, random_state=0)
    assert len(part.pivots) < 15
    assert part.residual.max() < 1e-11
    assert np.abs(part.factor).max() <= 1 + 1e-12


def test_duplicates_are_pivots_once():
    points = np.repeat(X[:7], 60, axis=0)
    part = rpcholesky(TiledGram(RBF(), points), 50, random_state=0)
    assert sorted(part.pivots // 60) == list(range(7))
    assert part.trace < 1e-10
    noisy = rpcholesky(TiledGram(RBF() + White(0.1), points), 50, random_state=0)
    assert len(noisy.pivots) == 50  # separate observations, although their values agree


def test_a_tolerance_stops_early():
    K = TiledGram(RBF(4.0), X)
    part = rpcholesky(K, 800, tol=0.2, random_state=0)
    assert part.trace <= 0.2 * len(X)
    assert part.factor.shape[0] == len(part.pivots) < 800
    assert_factors(part, RBF(4.0)(X))
    assert part.factor.base is None or part.factor.base.size == part.factor.size


def test_no_kernel_and_no_points():
    part = rpcholesky(TiledGram(0.0 * RBF(), X[:9]), 3, random_state=0)
    assert part.factor.shape == (0, 9)
    assert part.trace == 0
    assert rpcholesky(TiledGram(RBF(), X[:0]), 3).pivots.shape == (0,)


# ---------------------------------------------------------------------- kinds of points


def test_the_bits_do_not_depend_on_the_threads():
    for kernel in (RBF(3.0), Matern(2.0)):
        K = TiledGram(kernel, X)
        parts = [rpcholesky(K, 70, random_state=3, n_threads=t) for t in (1, 2, 3)]
        for other in parts[1:]:
            assert np.array_equal(parts[0].pivots, other.pivots)
            assert np.array_equal(parts[0].factor, other.factor)
            assert np.array_equal(parts[0].residual, other.residual)
    for method in METHODS:
        chosen = [
            choose_landmarks(RBF(3.0), X, 40, method, random_state=5, n_threads=t) for t in (1, 2)
        ]
        assert np.array_equal(*chosen)


def test_single_precision():
    K = TiledGram(RBF(3.0), X.astype(np.float32))
    assert K.dtype == np.float32
    part = rpcholesky(K, 200, random_state=0)
    assert part.factor.dtype == np.float64
    assert_factors(part, RBF(3.0)(X), rtol=1e-3)
    line = np.linspace(0, 1, 300, dtype=np.float32)[:, None]
    smooth = rpcholesky(TiledGram(RBF(1.0), line), 50, random_state=0)
    assert len(smooth.pivots) < 10  # residuals within the float32 rounding error are not used


def test_precomputed_values_and_words():
    K = RBF(3.0)(X[:200])
    for held in (gram(Precomputed(), K), TiledGram(Precomputed(K), np.arange(200))):
        assert_factors(rpcholesky(held, 30, random_state=0), K)
    words = ["".join(rng.choice(list("abc"), size=6)) for _ in range(80)]
    kernel = Callable(zoo.letters)
    part = rpcholesky(TiledGram(kernel, words), 20, random_state=0)
    assert len(part.pivots) == 3  # one for each letter
    assert_factors(part, kernel(words))


def test_generators_and_seeds():
    K = DenseGram(RBF(3.0), X[:100])
    for make in (np.random.default_rng, np.random.RandomState, int):
        one, two = (rpcholesky(K, 10, random_state=make(7)).pivots for _ in range(2))
        assert np.array_equal(one, two)


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("kernel", [Sigmoid(gamma=0.1, coef0=-1.0), Multiquadric(), Distance()])
def test_what_is_not_positive_semidefinite_is_reported(kernel):
    with pytest.raises(NotPositiveDefiniteError, match=r"pivots the residual .* down to"):
        rpcholesky(TiledGram(kernel, X[:200]), 30, random_state=0)


def test_an_indefinite_matrix_with_a_positive_diagonal():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    with pytest.raises(NotPositiveDefiniteError, match=r"after 1 pivots .* down to -8, with"):
        rpcholesky(gram(Precomputed(), K), 2, random_state=0)


@pytest.mark.parametrize("size", [50, 1500])  # with one thread, and with several
def test_values_that_overflow(size):
    kernel, far = Exp(Linear()), 100.0 * X[:size]
    with pytest.raises(ValueError, match="entries that are not finite"):
        rpcholesky(TiledGram(kernel, far), 5, random_state=0)
    for method in CLEVER:
        with pytest.raises(ValueError, match="entries that are not finite"):
            choose_landmarks(kernel, far, 5, method, random_state=0)


def test_wishes_that_make_no_sense():
    K = DenseGram(RBF(), X[:20])
    for bad in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="rank must be a positive integer, got"):
            rpcholesky(K, bad)
    for bad in (-0.1, 1.0, np.nan):
        with pytest.raises(
            ValueError, match=r"tol must be in \[0, 1\), as a fraction of the trace of K, got"
        ):
            rpcholesky(K, 2, tol=bad)
    with pytest.raises(ValueError, match="needs a symmetric kernel matrix"):
        rpcholesky(gram(RBF(), X[:20], X[:5]), 2)
    with pytest.raises(ValueError, match="n_threads must be a positive integer"):
        rpcholesky(K, 2, n_threads=0)


# ---------------------------------------------------------------------- landmarks


@pytest.mark.parametrize("method", METHODS)
def test_landmarks_are_distinct_indices(method):
    chosen = choose_landmarks(RBF(3.0), X, 50, method, random_state=0)
    assert chosen.dtype == np.intp
    assert len(set(chosen.tolist())) == 50
    assert 0 <= chosen.min() <= chosen.max() < len(X)
    assert np.array_equal(chosen, choose_landmarks(RBF(3.0), X, 50, method, random_state=0))
    assert not np.array_equal(chosen, choose_landmarks(RBF(3.0), X, 50, method, random_state=1))
    everything = choose_landmarks(RBF(3.0), X[:40], 40, method, random_state=0)
    assert sorted(everything) == list(range(40))


@pytest.mark.parametrize("method", CLEVER)
def test_small_clusters_and_outliers_are_found(method):
    # Leverage scores are sampled, and miss the outlier for about one seed in ten; not for this one.
    draw = np.random.default_rng(1).normal
    points = np.concatenate([draw(size=(1400, 2)), draw(40.0, 1.0, size=(20, 2))])
    points = np.concatenate([points, [[-300.0, 0.0]]])
    for seed in range(5):
        chosen = choose_landmarks(RBF(2.0), points, 40, method, random_state=seed)
        if (
            method != "kmeans++"
        ):  # for which the outlier is as far as the other points, because k = 0
            assert 1420 in chosen
        assert np.any((chosen >= 1400) & (chosen < 1420))


@pytest.mark.parametrize("method", METHODS)
def test_candidates_limit_what_is_read(method):
    class Disk(np.ndarray):
        """Array that counts the rows read from it."""

        read = 0

        def __getitem__(self, rows):
            Disk.read += len(rows)
            return np.asarray(self)[rows]

    chosen = choose_landmarks(RBF(3.0), X.view(Disk), 20, method, random_state=0, candidates=100)
    assert len(set(chosen.tolist())) == 20
    assert Disk.read == (0 if method == "uniform" else 100)


def test_by_default_large_collections_are_sampled():
    many = rng.normal(size=(20_500, 1))
    chosen = choose_landmarks(RBF(0.01), many, 5, random_state=0)
    assert len(chosen) == 5
    assert chosen.max() > 20_000 or np.any(chosen != choose_landmarks(RBF(0.01), many[:20_000], 5))


@pytest.mark.parametrize("method", METHODS)
def test_points_of_every_kind(method, tmp_path):
    def choose(kernel, points, **options):
        return choose_landmarks(kernel, points, 12, method, random_state=0, **options)

    wanted = choose(RBF(3.0), X, candidates=400)
    path = tmp_path / "points.npy"
    np.save(path, X)
    assert np.array_equal(choose(RBF(3.0), np.load(path, mmap_mode="r"), candidates=400), wanted)
    rows = X.copy()
    rows[np.abs(rows) < 1] = 0
    for form in (sp.csr_array, sp.csc_array, sp.coo_array):
        assert len(choose(RBF(3.0), form(rows), candidates=400)) == 12
    assert np.array_equal(
        choose(RBF(3.0), X.astype(np.float32).astype(np.float64)),
        choose(RBF(3.0), X.astype(np.float32)),
    )
    assert len(choose(RBF(3.0), X.tolist()[:50])) == 12
    words = ["".join(rng.choice(list("abcdefghijklmnopq"), size=6)) for _ in range(60)]
    assert len(set(choose(Callable(zoo.letters), words, candidates=40).tolist())) == 12
    K = RBF(3.0)(X[:60])
    same = [
        choose(kernel, points)
        for kernel, points in (
            (RBF(3.0), X[:60]),
            (Precomputed(K), np.arange(60)),
            (Precomputed(), K),
        )
    ]
    assert np.array_equal(same[0], same[1])
    assert np.array_equal(same[0], same[2])
    assert np.array_equal(
        choose(Precomputed(), K, candidates=13), same[0]
    )  # K is precomputed, so all points are candidates


def test_fewer_landmarks_when_more_would_add_nothing():
    twice = np.repeat(X[:6], 5, axis=0)
    assert len(choose_landmarks(RBF(), twice, 20, random_state=0)) == 6
    assert len(choose_landmarks(RBF(), twice, 20, "kmeans++", random_state=0)) == 6
    assert len(choose_landmarks(RBF(), twice, 20, "leverage", random_state=0)) == 20
    assert len(choose_landmarks(Linear(), X, 20, random_state=0)) == 10
    assert len(choose_landmarks(Cosine(), X[:, :1], 20, "kmeans++", random_state=0)) == 2
    some = np.where(np.arange(30)[:, None] < 4, X[:30], 0.0)
    chosen = choose_landmarks(Linear(), some, 10, "leverage", random_state=0)
    assert sorted(chosen) == [0, 1, 2, 3]
    for method in CLEVER:  # at least one landmark
        assert len(choose_landmarks(Linear(), 0.0 * some, 10, method, random_state=0)) == 1


def test_distances_suffice_to_spread():
    chosen = choose_landmarks(Distance(), X, 30, "kmeans++", random_state=0)
    assert len(set(chosen.tolist())) == 30
    with pytest.raises(NotPositiveDefiniteError, match=r"a squared distance .* is -4, with k\(x"):
        K = np.array([[1.0, 3.0], [3.0, 1.0]])
        choose_landmarks(Precomputed(), K, 2, "kmeans++", random_state=0)


def test_leverage_prefers_points_that_nothing_replaces():
    points = np.concatenate([np.zeros((500, 2)), rng.normal(5.0, 3.0, size=(50, 2))])
    chosen = choose_landmarks(RBF(1.0), points, 30, "leverage", random_state=0)
    assert np.sum(chosen >= 500) > 20


def test_landmarks_that_make_no_sense():
    with pytest.raises(ValueError, match=r"more landmarks than points: 30 landmarks .* 20 points"):
        choose_landmarks(RBF(), X[:20], 30)
    for bad in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="number of landmarks must be a positive integer, got"):
            choose_landmarks(RBF(), X, bad)
    message = "landmark method 'random'; .* of 'uniform', 'rpcholesky', 'kmeans\\+\\+', 'leverage'"
    with pytest.raises(ValueError, match=message):
        choose_landmarks(RBF(), X, 5, "random")
    for bad in (4, 5.5, True, "all"):
        with pytest.raises(ValueError, match="at least 5, the number of landmarks, got"):
            choose_landmarks(RBF(), X, 5, candidates=bad)
    with pytest.raises(ValueError, match="which must be computed from data"):
        choose_landmarks(RBF("median"), X, 5)


# ---------------------------------------------------------------------- triangular solves


def test_points_are_doubled_only_where_needed():
    pd = pytest.importorskip("pandas")
    assert as_float64(X) is X
    assert as_float64(X.astype(np.float32)).dtype == np.float64
    assert as_float64(sp.csr_array(X.astype(np.float32))).dtype == np.float64
    words = ["a", "b"]
    assert as_float64(words) is words
    frame = pd.DataFrame({"x": np.ones(3, dtype=np.float32), "name": list("abc")})
    assert as_float64(frame)["x"].dtype == np.float64
    assert as_float64(frame)["name"].tolist() == list("abc")
    assert as_float64(frame["x"]) is not None
    assert as_csr(words) is words


@pytest.mark.parametrize("locked", [False, True])
def test_triangular_solves(locked, monkeypatch):
    if locked:  # as for a SciPy without the function table
        monkeypatch.setattr(triangular, "routine_without_gil", lambda *arguments: None)
    L = np.asfortranarray(np.tril(rng.normal(size=(7, 7))) + 5 * np.eye(7))
    for B in (rng.normal(size=(30, 7)), rng.normal(size=(1, 7)), rng.normal(size=(30, 9))[:, 1:8]):
        wanted = np.linalg.solve(L, B.T).T
        before = B.copy()
        triangular.solve_triangular_rows(L, B)
        np.testing.assert_allclose(B, wanted, rtol=1e-12)
        triangular.multiply_triangular_rows(L, B)
        np.testing.assert_allclose(B, before, rtol=1e-12)
    triangular.solve_triangular_rows(L, np.empty((0, 7)))
    with pytest.raises(ValueError, match="L in Fortran order, and B with contiguous rows"):
        triangular.solve_triangular_rows(np.ascontiguousarray(L), B)


def test_signatures_are_read_before_a_routine_is_called():
    scipys = (
        "void (char *, char *, char *, char *, int *, int *, __pyx_t_cython_blas_d *, "
        "__pyx_t_cython_blas_d *, int *, __pyx_t_cython_blas_d *, int *)"
    )
    assert argument_kinds(scipys) == triangular._EXPECTED_KINDS
    assert argument_kinds(scipys.replace("int *", "int64_t *")) != triangular._EXPECTED_KINDS


# ---------------------------------------------------------------------- the class Landmarks


def test_how_many_landmarks():
    assert Landmarks().count(300) == 300
    assert Landmarks().count(5000) == 1000
    assert Landmarks(20).count(5000) == 20
    assert Landmarks(20).count(7) == 7
    assert Landmarks(method=X[:9]).count(5000) == 9


@pytest.mark.parametrize("method", ["auto", "kmeans", *METHODS])
def test_a_choice_repeats_and_covers(method):
    choice = Landmarks(25, method)
    S = choice.draw(RBF(3.0), X)
    assert S.shape == (25, 10)
    assert np.array_equal(S, choice.draw(RBF(3.0), X))
    assert not np.array_equal(S, Landmarks(25, method, random_state=1).draw(RBF(3.0), X))
    assert choice.workspace(1500) == (0 if method == "uniform" else 8 * 25 * 1500)
    assert replace(choice, method="medoids").workspace(1500) == 8 * 25 * 1500 + 8 * 500**2


def test_landmarks_that_are_given():
    assert np.array_equal(Landmarks(method=X[:4].tolist()).draw(RBF(), X), X[:4])
    assert Landmarks(method=["ab", "c"]).draw(Callable(lambda a, b: 1.0), ["x"]) == ["ab", "c"]
    with pytest.raises(ValueError, match="landmarks have 3 columns, but X has 10"):
        Landmarks(method=X[:4, :3]).draw(RBF(), X)
    with pytest.raises(ValueError, match="landmarks that were passed are empty"):
        Landmarks(method=X[:0])


@pytest.mark.parametrize("rank", [0, -3, 2.5, True, "many"])
def test_a_rank_that_is_none(rank):
    with pytest.raises(ValueError, match="rank must be a positive integer or None"):
        Landmarks(rank)


def test_a_rank_that_the_points_do_not_have():
    with pytest.raises(ValueError, match="rank=9 landmarks cannot be chosen among 4 points"):
        Landmarks(9).require(4)
    Landmarks(9, X[:3]).require(4)
