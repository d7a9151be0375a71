"""Arrays of other libraries: estimators treat them like NumPy arrays, or raise a clear error."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mercer import (
    SVC,
    Autoencoder,
    GaussianProcessRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    MetricMDS,
    Nystroem,
    ParzenDensity,
    ProbabilisticPCA,
    RBFSampler,
)
from mercer.kernels import RBF, Callable, Linear, Select, Spectrum

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
y, weights = X[:, 0], np.abs(X[:, 1])
LABELS = np.arange(20) % 2


class LabelledArray:
    """A stand-in for xarray.DataArray: an array with named axes, and methods of data frames."""

    def __init__(self, values, dims=None):
        self.values = np.asarray(values)
        self.dims = dims or tuple(f"dim_{i}" for i in range(self.values.ndim))
        self.name = None

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)
    dtype = property(lambda self: self.values.dtype)
    size = property(lambda self: self.values.size)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return LabelledArray(self.values[rows])

    def __iter__(self):
        return (LabelledArray(value) for value in self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def to_numpy(self):
        return self.values

    def to_series(self):
        return pd.Series(self.values)

    def equals(self, other):
        return np.array_equal(self.values, other.values)

    def copy(self, deep=True):
        return LabelledArray(self.values.copy(), self.dims)

    def astype(self, dtype):
        return LabelledArray(self.values.astype(dtype), self.dims)


class Tensor(LabelledArray):
    """A stand-in for a PyTorch tensor, whose `dtype` is not a NumPy dtype."""

    dtype = property(lambda self: f"torch.{self.values.dtype}")
    to_numpy = equals = to_series = None  # attributes, but not methods

    def __getitem__(self, rows):
        return Tensor(self.values[rows])


def real_labelled_array(values):
    return pytest.importorskip("xarray").DataArray(values)


LIKES = {"stand-in": LabelledArray, "xarray": real_labelled_array, "tensor": Tensor}
MODELS = [
    KernelRidge(kernel="rbf"),
    KernelRidge(kernel=Select(RBF(1.0), [0, 1]) + Linear()),
    KernelRidge(kernel=Callable(lambda x, z: float(np.exp(-np.sum((x - z) ** 2))))),
    KernelRidge(kernel=RBF("median"), solver="nystroem", rank=5),
    GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None),
    KernelPCA(2, kernel="rbf"),
    Nystroem(n_components=4),
    ProbabilisticPCA(1),
    RBFSampler(n_components=4, random_state=0),
    SVC(),
    KernelPerceptron(),
]


def outputs(model, points):
    return getattr(model, "predict" if hasattr(model, "predict") else "transform")(points)


@pytest.mark.parametrize("kind", LIKES)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_arrays_of_other_libraries(model, kind):
    like = LIKES[kind]
    targets = LABELS if isinstance(model, (SVC, KernelPerceptron)) else y
    expected = outputs(model.fit(X, targets), NEW)
    found = outputs(model.fit(like(X), like(targets)), like(NEW))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", LIKES)
def test_weights_matrices_and_strings(kind):
    like = LIKES[kind]
    expected = KernelRidge(kernel="rbf").fit(X, y, sample_weight=weights).predict(NEW)
    found = KernelRidge(kernel="rbf").fit(like(X), like(y), sample_weight=like(weights))
    np.testing.assert_array_equal(found.predict(like(NEW)), expected)
    np.testing.assert_array_equal(RBF(1.0)(like(X), like(NEW)), RBF(1.0)(X, NEW))
    model = KernelRidge(kernel="precomputed").fit(like(X @ X.T), y)
    assert len(model.predict(like(NEW @ X.T))) == 5
    words = np.array(["ab", "ba", "bb", "aa"] * 5)
    expected = SVC(kernel=Spectrum(1)).fit(words, LABELS).decision_function(words)
    model = SVC(kernel=Spectrum(1)).fit(like(words), LABELS)
    np.testing.assert_array_equal(model.decision_function(like(words)), expected)
    np.testing.assert_array_equal(Spectrum(1)(like(words)), Spectrum(1)(words))


def test_a_dataset_is_refused():
    dataset = pytest.importorskip("xarray").Dataset({"a": ("row", y)})
    with pytest.raises(TypeError, match=r"type Dataset.*X\.to_dataframe"):
        KernelRidge().fit(dataset, y)
    assert KernelRidge().fit(dataset.to_dataframe(), y).n_features_in_ == 1


# ---------------------------------------------------------------------- masked arrays

MASKED = np.ma.masked_array(X, mask=np.abs(X) > 1.5)


@pytest.mark.parametrize(
    "model",
    [*MODELS, Autoencoder(1), MetricMDS(1), ParzenDensity()],
    ids=str,
)
def test_masked_values_are_refused(model):
    targets = LABELS if isinstance(model, (SVC, KernelPerceptron)) else y
    count = int(MASKED.mask.sum())
    with pytest.raises(ValueError, match=rf"X is a masked array, and {count} of its 60 values"):
        model.fit(MASKED, targets)
    fitted = model.fit(np.ma.masked_array(X), targets)  # no value is masked
    name = next(n for n in ("predict", "transform", "score_samples") if hasattr(fitted, n))
    with pytest.raises(ValueError, match="X is a masked array"):
        getattr(fitted, name)(MASKED)


def test_masked_targets_and_weights_are_refused():
    masked = np.ma.masked_array(y, mask=y > 0.5)
    with pytest.raises(ValueError, match=r"y is a masked array.*y\.filled"):
        KernelRidge().fit(X, masked)
    for model in (KernelRidge(), SVC()):
        with pytest.raises(ValueError, match="sample_weight is a masked array"):
            model.fit(X, LABELS, sample_weight=np.abs(masked))
    with pytest.raises(ValueError, match="X is a masked array"):
        RBF(1.0)(MASKED)


# ---------------------------------------------------------------------- objects other than arrays


class Interchange:
    """An object that has only the data frame interchange protocol."""

    def __dataframe__(self, **options):
        return pd.DataFrame(X).__dataframe__(**options)


@pytest.mark.parametrize(
    "points",
    [{"a": [1.0, 2.0]}, (row for row in X), None, Interchange(), 3.0],
    ids=lambda points: type(points).__name__,
)
def test_objects_that_are_no_arrays(points):
    for model in (KernelRidge(kernel="rbf"), SVC(), ProbabilisticPCA(1)):
        with pytest.raises((TypeError, ValueError), match=r"array of shape \(n, d\)|2D array"):
            model.fit(points, LABELS)
    with pytest.raises((TypeError, ValueError), match=r"array of shape \(n, d\)|2D array"):
        RBF(1.0)(points)


@pytest.mark.parametrize("column", [pd.Series(X.tolist()), pl.Series(X.tolist())], ids=["pd", "pl"])
def test_a_column_of_sequences(column):
    with pytest.raises(ValueError, match=r"entries are sequences.*np\.stack"):
        KernelRidge(kernel="rbf").fit(column, y)
    assert KernelRidge(kernel="rbf").fit(np.stack(column.to_list()), y).n_features_in_ == 3


TABLES = {
    "nullable": lambda a: pd.DataFrame(a, columns=list("abc")).astype("Float64"),
    "arrow-backed": lambda a: pd.DataFrame(a, columns=list("abc")).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "arrow table": lambda a: pytest.importorskip("pyarrow").table(
        {name: a[:, i] for i, name in enumerate("abc")}
    ),
    "polars": lambda a: pl.DataFrame(a, schema=list("abc")),
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a)),
    "big-endian": lambda a: a.astype(">f8"),
    "long double": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("model", [KernelRidge(kernel="rbf"), ProbabilisticPCA(1)], ids=str)
def test_other_tables(model, kind):
    if "arrow" in kind:
        pytest.importorskip("pyarrow")
    expected = outputs(model.fit(X, y), NEW)
    found = outputs(model.fit(TABLES[kind](X), y), TABLES[kind](NEW))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
