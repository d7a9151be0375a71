"""mercer side by side with its peers: ratios within one run, after a check of accuracy.

A new suite is a file with a SUITE, and a line here; `pca` stands for all suites `pca-…`.
"""

from . import (
    clusters,
    compress,
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

QUOTED = ("kv", "predict", "ridge-fit", "pca-exact", "svm-fit", "means-tests", "gp-family", "gallery")
ACCURACY = (
    "sparse",
    "preimage-usps",
    "preimage-toy",
    "features-error",
)  # their times claim nothing
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
    **features.SUITES,
    "compress": compress.SUITE,
    "clusters": clusters.SUITE,
    "neighbours": neighbours.SUITE,
    "graphs": graphs.SUITE,
    "sets": sets.SUITE,
    **strings.SUITES,
    "guard": guard.SUITE,
}
