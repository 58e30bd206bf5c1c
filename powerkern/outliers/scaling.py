"""Convert outlier scores to probabilities of being an outlier."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import map_blocks
from powerkern._engine.threads import thread_count
from powerkern._estimators.base import Estimator
from powerkern._estimators.bisection import largest_float
from powerkern._estimators.estimators import as_estimator
from powerkern._fit.fit import fit
from powerkern._input import lazy_scipy_special as special
from powerkern._input.arguments import as_number
from powerkern._input.arrays import Matrix, as_matrix
from powerkern._input.reading import read_fitted, wrap_like_input
from powerkern._results.power_fit import PowerFit
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.elementary.erf import gaussian_probabilities
from powerkern.outliers.rules import CHOOSING, METHODS, estimate_moments, make_rule, warn_about_columns

#: With `contamination`, mu is lowered until at least the fraction ``_ROOM * contamination`` of the scores lies above
#: it. With _ROOM below 2, few probabilities differ from 0 and 1. With _ROOM above 4, probabilities of good detectors
#: are too flat.
_ROOM = 3.0
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(eq=False, repr=False)
class ScoreScaling:
    """A map from outlier scores to probabilities, fitted by `fit_scaling` or made from known mu and sigma.

    Attributes
    ----------
    method, scale : str
        Method and scale of the rule; see `outlier_probability`.
    center : str or (p,) ndarray
        Center of the rule: a word, or a number for each detector.
    contamination : float or None
        Expected fraction of outliers to which `sigma` is calibrated; None if it is not calibrated.
    mu, sigma : (p,) ndarray
        Location and scale of the scores of each detector: minimum and range for "linear"; mean and standard deviation
        (with divisor n - 1) for "gamma"; location and scale of the transformed scores for "yeo-johnson". NaN for a
        detector without finite scores.
    power : PowerFit or None
        The transform of "yeo-johnson".
    column_names : list of str or None
        Names of the detectors, if the scores had names.
    """

    method: str
    center: str | FloatArray
    scale: str
    mu: FloatArray
    sigma: FloatArray
    power: PowerFit | None = None
    column_names: list[str] | None = None
    contamination: float | None = None

    def __repr__(self) -> str:
        rule = f", center={self.center!r}" if self.method in CHOOSING else ""
        if self.contamination is not None:
            rule += f", contamination={self.contamination!r}"
        elif rule:
            rule += f", scale={self.scale!r}"
        return f"ScoreScaling(method={self.method!r}{rule}, detectors={self.mu.size})"

    def probability(self, scores: object, *, n_threads: int | None = None) -> Any:
        """Return the probabilities of being an outlier.

        Parameters
        ----------
        scores : (n, p) or (n,) array-like
            Scores of the p detectors, from the fitted data or from new data. NaN stays NaN, -inf becomes 0, and inf
            becomes 1.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray or data frame
            A data frame if `scores` is a data frame; float32 if `scores` is float32, otherwise float64.
        """
        return self._map_scores(scores, _MAPS[self.method].probability, n_threads)

    def cdf(self, scores: object, *, n_threads: int | None = None) -> Any:
        """Return the CDF of the scores under the fitted rule; arguments and result are as in `probability`.

        The distribution is uniform for "linear", gamma for the gamma rules, normal after the transform for
        "yeo-johnson", and normal for all other rules. If sigma is 0, the CDF is a step at mu, or 0 for "linear".
        `powerkern.plot.score_plot` draws the density.

        Examples
        --------
        >>> from powerkern.outliers import fit_scaling
        >>> fit_scaling([1.0, 2.0, 3.0, 4.0, 5.0], center="median").cdf([1.0, 3.0])
        array([0.08867178, 0.5 ])
        """
        return self._map_scores(scores, _MAPS[self.method].cdf, n_threads)

    def score_at(self, probability: float) -> FloatArray:
        """Return, for each detector, the largest float64 score whose probability is at most `probability`.

        This inverts the map. `probability` is between 0 and 1. The result is NaN for a detector without finite scores.

        Examples
        --------
        >>> from powerkern.outliers import fit_scaling
        >>> fit_scaling([1.0, 2.0, 3.0, 4.0, 5.0], center="median").score_at(0.95)
        array([5.90584695])
        """
        probability = as_number("probability", probability, "[0, 1]")

        def is_within(scores: FloatArray) -> BoolArray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about scores outside the range of the transform
                return ~np.asarray(self.probability(scores[None, :], n_threads=1)[0] > probability)

        found = largest_float(is_within, -np.finfo(np.float64).max, self.mu.size)
        return np.where(np.isnan(self.mu), np.nan, found)

    def _map_scores(self, scores: object, change: _Map, n_threads: int | None) -> Any:
        """Apply the power transform, if the rule has one, and then the function `change` to blocks of scores.

        -inf becomes 0 and inf becomes 1. Other arguments and the result are as in `probability`.
        """
        matrix = read_fitted(scores, self.column_names, self.mu.size, what="scores")
        threads = thread_count(n_threads)
        values, infinite = matrix.values, None
        if self.power is not None or np.isnan(self.mu).any():  # otherwise `change` handles infinite scores
            values, infinite = _mask_infinite(values)
        if self.power is not None:
            values = self.power.transform(values, n_threads=threads)

        def map_columns(block: FloatArray, group: slice) -> None:
            change(block, self.mu[group, None], self.sigma[group, None])

        result = map_blocks(map_columns, values, threads)
        if infinite is not None:
            result[infinite] = matrix.values[infinite] > 0.0
        return wrap_like_input(matrix, result)


# --- maps of the rules; each modifies the columns of X, which are the rows of a block, in place -----------------

_Map = Callable[[FloatArray, FloatArray, FloatArray], None]


def _gaussian(block: FloatArray, mu: FloatArray, sigma: FloatArray) -> None:
    """Replace scores by the probabilities of the Gaussian rule.

    Row j of `block`, (p, n), holds the scores of detector j. `mu` and `sigma`, (p, 1), are their location and scale.
    """
    gaussian_probabilities(block, mu[:, 0].copy(), sigma[:, 0].copy())  # copies can be written to


def _gaussian_cdf(block: FloatArray, mu: FloatArray, sigma: FloatArray) -> None:
    """Replace scores by the normal CDF, or by a step at mu if sigma is 0; see `_gaussian`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = special.ndtr((block - mu) / sigma)
    block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)


def _linear(block: FloatArray, mu: FloatArray, sigma: FloatArray) -> None:
    """Replace scores s by ``(s - mu)/sigma``, clipped to [0, 1]; finite scores become 0 if sigma is 0."""
    block -= mu
    block /= np.where(sigma == 0.0, 1.0, sigma)
    block[(sigma == 0.0) & np.isfinite(block)] = 0.0
    np.clip(block, 0.0, 1.0, out=block)


def _gamma(block: FloatArray, mu: FloatArray, sigma: FloatArray) -> None:
    """Replace scores by ``max(0, (F(s) - F(mu))/(1 - F(mu)))``, with F the gamma CDF, or by a step if sigma is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
        above = np.maximum(block, mu) / mu  # NaN stays NaN
        spread = 1.0 - special.gammaincc(shape, above * shape) / special.gammaincc(shape, shape)
        step = np.where(np.isnan(block), np.nan, block > mu)
    block[:] = np.where(sigma == 0.0, step, spread)


def _gamma_cdf(block: FloatArray, mu: FloatArray, sigma: FloatArray) -> None:
    """Replace scores by the gamma CDF, or by a step at mu if sigma is 0; see `_gaussian`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shape = np.where(mu > 0.0, (mu / sigma) ** 2, np.nan)
        spread = special.gammainc(shape, np.maximum(block, 0.0) / mu * shape)
    block[:] = np.where((sigma == 0.0) & ~np.isnan(block), block >= mu, spread)


class _Maps(NamedTuple):
    """The functions of a rule that map scores to probabilities and to values of the CDF."""

    probability: _Map
    cdf: _Map


_MAPS = dict.fromkeys(METHODS, _Maps(_gaussian, _gaussian_cdf)) | {
    "linear": _Maps(_linear, _linear),
    "gamma": _Maps(_gamma, _gamma_cdf),
    "robust-gamma": _Maps(_gamma, _gamma_cdf),
}


def fit_scaling(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    contamination: float | None = None,
    trim: float = 0.1,
    estimator: Estimator | str = "robust",
    n_threads: int | None = None,
) -> ScoreScaling:
    """Fit the map from scores to probabilities that `outlier_probability` applies, for use on new scores.

    Errors and warnings are as in `outlier_probability`.

    Parameters
    ----------
    scores : (n, p) or (n,) array-like
        Scores, the larger the more outlying; one column for each detector.
    center, scale, method, contamination, trim, estimator, n_threads
        As in `outlier_probability`.

    Returns
    -------
    ScoreScaling
        Apply its methods ``probability``, ``cdf`` and ``score_at`` to new scores.

    Examples
    --------
    >>> from powerkern.outliers import fit_scaling
    >>> scaling = fit_scaling([0.1, 0.12, 0.15, 0.11, 0.13, 0.14, 0.16, 0.18, 0.45, 0.9])
    >>> scaling.mu, scaling.sigma
    (array([0.244]), array([0.04447807]))
    >>> scaling.probability([0.2, 0.3, 0.4])
    array([0. , 0.79198684, 0.9995474 ])
    """
    return fit_scaling_to_matrix(
        as_matrix(scores, what="scores"),
        center,
        scale,
        method,
        contamination=contamination,
        trim=trim,
        estimator=estimator,
        n_threads=n_threads,
    )


def fit_scaling_to_matrix(
    scores: Matrix,
    center: str | ArrayLike,
    scale: str,
    method: str,
    *,
    contamination: float | None,
    trim: float,
    estimator: Estimator | str,
    n_threads: int | None,
) -> ScoreScaling:
    """Fit the map of `fit_scaling` to a matrix of scores, whose labels are used in messages.

    Parameters
    ----------
    scores : Matrix
        The scores, (n, p).
    center, scale, method, contamination, trim, estimator, n_threads
        As in `outlier_probability`.
    """
    fraction = None if contamination is None else as_number("contamination", contamination, "(0, 0.5]")
    matrix = scores._replace(values=_mask_infinite(scores.values)[0])
    rule = make_rule(center, scale, method, trim, matrix.values.shape[1], matrix.names)
    threads, estimator = thread_count(n_threads), as_estimator(estimator)
    power, used, measured = None, rule, matrix
    if method == "yeo-johnson":
        values = matrix.values[:, 0] if matrix.was_vector else matrix.values
        power = fit(values, "yeo-johnson", estimator, column_names=matrix.names, n_threads=threads)
        # values that overflow in units of a robust scale become the largest float64
        transformed = np.nan_to_num(power.transform(matrix.values, n_threads=threads), copy=False, nan=np.nan)
        measured, used = matrix._replace(values=transformed), rule.for_transformed_scores(power)
    mu, sigma = estimate_moments(method, used, measured, threads)
    if fraction is not None:
        mu = np.minimum(mu, _quantile(measured.values, 1.0 - _ROOM * fraction))
    scaling = ScoreScaling(method, rule.center, scale, mu, sigma, power, matrix.names, fraction)
    if fraction is not None:
        scaling.sigma = _calibrate_sigma(scaling, scores.values, fraction, threads)
    warn_about_columns(method, mu, scaling.sigma, matrix.names)
    return scaling


def outlier_probability(
    scores: object,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    contamination: float | None = None,
    trim: float = 0.1,
    estimator: Estimator | str = "robust",
    n_threads: int | None = None,
) -> Any:
    r"""Return the probability of being an outlier for each score of a detector.

    The Gaussian rule [1]_ [2]_, with a location mu and a scale sigma of the scores s, is

    .. math:: P(s) = \max\Bigl(0, \operatorname{erf} \frac{s - \mu}{\sigma \sqrt 2}\Bigr).

    For scores above mu, this is the probability that an N(mu, sigma**2) variable is closer to mu than s is. For scores
    below mu, it is 0.

    By default these probabilities are not calibrated: the fraction of outliers is unknown, and a quarter of normal
    scores without any outlier get a probability above 1/2. Pass `contamination` to calibrate them. The user guide
    compares Brier scores.

    Parameters
    ----------
    scores : (n, p) or (n,) array-like
        Scores, the larger the more outlying; one column for each detector. NaN is missing and stays NaN. A score of inf
        has probability 1 and a score of -inf has probability 0; both are left out of the estimation of mu and sigma.
    center : {"mean", "median", "trimmed"}, float or (p,) array-like, default "mean"
        Estimator of mu for "gaussian", "robust-gamma" and "yeo-johnson". "trimmed" is the mean without the
        floor(trim n) largest scores. A number is mu itself, in units of the scores, such as 1 for local outlier
        factors.
    scale : {"nmad", "niqr", "sd", "trimmed-sd"}, default "nmad"
        Estimator of sigma for the same rules. "nmad" is 1.4826 times the median of ``|s - median(s)|``, for any
        `center`. "niqr" is the interquartile range over 1.3490. "sd" is the standard deviation (with divisor n) of all
        scores, and "trimmed-sd" is the standard deviation without the floor(trim n) largest scores. If `center` is a
        number, standard deviations are root mean squares about it.
    method : str, default "gaussian"
        The rule:

        "gaussian"
            The rule above, with `center` and `scale`. Mean and standard deviation give the classical rule of [1]_. Mean
            and nMAD balance the errors best in the study of [2]_.
        "huber", "tukey"
            mu and sigma by Huber's proposal 2: ``sum psi((s - mu)/sigma) = 0`` with Huber's psi (k = 1.345) or Tukey's
            biweight (c = 4.685), and ``sum min(((s - mu)/sigma)**2, 1.5**2) = 0.7785 (n - 1)``. If nMAD is 0, mu is the
            median and sigma is 0.
        "linear"
            ``(s - min)/(max - min)``, clipped to [0, 1] for new scores.
        "gamma"
            ``max(0, (F(s) - F(mu))/(1 - F(mu)))``, where F is the gamma distribution with the mean and the variance
            (divisor n - 1) of the scores [1]_. The mean must be positive.
        "robust-gamma"
            Like "gamma", with `center` and `scale` in place of mean and standard deviation.
        "yeo-johnson"
            A Yeo-Johnson transform of the scores [3]_, followed by "gaussian". It suits scores that are skewed even
            without outliers.
    contamination : float, optional
        Expected fraction of outliers, above 0 and at most 1/2. If given, sigma is the scale at which the mean
        probability equals this fraction; `scale` and the scale of the rule are not used. mu is at most the quantile
        ``1 - 3 contamination``, so that such a scale exists.
    trim : float, default 0.1
        Fraction of the largest scores that "trimmed" and "trimmed-sd" leave out; at least 0 and below 1.
    estimator : Estimator or str, default "robust"
        Estimator of lambda for "yeo-johnson", any of `powerkern.fit`. The default is robust because maximum
        likelihood ("mle") mistakes outliers for skewness and transforms them away.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.

    Returns
    -------
    ndarray or data frame
        A data frame if `scores` is a data frame; float32 if `scores` is float32, otherwise float64.

    Raises
    ------
    TypeError
        If scores are not real numbers.
    ValueError
        If the range of scores for "linear" overflows, a shape is wrong, an option is unknown, a center is not finite,
        or a fraction is out of range.

    Warns
    -----
    UserWarning
        A warning lists columns whose scale is 0, columns without finite scores, and columns for which the gamma rules
        are undefined. If the scale is 0, the probability is 1 above mu and 0 elsewhere ("linear": 0 throughout). All
        other columns in the list become NaN.

    See Also
    --------
    fit_scaling : fit the map, to apply it to new scores.
    OutlierProbability : a detector that returns probabilities.

    Notes
    -----
    Low scores of scikit-learn's detectors are outlying. Pass the negative of such scores.

    References
    ----------
    .. [1] H.-P. Kriegel, P. Kröger, E. Schubert, A. Zimek, "Interpreting and unifying outlier scores", SDM 2011, 13-24.
    .. [2] P. Röchner, H. O. Marques, R. J. G. B. Campello, A. Zimek, F. Rothlauf, "Robust statistical scaling of
       outlier scores: improving the quality of outlier probabilities for outliers", SISAP 2024.
    .. [3] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> from powerkern.outliers import outlier_probability
    >>> outlier_probability([1.0, 2.0, 3.0, 4.0, 5.0, 60.0], center="median").round(3)
    array([0. , 0. , 0. , 0.178, 0.5 , 1. ])
    """
    scaling = fit_scaling(
        scores, center, scale, method, contamination=contamination, trim=trim, estimator=estimator, n_threads=n_threads
    )
    return scaling.probability(scores, n_threads=n_threads)


def _quantile(values: NDArray[Any], level: float) -> FloatArray:
    """Return the quantile of each column at `level`, (p,); a negative level counts as 0, and NaN values are ignored."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return np.asarray(np.nanquantile(values.astype(np.float64), max(level, 0.0), axis=0))


def _calibrate_sigma(scaling: ScoreScaling, scores: NDArray[Any], fraction: float, n_threads: int) -> FloatArray:
    """Return, for each detector, the largest sigma at which the mean probability is at least `fraction`.

    The mean probability decreases with sigma. The result is 0 if no sigma makes it large enough.

    Parameters
    ----------
    scaling : ScoreScaling
        The scaling to calibrate; its `sigma` is overwritten during the search.
    scores : (n, p) ndarray
        The scores.
    fraction : float
        Expected fraction of outliers.
    n_threads : int
        Maximum number of threads.
    """
    given = scaling.sigma

    def mean_probability(sigma: FloatArray) -> FloatArray:
        scaling.sigma = np.maximum(sigma, _SMALLEST)
        p = as_matrix(scaling.probability(scores, n_threads=n_threads)).values
        with np.errstate(invalid="ignore"):
            return np.asarray(np.nansum(p, axis=0, dtype=np.float64) / np.count_nonzero(~np.isnan(p), axis=0))

    found = largest_float(lambda sigma: mean_probability(sigma) >= fraction, 0.0, given.size)
    return np.where(np.isnan(mean_probability(found)), given, found)


# --- infinite scores -------------------------------------------------------------------------------------


def _mask_infinite(values: NDArray[Any]) -> tuple[NDArray[Any], BoolArray | None]:
    """Return a copy with NaN in place of infinite values, and a mask of the infinite values.

    If there are none, return `values` itself and None.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values, dtype=np.float64)):  # faster than testing each value
            return values, None
    infinite = np.isinf(values)
    return (np.where(infinite, np.nan, values), infinite) if infinite.any() else (values, None)
