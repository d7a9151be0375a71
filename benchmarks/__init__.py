"""mercer side by side with its peers: ratios within one run, after a check of accuracy.

A new suite is a file with a SUITE, and a line here; `pca` stands for all suites `pca-…`.
"""

from . import (
    clusters,
    compress,
    cost,
    features,
    fit,
    gp,
    gp_family,
    graphs,
    kv,
    logistic,
    means,
    neighbours,
    pca,
    predict,
    preimage,
    ridge,
    ridge_cv,
    ridge_data,
    sets,
    sparse,
    strings,
    svm,
)

SUITES = {
    "kv": kv.SUITE,
    "predict": predict.SUITE,
    "fit": fit.SUITE,
    "cost": cost.SUITE,
    "ridge-fit": ridge.SUITE,
    "ridge-cv": ridge_cv.SUITE,
    "ridge-landmarks": ridge_data.SUITE,
    **pca.SUITES,
    **means.SUITES,
    **preimage.SUITES,
    "sparse": sparse.SUITE,
    "gp": gp.SUITE,
    "gp-family": gp_family.SUITE,
    "logistic": logistic.SUITE,
    **svm.SUITES,
    **features.SUITES,
    "compress": compress.SUITE,
    "clusters": clusters.SUITE,
    "neighbours": neighbours.SUITE,
    "graphs": graphs.SUITE,
    "sets": sets.SUITE,
    **strings.SUITES,
}
