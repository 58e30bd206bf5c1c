"""Outlier scores to probabilities of being an outlier."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import changed_matrix
from powerkern._engine.threads import thread_count
from powerkern._estimators.estimators import Estimator, as_estimator
from powerkern._fit.fit import fit
from powerkern._input import frames, special
from powerkern._input.arguments import as_number
from powerkern._input.arrays import Matrix, as_choice, as_matrix
from powerkern._input.reading import read_fitted, restored
from powerkern._results.power_fit import PowerFit
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.elementary.erf import gaussian_probabilities
from powerkern.location import location_scale
from powerkern.outliers.distances import bessel_factor
from powerkern.outliers.rules import (
    CHOOSING,
    METHODS,
    PROPOSALS,
    SCALES,
    Rule,
    by_rule,
    center_of,
    contamination_of,
    proposal2,
    range_of,
    refuse_overflow,
    trim_of,
    trimmed_moments,
    warn_of,
)

#: At least this multiple of the contamination lies above mu. Below 2, few scores have probabilities other than 0 and 1;
#: above 4, they are too flat where detectors are good.
_ROOM = 3.0


class ScoreScaling:
    """Map from outlier scores to probabilities, fitted by `fit_scaling`.

    Attributes
    ----------
    method, scale : str
        The rule.
    center : str or (p,) ndarray
        Its center, a word or the numbers given.
    contamination : float or None
        Expected share of outliers, if `sigma` is calibrated to one.
    mu, sigma : (p,) ndarray
        Location and scale of the scores of each detector: minimum and range for "linear", mean and standard deviation
        (with n - 1) for "gamma", of the transformed scores for "yeo-johnson". NaN for a detector without finite scores.
    power : PowerFit or None
        The transform of "yeo-johnson".
    column_names : list of str or None
        Names of the detectors, where the scores had names.
    """

    def __init__(
        self,
        method: str,
        center: str | FloatArray,
        scale: str,
        mu: FloatArray,
        sigma: FloatArray,
        power: PowerFit | None = None,
        column_names: list[str] | None = None,
        contamination: float | None = None,
    ) -> None:
        self.method = method
        self.center = center
        self.scale = scale
        self.mu = mu
        self.sigma = sigma
        self.power = power
        self.column_names = column_names
        self.contamination = contamination

    def __repr__(self) -> str:
        rule = f", center={self.center!r}" if self.method in CHOOSING else ""
        if self.contamination is not None:
            rule += f", contamination={self.contamination!r}"
        elif rule:
            rule += f", scale={self.scale!r}"
        return f"ScoreScaling(method={self.method!r}{rule}, detectors={self.mu.size})"

    def probability(self, scores: object, *, n_threads: int | None = None) -> Any:
        """Probabilities of being an outlier.

        Parameters
        ----------
        scores : (n, p) or (n,) array-like
            New or the same scores of the detectors the map was fitted to. NaN stays NaN; -inf becomes 0 and inf 1.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray or data frame
            Like `scores`: a data frame for a data frame, float32 for float32, else float64.

        Raises
        ------
        ValueError
            The number of detectors does not match the fit.
        """
        gammas = dict.fromkeys(("gamma", "robust-gamma"), self._gamma)
        change = {"linear": self._linear, **gammas}.get(self.method, self._gaussian)
        return self._mapped(scores, change, n_threads)

    def cdf(self, scores: object, *, n_threads: int | None = None) -> Any:
        """CDF of the scores under the fitted rule.

        It is normal; uniform for "linear", gamma for the gamma rules, and normal after the transform for "yeo-johnson".
        ``ks_distance(scores, distribution=scaling)`` measures how far scores are from it, and
        `powerkern.plot.score_plot` draws its density.

        Parameters
        ----------
        scores, n_threads
            As in `probability`.

        Returns
        -------
        ndarray or data frame
            Like `scores`; NaN stays NaN. Where sigma is 0, a step at mu, for "linear" 0.

        Examples
        --------
        >>> from powerkern.outliers import fit_scaling
        >>> fit_scaling([1.0, 2.0, 3.0, 4.0, 5.0], center="median").cdf([1.0, 3.0])
        array([0.08867178, 0.5 ])
        """
        gammas = dict.fromkeys(("gamma", "robust-gamma"), self._gamma_cdf)
        change = {"linear": self._linear, **gammas}.get(self.method, self._gaussian_cdf)
        return self._mapped(scores, change, n_threads)

    def score_at(self, probability: float) -> FloatArray:
        """The largest score of each detector with at most this probability: the inverse of the map.

        Parameters
        ----------
        probability : float
            From 0 to 1.

        Returns
        -------
        (p,) ndarray
            The largest float64 with ``probability(score) <= probability``; NaN for a detector without finite scores.

        Raises
        ------
        ValueError
            A probability outside [0, 1].

        Examples
        --------
        >>> from powerkern.outliers import fit_scaling
        >>> fit_scaling([1.0, 2.0, 3.0, 4.0, 5.0], center="median").score_at(0.95)
        array([5.90584695])
        """
        probability = as_number("probability", probability, "[0, 1]")
        below, above = (np.full(self.mu.size, rank) for rank in _RANKS)
        for _ in range(64):  # halves, of all float64 as they are ordered
            middle = below + (above - below) // np.uint64(2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of scores that no transform reaches
                beyond = self.probability(_float_of(middle)[None, :], n_threads=1)[0] > probability
            below, above = np.where(beyond, below, middle), np.where(beyond, middle, above)
        return np.where(np.isnan(self.mu), np.nan, _float_of(below))

    def _mapped(self, scores: object, change: Callable[[FloatArray, slice], None], n_threads: int | None) -> Any:
        """Scores, transformed if the rule has a transform, and mapped by `change`; -inf becomes 0 and inf 1."""
        matrix = read_fitted(scores, self.column_names, self.mu.size, what="scores")
        threads = thread_count(n_threads)
        values, infinite = matrix.values, None
        if self.power is not None or np.isnan(self.mu).any():  # otherwise `change` handles infinite scores
            values, infinite = _finite(values)
        if self.power is not None:
            values = self.power.transform(values, n_threads=threads)
        result = changed_matrix(change, values, threads)
        if infinite is not None:
            result[infinite] = matrix.values[infinite] > 0.0
        return restored(matrix, result)

    def _gaussian(self, block: FloatArray, group: slice) -> None:
        gaussian_probabilities(block, self.mu[group].copy(), self.sigma[group].copy())  # copies can be written to

    def _linear(self, block: FloatArray, group: slice) -> None:
        sigma = self.sigma[group, None]
        block -= self.mu[group, None]
        block /= np.where(sigma == 0.0, 1.0, sigma)
        block[(sigma == 0.0) & np.isfinite(block)] = 0.0
        np.clip(block, 0.0, 1.0, out=block)

    def _gamma(self, block: FloatArray, group: slice) -> None:
        """Gamma CDF above the mean, rescaled to start at 0; a step if there is no variance."""
        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
            above = np.maximum(block, mu) / mu  # NaN stays NaN
            spread = 1.0 - special.gammaincc(shape, above * shape) / special.gammaincc(shape, shape)
            step = np.where(np.isnan(block), np.nan, block > mu)
        block[:] = np.where(sigma == 0.0, step, spread)

    def _gaussian_cdf(self, block: FloatArray, group: slice) -> None:
        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = special.ndtr((block - mu) / sigma)
        block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)

    def _gamma_cdf(self, block: FloatArray, group: slice) -> None:
        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
            spread = special.gammainc(shape, np.maximum(block, 0.0) / mu * shape)
        block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)


def fit_scaling(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    contamination: float | None = None,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    n_threads: int | None = None,
) -> ScoreScaling:
    """Fit the map from scores to probabilities that `outlier_probability` applies, for use on new scores.

    Parameters
    ----------
    scores, center, scale, method, contamination, trim, estimator, n_threads
        As in `outlier_probability`.

    Returns
    -------
    ScoreScaling

    Examples
    --------
    >>> from powerkern.outliers import fit_scaling
    >>> scaling = fit_scaling([0.1, 0.12, 0.15, 0.11, 0.13, 0.14, 0.16, 0.18, 0.45, 0.9])
    >>> scaling.mu, scaling.sigma
    (array([0.244]), array([0.04447807]))
    >>> scaling.probability([0.2, 0.3, 0.4])
    array([0. , 0.79198684, 0.9995474 ])
    """
    return _fitted(scores, center, scale, method, contamination, trim, estimator, n_threads)


def outlier_probability(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    contamination: float | None = None,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    n_threads: int | None = None,
) -> Any:
    r"""Probability of being an outlier for each score of a detector.

    The Gaussian rule [1]_ [2]_, with a location mu and a scale sigma of the scores s, is

    .. math:: P(s) = \max\Bigl(0, \operatorname{erf} \frac{s - \mu}{\sigma \sqrt 2}\Bigr):

    for scores above mu, the probability that an N(mu, sigma**2) variable is closer to mu than s; 0 below.

    By default these probabilities are not calibrated: they assume no share of outliers, and a quarter of normal scores
    without any outlier are above 1/2. Over 388 scorings of public and simulated data (2 to 20 % outliers, seven
    detectors), their mean Brier score is 0.151; the base rate for every score has 0.073. With the true share of
    outliers as `contamination` it is 0.066, with half or double that share 0.067 or 0.082.

    Parameters
    ----------
    scores : (n, p) or (n,) array-like
        Scores, the larger the more outlying; one column for each detector. NaN is missing, and stays NaN. A score of
        inf is a certain outlier, probability 1, and -inf a certain inlier, 0; both are left out where mu and sigma are
        found.
    center : {"mean", "median", "trimmed"}, float or (p,) array-like, default "mean"
        mu of "gaussian", "robust-gamma" and "yeo-johnson"; "trimmed": the mean without the floor(trim n) largest
        scores. A number is mu itself, in units of the scores, such as 1 for local outlier factors.
    scale : {"nmad", "niqr", "sd", "trimmed-sd"}, default "nmad"
        sigma of the same rules: 1.4826 times the median of ``|s - median(s)|`` (about the median, whatever the center),
        the interquartile range over 1.3490, or the standard deviation (with n), of all scores or without the
        floor(trim n) largest. About a center that is a number, standard deviations are root mean squares.
    method : str, default "gaussian"
        The rule:

        "gaussian"
            With `center` and `scale`. Mean and standard deviation make the classical rule of [1]_; mean and nMAD
            balance the errors best in the study of [2]_.
        "huber", "tukey"
            mu and sigma by Huber's proposal 2: ``sum psi((s - mu)/sigma) = 0`` with Huber's psi (k = 1.345) or Tukey's
            biweight (c = 4.685), and ``sum min(((s - mu)/sigma)**2, 1.5**2) = 0.7785 (n - 1)``. Median and 0 where
            nMAD is 0.
        "linear"
            ``(s - min)/(max - min)``, kept in [0, 1] for new scores.
        "gamma"
            ``max(0, (F(s) - F(mu))/(1 - F(mu)))``, F the gamma distribution with the mean and the variance (with n - 1)
            of the scores [1]_; for scores with a positive mean.
        "robust-gamma"
            The same with `center` and `scale` for mean and standard deviation.
        "yeo-johnson"
            Yeo-Johnson transform of the scores [3]_, then "gaussian": for scores that are skewed even without outliers.
    contamination : float, optional
        Expected share of outliers, above 0 and at most 1/2. In place of `scale` or the rule's own, sigma is then the
        scale at which the mean probability is this share, and mu is at most the quantile ``1 - 3 contamination``, so
        that there is such a scale.
    trim : float, default 0.1
        Fraction of the scores, the largest, that "trimmed" and "trimmed-sd" leave out; at least 0 and below 1.
    estimator : Estimator or str, default "rewml"
        How "yeo-johnson" fits its transform, any of `powerkern.fit`. By default robustly: maximum likelihood ("mle")
        takes outliers for skewness, and transforms them away.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.

    Returns
    -------
    ndarray or data frame
        Like `scores`: a data frame for a data frame, float32 for float32, else float64.

    Raises
    ------
    TypeError
        Scores that are not real numbers.
    ValueError
        Scores for "linear" whose range is beyond float64, a wrong shape, an unknown word, a center that is not finite,
        a fraction out of range.

    Warns
    -----
    UserWarning
        Listing the columns whose scale is 0 (their probabilities are the limit, 1 above mu and 0 elsewhere; 0
        throughout for "linear"), those without finite scores, and those the gamma rules cannot do; the latter two
        become NaN.

    See Also
    --------
    fit_scaling : the map, to apply to new scores.
    OutlierProbability : a detector with probabilities.

    Notes
    -----
    Pass the negative scores of detectors whose lower scores are more outlying, such as scikit-learn's.

    References
    ----------
    .. [1] H.-P. Kriegel, P. Kröger, E. Schubert, A. Zimek, "Interpreting and unifying outlier scores", SDM 2011, 13-24.
    .. [2] P. Röchner, H. O. Marques, R. J. G. B. Campello, A. Zimek, F. Rothlauf, "Robust statistical scaling of
       outlier scores: improving the quality of outlier probabilities for outliers", SISAP 2024.
    .. [3] J. Raymaekers, P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.

    Examples
    --------
    >>> from powerkern.outliers import outlier_probability
    >>> outlier_probability([1.0, 2.0, 3.0, 4.0, 5.0, 60.0], center="median").round(3)
    array([0. , 0. , 0. , 0.178, 0.5 , 1. ])
    """
    scaling = _fitted(scores, center, scale, method, contamination, trim, estimator, n_threads)
    return scaling.probability(scores, n_threads=n_threads)


def _fitted(
    scores: object,
    center: str | ArrayLike,
    scale: str,
    method: str,
    contamination: float | None,
    trim: float,
    estimator: Estimator | str,
    n_threads: int | None,
) -> ScoreScaling:
    as_choice("method", method, METHODS)
    as_choice("scale", scale, SCALES)
    share, estimator, given = contamination_of(contamination), as_estimator(estimator), scores
    scores, matrix = without_infinite(scores)
    rule = Rule(center_of(center, matrix.values.shape[1]), scale, trim_of(trim))
    threads = thread_count(n_threads)
    values, power = matrix.values, None
    locate = functools.partial(location_scale, scores, n_threads=threads)
    if method == "yeo-johnson":
        power = fit(scores, "yeo-johnson", estimator, n_threads=threads)
        # infinite in units of a robust scale: as far as numbers go
        values = np.nan_to_num(power.transform(values, n_threads=threads), copy=False, nan=np.nan)
        values_of = functools.partial(location_scale, values, n_threads=threads)
        mu, sigma = by_rule(values_of, rule.through(power), functools.partial(trimmed_moments, values, threads))
    elif method == "linear":
        mu, sigma = range_of(values, threads)
        refuse_overflow(sigma, matrix.names)
    elif method == "gamma":
        mu, sigma = locate("mean-sd")
        sigma = sigma * bessel_factor(values, 1, threads)
    elif method in PROPOSALS:
        mu, sigma = proposal2(locate, method)
    else:
        mu, sigma = by_rule(locate, rule, functools.partial(trimmed_moments, scores, threads))
    if share is not None:
        mu = np.minimum(mu, _quantile(values, 1.0 - _ROOM * share))
    scaling = ScoreScaling(method, rule.center, scale, mu, sigma, power, matrix.names, share)
    if share is not None:
        scaling.sigma = _calibrated_sigma(scaling, given, share, threads)
    warn_of(method, mu, scaling.sigma, matrix.names)
    return scaling


def _quantile(values: NDArray[Any], level: float) -> FloatArray:
    """Quantile of each column, the minimum for a level below 0; NaN for columns without values."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return np.asarray(np.nanquantile(values.astype(np.float64), max(level, 0.0), axis=0))


def _calibrated_sigma(scaling: ScoreScaling, scores: object, share: float, n_threads: int) -> FloatArray:
    """The largest sigma of each detector at which the mean probability is at least `share`; 0 if there is none.

    The mean probability falls as sigma grows. Bisection over the positive float64 numbers, in their order.
    """
    given = scaling.sigma
    below, above = np.zeros(given.size, dtype=np.uint64), np.full(given.size, _rank_of(np.inf) ^ _SIGN)
    defined = np.ones(given.size, dtype=bool)
    for _ in range(63):
        middle = below + (above - below) // np.uint64(2)
        scaling.sigma = np.maximum(middle, np.uint64(1)).view(np.float64)
        p = as_matrix(scaling.probability(scores, n_threads=n_threads)).values
        with np.errstate(invalid="ignore"):
            mean = np.nansum(p, axis=0, dtype=np.float64) / np.count_nonzero(~np.isnan(p), axis=0)
        defined = ~np.isnan(mean)
        below, above = np.where(mean >= share, middle, below), np.where(mean >= share, above, middle)
    return np.where(defined, below.view(np.float64), given)


# --- floating-point numbers as they are ordered ----------------------------------------------------------

_SIGN = np.uint64(1 << 63)


def _float_of(rank: NDArray[np.uint64]) -> FloatArray:
    """The floating-point numbers of these ranks."""
    return np.where(rank >= _SIGN, rank ^ _SIGN, ~rank).view(np.float64)


def _rank_of(number: float) -> np.uint64:
    bits = np.float64(number).view(np.uint64)
    return np.uint64(~bits if bits >= _SIGN else bits ^ _SIGN)


#: Rank of the smallest number, and of infinity.
_RANKS = (_rank_of(-np.finfo(np.float64).max), _rank_of(np.inf))


# --- infinite scores -------------------------------------------------------------------------------------


def _finite(values: NDArray[Any]) -> tuple[NDArray[Any], BoolArray | None]:
    """The values with NaN for infinite ones, and where these are; None where there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values, dtype=np.float64)):  # faster than a look at each
            return values, None
    infinite = np.isinf(values)
    return (np.where(infinite, np.nan, values), infinite) if infinite.any() else (values, None)


def without_infinite(scores: object) -> tuple[Any, Matrix]:
    """The scores with missing in place of infinite ones, and as a matrix."""
    matrix = as_matrix(scores, what="scores")
    values, infinite = _finite(matrix.values)
    if infinite is None:
        return scores, matrix
    kept = values[:, 0] if matrix.was_vector else values
    return frames.restored(scores, scores, kept), Matrix(values, matrix.names, matrix.was_vector)
