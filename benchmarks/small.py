"""Everyday sizes: fits of 100 to 500 points, 2 to 50 classes, and predictions of one row.

At these sizes the overhead of a call matters more than the linear algebra.
"""

from __future__ import annotations

from ._models import MODELS, make_case, make_suite
from ._problems import describe, problem_family
from ._suite import Case

SETS = {
    "labels": (
        {"name": "iris", "n": 100},
        {"name": "digits", "n": 500},
        {"name": "shells", "n": 200, "d": 2, "classes": 2, "noise": 0.3},
        {"name": "breast_cancer", "n": 300},
        {"name": "blobs", "n": 500, "d": 10, "classes": 50},
        {"name": "line", "n": 300, "d": 15, "classes": 2, "noise": 0.3},
    ),
    "values": (
        {"name": "diabetes", "n": 200},
        {"name": "waves", "n": 100, "d": 2, "noise": 0.3},
        {"name": "friedman", "n": 500, "d": 5, "noise": 0.1},
        {"name": "process", "n": 300, "d": 3, "noise": 0.1},
        {"name": "concrete", "n": 400},
    ),
}
SETS["points"] = SETS["labels"]
MAX_GP_CLASSES = 10  # scikit-learn fits one GP per class, which takes minutes for more classes


def cases(quick: bool) -> list[Case]:
    result = []
    for model, spec in MODELS.items():
        for inputs in problem_family(SETS[spec.targets], quick)[: 1 if quick else None]:
            if model == "GaussianProcessClassifier" and inputs.get("classes", 0) > MAX_GP_CLASSES:
                continue
            if model == "GaussianProcessClassifier" and inputs["name"] == "digits":
                inputs = inputs | {"n": 200}
            for job, method in (("fit", "fit"), (1, spec.predict_method)):
                size = "100 to 500 points" if job == "fit" else "one row"
                name = f"{model}.{method} {describe(inputs)}"
                result.append(
                    make_case(name, model, job, inputs, family=f"`{model}.{method}`, {size}")
                )
    return result


SUITE = make_suite("fits of 100 to 500 points, predictions of one row", cases)
