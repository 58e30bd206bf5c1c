"""One column of a robust fit from chunks: its counts, its start, its reweighting steps and its result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._estimators.base import Run
from powerkern._estimators.robust import RobustEstimator
from powerkern._estimators.robust_bounds import huber_of_standardized, restandardize
from powerkern._estimators.ties import count_ties
from powerkern._input.arrays import NO_WEIGHTS
from powerkern._status import Route, Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.location.huber import HUBER_K
from powerkern.kernels.results import (
    CENTER,
    CURVATURE,
    DIVISOR,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA,
    LMBDA0,
    N_EVAL,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    NLL,
    OBJECTIVE,
    ROUTE,
    STATUS,
    is_identity,
    write_identity,
    write_range,
)
from powerkern.kernels.robust.adaptive_rewml import N_WIDER, WIDER
from powerkern.kernels.robust.fit import (
    CUT_AFTER,
    CUT_BEFORE,
    CUT_CENTER,
    CUT_DIVISOR,
    CUT_HIGH,
    CUT_LOC,
    CUT_LOW,
    CUT_OFF,
    CUT_SCALE,
    CUT_TAIL,
    N_CUT,
)
from powerkern.kernels.robust.options import (
    ADAPTIVE_QQ,
    CARROLL,
    CELLWISE_QQ,
    GLOBAL,
    MAD,
    QQ,
    TRIMMED,
    Options,
    with_rule,
)
from powerkern.kernels.robust.reweighting import MAX_TURNS, cut_in, n_fits_of
from powerkern.kernels.robust.scratch import new_robust_work
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES
from powerkern.sketch.order import (
    Cells,
    CountedColumn,
    Sample,
    check_unchanged,
    equal_points,
    moment_points,
    parts_of,
    weighted_median,
)
from powerkern.sketch.passes import Kept
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import summarize_chunk

#: Number of sets of points drawn at random.
_N_DRAWN = 6
#: Number of quantiles in a search without weights; half-width of the search by all points around its minimum; the
#: distance from the start beyond which that is another minimum.
_N_QUANTILES, _REACH, _APART = 2048, 0.1, 0.01
#: Columns of at most so many rows are fitted as in memory if all their values are known.
_MOST_ROWS = 65_536
#: Largest error of lambda, in standard errors, that does not change the status; larger ones are multiplied by _MARGIN.
_NEGLIGIBLE, _MARGIN = 0.01, 4.0


class Points(NamedTuple):
    """Other points for the cells of a column, with weights, the robust fit of these, and its options."""

    x: FloatArray
    w: FloatArray
    row: FloatArray
    options: Options


def _options_of(options: Options, row: FloatArray) -> Options:
    """Options with the rule by which a fit started."""
    both = row[ROUTE] == Route.REFIT_BOTH_SIDES
    return with_rule(options, QUARTILES, options.adaptive) if options.rule == BOTH and not both else options


class Column(CountedColumn):
    """The state of the fit of one column."""

    def __init__(self, first: Sample, j: int, estimator: RobustEstimator, family: int) -> None:
        super().__init__(first, j)
        self.family, self.estimator = family, estimator
        self.weighted, self.unit = first.weighted, float(first.unit[j]) if first.weighted else 1.0
        self.ends, self.n_rows = first.ends[j], float(first.range.count[j])
        self.options: Options = estimator.kernel_options
        self.begun = np.empty(N_RESULTS)  # the fit to points, for its start
        self.tie, self.tied = np.nan, 0.0
        self.lmbda, self.interval = np.nan, np.full(5, np.nan)
        self.row, self.kept_ends, self.status = np.empty(0), np.empty(0), int(Status.OK)  # of the last fit
        self.n_eval, self.settled = 0.0, False
        self.adaptive, self.last_cutoff = False, np.nan  # whether the cut-off is adaptive; the last cut-off
        self.error, self.is_given, self.others = 0.0, False, list[Points]()
        self.searched = 0.0  # how far from the minimum a search may end
        self.zones = np.full((2, 3), np.nan)
        _, total, squares = first.weights[j]
        #: effective number of rows over their number, to 24 bits: the same in any order
        self.share = float(np.float32(total * total / (squares * self.n_rows))) if squares > 0.0 else 1.0

    # --- counts ---------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether the rows are known: all were drawn, or their few values have been counted."""
        if not self.is_binned:
            return True
        return bool(self.cells.is_one_value.all()) and not self.weighted and self.n_rows <= _MOST_ROWS

    @property
    def is_fitted(self) -> bool:
        """Whether a start was found."""
        return not is_identity(self.begun)

    @property
    def has_cut_off(self) -> bool:
        """Whether rows are kept by their distance from the center."""
        return self.estimator.criterion in (QQ, ADAPTIVE_QQ, CELLWISE_QQ)

    @property
    def untied(self) -> Cells:
        """The cells other than that of a value to which more than half of the values are equal."""
        return self.cells.part(self.cells.mean != self.tie)

    @property
    def weight(self) -> float:
        """The weight of all values."""
        return float(self.cells.weight.sum())

    def parts(self) -> IntArray:
        """Number of parts into which to divide each cell."""
        return parts_of(self.cells, self._critical())

    @property
    def standard_error(self) -> float:
        """The standard error of lambda, by the likelihood of the values kept."""
        information = self.row[CURVATURE] * self.row[N_OBS] / self.unit
        return float(1.0 / np.sqrt(information)) if information > 0.0 else np.inf

    # --- the start -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Find the start from points for the cells, without a value to which more than half of the values are equal."""
        self._fit_points()
        if self.begun[STATUS] == Status.NO_SPREAD and self.estimator.fits_ties and np.isnan(self.tie):
            whole = self.begun
            self.tie = float(self.x[np.searchsorted(np.cumsum(self.w), 0.5 * self.w.sum())])
            self._fit_points()
            if not self.is_fitted:
                self.begun = whole
        self.options = _options_of(self.estimator.kernel_options, self.begun)
        self.lmbda = float(self.begun[LMBDA0])

    def compare(self) -> None:
        """Fit other points for the cells: points with their moments, and points drawn at random from a fixed seed."""
        cells, rng = self.untied, np.random.default_rng(0)
        sets = [moment_points(cells), *(equal_points(cells, rng, self.share) for _ in range(_N_DRAWN))]
        self.others = []
        for x, w, _ in sets:
            w /= self.unit
            row = self.fitted_points(self.search, x, w)
            if not is_identity(row):
                self.others.append(Points(x, w, row, _options_of(self.estimator.kernel_options, row)))

    def _fit_points(self) -> None:
        others = self.untied
        self.tied = float(self.cells.weight.sum() - others.weight.sum())
        self.x, self.w, self.cell = equal_points(others)
        self.w /= self.unit
        self.work = new_robust_work(self.x.size, weighted=True)
        self.search = self.estimator.kernel_options
        self.begun = self.fitted_points(self.search, self.x, self.w)
        if not self.weighted and self.is_fitted and self.search.search == GLOBAL and self.has_cut_off:
            self._search_where_lower()

    def _search_where_lower(self) -> None:
        """Start from another minimum if the search without weights, which is finer, has found a lower one."""
        total = self.w.sum()
        m = int(min(total, _N_QUANTILES))
        x = self.x[np.searchsorted(np.cumsum(self.w), (np.arange(m) + 0.5) * total / m)]
        found = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], None, self.family, self.search, new_robust_work(m), found)
        at, power = float(found[0, LMBDA0]), self.power
        distance = abs(at - self.begun[LMBDA0]) * power
        if is_identity(found[0]) or distance < _APART:
            return
        reach = min(_REACH, 0.5 * distance)
        narrow = self.search._replace(low=at * power - reach, high=at * power + reach)
        begun = self.fitted_points(narrow, self.x, self.w)
        if not is_identity(begun) and begun[OBJECTIVE] < self.begun[OBJECTIVE]:
            self.search, self.begun = narrow, begun
            self.begun[STATUS] = found[0, STATUS]

    def objective(self, lmbdas: FloatArray) -> FloatArray:
        """The objective of the estimator, for the points."""
        found: FloatArray = self.estimator.objective(
            self.x[:, None], self.family, lmbdas, self.w, 1, self.begun[[ROUTE]]
        )[0]
        return found

    @property
    def power(self) -> float:
        """The factor by which prestandardising multiplies lambda."""
        if self.family != BOX_COX or self.options.prestandardize != MAD:
            return 1.0
        logs = np.log(self.x)
        return 1.4826 * _median_distance(logs, self.w, weighted_median(logs, self.w))

    def fitted_points(self, options: Options, x: FloatArray, w: FloatArray) -> FloatArray:
        """The fit of points, at most as many as the column has."""
        out = np.empty((1, N_RESULTS))
        self.estimator.entries.fit(x[None], w[None], self.family, options, self.work, out)
        row: FloatArray = out[0]
        return row

    def cut(self, lmbda: float, rule: int, points: Points | None = None) -> tuple[FloatArray, FloatArray]:
        """The points' kept interval at a lambda (see `kernels.robust.fit.Entries`), and the transformed points."""
        x, w, options = (self.x, self.w, self.options) if points is None else (points.x, points.w, points.options)
        figures, y = np.empty(N_CUT), np.empty(x.size)
        cut = self.estimator.entries.cut
        cut(x, w, self.family, options, lmbda, rule, int(self.adaptive), self.work, y, figures)
        return figures, y

    def _critical(self) -> BoolArray:
        """Mask of the cells that contain medians, median distances, quartiles and ends of the kept interval."""
        at = [self.near(self.x, _order_points(self.x, self.w))]
        for turn, (lmbda, rule) in enumerate(self._cuts()):
            self.adaptive = cut_in(turn, self.options)[1]
            figures, y = self.cut(lmbda, rule)
            cutoffs = self.options.cutoff + WIDER * np.arange(1 + self.adaptive * N_WIDER)
            reaches = np.append(cutoffs, HUBER_K) * figures[CUT_SCALE]
            ends = figures[CUT_LOC] + np.append(-reaches, reaches)
            shares = figures[CUT_BEFORE], self.w.sum() - figures[CUT_AFTER]
            ranks = np.interp(shares, np.cumsum(self.w), np.arange(self.w.size))
            at += [self.near(y, _order_points(y, self.w, figures[CUT_LOC])), self.near(y, ends), ranks.astype(int)]
        quartiles = np.searchsorted(
            np.cumsum(self.w) / self.w.sum(), [self.options.lower_tail, 1.0 - self.options.upper_tail]
        )
        points = np.clip(np.concatenate([*at, quartiles]), 0, self.x.size - 1)
        others = np.flatnonzero(self.cells.mean != self.tie)
        chosen = np.zeros(self.cells.rows.size, dtype=bool)
        chosen[others[self.cell[points]]] = True
        return chosen & ~self.cells.is_one_value

    def _cuts(self) -> list[tuple[float, int]]:
        """The lambdas, predicted from the points, at which cut-offs will be applied, each with its rule."""
        found = [(self.lmbda, self.options.first_rule)]
        if self.has_cut_off and 0 < self._n_fits < MAX_TURNS:
            for n in range(1, self._n_fits):
                sooner = self.estimator.kernel_options._replace(n_reweight=n)
                found.append((float(self.fitted_points(sooner, self.x, self.w)[LMBDA]), NOT_RECTIFIED))
            return found
        return [*found, (float(self.begun[LMBDA]), NOT_RECTIFIED)]

    def near(self, y: FloatArray, values: FloatArray) -> IntArray:
        """The two points on either side of each value."""
        above = np.searchsorted(y, values[np.isfinite(values)])
        points: IntArray = np.clip(np.concatenate([above + k for k in range(-2, 2)]), 0, y.size - 1)
        return points

    # --- reweighting -----------------------------------------------------------------------------------

    @property
    def _n_fits(self) -> int:
        return n_fits_of(self.options)

    def chooses(self, turn: int) -> bool:
        """Choose the values to be fitted in a turn; False if there is nothing more to do."""
        n_fits = self._n_fits
        if self.settled or turn >= (n_fits + 1 if self.estimator.criterion == CELLWISE_QQ or n_fits == 0 else n_fits):
            return False
        self.rule, self.adaptive = cut_in(turn, self.options)
        figures, _ = self.cut(self.lmbda, self.rule)
        self.last_cutoff = float(figures[CUT_OFF])
        low, high = figures[CUT_LOW], figures[CUT_HIGH]
        self.cut_off, self.open_ends = np.zeros(2), np.zeros(2)
        if self.estimator.criterion == TRIMMED:
            low, self.cut_off[0], self.open_ends[0] = self._end_at(figures[CUT_BEFORE], 1.0)
            high, self.cut_off[1], self.open_ends[1] = self._end_at(figures[CUT_AFTER], -1.0)
        if self.estimator.criterion == CARROLL:
            low, high = self.ends
        within = np.clip([low, high], *self.ends)
        interval = np.array([*within, figures[CUT_CENTER], figures[CUT_DIVISOR], self.tie])
        self.settled = np.array_equal(interval, self.interval, equal_nan=True)
        self.interval, self.limits = interval, (low, high)
        return not self.settled and within[0] < within[1]

    def _end_at(self, outside: float, side: float) -> tuple[float, float, float]:
        """The value below (side 1) or above (-1) which a given weight lies, and the part of its weight to leave out.

        Also the weight of the cell there, if it has several values, which may lie on either side.
        """
        step = int(side)
        others = self.untied
        weight = others.weight[::step] / self.unit
        before = np.append(0.0, np.cumsum(weight))
        c = int(np.clip(np.searchsorted(before, outside * (1.0 + 1e-12), side="right") - 1, 0, weight.size - 1))
        near, far = (others.low, others.high)[::step]
        share = (outside - before[c]) / weight[c]
        if near[::step][c] == far[::step][c]:
            return float(near[::step][c]), max(share, 0.0) * weight[c] * self.unit, 0.0
        return float(near[::step][c] + share * (far[::step][c] - near[::step][c])), 0.0, weight[c] * self.unit

    def take(self, kept: Kept, turn: int) -> None:
        """Fit the kept values."""
        self._check_unchanged(kept)
        ends, sums = kept.ends[:, 0], self._without_cut_off(kept.sketch).power_sums()
        given = self.lmbda if turn == self._n_fits else np.nan
        row = sums.fit(np.array([given]), 1)[0][0]
        self.n_eval += row[N_EVAL]
        if self.row.size and row[N_OBS] == self.row[N_OBS] and (ends == self.kept_ends).all():
            self.settled = True
            return
        self.sums, self.row, self.kept_ends = sums, row, ends
        self.is_given = not np.isnan(given)
        if not self.is_given:
            self.status, self.lmbda = int(row[STATUS]), float(row[LMBDA])

    def _check_unchanged(self, kept: Kept) -> None:
        """Raise if the total weight has changed, or the kept weight contradicts the counts."""
        check_unchanged(self.label, self.first.total[self.j], float(kept.weight[0]))
        low, high = self.interval[:2]
        cells = self.untied
        least = cells.weight[(low <= cells.low) & (cells.high <= high)].sum()
        most = cells.weight[(low <= cells.high) & (cells.low <= high)].sum()
        slack = 1e-9 * self.weight + float(self.first.slack[self.j])
        found = float(kept.sketch.n_obs[0])
        check_unchanged(self.label, float(np.clip(found, least, most)), found, slack)

    def _without_cut_off(self, kept: Sketch) -> Sketch:
        """Sums without the weight of the smallest and of the largest value that a trimmed window leaves out."""
        if not self.cut_off.any():
            return kept
        low, high, center, divisor = self.interval[:4]
        ends = (np.array([[low], [high]]) - center) / divisor
        left_out = summarize_chunk(ends, kept.grid, sample_weight=self.cut_off)
        return Sketch(kept.grid, kept.sums - left_out.sums, kept.roundings + left_out.roundings)

    # --- the result ------------------------------------------------------------------------------------

    def result(self) -> FloatArray:
        """The row of results."""
        row = self._found()
        if self.cells.rows.sum() < self.n_rows:  # weights that are negligible beside others were rounded to 0
            row[STATUS], self.error = Status.UNRESOLVED, np.inf
        return row

    def _found(self) -> FloatArray:
        if self.is_whole:
            x, weight = self._rows()
            whole: FloatArray = self.estimator.fit_values(x[:, None], self.family, weight, Run(1))[0]
            self.whole = whole
            return whole
        if not (self.is_fitted and self.row.size) or is_identity(self.row):
            row = self.begun.copy()
            write_range(row, self.weight, *self.ends)
            write_identity(row, int(self.begun[STATUS]) if not self.is_fitted else int(Status.UNREPRESENTABLE))
            return row
        row = self.row.copy()
        row[STATUS] = self._status()
        return self._finished(row)

    def _status(self) -> int:
        """The status of the fit, by the precedence of `kernels.robust`."""
        settled = self.settled or self._n_fits < MAX_TURNS
        if self.row[STATUS] == Status.UNRESOLVED or self.status not in (Status.OK, Status.FIXED):
            return int(self.row[STATUS])
        if self.begun[STATUS] == Status.NOT_CERTIFIED:
            return int(Status.NOT_CERTIFIED)
        if self.estimator.criterion == ADAPTIVE_QQ and self.cut(self.lmbda, NOT_RECTIFIED)[0][CUT_TAIL]:
            return int(Status.TAIL_KEPT)
        if not settled:
            return int(Status.NOT_SETTLED)
        if self.begun[STATUS] == Status.MULTIMODAL:
            return int(Status.MULTIMODAL)
        return int(Status.BRACKETED if self._is_open else Status.SCANNED)

    @property
    def _is_open(self) -> bool:
        return self.row.size > 0 and self.error > _NEGLIGIBLE * self.standard_error

    @property
    def bound(self) -> float:
        """Bound on the error of lambda, with a margin where rows are close to the cut-offs, whose effects add up."""
        return _MARGIN * self.error if self._is_open else self.error

    def moved(self, lmbda: float) -> FloatArray:
        """The results of the same values at another lambda, which is a bound."""
        given = np.array([lmbda])
        if self.is_whole:
            x, weight = self._rows()
            row: FloatArray = self.estimator.results_at(given, x[:, None], self.family, self.whole[None], weight, 1)[0]
            return row
        return self._finished(self.sums.fit(given, 1)[0][0])

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """Values, and their weights if there are any."""
        x, w = self.cells.mean, self.cells.weight
        if not x.size:
            return np.array([np.nan]), NO_WEIGHTS
        return (x, w) if self.weighted else (np.repeat(x, w.astype(np.int64)), NO_WEIGHTS)

    def _finished(self, row: FloatArray) -> FloatArray:
        """The results of a fit of the kept values, completed by those of the whole column, as in `kernels.robust`."""
        n_kept, options = row[N_OBS], self.options
        center, divisor = self.interval[2:4]
        write_range(row, self.weight - self.tied, *self.ends)
        row[[LMBDA0, CENTER, DIVISOR, OBJECTIVE]] = self.begun[LMBDA0], center, divisor, self.begun[OBJECTIVE]
        row[NLL] += np.log(divisor)
        row[N_EVAL] = self.begun[N_EVAL] + self.n_eval
        if self.estimator.criterion == CARROLL:
            restandardize(row[None], *huber_of_standardized(self.x[None], self.family, row[None], self.w))
        else:
            row[ROUTE] = Route.REFIT_BOTH_SIDES if options.rule == BOTH else Route.REFIT
            row[N_KEPT], row[[KEPT_LOW, KEPT_HIGH]] = n_kept, self.kept_ends
            share = n_kept / row[N_OBS]  # for the consistency factor of a truncated normal standard deviation
            correction = self.estimator.entries.scale_factor(n_kept / self.unit, share, self.last_cutoff)
            restandardize(row[None], 0.0, np.array([correction]))
            if self.has_cut_off and self.rule == NOT_RECTIFIED:
                row[[KEPT_LOW, KEPT_HIGH]] = self.limits
        row[N_OBS] = self.weight
        if not np.isnan(self.tie):
            count_ties(row[None], np.array([self.tie]), np.array([self.tied]))
        return row


def _order_points(x: FloatArray, w: FloatArray, about: float | None = None) -> FloatArray:
    """The median; it and `about`, each minus and plus the median distance from it."""
    median = weighted_median(x, w)
    found = [median]
    for center in [median] if about is None else [median, about]:
        reach = _median_distance(x, w, center)
        found += [center - reach, center + reach]
    return np.array(found)


def _median_distance(x: FloatArray, w: FloatArray, center: float) -> float:
    """The median distance of values from a center."""
    distance = np.abs(x - center)
    order = np.argsort(distance)
    return weighted_median(distance[order], w[order])
