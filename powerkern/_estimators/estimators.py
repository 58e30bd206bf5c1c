"""The estimators other than maximum likelihood by name, and their options.

Each function in `ESTIMATORS` is one: its keyword arguments are the options that `powerkern.fit` takes for it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import column_figures, fit_matrix
from powerkern._engine.shifted import Columns
from powerkern._estimators.ties import fit_beyond_ties, sorted_with, without_ties
from powerkern._input.arrays import as_choice, is_real, is_whole
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.normality import search as normality_search
from powerkern.kernels.normality.criteria import weigh_columns
from powerkern.kernels.normality.search import KS, PPCC
from powerkern.kernels.results import LMBDA, N_EVAL, N_RESULTS, OBJECTIVE, STATUS
from powerkern.kernels.robust.fit import (
    fit_sorted_columns,
    fit_weighted_columns,
    objective_columns,
    weighted_objective_columns,
)
from powerkern.kernels.robust.qq import C
from powerkern.kernels.robust.search import (
    BRENT,
    CARROLL,
    GLOBAL,
    MAD,
    MEDIAN,
    QQ,
    RAW,
    TRIMMED,
    UNTIL_SETTLED,
    Options,
    RobustWork,
    new_robust_work,
)
from powerkern.kernels.robust.weights import new_counts_work
from powerkern.kernels.transforms.rectified import BOTH, CELLWISE, NOT_RECTIFIED, QUARTILES

#: Quantile of the normal distribution beyond which a value is an outlier.
QUANTILE = 0.995

#: Number of reweighting steps and what else is by convention: first weights, rectification, adaptive cut-offs.
_CONVENTIONS = {
    "adaptive": (3, "rectified", "both", True),
    "paper": (2, "plain", "one", False),
    "cellwise": (2, "rectified", "one", False),
}
_SEARCHES = {"global": GLOBAL, "brent": BRENT}
_PRESTANDARDIZE = {"mad": MAD, "median": MEDIAN, "none": RAW}
_FIRST_WEIGHTS = ("rectified", "plain")
_RECTIFY = {"one": QUARTILES, "both": BOTH}
#: Where lambda of the prestandardised column is sought, and quantiles beyond which its transforms are rectified.
SEARCH_RANGE, CHANGE_POINTS = (-4.0, 6.0), (0.25, 0.75)


#: How many values count as a degree of freedom of standardised values: found by simulation, see the guide.
_VALUES_PER_DEGREE = 4.0


class Robust(NamedTuple):
    """A robust estimator with its options: what the kernel is asked to do, and the quantile of the cut-off."""

    options: Options
    quantile: float

    def fit(
        self, values: Columns, family: int, weight: FloatArray, n_threads: int, progress: bool = False
    ) -> FloatArray:
        """Results of every column: (p, N_RESULTS)."""
        scratch = _RobustScratch(values.shape[0])

        def fit(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sorted_with(block, weight)
            out = fit_sorted(columns, weights)
            if not self.options.cellwise:
                fit_beyond_ties(fit_sorted, columns, weights, out)
            return out

        def fit_sorted(columns: FloatArray, weights: FloatArray | None) -> FloatArray:
            out = np.empty((len(columns), N_RESULTS))
            if weights is None:
                fit_sorted_columns(columns, family, self.options, scratch.plain, out)
            else:
                fit_weighted_columns(columns, weights, family, self.options, scratch.weighted, out)
            return out

        return column_figures(fit, values, N_RESULTS, n_threads, progress)

    def objective(
        self,
        values: Columns,
        family: int,
        lmbdas: FloatArray,
        weight: FloatArray,
        n_threads: int,
        routes: FloatArray,
    ) -> FloatArray:
        """What is minimised, of every column, fitted by its route, at every lambda: (p, len(lmbdas))."""
        scratch = _RobustScratch(values.shape[0])

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sorted_with(block, weight)
            out = at_sorted(columns, weights, routes[group])
            rows = np.flatnonzero(np.isnan(out).all(axis=1))
            if rows.size and not self.options.cellwise:
                out[rows] = at_sorted(*without_ties(columns, weights, rows)[:2], routes[group][rows])
            return out

        def at_sorted(columns: FloatArray, weights: FloatArray | None, routes: FloatArray) -> FloatArray:
            out = np.empty((len(columns), lmbdas.size))
            if weights is None:
                objective_columns(columns, family, self.options, routes, lmbdas, scratch.plain, out)
            else:
                weighted_objective_columns(
                    columns, weights, family, self.options, routes, lmbdas, scratch.weighted, out
                )
            return out

        return column_figures(evaluate, values, lmbdas.size, n_threads)


class _RobustScratch(threading.local):
    """Each thread's arrays of `kernels.robust_search.RobustWork`, made when they are needed (see `FitScratch`)."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._plain: RobustWork | None = None
        self._weighted: RobustWork | None = None

    @property
    def plain(self) -> RobustWork:
        """For columns without weights."""
        if self._plain is None:
            self._plain = new_robust_work(self._n)
        return self._plain

    @property
    def weighted(self) -> RobustWork:
        """For columns with weights."""
        if self._weighted is None:
            self._weighted = new_robust_work(self._n, weighted=True)
        return self._weighted


class NearestNormal(NamedTuple):
    """A criterion of normality in place of the likelihood, and the quantile of the cut-off."""

    criterion: int
    quantile: float

    def fit(
        self, values: Columns, family: int, weight: FloatArray, n_threads: int, progress: bool = False
    ) -> FloatArray:
        """Results of every column, with the lambda that minimises the criterion, searched for from the likeliest."""
        likely = fit_matrix(values, family, np.full(values.shape[1], np.nan), weight, n_threads)
        usable = np.isin(likely[:, STATUS], (Status.OK, Status.NOT_CERTIFIED))
        if not usable.any():
            return likely
        start = np.where(usable, likely[:, LMBDA], np.nan)
        width = normality_search.N_FOUND
        room = normality_search.room_of_lanes(values.shape[0])

        def search(block: FloatArray, group: slice) -> FloatArray:
            out, lanes, work = np.empty((len(block), width)), np.empty(room), np.empty((4, block.shape[1]))
            if weight.size:
                columns, weighed, figures = weighed_with(block, weight)
                normality_search.weighted_criterion_columns(
                    columns, weighed, figures, family, self.criterion, start[group], work, lanes, out
                )
                return out
            block.sort(axis=1)  # NaN last
            quantiles = normal_quantiles_of(block) if self.criterion == normality_search.PPCC else block
            normality_search.criterion_columns(block, family, self.criterion, start[group], quantiles, work, lanes, out)
            return out

        found = column_figures(search, values, width, n_threads, progress)
        results = fit_matrix(values, family, found[:, normality_search.FOUND_LMBDA].copy(), weight, n_threads)
        results[~usable] = likely[~usable]
        done = results[:, STATUS] == Status.FIXED
        results[done, STATUS] = found[done, normality_search.FOUND_STATUS]
        results[usable, N_EVAL] = likely[usable, N_EVAL] + found[usable, normality_search.FOUND_N_EVAL]
        results[usable, OBJECTIVE] = found[usable, normality_search.FOUND_VALUE]
        return results

    def objective(
        self,
        values: Columns,
        family: int,
        lmbdas: FloatArray,
        weight: FloatArray,
        n_threads: int,
        routes: FloatArray,
    ) -> FloatArray:
        """What is minimised, of every column, whatever the route of its fit, at every lambda: (p, len(lmbdas))."""

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.full((block.shape[0], lmbdas.size), np.nan), np.empty((2, block.shape[1]))
            if weight.size:
                block, weighed, figures = weighed_with(block, weight)
            else:
                block.sort(axis=1)
                quantiles = normal_quantiles_of(block)
            counts = block.shape[1] - np.isnan(block).sum(axis=1)
            for j in range(len(block)):
                x, one = block[j, : counts[j]], slice(j, j + 1)
                if x.size < 2 or not x[0] < x[-1]:
                    continue
                if weight.size:
                    own = np.ascontiguousarray(weighed[:, one, : x.size])
                    normality_search.weighted_criterion_at(
                        x, own, figures[one], family, self.criterion, lmbdas, work, out[j]
                    )
                else:
                    q = quantiles[j, : x.size]
                    normality_search.criterion_at(x, family, self.criterion, lmbdas, q, work, out[j])
            return out

        return column_figures(evaluate, values, lmbdas.size, n_threads)


def weighed_with(block: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The rows of a block sorted, and what `weigh_columns` makes of their weights."""
    columns, weights = sorted_with(block, weight)
    assert weights is not None
    weighed, figures = np.zeros((3, *block.shape)), np.zeros((len(block), 2))
    weigh_columns(columns, weights, new_counts_work(block.shape[1]), weighed, figures)
    return columns, weighed, figures


def normal_quantiles_of(block: FloatArray) -> FloatArray:
    """`normality_search.normal_quantiles` for the values of each row, NaN last."""
    quantiles = np.zeros_like(block)
    counts = block.shape[1] - np.isnan(block).sum(axis=1)
    for n in np.unique(counts[counts > 1]):
        quantiles[counts == n, :n] = normality_search.normal_quantiles(n)
    return quantiles


def rewml(
    *,
    convention: str = "adaptive",
    search: str | None = None,
    quantile: float = QUANTILE,
    n_reweight: int | str | None = None,
    prestandardize: str | None = None,
    c: float = C,
    change_points: Sequence[float] = CHANGE_POINTS,
    first_weights: str | None = None,
    rectify: str | None = None,
    search_range: Sequence[float] = SEARCH_RANGE,
) -> Robust:
    """Reweighted maximum likelihood."""
    start = rewml_nr(
        convention=convention,
        search=search,
        quantile=quantile,
        n_reweight=n_reweight,
        prestandardize=prestandardize,
        c=c,
        search_range=search_range,
    )
    _, weights, sides, _ = _CONVENTIONS[convention]
    rule = _rule(sides if rectify is None else rectify, start.options.cellwise)
    first_weights = weights if first_weights is None else first_weights
    plain = as_choice("first_weights", first_weights, _FIRST_WEIGHTS) == "plain"
    lower, upper = _pair("change_points", change_points)
    if not 0.0 < lower < 0.5 < upper < 1.0:
        raise ValueError(f"change_points must be a quantile below 0.5 and one above, got {change_points!r}")
    options = start.options._replace(
        rule=rule, first_rule=NOT_RECTIFIED if plain else rule, lower_tail=lower, upper_tail=1.0 - upper
    )
    return Robust(options, start.quantile)


def _rule(rectify: str, cellwise: bool) -> int:
    """Change points by `rectify` and the convention."""
    rule = _RECTIFY[as_choice("rectify", rectify, _RECTIFY)]
    if cellwise and rule == BOTH:
        raise ValueError("convention='cellwise' rectifies on one side: rectify='both' goes with the others")
    return CELLWISE if cellwise else rule


def rewml_nr(
    *,
    convention: str = "adaptive",
    search: str | None = None,
    quantile: float = QUANTILE,
    n_reweight: int | str | None = None,
    prestandardize: str | None = None,
    c: float = C,
    search_range: Sequence[float] = SEARCH_RANGE,
) -> Robust:
    """Reweighted maximum likelihood from a start without rectification."""
    cellwise = as_choice("convention", convention, _CONVENTIONS) == "cellwise"
    if search is None:
        search = "brent" if cellwise else "global"
    if prestandardize is None:
        prestandardize = "median" if cellwise else "mad"
    if n_reweight is None:
        n_reweight = _CONVENTIONS[convention][0]
    settles = n_reweight == "settled"
    if not settles and (not is_whole(n_reweight) or not 0 <= int(n_reweight) <= 100):
        raise ValueError(f"n_reweight must be a whole number from 0 to 100, or 'settled', got {n_reweight!r}")
    if not 0.0 < _number("c", c) < math.inf:
        raise ValueError(f"c, the constant of the bisquare, must be positive and finite, got {c!r}")
    robust = _robust(
        QQ,
        prestandardize,
        quantile,
        search_range,
        search=_SEARCHES[as_choice("search", search, _SEARCHES)],
        cellwise=cellwise,
        n_reweight=UNTIL_SETTLED if settles else int(n_reweight),
        adaptive=_CONVENTIONS[convention][3],
        c=float(c),
    )
    if cellwise and not robust.options.low < 1.0 < robust.options.high:
        raise ValueError(f"search_range must contain 1 with convention='cellwise', got {search_range!r}")
    return robust


def carroll(
    *, quantile: float = QUANTILE, prestandardize: str = "mad", search_range: Sequence[float] = SEARCH_RANGE
) -> Robust:
    """Likelihood with Huber's scale in place of the standard deviation."""
    return _robust(CARROLL, prestandardize, quantile, search_range)


def mtl(
    *,
    h: float = 0.95,
    quantile: float = QUANTILE,
    prestandardize: str = "mad",
    search_range: Sequence[float] = SEARCH_RANGE,
) -> Robust:
    """Maximum trimmed likelihood."""
    fraction = _number("h", h)
    if not 0.5 < fraction <= 1.0:
        raise ValueError(f"h, the fraction of values kept, must be above 0.5 and at most 1, got {h!r}")
    return _robust(TRIMMED, prestandardize, quantile, search_range, fraction=fraction)


def ks(*, quantile: float = QUANTILE) -> NearestNormal:
    """Least Kolmogorov-Smirnov distance from the fitted normal distribution."""
    cutoff_of(quantile)
    return NearestNormal(KS, float(quantile))


def ppcc(*, quantile: float = QUANTILE) -> NearestNormal:
    """Largest probability plot correlation coefficient."""
    cutoff_of(quantile)
    return NearestNormal(PPCC, float(quantile))


ESTIMATORS: Mapping[str, Callable[..., Robust | NearestNormal]] = {
    "rewml": rewml,
    "rewml-nr": rewml_nr,
    "carroll": carroll,
    "mtl": mtl,
    "ks": ks,
    "ppcc": ppcc,
}


#: Names of arguments of `powerkern.fit` in other libraries.
_ELSEWHERE = {
    "method": "family", "type": "family", "lambdas": "lmbda", "lambdas_": "lmbda", "lambda_": "lmbda", "lam": "lmbda",
    "optimizer": "estimator", "brack": "bounds", "limits": "bounds", "lower": "bounds", "upper": "bounds",
    "lambda_bounds": "bounds", "lmbda_bounds": "bounds", "gamma": "shift", "start": "shift", "offset": "shift",
    "standardise": "standardize", "weights": "sample_weight", "n_jobs": "n_threads", "names": "column_names",
}  # fmt: skip


def needs_order(estimator: str) -> bool:
    """Whether every value must be known in its order, so that there are no fits from chunks."""
    return estimator in ("ks", "ppcc")


def other_estimator(
    name: str, options: Mapping[str, Any], arguments: Iterable[str] = ()
) -> Robust | NearestNormal | None:
    """The estimator of that name with its options; None for maximum likelihood, which has no options.

    `arguments` are suggested where an unknown option resembles one.
    """
    function = ESTIMATORS.get(as_choice("estimator", name, ("mle", *ESTIMATORS)))
    known = list(inspect.signature(function).parameters) if function is not None else []
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(_ELSEWHERE.get(option, option), [*known, *arguments], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise TypeError(f"estimator {name!r} has no option {option!r}: {has}{hint}")
    return None if function is None else function(**options)


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an estimator in types that JSON has."""
    return {name: _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    if is_whole(value):
        return int(value)
    if is_real(value):
        return float(value)
    return [_plain(part) for part in value] if _is_sequence(value) else value


def _robust(
    criterion: int,
    prestandardize: str,
    quantile: float,
    search_range: Sequence[float],
    *,
    search: int = GLOBAL,
    cellwise: bool = False,
    n_reweight: int = 0,
    adaptive: bool = False,
    fraction: float = 1.0,
    c: float = C,
) -> Robust:
    """A robust estimator that does not rectify."""
    low, high = _pair("search_range", search_range)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"search_range must be two finite numbers, the lower first, got {search_range!r}")
    options = Options(
        criterion=criterion,
        rule=NOT_RECTIFIED,
        prestandardize=_PRESTANDARDIZE[as_choice("prestandardize", prestandardize, _PRESTANDARDIZE)],
        search=search,
        cellwise=cellwise,
        low=low,
        high=high,
        cutoff=cutoff_of(quantile),
        n_reweight=n_reweight,
        adaptive=adaptive,
        fraction=fraction,
        c=c,
        lower_tail=CHANGE_POINTS[0],
        upper_tail=1.0 - CHANGE_POINTS[1],
        first_rule=NOT_RECTIFIED,
    )
    return Robust(options, float(quantile))


def cutoff_of(quantile: float) -> float:
    """Phi^-1(quantile): standardised values further from 0 are outliers."""
    value = _number("quantile", quantile)
    if not 0.5 < value < 1.0:
        raise ValueError(f"quantile must be between 0.5 and 1, got {quantile!r}")
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    return float(ndtri(value))


def small_sample_cutoff(quantile: float, n: FloatArray) -> FloatArray:
    """The quantile of Student's t with n/4 degrees of freedom: standardised values further from 0 are outliers.

    After reweighted maximum likelihood from n values, about ``2 (1 - quantile)`` of clean ones are.
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(n / _VALUES_PER_DEGREE, quantile))


def weight_of_one(weight: FloatArray) -> float:
    """What counts as one value by weights: see `powerkern.kernels.robust.weights`."""
    largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return 1.0
    share = weight / largest  # the squares of weights might overflow, or vanish
    return min(largest * float(np.sum(share * share) / np.sum(share)), 1.0)


def weights_of_one(values: NDArray[Any], weight: FloatArray) -> FloatArray | None:
    """`weight_of_one` of what is there of every column; None where weights, if there are any, are counts."""
    if weight.size == 0:
        return None
    units = np.array([weight_of_one(weight[~np.isnan(column)]) for column in values.T])
    return units if (units < 1.0).any() else None


def _number(what: str, value: object) -> float:
    if not is_real(value) or math.isnan(value):
        raise TypeError(f"{what} must be a number, got {value!r}")
    return float(value)


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)


def _pair(what: str, value: object) -> tuple[float, float]:
    numbers = list(value) if _is_sequence(value) else []
    if len(numbers) != 2:
        raise TypeError(f"{what} must be two numbers, got {value!r}")
    each = f"each of {what}"
    return _number(each, numbers[0]), _number(each, numbers[1])
