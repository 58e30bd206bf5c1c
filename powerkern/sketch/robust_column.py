"""One column of a robust fit from chunks: its counts, and the start, which is found for points that represent them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._estimators.robust import RobustEstimator
from powerkern._status import Route, Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.location.huber import HUBER_K
from powerkern.kernels.location.loc_scale import R_MAD_FACTOR
from powerkern.kernels.results import LMBDA, LMBDA0, N_RESULTS, OBJECTIVE, ROUTE, STATUS, is_identity
from powerkern.kernels.robust.adaptive_rewml import N_WIDER, WIDER
from powerkern.kernels.robust.fit import N_CUTOFF_FIELDS, TRANSFORM_LOC, TRANSFORM_SCALE, WEIGHT_ABOVE, WEIGHT_BELOW
from powerkern.kernels.robust.options import ADAPTIVE_QQ, CELLWISE_QQ, GLOBAL, MAD, QQ, Options, with_rule
from powerkern.kernels.robust.reweighting import MAX_STEPS, max_fits, step_rule
from powerkern.kernels.robust.scratch import RobustWork, new_robust_work
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES
from powerkern.sketch.order import (
    CellMoments,
    ColumnSample,
    CountedColumn,
    equal_points,
    moment_points,
    parts_of,
    weighted_median,
)

#: Number of sets of points drawn at random.
_N_DRAWN = 6
#: Number of quantiles in a search without weights; half-width of the search by all points around its minimum; the
#: distance from the start beyond which that is another minimum.
_N_QUANTILES, _HALF_WIDTH, _APART = 2048, 0.1, 0.01
#: Columns of at most this many rows are fitted as in memory if all their values are known.
_MOST_ROWS = 65_536


class Points(NamedTuple):
    """Ascending points that represent the cells of a column, and the robust fit of them."""

    x: FloatArray
    w: FloatArray
    #: Results of the fit of the points, as kernels write them.
    row: FloatArray
    #: The options of the estimator, with the rule by which this fit started.
    options: Options

    @property
    def is_fitted(self) -> bool:
        """True if the points have a fit: they vary, and it could be represented."""
        return not is_identity(self.row)


class RobustStart(NamedTuple):
    """The start of a robust fit, and the points that it was found for."""

    points: Points
    #: The cell of each point, among the cells without the tied value.
    cell: IntArray
    #: The options of the search that found the start.
    search: Options
    #: A value to which more than half of the values are equal, or NaN; and the weight of the values equal to it.
    tie: float
    tied_weight: float

    @property
    def lmbda(self) -> float:
        """The lambda at which the first step of reweighting chooses the values that it keeps."""
        return float(self.points.row[LMBDA0])


class CutRule(NamedTuple):
    """Rule for cutting off values far from the center: rectification, and whether the cut-off is adaptive."""

    rule: int
    adaptive: bool


class RobustChunkColumn(CountedColumn):
    """A column of a robust fit: its estimator, its counts in cells, and the start that is computed from the counts.

    Parameters
    ----------
    first : ColumnSample
        The result of the first pass.
    j : int
        Position of the column in it.
    estimator : RobustEstimator
        The estimator.
    family : int
        A code of `kernels.transforms.family`.
    """

    def __init__(self, first: ColumnSample, j: int, estimator: RobustEstimator, family: int) -> None:
        super().__init__(first, j)
        self.family, self.estimator = family, estimator
        self.weighted, self.unit = first.weighted, float(first.unit[j]) if first.weighted else 1.0
        self.ends, self.n_rows = first.ends[j], float(first.range.count[j])
        _, total, squares = first.weights[j]
        #: effective number of rows over their number, to 24 bits: the same in any order
        self.share = float(np.float32(total * total / (squares * self.n_rows))) if squares > 0.0 else 1.0
        self.start: RobustStart | None = None
        self._scratch: RobustWork | None = None
        self._scratch_size = 0

    @property
    def is_whole(self) -> bool:
        """True if the rows are known: all were drawn, or their few values have been counted."""
        if not self.is_binned:
            return True
        return bool(self.cells.is_one_value.all()) and not self.weighted and self.n_rows <= _MOST_ROWS

    @property
    def is_started(self) -> bool:
        """True if a start was found."""
        return self.start is not None and self.start.points.is_fitted

    @property
    def found_start(self) -> RobustStart:
        """The start, which `find_start` has found."""
        assert self.start is not None
        return self.start

    @property
    def has_cut_off(self) -> bool:
        """True if rows are kept by their distance from the center."""
        return self.estimator.criterion in (QQ, ADAPTIVE_QQ, CELLWISE_QQ)

    @property
    def weight(self) -> float:
        """The weight of all values."""
        return float(self.cells.weight.sum())

    @property
    def untied_cells(self) -> CellMoments:
        """The cells without the value that more than half of the rows have, if there is such a value."""
        return self.cells.part(self.cells.mean != self._tie)

    @property
    def _tie(self) -> float:
        return np.nan if self.start is None else self.start.tie

    def parts(self) -> IntArray:
        """Return the number of parts into which to divide each cell."""
        return parts_of(self.cells, _critical_cells(self))

    # --- the start ------------------------------------------------------------------------------------

    def find_start(self) -> None:
        """Compute the start from points that represent the cells, without a value that over half of the rows have."""
        start = self._start_without(self._tie)
        row = start.points.row
        if row[STATUS] == Status.NO_SPREAD and self.estimator.fits_ties and np.isnan(start.tie):
            tie = weighted_median(start.points.x, start.points.w)
            start = self._start_without(tie)
            row = start.points.row if start.points.is_fitted else row
        options = _options_of(self.estimator.kernel_options, row)
        self.start = start._replace(points=start.points._replace(row=row, options=options))

    def _start_without(self, tie: float) -> RobustStart:
        """Return the start for the cells whose value is not `tie`."""
        cells, search = self.cells.part(self.cells.mean != tie), self.estimator.kernel_options
        tied_weight = float(self.cells.weight.sum() - cells.weight.sum())
        x, w, cell = equal_points(cells)
        points = self.fit_points(search, x, w / self.unit)
        if not self.weighted and points.is_fitted and search.search == GLOBAL and self.has_cut_off:
            search, points = self._search_where_lower(search, points)
        return RobustStart(points, cell, search, tie, tied_weight)

    def _search_where_lower(self, search: Options, points: Points) -> tuple[Options, Points]:
        """Start from another minimum if the finer search, which ignores weights, found a lower one."""
        total = points.w.sum()
        m = int(min(total, _N_QUANTILES))
        x = points.x[np.searchsorted(np.cumsum(points.w), (np.arange(m) + 0.5) * total / m)]
        unweighted = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], None, self.family, search, new_robust_work(m), unweighted)
        lmbda, power = float(unweighted[0, LMBDA0]), self.power_of(points)
        distance = abs(lmbda - points.row[LMBDA0]) * power
        if is_identity(unweighted[0]) or distance < _APART:
            return search, points
        half_width = min(_HALF_WIDTH, 0.5 * distance)
        narrow = search._replace(low=lmbda * power - half_width, high=lmbda * power + half_width)
        again = self.fit_points(narrow, points.x, points.w)
        if again.is_fitted and again.row[OBJECTIVE] < points.row[OBJECTIVE]:
            again.row[STATUS] = unweighted[0, STATUS]
            return narrow, again
        return search, points

    def draw_alternatives(self) -> list[Points]:
        """Fit other points for the cells: points with their moments, and points drawn at random from a fixed seed."""
        cells, rng, search = self.untied_cells, np.random.default_rng(0), self.found_start.search
        sets = [moment_points(cells), *(equal_points(cells, rng, self.share) for _ in range(_N_DRAWN))]
        fits = [self.fit_points(search, x, w / self.unit) for x, w, _ in sets]
        asked = self.estimator.kernel_options
        return [points._replace(options=_options_of(asked, points.row)) for points in fits if points.is_fitted]

    # --- fits and cuts of points ----------------------------------------------------------------------

    def fit_points(self, options: Options, x: FloatArray, w: FloatArray) -> Points:
        """Fit weighted points."""
        out = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], w[None], self.family, options, self._work_for(x.size), out)
        return Points(x, w, out[0], options)

    def _work_for(self, n: int) -> RobustWork:
        """Return the kernels' scratch for `n` points, which is allocated anew only if it must grow."""
        if self._scratch is None or self._scratch_size < n:
            self._scratch, self._scratch_size = new_robust_work(n, weighted=True), n
        return self._scratch

    def objective(self, lmbdas: FloatArray) -> FloatArray:
        """Return the objective of the estimator, for the points of the start."""
        x, w, row, _ = self.found_start.points
        values: FloatArray = self.estimator.objective(x[:, None], self.family, lmbdas, w, 1, row[[ROUTE]])[0]
        return values

    def power_of(self, points: Points) -> float:
        """Return the factor by which prestandardising multiplies lambda."""
        if self.family != BOX_COX or points.options.prestandardize != MAD:
            return 1.0
        logs = np.log(points.x)
        return R_MAD_FACTOR * _median_distance(logs, points.w, weighted_median(logs, points.w))

    def cut(self, points: Points, lmbda: float, rule: CutRule) -> tuple[FloatArray, FloatArray]:
        """Return the interval that a rule keeps at a lambda (see `EstimatorEntries`), and the transformed points."""
        cut, y = np.empty(N_CUTOFF_FIELDS), np.empty(points.x.size)
        work = self._work_for(points.x.size)
        self.estimator.entries.apply_cutoff(
            points.x, points.w, self.family, points.options, lmbda, rule.rule, int(rule.adaptive), work, y, cut
        )
        return cut, y


def _options_of(options: Options, row: FloatArray) -> Options:
    """Return the options with the rule by which a fit started."""
    both = row[ROUTE] == Route.REFIT_BOTH_SIDES
    return with_rule(options, QUARTILES, options.adaptive) if options.rule == BOTH and not both else options


# --- cells to divide ----------------------------------------------------------------------------------


def _critical_cells(column: RobustChunkColumn) -> BoolArray:
    """Return a mask of the cells that contain medians, median distances, quartiles and ends of the kept interval."""
    start = column.found_start
    x, w, _, options = start.points
    near = [_neighbors(x, _medians(x, w))]
    for turn, (lmbda, rule) in enumerate(predict_cuts(column)):
        adaptive = step_rule(turn, options)[1]
        cut, y = column.cut(start.points, lmbda, CutRule(rule, adaptive))
        cutoffs = options.cutoff + WIDER * np.arange(1 + adaptive * N_WIDER)
        distances = np.append(cutoffs, HUBER_K) * cut[TRANSFORM_SCALE]
        ends = cut[TRANSFORM_LOC] + np.append(-distances, distances)
        outside = cut[WEIGHT_BELOW], w.sum() - cut[WEIGHT_ABOVE]
        ranks = np.interp(outside, np.cumsum(w), np.arange(w.size))
        near += [_neighbors(y, _medians(y, w, cut[TRANSFORM_LOC])), _neighbors(y, ends), ranks.astype(int)]
    quartiles = np.searchsorted(np.cumsum(w) / w.sum(), [options.lower_tail, 1.0 - options.upper_tail])
    points = np.clip(np.concatenate([*near, quartiles]), 0, x.size - 1)
    untied = np.flatnonzero(column.cells.mean != start.tie)
    critical = np.zeros(column.cells.rows.size, dtype=bool)
    critical[untied[start.cell[points]]] = True
    return critical & ~column.cells.is_one_value


def predict_cuts(column: RobustChunkColumn) -> list[tuple[float, int]]:
    """Return the lambdas, predicted from the points, at which cut-offs will be applied, each with its rule."""
    start = column.found_start
    x, w, row, options = start.points
    cuts = [(start.lmbda, options.first_rule)]
    n_fits = max_fits(options)
    if column.has_cut_off and 0 < n_fits < MAX_STEPS:
        for n in range(1, n_fits):
            fewer = column.estimator.kernel_options._replace(n_reweight=n)
            cuts.append((float(column.fit_points(fewer, x, w).row[LMBDA]), NOT_RECTIFIED))
        return cuts
    return [*cuts, (float(row[LMBDA]), NOT_RECTIFIED)]


def _neighbors(y: FloatArray, values: FloatArray) -> IntArray:
    """Return the positions of the two points on either side of each value."""
    above = np.searchsorted(y, values[np.isfinite(values)])
    points: IntArray = np.clip(np.concatenate([above + k for k in range(-2, 2)]), 0, y.size - 1)
    return points


def _medians(x: FloatArray, w: FloatArray, about: float | None = None) -> FloatArray:
    """Return the median, and for the median and `about` the ends of the interval of +- the median distance from it."""
    median = weighted_median(x, w)
    values = [median]
    for center in [median] if about is None else [median, about]:
        distance = _median_distance(x, w, center)
        values += [center - distance, center + distance]
    return np.array(values)


def _median_distance(x: FloatArray, w: FloatArray, center: float) -> float:
    """Return the median distance of values from a center."""
    distance = np.abs(x - center)
    order = np.argsort(distance)
    return weighted_median(distance[order], w[order])
