"""The cellwise estimators: scikit-learn's own checks, and agreement with the functions of `powerkern.cellwise`."""

from __future__ import annotations

import builtins
import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from samples import factors_with_outlying_cells
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from powerkern.cellwise import ddc, wrap
from powerkern.sklearn import DDC, WrappingTransformer


@pytest.mark.parametrize(
    "estimator", [WrappingTransformer(), DDC(quantile=0.8, max_discrete=0)], ids=["WrappingTransformer", "DDC"]
)
@pytest.mark.filterwarnings("ignore:.*no positive, finite scale")
def test_scikit_learns_checks_pass(estimator):
    check_estimator(estimator, on_skip=None)


def test_wrapper_is_wrap():
    x = factors_with_outlying_cells(150, 5, missing=0.0)
    model = WrappingTransformer(b=1.3, c=4.5, method="median-mad", missing="center")
    expected = wrap(x, 1.3, 4.5, method="median-mad", missing="center")
    np.testing.assert_array_equal(model.fit_transform(x), expected.values)
    np.testing.assert_array_equal(model.transform(x), expected.values)
    np.testing.assert_array_equal(model.scale_, expected.scale)
    assert model.transform(x.astype(np.float32)).dtype == np.float32


def test_ddc_is_ddc():
    x = factors_with_outlying_cells(150, 5, missing=0.0)
    x[5, 2] = np.nan
    x = np.column_stack([np.arange(150.0), x])
    model, fit = DDC(quantile=0.95).fit(x), ddc(x, quantile=0.95)
    np.testing.assert_array_equal(model.transform(x)[:, 1:], fit.imputed)
    np.testing.assert_array_equal(model.transform(x)[:, 0], x[:, 0])
    np.testing.assert_array_equal(model.predict(x), np.where(fit.flagged_rows, -1, 1))
    np.testing.assert_array_equal(model.decision_function(x) < 0.0, fit.flagged_rows)
    assert set(model.predict(x[:2])) == {-1}


def test_pipelines_keep_names_clone_and_pickle():
    frame = pd.DataFrame(factors_with_outlying_cells(150, 5, missing=0.0), columns=list("abcde"))
    pipeline = make_pipeline(DDC().set_output(transform="pandas"), WrappingTransformer(), PCA(2))
    assert pipeline.fit_transform(frame).shape == (150, 2)
    assert list(pipeline[0].get_feature_names_out()) == list("abcde")
    again = pickle.loads(pickle.dumps(clone(pipeline).fit(frame)))
    np.testing.assert_array_equal(again.transform(frame), pipeline.transform(frame))


def test_without_scikit_learn_the_import_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "powerkern.sklearn")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"powerkern.sklearn needs scikit-learn: pip install"):
        importlib.import_module("powerkern.sklearn")
