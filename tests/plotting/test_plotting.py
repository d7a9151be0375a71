"""Figures show the values of the model, and leave no global state behind."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import silhouette_score

from mercer import (
    SVC,
    SVR,
    Expansion,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
    compress,
    plotting,
    two_sample_test,
)
from mercer.datasets import three_clusters
from mercer.gram import CentredGram, DenseGram, TiledGram
from mercer.kernels import RBF, Callable, Features, GaussianBasis, Linear, Polynomial
from mercer.plotting import (
    basis_functions,
    cluster_numbers,
    contours,
    credible_band,
    eigenfunctions,
    embedding,
    gram_heatmap,
    kernel_sections,
    maps,
    margin,
    preimage_path,
    spectrum,
    validity,
    witness,
)

X, y = three_clusters(90, random_state=3)
NAMES = np.array(["west", "north", "east"])[y]
LINE = np.linspace(-1.0, 1.0, 41)
WITNESS = Expansion.mean(RBF(0.2), X[:40]) - Expansion.mean(RBF(0.2), X[40:])
BASIS = GaussianBasis(centres=[-1.0, 0.0, 1.0], width=0.4)

RIDGE = KernelRidge(0.1, kernel=RBF(0.5)).fit(LINE[::5, None], np.sin(LINE[::5]))
CLUSTERS = KernelKMeans(kernel="linear")
TWO = KernelRidge().fit(LINE[:, None], np.c_[LINE, LINE])

CALLS = {
    "spectrum": lambda **to: spectrum(MODEL, **to),
    "embedding": lambda **to: embedding(MODEL, y, **to),
    "cluster_numbers": lambda **to: cluster_numbers(CLUSTERS, X, range(2, 5), **to),
    "contours": lambda **to: contours(lambda P: P[:, 0], X, **to),
    "gram_heatmap": lambda **to: gram_heatmap(RBF(0.2), X, **to),
    "credible_band": lambda **to: credible_band(RIDGE, LINE, **to),
    "kernel_sections": lambda **to: kernel_sections(RBF(0.2), 0.0, LINE, **to),
    "basis_functions": lambda **to: basis_functions(BASIS, LINE, **to),
    "preimage_path": lambda **to: preimage_path(
        Expansion.mean(RBF(0.2), X), X[:2], n_steps=3, n_grid=20, **to
    ),
    "margin": lambda **to: margin(MACHINE, X, TWO_CLASSES, n_grid=20, **to),
    "validity": lambda **to: validity((RBF() + Linear()).validity(), **to),
    "witness": lambda **to: witness(WITNESS, X[:40], X[40:], **to),
}
SEVERAL = {  # functions that draw into several axes
    "eigenfunctions": lambda: eigenfunctions(MODEL),
    "maps": lambda: maps({"one": X, "other": -X}, y),
}
every_function = pytest.mark.parametrize("name", CALLS)


def fitted(k=8, **options):
    return KernelPCA(k, **({"kernel": RBF.from_gamma(10.0)} | options)).fit(X)


MODEL = fitted()


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def scatters(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


# --- properties of all functions ----------------------------------------------------------------


def test_every_public_name_is_tested():
    assert plotting.__all__ == sorted([*CALLS, *SEVERAL])


@every_function
def test_draws_into_the_axes_given_and_makes_no_figure(name, ax):
    assert CALLS[name](ax=ax) is ax
    assert plt.get_fignums() == []
    ax.figure.canvas.draw()


@every_function
def test_makes_one_figure_without_axes(name):
    ax = CALLS[name]()
    assert len(plt.get_fignums()) == 1
    assert ax.figure is plt.figure(plt.get_fignums()[0])
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", [*CALLS, *SEVERAL])
def test_says_what_to_install_without_matplotlib(name, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    call = {**CALLS, **SEVERAL}[name]
    with pytest.raises(ImportError, match=r"matplotlib .* - try pip install 'mercer\[plot\]'"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        spectrum,
        embedding,
        eigenfunctions,
        lambda model: embedding(model, X=X),
        lambda model: eigenfunctions(model, X),
    ],
)
def test_a_model_that_is_not_fitted_is_refused_and_leaves_no_figure(call):
    with pytest.raises(NotFittedError, match=r"KernelPCA .* not fitted yet.* - try fit"):
        call(KernelPCA(2))
    assert plt.get_fignums() == []


# --- spectrum -----------------------------------------------------------------------------------


def bars(ax):
    (lines,) = (c for c in ax.collections if isinstance(c, LineCollection))
    return np.array([segment[:, 1] for segment in lines.get_segments()])


def test_spectrum_draws_the_eigenvalues_and_the_shares(ax):
    spectrum(MODEL, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), MODEL.eigenvalues_)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 9))
    share = ax.figure.axes[-1]
    np.testing.assert_allclose(
        share.lines[0].get_ydata(), 100 * np.cumsum(MODEL.explained_variance_ratio_)
    )
    assert ax.get_yscale() == "log"
    assert share.get_ylabel() == "explained variance (%)"


def test_bars_of_the_spectrum_are_the_bounds_and_the_legend_says_how_wide(ax):
    model = fitted()
    model.eigenvalue_bounds_ = np.column_stack(
        [0.9 * model.eigenvalues_, 1.05 * model.eigenvalues_]
    )
    spectrum(model, ax=ax)
    np.testing.assert_array_equal(bars(ax), model.eigenvalue_bounds_)
    text = ax.get_legend().get_texts()[1].get_text()
    assert text == "certified bounds, relative width at most 15 %"


def test_without_bounds_the_residuals_are_the_bars(ax):
    model = fitted()
    model.eigenvalue_bounds_ = None
    model.residuals_ = 1e-6 * model.eigenvalues_
    spectrum(model, ax=ax)
    np.testing.assert_allclose(
        bars(ax), np.outer(model.eigenvalues_, [1 - 1e-6, 1 + 1e-6]), rtol=1e-12
    )
    assert "± residual, relative width at most 2e-06" in ax.get_legend().get_texts()[1].get_text()


def test_spectrum_of_a_bound_below_zero_and_of_eigenvalues_that_are_zero(ax):
    model = fitted(6, kernel=Polynomial(degree=1, coef0=0.0))  # two columns: rank two
    assert np.count_nonzero(model.eigenvalues_) == 2
    model.eigenvalue_bounds_ = np.column_stack([-np.ones(6), model.eigenvalues_ + 1.0])
    spectrum(model, ax=ax)
    ax.figure.canvas.draw()
    assert len(ax.lines[0].get_xdata()) == 2
    assert "4 more are 0" in ax.get_legend().get_texts()[0].get_text()
    assert ax.get_ylim()[0] > 0


@pytest.mark.parametrize(
    ("open_above", "words"),
    [
        (slice(5, None), "relative width at most 15 %; 3 without upper bound"),
        (slice(None), "no upper bounds"),
    ],
)
def test_a_bound_that_is_not_known_leaves_the_picture(ax, open_above, words):
    model = fitted()
    model.eigenvalue_bounds_ = np.outer(model.eigenvalues_, [0.9, 1.05])
    model.eigenvalue_bounds_[open_above, 1] = np.inf
    spectrum(model, ax=ax)
    ax.figure.canvas.draw()
    assert np.all(bars(ax)[open_above, 1] > ax.get_ylim()[1])
    assert ax.get_legend().get_texts()[1].get_text() == f"certified bounds, {words}"


def test_a_spectrum_of_nothing_is_refused():
    model = KernelPCA(2, kernel="rbf").fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"none of the 2 eigenvalues is positive - .* - try"):
        spectrum(model)
    assert plt.get_fignums() == []


# --- embedding ----------------------------------------------------------------------------------


def test_embedding_draws_training_scores_with_percentages(ax):
    embedding(MODEL, ax=ax)
    (points,) = scatters(ax)
    np.testing.assert_allclose(points.get_offsets(), MODEL.transform(X)[:, :2], atol=1e-9)
    assert ax.get_xlabel() == f"component 1 ({100 * MODEL.explained_variance_ratio_[0]:.1f} %)"
    assert ax.get_ylabel() == f"component 2 ({100 * MODEL.explained_variance_ratio_[1]:.1f} %)"
    assert ax.get_aspect() == 1.0


def test_embedding_of_new_points_and_other_components(ax):
    new = X[:7] + 0.05
    embedding(MODEL, X=new, components=(4, 1), ax=ax)
    (points,) = scatters(ax)
    np.testing.assert_allclose(points.get_offsets(), MODEL.transform(new)[:, [4, 1]])
    assert ax.get_xlabel().startswith("component 5 (")


def test_embedding_of_scores_and_of_another_model(ax):
    embedding(MODEL.transform(X), ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")
    ax.clear()
    embedding(PCA(2).fit(X), X=X, ax=ax)
    assert "%" in ax.get_xlabel()


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (y, ["0", "1", "2"]),
        (y.astype(float), ["0", "1", "2"]),
        (NAMES, ["east", "north", "west"]),
        (list(NAMES), ["east", "north", "west"]),
        (NAMES.astype(object), ["east", "north", "west"]),
        (y == 1, ["False", "True"]),
    ],
)
def test_classes_have_a_colour_each_and_a_legend(ax, labels, names):
    embedding(MODEL, labels, ax=ax)
    drawn = scatters(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names
    assert sum(len(c.get_offsets()) for c in drawn) == len(X)
    assert len({tuple(c.get_facecolor()[0]) for c in drawn}) == len(names)


def test_numbers_have_a_colour_bar(ax):
    embedding(MODEL, X[:, 0], ax=ax)
    (points,) = scatters(ax)
    np.testing.assert_array_equal(points.get_array(), X[:, 0])
    assert ax.get_legend() is None
    assert len(ax.figure.axes) == 2


def test_more_classes_than_colours_differ_in_their_marker(ax):
    embedding(MODEL, [f"class {i % 15:02d}" for i in range(90)], ax=ax)
    looks = {(tuple(c.get_facecolor()[0]), len(c.get_paths()[0])) for c in scatters(ax)}
    assert len(looks) == 15


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: embedding(MODEL, components=(0, 8)),
            "component 8 .* there are only 8, counted from 0",
        ),
        (lambda: embedding(MODEL, components=(0, -1)), "component -1 does not exist"),
        (lambda: embedding(MODEL, components=(0, 1, 2)), "got 3 components, .* two axes"),
        (lambda: embedding(MODEL, y[:-1]), r"y has shape \(89,\), but there are 90 points"),
        (lambda: embedding(MODEL, [f"{i}" for i in range(90)]), "90 classes, but only 48"),
        (lambda: embedding(X[:, 0]), r"scores of shape \(90,\)"),
        (lambda: embedding(X, X=X), "got X, but no model"),
    ],
)
def test_what_no_map_can_show_is_refused(call, words):
    with pytest.raises(ValueError, match=rf"{words}.* - .* - try"):
        call()
    assert plt.get_fignums() == []


# --- functions on the plane ---------------------------------------------------------------------


def test_maps_share_a_legend_or_a_colour_bar():
    figure = Figure(layout="constrained")
    panels = maps({str(i): X for i in range(4)}, NAMES, figure=figure, titles={"0": "first"})
    assert [panel.get_title(loc="left") for panel in panels] == ["first", "1", "2", "3"]
    assert len(figure.axes) == 6 and len(figure.legends) == 1  # two of the axes are empty
    assert [len(scatters(panel)) for panel in panels] == [3, 3, 3, 3]
    figure = Figure(layout="constrained")
    panels = maps({"a": X, "b": X[:, :1]}, X[:, 0], figure=figure)
    assert len(figure.axes) == 3 and not figure.legends
    np.testing.assert_array_equal(scatters(panels[1])[0].get_offsets()[:, 1], np.arange(90))
    grids = [maps({str(i): X for i in range(m)}, figure=Figure())[0].get_gridspec() for m in (6, 7)]
    assert [(grid.nrows, grid.ncols) for grid in grids] == [(2, 3), (2, 4)]
    assert len(maps({"a": X})) == 1 and len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match="there are no embeddings to plot"):
        maps({})


def test_eigenfunctions_make_a_grid_of_panels_with_eigenvalues():
    axes = eigenfunctions(MODEL, n_grid=15)
    assert [ax.get_title() for ax in axes] == [
        f"{j + 1}: eigenvalue {value:.4g}" for j, value in enumerate(MODEL.eigenvalues_)
    ]
    assert len(axes[0].figure.axes) == 8
    assert all(ax.get_aspect() == 1.0 for ax in axes)
    assert len(plt.get_fignums()) == 1


def test_eigenfunctions_in_axes_given_and_for_chosen_components():
    panels = Figure().subplots(2, 2)
    axes = eigenfunctions(MODEL, X[:10], components=[7, 0, 2], n_grid=10, axes=panels)
    assert list(axes) == list(panels.flat[:3])
    assert [ax.get_title()[0] for ax in axes] == ["8", "1", "3"]
    (points,) = scatters(axes[0])
    np.testing.assert_array_equal(points.get_offsets(), X[:10])
    assert not panels[1, 1].has_data()
    assert plt.get_fignums() == []


def test_empty_panels_are_removed():
    axes = eigenfunctions(MODEL, components=range(5), n_grid=8)
    assert axes.shape == (5,)
    assert len(axes[0].figure.axes) == 5


def test_a_component_without_variance_is_flat():
    model = fitted(3, kernel=Linear())
    (panel,) = eigenfunctions(model, components=[2], n_grid=8)
    assert panel.get_title() == "3: eigenvalue 0"
    panel.figure.canvas.draw()


def test_contours_follow_the_function(ax):
    contours(lambda P: P[:, 0] - 0.1, X, ax=ax)
    zero = [c for c in ax.collections if list(getattr(c, "levels", [])) == [0.0]]
    (line,) = zero
    np.testing.assert_allclose(line.get_paths()[0].vertices[:, 0], 0.1, atol=1e-9)


def test_contours_take_an_expansion_and_a_function_of_one_sign(ax):
    f = Expansion(RBF(0.3), X[:1], [1.0])
    contours(f, X, ax=ax, n_grid=20)
    filled, lines, points = ax.collections
    assert isinstance(points, PathCollection)
    assert not any(list(c.levels) == [0.0] for c in (filled, lines))


def test_contours_around_sparse_points(ax):
    contours(lambda P: P[:, 0], sp.csr_array(X), ax=ax, n_grid=5)
    np.testing.assert_array_equal(scatters(ax)[0].get_offsets(), X)


@pytest.mark.parametrize("value", [0.0, 3.0, -3.0])
def test_a_constant_is_drawn_without_lines(ax, value):
    contours(lambda P: np.full(len(P), value), X[:1], ax=ax, n_grid=5)
    assert len(ax.collections) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: contours(MODEL.expansion_, X), r"shape \(10000, 8\) for 10000 points"),
        (lambda: contours(len, np.ones((4, 3))), r"points have shape \(4, 3\)"),
        (lambda: contours(len, np.ones((0, 2))), "there are no points"),
        (lambda: contours(len, X, n_grid=1), "n_grid=1 must be an integer of at least 2"),
        (lambda: eigenfunctions(KernelPCA(1).fit(np.eye(3))), r"points have shape \(3, 3\)"),
        (lambda: eigenfunctions(MODEL, components=[8]), "component 8 .* there are only 8"),
        (
            lambda: eigenfunctions(MODEL, n_grid=5, axes=Figure().subplots(1, 3)),
            "8 functions .* only 3 axes",
        ),
    ],
)
def test_what_no_plane_can_show_is_refused(call, words):
    with pytest.raises(ValueError, match=rf"{words}.* - .* - try"):
        call()
    assert plt.get_fignums() == []


# --- the kernel matrix --------------------------------------------------------------------------


def shown(ax):
    return np.asarray(ax.images[0].get_array())


@pytest.mark.parametrize("hold", [None, DenseGram, TiledGram, np.asarray, sp.csr_array])
def test_heat_map_is_the_matrix_however_it_is_held(ax, hold):
    k = RBF(0.2)
    if hold is None:
        gram_heatmap(k, X, ax=ax)
    elif hold in (DenseGram, TiledGram):
        gram_heatmap(hold(k, X), ax=ax)
    else:
        gram_heatmap(hold(k(X)), ax=ax)
    np.testing.assert_allclose(shown(ax), k(X), atol=1e-12)
    assert ax.get_title() == "90 points"


def test_heat_map_of_the_centred_matrix(ax):
    centred = CentredGram(TiledGram(RBF(0.2), X))
    gram_heatmap(centred, order=y, ax=ax, max_size=30)
    rows = np.argsort(y, kind="stable")[np.rint(np.linspace(0, 89, 30)).astype(int)]
    np.testing.assert_allclose(shown(ax), centred.to_array()[np.ix_(rows, rows)], atol=1e-12)
    low, high = ax.images[0].get_clim()
    assert low == -high  # with both signs, white is 0


def test_heat_map_is_sorted_and_its_classes_are_named(ax):
    gram_heatmap(RBF(0.2), X, order=NAMES, ax=ax)
    rows = np.argsort(NAMES, kind="stable")
    np.testing.assert_array_equal(shown(ax), RBF(0.2)(X[rows]))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["east", "north", "west"]
    assert [line.get_ydata()[0] for line in ax.lines[::2]] == [29.5, 59.5]


def test_heat_map_sorted_by_a_number_has_no_lines(ax):
    gram_heatmap(RBF(0.2), X, order=X[:, 0], ax=ax)
    assert not ax.lines
    assert np.all(np.diff(shown(ax)[0]) < 0.5)


def test_heat_map_of_many_points_is_thinned_before_anything_is_computed(ax):
    seen = []

    def block(A, B):
        seen.append((len(A), len(B)))
        return A @ B.T

    many = np.random.default_rng(0).normal(size=(100_000, 2))
    gram_heatmap(Callable(block), many, ax=ax, max_size=50)
    assert shown(ax).shape == (50, 50)
    assert max(max(size) for size in seen) <= 50
    assert ax.get_title() == "50 of 100000 points, evenly spaced"
    np.testing.assert_allclose(shown(ax)[0, -1], many[0] @ many[-1])  # both ends are included


def test_a_class_that_thinning_left_out_has_no_name(ax):
    order = np.r_[np.zeros(60, int), [1], np.full(39, 2)]
    gram_heatmap(np.eye(100), order=order, ax=ax, max_size=5)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "2"]
    assert len(ax.lines) == 2  # one border, horizontal and vertical


def test_heat_map_of_two_collections(ax):
    gram_heatmap(TiledGram(RBF(0.2), X, X[:20]), ax=ax, max_size=30)
    assert shown(ax).shape == (30, 20)
    assert ax.get_title() == "30 × 20 of 90 × 20 points, evenly spaced"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gram_heatmap(RBF()), "a kernel without points"),
        (lambda: gram_heatmap(np.eye(3), np.eye(3)), "points and a ndarray"),
        (lambda: gram_heatmap(np.ones(3)), r"got shape \(3,\)"),
        (lambda: gram_heatmap(np.ones((0, 0))), r"got shape \(0, 0\)"),
        (lambda: gram_heatmap(np.ones((3, 2)), order=[1, 2, 3]), "matrix is 3 x 2"),
        (lambda: gram_heatmap(np.eye(3), order=[1, 2]), r"y has shape \(2,\)"),
        (lambda: gram_heatmap(np.eye(3), max_size=1), "max_size=1 must be an integer"),
        (lambda: gram_heatmap(np.eye(3), max_size=0.5), "max_size=0.5 must be an integer"),
    ],
)
def test_what_is_not_a_matrix_is_refused(call, words):
    with pytest.raises(ValueError, match=rf"{words}.* - .* - try"):
        call()
    assert plt.get_fignums() == []


# --- functions on the line ----------------------------------------------------------------------


@pytest.mark.parametrize("at", [[0.0, -0.5], np.linspace(-1, 1, 5), np.linspace(-1, 1, 12)])
def test_sections_are_columns_of_the_kernel_and_marked(ax, at):
    kernel_sections(RBF(0.3), at, LINE, ax=ax)
    curves, crosses = ax.lines[::2], ax.lines[1::2]
    values = RBF(0.3)(LINE[:, None], np.asarray(at)[:, None])
    np.testing.assert_allclose(np.array([c.get_ydata() for c in curves]).T, values)
    assert [c.get_xdata()[0] for c in crosses] == list(at)
    assert (ax.get_legend() is not None) == (len(at) <= 10)
    assert len({str(c.get_color()) for c in curves}) == len(at)


def test_sections_resolve_the_kernel_and_write_a_minus(ax):
    kernel_sections(RBF("median"), -0.5, LINE[:, None], ax=ax)
    assert ax.lines[0].get_label() == "x' = −0.5"


@pytest.mark.parametrize("basis", [BASIS, Features(BASIS), lambda A: sp.csr_array(BASIS(A))])
def test_basis_functions_are_the_features(ax, basis):
    basis_functions(basis, LINE, ax=ax)
    drawn = np.array([line.get_ydata() for line in ax.lines]).T
    np.testing.assert_array_equal(drawn, BASIS(LINE[:, None]))
    assert ax.get_xlim() == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kernel_sections("rbf", 0.0, LINE), TypeError, "'rbf', which is not a Kernel"),
        (lambda: kernel_sections(RBF(), 0.0, X), ValueError, r"x has shape \(90, 2\)"),
        (lambda: kernel_sections(RBF(), X, LINE), ValueError, r"at has shape \(90, 2\)"),
        (lambda: kernel_sections(RBF(), [], LINE), ValueError, r"at has shape \(0,\)"),
        (lambda: basis_functions(RBF(), LINE), TypeError, "which is not a basis"),
        (lambda: basis_functions(3, LINE), TypeError, "got 3, which is not a basis"),
        (lambda: basis_functions(np.ravel, LINE), ValueError, r"shape \(41,\) for 41 points"),
    ],
)
def test_what_no_line_can_show_is_refused(call, error, words):
    with pytest.raises(error, match=rf"{words}.* - .* - try"):
        call()
    assert plt.get_fignums() == []


def test_a_band_is_the_mean_and_its_deviations(ax):
    credible_band(RIDGE, LINE, LINE[::5], np.sin(LINE[::5]), width=3.0, ax=ax)
    mean, deviation = RIDGE.predict(LINE[:, None], return_std=True)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), mean)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), np.sin(LINE[::5]))
    (band,) = ax.collections
    drawn = band.get_paths()[0].vertices[:, 1]
    assert drawn.max() == pytest.approx((mean + 3.0 * deviation).max())
    assert drawn.min() == pytest.approx((mean - 3.0 * deviation).min())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: credible_band(MODEL, LINE), AttributeError, "predict"),
        (lambda: credible_band(PCA(), LINE), AttributeError, "predict"),
        (lambda: credible_band(LinearRegression(), LINE), TypeError, "does not predict standard"),
        (lambda: credible_band(RIDGE, X), ValueError, r"x has shape \(90, 2\)"),
        (lambda: credible_band(TWO, LINE), ValueError, "the model has 2 targets"),
        (lambda: credible_band(RIDGE, LINE, width=0), ValueError, "width must be a positive"),
    ],
)
def test_bands_that_cannot_be_drawn(call, error, words):
    with pytest.raises(error, match=words):
        call()
    assert plt.get_fignums() == []


# --- preimage_path ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fixed_point", "regularized", "gradient"])
def test_a_path_leads_from_the_start_to_the_pre_image(ax, method):
    mean = Expansion.mean(RBF(0.3), X)
    start = np.array([[-0.5, 0.0], [0.5, 0.4]])
    preimage_path(mean, start, ax=ax, method=method, n_grid=20, n_steps=500)
    paths = [line.get_xydata() for line in ax.lines[::3]]
    for z, path in zip(start, paths, strict=True):
        np.testing.assert_array_equal(path[0], z)
        np.testing.assert_allclose(path[-1], mean.preimage(method, start=z[None]).points[0])
        if method != "regularized":
            # every iteration decreases the objective
            assert np.all(np.diff(mean(path)[:, 0]) >= -1e-12)


def test_what_has_no_path_is_refused():
    with pytest.raises(ValueError, match=r"90 functions, but the plot.* - .* - try f\[0\]"):
        preimage_path(Expansion.sections(RBF(0.2), X), X[:1])
    with pytest.raises(ValueError, match=r"method='nearest' has no path to plot - .* - try one of"):
        preimage_path(Expansion.mean(RBF(0.2), X), X[:1], method="nearest")
    assert plt.get_fignums() == []


# --- witness ------------------------------------------------------------------------------------


def test_the_witness_on_the_line_is_the_difference_of_the_means(ax):
    A, B = LINE[:20, None], LINE[20:, None]
    result = two_sample_test(A, B, RBF(0.3), n_permutations=19)
    witness(result, A, B, ax=ax, n_grid=50)
    curve = next(line for line in ax.lines if line.get_label() == "witness")
    grid = curve.get_xdata()[:, None]
    expected = RBF(0.3)(grid, A).mean(axis=1) - RBF(0.3)(grid, B).mean(axis=1)
    np.testing.assert_allclose(curve.get_ydata(), expected, atol=1e-12)
    assert len(grid) == 50 and grid.min() < -1.0 < 1.0 < grid.max()
    marks = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_array_equal(marks["X"], A[:, 0])
    np.testing.assert_array_equal(marks["Y"], B[:, 0])


def test_the_witness_on_the_plane_shows_both_samples(ax):
    witness(WITNESS, X[:40], X[40:], ax=ax)
    first, second = scatters(ax)
    np.testing.assert_array_equal(first.get_offsets(), X[:40])
    np.testing.assert_array_equal(second.get_offsets(), X[40:])
    assert [first.get_label(), second.get_label()] == ["X", "Y"]
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())


def test_what_has_no_witness_is_refused():
    with pytest.raises(
        TypeError, match=r"has no witness function - .* - try the result of two_sample_test"
    ):
        witness(X, X[:40], X[40:])
    with pytest.raises(ValueError, match=r"shapes \(90, 2\) and \(41, 1\).* - try to select"):
        witness(WITNESS, X, LINE[:, None])
    with pytest.raises(ValueError, match=r"Y has no points - usually because a selection is empty"):
        witness(WITNESS, X, X[:0])
    with pytest.raises(ValueError, match=r"shape \(400, 2\) for 400 points.* - try one of them"):
        witness(lambda P: np.column_stack([P, P]), LINE[:, None], LINE[:, None])
    with pytest.raises(ValueError, match=r"n_grid=-3 must be an integer.* - .* - try"):
        witness(lambda P: P[:, 0], LINE[:, None], LINE[:, None], n_grid=-3)
    assert plt.get_fignums() == []


# --- margin -------------------------------------------------------------------------------------

TWO_CLASSES = y > 0
MACHINE = SVC(C=1.0, gamma=2.0).fit(X, TWO_CLASSES)
WAVE = np.sin(3.0 * LINE) + 0.3 * np.cos(40.0 * LINE)


def rings(ax):
    """Return the coordinates of the open circles, and of the open squares."""
    found = {"free": np.empty((0, 2)), "bound": np.empty((0, 2))}
    for c in scatters(ax):
        for kind in found:
            if kind in str(c.get_label()):
                found[kind] = np.asarray(c.get_offsets())
    return found["free"], found["bound"]


def rows_of(points, X):
    return sorted(int(np.flatnonzero((p == X).all(axis=1))[0]) for p in points)


@pytest.mark.parametrize("weights", [None, 1.0 + (np.arange(90) % 3)])
def test_free_support_vectors_are_distinguished_from_those_at_their_bound(ax, weights):
    noisy = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    model = SVC(C=0.7, gamma=1.0).fit(noisy, TWO_CLASSES, weights)
    free, bound = rings(margin(model, noisy, TWO_CLASSES, ax=ax, n_grid=30))
    C = 0.7 * (np.ones(90) if weights is None else weights)[model.support_]
    at_bound = np.isclose(np.abs(model.dual_coef_[0]), C, rtol=1e-9, atol=0.0)
    assert 0 < at_bound.sum() < len(C)
    assert rows_of(bound, noisy) == sorted(model.support_[at_bound])
    assert rows_of(free, noisy) == sorted(model.support_[~at_bound])


@pytest.mark.parametrize("tol", [1e-3, 0.3])
@pytest.mark.parametrize(
    "model",
    [
        SVC(C=0.7, gamma=1.0),
        NuSVC(nu=0.4712, gamma=1.0),
        NuSVC(nu=0.6123, kernel="linear", solver="primal"),
        OneClassSVM(nu=0.3, gamma=1.0),
        SVR(epsilon=0.1, C=0.5),
        NuSVR(nu=0.5, C=0.5),
    ],
    ids=repr,
)
def test_the_rings_are_those_that_the_certificate_counts(ax, model, tol):
    noisy = np.resize(X, (2000, 2)) + 0.2 * np.random.default_rng(0).normal(size=(2000, 2))
    labels = np.resize(TWO_CLASSES, 2000)
    if hasattr(model, "epsilon") or isinstance(model, NuSVR):  # one-dimensional
        noisy, labels = noisy[:, :1], noisy[:, 1]
    model.set_params(tol=tol).fit(noisy, labels)
    free, bound = rings(margin(model, noisy, labels, ax=ax, n_grid=10))
    counted = [model.report_.certificate[name] for name in ("n_free", "n_bound")]
    assert [len(free), len(bound)] == counted
    assert min(counted) > 0
    assert len(model.at_bound_) == len(model.support_)
    # Only free support vectors, and all of them, lie between the bound and 0.
    a, w = np.abs(model.dual_coef_[0]), np.abs(model.dual_coef_).max()
    np.testing.assert_array_equal(model.at_bound_, a >= w * (1.0 - 1e-9))


def test_the_lines_of_a_margin_are_where_f_is_0_and_1(ax):
    margin(MACHINE, X, TWO_CLASSES, ax=ax)
    lines = {tuple(c.levels): c for c in ax.collections if hasattr(c, "levels")}
    for levels in ((0.0,), (-1.0, 1.0)):
        for level, path in zip(levels, lines[levels].get_paths(), strict=True):
            f = MACHINE.decision_function(path.vertices)
            np.testing.assert_allclose(f, level, atol=0.01)
    assert [t.get_text() for t in ax.get_legend().get_texts()][:2] == ["False", "True"]


def test_regions_of_several_classes_and_their_support_vectors(ax):
    noisy = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    model = SVC(C=2.0, gamma=1.0).fit(noisy, NAMES)
    free, bound = rings(margin(model, noisy, NAMES, ax=ax, n_grid=40))
    at_bound = np.any(np.abs(model.dual_coef_) >= 2.0 - 1e-9, axis=0)
    assert rows_of(bound, noisy) == sorted(model.support_[at_bound])
    assert rows_of(free, noisy) == sorted(model.support_[~at_bound])
    regions = next(c for c in ax.collections if hasattr(c, "levels"))
    for c, path in enumerate(regions.get_paths()):  # contains a point of the class
        inside = noisy[model.predict(noisy) == model.classes_[c]]
        assert np.mean(path.contains_points(inside)) > 0.8


def test_one_class_has_its_edge_through_the_free_support_vectors(ax):
    model = OneClassSVM(nu=0.2, gamma=2.0).fit(X)
    free, bound = rings(margin(model, X, ax=ax))
    np.testing.assert_allclose(model.decision_function(free), 0.0, atol=2e-3)
    assert np.all(model.decision_function(bound) < -2e-3)
    assert len(free) + len(bound) == len(model.support_)


@pytest.mark.parametrize("model", [SVR(epsilon=0.25, C=2.0), NuSVR(nu=0.3, C=2.0)])
def test_a_tube_has_the_free_support_vectors_on_its_edge(ax, model):
    model.fit(LINE[:, None], WAVE)
    free, bound = rings(margin(model, LINE, WAVE, ax=ax))
    tube = ax.collections[0].get_paths()[0].vertices
    f = model.predict(tube[:, :1])
    inner = (tube[:, 0] > -1.0) & (tube[:, 0] < 1.0)
    epsilon = np.median(np.abs(tube[inner, 1] - f[inner]))
    if isinstance(model, SVR):
        assert epsilon == pytest.approx(0.25)
    assert len(free) and len(bound)
    away = [np.abs(part[:, 1] - model.predict(part[:, :1])) for part in (free, bound)]
    np.testing.assert_allclose(away[0], epsilon, atol=2.1e-3)
    assert np.all(away[1] > epsilon)
    inside = np.abs(WAVE - model.predict(LINE[:, None])) < epsilon - 2.1e-3
    assert not inside[model.support_].any()


def test_what_has_no_margin_is_refused():
    with pytest.raises(NotFittedError, match=r"SVC has no at_bound_ - .* not fitted yet.* - try"):
        margin(SVC(), X)
    with pytest.raises(NotFittedError, match=r"KernelPCA has no at_bound_ - .* another kind of m"):
        margin(MODEL, X)
    tube = SVR().fit(LINE[:, None], WAVE)
    with pytest.raises(ValueError, match=r"y has shape \(\), but there are 41 points - .* - try"):
        margin(tube, LINE)
    with pytest.raises(ValueError, match=r"X has shape \(90, 2\)"):
        margin(SVR().fit(X, X[:, 0]), X, X[:, 0])
    with pytest.raises(ValueError, match=r"points have shape \(3, 3\).* - try"):
        margin(SVC().fit(np.eye(3), [0, 0, 1]), np.eye(3))
    with pytest.raises(ValueError, match=r"X has 80 points, .* SVC was fitted to 90 - .* - try"):
        margin(MACHINE, X[:80], TWO_CLASSES[:80])
    with pytest.raises(ValueError, match=r"X has 40 points, .* SVR was fitted to 41 - .* - try"):
        margin(tube, LINE[:40], WAVE[:40])
    of_matrix = SVC(kernel="precomputed").fit(RBF(0.2)(X), TWO_CLASSES)
    with pytest.raises(ValueError, match="SVC has a precomputed kernel, but a plot needs vec"):
        margin(of_matrix, X, TWO_CLASSES)
    short = compress(MACHINE, 5)
    with pytest.raises(ValueError, match=r"SVC was compressed to 5 .* plotting\.contours"):
        margin(short, X, TWO_CLASSES)
    with pytest.raises(ValueError, match=r"NaN.*\nmargin does not accept"):
        margin(MACHINE, np.where(np.eye(90, 2) > 0, np.nan, X))
    for n_grid in (0, -3, 1, 0.1):
        for drawn in ((MACHINE, X, TWO_CLASSES), (tube, LINE, WAVE)):
            with pytest.raises(ValueError, match=rf"n_grid={n_grid} must be an int.* - .* - try"):
                margin(*drawn, n_grid=n_grid)
    assert plt.get_fignums() == []


# --- cluster numbers ----------------------------------------------------------------------------


def test_cluster_numbers_are_those_of_the_fits(ax):
    cluster_numbers(CLUSTERS, X, [3, 2, 4], ax)
    inertia = ax.lines[0].get_xydata()
    fits = [KernelKMeans(c, kernel="linear").fit(X) for c in (2, 3, 4)]
    np.testing.assert_allclose(inertia, [(m.n_clusters, m.inertia_) for m in fits])
    right = ax.figure.axes[-1]
    score = [silhouette_score(X, m.labels_) for m in fits]
    np.testing.assert_allclose(right.lines[0].get_ydata(), score)
    assert right.lines[0].get_label() == "mean silhouette, largest at 3"


def test_cluster_numbers_start_at_two(ax):
    with pytest.raises(ValueError, match=r"\[1, 2\] - usually because the range begins at 1"):
        cluster_numbers(CLUSTERS, X, [1, 2], ax)
