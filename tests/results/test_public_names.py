"""`dir(fit)` lists exactly the documented public names."""

import re
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk
from powerkern.joint import fit_joint
from powerkern.regression import fit_regression
from powerkern.sketch import fit_chunks

TEMPLATE = Path(__file__).parents[2] / "docs" / "_templates" / "autosummary" / "powerfit.rst"
X = np.random.default_rng(0).lognormal(size=(40, 2))

STORED = {"save", "to_json", "from_json"}
#: Methods of each class, besides the attributes in its docstring.
METHODS = {
    "PowerFit": set(re.findall(r"auto(?:method|property):: PowerFit\.(\w+)", TEMPLATE.read_text(encoding="utf-8"))),
    "GroupedFit": STORED
    | {"transform", "inverse_transform", "inverse_mean", "summary", "to_frame", "without_data"}
    | {"get", "items", "keys", "values"},
    "RegressionFit": STORED
    | {"transform", "inverse_transform", "fitted_values", "residuals", "predict", "profile"}
    | {"confint", "standard_error", "lr_test", "rounded", "summary"},
    "XarrayFit": {"transform", "inverse_transform", "confint"},
    "JointFit": STORED
    | {"transform", "inverse_transform", "mahalanobis", "confint", "standard_error", "lr_test", "rounded", "summary"},
}
FITS = {
    "maximum likelihood": lambda: pk.fit(X),
    "robust": lambda: pk.fit(X, "best", "robust"),
    "with an origin": lambda: pk.fit(X, origin="fit"),
    "chunks": lambda: fit_chunks([X[:20], X[20:]]),
    "groups": lambda: pk.fit(X, groups=np.arange(40) % 2, unknown="pooled"),
    "regression": lambda: fit_regression(X, np.arange(40.0)),
    "joint": lambda: fit_joint(X),
    "xarray": lambda: xarray_fit(),
}


def xarray_fit():
    xr = pytest.importorskip("xarray")
    return pk.xarray.fit(xr.DataArray(X, dims=("t", "column")), dim="t")


def attributes_in(docstring):
    """Return the names in the section "Attributes" of a docstring."""
    section = re.search(r"Attributes\n\s+-+\n(.*?)(?:\n\s+[\w ]+\n\s+-{3,}|$)", docstring, re.DOTALL).group(1)
    indent = re.match(r" *", section).group()
    names = re.findall(rf"^{indent}(\w+(?:, \w+)*)(?: : .*)?$", section, re.MULTILINE)
    return {name for line in names for name in line.split(", ")}


@pytest.mark.parametrize("kind", FITS)
def test_dir_shows_what_is_documented_and_nothing_else(kind):
    fit = FITS[kind]()
    shown = {name for name in dir(fit) if not name.startswith("_")}
    documented = attributes_in(type(fit).__doc__) | METHODS[type(fit).__name__]
    assert shown == documented
    for name in METHODS[type(fit).__name__]:
        assert getattr(type(fit), name).__doc__, name


@pytest.mark.parametrize("kind", FITS)
def test_an_attribute_always_returns_the_same_array(kind):
    """No access creates a new view or copy."""
    fit = FITS[kind]()
    for name in attributes_in(type(fit).__doc__):
        value = getattr(fit, name, None)
        if isinstance(value, np.ndarray) and name != "lambdas":
            assert getattr(fit, name) is value, name
            assert not value.flags.writeable, name


def test_a_fit_of_groups_is_a_mapping():
    fit = FITS["groups"]()
    assert list(fit.keys()) == list(fit) == fit.groups == [0, 1]
    assert [one.lmbda.tolist() for one in fit.values()] == fit.lmbda.tolist()
    assert {label: one.lmbda.tolist() for label, one in fit.items()} == {
        0: fit[0].lmbda.tolist(),
        1: fit[1].lmbda.tolist(),
    }
    assert fit.get(7) is None
    assert 7 not in fit
    assert fit == fit
    assert fit != FITS["groups"]()
    assert len({fit, fit}) == 1
