"""A model that the shell fitted gives the same predictions in Python, for every format of a table.

Predictions are compared bit for bit: `mercer predict` prints enough digits to restore each number.
"""

import csv
import io
import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from tables.messy_files import (
    N_ROWS,
    arrow_file,
    arrow_table,
    csv_bytes,
    days,
    houses,
    json_lines,
    parquet,
    reviews,
    rows_of,
    sheet,
    xlsx,
)

import mercer
from mercer.app.cli import main
from mercer.tables import Recipe, TableError

pytest.importorskip("click")
pytest.importorskip("rich")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

# The target of each method of `mercer fit`.
TARGETS = {
    **dict.fromkeys(("ridge", "gp", "svr", "rfm"), "price"),
    **dict.fromkeys(("logistic", "svc", "fisher", "rfm-classes"), "kind"),
    **dict.fromkeys(("oneclass", "kmeans"), None),
}
FEATURES = ["area", "rooms", "city", "garden", "day", "review", "id", "year"]


def mixed_table(seed=0):
    """Return a table with a column of each type, and a target of each kind."""
    rng = np.random.default_rng(seed)
    table = houses(rng)
    dear = np.array(table["price"]) > np.median(table["price"])
    return table | {
        "garden": (rng.random(N_ROWS) < 0.5).tolist(),
        "day": days(rng),
        "review": reviews(rng, N_ROWS)["review"],
        "id": [f"H-{i:04}" for i in range(N_ROWS)],
        "year": [2024] * N_ROWS,
        "kind": [("cheap", "dear")[is_dear] for is_dear in dear.tolist()],
    }


def with_missing_values(table):
    """Return a table in which a number, a category, a boolean and a date are missing."""
    table = {name: list(column) for name, column in table.items()}
    for row, name in enumerate(("area", "city", "garden", "day")):
        table[name][row] = None
    return table


def json_rows(table):
    """Return rows as JSON can represent them: dates in ISO format."""
    days = [None if day is None else day.isoformat() for day in table["day"]]
    return rows_of(table | {"day": days})


def numpy_arrays(table):
    return {name: np.array(column) for name, column in table.items()}


def save_structured(path, table):
    arrays = numpy_arrays(table | {"day": np.array(table["day"], dtype="M8[D]")})
    records = np.empty(len(arrays["area"]), [(name, a.dtype) for name, a in arrays.items()])
    for name, array in arrays.items():
        records[name] = array
    np.save(path, records)


WRITERS = {
    "csv": lambda path, table: path.write_bytes(csv_bytes(table)),
    "tsv": lambda path, table: path.write_bytes(csv_bytes(table, delimiter="\t")),
    "jsonl": lambda path, table: path.write_bytes(json_lines(json_rows(table))),
    "json": lambda path, table: path.write_text(json.dumps(json_rows(table))),
    "parquet": lambda path, table: path.write_bytes(parquet(arrow_table(table))),
    "arrow": lambda path, table: path.write_bytes(arrow_file(arrow_table(table))),
    "feather": lambda path, table: path.write_bytes(arrow_file(arrow_table(table), stream=True)),
    "xlsx": lambda path, table: path.write_bytes(xlsx(Sheet1=sheet(table))),
    "npy": save_structured,
    "npz": lambda path, table: np.savez(
        path, **numpy_arrays(table | {"day": np.array(table["day"], dtype="M8[D]")})
    ),
}
if find_spec("openpyxl") is None:
    del WRITERS["xlsx"]
WITH_MISSING = [name for name in WRITERS if name not in ("npy", "npz")]  # NumPy has no null


def frames(table):
    """Return the table in the classes that Python users have."""
    pandas = pd.DataFrame(table)
    pandas["day"] = pd.to_datetime(pandas["day"])
    categories = pandas.assign(city=pandas["city"].astype("category"))
    return {
        "pandas": pandas,
        "pandas with categories": categories.set_index(pd.Index(range(100, 100 + len(pandas)))),
        "polars": pl.DataFrame(table),
        "pyarrow": arrow_table(table),
    }


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in this process, and return its standard output."""
    monkeypatch.chdir(tmp_path)

    def start(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["mercer", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert end.value.code == code, f"{' '.join(arguments)}\n{out}\n{err}"
        return out if code == 0 else err

    return start


def fit(run, method, data):
    """Fit a model in the shell, and return its file."""
    if method == "pca":
        run("pca", data, "--ignore", "price,kind", "-o", "out", "-q")
        return "out/model.mercer"
    target = TARGETS[method]
    options = [] if target is None else ["--target", target]
    options += ["--ignore", ",".join(name for name in ("price", "kind") if name != target)]
    run("fit", method, data, *options, "-o", f"{method}.mercer", "-q")
    return f"{method}.mercer"


def columns(text):
    """Return the columns of a CSV text, without the row number."""
    rows = list(csv.reader(io.StringIO(text)))
    return {name: list(cells) for name, *cells in zip(*rows, strict=True) if name != "row"}


def in_the_shell(run, method, model, data):
    """Return the columns of predictions, or of components, that the shell prints."""
    return columns(run("transform" if method == "pca" else "predict", model, data, "-q"))


def in_python(method, model, table):
    """Return the same columns from the model that Python loads."""
    model = mercer.load(model)
    if method == "pca":
        found = {f"component{j + 1}": c for j, c in enumerate(model.transform(table).T)}
    else:
        found = {"prediction": model.predict(table)}
    return {name: [str(value) for value in column.tolist()] for name, column in found.items()}


def test_all_methods_are_tested():
    from mercer.app.cli._main import app

    choices = next(p.type.choices for p in app.commands["fit"].params if p.name == "method")
    assert set(choices) == set(TARGETS)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("method", [*TARGETS, "pca"])
def test_each_model_and_format(run, tmp_path, method, kind):
    table = mixed_table()
    WRITERS[kind](tmp_path / f"a.{kind}", table)
    model = fit(run, method, f"a.{kind}")
    expected = in_the_shell(run, method, model, f"a.{kind}")
    assert in_python(method, model, frames(table)["pandas"]) == expected
    assert in_python(method, model, f"a.{kind}") == expected
    new = mixed_table(1)
    WRITERS[kind](tmp_path / f"new.{kind}", new)
    expected = in_the_shell(run, method, model, f"new.{kind}")
    for name, frame in frames(new).items():
        assert in_python(method, model, frame) == expected, name


@pytest.mark.parametrize("method", ["ridge", "svc", "pca"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_another_format_of_the_same_table(run, tmp_path, method, missing):
    table, kinds = mixed_table(), list(WRITERS)
    if missing:
        table, kinds = with_missing_values(table), WITH_MISSING
    for kind in kinds:
        WRITERS[kind](tmp_path / f"a.{kind}", table)
    expected = None
    for trained in kinds:
        model = fit(run, method, f"a.{trained}")
        for kind in kinds:
            found = in_the_shell(run, method, model, f"a.{kind}")
            expected = expected or found
            assert found == expected, f"trained on {trained}, applied to {kind}"
        for name, frame in frames(table).items():
            assert in_python(method, model, frame) == expected, f"trained on {trained}, {name}"


@pytest.fixture
def model(run, tmp_path):
    """Fit a support vector classifier to a CSV file."""
    WRITERS["csv"](tmp_path / "a.csv", mixed_table())
    return fit(run, "svc", "a.csv")


def test_columns_in_another_order_and_extra_columns(run, tmp_path, model):
    table = mixed_table(1)
    expected = in_python("svc", model, frames(table)["pandas"])
    backwards = dict(reversed(table.items()))
    extra = {"extra": ["x"] * N_ROWS, **table, "more": list(range(N_ROWS))}
    needed = {name: column for name, column in table.items() if name in FEATURES}
    for name, other in (("backwards", backwards), ("extra", extra), ("without target", needed)):
        for kind, frame in frames(other).items():
            assert in_python("svc", model, frame) == expected, (name, kind)
        WRITERS["csv"](tmp_path / "new.csv", other)
        assert in_the_shell(run, "svc", model, "new.csv") == expected, name


def test_an_extra_column_that_cannot_be_read(run, tmp_path, model):
    table = mixed_table(1)
    expected = in_python("svc", model, frames(table)["pandas"])
    extra = table | {"lists": [[1.0, 2.0]] * N_ROWS, "bytes": [b"\xff"] * N_ROWS}
    for kind, frame in frames(extra).items():
        assert in_python("svc", model, frame) == expected, kind
    WRITERS["parquet"](tmp_path / "new.parquet", extra)
    assert in_the_shell(run, "svc", model, "new.parquet") == expected


def test_missing_columns_are_listed_all_at_once(run, tmp_path, model):
    table = mixed_table(1)
    del table["area"], table["city"]
    WRITERS["csv"](tmp_path / "new.csv", table)
    message = run("predict", model, "new.csv", code=1)
    assert "new.csv" in message and "'area'" in message and "'city'" in message, message
    for frame in frames(mixed_table(1)).values():
        few = frame.drop(columns=["area", "city"]) if hasattr(frame, "assign") else None
        few = frame.drop(["area", "city"]) if few is None else few
        with pytest.raises(TableError, match=r"'area'.*'city'"):
            mercer.load(model).predict(few)


def test_columns_that_were_set_aside_are_not_needed(run, tmp_path, model):
    table = mixed_table(1)
    expected = in_python("svc", model, frames(table)["pandas"])
    del table["id"], table["year"]
    assert in_python("svc", model, frames(table)["pandas"]) == expected
    WRITERS["csv"](tmp_path / "new.csv", table)
    assert in_the_shell(run, "svc", model, "new.csv") == expected


@pytest.mark.parametrize("kind", WRITERS)
def test_unseen_levels(run, tmp_path, model, kind):
    table = mixed_table(1)
    table["city"] = ["Worms" if i % 2 else city for i, city in enumerate(table["city"])]
    WRITERS[kind](tmp_path / f"new.{kind}", table)
    expected = in_the_shell(run, "svc", model, f"new.{kind}")
    assert all(expected["prediction"])
    for name, frame in frames(table).items():
        with pytest.warns(UserWarning, match="column 'city': 30 of 60 values .* 'Worms'"):
            assert in_python("svc", model, frame) == expected, name


def test_one_row_and_many_rows_give_the_same_predictions(model):
    frame = frames(mixed_table(1))["pandas"]
    together = mercer.load(model).predict(frame).tolist()
    alone = [mercer.load(model).predict(frame.iloc[[i]])[0] for i in range(5)]
    assert alone == together[:5]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_of_one_row(run, tmp_path, model, kind):
    table = mixed_table(1)
    expected = in_python("svc", model, frames(table)["pandas"])["prediction"]
    for i in range(3):
        WRITERS[kind](tmp_path / f"one.{kind}", {name: c[i : i + 1] for name, c in table.items()})
        assert in_the_shell(run, "svc", model, f"one.{kind}")["prediction"] == [expected[i]]


def test_columns_without_values_in_new_rows(run, tmp_path, model):
    table = mixed_table(1)
    for name in ("area", "city", "garden", "day", "review"):
        new = table | {name: [None] * N_ROWS}
        WRITERS["csv"](tmp_path / "new.csv", new)
        expected = in_the_shell(run, "svc", model, "new.csv")
        assert all(expected["prediction"]), name
        for kind, frame in frames(new).items():
            assert in_python("svc", model, frame) == expected, (name, kind)


def test_categories_that_look_like_numbers(run, tmp_path):
    table = mixed_table()
    table["city"] = [{"Bonn": "01069", "Köln": "A7", "Ulm": "53111"}[c] for c in table["city"]]
    WRITERS["csv"](tmp_path / "a.csv", table)
    model = fit(run, "ridge", "a.csv")
    expected = np.array(in_the_shell(run, "ridge", model, "a.csv")["prediction"], dtype=float)
    rows = [i for i, city in enumerate(table["city"]) if city == "53111"]
    WRITERS["csv"](tmp_path / "b.csv", {n: [c[i] for i in rows] for n, c in table.items()})
    found = np.array(in_the_shell(run, "ridge", model, "b.csv")["prediction"], dtype=float)
    np.testing.assert_allclose(found, expected[rows], rtol=1e-9)


@pytest.mark.parametrize(
    ("rows", "new"),
    [
        # Without the training rows, 3/7 would be the seventh of March.
        ([f"{1 + i % 28:02}/{1 + i % 12:02}/2022" for i in range(N_ROWS)], "03/07/2022"),
        # Without the training rows, 1.234 would be a number below 2.
        ([f"{500 + 20 * i:,}".replace(",", ".") + ",5" for i in range(N_ROWS)], "1.234"),
    ],
    ids=["dates", "numbers"],
)
def test_new_rows_are_read_in_the_notation_of_the_training_rows(run, tmp_path, rows, new):
    price = [float(i) for i in range(N_ROWS)]
    (tmp_path / "a.csv").write_bytes(csv_bytes({"x": rows, "price": price}, delimiter=";"))
    run("fit", "ridge", "a.csv", "--target", "price", "-o", "m.mercer")
    known = [*rows[:9], new]
    (tmp_path / "known.csv").write_bytes(csv_bytes({"x": known}))
    (tmp_path / "new.csv").write_bytes(csv_bytes({"x": [new]}))
    expected = columns(run("predict", "m.mercer", "known.csv"))["prediction"][-1]
    found = columns(run("predict", "m.mercer", "new.csv"))["prediction"]
    assert float(found[0]) == pytest.approx(float(expected))


def test_probabilities_deviations_and_scores(run, tmp_path):
    table = mixed_table()
    WRITERS["parquet"](tmp_path / "a.parquet", table)
    frame = frames(table)["pandas"]
    path = fit(run, "logistic", "a.parquet")
    shown, loaded = columns(run("predict", path, "a.parquet", "--proba", "-q")), mercer.load(path)
    probabilities = loaded.predict_proba(frame)
    for label, column in zip(loaded.classes_, probabilities.T, strict=True):
        assert shown[f"p({label})"] == [str(p) for p in column.tolist()]
    score = json.loads(run("score", path, "a.parquet", "--json", "-q"))
    assert loaded.score(frame) in score.values()
    path = fit(run, "ridge", "a.parquet")
    shown, loaded = columns(run("predict", path, "a.parquet", "--std", "-q")), mercer.load(path)
    _, deviations = loaded.predict(frame, return_std=True)
    assert shown["std"] == [str(value) for value in deviations.tolist()]
    score = json.loads(run("score", path, "a.parquet", "--json", "-q"))
    assert loaded.score(frame) in score.values()


def test_attributes_and_saving_again(run, tmp_path, model):
    loaded = mercer.load(model)
    assert isinstance(loaded, mercer.tables.TableModel) and isinstance(loaded.recipe, Recipe)
    assert isinstance(loaded.estimator, mercer.SVC)
    assert loaded.classes_.tolist() == ["cheap", "dear"]
    used = set(loaded.feature_names_in_)
    assert {"area", "rooms", "city", "garden", "day"} <= used
    assert not used & {"price", "kind", "id", "year"}
    frame = frames(mixed_table(1))["pandas"]
    X = loaded.recipe.transform(frame)
    assert X.shape == (N_ROWS, len(loaded.recipe.get_feature_names_out()))
    expected = loaded.predict(frame).tolist()
    assert loaded.estimator.predict(X).tolist() == expected
    mercer.save(loaded, tmp_path / "again.mercer")
    assert mercer.load(tmp_path / "again.mercer").predict(frame).tolist() == expected
    WRITERS["csv"](tmp_path / "new.csv", mixed_table(1))
    assert in_the_shell(run, "svc", "again.mercer", "new.csv")["prediction"] == expected
    mercer.save(loaded.estimator, tmp_path / "bare.mercer")
    assert isinstance(mercer.load(tmp_path / "bare.mercer"), mercer.SVC)
