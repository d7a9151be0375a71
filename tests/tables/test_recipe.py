"""What becomes of columns: what is said is done, and nothing else is."""

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
    restored = recipe.restored(X)
    np.testing.assert_allclose(restored["x"], given.columns["x"], rtol=1e-14)


def test_blocks_teach_the_same_as_the_whole():
    big = Table({"x": rng.normal(size=1000), "c": text(*rng.choice(list("abc"), 1000))})
    recipe = Recipe(standardize=True, onehot="all", impute="mean")
    blocks = [big.take(slice(i, i + 300)) for i in range(0, 1000, 300)]
    one, many = recipe.fit(big), recipe.fit(blocks)
    np.testing.assert_allclose(one.transform(big), many.transform(big), atol=1e-14)
    with pytest.raises(TableError, match="'median' needs all values at once"):
        Recipe(impute="median", onehot="all").fit(blocks)


@pytest.mark.parametrize(
    ("impute", "filled"),
    [("mean", 13 / 3), ("median", 5.0), ("most_frequent", 5.0), (-1.0, -1.0)],
)
def test_missing_values_are_filled_as_said(impute, filled):
    recipe = Recipe(target="y", onehot="all", impute=impute).fit(table())
    X = recipe.transform(table())
    assert X[1, 1] == pytest.approx(filled)
    assert X[2, 2:].tolist() == [1.0, 0.0]  # Bonn is the most frequent
    assert any("Missing numbers were replaced by the" in said for said in recipe.describe())


def test_rows_with_missing_values_are_left_out_if_that_is_said():
    recipe = Recipe(target="y", onehot=("city",), impute="drop").fit(table())
    assert recipe.kept(table()).tolist() == [0, 3] and recipe.transform(table()).shape == (2, 4)
    answer = recipe.answer(table(), {"p": np.zeros(2)}, ["city"])
    assert answer.columns["row"].tolist() == [1, 4]
    assert answer.columns["city"].tolist() == ["Ulm", "Bonn"]


INFINITE = np.array([1.0, np.inf, 2.0, 3.0])
REFUSED = {
    "a.csv, column 'city': holds text, 'Ulm' on line 2.*--ignore city; turn it into columns of 0 "
    r"and 1 \(2 different values\): --onehot city; or colour by": ({"impute": "mean"}, {}),
    "column 'n': 1 of 4 values are missing, the first on line 3 - say what stands for them: "
    "--impute mean": ({"ignore": ("city",)}, {}),
    "line 3, column 'x': the value is infinite": ({"ignore": ("city", "n")}, {"x": INFINITE}),
    "no column 'z'": ({"ignore": ("city", "n"), "columns": ("z",)}, {}),
    "no column 'citi'; did you mean 'city'": ({"ignore": ("citi",)}, {}),
    "'men' is none of .*did you mean 'mean'": ({"ignore": ("city",), "impute": "men"}, {}),
    "no column left to make points of": ({"ignore": ("x", "n", "city", "y")}, {}),
    "onehot names the column 'city', which": ({"onehot": ("city",), "ignore": ("city",)}, {}),
    "has no column of graphs": ({"points": "graphs"}, {}),
    "2 columns of text: 'city', 't'.*--columns": ({"points": "texts"}, {"t": text(*"abcd")}),
    "1 of 32 values are no numbers, the first 'x' on line 3 - usually a typing error": (
        {"impute": "mean"},
        {"city": text("1", "x", *["2"] * 30)},
    ),
    "kernel of strings": ({"impute": "mean"}, {"city": text(*map("t{}".format, range(200)))}),
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
    with pytest.raises(TableError, match=r"line 4, column 'city': the model has never seen 'Rom'; "
                       "it was fitted to 'Bonn', 'Ulm'"):  # fmt: skip
        recipe.transform(table(city=text("Ulm", "Bonn", "Rom", "Bonn")))
    with pytest.raises(TableError, match="has no column 'n'"):
        recipe.transform(Table({"x": np.ones(1), "city": text("Ulm")}, "b.csv"))
    with pytest.raises(TableError, match=r"column 'x'.*holds text"):
        recipe.transform(table(x=text("a", "b", "c", "d")))
    with pytest.raises(TableError, match="line 2, column 'y': the target is missing"):
        recipe.targets(table(y=np.array([np.nan, 1, 1, 0])), labels=False)
    with pytest.raises(TableError, match=r"the target holds text, 'a' on line 2.*mercer fit svc"):
        recipe.targets(table(y=text(*"abab")), labels=False)
    with pytest.raises(ValueError, match="has not seen a table yet"):
        Recipe().transform(table())


def test_a_column_may_be_missing_in_some_blocks():
    """A sensor that was switched on late, or off early."""
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
        ({"impute": "drop"}, {"n": NOTHING}, "every row has a missing value.*column 'n': --ign"),
        ({"impute": float("nan")}, {}, "must be finite"),
        (
            {"standardize": True, "impute": "mean"},
            {"x": np.array([1.0, -1e200, 2.0, 3.0])},
            "column 'x': values are too large for a standard deviation",
        ),
        ({"points": "texts"}, {}, "'city': 1 of 4 values are missing.*--impute drop"),
        ({"points": "texts", "standardize": True}, {}, "--standardize is about vectors"),
        ({"points": "texts", "impute": "mean"}, {}, "--impute is about vectors.*drop leaves out"),
        ({"points": "texts"}, {"t": text(*["GATTACA"] * 4)}, "name it: --columns t"),
        ({}, {"n": text("1,5", "2,5", "3,0", "4")}, "'1,5' on line 2 has a decimal comma.*tr , "),
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
        ({"n": text(*"abcd")}, "'a' on line 2, where the model was fitted to numbers"),
        ({"n": INFINITE}, "the value is infinite.*mend it$"),
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
    answer = recipe.answer(table(y=INFINITE), {}, ["y"])
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
    assert again.recipe == recipe and again.story == {"command": "none"}
    assert again.model.predict(X).tobytes() == model.predict(X).tobytes()
    assert mercer.load(tmp_path / "a.mercer").predict(X).tobytes() == model.predict(X).tobytes()
    mercer.save(model, tmp_path / "b.mercer")
    assert load_trained(tmp_path / "b.mercer").recipe is None
