"""Rows and columns keep their meaning from a file to a prediction and back."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from shell import ENVIRONMENT

import mercer as library
from mercer import load as load_trained
from mercer.tables import open_table, predict_observations, read_table


def columns(text):
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [row[j] for row in rows[1:]] for j, name in enumerate(rows[0])}


def write(path, **values):
    """Write columns as CSV; None is an empty cell."""
    lines = [",".join(values)]
    for row in zip(*values.values(), strict=True):
        lines.append(",".join("" if cell is None else str(cell) for cell in row))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def wine(tmp_path):
    """Write a table with columns of different scale; its first column separates the classes."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    a, b = kind + 0.1 * rng.normal(size=60), 1000 * rng.normal(size=60)
    return write(tmp_path / "wine.csv", a=a, b=b, kind=[f"k{k}" for k in kind])


def test_a_model_is_loaded_with_its_recipe(mercer, wine):
    done = mercer("fit", "svc", wine, "--target", "kind", "--standardize", "-o", "m.mercer")
    assert done.code == 0
    pd = pytest.importorskip("pandas")
    told = columns(mercer("predict", "m.mercer", wine).out)["prediction"]
    frame = pd.read_csv(wine)
    trained = library.load("m.mercer")
    for table in (frame, frame.drop(columns="kind"), frame[["kind", "b", "a"]], wine):
        assert trained.predict(table).tolist() == told
    assert np.mean(np.array(told) == frame["kind"]) > 0.95
    mercer("fit", "svc", wine, "--target", "kind", "--no-standardize", "-o", "raw.mercer")
    raw = library.load("raw.mercer").estimator.predict(frame[["a", "b"]].to_numpy())
    assert raw.tolist() == columns(mercer("predict", "raw.mercer", wine).out)["prediction"]


def test_predictions_in_python_have_the_same_bits_as_in_the_shell(mercer, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 17)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    path = write(tmp_path / "a.csv", a=X[:, 0], b=X[:, 1], c=X[:, 2], y=X.sum(axis=1))
    mercer("fit", "gp", path, "--target", "y", "--standardize", "-o", "m.mercer")
    told = columns(mercer("predict", "m.mercer", path, "--std").out)
    trained = load_trained("m.mercer")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    assert told["prediction"] == [repr(v) for v in trained.predict(frame).tolist()]
    blocks = map(trained.row_recipe.transform, open_table(path).blocks())
    std = [predict_observations(trained.estimator, X)[1] for X in blocks]
    assert told["std"] == [repr(value) for value in np.concatenate(std).tolist()]


@pytest.mark.parametrize("method", ["ridge", "gp", "svr"])
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_regressions_of_targets_far_from_zero(mercer, tmp_path, method, offset):
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, size=80)
    y = 5 * np.sin(x) + 0.1 * rng.normal(size=80)
    near = write(tmp_path / "near.csv", x=x, y=y)
    far = write(tmp_path / "far.csv", x=x, y=y + offset)
    scores = []
    for path in (near, far):
        done = mercer("score", method, path, "--target", "y", "--json")
        scores.append(json.loads(done.out)["mean"])
    assert scores[0] > 0.9 and scores[1] == pytest.approx(scores[0], abs=1e-3)
    said = mercer("fit", method, far, "--target", "y").err
    assert method == "svr" or "The target is centred" in said
    if method == "ridge":
        found = json.loads(mercer("tune", method, far, "--target", "y", "--json").out)
        more = ("--kernel", found["kernel"], "--set", f"alpha={found['alpha']}")
        done = mercer("score", method, far, "--target", "y", *more, "--json")
        assert json.loads(done.out)["mean"] > 0.9


def test_rows_without_a_target_are_predicted(mercer, tmp_path):
    x = list(range(12))
    path = write(
        tmp_path / "a.csv",
        x=[*x[:5], None, *x[6:]],
        y=[2 * v if v < 9 else None for v in x],
        kind=["ab"[v % 2] if v < 9 else None for v in x],
    )
    for method, target, other in (("ridge", "y", "kind"), ("svc", "kind", "y")):
        options = ("--target", target, "--ignore", other, "--impute", "drop")
        done = mercer("fit", method, path, *options, "-o", "m.mercer")
        assert "3 of 12 rows have no value of the target" in done.err, done
        assert "1 of 12 rows dropped" in done.err, done
        done = mercer("predict", "m.mercer", path)
        told = columns(done.out)
        assert told["row"] == [str(i + 1) for i in x]
        assert [i for i, cell in enumerate(told["prediction"]) if not cell] == [5]
        assert "warning: 1 of 12 rows have missing values, so their results are empty" in done.err
        rows = [
            json.loads(line)
            for line in mercer("predict", "m.mercer", path, "--json").out.splitlines()
        ]
        assert len(rows) == 12 and rows[5]["prediction"] is None
        code = mercer("predict", "m.mercer", path, "--show-code").out
        done = subprocess.run(
            [sys.executable, "-"], input=code, env=ENVIRONMENT, text=True, capture_output=True,
            check=True, cwd=tmp_path,
        )  # fmt: skip
        assert columns(done.stdout) == told
        scored = mercer("score", "m.mercer", path, "--json")
        assert json.loads(scored.out)["rows"] == 8 and "3 of 12 rows have no target" in scored.err


def test_blocks_without_a_complete_row(mercer, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 4)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    x = [None] * 4 + list(range(4)) + [None] * 4 + [1]
    path = write(tmp_path / "a.csv", x=x, y=[2 * i for i in range(13)])
    options = ("--target", "y", "--impute", "drop")
    assert mercer("fit", "ridge", path, *options, "-o", "m.mercer").code == 0
    told = columns(mercer("predict", "m.mercer", path).out)
    assert told["row"] == [str(i) for i in range(1, 14)]
    assert [bool(cell) for cell in told["prediction"]] == [v is not None for v in x]
    for method in ("auto", "nystroem"):
        more = ("--columns", "x", "--impute", "drop", "--method", method, "--rank", "3")
        done = mercer("pca", path, *more, "-k", "1", "-o", method, "--json")
        assert done.code == 0, done
        assert json.loads(done.out)["points"] == 5 and "8 of 13 rows dropped" in done.err
        page = (tmp_path / method / "report.html").read_text()
        assert "5 of 13 rows (8 dropped because of missing values)" in page
    plan = mercer("plan", path, "--columns", "x", "--impute", "drop", "--json")
    assert json.loads(plan.out)["rows"] == 5
    gone = write(tmp_path / "b.csv", x=[None, None], y=[1, 2])
    done = mercer("predict", "m.mercer", gone)
    assert done.code == 1 and "all 2 rows have missing values" in done.err


def test_left_out_rows_of_a_test_are_counted(mercer, tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, x=[1, None, 3, 4, 5, 6], z=range(6))
    done = mercer("test", "two-sample", "a.csv", "b.csv", "--impute", "drop", "--permutations", "9")
    assert done.code == 0 and done.err.count("1 of 6 rows dropped") == 2, done


def test_two_samples_of_which_one_has_row_numbers(mercer, tmp_path):
    (tmp_path / "a.csv").write_text(",x,y\n" + "".join(f"{i},{i % 5},{i}\n" for i in range(12)))
    (tmp_path / "b.csv").write_text("x,y\n" + "".join(f"{i % 4},{i}\n" for i in range(12)))
    found = [
        mercer("test", "two-sample", *files, "--permutations", "9")
        for files in (("a.csv", "b.csv"), ("b.csv", "a.csv"))
    ]
    assert all(done.code == 0 for done in found), found
    done = mercer("test", "two-sample", "a.csv", "b.csv", "--columns", "column1,x")
    assert done.code == 1 and "b.csv has no column 'column1'" in done.err


def test_a_color_with_the_name_of_a_result_gets_another(mercer, tmp_path):
    write(tmp_path / "a.csv", x=[1, 2, 4, 8], row=["a", "b", "a", "b"])
    lines = mercer("pca", "a.csv", "--color", "row", "-k", "1").out.splitlines()
    assert lines[0] == "row,input_row,component1"
    assert [line.split(",")[:2] for line in lines[1:3]] == [["1", "a"], ["2", "b"]]


def test_predictions_for_a_file_of_numerals_in_a_text_column(mercer, tmp_path):
    codes = ["01", "1", "A", "01", "1", "A"]
    write(tmp_path / "a.csv", code=codes, y=[1, 5, 9, 1, 5, 9])
    write(tmp_path / "b.csv", code=["01", "1"])
    options = ("--target", "y", "--onehot", "code", "-o", "m.mercer")
    assert mercer("fit", "ridge", "a.csv", *options).code == 0
    done = mercer("predict", "m.mercer", "b.csv")
    assert done.code == 0, done
    first, second = (float(line.split(",")[1]) for line in done.out.splitlines()[1:])
    assert second - first > 1


@pytest.mark.parametrize("end", ["csv", "tsv", "jsonl", "parquet", "feather", "npy", "npz"])
def test_results_are_written_in_the_format_of_the_name(mercer, tmp_path, end):
    if end in ("parquet", "feather"):
        pytest.importorskip("pyarrow")
    x = [None, *range(1, 12)]
    path = write(
        tmp_path / "a.csv", x=x, y=range(12), kind=["ab"[i % 2] for i in range(12)], file=x
    )
    for method, target, other in (("ridge", "y", "kind"), ("svc", "kind", "y")):
        options = ("--target", target, "--ignore", other, "--impute", "drop")
        assert mercer("fit", method, path, *options, "-o", "m.mercer").code == 0
        done = mercer("predict", "m.mercer", path, "-o", f"p.{end}")
        assert done.code == 0, done
        found = read_table(f"p.{end}")
        want = columns(mercer("predict", "m.mercer", path).out)
        assert found.columns["row"].tolist() == [float(i) for i in range(1, 13)]
        for shown, cell in zip(want["prediction"], found.columns["prediction"], strict=True):
            if shown:
                assert cell == (shown if method == "svc" else float(shown))
            else:
                assert cell in (None, "") or cell != cell
    if end in ("npz", "jsonl"):
        types = ("--type", "x=number,file=number")
        mercer("pca", path, "--columns", "x,file", "--impute", "drop", *types, "-o", "out")
        assert mercer("denoise", "out/model.mercer", path, "-o", f"d.{end}").code == 0
        assert list(read_table(f"d.{end}").columns) == ["row", "x", "file"]


def test_compressed_text_and_names_without_a_format(mercer, tmp_path, people):
    mercer("fit", "ridge", people, "--columns", "age", "--target", "price", "-o", "m.mercer")
    plain = mercer("predict", "m.mercer", people).out
    for name in ("p.csv.gz", "p.jsonl.gz", "plain"):
        assert mercer("predict", "m.mercer", people, "-o", name).code == 0
    assert (tmp_path / "plain").read_text() == plain
    told = read_table("p.csv.gz").columns["prediction"]
    assert told.tolist() == read_table("p.jsonl.gz").columns["prediction"].tolist()
    for name in ("p.ods", "p.parquet.gz", "p.pkl"):
        done = mercer("predict", "m.mercer", people, "-o", name)
        assert done.code == 2 and "use one of .csv, .txt" in done.err, done
        assert ".parquet" in done.err and not (tmp_path / name).exists()


def test_numbers_as_names_of_columns(mercer, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 9, size=(20, 4)))
    for index in (False, True):
        frame.to_csv("a.csv", index=index)
        done = mercer("pca", "a.csv")
        assert len(done.out.splitlines()) == 21, done
        expected = "contains row numbers" if index else "the first line is used as the header"
        assert expected in done.err
    frame.to_csv("b.csv", index=False, header=False)
    assert len(mercer("pca", "b.csv").out.splitlines()) == 21
    for text, header in (("0,1\n0.5,1.5\n2,3\n", True), ("0,1,2\n2,0,1\n", False),
                         ("0,1,2\n3,4,5\n", False), ("0\n3\n", False), ("0\n3.5\n1\n", True),
                         ("2019,2020,2021\n1.5,2,7\n", True)):  # fmt: skip
        (tmp_path / "c.csv").write_text(text)
        source = open_table("c.csv")
        assert source.layout.header == header and len(source.notes) == 1
        assert ("--no-header" if header else "--header") in source.notes[0]
        for chosen in (True, False):
            assert open_table("c.csv", header=chosen).layout.header == chosen


def test_options_for_reading_text(mercer, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe;x;z\n1,234;1;-999\n2,345;2;5\n3,456;3;7\n".encode("cp850"))
    options = ("--target", "größe", "--impute", "mean", "--na", "-999", "--decimal", ".")
    done = mercer("fit", "ridge", path, *options, "--encoding", "cp850", "--show-code")
    assert done.code == 0, done
    assert "na=('-999',), decimal='.', encoding='cp850'" in done.out
    done = mercer("fit", "ridge", path, *options, "--encoding", "cp850", "-o", "m.mercer")
    assert done.code == 0 and "commas as thousands separators, such as 1,234" in done.err, done


def test_identifiers_stay_exact(mercer, tmp_path):
    ids = [2**53 + i for i in range(12)]
    path = write(tmp_path / "a.csv", id=ids, x=range(12), kind=[ids[i % 2] for i in range(12)])
    done = mercer("pca", path, "--ignore", "kind")
    assert done.code == 0 and re.search("id +identifier +not used", done.err), done
    done = mercer("pca", path, "--ignore", "kind", "--strict")
    assert done.code == 1 and "'id' is an identifier" in done.err and "--ignore id" in done.err
    assert (
        mercer("fit", "svc", path, "--ignore", "id", "--target", "kind", "-o", "m.mercer").code == 0
    )
    told = columns(mercer("predict", "m.mercer", path).out)["prediction"]
    assert set(told) <= {str(ids[0]), str(ids[1])} and len(set(told)) == 2
    out = mercer("pca", path, "--columns", "x", "--color", "id").out
    assert columns(out)["id"] == [str(i) for i in ids]


def test_types_of_columns_can_be_chosen(mercer, tmp_path):
    path = tmp_path / "a.csv"
    lines = [f"day {i + 1:02d};{'ab'[i % 2]}{i};{'cd'[i % 2]};{i}" for i in range(20)]
    path.write_text("day;code;kind;y\n" + "\n".join(lines) + "\n")
    done = mercer("fit", "ridge", path, "--target", "y")
    assert done.code == 0 and re.search("code +identifier +not used", done.err), done
    assert re.search("day +identifier", done.err) and re.search("kind +category", done.err), done
    done = mercer("score", "ridge", path, "--target", "y", "--type", "code=category")
    assert done.code == 0 and re.search("code +category +one-hot, 20 levels", done.err), done
    done = mercer("fit", "ridge", path, "--target", "y", "--strict")
    assert done.code == 1 and "3 columns need a decision" in done.err, done
    command = shlex.split(done.err.split("The complete command: ")[1])
    assert mercer(*command[1:]).code == 0
    done = mercer("fit", "ridge", path, "--target", "y", "--type", "code")
    assert done.code == 2 and "'code' is not NAME=VALUE" in done.err, done
    done = mercer("fit", "ridge", path, "--target", "y", "--impute", "mean", "--impute", "drop")
    assert done.code == 2 and "give one method (mean drop)" in done.err, done


@pytest.mark.parametrize("blocked", [("click",), ("rich",), ("click", "rich")])
def test_without_the_extra_one_line_says_what_to_install(tmp_path, blocked):
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        "from mercer.app.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], env=ENVIRONMENT, text=True, capture_output=True
    )
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
    assert "pip install 'mercer[cli]'" in done.stderr and " and ".join(blocked) in done.stderr


def test_other_missing_packages_are_named(mercer, people, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = mercer("pca", people, "--columns", "age", "-o", "out")
    assert done.code == 1 and "pip install 'mercer[cli]'" in done.err, done


def test_labels_that_a_model_does_not_know_are_reported(mercer, tmp_path):
    x = range(12)
    good = write(tmp_path / "a.csv", x=x, kind=["ab"[i > 5] for i in x])
    mercer("fit", "svc", good, "--target", "kind", "-o", "m.mercer")
    some = write(tmp_path / "b.csv", x=x, kind=["abc"[i % 3] for i in x])
    done = mercer("score", "m.mercer", some)
    assert done.code == 0 and "4 of 12 labels are unknown to the model, such as 'c'" in done.err
    for labels in (["AB"[i > 5] for i in x], [int(i > 5) for i in x]):
        done = mercer("score", "m.mercer", write(tmp_path / "c.csv", x=x, kind=labels))
        assert done.code == 1 and "12 of 12 labels are unknown" in done.err, done
