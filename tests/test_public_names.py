"""Public names: each belongs to one module, and `dir` of results lists the documented names."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.naive_bayes import GaussianNB

import powerkern as pk
from powerkern import cellwise, completion, federated, location, outliers, sketch, sklearn
from tests.results.test_public_names import attributes_in

#: The public names of every module. A new name needs a reason: who needs it, and why no existing function suffices.
NAMES = {
    "powerkern": (
        "AdaptiveRewML Carroll CentralML GroupedFit ML MTL PPCC PowerFit RewML RewMLNR Status __version__ fit load"
    ),
    "cellwise": "DDCFit WrappedPCA check_data ddc wrap wrapped_correlation wrapped_covariance wrapped_pca",
    "completion": "RankProfile RatingModel UVDecomposition complete_by_average fit_ratings rank_profile uv_decompose",
    "dask": "fit inverse_transform transform",
    "federated": "Client ProtocolError Server fit_federated",
    "joint": "JointFit JointStatus fit_joint",
    "kernels": (
        "bisquare_objective boxcox_nll brent chan_merge golden_section huber_location huber_proposal2 "
        "huber_scale inv_rectified_boxcox inv_rectified_yeojohnson log_mean log_var logsumexp newton_root "
        "rectified_boxcox rectified_yeojohnson welford_update yeojohnson_nll"
    ),
    "location": "LocationScale LocationStatus location_scale",
    "onnx": "to_onnx",
    "outliers": (
        "ScoreScaling brier_score calibration_error combine_probabilities fit_scaling "
        "harmonic_improvement_score ks_distance mahalanobis outlier_probability refinement_error "
        "reliability_diagram sharpness_error skill_score zscore"
    ),
    "plot": (
        "before_after_plot cell_map elbow_plot forest_plot histogram_plot lambda_map objective_plot "
        "outlier_map profile_plot qq_plot reliability_plot residual_plot score_plot"
    ),
    "ray": "fit inverse_transform transform",
    "regression": "RegressionFit fit_regression",
    "results": "DataCheck FoldedRow Interval Summary Wrapped",
    "sketch": "MapReduce Range Sketch extend finish fit_chunks location_chunks merge range_of summarize_chunk",
    "sklearn": (
        "DDC GroupedPowerTransformer LocationScaler OutlierProbability PowerTransformedClassifier "
        "PowerTransformedRegressor PowerTransformer SupervisedPowerTransformer UVImputer WrappingTransformer"
    ),
    "spark": "fit inverse_transform transform",
    "stats": (
        "boxcox boxcox1p boxcox_guerrero boxcox_llf boxcox_normmax boxcox_normplot inv_boxcox inv_boxcox1p "
        "inv_yeojohnson yeojohnson yeojohnson_llf yeojohnson_normmax yeojohnson_normplot"
    ),
    "xarray": "XarrayFit fit",
}
#: Modules that need an optional library.
NEEDING = {"dask": "dask", "onnx": "skl2onnx", "ray": "ray", "spark": "pyspark", "xarray": "xarray"}
#: Functions common to all engines; each takes the data of its own library.
SHARED = {"fit", "transform", "inverse_transform"}


def test_public_modules_are_listed():
    found = {each.name for each in pkgutil.iter_modules(pk.__path__) if not each.name.startswith("_")}
    assert found == NAMES.keys() - {"powerkern"}


@pytest.mark.parametrize("module", NAMES)
def test_public_names_are_listed(module):
    if module in NEEDING:
        pytest.importorskip(NEEDING[module])
    namespace = pk if module == "powerkern" else importlib.import_module(f"powerkern.{module}")
    assert sorted(namespace.__all__) == NAMES[module].split()
    shown = {name for name in dir(namespace) if not name.startswith("_")}
    extra = NAMES.keys() - {"powerkern"} if module == "powerkern" else set()
    if module == "kernels":  # the reference documents functions of its folders, by their paths
        extra = {each.name for each in pkgutil.iter_modules(namespace.__path__)}
    assert shown - extra == set(NAMES[module].split()) - {"__version__"}


def test_every_name_has_one_home():
    homes = [name for names in NAMES.values() for name in names.split()]
    assert {name for name in homes if homes.count(name) > 1} == SHARED


# --- dir of objects -----------------------------------------------------------------------------------

X = np.random.default_rng(0).lognormal(size=(40, 3))
Y = np.arange(40) % 2
RATINGS = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20), np.random.default_rng(1).normal(size=60)


def _ratings() -> Any:
    return completion.fit_ratings(RATINGS, 1, rng=0)


#: Results other than fits (tests/results/test_public_names.py), and their methods and properties.
RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "DDCFit": (lambda: cellwise.ddc(X), "column_names neighbors predict"),
    "DataCheck": (lambda: cellwise.check_data(X), "messages"),
    "WrappedPCA": (lambda: cellwise.wrapped_pca(X), "distances inverse_transform outliers transform"),
    "Wrapped": (lambda: cellwise.wrap(X), "transform"),
    "UVDecomposition": (
        lambda: completion.uv_decompose(X, 1, rng=0),
        "column_offset column_scale complete fold_in normalize rank reconstruct rmse row_offset shape validation_rmse",
    ),
    "RankProfile": (lambda: completion.rank_profile(X, [1, 2], rng=0), ""),
    "RatingModel": (_ratings, "fold_in predict rank"),
    "FoldedRow": (lambda: _ratings().fold_in([0], [1.0]), "predict"),
    "LocationScale": (lambda: location.location_scale(X), "status_text"),
    "ScoreScaling": (lambda: outliers.fit_scaling(X), "cdf probability score_at"),
    "Interval": (lambda: pk.fit(X).confint(), "low high to_frame"),
    "Summary": (lambda: pk.fit(X).summary(), "to_dict to_frame to_text"),
    "Client": (lambda: federated.Client(X, name="a"), "answer summands"),
    "Range": (lambda: sketch.range_of(X), "count from_bounds from_bytes grid n_obs part to_bytes x_max x_min"),
    "Grid": (lambda: sketch.range_of(X).grid(), "from_bytes n_bins part quantum refined to_bytes x_max x_min"),
    "Sketch": (lambda: sketch.extend(None, X), "from_bytes n_obs part to_bytes unresolved"),
}


def _attributes(kind: type) -> set[str]:
    """Return the attributes that a class documents."""
    return attributes_in(kind.__doc__) if "\n    Attributes\n" in (kind.__doc__ or "") else set()


@pytest.mark.parametrize("kind", RESULTS)
def test_results_show_what_is_documented(kind):
    make, names = RESULTS[kind]
    result = make()
    assert type(result).__name__ == kind
    documented = {*getattr(result, "_fields", ()), *_attributes(type(result))}
    inherited = set(dir(tuple)) if isinstance(result, tuple) else set()
    assert {name for name in dir(result) if not name.startswith("_")} - inherited == documented | set(names.split())


ESTIMATORS = [
    *(pk.ML(), pk.PPCC(), pk.CentralML(), pk.AdaptiveRewML(), pk.RewML(), pk.RewML(convention="cellwise")),
    *(pk.RewMLNR(), pk.Carroll(), pk.MTL()),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators_show_their_options(estimator):
    options = {field.name for field in dataclasses.fields(estimator)}
    assert {name for name in dir(estimator) if not name.startswith("_")} == options
    assert all(re.search(rf"\b{name}\b", type(estimator).__doc__) for name in options)


def _grouped() -> Any:
    return sklearn.GroupedPowerTransformer().fit(X, groups=Y)


FITTED: dict[str, Callable[[], Any]] = {
    "PowerTransformer": lambda: sklearn.PowerTransformer().fit(X),
    "PowerTransformer, in parts": lambda: sklearn.PowerTransformer().partial_fit(X),
    "GroupedPowerTransformer": _grouped,
    "LocationScaler": lambda: sklearn.LocationScaler().fit(X),
    "WrappingTransformer": lambda: sklearn.WrappingTransformer().fit(X),
    "DDC": lambda: sklearn.DDC().fit(X),
    "UVImputer": lambda: sklearn.UVImputer(rank=1).fit(X),
    "PowerTransformedRegressor": lambda: sklearn.PowerTransformedRegressor().fit(X[:, 1:], X[:, 0]),
    "OutlierProbability": lambda: sklearn.OutlierProbability(IsolationForest(n_estimators=3)).fit(X),
    "SupervisedPowerTransformer": lambda: sklearn.SupervisedPowerTransformer(
        GaussianNB(), search="spherical", lmbdas=[0.0, 1.0], cv=2
    ).fit(X, Y),
    "PowerTransformedClassifier": lambda: sklearn.PowerTransformedClassifier(
        GaussianNB(), search="spherical", lmbdas=[0.0, 1.0], cv=2
    ).fit(X, Y),
}
#: Methods that scikit-learn defines for its estimators or requires of them.
SCIKIT_LEARN = """
    fit fit_transform fit_predict transform inverse_transform predict predict_proba predict_log_proba decision_function
    score score_samples partial_fit get_feature_names_out get_metadata_routing get_params set_params set_output
    set_fit_request set_partial_fit_request set_transform_request set_inverse_transform_request set_score_request
    set_predict_request n_features_in_ feature_names_in_
"""


@pytest.mark.parametrize("kind", FITTED)
def test_classes_for_scikit_learn_show_parameters_and_what_is_documented(kind):
    fitted = FITTED[kind]()
    parents = [each for each in type(fitted).__mro__ if each.__module__.startswith("powerkern")]
    documented = {
        *fitted.get_params(deep=False),
        *SCIKIT_LEARN.split(),
        *(name for each in parents for name in _attributes(each)),
    }
    own = {"to_sklearn", "from_sklearn"} if kind.startswith("PowerTransformer") else set()
    assert {name for name in dir(fitted) if not name.startswith("_")} - documented - own == set()
