"""Support vector machines: errors, warnings, and output."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import PolynomialFeatures

from mercer import SVC, SVR, MemoryBudgetError, NotMercerWarning, NuSVC, NuSVR, OneClassSVM
from mercer.estimators.support_vector._svm_training import describe_scales
from mercer.kernels import RBF, Callable, Sigmoid
from mercer.solvers import BlockSMO, Status

FIVE = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
each = pytest.mark.parametrize("Machine", FIVE)


@pytest.fixture(scope="module")
def moons():
    return make_moons(80, noise=0.3, random_state=0)


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (SVC(C=0.0), r"The 'C' parameter of SVC must be a float in the range \(0.0, inf\]"),
        (SVC(C=-1.0), "The 'C' parameter of SVC"),
        (SVR(C=0.0), "The 'C' parameter of SVR"),
        (SVR(epsilon=-0.1), "The 'epsilon' parameter of SVR"),
        (NuSVR(C=np.inf), "The 'C' parameter of NuSVR"),
        (NuSVR(nu=0.0), "The 'nu' parameter of NuSVR"),
        (NuSVC(nu=1.1), "The 'nu' parameter of NuSVC"),
        (OneClassSVM(nu=0.0), "The 'nu' parameter of OneClassSVM"),
        (SVC(tol=0.0), "The 'tol' parameter"),
        (SVC(cache_size=0), "The 'cache_size' parameter"),
        (SVC(solver="newton"), "The 'solver' parameter"),
        (SVC(max_iter=-2), "The 'max_iter' parameter"),
        (SVC(decision_function_shape="both"), "The 'decision_function_shape' parameter"),
        (SVC(solver="primal"), "solver='primal' needs a linear kernel"),
        (SVC(kernel="precomputed", solver="primal"), "the kernel is Precomputed"),
        (SVC(class_weight={0: 0.0}), "class_weight must be positive, got"),
        (SVC(class_weight={"no": 2.0}), "but no weight for the classes"),
        (SVC(solver="nystroem", landmarks=np.ones((3, 9))), "landmarks have 9 columns"),
        (SVC(kernel=lambda x, z: x), "accepts neither two collections of points nor two points"),
    ],
)
def test_parameters(model, text, moons):
    X, y = moons
    with pytest.raises(ValueError, match=text):
        model.fit(RBF()(X) if model._precomputed else X, y)


def test_one_class(moons):
    X, y = moons
    for Machine in (SVC, NuSVC):
        with pytest.raises(ValueError, match=r"has to be greater than one; got 1 class: \[1\]"):
            Machine().fit(X, np.ones(len(y), dtype=int))
    with pytest.raises(ValueError, match="positive weights belong to the same class: 1"):
        SVC().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="specified nu is infeasible: all samples with positive"):
        NuSVC().fit(X, y, sample_weight=y)


def test_an_infeasible_nu_says_the_largest(moons):
    X, y = moons
    some = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10]])
    text = "specified nu is infeasible: nu=0.5, but the weights of the classes 0 and 1, 40 and 10,"
    with pytest.raises(ValueError, match=re.escape(text) + r" allow at most nu=0\.4"):
        NuSVC().fit(X[some], y[some])
    assert NuSVC(nu=0.4).fit(X[some], y[some]).nu_ == 0.4
    y3 = np.where(np.arange(len(y)) < 5, 2, y)
    with pytest.raises(ValueError, match=r"the classes 0 and 2, .* allow at most nu=0\.2"):
        NuSVC().fit(X, y3)


@each
def test_weights(Machine, moons):
    X, y = moons
    for w in (np.zeros(len(y)), np.full(len(y), -1.0)):
        with pytest.raises(ValueError, match="all samples have zero or negative weights"):
            Machine().fit(X, y, sample_weight=w)
    with pytest.raises(ValueError, match=r"incompatible shapes: \(3,\) and 80 points"):
        Machine().fit(X, y, sample_weight=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="sample_weight contains NaN or infinity"):
        Machine().fit(X, y, sample_weight=np.where(y == 0, 1.0, np.inf))


@each
def test_points(Machine, moons):
    X, y = moons
    with pytest.raises(NotFittedError, match="not fitted"):
        Machine().predict(X)
    model = Machine().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2"):
        model.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"cannot use sparse input in .* trained on dense data"):
        model.predict(sp.csr_array(X))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 2), np.nan))
    with pytest.raises(AttributeError, match="coef_ is only available when using a linear"):
        _ = model.coef_
    with pytest.raises(ValueError, match="The dual coefficients or intercepts are not finite"):
        Machine().fit(1e200 * X, y)
    with pytest.raises(ValueError, match=r"needs at least one point|0 sample"):
        Machine().fit(X[:0], y[:0])


@each
def test_precomputed_values(Machine, moons):
    X, y = moons
    K = RBF()(X)
    model = Machine(kernel="precomputed")
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        model.fit(sp.csr_array(K), y)
    with pytest.raises(ValueError, match=r"must be a square matrix\. Input is a 80x79 matrix"):
        model.fit(K[:, :79], y)
    with pytest.raises(ValueError, match="X has 79 features, but"):
        model.fit(K, y).predict(K[:, :79])
    assert not model.__sklearn_tags__().input_tags.sparse
    with pytest.warns(UserWarning, match="the precomputed matrix is not symmetric"):
        model.fit(K + np.triu(np.full(K.shape, 1e-3)), y)


def test_words_need_as_many_targets():
    with pytest.raises(ValueError, match="2 points, but y has 3 labels"):
        SVC(kernel=lambda s, t: float(s == t)).fit(["a", "b"], [0, 1, 1])


def test_ties_of_pairs(moons):
    X, y = moons
    model = SVC(decision_function_shape="ovo", break_ties=True).fit(X, y)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(X)


def test_paths_check_every_C_first(moons):
    X, y = moons
    with pytest.raises(ValueError, match="The 'C' parameter of SVC"):
        SVC().path(X, y, [1.0, -1.0])


def test_landmarks_within_the_memory(moons):
    with pytest.raises(MemoryBudgetError, match="landmarks"):
        SVC(solver="nystroem", max_memory="1 KiB").fit(*moons)


# ---------------------------------------------------------------------- warnings


def test_unscaled_features_end_with_advice():
    X, y = load_iris(return_X_y=True)
    X = PolynomialFeatures(4, include_bias=False).fit_transform(X)
    model = SVC(kernel="linear", max_iter=50)
    words = r"Solver terminated early \(max_iter=50\)\.  Consider pre-processing your data with "
    words += "StandardScaler or MinMaxScaler. After 50 steps the optimality conditions are "
    words += r"violated by .*, and tol is 0.001, in \d of 3 pairs of classes; column \d+ has a "
    words += "standard deviation of .*, .* times the median; .*solver='primal' is much less"
    with pytest.warns(ConvergenceWarning, match=words) as record:
        model.fit(X, y)
    assert record[0].filename == __file__
    assert model.fit_status_ == 1
    assert model.report_.status is Status.NOT_CONVERGED
    assert model.report_.certificate["violation"] > 1e-3
    assert np.all(np.isfinite(model.decision_function(X)))
    assert SVC(kernel="linear", solver="primal").fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("Machine", [SVR, NuSVR, OneClassSVM])
def test_too_few_steps(Machine, moons):
    X = moons[0]
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=1\)") as record:
        model = Machine(max_iter=1, tol=1e-6).fit(X, X[:, 0] ** 2)
    assert len(record) == 1
    assert (model.fit_status_, model.n_iter_) == (1, 1)
    assert "pairs of classes" not in str(record[0].message)


def test_scales_of_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5)) * [1.0, 1.0, 1e6, 1.0, 30.0]
    text = describe_scales(X)
    words = r"column 2 has a standard deviation of 9\.\de\+05, 9\.\de\+05 times the median"
    assert re.match(words, text)
    assert "column 4" in text and "column 0" not in text
    assert describe_scales(sp.csr_array(X)) == text
    assert "about 1e+03" in describe_scales(1000.0 * rng.normal(size=(5000, 2)))
    assert "have similar scales" in describe_scales(rng.normal(size=(500, 2)))
    assert describe_scales(np.ones((5, 2))) == "all columns of X are constant"
    assert describe_scales(["a", "b"]) == ""


def test_a_kernel_that_is_not_positive_semidefinite():
    X, y = make_moons(80, noise=0.3, random_state=0)
    with pytest.warns(NotMercerWarning, match="is not a Mercer kernel") as record:
        SVC(kernel=Sigmoid(gamma=2.0, coef0=-1.0), C=10.0).fit(X, y)
    assert len(record) == 1  # issued before anything is computed
    model = SVC(kernel=Callable(Sigmoid(gamma=2.0, coef0=-1.0), "matrix"), C=10.0)
    with pytest.warns(UserWarning, match="kernel is not positive semidefinite: .* is as low as"):
        model.fit(X, y)
    assert model.report_.certificate["curvature"] < 0
    assert model.report_.status is Status.CONVERGED
    three = np.where(np.arange(len(y)) % 3 == 0, 2, y)
    with pytest.warns(UserWarning, match="not positive semidefinite: .* of 3 problems") as record:
        model.fit(X, three)
    assert len(record) == 1


def test_noise_in_given_values_is_not_a_matter_of_definiteness(moons):
    X, y = moons
    K = RBF()(np.concatenate([X, X]))
    E = np.random.default_rng(0).normal(size=K.shape)
    SVC(kernel="precomputed", C=100.0).fit(K + 1e-9 * (E + E.T), np.concatenate([y, y]))


# ---------------------------------------------------------------------- output


def test_the_gap_falls(moons, capsys):
    X, y = moons
    SVC(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("[SVC] ") for line in lines)
    falling = [float(m[1]) for line in lines if (m := re.search(r"violation (\S+),", line))]
    assert falling[-1] <= falling[0]
    assert re.search(r"gap \S+, violation \S+, \d+ support vectors: converged", lines[-1])


def test_pairs_are_named_and_lines_are_few(capsys):
    X, y = load_iris(return_X_y=True)
    SVC(verbose=True).fit(X, np.array(["x", "y", "z"])[y])
    lines = [line for line in capsys.readouterr().out.splitlines() if "compiling" not in line]
    assert 3 <= len(lines) <= 7
    assert lines[0].startswith("[SVC] SVC of 150 points, 3 classes: smo, rows, about ")
    assert lines[1].startswith("[SVC] x vs. y (1 of 3): ")
    SVR(kernel="linear", solver="primal", verbose=1).fit(X, y)
    assert "violation" in capsys.readouterr().out
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------------- interrupts


@each
def test_an_interrupt_leaves_no_mess(Machine, moons, monkeypatch):
    X, y = moons
    fresh, known = Machine(), Machine().fit(X, y)
    before = known.predict(X)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockSMO, "minimize_all", interrupted)
    for model in (fresh, known):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[::-1], y)
    learned = {name for name in vars(fresh) if name.endswith("_") and not name.startswith("_")}
    assert learned <= {"n_features_in_"}
    np.testing.assert_array_equal(known.predict(X), before)
