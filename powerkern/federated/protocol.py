"""The rounds of a federated fit on the server: requests, merging of the answers, and results.

`conversation` is a generator. It yields requests, receives the answers by `send`, and returns the results. It does not
depend on the transport of messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.limits import LambdaLimit, find_bounded_lambdas, mark_at_bound
from powerkern._estimators.shift import convert_to_data_units
from powerkern._estimators.spec import FitSpec
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.federated import pool
from powerkern.federated.integers import decode_moments, score_error
from powerkern.federated.messages import Kind
from powerkern.federated.pool import PooledColumn
from powerkern.federated.search import ColumnOptimum, EvaluatedPoint, Search, evaluate_once, search
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score_formulas as lk
from powerkern.kernels.results import LMBDA, LMBDA0, STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import Range, merge

#: Largest number of rounds. A column that is not done by then gets the status NOT_CERTIFIED or UNRESOLVED.
MAX_ROUNDS = 30
#: An error of lambda of at most this fraction of its standard error does not change the status.
_NEGLIGIBLE = 0.01


class Plan(NamedTuple):
    """Options of a fit, checked before the first round; see `Server`.

    `data_bounds` refer to columns plus their shift, as the answers of sites do. `quantum` is 0 for unencrypted moments.
    """

    spec: FitSpec
    search: str
    data_bounds: FloatArray | None
    quantum: float
    n_sites: int


class Request(NamedTuple):
    """A request to all clients, and the function that reads an answer.

    `read` takes the body of an answer and the name of the sender. For `Kind.SUMS`, it takes the total and the bytes of
    the request instead. It raises a ValueError for an invalid answer.
    """

    kind: Kind
    body: NDArray[Any]
    read: Callable[[Any, Any], Any]


class FederatedResults(NamedTuple):
    """Rows of `kernels.results.ColumnFit` for all columns, and bounds on the errors of lambda due to the quantum."""

    results: FloatArray
    lmbda_error: FloatArray


#: Generator that yields requests, receives the results of `read` for all sites in a fixed order, and returns the fit.
Conversation = Generator[Request, list[Any], FederatedResults]


class MergeError(ValueError):
    """Error for answers that are valid individually, but contradict each other."""


def conversation(plan: Plan) -> Conversation:
    """Run all rounds of a fit.

    Request ranges, unless data bounds are known, and then moments until the search for every lambda has ended.
    """
    weights = pool.Weights()
    if plan.data_bounds is None:
        ranges = yield Request(Kind.RANGE, np.empty(0), _read_range(plan, weights))
        found: Range = pool.reduce_pairwise(merge, ranges)
    else:
        found = Range.from_bounds(plan.data_bounds[0], plan.data_bounds[1], plan.spec.family, 1.0)
    columns = [pool.make_column(row, FAMILIES[plan.spec.family]) for row in found._table]
    requests = _MomentRequests(plan, columns, weights)
    try:
        given, shift, limit = plan.spec.per_column(len(columns))
    except ValueError as error:
        raise MergeError(str(error)) from None
    results = np.array([pool.make_identity_row(c, n, c.status) for c, n in zip(columns, found.n_obs, strict=True)])
    outcome = FederatedResults(results, np.zeros(len(columns)))
    rounds = MAX_ROUNDS - (plan.data_bounds is None) - limit.is_active
    tasks = {}
    for j, column in enumerate(columns):
        if column.status == Status.OK and np.isnan(given[j]):
            tasks[j] = _ColumnTask(search(column.start, plan.search, rounds), Status.OK)
        elif column.status == Status.OK:
            tasks[j] = _ColumnTask(evaluate_once(column.exponent(given[j])), Status.FIXED)
    yield from _search_all(requests, tasks, outcome)
    fixed = results[:, STATUS] == Status.FIXED
    results[fixed, LMBDA] = results[fixed, LMBDA0] = given[fixed]
    if limit.is_active:
        yield from _apply_limits(requests, limit, given, outcome)
    convert_to_data_units(results, shift)
    return outcome


def _read_range(plan: Plan, weights: pool.Weights) -> Callable[[NDArray[Any], str], Range]:
    """Return a function that reads the range in an answer, checks it, and records the weights of the site."""

    def read(body: NDArray[Any], sender: str) -> Range:
        found = Range.from_bytes(body.tobytes())
        if found.family != plan.spec.family or found.shift.any() or np.isfinite(found.limits).any():
            raise ValueError(f"the range must have family={plan.spec.family!r}, no shift and no limits")
        weights.check(sender, np.arange(found.n_features), found.n_obs)
        return found

    return read


# --- moments ------------------------------------------------------------------------------------------


class _ColumnTask(NamedTuple):
    """The search for lambda in a column, and the status of the column if the search succeeds."""

    search: Search
    status: Status


def _search_all(
    requests: _MomentRequests, tasks: dict[int, _ColumnTask], outcome: FederatedResults
) -> Generator[Request, list[Any], None]:
    """Run the searches of several columns in the same rounds, and write their results to `outcome`.

    `tasks` holds the search of each column by its position.
    """
    points = {j: next(task.search) for j, task in tasks.items()}
    while points:
        width = max(map(len, points.values()))
        padded = [at + at[-1:] * (width - len(at)) for at in points.values()]
        moments, errors = yield from requests.ask(list(points), padded)
        answers = zip(points.items(), moments, errors, strict=True)
        further = {
            j: _advance(requests, j, tasks[j], at, own[: len(at)], error[: len(at)], outcome)
            for (j, at), own, error in answers
        }
        points = {j: at for j, at in further.items() if at}


#: Bound on the error of lambda due to rounding of merged moments, in units of 1/(range of the logs). In 150 fits of
#: columns between a few ulps and ten decades wide, the largest error was 1/500 of this bound, and 1/4 for a column with
#: a rare binary value.
_ROUNDING = 2.0**-38


def _advance(
    requests: _MomentRequests,
    j: int,
    task: _ColumnTask,
    points: list[float],
    moments: FloatArray,
    errors: FloatArray,
    outcome: FederatedResults,
) -> list[float]:
    """Advance the search in one column; return its next points, or none if the search ended and wrote its result.

    Parameters
    ----------
    requests : _MomentRequests
        The columns of the fit.
    j : int
        Position of the column.
    task : _ColumnTask
        The search in the column.
    points : list of float
        Exponents at which the moments were requested.
    moments : (k, N_PARTIAL) ndarray
        Merged moments at these points.
    errors : (k,) ndarray
        Bounds on the errors of the scores at these points.
    outcome : FederatedResults
        Receives the result of the column.
    """
    column, total = requests.columns[j], float(moments[0, lk.WEIGHT])
    if total == 0.0 or not np.isfinite(errors).all():
        outcome.results[j] = pool.make_identity_row(column, total, Status.UNRESOLVED if total else Status.EMPTY)
        outcome.lmbda_error[j] = np.inf if total else 0.0
        return []
    if not (moments[:, lk.YY] > 0.0).all():
        raise MergeError(f"column {j} has no spread, though its ends differ; at least one client sent a wrong answer")
    found = [
        EvaluatedPoint(mu, *pool.evaluate_score(column, mu, each), float(error))
        for mu, each, error in zip(points, moments, errors, strict=True)
    ]
    try:
        return task.search.send(found)
    except StopIteration as end:
        best: ColumnOptimum = end.value
    row = pool.make_fit_row(
        column, best.best.x, best.best.at, moments[0], best.n_eval, _choose_status(best, task, total)
    )
    outcome.results[j], outcome.lmbda_error[j] = row, (best.error + _ROUNDING) / column.scaling.sigma
    return []


def _choose_status(best: ColumnOptimum, task: _ColumnTask, n_obs: float) -> Status:
    """Return the status of an optimum: ``task.status``, or a worse one if lambda is not certified or not precise.

    `n_obs` is the total weight of the column, from which the standard error of lambda follows.
    """
    if not best.certified:
        return Status.UNRESOLVED if best.error > 0.0 else Status.NOT_CERTIFIED
    standard = 1.0 / math.sqrt(n_obs * best.best.at.d2) if best.best.at.d2 > 0.0 else 0.0
    return Status.BRACKETED if best.error > _NEGLIGIBLE * standard else task.status


def _apply_limits(
    requests: _MomentRequests, limit: LambdaLimit, given: FloatArray, outcome: FederatedResults
) -> Generator[Request, list[Any], None]:
    """Clip lambdas to their bounds and to the limit on transformed values, as `powerkern.fit` does, and refit.

    Clipping never increases the distance between two lambdas, so the bounds on the errors of lambda still hold.

    Parameters
    ----------
    requests : _MomentRequests
        The columns of the fit.
    limit : LambdaLimit
        Bounds of lambda, and the limit `ymax`.
    given : (p,) ndarray
        Lambda that the user fixed for each column; NaN if it is fitted.
    outcome : FederatedResults
        Results of the fit without limits; modified in place.
    """
    results = outcome.results
    try:
        at, bounded = find_bounded_lambdas(FAMILIES[requests.plan.spec.family], results, None, limit, given)
    except ValueError as error:
        raise MergeError(str(error)) from None
    before, errors = results[at].copy(), outcome.lmbda_error[at].copy()
    tasks = {
        int(j): _ColumnTask(evaluate_once(requests.columns[j].exponent(lmbda)), Status.FIXED)
        for j, lmbda in zip(at, bounded, strict=True)
    }
    yield from _search_all(requests, tasks, outcome)
    results[at], outcome.lmbda_error[at] = mark_at_bound(results[at], before), errors
    results[at, LMBDA] = results[at, LMBDA0] = bounded


class _MomentRequests(NamedTuple):
    """Makes the requests for moments of the columns of a fit, and merges the answers."""

    plan: Plan
    columns: list[PooledColumn]
    weights: pool.Weights

    def ask(
        self, asked: list[int], at: list[list[float]]
    ) -> Generator[Request, list[Any], tuple[FloatArray, FloatArray]]:
        """Request moments of the columns at positions `asked`; `at` holds the exponents of each of these columns.

        Return the merged moments, (k, n_points, N_PARTIAL), and bounds on the errors of the scores, (k, n_points).
        """
        plan, which = self.plan, np.array(asked)
        shape = (len(asked), len(at[0]), partial_moments.N_PARTIAL)
        body = pool.write_moments_request([(j, self.columns[j]) for j in asked], at)
        rounding = 0.5 * plan.quantum * plan.n_sites

        def read_open(moments: NDArray[Any], sender: str) -> FloatArray:
            pool.check_moments(moments, shape, which, 0.0)
            self.weights.check(sender, which, moments[:, 0, lk.WEIGHT])
            return moments

        def read_total(total: object, request: bytes) -> FloatArray:
            moments = decode_moments(total, shape, plan.quantum, request, plan.n_sites)
            pool.check_moments(moments, shape, which, rounding)
            self.weights.check("total", which, moments[:, 0, lk.WEIGHT])
            return moments

        if plan.quantum:
            (merged,) = yield Request(Kind.SUMS, body, read_total)
        else:
            merged = pool.reduce_pairwise(pool.merge_moments, (yield Request(Kind.MOMENTS, body, read_open)))
        if plan.quantum or plan.data_bounds is not None:
            return merged, score_error(merged, rounding)
        return merged, np.zeros(shape[:2])  # the same scaling and sums as in a fit in memory
