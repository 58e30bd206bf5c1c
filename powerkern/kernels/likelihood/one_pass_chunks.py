"""The logs of a column, and their sums, taken in one pass over its values, chunk by chunk.

While the logs of a chunk are in the first-level cache, the sums of powers are taken of them in float32. Sums are added
up in the order of the chunks.
"""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import bits_of, float_of, for_none, kernel, prefetch, reduction, widest_vectors
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.likelihood.logs import INF_BITS, MAGNITUDE, SIGN
from powerkern.kernels.likelihood.one_pass_sums import LogSums, add_chunk, logs_of_one_sign, signed_logs
from powerkern.kernels.likelihood.score import WEIGHT
from powerkern.kernels.likelihood.scratch import CHUNK, Work
from powerkern.kernels.moments import part_of

#: Logs are taken in short runs, between which values are prefetched, a cache line at a time: those of the next column,
#: which follows this one in memory, or later ones of this column where it is longer than that.
_PREFETCHED, _LINE = 256, 8
_NEXT_COLUMN, _SAME_COLUMN = 32_768, 1024


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


# --- logs ---------------------------------------------------------------------------------------------


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


# --- one pass over all values ---------------------------------------------------------------------------


@kernel
def take_logs(
    kind: LogKind, x: FloatArray, weights: Weights, gaps: bool, exponent: float, work: Work, moments: FloatArray
) -> LogSums:
    """All logs, to ``work.spare``, and float32 sums of powers (exponent NaN: none); with `gaps` many are looked for.

    Where a value is not finite or of an unexpected sign the ends say so, and nothing else holds.
    """
    moments[:] = 0.0
    sums = no_logs(kind)
    for start in range(0, x.size, CHUNK):
        end = min(start + CHUNK, x.size)
        weight, n = part_of(weights.values, start, end), end - start
        seen = _logs_of_chunk(kind, x, start, end, weight, gaps, work)
        if not _as_expected(kind, seen.sums.low, seen.sums.high):
            return LogSums(0.0, 0.0, INF_BITS, INF_BITS, 0.0, 0.0)
        if exponent == exponent:
            weight32 = rounded(weight, weights.scale, work.weight32[:n])
            add_chunk(work.d32[:n], weight32, exponent, kind.sign == 0.0, moments, work.scratch.moments[1])
        sums = joined(kind, sums, with_first(seen.sums, weight, seen.complete))
    moments[WEIGHT] = weights.scale * sums.weight
    return sums


@kernel
def _logs_of_chunk(
    kind: LogKind, x: FloatArray, start: int, end: int, weight: FloatArray | None, gaps: bool, work: Work
) -> Seen:
    """Logs of a chunk, to ``work.spare`` and ``work.d32``, run by run, with later values prefetched."""
    ahead = x.size if x.size <= _NEXT_COLUMN else _SAME_COLUMN
    chunk, d, seen = x[start:end], work.spare[start:end], Seen(no_logs(kind), 0 if gaps else end - start)
    for i in range(0, chunk.size, _PREFETCHED):
        to = slice(i, i + _PREFETCHED)
        run = chunk[to]
        for j in range(0, run.size, _LINE):
            prefetch(run, (j + ahead,))
        seen = logs_of_run(kind, run, part_of(weight, i, i + _PREFETCHED), d[to], work.d32[to], seen, i)
    return seen
