"""Benchmarks that compare mercer with other libraries.

Times are compared as ratios within one run, and only after the results have passed an accuracy
check.  To add a suite, write a module that defines `SUITE` and register it in `SUITES` below.  On
the command line, `pca` selects all suites whose names start with `pca-`.
"""

from . import (
    accelerate,
    clusters,
    compress,
    core_set,
    cost,
    features,
    first,
    fit,
    gallery,
    gp,
    graphs,
    guard,
    kv,
    learning,
    logistic,
    means,
    neighbours,
    pca,
    preimage,
    ridge,
    ridge_cv,
    ridge_data,
    sets,
    small,
    sparse,
    strings,
    svm,
    tune,
)

# Suites whose summary table is shown in the README of the repository, with the families to show;
# () means all families of the suite.
README_SUITES: dict[str, tuple[str, ...]] = {
    "kv": (),
    "predict": (),
    "ridge-fit": (),
    "pca-exact": (),
    "svm-fit": (),
    "means-tests": (),
    "gp-family": (),
    "graphs": (),
    "gallery": (),
    "first": ("first fit of 300 points, including import and compilation",),
    "small": ("`SVC.fit`, 100 to 500 points", "`OneClassSVM.fit`, 100 to 500 points"),
}
# Suites that compare accuracy only; their times are not reported.
ACCURACY_SUITES = (
    "sparse",
    "preimage-usps",
    "preimage-toy",
    "features-error",
)
SUITES = {
    "small": small.SUITE,
    "gallery": gallery.SUITE,
    "first": first.SUITE,
    "kv": kv.SUITE,
    **fit.SUITES,
    "cost": cost.SUITE,
    "ridge-fit": ridge.SUITE,
    "ridge-cv": ridge_cv.SUITE,
    "ridge-landmarks": ridge_data.SUITE,
    **pca.SUITES,
    **means.SUITES,
    **preimage.SUITES,
    "sparse": sparse.SUITE,
    "tune": tune.SUITE,
    "learning": learning.SUITE,
    **gp.SUITES,
    "logistic": logistic.SUITE,
    **svm.SUITES,
    "core-set": core_set.SUITE,
    **features.SUITES,
    "accelerate": accelerate.SUITE,
    "compress": compress.SUITE,
    "clusters": clusters.SUITE,
    "neighbours": neighbours.SUITE,
    "graphs": graphs.SUITE,
    "sets": sets.SUITE,
    **strings.SUITES,
    "guard": guard.SUITE,
}
