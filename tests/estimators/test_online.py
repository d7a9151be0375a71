"""Online learners: against scikit-learn, against plain Python loops, and within bounds."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as TheirPerceptron

from mercer import (
    SVC,
    KernelPerceptron,
    KernelRecursiveLeastSquares,
    KernelRidge,
    MemoryBudgetError,
    NotPositiveDefiniteError,
    OnlineKernelRegressor,
    compress,
)
from mercer.datasets import circles
from mercer.kernels import RBF, Linear, Precomputed, Spectrum
from mercer.solvers.online._perceptron import _inverse_with_jitter

rng = np.random.default_rng(0)
LEARNERS = [KernelPerceptron, KernelRecursiveLeastSquares, OnlineKernelRegressor]
every = pytest.mark.parametrize("Learner", LEARNERS)


def labelled(n=300, d=4):
    X = np.random.default_rng(1).normal(size=(n, d))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)


def stream(model, X, y, step):
    """Pass the points to partial_fit in parts."""
    for i in range(0, len(y), step):
        named = {"classes": np.unique(y)} if isinstance(model, KernelPerceptron) else {}
        model.partial_fit(X[i : i + step], y[i : i + step], **named)
    return model


# ---------------------------------------------------------------------- the perceptron


@pytest.mark.parametrize("load", [load_iris, load_digits])
@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_linear_kernel_leads_back_to_scikit_learn(load, pair, intercept):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:600]
    X, y = X[order], y[order]
    if pair:
        X, y = X[np.isin(y, [1, 2])], y[np.isin(y, [1, 2])]
    theirs = TheirPerceptron(shuffle=False, fit_intercept=intercept).fit(X, y)
    ours = KernelPerceptron(kernel="linear", shuffle=False, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(ours.dual_coef_.T @ ours.X_fit_, theirs.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.n_iter_ <= theirs.n_iter_  # a pass without mistakes is the last one
    once = TheirPerceptron(fit_intercept=intercept).partial_fit(X, y, classes=np.unique(y))
    streamed = stream(KernelPerceptron(kernel="linear", fit_intercept=intercept), X, y, 97)
    ordered = TheirPerceptron(fit_intercept=intercept, shuffle=False)
    ordered.partial_fit(X, y, classes=np.unique(y))
    assert once.t_ - 1 == streamed.t_
    w = streamed.dual_coef_.T @ streamed.X_fit_
    np.testing.assert_allclose(w, ordered.coef_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("margin", [0.05, 0.2])
def test_mistakes_are_bounded(seed, margin):
    """Novikoff's theorem for a separating function: mistakes <= (R / rho)^2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 5))
    X /= np.linalg.norm(X, axis=1)[:, None]
    w = rng.normal(size=5)
    w /= np.linalg.norm(w)
    X = X[np.abs(X @ w) >= margin]
    y = np.sign(X @ w)
    model = KernelPerceptron(kernel="linear", fit_intercept=False, tol=None, random_state=seed)
    model.fit(X, y)
    assert model.mistakes_[-1] == 0
    assert model.mistakes_.sum() <= 1 / margin**2
    assert model.score(X, y) == 1


def test_mistakes_are_bounded_by_the_widest_margin():
    X, y = circles(200, random_state=0)
    # 1 / |f| is the margin of the hard-margin SVM, up to its tolerance.
    machine = SVC(C=1e8, gamma=2.0, tol=1e-6).fit(X, y)
    with_constant = machine.expansion_.norm()[0] ** 2 + machine.intercept_[0] ** 2
    model = KernelPerceptron(gamma=2.0, tol=None).fit(X, y)
    assert 0 < model.mistakes_.sum() <= 2.0 * with_constant * 1.01  # k(x, x) + 1 = 2
    assert model.score(X, y) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_average_is_that_of_all_functions(n_classes):
    X = np.random.default_rng(2).normal(size=(300, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [0.0, 0.5][: n_classes - 1])
    K, q = RBF()(X), 1 if n_classes == 2 else 3
    Y = np.where(np.arange(q) + (q == 1) == y[:, None], 1.0, -1.0)
    A, b, sums, constants = np.zeros((300, q)), np.zeros(q), np.zeros((300, q)), np.zeros(q)
    for i in range(300):
        wrong = Y[i] * (K[i] @ A + b) <= 0
        A[i] += np.where(wrong, Y[i], 0.0)
        b += np.where(wrong, Y[i], 0.0)
        sums += A
        constants += b
    for parts in (7, 300):
        model = stream(KernelPerceptron(True, kernel=RBF()), X, y, parts)
        expected = K @ sums / 300 + constants / 300
        found = model.decision_function(X).reshape(300, q)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        last = stream(KernelPerceptron(kernel=RBF()), X, y, parts).decision_function(X)
        np.testing.assert_allclose(last.reshape(300, q), K @ A + b, rtol=0, atol=1e-10)


def test_a_point_too_many_takes_the_place_of_the_one_needed_least():
    X, y = labelled(80)
    K, signs, budget = RBF()(X), 2.0 * y - 1, 6
    kept, a, b, moved = [], np.zeros(0), 0.0, 0.0
    for i in range(80):
        if signs[i] * (K[i, kept] @ a + b) > 0:
            continue
        kept, a, b = [*kept, i], np.append(a, signs[i]), b + signs[i]
        if len(kept) > budget:
            f, tries = K[:, kept] @ a, []
            for s in range(len(kept)):
                rest = kept[:s] + kept[s + 1 :]
                c = np.linalg.solve(K[np.ix_(rest, rest)], f[rest])
                gap = a @ f[kept] - c @ f[rest]
                tries.append((gap, rest, c))
            gap, kept, a = min(tries, key=lambda t: t[0])
            moved += np.sqrt(gap)
    for parts in (80, 9):
        model = stream(KernelPerceptron(kernel=RBF(), budget=budget), X, y, parts)
        found = model.decision_function(X)
        np.testing.assert_allclose(found, K[:, kept] @ a + b, rtol=0, atol=1e-9)
        assert len(model.X_fit_) == budget
        assert model.report_.certificate["moved"] == pytest.approx(moved)


def test_a_budget_is_exact_where_points_depend_on_others():
    X, y = labelled()
    options = {"kernel": "linear", "shuffle": False, "max_iter": 3, "tol": None}
    whole, small = (KernelPerceptron(budget=b, **options).fit(X, y) for b in (None, 4))
    assert len(small.X_fit_) <= 4 < len(whole.X_fit_)
    gap = small.decision_function(X) - whole.decision_function(X)
    assert np.abs(gap).max() < 1e-8 * np.abs(whole.decision_function(X)).max()


@pytest.mark.parametrize("length", [5.0, 30.0])
def test_how_far_a_budget_moves_f(length):
    X, y = labelled()
    options = {"kernel": RBF(length), "shuffle": False, "max_iter": 2, "tol": None}
    whole, small = (KernelPerceptron(budget=b, **options).fit(X, y) for b in (None, 60))
    np.testing.assert_array_equal(whole.mistakes_, small.mistakes_)
    moved = float(whole.expansion_.distance(small.expansion_)[0])
    assert 1e-4 < moved <= small.report_.certificate["moved"]


def test_a_long_stream_in_bounded_memory():
    n, step, budget = 100_000, 5000, 100
    rng = np.random.default_rng(0)
    model = KernelPerceptron(gamma=0.2, average=True, budget=budget, max_memory="32 MiB")
    for _ in range(n // step):
        X = rng.normal(size=(step, 5))
        model.partial_fit(X, np.hypot(X[:, 0], X[:, 1]) > 1.2, classes=[False, True])
        assert len(model.X_fit_) <= budget
    X = rng.normal(size=(2000, 5))
    assert model.t_ == n
    assert model.score(X, np.hypot(X[:, 0], X[:, 1]) > 1.2) > 0.9
    held = [v for v in vars(model._learner).values() if isinstance(v, np.ndarray)]
    assert sum(v.nbytes for v in held) < 8 * 3 * (budget + 1) ** 2
    with pytest.raises(MemoryBudgetError, match="a model on budget=5000 points"):
        KernelPerceptron(budget=5000, max_memory="32 MiB").fit(X, X[:, 0] > 0)


def test_classes_of_a_stream():
    X, y = labelled()
    model = KernelPerceptron()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[1, 0])
    with pytest.raises(ValueError, match=r"y contains the labels \[7\], .* the classes \[0, 1\]"):
        model.partial_fit(X, np.where(y == 1, 7, y))
    with pytest.raises(ValueError, match="differs from the classes in the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    model.partial_fit(X[y == 1], y[y == 1])  # one class is enough once all classes are known
    with pytest.raises(ValueError, match="at least 2 classes"):
        KernelPerceptron().partial_fit(X, y, classes=[0])
    with pytest.raises(ValueError, match="'balanced' needs all points"):
        KernelPerceptron(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(AttributeError) as error:
        model.predict_proba(X)
    assert "does not estimate probabilities" in str(error.value.__cause__)


def test_weights_of_classes():
    X, y = labelled()
    plain, heavy = (
        KernelPerceptron(class_weight=w, max_iter=3, tol=None).fit(X, y) for w in (None, {1: 50.0})
    )
    assert np.mean(heavy.predict(X)) > np.mean(plain.predict(X))
    streamed = KernelPerceptron(class_weight={1: 50.0}).partial_fit(X, y, classes=[0, 1])
    assert set(np.unique(streamed.dual_coef_)) == {-1.0, 50.0}


def test_no_end_in_sight_is_reported():
    X, _ = labelled(100)
    noise = np.random.default_rng(0).integers(2, size=100)
    with pytest.warns(ConvergenceWarning, match="Maximum number of iteration reached"):
        KernelPerceptron(kernel="linear", tol=0.0, max_iter=2).fit(X, noise)


# ---------------------------------------------------------------------- recursive least squares


@pytest.mark.parametrize("weighted", [False, True])
def test_all_points_kept_are_kernel_ridge(weighted):
    X = np.random.default_rng(3).normal(size=(350, 6))
    Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2]
    w = np.random.default_rng(4).uniform(0.1, 3.0, size=350) if weighted else None
    ours = KernelRecursiveLeastSquares(0.0, alpha=0.1, kernel=RBF(2.0)).fit(X, Y, w)
    ridge = KernelRidge(alpha=0.1, kernel=RBF(2.0)).fit(X, Y, w)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), rtol=0, atol=1e-7)
    assert len(ours.X_fit_) == 350


@pytest.mark.parametrize("length", [0.7, 2.0, 7.0, 70.0])
@pytest.mark.parametrize("parts", [1, 64, 300])
def test_points_next_to_the_span_of_others_do_no_harm(length, parts):
    X, _ = labelled(300, 3)
    y, kernel = np.sin(X[:, 0]), RBF(length)
    ours = stream(KernelRecursiveLeastSquares(0.0, kernel=kernel), X, y, parts)
    ridge = KernelRidge(alpha=1e-3, kernel=kernel).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), rtol=0, atol=1e-5)


def test_points_without_end_are_refused():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    for Learner, options in (
        (KernelRecursiveLeastSquares, {}),
        (OnlineKernelRegressor, {"max_iter": 1, "tol": None}),
    ):
        model = Learner(kernel=RBF(0.01), max_memory="6 MiB", **options)
        with pytest.raises(MemoryBudgetError, match=r"up to \d+ points \(a budget would limit"):
            model.fit(X, X[:, 0])
        assert len(model.set_params(budget=100).fit(X, X[:, 0]).X_fit_) == 100


@pytest.mark.parametrize("budget", [None, 10])
def test_projections_of_those_left_out(budget):
    X = np.random.default_rng(5).uniform(-2, 2, size=(400, 1))
    y, K, nu, alpha = np.sin(3 * X[:, 0]), RBF(0.5)(X), 1e-2, 1e-2
    kept, C = [], np.zeros((400, 0))
    for i in range(400):
        c = np.linalg.solve(K[np.ix_(kept, kept)], K[kept, i])
        if K[i, i] - K[i, kept] @ c > nu and len(kept) < (budget or 400):
            kept, C = [*kept, i], np.c_[C, np.zeros(400)]
            c = np.eye(len(kept))[-1]
        C[i] = c
    inverse = np.linalg.inv(K[np.ix_(kept, kept)])
    v = np.linalg.solve(C.T @ C + alpha * inverse, C.T @ y)
    for parts in (400, 1, 37):
        model = KernelRecursiveLeastSquares(nu, alpha=alpha, kernel=RBF(0.5), budget=budget)
        stream(model, X, y, parts)
        np.testing.assert_array_equal(model.X_fit_, X[kept])
        expected = K[:, kept] @ inverse @ v
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-8)


# ---------------------------------------------------------------------- NORMA


@pytest.mark.parametrize("loss", ["squared_error", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("budget", [None, 15])
def test_steps_of_gradient_descent(loss, budget):
    X = np.random.default_rng(6).normal(size=(300, 2))
    y, K, eta, alpha, epsilon = np.sin(2 * X[:, 0]), RBF()(X), 0.6, 0.05, 0.2
    kept, a, b = [], np.zeros(0), 0.0
    for i in range(300):
        rate = eta / np.sqrt(i + 1)
        gap = y[i] - K[i, kept] @ a - b
        slope = {
            "squared_error": gap,
            "huber": np.clip(gap, -epsilon, epsilon),
            "epsilon_insensitive": np.sign(gap) * (abs(gap) > epsilon),
        }[loss]
        a, b = a * (1 - rate * alpha), b + rate * slope
        if slope:
            kept, a = [*kept, i], np.append(a, rate * slope)
        if len(kept) > (budget or 300):
            out = int(np.argmin(np.abs(a)))
            kept, a = kept[:out] + kept[out + 1 :], np.delete(a, out)
    options = {"epsilon": epsilon, "alpha": alpha, "eta0": eta, "kernel": RBF(), "budget": budget}
    for parts in (300, 11):
        model = stream(OnlineKernelRegressor(loss, **options), X, y, parts)
        expected = K[:, kept] @ a + b
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-10)
    passes = OnlineKernelRegressor(loss, shuffle=False, max_iter=1, tol=None, **options).fit(X, y)
    np.testing.assert_allclose(passes.predict(X), expected, rtol=0, atol=1e-10)


def test_passes_come_near_the_minimum():
    X = np.random.default_rng(7).uniform(-2, 2, size=(300, 1))
    y = np.sin(3 * X[:, 0]) + 5.0
    model = OnlineKernelRegressor(kernel=RBF(0.5)).fit(X, y)
    assert model.score(X, y) > 0.98
    assert len(model.X_fit_) <= 300  # a repeated point has one coefficient


def test_steps_that_are_too_long_are_refused():
    X, y = labelled()
    model = OnlineKernelRegressor(kernel=Linear()).partial_fit(X[:20], y[:20])
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"diverged after 276 points: steps with eta0"):
        model.partial_fit(1e3 * X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="eta0 \\* alpha = 2 must be below 1"):
        OnlineKernelRegressor(alpha=1.0, eta0=2.0).fit(X, y)


# ---------------------------------------------------------------------- all learners


@every
@pytest.mark.parametrize("budget", [None, 10])
def test_strings(Learner, budget):
    words = ["".join(rng.choice(list("AC" if i % 2 else "GT"), size=12)) for i in range(60)]
    y = np.arange(60) % 2
    model = stream(Learner(kernel=Spectrum(2), budget=budget), words, y, 20)
    assert np.array_equal(np.round(model.predict(words)), y)
    assert len(model.X_fit_) <= (budget or 60)
    assert isinstance(model.X_fit_, list)
    fitted = Learner(kernel=Spectrum(2), budget=budget).fit(words, y)
    assert np.array_equal(np.round(fitted.predict(words)), y)


@every
def test_values_that_were_computed(Learner):
    X, y = labelled(120)
    K = RBF()(X)
    direct, given = Learner(kernel=RBF()).fit(X, y), Learner(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given._values(K), direct._values(X), rtol=0, atol=1e-9)
    assert not hasattr(given, "partial_fit")
    with pytest.raises(AttributeError) as error:
        given.partial_fit(K, y)
    assert "does not support kernel='precomputed'" in str(error.value.__cause__)
    indices = stream(Learner(kernel=Precomputed(K)), np.arange(120), y, 50)
    streamed = stream(Learner(kernel=RBF()), X, y, 50)
    np.testing.assert_allclose(indices._values(np.arange(120)), streamed._values(X), atol=1e-9)


@every
@pytest.mark.parametrize("budget", [None, 30])
def test_threads_and_tiles_do_not_matter(Learner, budget, monkeypatch):
    X, y = labelled(900)
    one, two = (
        Learner(kernel=RBF(), budget=budget, n_jobs=j).fit(X, y)._values(X[:50]) for j in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    # stores two triangular matrices
    square = Learner is KernelRecursiveLeastSquares and budget is None
    memory = "40 MiB" if square else "8 MiB"
    tiled = Learner(kernel=RBF(), budget=budget, max_memory=memory).fit(X, y)
    assert np.corrcoef(tiled._values(X[:50])[:, 0], one[:, 0])[0, 1] > 0.999


@every
@pytest.mark.parametrize("budget", [None, 10])
def test_values_that_are_not_finite(Learner, budget):
    X, y = labelled(50)
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        Learner(kernel=Linear(), budget=budget).fit(1e200 * X, y)


@every
def test_zeros_have_nothing_to_teach(Learner):
    X, y = np.zeros((6, 2)), np.arange(6) % 2
    model = Learner(kernel=Linear(), budget=3)
    if Learner is not KernelPerceptron:
        assert np.isfinite(model.fit(X, y).predict(X)).all()
    else:
        assert np.isfinite(model.partial_fit(X, y, classes=[0, 1]).decision_function(X)).all()


@every
def test_a_compressed_model_stays_as_it_is(Learner):
    X, y = labelled(100)
    small = compress(Learner(kernel=RBF()).fit(X, y), 10)
    assert small.predict(X).shape == (100,)
    with pytest.raises(ValueError, match="a compressed model cannot be updated"):
        stream(small, X, y, 50)


@every
def test_an_interrupted_call_changes_nothing(Learner, monkeypatch):
    X, y = labelled(600)
    model = stream(Learner(kernel=RBF(), budget=20), X[:300], y[:300], 300)
    before, blocks = model._values(X), []
    learner = type(model._learner)
    real = learner._learn_block

    def stopping(self, *args):
        blocks.append(1)
        if len(blocks) == 2:
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(learner, "_learn_block", stopping)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model._values(X), before)
    model.partial_fit(X[300:], y[300:])
    whole = stream(Learner(kernel=RBF(), budget=20), X, y, 300)
    np.testing.assert_array_equal(model._values(X), whole._values(X))


def test_targets_keep_their_number():
    X, y = labelled(50)
    model = KernelRecursiveLeastSquares().partial_fit(X, np.c_[y, y])
    assert model.predict(X).shape == (50, 2)
    with pytest.raises(ValueError, match="pass the same number of targets each time"):
        model.partial_fit(X, y)


@every
def test_it_says_what_it_does(Learner, capsys):
    X, y = labelled(60)
    word = "mistakes" if Learner is KernelPerceptron else "corrections"
    text = (Learner(verbose=1).fit(X, y), capsys.readouterr().out)[1]
    assert "pass 1: " in text
    assert word in text
    stream(Learner(verbose=1), X, y, 60)
    assert f"{word} at 60 new points" in capsys.readouterr().out


def test_the_inverse_of_a_nearly_singular_matrix_has_jitter():
    X = np.array([[1.0], [1.0], [2.0]])
    Q, jitter = _inverse_with_jitter(X @ X.T)
    assert 0.0 < jitter < 1e-10
    np.testing.assert_allclose(Q @ (X @ X.T + jitter * np.eye(3)), np.eye(3), atol=0.1)
    with pytest.raises(NotPositiveDefiniteError, match="matrix of the 2 support points is not pos"):
        _inverse_with_jitter(np.array([[1.0, 2.0], [2.0, 1.0]]))
