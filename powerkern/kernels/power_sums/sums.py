"""The power-moment sketch: a summary of a column that can be merged with others, and that suffices to fit the column.

The logs of a column are assigned to bins of width 2**e. With the local coordinate t in [-1, 1] of its bin, a value of
weight w adds ``w t^k`` to the bin's power sums T_0, ..., T_7. Sketches of parts of a column on the same grid are merged
by addition, in any order.

Xu and Cormode [1]_ merge means and variances of parts, which takes one pass over the data for each lambda evaluated.
Power sums of logs take one pass for all lambdas. From them follow the sums of e^(m t) for any exponent m, and therefore
the likelihood and its derivatives (`powerkern.kernels.power_sums.sample`).

References
----------
.. [1] X. Xu and G. Cormode, "Power transform revisited: numerically stable, and federated", 2025, arXiv:2510.04995.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import (
    COLUMN,
    COUNTS,
    INTEGER,
    ROWS,
    add_powers,
    entry,
    inlined,
    kernel,
    named_tuple,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.constants import LARGEST, SMALLEST_NORMAL, copy
from powerkern.kernels.elementary.log import log_normal
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.likelihood.score import BLOCK
from powerkern.kernels.power_sums.gauss import N_POWERS
from powerkern.kernels.power_sums.grids import (
    G_BINS,
    G_EXPONENT,
    G_FIRST,
    G_MAX,
    G_MIN,
    G_REF,
    G_SIGN,
    reference_excess,
)
from powerkern.kernels.transforms.family import log_offset


class Chunk(NamedTuple):
    """Scratch for a block of values: weights, local coordinates and bin indices."""

    weight: FloatArray
    t: FloatArray
    bins: IntArray


@inlined
def _place(s: float, first: int, last: int) -> tuple[int, float]:
    """Return the index of the bin that contains a log, and the local coordinate in the bin; both are exact.

    `s` is the log in units of the bin width. `first` and `last` are the positions of the outermost bins; indices count
    from `first`.
    """
    j = min(max(math.floor(s), first), last)
    return j - first, 2.0 * (s - j) - 1.0


@kernel
def _places(x: FloatArray, base: float, grid: FloatArray, t: FloatArray, bins: IntArray, delicate: bool | None) -> int:
    """Write the bin indices and local coordinates of a block of values; return the number of values within the grid.

    Parameters
    ----------
    x : (n,)
        The values. Those outside the grid are replaced by its lower end.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    t : (n,)
        Receives the local coordinates.
    bins : (n,) int
        Receives the bin indices.
    delicate : True or None
        True if `is_delicate` returns True, and otherwise None, so that the choice is made at compile time.
    """
    first, both, ref = int(grid[G_FIRST]), grid[G_SIGN] == 0.0, grid[G_REF]
    last = first + int(grid[G_BINS]) - 1
    low, high = grid[G_MIN], grid[G_MAX]
    per_bin = 2.0 ** -grid[G_EXPONENT]
    per_ref, log_ref = 1.0 / (base + ref), offset_log(base, ref)
    excess = reference_excess(base, ref)
    n_inside = 0
    for i in range(x.size):
        inside = (x[i] >= low) & (x[i] <= high)
        n_inside += inside
        value = x[i] if inside else low
        if delicate is None:
            s = log_normal((base + abs(value)) * per_ref) * per_bin
        else:
            s = (centered_log(abs(value), base, ref, log_ref) + excess) * per_bin
        s = math.copysign(s, value) if both else s
        bins[i], t[i] = _place(s, first, last)
    return n_inside


@kernel
def is_delicate(base: float, grid: FloatArray) -> bool:
    """Return whether the logs of a column need the careful evaluation of `centered_log`.

    This is so if all magnitudes are close to the reference of the grid, or if the ratio of a magnitude to the reference
    might underflow or overflow. `base` is added to magnitudes before the logarithm.
    """
    unit = base + grid[G_REF]
    largest = max(abs(grid[G_MIN]), abs(grid[G_MAX]))
    smallest = 0.0 if grid[G_SIGN] == 0.0 else min(abs(grid[G_MIN]), abs(grid[G_MAX]))
    near = largest - grid[G_REF] <= 0.5 * unit and grid[G_REF] - smallest <= 0.5 * unit
    invertible = SMALLEST_NORMAL <= unit <= 1.0 / SMALLEST_NORMAL
    normal = (base + smallest) / unit >= SMALLEST_NORMAL and (base + largest) / unit <= LARGEST
    return near or not (invertible and normal)


@kernel
def _add(t: FloatArray, weight: FloatArray, bins: IntArray, sums: FloatArray) -> None:
    """Add values to the power sums of their bins; an empty `weight` means that all weights are 1."""
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
    """Add a column to the power sums; return False if a value of positive weight is outside the grid.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    weight : (n,)
        Weights of the values; empty: all one.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    chunk : Chunk
        Scratch.
    sums : (n_bins * N_POWERS,)
        The power sums of the column's bins; updated in place.
    """
    delicate, has_bins = is_delicate(base, grid), grid[G_BINS] > 0.0
    for start in range(0, x.size, BLOCK):
        block, own = x[start : start + BLOCK], weight[start : start + BLOCK]
        n, inside = block.size, 0
        t, bins = chunk.t[:n], chunk.bins[:n]
        if has_bins:
            if delicate:
                inside = _places(block, base, grid, t, bins, True)
            else:
                inside = _places(block, base, grid, t, bins, None)
        if inside < n:
            if _weights_inside(block, own, grid, chunk.weight[:n]) > 0:
                return False
            own = chunk.weight[:n]
        if has_bins:
            _add(t, own, bins, sums)
    return True


@kernel
def _weights_inside(x: FloatArray, weight: FloatArray, grid: FloatArray, out: FloatArray) -> int:
    """Write the weights of the values within the grid, and 0 for all others, to `out`.

    Return the number of values outside the grid that are not missing and have positive weight. An empty `weight` means
    that all weights are 1.
    """
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


# --- entries ------------------------------------------------------------------------------------------


_CHUNK = named_tuple(Chunk, COLUMN, COLUMN, COUNTS)


def new_chunk() -> Chunk:
    """Allocate a `Chunk`."""
    return Chunk(np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.int64))


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
    """Add columns to the power sums of their bins.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the rows of data; empty: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    chunk : Chunk
        Scratch.
    sums : (n_bins * N_POWERS,)
        The power sums of all columns, updated in place.
    starts : (p + 1,) int
        The bins of column j are starts[j], ..., starts[j + 1] - 1.
    inside : (p,) int
        Set to 0 for columns with values outside their grid; other elements are left unchanged.
    """
    for j in range(columns.shape[0]):
        own = sums[N_POWERS * starts[j] : N_POWERS * starts[j + 1]]
        if not _add_column(columns[j], weight, log_offset(family), grids[j], chunk, own):
            inside[j] = 0
