"""Power sums of the columns of some rows, and sums of sketches on different grids."""

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
from powerkern.sketch.serial import SKETCH, array_of, pack, unpack
from powerkern.sketch.summary import ChunkSummary


@final
class Sketch(ChunkSummary):
    """Power sums of the columns of some rows.

    `summarize_chunk` and `extend` make one, `merge` adds two, and `finish` fits their columns.

    Attributes
    ----------
    grid : Grid
        Where the bins lie.
    sums : (bins of all columns, 8) ndarray of int64
        In each bin the weighted sums of ``t**k``, k = 0..7, t the local coordinate between -1 and 1, in units of
        ``2**grid.quantum``, a column's own. No other information about the rows is kept.
    roundings : (p, 4) ndarray of int64
        Counts for the error bound, merged by addition: how often the sums of each column were rounded to whole
        numbers, the number of rows summed, how many sums of weights were rounded to 0, and how often the sums were
        moved to another reference.
    intervals : CountedIntervals
        The distinct intervals of censored cells, with the weights of their cells; the sums leave these cells out.
    """

    def __init__(
        self, grid: Grid, sums: IntArray, roundings: IntArray, intervals: CountedIntervals | None = None
    ) -> None:
        self.grid = grid
        self.sums = sums
        self.roundings = roundings
        self.intervals = self._without_cells() if intervals is None else intervals

    def _without_cells(self) -> CountedIntervals:
        """Return no intervals, for columns whose extremes are known only if they have no values."""
        extremes = np.where(self._quanta() > 0, np.nan, [[np.inf], [-np.inf]])
        return CountedIntervals.without_cells(extremes)

    def _quanta(self) -> IntArray:
        """Return the weight of the values of each column, in quanta."""
        counts, starts = np.zeros(len(self.sums) + 1, dtype=np.int64), self.grid.starts
        self.sums[:, 0].cumsum(out=counts[1:])
        return np.asarray(counts[starts[1:]] - counts[starts[:-1]])

    @property
    def n_obs(self) -> FloatArray:
        """Total weight of the values and censored cells of each column."""
        quanta = self._quanta() + self.intervals.totals
        total: FloatArray = np.ldexp(quanta.astype(np.float64), self.grid.quantum)
        return total

    def power_sums(self) -> PowerSums | MixedSums:
        """Return the sums, ready to be fitted."""
        grid = self.grid
        table = self.intervals.table(grid.quantum)
        return censored_sums(self.sums, self.roundings, FAMILIES[grid.family], grid.table.copy(), table)

    def merged(self, other: Sketch) -> Sketch:
        """Return the sketch of the rows of both, on a grid with room for them, in the column order of this one."""
        if (order := self.grid.order_of(other.grid)) is not None:
            other = other.part(order)
        weight = self.n_obs + other.n_obs
        same = self.grid == other.grid and self.grid.has_room_for(weight)
        grid = self.grid if same else self.grid.common(other.grid, weight)
        a, b = self.on(grid), other.on(grid)
        intervals = a.intervals.merged(b.intervals, grid.column_names)
        return Sketch(grid, a.sums + b.sums, a.roundings + b.roundings, intervals)

    def on(self, grid: Grid) -> Sketch:
        """Return the sketch on another grid that has its range, with bins as wide, or wider by powers of two."""
        return self if self.grid == grid else _regridded(self, grid)

    @classmethod
    def side_by_side(cls, parts: Sequence[Sketch]) -> Sketch:
        """Join sketches of different columns of the same rows."""
        sums, roundings = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sums", "roundings"))
        intervals = CountedIntervals.side_by_side([part.intervals for part in parts])
        return cls(Grid.side_by_side([part.grid for part in parts]), sums, roundings, intervals)

    def unresolved(self) -> BoolArray:
        """Return a mask of the columns whose optimum the grid does not resolve; `finish` would warn about them."""
        nothing_given = np.full(self.grid.n_features, np.nan)
        mask: BoolArray = self.power_sums().fit(nothing_given, thread_count(None))[0][:, STATUS] == Status.UNRESOLVED
        return mask

    def part(self, columns: ArrayLike) -> Sketch:
        """Return the sketch of some of the columns (indices or mask)."""
        starts = self.grid.starts
        chosen = column_positions(columns, self.grid.n_features)
        own = [self.sums[starts[j] : starts[j + 1]] for j in chosen]
        sums, intervals = np.concatenate([self.sums[:0], *own]), self.intervals.part(chosen)
        return Sketch(self.grid.part(chosen), sums, self.roundings[chosen], intervals)

    def __repr__(self) -> str:
        return f"Sketch({self.grid!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sketch)
            and self.grid == other.grid
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.roundings, other.roundings)
            and self.intervals == other.intervals
        )

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """Write the sketch as bytes that `from_bytes` reads back.

        These are 64 bytes per bin, 112 per column, and 24 per interval of censored cells.
        """
        head = {**self.grid._describe(), "intervals": self.intervals.counts.size}
        return pack(SKETCH, head, self.grid.table, self.sums, self.roundings, *self.intervals.arrays())

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read the bytes from `to_bytes`; ValueError if they are anything else, truncated, or of another version."""
        head, payload = unpack(data, SKETCH)
        border = 8 * head["columns"] * N_GRID
        grid = Grid.read(head, payload[:border], SKETCH)
        p, k = head["columns"], head.get("intervals")
        if not (type(k) is int and k >= 0):
            raise SKETCH.damaged()
        shapes = ((int(grid.n_bins.sum()), N_POWERS), (p, N_ROUNDINGS), (p + 1, 1), (k, 2), (k, 1), (2, p))
        arrays = []
        for shape, dtype in zip(shapes, ("<i8", "<i8", "<i8", "<f8", "<i8", "<f8"), strict=True):
            size = 8 * shape[0] * shape[1]
            arrays.append(array_of(payload[border : border + size], shape, dtype, SKETCH))
            border += size
        if border != len(payload):
            raise SKETCH.damaged()
        sums, roundings, starts, ends, counts, observed = arrays
        found = cls(grid, sums, roundings, CountedIntervals(starts[:, 0], ends, counts[:, 0], observed))
        if not found.is_sound():
            raise SKETCH.damaged()
        return found

    def is_sound(self) -> bool:
        """Return whether the sums are consistent, that is, whether some rows can have them."""
        sums = self.sums.astype(np.float64)
        totals = np.diff(np.append(0.0, np.cumsum(sums[:, 0]))[self.grid.starts])
        return bool(
            (np.abs(sums) <= 1.001 * sums[:, :1]).all()  # |t| <= 1, but for rounding
            and self.intervals.is_sound(self.grid.table[:, G_MIN], self.grid.table[:, G_MAX])
            and (totals + self.intervals.totals < math.ldexp(1.0, ROOM)).all()
            and (self.roundings >= 0).all()
        )


# --- sums on another grid -----------------------------------------------------------------------------


def _regridded(old: Sketch, grid: Grid) -> Sketch:
    """Return a sketch on another grid."""
    sums, roundings = np.zeros((int(grid.n_bins.sum()), N_POWERS), dtype=np.int64), old.roundings.copy()
    starts, old_starts = grid.starts, old.grid.starts
    moved = (old.grid.table[:, G_REF] != grid.table[:, G_REF]) & (old.grid.n_bins > 0)
    distance = np.zeros(grid.n_features)
    distance[moved] = references_for(old.grid.table[moved])[0] - references_for(grid.table[moved])[0]
    for j, (new, cell) in enumerate(zip(grid.table, old.grid.table, strict=True)):
        if cell[G_BINS] == 0:
            continue
        if new[G_EXPONENT] < cell[G_EXPONENT]:
            raise ValueError(f"{column_label(j, grid.column_names)}: the grid has narrower bins than the sketch")
        own, first = old.sums[old_starts[j] : old_starts[j + 1]], int(cell[G_FIRST])
        first += int(distance[j] * 2.0 ** -cell[G_EXPONENT])
        own, first = _on_cell(own, first, cell, new)
        begin = first - int(new[G_FIRST])
        if not 0 <= begin <= new[G_BINS] - len(own):
            raise ValueError(f"{column_label(j, grid.column_names)}: the bins of a sketch lie beyond its range")
        sums[starts[j] + begin : starts[j] + begin + len(own)] = own
        roundings[j, [0, 3]] += 1, moved[j]
    exponents = np.where(old.grid.n_bins > 0, grid.quantum - old.grid.quantum, 0)
    return Sketch(grid, sums, roundings, old.intervals.rescaled(exponents))


def _on_cell(own: IntArray, first: int, cell: FloatArray, new: FloatArray) -> tuple[IntArray, int]:
    """Convert the sums of a column to the bins and quanta of another grid; also return the number of the first bin.

    Parameters
    ----------
    own : (k, N_POWERS) ndarray of int
        The sums.
    first : int
        Number of their first bin.
    cell, new : (N_GRID,) ndarray
        Old and new row of the grid.
    """
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
    """Return the matrix from sums of t**k to sums of ((t + side)/divisor)**k, by the binomial theorem."""
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
    """Join bins 2j and 2j + 1; `first` is the number of the first bin."""
    before, after = first % 2, (first + len(sums)) % 2
    pairs = np.pad(sums, ((before, after), (0, 0))).reshape(-1, 2, N_POWERS)
    return pairs[:, 0] @ _FROM_LEFT.T + pairs[:, 1] @ _FROM_RIGHT.T, first // 2


def _folded(sums: FloatArray) -> FloatArray:
    """Merge the first bin, whose values all lie on its upper border, into the second."""
    joined = sums[1:].copy()
    joined[0] += _FROM_BELOW @ sums[0]
    return joined
