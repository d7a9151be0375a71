"""scikit-learn's own tests with mercer's classes.

They are the tests of the installed version.  The exceptions below are those of version 1.9; older
versions have other tests, and `test_estimator_checks` alone applies to them.
"""

import importlib.util
import sys

import numpy as np
import pytest
import sklearn
import sklearn.decomposition
import sklearn.decomposition.tests.test_kernel_pca as their_pca
import sklearn.gaussian_process
import sklearn.gaussian_process.tests.test_gpc as their_gpc
import sklearn.gaussian_process.tests.test_gpr as their_gpr
import sklearn.kernel_approximation
import sklearn.kernel_ridge
import sklearn.svm
import sklearn.svm.tests.test_svm as their_svm
import sklearn.tests.test_kernel_approximation as their_features
import sklearn.tests.test_kernel_ridge as their_ridge
from sklearn.utils.fixes import parse_version

import mercer

if parse_version(sklearn.__version__) < parse_version("1.9"):
    pytest.skip("scikit-learn has other tests before version 1.9", allow_module_level=True)


def _with_our_class(theirs, line, changed, name, *further):
    """Load a test file of scikit-learn in which imports are replaced by mercer's classes."""
    source = importlib.util.find_spec(theirs.__name__).origin
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for before, after in ((line, changed), *further):
        assert text.count(before) == 1
        text = text.replace(before, after)
    namespace = {"__name__": f"their_tests_of_our_{name}"}
    exec(compile(text, source, "exec"), namespace)
    assert namespace[name] is getattr(mercer, name)
    return {key: value for key, value in namespace.items() if key.startswith("test_")}


RIDGE = _with_our_class(
    their_ridge,
    "from sklearn.kernel_ridge import KernelRidge",
    "from mercer import KernelRidge",
    "KernelRidge",
)
PCA = _with_our_class(
    their_pca,
    "from sklearn.decomposition import PCA, KernelPCA",
    "from sklearn.decomposition import PCA\nfrom mercer import KernelPCA",
    "KernelPCA",
)
GPR = _with_our_class(
    their_gpr,
    "from sklearn.gaussian_process import GaussianProcessRegressor",
    "from mercer import GaussianProcessRegressor",
    "GaussianProcessRegressor",
)
GPC = _with_our_class(
    their_gpc,
    "from sklearn.gaussian_process import GaussianProcessClassifier",
    "from mercer import GaussianProcessClassifier",
    "GaussianProcessClassifier",
)
SVM = _with_our_class(
    their_svm,
    "from sklearn import base, datasets, linear_model, metrics, svm\n",
    """
from sklearn import base, datasets, linear_model, metrics
from sklearn.svm import LinearSVC, LinearSVR, _libsvm
import mercer, types
ours = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
svm = types.SimpleNamespace(LinearSVC=LinearSVC, LinearSVR=LinearSVR)
vars(svm).update({name: getattr(mercer, name) for name in ours})
""",
    "OneClassSVM",
    (
        """from sklearn.svm import (
    SVR,
    LinearSVC,
    LinearSVR,
    NuSVR,
    OneClassSVM,
    _libsvm,
)
""",
        "from mercer import SVR, NuSVR, OneClassSVM\n",
    ),
)
FEATURES = _with_our_class(
    their_features, "from sklearn.kernel_approximation import (", "from mercer import (", "Nystroem"
)
# pytest requires a list, but scikit-learn has a generator.
for _mark in FEATURES["test_nystroem_approximation_array_api"].pytestmark:
    if _mark.name == "parametrize":
        object.__setattr__(_mark, "args", (_mark.args[0], list(_mark.args[1])))
# These tests request more features than points.  "sigmoid" and "additive_chi2" are not Mercer
# kernels, for which mercer warns.
for _name in ("test_nystroem_approximation", "test_nystroem_approximation_array_api"):
    for _message in ("n_components > n_samples", ".*not positive semidefinite"):
        FEATURES[_name] = pytest.mark.filterwarnings(f"ignore:{_message}")(FEATURES[_name])
# Six points without noise: most kernels end at a bound, or where rounding stops the search.
# scikit-learn's own estimator warns there, too.
for _tests in (GPC, GPR):
    for _name, _test in _tests.items():
        for _message in ("The optimal value found for", "the optimisation of theta stopped"):
            _mark = pytest.mark.filterwarnings(f"ignore:{_message}")
            _tests[_name] = _test = _mark(_test)
    _tests["test_lml_gradient"] = pytest.mark.skip(
        reason="expected to fail in scikit-learn, too: differences of step 1e-9 are rounding"
    )(_tests["test_lml_gradient"])
# One test passes a matrix that is not symmetric, for which mercer warns.
PCA["test_kernel_pca_precomputed_non_symmetric"] = pytest.mark.filterwarnings(
    "ignore:the precomputed matrix is not symmetric"
)(PCA["test_kernel_pca_precomputed_non_symmetric"])
# Perceptrons with five iterations: scikit-learn warns in its own tests, too.
for _name in ("test_gridsearch_pipeline", "test_gridsearch_pipeline_precomputed"):
    PCA[_name] = pytest.mark.filterwarnings("ignore:Maximum number of iteration reached")(
        PCA[_name]
    )
PCA["test_nested_circles"] = pytest.mark.filterwarnings(
    "ignore:Maximum number of iteration reached"
)(PCA["test_nested_circles"])

_PROBABILITY = "`probability` is deprecated in scikit-learn, in favour of calibration"
_LINEAR = "tests only LinearSVC and LinearSVR, which are classes of scikit-learn"
_FUNCTION = "in mercer, k(x, z) does not depend on other points: "
_SKIPPED = {
    "test_probability": _PROBABILITY,
    "test_hasattr_predict_proba": _PROBABILITY,
    "test_probability_raises_futurewarning": _PROBABILITY,
    "test_svc_nusvc_probA_probB_deprecated": _PROBABILITY,
    "test_sparse_fit_support_vectors_empty": "coefficients are always dense in mercer",
    "test_svr_errors": _FUNCTION + "a function returning a 1 x 1 array is a constant",
    "test_custom_kernel_not_array_input": _FUNCTION
    + "scikit-learn's kernel is valid only for k(X, X)",
    **dict.fromkeys(
        (
            "test_linearsvr_fit_sampleweight",
            "test_linearsvc_parameters",
            "test_linearsvc",
            "test_linearsvc_crammer_singer",
            "test_linearsvc_fit_sampleweight",
            "test_crammer_singer_binary",
            "test_linearsvc_iris",
            "test_dense_liblinear_intercept_handling",
            "test_liblinear_set_coef",
            "test_linearsvc_verbose",
            "test_linear_svm_convergence_warnings",
            "test_lsvc_intercept_scaling_zero",
            "test_linearsvm_liblinear_sample_weight",
            "test_dual_auto",
            "test_dual_auto_edge_cases",
        ),
        _LINEAR,
    ),
}
for _name, _reason in _SKIPPED.items():
    SVM[_name] = pytest.mark.skip(reason=_reason)(SVM[_name])
# One iteration, on purpose: mercer warns, and scikit-learn's CI does not treat warnings as errors.
SVM["test_consistent_decision_function"] = pytest.mark.filterwarnings(
    "ignore:Solver terminated early"
)(SVM["test_consistent_decision_function"])
# Four overlapping classes: mercer warns if nu = 0.5 leaves no margin.
SVM["test_n_iter_libsvm"] = pytest.mark.filterwarnings("ignore:nu=0.5 leaves no margin")(
    SVM["test_n_iter_libsvm"]
)
# LinearSVR, which is compared with mercer's SVR.
for _name in ("test_svr", "test_linearsvr"):
    SVM[_name] = pytest.mark.filterwarnings("ignore:Liblinear failed")(SVM[_name])

# pytest collects them here, with their parameters and fixtures.
globals().update({f"test_their_ridge{name[4:]}": test for name, test in RIDGE.items()})
globals().update({f"test_their_pca{name[4:]}": test for name, test in PCA.items()})
globals().update({f"test_their_gpc{name[4:]}": test for name, test in GPC.items()})
globals().update({f"test_their_gpr{name[4:]}": test for name, test in GPR.items()})
globals().update({f"test_their_features{name[4:]}": test for name, test in FEATURES.items()})
globals().update({f"test_their_svm{name[4:]}": test for name, test in SVM.items()})


@pytest.fixture(params=[42, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 7))])
def global_random_seed(request):
    """scikit-learn's fixture of the same name, from its conftest: any seed must work.

    As in scikit-learn, the ordinary run has one seed.
    """
    return request.param


@pytest.fixture(params=["float32", "float64"])
def global_dtype(request):
    """Another fixture of scikit-learn."""
    return np.dtype(request.param)


@pytest.mark.parametrize(
    ("theirs", "ours", "least"),
    [
        (their_ridge, RIDGE, 7),
        (their_pca, PCA, 23),
        (their_gpc, GPC, 16),
        (their_gpr, GPR, 30),
        (their_svm, SVM, 56),
        (their_features, FEATURES, 24),
    ],
)
def test_their_files_are_all_there(theirs, ours, least):
    assert len(ours) >= least
    assert set(ours) == {name for name in vars(theirs) if name.startswith("test_")}


def test_their_classes_are_left_alone():
    assert sys.modules[their_ridge.__name__].KernelRidge is sklearn.kernel_ridge.KernelRidge
    assert sys.modules[their_pca.__name__].KernelPCA is sklearn.decomposition.KernelPCA
    theirs = sklearn.gaussian_process.GaussianProcessRegressor
    assert sys.modules[their_gpr.__name__].GaussianProcessRegressor is theirs
    assert sys.modules[their_svm.__name__].svm is sklearn.svm
    theirs = sklearn.kernel_approximation.Nystroem
    assert sys.modules[their_features.__name__].Nystroem is theirs
