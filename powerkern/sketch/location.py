"""Location and scale of data that only passes over chunks can see.

Values are counted in bins (`powerkern.sketch.order`), whose means and standard deviations are exact. An estimator is
that of two points a bin with these moments: exact where its equation is linear or quadratic within every bin. Bins in
which it is not, those with a median, a quartile, a median distance, the end of what is trimmed or a corner of psi, are
counted again, in narrower ones, until they hold one value each or are too narrow to matter; so are, where psi is a
polynomial of higher degree, bins that are wide for what they weigh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from powerkern._engine.threads import progress_bar
from powerkern._typing import BoolArray, FloatArray
from powerkern.location import METHODS, LocationScale, location_scale_of, points_estimator
from powerkern.sketch.driver import passes_of
from powerkern.sketch.order import Cells, Sample, divided, first_edges, moment_points, narrower_edges, rows_as_cells
from powerkern.sketch.passes import MapReduce, RangePass, SamplePass
from powerkern.sketch.robust import Reader

#: How often bins are divided at most: a thousandfold each time where few matter.
_DIVISIONS = 6
#: The share of the values in a bin times the cube of its width in scales that is too much for a polynomial psi.
_UNEVEN = 1e-10


def location_with(
    map_reduce: MapReduce,
    method: str = "median-mad",
    *,
    sample_weight: str | None = None,
    task_threads: int | None = 1,
    progress: bool = False,
    **constants: Any,
) -> LocationScale:
    """Location and scale of data that some engine holds: `powerkern.location.location_scale` in a few passes.

    Parameters
    ----------
    map_reduce : function
        The engine, as for `fit_with`.
    method, **constants
        As for `powerkern.location.location_scale`.
    sample_weight : str, optional
        The column that holds the weights of the rows, where chunks are data frames. Default: those that the engine
        hands over with the chunks, or none.
    task_threads : int or None, default 1
        Threads of each call of the function that engines are given.
    progress : bool, default False
        Show a bar (needs tqdm) that counts the passes over the data.

    Returns
    -------
    LocationScale

    Raises
    ------
    TypeError, ValueError
        As `powerkern.location.location_scale`; rows are counted from the start of the chunk.

    Warns
    -----
    UserWarning
        As there.

    See Also
    --------
    location_chunks : the same for chunks that this process reads.

    Notes
    -----
    Two passes for mean and standard deviation, up to eight where order statistics are needed; what passes hold is some
    50 kB a column. Median, nMAD, quartiles and trimmed means are those of the rows to rounding. M-estimators are exact
    where psi is linear or constant within every bin, which is all but the bins of its corners. Of a psi that is a
    polynomial bins are divided until they hardly matter: "bisquare" and "bisquare-proposal2" were within 1e-11 of the
    scale, "biweight" within 1e-7.

    Examples
    --------
    >>> import functools
    >>> import numpy as np
    >>> from powerkern.location import location_scale
    >>> from powerkern.sketch import location_with
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> def map_reduce(function, merge):
    ...     return functools.reduce(merge, map(function, np.array_split(X, 10)))
    >>> found = location_with(map_reduce, "huber")
    >>> np.allclose(found.loc, location_scale(X, "huber").loc, rtol=0, atol=1e-12)
    True
    """
    estimate = points_estimator(method, constants)
    asked = _asked(method, constants)
    options: dict[str, Any] = {"weight_name": sample_weight, "n_threads": task_threads}
    with progress_bar(None, " passes", progress) as bar:
        passed = passes_of(map_reduce, bar)
        first: Sample = passed(SamplePass(ranges=RangePass(family="yeo-johnson", **options), **options))
        columns = [_Column(first, j, estimate, asked) for j in range(first.range.n_features)]
        reader = Reader(passed, first, options)
        binned = [column for column in columns if not first.is_complete[column.j]]
        reader.divide(binned, [first_edges(first, column.j) for column in binned])
        for _ in range(_DIVISIONS):
            edges = [column.narrow() for column in binned]
            if not any(each.size for each in edges):
                break
            reader.divide(binned, edges)
    return location_scale_of(np.stack([column.row() for column in columns]), first.range.column_names)


class _Asked(NamedTuple):
    """What of the order of the values a method depends on."""

    fractions: tuple[float, ...]  #: quantiles
    trimmed: tuple[float, float]  #: fractions left out below and above
    mad: bool  #: the median distance from the median
    corners: tuple[float, ...]  #: of psi, in scales from the location
    reach: float  #: of a psi that is no broken line, in scales; 0: it is one


def _asked(method: str, constants: Mapping[str, Any]) -> _Asked:
    center, _, spread = ("trimmed-mad" if method == "trimmed" else method).partition("-")
    given = {**METHODS[method].defaults, **constants}
    if center not in ("mean", "median", "trimmed"):
        named = [given.get(name) for name in ("k", "k_location", "c")]
        corners = tuple(value for value in named if value is not None)
        return _Asked((0.5,), (0.0, 0.0), True, corners, max(given.get(name, 0.0) for name in ("c", "c_scale")))
    share = given.get("fraction", 0.0)
    below = share if given.get("sides") == "both" else 0.0
    middle = (0.5,) if center == "median" or spread == "mad" else ()
    quartiles = (0.25, 0.75) if spread == "niqr" else ()
    return _Asked(middle + quartiles, (below, share), spread == "mad", (), 0.0)


class _Column:
    """One column: what is known of it."""

    def __init__(
        self, first: Sample, j: int, estimate: Callable[[FloatArray, FloatArray], FloatArray], asked: _Asked
    ) -> None:
        self.j = j
        self._cells = rows_as_cells(first.drawn[j])
        self._estimate, self._asked = estimate, asked
        self._critical = np.empty(0, dtype=bool)

    def divide(self, finer: Cells) -> None:
        """Take in what was counted."""
        self._cells = divided(self._cells, self._critical, finer) if self._critical.size else finer

    def row(self) -> FloatArray:
        """The results, as far as is known."""
        x, w, _ = moment_points(self._cells)
        return self._estimate(x, w)

    def narrow(self) -> FloatArray:
        """Edges between which values are to be counted again."""
        matters = np.zeros(self._cells.rows.size, dtype=bool)
        for each in self._where():
            matters |= each
        self._critical = matters & ~self._cells.is_one_value
        return narrower_edges(self._cells, self._critical)

    def _where(self) -> Iterator[BoolArray]:
        """The cells that what is asked lies in."""
        cells, asked = self._cells, self._asked
        n = cells.weight.sum()
        for fraction in asked.fractions:
            yield _at_rank(cells.weight, (n - 1.0) * fraction)
        for share, sign in zip(asked.trimmed, (1.0, -1.0), strict=True):
            if share > 0.0:
                cut = np.floor(share * n)
                yield _at_rank(cells.weight, (cut if sign > 0.0 else n - cut) - 0.5)
        if asked.mad:
            yield self._at_median_distance(n)
        if asked.corners or asked.reach:
            loc, scale = self.row()[:2]
            for corner in asked.corners:
                for at in (loc - corner * scale, loc + corner * scale):
                    yield (cells.low <= at) & (at <= cells.high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                uneven = cells.weight / n * ((cells.high - cells.low) / scale) ** 3 > _UNEVEN
            yield uneven & (abs(cells.mean - loc) < asked.reach * scale + (cells.high - cells.low))

    def _at_median_distance(self, n: float) -> BoolArray:
        """Cells that may hold the median distance from the median."""
        cells = self._cells
        x, w, _ = moment_points(cells)
        median = points_estimator("median-mad", {})(x, w)[0]
        near = np.maximum(np.maximum(cells.low - median, median - cells.high), 0.0)
        far = np.maximum(abs(cells.low - median), abs(cells.high - median))
        least, most = (_values_at(each, cells.weight, (n - 1.0) / 2.0) for each in (near, far))
        return np.asarray((near <= most[1]) & (far >= least[0]))


def _at_rank(weight: FloatArray, rank: float) -> BoolArray:
    """Which of ascending cells the values of a rank, and of the next if it is no whole number, may lie in."""
    stop = np.cumsum(weight)
    return np.asarray((stop - weight <= np.ceil(rank)) & (stop > np.floor(rank)))


def _values_at(values: FloatArray, weight: FloatArray, rank: float) -> tuple[float, float]:
    """The values of the two ranks, rounded down and up."""
    order = np.argsort(values, kind="stable")
    stop = np.cumsum(weight[order])
    at = np.searchsorted(stop, [np.floor(rank), np.ceil(rank)], side="right")
    low, high = values[order][np.minimum(at, values.size - 1)]
    return float(low), float(high)
