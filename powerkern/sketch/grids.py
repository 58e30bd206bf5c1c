"""Ranges of the columns of some rows, and the grids that are made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._estimators.power_sums import (
    ROOM,
    bin_starts,
    is_on_reference_grid,
    make_grids,
    quantum_exponents,
    references_for,
    signed_logs,
)
from powerkern._estimators.ranges import merge_ranges, split_weights, total_weights
from powerkern._input.alignment import ColumnNames, merging_order
from powerkern._input.arguments import as_number, column_positions
from powerkern._input.arrays import as_choice, as_reals, column_label
from powerkern._results.storage import Format
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.power_sums import grids, ranges
from powerkern.kernels.power_sums.grids import G_BINS, G_EXPONENT, G_FIRST, G_MAX, G_MIN, G_QUANTUM, G_REF, G_SIGN
from powerkern.kernels.transforms.family import FAMILIES, domain_lower_bound, is_mirrored
from powerkern.sketch.serial import (
    GRID,
    RANGE,
    array_of,
    limits_of,
    limits_to_record,
    pack,
    shift_of,
    unlimited,
    unpack,
)
from powerkern.sketch.summary import ChunkSummary

#: Bins of a refined grid are narrower by this power of two.
_REFINEMENT = 3
#: Most bins per column of a stream; its grid is as fine as they allow.
_STREAM_BINS = 1024
#: No logarithm of a float64 is larger.
_LARGEST_LOG = 800.0
#: Largest whole number that is added exactly, and largest level of the digits of weights.
_LARGEST_WHOLE, _MOST_LEVELS = 2.0**53, 42
#: A column without values, in the table of a range.
EMPTY_RANGE = np.zeros(ranges.N_RANGE)
EMPTY_RANGE[[ranges.R_MIN, ranges.R_MAX]] = np.inf, -np.inf
#: Smallest and largest exponent of the quanta of weights.
_QUANTA = (-1030, 970)


def _pair(limits: FloatArray) -> str:
    """Return a pair of limits as messages show it."""
    low, high = (f"{end:g}" if np.isfinite(end) else "None" for end in limits)
    return f"({low}, {high})"


class _GridColumns:
    """The columns of a range or of a grid, described by the rows of `table`, which is read-only."""

    def __init__(
        self,
        family: str,
        table: FloatArray,
        column_names: list[str] | None,
        was_vector: bool,
        shift: FloatArray | None = None,
        labels: list[Any] | None = None,
        limits: FloatArray | None = None,
    ) -> None:
        self.family = family
        #: detection limits of each column, (2, p), without its shift; infinite: no limit
        self.limits = unlimited(len(table)) if limits is None else limits
        # the table describes the columns plus their shift
        self.shift = np.zeros(len(table)) if shift is None else shift
        self.column_names = column_names
        #: labels of the columns in the data, by which summaries are aligned, whatever names results give them
        self.labels = labels
        self.table = table
        self.was_vector = was_vector
        self.table.flags.writeable = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.table)

    @property
    def _code(self) -> int:
        """The code of the family."""
        return FAMILIES[self.family]

    def _with(self, table: FloatArray) -> Self:
        """Return the same columns, described by another table."""
        return type(self)(self.family, table, self.column_names, self.was_vector, self.shift, self.labels, self.limits)

    @classmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Join the descriptions of different columns of the same rows, with names if all parts have names."""
        names, labels = (
            [name for part in parts for name in getattr(part, which) or ()] for which in ("column_names", "labels")
        )
        table, shift = np.concatenate([part.table for part in parts]), np.concatenate([part.shift for part in parts])
        was_vector = len(parts) == 1 and parts[0].was_vector
        named, labelled = (each if len(each) == len(table) else None for each in (names, labels))
        limits = np.concatenate([part.limits for part in parts], axis=1)
        return cls(parts[0].family, table, named, was_vector, shift, labelled, limits)

    def _describe(self) -> dict[str, Any]:
        """Return the description of the columns for bytes."""
        return {
            "family": self.family,
            "columns": self.n_features,
            "column_names": self.column_names,
            "labels": self.labels,
            "vector": self.was_vector,
            **({"shift": self.shift.tolist()} if self.shift.any() else {}),
            **({"limits": limits_to_record(self.limits)} if np.isfinite(self.limits).any() else {}),
        }

    @property
    def naming(self) -> ColumnNames:
        """Names and labels of the columns."""
        return ColumnNames(self.column_names, self.labels)

    def order_of(self, other: _GridColumns) -> list[int] | None:
        """Return the position in `other` of each of these columns, or None if both have the same order.

        Raises
        ------
        ValueError
            If the summaries have different families, columns, shifts or limits.
        """
        if self.family != other.family:
            raise ValueError(f"one is of family {self.family!r}, the other of {other.family!r}; they cannot be merged")
        if self.n_features != other.n_features:
            raise ValueError(
                f"one has {self.n_features} columns, the other {other.n_features}; chunks must have the same columns"
            )
        order = merging_order(self.naming, other.naming)
        shift = other.shift if order is None else other.shift[order]
        if (differs := self.shift != shift).any():
            j = int(np.argmax(differs))
            label = column_label(j, self.column_names)
            raise ValueError(
                f"{label} has shift {self.shift[j]} in one and {shift[j]} in the other; they cannot be merged"
            )
        limits = other.limits if order is None else other.limits[:, order]
        if (differs := (self.limits != limits).any(axis=0)).any():
            j = int(np.argmax(differs))
            raise ValueError(
                f"{column_label(j, self.column_names)} has limits {_pair(self.limits[:, j])} in one and "
                f"{_pair(limits[:, j])} in the other; they cannot be merged"
            )
        return order

    def part(self, columns: ArrayLike) -> Self:
        """Return the description of some of the columns (indices or mask)."""
        chosen = column_positions(columns, self.n_features)
        names, labels = (None if each is None else [each[j] for j in chosen] for each in self.naming)
        shift, limits = self.shift[chosen], self.limits[:, chosen]
        return type(self)(self.family, self.table[chosen], names, self.was_vector, shift, labels, limits)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and isinstance(other, _GridColumns)
            and self._describe() == other._describe()
            and np.array_equal(self.table, other.table, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]


@final
class Range(_GridColumns, ChunkSummary):
    """Extremes, counts and rough spread of the columns of some rows, from which a grid is made; made by `range_of`.

    Attributes
    ----------
    family : str
        "box-cox" or "yeo-johnson".
    shift : ndarray
        Shifted Box-Cox: the number added to each column; otherwise 0.
    limits : (2, p) ndarray
        Detection limits of the columns; infinite if there are none.
    column_names : list of str or None
        Names of the columns in results.
    labels : list or None
        Labels of the columns in the data, which `column_names` may replace; None if the data have none.
    n_features : int
        Number of columns.
    """

    @property
    def count(self) -> FloatArray:
        """Number of values and censored cells of each column that are not missing and have a weight."""
        return self.table[:, ranges.R_COUNT]

    @property
    def n_obs(self) -> FloatArray:
        """Total weight (without weights: number) of the values and censored cells of each column."""
        return total_weights(self.table)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value, or end of an interval, of each column; inf without values."""
        return self.table[:, ranges.R_MIN] - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value, or end of an interval, of each column; -inf without values."""
        return self.table[:, ranges.R_MAX] - self.shift

    def __repr__(self) -> str:
        return f"Range(family={self.family!r}, {self.n_features} columns)"

    def grid(self, largest_exponent: float | None = None) -> Grid:
        """Make a grid for all data of this range.

        Its bins are so narrow that lambda is accurate to about 1e-13 if ``|lambda|`` (and for negative values under
        Yeo-Johnson ``|2 - lambda|``) is at most twice one over the spread of the logs, which holds for columns of
        ordinary shapes. `finish` computes a bound on the error and reports where it is not small.

        Parameters
        ----------
        largest_exponent : float, optional
            Make the bins narrow enough for exponents up to this one in any case.

        Returns
        -------
        Grid
        """
        return self._laid(
            0.0 if largest_exponent is None else as_number("largest_exponent", largest_exponent, "[0, inf)")
        )

    def stream_grid(self) -> Grid:
        """Make a grid for the first rows of a stream, as fine as possible, with a common grid for other streams."""
        return self._laid(stream=True)._relaid(np.full(self.n_features, -np.inf), _STREAM_BINS)

    def _laid(self, largest_exponent: float = 0.0, stream: bool = False) -> Grid:
        """Make a grid for this range; arguments are as for `kernels.power_sums`."""
        cells = make_grids(self.table.copy(), self._code, largest_exponent, stream)
        names, labels = self.column_names, self.labels
        return Grid(self.family, cells, names, self.was_vector, self.shift, labels, self.limits)

    def merged(self, other: Range) -> Range:
        """Return the range of the rows of both, with the columns in the order of this range."""
        if (order := self.order_of(other)) is not None:
            other = other.part(order)
        table = merge_ranges(np.array([self.table, other.table]))
        names, was_vector = self.column_names or other.column_names, self.was_vector and other.was_vector
        labels = self.labels or other.labels
        return Range(self.family, table, names, was_vector, self.shift, labels, self.limits)

    @classmethod
    def from_bounds(
        cls, low: ArrayLike, high: ArrayLike, family: str, weight: float, column_names: list[str] | None = None
    ) -> Range:
        """Make the range of rows that have not been read, from bounds of each column and of the total weight.

        Parameters
        ----------
        low, high : (p,) array-like
            Bounds of the values; values beyond them cannot be sketched.
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
        weight = as_number("weight", weight, "(0, inf)")
        table = np.zeros((ends.shape[1], ranges.N_RANGE))
        table[:, ranges.R_COUNT] = table[:, ranges.R_SAMPLE] = 1.0
        table[:, ranges.R_WEIGHT] = weight
        table[:, [ranges.R_MIN, ranges.R_MAX]] = ends.T
        middle = np.rint(signed_logs(ends, FAMILIES[family]).mean(axis=0) / ranges.LOG_UNIT)
        table[:, ranges.R_LOGS] = middle
        table[:, ranges.R_SQUARES] = middle * middle // ranges.LIMB
        table[:, ranges.R_SQUARES_LOW] = middle * middle % ranges.LIMB
        return cls(family, split_weights(table), column_names, False)

    def to_bytes(self) -> bytes:
        """Write the range as bytes that `from_bytes` reads back."""
        return pack(RANGE, self._describe(), self.table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Range:
        """Read the bytes from `to_bytes`; ValueError if they are anything else, truncated, or of another version."""
        head, payload = unpack(data, RANGE)
        table = array_of(payload, (head["columns"], ranges.N_RANGE), "<f8", RANGE)
        names, labels = head["column_names"], head["labels"]
        found = cls(head["family"], table, names, head["vector"], shift_of(head), labels, limits_of(head))
        if (wrong := ~found._possible()).any():
            label = column_label(int(np.argmax(wrong)), found.column_names)
            raise ValueError(f"not a range: {label} has a range that is not finite or that no data can have")
        return found

    def _possible(self) -> NDArray[np.bool_]:
        """Mask of the columns whose range is consistent; a column without values must have `EMPTY_RANGE`."""
        count, weight, low, high, sample, logs, squares, squares_low, *digits, level = self.table.T
        with np.errstate(invalid="ignore", over="ignore"):
            seen = np.isfinite(self.table).all(axis=1) & (count > 0.0) & (weight > 0.0) & (low <= high)
            seen &= (sample >= 0.0) & (sample <= count) & (abs(logs) <= sample * _LARGEST_LOG / ranges.LOG_UNIT)
            whole = np.array([weight, *digits, squares, squares_low])
            seen &= ((whole >= 0.0) & (whole <= _LARGEST_WHOLE) & (whole == np.rint(whole))).all(axis=0)
            seen &= (level == np.rint(level)) & (abs(level) <= _MOST_LEVELS)
            seen &= squares <= sample * (_LARGEST_LOG / ranges.LOG_UNIT) ** 2 / ranges.LIMB
        seen &= low > domain_lower_bound(FAMILIES[self.family])
        possible: NDArray[np.bool_] = seen | (self.table == EMPTY_RANGE).all(axis=1)
        return possible


def checked_bounds(low: ArrayLike, high: ArrayLike, family: str) -> FloatArray:
    """Return bounds on the values of each column, (2, p); raise unless they are finite, ordered and in the domain."""
    try:
        ends = np.array(np.broadcast_arrays(*(np.atleast_1d(as_reals("bounds", end)) for end in (low, high))))
    except (TypeError, ValueError):
        raise ValueError("bounds must be (low, high): numbers, or one per column") from None
    if ends.ndim != 2 or not np.isfinite(ends).all() or not (ends[0] < ends[1]).all():
        raise ValueError("bounds must be finite, with low < high in every column")
    if not (ends[0] > domain_lower_bound(FAMILIES[family])).all():
        raise ValueError(f"bounds of family {family!r} must be positive")
    return ends


class Grid(_GridColumns):
    """Positions of the bins of the sketch of each column; made by `Range.grid`. All chunks are sketched on one grid.

    Attributes
    ----------
    family, shift, limits, column_names, labels, n_features
        As for `Range`.
    """

    @property
    def n_bins(self) -> IntArray:
        """Number of bins of each column."""
        return self.table[:, G_BINS].astype(np.int64)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of each column that the grid holds."""
        return self.table[:, G_MIN] - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value of each column that the grid holds."""
        return self.table[:, G_MAX] - self.shift

    @property
    def quantum(self) -> IntArray:
        """Exponents of the units of the sums: the sums of each column are whole multiples of ``2**quantum``."""
        return self.table[:, G_QUANTUM].astype(np.int64)

    def __repr__(self) -> str:
        return f"Grid(family={self.family!r}, {self.n_features} columns, {int(self.n_bins.sum())} bins)"

    @property
    def starts(self) -> IntArray:
        """Positions at which the bins of each column start, and at which the last bins end."""
        return bin_starts(self.table)

    def has_room_for(self, weight: FloatArray) -> bool:
        """Return whether sums of this total weight, at most four times the grid's, fit into 64 bits."""
        return bool((weight < np.where(self.n_bins == 0, np.inf, np.ldexp(1.0, self.quantum + ROOM))).all())

    def refined(self, columns: ArrayLike | None = None) -> Grid:
        """Return the grid with bins an eighth as wide in the given columns (indices or mask; default: all).

        It is for columns whose fit has the status `Status.UNRESOLVED`. A column has at most 65536 bins.
        """
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[slice(None) if columns is None else column_positions(columns, self.n_features)] = True
        return self._relaid(self.table[:, G_EXPONENT] - _REFINEMENT * chosen, grids.MAX_REFINED)

    def _relaid(self, exponents: FloatArray, max_bins: int) -> Grid:
        """Return the grid with other widths of bins, as exponents of 2."""
        cells = self.table.copy()
        grids.lay_columns(cells, self._code, np.array(exponents), max_bins)
        return self._with(cells)

    # --- streams --------------------------------------------------------------------------------------

    def grown(self, fresh: Grid, weight: FloatArray) -> Grid:
        """Extend the grid of a stream to the grid of its next rows; `weight` is the total."""
        cells = self._joined(fresh)
        self._make_room(cells, weight)
        self._refer(cells, self._is_streamed)
        return self._with(cells)._relaid(cells[:, G_EXPONENT], _STREAM_BINS)

    def common(self, other: Grid, weight: FloatArray) -> Grid:
        """Return a grid to which sketches on both grids can be brought, with room for their total weight."""
        both, streamed = (self.n_bins > 0) & (other.n_bins > 0), self._is_streamed & other._is_streamed
        names = self.column_names or other.column_names
        apart = np.any(self.table[:, [G_SIGN, G_REF]] != other.table[:, [G_SIGN, G_REF]], axis=1)
        if (unrelated := both & apart & ~streamed).any():
            raise ValueError(
                f"{column_label(int(np.argmax(unrelated)), names)}: the grids of the sketches cannot be merged; "
                "sketch all chunks on one grid, made from their merged ranges"
            )
        cells = self._joined(other)
        for entry in (G_EXPONENT, G_QUANTUM):
            cells[both, entry] = np.maximum(self.table[both, entry], other.table[both, entry])
        self._make_room(cells, weight)
        self._refer(cells, streamed)
        labels = self.labels or other.labels
        whole = Grid(self.family, cells, names, self.was_vector, self.shift, labels, self.limits)
        return whole._relaid(cells[:, G_EXPONENT], max(_STREAM_BINS, *self.n_bins, *other.n_bins))

    @property
    def _is_streamed(self) -> BoolArray:
        """Mask of the columns whose grid was made for a stream."""
        if is_mirrored(self._code):
            streamed: BoolArray = self.table[:, G_SIGN] == 0.0
            return streamed
        return is_on_reference_grid(self.table)

    def _joined(self, other: Grid) -> FloatArray:
        """Return the cells extended to the ranges of the other grid, or that grid's cells if this one has none."""
        a, b = self.table, other.table
        cells = np.where((a[:, G_BINS] > 0)[:, None], a, b)
        both = (a[:, G_BINS] > 0) & (b[:, G_BINS] > 0)
        cells[both, G_MIN] = np.minimum(a[both, G_MIN], b[both, G_MIN])
        cells[both, G_MAX] = np.maximum(a[both, G_MAX], b[both, G_MAX])
        return cells

    def _make_room(self, cells: FloatArray, weight: FloatArray) -> None:
        """Raise the quanta so that sums of this total weight fit."""
        used = cells[:, G_BINS] > 0
        cells[used, G_QUANTUM] = np.maximum(cells[used, G_QUANTUM], quantum_exponents(weight[used]))

    def _refer(self, cells: FloatArray, streamed: BoolArray) -> None:
        """Set the references of the columns of a stream from their extremes."""
        if not is_mirrored(self._code):
            cells[streamed, G_REF] = references_for(cells[streamed])[1]

    # --- bytes ----------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Write the grid as bytes that `from_bytes` reads back."""
        return pack(GRID, self._describe(), self.table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Grid:
        """Read the bytes from `to_bytes`; ValueError if they are anything else, truncated, or of another version."""
        return cls.read(*unpack(data, GRID), GRID)

    @classmethod
    def read(cls, head: dict[str, Any], payload: bytes, kind: Format) -> Grid:
        """Read and check the grid in the bytes of a grid or of a sketch."""
        cells = array_of(payload, (head["columns"], grids.N_GRID), "<f8", kind)
        names, labels = head["column_names"], head["labels"]
        grid = cls(head["family"], cells, names, head["vector"], shift_of(head), labels, limits_of(head))
        if not (np.isfinite(cells).all() and grid._is_possible()):
            raise kind.damaged()
        return grid

    def _is_possible(self) -> bool:
        """Return whether the bins match the extremes of the columns, up to one bin because logs are rounded."""
        used = self.table[(self.table != 0.0).any(axis=1)]
        sign, reference, exponent, _, bins, low, high, quantum = used.T
        nearest = np.where(sign < 0.0, -high, low)
        farthest = np.maximum(abs(low), abs(high))
        inside = np.where(sign == 0.0, reference == 0.0, (nearest <= reference) & (reference <= farthest))
        if self.family == "box-cox":
            ordered = (low > 0.0) & (low <= high)
            inside[ordered] |= is_on_reference_grid(used[ordered])
        smallest = np.nextafter(0.0, 1.0) if self.family == "box-cox" else 0.0
        signs = (1.0,) if self.family == "box-cox" else (-1.0, 0.0, 1.0)
        if not (
            np.isin(sign, signs).all()
            and ((sign == 0.0) | (nearest >= smallest)).all()
            and ((sign >= 0.0) | (high < 0.0)).all()
            and inside.all()
            and (low <= high).all()
            and ((bins >= 1.0) & (bins <= grids.MAX_REFINED)).all()
            and ((exponent >= grids.NARROWEST) & (exponent <= grids.WIDEST)).all()
            and ((quantum >= _QUANTA[0]) & (quantum <= _QUANTA[1])).all()
        ):
            return False
        laid = used.copy()
        grids.lay_columns(laid, self._code, np.ascontiguousarray(exponent), grids.MAX_REFINED)
        ends, own = (cells[:, [G_FIRST, G_BINS]] @ [[1.0, 1.0], [0.0, 1.0]] for cells in (laid, used))
        whole = used[:, [G_EXPONENT, G_FIRST, G_BINS, G_QUANTUM]]
        near = (abs(ends - own) <= 1.0).all() and (laid[:, G_EXPONENT] == exponent).all()
        return bool(near and (whole == np.rint(whole)).all())
