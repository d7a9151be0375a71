"""Preprocessing of columns: exactly the requested steps are applied."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from mercer.tables import (
    Recipe,
    Table,
    TableError,
    Trained,
    label_values,
    load_trained,
    open_table,
    read_table,
    save_trained,
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


def test_columns_are_standardised_and_one_hot_as_by_scikit_learn():
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


def test_blocks_teach_the_same_as_the_whole():
    big = Table({"x": rng.normal(size=1000), "c": text(*rng.choice(list("abc"), 1000))})
    recipe = Recipe(standardize=True, onehot="all", impute="mean")
    blocks = [big.take(slice(i, i + 300)) for i in range(0, 1000, 300)]
    one, many = recipe.fit(big), recipe.fit(blocks)
    np.testing.assert_allclose(one.transform(big), many.transform(big), atol=1e-14)
    with pytest.raises(TableError, match="too large to read at once, as --impute median requires"):
        Recipe(impute="median", onehot="all").fit(blocks)


@pytest.mark.parametrize(
    ("impute", "filled"),
    [("mean", 13 / 3), ("median", 5.0), ("most_frequent", 5.0), (-1.0, -1.0)],
)
def test_missing_values_are_filled_as_requested(impute, filled):
    recipe = Recipe(target="y", onehot="all", impute=impute).fit(table())
    X = recipe.transform(table())
    assert X[1, 1] == pytest.approx(filled)
    assert X[2, 2:].tolist() == [1.0, 0.0]  # Bonn is the most frequent value
    assert any("Missing numbers were replaced by the" in said for said in recipe.describe())


def test_rows_with_missing_values_are_left_out_on_request():
    recipe = Recipe(target="y", onehot=("city",), impute="drop").fit(table())
    assert recipe.kept_rows(table()).tolist() == [0, 3]
    assert recipe.transform(table()).shape == (2, 4)
    answer = recipe.result_table(table(), {"p": np.zeros(2)}, ["city"])
    assert answer.columns["row"].tolist() == [1, 4]
    assert answer.columns["city"].tolist() == ["Ulm", "Bonn"]


INFINITE = np.array([1.0, np.inf, 2.0, 3.0])
REFUSED = {
    "a.csv, column 'city': contains text .'Ulm' on line 2.*--ignore city; one-hot encode it "
    r"\(2 different values\) with --onehot city; or use it as the colour": ({"impute": "mean"}, {}),
    "column 'n': 1 of 4 values are missing; the first is on line 3 - replace them with "
    "--impute mean": ({"ignore": ("city",)}, {}),
    "line 3, column 'x': the value is infinite": ({"ignore": ("city", "n")}, {"x": INFINITE}),
    "no column 'z'": ({"ignore": ("city", "n"), "columns": ("z",)}, {}),
    "no column 'citi'; did you mean 'city'": ({"ignore": ("citi",)}, {}),
    "'men' must be one of .*did you mean 'mean'": ({"ignore": ("city",), "impute": "men"}, {}),
    "has no columns to use as features": ({"ignore": ("x", "n", "city", "y")}, {}),
    "onehot contains the column 'city', which": ({"onehot": ("city",), "ignore": ("city",)}, {}),
    "has no column of graphs": ({"points": "graphs"}, {}),
    "2 columns of text: 'city', 't'.*--columns": ({"points": "texts"}, {"t": text(*"abcd")}),
    "1 of 32 values are not numbers; the first is 'x' on line 3 - usually a typo": (
        {"impute": "mean"},
        {"city": text("1", "x", *["2"] * 30)},
    ),
    "string kernel": ({"impute": "mean"}, {"city": text(*map("t{}".format, range(200)))}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_nothing_is_done_without_a_word(message):
    recipe, changes = REFUSED[message]
    given = table(**changes)
    if "city" in changes:
        n = len(changes["city"])
        given = Table({"city": changes["city"]}, "a.csv", np.arange(2, 2 + n))
    with pytest.raises(TableError, match=f"(?s){message}"):
        Recipe(**recipe).fit(given)


def test_new_rows_are_held_to_what_was_learned():
    recipe = Recipe(target="y", onehot=("city",), impute="mean").fit(table())
    with pytest.raises(TableError, match=r"line 4, column 'city': the category 'Rom' did not "
                       "occur in the training data, only 'Bonn', 'Ulm'"):  # fmt: skip
        recipe.transform(table(city=text("Ulm", "Bonn", "Rom", "Bonn")))
    with pytest.raises(TableError, match="has no column 'n'"):
        recipe.transform(Table({"x": np.ones(1), "city": text("Ulm")}, "b.csv"))
    with pytest.raises(TableError, match=r"column 'x'.*contains text"):
        recipe.transform(table(x=text("a", "b", "c", "d")))
    with pytest.raises(TableError, match="line 2, column 'y': the target is missing"):
        recipe.targets(table(y=np.array([np.nan, 1, 1, 0])), labels=False)
    with pytest.raises(
        TableError, match=r"the target contains text \('a' on line 2\).*mercer fit svc"
    ):
        recipe.targets(table(y=text(*"abab")), labels=False)
    with pytest.raises(ValueError, match="this recipe is not fitted"):
        Recipe().transform(table())


def test_a_column_may_be_missing_in_some_blocks():
    """For example, a sensor that was switched on late, or off early."""
    x = rng.normal(size=90) + 5
    for some in (slice(0, 30), slice(30, 60), slice(60, 90)):
        seen = np.full(90, np.nan)
        seen[some] = x[some]
        whole = Table({"x": seen, "y": np.full(90, 3.0)})
        blocks = [whole.take(slice(i, i + 30)) for i in (0, 30, 60)]
        learned = Recipe(standardize=True, impute="mean").fit(blocks).parts
        assert learned[0].mean == pytest.approx(x[some].mean(), rel=1e-14)
        assert learned[0].scale == pytest.approx(x[some].std(), rel=1e-13)
        assert (learned[1].mean, learned[1].scale) == (3.0, 1.0)


NOTHING = np.full(4, np.nan)


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        ({"impute": "mean"}, {"n": NOTHING}, "column 'n': all values are missing.*--ignore n"),
        ({"impute": 0.0}, {"n": NOTHING}, "column 'n': all values are missing"),
        (
            {"impute": "drop"},
            {"n": NOTHING},
            "every row has a missing value.*most missing values: --ignore n",
        ),
        ({"impute": float("nan")}, {}, "must be finite"),
        (
            {"standardize": True, "impute": "mean"},
            {"x": np.array([1.0, -1e200, 2.0, 3.0])},
            "column 'x': values are too large to compute a standard deviation",
        ),
        ({"points": "texts"}, {}, "'city': 1 of 4 values are missing.*--impute drop"),
        ({"points": "texts", "standardize": True}, {}, "--standardize applies only to vectors"),
        (
            {"points": "texts", "impute": "mean"},
            {},
            "--impute applies only to vectors.*drop rows with --impute drop",
        ),
        ({"points": "texts"}, {"t": text(*["GATTACA"] * 4)}, "select one: --columns t"),
        (
            {},
            {"n": text("1,5", "2,5", "3,0", "4")},
            "'n': contains numbers with decimal commas; the first is '1,5' on line 2 - write",
        ),
        (
            {},
            {"n": text("1,234", "2,500", "900", "4")},
            "'n': contains numbers with commas, which are decimal commas or thousands",
        ),
        (
            {},
            {"n": text("9007199254740993", None, "9007199254740995", "4")},
            r"'n': contains integers above 2\^53, which 64-bit floats cannot.*; the first is "
            "'9007199254740993' on line 2 - exclude identifiers.*--ignore n",
        ),
    ],
)
def test_what_no_table_makes_sense_of(recipe, changes, message):
    given = table(**changes)
    onehot = () if recipe.get("points") else ("city",)
    recipe = {"onehot": onehot, **recipe}
    with pytest.raises(TableError, match=f"(?s){message}"):
        Recipe(target="y", **recipe).fit(given)


def test_advice_for_new_rows_is_not_that_for_a_fit():
    recipe = Recipe(ignore=("city", "y")).fit(table(n=np.arange(4.0)))
    for changes, message in (
        ({}, "column 'n': 1 of 4 values are missing.*fill them in, or fit the model again"),
        ({"n": text(*"abcd")}, "'a' on line 2., but the model was fitted to numbers"),
        ({"n": INFINITE}, "the value is infinite.*fix it$"),
    ):
        with pytest.raises(TableError, match=f"(?s){message}") as caught:
            recipe.transform(table(**changes))
        assert "--ignore" not in str(caught.value)


def test_labels_are_no_fractions_and_may_be_infinite_in_a_picture():
    recipe = Recipe(target="y", columns=("x",)).fit(table())
    with pytest.raises(TableError, match=r"such as 0.5 on line 3.*mercer fit ridge"):
        recipe.targets(table(y=np.array([0.0, 0.5, 1.0, 1.0])), labels=True)
    with pytest.raises(TableError, match="line 3, column 'y': the value is infinite"):
        recipe.targets(table(y=INFINITE), labels=False)
    answer = recipe.result_table(table(y=INFINITE), {}, ["y"])
    assert answer.columns["y"].tolist() == ["1", "inf", "2", "3"]
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
        Recipe(),
        Recipe(columns=("x", "n"), target="y", standardize=True, impute=-1.5),
        Recipe(target="y", onehot="all", impute="median"),
        Recipe(target="y", onehot=("city",), impute="drop"),
    ],
)
def test_a_recipe_is_written_and_read_to_the_last_bit(recipe):
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert eval(repr(recipe)) == recipe
    if recipe != Recipe():
        learned = recipe.fit(table(x=rng.normal(size=4)))
        assert Recipe.from_json(learned.to_json()) == learned


def test_a_model_and_its_recipe_share_a_file(tmp_path):
    given = table(n=rng.normal(size=4))
    recipe = Recipe(target="y", ignore=("city",), standardize=True).fit(given)
    X = recipe.transform(given)
    model = mercer.KernelRidge().fit(X, recipe.targets(given, labels=False))
    save_trained(Trained(model, recipe, {"command": "none"}), tmp_path / "a.mercer")
    again = load_trained(tmp_path / "a.mercer")
    assert again.recipe == recipe and again.metadata == {"command": "none"}
    assert again.model.predict(X).tobytes() == model.predict(X).tobytes()
    assert again.predict(given).tobytes() == model.predict(X).tobytes()
    mercer.save(model, tmp_path / "b.mercer")
    bare = load_trained(tmp_path / "b.mercer")
    assert bare.recipe is None
    with pytest.raises(TableError, match=r"has no recipe .*save_trained"):
        bare.predict(given)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"standardize": True, "ignore": ("city",)}, "2 standardised"),
        ({"onehot": ("city",)}, "1 one-hot"),
        ({"impute": "mean", "ignore": ("city",)}, "2 imputed"),
        ({"columns": ("n", "x")}, "2 selected in a certain order"),
    ],
)
def test_load_refuses_a_model_whose_columns_a_recipe_prepares(tmp_path, recipe, said):
    given = table(n=rng.normal(size=4), city=text("Ulm", "Bonn", "Rom", "Bonn"))
    recipe = Recipe(target="y", **recipe).fit(given)
    model = mercer.KernelRidge().fit(recipe.transform(given), recipe.targets(given, labels=False))
    save_trained(Trained(model, recipe), path := tmp_path / "a.mercer")
    with pytest.raises(mercer.ModelFileError, match=said) as caught:
        mercer.load(path)
    for words in ("columns would be wrong", f"load_trained({str(path)!r})", "`mercer predict`"):
        assert words in str(caught.value)


def test_load_reads_a_model_of_columns_as_they_are(tmp_path):
    given = table(n=rng.normal(size=4))
    for options in ({"ignore": ("city",)}, {"columns": ("x",)}, {"impute": "drop"}):
        recipe = Recipe(target="y", **{"ignore": ("city",), **options}).fit(given)
        X = recipe.transform(given)
        model = mercer.KernelRidge().fit(X, recipe.targets(given, labels=False))
        save_trained(Trained(model, recipe), tmp_path / "a.mercer")
        assert (mercer.load(tmp_path / "a.mercer").predict(X) == model.predict(X)).all()


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
    want = Recipe(target="y", standardize=True, onehot=("city",), impute="mean").fit(table())
    model = mercer.SVC().fit(want.transform(table()), want.targets(table(), labels=True))
    trained = Trained(model, want)
    for frame in frames(columns):
        assert replace(want, parts=None).fit(frame) == want
        assert want.transform(frame).tobytes() == want.transform(table()).tobytes()
        assert want.targets(frame, labels=True).tolist() == [0, 1, 1, 0]
        assert open_table(frame).shape == (4, table().kinds)
        assert trained.predict(frame).tolist() == trained.predict(table()).tolist()
    assert replace(want, parts=None).fit(open_table(frame)) == want
    with pytest.raises(
        TypeError,
        match=r"needs a path, a pandas or polars DataFrame .*got ndarray - convert an array",
    ):
        open_table(np.eye(3))
    for wrong in (np.eye(3), 3.0):
        with pytest.raises(
            TypeError, match="a recipe requires a Table, a pandas or polars DataFrame"
        ):
            Recipe().fit(wrong)


def test_a_text_column_stays_text_in_a_file_of_numerals(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("x,code,y\n1,01,a\n2,1,b\n3,A,a\n4,01,b\n")
    new.write_text("x,code\n1,01\n2,1\n")
    recipe = Recipe(target="y", onehot=("code",)).fit(open_table(train))
    assert recipe.text_columns == ("code", "y") and Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.features == ["x", "code=01", "code=1", "code=A"]
    model = mercer.SVC().fit(
        recipe.transform(open_table(train)), recipe.targets(open_table(train), labels=True)
    )
    rows = open_table(new).table(recipe.text_columns)
    assert recipe.transform(rows)[:, 1:3].tolist() == [[1, 0], [0, 1]]
    expected = model.predict(recipe.transform(rows)).tolist()
    assert Trained(model, recipe).predict(new).tolist() == expected
    assert recipe.transform(open_table(new)).tolist() == recipe.transform(rows).tolist()
    message = "line 2, column 'code': the number 1 may or may not mean the category '.*1', because"
    with pytest.raises(TableError, match=message):
        recipe.transform(open_table(new).table())
    new.write_text("x,code\n1,001\n")
    with pytest.raises(TableError, match="the category '001' did not occur"):
        Trained(model, recipe).predict(new)


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
    want = Recipe(target="y", onehot=("flag",)).fit(open_table(tmp_path / "a.csv"))
    assert want.features == ["x", "flag=False", "flag=True"]
    for data in map(open_table, given):
        assert Recipe(target="y", onehot=("flag",)).fit(data) == want
        assert want.transform(data).tolist() == [[1, 0, 1], [2, 1, 0], [3, 0, 1]]
        assert want.targets(data, labels=True).tolist() == ["True", "False", "True"]


def test_results_keep_their_names_next_to_columns_of_the_same_name():
    given = Table({"x": np.arange(3.0), "row": np.arange(3.0) + 7, "component1": np.zeros(3)})
    recipe = Recipe(columns=("x",)).fit(given)
    found = recipe.result_table(given, {"component1": np.ones(3)}, ("row", "component1"))
    assert list(found.columns) == ["row", "input_row", "input_component1", "component1"]
    assert found.columns["row"].tolist() == [1, 2, 3]
    assert found.columns["input_row"].tolist() == ["7", "8", "9"]
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
    found = Trained(model, recipe).predict(new)
    assert np.isnan(found).tolist() == [False, True, False]  # n is missing in the second row
    without = Table({k: v for k, v in new.columns.items() if k != "y"})
    assert Trained(model, recipe).predict(without)[0] == found[0]
    labels = mercer.SVC().fit(recipe.transform(given), recipe.targets(given, labels=True))
    assert Trained(labels, recipe).predict(new)[1] is None
    answer = recipe.without_target().result_table(new, {"p": found[[0, 2]]}, all_rows=True)
    assert answer.columns["row"].tolist() == [1, 2, 3] and np.isnan(answer.columns["p"][1])
    with pytest.raises(TableError, match="all 1 rows have missing values"):
        Trained(model, recipe).predict(new.take([1]))


UNLIKELY = {
    "day": (["2024-01-05", "2024-01-06", "05.01.2024", "2024-01-05 10:00"] * 5, "dates or times"),
    "size": (["1,5", "2,5", "3", "1,5"] * 5, "numbers with decimal commas, such as '1,5'"),
    "pay": (["1,234.50", "12,000.00", "3", "1,234.50"] * 5, "numbers with thousands separators"),
    "rate": (["5 %", "7 %", "5 %", "9 %"] * 5, "numbers with symbols or spaces"),
    "rank": (
        ["1", "2", "3+", "2"] * 5,
        "numbers in 15 of 20 rows and text in the others, such as '3\\+'",
    ),
    "name": ([f"n{i}" for i in range(20)], "20 different values in 20 rows"),
    "key": ([str(2**53 + i) for i in range(20)], "integers above 2\\^53"),
}


@pytest.mark.parametrize("name", UNLIKELY)
def test_onehot_all_refuses_what_is_hardly_a_category(name):
    values, said = UNLIKELY[name]
    given = Table({"x": np.arange(20.0), "city": text(*["Bonn", "Ulm"] * 10), name: text(*values)})
    remedy = f"--ignore {name}, or one-hot encode them anyway with --onehot all,{name}"
    with pytest.raises(TableError, match=f"(?s){name!r} contains {said}.*{remedy}"):
        Recipe(onehot="all").fit(given)
    recipe = Recipe(onehot=("all", name)).fit(given)
    assert recipe.transform(given).shape[1] == 3 + len(set(values))
    assert Recipe(onehot="all", ignore=(name,)).fit(given).features == [
        *["x", "city=Bonn", "city=Ulm"]
    ]


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
    recipe = Recipe(columns=("city",), onehot=("city",), target="y").fit(given)
    assert recipe.features == ["city=Bonn", "city=Ulm"]
    assert recipe.transform(given)[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert recipe.targets(given, labels=True).tolist() == ["a", "a", "b", "b"]
