"""SVMs on a core set, and the squared hinge loss: objectives, certificates, blocks, errors."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from data_folder import DATA
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Blocks, NuSVC, OneClassSVM, load, open_blocks, save
from mercer.kernels import RBF, Linear, Polynomial, Spectrum
from mercer.solvers import Status
from mercer.solvers.svm import CoreProblem, CoreSet, _block_smo

TOL = 0.01


def checkerboard(n, seed=0):
    X = np.random.default_rng(seed).uniform(0.0, 4.0, (n, 2))
    return X, np.floor(X).sum(axis=1) % 2


SETS = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: tuple(part[:500] for part in load_digits(return_X_y=True)),
    "moons": lambda: make_moons(400, noise=0.2, random_state=0),
    "circles": lambda: make_circles(400, noise=0.1, factor=0.5, random_state=0),
    "blobs": lambda: make_blobs(400, centers=4, cluster_std=2.0, random_state=0),
    "overlapping": lambda: make_classification(400, flip_y=0.2, random_state=0),
    "unbalanced": lambda: make_classification(600, weights=[0.95], random_state=1),
    "checkerboard": lambda: checkerboard(600),
}


def exact_minimum(X, y, C, gamma, w=None):
    """Return the minimum for the squared hinge loss, from a hard-margin SVM of K + I / (2 C)."""
    total = 0.0
    w, classes = np.ones(len(X)) if w is None else w, np.unique(y)
    for i, a in enumerate(classes):
        for b in classes[i + 1 :]:
            own = np.flatnonzero((y == a) | (y == b))
            K = rbf_kernel(X[own], gamma=gamma) + np.diag(0.5 / (C * w[own]))
            model = sklearn.svm.SVC(kernel="precomputed", C=1e10, tol=1e-9).fit(K, y[own])
            v, support = model.dual_coef_[0], model.support_
            total += np.abs(v).sum() - 0.5 * v @ K[np.ix_(support, support)] @ v
    return total


def objective(model, X, y, C, squared=True):
    """Return the objective of a fitted SVC for two classes, from its predictions."""
    values = model.decision_function(X)
    f, signs = values - model.intercept_[0], np.where(y == model.classes_[1], 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * values)
    loss = (slack**2).sum() if squared else slack.sum()
    return 0.5 * model.dual_coef_[0] @ f[model.support_] + C * loss


@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("name", SETS)
def test_objective_is_within_the_guaranteed_factor(name, C):
    X, y = SETS[name]()
    X = StandardScaler().fit_transform(X)
    gamma = 1.0 / X.shape[1]
    exact = exact_minimum(X, y, C, gamma)
    options = {"C": C, "gamma": gamma, "loss": "squared_hinge"}
    model = SVC(solver="core-set", tol=TOL, **options).fit(X, y)
    found = model.report_.certificate
    assert found["dual"] <= exact * (1 + 1e-7) and exact <= found["primal"] * (1 + 1e-7)
    assert found["primal"] <= (1 + TOL) ** 2 * exact
    smo = SVC(tol=1e-7, **options).fit(X, y)
    assert repr(smo.solver_).startswith("BlockSMO")
    assert smo.report_.certificate["dual"] == pytest.approx(exact, rel=1e-6)
    if len(model.classes_) == 2:
        assert objective(model, X, y, C) == pytest.approx(found["primal"], rel=1e-9)
        assert objective(smo, X, y, C) == pytest.approx(exact, rel=1e-5)
    assert np.mean(model.predict(X) == smo.predict(X)) > 0.97


@pytest.mark.parametrize("name", ["moons", "overlapping", "blobs"])
def test_hinge_loss_on_a_core_set_is_the_hinge_loss(name):
    X, y = SETS[name]()
    core = SVC(solver="core-set", tol=1e-6).fit(X, y)
    smo = SVC(tol=1e-8).fit(X, y)
    primal = core.report_.certificate["primal"]
    assert primal == pytest.approx(smo.report_.certificate["dual"], rel=3e-6)
    assert np.abs(core.decision_function(X) - smo.decision_function(X)).max() < 1e-2
    exact = SVC(solver="core-set", tol=1e-10).fit(X, y)
    for attribute in ("support_", "at_bound_", "n_support_", "intercept_"):
        assert np.allclose(getattr(exact, attribute), getattr(smo, attribute), atol=1e-5)
    if name == "moons":
        assert objective(core, X, y, 1.0, squared=False) == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_random_subsets_and_groups_need_few_passes(loss, monkeypatch):
    from mercer.solvers.svm import _core_set

    X, y = checkerboard(20_000)
    options = {"C": 10.0, "gamma": 4.0, "loss": loss, "solver": "core-set", "tol": 0.2}
    whole = SVC(**options).fit(X, y)
    small = {**vars(_core_set._TUNING), "subset_points": 1000}
    monkeypatch.setattr(_core_set, "_TUNING", type(_core_set._TUNING)(**small))
    model = SVC(**options).fit(X, y)
    assert model.report_.certificate["passes"] < whole.report_.certificate["passes"]
    for m in (whole, model):
        found = m.report_.certificate
        assert found["dual"] <= found["primal"] <= 1.2**2 * found["dual"]
        assert m.score(X, y) > 0.97
        assert len(m.support_) < 0.2 * len(X)
        value = objective(m, X, y, 10.0, squared=loss == "squared_hinge")
        assert value == pytest.approx(found["primal"], rel=1e-9)


def test_weights_and_classes_multiply_C():
    X, y = make_moons(300, noise=0.2, random_state=0)
    w = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    w[::5] = 0.0
    used = w > 0
    exact = exact_minimum(X[used], y[used], 2.0, 0.5, w[used])
    for name in ("smo", "core-set"):
        options = {"C": 2.0, "gamma": 0.5, "loss": "squared_hinge", "tol": 1e-6, "solver": name}
        model = SVC(**options).fit(X, y, w)
        assert model.report_.certificate["primal"] == pytest.approx(exact, rel=5e-6)
        assert used[model.support_].all()
    balanced = SVC(**options, class_weight="balanced").fit(X[:200], y[:200] * 3)
    assert balanced.report_.status is Status.CONVERGED


@pytest.mark.parametrize("name", ["iris", "moons"])
def test_blocks_give_the_same_model(name, tmp_path):
    X, y = SETS[name]()
    options = {"C": 3.0, "gamma": 0.4, "solver": "core-set"}
    for loss in ("hinge", "squared_hinge"):
        model = SVC(loss=loss, **options).fit(X, y)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        blocks, targets = (open_blocks(tmp_path / f"{c}.npy", rows=37) for c in "Xy")
        other = SVC(loss=loss, **options).fit(blocks, targets)
        assert np.array_equal(model.support_, other.support_)
        assert np.array_equal(model.support_vectors_, other.support_vectors_)
        assert np.allclose(model.decision_function(X), other.decision_function(X), atol=1e-6)
    weights = np.arange(len(X)) % 3
    model = SVC(**options).fit(X, y, weights)
    other = SVC(**options).fit(Blocks.of(X, 50), y, weights)
    assert np.array_equal(model.support_, other.support_)
    save(other, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict(X), other.predict(X))
    assert again.report_.certificate["passes"] == other.report_.certificate["passes"]


def test_sparse_points_strings_and_precomputed_matrices():
    X, y = load_iris(return_X_y=True)
    options = {"solver": "core-set", "loss": "squared_hinge", "tol": 1e-4}
    dense = SVC(gamma=0.5, **options).fit(X, y)
    sparse = SVC(gamma=0.5, **options).fit(sp.csr_array(X), y)
    stored = SVC(kernel="precomputed", **options).fit(rbf_kernel(X, gamma=0.5), y)
    for other in (sparse, stored):
        assert np.allclose(dense.dual_coef_, other.dual_coef_, atol=1e-8)
    words = ["ab" * 3, "abab", "ba" * 4, "xyxy", "yx" * 3, "xyx"]
    model = SVC(kernel=Spectrum(2), **options).fit(words, [0, 0, 0, 1, 1, 1])
    assert model.predict(["abba", "xyyx"]).tolist() == [0, 1]


# ----------------------------------------------------------------------- one class


@pytest.mark.parametrize("nu", [1 / 400, 0.05, 0.5])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_one_class_is_within_the_guaranteed_factor(nu, gamma):
    X, _ = make_moons(400, noise=0.1, random_state=0)
    exact = OneClassSVM(nu=nu, gamma=gamma, tol=1e-9).fit(X)
    model = OneClassSVM(nu=nu, gamma=gamma, solver="core-set", tol=TOL).fit(X)
    ours, best = (m.report_.certificate for m in (model, exact))
    # Both objectives are negative: the dual one is the smaller one.
    assert ours["dual"] <= best["dual"] + 1e-9 and best["dual"] <= ours["primal"] + 1e-9
    assert ours["dual"] >= (1 + TOL) ** 2 * best["dual"]
    total = nu * len(X)
    ball = total**2 + 2.0 * best["dual"]  # the sum of v k(x, x) - |f|^2, with k(x, x) = 1
    assert 2.0 * ours["gap"] <= ((1 + TOL) ** 2 - 1.0) * ball * (1 + 1e-6) + 1e-12
    if nu == 1 / 400:
        assert model.radius_**2 == pytest.approx(exact.radius_**2, rel=2 * TOL)


def test_smallest_enclosing_ball_in_the_plane():
    """Four corners of a square: the radius is half of the diagonal; inner points do not matter."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    inside = np.random.default_rng(0).uniform(0.2, 0.8, (200, 2))
    X = np.concatenate([corners, inside])
    gamma = 1e-4  # the squared distance in feature space is about 2 gamma |x - z|^2
    model = OneClassSVM(nu=1 / len(X), gamma=gamma, solver="core-set", tol=1e-4).fit(X)
    assert model.radius_ == pytest.approx(np.sqrt(2.0 * gamma) * np.sqrt(0.5), rel=2e-3)
    assert set(model.support_.tolist()) <= {0, 1, 2, 3}
    assert (model.predict(inside) == 1).all()


def test_radius_needs_a_constant_diagonal():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = OneClassSVM(nu=0.1, kernel=Polynomial(2), solver="core-set").fit(X)
    exact = OneClassSVM(nu=0.1, kernel=Polynomial(2), tol=1e-8).fit(X)
    ours, best = model.report_.certificate["primal"], exact.report_.certificate["primal"]
    assert ours == pytest.approx(best, rel=3e-3)  # the one-class SVM itself does not need it
    with pytest.raises(AttributeError, match=r"constant k\(x, x\).*between"):
        _ = model.radius_
    stored = OneClassSVM(nu=0.1, kernel="precomputed").fit(RBF()(X))
    with pytest.raises(AttributeError, match="not stored for kernel='precomputed'"):
        _ = stored.radius_


# ----------------------------------------------------------------------- limits and errors


def test_no_small_core_set_is_reported():
    X, y = make_classification(800, flip_y=0.5, random_state=0)
    model = SVC(loss="squared_hinge", solver="core-set", max_iter=2, tol=1e-4)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 rounds.*primal.*exceeds.*dual"):
        model.fit(X, y)
    assert model.fit_status_ == 1 and model.report_.status is Status.NOT_CONVERGED
    assert model.report_.certificate["epsilon"] > 1e-4
    signs = np.where(y > 0, 1.0, -1.0)
    for squared in (False, True):
        problem = CoreProblem(RBF(), X, signs, np.ones(800), squared=squared)
        _, found = CoreSet(max_memory=32 * 300**2).minimize(problem)
        assert found.report.status is Status.NOT_CONVERGED
        assert "allows a core set of 300 points" in found.report.message
        assert found.report.certificate["primal"] > found.report.certificate["dual"] > 0


def test_errors():
    X, y = make_moons(60, random_state=0)
    with pytest.raises(ValueError, match=r"finite C.*C=inf"):
        SVC(C=np.inf, loss="squared_hinge", solver="core-set").fit(X, y)
    for name in ("primal", "nystroem"):
        with pytest.raises(ValueError, match=f"'smo' or 'core-set', but solver='{name}'"):
            SVC(loss="squared_hinge", solver=name, kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="parameter of NuSVC"):
        NuSVC(solver="core-set").fit(X, y)
    with pytest.raises(ValueError, match="in blocks only with"):
        SVC(loss="squared_hinge").fit(Blocks.of(X, 20), y)
    with pytest.raises(MemoryError, match="first 54 points of the core set"):
        OneClassSVM(nu=0.9, solver="core-set", max_memory=32 * 40**2).fit(X)


def test_solver_objects_paths_and_plans(capsys):
    X, y = SETS["breast cancer"]()
    X = StandardScaler().fit_transform(X)
    own = SVC(solver=CoreSet(tol=0.05), loss="squared_hinge").fit(X, y)
    assert own.report_.certificate["epsilon"] <= 0.05 and own.solver_.tol == 0.05
    one, two = SVC(loss="squared_hinge", solver="core-set").path(X, y, [0.1, 10.0])
    assert one.C == 0.1
    assert two.report_.certificate["primal"] == pytest.approx(
        SVC(C=10.0, loss="squared_hinge").fit(X, y).report_.certificate["primal"], rel=2.1e-3
    )
    plan = str(SVC(loss="squared_hinge").plan(X, y))
    assert "> smo" in plan and "  core-set" in plan and "the loss is squared" in plan
    many = str(SVC(loss="squared_hinge").plan(np.zeros((9000, 2)), np.arange(9000) % 2))
    assert "> core-set" in many and "K is too large to be stored" in many
    SVC(solver="core-set", verbose=1).fit(X, y)
    assert "dual objective" in capsys.readouterr().out
    linear = SVC(kernel=Linear(), solver="core-set", loss="squared_hinge", tol=1e-6).fit(X, y)
    peer = sklearn.svm.LinearSVC(C=1.0, intercept_scaling=1e3, tol=1e-8, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X, y)
    assert np.allclose(linear.coef_, peer.coef_, atol=5e-2 * np.abs(peer.coef_).max())


@pytest.mark.data
@pytest.mark.parametrize("name", ["banana", "image", "twonorm", "waveform"])
def test_real_sets(name):
    file = DATA / "raetsch" / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"{file} was not found")
    with np.load(file, allow_pickle=False) as data:
        X, y = (data[key][:1500].astype(float) for key in ("X", "y"))
    X = StandardScaler().fit_transform(X)
    exact = exact_minimum(X, y, 1.0, 1.0 / X.shape[1])
    model = SVC(gamma=1.0 / X.shape[1], loss="squared_hinge", solver="core-set", tol=TOL)
    found = model.fit(X, y).report_.certificate
    assert exact * (1 - 1e-6) <= found["primal"] <= (1 + TOL) ** 2 * exact


@pytest.mark.parametrize("n_classes", [2, 3])
def test_squared_hinge_gap_of_smo_equals_both_objectives(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((60, 3)), rng.uniform(0.5, 2.0, 60)
    y = np.arange(60) % n_classes
    model = SVC(C=2.0, gamma=0.5, loss="squared_hinge", solver="smo", max_iter=15)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, w)
    # The primal objective of f and b, with all pairs of classes.
    f, primal = model.set_params(decision_function_shape="ovo").decision_function(X), 0.0
    A, K = model.expansion_.coefficients, RBF.from_gamma(0.5)(model.support_vectors_)
    f = f.reshape(60, -1)
    for p, (a, b) in enumerate(itertools.combinations(range(n_classes), 2)):
        positive = b if n_classes == 2 else a
        members = np.flatnonzero((y == a) | (y == b))
        slack = np.maximum(0.0, 1.0 - np.where(y[members] == positive, 1, -1) * f[members, p])
        primal += 0.5 * A[:, p] @ K @ A[:, p] + 2.0 * w[members] @ slack**2
    certificate = model.report_.certificate
    assert certificate["gap"] > 1e-3
    np.testing.assert_allclose(certificate["primal"], primal, rtol=1e-10)
    exact = SVC(C=2.0, gamma=0.5, loss="squared_hinge").fit(X, y, w).report_.certificate
    assert certificate["dual"] <= exact["dual"] * (1 + 1e-12)
    np.testing.assert_allclose(exact["primal"], exact["dual"], rtol=1e-6)


def test_squared_hinge_continues_on_a_core_set_if_smo_does_not_converge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tuning = replace(_block_smo._TUNING, min_step_limit=2000)
    monkeypatch.setattr(_block_smo, "_TUNING", tuning)
    rng = np.random.default_rng(0)
    X = 1e4 * rng.standard_normal((150, 3))
    y = X[:, 0] * X[:, 1] > 0
    model = SVC(kernel="linear", loss="squared_hinge").fit(X, y)
    assert isinstance(model.solver_, CoreSet)
    assert model.report_.certificate["epsilon"] <= 1e-3
    assert "smo did not converge" in model.report_.message


def test_infinite_penalty_is_rejected_for_both_losses() -> None:
    X, y = np.random.default_rng(0).standard_normal((40, 2)), np.arange(40) % 2
    for loss in ("hinge", "squared_hinge"):
        with pytest.raises(ValueError, match="needs a finite C"):
            SVC(C=np.inf, loss=loss, solver="core-set").fit(X, y)


def test_one_class_svm_of_points_around_the_origin_converges() -> None:
    X = np.random.default_rng(0).standard_normal((120, 3))
    model = OneClassSVM(kernel="linear", solver="core-set", nu=0.1).fit(X)
    assert abs(model.offset_[0]) < 1e-9
    assert model.report_.n_iter < 20
