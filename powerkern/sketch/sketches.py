"""`Sketch`: power sums of the columns of some rows, and the conversion of these sums to another grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._estimators.censored_sums import censored_sums
from powerkern._estimators.power_sums import N_ROUNDINGS, ROOM, MixedSums, PowerSums, references_for
from powerkern._input.arguments import column_positions
from powerkern._input.arrays import column_label
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.power_sums.gauss import N_POWERS
from powerkern.kernels.power_sums.grids import (
    G_BINS,
    G_EXPONENT,
    G_FIRST,
    G_MAX,
    G_MIN,
    G_QUANTUM,
    G_REF,
    N_GRID,
)
from powerkern.kernels.results import STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.grids import Grid
from powerkern.sketch.intervals import CountedIntervals
from powerkern.sketch.serial import SKETCH, pack, read_array, unpack
from powerkern.sketch.summary import ChunkSummary


@final
class Sketch(ChunkSummary):
    """Power sums in bins: a summary of some rows from which the columns can be fitted.

    `summarize_chunk` and `extend` return a sketch, `merge` adds two sketches, and `finish` fits the columns.

    A sketch contains no information about the rows other than its attributes and parameters.

    Parameters
    ----------
    grid, sums
        See the attributes.
    roundings : (p, 4) ndarray of int64
        Counts for the error bound, which `merge` adds up. For each column: the number of times that sums were rounded
        to whole numbers, the number of rows summed, the number of sums of weights rounded to 0, and the number of
        changes of the reference of the logs.
    intervals : CountedIntervals, optional
        Distinct intervals of the censored cells, with the weights of their cells; default: none.

    Attributes
    ----------
    grid : Grid
        Positions of the bins.
    sums : (bins of all columns, 8) ndarray of int64
        For each bin, the weighted sums of ``t**k`` for k = 0, ..., 7. Here t is the coordinate within the bin, from -1
        to 1. The unit of each column is ``2**grid.quantum``. Censored cells are not included.
    """

    def __init__(
        self, grid: Grid, sums: IntArray, roundings: IntArray, intervals: CountedIntervals | None = None
    ) -> None:
        self.grid = grid
        self.sums = sums
        self._roundings = roundings
        self._intervals = self._without_cells() if intervals is None else intervals

    def _without_cells(self) -> CountedIntervals:
        """Return the `CountedIntervals` of a sketch without censored cells.

        The extremes of columns that have values are marked as unknown.
        """
        extremes = np.where(self._quanta() > 0, np.nan, [[np.inf], [-np.inf]])
        return CountedIntervals.without_cells(extremes)

    def _quanta(self) -> IntArray:
        """Return the total weight of the values of each column in units of its quantum, (p,)."""
        counts, starts = np.zeros(len(self.sums) + 1, dtype=np.int64), self.grid._starts
        self.sums[:, 0].cumsum(out=counts[1:])
        return np.asarray(counts[starts[1:]] - counts[starts[:-1]])

    @property
    def n_obs(self) -> FloatArray:
        """Total weight of the values and censored cells of each column."""
        quanta = self._quanta() + self._intervals.totals
        total: FloatArray = np.ldexp(quanta.astype(np.float64), self.grid.quantum)
        return total

    def _power_sums(self) -> PowerSums | MixedSums:
        """Return the sums, together with any censored cells, as an object with a `fit` method."""
        grid = self.grid
        table = self._intervals.table(grid.quantum)
        return censored_sums(self.sums, self._roundings, FAMILIES[grid.family], grid._table.copy(), table)

    def _merge(self, other: Sketch) -> Sketch:
        """Return the sketch of the rows of `self` and `other`, with the columns in the order of `self`.

        If the grids differ, or the sums would overflow, both sketches first move to a common grid.
        """
        if (order := self.grid._order_of(other.grid)) is not None:
            other = other.part(order)
        weight = self.n_obs + other.n_obs
        same = self.grid == other.grid and self.grid._has_room_for(weight)
        grid = self.grid if same else self.grid._common_grid(other.grid, weight)
        a, b = self._on_grid(grid), other._on_grid(grid)
        intervals = a._intervals.merge(b._intervals, grid.column_names)
        return Sketch(grid, a.sums + b.sums, a._roundings + b._roundings, intervals)

    def _on_grid(self, grid: Grid) -> Sketch:
        """Return the sketch on another grid; see `_move_to_grid` for the conditions on the grid."""
        return self if self.grid == grid else _move_to_grid(self, grid)

    @classmethod
    def _join_columns(cls, parts: Sequence[Sketch]) -> Sketch:
        """Join sketches of different columns of the same rows."""
        sums, roundings = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sums", "_roundings"))
        intervals = CountedIntervals.join_columns([part._intervals for part in parts])
        return cls(Grid._join_columns([part.grid for part in parts]), sums, roundings, intervals)

    def unresolved(self) -> BoolArray:
        """Return a mask of the columns for which `finish` would report `Status.UNRESOLVED`.

        The grid is too coarse for these columns; see `Grid.refined`.
        """
        nothing_given = np.full(self.grid.n_features, np.nan)
        mask: BoolArray = self._power_sums().fit(nothing_given, thread_count(None))[0][:, STATUS] == Status.UNRESOLVED
        return mask

    def part(self, columns: ArrayLike) -> Sketch:
        """Return the sketch of some of the columns, chosen by indices or by a mask."""
        starts = self.grid._starts
        chosen = column_positions(columns, self.grid.n_features)
        own = [self.sums[starts[j] : starts[j + 1]] for j in chosen]
        sums, intervals = np.concatenate([self.sums[:0], *own]), self._intervals.part(chosen)
        return Sketch(self.grid.part(chosen), sums, self._roundings[chosen], intervals)

    def __repr__(self) -> str:
        return f"Sketch({self.grid!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sketch)
            and self.grid == other.grid
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self._roundings, other._roundings)
            and self._intervals == other._intervals
        )

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, which `from_bytes` reads.

        The result has a header, 64 bytes per bin, 120 bytes per column, and 24 bytes per interval of censored cells.
        """
        head = {**self.grid._describe(), "intervals": self._intervals.counts.size}
        return pack(SKETCH, head, self.grid._table, self.sums, self._roundings, *self._intervals.arrays())

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Return the sketch that `to_bytes` wrote; raise ValueError for damaged bytes and for another version."""
        head, payload = unpack(data, SKETCH)
        border = 8 * head["columns"] * N_GRID
        grid = Grid._read(head, payload[:border], SKETCH)
        p, k = head["columns"], head.get("intervals")
        if not (type(k) is int and k >= 0):
            raise SKETCH.damaged()
        shapes = ((int(grid.n_bins.sum()), N_POWERS), (p, N_ROUNDINGS), (p + 1, 1), (k, 2), (k, 1), (2, p))
        arrays = []
        for shape, dtype in zip(shapes, ("<i8", "<i8", "<i8", "<f8", "<i8", "<f8"), strict=True):
            size = 8 * shape[0] * shape[1]
            arrays.append(read_array(payload[border : border + size], shape, dtype, SKETCH))
            border += size
        if border != len(payload):
            raise SKETCH.damaged()
        sums, roundings, starts, ends, counts, observed = arrays
        found = cls(grid, sums, roundings, CountedIntervals(starts[:, 0], ends, counts[:, 0], observed))
        if not found._is_sound():
            raise SKETCH.damaged()
        return found

    def _is_sound(self) -> bool:
        """Return whether the sums satisfy the inequalities that hold for the sums of any rows."""
        sums = self.sums.astype(np.float64)
        totals = np.diff(np.append(0.0, np.cumsum(sums[:, 0]))[self.grid._starts])
        return bool(
            (np.abs(sums) <= 1.001 * sums[:, :1]).all()  # |t| <= 1, but for rounding
            and self._intervals.is_sound(self.grid._table[:, G_MIN], self.grid._table[:, G_MAX])
            and (totals + self._intervals.totals < math.ldexp(1.0, ROOM)).all()
            and (self._roundings >= 0).all()
        )


# --- sums on another grid -----------------------------------------------------------------------------


def _move_to_grid(old: Sketch, grid: Grid) -> Sketch:
    """Move a sketch to another grid.

    The grid must cover the range of the sketch. Its bins must have the same width, or be wider by a power of two.
    """
    sums, roundings = np.zeros((int(grid.n_bins.sum()), N_POWERS), dtype=np.int64), old._roundings.copy()
    starts, old_starts = grid._starts, old.grid._starts
    moved = (old.grid._table[:, G_REF] != grid._table[:, G_REF]) & (old.grid.n_bins > 0)
    distance = np.zeros(grid.n_features)
    distance[moved] = references_for(old.grid._table[moved])[0] - references_for(grid._table[moved])[0]
    for j, (new, cell) in enumerate(zip(grid._table, old.grid._table, strict=True)):
        if cell[G_BINS] == 0:
            continue
        if new[G_EXPONENT] < cell[G_EXPONENT]:
            raise ValueError(f"{column_label(j, grid.column_names)}: the grid has narrower bins than the sketch")
        own, first = old.sums[old_starts[j] : old_starts[j + 1]], int(cell[G_FIRST])
        first += int(distance[j] * 2.0 ** -cell[G_EXPONENT])
        own, first = _convert_sums(own, first, cell, new)
        begin = first - int(new[G_FIRST])
        if not 0 <= begin <= new[G_BINS] - len(own):
            raise ValueError(f"{column_label(j, grid.column_names)}: the bins of a sketch lie beyond its range")
        sums[starts[j] + begin : starts[j] + begin + len(own)] = own
        roundings[j, [0, 3]] += 1, moved[j]
    exponents = np.where(old.grid.n_bins > 0, grid.quantum - old.grid.quantum, 0)
    return Sketch(grid, sums, roundings, old._intervals.rescale(exponents))


def _convert_sums(sums: IntArray, first: int, cell: FloatArray, new: FloatArray) -> tuple[IntArray, int]:
    """Convert the sums of a column to the bins and the quantum of another grid.

    Parameters
    ----------
    sums : (k, N_POWERS) ndarray of int
        The sums in the k bins of the column.
    first : int
        Index of the first of these bins; bin 0 begins at the log 0.
    cell, new : (N_GRID,) ndarray
        The column's rows in the tables of the old and of the new grid.

    Returns
    -------
    sums : ndarray of int
        The sums in the bins of the new grid.
    first : int
        Index of the first of these bins.
    """
    levels = int(new[G_EXPONENT] - cell[G_EXPONENT])
    begin = (first >> levels) - int(new[G_FIRST])
    end = ((first + len(sums) - 1) >> levels) + 1 - int(new[G_FIRST])
    if levels == 0 and new[G_QUANTUM] == cell[G_QUANTUM] and begin >= 0 and end <= new[G_BINS]:
        return sums, first
    scaled = np.ldexp(sums.astype(np.float64), int(cell[G_QUANTUM] - new[G_QUANTUM]))
    for _ in range(levels):
        scaled, first = _join_pairs(scaled, first)
    if begin == -1 and len(scaled) > 1:
        scaled, first = _merge_first_bin(scaled), first + 1
    if end == new[G_BINS] + 1 and len(scaled) > 1:
        scaled = _merge_first_bin(scaled[::-1] * _MIRROR)[::-1] * _MIRROR
    return np.rint(scaled).astype(np.int64), first


def _shift_matrix(side: float, divisor: float) -> FloatArray:
    """Return the matrix that maps the sums of t**k to the sums of ((t + side)/divisor)**k (binomial theorem)."""
    return np.array(
        [
            [math.comb(k, i) * side ** (k - i) / divisor**k if i <= k else 0.0 for i in range(N_POWERS)]
            for k in range(N_POWERS)
        ]
    )


_FROM_LEFT, _FROM_RIGHT = _shift_matrix(-1.0, 2.0), _shift_matrix(1.0, 2.0)
_FROM_BELOW = _shift_matrix(-2.0, 1.0)
#: Factors that convert the sums of t**k to the sums of (-t)**k.
_MIRROR = (-1.0) ** np.arange(N_POWERS)


def _join_pairs(sums: FloatArray, first: int) -> tuple[FloatArray, int]:
    """Join bins 2j and 2j + 1 of a column whose first bin has index `first`; return the sums and the new index."""
    before, after = first % 2, (first + len(sums)) % 2
    pairs = np.pad(sums, ((before, after), (0, 0))).reshape(-1, 2, N_POWERS)
    return pairs[:, 0] @ _FROM_LEFT.T + pairs[:, 1] @ _FROM_RIGHT.T, first // 2


def _merge_first_bin(sums: FloatArray) -> FloatArray:
    """Remove the first bin by adding its sums to the second bin.

    All values of the first bin must lie on the border between the two bins: t = 1 in the first, t = -1 in the second.
    """
    joined = sums[1:].copy()
    joined[0] += _FROM_BELOW @ sums[0]
    return joined
