"""Grids of bins for the logs of a column, from its range."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import extended_log, log, log1p, split
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.power_sums.ranges import R_COUNT, R_MAX, R_MIN, estimate_log_sd, mean_log
from powerkern.kernels.transforms.family import log_offset

#: A column's grid: +-1 if all values have that sign and are held as logs of |x| relative to REF, 0 if as signed logs;
#: bins of width 2**EXPONENT, numbered from FIRST; the extremes of all data; sums are whole numbers of 2**QUANTUM
G_SIGN, G_REF, G_EXPONENT, G_FIRST, G_BINS, G_MIN, G_MAX, G_QUANTUM = range(8)
#: The length of a grid.
N_GRID = 8
#: Bins are at most this wide, times 1/|m|: the rule's relative error is then at most 3e-13 (`errors`).
WIDTH = 0.16
#: m is expected to be at most this, over the spread of the logs. A grid for which it is larger is refined.
_EXPECTED = 2.0
#: Exponents of the widths of bins; logs are below 2**10, so that wider bins are never needed.
NARROWEST, WIDEST = -1000.0, 11.0
#: The ends of a grid are at most 2**_DIGITS bins from its origin: numbers of bins are exact, with two bits to spare.
_DIGITS = 50.0
#: Bins per column at first: 4096 times eight sums are 256 KB.
MAX_BINS = 4096
#: And where a grid is refined: 4 MB.
MAX_REFINED = 65536
#: Logs of the references of Box-Cox streams are multiples of this. Coarse, so that narrow chunks share one reference;
#: fine, so that the rounding of logs relative to it, 2**-53 of them, is small beside the distance of two doubles.
_FINEST_STEP = 2.0**-42
#: References of streams are at least about e to minus this, the smallest that are normal numbers.
_DEEPEST = 708.0
#: The logs of references of streams are rounded by less than this.
_REFERENCE_ROUNDING = 2.0**-50


@kernel
def reference_excess(base: float, ref: float) -> float:
    """Return ln(ref) minus the logarithm that `ref` is rounded from, if it is the reference of a Box-Cox stream.

    Bins of a stream are relative to the exact power of e: in narrow data the rounding of `ref` may exceed many bins.
    Returns 0 for other references.
    """
    if base != 0.0 or not 0.0 < ref < math.inf:
        return 0.0
    k, m = split(ref)
    head, tail = extended_log(k, m - 1.0, 0.0)
    excess = head - _FINEST_STEP * math.floor((head + tail) / _FINEST_STEP + 0.5) + tail
    return excess if abs(excess) < _REFERENCE_ROUNDING else 0.0


@kernel
def _log_range(base: float, grid: FloatArray) -> tuple[float, float]:
    """Return the ends of the grid in logs."""
    low, high, ref = grid[G_MIN], grid[G_MAX], grid[G_REF]
    log_ref, excess = offset_log(base, ref), reference_excess(base, ref)
    if grid[G_SIGN] > 0.0:
        return centered_log(low, base, ref, log_ref) + excess, centered_log(high, base, ref, log_ref) + excess
    if grid[G_SIGN] < 0.0:
        return centered_log(-high, base, ref, log_ref), centered_log(-low, base, ref, log_ref)
    return math.copysign(log1p(abs(low)), low), math.copysign(log1p(abs(high)), high)


@kernel
def _lay(base: float, grid: FloatArray, exponent: float, max_bins: int) -> None:
    """Write bins over the range of the data: of width 2**exponent, or the next power that needs at most `max_bins`.

    A range without logs gets no bins; it comes from a caller's table, not from data.
    """
    low, high = _log_range(base, grid)
    grid[G_FIRST] = grid[G_BINS] = grid[G_EXPONENT] = 0.0
    reach = max(abs(low), abs(high))
    if not (low <= high and reach < math.inf):
        return
    grid[G_BINS] = math.inf
    if reach > 0.0:
        exponent = max(exponent, math.floor(math.log2(reach)) - _DIGITS)
    exponent = max(exponent, NARROWEST) - 1.0
    while not grid[G_BINS] <= max_bins and exponent < WIDEST:
        exponent += 1.0
        grid[G_EXPONENT] = exponent
        grid[G_FIRST] = math.floor(low * 2.0**-exponent)
        grid[G_BINS] = math.floor(high * 2.0**-exponent) - grid[G_FIRST] + 1.0


@kernel
def _rung_between(low: float, high: float) -> float:
    """Return the logarithm of the reference of a stream with these extremes: near their middle, and of few bits.

    It is a multiple of a power of two that is at least the range of the logs. Bins are narrower, and as the range
    only grows, an old reference is a whole number of bins from a new one.
    """
    bottom = log(low)
    reach = centered_log(high, 0.0, low, bottom)
    step = math.ldexp(1.0, math.ceil(math.log2(max(reach, _FINEST_STEP))))
    return step * max(math.floor((bottom + 0.5 * reach) / step + 0.5), -math.floor(_DEEPEST / step))


@kernel
def _write_grid(found: FloatArray, base: float, largest_exponent: float, stream: bool, grid: FloatArray) -> None:
    """Write a grid for the data of a range; `largest_exponent` may be 0.

    The grid of a stream can be brought to any other grid: of Yeo-Johnson it holds signed logs in any case, of
    Box-Cox logs relative to e to `_rung_between` the extremes.
    """
    grid[:] = 0.0
    if not found[R_COUNT] > 0.0:
        return
    low, high = found[R_MIN], found[R_MAX]
    if not -math.inf < low <= high < math.inf:
        return
    grid[G_MIN], grid[G_MAX] = low, high
    if not (stream and base == 1.0):
        grid[G_SIGN] = 1.0 if low >= 0.0 else -1.0 if high < 0.0 else 0.0
    if grid[G_SIGN] != 0.0:
        smallest, largest = min(abs(low), abs(high)), max(abs(low), abs(high))
        typical = expm1(abs(mean_log(found))) if base == 1.0 else exp(mean_log(found))
        grid[G_REF] = min(max(typical, smallest), largest)
        if stream:
            grid[G_REF] = exp(_rung_between(low, high))
    first, last = _log_range(base, grid)
    width = WIDTH / _EXPECTED * estimate_log_sd(found, last - first)
    if grid[G_SIGN] == 0.0:  # lambda is near 1 however large the values of both signs are
        largest_exponent = max(largest_exponent, _EXPECTED)
    if largest_exponent > 0.0:
        width = min(width, WIDTH / largest_exponent)
    _lay(base, grid, math.floor(math.log2(width)) if width > 0.0 else 0.0, MAX_BINS)


# --- entries ------------------------------------------------------------------------------------------


@entry((ROWS, INTEGER, REAL, INTEGER, ROWS))
def grid_columns(ranges: FloatArray, family: int, largest_exponent: float, stream: int, grids: FloatArray) -> None:
    """Write grids for the ranges of columns; see `_write_grid`.

    Parameters
    ----------
    ranges : (p, 11)
        Ranges of the columns, see `powerkern.kernels.power_sums.ranges`.
    family : int
        BOX_COX or YEO_JOHNSON.
    largest_exponent : float
        The largest |m| that is expected, in units of 1/spread of the logs; 0: the default.
    stream : bool
        Whether more rows may follow, beyond the range.
    grids : (p, N_GRID)
        Receives the grids.
    """
    for j in range(ranges.shape[0]):
        _write_grid(ranges[j], log_offset(family), largest_exponent, stream != 0, grids[j])


@entry((ROWS, COLUMN, COLUMN))
def ladder_columns(grids: FloatArray, rungs: FloatArray, references: FloatArray) -> None:
    """Write references, and their logarithms, of Box-Cox streams with the extremes of grids; see `_rung_between`."""
    for j in range(grids.shape[0]):
        rungs[j], references[j] = 0.0, 1.0
        if grids[j, G_BINS] > 0.0:
            rungs[j] = _rung_between(grids[j, G_MIN], grids[j, G_MAX])
            references[j] = exp(rungs[j])


@entry((ROWS, INTEGER, COLUMN, INTEGER))
def lay_columns(grids: FloatArray, family: int, exponents: FloatArray, max_bins: int) -> None:
    """Recompute the bins of grids.

    Parameters
    ----------
    grids : (p, N_GRID)
        The grids of the columns.
    family : int
        BOX_COX or YEO_JOHNSON.
    exponents : (p,)
        Exponents of 2 of the widths of bins.
    max_bins : int
        Most bins of a column.
    """
    for j in range(grids.shape[0]):
        if grids[j, G_BINS] > 0.0:
            _lay(log_offset(family), grids[j], exponents[j], max_bins)
