"""The two protocols, as the server sees them: what to ask, how to read an answer, how answers become a fit.

`conversation` is a generator. It yields requests, is sent what the answers of all clients say, and returns the results.
It knows neither names of clients nor how messages travel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._estimators.limits import LambdaLimit, at_bound, bounded_lambdas, lambda_limit
from powerkern._estimators.power_sums import PowerSums
from powerkern._estimators.shift import to_own_units
from powerkern._input.arguments import given_lambdas
from powerkern._input.arrays import column_label
from powerkern._status import Status
from powerkern._typing import Bounds
from powerkern.federated import pool, secure
from powerkern.federated.ledger import NONCE_BYTES
from powerkern.federated.messages import Kind, Message, as_body
from powerkern.federated.policy import codes_above, codes_below
from powerkern.federated.pool import PooledColumn
from powerkern.federated.privacy import UNIT, Bins, Privacy, Question, fit_sums
from powerkern.federated.requests import write_moments_request
from powerkern.federated.search import ROUNDED_XTOL, XTOL, Evaluation, Found, Search, at_point, search
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score as lk
from powerkern.kernels.results import LMBDA, LMBDA0, STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import EMPTY_RANGE, Grid, Range, Sketch, finish_results, merge

FloatArray = NDArray[np.float64]

_NOTHING = np.empty(0)
#: What a sketch says of columns that moments may tell more of.
_OPEN = (Status.UNRESOLVED, Status.NOT_CERTIFIED)
_LARGEST = float(np.finfo(np.float64).max)
#: A client's nonce and what else it may have to say when a fit is opened.
_LONGEST_OPENING = 1 << 20
#: Weights that are the same but for the rounding of their sums.
_SAME_WEIGHT = 1e-9
#: Rows whose sums are rounded to quanta once, and quanta that such roundings may amount to.
_BLOCK_ROWS, _ROUNDINGS = 131_072, 2.0**20
#: Bound of y and its derivatives, and the mean square of what rounding leaves of equal ones, in units of the frame.
_FRAME_REACH, _ROUNDING = 4.1, 1e-26
#: Rounding of sums, times this, is what it may do to sums of squares about the mean.
_SLACK = 8.0
#: Digits of 32 bits of a power sum.
_WORD = 2
#: No noise is larger than this many of its standard deviations.
_MOST_SIGMAS = 50.0


class Limits:
    """What all sites answer to, as they say when the fit begins: |lambda| up to `exponent`."""

    def __init__(self) -> None:
        self.exponent = _LARGEST


class Plan(NamedTuple):
    """What is settled before the first round; see `Server`. Clients tell of columns plus shift; so do the bounds."""

    family: str
    shift: FloatArray
    protocol: str
    search: str
    grid: int
    bounds: FloatArray | None
    secure: bool
    max_weight: float
    max_rounds: int
    n_clients: int
    standardize: bool
    lmbda: ArrayLike | None
    ymax: float | None
    lmbda_bounds: Bounds | None
    privacy: Privacy | None
    limits: Limits


class Request(NamedTuple):
    """What is asked of every client.

    `read` takes an answer and the number of its client in the order of their names, or raises ValueError saying why
    the answer cannot be.
    """

    kind: Kind
    body: NDArray[Any]
    read: Callable[[Message, int], Any]


class Outcome(NamedTuple):
    """Rows of the fit; the sketch, where there is one; the columns that it left to be found by moments.

    `cut`: columns whose optimum is beyond the sites' limit of |lambda|, and which are at that limit.
    """

    results: FloatArray
    sums: PowerSums | None
    unresolved: list[int]
    cut: list[int]


#: Yields requests, is sent what was read of all answers, in a fixed order.
Conversation = Generator[Request, list[Any], Outcome]


class MergeError(ValueError):
    """Answers that were all sensible, and make no sense together."""


_NO_ROWS = "the totals are those of no rows; at least one client answered falsely, and masks hide which"
_MASKS = (
    "the masks do not cancel: a pair of clients has two different secrets, or clients answered different requests; "
    "no sum can be told"
)


def conversation(plan: Plan) -> Conversation:
    """All rounds: what opens the fit; ranges, if there are no bounds; and what the protocol asks then."""
    n_columns, slack = 0, 0.0
    if plan.secure:
        openings = yield Request(Kind.OPENING, _NOTHING, _read_opening)
        n_columns = openings[0].n_columns
        slack = _SLACK * sum(one.rounding for one in openings)
    if plan.privacy is not None:
        return (yield from _private(plan, plan.privacy))
    found, weights = yield from _found_range(plan, n_columns)
    code, exact = FAMILIES[plan.family], plan.bounds is None and not plan.secure
    talk = _Moments(plan, [pool.column_of_range(row, code, exact) for row in found.table], weights, slack)
    given, limit = _given(plan, len(talk.pooled))
    sums: PowerSums | None = None
    if plan.protocol == "sketch":
        results, sums = yield from _sketched(plan, found, weights)
        open_columns = np.flatnonzero(np.isin(results[:, STATUS], _OPEN)).tolist()
    else:
        results = _without_optimum(talk.pooled, found)
        open_columns = [j for j, column in enumerate(talk.pooled) if column.status == Status.OK]
    rounds = plan.max_rounds - plan.secure - (plan.bounds is None) - (sums is not None) - limit.is_active
    yield from _search_all(talk, _searches(talk, open_columns, given, rounds), results)
    cut = [j for j in open_columns if results[j, STATUS] == Status.AT_BOUND]
    ends = results[cut, LMBDA]
    fixed = results[:, STATUS] == Status.FIXED
    results[fixed, LMBDA] = results[fixed, LMBDA0] = given[fixed]
    if limit.is_active:
        yield from _keep_within(talk, limit, given, results)
        cut = [j for j, end in zip(cut, ends, strict=True) if results[j, LMBDA] == end]
    to_own_units(results, np.broadcast_to(plan.shift, len(results)))
    return Outcome(results, sums, open_columns if sums is not None else [], cut)


def _found_range(plan: Plan, n_columns: int) -> Generator[Request, list[Any], tuple[Range, Weights]]:
    """The range of all rows: known beforehand, between powers of two, or exact; and what weights were announced."""
    if plan.bounds is not None:
        found = Range.from_bounds(plan.bounds[0], plan.bounds[1], plan.family, plan.max_weight * plan.n_clients)
        return found, Weights(None, plan)
    if plan.secure:
        codes = yield Request(Kind.CODE, _NOTHING, _read_codes(plan.family, n_columns))
        return _range_of_codes(codes, plan), Weights(None, plan)
    ranges = yield Request(Kind.RANGE, _NOTHING, _read_range(plan))
    return pool.tree(merge, ranges), Weights(np.array([one.n_obs for one in ranges]), plan)


def _without_optimum(pooled: list[PooledColumn], found: Range) -> FloatArray:
    """Rows of the fit for columns that have none; the others are filled in later."""
    return np.array(
        [pool.identity_row(column, n, column.status) for column, n in zip(pooled, found.n_obs, strict=True)]
    )


def _given(plan: Plan, n_columns: int) -> tuple[FloatArray, LambdaLimit]:
    """Lambdas that are given, and what the others are kept within."""
    try:
        limit = lambda_limit(plan.ymax, plan.lmbda_bounds, n_columns, plan.standardize, name="lmbda_bounds")
        return given_lambdas(plan.lmbda, n_columns), limit
    except ValueError as error:
        raise MergeError(str(error)) from None


# --- openings and ranges ------------------------------------------------------------------------------


class Opening(NamedTuple):
    """What a client opens a fit with."""

    n_columns: int
    text: str
    rounding: float


def _read_opening(message: Message, who: int) -> Opening:
    rounding = message.details.get("rounding")
    if not isinstance(rounding, float) or not 0.0 <= rounding <= 1.0:
        raise ValueError("it does not say how it rounds its sums")
    if message.body.dtype != np.uint8 or not NONCE_BYTES <= message.body.size <= _LONGEST_OPENING:
        raise ValueError("it sent no nonce")
    return Opening(message.details["n_columns"], message.body.tobytes().hex(), rounding)


def _read_codes(family: str, n_columns: int) -> Callable[[Message, int], FloatArray]:
    def read(message: Message, who: int) -> FloatArray:
        body = message.body
        if body.shape != (n_columns, 2) or body.dtype.kind != "f":
            raise ValueError(f"it did not send the ends of {n_columns} columns")
        low, high = body.T
        unseen = np.isnan(body).all(axis=1)
        with np.errstate(invalid="ignore"):
            seen = (
                np.isfinite(body).all(axis=1) & (low <= high) & (codes_below(low) == low) & (codes_above(high) == high)
            )
            seen &= (low > 0.0) | (family != "box-cox")
        if not (seen | unseen).all():
            raise ValueError(f"column {int(np.argmin(seen | unseen))} has ends that are no powers of two in order")
        return body

    return read


def _range_of_codes(codes: list[FloatArray], plan: Plan) -> Range:
    """The range between the powers of two of all clients."""
    low, high = np.fmin.reduce([ends[:, 0] for ends in codes]), np.fmax.reduce([ends[:, 1] for ends in codes])
    unseen = np.isnan(low)
    low, high = np.where(unseen, 1.0, low), np.where(unseen, 2.0, high)
    beyond = np.where(low == 0.0, 1.0, 2.0 * np.minimum(abs(low), 0.5 * _LARGEST))
    same = low == high  # all values are that power of two, or zero
    low, high = np.where(same & (low < 0.0), -beyond, low), np.where(same & (low >= 0.0), beyond, high)
    found = Range.from_bounds(low, high, plan.family, plan.max_weight * plan.n_clients)
    table = found.table.copy()
    table[unseen] = EMPTY_RANGE
    return Range(plan.family, table, None, False)


def _read_range(plan: Plan) -> Callable[[Message, int], Range]:
    def read(message: Message, who: int) -> Range:
        found = Range.from_bytes(message.body.tobytes())
        if found.family != plan.family:
            raise ValueError(f"its range is of family {found.family!r}, the fit's is {plan.family!r}")
        if found.shift.any():
            raise ValueError("its range has a shift of its own; a client adds that of the request")
        _check_heaviest(found.n_obs, plan)
        return found

    return read


class Weights:
    """The total weight of each client's columns: as announced with the range, or else as first told."""

    def __init__(self, announced: FloatArray | None, plan: Plan) -> None:
        self._known: dict[tuple[int, int], float] = {}
        self._totals: dict[int, tuple[float, float]] = {}
        self._plan = plan
        if announced is not None:
            self._known = {(who, j): float(w) for who, row in enumerate(announced) for j, w in enumerate(row)}

    def check(self, who: int, which: NDArray[np.intp], told: FloatArray, rounding: FloatArray | float) -> None:
        """Refuse weights that are not those announced; what is first told of counts as announced."""
        _check_heaviest(told, self._plan)
        known = np.array([self._known.get((who, int(j)), w) for j, w in zip(which, told, strict=True)])
        wrong = ~(np.abs(told - known) <= _SAME_WEIGHT * known + rounding)
        if wrong.any():
            j = int(which[np.argmax(wrong)])
            raise ValueError(f"column {j} has another weight than the client announced")
        self._known.update({(who, int(j)): float(w) for j, w in zip(which, known, strict=True)})

    def check_total(self, which: NDArray[np.intp], told: FloatArray, rounding: FloatArray | float) -> None:
        """End the fit, with MergeError, at a masked total of other weight than the first one of its column."""
        for j, w, r in zip(which.tolist(), told.tolist(), np.broadcast_to(rounding, told.shape).tolist(), strict=True):
            known, room = self._totals.setdefault(j, (w, r))
            if not abs(w - known) <= _SAME_WEIGHT * known + room + r:
                raise MergeError(
                    f"the total weight of column {j} is not that of an earlier round; at least one client answered "
                    "falsely, and masks hide which"
                )


def _check_heaviest(weight: FloatArray, plan: Plan) -> None:
    if not (weight <= plan.max_weight).all():
        raise ValueError(
            f"column {int(np.argmax(~(weight <= plan.max_weight)))} has a weight of more than {plan.max_weight:g}; "
            "if that is right, begin anew with a larger max_weight"
        )


# --- private counts -----------------------------------------------------------------------------------


def _private(plan: Plan, privacy: Privacy) -> Conversation:
    """The fit of noisy counts of all rows in bins of the bounds."""
    assert plan.bounds is not None
    asked = Question(privacy, Bins.within(plan.bounds[0], plan.bounds[1], plan.family, privacy.n_bins))
    wire = (math.prod(asked.bins.shape), _WORD)
    body = asked.to_body()
    answers = yield Request(Kind.COUNTS, body, lambda message, who: _checked_digits(message.body, wire))
    total = secure.decode_words(secure.add(answers)).reshape(asked.bins.shape)
    sigma = asked.total_sigma(plan.n_clients)
    if not (abs(total) <= (plan.max_weight * plan.n_clients + _MOST_SIGMAS * sigma) * UNIT).all():
        raise MergeError(_MASKS)
    return Outcome(fit_sums(asked.bins, total, sigma, standardize=plan.standardize), None, [], [])


# --- sketches -----------------------------------------------------------------------------------------


def _sketched(
    plan: Plan, found: Range, weights: Weights
) -> Generator[Request, list[Any], tuple[FloatArray, PowerSums | None]]:
    """Results of a sketch of all rows, and the sketch."""
    grid = found.grid()
    answers = yield Request(Kind.SKETCH, as_body(grid.to_bytes()), _read_sketch(grid, plan.secure, weights))
    if plan.secure:
        total = Sketch.of_words(grid, secure.decode_words(secure.add(answers)))
        if not total.is_sound():
            raise MergeError(_MASKS)
        if impossible_columns(total).any():
            raise MergeError(_NO_ROWS)
        rounding = plan.n_clients * _weight_rounding(grid, total.n_obs)
        weights.check_total(np.arange(grid.n_features), total.n_obs, rounding)
    else:
        try:
            total = pool.tree(merge, answers)
        except ValueError:
            raise MergeError("the sketches have more rows than the ranges announced") from None
    given, limit = _given(plan, grid.n_features)
    bounds = (limit.bounds[0], limit.bounds[1])
    try:
        return finish_results(total, standardize=plan.standardize, lmbda=given, ymax=plan.ymax, bounds=bounds)
    except ValueError as error:
        raise MergeError(str(error)) from None


def _weight_rounding(grid: Grid, n_obs: FloatArray) -> FloatArray:
    """What rounding to quanta, once in each block of rows and bin, may do to the weight of each column."""
    return np.ldexp(grid.n_bins * (1.0 + n_obs / _BLOCK_ROWS), grid.quantum)


def _read_sketch(grid: Grid, masked: bool, weights: Weights) -> Callable[[Message, int], Any]:
    def read(message: Message, who: int) -> Any:
        if masked:
            return _checked_digits(message.body, (grid.n_words, _WORD))
        own = Sketch.from_bytes(message.body.tobytes())
        if own.grid != grid:
            raise ValueError("its sketch is on another grid")
        if (wrong := impossible_columns(own)).any():
            raise ValueError(f"{column_label(int(np.argmax(wrong)), grid.column_names)} has sums that no rows have")
        n_obs = own.n_obs
        weights.check(who, np.arange(grid.n_features), n_obs, _weight_rounding(grid, n_obs))
        return own

    return read


# --- moments ------------------------------------------------------------------------------------------


class _Task(NamedTuple):
    """What is looked for in a column: a search, and the status of what it finds."""

    search: Search
    status: Status


def _searches(talk: _Moments, indices: list[int], given: FloatArray, rounds: int) -> dict[int, _Task]:
    """Searches for the lambdas that are not given."""
    plan, pooled, xtol = talk.plan, talk.pooled, ROUNDED_XTOL if talk.slack > 0.0 else XTOL
    tasks = {}
    for j in indices:
        if np.isnan(given[j]):
            within = pooled[j].exponents_within(plan.limits.exponent)
            tasks[j] = _Task(search(pooled[j].start, plan.search, plan.grid, rounds, xtol, within), Status.OK)
        else:
            tasks[j] = _Task(at_point(pooled[j].exponent(given[j])), Status.FIXED)
    return tasks


def _keep_within(
    talk: _Moments, limit: LambdaLimit, given: FloatArray, results: FloatArray
) -> Generator[Request, list[Any], None]:
    """Move lambdas that are beyond their bounds, or take raw values beyond ymax, as `powerkern.fit` does."""
    plan = talk.plan
    found = results.copy()
    found[found[:, STATUS] == Status.AT_BOUND, STATUS] = Status.OK  # at the sites' limit, which may not be enough
    try:
        at, bounded = bounded_lambdas(FAMILIES[plan.family], found, None, limit, given)
    except ValueError as error:
        raise MergeError(str(error)) from None
    beyond = np.abs(bounded) > plan.limits.exponent
    if beyond.any():
        j, most = int(at[np.argmax(beyond)]), plan.limits.exponent
        raise MergeError(
            f"ymax={limit.ymax:g}, or lmbda_bounds, needs a lambda beyond +-{most:g} for column {j}, the limit of the "
            "sites"
        )
    before = results[at].copy()
    tasks = {
        int(j): _Task(at_point(talk.pooled[j].exponent(b)), Status.FIXED) for j, b in zip(at, bounded, strict=True)
    }
    yield from _search_all(talk, tasks, results)
    results[at] = at_bound(results[at], before)
    results[at, LMBDA] = results[at, LMBDA0] = bounded


def _search_all(talk: _Moments, tasks: dict[int, _Task], results: FloatArray) -> Generator[Request, list[Any], None]:
    """Look for lambda of several columns in step; what is found goes to `results`."""
    points = {j: next(task.search) for j, task in tasks.items()}
    while points:
        # a column that asks for a single point does so in the same message as those that ask for a grid
        width = max(map(len, points.values()))
        asked = [j for j in points if len(points[j]) == width]
        merged = yield from talk.ask(asked, [points[j] for j in asked])
        for j, moments in zip(asked, merged, strict=True):
            next_points = _advance(talk, j, tasks[j], points[j], moments, results[j])
            if next_points:
                points[j] = next_points
            else:
                del points[j]


def _advance(
    talk: _Moments, j: int, task: _Task, points: list[float], moments: FloatArray, row: FloatArray
) -> list[float]:
    """Where to look next, given what was found at `points`; nowhere, once the `row` of the fit is written."""
    column, total = talk.pooled[j], float(moments[0, lk.WEIGHT])
    if total == 0.0 or pool.is_constant(column, moments[0], talk.slack):
        row[:] = pool.identity_row(column, total, Status.CONSTANT if total else Status.EMPTY)
        return []
    if not (moments[:, lk.YY] > 0.0).all():
        raise MergeError(f"column {j} has no spread, though its ends differ; at least one client answered falsely")
    found = [Evaluation(mu, *pool.score_at(column, mu, each)) for mu, each in zip(points, moments, strict=True)]
    try:
        return task.search.send(found)
    except StopIteration as end:
        best: Found = end.value
    status = task.status if best.certified else Status.AT_BOUND if best.at_bound else Status.NOT_CERTIFIED
    row[:] = pool.results_row(column, best.best.x, best.best.at, moments[0], best.n_eval, status)
    return []


class _Moments(NamedTuple):
    """Asks for moments of the columns of a fit."""

    plan: Plan
    pooled: list[PooledColumn]
    weights: Weights
    #: What rounding at the clients may do to a total.
    slack: float

    def ask(self, asked: list[int], at: list[list[float]]) -> Generator[Request, list[Any], FloatArray]:
        """Merged moments of some columns at exponents of each: (columns, exponents, N_PARTIAL)."""
        shape = (len(asked), len(at[0]), partial_moments.N_PARTIAL)
        body, which = write_moments_request([(j, self.pooled[j]) for j in asked], at), np.array(asked)
        if self.plan.secure:
            wire = (math.prod(shape), secure.DIGITS)
            answers = yield Request(Kind.MOMENTS, body, lambda told, _: _checked_digits(told.body, wire))
            total = _unmasked(answers, shape, self.slack)
            self.weights.check_total(which, total[:, 0, lk.WEIGHT], self.slack)
            return total

        def read(message: Message, who: int) -> FloatArray:
            moments = _checked_moments(message.body, shape, which)
            self.weights.check(who, which, moments[:, 0, lk.WEIGHT], 0.0)
            return moments

        answers = yield Request(Kind.MOMENTS, body, read)
        merged: FloatArray = pool.tree(pool.merge_moments, answers)
        return merged


def _unmasked(answers: list[secure.Digits], shape: tuple[int, ...], slack: float) -> FloatArray:
    """Moments of all clients from their masked sums."""
    try:
        sums = secure.decode(secure.add(answers))
    except OverflowError:
        raise MergeError(_MASKS) from None
    try:
        moments = secure.moments_of_sums(sums, shape)
        squares = moments[..., [lk.YY, lk.Y1Y1]]
        moments[..., [lk.YY, lk.Y1Y1]] = np.where((squares < 0.0) & (squares >= -slack), 0.0, squares)
        return _checked_moments(moments, shape, np.arange(shape[0]), slack)
    except (ValueError, OverflowError):
        raise MergeError(_NO_ROWS) from None


def _checked_moments(
    body: NDArray[Any], shape: tuple[int, ...], which: NDArray[np.intp], slack: float = 0.0
) -> FloatArray:
    """Moments that some rows may have; logs in units of the frame are at most 2 apart, which bounds all of them."""
    if body.shape != shape or body.dtype.kind != "f":
        raise ValueError(f"it sent numbers of shape {body.shape} instead of {shape}")
    wrong = ~np.isfinite(body).all(axis=(1, 2))
    with np.errstate(all="ignore"):
        wrong |= ~_possible_moments(body, slack).all(axis=1)
        weight = body[..., lk.WEIGHT]
        wrong |= ~(np.ptp(weight, axis=1) <= _SAME_WEIGHT * weight[:, 0])
    if wrong.any():
        raise ValueError(f"column {int(which[np.argmax(wrong)])} has moments that are not finite or cannot be")
    return body


def _possible_moments(moments: FloatArray, slack: float) -> NDArray[np.bool_]:
    """Whether means are within the frame, sums of squares positive, and products within Cauchy and Schwarz's bound."""
    w, yy, y1y1 = (moments[..., k] for k in (lk.WEIGHT, lk.YY, lk.Y1Y1))
    room = _FRAME_REACH**2 * w
    means = moments[..., [lk.Y, lk.Y1, lk.Y2, lk.Y3, partial_moments.JACOBIAN]]
    possible = (w >= 0.0) & (yy >= 0.0) & (y1y1 >= 0.0) & (yy <= room) & (y1y1 <= room)
    possible &= (np.abs(means) <= _FRAME_REACH).all(axis=-1)
    rounding = _ROUNDING * w + slack
    for product, one, other in (
        (lk.YY1, yy, y1y1),
        (lk.YY2, yy, room),
        (lk.YY3, yy, room),
        (lk.Y1Y2, y1y1, room),
    ):
        possible &= np.abs(moments[..., product]) <= 1.0001 * np.sqrt((one + rounding) * (other + rounding))
    found: NDArray[np.bool_] = possible
    return found


def _checked_digits(body: NDArray[Any], shape: tuple[int, int]) -> secure.Digits:
    if body.shape != shape or body.dtype != np.uint32:
        raise ValueError(f"it did not send {shape[0]} masked sums")
    return body


# --- sums that rows can have --------------------------------------------------------------------------


def impossible_columns(total: Sketch) -> NDArray[np.bool_]:
    """Columns that have a bin whose power sums no values between -1 and 1 have.

    T_0 to T_7 are the moments of a measure on [-1, 1] if and only if the matrices T_(i+j) + T_(i+j+1) and
    T_(i+j) - T_(i+j+1), i, j = 0..3, have no negative eigenvalue (Hausdorff's problem, truncated; Krein and Nudelman
    1977). Power sums are rounded to whole numbers once for every 131,072 rows.
    """
    used = np.flatnonzero(total.sums.any(axis=1))
    sums = total.sums[used].astype(np.float64)
    if not sums.size:
        return np.zeros(total.grid.n_features, dtype=np.bool_)
    hankel = np.arange(4)[:, None] + np.arange(4)
    even, odd = sums[:, hankel], sums[:, hankel + 1]
    rounding = 4.0 * np.minimum(abs(sums[:, 0]), _ROUNDINGS) + 1e-9 * abs(sums[:, 0])
    lowest = np.minimum(np.linalg.eigvalsh(even + odd)[:, 0], np.linalg.eigvalsh(even - odd)[:, 0])
    starts = np.concatenate([[0], np.cumsum(total.grid.n_bins)])
    wrong = np.zeros(total.grid.n_features, dtype=np.bool_)
    wrong[np.searchsorted(starts, used[lowest < -rounding], side="right") - 1] = True
    return wrong
