"""Preprocessing of columns: types are detected, treatments are fitted, stored and described."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from mercer.tables import (
    DateColumn,
    Recipe,
    Table,
    TableError,
    TableModel,
    UnknownValuesWarning,
    UnreadableColumn,
    label_values,
    open_table,
    read_table,
)

rng = np.random.default_rng(0)


def text(*values):
    return np.array(values, dtype=object)


def table(**changes):
    columns = {
        "x": np.array([1.0, 2.0, 4.0, 9.0]),
        "n": np.array([3.0, np.nan, 5.0, 5.0]),
        "city": text("Ulm", "Bonn", None, "Bonn"),
        "y": np.array([0.0, 1.0, 1.0, 0.0]),
    }
    lines = np.arange(2, 6)
    return Table({**columns, **changes}, "a.csv", lines)


def test_features_equal_those_of_scikit_learn():
    given = table(n=np.arange(4.0), city=text("Ulm", "Bonn", "Köln", "Bonn"))
    recipe = Recipe(target="y", standardize=True, onehot=("city",)).fit(given)
    X = recipe.transform(given)
    numbers = np.column_stack([given.columns["x"], given.columns["n"]])
    np.testing.assert_allclose(X[:, :2], StandardScaler().fit_transform(numbers), rtol=1e-15)
    hot = OneHotEncoder(sparse_output=False).fit_transform(given.columns["city"][:, None])
    np.testing.assert_array_equal(X[:, 2:], hot)
    assert recipe.features == ["x", "n", "city=Bonn", "city=Köln", "city=Ulm"]
    assert recipe.targets(given, labels=True).tolist() == [0, 1, 1, 0]
    restored = recipe.inverse_transform(X)
    np.testing.assert_allclose(restored["x"], given.columns["x"], rtol=1e-14)


def test_fit_to_blocks_equals_fit_to_the_table():
    big = Table({"x": rng.normal(size=1000), "c": text(*rng.choice(list("abc"), 1000))})
    recipe = Recipe(standardize=True, onehot="all", impute="mean")
    blocks = [big.take(slice(i, i + 300)) for i in range(0, 1000, 300)]
    one, many = clone(recipe).fit(big), clone(recipe).fit(blocks)
    np.testing.assert_allclose(one.transform(big), many.transform(big), atol=1e-14)
    with pytest.raises(TableError, match="too large to read at once, as --impute median requires"):
        Recipe(impute="median", onehot="all").fit(blocks)


@pytest.mark.parametrize(
    ("impute", "filled"),
    [("mean", 13 / 3), ("median", 5.0), ("most_frequent", 5.0), (-1.0, -1.0)],
)
def test_missing_values_are_filled_as_requested(impute, filled):
    recipe = Recipe(target="y", standardize=False, impute=impute).fit(table())
    X = recipe.transform(table())
    assert X[1, 1] == pytest.approx(filled)
    assert X[2, 2:].tolist() == [1.0, 0.0]  # Bonn is the most frequent value
    assert any(f"filled with {filled:.4g}" in line for line in recipe.describe())


def test_rows_with_missing_values_are_left_out_on_request():
    recipe = Recipe(target="y", onehot=("city",), impute="drop").fit(table())
    assert recipe.kept_rows(table()).tolist() == [0, 3]
    assert recipe.transform(table()).shape == (2, 4)
    answer = recipe.result_table(table(), {"p": np.zeros(2)}, ["city"])
    assert answer.columns["row"].tolist() == [1, 4]
    assert answer.columns["city"].tolist() == ["Ulm", "Bonn"]


INFINITE = np.array([1.0, np.inf, 2.0, 3.0])
REFUSED = {
    "no column 'z'": ({"ignore": ("city", "n"), "columns": ("z",)}, {}),
    "no columns 'z', 'u'; its columns are": ({"columns": ("z", "u")}, {}),
    "no column 'citi'; did you mean 'city'": ({"ignore": ("citi",)}, {}),
    "'men' must be one of .*did you mean 'mean'": ({"ignore": ("city",), "impute": "men"}, {}),
    "'dat' of the column 'x' is not one of .*did you mean 'date'": ({"types": {"x": "dat"}}, {}),
    "column 'city': the type is category, not number": ({"types": {"city": "number"}}, {}),
    "impute: 'numbers' is not one of number": ({"impute": {"numbers": "mean"}}, {}),
    "has no columns to use as features": ({"ignore": ("x", "n", "city", "y")}, {}),
    "onehot contains the column 'city', which": ({"onehot": ("city",), "ignore": ("city",)}, {}),
    "has no column of graphs": ({"points": "graphs"}, {}),
    "2 columns of text: 'city', 't'.*--columns": ({"points": "texts"}, {"t": text(*"abcd")}),
    "no columns to use as features: 'x' is constant": ({"columns": ("x",)}, {"x": text(*"aaaa")}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_invalid_requests_are_refused(message):
    recipe, changes = REFUSED[message]
    with pytest.raises(TableError, match=f"(?s){message}"):
        Recipe(**recipe).fit(table(**changes))


def test_strict_lists_all_decisions_at_once():
    dates = np.array(["2024-01-01", "2024-03-01", "2024-05-01", "NaT"], "M8[us]")
    given = table(day=dates, nothing=np.full(4, np.nan))
    with pytest.raises(TableError, match=r"automatically \(strict\)") as caught:
        Recipe(strict=True).fit(given)
    for words in (
        "a.csv: 4 columns need a decision",
        "'n' has 1 missing value, first on line 3",
        "'city' contains categories (2 different values) and has 1 missing value, first on line 4",
        "'day' contains dates and has 1 missing value, first on line 5",
        "'nothing' is empty",
        "add: --onehot city --ignore nothing --type day=date --impute mean",
    ):
        assert words in str(caught.value)
    decided = {"onehot": ("city",), "ignore": ("nothing",), "types": {"day": "date"}}
    decided["impute"] = "mean"
    strict = Recipe(strict=True, **decided).fit(given)
    np.testing.assert_array_equal(strict.transform(given), Recipe(**decided).fit_transform(given))


def test_unknown_values_are_ignored_refused_or_dropped():
    recipe = Recipe(target="y", impute="mean").fit(table())
    new = table(city=text("Ulm", "Bonn", "Rom", None), x=text("1", "2", "4", "?x"))
    with pytest.warns(UnknownValuesWarning) as caught:
        X = recipe.transform(new)
    assert "column 'x': 1 of 4 values are texts, not numbers, such as '?x' on line 5" in str(
        caught[0].message
    )
    assert "'city': 1 of 4 values did not occur in the training rows, such as 'Rom' on line 4" in (
        str(caught[0].message)
    )
    assert X[2, 2:].tolist() == [0.0, 0.0] and X[3, 2:].tolist() == [1.0, 0.0]
    refusing = clone(recipe).set_params(unknown="error").fit(table())
    with pytest.raises(
        TableError, match=r"column 'x': 1 of.*; column 'city': 1 of.*--unknown ignore"
    ):
        refusing.transform(new)
    dropping = clone(recipe).set_params(unknown="drop").fit(table())
    assert dropping.kept_rows(new).tolist() == [0, 1]
    with pytest.warns(UnknownValuesWarning, match=r"are dropped: column 'x'.*column 'city'"):
        assert len(dropping.transform(new)) == 2


def test_wrong_files_are_refused():
    recipe = Recipe(target="y", impute="mean").fit(table())
    with pytest.raises(TableError, match="has no column 'n'"):
        recipe.transform(Table({"x": np.ones(1), "city": text("Ulm")}, "b.csv"))
    with pytest.raises(TableError, match="has no columns 'n', 'city', which the model uses"):
        recipe.transform(Table({"x": np.ones(1)}, "b.csv"))
    with pytest.raises(TableError, match=r"column 'x': 4 of 4 values are texts, not numbers"):
        recipe.transform(table(x=text("a", "b", "c", "d")))
    with pytest.raises(
        TableError, match=r"the target contains text \('a' on line 2\).*mercer fit svc"
    ):
        recipe.targets(table(y=text(*"abab")), labels=False)
    with pytest.raises(TableError, match="the target contains dates"):
        recipe.targets(table(y=np.array(["2024-01-01"] * 4, "M8[us]")), labels=False)
    with pytest.raises(ValueError, match="not fitted yet"):
        Recipe().transform(table())


def test_a_column_may_be_missing_in_some_blocks():
    """For example, a sensor that was switched on late, or off early."""
    x = rng.normal(size=90) + 5
    for some in (slice(0, 30), slice(30, 60), slice(60, 90)):
        seen = np.full(90, np.nan)
        seen[some] = x[some]
        whole = Table({"x": seen, "y": np.full(90, 3.0)})
        blocks = [whole.take(slice(i, i + 30)) for i in (0, 30, 60)]
        learned = Recipe(standardize=True, types={"y": "number"}).fit(blocks).encoders_
        assert learned[0].mean == pytest.approx(x[some].mean(), rel=1e-14)
        assert learned[0].scale == pytest.approx(x[some].std(), rel=1e-13)
        assert (learned[1].mean, learned[1].scale) == (3.0, 1.0)


NOTHING = np.full(4, np.nan)


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        (
            {"impute": "drop"},
            {"n": NOTHING},
            "every row has a missing value.*most missing values: --ignore n",
        ),
        ({"impute": float("nan")}, {}, "must be finite"),
        ({}, {"y": NOTHING}, "column 'y': all values of the target are missing"),
        (
            {"standardize": True, "impute": "mean"},
            {"x": np.array([1.0, -1e200, 2.0, 3.0])},
            "column 'x': values are too large to compute a standard deviation",
        ),
        ({"points": "texts", "standardize": True}, {}, "--standardize applies only to vectors"),
        (
            {"points": "texts", "impute": "mean"},
            {},
            "--impute applies only to vectors.*drop rows with --impute drop",
        ),
        ({"points": "texts"}, {"t": text(*["GATTACA"] * 4)}, "select one: --columns t"),
        ({"impute": None}, {}, r"2 columns need a decision.*impute=None.*--impute mean"),
    ],
)
def test_tables_that_cannot_be_used(recipe, changes, message):
    given = table(**changes)
    with pytest.raises(TableError, match=f"(?s){message}"):
        Recipe(target="y", **recipe).fit(given)


def test_missing_texts_are_refused_or_dropped():
    given = table()
    recipe = Recipe(target="y", points="texts").fit(given)
    with pytest.raises(TableError, match=r"'city': 1 of 4 values are missing.*--impute drop"):
        recipe.transform(given)
    assert Recipe(points="texts", impute="drop").fit(given).transform(given) == [
        *("Ulm", "Bonn", "Bonn")
    ]


def test_values_that_are_not_finite_numbers_count_as_missing():
    given = table(x=INFINITE)
    recipe = Recipe(ignore=("city", "y")).fit(given)
    assert "1 infinite value missing ('inf' on line 3)" in recipe.treatments_[0].treatment
    assert recipe.transform(given)[1, 0] == pytest.approx(0.0 if recipe.is_standardized else 2.0)
    sensor = Table({"t": text(*map(str, np.arange(30.0)), "n.a.", "-")})
    recipe = Recipe().fit(sensor)
    assert recipe.treatments_[0].type == "number"
    assert "2 texts missing ('n.a.' on row 31)" in recipe.treatments_[0].treatment
    assert np.isfinite(recipe.transform(sensor)).all()


def test_labels_are_not_fractions():
    recipe = Recipe(target="y", columns=("x",)).fit(table())
    with pytest.raises(TableError, match=r"such as 0.5 on line 3.*mercer fit ridge"):
        recipe.targets(table(y=np.array([0.0, 0.5, 1.0, 1.0])), labels=True)
    with pytest.raises(TableError, match="line 3, column 'y': the target is infinite"):
        recipe.targets(table(y=INFINITE), labels=False)
    answer = recipe.result_table(table(y=INFINITE), {}, ["y"])
    assert answer.columns["y"].tolist() == [1.0, np.inf, 2.0, 3.0]
    assert label_values(INFINITE) is INFINITE
    assert label_values(text("a", None)).tolist() == ["a", "missing"]


def test_numbers_can_be_categories():
    given = Table({"code": np.array([1.0, 2.5, 1.0, np.nan])})
    recipe = Recipe(onehot=("code",), impute="mean").fit(given)
    assert recipe.features == ["code=1", "code=2.5"]
    assert recipe.transform(given)[:, 0].tolist() == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(columns=("x", "n"), target="y", standardize=True, impute=-1.5),
        Recipe(target="y", impute="median", types={"n": "category"}),
        Recipe(target="y", onehot=("city",), impute="drop"),
        Recipe(target="y", impute={"number": "mean", "category": "most_frequent"}),
    ],
)
def test_a_stored_recipe_is_the_same(recipe, tmp_path):
    given = table(
        x=rng.normal(size=4),
        day=np.array(["2024-01-01", "2024-03-01", "2024-05-01T10:00", "2025-01-01"], "M8[us]"),
    )
    assert repr(eval(repr(recipe))) == repr(recipe)
    recipe = clone(recipe).fit(given)
    model = mercer.KernelRidge().fit(recipe.transform(given), recipe.targets(given, labels=False))
    mercer.save(TableModel(model, recipe, {"command": "none"}), tmp_path / "a.mercer")
    again = mercer.load(tmp_path / "a.mercer")
    assert again.metadata == {"command": "none"} and repr(again.recipe) == repr(recipe)
    assert again.recipe.encoders_ == recipe.encoders_
    assert again.recipe.describe() == recipe.describe()
    assert again.predict(given).tobytes() == TableModel(model, recipe).predict(given).tobytes()
    X = again.recipe.transform(given)
    assert again.estimator.predict(X).tobytes() == model.predict(X).tobytes()


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    """Earlier versions stored the recipe as JSON in the notes of the file."""
    part = {"fill": None, "mean": 0.0, "scale": 1.0, "text": False, "categories": None}
    parts = [
        {**part, "name": "x", "mean": 4.0, "scale": 2.0},
        {**part, "name": "city", "categories": ["Bonn", "Ulm"], "text": True},
    ]
    old = {"columns": None, "target": "y", "ignore": ["n"], "points": "vectors", "impute": None}
    old |= {"standardize": True, "onehot": ["city"], "parts": parts, "target_text": False}
    X = np.array([[-1.5, 0, 1], [-1.0, 1, 0]])
    model = mercer.KernelRidge(kernel="rbf").fit(X, [1.0, 2.0])
    notes = {"recipe": json.dumps(old), "story": json.dumps({"command": "fit"})}
    mercer.save(model, tmp_path / "old.mercer", notes=notes)
    again = mercer.load(tmp_path / "old.mercer")
    given = table(city=text("Ulm", "Bonn", "Ulm", "Ulm")).take([0, 1])
    assert again.predict(given).tobytes() == model.predict(X).tobytes()
    assert again.metadata == {"command": "fit"} and again.recipe.target == "y"
    with pytest.raises(TableError, match="'Rom'"):
        again.predict(table(city=text("Rom", "Bonn", "Ulm", "Ulm")))


def test_a_model_of_texts_of_an_earlier_version(tmp_path):
    model = mercer.KernelRidge(kernel=mercer.kernels.Spectrum(1)).fit(["ab", "b"], [1.0, 2.0])
    part = {"name": "t", "fill": None, "mean": 0.0, "scale": 1.0, "text": True, "categories": None}
    old = {"columns": None, "target": None, "ignore": [], "points": "texts", "impute": None}
    old |= {"standardize": False, "onehot": [], "parts": [part], "target_text": False}
    mercer.save(model, tmp_path / "old.mercer", notes={"recipe": json.dumps(old)})
    again = mercer.load(tmp_path / "old.mercer")
    found = again.predict(Table({"t": text("ab", "b")}))
    assert found.tolist() == model.predict(["ab", "b"]).tolist()


def test_a_model_without_a_recipe_is_loaded_as_such(tmp_path):
    model = mercer.KernelRidge().fit([[1.0], [2.0]], [1.0, 2.0])
    mercer.save(model, tmp_path / "a.mercer")
    assert isinstance(mercer.load(tmp_path / "a.mercer"), mercer.KernelRidge)


def frames(columns):
    """Return the same columns in every supported type of table."""
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]


def test_a_recipe_and_a_model_take_data_frames(tmp_path):
    columns = {
        "x": [1.0, 2.0, 4.0, 9.0],
        "n": [3, None, 5, 5],
        "city": ["Ulm", "Bonn", None, "Bonn"],
        "y": [0, 1, 1, 0],
    }
    asked = Recipe(target="y", standardize=True, onehot=("city",), impute="mean")
    want = clone(asked).fit(table())
    model = mercer.SVC().fit(want.transform(table()), want.targets(table(), labels=True))
    trained = TableModel(model, want)
    for frame in frames(columns):
        assert clone(asked).fit(frame).encoders_ == want.encoders_
        assert want.transform(frame).tobytes() == want.transform(table()).tobytes()
        assert want.targets(frame, labels=True).tolist() == [0, 1, 1, 0]
        assert open_table(frame).shape == (4, table().kinds)
        assert trained.predict(frame).tolist() == trained.predict(table()).tolist()
    assert clone(asked).fit(open_table(frame)).encoders_ == want.encoders_
    with pytest.raises(
        TypeError,
        match=r"needs a path, a pandas or polars DataFrame .*got ndarray - convert an array",
    ):
        open_table(np.eye(3))
    with pytest.raises(TypeError, match="a recipe requires a Table, a pandas or polars DataFrame"):
        Recipe().fit(3.0)
    assert Recipe().fit(np.eye(3)).features == ["x0", "x1", "x2"]


def test_a_text_column_stays_text_in_a_file_of_numerals(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("x,code,y\n1,01,a\n2,1,b\n3,A,a\n4,01,b\n")
    new.write_text("x,code\n1,01\n2,1\n")
    recipe = Recipe(target="y", onehot=("code",)).fit(open_table(train))
    assert recipe.text_columns == ("code", "y")
    assert recipe.features == ["x", "code=01", "code=1", "code=A"]
    model = mercer.SVC().fit(
        recipe.transform(open_table(train)), recipe.targets(open_table(train), labels=True)
    )
    rows = open_table(new).table(recipe.text_columns)
    assert recipe.transform(rows)[:, 1:3].tolist() == [[1, 0], [0, 1]]
    expected = model.predict(recipe.transform(rows)).tolist()
    assert TableModel(model, recipe).predict(new).tolist() == expected
    assert recipe.transform(open_table(new)).tolist() == recipe.transform(rows).tolist()
    assert recipe.transform(open_table(new).table())[:, 1:3].tolist() == [[0, 1], [0, 1]]
    new.write_text("x,code\n1,001\n")
    with pytest.warns(UnknownValuesWarning, match="'001'"):
        TableModel(model, recipe).predict(new)


def test_a_text_target_of_numerals_has_the_labels_of_the_fit(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("x,y\n1,01\n2,1\n3,A\n")
    new.write_text("x,y\n1,01\n2,1\n")
    recipe = Recipe(target="y").fit(open_table(train))
    assert recipe.targets(open_table(new), labels=True).tolist() == ["01", "1"]


def test_booleans_are_the_same_category_and_label_in_each_format(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq, pd = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pandas")
    flags = [True, False, True]
    columns = {"x": [1.0, 2.0, 3.0], "flag": flags, "y": flags}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", **{name: np.array(values) for name, values in columns.items()})
    given = [*(tmp_path / f"a.{end}" for end in ("csv", "jsonl", "parquet", "npz"))]
    given += [frame, frame.astype({"flag": "boolean"}), pa.table(columns), *frames(columns)]
    asked = Recipe(target="y", standardize=False, onehot=("flag",))
    want = clone(asked).fit(open_table(tmp_path / "a.csv"))
    assert want.features == ["x", "flag=False", "flag=True"]
    for data in map(open_table, given):
        assert clone(asked).fit(data).features == want.features
        assert want.transform(data).tolist() == [[1, 0, 1], [2, 1, 0], [3, 0, 1]]
        assert want.targets(data, labels=True).tolist() == ["True", "False", "True"]


def test_results_keep_their_names_next_to_columns_of_the_same_name():
    given = Table({"x": np.arange(3.0), "row": np.arange(3.0) + 7, "component1": np.zeros(3)})
    recipe = Recipe(columns=("x",)).fit(given)
    found = recipe.result_table(given, {"component1": np.ones(3)}, ("row", "component1"))
    assert list(found.columns) == ["row", "input_row", "input_component1", "component1"]
    assert found.columns["row"].tolist() == [1, 2, 3]
    assert found.columns["input_row"].tolist() == [7, 8, 9]
    assert found.columns["component1"].tolist() == [1, 1, 1]
    restored = recipe.result_table(given, {"row": np.zeros(3)})
    assert list(restored.columns) == ["row_number", "row"]


def test_data_frames_of_other_types():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            0: pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "kind": pd.Categorical(["a", None, "b"]),
            "day": pd.to_datetime(["2024-01-05", None, "2024-02-01"]),
            "id": pd.array([2**53 + 1, None, 2**63], dtype="UInt64"),
            "mixed": [1, "x", None],
            "whole": np.array([1, None, 2], dtype=object),
        },
        index=[7, 7, 7],
    )
    found = read_table(frame).columns
    np.testing.assert_array_equal(found["0"], [1, np.nan, 3])
    np.testing.assert_array_equal(found["whole"], [1, np.nan, 2])
    assert found["flag"].tolist() == [1.0, 0.0, 1.0]
    assert found["kind"].tolist() == ["a", None, "b"]
    days = np.array(["2024-01-05", "NaT", "2024-02-01"], dtype="datetime64[us]")
    np.testing.assert_array_equal(found["day"], days)
    assert found["id"].tolist() == [str(2**53 + 1), None, str(2**63)]
    assert found["mixed"].tolist() == ["1", "x", None]
    assert list(read_table(pd.DataFrame([[1, 2]], columns=["a", "a"])).columns) == ["a", "a_2"]
    assert read_table(pd.DataFrame({"a": [[1]]})).kinds == {"a": "unreadable"}


def test_rows_without_a_target_are_predicted():
    given = table(city=text("Ulm", "Bonn", "Rom", "Bonn"), y=np.array([0.0, np.nan, 1.0, 0.0]))
    recipe = Recipe(target="y", ignore=("city",), impute="drop").fit(given)
    assert recipe.kept_rows(given).tolist() == [0, 2, 3]  # rows used for fitting
    new = given.take(slice(0, 3))
    model = mercer.KernelRidge().fit(recipe.transform(given), recipe.targets(given, labels=False))
    found = TableModel(model, recipe).predict(new)
    assert np.isnan(found).tolist() == [False, True, False]  # n is missing in the second row
    without = Table({k: v for k, v in new.columns.items() if k != "y"})
    assert TableModel(model, recipe).predict(without)[0] == found[0]
    labels = mercer.SVC().fit(recipe.transform(given), recipe.targets(given, labels=True))
    assert TableModel(labels, recipe).predict(new)[1] is None
    answer = recipe.without_target().result_table(new, {"p": found[[0, 2]]}, all_rows=True)
    assert answer.columns["row"].tolist() == [1, 2, 3] and np.isnan(answer.columns["p"][1])
    with pytest.raises(TableError, match="all 1 rows have missing values"):
        TableModel(model, recipe).predict(new.take([1]))


TYPES = {
    "category": text(*["Bonn", "Ulm"] * 10),
    "identifier": text(*[f"n{i}" for i in range(20)]),
    "number": np.arange(20.0)[::-1] ** 2,
    "text": text(*[f"the {i} quick brown fox" for i in range(20)]),
    "constant": np.full(20, 3.0),
    "empty": np.full(20, np.nan),
    "date": np.arange(20).astype("datetime64[D]").astype("datetime64[us]"),
    "unreadable": UnreadableColumn("values of type list", 20),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_are_detected(kind):
    columns = {"x": rng.normal(size=20), "city": text(*["Bonn", "Ulm"] * 10), "given": TYPES[kind]}
    recipe = Recipe().fit(Table(columns))
    assert recipe.types_.get("given", "unreadable") == kind
    assert np.isfinite(recipe.transform(Table(columns))).all()


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("PassengerId", np.arange(100.0) + 500, "identifier"),
        ("row", np.arange(30.0), "identifier"),
        ("n", np.arange(30.0) + 1, "identifier"),
        ("year", np.arange(30.0) + 1, "number"),
        ("price", np.arange(30.0) * 1000 + 7, "number"),
        ("width", np.arange(30.0) / 2, "number"),
        ("key", text(*[str(2**53 + 1 + 2 * i) for i in range(20)]), "identifier"),
    ],
)
def test_identifiers_are_set_aside(name, values, kind):
    given = Table({name: values, "x": rng.normal(size=len(values))})
    recipe = Recipe().fit(given)
    assert recipe.types_[name] == kind
    if values.dtype != object:
        assert Recipe(columns=(name,)).fit(given).types_[name] == "number"  # the only column
    forced = Recipe(types={name: "category"}).fit(given)
    assert sum(f.startswith(f"{name}=") for f in forced.features) == min(400, len(values))


def test_dates_become_elapsed_time_and_positions():
    days = np.datetime64("2020-01-01", "us") + np.arange(0, 730, 10) * np.timedelta64(1, "D")
    recipe = Recipe().fit(given := Table({"day": days}))
    encoder = recipe.encoders_[0]
    assert isinstance(encoder, DateColumn) and encoder.parts == ("elapsed", "year", "week")
    X = recipe.transform(given)
    assert X[:, 0].mean() == pytest.approx(0, abs=1e-12)
    assert X[:, 0].std() == pytest.approx(1)
    np.testing.assert_allclose(X[:, 1::2] ** 2 + X[:, 2::2] ** 2, 1.0)
    first, again = recipe.transform(
        Table({"day": np.array(["2020-12-31", "2021-01-01"], "M8[us]")})
    )
    assert np.linalg.norm(first[1:3] - again[1:3]) < 0.02  # the end of a year is near its start
    assert recipe.transform(Table({"day": np.array(["NaT"], "M8[us]")})).tolist() == [[0.0] * 5]
    hours = np.datetime64("1970-01-01", "us") + np.arange(24) * np.timedelta64(1, "h")
    assert Recipe().fit(Table({"t": hours})).features == ["t:cos(day)", "t:sin(day)"]
    months = np.arange("2000-01", "2010-01", dtype="datetime64[M]").astype("M8[us]")
    assert Recipe().fit(Table({"m": months})).encoders_[0].parts == ("elapsed", "year")


def test_free_text_becomes_features_of_the_text_kernel():
    words = np.array(["good", "bad", "nice", "awful", "room", "food", "staff", "price"])
    texts = text(*[" ".join(rng.choice(words, 6)) for _ in range(80)])
    given = Table({"review": texts})
    recipe = Recipe().fit(given)
    X = recipe.transform(given)
    k = recipe.encoders_[0].features.kernel_
    np.testing.assert_allclose(X @ X.T, k(texts.tolist()), atol=1e-6)  # 8 words: exact
    assert recipe.transform(Table({"review": text(None)})).tolist() == [[0.0] * X.shape[1]]


def write_sizes(path, sizes):
    """Write a file with a column `size` and a column of numbers, separated by semicolons."""
    path.write_text("size;y\n" + "".join(f"{size};{i % 7}\n" for i, size in enumerate(sizes)))
    return path


@pytest.mark.parametrize(
    ("format", "notation"),
    [
        ("{},5", "numbers:comma"),
        ("1.{:03d},5", "numbers:comma"),
        ("{}.5", ""),
        ("1,{:03d}.5", "numbers:point"),
        ("{}.5 kg", "numbers:point:kg"),
        ("{},5 %", "numbers:comma"),
        ("0 days 00:{:02d}:00", "numbers:duration"),
    ],
)
def test_numbers_with_other_texts_keep_their_notation(tmp_path, format, notation):
    sizes = [format.format(i) for i in range(40)]
    sizes[3] = "n/d"
    path = write_sizes(tmp_path / "a.csv", sizes)
    recipe = Recipe().fit(path)
    treatment = recipe.treatments_[0]
    assert (treatment.type, treatment.n_missing) == ("number", 1)
    assert "1 text missing ('n/d' on line 5)" in treatment.treatment
    assert recipe.encoders_[0].notation == recipe.notations_.get("size", "") == notation
    expected = Recipe(na=("n/d",)).fit(path).transform(path)
    assert np.std(np.delete(expected[:, 0], 3)) == pytest.approx(1)
    np.testing.assert_allclose(recipe.transform(path), expected, rtol=1e-12)
    blocks = Recipe().fit(
        iter([Table({"size": text(*sizes[:9])}), Table({"size": text(*sizes[9:])})])
    )
    assert blocks.encoders_[0].notation == notation
    np.testing.assert_allclose(blocks.encoders_[0].fill, recipe.encoders_[0].fill)
    mercer.save(recipe, tmp_path / "recipe.mercer")
    recipe = mercer.load(tmp_path / "recipe.mercer")
    for name, chosen in (("one", [2]), ("numbers", [5, 6]), ("mixed", [3, 4])):
        new = write_sizes(tmp_path / f"{name}.csv", [sizes[i] for i in chosen])
        np.testing.assert_allclose(recipe.transform(new)[:, 0], expected[chosen, 0])


def test_numbers_in_another_notation_than_most_are_missing():
    texts = text(*[f"{i}.5" for i in range(20)], "20,5")
    encoder = Recipe().fit(Table({"size": texts})).encoders_[0]
    assert encoder.values(Table({"size": texts}))[[19, 20]].tolist() == [
        19.5,
        pytest.approx(np.nan, nan_ok=True),
    ]
    assert encoder.fill == 10
    with_commas = Table({"size": text(*[f"{i},5" for i in range(20)], "?")})
    encoder = Recipe().fit(with_commas).encoders_[0]
    assert encoder.unusable(Table({"size": text("1.5", "1,5", "1,5 kg")})).tolist() == [
        True,
        False,
        True,
    ]


def test_ambiguous_numbers_with_other_texts_are_reported(tmp_path):
    sizes = [f"{i + 1},{i + 100}" for i in range(40)]
    sizes[3] = "n/d"
    path = write_sizes(tmp_path / "a.csv", sizes)
    treatment = Recipe().fit(path).treatments_[0]
    assert treatment.type == "identifier"
    assert "which are decimal commas or thousands separators" in treatment.treatment
    assert "use --na n/d" in treatment.treatment
    recipe = Recipe(na=("n/d",)).fit(path)
    assert recipe.treatments_[0].type == "number" and recipe.treatments_[0].n_missing == 1
    assert recipe.encoders_[0].fill < 50  # semicolons: decimal commas
    assert np.isfinite(recipe.transform(path)).all()


def test_rows_with_texts_in_a_column_of_numbers_are_dropped():
    given = Table({"x": text(*[f"{i}.5" for i in range(20)], "ERR"), "y": np.arange(21.0) ** 2})
    recipe = Recipe(impute="drop").fit(given)
    assert recipe.kept_rows(given).tolist() == list(range(20))
    assert np.isfinite(recipe.transform(given)).all()


def test_rows_are_dropped_by_type():
    x, city = np.arange(20.0) ** 2, text(*["Bonn", "Ulm", "Kiel", None] * 5)
    x[0] = np.nan
    given = Table({"x": x, "city": city})
    for kind, kept in (("number", range(1, 20)), ("category", [i for i in range(20) if city[i]])):
        recipe = Recipe(impute={kind: "drop"}).fit(given)
        assert recipe.kept_rows(given).tolist() == list(kept)
        X = recipe.transform(given)
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(recipe.fit(given).transform(given), X)


def test_placeholders_are_reported():
    x = np.r_[rng.normal(size=50), [-999.0] * 3]
    given = Table({"x": x, "y": rng.normal(size=53)})
    assert "3 values are -999: if missing, use --na -999" in Recipe().fit(given).describe()[1]
    recipe = Recipe(na=("-999",)).fit(given)
    assert recipe.treatments_[0].n_missing == 3
    assert np.abs(recipe.transform(given)).max() < 10


def test_many_levels_are_combined():
    values = [f"c{i}" for i in range(450)] * 3 + ["c0"] * 20
    given = Table({"c": text(*values)})
    recipe = Recipe().fit(given)
    assert len(recipe.features) == 401 and recipe.features[-1] == "c=(other)"
    assert "50 rare values combined" in recipe.treatments_[0].treatment
    assert (recipe.transform(given).sum(axis=1) == 1).all()
    assert recipe.transform(Table({"c": text("new")}))[0, -1] == 1


def test_scales_decide_whether_columns_are_standardised():
    X = rng.normal(size=(50, 5))
    assert not Recipe().fit(X).is_standardized
    assert Recipe().fit(X * [1, 1, 1, 1, 1000]).is_standardized
    assert not Recipe(standardize=False).fit(X * [1, 1, 1, 1, 1000]).is_standardized
    pixels = np.column_stack([X, np.zeros(50)])
    assert Recipe().fit(pixels).transform(pixels).shape == (50, 6)  # a constant pixel is kept


def test_a_pipeline_and_a_grid_search(tmp_path):
    pd = pytest.importorskip("pandas")
    n = 90
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": rng.normal(50, 10, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "open": rng.random(n) < 0.5,
        }
    )
    y = np.where((frame["kind"] == "a") ^ frame["open"], "yes", "no")
    pipeline = make_pipeline(Recipe(), mercer.SVC(C=10.0))
    grid = {"recipe__standardize": [True, False], "svc__C": [1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(frame, y)
    careful = make_pipeline(
        ColumnTransformer(
            [
                ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
                ("c", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
                ("b", "passthrough", ["open"]),
            ],
            sparse_threshold=0,
        ),
        mercer.SVC(C=10.0),
    )
    ours = cross_val_score(pipeline, frame, y, cv=3)
    np.testing.assert_array_equal(ours, cross_val_score(careful, frame, y, cv=3))
    mercer.save(search.best_estimator_, tmp_path / "p.mercer")
    again = mercer.load(tmp_path / "p.mercer")
    assert again.predict(frame).tolist() == search.predict(frame).tolist()
    assert again.classes_.tolist() == ["no", "yes"]
    assert again.feature_names_in_.tolist() == ["size", "kind", "open"]
    assert again.get_feature_names_out().tolist() == [
        *("size", "kind=a", "kind=b", "kind=c", "open")
    ]
    namespace = {"table": frame.assign(y=y)}
    again.recipe.target = "y"
    exec(again.to_code(), namespace)
    assert namespace["model"].predict(frame).tolist() == again.predict(frame).tolist()


def test_rows_of_a_data_frame_for_kernels_that_select_columns():
    given = table(city=text("Ulm", "Bonn", None, "Bonn"))
    rows = Recipe(target="y", points="rows").fit(given).transform(given)
    assert list(rows.columns) == ["x", "n", "city"]
    assert rows["city"].tolist() == ["Ulm", "Bonn", "(missing)", "Bonn"]
    assert np.isfinite(rows[["x", "n"]].to_numpy()).all()


def test_many_columns_are_described_in_few_lines():
    given = Table({f"x{j}": rng.normal(size=20) for j in range(64)})
    lines = Recipe().fit(given).describe()
    assert len(lines) == 2 and lines[1].startswith("x0, x1, x2 and 61 more")


def test_targets_in_another_notation_are_refused():
    for values, said in ((("1,5", "2,5", "3", "4"), "decimal commas"),):
        given = table(y=text(*values))
        recipe = Recipe(target="y", columns=("x",)).fit(given)
        for labels in (True, False):
            with pytest.raises(TableError, match=f"column 'y': the target contains .*{said}"):
                recipe.targets(given, labels=labels)
    keys = [str(2**53 + i) for i in (1, 3, 5, 7)]
    given = table(y=text(*keys))
    assert recipe.targets(given, labels=True).tolist() == keys
    with pytest.raises(TableError, match=r"the target contains integers above 2\^53"):
        recipe.targets(given, labels=False)
    assert label_values(np.array([1e20, 2.0])).dtype.kind == "f"
    given = table(y=text("1.5", "x", "2.5", "3"))
    for labels in (True, False):
        with pytest.raises(TableError, match=r"numbers in 3 of 4 rows and text in .*line 3"):
            recipe.targets(given, labels=labels)
    for codes in (["1", "3+", "2", "2"], ["1", "0", "01", "0"]):
        given = table(y=text(*codes))
        assert recipe.targets(given, labels=True).tolist() == codes


def test_spaces_around_a_text_do_not_make_a_category():
    given = table(city=text("Ulm", " Ulm", "Bonn ", "Bonn"), y=text("a", "a ", " b", "b"))
    recipe = Recipe(columns=("city",), target="y").fit(given)
    assert recipe.features == ["city=Bonn", "city=Ulm"]
    assert recipe.transform(given)[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert recipe.targets(given, labels=True).tolist() == ["a", "a", "b", "b"]


def test_texts_of_points_have_the_units_of_the_table():
    days = np.datetime64("2020-01-01") + np.arange(200) * 5
    given = Table(
        {
            "size": np.linspace(1.0, 9.0, 200),
            "city": text(*rng.choice(["Bonn", "Köln", "Ulm"], 200)),
            "bought": days.astype("datetime64[us]"),
            "member": np.arange(200) % 2 * 1.0,
            "note": text(*[f"{w} {v}" for w in ("red", "blue") for v in range(100)]),
        },
        booleans=("member",),
    )
    types = {"note": "text"}
    recipe = Recipe(standardize=True, onehot=("city",), types=types).fit(given)
    points = recipe.transform(given)
    texts = recipe.to_texts(points)
    assert list(texts) == list(given.columns)
    np.testing.assert_allclose(np.array(texts["size"], float), given.columns["size"], rtol=1e-4)
    assert texts["city"] == [f"{city} (1.00)" for city in given.columns["city"]]
    assert texts["bought"] == days.astype(str).tolist()
    assert texts["member"][:2] == ["false (0.00)", "true (1.00)"]
    assert texts["note"][3].startswith("similar to 'red ")
    mean = recipe.to_texts(points[:2].mean(axis=0, keepdims=True))
    assert mean["member"] == ["true (0.50)"] and mean["bought"] == ["2020-01-03"]
    weights = np.zeros((1, points.shape[1]))
    cities = [recipe.features.index(f"city={name}") for name in ("Bonn", "Köln", "Ulm")]
    weights[0, cities] = 0.52, 0.31, 0.17
    assert recipe.to_texts(weights)["city"] == ["Bonn (0.52), Köln (0.31)"]
    weights[:] = 1e9
    assert recipe.to_texts(weights)["bought"][0].startswith("69")


def test_texts_of_dates_with_times_and_of_rows():
    times = np.datetime64("2024-05-01T00:30") + np.arange(100) * np.timedelta64(97, "m")
    given = Table({"time": times.astype("datetime64[us]"), "city": text(*["Ulm", "Bonn"] * 50)})
    recipe = Recipe(standardize=True, onehot="all").fit(given)
    assert recipe.to_texts(recipe.transform(given))["time"] == times.astype(str).tolist()
    rows = Recipe(points="rows", onehot="all").fit(given)
    texts = rows.to_texts(rows.transform(given))
    assert texts["city"][:2] == ["Ulm", "Bonn"] and texts["time"][0].startswith("2024-05-01")


def test_texts_that_need_a_decision():
    given = table()
    with pytest.raises(TableError, match=r"1 column need a decision.*'city' has 1 missing value"):
        Recipe(points="texts", target="y", impute=None).fit(given)
    whole = table(city=text("Ulm", "Bonn", "Köln", "Bonn"))
    assert Recipe(points="texts", target="y", strict=True).fit(whole).transform(whole)[0] == "Ulm"


def test_marks_of_missing_values_in_every_kind_of_column():
    days = np.array(["2024-05-31", "2024-06-01", "2024-06-02", "2025-06-03"], "M8[us]")
    flags = np.array([1.0, 0.0, 1.0, 0.0])
    columns = {"day": days, "flag": flags, "x": np.array([1.0, -9.0, 3.0, 4.0])}
    given = Table(columns | {"city": text("Ulm", "?", "Bonn", "Ulm")}, booleans=("flag",))
    recipe = Recipe(na=("-9", "?", "1")).fit(given)
    assert {t.column: t.n_missing for t in recipe.treatments_} == {
        **{"day": 0, "flag": 0, "x": 2, "city": 1}
    }


def test_values_that_the_fitted_recipe_cannot_use():
    recipe = Recipe(target="y", impute=None, onehot=("city",)).fit(
        table(n=np.arange(4.0), city=text(*"abab"))
    )
    with pytest.raises(TableError, match="'n': 1 of 4 values are missing; the first is on line 3"):
        recipe.transform(table(city=text(*"abab")))
    unreadable = UnreadableColumn("images", 4)
    with pytest.raises(TableError, match="'x': the values are unreadable, not numbers"):
        recipe.transform(table(n=np.arange(4.0), x=unreadable, city=text(*"abab")))
    days = np.array(["2024-05-31"] * 4, "M8[us]")
    with pytest.raises(TableError, match="column 'x': 4 of 4 values are dates, not numbers"):
        recipe.transform(table(n=np.arange(4.0), x=days, city=text(*"abab")))
    ignoring = Recipe(target="y", onehot=("city",)).fit(table())
    with pytest.warns(UnknownValuesWarning, match="'x': 1 of 1 values are dates, not numbers"):
        found = ignoring.transform(table(x=days).take([0]))
    expected = ignoring.transform(table(x=np.full(4, np.nan)).take([0]))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(TableError, match=r"no target is set for a\.csv - choose the column"):
        Recipe().fit(table()).targets(table(), labels=True)


def test_columns_that_have_no_information():
    given = table(t=text(None, None, None, None))
    with pytest.raises(TableError, match="'t': all values are missing, so the column contains no"):
        Recipe(types={"t": "category"}).fit(given)
    assert Recipe().fit(table(x=np.full(4, np.inf))).types_["x"] == "empty"
    blocks = [table().take([0, 1]), table().take([2, 3])]
    with pytest.raises(TableError, match="too large to read at once, as the type category of the"):
        Recipe(types={"x": "category"}).fit(blocks)


def test_code_without_an_estimator_or_a_target():
    code = Recipe().fit(table()).to_code()
    assert "model = make_pipeline(\n    Recipe(" in code and "fit" not in code


def test_features_of_texts_and_times_without_dates():
    times = np.datetime64("1970-01-01T06", "us") + np.arange(24) * np.timedelta64(30, "m")
    words = text(*[f"a longer text of word{i} and word{i + 1}" for i in range(24)])
    given = Table({"time": times, "words": words})
    recipe = Recipe(types={"words": "text"}).fit(given)
    X = recipe.transform(given)
    restored = recipe.inverse_transform(X)
    assert list(restored) == recipe.features
    assert restored["time:cos(day)"].tolist() == X[:, 0].tolist()
    assert restored["words:text1"].tolist() == X[:, 2].tolist()
    assert recipe.to_texts(X)["time"][6] == "cos(day) -0.707, sin(day) 0.707"


def test_dates_that_are_missing_in_a_block_and_many_texts(monkeypatch):
    monkeypatch.setattr("mercer.tables._column_types._MAX_DISTINCT_TEXTS", 2)
    days = np.array(["NaT", "NaT", "2024-06-02", "2025-06-03"], "M8[us]")
    given = Table({"day": days, "city": text("a", "b", "c", "a")})
    recipe = Recipe(onehot=("city",)).fit([given.take([0, 1]), given.take([2, 3])])
    assert recipe.encoders_[0].start == np.datetime64("2024-06-02", "us").astype(int)
    assert recipe.encoders_[1].categories == ("a", "b")


def test_a_number_among_similar_numbers_is_not_a_placeholder():
    x = np.r_[rng.uniform(-99, 99, size=50), [-99.0] * 3]
    assert "--na" not in "".join(Recipe().fit(Table({"x": x})).describe())


def test_labels_of_dates():
    days = np.array(["2024-05-31", "NaT"], "M8[us]")
    assert label_values(days).tolist() == ["2024-05-31", "missing"]


def test_a_recipe_takes_a_source(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n5,7\n")
    recipe = Recipe(standardize=False).fit(source := open_table(tmp_path / "a.csv"))
    assert recipe.transform(source).tolist() == [[1, 2], [3, 4], [5, 7]]
    assert Recipe().fit([source, source]).transform(source).shape == (3, 2)


def test_methods_of_a_model_of_tables():
    given = table(city=text(*"abab"), n=np.arange(4.0))
    recipe = Recipe(target="y").fit(given)
    X, y = recipe.transform(given), given.columns["y"]
    model = TableModel(mercer.SVC().fit(X, y), recipe)
    assert np.array_equal(model.decision_function(given), model.estimator.decision_function(X))
    with pytest.raises(AttributeError, match="KernelRidge has no method 'decision_function'"):
        TableModel(mercer.KernelRidge().fit(X, y), recipe).decision_function(given)
