"""Hostile arguments to every public function: each call returns, or raises one of the documented errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hostile import N, P, X, Y, faults
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import powerkern as pk
from powerkern import cellwise, completion, joint, location, onnx, outliers, regression, sketch, stats
from powerkern import sklearn as estimators

FIT = pk.fit(X, "box-cox")
REGRESSION = regression.fit_regression(X[:, 0], X[:, 1])
JOINT = joint.fit_joint(X[:, :2])
TOTAL = sketch.extend(None, X)
SCALING = outliers.fit_scaling(X)
WRAPPED = cellwise.wrap(X)
LOW_RANK = completion.uv_decompose(X, 1, rng=0)
RATINGS = (np.arange(N) % 4, np.arange(N) % 3, X[:, 0])
MODEL = completion.fit_ratings(RATINGS, 1, rng=0)
GROUPS = np.arange(len(X)) % 2
GROUPED = pk.fit(X, groups=GROUPS)
TRANSFORMER = estimators.PowerTransformer().fit(X)

#: A call for every argument of a public function; the key is "public name: argument".
CALLS: dict[str, Callable[[Any], Any]] = {
    "fit: X": pk.fit,
    "fit: X, best": lambda v: pk.fit(v, "best"),
    "fit: X, rewml": lambda v: pk.fit(v, "box-cox", "robust"),
    "fit: family": lambda v: pk.fit(X, v),
    "fit: estimator": lambda v: pk.fit(X, estimator=v),
    "fit: sample_weight": lambda v: pk.fit(X, sample_weight=v),
    "fit: lmbda": lambda v: pk.fit(X, lmbda=v),
    "fit: shift": lambda v: pk.fit(X, "box-cox", shift=v),
    "fit: ymax": lambda v: pk.fit(X, ymax=v),
    "fit: bounds": lambda v: pk.fit(X, bounds=v),
    "fit: low": lambda v: pk.fit(X, bounds=(v, None)),
    "fit: column_names": lambda v: pk.fit(X, column_names=v),
    "fit: non_numeric": lambda v: pk.fit(X, non_numeric=v),
    "fit: n_threads": lambda v: pk.fit(X, n_threads=v),
    "fit: standardize": lambda v: pk.fit(X, standardize=v),
    "fit: criterion": lambda v: pk.fit(X, "best", criterion=v),
    "fit: X, ignore": lambda v: pk.fit(v, non_numeric="ignore"),
    "fit: origin": lambda v: pk.fit(X, origin=v),
    "fit: X, origin": lambda v: pk.fit(v, origin="fit"),
    "fit: X, origin, best": lambda v: pk.fit(v, "best", "central-mle", criterion="central", origin="fit"),
    "fit: ML's prestandardize": lambda v: pk.fit(X, estimator=pk.ML(prestandardize=v)),
    "fit: groups": lambda v: pk.fit(X, groups=v),
    "fit: X, groups": lambda v: pk.fit(v, groups=GROUPS),
    "fit: shrink": lambda v: pk.fit(X, groups=GROUPS, shrink=v),
    "fit: unknown": lambda v: pk.fit(X, groups=GROUPS, unknown=v),
    "fit: dropna": lambda v: pk.fit(X, groups=GROUPS, dropna=v),
    "GroupedFit: transform X": lambda v: GROUPED.transform(v, GROUPS),
    "GroupedFit: transform groups": lambda v: GROUPED.transform(X, v),
    "GroupedFit: inverse_transform": lambda v: GROUPED.inverse_transform(v, GROUPS),
    "GroupedFit: inverse_mean": lambda v: GROUPED.inverse_mean(X, v, GROUPS),
    "transform: X": lambda v: FIT.transform(v),
    "inverse_transform: Z": lambda v: FIT.inverse_transform(v),
    "PowerFit: transform out": lambda v: FIT.transform(X, out=v),
    "PowerFit: inverse out_of_range": lambda v: FIT.inverse_transform(X, out_of_range=v),
    "PowerFit: profile": FIT.profile,
    "PowerFit: profile X": lambda v: FIT.profile(0.5, v),
    "PowerFit: confint": FIT.confint,
    "PowerFit: lr_test": FIT.lr_test,
    "PowerFit: summary": lambda v: FIT.summary(v),
    "PowerFit: central_normality": lambda v: FIT.central_normality(v),
    "PowerFit: normality": lambda v: FIT.normality(v),
    "PowerFit: inverse_mean": lambda v: FIT.inverse_mean(v, 1.0),
    "PowerFit: inverse_mean sd": lambda v: FIT.inverse_mean(0.0, v),
    "PowerFit: outliers": FIT.outliers,
    "PowerFit: weights": FIT.weights,
    "PowerFit: from_json": pk.PowerFit.from_json,
    "load: path": pk.load,
    "PowerFit: rounded_fit": FIT.rounded_fit,
    "PowerFit: objective_curve": FIT.objective_curve,
    "PowerFit: cutoffs": FIT.cutoffs,
    "RewML: cutoff": lambda v: pk.AdaptiveRewML(cutoff=v),
    "RewML: n_reweight": lambda v: pk.AdaptiveRewML(n_reweight=v),
    "RewML: search_range": lambda v: pk.AdaptiveRewML(search_range=v),
    "RewML: convention": lambda v: pk.RewML(convention=v),
    "AdaptiveRewML: cutoff": lambda v: pk.AdaptiveRewML(cutoff=v),
    "RewMLNR: cutoff": lambda v: pk.RewMLNR(cutoff=v),
    "CentralML: cutoff": lambda v: pk.CentralML(cutoff=v),
    "Carroll: prestandardize": lambda v: pk.Carroll(prestandardize=v),
    "MTL: h": lambda v: pk.MTL(h=v),
    "PPCC: cutoff": lambda v: pk.PPCC(cutoff=v),
    "boxcox: x": stats.boxcox,
    "boxcox: lmbda": lambda v: stats.boxcox(X[:, 0], v),
    "boxcox: alpha": lambda v: stats.boxcox(X[:, 0], alpha=v),
    "boxcox_guerrero: x": stats.boxcox_guerrero,
    "boxcox_guerrero: season_length": lambda v: stats.boxcox_guerrero(X, v),
    "boxcox_guerrero: bounds": lambda v: stats.boxcox_guerrero(X, bounds=v),
    "boxcox_llf: lmb": lambda v: stats.boxcox_llf(v, X[:, 0]),
    "boxcox_llf: data": lambda v: stats.boxcox_llf(0.5, v),
    "boxcox_normmax: x": stats.boxcox_normmax,
    "boxcox_normmax: ymax": lambda v: stats.boxcox_normmax(X[:, 0], ymax=v),
    "boxcox1p": lambda v: stats.boxcox1p(v, 0.5),
    "inv_boxcox1p": lambda v: stats.inv_boxcox1p(v, 0.5),
    "boxcox_normplot": lambda v: stats.boxcox_normplot(v, -1.0, 2.0, N=5),
    "yeojohnson_normplot": lambda v: stats.yeojohnson_normplot(v, -1.0, 2.0, N=5),
    "inv_boxcox: y": lambda v: stats.inv_boxcox(v, 0.5),
    "inv_boxcox: lmbda": lambda v: stats.inv_boxcox(X, v),
    "inv_yeojohnson: y": lambda v: stats.inv_yeojohnson(v, 0.5),
    "yeojohnson: x": stats.yeojohnson,
    "yeojohnson: lmbda": lambda v: stats.yeojohnson(X, v),
    "yeojohnson_llf: data": lambda v: stats.yeojohnson_llf(0.5, v),
    "yeojohnson_normmax: x": stats.yeojohnson_normmax,
    "fit_regression: Y": lambda v: regression.fit_regression(v, X),
    "fit_regression: X": lambda v: regression.fit_regression(X[:, 0], v),
    "fit_regression: formula": lambda v: regression.fit_regression(X[:, 0], X, formula=v),
    "fit_regression: sample_weight": lambda v: regression.fit_regression(X[:, 0], X[:, 1], sample_weight=v),
    "fit_regression: lmbda": lambda v: regression.fit_regression(X[:, 0], X[:, 1], lmbda=v),
    "fit_regression: bounds": lambda v: regression.fit_regression(X[:, 0], X[:, 1], bounds=v),
    "RegressionFit: predict": REGRESSION.predict,
    "RegressionFit: transform": REGRESSION.transform,
    "RegressionFit: profile": REGRESSION.profile,
    "RegressionFit: confint": REGRESSION.confint,
    "RegressionFit: from_json": regression.RegressionFit.from_json,
    "fit_joint: X": joint.fit_joint,
    "fit_joint: covariates": lambda v: joint.fit_joint(X[:, :2], v),
    "fit_joint: sample_weight": lambda v: joint.fit_joint(X[:, :2], sample_weight=v),
    "JointFit: transform": JOINT.transform,
    "JointFit: lr_test": JOINT.lr_test,
    "JointFit: mahalanobis": JOINT.mahalanobis,
    "JointFit: from_json": joint.JointFit.from_json,
    "location_scale: X": location.location_scale,
    "location_scale: method": lambda v: location.location_scale(X, v),
    "location_scale: sample_weight": lambda v: location.location_scale(X, sample_weight=v),
    "location_scale: k": lambda v: location.location_scale(X, "huber", k=v),
    "check_data: X": cellwise.check_data,
    "check_data: max_missing": lambda v: cellwise.check_data(X, max_missing=v),
    "ddc: X": cellwise.ddc,
    "ddc: quantile": lambda v: cellwise.ddc(X, quantile=v),
    "wrap: X": cellwise.wrap,
    "wrap: b": lambda v: cellwise.wrap(X, v),
    "wrap: loc": lambda v: cellwise.wrap(X, loc=v, scale=1.0),
    "wrapped_correlation: X": cellwise.wrapped_correlation,
    "wrapped_covariance: X": cellwise.wrapped_covariance,
    "wrapped_pca: X": cellwise.wrapped_pca,
    "wrapped_pca: n_components": lambda v: cellwise.wrapped_pca(X, v),
    "skill_score": lambda v: outliers.skill_score(v, 0.5),
    "harmonic_improvement_score": outliers.harmonic_improvement_score,
    "complete_by_average": lambda v: completion.complete_by_average(v, []),
    "brier_score: y_true": lambda v: outliers.brier_score(v, P),
    "brier_score: y_prob": lambda v: outliers.brier_score(Y, v),
    "calibration_error: y_prob": lambda v: outliers.calibration_error(Y, v),
    "calibration_error: n_bins": lambda v: outliers.calibration_error(Y, P, n_bins=v),
    "refinement_error: y_true": lambda v: outliers.refinement_error(v, P),
    "sharpness_error: y_prob": lambda v: outliers.sharpness_error(None, v),
    "combine_probabilities: P": outliers.combine_probabilities,
    "fit_scaling: scores": outliers.fit_scaling,
    "fit_scaling: center": lambda v: outliers.fit_scaling(X, v),
    "fit_scaling: contamination": lambda v: outliers.fit_scaling(X, contamination=v),
    "ScoreScaling: probability": SCALING.probability,
    "ScoreScaling: score_at": SCALING.score_at,
    "ks_distance: X": outliers.ks_distance,
    "ks_distance: loc": lambda v: outliers.ks_distance(X, v, 1.0),
    "mahalanobis: X": outliers.mahalanobis,
    "mahalanobis: loc": lambda v: outliers.mahalanobis(X, v, np.eye(3)),
    "mahalanobis: cov": lambda v: outliers.mahalanobis(X, X[0], v),
    "outlier_probability: scores": outliers.outlier_probability,
    "reliability_diagram: y_true": lambda v: outliers.reliability_diagram(v, P[:, 0]),
    "zscore: X": outliers.zscore,
    "zscore: method": lambda v: outliers.zscore(X, v),
    "zscore: ddof": lambda v: outliers.zscore(X, ddof=v),
    "fit_ratings: ratings": completion.fit_ratings,
    "fit_ratings: value": lambda v: completion.fit_ratings((RATINGS[0], RATINGS[1], v), 1),
    "fit_ratings: row": lambda v: completion.fit_ratings((v, RATINGS[1], RATINGS[2]), 1),
    "fit_ratings: weight": lambda v: completion.fit_ratings(RATINGS, 1, weight=v),
    "fit_ratings: rank": lambda v: completion.fit_ratings(RATINGS, v),
    "RatingModel: predict": lambda v: MODEL.predict(v, RATINGS[1]),
    "RatingModel: fold_in": lambda v: MODEL.fold_in(v, [1.0]),
    "rank_profile: M": lambda v: completion.rank_profile(v, [1]),
    "rank_profile: ranks": lambda v: completion.rank_profile(X, v),
    "uv_decompose: M": lambda v: completion.uv_decompose(v, 1),
    "uv_decompose: rank": lambda v: completion.uv_decompose(X, v),
    "uv_decompose: init": lambda v: completion.uv_decompose(X, 1, init=(v, v)),
    "UVDecomposition: complete": LOW_RANK.complete,
    "UVDecomposition: fold_in": LOW_RANK.fold_in,
    "fit_chunks: chunks": sketch.fit_chunks,
    "fit_chunks: chunk": lambda v: sketch.fit_chunks([v, v]),
    "fit_chunks: sample_weight": lambda v: sketch.fit_chunks([X], sample_weight=v),
    "fit_chunks: weights": lambda v: sketch.fit_chunks([X], sample_weight=[v]),
    "fit_chunks: chunk with groups": lambda v: sketch.fit_chunks([v], groups="id"),
    "fit_chunks: groups": lambda v: sketch.fit_chunks([X], groups=v),
    "location_chunks: chunk": lambda v: sketch.location_chunks([v]),
    "extend: chunk": lambda v: sketch.extend(None, v),
    "extend: total": lambda v: sketch.extend(v, X),
    "extend: sample_weight": lambda v: sketch.extend(None, X, sample_weight=v),
    "finish: total": sketch.finish,
    "finish: lmbda": lambda v: sketch.finish(TOTAL, lmbda=v),
    "range_of: chunk": sketch.range_of,
    "summarize_chunk: chunk": lambda v: sketch.summarize_chunk(v, TOTAL.grid),
    "summarize_chunk: grid": lambda v: sketch.summarize_chunk(X, v),
    "merge: a": lambda v: sketch.merge(v, TOTAL),
    "to_onnx: fit": onnx.to_onnx,
    "PowerTransformer: X": lambda v: estimators.PowerTransformer().fit_transform(v),
    "PowerTransformer: rewml": lambda v: estimators.PowerTransformer(estimator="robust").fit(v),
    "PowerTransformer: sample_weight": lambda v: estimators.PowerTransformer().fit(X, sample_weight=v),
    "PowerTransformer: shift": lambda v: estimators.PowerTransformer("box-cox", shift=v).fit(X),
    "PowerTransformer: partial_fit": lambda v: estimators.PowerTransformer().partial_fit(v),
    "PowerTransformer: transform": TRANSFORMER.transform,
    "PowerTransformer: inverse_transform": TRANSFORMER.inverse_transform,
    "PowerTransformer: method": lambda v: estimators.PowerTransformer(v).fit(X),
    "GroupedPowerTransformer: X": lambda v: estimators.GroupedPowerTransformer().fit(v),
    "GroupedPowerTransformer: groups": lambda v: estimators.GroupedPowerTransformer().fit(X, groups=v),
    "LocationScaler: X": lambda v: estimators.LocationScaler().fit_transform(v),
    "UVImputer: X": lambda v: estimators.UVImputer(1, random_state=0).fit_transform(v),
    "WrappingTransformer: X": lambda v: estimators.WrappingTransformer().fit_transform(v),
    "DDC: X": lambda v: estimators.DDC().fit(v),
    "OutlierProbability: X": lambda v: estimators.OutlierProbability(LogisticRegression()).fit(v),
    "PowerTransformedRegressor: y": lambda v: estimators.PowerTransformedRegressor().fit(X, v),
    "PowerTransformedRegressor: X": lambda v: estimators.PowerTransformedRegressor().fit(v, X[:, 0]),
    "PowerTransformedClassifier: X": lambda v: estimators.PowerTransformedClassifier(
        GaussianNB(), search="spherical", cv=2
    ).fit(v, Y),
    "SupervisedPowerTransformer: y": lambda v: estimators.SupervisedPowerTransformer(
        GaussianNB(), search="spherical", cv=2
    ).fit(X, v),
    "SupervisedPowerTransformer: X": lambda v: estimators.SupervisedPowerTransformer(
        GaussianNB(), search="spherical", cv=2
    ).fit(v, Y),
    "SupervisedPowerTransformer: lmbdas": lambda v: estimators.SupervisedPowerTransformer(
        GaussianNB(), lmbdas=v, cv=2
    ).fit(X, Y),
}

MODULES = "powerkern results stats sklearn regression joint location cellwise outliers completion sketch onnx"
#: Public names that are not called: results of the functions called here, types, and parts for authors of engines.
OTHERS = """
    ML Status Interval Summary JointStatus LocationScale LocationStatus DDCFit DataCheck Wrapped WrappedPCA
    FoldedRow RankProfile MapReduce Range Sketch
"""


def test_every_public_name_is_called():
    called = {*(name.partition(":")[0] for name in CALLS), *OTHERS.split()}
    for module in MODULES.split():
        found = importlib.import_module("powerkern" if module == "powerkern" else f"powerkern.{module}")
        names = {name for name in found.__all__ if callable(getattr(found, name))}
        assert names <= called, sorted(names - called)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_hostile_arguments_raise_documented_errors_only(call):
    assert faults(call, CALLS[call]) == []
