"""Everyday sizes: fits of 100 to 500 points, 2 to 50 classes, and the prediction of one row.

Here it is not the linear algebra that counts, but what a call costs before it begins.
"""

from __future__ import annotations

from ._models import MODELS, case, suite
from ._problems import family, title
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
LARGE = 10  # classes; one against the rest, a process each, takes the peer minutes beyond


def cases(quick: bool) -> list[Case]:
    found = []
    for model, rule in MODELS.items():
        for inputs in family(SETS[rule.learns], quick)[: 1 if quick else None]:
            if model == "GaussianProcessClassifier" and inputs.get("classes", 0) > LARGE:
                continue
            if model == "GaussianProcessClassifier" and inputs["name"] == "digits":
                inputs = inputs | {"n": 200}
            for job, verb in (("fit", "fit"), (1, rule.verb)):
                words = f"`{model}.{verb}`, " + ("100 to 500 points" if job == "fit" else "one row")
                name = f"{model}.{verb} {title(inputs)}"
                found.append(case(name, model, job, inputs, family=words))
    return found


SUITE = suite("fits of 100 to 500 points, predictions of one row", cases)
