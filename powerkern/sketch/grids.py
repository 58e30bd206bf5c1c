"""`Range`, the extremes and spread of each column of some rows, and `Grid`, the bins that are made from a range."""

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
    limits_to_record,
    no_limits,
    pack,
    read_array,
    read_limits,
    read_shift,
    unpack,
)
from powerkern.sketch.summary import ChunkSummary

#: The bins of a refined grid are narrower by the factor ``2**_REFINEMENT``.
_REFINEMENT = 3
#: Largest number of bins per column of a stream.
_STREAM_BINS = 1024
#: Upper bound on the absolute logarithm of a float64.
_LARGEST_LOG = 800.0
#: Largest whole number that is added exactly, and largest level of the digits of weights.
_LARGEST_WHOLE, _MOST_LEVELS = 2.0**53, 42
#: Row of a column without values in the table of a range.
EMPTY_RANGE = np.zeros(ranges.N_RANGE)
EMPTY_RANGE[[ranges.R_MIN, ranges.R_MAX]] = np.inf, -np.inf
#: Smallest and largest exponent of the quanta of weights.
_QUANTA = (-1030, 970)


def _format_limits(limits: FloatArray) -> str:
    """Return the detection limits of a column, (2,), as text for messages, with None for an infinite limit."""
    low, high = (f"{end:g}" if np.isfinite(end) else "None" for end in limits)
    return f"({low}, {high})"


class _GridColumns:
    """Base class of `Range` and `Grid`: a family, column names, shifts, and a read-only table with a row per column.

    Parameters
    ----------
    family : {"yeo-johnson", "box-cox"}
        The transform.
    table : (p, k) ndarray
        A row for each column; subclasses define the entries. Values in the table include the shift.
    column_names : list of str or None
        Names of the columns in results.
    was_vector : bool
        Whether the data were one-dimensional.
    shift : (p,) ndarray, optional
        Number added to each column; default: 0.
    labels : list, optional
        Labels of the columns in the data.
    limits : (2, p) ndarray, optional
        Detection limits of the columns, without the shift; default: infinite.
    """

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
        self.limits = no_limits(len(table)) if limits is None else limits
        self.shift = np.zeros(len(table)) if shift is None else shift
        self.column_names = column_names
        # summaries are aligned by the labels in the data, even if `column_names` replaces them in results
        self.labels = labels
        self._table = table
        self._was_vector = was_vector
        self._table.flags.writeable = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._table)

    @property
    def _code(self) -> int:
        """Numeric code of the family, see `kernels.transforms.family`."""
        return FAMILIES[self.family]

    def _with(self, table: FloatArray) -> Self:
        """Return a copy that has another table."""
        return type(self)(self.family, table, self.column_names, self._was_vector, self.shift, self.labels, self.limits)

    @classmethod
    def _join_columns(cls, parts: Sequence[Self]) -> Self:
        """Join ranges, or grids, of different columns of the same rows, with names if all parts have names."""
        names, labels = (
            [name for part in parts for name in getattr(part, which) or ()] for which in ("column_names", "labels")
        )
        table, shift = np.concatenate([part._table for part in parts]), np.concatenate([part.shift for part in parts])
        was_vector = len(parts) == 1 and parts[0]._was_vector
        named, labelled = (each if len(each) == len(table) else None for each in (names, labels))
        limits = np.concatenate([part.limits for part in parts], axis=1)
        return cls(parts[0].family, table, named, was_vector, shift, labelled, limits)

    def _describe(self) -> dict[str, Any]:
        """Return the entries other than the table as a dictionary that JSON can hold; see `serial.pack`."""
        return {
            "family": self.family,
            "columns": self.n_features,
            "column_names": self.column_names,
            "labels": self.labels,
            "vector": self._was_vector,
            **({"shift": self.shift.tolist()} if self.shift.any() else {}),
            **({"limits": limits_to_record(self.limits)} if np.isfinite(self.limits).any() else {}),
        }

    @property
    def _naming(self) -> ColumnNames:
        """Names and labels of the columns, in the form that `merging_order` takes."""
        return ColumnNames(self.column_names, self.labels)

    def _order_of(self, other: _GridColumns) -> list[int] | None:
        """Return the position in `other` of each column of `self`, or None if the order is the same.

        Raises
        ------
        ValueError
            If the summaries have different families, columns, shifts or limits.
        """
        if self.family != other.family:
            raise ValueError(
                f"one summary is of family {self.family!r}, another of {other.family!r}; use one family for all chunks"
            )
        if self.n_features != other.n_features:
            raise ValueError(
                f"one chunk has {self.n_features} columns, another {other.n_features}; all chunks must have the same "
                "columns"
            )
        order = merging_order(self._naming, other._naming)
        shift = other.shift if order is None else other.shift[order]
        if (differs := self.shift != shift).any():
            j = int(np.argmax(differs))
            label = column_label(j, self.column_names)
            raise ValueError(
                f"{label} has shift {self.shift[j]} in one chunk and {shift[j]} in another; pass the same shift for all"
            )
        limits = other.limits if order is None else other.limits[:, order]
        if (differs := (self.limits != limits).any(axis=0)).any():
            j = int(np.argmax(differs))
            raise ValueError(
                f"{column_label(j, self.column_names)} has limits {_format_limits(self.limits[:, j])} in one chunk and "
                f"{_format_limits(limits[:, j])} in another; pass the same limits for all"
            )
        return order

    def part(self, columns: ArrayLike) -> Self:
        """Return a copy with only some of the columns, chosen by indices or by a mask."""
        chosen = column_positions(columns, self.n_features)
        names, labels = (None if each is None else [each[j] for j in chosen] for each in self._naming)
        shift, limits = self.shift[chosen], self.limits[:, chosen]
        return type(self)(self.family, self._table[chosen], names, self._was_vector, shift, labels, limits)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and isinstance(other, _GridColumns)
            and self._describe() == other._describe()
            and np.array_equal(self._table, other._table, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]


@final
class Range(_GridColumns, ChunkSummary):
    """Extremes, counts and approximate spread of each column of some rows, from which `Range.grid` makes a grid.

    `range_of` returns a range, and `merge` combines the ranges of two chunks.

    Attributes
    ----------
    family : str
        "box-cox" or "yeo-johnson".
    shift : ndarray
        Number added to each column by shifted Box-Cox; 0 otherwise.
    limits : (2, p) ndarray
        Lower and upper detection limits of the columns; infinite if there are none.
    column_names : list of str or None
        Names of the columns in results.
    labels : list or None
        Column labels of the data frames that were read, by which `merge` aligns columns; None for arrays.
    n_features : int
        Number of columns.
    """

    @property
    def count(self) -> FloatArray:
        """Number of cells of each column that are not missing and have a positive weight, censored cells included."""
        return self._table[:, ranges.R_COUNT]

    @property
    def n_obs(self) -> FloatArray:
        """Total weight of the values and censored cells of each column; their number if rows have no weights."""
        return total_weights(self._table)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of each column, including the ends of censored cells' intervals; inf without values."""
        return self._table[:, ranges.R_MIN] - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value of each column, including the ends of censored cells' intervals; -inf without values."""
        return self._table[:, ranges.R_MAX] - self.shift

    def __repr__(self) -> str:
        return f"Range(family={self.family!r}, {self.n_features} columns)"

    def grid(self, largest_exponent: float | None = None) -> Grid:
        """Make a grid on which all data within this range can be sketched.

        Lambda is accurate to about 1e-13 if the exponents of the transform are at most 2/s in absolute value, where s
        is the spread of the logs. The exponents are lambda and, for negative values under Yeo-Johnson, 2 - lambda.
        Columns of ordinary shapes satisfy this. `finish` computes a bound on the error and reports columns where it is
        not small.

        Parameters
        ----------
        largest_exponent : float, optional
            Make the bins narrow enough for exponents up to this absolute value, even if that exceeds 2/s.

        Returns
        -------
        Grid
        """
        return self._make_grid(
            0.0 if largest_exponent is None else as_number("largest_exponent", largest_exponent, "[0, inf)")
        )

    def _stream_grid(self) -> Grid:
        """Make the grid for the first rows of a stream, with at most `_STREAM_BINS` bins per column."""
        return self._make_grid(stream=True)._with_bins(np.full(self.n_features, -np.inf), _STREAM_BINS)

    def _make_grid(self, largest_exponent: float = 0.0, stream: bool = False) -> Grid:
        """Make a grid for this range.

        Parameters
        ----------
        largest_exponent : float
            As in `grid`.
        stream : bool
            Align the grid with the grids of all streams, so that any two of them can be merged.
        """
        cells = make_grids(self._table.copy(), self._code, largest_exponent, stream)
        names, labels = self.column_names, self.labels
        return Grid(self.family, cells, names, self._was_vector, self.shift, labels, self.limits)

    def _merge(self, other: Range) -> Range:
        """Return the range of the rows of `self` and `other`, with the columns in the order of `self`."""
        if (order := self._order_of(other)) is not None:
            other = other.part(order)
        table = merge_ranges(np.array([self._table, other._table]))
        names, was_vector = self.column_names or other.column_names, self._was_vector and other._was_vector
        labels = self.labels or other.labels
        return Range(self.family, table, names, was_vector, self.shift, labels, self.limits)

    @classmethod
    def from_bounds(
        cls, low: ArrayLike, high: ArrayLike, family: str, weight: float, column_names: list[str] | None = None
    ) -> Range:
        """Make a range without reading data, from bounds on the values of each column and on the total weight.

        Parameters
        ----------
        low, high : (p,) array-like
            Bounds on the values of each column; values beyond them cannot be sketched.
        family : {"yeo-johnson", "box-cox"}
            The transform.
        weight : float
            Upper bound on the total weight of the rows, or on their number if they have no weights.
        column_names : list of str, optional
            Names of the columns.

        Returns
        -------
        Range
        """
        ends = check_bounds(low, high, as_choice("family", family, FAMILIES))
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
        """Return the range as bytes, which `from_bytes` reads."""
        return pack(RANGE, self._describe(), self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Range:
        """Return the range that `to_bytes` wrote; raise ValueError for damaged bytes and for another version."""
        head, payload = unpack(data, RANGE)
        table = read_array(payload, (head["columns"], ranges.N_RANGE), "<f8", RANGE)
        names, labels = head["column_names"], head["labels"]
        found = cls(head["family"], table, names, head["vector"], read_shift(head), labels, read_limits(head))
        if (wrong := ~found._possible()).any():
            label = column_label(int(np.argmax(wrong)), found.column_names)
            raise ValueError(f"not a range: {label} has a range that is not finite or that no data can have")
        return found

    def _possible(self) -> NDArray[np.bool_]:
        """Return a mask of the columns whose entries in the table some data could have produced.

        The entries of a column without values must be `EMPTY_RANGE`.
        """
        count, weight, low, high, sample, logs, squares, squares_low, *digits, level = self._table.T
        with np.errstate(invalid="ignore", over="ignore"):
            seen = np.isfinite(self._table).all(axis=1) & (count > 0.0) & (weight > 0.0) & (low <= high)
            seen &= (sample >= 0.0) & (sample <= count) & (abs(logs) <= sample * _LARGEST_LOG / ranges.LOG_UNIT)
            whole = np.array([weight, *digits, squares, squares_low])
            seen &= ((whole >= 0.0) & (whole <= _LARGEST_WHOLE) & (whole == np.rint(whole))).all(axis=0)
            seen &= (level == np.rint(level)) & (abs(level) <= _MOST_LEVELS)
            seen &= squares <= sample * (_LARGEST_LOG / ranges.LOG_UNIT) ** 2 / ranges.LIMB
        seen &= low > domain_lower_bound(FAMILIES[self.family])
        possible: NDArray[np.bool_] = seen | (self._table == EMPTY_RANGE).all(axis=1)
        return possible


def check_bounds(low: ArrayLike, high: ArrayLike, family: str) -> FloatArray:
    """Return bounds on the values of each column as an array, (2, p), after checking them.

    Parameters
    ----------
    low, high : float or (p,) array-like
        The bounds.
    family : {"yeo-johnson", "box-cox"}
        The transform.

    Raises
    ------
    ValueError
        If the bounds are infinite or NaN, not in ascending order, or outside the domain of the family.
    """
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
    """Positions of the bins of each column, on which chunks are sketched.

    `Range.grid` makes a grid. Use one grid for all chunks.

    Attributes
    ----------
    family, shift, limits, column_names, labels, n_features
        As for `Range`.
    """

    @property
    def n_bins(self) -> IntArray:
        """Number of bins of each column."""
        return self._table[:, G_BINS].astype(np.int64)

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of each column that can be sketched on the grid."""
        return self._table[:, G_MIN] - self.shift

    @property
    def x_max(self) -> FloatArray:
        """Largest value of each column that can be sketched on the grid."""
        return self._table[:, G_MAX] - self.shift

    @property
    def quantum(self) -> IntArray:
        """Exponent for each column: the sums in `Sketch.sums` are whole multiples of ``2**quantum``."""
        return self._table[:, G_QUANTUM].astype(np.int64)

    def __repr__(self) -> str:
        return f"Grid(family={self.family!r}, {self.n_features} columns, {int(self.n_bins.sum())} bins)"

    @property
    def _starts(self) -> IntArray:
        """Position of the first bin of each column in `Sketch.sums`, followed by the total number of bins, (p + 1,)."""
        return bin_starts(self._table)

    def _has_room_for(self, weight: FloatArray) -> bool:
        """Return whether sums over rows whose total weight is `weight`, (p,), fit into 64-bit integers."""
        return bool((weight < np.where(self.n_bins == 0, np.inf, np.ldexp(1.0, self.quantum + ROOM))).all())

    def refined(self, columns: ArrayLike | None = None) -> Grid:
        """Return a copy with bins an eighth as wide in some columns, for fits with status `Status.UNRESOLVED`.

        A column gets at most 65536 bins.

        Parameters
        ----------
        columns : array-like, optional
            Indices or a mask of the columns; default: all.
        """
        chosen = np.zeros(self.n_features, dtype=bool)
        chosen[slice(None) if columns is None else column_positions(columns, self.n_features)] = True
        return self._with_bins(self._table[:, G_EXPONENT] - _REFINEMENT * chosen, grids.MAX_REFINED)

    def _with_bins(self, exponents: FloatArray, max_bins: int) -> Grid:
        """Return a copy with bins of another width.

        Parameters
        ----------
        exponents : (p,) ndarray
            Width of the bins of each column, in logs, as an exponent of 2. Bins become wider if there would be more
            than `max_bins`.
        max_bins : int
            Largest number of bins per column.
        """
        cells = self._table.copy()
        grids.lay_columns(cells, self._code, np.array(exponents), max_bins)
        return self._with(cells)

    # --- streams --------------------------------------------------------------------------------------

    def _grow(self, fresh: Grid, weight: FloatArray) -> Grid:
        """Return the grid of a stream, extended to the next rows.

        Parameters
        ----------
        fresh : Grid
            The stream grid of the next rows.
        weight : (p,) ndarray
            Total weight of each column, including the next rows.
        """
        cells = self._join_ranges(fresh)
        self._make_room(cells, weight)
        self._set_references(cells, self._is_streamed)
        return self._with(cells)._with_bins(cells[:, G_EXPONENT], _STREAM_BINS)

    def _common_grid(self, other: Grid, weight: FloatArray) -> Grid:
        """Return a grid to which sketches on `self` and on `other` can be moved, so that they can be merged.

        Parameters
        ----------
        other : Grid
            The other grid.
        weight : (p,) ndarray
            Total weight of both sketches in each column.
        """
        both, streamed = (self.n_bins > 0) & (other.n_bins > 0), self._is_streamed & other._is_streamed
        names = self.column_names or other.column_names
        apart = np.any(self._table[:, [G_SIGN, G_REF]] != other._table[:, [G_SIGN, G_REF]], axis=1)
        if (unrelated := both & apart & ~streamed).any():
            raise ValueError(
                f"{column_label(int(np.argmax(unrelated)), names)}: the grids of the sketches cannot be merged; "
                "sketch all chunks on one grid, made from their merged ranges"
            )
        cells = self._join_ranges(other)
        for entry in (G_EXPONENT, G_QUANTUM):
            cells[both, entry] = np.maximum(self._table[both, entry], other._table[both, entry])
        self._make_room(cells, weight)
        self._set_references(cells, streamed)
        labels = self.labels or other.labels
        whole = Grid(self.family, cells, names, self._was_vector, self.shift, labels, self.limits)
        return whole._with_bins(cells[:, G_EXPONENT], max(_STREAM_BINS, *self.n_bins, *other.n_bins))

    @property
    def _is_streamed(self) -> BoolArray:
        """Mask of the columns whose grid was made for a stream, and can be merged with the grid of any other stream."""
        if is_mirrored(self._code):
            streamed: BoolArray = self._table[:, G_SIGN] == 0.0
            return streamed
        return is_on_reference_grid(self._table)

    def _join_ranges(self, other: Grid) -> FloatArray:
        """Return a table whose columns cover the ranges of both grids.

        All other entries are copied from `self`, or from `other` for columns that are empty in `self`.
        """
        a, b = self._table, other._table
        cells = np.where((a[:, G_BINS] > 0)[:, None], a, b)
        both = (a[:, G_BINS] > 0) & (b[:, G_BINS] > 0)
        cells[both, G_MIN] = np.minimum(a[both, G_MIN], b[both, G_MIN])
        cells[both, G_MAX] = np.maximum(a[both, G_MAX], b[both, G_MAX])
        return cells

    def _make_room(self, cells: FloatArray, weight: FloatArray) -> None:
        """Increase the quanta in the table of a grid, in place, until sums over all rows fit into 64-bit integers.

        `cells`, (p, N_GRID), is the table, and `weight`, (p,), holds the total weight of each column.
        """
        used = cells[:, G_BINS] > 0
        cells[used, G_QUANTUM] = np.maximum(cells[used, G_QUANTUM], quantum_exponents(weight[used]))

    def _set_references(self, cells: FloatArray, streamed: BoolArray) -> None:
        """Compute the references of the logs of streamed columns from their extremes (Box-Cox only).

        The table `cells`, (p, N_GRID), of a grid is modified in place; `streamed` is a mask of the streamed columns.
        """
        if not is_mirrored(self._code):
            cells[streamed, G_REF] = references_for(cells[streamed])[1]

    # --- bytes ----------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the grid as bytes, which `from_bytes` reads."""
        return pack(GRID, self._describe(), self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Grid:
        """Return the grid that `to_bytes` wrote; raise ValueError for damaged bytes and for another version."""
        return cls._read(*unpack(data, GRID), GRID)

    @classmethod
    def _read(cls, head: dict[str, Any], payload: bytes, kind: Format) -> Grid:
        """Read a grid from the unpacked bytes of a grid or of a sketch, and check it.

        Parameters
        ----------
        head : dict
            The description, see `serial.unpack`.
        payload : bytes
            The table of the grid.
        kind : Format
            GRID or SKETCH, for messages.
        """
        cells = read_array(payload, (head["columns"], grids.N_GRID), "<f8", kind)
        names, labels = head["column_names"], head["labels"]
        grid = cls(head["family"], cells, names, head["vector"], read_shift(head), labels, read_limits(head))
        if not (np.isfinite(cells).all() and grid._is_possible()):
            raise kind.damaged()
        return grid

    def _is_possible(self) -> bool:
        """Return whether the entries of the table agree with each other.

        The range of bins of a column may differ by one bin from the range computed from its extremes, because logs are
        rounded.
        """
        used = self._table[(self._table != 0.0).any(axis=1)]
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
