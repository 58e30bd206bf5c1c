"""Grids that grow with a stream, and sums of sketches on different grids."""

from __future__ import annotations

import math

import numpy as np

from powerkern._estimators.power_sums import is_on_reference_grid, on_reference_grid, quanta_for
from powerkern._input.arrays import column_label
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.power_sums.gauss import N_POWERS
from powerkern.kernels.power_sums.grids import G_BINS, G_EXPONENT, G_FIRST, G_MAX, G_MIN, G_QUANTUM, G_REF, G_SIGN
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.sketch.summaries import Grid, Range, Sketch

#: Bins per column of a stream, whose grid is as fine as they allow.
_STREAM_BINS = 1024


def stream_grid(found: Range) -> Grid:
    """A grid for the first rows of a stream: as fine as it may be, and of a kind that all others can be brought to."""
    grid = found._laid(stream=True)
    return grid._relaid(np.full(grid.n_features, -np.inf), _STREAM_BINS)


def _is_streamed(grid: Grid) -> BoolArray:
    """Mask of the columns whose grid is a stream's."""
    if is_mirrored(grid._code):
        streamed: BoolArray = grid._column(G_SIGN) == 0.0
        return streamed
    return is_on_reference_grid(grid._table)


def _joined(a: FloatArray, b: FloatArray) -> FloatArray:
    """The cells of a, extended to the ranges of b; the cells of b where a has none."""
    cells = np.where((a[:, G_BINS] > 0)[:, None], a, b)
    both = (a[:, G_BINS] > 0) & (b[:, G_BINS] > 0)
    cells[both, G_MIN] = np.minimum(a[both, G_MIN], b[both, G_MIN])
    cells[both, G_MAX] = np.maximum(a[both, G_MAX], b[both, G_MAX])
    return cells


def _with_room(cells: FloatArray, weight: FloatArray) -> None:
    """Raise the quanta so that sums of this total weight fit."""
    used = cells[:, G_BINS] > 0
    cells[used, G_QUANTUM] = np.maximum(cells[used, G_QUANTUM], quanta_for(weight[used]))


def grown_grid(own: Grid, fresh: Grid, weight: FloatArray) -> Grid:
    """The grid of a stream, extended to the range of its next rows; `weight` is the total."""
    cells = _joined(own._table, fresh._table)
    _with_room(cells, weight)
    _relate(cells, _is_streamed(own), own._code)
    grid = Grid(own.family, cells, own.column_names, own.was_vector, own.shift)
    return grid._relaid(grid._column(G_EXPONENT), _STREAM_BINS)


def common_grid(a: Sketch, b: Sketch) -> Grid:
    """A grid that both can be brought to, with room for the sum."""
    cells, names = _joined(a.grid._table, b.grid._table), a.grid.column_names or b.grid.column_names
    both = (a.grid.n_bins > 0) & (b.grid.n_bins > 0)
    streamed = _is_streamed(a.grid) & _is_streamed(b.grid)
    apart = np.any(a.grid._table[:, [G_SIGN, G_REF]] != b.grid._table[:, [G_SIGN, G_REF]], axis=1)
    if (other := both & apart & ~streamed).any():
        raise ValueError(
            f"{column_label(int(np.argmax(other)), names)}: the sketches are on grids that have no common one; sketch "
            "all chunks on one grid, made from their merged ranges"
        )
    for entry in (G_EXPONENT, G_QUANTUM):
        cells[both, entry] = np.maximum(a.grid._table[both, entry], b.grid._table[both, entry])
    _with_room(cells, a.n_obs + b.n_obs)
    _relate(cells, streamed, a.grid._code)
    limit = max(_STREAM_BINS, int(a.grid.n_bins.max()), int(b.grid.n_bins.max()))
    return Grid(a.grid.family, cells, names, a.grid.was_vector, a.grid.shift)._relaid(cells[:, G_EXPONENT], limit)


def _relate(cells: FloatArray, columns: BoolArray, code: int) -> None:
    """Set the references of stream columns from their extremes."""
    if not is_mirrored(code):
        cells[columns, G_REF] = on_reference_grid(cells[columns])[1]


def regridded(old: Sketch, grid: Grid) -> Sketch:
    """The same rows on another grid, with bins as wide or wider by powers of two, that has their range."""
    if old.grid == grid:
        return old
    sums, roundings = np.zeros((int(grid.n_bins.sum()), N_POWERS), dtype=np.int64), old.roundings.copy()
    starts, old_starts = grid._starts, old.grid._starts
    moved = (old.grid._column(G_REF) != grid._column(G_REF)) & (old.grid.n_bins > 0)
    distance = np.zeros(grid.n_features)
    distance[moved] = on_reference_grid(old.grid._table[moved])[0] - on_reference_grid(grid._table[moved])[0]
    for j, (new, cell) in enumerate(zip(grid._table, old.grid._table, strict=True)):
        if cell[G_BINS] == 0:
            continue
        own, first = old.sums[old_starts[j] : old_starts[j + 1]], int(cell[G_FIRST])
        first += int(distance[j] * 2.0 ** -cell[G_EXPONENT])
        own, first = _on_cell(own, first, cell, new)
        begin = first - int(new[G_FIRST])
        if not 0 <= begin <= new[G_BINS] - len(own):
            raise ValueError(f"{column_label(j, grid.column_names)}: the bins of a sketch lie beyond its range")
        sums[starts[j] + begin : starts[j] + begin + len(own)] = own
        roundings[j, [0, 3]] += 1, moved[j]
    return Sketch(grid, sums, roundings)


def _on_cell(own: IntArray, first: int, cell: FloatArray, new: FloatArray) -> tuple[IntArray, int]:
    """Sums of a column from bin `first` on, and where they are to be, in the quanta and bins of a new cell."""
    levels = int(new[G_EXPONENT] - cell[G_EXPONENT])
    begin = (first >> levels) - int(new[G_FIRST])
    end = ((first + len(own) - 1) >> levels) + 1 - int(new[G_FIRST])
    if levels == 0 and new[G_QUANTUM] == cell[G_QUANTUM] and begin >= 0 and end <= new[G_BINS]:
        return own, first
    scaled = np.ldexp(own.astype(np.float64), int(cell[G_QUANTUM] - new[G_QUANTUM]))
    for _ in range(levels):
        scaled, first = _paired(scaled, first)
    if begin == -1 and len(scaled) > 1:
        scaled, first = _folded(scaled), first + 1
    if end == new[G_BINS] + 1 and len(scaled) > 1:
        scaled = _folded(scaled[::-1] * _MIRROR)[::-1] * _MIRROR
    return np.rint(scaled).astype(np.int64), first


def _shift_matrix(side: float, divisor: float) -> FloatArray:
    """Matrix from sums of t**k to sums of ((t + side)/divisor)**k, by the binomial theorem."""
    return np.array(
        [
            [math.comb(k, i) * side ** (k - i) / divisor**k if i <= k else 0.0 for i in range(N_POWERS)]
            for k in range(N_POWERS)
        ]
    )


_FROM_LEFT, _FROM_RIGHT = _shift_matrix(-1.0, 2.0), _shift_matrix(1.0, 2.0)
_FROM_BELOW = _shift_matrix(-2.0, 1.0)
#: Signs of the sums of (-t)**k.
_MIRROR = (-1.0) ** np.arange(N_POWERS)


def _paired(sums: FloatArray, first: int) -> tuple[FloatArray, int]:
    """Join bins 2j and 2j + 1, where the first one is bin number `first`."""
    before, after = first % 2, (first + len(sums)) % 2
    pairs = np.pad(sums, ((before, after), (0, 0))).reshape(-1, 2, N_POWERS)
    return pairs[:, 0] @ _FROM_LEFT.T + pairs[:, 1] @ _FROM_RIGHT.T, first // 2


def _folded(sums: FloatArray) -> FloatArray:
    """Join the first bin, which has values at its upper border only, to the second."""
    joined = sums[1:].copy()
    joined[0] += _FROM_BELOW @ sums[0]
    return joined


def added(a: Sketch, b: Sketch) -> Sketch:
    """The sum of two sketches, on a grid that has room for it."""
    same = a.grid == b.grid and bool((a.n_obs + b.n_obs < a.grid._room).all())
    grid = a.grid if same else common_grid(a, b)
    a, b = regridded(a, grid), regridded(b, grid)
    return Sketch(grid, a.sums + b.sums, a.roundings + b.roundings)
