"""Messages, progress bars and exit codes, and the output of `mercer tune` and `mercer plan`."""

import io
import json
import shlex
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from shell import ENVIRONMENT
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer as library
from mercer._core import NotDifferentiableError
from mercer.app.cli._console import ProgressBar, Session
from mercer.app.cli._main import _fit_commands

METHODS = _fit_commands.METHODS
FEATURES = ("--columns", "age,height", "--impute", "mean", "--standardize")
TARGETS = {"numbers": ("--target", "price"), "labels": ("--target", "kind"), "": ()}


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True


def test_a_progress_bar_appears_only_after_a_while(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Session(quiet=False, as_json=False).progress("counting") as update:
        update(0.5)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(ProgressBar, "DELAY", 0.0)
    session = Session(quiet=False, as_json=False)
    with session.progress("counting") as update:
        time.sleep(0.3)
        update(0.5)
        session.note("a message")
        with session.progress("nested"):
            time.sleep(0.2)
    text = terminal.getvalue()
    assert "counting" in text and "a message" in text and "nested" not in text
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Session(quiet=True, as_json=False).progress("counting"):
        time.sleep(0.2)
    assert terminal.getvalue() == ""


def test_a_message_before_the_progress_bar_appears(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    session = Session(quiet=False, as_json=False)
    with session.progress("counting"):
        session.note("a message")
    assert terminal.getvalue() == "a message\n"


@pytest.mark.filterwarnings("default::FutureWarning")  # as outside of tests
def test_warnings_for_developers_are_not_printed(capsys):
    session = Session(quiet=False, as_json=False)
    with session.capture_warnings():
        warnings.warn("a later version", FutureWarning, stacklevel=1)
        warnings.warn("a problem", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: a problem\n"


def test_progress_of_reading_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr(ProgressBar, "DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())

    class Source:
        title, fraction_read = "a.csv", 0.4

    with Session(quiet=False, as_json=False).reading(Source()):
        time.sleep(0.3)
    assert "reading a.csv" in terminal.getvalue()


def test_an_error_ends_the_progress_bar(monkeypatch):
    monkeypatch.setattr(ProgressBar, "DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    session = Session(quiet=False, as_json=False)
    with pytest.raises(ValueError, match="bad"), session.progress("counting"):
        raise ValueError("bad")
    assert session._bar is None


def test_quiet_commands_print_only_results(mercer, people):
    data = (people, *FEATURES)
    with_output = [
        ("demo", "-o", "demo"),
        ("fit", "svc", *data, "--target", "kind", "-o", "m.mercer"),
        ("pca", *data, "-o", "out"),
        ("predict", "m.mercer", people, "-o", "p.csv"),
        ("explore", *data, "--export", "page.html"),
    ]
    for arguments in with_output:
        done = mercer(*arguments, "--quiet")
        assert done.code == 0 and done.out == done.err == "", (arguments, done)
    with_result = [
        ("fit", "svc", *data, "--target", "kind"),
        ("score", "svc", *data, "--target", "kind"),
        ("score", "m.mercer", people),
        ("tune", "ridge", *data, "--target", "price"),
        ("plan", "svc", *data, "--target", "kind"),
        ("predict", "m.mercer", people),
        ("info", "m.mercer"),
        ("check", "RBF()"),
        ("kernels",),
        ("test", "independence", people, "--x", "age", "--y", "price", "--permutations", "19"),
    ]
    for arguments in with_result:
        quiet, told = mercer(*arguments, "-q"), mercer(*arguments)
        assert quiet.code == 0 and quiet.err == "" and quiet.out, (arguments, quiet)
        if arguments[0] != "fit":  # its summary contains the time
            assert quiet.out == told.out


def test_tune_prints_a_command_for_the_shell(mercer, people):
    for method, target in (("ridge", "price"), ("svc", "kind"), ("gp", "price")):
        options = (*FEATURES, "--target", target, "--set", "max_memory=1e9", "--seed", "1")
        done = mercer("tune", method, people, *options, "-q", "-o", "tuned.mercer")
        assert done.code == 0 and len(done.out.splitlines()) == 1, done
        words = shlex.split(done.out)
        assert words[:4] == ["mercer", "fit", method, str(people)]
        assert "--objective" not in words and "max_memory=1e9" in words and "-q" not in words
        assert mercer(*words[1:], "-o", "again.mercer").code == 0
        predicted = [mercer("predict", f"{name}.mercer", people).out for name in ("tuned", "again")]
        values = [[row.split(",")[1] for row in text.splitlines()[1:]] for text in predicted]
        if target == "price":
            values = np.array(values, dtype=float)
            np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
        else:
            assert values[0] == values[1]
    again = mercer("tune", "ridge", people, *FEATURES, "--target", "price", "--json")
    assert json.loads(again.out)["command"].startswith("mercer fit ridge ")


def test_tune_prints_no_weights_of_terms(mercer, tmp_path):
    path = tmp_path / "reviews.csv"
    reviews = [f"{a} {b}" for a in ("good", "bad", "nice") for b in ("room", "food", "staff")]
    lines = (f"{review},{i % 5}" for i, review in enumerate(reviews * 3))
    path.write_text("review,stars\n" + "\n".join(lines) + "\n")
    for kernel in ("BagOfWords(sublinear_tf=True)", "2.0*BagOfWords()"):
        options = ("--target", "stars", "--kernel", kernel)
        done = mercer("tune", "ridge", path, *options, "-q", "-o", "tuned.mercer")
        assert done.code == 0 and "BagOfWords" in done.out and "room" not in done.out, done
        assert mercer(*shlex.split(done.out)[1:], "-q", "-o", "again.mercer").code == 0
        tuned, again = (library.load(tmp_path / f"{n}.mercer") for n in ("tuned", "again"))
        assert "'room': " in repr(tuned.estimator.kernel)
        np.testing.assert_allclose(again.predict(path), tuned.predict(path), rtol=1e-6)
    given = "BagOfWords(tfidf={'good': 1.0, 'room': 2.0})"
    done = mercer("tune", "ridge", path, "--target", "stars", "--kernel", given, "-q")
    assert "'room': 2.0" in " ".join(shlex.split(done.out)), done


def test_tune_of_a_pipeline_says_what_to_do():
    X = np.random.default_rng(0).normal(size=(20, 2))
    pipeline = make_pipeline(StandardScaler(), library.KernelRidge())
    with pytest.raises(TypeError, match=r"got a Pipeline; fit the other steps first: tune\(pipe"):
        library.tune(pipeline, X, X[:, 0])
    tuned = library.tune(pipeline[-1], pipeline[:-1].fit_transform(X), X[:, 0])
    assert tuned.estimator.alpha < 1


@pytest.mark.parametrize("method", ["pca", *METHODS])
def test_plan_of_every_method(mercer, people, method):
    target = () if method == "pca" else TARGETS[METHODS[method][1]]
    done = mercer("plan", method, people, *FEATURES, *target)
    assert done.code == 0 and "80 points" in done.out, done
    assert sum(line.startswith(">") for line in done.out.splitlines()) == 1
    found = json.loads(mercer("plan", method, people, *FEATURES, *target, "--json").out)
    assert found["rows"] == 80 and found["chosen"]


def test_exit_codes(mercer, people, tmp_path, monkeypatch):
    data = (people, *FEATURES, "--target", "kind")
    assert mercer("fit", "svc", *data).code == 0
    assert mercer("fit", "svc", "nothing.csv", "--target", "kind").code == 1
    assert mercer("fit", "svc", people, "--columns", "agee", "--target", "kind").code == 1
    assert mercer("fit", "svcc", *data).code == 2
    assert mercer("fit", "svc", *data, "--cv", "1").code == 2
    assert mercer("fit", "svc", *data, "--set", "max_iter=1").code == 3
    assert mercer("score", "svc", *data, "--set", "max_iter=1").code == 3

    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.SVC.fit", interrupt)
    done = mercer("fit", "svc", *data, "-o", "m.mercer")
    assert done.code == 130 and "interrupted" in done.err and not Path("m.mercer").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "a.csv"), "mercer: a.csv: Permission denied\n"),
        (NotDifferentiableError("no gradient"), "mercer: no gradient\n"),
        (
            RuntimeError("broken"),
            "mercer: RuntimeError: broken\n(use --debug to show the traceback)\n",
        ),
    ],
    ids=["file", "kernel", "unexpected"],
)
def test_messages_of_errors(mercer, people, monkeypatch, error, message):
    def fail(*args, **more):
        raise error

    monkeypatch.setattr("mercer.SVC.fit", fail)
    done = mercer("fit", "svc", people, *FEATURES, "--target", "kind", "-q")
    assert done.code == 1 and done.err == message


def test_a_closed_pipe_is_not_an_error(mercer, tmp_path):
    """`mercer ... | head` ends with 0, also if the output is larger than the pipe."""
    rows = "\n".join(f"{i % 97},{i % 89}" for i in range(20_000))
    (tmp_path / "a.csv").write_text(f"x,y\n{rows}\n")
    (tmp_path / "b.csv").write_text("x,y\n1,2\n3,5\n7,7\n")
    assert mercer("fit", "ridge", "b.csv", "--target", "y", "-o", "m.mercer").code == 0
    code = "from mercer.app.cli import main; main(['predict', 'm.mercer', 'a.csv'])"
    command = f'"{sys.executable}" -c "{code}" | head -2; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=ENVIRONMENT, text=True, capture_output=True
    )
    assert done.stdout.splitlines()[-1] == "0" and "Traceback" not in done.stderr, done
