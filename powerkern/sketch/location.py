"""Estimate location and scale of data in chunks.

Values are counted in bins (`powerkern.sketch.order`) with exact means and standard deviations. The estimator is applied
to two points per bin that have these moments. This is exact if the estimating equation is linear or quadratic within
every bin, but not in bins that contain a median, a quartile, a median distance, a trimming point or a corner of psi.
These bins are divided and counted again until they hold one value each or are too narrow to matter. If psi is a
polynomial of higher degree, wide bins of large weight are divided, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from powerkern._engine.threads import progress_bar
from powerkern._input.messages import shown
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.location import METHODS, LocationScale, location_scale_of, points_estimator
from powerkern.sketch.engine import MapReduce, Passes
from powerkern.sketch.order import CountedColumn, even_parts, moment_points
from powerkern.sketch.passes import SamplePass
from powerkern.sketch.robust import Reader

#: Largest number of times that bins are divided; each time into about a thousand parts if few bins matter.
_DIVISIONS = 6
#: For a polynomial psi, bins are divided if their fraction of the values times the cube of their width, in scales,
#: exceeds this.
_UNEVEN = 1e-10


def locate_columns(
    map_reduce: MapReduce,
    method: str,
    constants: Mapping[str, Any],
    *,
    sample_weight: str | None,
    progress: bool,
) -> LocationScale:
    """Estimate location and scale of each column of the data that an engine reads.

    Parameters
    ----------
    map_reduce : MapReduce
        The engine.
    method, constants
        As for `powerkern.location.location_scale`.
    sample_weight : str or None
        Name of the column of weights, if chunks are data frames. None: the engine passes weights with the chunks, or
        there are none.
    progress : bool
        Show a progress bar that counts the passes over the data.
    """
    estimate = _Estimate.from_method(method, constants)
    with progress_bar(None, " passes", progress) as bar:
        return LocatedChunks(Passes(map_reduce.engine, sample_weight, map_reduce.task_threads, bar)).apply(estimate)


class LocatedChunks:
    """Chunks whose ranges and sample have been read, so that several estimates can share the counts of bins.

    Parameters
    ----------
    passes : Passes
        Reads the chunks.

    Attributes
    ----------
    range : Range
        The ranges of the columns.
    """

    def __init__(self, passes: Passes) -> None:
        first = passes(SamplePass, family="yeo-johnson")
        self.range = first.range
        self._reader = Reader(passes.with_labels(first.range.labels), first)
        self._columns = [_LocationColumn(first, j) for j in range(first.range.n_features)]

    def locate(self, method: str, **constants: Any) -> LocationScale:
        """Return location and scale of every column; arguments are as for `powerkern.location.location_scale`."""
        return self.apply(_Estimate.from_method(method, constants))

    def apply(self, estimate: _Estimate) -> LocationScale:
        """Compute location and scale of every column, after dividing the cells on which `estimate` depends."""
        for column in self._columns:
            column.estimate = estimate
        binned = [column for column in self._columns if column.is_binned]
        for _ in range(1 + _DIVISIONS):
            if not self._reader.divide(binned):
                break
        results = np.stack([column.row() for column in self._columns])
        return location_scale_of(results, self.range.column_names)


class _Estimate(NamedTuple):
    """An estimator of location and scale, with the order statistics and corners on which it depends.

    Attributes
    ----------
    function : function
        Function of ascending values and their weights, (n,) each, that returns the results.
    fractions : tuple of float
        Fractions of the quantiles that it uses.
    trimmed : (float, float)
        Fractions of the rows that it trims below and above.
    mad : bool
        Whether it uses the median distance from the median.
    corners : tuple of float
        Distances of the corners of psi from the location, in units of the scale.
    reach : float
        Distance beyond which psi is 0 or constant, in units of the scale; 0 if psi is piecewise linear.
    """

    function: Callable[[FloatArray, FloatArray], FloatArray]
    fractions: tuple[float, ...]
    trimmed: tuple[float, float]
    mad: bool
    corners: tuple[float, ...]
    reach: float

    @classmethod
    def from_method(cls, method: str, constants: Mapping[str, Any]) -> _Estimate:
        """Return the estimator for a method of `powerkern.location.location_scale`; raise for invalid constants."""
        function = points_estimator(method, constants)
        center, _, spread = ("trimmed-mad" if method == "trimmed" else method).partition("-")
        if spread == "qn":
            raise ValueError(
                f"method={shown(method)} compares all pairs of values, which summaries of chunks do not keep; use "
                "a method with another scale, such as 'median-mad'"
            )
        given = {**METHODS[method].defaults, **constants}
        if center not in ("mean", "median", "trimmed"):
            named = [given.get(name) for name in ("k", "k_location", "c")]
            corners = tuple(value for value in named if value is not None)
            reach = max(given.get(name, 0.0) for name in ("c", "c_scale"))
            return cls(function, (0.5,), (0.0, 0.0), True, corners, reach)
        share = given.get("fraction", 0.0)
        below = share if given.get("sides") == "both" else 0.0
        middle = (0.5,) if center == "median" or spread == "mad" else ()
        quartiles = (0.25, 0.75) if spread == "niqr" else ()
        return cls(function, middle + quartiles, (below, share), spread == "mad", (), 0.0)


class _LocationColumn(CountedColumn):
    """A column counted in cells, which are divided as `estimate` requires."""

    estimate: _Estimate

    def row(self) -> FloatArray:
        """Return the results, location and scale first, computed from the current counts."""
        x, w, _ = moment_points(self.cells)
        return self.estimate.function(x, w)

    def parts(self) -> IntArray:
        """Return the number of parts into which to divide each cell: equal for all inexact cells, 1 for exact cells."""
        matters = np.zeros(self.cells.rows.size, dtype=bool)
        for each in self._inexact_cells(self.estimate):
            matters |= each
        return even_parts(matters & ~self.cells.is_one_value)

    def _inexact_cells(self, estimate: _Estimate) -> Iterator[BoolArray]:
        """Yield masks of the cells that the estimator treats inexactly.

        These cells contain an order statistic or a corner of psi, or are wide and have a large weight.
        """
        cells = self.cells
        n = cells.weight.sum()
        for fraction in estimate.fractions:
            yield _at_rank(cells.weight, (n - 1.0) * fraction)
        for share, sign in zip(estimate.trimmed, (1.0, -1.0), strict=True):
            if share > 0.0:
                cut = np.floor(share * n)
                yield _at_rank(cells.weight, (cut if sign > 0.0 else n - cut) - 0.5)
        if estimate.mad:
            yield self._at_median_distance(n)
        if estimate.corners or estimate.reach:
            loc, scale = self.row()[:2]
            for corner in estimate.corners:
                for at in (loc - corner * scale, loc + corner * scale):
                    yield (cells.low <= at) & (at <= cells.high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                uneven = cells.weight / n * ((cells.high - cells.low) / scale) ** 3 > _UNEVEN
            yield uneven & (abs(cells.mean - loc) < estimate.reach * scale + (cells.high - cells.low))

    def _at_median_distance(self, n: float) -> BoolArray:
        """Return a mask of the cells that may contain a value at the median distance from the median.

        `n` is the total weight.
        """
        cells = self.cells
        x, w, _ = moment_points(cells)
        median = points_estimator("median-mad", {})(x, w)[0]
        near = np.maximum(np.maximum(cells.low - median, median - cells.high), 0.0)
        far = np.maximum(abs(cells.low - median), abs(cells.high - median))
        least, most = (_values_at(each, cells.weight, (n - 1.0) / 2.0) for each in (near, far))
        return np.asarray((near <= most[1]) & (far >= least[0]))


def _at_rank(weight: FloatArray, rank: float) -> BoolArray:
    """Return a mask of the cells that contain the order statistics at `rank` rounded down and rounded up.

    `weight`, (k,), holds the weights of the cells, which are in ascending order of their values. Ranks start at 0.
    """
    stop = np.cumsum(weight)
    return np.asarray((stop - weight <= np.ceil(rank)) & (stop > np.floor(rank)))


def _values_at(values: FloatArray, weight: FloatArray, rank: float) -> tuple[float, float]:
    """Return the two order statistics of weighted values at `rank` rounded down and at `rank` rounded up.

    `values` and `weight`, (k,), are the values, in any order, and their weights. Ranks start at 0, and a value of
    weight w occupies w ranks.
    """
    order = np.argsort(values, kind="stable")
    stop = np.cumsum(weight[order])
    at = np.searchsorted(stop, [np.floor(rank), np.ceil(rank)], side="right")
    low, high = values[order][at]
    return float(low), float(high)
