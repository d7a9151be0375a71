"""Each command does what it says, says what it did, and ends with a code that means something."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data_folder import DATA
from shell import ENVIRONMENT, process, python

import mercer as library
from mercer import load as load_trained
from mercer._core import ProgressStep
from mercer.compile import CompileResult
from mercer.tables import Recipe, TableModel, read_table

TREATED = ("--impute", "median", "--onehot", "city", "--standardize")


def run(code):
    """Run a script in this process, and return what it wrote; `python` proves that it is whole."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "<printed>", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def columns(text):
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [row[j] for row in rows[1:]] for j, name in enumerate(rows[0])}


def test_from_a_file_to_embedding_picture_model_and_report(mercer, people, tmp_path):
    options = (*TREATED, "--ignore", "price", "--color", "kind", "-k", "3")
    done = mercer("pca", people, *options, "-o", "out")
    assert (
        done.code == 0
        and done.out == ""
        and re.search("city +category +one-hot, 3 levels", done.err)
    )
    assert re.search(r"height +number +standardised, filled with [\d.]+ +1\n", done.err)
    out = tmp_path / "out"
    assert sorted(os.listdir(out)) == [
        "embedding.csv",
        "embedding.png",
        "model.mercer",
        "report.html",
    ]
    found = columns((out / "embedding.csv").read_text())
    assert list(found) == ["row", "kind", "component1", "component2", "component3"]
    assert found["row"] == [str(i) for i in range(1, 81)] and set(found["kind"]) == {"old", "new"}
    assert (out / "embedding.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    # the model in a fresh process gives the same bits for the same rows
    again = process("transform", out / "model.mercer", people, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    scores = np.array([found[f"component{j}"] for j in (1, 2, 3)], dtype=float)
    told = columns(again.stdout)
    new = np.array([told[f"component{j}"] for j in (1, 2, 3)], dtype=float)
    np.testing.assert_allclose(new, scores, rtol=0, atol=1e-12)  # k(x, X) w, and u sqrt(l)
    model = load_trained(out / "model.mercer")
    here = model.estimator.transform(model.recipe.transform(read_table(people)))
    assert here.T.tobytes() == np.ascontiguousarray(new).tobytes()
    # and so does the code that is printed
    code = mercer("pca", people, *options, "--show-code").out
    assert python(code, tmp_path) == (out / "embedding.csv").read_text()
    # which is in the report, too, escaped, as is everything that the file says
    page = (out / "report.html").read_text("utf-8")
    assert (
        "mercer pca" in page
        and "<script>" in page
        and "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    )
    assert "No component was missed" in page


def test_a_report_on_an_approximation_states_its_limitations(mercer, people, tmp_path):
    options = ("--columns", "age,price", "--set", "tol=0.5", "-k", "5")
    options = (*options, "--method", "krylov", "--kernel", "RBF(0.01)")
    assert mercer("pca", people, *options, "-o", "out", "-q").code == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "The bounds of the eigenvalues are wide, up to" in page
    assert "It is not proved that these components are the largest" in page
    assert "have eigenvalues that these bounds cannot separate" in page
    assert "has a sine of at most" not in page


def test_text_in_a_report_is_escaped(mercer, tmp_path):
    bad = "</script><script>alert(1)</script>"
    rows = "\n".join(f'{i},"{bad}",{i * i % 7}' for i in range(20))
    (tmp_path / "a.csv").write_text(f'x,"{bad}",z\n{rows}\n')
    assert mercer("pca", "a.csv", "--color", bad, "-o", "out", "-q").code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "alert(1)" in page and bad not in page and "<script>alert" not in page
    assert page.count("</script>") == 2


def test_without_a_folder_data_go_to_stdout_and_words_to_stderr(mercer, people):
    done = mercer("pca", people, "--columns", "age,price")
    assert done.out.startswith("row,component1,component2\n1,")
    assert re.search("age +number", done.err) and "city" not in done.err
    assert mercer("pca", people, "--columns", "age,price", "-q").err == ""


@pytest.mark.parametrize("method", ["nystroem", "features"])
def test_streams_and_their_code_give_the_same_bits(mercer, people, tmp_path, method, monkeypatch):
    options = ("--ignore", "kind", *TREATED, "--method", method, "--rank", "20")
    options = [{"median": "mean"}.get(option, option) for option in options]
    done = mercer("pca", people, *options, "-o", "out")
    assert done.code == 0, done
    text = (tmp_path / "out" / "embedding.csv").read_text()
    assert run(mercer("pca", people, *options, "--show-code").out) == text
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("landmarks" if method == "nystroem" else "Random features") in page


@pytest.mark.parametrize(
    ("method", "target"),
    [
        *[("ridge", "price"), ("gp", "price"), ("svr", "price")],
        *[("logistic", "kind"), ("svc", "kind"), ("fisher", "kind")],
        *[("oneclass", None), ("kmeans", None)],
    ],
)
def test_fit_and_predict(mercer, people, tmp_path, method, target):
    options = ["--target", target] if target else []
    options += ["--ignore", ",".join({"price", "kind"} - {target})]
    done = mercer("fit", method, people, *TREATED, *options, "-o", "m.mercer")
    assert done.code == 0, done
    told = columns(mercer("predict", "m.mercer", people).out)
    model = load_trained("m.mercer")
    given = model.estimator.predict(model.recipe.transform(read_table(people)))
    assert told["prediction"] == [str(value) for value in given.tolist()]
    code = mercer("fit", method, people, *TREATED, *options, "-o", "n.mercer", "--show-code").out
    run(code)
    assert mercer("predict", "n.mercer", people).out == mercer("predict", "m.mercer", people).out
    code = mercer("predict", "m.mercer", people, "--show-code").out
    assert run(code) == mercer("predict", "m.mercer", people).out
    assert target is None or "score" in mercer("score", "m.mercer", people, "--json").out


def test_what_else_a_model_can_say(mercer, people):
    price = ("--ignore", "kind", "--target", "price")
    mercer("fit", "ridge", people, *TREATED, *price, "-o", "r.mercer")
    assert list(columns(mercer("predict", "r.mercer", people, "--std").out)) == [
        *["row", "prediction", "std"]
    ]
    mercer("fit", "logistic", people, *TREATED, "--ignore", "price", "--target", "kind",
           "-o", "l.mercer")  # fmt: skip
    told = columns(mercer("predict", "l.mercer", people, "--proba").out)
    assert list(told)[-2:] == ["p(new)", "p(old)"]
    made = mercer("compress", "r.mercer", "-n", "20", "-o", "small.mercer", "--json")
    assert json.loads(made.out)["points"] == 20
    assert len(load_trained("small.mercer").estimator.X_fit_) == 20
    said = mercer("info", "small.mercer").out
    assert "KernelRidge" in said and "one-hot, 3 levels" in said and "mercer fit ridge" in said
    assert (
        "omit the options that set them" in mercer("score", "r.mercer", people, "--standardize").err
    )
    assert (
        "does not provide standard deviations" in mercer("predict", "l.mercer", people, "--std").err
    )
    assert (
        "has no method transform; try mercer predict" in mercer("transform", "r.mercer", people).err
    )
    mercer("pca", people, "--columns", "age,price", "--standardize", "-o", "out", "-q")
    clean = columns(mercer("denoise", "out/model.mercer", people).out)
    given = columns(people.read_text())
    gap = np.array(clean["age"], dtype=float) - np.array(given["age"], dtype=float)
    assert np.abs(gap).mean() < 5  # in years
    library.save(load_trained("r.mercer").estimator, "bare.mercer")
    assert (
        "without the preprocessing of its columns" in mercer("predict", "bare.mercer", people).err
    )
    assert "was not written by mercer.save" in mercer("info", people).err


def test_score_and_tune(mercer, people):
    options = (*TREATED, "--ignore", "kind", "--target", "price")
    done = json.loads(mercer("score", "ridge", people, *options, "--cv", "4", "--json").out)
    assert len(done["folds"]) == 4 and done["measure"] == "r2"
    assert done["mean"] == pytest.approx(np.mean(done["folds"]))
    found = json.loads(mercer("tune", "ridge", people, *options, "--json", "-o", "t.mercer").out)
    assert found["kernel"].startswith("RBF(length_scale=") and "alpha" in found
    assert repr(load_trained("t.mercer").estimator.kernel) == found["kernel"]
    better = mercer("score", "ridge", people, *options, "--kernel", found["kernel"],
                    "--set", f"alpha={found['alpha']}", "--json")  # fmt: skip
    assert json.loads(better.out)["mean"] > done["mean"]
    assert mercer("score", "kmeans", people, *options).code == 2


def test_tests(mercer, people, tmp_path):
    head, *rows = people.read_text().splitlines()
    for name, some in (("a.csv", rows[:40]), ("b.csv", rows[40:])):
        (tmp_path / name).write_text("\n".join([head, *some]))
    options = ("--columns", "age", "--permutations", "99")
    same = mercer("test", "two-sample", "a.csv", "b.csv", *options, "--json")
    assert json.loads(same.out)["pvalue"] > 0.02
    related = mercer("test", "independence", people, "--x", "age", "--y", "price",
                     "--permutations", "99")  # fmt: skip
    assert related.code == 0 and "The columns are dependent" in related.out
    assert "Did you mean 'two-sample'" in mercer("test", "twosample", "a.csv", "b.csv").err


def test_kernels_of_strings_and_graphs(mercer, tmp_path):
    fasta = "".join(
        f">s{i}\n{'ACGT' * (i + 1) if i % 2 else 'GGTTA' * (i + 1)}\n" for i in range(12)
    )
    (tmp_path / "a.fasta").write_text(fasta)
    done = mercer("pca", "a.fasta", "--kernel", "Normalized(Spectrum(2))", "-o", "out", "--color",
                  "name")  # fmt: skip
    assert done.code == 0 and re.search("sequence +texts +point of the kernel", done.err)
    bare = mercer("pca", "a.fasta", "--kernel", "Normalized(Spectrum(2))")  # as its help says
    assert bare.code == 0 and bare.out.startswith("row,component1"), bare
    asked = mercer("pca", "a.fasta", "--kernel", "Spectrum(1)", "--columns", "name")
    assert asked.code == 0 and re.search("name +texts", asked.err)
    told = mercer("transform", "out/model.mercer", "a.fasta").out
    assert len(told.splitlines()) == 13
    assert "Kernel PCA of 12 points" in mercer("info", "out/model.mercer").out
    plan = mercer("plan", "a.fasta", "--kernel", "Normalized(Spectrum(2))", "--json")
    assert json.loads(plan.out)["rows"] == 12
    assert "nothing to score" in mercer("score", "out/model.mercer", "a.fasta").err
    folder = tmp_path / "DS"
    folder.mkdir()
    (folder / "DS_A.txt").write_text("".join(f"{3 * i + 1}, {3 * i + 2}\n" for i in range(6)))
    (folder / "DS_graph_indicator.txt").write_text("".join(f"{i // 3 + 1}\n" for i in range(18)))
    (folder / "DS_graph_labels.txt").write_text("1\n-1\n" * 3)
    (folder / "DS_node_labels.txt").write_text("".join(f"{i % 5}\n" for i in range(18)))
    options = ("--kernel", "WeisfeilerLehman()", "--target", "label")
    assert mercer("fit", "svc", "DS", *options, "-o", "g.mercer").code == 0
    assert len(mercer("predict", "g.mercer", "DS").out.splitlines()) == 7
    assert mercer("pca", "DS", *options[:2], "-o", "g", "-q").code == 0
    assert "graphs cannot be written to a table" in mercer("denoise", "g/model.mercer", "DS").err
    copied = mercer("predict", "g.mercer", "DS", "--keep", "all")
    assert "not copied, because they cannot be written: graph\n" in copied.err
    assert copied.out.startswith("row,label,prediction\n")
    refused = mercer("predict", "g.mercer", "DS", "--keep", "graph")
    assert refused.code == 2
    assert "cannot be copied, because it contains graphs" in " ".join(refused.err.split())
    assert "contains graphs, but this kernel requires vectors" in mercer("pca", "DS").err


def test_check_kernels_and_plan(mercer, people):
    assert mercer("check", "RBF() + 2*Linear()").code == 0
    refuted = mercer("check", "Sigmoid()", "--json")
    assert refuted.code == 1 and json.loads(refuted.out)["status"] == "refuted"
    said = mercer("kernels").out
    assert (
        "RBF" in said
        and "exp(-|x - z|^2 / (2 length_scale^2))" in said
        and "WeisfeilerLehman" in said
    )
    assert "length_scale" in mercer("kernels", "RBF").out
    assert mercer("kernels", "rbf").out == mercer("kernels", "RBF").out
    assert mercer("kernels", "poly").out == mercer("kernels", "Polynomial").out
    assert "did you mean RBF" in mercer("kernels", "Gauss").err
    plan = mercer("plan", people, "--columns", "age", "--json")
    assert json.loads(plan.out)["rows"] == 80
    assert "nystroem" in mercer("plan", people, "--columns", "age").out


def test_mistakes_are_told_without_a_traceback(mercer, people):
    for arguments, code, words in [
        (("pcaa",), 2, "Did you mean 'pca'?"),
        (("pca", people, "--colr", "x"), 2, "--color"),
        (
            ("pca", people, "--ignore", "city,kind", "--strict"),
            1,
            "'height' has 1 missing value",
        ),
        (("pca", people, "--strict"), 1, "add: --onehot city,kind --impute mean"),
        (("pca", people, "--columns", "age", "--kernel", "RBFF()"), 1, "did you mean RBF?"),
        (("pca", "peple.csv"), 1, "did you mean people.csv?"),
        (("pca", people, "-k", "two"), 2, "neither a number of components nor a fraction"),
        (("pca", people, "-k", "0"), 2, "neither a number of components nor a fraction"),
        (("pca", people, "--delimiter", ";;"), 1, "is not one character"),
        (("score", "rigde", people), 2, "is neither a method (ridge, gp"),
        (("score", "ridge", people, "--target", "kind", "--columns", "age"), 1, "fit svc"),
        (("score", "svc", people, "--target", "price", "--columns", "age"), 1, "fit ridge"),
        (("pca", people, "--columns", "age", "--set", "tll=1"), 1, "did you mean 'tol'?"),
        (("fit", "svc", people, "--columns", "age"), 2, "Probably: --target kind"),
        (("pca", people, "--columns", "age", "--max-memory", "much"), 1, "a string like '2 GiB'"),
        (("pca", people, "--columns", "age", "--resume"), 0, ""),
        (
            ("pca", people, "--columns", "age", "--method", "nystroem", "--resume"),
            1,
            "--resume needs the output folder of the interrupted run (-o FOLDER)",
        ),
        (("pca", people, "--columns", "age", "--set", "tol"), 2, "'tol' is not of the form NAME"),
        (("tune", "kmeans", people, "--columns", "age"), 2, "does not predict a target"),
        (("compress", people, "-o", "x"), 2, "give either the number of points (-n) or --max-e"),
    ]:
        done = mercer(*arguments)
        assert done.code == code, done
        assert re.search(words if "*" in words else re.escape(words), done.err), done
        assert "Traceback" not in done.err


def test_what_cannot_be_written_is_told_before_the_work(mercer, people, monkeypatch):
    """Not after an hour's fit, and by the name of the folder that is not there."""
    fit = ("fit", "ridge", people, "--columns", "age", "--target", "price")
    for arguments in ((*fit, "-o", "no/m.mercer"), ("pca", people, "-o", "people.csv/out")):
        done = mercer(*arguments)
        assert done.code == 2 and "cannot be written: folder" in done.err, done
    assert mercer("pca", people, "--columns", "age", "-o", "new/folder", "-q").code == 0
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    done = mercer(*fit, "-o", "m.mercer")
    assert done.code == 2 and "'m.mercer' cannot be written" in done.err
    assert "is not writable" in done.err


def test_tables_as_json_lines(mercer, people):
    age = ("--columns", "age")
    rows = [json.loads(line) for line in mercer("pca", people, *age, "--json").out.splitlines()]
    assert len(rows) == 80 and list(rows[0]) == ["row", "component1", "component2"]
    mercer("fit", "svc", people, *age, "--target", "kind", "-o", "m.mercer")
    told = mercer("predict", "m.mercer", people, "--json").out
    rows = [json.loads(line) for line in told.splitlines()]
    assert {row["prediction"] for row in rows} == {"old", "new"}
    done = mercer("predict", "m.mercer", people, "--json", "-o", "p.csv")
    assert json.loads(done.out) == {"file": "p.csv", "rows": 80, "empty": 0}
    assert columns(Path("p.csv").read_text())["prediction"] == [row["prediction"] for row in rows]


def test_training_and_test_sets_in_one_file(mercer, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    np.savez(tmp_path / "a.npz", X_train=X[:20], y_train=y[:20], X_test=X[20:], y_test=y[20:])
    done = mercer("fit", "svc", "a.npz", "--arrays", "X=X_train,y=y_train", "--target", "y",
                  "-o", "m.mercer")  # fmt: skip
    assert done.code == 0, done
    told = columns(mercer("predict", "m.mercer", "a.npz", "--arrays", "X=X_test").out)
    assert len(told["prediction"]) == 10
    done = mercer("score", "m.mercer", "a.npz", "--arrays", "X=X_test,y=y_test")
    assert done.out.startswith("accuracy ") and float(done.out.split()[1]) >= 0.5, done


def test_rows_with_missing_values_have_an_empty_prediction(mercer, people, tmp_path):
    mercer("fit", "ridge", people, "--columns", "age,height", "--target", "price", "--impute",
           "drop", "-o", "m.mercer")  # fmt: skip
    done = mercer("predict", "m.mercer", people)
    assert len(done.out.splitlines()) == 81 and done.out.splitlines()[8] == "8,"
    assert "warning: 1 of 80 rows have missing values, so their results are empty" in done.err
    Path("new.csv").write_text("age;height\n1;2\n")
    assert "separated by a semicolon" in mercer("predict", "m.mercer", "new.csv").err


def test_independence_of_what_is_complete_on_both_sides(mercer, people):
    done = mercer("test", "independence", people, "--x", "age", "--y", "height", "--impute", "drop",
                  "--permutations", "19")  # fmt: skip
    assert done.code == 0 and "1 of 80 rows dropped" in done.err, done
    mixed = mercer("test", "independence", people, "--x", "age", "--y", "city", "--kernel-y",
                   "Spectrum(1)", "--permutations", "19")  # fmt: skip
    assert mixed.code == 0 and re.search("city +texts", mixed.err), mixed


def test_files_of_functions(mercer, tmp_path):
    """What mercer.save writes of an Expansion has no parameters, and no recipe."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    library.save(library.Expansion(library.kernels.RBF(), X, np.ones(20)), "f.mercer")
    done = mercer("info", "f.mercer")
    assert done.code == 0 and "20 points" in done.out and "no preprocessing" in done.out
    assert mercer("compress", "f.mercer", "-n", "5", "-o", "g.mercer").code == 0
    assert len(library.load("g.mercer").points) == 5


def test_points_that_are_the_same_have_no_components(mercer, tmp_path):
    Path("a.csv").write_text("x,y\n" + "1,2\n" * 4)
    for more in ((), ("-o", "out")):
        done = mercer("pca", "a.csv", *more)
        assert done.code == 1 and done.out == "" and "considers all points equal" in done.err


def test_colours_need_not_be_finite(mercer):
    Path("a.csv").write_text("x,y,t\n1,inf,a\n3,2.5,\n5,nan,b\n6,1,a\n")
    for name in ("y", "t"):
        done = mercer("pca", "a.csv", "--columns", "x", "--color", name, "-o", name)
        assert done.code == 0, done
    assert '"label":[null,2.5,null,1.0]' in Path("y/report.html").read_text()
    assert '"classes":["a","b","missing"]' in Path("t/report.html").read_text()


def test_the_standard_input_has_a_name(mercer, people, monkeypatch):
    def piped(*more):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(people.read_bytes())))
        return mercer("pca", "-", "--columns", "age", *more)

    assert piped("-o", "out", "-q").code == 0
    assert "<title>Kernel PCA of standard input</title>" in Path("out/report.html").read_text()
    code = piped("--show-code").out
    assert "Kernel PCA of standard input" in code and "open_table('-')" in code


def test_debug_shows_the_traceback(people, tmp_path):
    done = process("pca", people, "--strict", "--debug", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_what_does_not_converge_ends_with_3(mercer, people):
    options = ("--columns", "age,price", "--method", "krylov", "--set", "max_iter=1")
    done = mercer("pca", people, *options, "--set", "tol=1e-15")
    assert done.code in (0, 3) and ("converge" in done.err) == (done.code == 3)
    svc = mercer("fit", "svc", people, *TREATED, "--ignore", "price", "--target", "kind",
                 "--set", "max_iter=1")  # fmt: skip
    assert svc.code == 3 and "warning: " in svc.err


def test_standard_input_a_broken_pipe_and_no_colour(people, tmp_path):
    done = process("pca", "-", "--columns", "age", "-q", cwd=tmp_path, input=people.read_text())
    assert done.returncode == 0 and done.stdout.startswith("row,component1")
    mercer = f'{sys.executable} -c "from mercer.app.cli import main; main()"'
    command = f"{mercer} kernels | head -1; echo ${{PIPESTATUS[0]}}"
    piped = subprocess.run(
        ["bash", "-c", command], env={**ENVIRONMENT, "NO_COLOR": "1"}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert piped.stdout.splitlines()[-1] == "0" and "Traceback" not in piped.stderr
    assert "\x1b" not in piped.stdout + piped.stderr


def test_completion(tmp_path):
    code = "import sys; sys.argv = ['mercer']; from mercer.app.cli import main; main()"
    environment = {**ENVIRONMENT, "_MERCER_COMPLETE": "bash_complete", "COMP_WORDS": "mercer pc",
                   "COMP_CWORD": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, text=True, capture_output=True, check=False
    )
    assert "pca" in done.stdout, done.stderr


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    from mercer.app.cli._console import atomic_write

    place = tmp_path / "a.csv"
    place.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(place) as file:
        file.write("new")
        raise KeyboardInterrupt
    assert place.read_text() == "old" and os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.data
def test_a_file_that_nobody_here_wrote(mercer, tmp_path):
    """Boston housing, without a header: one command, and everything is there."""
    path = DATA / "regression" / "uci_datasets" / "housing.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    options = ("--standardize", "--color", "column14", "-k", "5")
    done = mercer("pca", path, *options, "-o", "out")
    assert done.code == 0 and "no header" in done.err
    model = load_trained("out/model.mercer")
    new = process("transform", "out/model.mercer", path, cwd=tmp_path)
    told = columns(new.stdout)
    here = model.estimator.transform(model.recipe.transform(read_table(path)))
    assert told["component1"] == [repr(value) for value in here[:, 0].tolist()]
    code = mercer("pca", path, *options, "--show-code").out
    assert python(code, tmp_path) == (tmp_path / "out" / "embedding.csv").read_text()


def test_plan_of_each_method(mercer, people):
    for method, target in (("svc", "kind"), ("ridge", "price"), ("gp", "price"), ("kmeans", None)):
        options = ["--columns", "age", *(["--target", target] if target else [])]
        printed = mercer("plan", method, people, *options)
        assert printed.code == 0 and "80 points" in printed.out
        assert sum(line.startswith(">") for line in printed.out.splitlines()) == 1
    found = mercer("plan", "svc", people, "--columns", "age", "--target", "kind", "--json")
    result = json.loads(found.out)
    assert result["chosen"] == "smo"
    assert [option["reason"] for option in result["options"]] == [
        *("fastest if many points are support vectors", "the kernel is not linear"),
        *("approximate", result["options"][3]["reason"]),
    ]
    assert "the time" in result["options"][3]["reason"]
    options = ("--columns", "age", "--target", "kind")
    assert json.loads(mercer("plan", "--json", "svc", people, *options).out)["chosen"] == "smo"
    assert "'foo' is not one of 'pca'" in mercer("plan", "foo", people).err
    small = mercer("plan", "pca", people, "--columns", "age", "--max-memory", "10 kB")
    assert "no exact method fits" in small.out
    failed = mercer(
        *("fit", "svc", people, "--columns", "age", "--target", "kind"), "--max-memory", "10 kB"
    )
    assert failed.code == 1 and "SVC of 80 points, 2 classes, budget 9.8 KiB" in failed.err


def test_compile_reports_its_progress(mercer, monkeypatch):
    def compile_loops(log):
        log(ProgressStep("1 of 4 fits", 1, 4))
        log("a message without a number")
        return CompileResult(3, 4, 0, 0.0, (), "cache", 1024)

    monkeypatch.setattr("mercer.compile.compile_loops", compile_loops)
    done = mercer("compile", "--json")
    assert json.loads(done.out) == {"loops": 3, "fresh": 0, "folder": "cache"}


def test_two_samples_with_different_columns(mercer, people):
    Path("b.csv").write_text("age,height\nold,170\nnew,180\n")
    done = mercer("test", "two-sample", people, "b.csv", "--columns", "age,height")
    assert done.code == 1
    assert "column 'age' contains numbers in" in done.err and "but text in b.csv" in done.err


def test_independence_of_categories(mercer, people):
    options = ("--x", "city", "--y", "kind", "--permutations", "19")
    one = mercer("test", "independence", people, *options, "--onehot", "all")
    some = mercer("test", "independence", people, *options, "--onehot", "city,kind")
    assert one.code == 0 and one.out == some.out


def test_marks_of_missing_values_of_a_recipe(mercer, tmp_path):
    """A recipe that was fitted in Python has marks; they are used for new files."""
    Path("a.csv").write_text("x,y\n1,2\n2,3\n3,5\n-9,4\n")
    recipe = Recipe(target="y", na=("-9",), impute="mean").fit("a.csv")
    model = library.KernelRidge().fit(recipe.transform("a.csv"), [2.0, 3, 5, 4])
    library.save(TableModel(model, recipe), "m.mercer")
    told = columns(mercer("predict", "m.mercer", "a.csv").out)
    assert [float(value) for value in told["prediction"]] == TableModel(model, recipe).predict(
        "a.csv"
    ).tolist()


def test_rows_that_all_have_missing_values(mercer):
    Path("a.csv").write_text("x,y\n1,\n2,\n,3\n,4\n")
    for impute in ("drop", "number=drop"):
        for method in ("dense", "nystroem"):
            done = mercer("pca", "a.csv", "--method", method, "--impute", impute)
            assert done.code == 1 and "every row has a missing value" in done.err, done
