"""`RobustChunkColumn`: a column of a robust fit from chunks, with its counts in cells and the start of its fit.

The start is lambda before reweighting. It is computed from weighted points that represent the counts.
"""

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
    choose_parts,
    equal_points,
    moment_points,
    weighted_median,
)

#: Number of sets of points drawn at random.
_N_DRAWN = 6
#: For `_search_where_lower`: the number of quantiles in the search without weights; the half-width of the search by all
#: points around its minimum; and the distance from the first minimum beyond which a minimum counts as a different one.
_N_QUANTILES, _HALF_WIDTH, _APART = 2048, 0.1, 0.01
#: Longest column, in rows, that is expanded into rows and fitted in memory if all its values are known.
_MOST_ROWS = 65_536


class Points(NamedTuple):
    """Weighted points that represent the cells of a column, and their robust fit.

    Attributes
    ----------
    x : (n,) ndarray
        The points, ascending.
    w : (n,) ndarray
        Their weights.
    row : (N_RESULTS,) ndarray
        Results of the fit of the points; see `kernels.results`.
    options : Options
        The options of the estimator, with the rectification rule that this fit used.
    """

    x: FloatArray
    w: FloatArray
    row: FloatArray
    options: Options

    @property
    def is_fitted(self) -> bool:
        """True if the fit of the points succeeded; False if all points are equal or the transform overflows."""
        return not is_identity(self.row)


class RobustStart(NamedTuple):
    """The start of a robust fit, with the points from which it was computed.

    Attributes
    ----------
    points : Points
        The points and their fit.
    cell : (n,) ndarray of int
        The cell of each point, as an index into `RobustChunkColumn.untied_cells`.
    search : Options
        The options of the search for the start.
    tie : float
        The value that more than half of the rows have, or NaN.
    tied_weight : float
        The weight of these rows.
    """

    points: Points
    cell: IntArray
    search: Options
    tie: float
    tied_weight: float

    @property
    def lmbda(self) -> float:
        """The initial lambda, at which the first reweighting step decides which values to keep."""
        return float(self.points.row[LMBDA0])


class CutRule(NamedTuple):
    """Rule by which values far from the center are cut off.

    Attributes
    ----------
    rule : int
        The rectification rule, a code of `kernels.transforms.rectified`.
    adaptive : bool
        Whether the cut-off adapts to the data.
    """

    rule: int
    adaptive: bool


class RobustChunkColumn(CountedColumn):
    """A column of a robust fit from chunks: its counts in cells, and the start, which is computed from the counts.

    Parameters
    ----------
    first : ColumnSample
        The sample of all columns.
    j : int
        Position of the column.
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
        #: effective number of rows as a fraction of the number of rows, rounded to 24 bits so that it does not depend
        #: on the order of merging
        self.share = float(np.float32(total * total / (squares * self.n_rows))) if squares > 0.0 else 1.0
        self.start: RobustStart | None = None
        self._scratch: RobustWork | None = None
        self._scratch_size = 0

    @property
    def is_whole(self) -> bool:
        """True if every row is known: the sample has all of them, or every cell holds one value.

        In the second case the column must be unweighted and short enough to be expanded into rows.
        """
        if not self.is_binned:
            return True
        return bool(self.cells.is_one_value.all()) and not self.weighted and self.n_rows <= _MOST_ROWS

    @property
    def is_started(self) -> bool:
        """True if `find_start` has been called and succeeded."""
        return self.start is not None and self.start.points.is_fitted

    @property
    def found_start(self) -> RobustStart:
        """The result of `find_start`."""
        assert self.start is not None
        return self.start

    @property
    def has_cut_off(self) -> bool:
        """True if the estimator keeps the rows within a cut-off distance of the center."""
        return self.estimator.criterion in (QQ, ADAPTIVE_QQ, CELLWISE_QQ)

    @property
    def weight(self) -> float:
        """Total weight of the column."""
        return float(self.cells.weight.sum())

    @property
    def untied_cells(self) -> CellMoments:
        """The cells, except the one of the value that more than half of the rows have, if there is such a value."""
        return self.cells.part(self.cells.mean != self._tie)

    @property
    def _tie(self) -> float:
        return np.nan if self.start is None else self.start.tie

    def parts(self) -> IntArray:
        """Return the number of parts into which to divide each cell, see `choose_parts`."""
        return choose_parts(self.cells, _critical_cells(self))

    # --- the start ------------------------------------------------------------------------------------

    def find_start(self) -> None:
        """Compute the start from points that represent the cells.

        If more than half of the rows have the same value, the cell of this value is left out, provided that the
        estimator can fit such columns (`fits_ties`).
        """
        start = self._start_without(self._tie)
        row = start.points.row
        if row[STATUS] == Status.NO_SPREAD and self.estimator.fits_ties and np.isnan(start.tie):
            tie = weighted_median(start.points.x, start.points.w)
            start = self._start_without(tie)
            row = start.points.row if start.points.is_fitted else row
        options = _options_of_fit(self.estimator.kernel_options, row)
        self.start = start._replace(points=start.points._replace(row=row, options=options))

    def _start_without(self, tie: float) -> RobustStart:
        """Return the start computed from all cells but the one with value `tie`; if `tie` is NaN, from all cells."""
        cells, search = self.cells.part(self.cells.mean != tie), self.estimator.kernel_options
        tied_weight = float(self.cells.weight.sum() - cells.weight.sum())
        x, w, cell = equal_points(cells)
        points = self.fit_points(search, x, w / self.unit)
        if not self.weighted and points.is_fitted and search.search == GLOBAL and self.has_cut_off:
            search, points = self._search_where_lower(search, points)
        return RobustStart(points, cell, search, tie, tied_weight)

    def _search_where_lower(self, search: Options, points: Points) -> tuple[Options, Points]:
        """Search again from the result of a finer search, and keep the lower of the two minima.

        The finer search is the search for points without weights. It minimises the objective of `_N_QUANTILES`
        quantiles of the weighted points, and may find a minimum that the search of the weighted points missed.

        Parameters
        ----------
        search : Options
            The options of the weighted search.
        points : Points
            The points, with the fit by this search.

        Returns
        -------
        search : Options
            The options, restricted to the neighborhood of the other minimum if that is lower.
        points : Points
            The points, with the better fit.
        """
        total = points.w.sum()
        m = int(min(total, _N_QUANTILES))
        x = points.x[np.searchsorted(np.cumsum(points.w), (np.arange(m) + 0.5) * total / m)]
        unweighted = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], None, self.family, search, new_robust_work(m), unweighted)
        lmbda, power = float(unweighted[0, LMBDA0]), self.prestandardizing_factor(points)
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
        """Fit other sets of points that have the same counts; their spread shows how uncertain the start is.

        One set has the mean and variance of each cell. The others are drawn at random with a fixed seed.
        """
        cells, rng, search = self.untied_cells, np.random.default_rng(0), self.found_start.search
        sets = [moment_points(cells), *(equal_points(cells, rng, self.share) for _ in range(_N_DRAWN))]
        fits = [self.fit_points(search, x, w / self.unit) for x, w, _ in sets]
        asked = self.estimator.kernel_options
        return [points._replace(options=_options_of_fit(asked, points.row)) for points in fits if points.is_fitted]

    # --- fits and cuts of points ----------------------------------------------------------------------

    def fit_points(self, options: Options, x: FloatArray, w: FloatArray) -> Points:
        """Fit the points `x` with weights `w`, both (n,), by the estimator with these options."""
        out = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], w[None], self.family, options, self._work_for(x.size), out)
        return Points(x, w, out[0], options)

    def _work_for(self, n: int) -> RobustWork:
        """Return scratch arrays for kernels that process `n` points; reuse the last ones if they are large enough."""
        if self._scratch is None or self._scratch_size < n:
            self._scratch, self._scratch_size = new_robust_work(n, weighted=True), n
        return self._scratch

    def objective(self, lmbdas: FloatArray) -> FloatArray:
        """Return the estimator's objective at each lambda, (k,), for the points that represent the column."""
        x, w, row, _ = self.found_start.points
        values: FloatArray = self.estimator.objective(x[:, None], self.family, lmbdas, w, 1, row[[ROUTE]])[0]
        return values

    def prestandardizing_factor(self, points: Points) -> float:
        """Return the factor by which prestandardising by the MAD of the logs multiplies lambda; 1 without this step."""
        if self.family != BOX_COX or points.options.prestandardize != MAD:
            return 1.0
        logs = np.log(points.x)
        return R_MAD_FACTOR * _median_distance(logs, points.w, weighted_median(logs, points.w))

    def cut(self, points: Points, lmbda: float, rule: CutRule) -> tuple[FloatArray, FloatArray]:
        """Apply a cut-off to transformed points.

        Parameters
        ----------
        points : Points
            The points.
        lmbda : float
            Lambda of the transform.
        rule : CutRule
            The rule.

        Returns
        -------
        cut : (N_CUTOFF_FIELDS,) ndarray
            The kept interval and its cut-off; see `EstimatorEntries.apply_cutoff`.
        y : (n,) ndarray
            The transformed points.
        """
        cut, y = np.empty(N_CUTOFF_FIELDS), np.empty(points.x.size)
        work = self._work_for(points.x.size)
        self.estimator.entries.apply_cutoff(
            points.x, points.w, self.family, points.options, lmbda, rule.rule, int(rule.adaptive), work, y, cut
        )
        return cut, y


def _options_of_fit(options: Options, row: FloatArray) -> Options:
    """Return the options, with the rectification rule that a fit used; `row`, (N_RESULTS,), holds its results."""
    both = row[ROUTE] == Route.REFIT_BOTH_SIDES
    return with_rule(options, QUARTILES, options.adaptive) if options.rule == BOTH and not both else options


# --- cells to divide ----------------------------------------------------------------------------------


def _critical_cells(column: RobustChunkColumn) -> BoolArray:
    """Return a mask of the cells on which the fit depends most.

    They contain medians, median distances, quartiles and the ends of kept intervals.
    """
    start = column.found_start
    x, w, _, options = start.points
    near = [_neighbors(x, _medians(x, w))]
    for step_index, (lmbda, rule) in enumerate(predict_cuts(column)):
        adaptive = step_rule(step_index, options)[1]
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
    """Predict, by a fit of the points, the lambda and the rectification rule of each reweighting step."""
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
    """Return the positions in `y` of the two points below and the two points above each finite value.

    `y`, (n,), is in ascending order. At the ends of `y`, positions are repeated.
    """
    above = np.searchsorted(y, values[np.isfinite(values)])
    points: IntArray = np.clip(np.concatenate([above + k for k in range(-2, 2)]), 0, y.size - 1)
    return points


def _medians(x: FloatArray, w: FloatArray, about: float | None = None) -> FloatArray:
    """Return the weighted median m and the points m - d and m + d, d being the median distance from m.

    Parameters
    ----------
    x, w : (n,) ndarray
        Ascending points and their weights.
    about : float, optional
        A second center c. The points c - d and c + d are appended, where d is the median distance from c.
    """
    median = weighted_median(x, w)
    values = [median]
    for center in [median] if about is None else [median, about]:
        distance = _median_distance(x, w, center)
        values += [center - distance, center + distance]
    return np.array(values)


def _median_distance(x: FloatArray, w: FloatArray, center: float) -> float:
    """Return the weighted median of ``abs(x - center)``; `x` and the weights `w` have shape (n,)."""
    distance = np.abs(x - center)
    order = np.argsort(distance)
    return weighted_median(distance[order], w[order])
