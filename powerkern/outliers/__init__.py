"""Outlier scores to probabilities, how good these are, and distances that find outliers.

Only `OutlierProbability` and `robust_covariance` need scikit-learn, which is imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used
from powerkern.outliers.chunks import scaling_chunks, scaling_with
from powerkern.outliers.combining import combine_probabilities
from powerkern.outliers.comparing import RankComparison, compare_ranks
from powerkern.outliers.distances import Spread, ks_distance, mahalanobis, robust_covariance, zscore, zscore_labels
from powerkern.outliers.measures import (
    ReliabilityDiagram,
    brier_score,
    calibration_error,
    harmonic_improvement_score,
    refinement_error,
    reliability_diagram,
    sharpness_error,
    skill_score,
    stratified_errors,
)
from powerkern.outliers.scaling import ScoreScaling, fit_scaling, outlier_probability

if TYPE_CHECKING:
    from powerkern.sklearn.outliers import OutlierProbability as OutlierProbability

__all__ = [
    "OutlierProbability",
    "RankComparison",
    "ReliabilityDiagram",
    "ScoreScaling",
    "Spread",
    "brier_score",
    "calibration_error",
    "combine_probabilities",
    "compare_ranks",
    "fit_scaling",
    "harmonic_improvement_score",
    "ks_distance",
    "mahalanobis",
    "outlier_probability",
    "refinement_error",
    "reliability_diagram",
    "robust_covariance",
    "scaling_chunks",
    "scaling_with",
    "sharpness_error",
    "skill_score",
    "stratified_errors",
    "zscore",
    "zscore_labels",
]

__getattr__ = imported_when_used(__name__, {"OutlierProbability": "powerkern.sklearn.outliers"})
