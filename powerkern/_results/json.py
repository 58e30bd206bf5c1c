"""Fits as JSON text: what `PowerFit.to_json` writes, and `PowerFit.from_json` reads.

A text may come from anywhere. Nothing is accepted that no fit can produce: the kernels rely on a positive
slope, a reference inside the data and finite constants, and return NaN or infinity without a word where they are not.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.estimators import ESTIMATORS, Estimator, options_of, with_options
from powerkern._results.json_records import written
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import FIELDS
from powerkern.kernels.transforms.family import FAMILIES

#: Version of the text that is written; every version up to it is read.
VERSION = 2
#: The family of a fit whose columns have families of their own.
BEST = "best"

_FORMAT = "powerkern.PowerFit"
#: Figures that are finite in every fit, even for a column that could not be fitted.
_FINITE = (
    *("lmbda", "loc", "scale", "log_factor", "ref", "slope", "intercept"),
    *("n_obs", "n_eval", "lmbda0", "n_kept", "center", "divisor"),
)
#: Names of figures that earlier releases wrote.
_RENAMED = {"centre": "center"}
#: What rounding may do to a reference that is rescaled as the data are.
_ROUNDING = 1e-9


class Record(NamedTuple):
    """A fit as `powerkern.PowerFit` takes it."""

    family: str
    #: (columns, figures)
    results: FloatArray
    estimator: Estimator
    #: Code of the transform of each column.
    families: NDArray[np.int64]
    standardize: bool
    column_names: list[str] | None
    was_vector: bool
    #: What counts as one value of each column, where weights are relative.
    unit_weights: FloatArray | None
    #: How far lambda may be from that of a fit in memory.
    lmbda_error: FloatArray | None


def write(fit: Record) -> str:
    """The text that `read` reads back bit for bit."""
    names = {code: name for name, code in FAMILIES.items()}
    head = {
        "format": _FORMAT,
        "version": VERSION,
        "family": fit.family,
        "estimator": {"name": fit.estimator.name, **options_of(fit.estimator)},
        "standardize": fit.standardize,
        "column_names": fit.column_names,
        "vector": fit.was_vector,
        "families": [names[code] for code in fit.families.tolist()] if fit.family == BEST else None,
        "unit_weights": None if fit.unit_weights is None else fit.unit_weights.tolist(),
        "lmbda_error": _errors_written(fit.lmbda_error),
    }
    table = {name: [written(v) for v in column] for name, column in zip(FIELDS, fit.results.T.tolist(), strict=True)}
    return json.dumps({**head, "columns": table}, allow_nan=False)


def _errors_written(error: FloatArray | None) -> list[float | str | None] | None:
    """None where there is nothing to say."""
    return None if error is None or (error == 0.0).all() else [written(value) for value in error.tolist()]


def read(text: str) -> Record:
    """Read what `write` wrote.

    Raises
    ------
    ValueError
        The text is not JSON, not a fit, of a later version, or its figures do not belong together.
    """
    record = _loaded(text)
    results = _results(record)
    n_features = len(results)
    fit = Record(
        family=_one_of(record, "family", (*FAMILIES, BEST)),
        results=results,
        estimator=_estimator(record),
        families=_families(record, n_features),
        standardize=_one_of(record, "standardize", (True, False)),
        column_names=_names(record, n_features),
        was_vector=_one_of(record, "vector", (True, False) if n_features == 1 else (False,)),
        unit_weights=_unit_weights(record, n_features),
        lmbda_error=_lmbda_error(record, n_features),
    )
    _check_figures(dict(zip(FIELDS, results.T, strict=True)), fit.families == FAMILIES["box-cox"])
    return fit


def _damaged(what: str) -> NoReturn:
    raise ValueError(f"not a fit: the JSON text is damaged ({what})")


# --- the text -----------------------------------------------------------------------------------------


def _loaded(text: str) -> dict[str, Any]:
    try:
        # every number is a float64: an integer beyond its range becomes infinite, and is refused as such
        record = json.loads(text, parse_int=float)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not a fit: the text is not JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError("not a fit: the JSON text was not written by PowerFit.to_json")
    version = record.get("version")
    if not isinstance(version, float) or version not in range(1, VERSION + 1):
        shown = int(version) if isinstance(version, float) and version.is_integer() else version
        raise ValueError(f"the fit has version {shown!r}, this powerkern reads versions 1 to {VERSION}")
    return record


def _entry(record: dict[str, Any], key: str) -> Any:
    if key not in record:
        _damaged(f"{key} is missing")
    return record[key]


def _one_of(record: dict[str, Any], key: str, known: tuple[Any, ...]) -> Any:
    value = _entry(record, key)
    if not any(type(value) is type(one) and value == one for one in known):
        _damaged(f"{key} is none of {', '.join(map(repr, known))}")
    return value


def _estimator(record: dict[str, Any]) -> Estimator:
    """The estimator from its name and options, whole numbers as such."""
    options = _entry(record, "estimator")
    if not isinstance(options, dict):
        _damaged("estimator is not a table")
    name = _one_of(options, "name", tuple(ESTIMATORS))
    try:
        return with_options(name, {key: _whole(value) for key, value in options.items() if key != "name"})
    except (TypeError, ValueError) as error:
        _damaged(str(error))


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _names(record: dict[str, Any], n_features: int) -> list[str] | None:
    names = _entry(record, "column_names")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        _damaged("column_names is not a list of names")
    if not len(set(names)) == len(names) == n_features:
        _damaged(f"column_names are not {n_features} different names")
    return names


def _unit_weights(record: dict[str, Any], n_features: int) -> FloatArray | None:
    """What counts as one value, which earlier releases did not write."""
    units = record.get("unit_weights")
    if units is None:
        return None
    if not isinstance(units, list) or len(units) != n_features:
        _damaged(f"unit_weights is not a list of {n_features} numbers")
    if not all(isinstance(unit, float) and 0.0 < unit <= 1.0 for unit in units):
        _damaged("unit_weights are not all positive and at most 1")
    return np.array(units)


def _lmbda_error(record: dict[str, Any], n_features: int) -> FloatArray | None:
    """Bounds of the error of lambda, which are written of robust fits from chunks only."""
    if record.get("lmbda_error") is None:
        return None
    error = np.array(_figures(record, "lmbda_error"))
    if error.size != n_features or (error < 0.0).any():
        _damaged(f"lmbda_error is not {n_features} numbers from 0 on")
    return error


def _families(record: dict[str, Any], n_features: int) -> NDArray[np.int64]:
    """The code of each column's transform; they are spelled out where the family is "best"."""
    family, families = _entry(record, "family"), record.get("families")
    if family != BEST:
        if families is not None:
            _damaged("families go with the family 'best' only")
        families = [_one_of(record, "family", tuple(FAMILIES))] * n_features
    if not isinstance(families, list) or len(families) != n_features:
        _damaged(f"families is not a list of {n_features} families")
    if not all(isinstance(name, str) and name in FAMILIES for name in families):
        _damaged(f"families are not all one of {', '.join(map(repr, FAMILIES))}")
    return np.array([FAMILIES[name] for name in families])


# --- the figures --------------------------------------------------------------------------------------


def _results(record: dict[str, Any]) -> FloatArray:
    """The figures, a row for each column of the data."""
    table = _entry(record, "columns")
    if not isinstance(table, dict):
        _damaged("columns is not a table")
    table = {_RENAMED.get(name, name): column for name, column in table.items()}
    if record["version"] == 1:
        table = _of_version_1(table)
    table.setdefault("route", [0.0] * len(_figures(table, FIELDS[0])))  # releases before 0.1.0 wrote none
    table.setdefault("objective", [None] * len(_figures(table, FIELDS[0])))
    columns = [_figures(table, name) for name in FIELDS]
    n_features = len(columns[0])
    for name, column in zip(FIELDS, columns, strict=True):
        if len(column) != n_features or not column:
            _damaged(f"{name} has {len(column)} figures, {FIELDS[0]} has {n_features}")
    return np.ascontiguousarray(np.array(columns).T)


def _of_version_1(table: dict[str, Any]) -> dict[str, Any]:
    """The table with what was not written before there were robust fits."""
    n_features = len(_figures(table, "lmbda"))
    kept = {"n_kept": table.get("n_obs"), "kept_low": table.get("x_min"), "kept_high": table.get("x_max")}
    added = {"lmbda0": table["lmbda"], **kept, "center": [0.0] * n_features, "divisor": [1.0] * n_features}
    return {**added, **table}


def _figures(table: dict[str, Any], name: str) -> list[float]:
    column = _entry(table, name)
    if not isinstance(column, list):
        _damaged(f"{name} is not a list of numbers")
    return [_figure(value, name, j) for j, value in enumerate(column)]


def _figure(value: Any, name: str, j: int) -> float:
    if value is None:
        return math.nan
    if isinstance(value, float) or value in ("inf", "-inf"):
        return float(value)
    return _damaged(f"{name} of column {j} is not a number")


def _check_figures(figures: dict[str, FloatArray], is_box_cox: NDArray[np.bool_]) -> None:
    """Refuse figures that do not belong together."""
    status = figures["status"]
    _require(np.isin(status, list(Status)), "status is unknown")
    _require(np.isin(figures["route"], list(Route)), "route is unknown")
    for name in _FINITE:
        _require(np.isfinite(figures[name]), f"{name} is not finite")
    fitted = ~np.isin(status, [code for code in Status if code.failed])
    for name in ("slope", "divisor"):
        _require(figures[name] > 0.0, f"{name} is not positive")
    for name in ("scale", "n_obs", "n_eval", "n_kept"):
        _require(figures[name] >= 0.0, f"{name} is negative")
    _require(figures["n_eval"] < 2.0**53, "n_eval is no number of evaluations")
    _require(figures["n_kept"] <= figures["n_obs"], "n_kept is greater than n_obs")
    has_values = status != Status.EMPTY
    x_min, x_max = figures["x_min"], figures["x_max"]
    _require((np.isfinite(x_min) & np.isfinite(x_max) & (x_min <= x_max)) | ~has_values, "x_min and x_max are no range")
    _require((figures["kept_low"] <= figures["kept_high"]) | ~has_values, "kept_low and kept_high are no range")
    logs = fitted & is_box_cox
    _require((x_min > figures["center"]) | ~logs, "x_min is not above -shift under Box-Cox")
    _require((figures["divisor"] == 1.0) | ~logs, "Box-Cox does not rescale the data")
    _require((figures["ref"] > 0.0) | ~logs, "ref is not inside the data")
    inside = _in_range(figures["ref"], x_min, x_max, figures["center"], figures["divisor"])
    _require(inside | ((figures["ref"] == 0.0) & ~is_box_cox) | ~fitted, "ref is not inside the data")


def _in_range(
    ref: FloatArray, x_min: FloatArray, x_max: FloatArray, center: FloatArray, divisor: FloatArray
) -> NDArray[np.bool_]:
    """Whether the reference lies inside the data, which are rescaled first; to the rounding of that."""
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (x_min - center) / divisor, (x_max - center) / divisor
        as_it_is = (divisor == 1.0) & (center == 0.0)
        slack = np.where(as_it_is, 0.0, _ROUNDING * np.maximum(np.abs(low), np.abs(high)))
        return np.asarray((low - slack <= ref) & (ref <= high + slack))


def _require(holds: NDArray[np.bool_], otherwise: str) -> None:
    if not holds.all():
        _damaged(f"column {int(np.argmin(holds))}: {otherwise}")
