"""Call a kernel for every block of rows of every column, so that several threads share a long column."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from powerkern._engine.blocks import SMALLEST_PART, cache_shape, slices
from powerkern._engine.gather import BlockScratch, Columns, contiguous_columns, has_contiguous_columns
from powerkern._engine.threads import progress_bar, run_parallel
from powerkern._typing import FloatArray

#: Yields the parts of a block of rows from top to bottom: contiguous columns, and the slice of their rows.
Parts = Iterator[tuple[FloatArray, slice]]


def for_each_row_block(
    job: Callable[[Parts, slice, slice], None],
    values: Columns,
    n_rows: int,
    n_threads: int,
    progress: bool = False,
) -> None:
    """Call `job` for every block of rows of every group of columns, on several threads.

    Parameters
    ----------
    job : callable
        Called as ``job(parts, rows, columns)`` with the slices of a block's rows and columns. `parts` iterates over the
        parts of the block from top to bottom: contiguous columns, and the slice of their rows.
    values : (n, p) ndarray or AffineView
        The matrix.
    n_rows : int
        Largest number of rows of a block. Groups of columns are narrower if there are fewer blocks than threads.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    n, p = values.shape
    blocks = slices(slice(0, n), n_rows)
    height, width = cache_shape(values[:n_rows])
    width = min(width, max(-(-p * len(blocks) // n_threads), -(-SMALLEST_PART // max(n, 1))))
    scratch = BlockScratch()

    def parts_of(rows: slice, group: slice) -> Parts:
        contiguous = has_contiguous_columns(values[rows, group])
        for some in slices(rows, n_rows if contiguous else height):
            yield contiguous_columns(values[some], group, scratch), some

    def call(rows: slice, group: slice) -> None:
        job(parts_of(rows, group), rows, group)

    every = [(rows, group) for rows in blocks for group in slices(slice(0, p), width)]
    with progress_bar(p * len(blocks), " columns of row blocks", progress) as bar:
        run_parallel(call, every, values.shape, n_threads, bar, use_calling_thread=not progress)
