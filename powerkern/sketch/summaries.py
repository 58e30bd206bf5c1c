"""Summaries of some rows: their range, a grid for it, and power sums on that grid; how these merge, and their bytes."""

from __future__ import annotations

import json
import math
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.power_sums import (
    N_ROUNDINGS,
    ROOM,
    PowerSums,
    grids_for,
    in_digits,
    quanta_for,
    signed_logs,
    starts_of,
    weight_of,
)
from powerkern._estimators.shift import given_shift
from powerkern._input.arrays import as_choice, as_names, column_label
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.power_sums import fit as kernels
from powerkern.kernels.power_sums.fit import (
    G_BINS,
    G_EXPONENT,
    G_FIRST,
    G_MAX,
    G_MIN,
    G_QUANTUM,
    G_REF,
    G_SIGN,
    N_POWERS,
)
from powerkern.kernels.results import STATUS
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored, lowest

#: Version of the bytes that `Range`, `Grid` and `Sketch` are written as.
BYTES_VERSION = 2

#: Bins per column of a stream, whose grid is as fine as they allow.
_STREAM_BINS = 1024
#: A refined grid has bins narrower by this power of two.
_REFINEMENT = 3
#: How often columns that their grid does not resolve are read again, on a finer one.
_REREADINGS = 3
_MAGIC = b"PKSK"
_HEAD = struct.Struct("<4sHBI")
_CHECK = struct.Struct("<I")
#: No logarithm of a float64 is larger.
_LARGEST_LOG = 800.0
#: Whole numbers up to this one are added exactly; and levels of digits of weights are up to this one.
_LARGEST_WHOLE, _MOST_LEVELS = 2.0**53, 42
#: A column without values, in the table of a range.
EMPTY_RANGE = np.zeros(kernels.N_RANGE)
EMPTY_RANGE[[kernels.R_MIN, kernels.R_MAX]] = np.inf, -np.inf
#: Relative error of references that are powers of e.
_LADDER_ERROR = 2.0**-49
#: Exponents of quanta: those of the smallest and of the largest weight.
_QUANTA = (-1030, 970)


class Additive(ABC):
    """A summary of other figures than ranges and power sums: `merge` and `beside` ask it."""

    @abstractmethod
    def merged(self, other: Self) -> Self:
        """The summary of the rows of both."""

    @classmethod
    @abstractmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Summaries of different columns of the same rows as one."""


class _Summary:
    """What ranges and grids have in common: whose columns they describe."""

    def __init__(
        self,
        family: str,
        table: FloatArray,
        column_names: list[str] | None,
        was_vector: bool,
        shift: FloatArray | None = None,
    ) -> None:
        self.family = family
        # the table is that of the columns plus their shift
        self.shift = np.zeros(len(table)) if shift is None else shift
        self.column_names = column_names
        self._table = table
        self.was_vector = was_vector
        self._table.flags.writeable = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._table)

    @property
    def table(self) -> FloatArray:
        """A row for each column, as `powerkern.kernels.power_sums.fit` numbers its entries; read-only."""
        return self._table

    @property
    def _code(self) -> int:
        return FAMILIES[self.family]

    def _column(self, k: int) -> FloatArray:
        return self._table[:, k]

    def _describe(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "columns": self.n_features,
            "column_names": self.column_names,
            "vector": self.was_vector,
            **({"shift": self.shift.tolist()} if self.shift.any() else {}),
        }

    def check_same_columns(self, other: _Summary) -> None:
        """Refuse to merge with a summary of another family or of other columns."""
        if self.family != other.family:
            raise ValueError(f"one is of family {self.family!r}, the other of {other.family!r}; they do not merge")
        if self.n_features != other.n_features:
            raise ValueError(
                f"one has {self.n_features} columns, the other {other.n_features}; chunks must have the same columns"
            )
        if (differs := self.shift != other.shift).any():
            j = int(np.argmax(differs))
            label = column_label(j, self.column_names)
            raise ValueError(
                f"{label} has shift {self.shift[j]} in one and {other.shift[j]} in the other; they do not merge"
            )
        if self.column_names is not None and other.column_names is not None:
            for j, (a, b) in enumerate(zip(self.column_names, other.column_names, strict=True)):
                if a != b:
                    raise ValueError(
                        f"column {j} is {a!r} in one and {b!r} in the other; chunks must have the same columns"
                    )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and isinstance(other, _Summary)
            and self._describe() == other._describe()
            and np.array_equal(self._table, other._table, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]


@final
class Range(_Summary):
    """Extremes, numbers and rough spread of the columns of some rows: what `grid` needs. Made by `range_of`.

    Attributes
    ----------
    family : str
        "box-cox" or "yeo-johnson".
    shift : ndarray
        Of shifted Box-Cox: what is added to each column; else 0.
    column_names : list of str or None
        Names of the columns, where the data had names.
    n_features : int
        Number of columns.
    """

    @property
    def count(self) -> FloatArray:
        """Number of values of each column that are not missing and have a weight."""
        return self._column(kernels.R_COUNT)

    @property
    def n_obs(self) -> FloatArray:
        """Total weight (without weights: number) of the values of each column that are not missing."""
        return weight_of(self._table)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of each column; inf without values."""
        return self._column(kernels.R_MIN) - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value of each column; -inf without values."""
        return self._column(kernels.R_MAX) - self.shift

    def __repr__(self) -> str:
        return f"Range(family={self.family!r}, {self.n_features} columns)"

    def grid(self, largest_exponent: float | None = None) -> Grid:
        """A grid for all data of this range.

        Its bins are so narrow that lambda comes out to about 1e-13 where ``|lambda|`` (and for negative values under
        Yeo-Johnson ``|2 - lambda|``) is at most twice one over the spread of the logs, which holds for
        columns of ordinary shapes. `finish` computes a bound of the error and says where it is not small.

        Parameters
        ----------
        largest_exponent : float, optional
            Make the bins narrow enough for exponents up to this one in any case.

        Returns
        -------
        Grid
        """
        largest = 0.0 if largest_exponent is None else float(largest_exponent)
        if not 0.0 <= largest < np.inf:
            raise ValueError(f"largest_exponent must be a positive number, got {largest_exponent!r}")
        return self._laid(largest)

    def _laid(self, largest_exponent: float = 0.0, stream: bool = False) -> Grid:
        cells = grids_for(self._table.copy(), self._code, largest_exponent, stream)
        return Grid(self.family, cells, self.column_names, self.was_vector, self.shift)

    @classmethod
    def from_bounds(
        cls, low: ArrayLike, high: ArrayLike, family: str, weight: float, column_names: list[str] | None = None
    ) -> Range:
        """Range of rows not yet seen: bounds of each column, and of the total weight.

        Parameters
        ----------
        low, high : (p,) array-like
            Bounds of the values. What lies beyond cannot be sketched.
        family : {"yeo-johnson", "box-cox"}
            The transform.
        weight : float
            Upper bound of the total weight (without weights: number) of the rows.
        column_names : list of str, optional
            Names of the columns.

        Returns
        -------
        Range
        """
        ends = checked_bounds(low, high, as_choice("family", family, FAMILIES))
        table = np.zeros((ends.shape[1], kernels.N_RANGE))
        table[:, kernels.R_COUNT] = table[:, kernels.R_SAMPLE] = 1.0
        table[:, kernels.R_WEIGHT] = weight
        table[:, [kernels.R_MIN, kernels.R_MAX]] = ends.T
        middle = np.rint(signed_logs(ends, FAMILIES[family]).mean(axis=0) / kernels.LOG_UNIT)
        table[:, kernels.R_LOGS] = middle
        table[:, kernels.R_SQUARES] = middle * middle // kernels.LIMB
        table[:, kernels.R_SQUARES_LOW] = middle * middle % kernels.LIMB
        return cls(family, in_digits(table), column_names, False)

    def to_bytes(self) -> bytes:
        """Write the range as bytes that `from_bytes` reads back."""
        return _pack(1, self._describe(), self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Range:
        """Read what `to_bytes` wrote; ValueError if it is anything else, truncated, or of another version."""
        head, payload = _unpack(data, 1, "a range")
        table = _array(payload, (head["columns"], kernels.N_RANGE), "<f8", "a range")
        found = cls(head["family"], table, head["column_names"], head["vector"], _shift_of(head))
        if (wrong := ~found._possible()).any():
            label = column_label(int(np.argmax(wrong)), found.column_names)
            raise ValueError(f"not a range: {label} has a range that is not finite or cannot be")
        return found

    def _possible(self) -> NDArray[np.bool_]:
        """Which columns have a range that rows can have; without values there is one only."""
        count, weight, low, high, sample, logs, squares, squares_low, *digits, level = self._table.T
        with np.errstate(invalid="ignore", over="ignore"):
            seen = np.isfinite(self._table).all(axis=1) & (count > 0.0) & (weight > 0.0) & (low <= high)
            seen &= (sample >= 0.0) & (sample <= count) & (abs(logs) <= sample * _LARGEST_LOG / kernels.LOG_UNIT)
            whole = np.array([weight, *digits, squares, squares_low])
            seen &= ((whole >= 0.0) & (whole <= _LARGEST_WHOLE) & (whole == np.rint(whole))).all(axis=0)
            seen &= (level == np.rint(level)) & (abs(level) <= _MOST_LEVELS)
            seen &= squares <= sample * (_LARGEST_LOG / kernels.LOG_UNIT) ** 2 / kernels.LIMB
        seen &= low > lowest(FAMILIES[self.family])
        possible: NDArray[np.bool_] = seen | (self._table == EMPTY_RANGE).all(axis=1)
        return possible


def checked_bounds(low: ArrayLike, high: ArrayLike, family: str) -> FloatArray:
    """Bounds of the values of some columns, as two rows."""
    try:
        ends = np.array(np.broadcast_arrays(*(np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in (low, high))))
    except (TypeError, ValueError):
        raise ValueError("bounds must be (low, high): numbers, or one per column") from None
    if ends.ndim != 2 or not np.isfinite(ends).all() or not (ends[0] < ends[1]).all():
        raise ValueError("bounds must be finite, with low < high in every column")
    if not (ends[0] > lowest(FAMILIES[family])).all():
        raise ValueError(f"bounds of family {family!r} must be positive")
    return ends


class Grid(_Summary):
    """Where the bins of each column's sketch lie. Made by `Range.grid`; all chunks are sketched on one grid.

    Attributes
    ----------
    family : str
        "box-cox" or "yeo-johnson".
    shift : ndarray
        Of shifted Box-Cox: what is added to each column; else 0.
    column_names : list of str or None
        Names of the columns, where the data had names.
    n_features : int
        Number of columns.
    """

    # kept without a lock, which a forked child could find taken (see `powerkern._engine.gather.FitScratch`)
    _kept_starts: IntArray | None = None
    _kept_room: FloatArray | None = None

    @property
    def n_bins(self) -> IntArray:
        """Number of bins of each column."""
        return self._column(G_BINS).astype(np.int64)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of each column that the grid holds."""
        return self._column(G_MIN) - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value of each column that the grid holds."""
        return self._column(G_MAX) - self.shift

    @property
    def quantum(self) -> IntArray:
        """The sums of each column are held as whole numbers of ``2**quantum``."""
        return self._column(G_QUANTUM).astype(np.int64)

    @property
    def n_words(self) -> int:
        """Number of integers that a sketch on this grid consists of."""
        return N_POWERS * int(self.n_bins.sum()) + N_ROUNDINGS * self.n_features

    def __repr__(self) -> str:
        return f"Grid(family={self.family!r}, {self.n_features} columns, {int(self.n_bins.sum())} bins)"

    @property
    def _starts(self) -> IntArray:
        if self._kept_starts is None:
            self._kept_starts = starts_of(self._table)
        return self._kept_starts

    @property
    def _room(self) -> FloatArray:
        """Sums of each column fit into 64 bits while their weight is less: four times that it was made for does."""
        if self._kept_room is None:
            self._kept_room = np.where(self.n_bins == 0, np.inf, np.ldexp(1.0, self.quantum + ROOM))
        return self._kept_room

    def refined(self, columns: ArrayLike | None = None) -> Grid:
        """The same grid with bins an eighth as wide, in the given columns (indices or mask; default: all).

        For columns whose fit has the status `Status.UNRESOLVED`. A column has at most 65536 bins.
        """
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[slice(None) if columns is None else np.asarray(columns)] = True
        return self._relaid(self._column(G_EXPONENT) - _REFINEMENT * chosen, kernels.MAX_REFINED)

    def part(self, columns: ArrayLike) -> Grid:
        """The grid of some of the columns (indices or mask)."""
        chosen = np.arange(self.n_features)[np.asarray(columns)]
        names = None if self.column_names is None else [self.column_names[j] for j in chosen]
        return Grid(self.family, self._table[chosen], names, self.was_vector, self.shift[chosen])

    def _relaid(self, exponents: FloatArray, max_bins: int) -> Grid:
        cells = self._table.copy()
        kernels.lay_columns(cells, self._code, np.array(exponents), max_bins)
        return Grid(self.family, cells, self.column_names, self.was_vector, self.shift)

    def to_bytes(self) -> bytes:
        """Write the grid as bytes that `from_bytes` reads back."""
        return _pack(2, self._describe(), self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Grid:
        """Read what `to_bytes` wrote; ValueError if it is anything else, truncated, or of another version."""
        head, payload = _unpack(data, 2, "a grid")
        return cls._read(head, payload, "a grid")

    @classmethod
    def _read(cls, head: dict[str, Any], payload: bytes, what: str) -> Grid:
        cells = _array(payload, (head["columns"], kernels.N_GRID), "<f8", what)
        grid = cls(head["family"], cells, head["column_names"], head["vector"], _shift_of(head))
        if not (np.isfinite(cells).all() and grid._is_possible()):
            raise _damaged(what)
        return grid

    def _is_possible(self) -> bool:
        """Whether the bins lie where the extremes of the columns put them, give or take one for a rounded logarithm."""
        used = self._table[(self._table != 0.0).any(axis=1)]
        sign, reference, exponent, _, bins, low, high, quantum = used.T
        nearest = np.where(sign < 0.0, -high, low)
        farthest = np.maximum(abs(low), abs(high))
        inside = np.where(sign == 0.0, reference == 0.0, (nearest <= reference) & (reference <= farthest))
        if self.family == "box-cox":
            ordered = (low > 0.0) & (low <= high)
            inside[ordered] |= _is_on_ladder(used[ordered])
        smallest = np.nextafter(0.0, 1.0) if self.family == "box-cox" else 0.0
        signs = (1.0,) if self.family == "box-cox" else (-1.0, 0.0, 1.0)
        if not (
            np.isin(sign, signs).all()
            and ((sign == 0.0) | (nearest >= smallest)).all()
            and ((sign >= 0.0) | (high < 0.0)).all()
            and inside.all()
            and (low <= high).all()
            and ((bins >= 1.0) & (bins <= kernels.MAX_REFINED)).all()
            and ((exponent >= kernels.NARROWEST) & (exponent <= kernels.WIDEST)).all()
            and ((quantum >= _QUANTA[0]) & (quantum <= _QUANTA[1])).all()
        ):
            return False
        laid = used.copy()
        kernels.lay_columns(laid, self._code, np.ascontiguousarray(exponent), kernels.MAX_REFINED)
        ends, own = (cells[:, [G_FIRST, G_BINS]] @ [[1.0, 1.0], [0.0, 1.0]] for cells in (laid, used))
        whole = used[:, [G_EXPONENT, G_FIRST, G_BINS, G_QUANTUM]]
        near = (abs(ends - own) <= 1.0).all() and (laid[:, G_EXPONENT] == exponent).all()
        return bool(near and (whole == np.rint(whole)).all())


@final
class Sketch:
    """Power sums of the columns of some rows. Made by `sketch` or `extend`, added by `merge`, fitted by `finish`.

    Attributes
    ----------
    grid : Grid
        Where the bins lie.
    sums : (bins of all columns, 8) ndarray of int64
        In each bin the weighted sums of ``t**k``, k = 0..7, t the local coordinate between -1 and 1, in units of
        ``2**grid.quantum``, a column's own. Nothing else is kept of the rows, and sums are all that merging needs, so
        that they can be added under a mask, modulo 2**64.
    roundings : (p, 4) ndarray of int64
        What the bound of the error needs to know, and is added up with the sums: how often those of each column were
        rounded to whole numbers, over how many rows they were taken, how many sums of weights came to nothing, and how
        often they were moved to another reference.
    """

    def __init__(self, grid: Grid, sums: IntArray, roundings: IntArray) -> None:
        self.grid = grid
        self.sums = sums
        self.roundings = roundings

    @property
    def n_obs(self) -> FloatArray:
        """Total weight of the values of each column."""
        counts, starts = np.zeros(len(self.sums) + 1, dtype=np.int64), self.grid._starts
        self.sums[:, 0].cumsum(out=counts[1:])
        total: FloatArray = np.ldexp((counts[starts[1:]] - counts[starts[:-1]]).astype(np.float64), self.grid.quantum)
        return total

    def power_sums(self) -> PowerSums:
        """The sums, ready to be fitted."""
        return PowerSums(self.sums, self.roundings, self.grid._code, self.grid._table.copy())

    def part(self, columns: ArrayLike) -> Sketch:
        """The sketch of some of the columns (indices or mask)."""
        starts = self.grid._starts
        chosen = np.arange(self.grid.n_features)[np.asarray(columns)]
        own = [self.sums[starts[j] : starts[j + 1]] for j in chosen]
        return Sketch(self.grid.part(chosen), np.concatenate([self.sums[:0], *own]), self.roundings[chosen])

    def words(self) -> IntArray:
        """All the integers of the sketch: those of two sketches on one grid are added to merge them."""
        return np.concatenate([self.sums.ravel(), self.roundings.ravel()])

    @classmethod
    def of_words(cls, grid: Grid, words: IntArray) -> Sketch:
        """The sketch that consists of these `words`."""
        border = grid.n_words - N_ROUNDINGS * grid.n_features
        return cls(grid, words[:border].reshape(-1, N_POWERS), words[border:].reshape(-1, N_ROUNDINGS))

    def __repr__(self) -> str:
        return f"Sketch({self.grid!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sketch)
            and self.grid == other.grid
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.roundings, other.roundings)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """Write the sketch as bytes that `from_bytes` reads back: 64 bytes per bin, and 88 per column."""
        return _pack(3, self.grid._describe(), self.grid._table, self.sums, self.roundings)

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read what `to_bytes` wrote; ValueError if it is anything else, truncated, or of another version."""
        head, payload = _unpack(data, 3, "a sketch")
        border = 8 * head["columns"] * kernels.N_GRID
        grid = Grid._read(head, payload[:border], "a sketch")
        end = len(payload) - 8 * head["columns"] * N_ROUNDINGS
        sums = _array(payload[border:end], (int(grid.n_bins.sum()), N_POWERS), "<i8", "a sketch")
        found = cls(grid, sums, _array(payload[end:], (head["columns"], N_ROUNDINGS), "<i8", "a sketch"))
        if not found.is_sound():
            raise _damaged("a sketch")
        return found

    def is_sound(self) -> bool:
        """Whether the sums can be those of some rows."""
        sums = self.sums.astype(np.float64)
        totals = np.diff(np.append(0.0, np.cumsum(sums[:, 0]))[self.grid._starts])
        return bool(
            (np.abs(sums) <= 1.001 * sums[:, :1]).all()  # |t| <= 1, but for rounding
            and (totals < math.ldexp(1.0, ROOM)).all()
            and (self.roundings >= 0).all()
        )


Mergeable = TypeVar("Mergeable", Range, Sketch, Additive)


# --- columns side by side -----------------------------------------------------------------------------


def beside(parts: Sequence[Mergeable], column_names: Sequence[str] | None = None) -> Mergeable:
    """Ranges, or sketches, of different columns of the same rows, as one of all columns.

    Parameters
    ----------
    parts : sequence of Range or of Sketch
        From left to right.
    column_names : sequence of str, optional
        Names of all columns; default: those of the parts, if all have some.

    Returns
    -------
    Range or Sketch
    """
    first = parts[0]
    if isinstance(first, Additive):
        return first.side_by_side(parts)
    described = [part.grid if isinstance(part, Sketch) else part for part in parts]
    table = np.concatenate([one._table for one in described])
    names = None if column_names is None else as_names(column_names, len(table))
    if names is None and all(one.column_names is not None for one in described):
        names = [name for one in described for name in one.column_names or ()]
    shift = np.concatenate([one.shift for one in described])
    was_vector = len(parts) == 1 and described[0].was_vector
    if isinstance(first, Range):
        return Range(first.family, table, names, was_vector, shift)
    sums, roundings = (
        np.concatenate([getattr(part, name) for part in parts if isinstance(part, Sketch)])
        for name in ("sums", "roundings")
    )
    return Sketch(Grid(first.grid.family, table, names, was_vector, shift), sums, roundings)


def unresolved(total: Sketch) -> BoolArray:
    """Mask of the columns whose optimum the grid does not resolve: those that `finish` would warn of."""
    nothing_given = np.full(total.grid.n_features, np.nan)
    status = total.power_sums().fit(nothing_given, thread_count(None))[0][:, STATUS]
    mask: BoolArray = status == Status.UNRESOLVED
    return mask


def replaced(total: Sketch, part: Sketch, columns: BoolArray) -> Sketch:
    """`total` with the columns of a mask taken from `part`, which has only those."""
    position = np.cumsum(columns) - 1
    each = [part.part([position[j]]) if columns[j] else total.part([j]) for j in range(total.grid.n_features)]
    return beside(each, total.grid.column_names)


def resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """The sketch of all data, columns that their grid does not resolve on finer ones.

    Parameters
    ----------
    grid : Grid
        For the range of the data.
    read : function
        ``read(grid, chosen)`` passes over the data and returns the sketch of the columns of the mask `chosen`; the
        grid has all columns.

    Returns
    -------
    Sketch
    """
    total = read(grid, np.ones(grid.n_features, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = unresolved(total)
        if not coarse.any():
            break
        total = replaced(total, read(total.grid.refined(coarse), coarse), coarse)
    return total


# --- grids that grow ----------------------------------------------------------------------------------


def stream_grid(found: Range) -> Grid:
    """A grid for the first rows of a stream: as fine as it may be, and of a kind that all others can be brought to."""
    grid = found._laid(stream=True)
    return grid._relaid(np.full(grid.n_features, -np.inf), _STREAM_BINS)


def _ladder(cells: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the references that Box-Cox streams with the extremes of these cells have, and the references."""
    rungs, references = np.empty(len(cells)), np.empty(len(cells))
    kernels.ladder_columns(np.array(cells), rungs, references)
    return rungs, references


def _is_streamed(grid: Grid) -> BoolArray:
    """Which columns of a grid lie as those of a stream do."""
    if is_mirrored(grid._code):
        streamed: BoolArray = grid._column(G_SIGN) == 0.0
        return streamed
    return _is_on_ladder(grid._table)


def _is_on_ladder(cells: FloatArray) -> BoolArray:
    """Whether the references of these cells are those of Box-Cox streams."""
    references = _ladder(cells)[1]
    on: BoolArray = abs(cells[:, G_REF] - references) <= _LADDER_ERROR * references
    return on


def _joined(a: FloatArray, b: FloatArray) -> FloatArray:
    """The cells of a, extended to the ranges of b; those of b where a has none."""
    cells = np.where((a[:, G_BINS] > 0)[:, None], a, b)
    both = (a[:, G_BINS] > 0) & (b[:, G_BINS] > 0)
    cells[both, G_MIN] = np.minimum(a[both, G_MIN], b[both, G_MIN])
    cells[both, G_MAX] = np.maximum(a[both, G_MAX], b[both, G_MAX])
    return cells


def _with_room(cells: FloatArray, weight: FloatArray) -> None:
    """Let the quanta be such that sums of this total weight fit."""
    used = cells[:, G_BINS] > 0
    cells[used, G_QUANTUM] = np.maximum(cells[used, G_QUANTUM], quanta_for(weight[used]))


def grown_grid(own: Grid, fresh: Grid, weight: FloatArray) -> Grid:
    """The grid of a stream, extended to that of its next rows; `weight` is the total of all."""
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
    """Let columns of streams be relative to the reference for their extremes."""
    if not is_mirrored(code):
        cells[columns, G_REF] = _ladder(cells[columns])[1]


def regridded(old: Sketch, grid: Grid) -> Sketch:
    """The same rows on another grid, with bins as wide or wider by powers of two, that has their range."""
    if old.grid == grid:
        return old
    sums, roundings = np.zeros((int(grid.n_bins.sum()), N_POWERS), dtype=np.int64), old.roundings.copy()
    starts, old_starts = grid._starts, old.grid._starts
    moved = (old.grid._column(G_REF) != grid._column(G_REF)) & (old.grid.n_bins > 0)
    distance = np.zeros(grid.n_features)
    distance[moved] = _ladder(old.grid._table[moved])[0] - _ladder(grid._table[moved])[0]
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
    """What turns sums of t**k into sums of ((t + side)/divisor)**k, by the binomial theorem."""
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


# --- bytes --------------------------------------------------------------------------------------------


def _pack(kind: int, description: dict[str, Any], *arrays: NDArray[Any]) -> bytes:
    """Magic, version, kind and length; a description as JSON; arrays, little-endian; a checksum of all that."""
    text = json.dumps(description).encode()
    parts = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays]
    body = b"".join([_HEAD.pack(_MAGIC, BYTES_VERSION, kind, len(text)), text, *parts])
    return body + _CHECK.pack(zlib.crc32(body))


def _unpack(data: bytes, kind: int, what: str) -> tuple[dict[str, Any], bytes]:
    """The description, checked, and the bytes of the arrays."""
    data = bytes(data)
    if len(data) < _HEAD.size + _CHECK.size or not data.startswith(_MAGIC):
        raise ValueError(f"not {what}: the bytes were not written by to_bytes")
    _, version, found, length = _HEAD.unpack_from(data)
    if version != BYTES_VERSION:
        raise ValueError(f"{what} in version {version}; this powerkern reads version {BYTES_VERSION}")
    if zlib.crc32(data[: -_CHECK.size]) != _CHECK.unpack(data[-_CHECK.size :])[0]:
        raise _damaged(what)
    if found != kind:
        raise ValueError(f"not {what}: the bytes hold {_KINDS.get(found, 'something else')}")
    try:
        head = json.loads(data[_HEAD.size : _HEAD.size + length])
        names = head["column_names"]
        sound = (
            head["family"] in FAMILIES
            and type(head["columns"]) is int  # True is no number of columns
            and head["columns"] > 0
            and isinstance(head["vector"], bool)
            and _shift_of(head).shape == (head["columns"],)
            and (names is None or _are_names(names, head["columns"]))
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise _damaged(what)
    return head, data[_HEAD.size + length : -_CHECK.size]


def _are_names(names: object, n: int) -> bool:
    return isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)


def _shift_of(head: dict[str, Any]) -> FloatArray:
    """The shift that a description has, or none; ValueError where no fit can have it."""
    p = head["columns"]
    return given_shift(head["shift"], head["family"], p) if "shift" in head else np.zeros(p)


_KINDS = {1: "a range", 2: "a grid", 3: "a sketch"}


def _array(payload: bytes, shape: tuple[int, int], dtype: str, what: str) -> NDArray[Any]:
    if len(payload) != 8 * shape[0] * shape[1]:
        raise _damaged(what)
    return np.frombuffer(payload, dtype).reshape(shape).astype(dtype[1:])


def _damaged(what: str) -> ValueError:
    return ValueError(f"not {what}: the bytes are damaged or truncated")
