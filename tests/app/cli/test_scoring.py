"""Measures of --scoring, cross-validation on few rows, and the summary of `mercer fit`."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from mercer import load as load_trained
from mercer.app.cli._measures import CLASSIFICATION, REGRESSION, Predictions, parse_scoring
from mercer.tables import read_table

FEATURES = ("--columns", "age,height", "--impute", "mean", "--standardize")


def lines(text):
    """Return the `name value` lines of a result as a dict of floats."""
    return {name: float(value) for name, value, *_ in map(str.split, text.splitlines())}


class Fixed:
    """A fitted classifier with fixed probabilities."""

    def __init__(self, classes, p):
        self.classes_, self.p = np.array(classes), np.array(p)

    def predict(self, X):
        return self.classes_[self.p.argmax(axis=1)]

    def predict_proba(self, X):
        return self.p


@pytest.mark.parametrize("n_classes", [2, 3])
def test_measures_of_classification_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])[:n_classes]
    y, p = rng.choice(classes, 60), rng.dirichlet(np.ones(n_classes), 60)
    found = Predictions(Fixed(classes, p), np.zeros((60, 1)), y, classes)
    predicted = classes[p.argmax(axis=1)]
    average = {"average": "macro"} if n_classes > 2 else {"pos_label": "b"}
    expected = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "f1": metrics.f1_score(y, predicted, **average),
        "precision": metrics.precision_score(y, predicted, **average),
        "recall": metrics.recall_score(y, predicted, **average),
        "log_loss": metrics.log_loss(y, p, labels=classes),
        "f1_weighted": metrics.f1_score(y, predicted, average="weighted"),
        "recall_micro": metrics.recall_score(y, predicted, average="micro"),
    }
    if n_classes == 2:
        expected["roc_auc"] = metrics.roc_auc_score(y == "b", p[:, 1])
        expected["brier"] = metrics.brier_score_loss(y, p[:, 1], pos_label="b")
    else:
        expected["roc_auc"] = metrics.roc_auc_score(y, p, multi_class="ovr")
        indicators = (y[:, None] == classes).astype(float)
        expected["brier"] = np.square(p - indicators).sum(axis=1).mean()
    for name, value in expected.items():
        assert found.compute(name) == pytest.approx(value), name


def test_measures_of_regression_are_those_of_scikit_learn(mercer, people):
    mercer("fit", "ridge", people, *FEATURES, "--target", "price", "-o", "m.mercer")
    done = mercer("score", "m.mercer", people, "-q", "--scoring", ",".join(REGRESSION))
    assert done.err == ""
    found, trained = lines(done.out), load_trained("m.mercer")
    table = read_table(people)
    y, predicted = (
        table.columns["price"],
        trained.estimator.predict(trained.recipe.transform(table)),
    )
    scorers = {
        "r2": metrics.r2_score,
        "rmse": metrics.root_mean_squared_error,
        "mse": metrics.mean_squared_error,
        "mae": metrics.mean_absolute_error,
        "median_ae": metrics.median_absolute_error,
        "mape": metrics.mean_absolute_percentage_error,  # codespell:ignore mape
        "explained_variance": metrics.explained_variance_score,
    }
    assert list(found) == list(scorers)
    for name, scorer in scorers.items():
        assert found[name] == pytest.approx(scorer(y, predicted), rel=1e-5)


def test_names_of_scikit_learn_and_abbreviations(mercer):
    """Every scorer of scikit-learn for one of the measures has its name."""
    for known, labels in ((CLASSIFICATION, True), (REGRESSION, False)):
        for name, aliases in known.items():
            for alias in (name, *aliases, name.upper(), name.replace("_", "-")):
                assert parse_scoring([alias], labels=labels) == [name]
    names = metrics.get_scorer_names()
    for name in ("neg_root_mean_squared_error", "roc_auc_ovr", "neg_brier_score", "f1_macro"):
        assert name in names
    assert parse_scoring(["auc, acc", "f1", "roc_auc"], labels=True) == [
        "roc_auc",
        "accuracy",
        "f1",
    ]
    assert parse_scoring([], labels=True) == ["accuracy"]
    assert parse_scoring([], labels=False) == ["r2"]


def test_several_measures_of_a_method(mercer, people):
    options = (people, *FEATURES, "--target", "kind", "--cv", "3")
    done = mercer("score", "svc", *options, "--scoring", "accuracy,f1", "--scoring", "auc")
    assert [line.split()[0] for line in done.out.splitlines()] == ["accuracy", "f1", "roc_auc"]
    assert all(" ± " in line for line in done.out.splitlines())
    assert "The positive class of f1 is 'old'." in done.err and "accuracy of each fold" in done.err
    quiet = mercer("score", "svc", *options, "--scoring", "accuracy,f1,auc", "-q")
    assert quiet.err == "" and quiet.out == done.out
    found = json.loads(mercer("score", "svc", *options, "--scoring", "f1,bacc", "--json").out)
    assert found["measure"] == "f1" and list(found["scores"]) == ["f1", "balanced_accuracy"]
    assert found["mean"] == found["scores"]["f1"]["mean"] and len(found["folds"]) == 3
    several = mercer("score", "logistic", people, *FEATURES, "--target", "city", "--cv", "3",
                     "--scoring", "f1,auc,log_loss,brier")  # fmt: skip
    assert list(lines(several.out)) == ["f1_macro", "roc_auc_ovr", "log_loss", "brier"]
    assert "With 3 classes, f1 and roc_auc are means over the classes." in several.err
    svc = mercer("score", "svc", people, *FEATURES, "--target", "city", "--scoring", "auc", "-q")
    assert 0 < lines(svc.out)["roc_auc_ovr"] < 1  # decision values, one class versus the rest


def test_measures_that_do_not_apply(mercer, people):
    kind = (people, *FEATURES, "--target", "kind")
    for name, code, message in [
        ("accuracyy", 2, "did you mean 'accuracy'?"),
        ("rmse", 2, "is a measure of regression, but this model is for classification"),
        ("accuracy,,", 0, "accuracy of each fold"),
        ("brier", 1, "SVC does not compute; use another measure, such as roc_auc"),
    ]:
        done = mercer("score", "svc", *kind, "--scoring", name)
        assert done.code == code and message in done.err and "Traceback" not in done.err, done
    done = mercer("score", "kmeans", people, *FEATURES)
    assert done.code == 2 and "does not predict a target" in done.err
    assert "neither a method" in mercer("score", "scv", people).err


def test_classes_with_fewer_rows_than_folds(mercer, people):
    """A class with one row, only classes with one row, and a training set with one class."""

    def score(labels, *more):
        rows = "\n".join(f"{i},{(7 * i) % 11},{label}" for i, label in enumerate(labels))
        Path("a.csv").write_text(f"x,z,label\n{rows}\n")
        return mercer("score", "svc", "a.csv", "--target", "label", *more)

    rare = score(["a"] * 10 + ["b"] * 10 + ["c"], "--scoring", "accuracy,auc,f1")
    assert rare.code == 0 and "1 of 3 classes have fewer rows" in rare.err, rare
    assert "'c'" in rare.err and "nan" not in rare.out
    few = score(["a"] * 3 + ["b"] * 2)
    assert few.code == 0 and "No class has 5 rows; using 3 folds." in few.err, few
    single = score(["a", "b", "c", "d"])
    assert single.code == 0 and "not stratified" in single.err, single
    assert lines(single.out)["accuracy"] == 0
    one = score(["a"] * 6 + ["b"], "--scoring", "accuracy,auc")
    assert one.code == 0 and "In one fold, all training rows have the class 'a'" in one.err, one
    constant = score(["a"] * 6)
    assert constant.code == 1 and "at least two classes" in constant.err, constant


@pytest.mark.parametrize("rows", [2, 3, 4, 7])
def test_regression_on_few_rows(mercer, rows):
    Path("a.csv").write_text("x,y\n" + "".join(f"{i},{i * i + 100}\n" for i in range(rows)))
    done = mercer("score", "ridge", "a.csv", "--target", "y", "--scoring", "r2,rmse")
    assert done.code == 0 and f"{rows} rows are too few for 5 folds" in done.err, done
    assert done.out.startswith("r2 undefined\n") == (rows == 2)
    assert float(done.out.splitlines()[1].split()[1]) > 0


def test_one_row_is_not_enough(mercer):
    Path("a.csv").write_text("x,y\n1,2\n")
    done = mercer("score", "ridge", "a.csv", "--target", "y")
    assert done.code == 1 and "Traceback" not in done.err, done


def test_summary_of_a_fit(mercer, people):
    options = (people, *FEATURES, "--target", "kind", "--cv", "4", "--scoring", "accuracy,auc")
    done = mercer("fit", "svc", *options)
    assert done.code == 0 and "standardised" in done.err
    found = done.out.splitlines()
    assert found[0].startswith("SVC(RBF(length_scale=")
    assert found[1].split() == ["rows", "80"] and found[2].split() == ["features", "2"]
    assert "on the training rows, not an estimate for new rows" in found[3]
    assert "in cross-validation with 4 folds" in found[5]
    assert found[7].startswith("support vectors") and found[7].endswith("of 80 rows")
    assert found[8].startswith("time") and "solver" not in done.out
    scored = mercer("score", "svc", *options)
    assert all(value in done.out for value in scored.out.split() if value.startswith("0."))
    verbose = mercer("fit", "svc", *options, "-v").out
    assert "solver     BlockSMO" in verbose and "cache_hits nan" not in verbose
    saved = mercer("fit", "svc", *options, "-o", "m.mercer")
    assert saved.out == "" and "support vectors" in saved.err
    assert "nan" not in mercer("info", "m.mercer").out
    quiet = mercer("fit", "svc", *options, "-o", "m.mercer", "-q")
    assert quiet.out == quiet.err == ""
    values = json.loads(mercer("fit", "svc", *options, "--json").out)
    assert values["rows"] == 80 and values["features"] == 2 and values["support_vectors"] > 0
    assert list(values["training_scores"]) == list(values["cross_validation"])


def test_summaries_of_other_methods(mercer, people):
    assert "clusters" in mercer("fit", "kmeans", people, *FEATURES).out
    assert (
        "landmarks"
        not in mercer(
            "fit", "ridge", people, *FEATURES, "--target", "price", "--set", "solver=cholesky"
        ).out
    )
    assert "outliers" in mercer("fit", "oneclass", people, *FEATURES).out
    nystroem = ("--set", "solver=nystroem", "--set", "rank=20")
    ridge = mercer("fit", "ridge", people, *FEATURES, "--target", "price", *nystroem).out
    assert "landmarks  20\n" in ridge
    assert mercer("fit", "kmeans", people, *FEATURES, "--cv", "3").code == 2


def test_the_positive_class_is_named(mercer, people):
    options = (people, *FEATURES, "--target", "kind", "--scoring", "f1")
    note = "The positive class of f1 is 'old'."
    assert note in mercer("fit", "svc", *options, "-o", "m.mercer").err
    assert note in mercer("score", "m.mercer", people, "--scoring", "f1").err


def test_large_targets_need_no_option(mercer, people):
    """The intercept is part of ridge and svr, and gp centres the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 1e6 + 10 * X[:, 0] + rng.normal(size=60)
    rows = "\n".join(f"{a},{b},{c}" for a, b, c in zip(*X.T, y, strict=True))
    Path("a.csv").write_text(f"a,b,y\n{rows}\n")
    for method, more in (("ridge", ()), ("gp", ()), ("svr", ("--set", "C=100"))):
        options = ("a.csv", "--target", "y", *more)
        assert lines(mercer("score", method, *options, "-q").out)["r2"] > 0.85, method
        mercer("fit", method, *options, "-o", "m.mercer")
        assert lines(mercer("score", "m.mercer", "a.csv", "-q").out)["r2"] > 0.85
        told = mercer("predict", "m.mercer", "a.csv", "-q").out.splitlines()[1:]
        predicted = np.array([float(line.split(",")[1]) for line in told])
        assert np.abs(predicted - y).mean() < 5


def test_a_missing_or_needless_target(mercer, people):
    for method, likely in (("svc", "kind"), ("ridge", "price"), ("gp", "price")):
        for command in ("fit", "score", "tune", "plan"):
            done = mercer(command, method, people, *FEATURES)
            assert done.code == 2, done
            assert f"{method} predicts a column, so it needs --target NAME" in done.err
            assert "age (numbers), height (numbers), city (text), price (numbers)" in done.err
            assert f"Probably: --target {likely}" in done.err
    Path("days.csv").write_text("day,x\n2024-05-31,1\n2024-06-01,2\n2024-06-02,4\n")
    assert "Probably: --target x" in mercer("fit", "ridge", "days.csv").err
    for command in ("fit", "plan"):
        done = mercer(command, "kmeans", people, *FEATURES, "--target", "kind")
        assert done.code == 2 and "use --ignore kind" in done.err and "svc" in done.err, done


def test_a_target_whose_scale_does_not_suit_svr(mercer):
    """C and epsilon of an SVR are in the units of the target."""
    rows = [(i, (i % 7) ** 2) for i in range(30)]
    for factor, message in ((1000, "try --set C=1e+04"), (1e-4, "try --set epsilon=")):
        lines = [f"{x},{factor * y}" for x, y in rows]
        Path("a.csv").write_text("\n".join(["x,y", *lines]) + "\n")
        for command in ("fit", "score"):
            done = mercer(command, "svr", "a.csv", "--target", "y")
            assert done.code == 0 and message in done.err, done
    options = ("--set", "C=1", "--set", "epsilon=0.1")
    assert "may be poor" not in mercer("fit", "svr", "a.csv", "--target", "y", *options).err
    assert "may be poor" not in mercer("fit", "ridge", "a.csv", "--target", "y").err
