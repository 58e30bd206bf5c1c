"""Check that messages of every public function, method and estimator use the name of a column if it has one.

The functions come from `tests/support/border_table.py`, the data from `tests/support/degenerate.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from border_table import GROUPS, WEIGHT, Inputs, X, fits, methods, public_functions
from degenerate import FRAMES, named, option_sets
from sklearn.ensemble import IsolationForest
from sklearn.naive_bayes import GaussianNB

FUNCTIONS = list(public_functions())
#: Matches "column 2" without a name in brackets after it.
_POSITION = re.compile(r"\b(columns?|detectors?|variables?|features?) \[?\d+\b(?! \()")
#: Frames that are combined with every option, and that are fitted, in a fast run. Slow tests use all frames.
_USUAL = ("missing", "constant", "infinite", "rare")


def _with(make: Callable[[Any], Any], n: int | None = None) -> Inputs:
    return Inputs(make, lambda x: x[:n], lambda x: x[:n])


def _make_inputs(frame: str) -> Inputs:
    return _with(FRAMES[frame], 1 if frame == "one row" else None)


@contextlib.contextmanager
def _collected(texts: list[str], allowed: type[Warning] = UserWarning) -> Iterator[None]:
    """Append the messages of warnings and of an error in a `with` block to `texts`.

    A warning that is neither a `UserWarning` nor of the type `allowed` fails the test. Messages of the latter are not
    appended.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (TypeError, ValueError, KeyError) as error:
            texts.append(str(error))
    for warning in caught:
        assert issubclass(warning.category, UserWarning | allowed), warning.message
        if issubclass(warning.category, UserWarning):
            texts.append(str(warning.message))


def _check_messages(calls: Iterator[Callable[[], Any]], allowed: type[Warning] = UserWarning) -> None:
    texts: list[str] = []
    for call in calls:
        with _collected(texts, allowed):
            call()
    _check_texts(texts)


def _check_texts(texts: list[str]) -> None:
    for text in texts:
        if text.startswith("Input X contains"):
            continue  # a message of scikit-learn
        assert not _POSITION.search(text), text
        assert "\n" not in text, text
        assert len(text) < 600, text


def _calls(
    function: Callable[..., Any], make_arguments: Callable[[Inputs], dict[str, Any]], frames: Any, every_option: bool
) -> Iterator[Callable[[], Any]]:
    """Yield calls of a function for `_check_messages`.

    Parameters
    ----------
    function : callable
        The function.
    make_arguments : callable
        Returns the required arguments, made from an `Inputs`.
    frames : iterable of str
        Names of data frames in `FRAMES`. The first set of options, the default one, is combined with each of them.
    every_option : bool
        Whether the other sets of options are combined with all frames, or only with those in `_USUAL`.
    """
    for frame in frames:
        given = make_arguments(_make_inputs(frame))
        for k, options in enumerate(option_sets(function)):
            if k == 0 or every_option or frame in _USUAL:
                yield functools.partial(function, **{**given, **options})


SPEED = pytest.mark.parametrize("every_option", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "all"])


@SPEED
@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=[entry.name for entry in FUNCTIONS])
def test_functions_name_columns(k: int, every_option: bool) -> None:
    entry = FUNCTIONS[k]
    _check_messages(_calls(entry.function, entry.make_arguments, FRAMES, every_option))


@SPEED
def test_fits_of_groups_name_columns(every_option: bool) -> None:
    import powerkern as pk

    def fit_groups(**given: Any) -> Any:
        return pk.fit(groups=GROUPS[: len(given["X"])], **given)

    vars(fit_groups)["__signature__"] = inspect.signature(pk.fit)
    _check_messages(_calls(fit_groups, lambda d: {"X": d.argument("X", "fit")}, FRAMES, every_option))


@SPEED
@pytest.mark.parametrize("kind", fits())
def test_methods_name_columns(kind: str, every_option: bool) -> None:
    owner = kind.split(",")[0]
    usual = _with(named)
    for frame in (None, *(FRAMES if every_option else _USUAL)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = fits()[kind](usual if frame is None else _make_inputs(frame))
        except (TypeError, ValueError):
            continue  # tested above
        for name, required in methods(kind, result):

            def make_arguments(d: Inputs, name: str = name, required: tuple[str, ...] = required) -> dict[str, Any]:
                return {key: d.argument(key, f"{owner}.{name}") for key in required}

            method = getattr(result, name)
            if frame is None:
                _check_messages(_calls(method, make_arguments, FRAMES, every_option))
            else:
                given = make_arguments(usual)
                options = option_sets(method)
                _check_messages(functools.partial(method, **{**given, **each}) for each in options)


@pytest.mark.parametrize("kind", fits())
def test_methods_name_columns_of_arrays_as_the_fit_does(kind: str) -> None:
    owner = kind.split(",")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fits()[kind](_with(named))
    for name, required in methods(kind, result):
        method = getattr(result, name)
        options: list[dict[str, Any]] = [{}]
        options += [{"X": None}] if "X" in set(inspect.signature(method).parameters).difference(required) else []
        options += [{"out_of_range": "raise"}] if "out_of_range" in inspect.signature(method).parameters else []
        for frame in _USUAL:
            arrays = _with(lambda x, frame=frame: FRAMES[frame](x).to_numpy(float))
            given = {key: arrays.argument(key, f"{owner}.{name}") for key in required}
            for each in options:
                more = {key: arrays.argument("X", owner) if key == "X" else value for key, value in each.items()}
                _check_messages(iter([functools.partial(method, **{**given, **more})]))


def _limits() -> dict[str, dict[str, Any]]:
    return {"ymax": {"family": "box-cox", "ymax": 1e-300}, "bounds": {"bounds": ([0.0, 0.0, 2.0, 0.0], 1.0)}}


@pytest.mark.parametrize("limit", _limits())
@pytest.mark.parametrize("chunked", [False, True], ids=["fit", "fit_chunks"])
def test_limits_of_groups_name_the_column(limit: str, chunked: bool) -> None:
    import powerkern as pk

    frame = named(X).assign(site=np.where(GROUPS, "x", "y"))
    call, data = (pk.sketch.fit_chunks, [frame]) if chunked else (pk.fit, frame)
    fit = functools.partial(call, data, groups="site")
    text = (
        r"column 0 \('price'\), group '[xy]': no lambda"
        if limit == "ymax"
        else r"for column 2 \('rate'\), low is 2 and high 1"
    )
    with pytest.raises(ValueError, match=text):
        fit(**_limits()[limit])


def _estimator(name: str, **options: Any) -> Any:
    import powerkern.sklearn as estimators

    return getattr(estimators, name)(**options)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    **{
        f"LocationScaler, {method}": functools.partial(_estimator, "LocationScaler", method=method)
        for method in ("mean-sd", "median-mad", "huber", "median-qn")
    },
    **{
        f"PowerTransformer, {kind}": functools.partial(_estimator, "PowerTransformer", **options)
        for kind, options in {
            "maximum likelihood": {},
            "Box-Cox": {"method": "box-cox"},
            "robust": {"estimator": "robust"},
            "bounds": {"bounds": ([0.0, 0.0, 1.0, 0.0], 1.0)},
        }.items()
    },
    "WrappingTransformer": functools.partial(_estimator, "WrappingTransformer"),
    "WrappingTransformer, median-mad": functools.partial(_estimator, "WrappingTransformer", method="median-mad"),
    "DDC": functools.partial(_estimator, "DDC"),
    "UVImputer": functools.partial(_estimator, "UVImputer", random_state=0),
    "OutlierProbability": functools.partial(
        _estimator, "OutlierProbability", detector=IsolationForest(n_estimators=10, random_state=0)
    ),
    "PowerTransformedRegressor": functools.partial(_estimator, "PowerTransformedRegressor"),
    "SupervisedPowerTransformer": functools.partial(
        _estimator, "SupervisedPowerTransformer", estimator=GaussianNB(), cv=2, lmbdas=[0.0, 1.0], max_epochs=1
    ),
    "GroupedPowerTransformer": functools.partial(_estimator, "GroupedPowerTransformer"),
}


#: Estimators that fit a nested estimator.
_CONTAINING = ("OutlierProbability", "PowerTransformedRegressor", "SupervisedPowerTransformer")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_name_columns(name: str) -> None:
    usual = named(X)
    # the nested estimator of scikit-learn may overflow
    allowed = RuntimeWarning if name in _CONTAINING else UserWarning
    target = {"SupervisedPowerTransformer": GROUPS % 2, "PowerTransformedRegressor": WEIGHT + X[:, 0]}.get(name)

    def apply(fitted: Any, frame: Any) -> Iterator[Callable[[], Any]]:
        for method in ("transform", "inverse_transform", "predict", "predict_proba", "score_samples"):
            if hasattr(fitted, method):
                yield functools.partial(getattr(fitted, method), frame)

    def fit(frame: Any) -> Any:
        more = {"groups": GROUPS[: len(frame)]} if name == "GroupedPowerTransformer" else {}
        return ESTIMATORS[name]().fit(frame, None if target is None else target[: len(frame)], **more)

    texts: list[str] = []
    for label in FRAMES:
        fitted = None
        with _collected(texts, allowed):
            fitted = fit(FRAMES[label](X))
        if fitted is not None:
            _check_messages(apply(fitted, usual), allowed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit(usual)
    for label in FRAMES:
        _check_messages(apply(fitted, FRAMES[label](X)), allowed)
    _check_texts(texts)
