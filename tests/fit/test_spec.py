"""Arguments of a fit are checked before data are read, rejected with one message each, and stored with the fit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import powerkern as pk
from powerkern._estimators import spec as spec_module
from powerkern._estimators.spec import CONFLICTS, FitSpec
from powerkern.sketch import MapReduce, fit_chunks


class Untouchable:
    """Data that raise an error when they are read."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":  # read by isinstance
            return Untouchable
        raise AssertionError(f"the data were read: {name}")

    def __iter__(self) -> Any:
        raise AssertionError("the data were read")

    __len__ = __getitem__ = __array__ = __call__ = __iter__


BEST = {"family": "best"}
#: Arguments that hold data; the specification records only whether they are given.
MARKS = ("below", "above", "between")
#: For each row of the table of checks: arguments that it is the first to refuse, whether rows come in chunks, message.
REFUSED: list[tuple[dict[str, Any], bool, str]] = [
    ({"dropna": True}, False, "dropna, unknown and shrink work only with groups="),
    ({"unknown": "nan"}, False, "dropna, unknown and shrink work only with groups="),
    ({"shrink": True, "estimator": "rewml"}, False, "dropna, unknown and shrink work only with groups="),
    ({"criterion": "ppcc"}, False, "criterion works only with family='best', not with family='yeo-johnson'"),
    ({**BEST, "criterion": "central"}, True, "criterion='central' needs the rows in memory"),
    ({"lmbda": 0.5, "estimator": "mtl"}, False, "lmbda cannot be given with estimator='mtl'"),
    ({"lmbda": [0.5], **BEST}, False, "lmbda cannot be given with family='best'"),
    ({"ymax": 5.0, "estimator": pk.RewML()}, False, "ymax cannot be given with estimator='rewml'"),
    ({"shift": [0.0, 1.0]}, False, "shift works only with family='box-cox', not with family='yeo-johnson'"),
    ({"shift": 1, "family": "box-cox", "origin": "fit"}, False, "shift cannot be given with origin='fit'"),
    (
        {"origin": "fit", "estimator": "carroll"},
        False,
        r"origin='fit' works only with 'mle', .*'rewml-nr', not with .*'carroll'",
    ),
    ({"origin": "fit", "estimator": pk.ML(prestandardize="mad")}, False, "prestandardize has no effect"),
    ({"estimator": "central-mle"}, False, "estimator='central-mle' needs origin='fit'"),
    ({"bounds": (0, 1), "origin": "fit", "estimator": "central-mle"}, False, "bounds cannot be given with estimator="),
    ({"estimator": "ppcc"}, True, "estimator='ppcc' needs all values in order"),
    ({"estimator": pk.ML(prestandardize="std")}, True, r"ML\(prestandardize=...\) needs the rows in memory"),
    (
        {"below": [True], "estimator": "robust"},
        False,
        "between= work only with estimator='mle', not with Adap",
    ),
    ({"above": [True], **BEST}, False, "limits=, .*between= work only with one family, not with family='best'"),
    ({"between": ([0], [1]), "origin": "fit"}, False, "limits=, .*between= work only with a given origin"),
    (
        {"limits": (0, None), "shrink": True, "groups": "site"},
        False,
        "between= work only with separate lambdas",
    ),
    ({"limits": (0, None), "on_failure": "passthrough"}, False, "between= work only with on_failure='raise'"),
    ({"shrink": True, "groups": "site", "origin": "fit"}, False, "shrink=True works only for lambdas fitted by"),
]


@pytest.mark.parametrize("row", range(len(CONFLICTS)))
def test_every_row_of_the_table_is_refused_before_data_are_read(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, in_chunks, message = REFUSED[row]
    with pytest.raises(CONFLICTS[row].error, match=message):
        fit_chunks(MapReduce(Untouchable()), **arguments) if in_chunks else pk.fit(Untouchable(), **arguments)
    given = {name: value for name, value in arguments.items() if name not in ("groups", *MARKS)}
    given |= {"censored": True} if {"limits", *MARKS} & set(arguments) else {}
    monkeypatch.setattr(spec_module, "CONFLICTS", CONFLICTS[:row])
    FitSpec.checked(grouped="groups" in arguments, in_chunks=in_chunks, **given)  # no earlier row of the table applies


def test_the_table_has_a_case_for_every_row() -> None:
    assert len(REFUSED) == len(CONFLICTS)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"family": "box"}, ValueError, "family must be one of"),
        ({"estimator": "ml"}, ValueError, "estimator must be one of"),
        ({"estimator": pk.RewML}, TypeError, r"estimator is the class RewML; pass an object"),
        ({"standardize": 1}, TypeError, "standardize must be True or False"),
        ({"lmbda": "one"}, TypeError, "lmbda must be a real number"),
        ({"shift": "one", "family": "box-cox"}, TypeError, "shift must be a real number"),
        ({"origin": "median"}, ValueError, "origin must be one of"),
        ({"ymax": 0.0}, ValueError, "ymax must be positive"),
        ({"bounds": 2.0}, TypeError, "bounds must be a pair"),
        ({"criterion": "aic"}, ValueError, "criterion must be one of"),
        ({"groups": "site", "dropna": 1}, TypeError, "dropna must be True, False or None"),
        ({"groups": "site", "unknown": "skip"}, ValueError, "unknown must be one of"),
        ({"groups": "site", "shrink": 1}, TypeError, "shrink must be True or False"),
    ],
)
def test_every_argument_is_checked_before_data_are_read(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pk.fit(Untouchable(), **arguments)


def test_a_fit_keeps_its_options() -> None:
    X = np.random.default_rng(0).lognormal(size=(60, 3))
    fit = pk.fit(
        X, "box-cox", shift=[0.0, 1.0, 2.0], bounds=(None, [1.0, 0.5, 0.25]), lmbda=[np.nan, 1, np.nan], ymax=10
    )
    spec = fit._spec
    assert (spec.family, spec.lmbda[1], spec.shift, spec.ymax) == ("box-cox", 1.0, (0.0, 1.0, 2.0), 10.0)
    assert spec.bounds == (None, (1.0, 0.5, 0.25))
    assert fit[[2, 0]]._spec.shift == (2.0, 0.0)
    assert fit[[2, 0]]._spec.bounds == (None, (0.25, 1.0))
    for again in (pickle.loads(pickle.dumps(fit)), pk.PowerFit.from_json(fit.to_json())):
        assert repr(again._spec) == repr(spec)


def test_a_lambda_of_nan_is_no_request() -> None:
    x = np.random.default_rng(0).lognormal(size=60)
    assert pk.fit(x, lmbda=np.nan)._spec == pk.fit(x)._spec


def test_what_was_asked_is_shown_by_what_differs_from_the_defaults() -> None:
    assert repr(FitSpec()) == "FitSpec()"
    assert repr(FitSpec(standardize=False, ymax=2.0)) == "FitSpec(standardize=False, ymax=2.0)"


def test_fits_of_groups_keep_their_options() -> None:
    X, groups = np.random.default_rng(0).lognormal(size=(60, 2)), np.arange(60) % 3
    fit = pk.fit(X, "box-cox", groups=groups, shift=[0.5, 0.0], unknown="pooled", dropna=True)
    again = pk.GroupedFit.from_json(fit.to_json())
    assert (fit._spec.shift, fit._spec.unknown, fit._spec.dropna) == ((0.5, 0.0), "pooled", True)
    assert again._spec == fit._spec
    assert again[1]._spec == fit._spec
    for g in range(3):
        alone = pk.fit(X[groups == g], "box-cox", shift=[0.5, 0.0])
        np.testing.assert_array_equal(fit[g].lmbda, alone.lmbda)
