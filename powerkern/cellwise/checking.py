"""Select the columns and rows that cellwise methods can use, and give the reasons for dropping the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._engine.threads import thread_count
from powerkern._input import frames
from powerkern._input.arguments import as_number, as_whole, refuse_infinite
from powerkern._input.arrays import Matrix, as_matrix, column_label
from powerkern._results.display import html_page
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.location import location_results

#: Largest number of sentences in `str` of a `DataCheck`; `messages` has all of them.
_MOST_SENTENCES = 15


@dataclass(frozen=True, eq=False, repr=False)
class DataCheck:
    """The columns and rows that `check_data` keeps, and the reasons for dropping the others.

    `print` shows the reasons as sentences.

    Attributes
    ----------
    columns, rows : ndarray of int
        Positions of the columns and rows that are kept.
    dropped_columns, dropped_rows : dict of int to str
        Position of each dropped column or row, with the reason.
    values : (len(rows), len(columns)) ndarray
        The values that are kept.
    column_names : list of str or None
        Names of the columns that are kept.
    names : list of str or None
        Names of all columns.
    n_columns : int
        Number of columns of the data.
    part : ndarray or data frame
        The rows and columns that are kept, in a container of the type that was passed in.
    """

    columns: IntArray
    rows: IntArray
    dropped_columns: dict[int, str]
    dropped_rows: dict[int, str]
    values: FloatArray
    column_names: list[str] | None
    names: list[str] | None
    n_columns: int
    part: Any

    @property
    def messages(self) -> list[str]:
        """A sentence for each dropped column and row."""
        columns = [f"{column_label(j, self.names)} {why}." for j, why in sorted(self.dropped_columns.items())]
        return columns + [f"row {i} {why}." for i, why in sorted(self.dropped_rows.items())]

    def __str__(self) -> str:
        sentences, kept = self.messages, f"Kept: {_count_phrase(self.rows.size, 'row')}, {self._kept_columns}."
        if len(sentences) > _MOST_SENTENCES:
            rest = f"... and {len(sentences) - _MOST_SENTENCES + 1} more, in `messages`."
            sentences = [*sentences[: _MOST_SENTENCES - 1], rest]
        return "\n".join([*sentences, kept])

    def __repr__(self) -> str:
        kept = f"{_count_phrase(self.rows.size, 'row')} and {self._kept_columns} kept"
        return f"DataCheck({kept}, {len(self.dropped_rows)} and {len(self.dropped_columns)} dropped)"

    def _repr_html_(self) -> str:
        """Return the sentences as HTML, for notebooks."""
        return html_page(repr(self), notes=str(self).splitlines())

    @property
    def _kept_columns(self) -> str:
        return _count_phrase(self.columns.size, "column")


def check_data(
    X: object,
    *,
    max_missing: float = 0.5,
    max_discrete: int = 3,
    min_scale: float = 1e-12,
    n_threads: int | None = None,
) -> DataCheck:
    """Find the columns and rows that cellwise methods can use, and give the reasons for dropping the others.

    The following are dropped, in this order [1]_:

    1. columns of a data frame that do not hold numbers;
    2. columns that number the rows, starting at 0 or 1;
    3. columns and rows with too many missing values: columns first if there are at least as many rows as columns,
       otherwise rows first;
    4. columns with few distinct values, which are treated as discrete;
    5. columns whose normalized median absolute deviation is at most `min_scale`: at least half of their values are
       equal.

    Parameters
    ----------
    X : (n, p) array-like
        Array or data frame; NaN is missing.
    max_missing : float, default 0.5
        Largest fraction of missing values that a column or a row may have.
    max_discrete : int, default 3
        Largest number of distinct values of a discrete column.
    min_scale : float, default 1e-12
        Largest scale that counts as 0, in the units of the column.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    DataCheck

    Raises
    ------
    TypeError, ValueError
        If an array does not hold real numbers, a data frame has no numeric column, a value is infinite, or an option is
        invalid.

    References
    ----------
    .. [1] P. J. Rousseeuw, W. Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018, 135-145.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import check_data
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.arange(1, 21), rng.normal(size=20), rng.integers(0, 2, 20), rng.normal(size=20)])
    >>> X[4, 1:] = np.nan
    >>> print(check_data(X))
    column 0 is a row counter.
    column 2 has 2 distinct values, and columns with 3 or fewer are treated as discrete.
    row 4 is missing 3 of 3 values.
    Kept: 19 rows, 2 columns.
    """
    share = as_number("max_missing", max_missing, "[0, 1]")
    most = as_whole("max_discrete", max_discrete, 0)
    least = as_number("min_scale", min_scale, "[0, inf]")
    check = _Check(X)
    check.drop_row_numbers()
    check.drop_missing(share)
    check.drop_discrete(most, thread_count(n_threads))
    check.drop_constant(least, thread_count(n_threads))
    return check.result()


class _Check:
    """State of `check_data`: the columns and rows that have not been dropped, and the reasons for dropping others."""

    def __init__(self, X: Any) -> None:
        positions, names = frames.numeric_positions(X)
        self._given = X
        numeric = frames.select(X, None, positions) if positions is not None else X
        matrix = as_matrix(numeric)
        refuse_infinite(matrix)
        self._values = np.asarray(matrix.values, dtype=np.float64)
        self._numbers = np.arange(self._values.shape[1]) if positions is None else np.array(positions)
        self._names = matrix.names if positions is None else names
        self._columns = np.ones(self._values.shape[1], dtype=bool)
        self._rows = np.ones(self._values.shape[0], dtype=bool)
        others = set(range(len(names or []))) - set(self._numbers.tolist()) if positions is not None else set()
        self._why_columns = dict.fromkeys(sorted(others), "does not hold numbers")
        self._why_rows: dict[int, str] = {}

    def result(self) -> DataCheck:
        columns, rows = self._numbers[self._columns], np.flatnonzero(self._rows)
        names = None if self._names is None else [self._names[j] for j in columns]
        n_columns = columns.size + len(self._why_columns)
        part = frames.select(self._given, rows, columns)
        return DataCheck(
            columns,
            rows,
            self._why_columns,
            self._why_rows,
            self._remaining_values(),
            names,
            self._names,
            n_columns,
            part,
        )

    def _remaining_values(self) -> FloatArray:
        """Return the values in the rows and columns that have not been dropped."""
        if self._rows.all() and self._columns.all():
            return self._values
        return np.asarray(self._values[np.ix_(self._rows, self._columns)])

    def drop_row_numbers(self) -> None:
        n = self._values.shape[0]
        numbers = [np.arange(n), np.arange(1, n + 1)]
        suspects = np.flatnonzero(np.isin(self._values[0], (0.0, 1.0)))
        these = [j for j in suspects if n > 2 and any(np.array_equal(self._values[:, j], one) for one in numbers)]
        self._drop_columns(np.isin(np.arange(self._columns.size), these), lambda j: "is a row counter")

    def drop_missing(self, most: float) -> None:
        steps = [self._drop_missing_columns, self._drop_missing_rows]
        for step in steps if self._rows.sum() >= self._columns.sum() else steps[::-1]:
            step(most)

    def _drop_missing_columns(self, most: float) -> None:
        missing = np.isnan(self._values[self._rows]).sum(axis=0)
        n = int(self._rows.sum())
        self._drop_columns(missing > most * n, lambda j: f"is missing {missing[j]} of {n} values")

    def _drop_missing_rows(self, most: float) -> None:
        missing = np.isnan(self._values[:, self._columns]).sum(axis=1)
        p = int(self._columns.sum())
        gone = self._rows & (missing > most * p)
        self._why_rows |= {int(i): f"is missing {missing[i]} of {p} values" for i in np.flatnonzero(gone)}
        self._rows &= ~gone

    def drop_discrete(self, most: int, n_threads: int) -> None:
        counts = self._measure_remaining(lambda values: _count_distinct(values, n_threads))
        few = f"and columns with {most} or fewer are treated as discrete"
        self._drop_columns(counts <= most, lambda j: f"has {_count_phrase(int(counts[j]), 'distinct value')}, {few}")

    def drop_constant(self, least: float, n_threads: int) -> None:
        scale = self._measure_remaining(lambda values: _nmad(values, n_threads))
        why = (
            f"has a median absolute deviation of at most {least:g}: at least half of its values are nearly equal, or "
            "its unit is large; lower min_scale to keep it"
        )
        if self._rows.any():
            self._drop_columns(~(scale > least), lambda j: why)

    def _measure_remaining(self, measure: Any) -> FloatArray:
        """Return ``measure(values)`` of the remaining values, (p,), with NaN for columns that have been dropped.

        `measure` returns a number for each column.
        """
        figures = np.full(self._columns.size, np.nan)
        if self._columns.any() and self._rows.any():
            figures[self._columns] = measure(self._remaining_values())
        return figures

    def _drop_columns(self, gone: BoolArray, why: Any) -> None:
        gone = gone & self._columns
        self._why_columns |= {int(self._numbers[j]): why(j) for j in np.flatnonzero(gone)}
        self._columns &= ~gone


def _count_phrase(n: int, what: str) -> str:
    """Return `n` followed by the noun `what`, in the plural unless n is 1."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _nmad(values: NDArray[Any], n_threads: int) -> FloatArray:
    """Return the normalised median absolute deviation of each column."""
    return location_results(Matrix(values, None, False), "median-mad", n_threads=n_threads)[:, 1]


def _count_distinct(values: NDArray[Any], n_threads: int) -> FloatArray:
    """Return the number of distinct values of each column, without NaN."""

    def count(block: FloatArray, group: slice) -> FloatArray:
        block.sort(axis=1)
        steps = (block[:, 1:] > block[:, :-1]).sum(axis=1)  # NaN is last, and every comparison with it is false
        return np.asarray((steps + ~np.isnan(block[:, 0]))[:, None], dtype=np.float64)

    return measure_columns(count, values, 1, n_threads)[:, 0]
