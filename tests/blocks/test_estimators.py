"""Test estimators on blocks: same results as on arrays, bit-for-bit identical everywhere."""

import operator
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    SVC,
    Blocks,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    OneClassSVM,
    ParzenDensity,
)
from mercer.blocks import with_targets

da = pytest.importorskip("dask.array")
from block_models import (  # noqa: E402
    LANDMARKS,
    MODELS,
    NUMBERS,
    PAIRS,
    ROWS,
    THREE,
    TWO,
    WEIGHTED,
    WEIGHTS,
    X,
    fitted,
    n,
    on_dask,
)


@pytest.mark.parametrize("name", MODELS)
def test_blocks_agree_with_the_plain_estimator(name):
    _, y, answer = MODELS[name]
    plain, blocked = fitted(name, X, y), fitted(name, Blocks.of(X, ROWS), y)
    expected = getattr(plain, answer)(X)
    found = getattr(blocked, answer)(X)
    assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
    for learned in ("alpha_", "best_score_", "eigenvalues_", "intercept_", "component_indices_"):
        if hasattr(plain, learned):
            np.testing.assert_allclose(getattr(blocked, learned), getattr(plain, learned), 1e-8)
    assert blocked.n_features_in_ == 3
    assert clone(blocked).get_params() is not None


@pytest.mark.parametrize("name", MODELS)
def test_dask_has_the_same_bits_as_memory(name):
    _, y, answer = MODELS[name]
    here = fitted(name, Blocks.of(X, ROWS), y)
    there = fitted(name, on_dask(X), on_dask(y))
    assert np.array_equal(getattr(here, answer)(X), getattr(there, answer)(X))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_in_blocks(name):
    _, y, answer = MODELS[name]
    more = [] if y is not None else [None]
    plain = fitted(name, X, y, *more, WEIGHTS)
    here = fitted(name, Blocks.of(X, ROWS), y, *more, WEIGHTS)
    there = fitted(name, on_dask(X), on_dask(y), *more, on_dask(WEIGHTS))
    expected = getattr(plain, answer)(X)
    found = getattr(here, answer)(X)
    assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
    assert np.array_equal(found, getattr(there, answer)(X))


@pytest.mark.parametrize("name", MODELS)
def test_answers_to_blocks_are_lazy_blocks(name):
    _, y, answer = MODELS[name]
    model = fitted(name, X, y)
    expected = getattr(model, answer)(X)
    lazy = getattr(model, answer)(on_dask(X))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12, atol=1e-12)
    blocks = getattr(model, answer)(Blocks.of(X, ROWS))
    assert isinstance(blocks, Blocks)
    np.testing.assert_allclose(blocks.to_array(), expected, rtol=1e-12, atol=1e-12)
    parts = list(blocks)
    assert [len(part) for part in parts] == [400, 400, 400, 300]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_fitted_in_blocks_is_plain(name, tmp_path):
    _, y, answer = MODELS[name]
    model = fitted(name, on_dask(X), on_dask(y))
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert np.array_equal(getattr(loaded, answer)(X), getattr(model, answer)(X))


@pytest.mark.parametrize("name", ["logistic", "logistic-three"])
def test_labels_and_certificates(name):
    _, y, _ = MODELS[name]
    plain, blocked = fitted(name, X, y), fitted(name, on_dask(X), on_dask(y))
    assert np.array_equal(blocked.classes_, plain.classes_)
    assert np.array_equal(blocked.predict(on_dask(X)).compute(), plain.predict(X))
    a, b = plain.report_.certificate, blocked.report_.certificate
    for number in ("objective", "left out", "trace left"):
        np.testing.assert_allclose(b[number], a[number], rtol=1e-6)
    assert b["gap"] <= 1e-12 * b["objective"]
    assert blocked.report_.status is plain.report_.status


def test_far_away_minima_are_found_in_few_passes():
    """If the classes are separable, full Newton steps increase margins only by 1."""
    model = KernelLogisticRegression(1e6, gamma=0.3, solver="nystroem", rank=60)
    plain, blocked = clone(model).fit(X, THREE), clone(model).fit(Blocks.of(X, ROWS), THREE)
    a, b = plain.report_.certificate["objective"], blocked.report_.certificate["objective"]
    assert abs(a - b) <= 1e-8 * a
    assert blocked.report_.certificate["passes"] < 60


def test_labels_that_name_no_classes():
    model = KernelLogisticRegression(solver="nystroem", rank=9)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(Blocks.of(X), NUMBERS)
    with pytest.raises(ValueError, match=r"at least 2 classes.*belong to one class: \[1.0\]"):
        model.fit(Blocks.of(X), np.ones(n))
    with pytest.raises(ValueError, match="needs labels y"):
        model.fit(Blocks.of(X), None)
    with pytest.raises(ValueError, match=r"one label per row, but its shape is \(1500, 2\)"):
        model.fit(Blocks.of(X), PAIRS)


def test_a_fit_that_has_not_converged_warns():
    from sklearn.exceptions import ConvergenceWarning

    model = KernelLogisticRegression(solver="nystroem", rank=9, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 steps \(max_iter=1\)"):
        model.fit(Blocks.of(X), TWO)


def test_clusters_are_found_from_a_start_on_a_sample():
    model = KernelKMeans(4, solver="nystroem", **LANDMARKS)
    plain, blocked = clone(model).fit(X), clone(model).fit(on_dask(X))
    assert blocked.inertia_ <= 1.02 * plain.inertia_
    assert np.all(np.diff(blocked.inertia_history_) <= 1e-9 * blocked.inertia_)
    counts = np.bincount(blocked.predict(on_dask(X)).compute(), minlength=4)
    assert np.all(np.diff(counts) <= 0.05 * n)  # labels are numbered by decreasing cluster size
    assert not hasattr(blocked, "labels_")
    np.testing.assert_allclose(-blocked.score(X), blocked.inertia_, rtol=1e-6)


def test_an_empty_cluster_takes_the_farthest_point():
    far = np.full((4, 3), 100.0) + np.arange(4)[:, None]
    start = np.vstack([X[:2], far])
    model = KernelKMeans(6, init=start, tol=0.0, solver="nystroem", **LANDMARKS)
    blocked = model.fit(Blocks.of(X, ROWS))
    assert np.isfinite(blocked.squared_norms_).sum() >= 5


def test_what_clusters_in_blocks_do_not_have():
    model = KernelKMeans(2, solver="nystroem", rank=9)
    with pytest.raises(ValueError, match="not possible for Blocks; use algorithm='lloyd'"):
        clone(model).set_params(algorithm="hartigan").fit(Blocks.of(X))
    with pytest.raises(ValueError, match="init must be points, not labels"):
        clone(model).set_params(init=np.zeros(n, dtype=int)).fit(Blocks.of(X))


def test_a_density_is_all_of_its_points():
    from mercer import MemoryBudgetError

    blocks = Blocks.of(np.broadcast_to(0.0, (10**10, 3)), rows=10**9)
    with pytest.raises(MemoryBudgetError, match="all 10000000000 rows in one array needs"):
        ParzenDensity().fit(blocks)


def test_standard_deviations_after_blocks():
    plain, blocked = fitted("ridge", X, NUMBERS), fitted("ridge", Blocks.of(X, ROWS), NUMBERS)
    for a, b in zip(
        plain.predict(X[:9], return_std=True), blocked.predict(X[:9], return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_pipeline_in_blocks():
    pipe = make_pipeline(Nystroem(gamma=0.3, n_components=40), KernelRidge(solver="nystroem"))
    pipe.set_params(kernelridge__rank=40)
    here = pipe.fit(Blocks.of(X, ROWS), NUMBERS).predict(X)
    there = clone(pipe).fit(on_dask(X), on_dask(NUMBERS)).predict(X)
    assert np.array_equal(here, there)
    np.testing.assert_allclose(here, clone(pipe).fit(X, NUMBERS).predict(X), rtol=1e-8, atol=1e-8)


def test_a_search_over_a_grid_finds_what_blocks_are_fitted_with():
    from sklearn.model_selection import GridSearchCV

    model = KernelRidge(kernel="rbf", gamma=0.3, solver="nystroem", rank=20)
    pipe = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipe, {"kernelridge__alpha": [0.1, 10.0]}, cv=2).fit(X, NUMBERS)
    best = search.best_estimator_["kernelridge"]
    there = clone(best).fit(on_dask(X), on_dask(NUMBERS))
    here = clone(best).fit(X, NUMBERS)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-8, atol=1e-10)


def test_a_pass_says_where_it_is(capsys):
    fitted("pca", Blocks.of(X, ROWS), None, verbose=1, n_jobs=1)
    assert "[KernelPCA] 1200 of 1500 points" in capsys.readouterr().out
    fitted("pca", on_dask(X), None, verbose=1)
    assert "[KernelPCA] a pass over 4 blocks with Dask" in capsys.readouterr().out


def test_fit_transform_of_dask_is_lazy():
    for name in ("pca", "nystroem"):
        lazy = clone(MODELS[name][0]).fit_transform(on_dask(X))
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(
            lazy.compute(), fitted(name, on_dask(X), None).transform(X), rtol=1e-12, atol=1e-12
        )


def test_float32_stays_float32():
    model = fitted("pca", on_dask(X.astype(np.float32)), None)
    assert model.transform(on_dask(X.astype(np.float32))).dtype == np.float32


# ---------------------------------------------------------------------- errors


def test_what_has_no_form_in_blocks_names_what_has():
    with pytest.raises(TypeError, match=r"Perceptron does not support .*KernelPCA, Kern"):
        KernelPerceptron().fit(Blocks.of(X), TWO)


def test_what_needs_k_in_one_place():
    with pytest.raises(ValueError, match=r"landmarks: set solver='nystroem'.*needs all points"):
        KernelRidgeCV(kernel="rbf").fit(Blocks.of(X), NUMBERS)
    with pytest.raises(ValueError, match=r"solver='cg' .*; solver='cholesky' needs K in one array"):
        KernelRidge(solver="cholesky").fit(Blocks.of(X), NUMBERS)
    with pytest.raises(ValueError, match=r"eigen_solver='krylov' .*; eigen_solver='dense' needs"):
        KernelPCA(2, eigen_solver="dense").fit(Blocks.of(X))


def test_the_plan_of_points_in_blocks_tells_the_law():
    model = KernelPCA(10, kernel="rbf")
    found = model.plan(da.zeros((10**6, 20), chunks=(10**5, 20)))
    assert found.chosen.storage == "tiled"
    assert "cores, krylov: about" in str(found)
    assert "every worker stores 175.5 MiB of points" in str(found)
    assert "distributed" not in str(model.plan(np.zeros((10**4, 20))))


def test_points_that_are_too_large_to_gather():
    from mercer import MemoryBudgetError

    with pytest.raises(MemoryBudgetError, match="all 1500 rows in one array needs"):
        KernelPCA(2, max_memory=10_000).fit(on_dask(X))


def test_points_that_are_too_large_to_broadcast(monkeypatch):
    from mercer import MemoryBudgetError
    from mercer.blocks import _dask_blocks

    monkeypatch.setattr(_dask_blocks, "_min_worker_memory", lambda: 100_000)
    with pytest.raises(MemoryBudgetError, match=r"each worker would need .* more than half of"):
        KernelPCA(2, kernel="rbf").fit(on_dask(X))


def test_groups_of_tiles_depend_on_the_number_of_points_alone():
    from mercer.gram._distributed import TILE_COLUMNS, _groups

    for count in (1, 383, 385, 5000, 10**5, 10**6):
        groups = _groups(count)
        assert groups[0][0] == 0
        assert groups[-1][1] == -(-count // TILE_COLUMNS) * TILE_COLUMNS
        assert all(a[1] == b[0] for a, b in pairwise(groups))
        assert len(groups) <= 64
        work = [b**2 - a**2 for a, b in groups]
        assert count < 10**5 or max(work) <= 1.5 * np.mean(work)


def test_targets_are_needed():
    for given in ((), (None,)):
        with pytest.raises(ValueError, match="KernelRidge needs targets y"):
            KernelRidge(solver="nystroem").fit(Blocks.of(X), *given)


def test_single_errors_are_not_stored():
    with pytest.raises(ValueError, match="store_cv_results must be False"):
        KernelRidgeCV(solver="nystroem", store_cv_results=True).fit(Blocks.of(X), NUMBERS)


def test_partial_fit_takes_arrays():
    with pytest.raises(TypeError, match=r"KernelPCA.partial_fit takes arrays"):
        KernelPCA(2, eigen_solver="nystroem").partial_fit(Blocks.of(X))


def test_values_of_a_kernel_are_no_points():
    with pytest.raises(ValueError, match="does not support a precomputed matrix in blocks"):
        KernelPCA(2, kernel="precomputed").fit(Blocks.of(X))


def test_one_column_is_no_points():
    with pytest.raises(ValueError, match=r"X in blocks must have two .* got shape \(1500,\)"):
        KernelPCA(2, eigen_solver="nystroem").fit(Blocks.of(X[:, 0]))


def test_other_methods_take_arrays():
    model = fitted("pca", X, None)
    with pytest.raises(TypeError, match=r"KernelPCA.inverse_transform does not support data"):
        model.inverse_transform(on_dask(X))
    with pytest.raises(TypeError, match="request only the predictions"):
        fitted("ridge", X, NUMBERS).predict(on_dask(X), return_std=True)


def test_bad_collections_of_dask():
    model = MODELS["pca"][0]
    D = on_dask(X)
    with pytest.raises(ValueError, match=r"chunks of X have unknown sizes.*compute_chunk_sizes"):
        clone(model).fit(D[D[:, 0] > 0])
    with pytest.raises(ValueError, match=r"columns of X are in 3 chunks.*rechunk\(\{1: -1\}\)"):
        clone(model).fit(D.rechunk({1: 1}))
    with pytest.raises(ValueError, match=r"block 1 of 3 of X has no rows; the usual cause"):
        clone(model).fit(D.rechunk(((400, 0, 1100), 3)))
    with pytest.raises(ValueError, match="X has 3 axes"):
        clone(model).fit(D[:, :, None])
    bad = X.copy()
    bad[777, 1] = np.nan
    with pytest.raises(ValueError, match=r"in block 1, row 377, column 1 \(row 777 of all\)"):
        clone(model).fit(on_dask(bad))
    wide = da.concatenate([da.from_array(X[:400], chunks=(400, 3))] * 2)
    lies = wide.map_blocks(lambda a: a[:, :2], dtype=float, chunks=wide.chunks)
    with pytest.raises(ValueError, match=r"block \d has the shape \(400, 2\), but the first block"):
        clone(model).fit(lies)
    with pytest.raises(
        ValueError, match="y is split into 1 blocks, and X into 4; block 0 has 1500"
    ):
        clone(MODELS["ridge"][0]).fit(D, da.from_array(NUMBERS))


def test_a_data_frame_of_dask():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=NUMBERS)
    table = dd.from_pandas(frame, npartitions=3)
    model = clone(MODELS["ridge"][0]).fit(table[["a", "b", "c"]], table["y"])
    expected = fitted("ridge", X, NUMBERS).predict(X)
    np.testing.assert_allclose(model.predict(frame[["a", "b", "c"]]), expected, rtol=1e-10)
    lazy = model.predict(table[["a", "b", "c"]])
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-10)
    empty = table[table["a"] > 100.0]
    with pytest.raises(ValueError, match="block 0 of 3 of X has no rows"):
        clone(MODELS["ridge"][0]).fit(empty[["a", "b", "c"]], empty["y"])
    with pytest.raises(ValueError, match=r"block \d contains values that are not numbers"):
        clone(MODELS["pca"][0]).fit(table.assign(word="no")[["a", "word"]])


def test_a_machine_is_not_gathered_silently():
    from mercer import MemoryBudgetError

    with pytest.raises(ValueError, match="set solver='core-set'; solver="):
        SVC().fit(on_dask(X), on_dask(NUMBERS > 0))
    with pytest.raises(MemoryBudgetError, match="the features of 1500 points on 60 landmarks"):
        fitted("svc", on_dask(X), on_dask(THREE), max_memory=200_000)
    assert fitted("svc", on_dask(X), on_dask(TWO)).predict(on_dask(X)).compute()[0] in ("yes", "no")


@pytest.mark.parametrize("name", ["ridge", "logistic-three"])
def test_scores_of_blocks(name):
    _, y, _ = MODELS[name]
    model = fitted(name, Blocks.of(X, ROWS), y)
    assert model.score(Blocks.of(X, ROWS), Blocks.of(y, ROWS)) == model.score(X, y)
    assert model.score(on_dask(X), y) == model.score(X, y)


def test_scores_without_targets():
    blocks = Blocks.of(X, ROWS)
    for model in (KernelPCA(2, eigen_solver="nystroem", rank=20), ParzenDensity()):
        assert model.fit(blocks).score(blocks) == pytest.approx(model.score(X), rel=1e-12)


def test_labels_of_clusters_in_blocks_are_lazy():
    model = KernelKMeans(2, solver="nystroem", rank=20)
    labels = model.fit_predict(Blocks.of(X, ROWS))
    assert isinstance(labels, Blocks)
    assert np.array_equal(labels.to_array(), model.predict(X))


def test_one_class_in_blocks():
    model = OneClassSVM(solver="nystroem", rank=20).fit(Blocks.of(X, ROWS))
    for answer in ("predict", "decision_function", "score_samples"):
        found = getattr(model, answer)(on_dask(X))
        np.testing.assert_allclose(found.compute(), getattr(model, answer)(X), atol=1e-12)


def test_points_may_be_named():
    model = fitted("ridge", X, NUMBERS)
    assert isinstance(model.predict(X=Blocks.of(X, ROWS)), Blocks)
    assert isinstance(model.predict(X=on_dask(X)), da.Array)


def test_columns_of_a_data_frame_of_dask_are_compared_and_what_is_missing_is_named():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    table = dd.from_pandas(frame, npartitions=3)
    model = clone(MODELS["ridge"][0]).fit(table, NUMBERS)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="X has the columns c, b, a, but KernelRidge was fitted"):
        model.predict(table[["c", "b", "a"]])
    frame = frame.astype("Float64")
    frame.loc[777, "b"] = pd.NA
    with pytest.raises(ValueError, match=r"X contains <NA> in block 1, row 277, column 1"):
        model.fit(dd.from_pandas(frame, npartitions=3), NUMBERS)


def test_answers_in_blocks_are_arrays():
    pytest.importorskip("pandas")
    model = KernelPCA(2, eigen_solver="nystroem", rank=20).set_output(transform="pandas").fit(X)
    with pytest.raises(TypeError, match=r"set_output.* requests a DataFrame; set it to"):
        model.transform(Blocks.of(X, ROWS))


def test_targets_of_dask_points_must_not_be_blocks_in_memory():
    blocks = with_targets(on_dask(X), Blocks.of(NUMBERS, ROWS))
    with pytest.raises(ValueError, match="X is a Dask collection, but y or sample_weight is <Arr"):
        blocks.reduce(length_of_block, operator.add)


def length_of_block(rows):
    return len(rows.X)


def test_a_generator_gives_a_seed_without_being_advanced():
    fits = []
    for _ in range(2):
        state = np.random.RandomState(3)
        before = state.get_state(legacy=False)["state"]["key"].copy()
        model = KernelPCA(2, eigen_solver="nystroem", landmarks="uniform", rank=5)
        model.set_params(random_state=state).fit(Blocks.of(X, ROWS))
        fits.append(model.eigenvalues_)
    assert np.array_equal(*fits) and np.array_equal(
        before, np.random.RandomState(3).get_state(legacy=False)["state"]["key"]
    )


def test_a_learned_inverse_needs_all_points():
    with pytest.raises(ValueError, match="fit_inverse_transform=True needs all points at once; fo"):
        KernelPCA(2, fit_inverse_transform=True).fit(Blocks.of(X, ROWS))


def test_feature_maps_of_blocks_have_column_names():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = mercer.RBFSampler(n_components=4, random_state=0).fit(Blocks.of(table, ROWS))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
