"""scikit-learn pipelines that contain mercer estimators can be stored with skops."""

import numpy as np
import pytest
import skops.io
import zoo
from fitted import NEW, X, answers, fit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC


@pytest.mark.parametrize("model", zoo.ESTIMATORS[::3], ids=str)
def test_estimators(model):
    model = fit(model)
    answers(model)  # fills all caches
    content = skops.io.dumps(model)
    names = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith(("mercer.", "sklearn.", "numpy.")) for name in names)
    again = skops.io.loads(content, trusted=names)
    assert answers(again) == answers(model)


def test_pipelines():
    model = make_pipeline(StandardScaler(), SVC()).fit(X, np.arange(40) % 2)
    content = skops.io.dumps(model)
    names = skops.io.get_untrusted_types(data=content)
    again = skops.io.loads(content, trusted=names)
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again[-1].report_.status is model[-1].report_.status
    assert str(again[-1].report_) == str(model[-1].report_)
