"""Smallest and largest valid values of numeric parameters, which estimators check before they read data."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils._param_validation import InvalidParameterError

from powerkern.sklearn import (
    GroupedPowerTransformer,
    PowerTransformedRegressor,
    PowerTransformer,
    SupervisedPowerTransformer,
    UVImputer,
)

SUPERVISED, IMPUTER = SupervisedPowerTransformer(GaussianNB()), UVImputer()
#: For each parameter, valid values at the limits, and invalid ones just beyond.
LIMITS: list[tuple[Any, str, list[Any], list[Any]]] = [
    *((SUPERVISED, name, [None, 1], [0, 1.5]) for name in ("max_trials", "restart_every", "shuffle_every")),
    *((SUPERVISED, name, [None, 1], [0, 1.5]) for name in ("refine_every", "patience", "n_threads")),
    (SUPERVISED, "max_epochs", [0, 1], [-1, 0.5]),
    (SUPERVISED, "tol", [0.0, 0.5], [-1e-9]),
    (SUPERVISED, "max_time", [None, 0.0, 0.5], [-1e-9]),
    (IMPUTER, "rank", ["auto", 1], [0, 1.5, "best"]),
    (IMPUTER, "n_starts", [1], [0, 1.5]),
    (IMPUTER, "max_epochs", [1], [0]),
    (IMPUTER, "n_neighbors", [0, 1], [-1]),
    *((IMPUTER, name, [0, 0.5], [-1e-9]) for name in ("shrinkage", "budget", "tol")),
    (IMPUTER, "max_deviation", [None, 1e-9, 0.5], [0, -1.0]),
    (IMPUTER, "n_threads", [None, 1], [0]),
    (PowerTransformedRegressor(), "quantile", [1e-9, 0.5, 1.0 - 1e-9], [0.0, 1.0]),
    (PowerTransformedRegressor(), "n_threads", [None, 1], [0]),
    (PowerTransformer(), "n_threads", [None, 1], [0]),
    (GroupedPowerTransformer(), "n_threads", [None, 1], [0]),
    (GroupedPowerTransformer(), "dropna", [None, True, False], ["yes"]),
]


@pytest.mark.parametrize(
    ("estimator", "name", "good", "bad"), LIMITS, ids=[f"{type(a).__name__}-{b}" for a, b, *_ in LIMITS]
)
def test_numbers_are_accepted_up_to_their_limits(estimator: Any, name: str, good: list[Any], bad: list[Any]) -> None:
    before = getattr(estimator, name)
    for value in good:
        estimator.set_params(**{name: value})._validate_params()
    for value in bad:
        with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
            estimator.set_params(**{name: value})._validate_params()
    estimator.set_params(**{name: before})
