"""Convert a `PowerFit` to a record for JSON and back, and reject records that no fit can have produced.

The check is needed because kernels rely on a positive slope, a reference inside the data and finite constants.
Otherwise they silently return NaN or infinity.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.base import Estimator
from powerkern._estimators.estimators import ESTIMATORS, options_of, with_options
from powerkern._estimators.fitted_origin import FITTED
from powerkern._estimators.spec import BEST, FIT_FAMILIES, FitSpec
from powerkern._input.alignment import labels_to_record
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.json_entries import damaged, entry, read_choice, read_level_names, read_names, read_numbers
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.censored.fit import LOC_ERROR
from powerkern.kernels.results import FIELDS, STATUS
from powerkern.kernels.transforms.family import FAMILIES

#: Options of a fit that the record holds in the object "options"; the other options are separate entries.
_OPTIONS = tuple(
    each.name
    for each in fields(FitSpec)
    if each.name not in ("family", "estimator", "standardize", "origin", "dropna", "unknown")
)
#: Results that are finite in every fit, even for a column that could not be fitted.
_FINITE = (
    *("lmbda", "loc", "scale", "log_factor", "ref", "slope", "intercept"),
    *("n_obs", "n_eval", "lmbda0", "n_kept", "center", "divisor"),
)
#: Names of the results on censored cells, in the order of the fields in `kernels.censored.fit`.
_CENSORED = ("n_below", "n_above", "n_between", "loc_error", "scale_error")
#: Relative tolerance for the rounding error of a reference that is rescaled like the data.
_ROUNDING = 1e-9


def make_record(spec: FitSpec, labels: ColumnLabels, table: ColumnTable) -> dict[str, Any]:
    """Return the options, column labels and results of a fit as the entries of a JSON object."""
    return {
        "family": spec.family,
        "estimator": {"name": spec.estimator.name, **options_of(spec.estimator)},
        "standardize": spec.standardize,
        "column_names": labels_to_record(labels.names),
        "level_names": labels_to_record(labels.level_names),
        "vector": labels.was_vector,
        "origin": spec.origin,
        "options": {name: getattr(spec, name) for name in _OPTIONS},
        "families": table.families if spec.family == BEST else None,
        "unit_weights": table.unit_weights,
        "lmbda_error": table.lmbda_error if table.lmbda_error.any() else None,
        "censored": None if table.censored is None else dict(zip(_CENSORED, table.censored.T, strict=True)),
        "columns": dict(zip(FIELDS, table.kernel_rows.T, strict=True)),
    }


def read_record(record: Any, n_groups: int = 1) -> tuple[FitSpec, ColumnLabels, ColumnTable]:
    """Read a fit from a record of `make_record`; raise a ValueError if the numbers are inconsistent.

    The record of a grouped fit has one option per column, and one result per column and group; `n_groups` is the number
    of groups.
    """
    if not isinstance(record, dict):
        raise damaged("it holds no fitted columns")
    results = _results(record)
    n_features = len(results)
    spec = _read_spec(record, n_features // n_groups)
    labels = ColumnLabels(
        names=read_names(record, "column_names", n_features),
        level_names=read_level_names(record),
        was_vector=read_choice(record, "vector", (True, False) if n_features == 1 else (False,)),
    )
    codes = _families(record, n_features)
    units, error = (_optional(record, name, n_features) for name in ("unit_weights", "lmbda_error"))
    if units is not None and not ((units > 0.0) & (units <= 1.0)).all():
        raise damaged("unit_weights are not all positive and at most 1")
    if error is not None and (error < 0.0).any():
        raise damaged("lmbda_error is negative")
    _check_results(dict(zip(FIELDS, results.T, strict=True)), codes == FAMILIES["box-cox"])
    _require((results[:, STATUS] != Status.BRACKETED) | (error is not None), "a bracketed lambda has no lmbda_error")
    censored = _censored(record, n_features)
    return spec, labels, ColumnTable(results, codes, unit_weights=units, lmbda_error=error, censored=censored)


def _censored(record: dict[str, Any], n_features: int) -> FloatArray | None:
    """Read the results on censored cells, (n_features, N_CENSORED_FIELDS); return None if the record has none."""
    table = entry(record, "censored")
    if table is None:
        return None
    if not isinstance(table, dict) or set(table) != set(_CENSORED):
        raise damaged(f"censored is not an object with the keys {', '.join(_CENSORED)}")
    found = np.stack([read_numbers(table, name, (n_features,)) for name in _CENSORED], axis=1)
    if not (found[:, :LOC_ERROR] >= 0.0).all():
        raise damaged("a number of censored cells is negative or not a number")
    return np.ascontiguousarray(found)


def _results(record: dict[str, Any]) -> FloatArray:
    """Read the results as rows of `kernels.results.ColumnFit`, one row for each column of the data."""
    table = entry(record, "columns")
    if not isinstance(table, dict) or not isinstance(table.get(FIELDS[0]), list) or not table[FIELDS[0]]:
        raise damaged(f"columns is not an object, or {FIELDS[0]} is missing")
    shape = (len(table[FIELDS[0]]),)
    return np.ascontiguousarray(np.stack([read_numbers(table, name, shape) for name in FIELDS], axis=1))


def _estimator(record: dict[str, Any]) -> Estimator:
    """Read the estimator from its name and options; whole numbers become integers."""
    options = entry(record, "estimator")
    if not isinstance(options, dict):
        raise damaged("estimator is not an object")
    name = read_choice(options, "name", tuple(ESTIMATORS))
    try:
        return with_options(name, {key: _whole(value) for key, value in options.items() if key != "name"})
    except (TypeError, ValueError) as error:
        raise damaged(str(error)) from None


def _read_spec(record: dict[str, Any], p: int) -> FitSpec:
    """Return the options of a fit of p columns, checked as `powerkern.fit` checks them."""
    options = entry(record, "options")
    if not isinstance(options, dict) or set(options) != set(_OPTIONS):
        raise damaged(f"options is not an object with the keys {', '.join(_OPTIONS)}")
    given = {
        "family": read_choice(record, "family", FIT_FAMILIES),
        "estimator": _estimator(record),
        "standardize": read_choice(record, "standardize", (True, False)),
        "origin": read_choice(record, "origin", (None, FITTED)),
        **{name: _read_option(name, value) for name, value in options.items()},
    }
    try:
        spec = FitSpec.checked(grouped=True, **given)  # the fit of one group has the options of the grouped fit
        spec.per_column(p)
    except (TypeError, ValueError) as error:
        raise damaged(str(error)) from None
    return spec


def _read_option(name: str, value: Any) -> Any:
    """Convert an option of a record to its original type: lists become tuples, and words for infinity become floats."""
    if name in ("bounds", "limits") and isinstance(value, list):
        return tuple(_read_option("", end) for end in value)
    if isinstance(value, list):
        return tuple(math.nan if each is None else _read_option("", each) for each in value)
    return float(value) if value in ("inf", "-inf") else value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _optional(record: dict[str, Any], name: str, n_features: int) -> FloatArray | None:
    """Read the optional entry `name` of a record, one number for each of `n_features` columns; null becomes None."""
    return None if entry(record, name) is None else read_numbers(record, name, (n_features,))


def _families(record: dict[str, Any], n_features: int) -> NDArray[np.int64]:
    """Read the family code of each column; the record lists the families only if the option is "best"."""
    family, families = entry(record, "family"), entry(record, "families")
    if family != BEST:
        if families is not None:
            raise damaged("families are given, but the family is not 'best'")
        families = [read_choice(record, "family", tuple(FAMILIES))] * n_features
    if not isinstance(families, list) or len(families) != n_features:
        raise damaged(f"families is not a list of {n_features} families")
    if not all(isinstance(name, str) and name in FAMILIES for name in families):
        raise damaged(f"families are not all one of {', '.join(map(repr, FAMILIES))}")
    return np.array([FAMILIES[name] for name in families])


def _check_results(results: dict[str, FloatArray], is_box_cox: NDArray[np.bool_]) -> None:
    """Raise a ValueError if the results of a record are inconsistent.

    `results` holds an array with one entry per column for each field of `kernels.results.ColumnFit`, and `is_box_cox`
    masks the Box-Cox columns.
    """
    status = results["status"]
    _require(np.isin(status, list(Status)), "status is unknown")
    _require(np.isin(results["route"], list(Route)), "route is unknown")
    for name in _FINITE:
        _require(np.isfinite(results[name]), f"{name} is not finite")
    fitted = ~np.isin(status, [code for code in Status if code.failed])
    for name in ("slope", "divisor"):
        _require(results[name] > 0.0, f"{name} is not positive")
    for name in ("scale", "n_obs", "n_eval", "n_kept"):
        _require(results[name] >= 0.0, f"{name} is negative")
    _require(results["n_eval"] < 2.0**53, "n_eval is not a number of evaluations")
    _require(results["n_kept"] <= results["n_obs"], "n_kept is greater than n_obs")
    has_values = status != Status.EMPTY
    x_min, x_max = results["x_min"], results["x_max"]
    _require(
        (np.isfinite(x_min) & np.isfinite(x_max) & (x_min <= x_max)) | ~has_values, "x_min and x_max are not a range"
    )
    _require((results["kept_low"] <= results["kept_high"]) | ~has_values, "kept_low and kept_high are not a range")
    logs = fitted & is_box_cox
    _require((x_min > results["center"]) | ~logs, "x_min is not above -shift under Box-Cox")
    _require((results["divisor"] == 1.0) | ~logs, "Box-Cox does not rescale the data")
    _require((results["ref"] > 0.0) | ~logs, "ref is not inside the data")
    inside = _in_range(results["ref"], x_min, x_max, results["center"], results["divisor"])
    # psi is 0 at this point for every lambda, so fits in the units of the data may use it as the reference even if it
    # lies outside the data
    is_zero_of_psi = results["ref"] == np.where(is_box_cox, 1.0, 0.0)
    _require(inside | is_zero_of_psi | ~fitted, "ref is neither inside the data nor the zero of psi")


def _in_range(
    ref: FloatArray, x_min: FloatArray, x_max: FloatArray, center: FloatArray, divisor: FloatArray
) -> NDArray[np.bool_]:
    """Return a mask of the columns whose reference lies inside the rescaled data, up to rounding errors.

    Parameters
    ----------
    ref : (p,) ndarray
        The references, in rescaled units.
    x_min, x_max : (p,) ndarray
        Range of the data.
    center, divisor : (p,) ndarray
        Data are rescaled to (x - center)/divisor.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (x_min - center) / divisor, (x_max - center) / divisor
        slack = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return np.asarray((low - slack <= ref) & (ref <= high + slack))


def _require(holds: NDArray[np.bool_], otherwise: str) -> None:
    if not holds.all():
        raise damaged(f"column {int(np.argmin(holds))}: {otherwise}")
