"""The logs of a column, and their sums, taken chunk by chunk by all threads of a team.

Each thread takes the next chunk that nobody has taken. What is found of a chunk is kept, and added up in the order of
the chunks by the thread that fits the column, the lead of the team: results do not depend on how many threads there
are, nor on who took what. The lead waits only for chunks that others have begun, and does everything by itself if
nobody comes.
"""

from __future__ import annotations

from typing import NamedTuple

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
from powerkern.kernels.likelihood.logs import INF_BITS, MAGNITUDE, SIGN
from powerkern.kernels.likelihood.one_pass_sums import LogSums, add_sums, logs_of_one_sign, signed_logs
from powerkern.kernels.likelihood.score import N_MOMENTS, WEIGHT
from powerkern.kernels.likelihood.scratch import (
    CHUNK,
    DONE,
    ENDS,
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
#: How often a thread looks for a chunk before it leaves: a tenth of a millisecond, longer than the lead has nothing to
#: give. Where the two share a CPU, because others are busy, the lead waits that long.
_PATIENCE = 3_000


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
    total, squares = sums.weight + total, sums.weight_squares + squares
    return LogSums(sums.total, sums.squares, sums.low, sums.high, total, squares)


@for_none()
def rounded(weight: FloatArray, scale: float, out: Float32Array) -> Float32Array:
    """The weights in float32, which a `scale` keeps them in the range of."""
    widest_vectors()
    for i in range(out.size):
        out[i] = scale * weight[i]
    return out


@for_none()
def part_of(weight: FloatArray, start: int, end: int) -> FloatArray:
    """Some of the weights."""
    return weight[start:end]


@for_none()
def _of_squeezed(weight: FloatArray, work: Work) -> FloatArray:
    return work.weight


# --- chunks, by all threads ----------------------------------------------------------------------------


@kernel
def assist(columns: FloatArray, weight: FloatArray | None, work: Work) -> None:
    """Take chunks of the columns that the lead of a team fits, until that is over or nothing is left for long.

    `work` is that of the lead, with float32 scratch space of this thread's own.
    """
    counts, task, idle = work.team.counts, work.team.sums[0], 0
    while idle < _PATIENCE and fetch(counts, OVER) == 0:
        idle += 1
        left = fetch(counts, LEFT)
        if left > 0:
            left = fetch_add(counts, LEFT, -1)
        if left <= 0:
            pause()
            continue
        idle, n = 0, int(task[SIZE])
        if n < columns.shape[1]:
            _do_chunk(left, work.packed[:n], _of_squeezed(weight, work), work)
        else:
            _do_chunk(left, columns[int(task[INDEX])], weight, work)
        fetch_add(counts, DONE, 1)


@kernel
def _do_chunk(left: int, x: FloatArray, weight: FloatArray | None, work: Work) -> None:
    """Do the task for the first of so many chunks, the last of the column."""
    task = work.team.sums[0]
    k = -(-x.size // CHUNK) - left
    start, end = k * CHUNK, min((k + 1) * CHUNK, x.size)
    own, d, found = part_of(weight, start, end), work.spare[start:end], work.team.sums[k + 1]
    found[:] = 0.0
    if task[OF_POWERS] != 0.0:
        add_sums(d, own, task[EXPONENT], task[SIGN_OF_LOGS] == 0.0, found)
    elif fetch(work.team.counts, STOPPED) == 0:
        _logs_of_chunk(x, start, end, own, d, found, work)


@kernel
def _logs_of_chunk(
    x: FloatArray, start: int, end: int, weight: FloatArray | None, d: FloatArray, found: FloatArray, work: Work
) -> None:
    """Logs, run by run, with later values prefetched, and, while they are in the cache, float32 sums of powers."""
    task, n = work.team.sums[0], end - start
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
        exchange(work.team.counts, STOPPED, 1)
        return
    if task[EXPONENT] == task[EXPONENT]:
        add_sums(d32, rounded(weight, task[SCALE], work.weight32[:n]), task[EXPONENT], kind.sign == 0.0, found)
    sums = with_first(sums, weight, seen.complete)
    found[LOG_TOTAL], found[LOG_SQUARES] = sums.total, sums.squares
    found[LOG_WEIGHT], found[LOG_WEIGHT_SQUARES] = sums.weight, sums.weight_squares
    low = ENDS + 2 * (start // CHUNK)
    work.team.counts[low], work.team.counts[low + 1] = sums.low, sums.high


# --- all chunks, by the lead ---------------------------------------------------------------------------


@kernel
def take_logs(
    kind: LogKind, x: FloatArray, weights: Weights, gaps: bool, exponent: float, work: Work, moments: FloatArray
) -> LogSums:
    """All logs, to ``work.spare``, and float32 sums of powers (exponent NaN: none); with `gaps` many are looked for.

    Where a value is not finite or of an unexpected sign the ends say so, and nothing else holds.
    """
    task, counts = work.team.sums[0], work.team.counts
    task[OF_POWERS], task[EXPONENT], task[SCALE], task[GAPS] = 0.0, exponent, weights.scale, gaps
    task[SIGN_OF_LOGS], task[KNOWN], task[OFFSET], task[REF], task[LOG_REF] = kind
    exchange(counts, STOPPED, 0)
    moments[:] = 0.0
    n, sums = work_off(x, weights.values, work, moments), no_logs(kind)
    if fetch(counts, STOPPED) != 0:
        return LogSums(0.0, 0.0, INF_BITS, INF_BITS, 0.0, 0.0)
    for k in range(n):
        found, low = work.team.sums[k + 1], ENDS + 2 * k
        total, squares = found[LOG_WEIGHT], found[LOG_WEIGHT_SQUARES]
        own = LogSums(found[LOG_TOTAL], found[LOG_SQUARES], counts[low], counts[low + 1], total, squares)
        sums = joined(kind, sums, own)
    moments[WEIGHT] = weights.scale * sums.weight
    return sums


@kernel
def work_off(x: FloatArray, weight: FloatArray | None, work: Work, moments: FloatArray) -> int:
    """Have the task done for all chunks, and add their sums of powers to `moments`; returns how many there are."""
    counts, sums, n = work.team.counts, work.team.sums, -(-x.size // CHUNK)
    sums[0, SIZE] = x.size
    exchange(counts, DONE, 0)
    exchange(counts, LEFT, n)
    left = fetch_add(counts, LEFT, -1)
    while left > 0:
        _do_chunk(left, x, weight, work)
        fetch_add(counts, DONE, 1)
        left = fetch_add(counts, LEFT, -1)
    while fetch(counts, DONE) < n:
        pause()
    for k in range(1, n + 1):
        for i in range(N_MOMENTS):
            moments[i] += sums[k, i]
    return n
