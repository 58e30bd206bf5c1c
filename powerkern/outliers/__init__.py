"""Outlier scores to probabilities, how good these are, and distances that find outliers."""

from powerkern.outliers.distances import Spread, ks_distance, mahalanobis, robust_covariance
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

__all__ = [
    "ReliabilityDiagram",
    "Spread",
    "brier_score",
    "calibration_error",
    "harmonic_improvement_score",
    "ks_distance",
    "mahalanobis",
    "refinement_error",
    "reliability_diagram",
    "robust_covariance",
    "sharpness_error",
    "skill_score",
    "stratified_errors",
]
