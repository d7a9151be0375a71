"""mercer side by side with its peers: ratios within one run, after a check of accuracy.

A new suite is a file with a SUITE, and a line here; `pca` stands for all suites `pca-…`.
"""

from . import compress, cost, fit, kv, means, pca, predict, preimage, sparse

SUITES = {
    "kv": kv.SUITE,
    "predict": predict.SUITE,
    "fit": fit.SUITE,
    "cost": cost.SUITE,
    **pca.SUITES,
    **means.SUITES,
    **preimage.SUITES,
    "sparse": sparse.SUITE,
    "compress": compress.SUITE,
}
