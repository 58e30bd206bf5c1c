"""How a matrix is divided: groups of columns, blocks of rows, blocks that stay in the cache."""

from __future__ import annotations

from powerkern._engine.shifted import Columns
from powerkern._engine.threads import SERIAL_VALUES
from powerkern.kernels import columnwise

#: Cache lines of columns in a group: a row of them is what the CPU prefetches while it copies.
_GROUP_LINES = 8
#: More where columns are shorter than _SHORT_COLUMN / _GROUP_LINES, fewer where the copy would exceed GROUP_VALUES or
#: a thread have fewer than _TURNS groups; less than a line where columns are longer than LONG_COLUMN / 8, for Ctrl-C to
#: be prompt.
_SHORT_COLUMN = 4096
GROUP_VALUES = 1_000_000
_TURNS = 4
LONG_COLUMN = 8_000_000
#: Values that are transformed at once: they stay in the second-level cache. The larger side of such a block lies along
#: the matrix's memory.
_CACHE_VALUES = 98_304
_CACHE_ROWS = 8192
_CACHE_COLUMNS = 192
#: The same along whole rows, of which up to LONGEST_ROW columns count: each value is read once, so larger is better.
_ROWWISE_VALUES = 262_144
#: Along whole rows, fewer columns than SHORTEST_ROW are repeated to that many, more than LONGEST_ROW are divided.
SHORTEST_ROW, LONGEST_ROW = 512, 1024


def slices(whole: slice, step: int) -> list[slice]:
    """Consecutive slices of `step` that make up the `whole`."""
    return [slice(start, min(start + step, whole.stop)) for start in range(whole.start, whole.stop, step)]


def column_groups(shape: tuple[int, int], n_threads: int) -> list[slice]:
    """Some cache lines of columns each; more when columns are short, fewer when long or when threads would idle."""
    n, p = shape
    if n * p < SERIAL_VALUES:
        n_threads = 1
    line = columnwise.CACHE_LINE
    lines = min(max(_GROUP_LINES, _SHORT_COLUMN // n), GROUP_VALUES // (line * n), p // (line * _TURNS * n_threads))
    width = min(line * max(1, lines), max(1, LONG_COLUMN // n), -(-p // n_threads))
    return slices(slice(0, p), width)


def cache_shape(values: Columns) -> tuple[int, int]:
    """How many rows, and how many columns, of a matrix stay in the cache."""
    n, p = values.shape
    if abs(values.strides[0]) < abs(values.strides[1]):
        rows = max(1, min(n, _CACHE_ROWS))
        return rows, min(p, _CACHE_VALUES // rows)
    columns = min(p, _CACHE_COLUMNS)
    return min(n, _CACHE_VALUES // columns), columns


def rows_at_once(shape: tuple[int, int], n_threads: int) -> int:
    """How many whole rows are transformed at once."""
    n, p = shape
    size = min(_ROWWISE_VALUES, max(SERIAL_VALUES, n * p // (_TURNS * n_threads)))
    return max(1, size // min(p, LONGEST_ROW))


def cache_blocks(shape: tuple[int, int], height: int, width: int, n_threads: int) -> list[tuple[slice, slice]]:
    """Rows and columns of all blocks; of whole rows where there are enough of them for all threads."""
    n, p = shape
    blocks = slices(slice(0, n), height)
    groups = slices(slice(0, p), p if len(blocks) >= _TURNS * n_threads else width)
    # threads are kept apart: of two that write to a new page, often 2 MB, at once both clear it
    apart = -(-len(blocks) // n_threads)
    return [(rows, group) for k in range(apart) for rows in blocks[k::apart] for group in groups]
