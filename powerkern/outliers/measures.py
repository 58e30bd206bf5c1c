"""Measure the quality of outlier probabilities: the Brier score and its components."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._input import lazy_scipy_special as special
from powerkern._input.alignment import align_rows
from powerkern._input.arguments import as_whole
from powerkern._input.arrays import as_choice, as_matrix, as_reals, to_list
from powerkern._input.frames import label_like, names_of, order_frame
from powerkern._input.messages import shown
from powerkern._results.display import short_repr
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.equal_area_bins import equal_area_bins
from powerkern.outliers.combining import as_probabilities

Stratum = Literal["all", "outliers", "inliers"]
Strategy = Literal["equal-area", "equal-count", "equal-width"]

#: Default numbers of bins; refinement and calibration errors are averaged over them.
N_BINS = range(5, 21)
#: Largest number of bins: 8 MB of edges.
_MOST_BINS = 1_000_000

_STRATA = ("all", "outliers", "inliers")


class ReliabilityDiagram(NamedTuple):
    """Bins of probabilities, from left to right, with the frequency of outliers in each bin."""

    #: Edges of the bins, one more than there are bins.
    edges: FloatArray
    #: Number of scores in each bin.
    n_scores: FloatArray
    #: Mean probability in each bin; NaN for an empty bin.
    mean_prob: FloatArray
    #: Fraction of outliers in each bin; NaN for an empty bin.
    frequency: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


# --- means over scores ----------------------------------------------------------------------------------


def brier_score(y_true: ArrayLike, y_prob: ArrayLike, *, stratum: Stratum = "all") -> float | FloatArray:
    """Return the mean squared difference of probability and label, ``mean((p - y)**2)`` [1]_.

    Parameters
    ----------
    y_true : (n,) array-like
        1 or True for an outlier, 0 or False for an inlier.
    y_prob : (n,) or (n, k) array-like
        Probabilities of being an outlier; for several methods, one column per method.
    stratum : {"all", "outliers", "inliers"}, default "all"
        The scores to average over: all, only those of outliers, or only those of inliers.

    Returns
    -------
    float or (k,) ndarray
        0 is perfect; one value per column for a matrix.

    Raises
    ------
    ValueError
        If labels are not 0 or 1, a probability is NaN or outside [0, 1], lengths differ, or a stratum has no members.

    References
    ----------
    .. [1] G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78, 1950,
       1-3.

    Examples
    --------
    >>> from powerkern.outliers import brier_score
    >>> brier_score([0, 0, 1], [0.0, 0.5, 1.0])
    0.08333333333
    >>> brier_score([0, 0, 1], [0.0, 0.5, 1.0], stratum="outliers")
    0.0
    """
    cases = _read_cases(y_true, y_prob)
    return _select_stratum(cases, _average_scores(cases, (cases.p - cases.y[:, None]) ** 2), stratum)


def sharpness_error(y_true: ArrayLike | None, y_prob: ArrayLike, *, stratum: Stratum = "all") -> float | FloatArray:
    """Return the mean entropy of the probabilities in bits, ``mean(-p log2 p - (1 - p) log2(1 - p))``.

    The error is 0 if all probabilities are 0 or 1, right or wrong, and 1 if all are 1/2. Arguments and result are as in
    `brier_score`, but `y_true` may be None if `stratum` is "all".

    Examples
    --------
    >>> from powerkern.outliers import sharpness_error
    >>> sharpness_error(None, [0.5, 1.0])
    0.5
    """
    if y_true is None and stratum != "all":
        raise ValueError(f"stratum={shown(stratum)} needs labels: pass y_true")
    cases = _read_cases(y_true, y_prob)
    entropy = -(special.xlogy(cases.p, cases.p) + special.xlog1py(1.0 - cases.p, -cases.p)) / np.log(2.0)
    return _select_stratum(cases, _average_scores(cases, entropy), stratum)


# --- means over bins ------------------------------------------------------------------------------------


def refinement_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    stratum: Stratum = "all",
    strategy: Strategy = "equal-area",
    n_bins: int | Iterable[int] = N_BINS,
) -> float | FloatArray:
    """Return the mean Gini impurity of the labels in bins of similar probability, ``sum_b w_b 2 o_b (1 - o_b)``.

    o_b is the fraction of outliers in bin b, and ``w_b = n_b/n`` is the fraction of the scores that lie in bin b. For a
    stratum, w_b is the fraction of the scores with that label that lie in bin b.

    Parameters
    ----------
    y_true, y_prob, stratum
        As in `brier_score`, which also lists the exceptions.
    strategy : {"equal-area", "equal-count", "equal-width"}, default "equal-area"
        Partition of [0, 1] into bins. "equal-area" minimizes the largest area of a bin, its number of scores times its
        width: going from left to right, each bin is as wide as this area allows. Bins are therefore narrow where there
        are many scores, and wide where there are few. Equal probabilities are always in the same bin.
    n_bins : int or iterable of int, default 5 to 20
        Number of bins. For several numbers, results are averaged.

    Returns
    -------
    float or (k,) ndarray
        0 if every bin contains only outliers or only inliers; one value per column for a matrix.

    Examples
    --------
    >>> from powerkern.outliers import refinement_error
    >>> refinement_error([0, 0, 0, 1], [0.1, 0.2, 0.9, 0.9])
    0.25
    """
    cases = _read_cases(y_true, y_prob)
    return _select_stratum(cases, _average_bins(cases, strategy, n_bins)[0], stratum)


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    stratum: Stratum = "all",
    strategy: Strategy = "equal-area",
    n_bins: int | Iterable[int] = N_BINS,
) -> float | FloatArray:
    """Return the mean difference of probability and frequency over bins, ``sum_b w_b |o_b - mean(p in b)|``.

    The error is 0 if, in every bin, the mean probability equals o_b, the fraction of outliers. `reliability_diagram`
    returns the bins.

    Parameters
    ----------
    y_true, y_prob, stratum, strategy, n_bins
        As in `refinement_error`, which defines the bins and the weights w_b.

    Returns
    -------
    float or (k,) ndarray
        One value per column for a matrix.

    Examples
    --------
    >>> from powerkern.outliers import calibration_error
    >>> calibration_error([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    """
    cases = _read_cases(y_true, y_prob)
    return _select_stratum(cases, _average_bins(cases, strategy, n_bins)[1], stratum)


def reliability_diagram(
    y_true: ArrayLike, y_prob: ArrayLike, *, strategy: Strategy = "equal-area", n_bins: int = 10
) -> ReliabilityDiagram:
    """Return the mean probability and the fraction of outliers in bins of probability.

    Parameters
    ----------
    y_true, y_prob : (n,) array-like
        As in `brier_score`, for one method.
    strategy : {"equal-area", "equal-count", "equal-width"}, default "equal-area"
        As in `refinement_error`.
    n_bins : int, default 10
        Number of bins; there may be fewer if probabilities are tied.

    Returns
    -------
    ReliabilityDiagram
        A named tuple of arrays, from the left bin to the right: ``edges``, one more than there are bins; ``n_scores``,
        the number of scores in each bin; ``mean_prob``, their mean probability; and ``frequency``, the fraction of
        outliers among them. ``mean_prob`` and ``frequency`` are NaN for an empty bin. Bins are ``[edge, next edge)``;
        the last bin also holds 1, as in `numpy.histogram`.

    Examples
    --------
    >>> from powerkern.outliers import reliability_diagram
    >>> diagram = reliability_diagram([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], strategy="equal-width", n_bins=2)
    >>> diagram.edges.tolist(), diagram.frequency.tolist()
    ([0.0, 0.5, 1.0], [0.5, 0.5])
    """
    cases = _read_cases(y_true, y_prob)
    if cases.p.shape[1] > 1:
        raise ValueError(
            f"y_prob has {cases.p.shape[1]} columns; a reliability diagram shows one method: pass one column"
        )
    (k,) = _bin_numbers([n_bins])
    profile = _make_profile(cases.p[:, 0], cases.y)
    first, edges = _CUTS[as_choice("strategy", strategy, _CUTS)](profile, k)
    count, outliers, total = _bin_sums(profile, first)
    with np.errstate(invalid="ignore"):
        return ReliabilityDiagram(edges, count, total / count, outliers / count)


# --- comparison of methods ------------------------------------------------------------------------------


def skill_score(error: ArrayLike, reference: ArrayLike) -> Any:
    """Compare an error with the error of a reference method, in powers of two: ``-log2(error/reference)`` [1]_.

    Parameters
    ----------
    error, reference : float or array-like
        Non-negative errors, such as results of `brier_score`. They broadcast against each other. Labels are aligned.

    Returns
    -------
    float, ndarray, or a data frame or series like `error` or `reference`
        1 for half the error of the reference, -1 for twice that error. The score is 0 if both are 0, inf if only the
        error is 0, and -inf if only the reference is 0.

    Raises
    ------
    ValueError
        If an error is negative or NaN.

    References
    ----------
    .. [1] P. Röchner, H. O. Marques, R. J. G. B. Campello, A. Zimek, F. Rothlauf, "Robust statistical scaling of
       outlier scores: improving the quality of outlier probabilities for outliers", SISAP 2024.

    Examples
    --------
    >>> from powerkern.outliers import skill_score
    >>> skill_score(0.1, 0.4)
    2.0
    """
    reference = align_rows(order_frame(reference, names_of(error), "reference"), error, "reference", "error")
    own, other = _check_errors("error", error), _check_errors("reference", reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(own == other, 0.0, np.log2(other) - np.log2(own))
    return float(score) if score.ndim == 0 else label_like(score, error, reference)


def harmonic_improvement_score(errors: ArrayLike) -> FloatArray:
    """Return the harmonic mean of the errors of each method, relative to the average method.

    The score is ``m / sum_j (A_j/M_j)``. Here M_j, j = 1, ..., m, are the errors of the method, and A_j is the mean of
    error j over all methods. A single very small error lowers the score considerably.

    Parameters
    ----------
    errors : (k, m) array-like
        Non-negative errors; a row for each method, a column for each measure.

    Returns
    -------
    (k,) ndarray
        A score below 1 is better than the average method. A method with an error of 0 has score 0. An error that is 0
        for all methods counts as average.

    Raises
    ------
    ValueError
        If `errors` is not a matrix, or an error is negative, NaN or infinite.

    Examples
    --------
    >>> from powerkern.outliers import harmonic_improvement_score
    >>> harmonic_improvement_score([[0.1, 0.2], [0.3, 0.2]])
    array([0.66666667, 1.2 ])
    """
    table = _check_errors("errors", errors)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(f"errors must be a matrix of finite numbers, one row per method, got shape {table.shape}")
    largest = table.max()
    table = table / (largest if largest > 0.0 else 1.0)  # only relative errors matter; scaled so that no sum overflows
    average = table.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(average == 0.0, 1.0, average / table)
    return np.asarray(table.shape[1] / ratio.sum(axis=1))


def _check_errors(what: str, errors: ArrayLike) -> FloatArray:
    """Return errors as float64; raise if one is negative or NaN. `what` names the argument in messages."""
    values = np.asarray(as_reals(what, errors), dtype=np.float64)
    if not (values >= 0.0).all():
        raise ValueError(f"{what} must not be negative or NaN")
    return values


# --- labels and probabilities ---------------------------------------------------------------------------


class _Cases(NamedTuple):
    """Checked labels and probabilities.

    Attributes
    ----------
    y : (n,) ndarray
        Labels: 1.0 for outliers, 0.0 for inliers.
    p : (n, k) ndarray
        Probabilities, one column per method.
    was_vector : bool
        Whether the user passed the probabilities as a vector.
    """

    y: FloatArray
    p: FloatArray
    was_vector: bool


def _read_cases(y_true: ArrayLike | None, y_prob: ArrayLike) -> _Cases:
    """Read labels and probabilities, aligned by row; without labels, all cases count as inliers."""
    p, was_vector = as_probabilities("y_prob", y_prob, missing=False)
    y = np.zeros(p.shape[0]) if y_true is None else _read_labels(align_rows(y_true, y_prob, "y_true", "y_prob"))
    if y.size != p.shape[0]:
        raise ValueError(f"y_true has {y.size} labels for {p.shape[0]} rows of y_prob; pass one label per row")
    return _Cases(y, p, was_vector)


def _read_labels(y_true: ArrayLike) -> FloatArray:
    """Return labels as 0.0 and 1.0; raise for any other value."""
    matrix = as_matrix(y_true, what="y_true")
    y = np.asarray(matrix.values, dtype=np.float64)
    if y.shape[1] > 1:
        raise ValueError(f"y_true has shape {y.shape}; pass one label per row")
    wrong = np.flatnonzero((y[:, 0] != 0.0) & (y[:, 0] != 1.0))
    if wrong.size:
        raise ValueError(
            f"y_true, row {wrong[0]}: {y[wrong[0], 0]:g} is not a label; use 1 for outliers and 0 for inliers"
        )
    return y[:, 0]


def _fractions(n: FloatArray, outliers: FloatArray) -> FloatArray:
    """Return the fraction of the scores of each stratum that lies in each bin, (3, m).

    The rows of the result are the strata: all scores, outliers, inliers. A stratum without scores gives NaN.

    Parameters
    ----------
    n : (m,) ndarray
        Number of scores in each bin.
    outliers : (m,) ndarray
        Number of outliers in each bin.
    """
    with np.errstate(invalid="ignore"):
        return np.stack([part / part.sum() for part in (n, outliers, n - outliers)])


def _average_scores(cases: _Cases, values: FloatArray) -> FloatArray:
    """Return the means of `values`, (n, k), over all scores, over outliers and over inliers, as a (k, 3) array."""
    return (_fractions(np.ones(cases.y.size), cases.y) @ values).T


def _select_stratum(cases: _Cases, table: FloatArray, stratum: str) -> float | FloatArray:
    """Return the errors of k methods in one stratum; raise ValueError if the stratum has no members.

    Parameters
    ----------
    cases : _Cases
        The labels and probabilities.
    table : (k, 3) ndarray
        Errors of each method over all scores, over outliers and over inliers; NaN for a stratum without members.
    stratum : {"all", "outliers", "inliers"}
        The stratum.

    Returns
    -------
    float or (k,) ndarray
        A float if the user passed the probabilities of one method as a vector (`_Cases.was_vector`).
    """
    at = _STRATA.index(as_choice("stratum", stratum, _STRATA))
    if np.isnan(table[0, at]):
        raise ValueError(f"y_true has no {stratum}, so their errors are undefined; choose another stratum")
    return float(table[0, at]) if cases.was_vector else table[:, at]


# --- bins -----------------------------------------------------------------------------------------------


class _Profile(NamedTuple):
    """Distinct probabilities and cumulative sums over them, from which bins are made.

    Attributes
    ----------
    values : (m,) ndarray
        Distinct probabilities, ascending.
    through : (m + 1,) ndarray
        0, then the number of scores up to each probability.
    outliers : (m + 1,) ndarray
        0, then the number of outliers up to each probability.
    total : (m + 1,) ndarray
        0, then the sum of the probabilities up to each one.
    """

    values: FloatArray
    through: FloatArray
    outliers: FloatArray
    total: FloatArray


def _make_profile(p: FloatArray, y: FloatArray) -> _Profile:
    """Sort and count the distinct probabilities `p` of scores with labels `y`, both (n,)."""
    values, where, count = np.unique(p, return_inverse=True, return_counts=True)
    sums = (count, np.bincount(where, weights=y), count * values)
    return _Profile(values, *(np.concatenate([[0.0], np.cumsum(part)]) for part in sums))


def _bin_sums(profile: _Profile, first: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the number of scores, the number of outliers and the sum of the probabilities in each of k bins.

    `first`, (k + 1,), holds the index of the first distinct probability of each bin, followed by the number of distinct
    probabilities.
    """
    return np.diff(profile.through[first]), np.diff(profile.outliers[first]), np.diff(profile.total[first])


def _equal_area(profile: _Profile, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Divide a profile into at most k bins that minimize the largest area of a bin; see `_CUTS` for the results.

    The area is the number of scores in the bin times its width.
    """
    first, edges = np.empty(k + 1, dtype=np.int64), np.empty(k + 1)
    found = equal_area_bins(profile.values, profile.through[1:].astype(np.int64), k, first, edges)
    return first[: found + 1], edges[: found + 1]


def _equal_count(profile: _Profile, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Divide a profile into at most k bins with about equal numbers of scores; see `_CUTS` for the results."""
    middles = (profile.through[1:] + profile.through[:-1]) / 2.0
    inner = np.searchsorted(middles, np.arange(1, k) * profile.through[-1] / k)
    inner = np.unique(inner[(inner > 0) & (inner < profile.values.size)])
    first = np.concatenate([[0], inner, [profile.values.size]])
    return first, np.concatenate([[0.0], profile.values[inner], [1.0]])


def _equal_width(profile: _Profile, k: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Divide a profile into k bins of equal width; see `_CUTS` for the results."""
    edges = np.linspace(0.0, 1.0, k + 1)
    first = np.searchsorted(profile.values, edges)
    first[-1] = profile.values.size
    return first, edges


#: Functions that divide a profile into at most k bins. They return the index of the first distinct value of each bin,
#: and the edges of the bins.
_CUTS: dict[str, Callable[[_Profile, int], tuple[NDArray[np.int64], FloatArray]]] = {
    "equal-area": _equal_area,
    "equal-count": _equal_count,
    "equal-width": _equal_width,
}


def _bin_numbers(n_bins: int | Iterable[int]) -> list[int]:
    """Return the requested numbers of bins as a list of positive integers."""
    numbers = to_list(n_bins) if isinstance(n_bins, Iterable) else [n_bins]
    if not numbers:
        raise ValueError("n_bins is empty; give at least one number of bins")
    return [as_whole("n_bins", k, most=_MOST_BINS) for k in numbers]


def _average_bins(cases: _Cases, strategy: str, n_bins: int | Iterable[int]) -> tuple[FloatArray, FloatArray]:
    """Return the refinement and the calibration errors, averaged over the numbers of bins.

    Each result has shape (k, 3): for k methods, over all scores, over outliers and over inliers. `strategy` and
    `n_bins` are as in `refinement_error`.
    """
    cut = _CUTS[as_choice("strategy", strategy, _CUTS)]
    numbers = _bin_numbers(n_bins)
    errors = np.zeros((2, cases.p.shape[1], 3))
    for j in range(cases.p.shape[1]):
        profile = _make_profile(cases.p[:, j], cases.y)
        for k in numbers:
            first = cut(profile, k)[0]
            count, outliers, total = _bin_sums(profile, first[np.diff(first, prepend=-1) > 0])  # without empty bins
            frequency = outliers / count
            values = np.stack([2.0 * frequency * (1.0 - frequency), abs(frequency - total / count)])
            errors[:, j] += values @ _fractions(count, outliers).T / len(numbers)
    return errors[0], errors[1]
