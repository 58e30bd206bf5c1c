"""Convert outlier scores to probabilities, measure how good probabilities are, and compute distances of outliers."""

from __future__ import annotations

from powerkern._input.messages import suggest_keywords
from powerkern.outliers.combining import combine_probabilities
from powerkern.outliers.distances import ks_distance, mahalanobis, zscore
from powerkern.outliers.measures import (
    brier_score,
    calibration_error,
    harmonic_improvement_score,
    refinement_error,
    reliability_diagram,
    sharpness_error,
    skill_score,
)
from powerkern.outliers.scaling import ScoreScaling, fit_scaling, outlier_probability

__all__ = [
    "ScoreScaling",
    "brier_score",
    "calibration_error",
    "combine_probabilities",
    "fit_scaling",
    "harmonic_improvement_score",
    "ks_distance",
    "mahalanobis",
    "outlier_probability",
    "refinement_error",
    "reliability_diagram",
    "sharpness_error",
    "skill_score",
    "zscore",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
