"""The two protocols, as the server sees them: what to ask, how to read an answer, how answers become a fit.

`conversation` is a generator. It yields requests, is sent what the answers of all clients say, and returns the results.
It knows neither names of clients nor how messages travel.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern import columns
from powerkern._status import Status
from powerkern._validate import column_label
from powerkern.federated import pool, secure
from powerkern.federated.messages import Kind, as_body
from powerkern.federated.pool import PooledColumn
from powerkern.federated.requests import write_moments_request
from powerkern.federated.search import Evaluation, Found, Search, search
from powerkern.kernels import likelihood as lk
from powerkern.kernels import partial_moments
from powerkern.kernels.results import N_RESULTS, STATUS
from powerkern.kernels.sketch import N_POWERS, R_MEAN, R_SAMPLE, R_SQUARES
from powerkern.pieces import Sums
from powerkern.sketch import Grid, Range, Sketch, finish, merge

FloatArray = NDArray[np.float64]

_NOTHING = np.empty(0)
#: What a sketch says of columns that moments may tell more of.
_OPEN = (Status.UNRESOLVED, Status.NOT_CERTIFIED)
#: No logarithm of a float64 is larger.
_LARGEST_LOG = 800.0
#: Digits of 32 bits of a power sum.
_WORD = 2


class Plan(NamedTuple):
    """What is settled before the first round; see `Server`."""

    family: str
    protocol: str
    search: str
    grid: int
    bounds: FloatArray | None
    secure: bool
    max_weight: float
    max_rounds: int
    n_clients: int


class Request(NamedTuple):
    """What is asked of every client; `read` takes the body of an answer, or raises ValueError saying why not."""

    kind: Kind
    body: NDArray[Any]
    read: Callable[[NDArray[Any]], Any]


class Outcome(NamedTuple):
    """Rows of the fit; the sketch, where there is one; and the columns that it left to be found by moments."""

    results: FloatArray
    sums: Sums | None
    unresolved: list[int]


#: Yields requests, is sent what was read of all answers, in a fixed order.
Conversation = Generator[Request, list[Any], Outcome]


class MergeError(ValueError):
    """Answers that were all sensible, and make no sense together."""


_MASKS = (
    "the masks do not cancel: a pair of clients has two different secrets, or clients answered different requests; "
    "no sum can be told"
)


def conversation(plan: Plan) -> Conversation:
    """All rounds: ranges, if there are no bounds, and what the protocol asks then."""
    rounds = plan.max_rounds
    if plan.bounds is None:
        ranges = yield Request(Kind.RANGE, _NOTHING, _read_range(plan.family))
        found, rounds = pool.tree(merge, ranges), rounds - 1
    else:
        weight = plan.max_weight * plan.n_clients
        found = Range.from_bounds(plan.bounds[0], plan.bounds[1], plan.family, weight)
    code = columns.FAMILIES[plan.family]
    sums: Sums | None = None
    pooled = [pool.column_of_range(row, code, exact=plan.bounds is None) for row in found.table]
    if plan.protocol == "sketch":
        results, sums = yield from _sketched(plan, found)
        open_columns = np.flatnonzero(np.isin(results[:, STATUS], _OPEN)).tolist()
        rounds -= 1
    else:
        results = np.empty((len(pooled), N_RESULTS))
        for j, column in enumerate(pooled):
            results[j] = pool.identity_row(column, found.n_obs[j], column.status)
        open_columns = [j for j, column in enumerate(pooled) if column.status == Status.OK]
    yield from _search_all(plan, pooled, open_columns, results, rounds)
    return Outcome(results, sums, open_columns if sums is not None else [])


# --- ranges -------------------------------------------------------------------------------------------


def _read_range(family: str) -> Callable[[NDArray[Any]], Range]:
    def read(body: NDArray[Any]) -> Range:
        found = Range.from_bytes(body.tobytes())
        if found.family != family:
            raise ValueError(f"its range is of family {found.family!r}, the fit's is {family!r}")
        seen = found.count > 0.0
        sensible = np.isfinite(found.table[:, 1:]).all(axis=1) & (found.n_obs > 0.0) & (found.x_min <= found.x_max)
        sample, mean, squares = found.table[:, [R_SAMPLE, R_MEAN, R_SQUARES]].T
        sensible &= (sample >= 0.0) & (abs(mean) <= _LARGEST_LOG) & (squares >= 0.0)
        if family == "box-cox":
            sensible &= found.x_min > 0.0
        if (wrong := np.where(seen, ~sensible, found.n_obs != 0.0)).any():
            label = column_label(int(np.argmax(wrong)), found.column_names)
            raise ValueError(f"{label} has a range that is not finite or cannot be")
        return found

    return read


# --- sketches -----------------------------------------------------------------------------------------


def _sketched(plan: Plan, found: Range) -> Generator[Request, list[Any], tuple[FloatArray, Sums | None]]:
    """Results of a sketch of all rows, and the sketch."""
    grid = found.grid()
    answers = yield Request(Kind.SKETCH, as_body(grid.to_bytes()), _read_sketch(grid, plan.secure))
    if plan.secure:
        total = Sketch(grid, secure.decode_words(secure.add(answers)).reshape(-1, N_POWERS))
        if not total.is_sound():
            raise MergeError(_MASKS)
    else:
        try:
            total = pool.tree(merge, answers)
        except ValueError:
            raise MergeError("the sketches have more rows than the ranges announced") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit is not done yet
        fit = finish(total)
    return fit._results, fit._sums


def _read_sketch(grid: Grid, masked: bool) -> Callable[[NDArray[Any]], Any]:
    def read(body: NDArray[Any]) -> Any:
        if masked:
            return _checked_digits(body, (int(grid.n_bins.sum()) * N_POWERS, _WORD))
        own = Sketch.from_bytes(body.tobytes())
        if own.grid != grid:
            raise ValueError("its sketch is on another grid")
        return own

    return read


# --- moments ------------------------------------------------------------------------------------------


def _search_all(
    plan: Plan, pooled: list[PooledColumn], indices: list[int], results: FloatArray, rounds: int
) -> Generator[Request, list[Any], None]:
    """Look for lambda of several columns in step; what is found goes to `results`."""
    searches: dict[int, Search] = {}
    points: dict[int, list[float]] = {}
    for j in indices:
        searches[j] = search(pooled[j].start, plan.search, plan.grid, rounds)
        points[j] = next(searches[j])
    while points:
        asked = list(points)
        merged = yield from _moments(plan, [(j, pooled[j]) for j in asked], [points[j] for j in asked])
        for j, moments in zip(asked, merged, strict=True):
            next_points = _advance(pooled[j], searches[j], points[j], moments, results[j])
            if next_points:
                points[j] = next_points
            else:
                del points[j]


def _advance(
    column: PooledColumn, searching: Search, points: list[float], moments: FloatArray, row: FloatArray
) -> list[float]:
    """Where to look next, given what was found at `points`; nowhere, once the `row` of the fit is written."""
    total = float(moments[0, lk.WEIGHT])
    if total == 0.0 or pool.is_constant(column, moments[0]):
        row[:] = pool.identity_row(column, total, Status.CONSTANT if total else Status.EMPTY)
        return []
    found = [Evaluation(mu, *pool.score_at(column, mu, each)) for mu, each in zip(points, moments, strict=True)]
    try:
        return searching.send(found)
    except StopIteration as end:
        best: Found = end.value
    status = Status.OK if best.certified else Status.NOT_CERTIFIED
    row[:] = pool.results_row(column, best.best.x, best.best.at, moments[0], best.n_eval, status)
    return []


def _moments(
    plan: Plan, asked: list[tuple[int, PooledColumn]], at: list[list[float]]
) -> Generator[Request, list[Any], FloatArray]:
    """Merged moments of some columns at exponents of each: (columns, exponents, N_SHARE)."""
    shape = (len(asked), len(at[0]), partial_moments.N_SHARE)
    body = write_moments_request(asked, at)
    if plan.secure:
        wire = (math.prod(shape), secure.DIGITS)
        answers = yield Request(Kind.MOMENTS, body, lambda digits: _checked_digits(digits, wire))
        try:
            return secure.moments_of_sums(secure.decode(secure.add(answers)), shape)
        except OverflowError:
            raise MergeError(_MASKS) from None
    answers = yield Request(Kind.MOMENTS, body, lambda moments: _checked_moments(moments, shape, body[:, 0]))
    with np.errstate(over="ignore", invalid="ignore"):
        merged: FloatArray = pool.tree(pool.merge_shares, answers)
    if not np.isfinite(merged).all():
        raise MergeError("the moments of all clients together overflow")
    return merged


def _checked_moments(body: NDArray[Any], shape: tuple[int, ...], which: FloatArray) -> FloatArray:
    if body.shape != shape or body.dtype.kind != "f":
        raise ValueError(f"it sent numbers of shape {body.shape} instead of {shape}")
    by_column = body.reshape(shape[0], -1)
    never_negative = body[..., [lk.WEIGHT, lk.YY, lk.Y1Y1]].reshape(shape[0], -1)
    wrong = ~np.isfinite(by_column).all(axis=1) | (never_negative < 0.0).any(axis=1)
    if wrong.any():
        raise ValueError(f"column {int(which[np.argmax(wrong)])} has moments that are not finite or cannot be")
    return body


def _checked_digits(body: NDArray[Any], shape: tuple[int, int]) -> secure.Digits:
    if body.shape != shape or body.dtype != np.uint32:
        raise ValueError(f"it did not send {shape[0]} masked sums")
    return body
