"""Hostile arguments that `test_hostile` does not cover: plots, engines, sketches, federated fits, methods."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import EACH, VALUES, N, P, X, Y, faults, new, outcome
from sklearn.naive_bayes import GaussianNB

import powerkern as pk
from powerkern import cellwise, completion, federated, joint, plot, regression, sketch, sklearn
from powerkern.sketch import engine
from powerkern.sklearn import PowerTransformer

plt = pytest.importorskip("matplotlib.pyplot")
pkd = pytest.importorskip("powerkern.dask")
pkx = pytest.importorskip("powerkern.xarray")
xr, da = pytest.importorskip("xarray"), pytest.importorskip("dask.array")

FIT = pk.fit(X, "box-cox", column_names=list("abc"))
ROBUST = pk.fit(X, "box-cox", "robust")
REGRESSION = regression.fit_regression(X[:, 0], X[:, 1])
JOINT = joint.fit_joint(X[:, :2])
TOTAL = sketch.extend(None, X)
RANGE = sketch.range_of(X)
WRAPPED = cellwise.wrap(X)
PCA = cellwise.wrapped_pca(X, 2)
DDC = cellwise.ddc(np.vstack([X, 1.1 * X, 0.9 * X]))
LOW_RANK = completion.uv_decompose(X, 1, rng=0)
RATINGS = (np.arange(N) % 4, np.arange(N) % 3, X[:, 0])
MODEL = completion.fit_ratings(RATINGS, 1, rng=0)
PROFILE = completion.rank_profile(X, [1, 2], rng=0)
CHUNKED = da.from_array(X, chunks=(6, 3))
ARRAY = xr.DataArray(X, dims=("row", "column"))
LABELLED = pkx.fit(ARRAY, dim="row")
SERVER = federated.Server(["a", "b"])
CLIENT = federated.Client(X, name="a")
REQUEST = SERVER.request


def in_one(function: Callable[..., Any], merge: Callable[..., Any]) -> Any:
    """Apply `function` to all rows of `X` as one chunk, so that `merge` is not needed; this stands for an engine."""
    return function(X)


def received(message: Any, sender: Any = "a") -> None:
    federated.Server(["a", "b"]).receive(message, sender=sender)


def summed(total: Any) -> None:
    server = federated.Server(["a"], quantum=2.0**-30, data_bounds=([0.0] * 3, [1e6] * 3))
    server.receive_total(total)


def searched(**options: Any) -> Any:
    return sklearn.SupervisedPowerTransformer(GaussianNB(), cv=2, max_trials=5, random_state=0, **options).fit(X, Y)


#: A call for every argument of these interfaces; the key is "public name: argument".
CALLS: dict[str, Callable[[Any], Any]] = {
    "plot.before_after_plot: X": lambda v: plot.before_after_plot(v, FIT),
    "plot.before_after_plot: fit": lambda v: plot.before_after_plot(X, v),
    "plot.before_after_plot: columns": lambda v: plot.before_after_plot(X, FIT, columns=v),
    "plot.before_after_plot: kinds": lambda v: plot.before_after_plot(X, FIT, kinds=v),
    "plot.before_after_plot: ax": lambda v: plot.before_after_plot(X, FIT, ax=v),
    "plot.cell_map: X": lambda v: plot.cell_map(v, FIT),
    "plot.cell_map: fit": lambda v: plot.cell_map(X, v),
    "plot.cell_map: cutoff": lambda v: plot.cell_map(X, FIT, cutoff=v),
    "plot.cell_map: max_shape": lambda v: plot.cell_map(X, FIT, max_shape=v),
    "plot.elbow_plot: profile": plot.elbow_plot,
    "plot.elbow_plot: ax": lambda v: plot.elbow_plot(PROFILE, ax=v),
    "plot.forest_plot: X": lambda v: plot.forest_plot(v, FIT),
    "plot.forest_plot: fit": lambda v: plot.forest_plot(X, v),
    "plot.forest_plot: columns": lambda v: plot.forest_plot(X, FIT, columns=v),
    "plot.forest_plot: level": lambda v: plot.forest_plot(X, FIT, level=v),
    "plot.forest_plot: limits": lambda v: plot.forest_plot(X, FIT, limits=v),
    "plot.forest_plot: sort": lambda v: plot.forest_plot(X, FIT, sort=v),
    "plot.histogram_plot: X": lambda v: plot.histogram_plot(v, FIT),
    "plot.histogram_plot: fit": lambda v: plot.histogram_plot(X, v),
    "plot.histogram_plot: column": lambda v: plot.histogram_plot(X, FIT, column=v),
    "plot.lambda_map: scores": lambda v: plot.lambda_map(v, [[0.0, 1.0], [0.0, 1.0]]),
    "plot.lambda_map: lmbdas": lambda v: plot.lambda_map([[0.0, 1.0], [0.0, 1.0]], v),
    "plot.lambda_map: marks": lambda v: plot.lambda_map([[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], marks=v),
    "plot.objective_plot: X": lambda v: plot.objective_plot(v, ROBUST),
    "plot.objective_plot: fit": lambda v: plot.objective_plot(X, v),
    "plot.objective_plot: lmbdas": lambda v: plot.objective_plot(X, ROBUST, lmbdas=v),
    "plot.outlier_map: X": lambda v: plot.outlier_map(v, PCA),
    "plot.outlier_map: fit": lambda v: plot.outlier_map(X, v),
    "plot.outlier_map: labels": lambda v: plot.outlier_map(X, PCA, labels=v),
    "plot.profile_plot: X": lambda v: plot.profile_plot(v, FIT),
    "plot.profile_plot: fit": lambda v: plot.profile_plot(X, v),
    "plot.profile_plot: level": lambda v: plot.profile_plot(X, FIT, level=v),
    "plot.profile_plot: lmbdas": lambda v: plot.profile_plot(X, FIT, lmbdas=v),
    "plot.qq_plot: X": lambda v: plot.qq_plot(v, FIT),
    "plot.qq_plot: fit": lambda v: plot.qq_plot(X, v),
    "plot.qq_plot: band": lambda v: plot.qq_plot(X, FIT, band=v),
    "plot.qq_plot: column": lambda v: plot.qq_plot(X, FIT, column=v),
    "plot.reliability_plot: y_true": lambda v: plot.reliability_plot(v, P[:, 0]),
    "plot.reliability_plot: y_prob": lambda v: plot.reliability_plot(Y, v),
    "plot.reliability_plot: n_bins": lambda v: plot.reliability_plot(Y, P[:, 0], n_bins=v),
    "plot.reliability_plot: strategy": lambda v: plot.reliability_plot(Y, P[:, 0], strategy=v),
    "plot.residual_plot: Y": lambda v: plot.residual_plot(v, X[:, 1], REGRESSION),
    "plot.residual_plot: X": lambda v: plot.residual_plot(X[:, 0], v, REGRESSION),
    "plot.residual_plot: fit": lambda v: plot.residual_plot(X[:, 0], X[:, 1], v),
    "plot.score_plot: scores": plot.score_plot,
    "plot.score_plot: rules": lambda v: plot.score_plot(X[:, 0], v),
    "plot.score_plot: bins": lambda v: plot.score_plot(X[:, 0], bins=v),
    "dask.fit: X": pkd.fit,
    "dask.fit: chunk": lambda v: pkd.fit([v, v]),
    "dask.fit: family": lambda v: pkd.fit(CHUNKED, v),
    "dask.fit: estimator": lambda v: pkd.fit(CHUNKED, estimator=v),
    "dask.fit: sample_weight": lambda v: pkd.fit(CHUNKED, sample_weight=v),
    "dask.fit: lmbda": lambda v: pkd.fit(CHUNKED, lmbda=v),
    "dask.fit: shift": lambda v: pkd.fit(CHUNKED, "box-cox", shift=v),
    "dask.fit: bounds": lambda v: pkd.fit(CHUNKED, bounds=v),
    "dask.fit: column_names": lambda v: pkd.fit(CHUNKED, column_names=v),
    "dask.transform: X": lambda v: pkd.transform(v, FIT),
    "dask.transform: fit": lambda v: pkd.transform(CHUNKED, v),
    "dask.inverse_transform: Z": lambda v: pkd.inverse_transform(v, FIT),
    "dask.inverse_transform: out_of_range": lambda v: pkd.inverse_transform(CHUNKED, FIT, out_of_range=v).compute(),
    "xarray.fit: X": pkx.fit,
    "xarray.fit: family": lambda v: pkx.fit(ARRAY, v),
    "xarray.fit: estimator": lambda v: pkx.fit(ARRAY, estimator=v),
    "xarray.fit: dim": lambda v: pkx.fit(ARRAY, dim=v),
    "xarray.fit: sample_weight": lambda v: pkx.fit(ARRAY, dim="row", sample_weight=v),
    "xarray.fit: lmbda": lambda v: pkx.fit(ARRAY, dim="row", lmbda=v),
    "xarray.fit: shift": lambda v: pkx.fit(ARRAY, "box-cox", dim="row", shift=v),
    "xarray.fit: bounds": lambda v: pkx.fit(ARRAY, bounds=v),
    "XarrayFit: transform": LABELLED.transform,
    "XarrayFit: inverse_transform": LABELLED.inverse_transform,
    "XarrayFit: confint": lambda v: LABELLED.confint(level=v),
    "spark.fit: X": lambda v: __import__("powerkern.spark", fromlist=["fit"]).fit(v),
    "spark.transform: X": lambda v: __import__("powerkern.spark", fromlist=["fit"]).transform(v, FIT),
    "ray.fit: X": lambda v: __import__("powerkern.ray", fromlist=["fit"]).fit(v),
    "ray.transform: X": lambda v: __import__("powerkern.ray", fromlist=["fit"]).transform(v, FIT),
    "sketch.MapReduce: engine": lambda v: sketch.fit_chunks(sketch.MapReduce(v)),
    "sketch.MapReduce: task_threads": lambda v: sketch.MapReduce(in_one, v),
    "sketch.fit_chunks, engine: family": lambda v: sketch.fit_chunks(sketch.MapReduce(in_one), v),
    "sketch.fit_chunks, engine: estimator": lambda v: sketch.fit_chunks(sketch.MapReduce(in_one), estimator=v),
    "sketch.fit_chunks, engine: sample_weight": lambda v: sketch.fit_chunks(sketch.MapReduce(in_one), sample_weight=v),
    "sketch.fit_chunks, engine: lmbda": lambda v: sketch.fit_chunks(sketch.MapReduce(in_one), lmbda=v),
    "sketch.location_chunks, engine: method": lambda v: sketch.location_chunks(sketch.MapReduce(in_one), v),
    "sketch.location_chunks: method": lambda v: sketch.location_chunks([X], v),
    "sketch.location_chunks: k": lambda v: sketch.location_chunks([X], "huber", k=v),
    "sketch.fit_chunks: family": lambda v: sketch.fit_chunks([X], v),
    "sketch.fit_chunks: lmbda": lambda v: sketch.fit_chunks([X], lmbda=v),
    "sketch.fit_chunks: rewml": lambda v: sketch.fit_chunks([v, v], "box-cox", "robust"),
    "sketch.fit_chunks: best": lambda v: sketch.fit_chunks([v], "best"),
    "sketch.fit_chunks: shift": lambda v: sketch.fit_chunks([X], "box-cox", shift=v),
    "sketch.fit_chunks: ymax": lambda v: sketch.fit_chunks([X], ymax=v),
    "sketch.finish: ymax": lambda v: sketch.finish(TOTAL, ymax=v),
    "sketch.finish: bounds": lambda v: sketch.finish(TOTAL, bounds=v),
    "sketch.extend: family": lambda v: sketch.extend(None, X, v),
    "sketch.extend: shift": lambda v: sketch.extend(None, X, "box-cox", shift=v),
    "sketch.extend: column_names": lambda v: sketch.extend(None, X, column_names=v),
    "sketch.range_of: family": lambda v: sketch.range_of(X, v),
    "sketch.range_of: sample_weight": lambda v: sketch.range_of(X, sample_weight=v),
    "sketch.merge: b": lambda v: sketch.merge(TOTAL, v),
    "Range: grid": RANGE.grid,
    "Range: from_bounds low": lambda v: sketch.Range.from_bounds(v, 9.0, "box-cox", 5.0),
    "Range: from_bounds high": lambda v: sketch.Range.from_bounds(0.1, v, "box-cox", 5.0),
    "Range: from_bounds weight": lambda v: sketch.Range.from_bounds(0.1, 9.0, "box-cox", v),
    "Range: from_bytes": sketch.Range.from_bytes,
    "Grid: from_bytes": type(TOTAL.grid).from_bytes,
    "Grid: refined": TOTAL.grid.refined,
    "Grid: part": TOTAL.grid.part,
    "Sketch: from_bytes": sketch.Sketch.from_bytes,
    "Sketch: part": TOTAL.part,
    "engine.columns_to_read: chunk": lambda v: engine.columns_to_read(v, None),
    "federated.Client: data": lambda v: federated.Client(v, name="a"),
    "federated.Client: name": lambda v: federated.Client(X, name=v),
    "federated.Client: sample_weight": lambda v: federated.Client(X, name="a", sample_weight=v),
    "federated.Client: column_names": lambda v: federated.Client(X, name="a", column_names=v),
    "federated.Client: answer": CLIENT.answer,
    "federated.Client: summands": CLIENT.summands,
    "federated.Server: clients": federated.Server,
    "federated.Server: family": lambda v: federated.Server(["a"], family=v),
    "federated.Server: data_bounds": lambda v: federated.Server(["a"], data_bounds=v),
    "federated.Server: low": lambda v: federated.Server(["a"], data_bounds=(v, [9.0, 9.0, 9.0])),
    "federated.Server: quantum": lambda v: federated.Server(["a"], quantum=v),
    "federated.Server: search": lambda v: federated.Server(["a"], search=v),
    "federated.Server: lmbda": lambda v: federated.Server(["a"], lmbda=v),
    "federated.Server: shift": lambda v: federated.Server(["a"], shift=v),
    "federated.Server: ymax": lambda v: federated.Server(["a"], ymax=v),
    "federated.Server: bounds": lambda v: federated.Server(["a"], bounds=v),
    "federated.Server: column_names": lambda v: federated.Server(["a"], column_names=v),
    "federated.Server: receive": received,
    "federated.Server: sender": lambda v: received(CLIENT.answer(REQUEST), v),
    "federated.Server: receive_total": summed,
    "federated.fit_federated: clients": federated.fit_federated,
    "federated.fit_federated: rows": lambda v: federated.fit_federated([v, X]),
    "federated.fit_federated: family": lambda v: federated.fit_federated([X, X], v),
    "federated.fit_federated: lmbda": lambda v: federated.fit_federated([X, X], lmbda=v),
    "federated.fit_federated: secure_sum": lambda v: federated.fit_federated([X], secure_sum=v, quantum=2.0**-30),
    "completion.UVDecomposition: complete": LOW_RANK.complete,
    "completion.uv_decompose: method": lambda v: completion.uv_decompose(X, 1, v),
    "completion.uv_decompose: normalize": lambda v: completion.uv_decompose(X, 1, normalize=v),
    "completion.uv_decompose: order": lambda v: completion.uv_decompose(X, 1, order=v),
    "completion.uv_decompose: damping": lambda v: completion.uv_decompose(X, 1, damping=v),
    "completion.uv_decompose: ridge": lambda v: completion.uv_decompose(X, 1, ridge=v),
    "completion.uv_decompose: criterion": lambda v: completion.uv_decompose(X, 1, criterion=v),
    "completion.uv_decompose: tol": lambda v: completion.uv_decompose(X, 1, tol=v),
    "completion.uv_decompose: validation_fraction": lambda v: completion.uv_decompose(X, 1, validation_fraction=v),
    "completion.uv_decompose: rng": lambda v: completion.uv_decompose(X, 1, rng=v),
    "completion.uv_decompose: n_starts": lambda v: completion.uv_decompose(X, 1, n_starts=v),
    "completion.rank_profile: method": lambda v: completion.rank_profile(X, [1], v),
    "completion.rank_profile: validation_fraction": lambda v: completion.rank_profile(X, [1], validation_fraction=v),
    "completion.fit_ratings: column": lambda v: completion.fit_ratings((RATINGS[0], v, RATINGS[2]), 1),
    "completion.fit_ratings: shrinkage": lambda v: completion.fit_ratings(RATINGS, 1, shrinkage=v),
    "completion.fit_ratings: rng": lambda v: completion.fit_ratings(RATINGS, 1, rng=v),
    "completion.RatingModel: columns": lambda v: MODEL.predict(RATINGS[0], v),
    "completion.RatingModel: fold_in values": lambda v: MODEL.fold_in([0], v),
    "completion.RatingModel: fold_in weight": lambda v: MODEL.fold_in([0], [1.0], v),
    "completion.FoldedRow: predict": MODEL.fold_in([0], [1.0]).predict,
    "sklearn.UVImputer: rank": lambda v: sklearn.UVImputer(v).fit(X),
    "sklearn.UVImputer: max_deviation": lambda v: sklearn.UVImputer(1, max_deviation=v).fit(X),
    "sklearn.UVImputer: transform": lambda v: sklearn.UVImputer(1, random_state=0).fit(X).transform(v),
    "sklearn.UVImputer: names": lambda v: sklearn.UVImputer(1, random_state=0).fit(X).get_feature_names_out(v),
    "supervised: family": lambda v: searched(family=v),
    "supervised: search": lambda v: searched(search=v),
    "supervised: scoring": lambda v: searched(scoring=v),
    "supervised: bounds": lambda v: searched(bounds=v),
    "sklearn.PowerTransformer: variables": lambda v: PowerTransformer(variables=v).fit(X),
    "supervised: variables": lambda v: searched(variables=v),
    "supervised: starts": lambda v: searched(starts=v),
    "supervised: max_trials": lambda v: sklearn.SupervisedPowerTransformer(
        GaussianNB(), cv=2, max_trials=v, random_state=0
    ).fit(X, Y),
    "supervised: estimator": lambda v: sklearn.SupervisedPowerTransformer(v, cv=2, max_trials=5).fit(X, Y),
    "supervised: sample_weight": lambda v: sklearn.SupervisedPowerTransformer(
        GaussianNB(), cv=2, max_trials=5, random_state=0
    ).fit(X, Y, v),
    "supervised: transform": lambda v: searched().transform(v),
    "supervised: inverse_transform": lambda v: searched().inverse_transform(v),
    "sklearn.PowerTransformedClassifier: y": lambda v: sklearn.PowerTransformedClassifier(
        GaussianNB(), cv=2, max_trials=5
    ).fit(X, v),
    "sklearn.PowerTransformedClassifier: predict": lambda v: (
        sklearn.PowerTransformedClassifier(GaussianNB(), cv=2, max_trials=5, random_state=0).fit(X, Y).predict(v)
    ),
    "cellwise.DDCFit: predict": DDC.predict,
    "cellwise.DDCFit: neighbors": DDC.neighbors,
    "cellwise.ddc: min_correlation": lambda v: cellwise.ddc(X, min_correlation=v),
    "cellwise.ddc: search": lambda v: cellwise.ddc(X, search=v),
    "cellwise.ddc: n_neighbors": lambda v: cellwise.ddc(X, n_neighbors=v),
    "cellwise.check_data: max_discrete": lambda v: cellwise.check_data(X, max_discrete=v),
    "cellwise.check_data: min_scale": lambda v: cellwise.check_data(X, min_scale=v),
    "cellwise.wrap: c": lambda v: cellwise.wrap(X, 1.5, v),
    "cellwise.wrap: scale": lambda v: cellwise.wrap(X, loc=0.0, scale=v),
    "cellwise.wrap: method": lambda v: cellwise.wrap(X, method=v),
    "cellwise.wrap: missing": lambda v: cellwise.wrap(X, missing=v),
    "cellwise.Wrapped: transform": WRAPPED.transform,
    "cellwise.wrapped_pca: quantile": lambda v: cellwise.wrapped_pca(X, 1, quantile=v),
    "cellwise.WrappedPCA: transform": PCA.transform,
    "cellwise.WrappedPCA: inverse_transform": PCA.inverse_transform,
    "cellwise.WrappedPCA: distances": PCA.distances,
    "sklearn.DDC: transform": lambda v: sklearn.DDC().fit(X).transform(v),
    "sklearn.DDC: predict": lambda v: sklearn.DDC().fit(X).predict(v),
    "sklearn.WrappingTransformer: transform": lambda v: sklearn.WrappingTransformer().fit(X).transform(v),
    "joint.fit_joint: family": lambda v: joint.fit_joint(X[:, :2], None, v),
    "joint.fit_joint: formula": lambda v: joint.fit_joint(X[:, :2], X, formula=v),
    "joint.fit_joint: shift": lambda v: joint.fit_joint(X[:, :2], None, "box-cox", shift=v),
    "joint.fit_joint: n_starts": lambda v: joint.fit_joint(X[:, :2], n_starts=v),
    "joint.JointFit: inverse_transform": JOINT.inverse_transform,
    "joint.JointFit: confint X": JOINT.confint,
    "joint.JointFit: confint level": lambda v: JOINT.confint(level=v),
    "joint.JointFit: confint method": lambda v: JOINT.confint(method=v),
    "joint.JointFit: rounded": lambda v: JOINT.rounded(level=v),
    "joint.JointFit: summary": lambda v: JOINT.summary(v),
    "joint.JointFit: from_json": joint.JointFit.from_json,
    "regression.fit_regression: family": lambda v: regression.fit_regression(X[:, 0], X[:, 1], v),
    "regression.fit_regression: shift": lambda v: regression.fit_regression(X[:, 0], X[:, 1], shift=v),
    "regression.fit_regression: intercept": lambda v: regression.fit_regression(X[:, 0], X[:, 1], intercept=v),
    "regression.RegressionFit: inverse_transform": REGRESSION.inverse_transform,
    "regression.RegressionFit: fitted_values": REGRESSION.fitted_values,
    "regression.RegressionFit: residuals": REGRESSION.residuals,
    "regression.RegressionFit: residuals covariates": lambda v: REGRESSION.residuals(X[:, 0], v),
    "regression.RegressionFit: kind": lambda v: REGRESSION.predict(X[:, 1], v),
    "regression.RegressionFit: quantile": lambda v: REGRESSION.predict(X[:, 1], "quantile", quantile=v),
    "regression.RegressionFit: level": lambda v: REGRESSION.confint(level=v),
    "regression.RegressionFit: lr_test": REGRESSION.lr_test,
    "regression.RegressionFit: summary": lambda v: REGRESSION.summary(level=v),
    "regression.RegressionFit: from_json": regression.RegressionFit.from_json,
    "PowerFit: from_json": pk.PowerFit.from_json,
    "PowerFit: standard_error": lambda v: ROBUST.standard_error(v),
}


#: Kinds of arguments with which a call once failed.
FAILED = {
    "plot.objective_plot: X": ["one row", "constant"],
    "plot.before_after_plot: kinds": ["memoryview"],
    "plot.residual_plot: Y": ["list of None", "pandas nullable"],
    "dask.fit: column_names": ["memoryview"],
    "dask.inverse_transform: out_of_range": ["np.ma.masked"],
    "xarray.fit: dim": ["memoryview", "polars dates"],
    "ray.fit: X": ["memoryview"],
    "Range: grid": ["10**400"],
    "Sketch: from_bytes": ["10**400"],
    "federated.Server: clients": ["memoryview"],
    "federated.Server: bounds": ["memoryview"],
    "completion.uv_decompose: order": ["memoryview"],
    "completion.RatingModel: fold_in values": ["complex", "10**400"],
    "sklearn.UVImputer: max_deviation": ["10**400"],
}


@pytest.mark.parametrize("call", FAILED)
def test_calls_that_once_failed_raise_documented_errors(call):
    try:
        assert [fault for value in FAILED[call] if (fault := outcome(call, CALLS[call], value))] == []
    finally:
        plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_hostile_arguments_raise_documented_errors_only(call):
    try:
        assert faults(call, CALLS[call]) == []
    finally:
        plt.close("all")


# --- the command line ---------------------------------------------------------------------------------


def as_text(value: Any) -> str:
    """Return CSV text with columns a and b; its rows are a matrix `value` or repeat another `value` in each cell."""
    rows = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 2 else [[value, value]] * 3
    file = io.StringIO()
    csv.writer(file).writerows([["a", "b"], *rows])
    return file.getvalue()


#: Texts of tables, besides those with VALUES in their cells.
TEXTS = {
    "nothing": "",
    "one line": "a,b",
    "blank lines": "\n\n\n",
    "only commas": ",,,\n,,,\n",
    "quote left open": 'a,b\n"1,2\n3,4\n',
    "ragged": "a,b\n1\n1,2,3\n",
    "NUL": "a,b\n1,\x002\n3,4\n",
    "same names": "a,a\n1,2\n3,4\n",
    "no name": ",\n1,2\n3,5\n",
    "semicolons": "a;b\n1,5;2\n3;4\n",
    "tabs": "a\tb\n1\t2\n3\t5\n",
    "byte order mark": "\ufeffa,b\n1,2\n3,5\n",
    "carriage returns": "a,b\r1,2\r3,5\r",
    "infinities": "a,b\n1,inf\n3,-Infinity\n",
    "huge": "a,b\n1e400,2\n1e-400,3\n",
    "hexadecimal": "a,b\n0x10,2\n1_000,3\n",
    "other digits": "a,b\n\u0661,2\n\u0662,3\n",
    "a line of a million": "a\n" + "9" * 1_000_000 + "\n1\n",
    "JSON": '{"a": [1, 2]}',
    "a fit": FIT.to_json(),
    "a damaged fit": FIT.to_json()[:-20],
    "nested": "[" * 5000,
}
COMMANDS: dict[str, Callable[[Path, Path, Path], list[Any]]] = {
    "fit": lambda table, fit, out: ["fit", table, "-o", out],
    "fit rewml": lambda table, fit, out: ["fit", table, "-o", out, "--estimator", "robust"],
    "fit box-cox": lambda table, fit, out: ["fit", table, "-o", out, "--family", "box-cox"],
    "fit origin": lambda table, fit, out: ["fit", table, "-o", out, "--origin", "fit"],
    "plot": lambda table, fit, out: ["plot", table, "-o", out.with_suffix(".svg")],
    "fit groups": lambda table, fit, out: ["fit", table, "-o", out, "--groups", "a"],
    "outliers": lambda table, fit, out: ["outliers", table, "-o", out.with_suffix(".csv")],
    "summary": lambda table, fit, out: ["summary", table],
    "transform": lambda table, fit, out: ["transform", table, "--fit", fit, "-o", out],
    "inverse": lambda table, fit, out: ["inverse", table, "--fit", fit, "-o", out],
    "a table for a fit": lambda table, fit, out: ["transform", table, "--fit", table, "-o", out],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_tables_end_with_one_sentence(run, tmp_path, command):
    """The exit code is 0, or 1 or 2 with one sentence; there is no traceback, and earlier output is not damaged."""
    fit, out = tmp_path / "fit.json", tmp_path / "out"
    fit.write_text(FIT.to_json())
    texts = TEXTS | {name: as_text(new(name)) for name in VALUES}
    found = []
    for name, text in texts.items():
        table = tmp_path / "table.csv"
        table.write_bytes(text.encode("utf-8", "surrogatepass"))
        out.write_text("as it was")
        try:
            code, _, error = run(*COMMANDS[command](table, fit, out))
        except Exception as raised:
            found.append(f"{name}: {raised!r}")
            continue
        if code not in (0, 1, 2) or (code and not error.strip()) or "Traceback" in error:
            found.append(f"{name}: exit code {code}, {error!r}")
        if code and out.read_text() != "as it was":
            found.append(f"{name}: the output was written over")
    assert found == []


OPTIONS = [
    "family",
    "estimator",
    "columns",
    "weights",
    "shift",
    "origin",
    "bounds",
    "ymax",
    "cutoff",
    "delimiter",
    "missing",
    "jobs",
]


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_hostile_options_end_with_one_sentence(run, tmp_path, option):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n3,5\n4,4\n")
    found = []
    for name in VALUES:
        word = str(new(name))[:200].replace("\0", "")
        code, _, error = run("fit", table, "-o", tmp_path / "out.json", f"--{option}={word}")
        if code not in (0, 1, 2) or (code and not error.strip()) or "Traceback" in error:
            found.append(f"--{option}={word!r}: exit code {code}, {error!r}")
    assert found == []


def test_there_are_thousands_of_calls():
    assert EACH * len(CALLS) + (len(VALUES) + len(TEXTS)) * len(COMMANDS) + len(VALUES) * len(OPTIONS) > 6000
