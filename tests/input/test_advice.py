"""Messages name the parameters of the function or class that was called."""

import functools
import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import powerkern as pk
from powerkern import sketch
from powerkern.cellwise import wrap
from powerkern.joint import fit_joint
from powerkern.location import location_scale
from powerkern.outliers import fit_scaling, mahalanobis
from powerkern.regression import fit_regression
from powerkern.sklearn import (
    DDC,
    GroupedPowerTransformer,
    LocationScaler,
    PowerTransformedRegressor,
    PowerTransformer,
    SupervisedPowerTransformer,
)

N = 30
NUMBERS = np.random.default_rng(0).lognormal(size=(N, 2))
LABELS = np.arange(N) % 2
GOOD = pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]})
NEGATIVE = GOOD.assign(b=-GOOD.b)
TEXT = GOOD.assign(b="x")
TIMES = GOOD.assign(b=pd.Timestamp("2024-01-01"))
CATEGORIES = GOOD.assign(b=pd.Categorical(["x"] * N))
FITTED = pk.fit(GOOD, "box-cox")
GROUPED = pk.fit(GOOD, "box-cox", groups=LABELS)

#: By function or class: a call with data that it refuses.
FITS = {
    pk.fit: lambda X: pk.fit(X, "box-cox"),
    sketch.fit_chunks: lambda X: sketch.fit_chunks([GOOD, X], "box-cox"),
    functools.wraps(sketch.fit_chunks)(functools.partial(sketch.fit_chunks, groups="g")): lambda X: sketch.fit_chunks(
        [X.assign(g=LABELS)], "box-cox", groups="g"
    ),
    sketch.extend: lambda X: sketch.extend(None, X, "box-cox"),
    fit_joint: lambda X: fit_joint(X, family="box-cox"),
    fit_regression: lambda X: fit_regression(X, NUMBERS, "box-cox"),
    PowerTransformer: lambda X: PowerTransformer(method="box-cox").fit(X),
    GroupedPowerTransformer: lambda X: GroupedPowerTransformer(method="box-cox").fit(X),
    PowerTransformedRegressor: lambda X: PowerTransformedRegressor(family="box-cox").fit(NUMBERS, X.to_numpy()[:, 1]),
}
APPLIED = {
    pk.PowerFit.transform: FITTED.transform,
    pk.GroupedFit.transform: lambda X: GROUPED.transform(X, LABELS),
    PowerTransformer.transform: PowerTransformer(method="box-cox").fit(GOOD).transform,
    PowerTransformer.partial_fit: PowerTransformer(method="box-cox").partial_fit(GOOD).partial_fit,
    GroupedPowerTransformer.transform: GroupedPowerTransformer(method="box-cox").fit(GOOD).transform,
}
OTHERS = {
    sketch.location_chunks: lambda X: sketch.location_chunks([X]),
    location_scale: location_scale,
    mahalanobis: mahalanobis,
    fit_scaling: lambda X: fit_scaling(X.b),
    wrap: wrap,
    SupervisedPowerTransformer: lambda X: SupervisedPowerTransformer(GaussianNB()).fit(X, LABELS),
    DDC: lambda X: DDC().fit(X),
    LocationScaler: lambda X: LocationScaler().fit(X),
}


def message(call, X):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(X)
    return str(caught.value)


def named_parameters(text):
    """Return the parameters that a message names, without quoted code and functions."""
    return set(re.findall(r"(?<![\w.(])(\w+)=(?!=)", text))


@pytest.mark.parametrize("callee", [*FITS, *APPLIED], ids=lambda f: f.__qualname__)
def test_advice_on_values_outside_the_domain_names_parameters(callee):
    text = message({**FITS, **APPLIED}[callee], NEGATIVE)
    assert "strictly positive" in text
    own = set(inspect.signature(callee).parameters)
    if "PowerTransformer." in callee.__qualname__:
        own |= {"method", "out_of_range", "infinite"}  # parameters of the constructor
    elif callee in APPLIED:
        own |= set(re.findall(r"\bfit with (\w+)=", text))
    assert named_parameters(text)
    assert named_parameters(text) <= own


@pytest.mark.parametrize("X", [TEXT, TIMES, CATEGORIES], ids=["text", "times", "categories"])
@pytest.mark.parametrize("callee", [*FITS, *APPLIED, *OTHERS], ids=lambda f: f.__qualname__)
def test_advice_on_columns_without_numbers_names_parameters(callee, X):
    text = message({**FITS, **APPLIED, **OTHERS}[callee], X)
    own = inspect.signature(callee).parameters
    assert ("non_numeric=" in text) == ("non_numeric" in own)
    assert "pk.fit(" not in text
    if callee in APPLIED:
        assert "leave it out" not in text or callee is PowerTransformer.partial_fit


def test_advice_on_shifts_names_method_or_family():
    with pytest.raises(ValueError, match="shift works only with method='box-cox', not with method='yeo-johnson'"):
        PowerTransformer(shift=1.0).fit(NUMBERS)
    with pytest.raises(ValueError, match="shift works only with family='box-cox'"):
        pk.fit(NUMBERS, shift=1.0)


def test_a_transformer_names_its_variables():
    with pytest.raises(ValueError, match=r"column 1 \('b'\).*or leave it out \(variables= names the columns"):
        PowerTransformer().fit(TEXT)
    assert PowerTransformer(variables=["a"]).fit(TEXT).lambdas_.shape == (2,)


def test_advice_on_text_columns_helps():
    assert pk.fit(TEXT, non_numeric="ignore").column_names == ["a"]
    assert sketch.fit_chunks([TEXT], non_numeric="ignore").column_names == ["a"]
