"""Mistakes of new users: each gets a message or a warning that says what to do."""

import warnings

import numpy as np
import pytest
import sklearn.gaussian_process.kernels
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import SVC, SVR, Graphs, KernelPCA, KernelRidge, KernelRidgeCV, NotMercerWarning
from mercer.gram import gram
from mercer.kernels import RBF, Callable, WeisfeilerLehman
from mercer.models.gp import LaplaceLikelihood
from mercer.solvers import Arpack

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.arange(40) % 2


def indefinite(x, z):
    return float(np.sin(3.0 * np.sum((x - z) ** 2)))


def conditionally_definite(x, z):
    return -float(np.sum((x - z) ** 2))


def definite(x, z):
    return float(x @ z)


# ---------------------------------------------------------------------- ridge regression


def test_ridge_without_an_intercept_warns_if_the_mean_predicts_better():
    target = X[:, 0] + 30.0
    with pytest.warns(UserWarning, match=r"worse than the mean of y.*fit_intercept=True and, for"):
        KernelRidgeCV().fit(X, target)
    with pytest.warns(UserWarning, match=r"fit_intercept=True, or subtract"):
        KernelRidgeCV(kernel=RBF(0.01)).fit(X, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidgeCV(fit_intercept=True).fit(X, target)
        KernelRidgeCV().fit(X, target - 30.0)
        KernelRidgeCV().fit(X, rng.normal(size=40))  # noise, but an intercept would not help
        KernelRidgeCV(cv=3, kernel="rbf").fit(X, target)


def test_unknown_options_of_predict():
    model = KernelRidgeCV().fit(X, X[:, 0])
    text = r"KernelRidgeCV.predict\(\) got .*'return_std'.*KernelRidge\(model.alpha_, kernel"
    with pytest.raises(TypeError, match=text):
        model.predict(X, return_std=True)
    same = KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=model.fit_intercept)
    mean, std = same.fit(X, X[:, 0]).predict(X, return_std=True)
    np.testing.assert_allclose(mean, model.predict(X))
    assert np.all(std >= 0)
    with pytest.raises(TypeError, match=r"SVR.predict\(\).*'return_std'.*GaussianProcessRegressor"):
        SVR().fit(X, X[:, 0]).predict(X, return_std=True)
    with pytest.raises(TypeError, match=r"KernelRidgeCV.predict\(\) got .*'bogus'$"):
        model.predict(X, bogus=True)
    with pytest.raises(TypeError, match=r"KernelRidge.predict\(\) got .* Did you mean return_std"):
        same.predict(X, return_sd=True)


# ---------------------------------------------------------------------- indefinite functions


@pytest.mark.parametrize("n_components", [1, 2])
def test_kernel_pca_warns_of_indefinite_functions(n_components):
    with pytest.warns(NotMercerWarning, match=r"eigenvalues from -\d.*indefinite='clip'"):
        KernelPCA(n_components, kernel=indefinite).fit(X)


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        (definite, {}),
        (conditionally_definite, {}),
        (indefinite, {"indefinite": "clip"}),
        (Callable(indefinite, "pair", order=0), {}),  # declared by the user
    ],
)
def test_kernel_pca_does_not_warn_of_other_functions(kernel, params):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPCA(2, kernel=kernel, **params).fit(X)


def test_option_neighbours_of_preimages():
    model = KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match=r"neighbours=5 is not used for vectors.*n_neighbors"):
        model.preimage(model.transform(X[:2]), neighbours=5)


# ---------------------------------------------------------------------- graphs


def molecules():
    nx = pytest.importorskip("networkx")
    one, two = nx.path_graph(3), nx.cycle_graph(4)
    for graph in (one, two):
        nx.set_node_attributes(graph, "C", "element")
        nx.set_edge_attributes(graph, "single", "bond")
        nx.set_edge_attributes(graph, 2.0, "weight")
    return [one, two]


def test_edge_labels_that_are_not_read_cause_a_warning():
    with pytest.warns(UserWarning, match=r"\['bond'\], but not 'element'.*edge_labels='bond'"):
        X = Graphs.from_networkx(molecules(), labels="element")
    assert X[0].edge_labels is None


def test_edge_labels_have_their_own_name():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = Graphs.from_networkx(molecules(), labels="element", edge_labels="bond")
        assert X[0].edge_labels.tolist() == ["single"] * len(X[0].edges)
        assert X[0].labels.tolist() == ["C"] * 3
        assert Graphs.from_networkx(molecules(), edge_labels=False)[0].edge_labels is None
        assert Graphs.from_networkx(molecules(), labels=None)[0].edge_labels is None
    with pytest.raises(ValueError, match=r"no edge has the attribute 'x'.*\['bond'\]"):
        Graphs.from_networkx(molecules(), edge_labels="x")
    with pytest.raises(ValueError, match="name of an edge attribute, None or False"):
        Graphs.from_networkx(molecules(), edge_labels=True)


def test_a_single_graph_is_not_a_collection():
    nx = pytest.importorskip("networkx")
    X = Graphs.from_networkx([nx.path_graph(n) for n in (2, 3, 4, 5)])
    model = SVC(kernel=WeisfeilerLehman()).fit(X, [0, 0, 1, 1])
    for one in (X[0], nx.path_graph(3)):
        with pytest.raises(TypeError, match=r"X\[:1\] instead of X\[0\]"):
            model.predict(one)
    with pytest.raises(TypeError, match="put it in a list"):
        WeisfeilerLehman()(X[0])


# ---------------------------------------------------------------------- tables and files


def test_a_category_column_proposes_recipes():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(["u", "v"] * 20)})
    text = r"SVC requires vectors, but the column 'c' contains 'u'.*mercer.tables.Recipe.*OneHot"
    with pytest.raises(ValueError, match=text):
        SVC().fit(table, y)
    with pytest.raises(ValueError, match=r"contains \{1\}; .*use a separate kernel per column"):
        SVC().fit(pd.DataFrame({"s": [{1}, {2}]}), [0, 1])


def test_saving_a_search_proposes_its_best_estimator(tmp_path):
    search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"type GridSearchCV; save its best_estimator_"):
        mercer.save(search, tmp_path / "model.safetensors")
    mercer.save(search.best_estimator_, tmp_path / "model.safetensors")


def test_modules_are_attributes():
    assert mercer.plotting.__name__ == "mercer.plotting"
    assert mercer.tables.__name__ == "mercer.tables"
    assert {"plotting", "tables"} <= set(dir(mercer))


# ---------------------------------------------------------------------- lower layers


def test_arpack_without_a_number_of_pairs():
    pairs = Arpack().eigenpairs(gram(RBF(), X))
    assert pairs.values.shape == (39,)
    expected = np.sort(np.linalg.eigvalsh(RBF()(X)))[:0:-1]
    np.testing.assert_allclose(pairs.values, expected, atol=1e-8)
    with pytest.raises(ValueError, match="at most n - 1 eigenpairs, but k = 40"):
        Arpack().eigenpairs(gram(RBF(), X), 40)


def test_laplace_likelihood_refuses_noise():
    with pytest.raises(ValueError, match=r"no noise variance.*add White"):
        LaplaceLikelihood(RBF(), X, y, noise=0.1)


def test_parameters_of_kernels_that_are_not_given():
    with pytest.raises(ValueError, match=r"kernel=None is the default kernel.*set \['gamma'\]"):
        SVC(kernel=None).set_params(kernel__gamma=1.0)
    kernel = sklearn.gaussian_process.kernels.RBF(2.0)
    model = mercer.GaussianProcessRegressor(kernel=kernel).set_params(kernel__length_scale=3.0)
    assert model.kernel.length_scale == 3.0


def test_a_penalty_of_a_model_without_one_is_only_unknown():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'C'\. The parameters "):
        mercer.KernelKMeans(C=1.0)
