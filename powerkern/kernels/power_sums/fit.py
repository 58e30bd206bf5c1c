"""The power-moment sketch: a summary of a column that adds up, and from which its fit follows.

The logs of a column are placed on a grid of bins of width 2**e. In the local coordinate t in [-1, 1] of its bin a
value of weight w adds ``w t^k`` to the bin's power sums T_0..T_7. That is all: sketches of parts of a column on
the same grid are added, in any order.

To fit, the power sums of each bin become the nodes and weights of its Gauss rule (at most four; Golub and Welsch
1969): a weighted sample that has the same first eight moments in every bin. The functions of
`powerkern.kernels.likelihood.mle` that fit weighted logs do the rest, so a fit from a sketch is the fit of that
sample, with the same certificate.

Error. For f with eight derivatives, a bin's mean of f and its rule's differ by at most ``max|f^(8)| h^8/8! r``, h
half its width and r = E pi_4(t)^2 <= min(1/64, E pi_3(t)^2), pi_k the monic orthogonal polynomials of its values.
With f = e^(2 m a) the relative error is ``(2 |m| h)^8 r e^(2 |m| h)/8!``: 3e-13 for 2 |m| h = 0.16. A bin that holds
at most four distinct values is represented exactly. Sums over blocks of rows are rounded to whole numbers of a quantum,
so that no order of adding them up makes a difference. `errors_of` sums what all this does to lambda.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._jit import (
    COLUMN,
    COUNTS,
    INTEGER,
    READ_COLUMN,
    READ_COLUMN32,
    REAL,
    ROWS,
    add_powers,
    bits_of,
    entry,
    float_of,
    inlined,
    kernel,
    named_tuple,
    reduction,
    widest_vectors,
)
from powerkern._status import Route, Status
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.elementary.constants import EPS, LARGEST, SMALLEST_NORMAL, copy, ordered
from powerkern.kernels.elementary.exp_log import exp, expm1, log, log1p, log_normal
from powerkern.kernels.likelihood.interval import interval_of
from powerkern.kernels.likelihood.logs import MAGNITUDE, SIGN, Scan, centered_log, offset_log, scan
from powerkern.kernels.likelihood.optimum import Optimum, write_fit
from powerkern.kernels.likelihood.score import BLOCK, Logs, Scratch
from powerkern.kernels.likelihood.scratch import SCRATCH
from powerkern.kernels.likelihood.two_pass import Centered, profile_of, two_pass_optimum
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE, LMBDA, LMBDA0, STATUS, write_identity, write_range
from powerkern.kernels.transforms.family import log_offset, lowest

#: Power sums of a bin, and nodes of its Gauss rule.
N_POWERS, N_NODES = 8, 4

# a column's range: values (a negative number: outside the domain), their weight, the extremes; the size of a sample,
# the sum of its logs in whole units of LOG_UNIT, and that of their squares in units of LIMB and of 1.
# Of several ranges the weight is a sum in digits of LIMB: WEIGHT those of LIMB**LEVEL, WEIGHT_1 and WEIGHT_2 the next.
# All that is added up are whole numbers below 2**53, so that no order of merging makes a difference.
R_COUNT, R_WEIGHT, R_MIN, R_MAX, R_SAMPLE, R_LOGS, R_SQUARES, R_SQUARES_LOW, R_WEIGHT_1, R_WEIGHT_2, R_LEVEL = range(11)
N_RANGE = 11
# what is found of a place in lines
_LOW, _HIGH, _N = range(3)
LOG_UNIT, LIMB = 2.0**-16, 2.0**26

# a column's grid: +-1 if all values have that sign and are held as logs of |x| relative to REF, 0 if as signed logs;
# bins of width 2**EXPONENT, numbered from FIRST; the extremes of all data; sums are whole numbers of 2**QUANTUM
G_SIGN, G_REF, G_EXPONENT, G_FIRST, G_BINS, G_MIN, G_MAX, G_QUANTUM = range(8)
N_GRID = 8

#: The spread of logs of which only the ends are known, or which are this close, is taken for this fraction of their
#: distance.
EXPECTED_RANGE, _CLOSE = 16.0, 2.0**-8

#: Bins are at most this wide, times 1/|m|; m is expected to be at most this, over the spread of the logs.
WIDTH = 0.16
_EXPECTED = 2.0
#: A spread is at least its range over this.
_LARGEST_RANGE = 400.0
#: Exponents of the widths of bins; logs are below 2**10, so that wider bins are never needed.
NARROWEST, WIDEST = -1000.0, 11.0
#: Relative error of a power of e that is a reference, in roundings.
_MOVED = 1.0
#: The ends of a grid are at most 2**_DIGITS bins from its origin.
_DIGITS = 50.0
#: Bins per column, at first and where a grid is refined.
MAX_BINS = 4096
MAX_REFINED = 65536

#: Lambda is certified where the bound on its error is below this, times |lambda| where that exceeds 1.
TOLERANCE = 1e-11
#: And where the bound on the relative error of the standard deviation is below this: standardised values share it.
SD_TOLERANCE = 5e-11

#: Mean squares about the bin's mean below this are rounding: one node. And those of the higher polynomials.
_ONE_NODE = 1e-15
_FEWER_NODES = 1e-13
#: Nodes are at most this far from the middle of the bin.
_BEYOND = 1.0 + 1e-6
_FIXED, _UNRESOLVED = int(Status.FIXED), int(Status.UNRESOLVED)
_CONSTANT, _EMPTY = int(Status.CONSTANT), int(Status.EMPTY)
#: Weights that are multiples of a quantum times 2 to this power have not been rounded.
_SPARE_BITS = 20.0
#: Independent roundings are taken to come to less than this many of their standard deviations.
_SIGMAS = 8.0
_POWER_SUMS = int(Route.POWER_SUMS)


class Chunk(NamedTuple):
    """Scratch of a block: weights, local coordinates and bins."""

    weight: FloatArray
    t: FloatArray
    bins: IntArray


# --- ranges -------------------------------------------------------------------------------------------


@kernel
def _range_of(x: FloatArray, weight: FloatArray, family: int, first: int, stride: int, out: FloatArray) -> None:
    """Add values to a range, and the logs of every stride-th one, from the first on, to its sample."""
    if weight.size == 0:
        found = scan(x)
        x_min, x_max = _extremes_of(found, x.size - found.n_nan)
        _note(x.size - found.n_nan, x_min, x_max, family, out)
        out[R_WEIGHT] = out[R_COUNT]
    else:
        for start in range(0, x.size, BLOCK):
            n, low, high, total = _present(x[start : start + BLOCK], weight[start : start + BLOCK])
            _note(n, float_of(ordered(low)) + 0.0, float_of(ordered(high)) + 0.0, family, out)  # no -0.0
            out[R_WEIGHT] += total
    if out[R_COUNT] > 0.0:
        _sample(x, weight, log_offset(family), first, stride, out)


@kernel
def _extremes_of(found: Scan, n: int) -> tuple[float, float]:
    """The smallest and the largest of n values that were scanned."""
    low, high = float_of(found.low), float_of(found.high)
    x_min = low if found.n_negative == 0 else -float_of(found.negative_high)
    return x_min, -low if found.n_negative == n else high


@reduction
def _present(x: FloatArray, weight: FloatArray) -> tuple[int, int, int, float]:
    """Of the values that are not missing and have a weight: number, `ordered` bits of the extremes, weight."""
    widest_vectors()
    n, low, high, total = 0, MAGNITUDE, SIGN, 0.0
    for i in range(x.size):
        present = (x[i] == x[i]) & (weight[i] > 0.0)
        key, every = ordered(bits_of(x[i])), -int(present)  # by bits: LLVM makes branches of conditions on integers
        n -= every
        low = min(low, (key & every) | (MAGNITUDE & ~every))
        high = max(high, (key & every) | (SIGN & ~every))
        total += weight[i] if present else 0.0
    return n, low, high, total


@kernel
def _note(n: float, x_min: float, x_max: float, family: int, out: FloatArray) -> None:
    """Add the extremes of n values to a range; one that is out of the domain stays so, for infinite values if any."""
    if n == 0.0:
        return
    if max(-x_min, x_max) == math.inf or out[R_COUNT] == BAD_INFINITE:
        out[R_COUNT] = BAD_INFINITE
    elif x_min <= lowest(family) or out[R_COUNT] < 0.0:
        out[R_COUNT] = BAD_NOT_POSITIVE
    else:
        out[R_COUNT] += n
        out[R_MIN] = min(out[R_MIN], x_min)
        out[R_MAX] = max(out[R_MAX], x_max)


@kernel
def _sample(x: NDArray[Any], weight: FloatArray, base: float, first: int, stride: int, out: FloatArray) -> None:
    """Add signed logs of evenly spaced values, rounded to whole units, to the sample's sums."""
    for i in range(first, x.size, max(stride, 1)):  # a step of 0 would raise
        value = np.float64(x[i])
        if value != value or (weight.size > 0 and not weight[i] > 0.0):
            continue
        a = math.copysign(offset_log(base, abs(value)), value) if base == 1.0 else offset_log(base, value)
        units = math.floor(a / LOG_UNIT + 0.5)
        upper = math.floor(units * units / LIMB)
        out[R_SAMPLE] += 1.0
        out[R_LOGS] += units
        out[R_SQUARES] += upper
        out[R_SQUARES_LOW] += units * units - upper * LIMB


@inlined
def _range_of_lines(
    x: NDArray[Any], length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """Add to the ranges of columns the rows that lie in lines, of one or of several rows, which begin `length` apart.

    The extremes are looked for in `line`, which may be several rows, and then in its places of each column. The logs of
    values `step` apart in memory, from `first` on, go to the sample.
    """
    _look_along(x, length, line)
    p = out.shape[0]
    for j in range(p):
        n, x_min, x_max = 0.0, math.inf, -math.inf
        for k in range(j, line.shape[1], max(p, 1)):
            n += line[_N, k]
            x_min = min(x_min, line[_LOW, k])
            x_max = max(x_max, line[_HIGH, k])
        _note(n, x_min + 0.0, x_max + 0.0, family, out[j])  # no -0.0
        out[j, R_WEIGHT] = out[j, R_COUNT]
        if out[j, R_COUNT] > 0.0:
            _sample(x[j:], line[_N, :0], log_offset(family), first, step, out[j])


@inlined
def _look_along(x: NDArray[Any], length: int, line: FloatArray) -> None:
    """The extremes of each place of a line, and how many are not missing; the last line may be shorter."""
    widest_vectors()
    low, high, n = line[_LOW], line[_HIGH], line[_N]
    low[:], high[:], n[:] = math.inf, -math.inf, 0.0
    for start in range(0, x.size, max(length, 1)):
        values = x[start : min(start + n.size, x.size)]
        for k in range(values.size):
            value = np.float64(values[k])
            low[k] = value if value < low[k] else low[k]
            high[k] = value if value > high[k] else high[k]
            n[k] += 1.0 if value == value else 0.0


@kernel
def mean_log(found: FloatArray) -> float:
    """The mean of the signed logs of a range's sample."""
    return float(LOG_UNIT * found[R_LOGS] / max(found[R_SAMPLE], 1.0))


@kernel
def _spread_of(found: FloatArray, distance: float) -> float:
    """The standard deviation of the logs, or what is taken for it, `distance` that of the extremes."""
    spread = distance / EXPECTED_RANGE
    if found[R_SAMPLE] > 1.0 and distance > _CLOSE:
        squares = (found[R_SQUARES] * LIMB + found[R_SQUARES_LOW]) / found[R_SAMPLE] * LOG_UNIT * LOG_UNIT
        spread = math.sqrt(max(squares - mean_log(found) ** 2, 0.0))
    return min(max(spread, distance / _LARGEST_RANGE), 0.5 * distance)


# --- grids --------------------------------------------------------------------------------------------


@kernel
def _log_range(base: float, grid: FloatArray) -> tuple[float, float]:
    """The ends of the grid in logs."""
    low, high, ref = grid[G_MIN], grid[G_MAX], grid[G_REF]
    log_ref = offset_log(base, ref)
    if grid[G_SIGN] > 0.0:
        return centered_log(low, base, ref, log_ref), centered_log(high, base, ref, log_ref)
    if grid[G_SIGN] < 0.0:
        return centered_log(-high, base, ref, log_ref), centered_log(-low, base, ref, log_ref)
    return math.copysign(log1p(abs(low)), low), math.copysign(log1p(abs(high)), high)


@kernel
def _lay(base: float, grid: FloatArray, exponent: float, max_bins: int) -> None:
    """Bins of width 2**exponent, or of the next that needs at most `max_bins`, over the range of the data.

    Ends that have no logs are given no bins: they come from a caller's table, not from data.
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
def rung_between(low: float, high: float) -> float:
    """The logarithm of the reference of a stream with these extremes: near their middle, and of few bits.

    It is a multiple of a power of two that is no less than the range of the logs. Bins are narrower, and as the range
    only grows, an old reference is a whole number of bins from a new one.
    """
    bottom = log(low)
    reach = centered_log(high, 0.0, low, bottom)
    if reach == 0.0:
        reach = EPS
    step = math.ldexp(1.0, math.ceil(math.log2(reach)))
    return step * math.floor((bottom + 0.5 * reach) / step + 0.5)


@kernel
def _grid_of(found: FloatArray, base: float, largest_exponent: float, stream: bool, grid: FloatArray) -> None:
    """A grid for the data of a range; `largest_exponent` may be 0.

    The grid of a stream can be brought to that of any other: of Yeo-Johnson it holds signed logs in any case, of
    Box-Cox logs relative to e to `rung_between` the extremes.
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
            grid[G_REF] = exp(rung_between(low, high))
    first, last = _log_range(base, grid)
    width = WIDTH / _EXPECTED * _spread_of(found, last - first)
    if grid[G_SIGN] == 0.0:  # lambda is near 1 however large the values of both signs are
        largest_exponent = max(largest_exponent, _EXPECTED)
    if largest_exponent > 0.0:
        width = min(width, WIDTH / largest_exponent)
    _lay(base, grid, math.floor(math.log2(width)) if width > 0.0 else 0.0, MAX_BINS)


# --- sums ---------------------------------------------------------------------------------------------


@inlined
def _place(s: float, first: int, last: int) -> tuple[int, float]:
    """The bin of s, in units of a bin, and the local coordinate in it; all of it is exact."""
    j = min(max(math.floor(s), first), last)
    return j - first, 2.0 * (s - j) - 1.0


@kernel
def _places(x: FloatArray, base: float, grid: FloatArray, t: FloatArray, bins: IntArray) -> int:
    """Bins and local coordinates where `_is_delicate` does not hold; returns how many values are within the grid."""
    widest_vectors()
    first, both, ref = int(grid[G_FIRST]), grid[G_SIGN] == 0.0, grid[G_REF]
    last = first + int(grid[G_BINS]) - 1
    low, high = grid[G_MIN], grid[G_MAX]
    per_bin = 2.0 ** -grid[G_EXPONENT]
    per_ref = 1.0 / (base + ref)
    n_inside = 0
    for i in range(x.size):
        inside = (x[i] >= low) & (x[i] <= high)
        n_inside += inside
        value = x[i] if inside else low
        s = log_normal((base + abs(value)) * per_ref) * per_bin
        s = math.copysign(s, value) if both else s
        bins[i], t[i] = _place(s, first, last)
    return n_inside


@kernel
def _places_of_any(x: FloatArray, base: float, grid: FloatArray, t: FloatArray, bins: IntArray) -> int:
    """`_places` for any values."""
    widest_vectors()
    first, both, ref = int(grid[G_FIRST]), grid[G_SIGN] == 0.0, grid[G_REF]
    last = first + int(grid[G_BINS]) - 1
    low, high = grid[G_MIN], grid[G_MAX]
    per_bin = 2.0 ** -grid[G_EXPONENT]
    log_ref = offset_log(base, ref)
    n_inside = 0
    for i in range(x.size):
        inside = (x[i] >= low) & (x[i] <= high)
        n_inside += inside
        value = x[i] if inside else low
        s = centered_log(abs(value), base, ref, log_ref) * per_bin
        s = -s if both and value < 0.0 else s
        bins[i], t[i] = _place(s, first, last)
    return n_inside


@kernel
def _is_delicate(base: float, grid: FloatArray) -> bool:
    """Whether all magnitudes are near the reference, or its inverse or some of their ratios beyond the normal range."""
    unit = base + grid[G_REF]
    largest = max(abs(grid[G_MIN]), abs(grid[G_MAX]))
    smallest = 0.0 if grid[G_SIGN] == 0.0 else min(abs(grid[G_MIN]), abs(grid[G_MAX]))
    near = largest - grid[G_REF] <= 0.5 * unit and grid[G_REF] - smallest <= 0.5 * unit
    invertible = SMALLEST_NORMAL <= unit <= 1.0 / SMALLEST_NORMAL
    normal = (base + smallest) / unit >= SMALLEST_NORMAL and (base + largest) / unit <= LARGEST
    return near or not (invertible and normal)


@kernel
def _add(t: FloatArray, weight: FloatArray, bins: IntArray, sums: FloatArray) -> None:
    if weight.size == 0:
        for i in range(t.size):
            add_powers(sums, bins[i], t[i], 1.0)
    else:
        for i in range(t.size):
            add_powers(sums, bins[i], t[i], weight[i])


@kernel
def _add_column(
    x: FloatArray, weight: FloatArray, base: float, grid: FloatArray, chunk: Chunk, sums: FloatArray
) -> bool:
    """Add the column to `sums`; False where a value is beyond the extremes that the grid was made for."""
    delicate, has_bins = _is_delicate(base, grid), grid[G_BINS] > 0.0
    for start in range(0, x.size, BLOCK):
        block, own = x[start : start + BLOCK], weight[start : start + BLOCK]
        n, inside = block.size, 0
        t, bins = chunk.t[:n], chunk.bins[:n]
        if has_bins:
            inside = _places_of_any(block, base, grid, t, bins) if delicate else _places(block, base, grid, t, bins)
        if inside < n:
            if _weights_inside(block, own, grid, chunk.weight[:n]) > 0:
                return False
            own = chunk.weight[:n]
        if has_bins:
            _add(t, own, bins, sums)
    return True


@kernel
def _weights_inside(x: FloatArray, weight: FloatArray, grid: FloatArray, out: FloatArray) -> int:
    """Weights of the values within the grid, 0 for the others; returns how many of these are not missing and count."""
    widest_vectors()
    low, high, has_bins = grid[G_MIN], grid[G_MAX], grid[G_BINS] > 0.0
    out[:] = 1.0
    if weight.size > 0:
        copy(weight, out)
    beyond = 0
    for i in range(x.size):
        inside = has_bins & (x[i] >= low) & (x[i] <= high)
        beyond += (not inside) & (x[i] == x[i]) & (out[i] > 0.0)
        out[i] = out[i] if inside else 0.0
    return beyond


# --- from sums to a weighted sample -------------------------------------------------------------------


class Nodes(NamedTuple):
    """Room for the sample of a column and, one row per bin, for what `errors_of` needs; and small scratch."""

    position: FloatArray
    weight: FloatArray
    bin_position: FloatArray
    bin_weight: FloatArray
    bin_remainder: FloatArray
    bin_power: FloatArray
    bin_blur: FloatArray
    small: FloatArray


@kernel
def gauss_rule(sums: FloatArray, small: FloatArray) -> tuple[int, float]:
    """Nodes and weights of the Gauss rule of power sums, into small[0] and small[1]; their number and E pi_4^2's bound.

    Moments about the mean, Chebyshev's algorithm for the recurrence of the orthogonal polynomials, and the QL
    iteration for the eigenvalues of its Jacobi matrix and the first components of the eigenvectors (Golub, Welsch).
    Where the last polynomial is only rounding error, a node may lie outside: it is left out.
    """
    node, weight, diagonal, off = small[0], small[1], small[2], small[3]
    previous, current = small[4], small[5]
    total = sums[0]
    mean = sums[1] / total
    # moments about the mean: Horner's scheme of the binomial expansion, one shift of all at a time
    for k in range(N_POWERS):
        current[k] = sums[k] / total
        previous[k] = 0.0
    for k in range(1, N_POWERS):
        for i in range(N_POWERS - 1, k - 1, -1):
            current[i] -= mean * current[i - 1]
    n, square, alpha, beta = 1, 1.0, 0.0, 0.0
    diagonal[0] = mean
    while n < N_NODES:
        # sigma_k,l = sigma_k-1,l+1 - alpha sigma_k-1,l - beta sigma_k-2,l; previous becomes the new row
        for i in range(n, 2 * N_NODES - n):
            previous[i] = current[i + 1] - alpha * current[i] - beta * previous[i]
        found = previous[n]
        if not found > (_ONE_NODE if n == 1 else _FEWER_NODES):
            break
        beta = found / square
        alpha = previous[n + 1] / found - current[n] / square
        diagonal[n] = mean + alpha
        off[n - 1] = math.sqrt(beta)
        previous, current = current, previous
        square = found
        n += 1
    inside = False
    while not inside:
        for k in range(n):
            node[k], weight[k], small[6, k] = diagonal[k], 0.0, off[k]
        weight[0] = 1.0
        _eigen(node, small[6], weight, n)
        inside = True
        for k in range(n):
            weight[k] *= weight[k] * total
            inside = inside and abs(node[k]) <= _BEYOND
        if n <= 2:
            inside = inside or diagonal[1] == mean or n == 1
            diagonal[1] = mean  # two nodes about the mean, whatever the skewness
        elif not inside:
            n -= 1
    return n, min(square, 0.015625) if n == N_NODES else 0.0


@kernel
def _eigen(d: FloatArray, e: FloatArray, z: FloatArray, n: int) -> None:
    """Eigenvalues, into d, of the symmetric tridiagonal matrix (d, e); first components of its eigenvectors, into z.

    Implicit QL with Wilkinson's shift.
    """
    e[n - 1] = 0.0
    for low in range(n):
        for _ in range(40):
            m = low
            while m < n - 1 and abs(e[m]) > 0.5 * EPS * (abs(d[m]) + abs(d[m + 1])):
                m += 1
            if m == low:
                break
            g = (d[low + 1] - d[low]) / (2.0 * e[low])
            r = math.hypot(g, 1.0)
            g = d[m] - d[low] + e[low] / (g + math.copysign(r, g))
            s = c = 1.0
            p = 0.0
            split = False
            for i in range(m - 1, low - 1, -1):
                f, b = s * e[i], c * e[i]
                r = math.hypot(f, g)
                e[i + 1] = r
                split = r == 0.0
                if split:
                    d[i + 1] -= p
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                f = z[i + 1]
                z[i + 1] = s * z[i] + c * f
                z[i] = c * z[i] - s * f
            if not split:
                d[low] -= p
                e[low] = g
            e[m] = 0.0


class Sample(NamedTuple):
    """A column's bins as weighted logs; `sign` is 1, -1, or 0 for both.

    In units of the logs, `half` is half a bin, `rounding` the rounding error of a log that is 0, and `origin` where on
    the grid the logs of one sign are relative to. `whole`: no sum of weights can have been rounded.
    """

    centered: Centered
    sign: float
    half: float
    rounding: float
    origin: float
    whole: bool
    n_bins: int
    n_bins_below: int
    weight: float


class _Layout(NamedTuple):
    """The bins that hold anything, from `begin` to before `end`, as distances from 0 or, of one sign, from `origin`.

    `turned`: the grid is for both signs, and all values are negative. `low` and `high` are the ends of the distances.
    """

    sign: float
    turned: bool
    begin: int
    end: int
    origin: int
    low: int
    high: int


@kernel
def _layout_of(sums: FloatArray, grid: FloatArray) -> _Layout:
    """What the data occupy of their grid, which may have been made for a much wider range."""
    first, begin, end = int(grid[G_FIRST]), 0, int(grid[G_BINS])
    while begin < end and not sums[begin, 0] > 0.0:
        begin += 1
    while end > begin and not sums[end - 1, 0] > 0.0:
        end -= 1
    sign, low, high = grid[G_SIGN], first + begin, first + end
    if sign == 0.0 and high > 0 > low:
        return _Layout(0.0, False, begin, end, 0, low, high)
    turned = sign == 0.0 and low < 0
    if turned:
        low, high = -high, -low
    if sign == 0.0:
        sign = -1.0 if turned else 1.0
    origin = 0 if low <= 0 <= high else _middle(sums, first, begin, end, turned)
    return _Layout(sign, turned, begin, end, origin, low - origin, high - origin)


@kernel
def _middle(sums: FloatArray, first: int, begin: int, end: int, turned: bool) -> int:
    """The bin of the mean."""
    total = turn = 0.0
    for b in range(begin, end):
        total += sums[b, 0]
        turn += sums[b, 0] * (b - begin)
    at = first + begin + math.floor(turn / total)
    return -at if turned else at


@kernel
def _magnitude(log_of_it: float, base: float, smallest: float, largest: float) -> float:
    """The magnitude that has this log, within bounds."""
    size = expm1(log_of_it) if base == 1.0 else exp(log_of_it)
    return min(max(size, smallest), largest)


@kernel
def _moved(extreme: float, distance: float, log_of_it: float, base: float, smallest: float, largest: float) -> float:
    """The magnitude whose log is a `distance` from an extreme's.

    Where they are close not by its log: of values close together the rounding of exp would be more than their distance.
    """
    if abs(distance) < 1.0:
        return min(max(extreme + (base + extreme) * expm1(distance), smallest), largest)
    return _magnitude(log_of_it, base, smallest, largest)


@kernel
def sample_of(sums: FloatArray, base: float, grid: FloatArray, nodes: Nodes) -> Sample:
    """The Gauss rules of all bins; the sums have at least one value."""
    layout = _layout_of(sums, grid)
    sigma_bins = 1.0  # the unit of the logs, in bins
    while sigma_bins < max(abs(layout.low), abs(layout.high)):
        sigma_bins *= 2.0
    width = 2.0 ** grid[G_EXPONENT]
    sigma, half = sigma_bins * width, 0.5 / sigma_bins
    first, turned = int(grid[G_FIRST]), layout.turned
    n = n_below = n_bins_below = 0
    total = turn = 0.0
    whole, per_quantum = True, 2.0 ** -(grid[G_QUANTUM] + _SPARE_BITS)
    n_bins = _add_end(first, layout, 0, sigma_bins, nodes)
    for b in range(layout.begin, layout.end):
        if not sums[b, 0] > 0.0:
            continue
        below = layout.sign == 0.0 and first + b < 0
        distance = -(first + b + 0.5) if turned else first + b + 0.5
        center = (distance - layout.origin) / sigma_bins
        found, remainder = gauss_rule(sums[b], nodes.small)
        for k in range(found):
            step = half * nodes.small[0, k]
            at = center - step if turned else center + step
            nodes.position[n] = -at if below else at  # rounding may put a node beyond 0: others make up for it
            nodes.weight[n] = nodes.small[1, k]
            turn += nodes.small[1, k] * at
            n += 1
        nodes.bin_position[n_bins] = -center if below else center
        nodes.bin_weight[n_bins] = sums[b, 0]
        whole = whole and math.floor(sums[b, 0] * per_quantum) == sums[b, 0] * per_quantum
        nodes.bin_remainder[n_bins] = remainder
        nodes.bin_blur[n_bins] = 0.0 if found == 1 and _is_one_value(sums[b]) else 1.0
        n_bins += 1
        total += sums[b, 0]
        if below:
            n_below, n_bins_below = n, n_bins
    n_bins = _add_end(first + int(grid[G_BINS]), layout, n_bins, sigma_bins, nodes)
    pos, neg = slice(n_below, n), slice(0, n_below)
    values = nodes.position[pos], nodes.weight[pos], nodes.position[neg], nodes.weight[neg]
    centered = _bounded(values, base, grid, layout, sigma, width, turn / total)
    rounding = 0.0 if _is_delicate(base, grid) else EPS / sigma
    return Sample(centered, layout.sign, half, rounding, layout.origin / sigma_bins, whole, n_bins, n_bins_below, total)


@kernel
def _is_one_value(sums: FloatArray) -> bool:
    """Whether the power sums of a bin are so exactly those of one value that their rounding cannot have been felt."""
    mean = sums[1] / sums[0]
    return bool(abs(sums[2] / sums[0] - mean * mean) <= _ONE_NODE)


@kernel
def _add_end(at: int, layout: _Layout, n_bins: int, sigma_bins: float, nodes: Nodes) -> int:
    """Note an end of the grid as a bin without weight."""
    distance = (-at if layout.turned else at) - layout.origin
    nodes.bin_position[n_bins] = (abs(distance) if layout.sign == 0.0 else distance) / sigma_bins
    nodes.bin_weight[n_bins] = nodes.bin_remainder[n_bins] = 0.0
    return n_bins + 1


@kernel
def _bounded(
    values: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    base: float,
    grid: FloatArray,
    layout: _Layout,
    sigma: float,
    width: float,
    jacobian: float,
) -> Centered:
    """The logs with the bounds of what there is: powers of extremes far beyond it would leave no digits."""
    pos, pos_weight, neg, neg_weight = values
    log_ref, origin = offset_log(base, grid[G_REF]), layout.origin * width
    low, high = log_ref + origin + layout.low * width, log_ref + origin + layout.high * width
    if layout.sign == 0.0:
        largest = _magnitude(high, base, 0.0, grid[G_MAX])
        neg_high = log1p(_magnitude(-low, base, 0.0, -grid[G_MIN])) / sigma
        logs = Logs(pos, pos_weight, neg, neg_weight, 0.0, log1p(largest) / sigma, neg_high, jacobian, sigma, 0.0)
        return Centered(logs, 0.0, base, 0.0, largest, math.nan)
    nearest, farthest = max(grid[G_MIN], 0.0), grid[G_MAX]
    if layout.sign < 0.0:
        nearest, farthest = max(-grid[G_MAX], 0.0), -grid[G_MIN]
    first = centered_log(nearest, base, grid[G_REF], log_ref) - origin
    last = centered_log(farthest, base, grid[G_REF], log_ref) - origin
    inward = max(layout.low * width - first, 0.0), min(layout.high * width - last, 0.0)
    smallest = _moved(nearest, inward[0], low, base, nearest, farthest)
    largest = _moved(farthest, inward[1], high, base, nearest, farthest)
    logs = Logs(
        pos,
        pos_weight,
        neg,
        neg_weight,
        (centered_log(smallest, base, grid[G_REF], log_ref) - origin) / sigma,
        (centered_log(largest, base, grid[G_REF], log_ref) - origin) / sigma,
        0.0,
        jacobian,
        sigma,
        0.0,
    )
    return Centered(logs, log_ref + origin, base, smallest, largest, math.nan)


class Rounded(NamedTuple):
    """How sums were rounded: to multiples of `quantum`, so many times, `lost` of them to nothing; each over `rows`.

    `moved`: they are relative to another reference than they were taken with.
    """

    quantum: float
    times: float
    rows: float
    lost: float
    moved: bool


@kernel
def errors_of(sample: Sample, best: Optimum, nodes: Nodes, rounded: Rounded) -> tuple[float, float]:
    """Bounds of the error of the optimum and of the relative error of the standard deviation there.

    Of the Gauss rules, and of rounding within bins; of lambda also of rounding of logs, and of sums.
    """
    logs = sample.centered.logs
    mu, shift = best.exponent * logs.sigma, 0.0
    if sample.sign != 0.0:
        shift = logs.high if mu > 0.0 else logs.low
    turn = abs(logs.jacobian - shift)
    variance = (best.sd / logs.sigma) ** 2
    mean = _mean_power(sample, mu, shift, best.log_factor, nodes)
    squares = products = quanta = farthest = 0.0
    for b in range(sample.n_bins):
        below = b < sample.n_bins_below
        exponent = 2.0 * logs.sigma - mu if below else mu
        a = nodes.bin_position[b] - shift
        grows = abs(exponent) * sample.half
        height = sample.half * exp(exponent * a + grows - best.log_factor)
        reach = abs(a) + sample.half
        distance = abs(nodes.bin_power[b] - mean) + 2.0 * height
        lever = (distance * distance + variance) * (reach + turn)
        if sample.whole:
            lever = 2.0 * distance * height * (reach + turn) + variance * sample.half
        if nodes.bin_weight[b] == 0.0:
            farthest = max(farthest, lever)
            continue
        quanta += lever * lever
        # of y^2 and, its derivative in the exponent, of y y': their eighth derivatives times h^8/8! r
        rule = 8.0 * (2.0 * grows) ** 6 / 40320.0 * nodes.bin_remainder[b]
        rounding = (4.0 + 0.5 * rounded.rows * nodes.bin_blur[b]) * EPS
        weight = nodes.bin_weight[b] * height * height
        squares += weight * (rule + rounding)
        products += weight * (rule + rounding) * reach
        if grows > 0.0:
            products += weight * rule * 3.0 / abs(exponent)
    lost = _SIGMAS * rounded.quantum * math.sqrt(rounded.times / 12.0 * quanta)
    if rounded.lost > 0.0:
        lost += 0.5 * rounded.quantum * rounded.lost * farthest
    total = variance * sample.weight * best.curvature
    error = (products + turn * squares + lost) * logs.sigma / total + _noise(sample, rounded.moved)
    return error, 0.5 * squares / (variance * sample.weight)


@kernel
def _mean_power(sample: Sample, mu: float, shift: float, log_factor: float, nodes: Nodes) -> float:
    """The mean of y, and y of the middle of each bin, both e^-log_factor of what they are."""
    total = 0.0
    for b in range(sample.n_bins):
        below = b < sample.n_bins_below
        exponent = 2.0 * sample.centered.logs.sigma - mu if below else mu
        t = exponent * (nodes.bin_position[b] - shift)
        power = (nodes.bin_position[b] - shift) * exp(-log_factor)
        if abs(t) > EPS:
            scaled = expm1(t) * exp(-log_factor) if t < 1.0 else exp(t - log_factor) - exp(-log_factor)
            power = scaled / exponent
        nodes.bin_power[b] = -power if below else power
        if nodes.bin_weight[b] > 0.0:
            total += nodes.bin_weight[b] * nodes.bin_power[b]
    return total / sample.weight


@kernel
def _noise(sample: Sample, moved: bool) -> float:
    """What rounding of the logs, and of references, does to lambda, whose unit is one over their spread."""
    logs = sample.centered.logs
    rounding = _MOVED * EPS / logs.sigma if moved else sample.rounding
    spread = noise = 0.0
    for k in range(logs.pos.size):
        spread += logs.pos_weight[k] * (logs.pos[k] - logs.jacobian) ** 2
        noise += logs.pos_weight[k] * (EPS * abs(logs.pos[k] + sample.origin) + rounding) ** 2
    for k in range(logs.neg.size):
        spread += logs.neg_weight[k] * (logs.neg[k] + logs.jacobian) ** 2
        noise += logs.neg_weight[k] * (EPS * logs.neg[k] + rounding) ** 2
    if not spread > 0.0:
        return math.inf
    return 4.0 * math.sqrt(sample.weight * noise) / (spread * logs.sigma)


# --- entries ------------------------------------------------------------------------------------------

_CHUNK = named_tuple(Chunk, COLUMN, COLUMN, COUNTS)
_NODES = named_tuple(Nodes, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, ROWS)


def new_chunk() -> Chunk:
    """The arrays of `Chunk`."""
    return Chunk(np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.int64))


def new_nodes(n_bins: int) -> Nodes:
    """The arrays of `Nodes` for at most `n_bins` bins, and the ends of the grid."""
    position, weight = (np.empty(N_NODES * n_bins) for _ in range(2))
    middle, own, remainder, power, blur = (np.empty(n_bins + 2) for _ in range(5))
    return Nodes(position, weight, middle, own, remainder, power, blur, np.empty((7, N_POWERS)))


@entry((ROWS, COLUMN, INTEGER, INTEGER, INTEGER, ROWS))
def range_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    first: int,
    stride: int,
    out: FloatArray,
) -> None:
    """Add the rows of `columns`, each one column of a matrix, to their ranges; see `_range_of`."""
    for j in range(columns.shape[0]):
        _range_of(columns[j], weight, family, first, stride, out[j])


@entry((READ_COLUMN, INTEGER, INTEGER, INTEGER, INTEGER, ROWS, ROWS))
def range_lines(
    x: FloatArray, length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """`range_columns` of a matrix that lies in rows, without weights; see `_range_of_lines`."""
    _range_of_lines(x, length, family, first, step, line, out)


@entry((READ_COLUMN32, INTEGER, INTEGER, INTEGER, INTEGER, ROWS, ROWS))
def range_lines32(
    x: Float32Array, length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """`range_lines` of float32."""
    _range_of_lines(x, length, family, first, step, line, out)


@entry((ROWS, INTEGER, REAL, INTEGER, ROWS))
def grid_columns(ranges: FloatArray, family: int, largest_exponent: float, stream: int, grids: FloatArray) -> None:
    """Grids for the ranges of columns; see `_grid_of`."""
    for j in range(ranges.shape[0]):
        _grid_of(ranges[j], log_offset(family), largest_exponent, stream != 0, grids[j])


@entry((ROWS, COLUMN, COLUMN))
def ladder_columns(grids: FloatArray, rungs: FloatArray, references: FloatArray) -> None:
    """References, and their logarithms, of Box-Cox streams with the extremes of grids; see `rung_between`."""
    for j in range(grids.shape[0]):
        rungs[j], references[j] = 0.0, 1.0
        if grids[j, G_BINS] > 0.0:
            rungs[j] = rung_between(grids[j, G_MIN], grids[j, G_MAX])
            references[j] = exp(rungs[j])


@entry((ROWS, INTEGER, COLUMN, INTEGER))
def lay_columns(grids: FloatArray, family: int, exponents: FloatArray, max_bins: int) -> None:
    """Recompute the bins of grids."""
    for j in range(grids.shape[0]):
        if grids[j, G_BINS] > 0.0:
            _lay(log_offset(family), grids[j], exponents[j], max_bins)


@entry((ROWS, COLUMN, INTEGER, ROWS, _CHUNK, COLUMN, COUNTS, COUNTS))
def sketch_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    grids: FloatArray,
    chunk: Chunk,
    sums: FloatArray,
    starts: IntArray,
    inside: IntArray,
) -> None:
    """Add the rows of `columns` to the sums of their bins, from starts[j] on; inside[j] = 0: beyond the grid."""
    for j in range(columns.shape[0]):
        own = sums[N_POWERS * starts[j] : N_POWERS * starts[j + 1]]
        if not _add_column(columns[j], weight, log_offset(family), grids[j], chunk, own):
            inside[j] = 0


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, COLUMN, _NODES, SCRATCH, ROWS, COLUMN))
def fit_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    roundings: FloatArray,
    lmbda: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
    error: FloatArray,
) -> None:
    """Fit the columns of a sketch; `error` bounds what the sketch adds to the error of lambda (inf: not resolved).

    `roundings` has for each column how often its sums were rounded, over how many rows at most each was taken, how
    many of them came to nothing, and how often they were moved to another reference.
    """
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        of = roundings[j]
        rounded = Rounded(2.0 ** grids[j, G_QUANTUM], of[0], of[1], of[2], of[3] > 0.0)
        error[j] = _fit_column(own, log_offset(family), grids[j], rounded, lmbda[j], nodes, scratch, out[j])


@kernel
def _total(sums: FloatArray) -> float:
    total = 0.0
    for b in range(sums.shape[0]):
        total += sums[b, 0]
    return total


@kernel
def _fit_column(
    sums: FloatArray,
    base: float,
    grid: FloatArray,
    rounded: Rounded,
    lmbda: float,
    nodes: Nodes,
    scratch: Scratch,
    row: FloatArray,
) -> float:
    total = _total(sums)
    write_range(row, total, grid[G_MIN], grid[G_MAX])
    if not total > 0.0 or grid[G_MIN] == grid[G_MAX]:
        write_identity(row, _CONSTANT if total > 0.0 else _EMPTY)
        return 0.0
    sample = sample_of(sums, base, grid, nodes)
    if sample.centered.logs.pos.size + sample.centered.logs.neg.size < 2:
        write_identity(row, _UNRESOLVED)
        return math.inf
    exponent = lmbda if sample.sign >= 0.0 else 2.0 - lmbda
    best = two_pass_optimum(sample.centered, exponent, 0, scratch)
    write_fit(row, best, sample.sign, _POWER_SUMS)
    if row[STATUS] == _FIXED:
        row[LMBDA] = row[LMBDA0] = lmbda
    if lmbda == lmbda:
        return 0.0
    error, of_sd = errors_of(sample, best, nodes, rounded)
    found = best.exponent if sample.sign >= 0.0 else 2.0 - best.exponent
    # constants beyond float64, too, may be those of lost digits
    if not (error <= TOLERANCE * max(1.0, abs(found)) and of_sd <= SD_TOLERANCE):
        row[STATUS] = _UNRESOLVED
    return error


@entry((ROWS, COUNTS, INTEGER, ROWS, COLUMN, _NODES, SCRATCH, ROWS))
def profile_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    lmbdas: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """g of every column of a sketch at every lambda; NaN for one without two values."""
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if _total(own) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = sample_of(own, log_offset(family), grids[j], nodes)
            profile_of(sample.centered, sample.sign, lmbdas, scratch, out[j])


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, _NODES, SCRATCH, ROWS))
def interval_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    at: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """Likelihood intervals of the columns of a sketch; `at` holds lambda and the drop of each."""
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if _total(own) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = sample_of(own, log_offset(family), grids[j], nodes)
            interval_of(sample.centered, sample.sign, at[j, 0], at[j, 1], scratch, out[j])
