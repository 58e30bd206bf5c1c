"""The logs of a column, and their sums, taken chunk by chunk by all threads of a team.

Each thread takes the next chunk that nobody has taken. What is found of a chunk is kept, and added up in the order of
the chunks by the thread that fits the column, the lead of the team: results do not depend on how many threads there
are, nor on who took what. The lead waits only for chunks that others have begun, and does everything by itself if
nobody comes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from powerkern._jit import (
    bits_of,
    exchange,
    fetch,
    fetch_add,
    float_of,
    for_none,
    kernel,
    pause,
    prefetch,
    reduction,
    widest_vectors,
)
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.likelihood import N_MOMENTS, WEIGHT
from powerkern.kernels.logs import INF_BITS, MAGNITUDE, SIGN
from powerkern.kernels.one_pass_sums import LogSums, add_sums, logs_of_one_sign, signed_logs
from powerkern.kernels.scratch import (
    CHUNK,
    DONE,
    EXPONENT,
    GAPS,
    INDEX,
    KNOWN,
    LEFT,
    LOG_REF,
    LOG_SQUARES,
    LOG_TOTAL,
    LOG_WEIGHT,
    LOG_WEIGHT_SQUARES,
    OF_POWERS,
    OFFSET,
    OVER,
    REF,
    SCALE,
    SIGN_OF_LOGS,
    SIZE,
    STOPPED,
    Work,
)

#: Logs are taken in short runs, between which values are prefetched, a cache line at a time: those of the next column,
#: which follows this one in memory, or later ones of this column where it is longer than that.
_PREFETCHED, _LINE = 256, 8
_NEXT_COLUMN, _SAME_COLUMN = 32_768, 1024
#: What is noted as the weight of a chunk in which no value is missing.
_WHOLE = -1.0
#: How often a thread looks for a chunk before it leaves: some hundred microseconds.
_PATIENCE = 10_000


class LogKind(NamedTuple):
    """Which logs stand for a column.

    `sign` is 1, -1, or 0 for both signs, by a few of the values where it is not `known`.
    """

    sign: float
    known: bool
    offset: float
    ref: float
    log_ref: float


class Weights(NamedTuple):
    """The weights of a column: their sum, that of squares, the smallest, a power of two that makes them at most 2."""

    values: FloatArray | None
    total: float
    squares: float
    smallest: float
    scale: float


class Seen(NamedTuple):
    """Sums of the logs of the first values of a column, `complete` of which, and all before, lie before any gap."""

    sums: LogSums
    complete: int


# --- logs, by whoever takes them ---------------------------------------------------------------------


@kernel
def no_logs(kind: LogKind) -> LogSums:
    """The sums of none."""
    return LogSums(0.0, 0.0, SIGN if kind.sign == 0.0 else MAGNITUDE, SIGN, 0.0, 0.0)


@kernel
def joined(kind: LogKind, a: LogSums, b: LogSums) -> LogSums:
    """The sums of both."""
    low = max(a.low, b.low) if kind.sign == 0.0 else min(a.low, b.low)
    return LogSums(
        a.total + b.total,
        a.squares + b.squares,
        low,
        max(a.high, b.high),
        a.weight + b.weight,
        a.weight_squares + b.weight_squares,
    )


@kernel
def _as_expected(kind: LogKind, low: int, high: int) -> bool:
    """Whether `LogSums` are of finite values of the expected sign, none missing."""
    return high < INF_BITS and (low < INF_BITS if kind.sign == 0.0 else low >= 0)


@kernel
def logs_of_run(
    kind: LogKind,
    x: FloatArray,
    weight: FloatArray | None,
    d: FloatArray,
    d32: Float32Array,
    seen: Seen,
    start: int,
) -> Seen:
    """Add `_logs` to what has been `seen`, for gaps from the first run on that has values not as expected."""
    complete, part = seen.complete, no_logs(kind)
    if start < complete:
        part = _logs(kind, x, weight, d, d32, None)
        if not _as_expected(kind, part.low, part.high):
            complete = start
    if start >= complete:
        part = _logs(kind, x, weight, d, d32, True)
    return Seen(joined(kind, seen.sums, part), complete)


@kernel
def _logs(
    kind: LogKind, x: FloatArray, weight: FloatArray | None, d: FloatArray, d32: Float32Array, gaps: bool | None
) -> LogSums:
    if kind.sign == 0.0:
        return signed_logs(x, weight, d, d32, gaps)
    flip = SIGN if kind.sign < 0.0 else 0
    kept = MAGNITUDE if kind.known else -1
    return logs_of_one_sign(x, weight, flip, kept, kind.offset, 1.0 / (kind.offset + kind.ref), d, d32, gaps)


# --- weights, None where there are none ----------------------------------------------------------


@reduction
def measured(weight: FloatArray) -> Weights:
    """What is to be known of weights."""
    widest_vectors()
    total = squares = 0.0
    low, high = INF_BITS, 0
    for i in range(weight.size):
        total += weight[i]
        squares += weight[i] * weight[i]
        low = min(low, bits_of(weight[i]) & MAGNITUDE)
        high = max(high, bits_of(weight[i]) & MAGNITUDE)
    return Weights(weight, total, squares, float_of(low), float_of(max(2046 - (high >> 52), 1) << 52))


@kernel
def with_first(sums: LogSums, weight: FloatArray | None, n: int) -> LogSums:
    """The sums of logs, with the weights of the first `n` values."""
    total, squares = float(n), float(n)
    if weight is not None:
        first = measured(weight[:n])
        total, squares = first.total, first.squares
    return with_weights(sums, total, squares)


@kernel
def with_weights(sums: LogSums, total: float, squares: float) -> LogSums:
    """The sums of logs of values that weigh more by that."""
    weight, weight_squares = sums.weight + total, sums.weight_squares + squares
    return LogSums(sums.total, sums.squares, sums.low, sums.high, weight, weight_squares)


@kernel
def nothing(weight: None, *rest: Any) -> None:
    """What is made of no weights."""
    return


@for_none(nothing)
@kernel
def rounded(weight: FloatArray, scale: float, out: Float32Array) -> Float32Array:
    """The weights in float32, which a `scale` keeps them in the range of."""
    widest_vectors()
    for i in range(out.size):
        out[i] = scale * weight[i]
    return out


@for_none(nothing)
@kernel
def part_of(weight: FloatArray, start: int, end: int) -> FloatArray:
    """Some of the weights."""
    return weight[start:end]


@for_none(nothing)
@kernel
def _of_squeezed(weight: FloatArray, work: Work) -> FloatArray:
    return work.weight


# --- chunks, by all threads ----------------------------------------------------------------------------


@kernel
def assist(columns: FloatArray, weight: FloatArray | None, work: Work) -> None:
    """Take chunks of the columns that the lead of a team fits, until that is over or nothing is left for long.

    `work` is that of the lead, with float32 scratch space of this thread's own.
    """
    team, idle = work.team, 0
    while idle < _PATIENCE and fetch(team.turns, OVER) == 0:
        idle += 1
        left = fetch(team.turns, LEFT)
        if left > 0:
            left = fetch_add(team.turns, LEFT, -1)
        if left <= 0:
            pause()
            continue
        idle, n = 0, int(team.task[SIZE])
        if n < columns.shape[1]:
            _do_chunk(left, work.packed[:n], _of_squeezed(weight, work), work)
        else:
            _do_chunk(left, columns[int(team.task[INDEX])], weight, work)
        fetch_add(team.turns, DONE, 1)


@kernel
def _work_off(x: FloatArray, weight: FloatArray | None, work: Work) -> int:
    """Have the task done for all chunks; returns how many there are."""
    turns, n = work.team.turns, -(-x.size // CHUNK)
    work.team.task[SIZE] = x.size
    exchange(turns, DONE, 0)
    exchange(turns, LEFT, n)
    left = fetch_add(turns, LEFT, -1)
    while left > 0:
        _do_chunk(left, x, weight, work)
        fetch_add(turns, DONE, 1)
        left = fetch_add(turns, LEFT, -1)
    while fetch(turns, DONE) < n:
        pause()
    return n


@kernel
def _do_chunk(left: int, x: FloatArray, weight: FloatArray | None, work: Work) -> None:
    """Do the task for the first of so many chunks, the last of the column."""
    task = work.team.task
    k = -(-x.size // CHUNK) - left
    start, end = k * CHUNK, min((k + 1) * CHUNK, x.size)
    own, d, found = part_of(weight, start, end), work.spare[start:end], work.team.sums[k]
    found[:] = 0.0
    if task[OF_POWERS] != 0.0:
        add_sums(d, own, task[EXPONENT], task[SIGN_OF_LOGS] == 0.0, found)
    elif fetch(work.team.turns, STOPPED) == 0:
        _logs_of_chunk(x, start, end, own, d, found, work)


@kernel
def _logs_of_chunk(
    x: FloatArray, start: int, end: int, weight: FloatArray | None, d: FloatArray, found: FloatArray, work: Work
) -> None:
    """Logs, run by run, with later values prefetched, and, while they are in the cache, float32 sums of powers."""
    task, n = work.team.task, end - start
    kind = LogKind(task[SIGN_OF_LOGS], task[KNOWN] != 0.0, task[OFFSET], task[REF], task[LOG_REF])
    ahead = x.size if x.size <= _NEXT_COLUMN else _SAME_COLUMN
    chunk, d32 = x[start:end], work.d32[:n]
    seen = Seen(no_logs(kind), 0 if task[GAPS] != 0.0 else n)
    for i in range(0, n, _PREFETCHED):
        run = chunk[i : i + _PREFETCHED]
        for j in range(0, run.size, _LINE):
            prefetch(run, (j + ahead,))
        own, to = part_of(weight, i, i + _PREFETCHED), slice(i, i + _PREFETCHED)
        seen = logs_of_run(kind, run, own, d[to], d32[to], seen, i)
    sums = seen.sums
    if not _as_expected(kind, sums.low, sums.high):
        exchange(work.team.turns, STOPPED, 1)
        return
    if task[EXPONENT] == task[EXPONENT]:
        add_sums(d32, rounded(weight, task[SCALE], work.weight32[:n]), task[EXPONENT], kind.sign == 0.0, found)
    if seen.complete < n:
        sums = with_first(sums, weight, seen.complete)
    found[LOG_TOTAL], found[LOG_SQUARES] = sums.total, sums.squares
    found[LOG_WEIGHT], found[LOG_WEIGHT_SQUARES] = sums.weight, sums.weight_squares
    if seen.complete == n:
        found[LOG_WEIGHT] = _WHOLE
    ends = work.team.ends[2 * (start // CHUNK) :]
    ends[0], ends[1] = sums.low, sums.high


# --- all chunks, by the lead ---------------------------------------------------------------------------


@kernel
def take_logs(
    kind: LogKind, x: FloatArray, weights: Weights, gaps: bool, exponent: float, work: Work, moments: FloatArray
) -> LogSums:
    """All logs, to ``work.spare``, and float32 sums of powers (exponent NaN: none); with `gaps` many are looked for.

    Where a value is not finite or of an unexpected sign the ends say so, and nothing else holds.
    """
    task, turns = work.team.task, work.team.turns
    task[OF_POWERS], task[EXPONENT], task[SCALE], task[GAPS] = 0.0, exponent, weights.scale, gaps
    task[SIGN_OF_LOGS], task[KNOWN], task[OFFSET], task[REF], task[LOG_REF] = kind
    exchange(turns, STOPPED, 0)
    n = _work_off(x, weights.values, work)
    moments[:] = 0.0
    if fetch(turns, STOPPED) != 0:
        return LogSums(0.0, 0.0, INF_BITS, INF_BITS, 0.0, 0.0)
    sums, n_whole = no_logs(kind), 0
    for k in range(n):
        found, ends = work.team.sums[k], work.team.ends[2 * k : 2 * k + 2]
        _add_moments(found, moments)
        whole = found[LOG_WEIGHT] == _WHOLE
        n_whole += whole
        own = LogSums(found[LOG_TOTAL], found[LOG_SQUARES], ends[0], ends[1], 0.0, 0.0)
        if not whole:
            own = with_weights(own, found[LOG_WEIGHT], found[LOG_WEIGHT_SQUARES])
        sums = joined(kind, sums, own)
    if n_whole == n:
        sums = with_weights(sums, weights.total, weights.squares)
    elif n_whole > 0:
        sums = _with_whole_chunks(sums, x.size, weights.values, work)
    moments[WEIGHT] = weights.scale * sums.weight
    return sums


@kernel
def _with_whole_chunks(sums: LogSums, size: int, weight: FloatArray | None, work: Work) -> LogSums:
    """The sums of logs, with the weights of chunks in which no value is missing."""
    for k in range(-(-size // CHUNK)):
        if work.team.sums[k, LOG_WEIGHT] == _WHOLE:
            start, end = k * CHUNK, min((k + 1) * CHUNK, size)
            sums = with_first(sums, part_of(weight, start, end), end - start)
    return sums


@kernel
def add_powers_of_chunks(
    sign: float, d: FloatArray, weight: FloatArray | None, exponent: float, work: Work, moments: FloatArray
) -> None:
    """Add the sums of powers over the logs `d` in ``work.spare``; `sign` is that of `LogKind`."""
    task = work.team.task
    task[OF_POWERS], task[EXPONENT], task[SIGN_OF_LOGS] = 1.0, exponent, sign
    for k in range(_work_off(d, weight, work)):
        _add_moments(work.team.sums[k], moments)


@kernel
def _add_moments(found: FloatArray, moments: FloatArray) -> None:
    for i in range(N_MOMENTS):
        moments[i] += found[i]
