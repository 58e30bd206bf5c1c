"""Convert a fitted power transformer to scikit-learn's `PowerTransformer`, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from powerkern._estimators.spec import FitSpec
from powerkern._input.arrays import column_label
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.power_fit import PowerFit
from powerkern._status import Route, Status, is_failed
from powerkern._typing import FloatArray
from powerkern.kernels.results import FIELDS, N_RESULTS

#: Largest accepted ratio of mean and scale; at this ratio, subtracting the mean loses half of the digits.
_LARGEST_RATIO = 1e8


def convert_to_sklearn(ours: Any) -> PowerTransformer:
    """Return a fitted transformer of scikit-learn with the same results as `ours`, a transformer of this package."""
    fit: PowerFit = ours.power_fit_
    loc, scale = _moments(fit)
    theirs = PowerTransformer(method=ours.method, standardize=fit.standardize, copy=ours.copy)
    theirs.lambdas_ = fit.lmbda.copy()
    theirs.n_features_in_ = fit.n_features
    if fit.column_names is not None and all(isinstance(name, str) for name in fit.column_names):
        theirs.feature_names_in_ = np.array(fit.column_names, dtype=object)
    if fit.standardize:
        scaler = StandardScaler(copy=False).set_output(transform="default")
        scaler.mean_, scaler.scale_, scaler.var_ = loc, scale, scale * scale
        scaler.n_samples_seen_ = fit.n_obs.astype(np.int64)
        scaler.n_features_in_ = fit.n_features
        theirs._scaler = scaler
    return theirs


def _moments(fit: PowerFit) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of the transformed columns before standardizing, (p,) each.

    If a column passes unchanged, its mean and standard deviation are chosen so that scikit-learn's transformer returns
    the column unchanged, too. Raise ValueError for fits that scikit-learn cannot represent.
    """
    passes, box_cox = is_failed(fit.status), fit.family == "box-cox"
    _refuse(fit, fit.shift != 0.0, "has a shift or an origin; add it to the data, and fit the sum")
    rescaled = ~passes & ((fit.center != 0.0) | (fit.divisor != 1.0))
    _refuse(fit, rescaled & (fit.shift == 0.0), "is rescaled before it is transformed")
    with np.errstate(over="ignore"):
        factor = np.exp(fit.log_factor)
        loc, scale = fit.loc * factor, fit.scale * factor
    if not fit.standardize:
        _refuse(fit, passes & box_cox, "passes unchanged, which no Box-Cox transform does; use standardize=True")
        return loc, scale
    start = np.where(fit.status == Status.CONSTANT, fit.x_min, 0.0) - float(box_cox)  # lambda = 1 subtracts 1
    loc, scale = np.where(passes, start, loc), np.where(passes, 1.0, scale)
    with np.errstate(over="ignore"):  # refused below
        usable = np.isfinite(loc) & np.isfinite(scale * scale) & (abs(loc) <= _LARGEST_RATIO * scale) & (scale > 0.0)
    _refuse(
        fit, ~usable & ~passes, "has a lambda with which raw values overflow or lose their digits; fit with bounds="
    )
    return loc, scale


def _refuse(fit: PowerFit, which: Any, why: str) -> None:
    """Raise ValueError if the mask `which` marks a column; the message names the first one and the reason `why`."""
    if np.any(which):
        raise ValueError(
            f"{column_label(int(np.argmax(which)), fit.column_names)} {why}: scikit-learn's PowerTransformer cannot "
            "represent it"
        )


def read_arguments(theirs: Any) -> dict[str, Any]:
    """Return the arguments for our `PowerTransformer` that match `theirs`, a fitted transformer of scikit-learn."""
    if not isinstance(theirs, PowerTransformer):
        raise TypeError(f"from_sklearn takes a sklearn.preprocessing.PowerTransformer, got {type(theirs).__name__}")
    check_is_fitted(theirs)
    return {"method": theirs.method, "standardize": theirs.standardize, "copy": theirs.copy}


def convert_fit(theirs: PowerTransformer) -> PowerFit:
    """Build a fit with the same transform as `theirs`, a fitted transformer of scikit-learn."""
    p, box_cox = theirs.n_features_in_, theirs.method == "box-cox"
    lmbda = np.asarray(theirs.lambdas_, dtype=np.float64)
    loc, scale, n_obs = np.zeros(p), np.ones(p), np.zeros(p)
    if theirs.standardize:
        scaler = theirs._scaler
        loc, scale = np.asarray(scaler.mean_, dtype=np.float64), np.asarray(scaler.scale_, dtype=np.float64)
        n_obs = np.broadcast_to(scaler.n_samples_seen_, (p,)).astype(np.float64)
    missing = np.isnan(lmbda) | np.isnan(loc)  # passes unchanged
    lmbda, scale = np.where(missing, 1.0, lmbda), np.where(missing, 1.0, scale)
    loc, ref = np.where(missing, 0.0, loc), np.where(missing, 0.0, float(box_cox))
    largest = float(np.finfo(np.float64).max)
    low = float(np.finfo(np.float64).tiny) if box_cox else -largest
    figures: dict[str, Any] = {
        "lmbda": lmbda, "lmbda0": lmbda, "loc": loc, "scale": scale, "ref": ref, "slope": 1.0 / scale,
        "intercept": -loc / scale, "n_obs": n_obs, "n_kept": n_obs, "x_min": low, "x_max": largest, "kept_low": low,
        "kept_high": largest, "divisor": 1.0, "nll": np.nan, "curvature": np.nan,
        "status": np.where(missing, int(Status.EMPTY), int(Status.FIXED)), "route": int(Route.NONE),
    }  # fmt: skip
    results = np.zeros((p, N_RESULTS))
    for name, values in figures.items():
        results[:, FIELDS.index(name)] = values
    names = list(theirs.feature_names_in_) if hasattr(theirs, "feature_names_in_") else None
    spec = FitSpec(family=theirs.method, standardize=theirs.standardize)
    return PowerFit(spec, ColumnLabels(names), ColumnTable(results, theirs.method))
