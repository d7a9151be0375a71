"""The same seed gives bit-for-bit identical results for any number of BLAS threads."""

import os
import subprocess
import sys

SCRIPT = """
import hashlib
import numpy as np
from mercer import herd, hsic, independence_test, mmd, thin, two_sample_test
X, Y = np.random.default_rng(0).normal(size=(2, 400, 20))
found = [
    two_sample_test(X, Y, n_permutations=199).null,
    two_sample_test(X, Y, n_permutations=199, method="lowrank").null,
    two_sample_test(X, Y, method="linear").null,
    independence_test(X, Y, n_permutations=99, method="lowrank").null,
    herd(X, 50, refine=2).points,
    herd(X, 150, weights="optimal").weights,
    thin(X, 150, weights="optimal").weights,
    np.array([mmd(X, Y), hsic(X, Y)]),
]
print(*(hashlib.sha256(np.ascontiguousarray(part)).hexdigest()[:16] for part in found))
"""


def test_threads_do_not_change_a_bit():
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | dict.fromkeys(names, threads),
            stdout=subprocess.PIPE,
            text=True,
        )
        for threads in "12"
    ]
    one, two = (run.communicate()[0].split() for run in runs)
    assert len(one) == 8 and one == two
