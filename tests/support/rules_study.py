"""The comparison of rules of Röchner et al. (2024): errors of each stratum, and the harmonic improvement score."""

from __future__ import annotations

import numpy as np

from powerkern.outliers import calibration_error, refinement_error, sharpness_error


def stratified_errors(y, P):
    """Return sharpness, refinement and calibration errors of k rules, each for outliers and for inliers, (k, 6).

    `y` has the labels, (n,), and `P` the probabilities by the rules, (n, k).
    """
    measures = (sharpness_error, refinement_error, calibration_error)
    return np.stack([m(y, P, stratum=stratum) for m in measures for stratum in ("outliers", "inliers")], axis=1)


def harmonic_improvement_score(errors):
    """Return for each rule the harmonic mean of its errors, each relative to the mean over the rules; lower is better.

    `errors` is (k, n_errors).
    """
    average = errors.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(average == 0.0, 1.0, average / errors)
    return errors.shape[1] / ratio.sum(axis=1)
