"""Call every public function and method with every container and order of labels, and with data that change later.

`tests/support/border_table.py` generates the table from signatures, so a new function is tested as soon as it is
public. The expected result is the result for ordinary arrays in the same order.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from border_table import (
    CENSORED,
    GROUPS,
    MODULES,
    OPTIONAL_DATA,
    OTHER_MODULES,
    WEIGHT,
    Entry,
    Inputs,
    N,
    X,
    call_method,
    fits,
    methods,
    methods_with_data,
    numbers,
    plain,
    public_functions,
    unknown_arguments,
)

NAMES = ["a", "b", "c", "d"]
#: Above 2**53, where adjacent integers are equal in float64.
BIG = 2**60
FUNCTIONS = list(public_functions())


def _columns(x: Any) -> list[str]:
    return NAMES[: x.shape[1]]


def _read_only(x: Any) -> Any:
    x = np.array(x)
    x.flags.writeable = False
    return x


def _backwards(x: Any) -> Any:
    """Return an equal array with negative strides."""
    return np.ascontiguousarray(x[::-1])[::-1]


def _interleaved(x: Any) -> Any:
    """Return an equal array whose elements are not adjacent in memory."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def _frame(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: pd.DataFrame(x, columns=_columns(x)).astype(dtype)


def _series(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: pd.Series(x).astype(dtype)


CONTAINERS = {
    "Fortran": Inputs(np.asfortranarray, np.asfortranarray, np.array),
    "read-only": Inputs(_read_only, _read_only, _read_only),
    "backwards": Inputs(_backwards, _backwards, _backwards),
    "interleaved": Inputs(_interleaved, _interleaved, _interleaved),
    "big-endian": Inputs(lambda x: x.astype(">f8"), lambda x: x.astype(">f8"), np.array),
    "longdouble": Inputs(lambda x: x.astype(np.longdouble), lambda x: x.astype(np.longdouble), np.array),
    "masked": Inputs(np.ma.array, np.ma.array, np.array),
    "lists": Inputs(lambda x: x.tolist(), lambda x: x.tolist(), lambda x: x.tolist()),
    "object": Inputs(lambda x: x.astype(object), lambda x: x.astype(object), lambda x: x.astype(object)),
    "pandas": Inputs(_frame(float), _series(float), pd.Series),
    "pandas, nullable": Inputs(_frame("Float64"), _series("Float64"), _series("Int64")),
    "pandas, Arrow": Inputs(_frame("double[pyarrow]"), _series("double[pyarrow]"), _series("int64[pyarrow]")),
    "pandas, object": Inputs(_frame(object), _series(object), _series(object)),
    "polars": Inputs(lambda x: pl.DataFrame(x, schema=_columns(x)), pl.Series, pl.Series),
}

#: Containers of a fast run; slow tests use all containers.
USUAL = {"Fortran", "read-only", "backwards", "object", "pandas, nullable", "polars"}
BY_CONTAINER = pytest.mark.parametrize(
    "container", [pytest.param(name, marks=[] if name in USUAL else [pytest.mark.slow]) for name in CONTAINERS]
)


def _check_equal(got: Any, expected: Any) -> None:
    got, expected = numbers(got), numbers(expected)
    assert len(got) >= 1
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@functools.cache
def _expected(k: int) -> Any:
    return FUNCTIONS[k].make(plain())


@functools.cache
def _result(kind: str) -> Any:
    return fits()[kind](plain())


def _check_one_sentence(error: Exception, pattern: str) -> None:
    text = str(error)
    assert re.search(pattern, text), text
    assert 10 < len(text) < 400, text
    assert "\n" not in text


def _check_refusal(error: Exception, container: str) -> None:
    """Check that a rejected container holds Python objects, and that the message says how to convert them.

    `container` is its key in `CONTAINERS`.
    """
    assert "object" in container, error
    _check_one_sentence(error, "real number|convert it")


@BY_CONTAINER
@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=[entry.name for entry in FUNCTIONS])
def test_a_function_returns_the_same_for_every_container(k: int, container: str) -> None:
    try:
        got = FUNCTIONS[k].make(CONTAINERS[container])
    except (TypeError, ValueError) as error:
        _check_refusal(error, container)
        return
    _check_equal(got, _expected(k))


METHODS = [(kind, name, required) for kind in fits() for name, required in methods(kind, _result(kind))]
WITH_DATA = [entry for entry in METHODS if set(entry[2]) & {"X", "Y", "Z", "M", "scores", "covariates", "rows"}]
OPTIONAL = [(kind, name, given) for kind in fits() for name, given in methods_with_data(kind, _result(kind))]


def _ids(entries: list[Any]) -> list[str]:
    return [f"{kind}.{name}" for kind, name, _ in entries]


@BY_CONTAINER
@pytest.mark.parametrize(("kind", "name", "required"), WITH_DATA + OPTIONAL, ids=_ids(WITH_DATA + OPTIONAL))
def test_a_method_returns_the_same_for_every_container(
    kind: str, name: str, required: tuple[str, ...], container: str
) -> None:
    expected = call_method(kind, _result(kind), name, required, plain())
    try:
        got = call_method(kind, _result(kind), name, required, CONTAINERS[container])
    except (TypeError, ValueError) as error:
        _check_refusal(error, container)
        return
    _check_equal(got, expected)


def _labelled(index: Any, order: Any) -> Inputs:
    """Return inputs whose labels must be aligned.

    Parameters
    ----------
    index : sequence of n labels
        Labels of the rows of data frames.
    order : sequence of n int
        Row order, as positions, in which vectors, masks of cells and ends of intervals are stored with their labels.
        Masks and ends also have their columns reversed.
    """

    def matrix(x: Any) -> Any:
        frame = pd.DataFrame(x, columns=_columns(x), index=index[: len(x)])
        return frame.iloc[order, ::-1] if _marks_cells(x) else frame

    def vector(x: Any) -> Any:
        if len(x) != len(index):
            return np.array(x)
        return pd.Series(np.asarray(x), index=index).iloc[order]

    return Inputs(matrix, vector, vector)


def _marks_cells(x: Any) -> bool:
    """Return whether the array x is a Boolean mask, or holds ends of intervals and so is NaN in all other cells."""
    return bool(x.dtype == bool or np.isnan(x).any())


#: Arguments with one value or one row of values per row of the data, to which others are aligned.
_ROWS = {"X", "Y", "chunk", "chunks", "covariates", "sample_weight", "weight", "groups", "below", "above", "between"}
ALIGNED = [entry for entry in FUNCTIONS if len(_ROWS.intersection(entry.arguments)) > 1]
INDEXES = {
    "text": pd.Index([f"row {i}" for i in range(N)]),
    "integers": pd.Index(np.random.default_rng(8).permutation(N)),
    "beyond 2**53": pd.Index(BIG + np.arange(N, dtype=np.uint64)),
    "dates": pd.date_range("2020-01-01", periods=N),
    "levels": pd.MultiIndex.from_product([range(N // 3), ["x", "y", "z"]]),
}
SHUFFLED = np.random.default_rng(9).permutation(N)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("entry", ALIGNED, ids=[entry.name for entry in ALIGNED])
def test_values_of_rows_are_aligned_by_label(entry: Entry, index: str) -> None:
    _check_equal(entry.make(_labelled(INDEXES[index], SHUFFLED)), entry.make(plain()))


@pytest.mark.parametrize("entry", ALIGNED, ids=[entry.name for entry in ALIGNED])
def test_rows_with_other_labels_are_refused_by_name(entry: Entry) -> None:
    inputs = _labelled(INDEXES["text"], np.arange(N))
    other = pd.Index([*INDEXES["text"][:-1], "stranger"])
    strange = Inputs(
        lambda x: pd.DataFrame(x, columns=_columns(x), index=other) if _marks_cells(x) else inputs.matrix(x),
        lambda x: pd.Series(np.asarray(x), index=other),
        lambda x: pd.Series(x, index=other),
    )
    if entry.arguments == ("Y", "covariates"):
        pytest.skip("both are frames")
    with pytest.raises((ValueError, KeyError), match=r"stranger|row 59"):
        entry.make(strange)


@pytest.mark.parametrize(("kind", "name", "given"), OPTIONAL, ids=_ids(OPTIONAL))
def test_values_of_rows_are_aligned_in_methods(kind: str, name: str, given: tuple[str, ...]) -> None:
    fit = fits()[kind](Inputs(lambda x: pd.DataFrame(x, columns=_columns(x)), np.array, np.array))
    labelled = _labelled(INDEXES["integers"], SHUFFLED)
    _check_equal(call_method(kind, fit, name, given, labelled), call_method(kind, fit, name, given, plain()))


@pytest.mark.parametrize("index", ["text", "beyond 2**53"])
def test_groups_and_weights_are_aligned_by_label(index: str) -> None:
    labelled = _labelled(INDEXES[index], SHUFFLED)
    _check_equal(fits()["GroupedFit"](labelled), fits()["GroupedFit"](plain()))


COLUMNS = {
    "text": pd.Index(["a", "b", "c", "d"]),
    "0 to p - 1": pd.RangeIndex(4),
    "integers": pd.Index([10, 20, 30, 40]),
    "beyond 2**53": pd.Index(BIG + np.arange(4)),
    "levels": pd.MultiIndex.from_tuples([("u", 1), ("u", 2), ("v", 1), ("v", 2)]),
    "dates": pd.date_range("2020-01-01", periods=4),
    "categories": pd.CategoricalIndex(["z", "y", "x", "w"]),
}
_BY_COLUMN = (
    *("PowerFit", "PowerFit, robust", "PowerFit, Box-Cox", "PowerFit, limits", "PowerFit, marks", "GroupedFit"),
    *("JointFit", "ScoreScaling", "Wrapped"),
)
REORDERED = [
    (*entry, columns)
    for entries, labels in ((WITH_DATA, COLUMNS), (OPTIONAL, ("text", "integers")))
    for entry in entries
    if entry[0] in _BY_COLUMN and set(entry[2]) & {"X", "scores", "Z"}
    for columns in labels
]


@pytest.mark.parametrize(
    ("kind", "name", "required", "columns"),
    REORDERED,
    ids=[f"{kind}.{name}-{columns}" for kind, name, _, columns in REORDERED],
)
def test_columns_are_found_by_label(kind: str, name: str, required: tuple[str, ...], columns: str) -> None:
    labels, order = COLUMNS[columns], [2, 0, 3, 1]
    there = Inputs(lambda x: pd.DataFrame(x, columns=labels[: x.shape[1]]), np.array, np.array)
    moved = Inputs(lambda x: pd.DataFrame(x, columns=labels[: x.shape[1]]).iloc[:, order], np.array, np.array)
    fit = fits()[kind](there)
    expected = call_method(kind, fit, name, required, there)
    got = call_method(kind, fit, name, required, moved)
    if isinstance(got, pd.DataFrame) and got.shape[1] == 4:
        assert set(got.columns) == set(labels)
        got, expected = got[list(labels)], expected[list(labels)]
    _check_equal(got, expected)


@pytest.mark.parametrize("columns", COLUMNS)
def test_results_are_found_by_the_labels_of_the_columns(columns: str) -> None:
    import powerkern as pk

    labels = COLUMNS[columns]
    frame = pd.DataFrame(X, columns=labels)
    fit, grouped = pk.fit(frame), pk.fit(frame, groups=GROUPS)
    assert fit.lambdas.index.equals(labels)
    for j, label in enumerate(labels):
        assert fit.lambdas[label] == fit.lmbda[j]
        assert fit[label].lmbda[0] == fit.lmbda[j]
    assert list(frame[fit.column_names].columns) == list(labels)
    assert not (frame * fit.lambdas).isna().any().any()
    assert list(grouped.lambdas.columns) == list(labels)


#: Changes of the data after a fit: one value, all values, or the order.
CHANGES = {
    "one value": lambda x: x.__setitem__((7, 1) if x.ndim == 2 else 7, 3.21),
    "all": lambda x: x.__imul__(2.5),
    "rows": lambda x: x.__setitem__(slice(None), x[::-1].copy()),
    "zero": lambda x: x.__setitem__(Ellipsis, 1.0),
}
LATER = [
    (*entry, change)
    for entry in METHODS
    if entry[0] not in ("RatingModel", "DDCFit", "WrappedPCA")
    for change in (CHANGES if entry[0] not in CENSORED else ("all",))
]


@pytest.mark.parametrize(
    ("kind", "name", "required", "change"), LATER, ids=[f"{kind}.{name}-{change}" for kind, name, _, change in LATER]
)
def test_a_result_is_that_of_the_data_that_were_fitted(
    kind: str, name: str, required: tuple[str, ...], change: str
) -> None:
    kept: list[Any] = []

    def remembered(x: Any) -> Any:
        kept.append(np.array(x))
        return kept[-1]

    fit = fits()[kind](Inputs(remembered, remembered, remembered))
    expected = call_method(kind, _result(kind), name, required, plain())
    for x in kept:
        CHANGES[change](x) if x.dtype == float else x.__setitem__(slice(None), x[::-1].copy())
    try:
        got = call_method(kind, fit, name, required, plain())
    except ValueError as error:
        _check_one_sentence(error, "changed")
        return
    _check_equal(got, expected)


@pytest.mark.parametrize("fitted_as", ["integer", "unsigned", "object"])
@pytest.mark.parametrize("asked_as", ["integer", "unsigned", "object"])
def test_identifiers_compare_exactly(fitted_as: str, asked_as: str) -> None:
    import powerkern as pk

    types: dict[str, Any] = {"integer": np.int64, "unsigned": np.uint64, "object": object}

    def ids(kind: str) -> Inputs:
        return Inputs(np.array, np.array, lambda x: np.array([BIG + int(i) for i in x], dtype=types[kind]))

    grouped = pk.fit(X, groups=ids(fitted_as).labels(GROUPS), sample_weight=WEIGHT)
    expected = pk.fit(X, groups=GROUPS, sample_weight=WEIGHT)
    _check_equal(grouped, expected)
    np.testing.assert_array_equal(grouped.transform(X, ids(asked_as).labels(GROUPS)), expected.transform(X, GROUPS))
    with pytest.raises((ValueError, KeyError), match=r"no such group|has no group"):
        grouped.transform(X[:1], ids(asked_as).labels([7]))
    users, items = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    seed = fits()["RatingModel"]  # its seed argument
    model = seed(ids(fitted_as))
    np.testing.assert_allclose(
        model.predict(ids(asked_as).labels(users), ids(asked_as).labels(items)),
        seed(plain()).predict(users, items),
    )


ESTIMATORS = [
    "PowerTransformer",
    "PowerTransformer, limits",
    "PowerTransformer, lmbda",
    "LocationScaler",
    "WrappingTransformer",
    "DDC",
    "UVImputer",
    "OutlierProbability",
    "PowerTransformedRegressor",
]


def _estimator(name: str) -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    import powerkern.sklearn as estimators

    given: dict[str, dict[str, Any]] = {
        "PowerTransformer, limits": {"method": "box-cox", "limits": ([0.5, 0.4, 0.3, 0.5], None)},
        "PowerTransformer, lmbda": {"lmbda": [0.5, 0.0, -0.5, 1.0]},
        "UVImputer": {"random_state": 0},
        "OutlierProbability": {"detector": LocalOutlierFactor(novelty=True)},
    }
    return getattr(estimators, name.split(",")[0])(**given.get(name, {}))


def _applied(name: str, inputs: Inputs) -> Any:
    x = inputs.matrix(np.where(np.arange(X.size).reshape(X.shape) % 17 == 5, np.nan, X) if name == "UVImputer" else X)
    model = _estimator(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if name == "PowerTransformedRegressor":
            y = inputs.vector(WEIGHT + X[:, 0])
            return model.fit(x, y).predict(x), model.score(x, y)
        model.fit(x)
        names = ("transform", "predict", "predict_proba")
        parts = [getattr(model, method)(x) for method in names if hasattr(model, method)]
        return [*parts, model.score(x)] if name == "UVImputer" else parts


@BY_CONTAINER
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_returns_the_same_for_every_container(name: str, container: str) -> None:
    _check_equal(_applied(name, CONTAINERS[container]), _applied(name, plain()))


def test_every_estimator_is_in_the_table_or_tested_elsewhere() -> None:
    import powerkern.sklearn as estimators

    elsewhere = {
        "GroupedPowerTransformer",
        "SupervisedPowerTransformer",
        "PowerTransformedClassifier",
    }
    assert set(estimators.__all__) == {*(name.split(",")[0] for name in ESTIMATORS), *elsewhere}


def test_every_public_module_is_in_the_table_or_tested_elsewhere() -> None:
    import powerkern as pk

    assert {f"powerkern.{name}" for name in pk._MODULES} == {
        *MODULES[1:],
        *(f"powerkern.{name}" for name in OTHER_MODULES),
    }


def test_every_optional_argument_is_given_or_known_to_hold_no_data() -> None:
    """A new argument of any public function needs an entry in `tests/support/border_table.py`."""
    unknown = [one for each in FUNCTIONS for one in unknown_arguments(each.name, each.function, each.arguments)]
    for kind, name, given in METHODS + OPTIONAL:
        owner = f"{kind.split(',')[0]}.{name}"
        more = () if (kind, name, given) in OPTIONAL else OPTIONAL_DATA
        unknown += unknown_arguments(owner, getattr(_result(kind), name), (*given, *more))
    assert unknown == []
