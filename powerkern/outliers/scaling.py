"""Outlier scores to probabilities of being an outlier."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import changed_matrix
from powerkern._engine.by_column import column_figures
from powerkern._engine.threads import thread_count
from powerkern._estimators.estimators import Estimator, as_estimator
from powerkern._fit.fit import PowerFit, fit
from powerkern._input import frames
from powerkern._input.arrays import Matrix, as_choice, as_matrix, check_n_features, column_label, column_labels, is_real
from powerkern._input.messages import warn
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.elementary.erf import gaussian_probabilities
from powerkern.location import LocationScale, location_scale
from powerkern.outliers.distances import bessel_factor

METHODS = ("gaussian", "huber", "tukey", "linear", "gamma", "robust-gamma", "yeo-johnson")
#: Those that have a choice of center and scale.
_CHOOSING = ("gaussian", "robust-gamma", "yeo-johnson")
_CENTERS = ("mean", "median", "trimmed")
#: What `location_scale` calls the scales; that of "trimmed-sd" is taken of what trimming leaves.
SCALES = {"sd": "sd", "nmad": "mad", "niqr": "niqr", "trimmed-sd": "sd"}
#: Its names for proposal 2 with Huber's T and with Tukey's biweight, and their constants.
PROPOSALS: dict[str, tuple[str, dict[str, Any]]] = {
    "huber": ("huber-proposal2", {"k": 1.5, "k_location": 1.345}),
    "tukey": ("bisquare-proposal2", {"k": 1.5, "c": 4.685}),
}


class ScoreScaling:
    """A map from outlier scores to probabilities, made from scores by `fit_scaling`.

    Attributes
    ----------
    method, scale : str
        The rule.
    center : str or (p,) ndarray
        Its center: a word, or what was given.
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
    ) -> None:
        self.method = method
        self.center = center
        self.scale = scale
        self.mu = mu
        self.sigma = sigma
        self.power = power
        self.column_names = column_names

    def __repr__(self) -> str:
        rule = f", center={self.center!r}, scale={self.scale!r}" if self.method in _CHOOSING else ""
        return f"ScoreScaling(method={self.method!r}{rule}, detectors={self.mu.size})"

    def probability(self, scores: object, *, n_threads: int | None = None) -> Any:
        """Probabilities of being an outlier.

        Parameters
        ----------
        scores : (n, p) or (n,) array-like
            Scores of the detectors the map was made for, new ones or the same. NaN stays NaN; -inf becomes 0 and inf 1.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray or data frame
            Like `scores`: a data frame for a data frame, float32 for float32, else float64.

        Raises
        ------
        ValueError
            Another number of detectors than the map was made for.
        """
        gammas = dict.fromkeys(("gamma", "robust-gamma"), self._gamma)
        change = {"linear": self._linear, **gammas}.get(self.method, self._gaussian)
        return self._mapped(scores, change, n_threads)

    def cdf(self, scores: object, *, n_threads: int | None = None) -> Any:
        """Distribution function of the scores as the rule takes them to be: the fraction of inliers up to each score.

        Normal, for "linear" uniform, for the gamma rules gamma, for "yeo-johnson" normal after the transform. It is
        what ``ks_distance(scores, distribution=scaling)`` compares scores with, and `powerkern.plot.score_plot` draws.

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
        """The score of each detector up to which the probability is at most this one: the map, the other way.

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
        if not is_real(probability) or not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be from 0 to 1, got {probability!r}")
        below, above = (np.full(self.mu.size, rank) for rank in _RANKS)
        for _ in range(64):  # halves, of all float64 as they are ordered
            middle = below + (above - below) // np.uint64(2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of scores that no transform reaches
                beyond = self.probability(_float_of(middle)[None, :], n_threads=1)[0] > probability
            below, above = np.where(beyond, below, middle), np.where(beyond, middle, above)
        return np.where(np.isnan(self.mu), np.nan, _float_of(below))

    def _mapped(self, scores: object, change: Callable[[FloatArray, slice], None], n_threads: int | None) -> Any:
        """The scores, transformed where the rule says so, as `change` makes them; -inf becomes 0 and inf 1."""
        part = frames.columns_named(scores, self.column_names)
        matrix = as_matrix(part, what="scores")
        check_n_features(matrix.values, self.mu.size, matrix.names, self.column_names)
        threads = thread_count(n_threads)
        values, infinite = matrix.values, None
        if self.power is not None or np.isnan(self.mu).any():  # else `change` knows what to make of infinite scores
            values, infinite = _finite(values)
        if self.power is not None:
            values = self.power.transform(values, n_threads=threads)
        result = changed_matrix(change, values, threads)
        if infinite is not None:
            result[infinite] = matrix.values[infinite] > 0.0
        return frames.restored(scores, part, result[:, 0] if matrix.was_vector else result)

    def _gaussian(self, block: FloatArray, group: slice) -> None:
        gaussian_probabilities(block, self.mu[group].copy(), self.sigma[group].copy())  # copies can be written to

    def _linear(self, block: FloatArray, group: slice) -> None:
        sigma = self.sigma[group, None]
        block -= self.mu[group, None]
        block /= np.where(sigma == 0.0, 1.0, sigma)
        block[(sigma == 0.0) & np.isfinite(block)] = 0.0
        np.clip(block, 0.0, 1.0, out=block)

    def _gamma(self, block: FloatArray, group: slice) -> None:
        """Cumulative gamma distribution above its mean; its limit, a step, where there is no variance."""
        from scipy.special import gammainc  # costs a third of the time to import powerkern

        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
            at_mean = gammainc(shape, shape)
            above = np.maximum(block, mu) / mu  # NaN stays NaN
            spread = (gammainc(shape, above * shape) - at_mean) / (1.0 - at_mean)
            step = np.where(np.isnan(block), np.nan, block > mu)
        block[:] = np.where(sigma == 0.0, step, spread)

    def _gaussian_cdf(self, block: FloatArray, group: slice) -> None:
        from scipy.special import ndtr

        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = ndtr((block - mu) / sigma)
        block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)

    def _gamma_cdf(self, block: FloatArray, group: slice) -> None:
        from scipy.special import gammainc

        mu, sigma = self.mu[group, None], self.sigma[group, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
            spread = gammainc(shape, np.maximum(block, 0.0) / mu * shape)
        block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)


def fit_scaling(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    n_threads: int | None = None,
) -> ScoreScaling:
    """Make the map from scores to probabilities that `outlier_probability` applies, for use on new scores.

    Nothing has to be known or assumed about the fraction of outliers.

    Parameters
    ----------
    scores, center, scale, method, trim, estimator, n_threads
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
    return _fitted(scores, center, scale, method, trim, estimator, n_threads)


def outlier_probability(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    n_threads: int | None = None,
) -> Any:
    r"""Outlier scores as probabilities of being an outlier, without assuming a fraction of outliers.

    By the Gaussian rule [1]_ [2]_, with a location mu and a scale sigma of the scores s,

    .. math:: P(s) = \max\Bigl(0, \operatorname{erf} \frac{s - \mu}{\sigma \sqrt 2}\Bigr),

    which is the probability of an N(mu, sigma**2) variable to be closer to mu than s, for scores above mu, and 0 below.

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
    fit_scaling : the same as a map to apply to new scores.
    OutlierProbability : a detector with probabilities.

    Notes
    -----
    Detectors of which lower scores are more outlying, such as those of scikit-learn: pass the negative scores.

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
    scaling = _fitted(scores, center, scale, method, trim, estimator, n_threads)
    return scaling.probability(scores, n_threads=n_threads)


def _fitted(
    scores: object,
    center: str | ArrayLike,
    scale: str,
    method: str,
    trim: float,
    estimator: Estimator | str,
    n_threads: int | None,
) -> ScoreScaling:
    as_choice("method", method, METHODS)
    as_choice("scale", scale, SCALES)
    estimator = as_estimator(estimator)
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
        mu, sigma = by_rule(values_of, rule.through(power), functools.partial(_trimmed_moments, values, threads))
    elif method == "linear":
        mu, sigma = _range(values, threads)
        refuse_overflow(sigma, matrix.names)
    elif method == "gamma":
        mu, sigma = locate("mean-sd")
        sigma = sigma * bessel_factor(values, 1, threads)
    elif method in PROPOSALS:
        mu, sigma = proposal2(locate, method)
    else:
        mu, sigma = by_rule(locate, rule, functools.partial(_trimmed_moments, scores, threads))
    warn_of(method, mu, sigma, matrix.names)
    return ScoreScaling(method, rule.center, scale, mu, sigma, power, matrix.names)


# --- floating-point numbers as they are ordered ----------------------------------------------------------

_SIGN = np.uint64(1 << 63)


def _float_of(rank: NDArray[np.uint64]) -> FloatArray:
    """Floating-point numbers by their rank."""
    return np.where(rank >= _SIGN, rank ^ _SIGN, ~rank).view(np.float64)


def _rank_of(number: float) -> np.uint64:
    bits = np.float64(number).view(np.uint64)
    return np.uint64(~bits if bits >= _SIGN else bits ^ _SIGN)


#: That of the smallest number, and one beyond that of the largest.
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
    """The scores, missing in place of infinite, and what they hold."""
    matrix = as_matrix(scores, what="scores")
    values, infinite = _finite(matrix.values)
    if infinite is None:
        return scores, matrix
    kept = values[:, 0] if matrix.was_vector else values
    return frames.restored(scores, scores, kept), Matrix(values, matrix.names, matrix.was_vector)


# --- center and scale ------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """Center, a word or numbers, and scale; the fraction of the scores that some of them leave out."""

    center: str | FloatArray
    scale: str
    trim: float

    def through(self, power: PowerFit) -> Rule:
        """The rule for transformed scores."""
        if isinstance(self.center, str):
            return self
        return self._replace(center=power.transform(self.center[None, :])[0])


def center_of(center: str | ArrayLike, p: int) -> str | FloatArray:
    """A center, checked: a word, or a number for each of p detectors."""
    if isinstance(center, str):
        return as_choice("center", center, _CENTERS)
    given = np.asarray(center)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (p,)) or not np.isfinite(given).all():
        words = ", ".join(map(repr, _CENTERS))
        raise ValueError(f"center must be one of {words}, a finite number or one for each detector, got {center!r}")
    return np.full(p, given, dtype=np.float64)


def trim_of(trim: object) -> float:
    """A fraction to trim, checked."""
    if not is_real(trim) or not 0.0 <= trim < 1.0:
        raise ValueError(f"trim must be a fraction, at least 0 and below 1, got {trim!r}")
    return float(trim)


def by_rule(
    locate: Callable[..., LocationScale], rule: Rule, trimmed_moments: Callable[[float], LocationScale]
) -> tuple[FloatArray, FloatArray]:
    """Location and scale by two words, or about a given center; `locate` is `location_scale` of the scores."""
    given = not isinstance(rule.center, str)
    center = "mean" if given else rule.center
    constants: dict[str, Any] = {"fraction": rule.trim, "sides": "upper"} if center == "trimmed" else {}
    mu, sigma = locate(f"{center}-{SCALES[rule.scale]}", **constants)
    mean = mu
    if rule.scale == "trimmed-sd":
        mean, sigma = trimmed_moments(rule.trim)
    if not given:
        return mu, sigma
    known = ~np.isnan(mu)
    fixed = np.where(known, rule.center, np.nan)
    return fixed, np.hypot(sigma, mean - fixed) if rule.scale.endswith("sd") else sigma


def _trimmed_moments(scores: Any, n_threads: int, trim: float) -> LocationScale:
    """Mean and standard deviation of each column without its largest scores."""
    values = np.array(as_matrix(scores).values, dtype=np.float64)
    order = np.argsort(values, axis=0)  # NaN last
    n = np.count_nonzero(~np.isnan(values), axis=0)
    kept = n - np.floor(trim * n + 1e-9).astype(np.int64)
    rank = np.arange(values.shape[0])[:, None]
    np.put_along_axis(values, order, np.where(rank < kept, np.take_along_axis(values, order, 0), np.nan), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without scores the caller has been told
        return location_scale(values, "mean-sd", n_threads=n_threads)


def proposal2(locate: Callable[..., LocationScale], method: str) -> tuple[FloatArray, FloatArray]:
    """Huber's proposal 2, started from median and nMAD, which must not be 0."""
    name, constants = PROPOSALS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the other call says the same
        start, spread = locate("median-mad")
    mu, sigma = locate(name, **constants)
    return np.where(spread == 0.0, start, mu), np.where(spread == 0.0, 0.0, sigma)


def _range(values: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Minimum of each column, and how far the maximum is from it."""

    def ends(block: FloatArray, group: slice) -> FloatArray:
        low = np.fmin.reduce(block, axis=1)
        with np.errstate(over="ignore"):
            return np.column_stack([low, np.fmax.reduce(block, axis=1) - low])

    mu, sigma = column_figures(ends, values, 2, n_threads).T
    return mu, sigma


def refuse_overflow(ranges: FloatArray, names: list[str] | None) -> None:
    """Refuse scores whose range is infinite."""
    if np.isinf(ranges).any():
        j = int(np.argmax(np.isinf(ranges)))
        raise ValueError(
            f"{column_label(j, names)}: the range of the scores is beyond the range of float64; divide them by 4"
        )


def warn_of(method: str, mu: FloatArray, sigma: FloatArray, names: list[str] | None) -> None:
    """One warning of the detectors whose probabilities are not what they should be."""
    flat = "0 throughout" if method == "linear" else "1 above the location and 0 elsewhere"
    troubles = [(sigma == 0.0, f"the scores have scale 0: probabilities are {flat}")]
    if method == "linear":  # the others have been told by location_scale
        troubles.append((np.isnan(mu), "no scores"))
    if method.endswith("gamma"):
        troubles.append(((mu <= 0.0) & (sigma > 0.0), "the gamma rule needs a positive mean: probabilities are NaN"))
        troubles.append((np.isnan(sigma) & ~np.isnan(mu), "the gamma rule needs two scores: probabilities are NaN"))
    parts = [f"{column_labels(np.flatnonzero(has), names)}: {what}" for has, what in troubles if has.any()]
    if parts:
        warn("; ".join(parts))
