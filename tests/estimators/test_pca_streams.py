"""Kernel PCA of points in blocks: the result does not depend on the block boundaries."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import KernelPCA
from mercer.kernels import RBF, Callable
from mercer.solvers import FourierEigen, LowRankEigen

rng = np.random.default_rng(21)
X = rng.normal(size=(600, 3)) * [1.5, 1.0, 0.7] + 2.0
Z = rng.normal(size=(50, 3)) + 2.0
W = rng.integers(1, 5, size=600).astype(float)
LANDMARKS = X[::12]

KINDS = {
    "landmarks": {"eigen_solver": "nystroem", "landmarks": LANDMARKS},
    "features": {"eigen_solver": "features", "rank": 80},
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def make(kind, n_components=5, **options):
    given = {"kernel": "rbf", "gamma": 0.3, "random_state": 0} | KINDS[kind]
    return KernelPCA(n_components, **given | options)


def stream(model, blocks, weights=None):
    for i, block in enumerate(blocks):
        model.partial_fit(block, sample_weight=None if weights is None else weights[i])
    return model


def same_model(one, other, tolerance=1e-10):
    """Compare all attributes of two models, including signs."""
    scale = one.eigenvalues_[0]
    assert one.n_components_ == other.n_components_
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, atol=tolerance * scale, rtol=0)
    np.testing.assert_allclose(other.transform(Z), one.transform(Z), atol=tolerance)
    np.testing.assert_allclose(
        other.reconstruction_error(Z), one.reconstruction_error(Z), atol=tolerance
    )
    np.testing.assert_allclose(
        other.eigenvalue_bounds_, one.eigenvalue_bounds_, atol=tolerance * scale, rtol=0
    )
    np.testing.assert_allclose(
        other.explained_variance_, one.explained_variance_, rtol=1e3 * tolerance
    )
    np.testing.assert_allclose(
        other.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e3 * tolerance
    )
    assert other.total_variance_ == pytest.approx(one.total_variance_, rel=tolerance)
    np.testing.assert_allclose(
        other.mean_.coefficients, one.mean_.coefficients, atol=1e4 * tolerance
    )
    np.testing.assert_allclose(other.mean_.norm(), one.mean_.norm(), rtol=tolerance)
    assert other._components.rows == one._components.rows


# ---------------------------------------------------------------------- blocks


@every_kind
@pytest.mark.parametrize("whiten", [False, True])
def test_fifty_blocks_are_one_pass(kind, whiten):
    whole = make(kind, whiten=whiten).fit(X)
    parts = stream(make(kind, whiten=whiten), np.array_split(X, 50))
    same_model(whole, parts)
    assert np.abs(whole.transform(Z)).max() > 0.1
    same_model(whole, make(kind, whiten=whiten).partial_fit(X), 1e-12)


@every_kind
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 599), max_size=12, unique=True), seed=st.integers(0, 3))
def test_any_cuts_in_any_order(kind, cuts, seed):
    order = np.random.default_rng(seed).permutation(600)
    blocks = np.split(X[order], sorted(cuts))
    same_model(make(kind).fit(X), stream(make(kind), blocks))


@every_kind
def test_the_order_of_blocks_does_not_matter(kind):
    blocks = np.array_split(X, 7)
    same_model(stream(make(kind), blocks), stream(make(kind), blocks[::-1]))


@every_kind
def test_weights_in_a_stream(kind):
    blocks, weights = np.array_split(X, 9), np.array_split(W, 9)
    whole = make(kind).fit(X, sample_weight=W)
    parts = stream(make(kind), blocks, weights)
    same_model(whole, parts)
    repeated = make(kind).fit(np.repeat(X, W.astype(int), axis=0))
    np.testing.assert_allclose(parts.transform(Z), repeated.transform(Z), atol=1e-9)
    np.testing.assert_allclose(parts.explained_variance_, repeated.explained_variance_, rtol=1e-10)
    assert parts.total_variance_ == pytest.approx(repeated.total_variance_, rel=1e-10)
    # Each block with its own weights, or without: those count as 1.
    mixed = make(kind).partial_fit(X[:300], sample_weight=W[:300]).partial_fit(X[300:])
    same_model(make(kind).fit(X, sample_weight=np.append(W[:300], np.ones(300))), mixed)


@every_kind
def test_points_of_weight_zero_in_a_stream(kind):
    here = np.arange(600) % 4 > 0
    parts = stream(make(kind), np.array_split(X, 6), np.array_split(here.astype(float), 6))
    same_model(make(kind).fit(X[here]), parts)
    assert parts._components.rows == np.count_nonzero(here)


@every_kind
@pytest.mark.parametrize("weights", [None, W[:300]], ids=["no weights", "weights"])
def test_partial_fit_goes_on_after_fit(kind, weights):
    model = make(kind).fit(X[:300], sample_weight=weights)
    assert hasattr(model, "offset_") and hasattr(model, "eigenvectors_")
    model.partial_fit(X[300:])
    assert not hasattr(model, "offset_") and not hasattr(model, "eigenvectors_")
    every = np.append(np.ones(300) if weights is None else weights, np.ones(300))
    same_model(make(kind).fit(X, sample_weight=every), model)


def test_fit_after_partial_fit_starts_again():
    model = make("landmarks").partial_fit(X[:200] + 9.0)
    same_model(make("landmarks").fit(X), model.fit(X), 1e-14)


def test_the_first_block_gives_landmarks_and_gamma():
    options = {"eigen_solver": "nystroem", "rank": 40, "kernel": "rbf", "gamma": "median"}
    first = KernelPCA(4, random_state=0, **options).partial_fit(X[:200])
    points, gamma = first.X_fit_.copy(), first.gamma_
    assert len(points) == 40
    assert gamma == KernelPCA(4, random_state=0, **options).fit(X[:200]).gamma_
    first.partial_fit(X[200:])
    assert np.array_equal(first.X_fit_, points) and first.gamma_ == gamma
    given = KernelPCA(4, kernel="rbf", gamma=gamma, eigen_solver="nystroem", landmarks=points)
    same_model(given.fit(X), first, 1e-9)


def test_auto_streams_by_landmarks():
    model = KernelPCA(3, kernel="rbf", rank=30, random_state=0)
    stream(model, np.array_split(X, 3))
    assert isinstance(model.solver_, LowRankEigen) and len(model.X_fit_) == 30
    assert model._components.rows == 600


def test_a_stream_starts_anew_after_an_exact_fit():
    options = {"kernel": "rbf", "gamma": 0.3, "rank": 30, "random_state": 0}
    model = KernelPCA(5, **options).fit(X[:100])
    assert hasattr(model, "eigenvectors_") and model.training_scores_.shape == (100, 5)
    model.partial_fit(X[100:])
    assert model._components.rows == 500
    assert not hasattr(model, "eigenvectors_") and not hasattr(model, "training_scores_")
    same_model(KernelPCA(5, **options).partial_fit(X[100:]), model, 1e-14)


def test_other_kinds_of_points():
    sparse = make("landmarks", landmarks=sp.csr_array(LANDMARKS))
    stream(sparse, [sp.csr_array(B) for B in np.array_split(X, 4)])
    np.testing.assert_allclose(
        sparse.eigenvalues_, make("landmarks").fit(X).eigenvalues_, rtol=1e-9
    )
    words = ["".join(rng.choice(list("abcdef"), size=5)) for _ in range(60)]
    count = Callable(lambda s, t: sum(s.count(c) * t.count(c) for c in set(s)), contract="pair")
    options = {"kernel": count, "eigen_solver": "nystroem", "landmarks": words[:12]}
    whole, parts = KernelPCA(2, **options).fit(words), KernelPCA(2, **options)
    stream(parts, [words[:20], words[20:50], words[50:]])
    np.testing.assert_allclose(parts.eigenvalues_, whole.eigenvalues_, rtol=1e-11)
    np.testing.assert_allclose(parts.transform(words), whole.transform(words), atol=1e-11)
    single = stream(make("landmarks"), np.array_split(X.astype(np.float32), 4))
    assert single.transform(Z.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(
        single.eigenvalues_, make("landmarks").fit(X).eigenvalues_, rtol=1e-5
    )


def test_a_stream_with_a_share_of_the_variance():
    whole, parts = make("landmarks", 0.9).fit(X), stream(make("landmarks", 0.9), np.split(X, 10))
    same_model(whole, parts)
    assert 1 < parts.n_components_ < 50
    one = make("landmarks", 0.9).partial_fit(X[:60] * 0.2 + 1.6)
    before = one.n_components_
    one.partial_fit(X)  # more variance: more components
    assert one.n_components_ > before
    assert one.transform(Z).shape == (50, one.n_components_)
    with pytest.warns(UserWarning, match=r"all 50 components of the landmarks or features explain"):
        make("landmarks", 0.9).fit(X * 9.0)  # far from most landmarks


def test_a_block_of_one_point_and_a_block_that_repeats():
    model = make("landmarks")
    stream(model, [X[:1], X[1:2], X[2:]])
    same_model(make("landmarks").fit(X), model)
    twice = stream(make("landmarks"), [X, X])
    once = make("landmarks").fit(X)
    np.testing.assert_allclose(twice.eigenvalues_, 2 * once.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(twice.transform(Z), once.transform(Z), atol=1e-10)


@every_kind
def test_clones_and_copies_of_a_stream(kind):
    import copy
    import pickle

    model = make(kind).partial_fit(X[:300])
    twin = pickle.loads(pickle.dumps(model))
    deep = copy.deepcopy(model)
    for other in (model, twin, deep):
        other.partial_fit(X[300:])
    same_model(model, twin, 1e-15)
    same_model(model, deep, 1e-15)
    with pytest.raises(NotFittedError):
        clone(model).transform(Z)


# ---------------------------------------------------------------------- merging


@every_kind
def test_two_halves_make_the_whole(kind):
    left, right = make(kind).partial_fit(X[:250]), make(kind).fit(X[250:])
    before = left.eigenvalues_.copy()
    merged = left.merge(right)
    same_model(make(kind).fit(X), merged)
    same_model(merged, right.merge(left))
    assert np.array_equal(left.eigenvalues_, before)  # the parts are unchanged
    assert merged.n_features_in_ == 3 and merged.gamma_ == 0.3
    assert merged.get_params().keys() == left.get_params().keys()
    merged.partial_fit(X[:50])  # it can be updated further
    assert merged._components.rows == 650


@every_kind
def test_merging_respects_weights(kind):
    left = make(kind).fit(X[:250], sample_weight=W[:250])
    right = make(kind).partial_fit(X[250:], sample_weight=W[250:])
    same_model(make(kind).fit(X, sample_weight=W), left.merge(right))


def test_merging_keeps_names():
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(part, columns=list("abc")) for part in np.split(X, 2)]
    merged = make("landmarks").fit(frames[0]).merge(make("landmarks").fit(frames[1]))
    assert list(merged.feature_names_in_) == list("abc")
    same_model_scores = merged.transform(pd.DataFrame(Z, columns=list("abc")))
    np.testing.assert_allclose(same_model_scores, make("landmarks").fit(X).transform(Z), atol=1e-10)


def test_models_that_do_not_merge():
    model = make("landmarks").fit(X)
    with pytest.raises(NotFittedError):
        model.merge(make("landmarks"))
    with pytest.raises(NotFittedError):
        make("landmarks").merge(model)
    exact = KernelPCA(5, kernel="rbf", gamma=0.3).fit(X[:100])
    for one, other in ((model, exact), (exact, model)):
        with pytest.raises(
            ValueError, match="only models with eigen_solver='nystroem' or 'features"
        ):
            one.merge(other)
    text = "the two models have different landmarks or features, so their moments cannot"
    for other in (
        make("landmarks", landmarks=X[1::12]),
        make("landmarks", landmarks=LANDMARKS[:-1]),
        make("landmarks", gamma=0.31),
        make("features"),
        make("features", random_state=1),
    ):
        with pytest.raises(ValueError, match=text):
            model.merge(other.fit(X))
    with pytest.raises(ValueError, match=text):
        make("features", random_state=1).fit(X).merge(make("features").fit(X))


# ---------------------------------------------------------------------- larger than memory


@pytest.mark.parametrize("kind", ["nystroem", "features"])
def test_a_memory_map_is_never_read_at_once(tmp_path, kind):
    n, columns = 120_000, 50
    source = np.random.default_rng(3).normal(size=(2000, columns)) * 0.8 ** np.arange(columns)
    on_disk = np.memmap(tmp_path / "points", dtype=np.float64, mode="w+", shape=(n, columns))
    for start in range(0, n, 2000):
        on_disk[start : start + 2000] = source * (1.0 + start / n)
    on_disk.flush()
    points = np.memmap(tmp_path / "points", dtype=np.float64, mode="r", shape=(n, columns))
    options = {"rank": 20, "gamma": 0.1, "eigen_solver": kind}
    model = KernelPCA(2, kernel="rbf", random_state=0, **options)
    model.fit(np.array(points[:500]))  # compile first
    tracemalloc.start()
    try:
        model.fit(points)
        scores = model.transform(points[:100])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * points.nbytes, (peak, points.nbytes)
    in_memory = KernelPCA(2, kernel="rbf", random_state=0, **options).fit(np.array(points))
    assert np.array_equal(in_memory.eigenvalues_, model.eigenvalues_)
    assert np.array_equal(in_memory.transform(points[:100]), scores)
    assert in_memory.offset_ == model.offset_
    # A stream needs even less: one block, and the moments.
    options |= {"landmarks": model.X_fit_} if kind == "nystroem" else {}
    reader = KernelPCA(2, kernel="rbf", random_state=0, **options)
    tracemalloc.start()
    try:
        for start in range(0, n, 2000):
            reader.partial_fit(points[start : start + 2000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * points.nbytes, (peak, points.nbytes)
    np.testing.assert_allclose(reader.eigenvalues_, model.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(reader.transform(points[:100]), scores, atol=1e-10)


# ---------------------------------------------------------------------- errors


@every_kind
def test_blocks_of_other_points(kind):
    model = make(kind).partial_fit(X[:100])
    values = model.eigenvalues_.copy()
    with pytest.raises(ValueError, match="X has 2 features, but KernelPCA is expecting 3"):
        model.partial_fit(X[100:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 3), np.nan))
    with pytest.raises(ValueError, match="non-negative"):
        model.partial_fit(X[:5], sample_weight=-np.ones(5))
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.partial_fit(X[:5], sample_weight=np.zeros(5))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.partial_fit(X[:0])
    assert np.array_equal(model.eigenvalues_, values)  # the fitted state is unchanged
    same_model(make(kind).fit(X), model.partial_fit(X[100:]))


def test_a_first_block_that_is_too_small():
    model = KernelPCA(3, kernel="rbf", eigen_solver="nystroem", rank=50)
    text = r"rank=50 landmarks cannot be chosen among 20 points; request fewer, or use more points"
    with pytest.raises(
        ValueError, match=text + r" \(partial_fit chooses them from the first block"
    ):
        model.partial_fit(X[:20])
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.partial_fit(X[:50])
    model.partial_fit(X[50:60])  # later blocks may be small
    assert model._components.rows == 60


@pytest.mark.parametrize("solver", ["dense", "krylov", "power", "arpack", "randomized"])
def test_exact_solvers_do_not_stream(solver):
    model = KernelPCA(2, eigen_solver=solver)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as raised:
        model.partial_fit(X)
    assert str(raised.value.__cause__) == (
        "partial_fit needs eigen_solver='nystroem' or 'features', which store moments "
        f"instead of the points; {solver!r} needs all points at once"
    )


def test_matrices_do_not_stream():
    model = KernelPCA(2, kernel="precomputed", eigen_solver="nystroem")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as raised:
        model.partial_fit(RBF()(X[:50]))
    assert "needs points and does not support kernel='precomputed'" in str(raised.value.__cause__)


@every_kind
def test_what_a_stream_does_not_know(kind):
    model = make(kind).partial_fit(X)
    for method in (model.decision_function, model.is_outlier):
        with pytest.raises(NotFittedError, match="there is no outlier threshold"):
            method(Z)
    assert model.score_samples(Z).shape == (50,)
    assert not hasattr(model, "eigenvectors_")
    text = model.summary()
    assert text.startswith("Kernel PCA of 600 points, 5 components")
    if kind == "landmarks":
        with pytest.raises(ValueError, match="does not store its training points"):
            model.contributions()
        assert model.contributions(Z).shape == (5, 3)


def test_the_inverse_transform_does_not_survive_a_block():
    model = make("landmarks", fit_inverse_transform=True).fit(X)
    assert model.inverse_transform(model.transform(Z)).shape == (50, 3)
    model.partial_fit(Z)
    with pytest.raises(NotFittedError):
        model.inverse_transform(model.transform(Z))


def test_a_solver_object_streams():
    for solver in (LowRankEigen(landmarks=LANDMARKS), FourierEigen(rank=80, random_state=0)):
        name = "landmarks" if isinstance(solver, LowRankEigen) else "features"
        model = KernelPCA(5, kernel="rbf", gamma=0.3, eigen_solver=solver)
        same_model(make(name).fit(X), stream(model, np.array_split(X, 5)))


def test_a_stream_says_what_it_does(capsys):
    make("landmarks", verbose=1).partial_fit(np.tile(X, (120, 1)))
    out = capsys.readouterr().out
    assert "[KernelPCA] 32768 of 72000 points" in out or "of 72000 points" in out
