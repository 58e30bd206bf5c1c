"""The estimators for scikit-learn: its own checks, and that they say what the functions say."""

from __future__ import annotations

import builtins
import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from powerkern.cellwise import ddc, wrap
from powerkern.sklearn import DDC, WrappingTransformer


def contaminated(seed=0, n=150, p=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, p))
    x[rng.random((n, p)) < 0.05] += 8.0
    x[:3] = 9.0 * rng.choice([-1.0, 1.0], (3, p))
    return x


@pytest.mark.parametrize(
    "estimator", [WrappingTransformer(), DDC(quantile=0.8, max_discrete=0)], ids=["WrappingTransformer", "DDC"]
)
@pytest.mark.filterwarnings("ignore:.*no positive, finite scale")
def test_scikit_learns_checks(estimator):
    check_estimator(estimator, on_skip=None)


def test_wrapper_is_wrap():
    x = contaminated()
    model = WrappingTransformer(b=1.3, c=4.5, method="median-mad", missing="center")
    expected = wrap(x, 1.3, 4.5, method="median-mad", missing="center")
    np.testing.assert_array_equal(model.fit_transform(x), expected.values)
    np.testing.assert_array_equal(model.transform(x), expected.values)
    np.testing.assert_array_equal(model.scale_, expected.scale)
    assert model.transform(x.astype(np.float32)).dtype == np.float32


def test_ddc_is_ddc():
    x = contaminated()
    x[5, 2] = np.nan
    x = np.column_stack([np.arange(150.0), x])
    model, fit = DDC(quantile=0.95).fit(x), ddc(x, quantile=0.95)
    np.testing.assert_array_equal(model.transform(x)[:, 1:], fit.imputed)
    np.testing.assert_array_equal(model.transform(x)[:, 0], x[:, 0])
    np.testing.assert_array_equal(model.predict(x), np.where(fit.flagged_rows, -1, 1))
    np.testing.assert_array_equal(model.decision_function(x) < 0.0, fit.flagged_rows)
    assert set(model.predict(x[:3])) == {-1}


def test_in_pipelines_and_frames():
    frame = pd.DataFrame(contaminated(), columns=list("abcde"))
    pipeline = make_pipeline(DDC().set_output(transform="pandas"), WrappingTransformer(), PCA(2))
    assert pipeline.fit_transform(frame).shape == (150, 2)
    assert list(pipeline[0].get_feature_names_out()) == list("abcde")
    again = pickle.loads(pickle.dumps(clone(pipeline).fit(frame)))
    np.testing.assert_array_equal(again.transform(frame), pipeline.transform(frame))


def test_without_scikit_learn(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "powerkern.sklearn")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"powerkern.sklearn needs scikit-learn: pip install"):
        importlib.import_module("powerkern.sklearn")
