"""Models of tables with numbers, categories and texts: frames, save, rules, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer
from mercer import (
    SVC,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    Nystroem,
)
from mercer.kernels import (
    RBF,
    AitchisonAitken,
    Equal,
    Kendall,
    Normalized,
    Select,
    Spectrum,
    White,
)

N = 60
KERNEL = (
    Select(RBF("median"), ["age", "fare"]) * Select(Equal(), "sex")
    + Select(Normalized(Spectrum(2)), "name")
    + Select(AitchisonAitken(0.1), ["port", "survived"])
)


def passengers(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(1, 80, n),
            "fare": rng.gamma(2.0, 10.0, n),
            "sex": rng.choice(["male", "female", None], n),
            "port": pd.Categorical(rng.choice(["C", "Q", "S"], n)),
            "survived": rng.random(n) < 0.4,
            "name": ["".join(rng.choice(list("abcd"), 6)) for _ in range(n)],
        }
    )


FRAME = passengers()
Y = FRAME["age"] / 20 + 2.0 * (FRAME["sex"] == "male") + FRAME["name"].str.count("a")
FRAMES = {
    "pandas": FRAME,
    "objects": FRAME.astype(object),
    "nullable": FRAME.convert_dtypes(),
    "polars": pl.from_pandas(FRAME),
    "polars strings": pl.from_pandas(FRAME).with_columns(pl.col("port").cast(pl.String)),
}
MODELS = [
    KernelRidge(kernel=KERNEL, alpha=0.1),
    KernelRidge(kernel=repr(KERNEL)),
    KernelRidge(kernel=KERNEL, solver="nystroem"),
    SVC(kernel=KERNEL),
    KernelLogisticRegression(kernel=KERNEL),
    GaussianProcessRegressor(1.0 * KERNEL + White(0.1), optimizer=None),
    KernelPCA(2, kernel=KERNEL),
    KernelKMeans(3, kernel=KERNEL, random_state=0),
    Nystroem(kernel=KERNEL, n_components=20, random_state=0),
]


def targets(model):
    is_classifier = isinstance(model, (SVC, KernelLogisticRegression))
    return (Y.mean() < Y).to_numpy() if is_classifier else Y.to_numpy()


def output(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_every_frame_gives_the_same_model(model, form):
    want = output(model.fit(FRAME, targets(model)), FRAME[:20])
    X = FRAMES[form]
    found = output(model.fit(X, targets(model)), X[:20])
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
    # A model that is fitted to one kind of frame predicts from the other kinds, with columns in
    # any order, with additional columns, and with values that did not occur.
    np.testing.assert_allclose(output(model, FRAME[:20]), want, rtol=1e-9, atol=1e-9)
    other = FRAME[FRAME.columns[::-1]].assign(extra=1)[:20]
    np.testing.assert_allclose(output(model, other), want, rtol=1e-9, atol=1e-9)
    assert np.isfinite(output(model, FRAME.assign(sex="unknown", port="X"))).all()


@pytest.mark.parametrize("form", ["pandas", "objects", "polars", "polars strings"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_save(model, form, tmp_path):
    X = FRAMES[form]
    model.fit(X, targets(model))
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(output(loaded, X), output(model, X))


def test_rules_are_resolved_on_the_selected_columns():
    model = KernelRidge(kernel=KERNEL).fit(FRAME, Y)
    numbers = FRAME[["age", "fare"]].to_numpy(dtype=float)
    parts = model.kernel_.get_params()
    found = parts["terms__0__factors__0__kernel"]
    assert found == RBF("median").resolve(numbers)
    assert parts["terms__2__kernel__n_levels"] == (3, 2)


@pytest.mark.parametrize("as_rows", [lambda f: f, pl.from_pandas, pd.DataFrame.to_numpy, np.array])
def test_columns_by_index(as_rows):
    k = Select(RBF(20.0), [0, 1]) * Select(Equal(), 2) + Select(Spectrum(2), -1)
    assert not k.domain.on_vectors
    X = as_rows(FRAME)
    by_name = Select(RBF(20.0), ["age", "fare"]) * Select(Equal(), "sex")
    by_name += Select(Spectrum(2), "name")
    want = KernelRidge(kernel=by_name).fit(FRAME, Y).predict(FRAME)
    np.testing.assert_allclose(KernelRidge(kernel=k).fit(X, Y).predict(X), want, rtol=1e-9)
    rows = FRAME.to_numpy().tolist()
    np.testing.assert_allclose(k(rows), by_name(FRAME), rtol=1e-12)


def test_object_arrays_in_fortran_order_are_copied():
    X = np.asfortranarray(np.array([["a", 1.0], ["b", 2.0], ["a", 3.0]], dtype=object))
    model = KernelRidge(kernel=Equal(), alpha=1e-6).fit(X, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(model.X_fit_, X)


def test_rankings_with_missing_ranks_in_a_product():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.array([rng.permutation(4) for _ in range(20)]), rng.normal(size=20)])
    X[3, 1] = np.nan  # an item without a rank
    k = Select(Kendall(), [0, 1, 2, 3]) * Select(RBF(1.0), [4])
    assert KernelPCA(2, kernel=k).fit_transform(X).shape == (20, 2)


def missing(frame):
    frame = frame.astype({"age": float})
    frame.loc[[3, 5], "age"] = np.nan
    return frame


MISSING = missing(FRAME)
ERRORS = {
    "missing numbers": (MISSING, Select(RBF(), ["age", "fare"]), r"column 'age' \(2\) of the 60"),
    "missing number": (MISSING, Select(RBF(), "age") + 1, "RBF.* needs numbers. Replace them"),
    "null": (pl.from_pandas(MISSING), Select(RBF(), "age"), r"column 'age' \(2\) of the 60 rows"),
    "nullable": (MISSING.convert_dtypes(), Select(RBF(), "age"), r"column 'age' \(2\)"),
    "misspelt": (FRAME, Select(RBF(), ["Fares"]), "no column 'Fares' .* did you mean 'fare'"),
    "polars": (FRAMES["polars"], Select(RBF(), "Age"), "no column 'Age' .* did you mean 'age'"),
    "unknown": (FRAME, Select(RBF(), "xyz"), "no column 'xyz' among 'age', .*, 'name'$"),
    "many": (
        pd.DataFrame(np.eye(30), columns=[f"c{i}" for i in range(30)]),
        Select(RBF(), "x"),
        "'c11' and 18 others",
    ),
    "twice": (
        pd.concat([FRAME, FRAME[["age"]]], axis=1),
        Select(RBF(), ["fare", "age"]),
        "2 columns have the name 'age'; rename",
    ),
    "strings": (FRAME, Select(RBF(), ["age", "sex"]), r"Select\(Equal\(\), 'sex'\) for categories"),
    "first is missing": (
        FRAME.sort_values("sex", na_position="first"),
        Select(RBF(), ["age", "sex"]),
        "the column 'sex' contains 'female'",
    ),
    "a string": (FRAME, Select(RBF(), "sex"), r"kernels for strings are Equal \(categories\)"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    X, kernel, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        KernelPCA(1, kernel=kernel).fit(X)
