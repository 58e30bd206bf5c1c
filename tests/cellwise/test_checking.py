"""Rows and columns that check_data drops, and the reasons it gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from powerkern.cellwise import check_data, ddc

RNG = np.random.default_rng(0)


def clean(n=20, p=3):
    return np.random.default_rng(1).normal(size=(n, p))


def only_reason(x, **options):
    check = check_data(x, **options)
    assert check.rows.size == x.shape[0]
    (sentence,) = check.messages
    assert check.columns.tolist() == [0, 1, 2]
    return sentence


def with_column(column):
    return np.column_stack([clean(len(column)), column])


def test_clean_data_are_unchanged():
    check = check_data(clean())
    assert check.messages == []
    np.testing.assert_array_equal(check.values, clean())
    assert str(check) == "Kept: 20 rows, 3 columns."


@pytest.mark.parametrize("start", [0, 1])
def test_row_counters_are_dropped(start):
    assert only_reason(with_column(np.arange(20.0) + start)) == "column 3 is a row counter."


@pytest.mark.parametrize("column", [np.arange(20.0) + 2, np.arange(20.0)[::-1], np.r_[0.0:19.0, 30.0]])
def test_columns_that_only_resemble_row_counters_are_kept(column):
    assert check_data(with_column(column)).columns.size == 4


def test_columns_mostly_missing_are_dropped():
    half = np.where(np.arange(20) < 10, np.nan, RNG.normal(size=20))
    assert check_data(with_column(half)).columns.size == 4
    half[10] = np.nan
    assert only_reason(with_column(half)) == "column 3 is missing 11 of 20 values."
    assert check_data(with_column(half), max_missing=0.6).columns.size == 4


@pytest.mark.parametrize(
    "column, count",
    [(np.full(20, 4.0), "1 distinct value"), (np.arange(20.0) % 3, "3 distinct values")],
)
def test_discrete_columns_are_dropped(column, count):
    sentence = f"column 3 has {count}, and columns with 3 or fewer are treated as discrete."
    assert only_reason(with_column(column)) == sentence
    column[0] = np.nan
    assert only_reason(with_column(column)) == sentence
    assert check_data(with_column(np.arange(20.0) % 4)).columns.size == 4
    assert only_reason(with_column(np.arange(20.0) % 5), max_discrete=5).startswith("column 3 has 5 distinct")


def test_columns_without_a_scale_are_dropped():
    column = np.where(np.arange(20) < 12, 3.0, np.arange(20.0))
    assert "column 3 has a median absolute deviation of at most 1e-12" in only_reason(with_column(column))
    assert check_data(with_column(1e-11 * RNG.normal(size=20))).columns.size == 4
    assert "at most 1e-10" in only_reason(with_column(1e-11 * RNG.normal(size=20)), min_scale=1e-10)


def test_rows_mostly_missing_are_dropped():
    x = clean(20, 4)
    x[2], x[5, :3], x[7, :2] = np.nan, np.nan, np.nan
    check = check_data(x)
    assert check.dropped_rows == {2: "is missing 4 of 4 values", 5: "is missing 3 of 4 values"}
    assert check.rows.tolist() == [i for i in range(20) if i not in (2, 5)]
    np.testing.assert_array_equal(check.values, x[check.rows])


def test_rows_are_dropped_first_if_they_are_fewer():
    x = clean(6, 10)
    x[:3, :9] = np.nan
    check = check_data(x, max_discrete=1)
    assert list(check.dropped_rows) == [0, 1, 2]
    assert check.columns.size == 10


def test_frames_keep_names_and_drop_text():
    frame = pd.DataFrame(clean(), columns=list("abc"), index=range(100, 120))
    frame.insert(1, "make", "x")
    frame["when"] = pd.Timestamp("2020-01-01")
    frame["flag"] = np.arange(20) % 2 == 0
    frame.iloc[3, [0, 2, 3]] = np.nan
    frame["few"] = pd.array([1, 2] * 10, dtype="Int64")
    check = check_data(frame)
    assert check.column_names == ["a", "b", "c"]
    assert check.columns.tolist() == [0, 2, 3]
    assert check.n_columns == 7
    assert check.dropped_columns[1] == check.dropped_columns[4] == "does not hold numbers"
    assert check.messages[0] == "column 1 ('make') does not hold numbers."
    assert "column 6 ('few') has 2 distinct values" in str(check)
    assert check.rows.size == 19 if check.dropped_rows else 20
    pd.testing.assert_frame_equal(check.part, frame.iloc[check.rows][["a", "b", "c"]])
    other = check_data(pl.DataFrame(frame.reset_index(drop=True)))
    assert other.part.columns == ["a", "b", "c"]
    assert other.messages == check.messages


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_a_frame_whose_columns_are_all_dropped(frame):
    table = frame({"a": [1.0] * 5, "b": [2.0] * 5})
    check = check_data(table)
    assert check.columns.size == check.values.size == check.part.shape[1] == 0
    assert list(check.dropped_columns) == [0, 1]
    assert type(check.part) is type(table)
    with pytest.raises(ValueError, match=r"leaves no column, or no row, of X: column 0 \('a'\) has 1 distinct value"):
        ddc(table)


def test_a_vector_is_one_column():
    check = check_data(clean()[:, 0])
    assert (check.columns.tolist(), check.values.shape) == ([0], (20, 1))


def test_all_columns_or_rows_can_be_dropped():
    check = check_data(np.ones((5, 2)))
    assert check.columns.size == 0
    assert check.values.shape == (5, 0)
    assert check_data(np.full((4, 3), np.nan)).columns.size == 0
    # the row is dropped, and not the columns, although none of them has a value left
    assert str(check_data(np.full((1, 3), np.nan))) == "row 0 is missing 3 of 3 values.\nKept: 0 rows, 3 columns."


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_missing": 1.5}, "max_missing must be a number in \\[0, 1\\]"),
        ({"max_discrete": -1}, "max_discrete must be at least 0"),
        ({"min_scale": -1.0}, "min_scale must be a number in \\[0, inf\\]"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        check_data(clean(), **options)


def test_invalid_data_are_refused():
    x = clean()
    x[3, 1] = np.inf
    with pytest.raises(ValueError, match="column 1, row 3: the value is inf"):
        check_data(x)
    with pytest.raises(TypeError, match="no column of X holds numbers: 'a', 'b'"):
        check_data(pd.DataFrame({"a": ["x"], "b": ["y"]}))


# --- boundaries --------------------------------------------------------------------------------------


def test_columns_and_rows_with_exactly_the_largest_fraction_missing_stay():
    X = clean(20, 4)
    X[:10, 0] = np.nan
    X[5, :2] = np.nan
    check = check_data(X, max_missing=0.5)
    assert (check.columns.tolist(), check.rows.size) == ([0, 1, 2, 3], 20)
    X[10, 0] = np.nan
    assert check_data(X, max_missing=0.5).messages[0] == "column 0 is missing 11 of 20 values."
    assert check_data(X, max_missing=0.0).columns.tolist() == [2, 3]
    assert check_data(X, max_missing=1.0).columns.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("n", "p"), [(6, 6), (6, 7)])
def test_columns_come_first_unless_rows_are_fewer(n, p):
    """The last column has a single value, and the last row lacks about half of its values.

    Both are dropped. The message about the row counts its missing values only in the columns that remain at that time,
    so it shows whether columns or rows were checked first.
    """
    X = clean(n, p)
    X[1:, -1] = np.nan
    X[-1, : p // 2] = np.nan
    check = check_data(X)
    if n >= p:
        assert (check.columns.size, check.rows.size) == (p - 1, n - 1)
        assert check.messages[-1] == "row 5 is missing 3 of 5 values."
    else:
        assert check.messages[0].startswith("column 6")
        assert "row 5 is missing 4 of 7 values." in check.messages


@pytest.mark.parametrize(("most", "kept"), [(3, False), (2, True), (0, True)])
def test_columns_with_the_largest_number_of_discrete_values_are_dropped(most, kept):
    column = np.tile([1.0, 2.0, 3.0, np.nan], 5)
    check = check_data(with_column(column), max_discrete=most)
    assert (3 in check.columns) == kept
    if not kept:
        assert check.messages == [
            "column 3 has 3 distinct values, and columns with 3 or fewer are treated as discrete."
        ]


def test_a_scale_at_the_limit_is_dropped():
    column = np.arange(21.0)[np.random.default_rng(0).permutation(21)]
    X = np.column_stack([clean(21), column])
    scale = 5.0 * 1.482602218505602
    assert check_data(X, min_scale=scale * (1.0 + 1e-12)).columns.tolist() == []
    assert check_data(X, min_scale=scale * (1.0 - 1e-12)).columns.tolist() == [3]


@pytest.mark.parametrize("n", [2, 3])
def test_two_rows_have_no_counter(n):
    X = np.column_stack([np.arange(float(n)), clean(n)])
    check = check_data(X, max_discrete=0)
    assert check.columns.tolist() == ([0, 1, 2, 3] if n == 2 else [1, 2, 3])
