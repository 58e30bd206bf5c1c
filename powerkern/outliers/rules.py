"""Estimate location and scale of outlier scores by the rules of `powerkern.outliers.outlier_probability`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.by_column import measure_columns
from powerkern._input.alignment import align_columns
from powerkern._input.arguments import as_number
from powerkern._input.arrays import Matrix, as_choice, column_label, warn_of_columns
from powerkern._input.messages import shown
from powerkern._results.power_fit import PowerFit
from powerkern._typing import FloatArray
from powerkern.location import location_results, measure_location
from powerkern.outliers.distances import bessel_factor

METHODS = ("gaussian", "huber", "tukey", "linear", "gamma", "robust-gamma", "yeo-johnson")
#: Methods that use the arguments `center` and `scale`.
CHOOSING = ("gaussian", "robust-gamma", "yeo-johnson")
_CENTERS = ("mean", "median", "trimmed")
#: Names of the scales in `location_scale`; "trimmed-sd" is the standard deviation after trimming.
SCALES = {"sd": "sd", "nmad": "mad", "niqr": "niqr", "trimmed-sd": "sd"}
#: Names and constants of proposal 2 in `location_scale`, with Huber's T and with Tukey's biweight.
PROPOSALS: dict[str, tuple[str, dict[str, Any]]] = {
    "huber": ("huber-proposal2", {"k": 1.5, "k_location": 1.345}),
    "tukey": ("bisquare-proposal2", {"k": 1.5, "c": 4.685}),
}


class Rule(NamedTuple):
    """Checked arguments of a rule: `center` (a word, or a number for each detector), `scale` and `trim`.

    See `outlier_probability`.
    """

    center: str | FloatArray
    scale: str
    trim: float

    def for_transformed_scores(self, power: PowerFit) -> Rule:
        """Return the rule for scores transformed by `power`; a center that is given as numbers is transformed, too."""
        if isinstance(self.center, str):
            return self
        return self._replace(center=power.transform(self.center[None, :])[0])


def make_rule(
    center: str | ArrayLike, scale: str, method: str, trim: object, p: int, names: Sequence[Any] | None
) -> Rule:
    """Check the arguments of a rule, and return them as a `Rule`.

    Parameters
    ----------
    center, scale, method, trim
        As in `outlier_probability`.
    p : int
        Number of detectors.
    names : sequence or None
        Labels of the detectors, with which a labelled `center` is aligned.
    """
    as_choice("method", method, METHODS)
    as_choice("scale", scale, SCALES)
    return Rule(_check_center(align_columns(center, names, "center"), p), scale, as_number("trim", trim, "[0, 1)"))


def _check_center(center: str | ArrayLike, p: int) -> str | FloatArray:
    """Return the center as a word or as an array, (p,), with a number for each detector; raise for anything else."""
    if isinstance(center, str):
        return as_choice("center", center, _CENTERS)
    given = np.asarray(center)
    if given.dtype == np.longdouble:
        with np.errstate(over="ignore"):  # beyond float64 it is infinite
            given = given.astype(np.float64)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (p,)) or not np.isfinite(given).all():
        words = ", ".join(map(repr, _CENTERS))
        raise ValueError(
            f"center must be one of {words}, a finite number or one number per detector, got {shown(center)}"
        )
    return np.full(p, given, dtype=np.float64)


def estimate_moments(method: str, rule: Rule, scores: Matrix, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return mu and sigma of each detector.

    Parameters
    ----------
    method : str
        As in `outlier_probability`.
    rule : Rule
        Center and scale, for the methods that use them.
    scores : Matrix
        The scores, or the transformed scores for "yeo-johnson", (n, p).
    n_threads : int
        Maximum number of threads.
    """
    if method == "linear":
        return _extent(scores, n_threads)
    if method == "gamma":
        mu, sigma = measure_location(scores, "mean-sd", n_threads=n_threads)
        return mu, sigma * bessel_factor(scores.values, 1, n_threads)
    if method in PROPOSALS:
        return _proposal2(scores, method, n_threads)
    return _apply_rule(rule, scores, n_threads)


def _extent(matrix: Matrix, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return the minimum and the range of each column; raise if the range overflows."""

    def ends(block: FloatArray, group: slice) -> FloatArray:
        low = np.fmin.reduce(block, axis=1)
        with np.errstate(over="ignore"):
            return np.column_stack([low, np.fmax.reduce(block, axis=1) - low])

    mu, sigma = measure_columns(ends, matrix.values, 2, n_threads).T
    if np.isinf(sigma).any():
        label = column_label(int(np.argmax(np.isinf(sigma))), matrix.names)
        raise ValueError(f"{label}: the range of the scores is beyond the range of float64; divide the scores by 4")
    return mu, sigma


def _proposal2(scores: Matrix, method: str, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return mu and sigma by Huber's proposal 2, with `method` "huber" or "tukey".

    Iterations start from the median and the nMAD. If the nMAD is 0, mu is the median and sigma is 0.
    """
    name, constants = PROPOSALS[method]
    start, spread = location_results(scores, "median-mad", n_threads=n_threads)[:, :2].T
    mu, sigma = measure_location(scores, name, n_threads=n_threads, **constants)
    return np.where(spread == 0.0, start, mu), np.where(spread == 0.0, 0.0, sigma)


def _apply_rule(rule: Rule, scores: Matrix, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return mu and sigma of each detector by a rule.

    If the center is given as a number, standard deviations are root mean squares about it.
    """
    given = not isinstance(rule.center, str)
    center = "mean" if given else rule.center
    constants: dict[str, Any] = {"fraction": rule.trim, "sides": "upper"} if center == "trimmed" else {}
    mu, sigma = measure_location(scores, f"{center}-{SCALES[rule.scale]}", n_threads=n_threads, **constants)
    mean = mu
    if rule.scale == "trimmed-sd":
        mean, sigma = _trimmed_moments(scores, n_threads, rule.trim)
    if not given:
        return mu, sigma
    fixed = np.where(np.isnan(mu), np.nan, rule.center)
    return fixed, np.hypot(sigma, mean - fixed) if rule.scale.endswith("sd") else sigma


def _trimmed_moments(scores: Matrix, n_threads: int, trim: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean and standard deviation of each column, leaving out its floor(trim n) largest scores."""
    values = np.array(scores.values, dtype=np.float64)
    order = np.argsort(values, axis=0)  # NaN last
    n = np.count_nonzero(~np.isnan(values), axis=0)
    kept = n - np.floor(trim * n + 1e-9).astype(np.int64)
    rank = np.arange(values.shape[0])[:, None]
    np.put_along_axis(values, order, np.where(rank < kept, np.take_along_axis(values, order, 0), np.nan), 0)
    mean, sd = location_results(scores._replace(values=values), "mean-sd", n_threads=n_threads)[:, :2].T
    return mean, sd


def warn_about_columns(method: str, mu: FloatArray, sigma: FloatArray, names: list[str] | None) -> None:
    """Issue one warning that names the detectors whose probabilities are degenerate.

    Parameters
    ----------
    method : str
        As in `outlier_probability`.
    mu, sigma : (p,) ndarray
        Location and scale of each detector.
    names : list of str or None
        Names of the detectors.
    """
    flat = "0 throughout" if method == "linear" else "1 above the location and 0 elsewhere"
    troubles = [(sigma == 0.0, f"the scores have scale 0: probabilities are {flat}")]
    if method == "linear":  # for other methods, location_scale has warned already
        troubles.append((np.isnan(mu), "no scores"))
    if method.endswith("gamma"):
        troubles.append(((mu <= 0.0) & (sigma > 0.0), "the gamma rule needs a positive mean: probabilities are NaN"))
        troubles.append((np.isnan(sigma) & ~np.isnan(mu), "the gamma rule needs two scores: probabilities are NaN"))
    warn_of_columns(troubles, names)
