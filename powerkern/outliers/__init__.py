"""Outlier probabilities from the scores of detectors, measures of their quality, and distances that find outliers.

Only `OutlierProbability` needs scikit-learn, which is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used
from powerkern._input.messages import suggest_keywords
from powerkern.outliers.combining import combine_probabilities
from powerkern.outliers.distances import ks_distance, mahalanobis, zscore
from powerkern.outliers.measures import (
    ReliabilityDiagram,
    brier_score,
    calibration_error,
    harmonic_improvement_score,
    refinement_error,
    reliability_diagram,
    sharpness_error,
    skill_score,
)
from powerkern.outliers.scaling import ScoreScaling, fit_scaling, outlier_probability

if TYPE_CHECKING:
    from powerkern.sklearn.outliers import OutlierProbability as OutlierProbability

__all__ = [
    "OutlierProbability",
    "ReliabilityDiagram",
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

__getattr__, __dir__ = imported_when_used(__name__, {"OutlierProbability": "powerkern.sklearn.outliers"}, __all__)

suggest_keywords(globals(), __all__)
