"""Guerrero's estimate of lambda for seasonal series, which makes the spread of seasons independent of their level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._input.arguments import as_whole
from powerkern._input.arrays import is_real, numbers
from powerkern._input.labels import check_rows, without_groups
from powerkern._input.messages import shown
from powerkern._typing import BoolArray, FloatArray
from powerkern.stats._arrays import as_float64

#: Number of points of the scan, and of bisections of a bracket, which end at neighboring floats.
_POINTS, _HALVINGS = 241, 60


def boxcox_guerrero(
    x: ArrayLike,
    season_length: int = 2,
    *,
    bounds: tuple[float, float] = (-1.0, 2.0),
    axis: int = 0,
    groups: ArrayLike | None = None,
) -> Any:
    r"""Estimate the Box-Cox lambda of a seasonal series by Guerrero's method.

    The method makes the spread of the seasons as independent of their level as possible.

    The series is divided into seasons with means :math:`m_i` and standard deviations :math:`s_i` (divisor
    ``season_length - 1``). Lambda minimises the coefficient of variation, standard deviation over mean, of the ratios

    .. math:: r_i = s_i / m_i^{1 - \lambda}

    Parameters
    ----------
    x : (n,) or (n, p) array_like
        Positive values: one series, or one series per column. NaN is missing and is left out of its season.
    season_length : int, default 2
        Number of observations per season, at least 2. It is 12 for monthly data; 2 suits series without seasons.
    bounds : (float, float), default (-1, 2)
        Interval in which lambda is searched for.
    axis : int, default 0
        The axis along which a series runs.
    groups : (n,) array_like, optional
        Labels of the rows, for several series in one column: rows with the same label form a series, in their order.

    Returns
    -------
    lmbda : float or (p,) ndarray
        The estimates. With `groups`, a dict of estimates by label, in ascending order.

    Raises
    ------
    ValueError
        If `x` has more than two dimensions, values that are not positive and finite, fewer than two whole seasons, or
        fewer than two seasons whose values differ; if `bounds` is not a finite interval.
    TypeError
        If `x` is not real.

    See Also
    --------
    boxcox_normmax : lambda by maximum likelihood, or by the correlation of the probability plot.

    Notes
    -----
    If n is not a multiple of `season_length` the first observations are omitted, as in R's
    ``forecast::BoxCox.lambda(x, method = "guerrero")``, which has the same definition and default bounds. R's search
    stops at 1e-4. Here, a scan of the derivative of the coefficient brackets all minima within the bounds. The result
    is the lowest of these minima and of the values at the two bounds, exact to rounding error. The divisor of the
    standard deviation in the coefficient does not affect lambda. If all seasons have the same mean, every lambda is
    equally good, and the result is one of the bounds. sktime's ``BoxCoxTransformer(method="guerrero", sp=...)``
    minimises the same criterion by a line search that starts from (-2, 2). Without bounds it may leave this interval,
    and it does not accept NaN.

    References
    ----------
    V. M. Guerrero (1993), Time-series analysis supported by power transformations, Journal of Forecasting 12, 37-48,
    equation 5.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.stats import boxcox_guerrero
    >>> t = np.arange(120)
    >>> x = np.exp(0.02 * t + 0.3 * np.sin(2.0 * np.pi * t / 12.0))
    >>> bool(abs(boxcox_guerrero(x, 12)) < 1e-9)  # spread proportional to level: logs
    True
    """
    given = numbers(x, "x")
    axis = as_whole("`axis`", axis, -max(given.ndim, 1), max(given.ndim, 1) - 1)
    if groups is not None:
        return _fit_groups(given, groups, season_length, bounds, axis)
    columns = _read_columns(given, axis)
    low, high = _check_bounds(bounds)
    n_seasons = len(columns) // as_whole("`season_length`", season_length, 2)
    if n_seasons < 2:
        raise ValueError(
            f"`x` has {len(columns)} values, fewer than two seasons of {season_length}; pass a longer series"
        )
    seasons = _Seasons.of(columns[len(columns) - n_seasons * int(season_length) :], n_seasons)
    found = _find_lowest(seasons, low, high)
    return found if given.ndim == 2 else np.float64(found[0])


def _fit_groups(
    x: NDArray[Any], groups: ArrayLike, season_length: int, bounds: tuple[float, float], axis: int
) -> dict[Any, Any]:
    """Estimate lambda for the series of each group; return a dictionary of lambdas by label.

    Parameters
    ----------
    x : ndarray
        The data.
    groups : array-like
        Labels of the rows.
    season_length, bounds, axis
        As in `boxcox_guerrero`.
    """
    _, (keys, runs) = without_groups(None, groups, None)
    check_rows(runs, len(_read_columns(x, axis)))
    found = {}
    for g, label in enumerate(keys.labels()):
        series = np.take(x, runs.rows(runs.codes == g), axis)
        try:
            found[label] = boxcox_guerrero(series, season_length, bounds=bounds, axis=axis)
        except ValueError as error:
            raise ValueError(f"group {label!r}: {error}") from None
    return found


def _read_columns(x: NDArray[Any], axis: int) -> FloatArray:
    """Return a float64 matrix with one series per column; raise a ValueError if a value is not positive and finite.

    NaN is accepted as missing. `axis` is the axis of `x` along which a series runs.
    """
    if x.ndim not in (1, 2):
        raise ValueError("`x` must be one series or a table of series.")
    if x.size == 0:
        raise ValueError(f"`x` has no values (shape {x.shape}).")
    along = np.moveaxis(x, axis, 0)
    columns = as_float64(along).reshape(len(along), -1)
    if not (np.isnan(columns) | ((columns > 0.0) & (columns < np.inf))).all():
        raise ValueError("The `x` argument of `boxcox_guerrero` must contain only positive, finite, real numbers.")
    return columns


def _check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds as two floats; raise a ValueError unless they are a finite interval."""
    pair = tuple(bounds) if isinstance(bounds, tuple | list | np.ndarray) else ()
    if len(pair) != 2 or not all(is_real(end) and np.isfinite(end) for end in pair) or not pair[0] < pair[1]:
        raise ValueError(f"`bounds` must be a finite interval (low, high), got {shown(bounds)}")
    return float(pair[0]), float(pair[1])


class _Seasons(NamedTuple):
    """Logs of the means m and of the standard deviations s of all seasons: arrays (p, n_seasons) for p series."""

    #: ln m.
    level: FloatArray
    #: ln s; -inf if all values of the season are equal.
    spread: FloatArray
    #: Mask of the seasons with two or more values.
    known: BoolArray

    @classmethod
    def of(cls, columns: FloatArray, n_seasons: int) -> _Seasons:
        """Divide each series into `n_seasons` seasons of consecutive values; compute means and standard deviations.

        `columns`, (n, p), holds one series per column; n must be a multiple of `n_seasons`. A ValueError is raised if a
        series has fewer than two seasons whose values differ.
        """
        parts = np.ascontiguousarray(columns.T).reshape(columns.shape[1], n_seasons, -1)
        count = np.count_nonzero(~np.isnan(parts), axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            size = np.nanmax(np.where(np.isnan(parts), 0.0, parts), axis=2)  # so that no square overflows or underflows
            scaled = parts / size[..., np.newaxis]
            mean = np.nansum(scaled, axis=2) / count
            squares = np.nansum((scaled - mean[..., np.newaxis]) ** 2, axis=2)
            level, spread = np.log(mean) + np.log(size), 0.5 * np.log(squares / (count - 1)) + np.log(size)
        short = count < 2
        level[short], spread[short] = 0.0, np.nan
        flat = np.isfinite(spread).sum(axis=1) < 2
        if flat.any():
            raise ValueError(f"series {int(np.argmax(flat))} must have two seasons whose values are not all equal")
        return cls(level, spread, ~np.isnan(spread))

    def ratios(self, lmbda: FloatArray) -> FloatArray:
        """Return ``r = s/m**(1 - lambda)``, up to a factor per series; 0 for seasons with fewer than two values."""
        logs = np.where(self.known, self.spread + (lmbda[:, np.newaxis] - 1.0) * self.level, -np.inf)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def log_variation(self, lmbda: FloatArray) -> FloatArray:
        """Return the log of the squared coefficient of variation of the ratios r, for one lambda per series, (p,)."""
        r, n = self.ratios(lmbda), self.known.sum(axis=1)
        mean = r.sum(axis=1) / n
        away = np.where(self.known, r - mean[:, np.newaxis], 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((away * away).sum(axis=1)) - 2.0 * np.log(mean))

    def slope(self, lmbda: FloatArray) -> FloatArray:
        """Return a number with the sign of the derivative of the coefficient of variation, for one lambda per series.

        This number is n Cov(r, r (u - U)) over the n seasons with two or more values. Here u = ln m, and
        U is the r-weighted mean of u.
        """
        r, n = self.ratios(lmbda), self.known.sum(axis=1)
        total = r.sum(axis=1)
        center = (r * self.level).sum(axis=1) / total
        change = r * (self.level - center[:, np.newaxis])  # sums to 0
        away = np.where(self.known, r - (total / n)[:, np.newaxis], 0.0)
        return np.asarray((away * change).sum(axis=1))

    def minimum(self, start: float, stop: float) -> FloatArray:
        """Bisect [`start`, `stop`] for the lambda of each series at which `slope` changes from negative to positive."""
        low, high = np.full(len(self.level), start), np.full(len(self.level), stop)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            falls = self.slope(middle) < 0.0
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
        return np.asarray(0.5 * (low + high))


def _find_lowest(seasons: _Seasons, low: float, high: float) -> FloatArray:
    """Return, for each series, the lambda in [`low`, `high`] with the smallest coefficient of variation: (p,)."""
    p = len(seasons.level)
    points = np.linspace(low, high, _POINTS)
    slopes = np.array([seasons.slope(np.full(p, at)) for at in points])
    turns = (slopes[:-1] < 0.0) & (slopes[1:] >= 0.0)
    candidates = [(seasons.minimum(points[k], points[k + 1]), turns[k]) for k in np.flatnonzero(turns.any(axis=1))]
    best = np.full(p, low)
    lowest = seasons.log_variation(best)
    for at, is_minimum in [*candidates, (np.full(p, high), np.full(p, True))]:
        value = seasons.log_variation(at)
        better = is_minimum & (value < lowest)
        best, lowest = np.where(better, at, best), np.where(better, value, lowest)
    return best
