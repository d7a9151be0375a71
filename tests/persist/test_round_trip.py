"""Every fitted model is restored bit for bit from a file, with all its methods."""

import json
import os
import subprocess
import sys
import typing
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import zoo
from fitted import LABELS, NEW, NUMBERS, THREE, X, answers, bits, fit, is_classifier
from hostile_files import Content
from sklearn.model_selection import KFold, StratifiedKFold

import mercer
from mercer import SVC, Expansion, KernelPCA, KernelRidge, compress, load, save, to_primal
from mercer.kernels import RBF, Jaccard, Linear, Polynomial, Select, Spectrum, node
from mercer.persist._encoder import Encoder
from mercer.persist._schema_checks import has_type

rng = np.random.default_rng(0)


def state(model):
    """Return the complete state of a model for bit-for-bit comparison."""
    encoder = Encoder()
    values = json.dumps(encoder.encode(model))
    arrays = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in encoder.arrays.items()}
    return values, arrays


def check(model, tmp_path, points=NEW):
    """Save and load a model; compare its state, the bytes of a second file, and its outputs."""
    path, again = tmp_path / "model.safetensors", tmp_path / "again.safetensors"
    save(model, path)
    save(model, again)
    assert path.read_bytes() == again.read_bytes()
    for mmap in (False, True):
        loaded = load(path, mmap=mmap)
        assert type(loaded) is type(model)
        assert state_of(loaded, mmap) == state_of(model, mmap)
        if hasattr(model, "fit"):
            assert vars(loaded).keys() == vars(model).keys()
            assert answers(loaded, points) == answers(model, points)
        if not mmap:
            save(loaded, again)
            assert path.read_bytes() == again.read_bytes()
    return load(path)


def state_of(model, mmap):
    values, arrays = state(model)
    return (values.replace(', "frozen": true', ""), arrays) if mmap else (values, arrays)


@pytest.mark.parametrize("model", zoo.ESTIMATORS, ids=str)
def test_every_estimator(model, tmp_path):
    check(fit(model), tmp_path)


@pytest.mark.parametrize("model", zoo.ESTIMATORS, ids=str)
def test_several_classes_or_targets(model, tmp_path):
    y = THREE if is_classifier(model) else np.c_[NUMBERS, X[:, 1]]
    try:
        fitted = fit(model, y)
    except ValueError:
        pytest.skip("takes one target")
    check(fitted, tmp_path)


def kernels_that_can_be_stored():
    refused = ("Callable", "RankOne", "rough", "words")
    return [e for e in zoo.KERNELS if not any(word in e.id for word in refused)]


@pytest.mark.parametrize("entry", kernels_that_can_be_stored(), ids=lambda e: e.id)
def test_every_kernel_and_its_points(entry, tmp_path):
    points = entry.points(9)
    f = Expansion(entry.kernel, points, rng.normal(size=(9, 2)))
    loaded = check(f, tmp_path)
    new = entry.points(5, seed=1)
    assert loaded.kernel == f.kernel and hash(loaded.kernel) == hash(f.kernel)
    assert bits(loaded(new)) == bits(f(new))
    assert bits(loaded.kernel(new)) == bits(f.kernel(new))
    if entry.psd:
        assert bits(loaded.norm()) == bits(f.norm())


DIFFERENT = [e for e in kernels_that_can_be_stored() if e.domain not in ("vectors", "indices")]


MAKES = {
    "SVC": lambda k: SVC(kernel=k),
    "ridge": lambda k: KernelRidge(kernel=k, fit_intercept=True),
    "PCA": lambda k: KernelPCA(2, kernel=k),
    "GP": lambda k: mercer.GaussianProcessRegressor(k + zoo.White(0.1), optimizer=None),
    "neighbours": lambda k: mercer.KernelKNeighborsClassifier(2, kernel=k),
    "Nystroem": lambda k: mercer.Nystroem(kernel=k, n_components=4),
    "logistic": lambda k: mercer.KernelLogisticRegression(kernel=k),
}
# every kernel with two estimators, so that each estimator has many kernels
PAIRS = [(e, list(MAKES)[(i + j) % 7]) for i, e in enumerate(DIFFERENT) for j in (0, 3)]


@pytest.mark.parametrize(("entry", "name"), PAIRS, ids=[f"{e.id} {name}" for e, name in PAIRS])
def test_estimators_of_structured_points(entry, name, tmp_path):
    points, y = entry.points(9), np.arange(9) % 2
    try:
        model = fit(MAKES[name](entry.kernel), y, points)
    except (ValueError, np.linalg.LinAlgError, TypeError):
        pytest.skip("nothing to be learned from these points")
    check(model, tmp_path, entry.points(4, seed=1))


# ---------------------------------------------------------------------- other states of a model


def strings(n):
    return ["".join(rng.choice(list("ACGT"), size=6)) for _ in range(n)]


def table(n, seed=0):
    r = np.random.default_rng(seed)
    return pd.DataFrame({"seq": strings(n), "a": r.normal(size=n), "b": r.normal(size=n)})


def indefinite_features():
    with warnings.catch_warnings(action="ignore"):
        return fit(mercer.Nystroem(kernel="sigmoid", gamma=2.0, coef0=-1.0, n_components=8))


MIXED = Select(Spectrum(2), "seq") * Select(RBF(1.0), ["a", "b"])
GPR = mercer.GaussianProcessRegressor
STATES = {
    "compressed": lambda: compress(fit(KernelRidge(kernel="rbf")), 10),
    "compressed SVC": lambda: compress(fit(SVC(), THREE), 10),
    "compressed PCA": lambda: compress(fit(KernelPCA(2, kernel="rbf")), 10),
    "primal": lambda: to_primal(fit(KernelRidge(kernel="poly", degree=2))),
    "primal SVC": lambda: to_primal(fit(SVC(kernel="poly", degree=2), THREE)),
    "primal strings": lambda: to_primal(fit(SVC(kernel=Spectrum(2)), None, strings(40))),
    "inverse": lambda: fit(KernelPCA(2, kernel="rbf", fit_inverse_transform=True)),
    "GP by cg": lambda: fit(GPR(1.0 * RBF(1.0), alpha=0.1, solver="cg", optimizer=None)),
    "GP by nystroem": lambda: fit(GPR(1.0 * RBF(1.0), alpha=0.1, solver="nystroem", rank=10)),
    "GP, noise for each": lambda: fit(GPR(RBF(1.0), alpha=np.linspace(0.1, 1, 40))),
    "precomputed": lambda: fit(SVC(kernel="precomputed"), None, X @ X.T),
    "precomputed ridge": lambda: fit(KernelRidge(kernel="precomputed"), None, X @ X.T),
    "indices": lambda: fit(SVC(kernel=mercer.kernels.Precomputed(X @ X.T)), None, np.arange(40)),
    "kernel as text": lambda: fit(SVC(kernel="RBF(2.0) + Linear()")),
    "sparse": lambda: fit(SVC(), None, sp.csr_array(X)),
    "sparse matrix": lambda: fit(KernelRidge(kernel="rbf"), None, sp.csr_matrix(X)),
    "float32": lambda: fit(KernelRidge(kernel="rbf"), None, X.astype(np.float32)),
    "Fortran": lambda: fit(KernelRidge(kernel="rbf"), None, np.asfortranarray(X)),
    "numpy parameter": lambda: fit(
        KernelRidge(kernel=RBF(np.float64(2.0)), alpha=np.float32(0.5)), None, X.astype(np.float32)
    ),
    "RandomState": lambda: fit(mercer.RBFSampler(random_state=np.random.RandomState(3))),
    "RandomState used": lambda: fit(
        mercer.KernelPerceptron(random_state=np.random.RandomState(3), shuffle=True)
    ),
    "splitter": lambda: fit(mercer.KernelLogisticRegressionCV(Cs=3, cv=KFold(2))),
    "another splitter": lambda: fit(
        mercer.KernelLogisticRegressionCV(Cs=3, cv=StratifiedKFold(2, shuffle=True, random_state=1))
    ),
    "class weights": lambda: fit(SVC(class_weight={"yes": 2.0, "no": np.int64(1)})),
    "names": lambda: fit(SVC(), None, pd.DataFrame(X, columns=list("abc"))),
    "table": lambda: fit(SVC(kernel=MIXED), None, table(40)),
    "taken from a table": lambda: fit(SVC(kernel=MIXED), None, table(80).iloc[::2]),
    "table of polars": lambda: fit(SVC(kernel=MIXED), None, pl.from_pandas(table(40))),
    "categories": lambda: fit(
        SVC(kernel=Select(Spectrum(1), "seq")), None, table(40).astype({"b": "float32"})
    ),
    "column": lambda: fit(SVC(kernel=Spectrum(2)), None, table(40)["seq"]),
    "column of polars": lambda: fit(SVC(kernel=Spectrum(2)), None, pl.Series("seq", strings(40))),
    "strings in an array": lambda: fit(SVC(kernel=Spectrum(2)), None, np.array(strings(40))),
    "objects in an array": lambda: fit(
        SVC(kernel=Spectrum(2)), None, np.array(strings(40), dtype=object)
    ),
    "sets": lambda: fit(SVC(kernel=Jaccard()), None, [{i % 5, "b", (1, i % 3)} for i in range(40)]),
    "graphs": lambda: fit(
        SVC(kernel=mercer.kernels.WeisfeilerLehman(1)), None, zoo.graphs(40, rng)
    ),
    "one graph each": lambda: fit(
        SVC(kernel=mercer.kernels.WeisfeilerLehman(1)), None, list(zoo.graphs(40, rng))
    ),
    "labels of objects": lambda: fit(SVC(), np.array(["a", "b"], dtype=object)[np.arange(40) % 2]),
    "dates": lambda: fit(SVC(), np.array(["2020-01-01", "2021-01-01"] * 20, dtype="M8[D]")),
    "indefinite landmarks": indefinite_features,
    "landmarks": lambda: fit(KernelRidge(kernel="rbf", solver="nystroem", landmarks=X[:5].copy())),
    "their kernel": lambda: fit(SVC(kernel=zoo.GPKernel(2.0) * zoo.ExpSineSquared())),
    "Callable's absence": lambda: fit(
        SVC(kernel=mercer.kernels.LocalAlignment()), None, strings(40)
    ),
    "expansion of pairs": lambda: fit(SVC(), THREE).expansion_,
    "Primal": lambda: Expansion(Polynomial(2), X, NUMBERS).to_primal(),
    "not fitted": lambda: KernelRidge(alpha=3.0),
}


@pytest.mark.parametrize("name", STATES)
def test_other_states(name, tmp_path):
    model = STATES[name]()
    points = {
        "table": table(7, 1),
        "taken from a table": table(7, 1),
        "categories": table(7, 1),
        "table of polars": pl.from_pandas(table(7, 1)),
        "sets": [{1, "b"}, {2}, set()],
        "precomputed": NEW @ X.T,
        "precomputed ridge": NEW @ X.T,
        "indices": np.arange(7),
        "names": pd.DataFrame(NEW, columns=list("abc")),
    }.get(name, NEW)
    if "graph" in name:
        points = zoo.graphs(5, np.random.default_rng(1))
    if any(word in name for word in ("strings", "column", "objects in", "Callable")):
        points = strings(5)
    check(model, tmp_path, points)


# ---------------------------------------------------------------------- what a loaded model can do


def loaded(model, tmp_path, **options):
    save(model, tmp_path / "m")
    return load(tmp_path / "m", **options)


def test_what_is_shared_is_shared_again(tmp_path):
    model = fit(KernelRidge(kernel="rbf"))
    assert model.X_fit_ is model.expansion_.points
    again = loaded(model, tmp_path)
    assert again.X_fit_ is again.expansion_.points
    assert again.kernel_ is again.expansion_.kernel
    assert np.shares_memory(again.dual_coef_, again.expansion_.coefficients)
    assert (tmp_path / "m").stat().st_size < 40 * 4 * 8 + 5000  # every array is stored once


def test_views_of_the_same_memory_in_other_orders(tmp_path):
    A = np.arange(24.0).reshape(2, 3, 4)
    for view in (A, A.T, A.transpose(1, 0, 2), A[:, ::2], A[:, :, ::-1], A[:, :0], A[0, 0, 0]):
        f = Expansion(Linear(), np.ones((2, 1)), np.ones(2))
        object.__setattr__(f, "points", [view, view])
        B = loaded(f, tmp_path).points[1]
        assert B.shape == view.shape and bits(B) == bits(view)
        if view.size and (view.flags.c_contiguous or view.flags.f_contiguous):
            assert B.strides == view.strides


@pytest.mark.parametrize("mmap", [False, True])
def test_a_loaded_model_goes_on_learning(tmp_path, mmap):
    for kind in (mercer.KernelPerceptron, mercer.KernelRecursiveLeastSquares, KernelPCA):
        options = {"n_components": 2, "eigen_solver": "nystroem", "rank": 5, "kernel": "rbf"}
        model = kind(**options) if kind is KernelPCA else kind()
        y = LABELS if kind is mercer.KernelPerceptron else NUMBERS
        more = {"classes": ["no", "yes"]} if kind is mercer.KernelPerceptron else {}
        model.partial_fit(X[:20], y[:20], **more)
        again = loaded(model, tmp_path, mmap=mmap)
        for one in (model, again):
            one.partial_fit(X[20:], y[20:])
        found, expected = answers(again), answers(model)
        # without their times
        assert found.pop("summary")[0][:80] == expected.pop("summary")[0][:80]
        assert found == expected


def test_a_loaded_model_is_a_model_like_any_other(tmp_path):
    model = fit(KernelRidge(kernel=RBF(2.0), fit_intercept=True))
    again = loaded(model, tmp_path)
    assert again.get_params() == model.get_params()
    assert answers(fit(again)) == answers(model)  # a clone, fitted again
    assert answers(again.set_params(kernel__length_scale=1.0).fit(X, NUMBERS)) == answers(
        fit(KernelRidge(kernel=RBF(1.0), fit_intercept=True))
    )
    again = loaded(model, tmp_path)
    small, same = compress(model, 8), compress(again, 8)
    assert answers(small) == answers(same)
    assert str(same.reduction_) == str(small.reduction_)
    assert str(loaded(small, tmp_path).reduction_) == str(small.reduction_)
    f, g = Expansion.mean(RBF(2.0), X), loaded(Expansion.mean(RBF(2.0), X), tmp_path)
    assert bits(f.preimage().points) == bits(g.preimage().points)
    assert str(again.report_) == str(model.report_)
    assert again.report_.status is model.report_.status
    std = model.predict(NEW, return_std=True)[1]
    np.testing.assert_array_equal(again.predict(NEW, return_std=True)[1], std)


def test_a_loaded_gaussian_process_knows_its_likelihood(tmp_path):
    for kernel in (1.0 * RBF("median"), zoo.GPKernel(2.0) + zoo.WhiteKernel(0.5)):
        model = fit(GPR(kernel, alpha=0.1, random_state=np.random.RandomState(1)))
        again = loaded(model, tmp_path)
        theta = model.kernel_.theta + 0.1
        assert again.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
        assert bits(again.sample_y(NEW, 2)) == bits(model.sample_y(NEW, 2))
        assert bits(again.predict(NEW, return_cov=True)[1]) == bits(
            model.predict(NEW, return_cov=True)[1]
        )
    model = fit(mercer.GaussianProcessClassifier(1.0 * RBF(1.0)), THREE)
    assert loaded(model, tmp_path).log_marginal_likelihood() == model.log_marginal_likelihood()


def test_seeds_go_on_where_they_were(tmp_path):
    for seed in (np.random.RandomState(3), np.random.RandomState(np.random.MT19937(5))):
        seed.normal(size=3)
        again = loaded(mercer.RBFSampler(random_state=seed), tmp_path).random_state
        assert again.normal(size=9).tolist() == seed.normal(size=9).tolist()
    makers = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
    for kind in (*makers, np.random.MT19937):
        seed = np.random.Generator(kind(7))
        seed.integers(9, dtype=np.int32)  # an odd number of 32-bit draws leaves a buffered half
        f = Expansion(Linear(), [seed], np.ones(1))
        again = loaded(f, tmp_path).points[0]
        assert type(again.bit_generator) is kind
        assert again.normal(size=9).tolist() == seed.normal(size=9).tolist()
        assert again.integers(9, dtype=np.int32) == seed.integers(9, dtype=np.int32)


VALUES = [
    *(None, True, False, 0, -1, 2**200, 0.1, -0.0, 5e-324, float("inf"), float("-inf"), ""),
    *("ä\ud800\x00", b"", b"\xff\x00", 1j, complex("nan-infj"), slice(1, None, -2)),
    *([], (), {}, set(), frozenset(), [[]], ((),), {"a": [1]}, {1: 2, (1, "b"): {3, 4}}),
    *({"x", "y"}, {1, "a", 2.5, None, (1, 2)}, frozenset({b"a"}), np.dtype("f4"), np.dtype("<U3")),
    *(np.float64(0.1), np.float32(0.1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)),
    *(np.str_("ab"), np.complex64(1 + 2j), np.longdouble("0.1"), np.datetime64("2020-01-02", "D")),
    *(np.float16(0.1), np.timedelta64(3, "s"), np.float64("nan"), np.bytes_(b"ab")),
    *(np.zeros(0), np.array(3.0), np.array("abc"), np.array([b"a", b"bc"]), np.array([""])),
    *(np.arange(3, dtype=">i4"), np.array([1 + 2j]), np.arange(3).astype("M8[s]")),
    *(np.array([None, "a", 3], dtype=object), np.array([[True], [False]]), np.array([np.nan])),
    *(np.arange(3, dtype=np.float16), np.arange(2, dtype=np.longdouble), np.empty((0, 3), "U2")),
    *([f"w{i}" for i in range(50)], tuple("abc" * 20), {f"k{i}" for i in range(40)}),
    *(["ä\ud800", *[""] * 30], {f"k{i}": i for i in range(40)}, [b"x"] * 40),
    {f"k{i}": f"v{i}" for i in range(40)},
    *(sp.csr_array(np.eye(3)), sp.csc_matrix([[0.0, 2.0]]), sp.csr_matrix((3, 0))),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values(value, tmp_path):
    f = Expansion(Linear(), [value], np.ones(1))
    (again,) = loaded(f, tmp_path).points
    assert type(again) is type(value)
    if sp.issparse(value):
        assert again.shape == value.shape and again.indices.dtype == value.indices.dtype
        assert bits(again) == bits(value)
    elif isinstance(value, (np.ndarray, np.generic)):
        assert bits(again) == bits(value) and np.asarray(again).dtype == np.asarray(value).dtype
    else:
        assert repr(again) == repr(value) or again == value
    (again,) = load(tmp_path / "m", mmap=True).points
    assert type(again) is type(value)


def test_in_a_separate_process(tmp_path):
    models = {
        "svc": (fit(SVC(), THREE), NEW),
        "pca": (fit(KernelPCA(2, kernel="rbf")), NEW),
        "sets": (fit(SVC(kernel=Jaccard()), None, [{f"{i % 5}", "b"} for i in range(40)]), None),
        "gp": (fit(GPR(1.0 * RBF("median"), alpha=0.1)), NEW),
    }
    code = [f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, mercer"]
    for name, (model, points) in models.items():
        save(model, tmp_path / name)
        verb = "transform" if name == "pca" else "predict"
        points = [{"1", "b"}, {"2"}, set()] if points is None else points
        new = "[{'1', 'b'}, {'2'}, set()]" if name == "sets" else f"np.array({points.tolist()!r})"
        code.append(f"model = mercer.load({str(tmp_path / name)!r}); found = model.{verb}({new})")
        code.append("print(found.dtype.str, found.tobytes().hex())")
        expected = getattr(model, verb)(points)
        models[name] = f"{expected.dtype.str} {expected.tobytes().hex()}"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.split("\n")[:-1] == list(models.values())


@node
class Tent(mercer.kernels.Kernel):
    """max(0, 1 - |x - z| / width), a user-defined kernel."""

    width: float = 1.0

    def _tile(self, P, Q, out):
        (X,), (Z,) = P.arrays, Q.arrays
        out[...] = np.maximum(0.0, 1.0 - np.abs(X - Z.T) / self.width)


def test_a_kernel_of_ones_own(tmp_path):
    model = fit(KernelRidge(kernel=2.0 * Tent(3.0)), None, X[:, :1])
    save(model, tmp_path / "m")
    with pytest.raises(mercer.ModelFileError, match=r"the class 'Tent'.*classes=\["):
        load(tmp_path / "m")
    again = load(tmp_path / "m", classes=[Tent])
    assert answers(again, NEW[:, :1]) == answers(model, NEW[:, :1])
    with pytest.raises(TypeError, match="classes must be user-defined kernel classes"):
        load(tmp_path / "m", classes=[os.system])
    double = type("RBF", (Tent,), {})
    with pytest.raises(ValueError, match="already has a class RBF; give your class another name"):
        load(tmp_path / "m", classes=[double])


@node
class Plateau(Tent):
    """A user-defined kernel with a type that is known to type checkers only."""

    height: "Height" = 1.0  # noqa: F821


def test_a_kernel_with_an_unknown_annotation(tmp_path):
    model = fit(KernelRidge(kernel=Plateau(3.0)), None, X[:, :1])
    save(model, tmp_path / "m")
    assert load(tmp_path / "m", classes=[Plateau]).kernel == Plateau(3.0)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        ("a", typing.Literal["a", "b"], True),
        ("c", typing.Literal["a", "b"], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        ((1,), tuple[int, str], False),
        ([1, "a"], tuple[int, str], False),
        ("anything", typing.NewType("Height", float), True),
    ],
)
def test_types_of_annotations(value, hint, expected):
    assert has_type(value, hint) is expected


# ---------------------------------------------------------------------- files of earlier versions


def objects(node, name):
    """Yield the JSON objects of a class in the state of a file."""
    if isinstance(node, dict):
        if node.get("class") == name:
            yield node
        node = list(node.values())
    for part in node if isinstance(node, list) else []:
        yield from objects(part, name)


def edited(model, name, edit, path):
    """Save a model, edit the objects of a class in the file, and return the path."""
    save(model, path)
    content = Content(path.read_bytes())
    found = list(objects(content.state, name))
    assert found
    for one in found:
        edit(one)
    path.write_bytes(content.written())
    return path


def test_fields_that_a_file_does_not_have(tmp_path):
    model = fit(KernelRidge(kernel="rbf"))
    path = edited(model, "Report", lambda one: one["fields"].pop("certificate"), tmp_path / "m")
    assert load(path).report_.certificate == {}
    model = fit(KernelRidge(kernel="rbf", solver=mercer.solvers.Cholesky()))
    path = edited(model, "Cholesky", lambda one: one["fields"].clear(), tmp_path / "m")
    assert load(path).solver == mercer.solvers.Cholesky()
    f = Expansion(mercer.kernels.WeisfeilerLehman(1), zoo.graphs(5, rng), np.ones(5))
    path = edited(f, "Graphs", lambda one: one["fields"].pop("directed"), tmp_path / "m")
    with pytest.raises(mercer.ModelFileError, match="the Graphs in the file has no directed"):
        load(path)


def test_fields_that_are_no_longer_stored(tmp_path):
    model = fit(GPR(1.0 * RBF(1.0), alpha=0.1, solver="cg", optimizer=None))
    path = edited(model, "Projection", lambda one: one["fields"].update(latent=1), tmp_path / "m")
    assert answers(load(path), NEW) == answers(model, NEW)
