"""Every estimator of the zoo, fitted to every type of points, can be saved and loaded.

Each model is saved, loaded without pickle, and compared bit for bit.  The options that change the
fitted state are varied: the choice of landmarks, and the budget of online learners.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import zoo
from fitted import answers, is_classifier
from sklearn.base import clone

import mercer
from mercer._core import take
from mercer.kernels import (
    RBF,
    BagOfWords,
    Equal,
    Jaccard,
    Linear,
    Mallows,
    MeanOf,
    MinMax,
    Precomputed,
    Select,
    Spectrum,
    WeisfeilerLehman,
    White,
)

TRAINED, NEW = 18, 5  # numbers of points
KINDS_EACH = 5  # number of types of points that each estimator is fitted to, in rotation


@dataclass(frozen=True)
class Kind:
    """Points of one type, with a kernel for them."""

    kernel: Any
    points: Any
    new: Any


def _strings(n, seed):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), size=6)) for _ in range(n)]


def _kinds():
    rng = np.random.default_rng(0)
    X, Z = (np.abs(rng.normal(size=(n, 3))) for n in (TRAINED, NEW))
    X[:, 2], Z[:, 2] = 0.0, 0.0

    def both(make):
        return make(TRAINED, 0), make(NEW, 1)

    def objects(domain):
        return both(lambda n, seed: zoo.OBJECTS[domain](np.random.default_rng(seed), n))

    def table(n, seed):
        return pd.DataFrame({"s": _strings(n, seed), "a": (X, Z)[seed][:, 0]})

    strings, graphs = both(_strings), both(lambda n, s: zoo.graphs(n, np.random.default_rng(s)))
    tables, mixed = both(table), Select(Spectrum(2), "s") * Select(RBF(1.0), ["a"])
    K = RBF(1.0)(X)
    return {
        "vectors": Kind(RBF(1.0), X, Z),
        "float32": Kind(RBF(1.0), X.astype(np.float32), Z.astype(np.float32)),
        "sparse rows": Kind(RBF(1.0), sp.csr_array(X), sp.csr_array(Z)),
        "sparse columns": Kind(Linear(), sp.csc_matrix(X), sp.csc_matrix(Z)),
        "strings": Kind(Spectrum(2), *strings),
        "array of strings": Kind(Spectrum(2), *map(np.array, strings)),
        "column": Kind(Spectrum(2), *map(pd.Series, strings)),
        "sets": Kind(Jaccard(), *objects("sets")),
        "bags": Kind(MinMax(), *objects("bags")),
        "sets of vectors": Kind(MeanOf(RBF(1.0)), *objects("sets of vectors")),
        "texts": Kind(BagOfWords(), *objects("texts")),
        "graphs": Kind(WeisfeilerLehman(2), *graphs),
        "list of graphs": Kind(WeisfeilerLehman(1), *map(list, graphs)),
        "rankings": Kind(Mallows(), *objects("rankings")),
        "categories": Kind(Equal(), *objects("categories")),
        "table": Kind(mixed, *tables),
        "table of polars": Kind(mixed, *map(pl.from_pandas, tables)),
        "indices": Kind(Precomputed(K), np.arange(TRAINED), np.arange(NEW)),
        "matrix": Kind("precomputed", K, RBF(1.0)(Z, X)),
    }


KINDS = _kinds()
LANDMARKS = ("kmeans", "uniform", "user-supplied")


def _variants():
    """Return the estimators of the zoo that accept any kernel, with all relevant options."""
    found, known = {}, set()
    for model in zoo.ESTIMATORS:
        options = model.get_params()
        if "kernel" not in options or isinstance(options["kernel"], mercer.MultipleKernel):
            continue
        if isinstance(model, mercer.RFMRegressor | mercer.RFMClassifier):  # families of kernels
            continue
        model = clone(model).set_params(kernel=None if _is_process(model) else "rbf")
        solver = options.get("eigen_solver", options.get("solver"))
        varied = [{}]
        if solver == "nystroem" or isinstance(model, mercer.Nystroem):
            rank = {"rank": 4} if "rank" in options else {}
            varied = [{**rank, "landmarks": method} for method in LANDMARKS]
        if "budget" in options:
            varied = [{"budget": None}, {"budget": 6}]
        for more in varied:
            sort = (type(model), str(solver), *more.values())
            if sort in known:
                continue
            known.add(sort)
            # arrays of landmarks are set when the points are known
            shown = clone(model)
            shown.set_params(**{k: v for k, v in more.items() if v != "user-supplied"})
            shown_as = " ".join(repr(shown).split())
            found[f"{shown_as} {more.get('landmarks', '')}".strip()] = (shown, more)
    return found


def _is_process(model):
    return isinstance(model, (mercer.GaussianProcessRegressor, mercer.GaussianProcessClassifier))


VARIANTS = _variants()


def prepared(name, kind):
    """Return a model with the kernel for a type of points."""
    model, more = VARIANTS[name]
    model = clone(model)
    kernel = kind.kernel
    if isinstance(model, mercer.GaussianProcessRegressor) and kernel != "precomputed":
        kernel = kernel + White(0.1)
    model.set_params(kernel=kernel)
    if more.get("landmarks") == "user-supplied":
        rows = np.arange(4)
        model.set_params(landmarks=rows if kernel == "precomputed" else take(kind.points, rows))
    if _is_process(model):
        model.set_params(optimizer=None)
    return model


def targets(model, several):
    if is_classifier(model):
        return np.array(["a", "b", "c"])[np.arange(TRAINED) % (3 if several else 2)]
    y = np.sin(np.arange(TRAINED)) + 2.0
    return np.column_stack([y, y**2]) if several else y


def fitted(name, kind, several=False):
    """Return a fitted model, or None if this estimator does not accept these points."""
    with warnings.catch_warnings():
        # there are few points, and the fit itself is not tested here
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("ignore", category)
        try:
            model = prepared(name, kind)
            return model.fit(kind.points, targets(model, several))
        except (ValueError, TypeError, np.linalg.LinAlgError, mercer.MemoryBudgetError):
            return None


def check_round_trip(model, new, path):
    mercer.save(model, path)
    content, expected = path.read_bytes(), answers(model, new)
    for mmap in (False, True):
        again = mercer.load(path, mmap=mmap)
        assert vars(again).keys() == vars(model).keys()
        assert answers(again, new) == expected
    again = mercer.load(path)
    mercer.save(again, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", VARIANTS)
def test_fitted_models(name, tmp_path):
    count, first = 0, KINDS_EACH * list(VARIANTS).index(name)
    for kind in (*KINDS.values(), *KINDS.values())[first % len(KINDS) :][: len(KINDS)]:
        model = fitted(name, kind, several=bool(count % 2)) or fitted(name, kind)
        if model is not None:
            check_round_trip(model, kind.new, tmp_path / "model")
            count += 1
        if count == KINDS_EACH:
            break
    assert count >= 1


# ---------------------------------------------------------------------- models that go on learning

INCREMENTAL = [name for name, (model, _) in VARIANTS.items() if hasattr(model, "partial_fit")]
ONLINE = [name for name in INCREMENTAL if "budget" in VARIANTS[name][1]]


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "matrix"])
@pytest.mark.parametrize("name", ONLINE)
def test_online_learners_are_fitted_to_every_kind(name, kind):
    assert fitted(name, KINDS[kind]) is not None


@pytest.mark.parametrize("name", INCREMENTAL)
def test_learning_continues_after_loading(name, tmp_path):
    count = 0
    for kind in KINDS.values():
        whole, points = prepared(name, kind), kind.points
        points = points.tocsr() if sp.issparse(points) else points
        if not hasattr(whole, "partial_fit"):
            continue  # with a precomputed matrix, points cannot be added
        y, parts = targets(whole, False), (slice(0, 7), slice(7, 8), slice(8, TRAINED))
        first = {"classes": np.unique(y)} if is_classifier(whole) else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                interrupted = clone(whole)
                whole.partial_fit(take(points, parts[0]), y[parts[0]], **first)
                interrupted.partial_fit(take(points, parts[0]), y[parts[0]], **first)
            except (ValueError, TypeError):
                continue  # these landmarks are not valid for these points
            for rows in parts[1:]:
                mercer.save(interrupted, tmp_path / "model")
                interrupted = mercer.load(tmp_path / "model")
                for model in (whole, interrupted):
                    model.partial_fit(take(points, rows), y[rows])
        expected, found = answers(whole, kind.new), answers(interrupted, kind.new)
        del expected["summary"], found["summary"]  # the summaries contain times
        assert found == expected
        count += 1
    assert count >= (len(KINDS) - 1 if name in ONLINE else 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_nystroem_features(kind, landmarks, tmp_path):
    name = next(n for n in VARIANTS if n.startswith("Nystroem(") and n.endswith(landmarks))
    model = fitted(name, KINDS[kind])
    if landmarks == "kmeans":  # centroids are vectors
        assert (model is None) == (kind not in ("vectors", "float32"))
    elif kind != "matrix":
        assert model is not None
    if model is not None:
        check_round_trip(model, KINDS[kind].new, tmp_path / "model")
        again = mercer.load(tmp_path / "model")
        assert (again.component_indices_ is None) == (model.component_indices_ is None)


# ---------------------------------------------------------------------- required contents of a file


def test_retained_points_must_match_the_learner(tmp_path):
    model = fitted(ONLINE[0], KINDS["strings"])
    model._kept = model._kept[:-1]
    mercer.save(model, tmp_path / "model")
    with pytest.raises(mercer.ModelFileError, match="arrays of inconsistent sizes"):
        mercer.load(tmp_path / "model")


def test_shared_points_of_many_classes(tmp_path):
    """Each class refers to the training points, so that a large file has few distinct values."""
    sets = [{f"{i}", f"{i % 7}", "all"} for i in range(60)]
    model = mercer.GaussianProcessClassifier(Jaccard(), optimizer=None)
    model.fit(sets, np.arange(60) % 20)
    check_round_trip(model, sets[:3], tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.expansions_[0].points is again.expansions_[19].points


def test_functions_are_refused_by_name(tmp_path):
    model = mercer.KernelPerceptron(kernel=lambda x, z: float(x == z))
    model.fit(["a", "b", "a", "b"], [0, 1, 0, 1])
    with pytest.raises(TypeError, match=r"a function, but a file cannot contain code.*subclass of"):
        mercer.save(model, tmp_path / "model")
