"""A kernel called for every block of rows of every column: all threads work on one column where it is long."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from powerkern._engine.blocks import cache_shape, slices
from powerkern._engine.gather import Scratch, contiguous_columns, lie_contiguous
from powerkern._engine.shifted import Columns
from powerkern._engine.threads import progress_bar, work_off
from powerkern._typing import FloatArray

#: Parts of a block of rows, from top to bottom: its columns there, made contiguous, and which rows they are.
Parts = Iterator[tuple[FloatArray, slice]]


def for_each_row_block(
    job: Callable[[Parts, slice, slice], None],
    values: Columns,
    n_rows: int,
    n_threads: int,
    progress: bool = False,
) -> None:
    """Call ``job(parts, rows, group)`` for blocks of at most `n_rows` rows of a group of columns."""
    n, p = values.shape
    height, width = cache_shape(values[:n_rows])
    scratch = Scratch()

    def parts_of(rows: slice, group: slice) -> Parts:
        contiguous = lie_contiguous(values[rows, group])
        for some in slices(rows, n_rows if contiguous else height):
            yield contiguous_columns(values[some], group, scratch), some

    blocks = slices(slice(0, n), n_rows)
    every = [(rows, group) for rows in blocks for group in slices(slice(0, p), width)]
    with progress_bar(p * len(blocks), " columns of row blocks", progress) as bar:
        work_off(lambda rows, group: job(parts_of(rows, group), rows, group), every, values.shape, n_threads, bar)
