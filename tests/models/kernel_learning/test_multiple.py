"""MultipleKernel: weights against closed forms and other software, in every estimator."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from data_folder import DATA
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelFisherDiscriminant,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    MultipleKernel,
    NuSVC,
    SparseKernelRegressor,
    alignment,
)
from mercer.kernels import (
    RBF,
    Constant,
    Fixed,
    Graphs,
    Linear,
    Map,
    MeanOf,
    Polynomial,
    Precomputed,
    Scale,
    Select,
    Sigmoid,
    Spectrum,
    Sum,
    WeisfeilerLehman,
    White,
)
from mercer.models.gp import maximise
from mercer.models.kernel_learning import KernelWeights, _multiple_kernel
from mercer.solvers import BlockSMO

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
NUMBERS = np.sin(2 * X[:, 0]) + np.sin(1.5 * X[:, 1])
LABELS = np.where(NUMBERS > 0.3, "high", np.where(NUMBERS < -0.3, "low", "middle"))
TWO = np.where(NUMBERS > 0, 1, 0)
VIEWS = [Select(RBF(), [j]) for j in range(4)]
METHODS = ["average", "alignment", "alignf", "easymkl", "simplemkl", "likelihood"]


def learn(kernels, method, y=LABELS, points=X, **options):
    return MultipleKernel(kernels, method, **options).learn(points, y)


# ---------------------------------------------------------------------- what the weights are


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("y", [TWO, LABELS, NUMBERS], ids=["two", "three", "numbers"])
def test_weights_are_a_distribution_and_prefer_what_matters(method, y):
    if method == "easymkl" and y is NUMBERS:
        pytest.skip("EasyMKL is for labels")
    found = learn(VIEWS, method, y)
    assert np.all(found.weights >= 0)
    assert found.weights.sum() == pytest.approx(1.0)
    if method != "average":
        assert found.weights[:2].min() > found.weights[2:].max()
        assert found.alignment > found.alignment_of_average
    if method in ("alignf", "simplemkl", "likelihood"):
        assert found.weights[2:].sum() < 0.2


def test_easymkl_refuses_numbers():
    with pytest.raises(ValueError, match="the targets are numbers"):
        learn(VIEWS, "easymkl", NUMBERS)


@pytest.mark.parametrize("method", METHODS)
def test_the_combination_is_a_plain_sum_of_the_kernels_in_units_of_their_size(method):
    found = learn([RBF("median"), Linear(), Polynomial(2)], method)
    assert type(found.kernel) is Sum
    assert all(type(term) is Scale for term in found.kernel.terms)
    assert alignment(found.kernel, LABELS, X) == pytest.approx(found.alignment, rel=1e-9)
    assert alignment(Linear(), LABELS, X) == pytest.approx(found.alignments[1], rel=1e-9)
    K = found.kernel(X)
    # normalised to size 1, whatever the kernels
    assert np.trace(K) / 80 - K.mean() == pytest.approx(1.0)


def test_alignf_with_a_kernel_as_target_finds_that_kernel():
    values = RNG.normal(size=(80, 3))  # the target is linear in the third view
    kernels = [*VIEWS, Map(Linear(), lambda x: values)]
    found = MultipleKernel(kernels, "alignf").learn(X, values)
    assert found.weights.round(10).tolist() == [0, 0, 0, 0, 1]


def test_alignf_is_the_solution_of_its_quadratic_program():
    found = learn(VIEWS, "alignf", NUMBERS, normalize=False)
    H = np.eye(80) - 1 / 80
    grams = [H @ k(X) @ H for k in VIEWS]
    T = H @ np.outer(NUMBERS, NUMBERS) @ H
    M = np.array([[np.sum(A * B) for B in grams] for A in grams])
    a = np.array([np.sum(A * T) for A in grams])
    best = minimize(
        lambda v: v @ M @ v - 2 * v @ a,
        np.ones(4),
        jac=lambda v: 2 * (M @ v - a),
        bounds=[(0, None)] * 4,
        options={"ftol": 1e-14, "gtol": 1e-10},
    ).x
    assert found.weights == pytest.approx(best / best.sum(), abs=1e-5)


def test_orthogonal_kernels_have_a_closed_form():
    # Indicators of the blocks of a balanced table are orthogonal after centring.
    a, b = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    points = np.column_stack([a, b, a == b]).astype(float)
    y = 3.0 * a + 1.0 * b
    kernels = [Select(Linear(), [j]) for j in range(3)]
    found = MultipleKernel(kernels, "alignf").learn(points, y)
    assert found.weights == pytest.approx([0.9, 0.1, 0.0], abs=1e-12)  # the squares 9 and 1


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_of_a_kernel_changes_nothing_if_kernels_are_normalised(method):
    a, b = learn(VIEWS, method), learn([100.0 * VIEWS[0], *VIEWS[1:]], method)
    assert b.weights == pytest.approx(a.weights, abs=2e-3)
    assert b.kernel(X[:5]) == pytest.approx(a.kernel(X[:5]), abs=5e-3)


def test_duplicates_share_the_weight_of_the_one():
    one, two = learn(VIEWS, "alignf"), learn([*VIEWS, VIEWS[0], VIEWS[0]], "alignf")
    assert two.weights[[0, 4, 5]].sum() == pytest.approx(one.weights[0], abs=1e-6)
    assert two.kernel(X[:5]) == pytest.approx(one.kernel(X[:5]), rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_two_points(method):
    times = np.random.default_rng(1).integers(0, 3, 80)
    weighted = MultipleKernel(VIEWS, method).learn(X, TWO, times)
    where = np.repeat(np.arange(80), times)
    repeated = MultipleKernel(VIEWS, method).learn(X[where], TWO[where])
    close = 0.02 if method == "simplemkl" else 2e-3  # SimpleMKL stops at a gap of 1 %
    # repeated points have repeated noise, so the values differ and only their order is the same
    if method == "likelihood":
        close = 0.2
    assert weighted.weights == pytest.approx(repeated.weights, abs=close)


def test_easymkl_is_its_quadratic_program():
    found = learn(VIEWS, "easymkl", TWO)
    signs = 2.0 * TWO - 1
    grams = [k(X) / s for k, s in zip(VIEWS, found.sizes, strict=True)]
    Q = 0.9 * sum(grams) / 4 + 0.1 * np.eye(80)
    best = minimize(
        lambda g: (g * signs) @ Q @ (g * signs),
        np.where(TWO, 1 / TWO.sum(), 1 / (80 - TWO.sum())),
        jac=lambda g: 2 * signs * (Q @ (g * signs)),
        bounds=[(0, 1)] * 80,
        constraints=[
            {"type": "eq", "fun": lambda g: g[TWO == 1].sum() - 1, "jac": lambda g: 1.0 * TWO},
            {"type": "eq", "fun": lambda g: g[TWO == 0].sum() - 1, "jac": lambda g: 1.0 - TWO},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    ).x
    margins = np.array([(best * signs) @ K @ (best * signs) for K in grams])
    assert found.weights == pytest.approx(margins / margins.sum(), abs=1e-3)


def test_simplemkl_has_a_smaller_objective_than_other_weights():
    found = learn(VIEWS, "simplemkl", TWO)

    def objective(v):
        kernel = Sum(tuple(w / s * k for w, s, k in zip(v, found.sizes, VIEWS, strict=True)))
        return SVC(kernel=kernel, C=1.0).fit(X, TWO).report_.certificate["dual"]

    least = objective(found.weights)
    others = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    assert least <= 1.01 * min(objective(v) for v in others)
    assert least < 0.9 * objective(np.full(4, 0.25))


def test_simplemkl_says_if_it_is_not_settled(monkeypatch):
    monkeypatch.setattr(_multiple_kernel, "_TUNING", replace(_multiple_kernel._TUNING, max_iter=1))
    with pytest.warns(ConvergenceWarning, match="not converged after 1 iterations"):
        learn(VIEWS, "simplemkl")


def test_likelihood_beats_other_weights():
    found = learn(VIEWS, "likelihood", NUMBERS)

    def evidence(v):
        terms = (float(w / s) * Fixed(k) for w, s, k in zip(v, found.sizes, VIEWS, strict=True))
        kernel = Fixed(sum(terms, Constant(0.0)))
        gp = GaussianProcessRegressor(10.0 * kernel + White(0.1), normalize_y=True)
        return gp.fit(X, NUMBERS).log_marginal_likelihood_value_

    with pytest.warns(ConvergenceWarning, match="close to the specified"):
        best, equal = evidence(found.weights), evidence(np.full(4, 0.25))
    assert best > equal + 5


# ---------------------------------------------------------------------- in estimators


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(alpha=0.1),
        KernelRidgeCV(alphas=[0.01, 0.1, 1.0]),
        SVR(),
        SparseKernelRegressor(20),
        GaussianProcessRegressor(alpha=0.1),
        SVC(),
        NuSVC(nu=0.2),
        KernelLogisticRegression(),
        KernelFisherDiscriminant(),
        GaussianProcessClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.filterwarnings("ignore:the optimisation of theta")
def test_every_supervised_estimator_learns_weights(model):
    kernel = MultipleKernel(VIEWS, "alignf")
    y = TWO if is_classifier(model) else NUMBERS
    model = clone(model).set_params(kernel=kernel)
    model.fit(X, y)
    assert isinstance(model.kernel_, Sum)
    assert {term.kernel.columns[0] for term in model.kernel_.terms} >= {0, 1}
    assert model.score(X, y) > 0.8
    if "Gaussian" not in type(model).__name__:  # Gaussian processes optimise these weights further
        assert model.kernel_ == kernel.learn(X, y).kernel


def test_weights_are_ordinary_parameters_of_a_gaussian_process():
    kernel = MultipleKernel(VIEWS[:2], "alignf") + White(0.1)
    noisy = NUMBERS + 0.3 * np.random.default_rng(0).normal(size=80)
    model = GaussianProcessRegressor(kernel).fit(X, noisy)
    assert "terms__0__terms__0__factor" in model.kernel_.theta_names
    held = GaussianProcessRegressor(kernel, optimizer=None).fit(X, NUMBERS)
    assert held.kernel_.terms[0] == kernel.terms[0].learn(X, NUMBERS).kernel


def test_weights_of_points_reach_the_kernel():
    weights = np.random.default_rng(0).integers(1, 3, 80)
    kernel = MultipleKernel(VIEWS, "alignf")
    model = KernelRidge(kernel=kernel).fit(X, NUMBERS, sample_weight=weights)
    assert model.kernel_ == kernel.learn(X, NUMBERS, weights).kernel
    assert model.kernel_ != kernel.learn(X, NUMBERS).kernel


@pytest.mark.parametrize("model", [KernelPCA(2), KernelKMeans(2)], ids=["pca", "kmeans"])
def test_without_targets_kernels_are_averaged_or_refused(model):
    views = [Select(Linear(), [0]), Select(100 * Linear(), [1])]
    model = clone(model).set_params(kernel=MultipleKernel(views, "average")).fit(X)
    sizes = [X[:, 0].var(), 100 * X[:, 1].var()]
    factors = [term.factor for term in model.kernel_.terms]
    assert factors == pytest.approx([0.5 / s for s in sizes])
    with pytest.raises(ValueError, match="learns the weights of 2 kernels from targets"):
        model.set_params(kernel=MultipleKernel(views, "alignf")).fit(X)


def test_inside_other_kernels_and_sets():
    inside = 2.0 * MultipleKernel(VIEWS, "alignf") + White(0.1)
    model = KernelRidge(kernel=inside).fit(X, NUMBERS)
    assert isinstance(model.kernel_.terms[0].kernel, Sum)
    sets = [X[2 * i : 2 * i + 2] for i in range(40)]  # instances have the target of their set
    found = MeanOf(MultipleKernel(VIEWS, "alignf")).resolve(sets, None, NUMBERS[::2, None])
    assert isinstance(found.kernel, Sum)


def test_scikit_learn_can_search_and_clone():
    kernel = MultipleKernel(VIEWS, "alignf")
    model = SVC(kernel=kernel, C=10.0)
    assert clone(model).kernel == kernel
    assert model.set_params(kernel__method="average").kernel.method == "average"
    assert cross_val_score(SVC(kernel=kernel, C=10.0), X, TWO, cv=3).mean() > 0.75


def test_structured_kernels_the_iterations_of_weisfeiler_lehman():
    rng = np.random.default_rng(0)
    edges, names, y = [], [], []
    for i in range(24):  # the same labels in a different order, which WL(0) cannot distinguish
        n = 2 * int(rng.integers(3, 6))
        edges.append([(j, (j + 1) % n) for j in range(n)])
        names.append([0] * (n // 2) + [1] * (n // 2) if i % 2 else [0, 1] * (n // 2))
        y.append(i % 2)
    graphs = Graphs.from_edges(edges, labels=names)
    kernels = [WeisfeilerLehman(h) for h in range(4)]
    found = MultipleKernel(kernels, "alignf").learn(graphs, y)
    assert found.alignments[0] < 0.05 < found.alignments[1]
    assert SVC(kernel=MultipleKernel(kernels, "alignf")).fit(graphs, y).score(graphs, y) == 1.0


def test_strings_and_matrices():
    words = ["aaab", "aab", "abab", "bbba", "bba", "baba"]
    found = MultipleKernel([Spectrum(1), Spectrum(2)], "alignf").learn(words, [0, 0, 0, 1, 1, 1])
    assert found.weights[0] > 0
    K = [Precomputed(k(X)) for k in VIEWS]
    given = MultipleKernel(K, "alignf").learn(np.arange(80), LABELS)
    assert given.weights == pytest.approx(learn(VIEWS, "alignf").weights, abs=1e-9)


# ---------------------------------------------------------------------- what it says


def test_the_report_names_weights_and_alignments():
    found = learn(VIEWS, "alignf", NUMBERS)
    assert isinstance(found, KernelWeights)
    lines = str(found).splitlines()
    assert lines[0].endswith("of 4 kernels have a positive weight by alignf")
    assert len(lines) == 6
    assert str(VIEWS[int(np.argmax(found.weights))]) in lines[1]
    assert f"{found.alignment:.3f}" in lines[-1]
    assert "alignment" not in str(MultipleKernel(VIEWS, "average").learn(X))


def test_noise_gets_nothing():
    points = np.random.default_rng(1).normal(size=(500, 22))
    y = np.sin(2 * points[:, 0]) + np.sin(1.5 * points[:, 1])
    kernels = [Select(RBF(), [j]) for j in range(22)]
    assert learn(kernels, "alignf", y, points).weights[2:].sum() < 0.05


def test_a_subsample_is_asked_for():
    some = np.linspace(0, 79, 40).astype(int)
    part = MultipleKernel(VIEWS, "alignf", subsample=40).learn(X, NUMBERS)
    assert part.weights == pytest.approx(
        MultipleKernel(VIEWS, "alignf").learn(X[some], NUMBERS[some]).weights
    )


def test_memory_does_not_grow_with_the_number_of_kernels():
    import tracemalloc

    points = np.random.default_rng(0).normal(size=(1500, 1))
    y = np.sin(points[:, 0])

    def peak(p):
        kernels = [RBF(float(s)) for s in np.geomspace(0.1, 10, p)]
        tracemalloc.start()
        MultipleKernel(kernels, "alignf").learn(points, y)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # import first
    assert peak(40) < peak(4) + 0.05 * 36 * 8 * 1500**2  # a twentieth of the size of the matrices
    with pytest.raises(MemoryError, match="budget"):
        MultipleKernel(VIEWS, max_memory="50 kB").learn(np.zeros((1000, 4)), np.arange(1000.0))


def test_what_the_estimator_may_take_is_for_the_kernel_too():
    points = np.random.default_rng(0).normal(size=(1000, 4))
    model = KernelRidge(kernel=MultipleKernel(VIEWS), max_memory="300 kB")
    with pytest.raises(MemoryError, match="does not fit the memory budget of 293"):
        model.fit(points, points[:, 0])


def test_machines_read_rows_where_k_does_not_fit(monkeypatch):
    for method in ("easymkl", "simplemkl"):
        held = learn(VIEWS, method)
        tuning = replace(_multiple_kernel._TUNING, min_budget_ratio=10**12)
        monkeypatch.setattr(_multiple_kernel, "_TUNING", tuning)
        read = learn(VIEWS, method)
        monkeypatch.undo()
        assert read.weights == pytest.approx(held.weights, abs=1e-3)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: MultipleKernel([]), ValueError, "at least one kernel"),
        (lambda: MultipleKernel(RBF()), TypeError, "a sequence of kernels"),
        (lambda: MultipleKernel("rbf"), TypeError, "a sequence of kernels, got 'rbf'"),
        (lambda: MultipleKernel(["gauss"]), ValueError, "did you mean RBF"),
        (lambda: MultipleKernel(VIEWS, "best"), ValueError, "method"),
        (lambda: MultipleKernel(VIEWS, ridge=2.0), ValueError, "ridge must be between 0 and 1"),
        (lambda: MultipleKernel(VIEWS, C=0.0), ValueError, "C must be positive"),
        (lambda: MultipleKernel(VIEWS, subsample=0), ValueError, "subsample must be"),
        (lambda: MultipleKernel(VIEWS)(X), ValueError, "which must be computed from data"),
        (lambda: MultipleKernel(VIEWS).learn(X), ValueError, "no targets were given"),
        (lambda: MultipleKernel(VIEWS).learn(X, NUMBERS[:5]), ValueError, "80 points, but 5"),
        (lambda: MultipleKernel(VIEWS).learn(X, NUMBERS, -X[:, 0]), ValueError, "80 numbers >= 0"),
        (
            lambda: MultipleKernel([Spectrum(2), RBF()]),
            ValueError,
            "a kernel on strings, but RBF.* is a kernel on vectors, so no point is valid for both",
        ),
        (
            lambda: MultipleKernel([RBF(), Select(RBF(), [7])]).learn(X, NUMBERS),
            ValueError,
            "kernel 1 of 2, .* does not accept these points",
        ),
    ],
)
def test_bad_input(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("method", METHODS)
def test_one_kernel_has_all_the_weight(method):
    found = learn([Linear()], method)
    assert found.weights.tolist() == [1.0]


@pytest.mark.parametrize("method", ["alignment", "alignf"])
def test_no_aligned_kernel_is_reported_and_averaged(method):
    points = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    y = np.array([0.0, 0.0, 1.0, 1.0])  # unrelated to Linear and the constant
    with pytest.warns(UserWarning, match="none of the 2 kernels is aligned with the targets"):
        found = MultipleKernel([Linear(), Constant(1.0)], method).learn(points, y)
    assert found.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("method", METHODS[1:])
def test_equal_targets_are_reported_and_averaged(method):
    with pytest.warns(UserWarning, match="the largest alignment is 0"):
        found = learn(VIEWS, method, np.ones(80))
    assert found.weights.tolist() == [0.25] * 4


@pytest.mark.parametrize("method", METHODS[1:])
def test_constant_kernels_explain_nothing(method):
    with pytest.warns(UserWarning, match="none of the 2 kernels is aligned"):
        found = learn([Constant(1.0), 0.0 * RBF()], method, LABELS)
    assert found.weights.tolist() == [0.5, 0.5]
    assert learn([Constant(1.0), RBF(), 0.0 * RBF()], method, LABELS).weights.tolist() == [0, 1, 0]


def test_easymkl_by_means_of_classes():
    found = MultipleKernel(VIEWS, "easymkl", ridge=1.0).learn(X, TWO)
    signs = 2.0 * TWO - 1.0
    g = signs / np.where(signs > 0, np.sum(signs > 0), np.sum(signs < 0))
    shares = np.array([g @ (k(X) / s) @ g for k, s in zip(found.kernels, found.sizes, strict=True)])
    np.testing.assert_allclose(found.weights, shares / shares.sum(), rtol=1e-3)


def test_kernels_as_text():
    kernel = MultipleKernel(["RBF(2.0)", "linear"], "average")
    assert kernel.kernels == (RBF(2.0), Linear())
    assert mercer.parse_kernel(repr(kernel)) == kernel
    assert KernelRidge(kernel=repr(kernel)).fit(X, NUMBERS).kernel_ == kernel.resolve(X)


@pytest.mark.data
def test_views_of_digits_and_twenty_kernels_of_noise():
    folder = DATA
    file = folder / "multiview" / "mfeat_small.npz"
    if not file.exists():
        pytest.skip("no data")
    with np.load(file) as data:
        views = [data[name].astype(float) for name in ("fou", "fac", "kar", "pix", "zer", "mor")]
        y = data["y"]
    views = [(V - V.mean(0)) / np.maximum(V.std(0), 1e-9) for V in views]
    views += [np.random.default_rng(s).normal(size=(len(y), 5)) for s in range(20)]
    ends = np.cumsum([0, *(V.shape[1] for V in views)])
    kernels = [Select(RBF("median"), slice(a, b)) for a, b in pairwise(ends.tolist())]
    found = MultipleKernel(kernels, "alignf").learn(np.hstack(views), y)
    assert found.weights[6:].sum() < 0.05
    assert found.alignment > found.alignments.max()


def test_a_sum_with_weights_to_be_learned_is_a_kernel():
    verdict = MultipleKernel([RBF(), Linear()]).validity()
    assert verdict.status == "proved"
    # depends on whether its weight is 0
    assert MultipleKernel([RBF(), Sigmoid()]).properties.order is None


@pytest.mark.parametrize(
    "evaluate", [lambda k: k(np.eye(2)), lambda k: k._tile(None, None, np.empty((2, 2)))]
)
def test_a_kernel_without_learned_weights_has_no_values(evaluate):
    with pytest.raises(ValueError, match=r"method='alignf', which must be computed from data"):
        evaluate(MultipleKernel([RBF(), Linear()]))


def test_svms_that_do_not_converge_are_reported(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    monkeypatch.setattr(_multiple_kernel, "BlockSMO", lambda: BlockSMO(max_iter=1))
    kernel = MultipleKernel([RBF(0.3), Linear()], method="simplemkl")
    with pytest.warns(ConvergenceWarning) as caught:
        kernel.learn(X, y)
    assert any("come from an SVM that did not converge: its opt" in str(w.message) for w in caught)


def test_a_search_for_weights_that_does_not_converge_is_reported(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))

    def stopped(*arguments):
        return replace(maximise(*arguments), converged=False, message="stopped")

    monkeypatch.setattr(_multiple_kernel, "maximise", stopped)
    kernel = MultipleKernel([RBF(), Linear()], method="likelihood")
    with pytest.warns(ConvergenceWarning, match=r"weights of 2 kernels stopped .*: stopped"):
        kernel.learn(X, X[:, 0])
