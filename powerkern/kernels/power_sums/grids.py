"""Choose grids of bins for the logs of columns, from the ranges of the data.

A stream is a column that may grow: more rows may follow, with values outside the present range.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import extended_log, log, log1p, split
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.power_sums.ranges import R_COUNT, R_MAX, R_MIN, estimate_log_sd, mean_log
from powerkern.kernels.transforms.family import log_offset

#: Indices of the fields of a grid. G_SIGN is +-1 if all values have that sign and are stored as logs of |x| relative to
#: G_REF; 0 if they are stored as signed logs. There are G_BINS bins of width 2**G_EXPONENT, the first with index
#: G_FIRST. G_MIN and G_MAX are the extremes of all data. Power sums are multiples of 2**G_QUANTUM.
G_SIGN, G_REF, G_EXPONENT, G_FIRST, G_BINS, G_MIN, G_MAX, G_QUANTUM = range(8)
#: Number of these fields.
N_GRID = 8
#: Largest width of a bin, times the absolute exponent |m|, for which the relative error of the Gauss rule is at most
#: 2e-13 (`errors`).
WIDTH = 0.16
#: Expected upper limit of the absolute exponent |m|, times the standard deviation of the logs. If |m| is larger, the
#: grid is refined.
_EXPECTED = 2.0
#: Range of the exponents of bin widths. Logs are below 2**10, so wider bins are never needed.
NARROWEST, WIDEST = -1000.0, 11.0
#: Log2 of the largest distance from the origin of a grid to its ends, in bins; bin indices are exact with two bits to
#: spare.
_DIGITS = 50.0
#: Largest number of bins of a column at first; 4096 times eight sums are 256 KB.
MAX_BINS = 4096
#: Largest number of bins of a refined grid; 4 MB.
MAX_REFINED = 65536
#: Logs of the references of Box-Cox streams are multiples of this. It must be coarse, so that narrow chunks share one
#: reference. It must also be fine, so that the rounding error of logs relative to the reference is much less than the
#: distance between adjacent doubles.
_FINEST_STEP = 2.0**-42
#: Largest -ln(reference) of a stream, for which the reference is a normal number.
_DEEPEST = 708.0
#: Bound on the rounding error of the log of a stream's reference.
_REFERENCE_ROUNDING = 2.0**-50


@kernel
def reference_excess(base: float, ref: float) -> float:
    """Return ln(ref) minus the exact log from which the reference `ref` of a Box-Cox stream was computed.

    The exact log is a multiple of `_FINEST_STEP`. The bins of a stream are laid relative to the exact log, since in
    narrow data the rounding error of `ref` may exceed the width of many bins. For all other grids the result is 0.
    """
    if base != 0.0 or not 0.0 < ref < math.inf:
        return 0.0
    k, m = split(ref)
    head, tail = extended_log(k, m - 1.0, 0.0)
    excess = head - _FINEST_STEP * math.floor((head + tail) / _FINEST_STEP + 0.5) + tail
    return excess if abs(excess) < _REFERENCE_ROUNDING else 0.0


@kernel
def _log_range(base: float, grid: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest log of the data of a grid; signed logs if the grid is for both signs."""
    low, high, ref = grid[G_MIN], grid[G_MAX], grid[G_REF]
    log_ref, excess = offset_log(base, ref), reference_excess(base, ref)
    if grid[G_SIGN] > 0.0:
        return centered_log(low, base, ref, log_ref) + excess, centered_log(high, base, ref, log_ref) + excess
    if grid[G_SIGN] < 0.0:
        return centered_log(-high, base, ref, log_ref), centered_log(-low, base, ref, log_ref)
    return math.copysign(log1p(abs(low)), low), math.copysign(log1p(abs(high)), high)


@kernel
def _lay_bins(base: float, grid: FloatArray, exponent: float, max_bins: int) -> None:
    """Write the bins of a grid: their width, the position of the first bin, and their number.

    The width is 2**exponent, or the next power of two that gives at most `max_bins` bins. A range without finite logs
    gets no bins. Data cannot have such a range, but a caller may pass one.
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
def _choose_reference_log(low: float, high: float) -> float:
    """Return the log of the reference for a stream: near the middle of the logs, with few significant bits.

    `low` and `high` are the extremes of the data so far. The result is a multiple of a power of two that is at least
    as large as the range of the logs. Bins are narrower than that power, and the range can only grow. Therefore an old
    and a new reference are a whole number of bins apart.
    """
    bottom = log(low)
    reach = centered_log(high, 0.0, low, bottom)
    step = math.ldexp(1.0, math.ceil(math.log2(max(reach, _FINEST_STEP))))
    return step * max(math.floor((bottom + 0.5 * reach) / step + 0.5), -math.floor(_DEEPEST / step))


@kernel
def _write_grid(data_range: FloatArray, base: float, largest_exponent: float, stream: bool, grid: FloatArray) -> None:
    """Write the grid of a column whose range is known.

    Sums on the grid of a stream can later be moved to another grid. Such a grid always has signed logs for Yeo-Johnson,
    and for Box-Cox a reference chosen by `_choose_reference_log`.

    Parameters
    ----------
    data_range : (N_RANGE,)
        The range of the column (see `powerkern.kernels.power_sums.ranges`).
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    largest_exponent : float
        The largest expected absolute exponent of powers e^(exponent log); 0 selects the default.
    stream : bool
        Whether more rows may follow, with values outside the range.
    grid : (N_GRID,)
        Receives the grid.
    """
    grid[:] = 0.0
    if not data_range[R_COUNT] > 0.0:
        return
    low, high = data_range[R_MIN], data_range[R_MAX]
    if not -math.inf < low <= high < math.inf:
        return
    grid[G_MIN], grid[G_MAX] = low, high
    if not (stream and base == 1.0):
        grid[G_SIGN] = 1.0 if low >= 0.0 else -1.0 if high < 0.0 else 0.0
    if grid[G_SIGN] != 0.0:
        smallest, largest = min(abs(low), abs(high)), max(abs(low), abs(high))
        typical = expm1(abs(mean_log(data_range))) if base == 1.0 else exp(mean_log(data_range))
        grid[G_REF] = min(max(typical, smallest), largest)
        if stream:
            grid[G_REF] = exp(_choose_reference_log(low, high))
    first, last = _log_range(base, grid)
    width = WIDTH / _EXPECTED * estimate_log_sd(data_range, last - first)
    if grid[G_SIGN] == 0.0:  # with both signs lambda is near 1, even if the values are large
        largest_exponent = max(largest_exponent, _EXPECTED)
    if largest_exponent > 0.0:
        width = min(width, WIDTH / largest_exponent)
    _lay_bins(base, grid, math.floor(math.log2(width)) if width > 0.0 else 0.0, MAX_BINS)


# --- entries ------------------------------------------------------------------------------------------


@entry((ROWS, INTEGER, REAL, INTEGER, ROWS))
def grid_columns(ranges: FloatArray, family: int, largest_exponent: float, stream: int, grids: FloatArray) -> None:
    """Choose and write the grid of each column, given the ranges of the columns.

    Parameters
    ----------
    ranges : (p, N_RANGE)
        Ranges of the columns (see `powerkern.kernels.power_sums.ranges`).
    family : int
        BOX_COX or YEO_JOHNSON.
    largest_exponent : float
        The largest expected absolute exponent of powers e^(exponent log); 0 selects the default.
    stream : int
        Nonzero if more rows may follow, with values outside the range.
    grids : (p, N_GRID)
        Receives the grids.
    """
    for j in range(ranges.shape[0]):
        _write_grid(ranges[j], log_offset(family), largest_exponent, stream != 0, grids[j])


@entry((ROWS, COLUMN, COLUMN))
def write_stream_references(grids: FloatArray, logs: FloatArray, references: FloatArray) -> None:
    """Write the reference of each Box-Cox stream, given the grids of the streams, and its exact log to `logs`.

    For a grid without bins the reference is 1.
    """
    for j in range(grids.shape[0]):
        logs[j], references[j] = 0.0, 1.0
        if grids[j, G_BINS] > 0.0:
            logs[j] = _choose_reference_log(grids[j, G_MIN], grids[j, G_MAX])
            references[j] = exp(logs[j])


@entry((ROWS, INTEGER, COLUMN, INTEGER))
def lay_columns(grids: FloatArray, family: int, exponents: FloatArray, max_bins: int) -> None:
    """Replace the bins of grids by bins of the given widths.

    Parameters
    ----------
    grids : (p, N_GRID)
        The grids of the columns; updated in place.
    family : int
        BOX_COX or YEO_JOHNSON.
    exponents : (p,)
        Log2 of the bin width of each column.
    max_bins : int
        Largest number of bins of a column. Bins are widened if there would be more.
    """
    for j in range(grids.shape[0]):
        if grids[j, G_BINS] > 0.0:
            _lay_bins(log_offset(family), grids[j], exponents[j], max_bins)
