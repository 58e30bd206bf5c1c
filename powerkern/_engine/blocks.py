"""Divide a matrix into groups of columns, blocks of rows, and blocks that fit the cache."""

from __future__ import annotations

from typing import TypeVar

from powerkern._engine.gather import Columns
from powerkern._engine.threads import SERIAL_VALUES
from powerkern.kernels.transforms import gather

#: Width of a group of columns, in cache lines; the CPU prefetches a row of them while it copies.
_GROUP_LINES = 8
#: Groups are wider if columns are shorter than _SHORT_COLUMN / _GROUP_LINES. They are narrower if the copy would exceed
#: GROUP_VALUES or a thread would have fewer than _GROUPS_PER_THREAD groups, and narrower than a cache line if columns
#: are longer than LONG_COLUMN / 8, so that Ctrl-C takes effect promptly.
_SHORT_COLUMN = 4096
GROUP_VALUES = 1_000_000
_GROUPS_PER_THREAD = 4
LONG_COLUMN = 8_000_000
#: Smallest number of values in a part for which another thread pays.
SMALLEST_PART = 65_536
#: Values in a block, which fit the second-level cache. The longer dimension of such a block is the contiguous one.
_CACHE_VALUES = 98_304
_CACHE_ROWS = 8192
_CACHE_COLUMNS = 192
#: Values in a block that is transformed along lines. Each value is read once, and each block computes the constants of
#: its columns, so larger blocks are better, but each thread should get _BLOCKS_PER_THREAD blocks. Blocks that are
#: copied first have _COPIED_VALUES. A block of a row-major matrix has all rows of at least _LEAST_COLUMNS columns if
#: these fit, so that constants are computed once; otherwise it has _LINE_COLUMNS columns.
_LINE_VALUES = 524_288
_COPIED_VALUES = 262_144
_BLOCKS_PER_THREAD = 3
_LEAST_COLUMNS, _LINE_COLUMNS = 512, 1024


_Block = TypeVar("_Block")


def slices(whole: slice, step: int) -> list[slice]:
    """Divide a slice into consecutive slices of length `step`; the last one may be shorter."""
    return [slice(start, min(start + step, whole.stop)) for start in range(whole.start, whole.stop, step)]


def column_groups(shape: tuple[int, int], n_threads: int) -> list[slice]:
    """Divide the columns of a matrix into groups of a few cache lines.

    Groups are wider if columns are short, and narrower if threads would otherwise be idle.
    """
    n, p = shape
    if n * p < SERIAL_VALUES:
        n_threads = 1
    line = gather.CACHE_LINE
    most = p // (line * _GROUPS_PER_THREAD * n_threads)
    lines = min(max(_GROUP_LINES, _SHORT_COLUMN // n), GROUP_VALUES // (line * n), most)
    width = min(line * max(1, lines), max(1, LONG_COLUMN // n), -(-p // n_threads))
    return slices(slice(0, p), width)


def is_one_group(shape: tuple[int, int]) -> bool:
    """Return whether a matrix is so small that one thread fits it as a single group of columns."""
    n, p = shape
    return p <= gather.CACHE_LINE and n * p < SERIAL_VALUES


def cache_shape(values: Columns) -> tuple[int, int]:
    """Return the number of rows and the number of columns of a block that fits the second-level cache."""
    n, p = values.shape
    if abs(values.strides[0]) < abs(values.strides[1]):
        rows = max(1, min(n, _CACHE_ROWS))
        return rows, min(p, _CACHE_VALUES // rows)
    columns = min(p, _CACHE_COLUMNS)
    return min(n, _CACHE_VALUES // columns), columns


def line_blocks(values: Columns, n_threads: int, copied: bool) -> list[tuple[slice, slice]]:
    """Divide a matrix into blocks to be transformed along lines; `copied` says whether each block is copied first."""
    n, p = values.shape
    size = _COPIED_VALUES if copied else _LINE_VALUES
    if n_threads > 1:
        size = min(size, max(SMALLEST_PART, n * p // (_BLOCKS_PER_THREAD * n_threads)))
    if abs(values.strides[0]) < abs(values.strides[1]):
        height = min(n, size)
        width = min(p, size // height)
    else:
        width = min(p, size // n if size // n >= _LEAST_COLUMNS else _LINE_COLUMNS)
        height = min(n, size // width)
    columns_first = height == n
    # blocks of about equal size
    height, width = (-(-whole // round(whole / part)) for whole, part in ((n, height), (p, width)))
    rows, groups = slices(slice(0, n), height), slices(slice(0, p), width)
    blocks = [(some, group) for some in rows for group in groups]
    return _interleave(blocks, n_threads) if not columns_first else blocks


def cache_blocks(shape: tuple[int, int], height: int, width: int, n_threads: int) -> list[tuple[slice, slice]]:
    """Divide a matrix into blocks of at most `height` rows and `width` columns.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    height : int
        Largest number of rows of a block (see `cache_shape`).
    width : int
        Largest number of columns of a block; ignored if blocks of whole rows suffice to keep all threads busy.
    n_threads : int
        Maximum number of threads.
    """
    n, p = shape
    blocks = slices(slice(0, n), height)
    groups = slices(slice(0, p), p if len(blocks) >= _GROUPS_PER_THREAD * n_threads else width)
    return [(rows, group) for rows in _interleave(blocks, n_threads) for group in groups]


def _interleave(blocks: list[_Block], n_threads: int) -> list[_Block]:
    """Interleave blocks so that concurrent threads do not fault in the same memory page."""
    apart = -(-len(blocks) // n_threads)
    return [block for k in range(apart) for block in blocks[k::apart]]
