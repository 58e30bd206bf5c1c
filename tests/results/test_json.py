"""Fits as JSON text: any fit is restored bit for bit, and a text that no fit could have produced is rejected."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fits import kernel_rows

import powerkern as pk
from powerkern import PowerFit
from powerkern.joint import JointFit, fit_joint
from powerkern.kernels.results import REF
from powerkern.regression import fit_regression

X = np.random.default_rng(3).lognormal(size=(40, 3))
X[:, 2] = 5.0  # not fitted
FITS = [("yeo-johnson", "mle"), ("box-cox", "mle"), ("best", "robust"), ("yeo-johnson", "robust")]
PROBES = np.array([-1e300, -3.0, -1e-9, 0.0, 1e-9, 0.7, 3.0, 1e300])[:, np.newaxis] * np.ones(3)


def text_of(family: str = "box-cox", estimator: str = "mle", standardize: bool = True) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pk.fit(X, family, estimator, standardize=standardize, column_names=list("abc")).to_json()


def changed(field: str, value: Any) -> str:
    """Return the JSON text of a fit, with `value` as `field` of its first column."""
    record = json.loads(text_of())
    record["columns"][field][0] = value
    return json.dumps(record)


def test_a_reference_that_rounding_moves_out_of_the_data_comes_back() -> None:
    record = json.loads(pk.fit(np.append(np.full(550, 2.0), 1000.0), "yeo-johnson", lmbda=-23.7).to_json())
    assert record["columns"]["ref"][0] == 2.0
    record["columns"]["ref"][0] = moved = np.nextafter(2.0, 0.0)
    assert kernel_rows(PowerFit.from_json(json.dumps(record), check=False))[0, REF] == moved


# --- figures that do not belong together --------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("lmbda", 10**400, "lmbda is not finite"),
        ("lmbda", -(10**400), "lmbda is not finite"),
        ("lmbda", True, "lmbda of column 0 is not a number"),
        ("lmbda", "0.5", "lmbda of column 0 is not a number"),
        ("lmbda", "nan", "lmbda of column 0 is not a number"),
        ("loc", None, "loc is not finite"),
        ("scale", "inf", "scale is not finite"),
        ("scale", -1.0, "scale is negative"),
        ("lmbda0", "-inf", "lmbda0 is not finite"),
        ("slope", 0.0, "slope is not positive"),
        ("slope", -1.0, "slope is not positive"),
        ("divisor", 2.0, "Box-Cox does not rescale the data"),
        ("center", 1e3, "x_min is not above -shift under Box-Cox"),
        ("ref", -1.0, "ref is not inside the data"),
        ("ref", 0.0, "ref is not inside the data"),
        ("ref", 1e300, "ref is neither inside the data nor the zero of psi"),
        ("x_min", 1e3, "x_min and x_max are not a range"),
        ("x_min", None, "x_min and x_max are not a range"),
        ("x_max", "inf", "x_min and x_max are not a range"),
        ("x_min", -1.0, "x_min is not above -shift under Box-Cox"),
        ("kept_low", 1e3, "kept_low and kept_high are not a range"),
        ("n_obs", -1.0, "n_obs is negative"),
        ("n_kept", 41.0, "n_kept is greater than n_obs"),
        ("n_eval", 1e300, "n_eval is not a number of evaluations"),
        ("status", 2.5, "status is unknown"),
        ("status", 99, "status is unknown"),
        ("status", 18, "a bracketed lambda has no lmbda_error"),
    ],
)
def test_numbers_that_no_fit_has_are_refused(field: str, value: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=rf"not a fit: the JSON text is damaged \(.*{complaint}"):
        PowerFit.from_json(changed(field, value), check=False)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"unit_weights": 1.0}, "unit_weights is not an array"),
        ({"unit_weights": []}, "unit_weights is not an array"),
        ({"unit_weights": [1.0, 0.0, 1.0]}, "unit_weights are not all positive"),
        ({"unit_weights": ["1", 1.0, 1.0]}, "unit_weights of column 0 is not a number"),
        ({"lmbda_error": 0.1}, "lmbda_error is not an array"),
        ({"lmbda_error": [0.1]}, "lmbda_error is not an array"),
        ({"lmbda_error": [0.1, -1.0, 0.0]}, "lmbda_error is negative"),
        ({"lmbda_error": [0.1, "1", 0.0]}, "lmbda_error of column 1 is not a number"),
        ({"vector": True}, "vector is not one of False"),
        ({"vector": 0}, "vector is not one of False"),
        ({"standardize": 1}, "standardize is not one of"),
        ({"estimator": ["mle"]}, "estimator is not an object"),
        ({"estimator": {"h": 0.9}}, "name is missing"),
        ({"estimator": {"name": ["mle"]}}, "name is not one of"),
        ({"estimator": {"name": "mle", "h": 0.9}}, "estimator 'mle' has no option 'h'"),
        ({"estimator": {"name": "mtl", "h": 0.1}}, r"h must be a number in \(0.5, 1\], got 0.1"),
        ({"estimator": {"name": "ppcc", "cutoff": "0.995"}}, "a quantile of the normal distribution, must be a number"),
        ({"estimator": {"name": "robust", "search_range": [{}, 2]}}, "search_range must be a number"),
        ({"family": "best"}, "families is not a list of 3"),
        ({"families": ["box-cox"] * 3}, "families are given, but"),
        ({"family": "best", "families": ["box-cox", "box-cox", ["box-cox"]]}, "families are not all one of"),
        ({"column_names": ["a", "b"]}, "3 names"),
        ({"column_names": "abc"}, "not a list of names"),
        ({"columns": {}}, "lmbda is missing"),
    ],
)
def test_descriptions_that_no_fit_has_are_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=rf"not a fit: the JSON text is damaged \(.*{complaint}"):
        PowerFit.from_json(json.dumps({**json.loads(text_of()), **changes}), check=False)


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("bounds", [2, 1], "bounds must be an interval, low <= high; for column 0, low is 2 and high 1"),
        ("limits", [2.0, 1.0], "limits must be .low, high. with low < high; for column 0 they are 2 and 1"),
        ("ymax", -1.0, "ymax must be positive, got -1.0"),
        ("on_failure", "x", "on_failure must be one of 'raise', 'passthrough', got 'x'"),
        ("lmbda", [1.0, 2.0], r"lmbda must be one number or one per column \(3\), got shape \(2,\)"),
    ],
)
def test_options_that_no_fit_has_are_refused(option: str, value: Any, complaint: str) -> None:
    text = json.loads(text_of())
    options = {**text["options"], option: value}
    with pytest.raises(ValueError, match=rf"not a fit: the JSON text is damaged \({complaint}"):
        PowerFit.from_json(json.dumps({**text, "options": options}), check=False)


@pytest.mark.parametrize("version", ["1", 1.5, 0, 2, None, [1]])
def test_unknown_versions_are_refused(version: Any) -> None:
    with pytest.raises(
        ValueError, match=r"a fit in version .*; this powerkern reads version 1: (update powerkern|write it again)"
    ):
        PowerFit.from_json(json.dumps({**json.loads(text_of()), "version": version}), check=False)


def test_a_record_without_columns_is_refused() -> None:
    record = json.loads(text_of())
    record.update(column_names=None, columns={name: [] for name in record["columns"]})
    with pytest.raises(ValueError, match="damaged"):
        PowerFit.from_json(json.dumps(record), check=False)


def test_an_integer_longer_than_python_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="lmbda is not finite"):
        PowerFit.from_json(changed("lmbda", 12345.0).replace("12345.0", "9" * 10_000), check=False)


# --- mutations ----------------------------------------------------------------------------------------

NUMBERS = [0, -0.0, 1, -1, 0.5, 7, 1e308, -1e308, 1e-308, 5e-324, 1e154, 10**400, -(10**400), 2**63, 1e17, -700]
VALUES = [*NUMBERS, True, False, None, "inf", "-inf", "nan", "1_0", "", [], [1], {}, float("nan"), float("inf")]


def mutated(text: str, rng: random.Random) -> str:
    """Return the JSON text after changing a few characters, or replacing, dropping or duplicating 1 to 3 entries."""
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(["", "0", "9", "e", "-", ".", ",", '"', "null"]) + text[at + rng.randrange(3) :]
    record = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        table = record["columns"]
        name, place = rng.choice(list(table)), rng.random()
        column = table[name]
        if place < 0.8 and isinstance(column, list) and column:
            column[rng.randrange(len(column))] = rng.choice(VALUES)
        elif place < 0.85:
            table[name] = rng.choice([[], "123", None, [1.0] * 6, [1.0]])
        elif place < 0.9 and len(table) > 1:
            del table[name]
        else:
            record[rng.choice([key for key in record if key != "columns"])] = rng.choice(VALUES)
    return json.dumps(record)


def outcome(call: Callable[[Any], Any], argument: Any) -> Any:
    """Return the result of ``call(argument)``, or the message of its ValueError."""
    try:
        return call(argument)
    except ValueError as error:
        return str(error)


def check_that_it_can_be_used(fit: PowerFit) -> None:
    """Check a fit that was read from text: it is written unchanged, and methods return numbers or documented errors."""
    assert kernel_rows(PowerFit.from_json(fit.to_json())).tobytes() == kernel_rows(fit).tobytes()
    assert len(fit.status_text) == len(fit.families) == len(fit.n_iter) == fit.n_features
    for apply, values in ((fit.transform, X), (fit.transform, PROBES), (fit.inverse_transform, PROBES)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some values in .* are beyond the range", UserWarning)
            warnings.filterwarnings("ignore", "column .* the transform is so flat there", UserWarning)
            out = outcome(apply, values)
        assert (
            any(words in out for words in ("strictly positive", "not above -shift"))
            if isinstance(out, str)
            else out.shape == values.shape
        )
    ends = np.sort(X, axis=0)[[0, -1]]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # altered fits may overflow
        low, high = fit.transform(ends, out_of_range="nan")
    assert not (low > high).any(), "a fit increases"


@pytest.mark.slow
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("standardize", [True, False])
def test_mutated_texts_are_refused_or_usable(fit: tuple[str, str], standardize: bool) -> None:
    """Some hundred changed texts of each fit either raise the documented error or give a usable fit.

    More than ten thousand texts have been tried in a longer run.
    """
    text = text_of(*fit, standardize)
    rng = random.Random(f"{fit} {standardize}")
    accepted = 0
    for _ in range(150):
        read = outcome(lambda damaged: PowerFit.from_json(damaged, check=False), mutated(text, rng))
        if isinstance(read, str):
            assert read.startswith(("not a fit: ", "a fit in version "))
            continue
        accepted += 1
        check_that_it_can_be_used(read)
    assert 5 < accepted < 100


# --- changed texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PowerFit", "RegressionFit", "JointFit"])
def test_a_changed_character_is_detected(kind: str) -> None:
    """JSON text with one changed character is refused, unless only layout or the spelling of a number differs."""
    fit = {
        "PowerFit": lambda: pk.fit(X[:, :2], "best", "robust", column_names=["a", "b"]),
        "RegressionFit": lambda: fit_regression(X[:, 0], X[:, 1]),
        "JointFit": lambda: fit_joint(X[:, :2], family="box-cox"),
    }[kind]()
    text, rng, accepted = fit.to_json(), random.Random(kind), 0
    for _ in range(1500):
        at = rng.randrange(len(text))
        damaged = text[:at] + rng.choice('0123456789abcdefxy"{}[],.:-+e ') + text[at + 1 :]
        read = outcome(type(fit).from_json, damaged)
        if not isinstance(read, str):
            assert read.to_json() == text
            accepted += damaged != text
    assert accepted < 30


def test_layout_and_number_format_do_not_matter() -> None:
    """Other programs may write 1 for 1.0."""
    text = text_of()
    record = json.loads(
        text, parse_float=lambda digits: int(float(digits)) if float(digits).is_integer() else float(digits)
    )
    assert PowerFit.from_json(json.dumps(record, indent=4, sort_keys=True)).to_json() == text


def test_edited_text_is_read_without_the_check() -> None:
    text = changed("lmbda", 0.5)
    with pytest.raises(ValueError, match=r"was changed after it was written .*from_json\(text, check=False\)"):
        PowerFit.from_json(text)
    assert PowerFit.from_json(text, check=False).lmbda[0] == 0.5
    without = {name: value for name, value in json.loads(text_of()).items() if name != "digest"}
    with pytest.raises(ValueError, match="was changed"):
        PowerFit.from_json(json.dumps(without))


def test_estimators_are_restored() -> None:
    estimator = pk.AdaptiveRewML(search_range=(-3.0, 5.5), n_reweight=3, cutoff=0.75)
    fit = pk.fit(X[:, :2], "box-cox", estimator)
    assert PowerFit.from_json(fit.to_json()).estimator == fit.estimator == estimator


# --- every fit comes back -----------------------------------------------------------------------------

ESTIMATORS = [
    *("mle", "central-mle", "rewml", "rewml-nr", "carroll", "mtl", "ppcc", pk.ML(prestandardize="mad")),
    *(make(prestandardize="none") for make in (pk.RewML, pk.RewMLNR, pk.Carroll, pk.MTL)),
]
OPTIONS: list[dict[str, Any]] = [{}, {"bounds": (-1.0, 1.0)}, {"standardize": False}, {"shift": 1.5}, {"lmbda": 0.5}]
OPTIONS += [{"ymax": 100.0}, {"origin": "fit"}]
COLUMNS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "above 1": lambda rng: 2.0 + rng.random(30),
    "below 1": lambda rng: 0.1 + 0.5 * rng.random(30),
    "around 1": lambda rng: rng.lognormal(size=30),
    "tiny": lambda rng: 1e-30 * (1.0 + rng.random(30)),
    "huge": lambda rng: 1e200 * rng.lognormal(size=30),
    "years": lambda rng: 2000.0 + rng.integers(0, 20, 30),
    "ties": lambda rng: rng.integers(0, 3, 30).astype(float),
    "negative": lambda rng: -5.0 - rng.lognormal(size=30),
    "both signs": lambda rng: rng.normal(size=30),
    "missing": lambda rng: np.where(rng.random(30) < 0.3, np.nan, rng.lognormal(size=30)),
    "constant": lambda rng: np.full(30, 3.0),
    "two": lambda rng: np.array([2.0, 3.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_any_fit_can_be_restored(estimator: Any) -> None:
    """A fit by any estimator, with any family, valid options and data, is restored from its JSON text."""
    n_fitted, rng = 0, np.random.default_rng(7)
    for family, options, make in itertools.product(("box-cox", "yeo-johnson", "best"), OPTIONS, COLUMNS.values()):
        x, weight = make(rng), None
        if rng.random() < 0.3:
            weight = rng.uniform(0.1, 2.0, size=x.size)
        fit = None
        with warnings.catch_warnings(), contextlib.suppress(ValueError):  # incompatible options
            warnings.simplefilter("ignore")
            fit = pk.fit(x, family, estimator, sample_weight=weight, **options)
        if fit is not None:
            again = PowerFit.from_json(fit.to_json())
            np.testing.assert_array_equal(kernel_rows(again), kernel_rows(fit))
            assert again.to_json() == fit.to_json()
            n_fitted += 1
    assert n_fitted > 20


def test_a_joint_fit_has_finite_figures() -> None:
    record = json.loads(fit_joint(X[:, :2], family="box-cox").to_json())
    for name in ("llf", "coef", "cov"):
        value = np.full(np.shape(record[name]), None).tolist()
        with pytest.raises(ValueError, match=f"{name} is not finite"):
            JointFit.from_json(json.dumps({**record, name: value}), check=False)


def test_save_names_the_file() -> None:
    fit = pk.fit(X[:, 0])
    with pytest.raises(TypeError, match=r"save was called without a path; pass the name of the file"):
        fit.save()
    with pytest.raises(TypeError, match=r"save was called with 5 as its path"):
        fit.save(5)  # type: ignore[arg-type]
