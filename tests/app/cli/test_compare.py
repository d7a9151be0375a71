"""mercer compare: the table, the files, and what is refused."""

import contextlib
import csv
import io
import json
import os

import matplotlib.pyplot as plt
import numpy as np

from mercer import MetricMDS
from mercer.app.comparison import MODELS, ModelSpec

TREATED = ("--impute", "median", "--onehot", "city", "--standardize", "--ignore", "price")
MODEL_OPTIONS = ("--models", "PCA, Sammon")


def columns(text):
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [row[j] for row in rows[1:]] for j, name in enumerate(rows[0])}


def test_table_maps_and_picture(mercer, people, tmp_path):
    options = (*TREATED, *MODEL_OPTIONS, "--color", "kind")
    done = mercer("compare", people, *options, "-o", "out")
    assert done.code == 0 and done.out == "", done
    assert "one-hot, 3 levels" in done.err and "Embeddings of 80 points" in done.err
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == ["comparison.csv", "comparison.png", "maps.csv"]
    table = columns((out / "comparison.csv").read_text())
    assert table["model"] == ["PCA", "Sammon"] and "wrote out/maps.csv" in done.err
    assert 0.5 < float(table["auc"][1]) <= 1 and 0 <= int(float(table["errors"][0])) <= 80
    assert table["reconstruction_error"][1] == ""  # Sammon's map has no way back
    maps = columns((out / "maps.csv").read_text())
    assert list(maps) == ["row", "kind", "PCA 1", "PCA 2", "Sammon 1", "Sammon 2"]
    assert maps["row"] == [str(i) for i in range(1, 81)]
    assert (out / "comparison.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    # the code that is printed finds the same
    code = mercer("compare", people, *options, "--show-code").out
    with contextlib.redirect_stdout(io.StringIO()) as wrote:
        exec(compile(code, "<printed>", "exec"), {"__name__": "__main__"})
    plt.close("all")
    said = wrote.getvalue().splitlines()
    assert said[0] == "Embeddings of 80 points in 2 dimensions; T and C with 10 neighbours"
    auc = [line.split()[3] for line in said[2:4]]
    assert auc == [f"{float(value):.3f}" for value in table["auc"]]


def test_json_and_quiet(mercer, people):
    options = (*TREATED, *MODEL_OPTIONS, "--color", "kind", "--rows", "40", "--neighbors", "5")
    done = mercer("compare", people, *options, "--json", "-q")
    assert done.code == 0 and done.err == ""
    told = json.loads(done.out)
    assert told["rows"] == 80 and told["evaluated"] == 40 and told["neighbors"] == 5
    assert [row["model"] for row in told["models"]] == ["PCA", "Sammon"]
    assert told["models"][1]["reconstruction_error"] is None and told["left_out"] == {}
    words = mercer("compare", people, *options, "-q").out
    assert words.startswith("Embeddings of 80 points in 2 dimensions, evaluated on 40 of them")


def test_numbers_and_structured_points(mercer, people, tmp_path):
    some = ("--ignore", "city,kind", "--impute", "mean")
    done = mercer("compare", people, *some, "--color", "age", *MODEL_OPTIONS)
    assert done.code == 0 and "1-NN errors:" not in done.out
    done = mercer("compare", people, *some, "--color", "age", "--models", "PCA", "-o", "colours")
    assert done.code == 0 and "comparison.png" in done.err
    lines = [f">{i}\n{'GATTACA'[i % 3 :]}{'CCG'[: i % 4]}" for i in range(12)]
    (tmp_path / "dna.fasta").write_text("\n".join(lines) + "\n")
    done = mercer("compare", "dna.fasta", "--kernel", "Spectrum(2)", "--color", "name", "-o", "out")
    assert done.code == 0 and "PCA was left out: it requires vectors" in done.err, done


def test_too_many_classes_are_drawn_in_one_colour(mercer, tmp_path):
    rows = "\n".join(f"{i % 7},{i * i % 11},{i % 5},name{i}" for i in range(60))
    (tmp_path / "a.csv").write_text(f"x,y,z,name\n{rows}\n")
    done = mercer("compare", "a.csv", "--color", "name", "--models", "PCA", "-o", "out", "-q")
    assert done.code == 0 and "the figure uses a single colour: y has 60 classes" in done.err
    assert sorted(os.listdir(tmp_path / "out")) == ["comparison.csv", "comparison.png", "maps.csv"]


def test_a_model_that_fails_is_told_and_the_others_go_on(mercer, people):
    options = ("--columns", "age,price", "--models", "PPCA,PCA", "-k", "2")
    done = mercer("compare", people, *options)
    assert done.code == 0 and "warning: PPCA failed: n_components=2 must be smaller" in done.err
    assert "PCA" in done.out and "PPCA: failed" in done.out


def test_what_is_refused(mercer, people, tmp_path):
    done = mercer("compare", people, "--color", "kin")
    assert done.code == 1 and "has no column 'kin'; did you mean 'kind'?" in done.err
    done = mercer("compare", people, "--columns", "age,price", "--models", "PCA,Samon")
    assert done.code == 1 and "unknown model 'Samon'; did you mean 'Sammon'?" in done.err
    done = mercer("compare", people, "--columns", "age,price", "-k", "7", "-o", "out")
    assert done.code == 1 and "n_components=7 exceeds the number of columns of X, 2" in done.err
    assert not (tmp_path / "out").exists()
    done = mercer("compare", people, "--neighbors", "0")
    assert done.code == 2
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    done = mercer("compare", "one.csv")
    assert done.code == 1 and "at least 3 points, got n_samples=1" in done.err


def test_a_solver_that_does_not_converge_is_the_exit_code(mercer, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(30, 3)))
    hasty = ModelSpec(lambda a: MetricMDS(a.q, max_iter=1))
    monkeypatch.setitem(MODELS, "MDS", hasty)
    done = mercer("compare", "a.npy", "--models", "MDS")
    assert done.code == 3 and "warning: MDS: L-BFGS stopped after 1 steps" in done.err
