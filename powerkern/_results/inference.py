"""Likelihood profiles, intervals and tests of lambda, for all kinds of fits: by column, regression, joint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._input import lazy_scipy_special as special
from powerkern._input.alignment import align_columns
from powerkern._input.arrays import as_choice, as_reals, is_real
from powerkern._input.frames import by_name
from powerkern._input.messages import shown
from powerkern._results.display import SHOWN, format_table, html_page, label_cells, short_repr
from powerkern._typing import FloatArray

#: Convenient powers, the most convenient first, in the order of R's car (which has .33 for 1/3).
CONVENIENT = (1.0, 0.0, -1.0, 1.0 / 2.0, 1.0 / 3.0, -1.0 / 2.0, -1.0 / 3.0, 2.0, -2.0)

#: Hypotheses that summaries test: lambda = 0 (the logarithm) and lambda = 1 (no transform).
TESTED = (0.0, 1.0)

#: Kinds of confidence intervals: by the profile likelihood, or by the curvature of the likelihood.
Method = Literal["profile", "wald"]


class Interval(NamedTuple):
    """Intervals, one per column: pandas series if columns have names and pandas is installed, otherwise arrays."""

    low: FloatArray
    high: FloatArray

    def __repr__(self) -> str:
        """Return a table of the first intervals if columns have names, otherwise the two arrays, shortened if long."""
        if not self._is_named:
            return short_repr(self)
        return "\n".join(["Interval", format_table(self._first()), *self._note_on_others()])

    def _repr_html_(self) -> str:
        """Return a table of the first intervals as HTML, for notebooks."""
        return html_page("Interval", [self._first().items()], self._note_on_others())

    @property
    def _is_named(self) -> bool:
        return hasattr(self.low, "index") and np.ndim(self.low) == 1

    def _first(self) -> dict[str, NDArray[Any]]:
        """Return the entries of a table of the first intervals: column names and the two ends."""
        low, high = (np.ravel(np.asarray(end, dtype=np.float64))[:SHOWN] for end in self)
        labels = cast(Any, self.low).index[: low.size] if self._is_named else range(low.size)
        return {"column": label_cells(labels), "low": low, "high": high}

    def _note_on_others(self) -> list[str]:
        """Return a line with the number of intervals that are not shown, or an empty list if all are shown."""
        left = np.size(self.low) - SHOWN
        return [f"... and {left} more: see low, high, to_frame()"] if left > 0 else []

    def to_frame(self) -> Any:
        """Return the intervals as a pandas data frame with columns "low" and "high"."""
        import pandas

        return pandas.DataFrame(self._asdict())


def name_intervals(interval: Interval, names: list[str] | None) -> Interval:
    """Convert the ends of intervals to pandas series indexed by `names`; return arrays unchanged if `names` is None."""
    return Interval(by_name(interval.low, names), by_name(interval.high, names))


class LikelihoodRatio(NamedTuple):
    """A likelihood ratio test, one entry per column.

    Attributes
    ----------
    statistic : ndarray
        ``2 (nll(lmbda0) - nll)``, at least 0; NaN if lambda does not maximise the likelihood.
    df : int
        Degrees of freedom: the number of lambdas that the hypothesis specifies.
    pvalue : ndarray
        Probability that a chi-square variable with `df` degrees of freedom exceeds the statistic.
    """

    statistic: FloatArray
    df: int
    pvalue: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


class Likelihood(Protocol):
    """Protocol of the likelihood of a fit's data as a function of lambda."""

    def at(self, lmbda: FloatArray) -> ArrayLike:
        """Return the negative log-likelihood at `lmbda`, a scalar array or one number per column, (p,)."""

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of the profile interval of each column, (p, 2).

        At the ends, the log-likelihood per observation is `drop`, (p,), below its maximum.
        """


class LikelihoodOptimum(NamedTuple):
    """The fitted lambdas with their likelihoods and standard errors, as tests and intervals need them."""

    lmbda: FloatArray
    #: Negative log-likelihood of each column, or of all columns together; NaN where lambda does not minimise it.
    nll: FloatArray
    #: Standard error of lambda.
    se: FloatArray
    #: Number of observations, or their weight, of each column or of all columns together.
    n_obs: FloatArray
    #: Number of lambdas that a hypothesis specifies, and the noun for the unit to which a lambda belongs ("column").
    df: int = 1
    each: str = "column"
    #: Labels of the columns, if they have any.
    names: list[Any] | None = None

    def rounded(self, level: float) -> FloatArray:
        """Return, for each lambda, the most convenient power inside the Wald interval of this level."""
        return rounded_power(self.lmbda, wald_interval(self.lmbda, self.se, level))


def evaluate_curves(of: Callable[[FloatArray], FloatArray], lmbdas: ArrayLike) -> FloatArray:
    """Evaluate `of`, which maps k lambdas to an array (p, k), at `lmbdas`; return (p,) for a single lambda.

    Raise a ValueError unless `lmbdas` is a finite number or a one-dimensional array of finite numbers.
    """
    points = as_reals("lmbdas", lmbdas)
    if points.ndim > 1 or not np.isfinite(points).all():
        raise ValueError("lmbdas must be a finite number or a one-dimensional array of them")
    found = of(np.atleast_1d(points))
    return found[:, 0] if points.ndim == 0 else found


def confidence_interval(
    optimum: LikelihoodOptimum, level: float, method: str, likelihood: Callable[[], Likelihood]
) -> Interval:
    """Return confidence intervals for lambda, from the profile likelihood or from standard errors.

    Parameters
    ----------
    optimum : LikelihoodOptimum
        The fitted lambdas, their standard errors and likelihoods.
    level : float
        Confidence level.
    method : {"profile", "wald"}
        "profile": the lambdas at which the log-likelihood is half a chi-square quantile below its maximum. "wald":
        lambda plus and minus a multiple of its standard error.
    likelihood : callable
        Returns the likelihood of the data. It is called for "profile" only.
    """
    level = as_level(level)
    if as_choice("method", method, get_args(Method)) == "wald":
        return wald_interval(optimum.lmbda, optimum.se, level)
    with np.errstate(divide="ignore"):
        drop = np.broadcast_to(0.5 * special.chdtri(1, 1.0 - level) / optimum.n_obs, optimum.lmbda.shape)
    ends = likelihood().ends(drop)
    ends[drop == 0.0] = optimum.lmbda[drop == 0.0, None]  # for a level so small that its quantile rounds to 0
    ends[np.isnan(np.broadcast_to(optimum.nll, drop.shape))] = np.nan
    return Interval(ends[:, 0], ends[:, 1])


def ratio_test(optimum: LikelihoodOptimum, lmbda0: ArrayLike, likelihood: Callable[[], Likelihood]) -> LikelihoodRatio:
    """Test the hypothesis that lambda is `lmbda0` by the likelihood ratio.

    Parameters
    ----------
    optimum : LikelihoodOptimum
        The fitted lambdas and their likelihoods.
    lmbda0 : float or array-like
        The hypothetical lambda, or one per column.
    likelihood : callable
        Returns the likelihood of the data.
    """
    given = hypothesis_lambdas(lmbda0, optimum.lmbda.size, optimum.each, optimum.names)
    return likelihood_ratio(likelihood().at(given), optimum.nll, optimum.df)


def likelihood_ratio(nll0: ArrayLike, nll: ArrayLike, df: int = 1) -> LikelihoodRatio:
    """Return the likelihood ratio test ``2 (nll0 - nll)`` with its chi-square p-value.

    `nll0` and `nll` are the negative log-likelihoods under the hypothesis and at the optimum, summed over the rows.
    `df` is the number of degrees of freedom.
    """
    with np.errstate(invalid="ignore"):
        statistic = np.maximum(2.0 * np.subtract(nll0, nll), 0.0)
    return LikelihoodRatio(np.asarray(statistic), df, np.asarray(special.chdtrc(df, statistic)))


def hypothesis_lambdas(
    lmbda0: ArrayLike, n: int, each: str = "column", names: Sequence[Any] | None = None
) -> FloatArray:
    """Check the lambdas of a hypothesis; return an array of shape () for a single lambda, otherwise (n,).

    Parameters
    ----------
    lmbda0 : float or (n,) array-like
        The lambdas, as the user passed them; a series is aligned with `names`.
    n : int
        Number of lambdas of the fit.
    each : str
        Noun for the unit to which a lambda belongs, such as "column", for the message.
    names : sequence, optional
        Labels of the columns.
    """
    given = as_reals("lmbda0", align_columns(lmbda0, names, "lmbda0"))
    if given.ndim > 1 or given.size not in (1, n) or not np.isfinite(given).all():
        raise ValueError(f"lmbda0 must be one finite number, or one per {each} ({n})")
    return given.reshape(()) if given.size == 1 else given


def refuse_number(X: object) -> None:
    """Raise a TypeError if `X` is a number, which is most likely a confidence level passed in place of the data."""
    if is_real(X):
        raise TypeError(f"X is the number {X!r}, not data; pass a confidence level by name, such as level=0.9")


def as_level(level: float) -> float:
    """Return a confidence level as a float; raise a ValueError unless it is between 0 and 1."""
    if as_reals("level", level).ndim > 0 or not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {shown(level)}")
    return float(level)


def standard_error_from(information: ArrayLike) -> FloatArray:
    """Return ``1/sqrt(information)``, or NaN where the curvature of the likelihood is not positive."""
    curvature = np.asarray(information, dtype=np.float64)
    return np.asarray(1.0 / np.sqrt(np.where(curvature > 0.0, curvature, np.nan)))


def wald_interval(lmbda: ArrayLike, se: ArrayLike, level: float = 0.95) -> Interval:
    """Return the Wald intervals ``lmbda -+ Phi^-1((1 + level)/2) se``.

    At level 0.95 the quantile is 1.959964, which R's car rounds to 1.96.
    """
    # the quantile is computed from the lower tail, whose probability is exact for levels close to 1
    width = -special.ndtri(0.5 * (1.0 - as_level(level))) * np.asarray(se, dtype=np.float64)
    return Interval(np.subtract(lmbda, width), np.add(lmbda, width))


class RoundedPowers(ABC):
    """Base class that adds the method `rounded` to maximum likelihood fits."""

    @abstractmethod
    def _optimum(self) -> LikelihoodOptimum:
        """Return the fitted lambdas with likelihoods and standard errors; raise if the fit has no likelihood."""

    def rounded(self, *, level: float = 0.95) -> FloatArray:
        """Round each lambda to the most convenient power inside its Wald interval.

        The powers are, in this order, 1, 0, -1, 1/2, 1/3, -1/2, -1/3, 2 and -2.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        (p,) ndarray
            The rounded powers; lambda itself if no power is inside the interval. R's ``car::powerTransform`` rounds
            likewise, but with .33 for 1/3.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox")
        >>> fit.lmbda.round(3), fit.rounded()
        (array([0.076]), array([0.]))
        """
        return self._optimum().rounded(level)


def rounded_power(lmbda: ArrayLike, interval: Interval) -> FloatArray:
    """Return the first of the `CONVENIENT` powers inside each interval, or lambda itself if there is none."""
    rounded = np.array(lmbda, dtype=np.float64)
    for power in reversed(CONVENIENT):
        rounded[(interval.low <= power) & (power <= interval.high)] = power
    return rounded
