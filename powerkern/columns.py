"""The column driver: groups of columns on a pool of threads, with progress and prompt interruption.

Entry points release the GIL, so plain Python threads run them side by side: no threading layer of numba, no crash in a
forked child, no trouble when several Python threads call in. A group of columns is handled by the same code whatever
the number of threads, so results are bit-identical.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._cpus import usable_cpus
from powerkern._status import Status
from powerkern.kernels import columnwise, mle, normality_search, partial_moments, robust, rowwise
from powerkern.kernels.likelihood import BLOCK, N_MOMENTS
from powerkern.kernels.mle import BOX_COX, YEO_JOHNSON

FloatArray = NDArray[np.float64]

#: Fewer values than this are not worth a thread.
_SERIAL_VALUES = 32_768
#: Cache lines of columns in a group: a row of them is what the CPU fetches ahead while it copies.
_LINES = 8
#: More where columns are shorter than _SHORT / _LINES, fewer where the copy would exceed _SCRATCH values or a thread
#: have fewer than _TURNS groups; less than a line where columns are longer than _LONG / 8, for Ctrl-C to be prompt.
_SHORT = 4096
_SCRATCH = 1_000_000
_TURNS = 4
_LONG = 8_000_000
#: Values that are transformed at once: they stay in the second-level cache. The larger side of such a tile lies along
#: the matrix's memory.
_TILE = 98_304
_TILE_ROWS = 8192
_TILE_COLUMNS = 192
#: The same along whole rows, for which up to _WIDE columns count: each value is looked at once, so more is better.
_ROW_TILE = 262_144
#: Along whole rows, fewer than _NARROW columns are repeated to that many, more than _WIDE are divided.
_NARROW, _WIDE = 512, 1024
#: So are matrices with at least this share of columns that have ordinary values: others' columns are gathered apart.
_ORDINARY = 0.9
#: Seconds of work after which a progress bar appears.
_PROGRESS_DELAY = 1.0
#: Seconds between looks at the pool.
_POLL = 0.2

FAMILIES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}
_NOTHING = np.empty(0)


class ColumnFit(NamedTuple):
    """The fit of one column; the fields are those of `powerkern.PowerFit`, as numbers."""

    lmbda: float
    loc: float
    scale: float
    log_factor: float
    ref: float
    slope: float
    intercept: float
    nll: float
    curvature: float
    n_obs: float
    n_eval: int
    status: int
    x_min: float
    x_max: float
    lmbda0: float
    n_kept: float
    kept_low: float
    kept_high: float
    centre: float
    divisor: float


def default_threads() -> int:
    """Number of CPUs this process may use (see `usable_cpus`), or ``NUMBA_NUM_THREADS`` if that is fewer.

    joblib sets the variable in its worker processes, so that they share the CPUs.
    """
    cpus, limit = usable_cpus(), os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, min(cpus, int(limit))) if limit.isdecimal() else cpus


def thread_count(n_threads: int | None) -> int:
    """An argument ``n_threads``, once it is known to be a number of threads; None: all CPUs of this process."""
    if n_threads is None:
        return default_threads()
    if isinstance(n_threads, bool) or not isinstance(n_threads, int | np.integer):
        raise TypeError(f"n_threads must be a whole number of at least 1, or None, got {n_threads!r}")
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1 (None: all CPUs), got {n_threads}")
    return int(n_threads)


# --- groups of columns --------------------------------------------------------------------------------


def for_each_group(
    job: Callable[[slice], None], shape: tuple[int, int], n_threads: int, progress: bool = False
) -> None:
    """Call `job` with slices that cover the columns of a (n, p) matrix, on `n_threads` threads."""
    groups = [(group,) for group in _groups(shape, n_threads)]
    with _progress(shape[1], " columns", progress) as bar:
        _run(job, groups, shape, n_threads, bar)


def _run(
    job: Callable[..., None],
    pieces: Iterable[tuple[slice, ...]],
    shape: tuple[int, int],
    n_threads: int,
    bar: Any = None,
) -> None:
    """Call ``job(*piece)`` for all pieces of a (n, p) matrix; the last slice of a piece is its columns.

    The main thread only waits, so that Ctrl-C is heard at once whatever runs. The first exception stops the rest.
    """
    waiting, done = deque(pieces), deque[slice]()

    def work() -> None:  # once a thread: handing over each piece by itself would cost four times as much
        while True:
            try:
                piece = waiting.popleft()
            except IndexError:
                return
            job(*piece)
            done.append(piece[-1])

    if shape[0] * shape[1] < _SERIAL_VALUES:
        work()
        return
    n_threads = min(n_threads, len(waiting))
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="powerkern")
    try:
        running = _started(pool, work, n_threads)
        if not running:
            work()
        while running:
            # with a timeout: without one, Windows could not be interrupted, and a bar would not move
            ended, running = wait(running, timeout=_POLL, return_when=FIRST_EXCEPTION)
            for task in ended:
                task.result()
            while bar is not None and done:
                columns = done.popleft()
                bar.update(columns.stop - columns.start)
    except KeyboardInterrupt:
        waiting.clear()
        pool.shutdown(wait=False)  # what runs ends by itself; nobody waits for it
        raise
    except BaseException:
        waiting.clear()
        pool.shutdown()
        raise
    pool.shutdown()


def _started(pool: ThreadPoolExecutor, work: Callable[[], None], n_threads: int) -> set[Future[None]]:
    """Do the work on so many threads, or on as many as the system grants, which may be none."""
    running: set[Future[None]] = set()
    with suppress(RuntimeError):  # a limit on processes or on memory; what was asked for last is done by the others
        while len(running) < n_threads:
            running.add(pool.submit(work))
    return running


#: Rows of a piece, from top to bottom: some columns of them, made contiguous, and which rows they are.
Tiles = Iterator[tuple[FloatArray, slice]]


def for_each_piece(
    job: Callable[[Tiles, slice, slice], None],
    values: NDArray[Any],
    n_rows: int,
    n_threads: int,
    progress: bool = False,
) -> None:
    """Call ``job(tiles, rows, group)`` for pieces of at most `n_rows` rows of a group of columns."""
    n, p = values.shape
    height, width = _tile(values[:n_rows])
    scratch = _Scratch()

    def tiles_of(rows: slice, group: slice) -> Tiles:
        contiguous = values[rows, group].T.flags.c_contiguous
        for some in _slices(rows, n_rows if contiguous else height):
            yield _columns_of(values[some], group, scratch), some

    blocks = _slices(slice(0, n), n_rows)
    pieces = [(rows, group) for rows in blocks for group in _slices(slice(0, p), width)]
    with _progress(p * len(blocks), " columns of pieces", progress) as bar:
        _run(lambda rows, group: job(tiles_of(rows, group), rows, group), pieces, values.shape, n_threads, bar)


def _groups(shape: tuple[int, int], n_threads: int) -> list[slice]:
    """Some cache lines of columns each; more when columns are short, fewer when long or when threads would idle."""
    n, p = shape
    if n * p < _SERIAL_VALUES:
        n_threads = 1
    line = columnwise.GROUP
    lines = min(max(_LINES, _SHORT // n), _SCRATCH // (line * n), p // (line * _TURNS * n_threads))
    width = min(line * max(1, lines), max(1, _LONG // n), -(-p // n_threads))
    return _slices(slice(0, p), width)


def _slices(whole: slice, step: int) -> list[slice]:
    """Consecutive slices of `step` that make up the `whole`."""
    return [slice(start, min(start + step, whole.stop)) for start in range(whole.start, whole.stop, step)]


def _progress(total: int, unit: str, wanted: bool) -> AbstractContextManager[Any]:
    """A bar if one is wanted, None otherwise."""
    if not wanted:
        return nullcontext()
    try:
        from tqdm import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install 'powerkern[progress]'") from None
    return closing(tqdm(total=total, unit=unit, delay=_PROGRESS_DELAY))


# --- scratch and gathering ----------------------------------------------------------------------------


class _Scratch(threading.local):
    """Each thread's block to gather columns into."""

    def __init__(self) -> None:
        self._block = np.empty(0)

    def block(self, n_columns: int, n_rows: int) -> FloatArray:
        """A contiguous (n_columns, n_rows) block."""
        size = n_columns * n_rows
        if self._block.size < size:
            self._block = _in_large_pages(size)
        return self._block[:size].reshape(n_columns, n_rows)


def _in_large_pages(size: int) -> FloatArray:
    """A vector that lies, where the system offers them, in pages of 2 MB: columns are written to side by side."""
    page = 2**21 // 8
    if size < page:
        return np.empty(size)
    whole = np.empty(-(-size // page) * page + page)  # NumPy asks for large pages from 4 MB on
    start = -whole.ctypes.data % (8 * page) // 8
    return whole[start : start + size]


class _FitScratch(_Scratch):
    """A thread's block and the arrays of `mle.Work`."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.work = new_work(n)


def new_work(n: int) -> tuple[Any, ...]:
    """The arrays of `mle.Work` for columns of `n` values."""
    columns = tuple(np.empty(n) for _ in range(5))
    small = (np.empty(mle.SAMPLE, np.float32), np.empty((4, BLOCK)), np.empty((2, N_MOMENTS)))
    return (*columns, *small)


def _gather(part: NDArray[Any], block: FloatArray) -> None:
    """block = part.T, as float64."""
    if _is_native(part):
        columnwise.gather(part, block)
    else:
        with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
            np.copyto(block, part.T, casting="unsafe")


def _scatter(block: FloatArray, part: NDArray[Any]) -> None:
    """part = block.T, rounded to the type of part."""
    if _is_native(part):
        columnwise.scatter(block, part)
    else:
        with np.errstate(over="ignore"):
            np.copyto(part, block.T, casting="same_kind")


def _is_native(values: NDArray[Any]) -> bool:
    return values.dtype == np.float64 and values.dtype.isnative


def _gathered(part: NDArray[Any], scratch: _Scratch) -> FloatArray:
    """The columns of a part of a matrix as the rows of a block, which may be changed."""
    block = scratch.block(part.shape[1], part.shape[0])
    _gather(part, block)
    return block


def _columns_of(values: NDArray[Any], group: slice, scratch: _Scratch) -> FloatArray:
    """The columns of a group as contiguous float64 rows, copied unless they are that already."""
    part = values[:, group]
    across = part.T
    if _is_native(part) and across.flags.c_contiguous and across.flags.writeable:  # nothing writes to it
        return across
    return _gathered(part, scratch)


# --- fitting ------------------------------------------------------------------------------------------


def fit_matrix(
    values: NDArray[Any],
    family: int,
    lmbda: FloatArray,
    weight: FloatArray,
    n_threads: int,
    progress: bool = False,
) -> FloatArray:
    """Fit every column; returns (p, mle.N_RESULTS). A negative STATUS marks values outside the domain."""

    def fit(columns: FloatArray, group: slice, work: tuple[Any, ...], out: FloatArray) -> None:
        mle.fit_columns(columns, weight, family, lmbda[group], work, out)

    return _on_columns(fit, values, mle.N_RESULTS, n_threads, progress)


def robust_matrix(
    values: NDArray[Any], family: int, options: FloatArray, n_threads: int, progress: bool = False
) -> FloatArray:
    """Fit every column robustly (see `kernels.robust.Options`); returns what `fit_matrix` does."""
    scratch = _RobustScratch(values.shape[0])

    def fit(block: FloatArray, group: slice) -> FloatArray:
        out = np.empty((block.shape[0], mle.N_RESULTS))
        block.sort(axis=1)  # numpy's is vectorised and releases the GIL; NaN come last
        robust.fit_sorted_columns(block, family, options, scratch.work, out)
        return out

    return column_figures(fit, values, mle.N_RESULTS, n_threads, progress)


class _RobustScratch(threading.local):
    """Each thread's arrays of `robust.RobustWork`."""

    def __init__(self, n: int) -> None:
        self.work = robust.new_robust_work(new_work(n), n)


def criterion_matrix(
    values: NDArray[Any], family: int, criterion: int, n_threads: int, progress: bool = False
) -> FloatArray:
    """`fit_matrix` with lambdas that minimise a criterion of normality, searched for from the likeliest."""
    likely = fit_matrix(values, family, np.full(values.shape[1], np.nan), _NOTHING, n_threads)
    usable = np.isin(likely[:, mle.STATUS], (Status.OK, Status.NOT_CERTIFIED))
    if not usable.any():
        return likely
    start = np.where(usable, likely[:, mle.LMBDA], np.nan)
    width = normality_search.N_FOUND

    def search(block: FloatArray, group: slice) -> FloatArray:
        n = block.shape[1]
        block.sort(axis=1)  # NaN last
        quantiles = _unit_quantiles(block) if criterion == normality_search.PPCC else block
        out = np.empty((block.shape[0], width))
        normality_search.criterion_columns(block, family, criterion, start[group], quantiles, np.empty((2, n)), out)
        return out

    found = column_figures(search, values, width, n_threads, progress)
    results = fit_matrix(values, family, found[:, normality_search.FOUND_LMBDA].copy(), _NOTHING, n_threads)
    results[~usable] = likely[~usable]
    done = results[:, mle.STATUS] == Status.FIXED
    results[done, mle.STATUS] = found[done, normality_search.FOUND_STATUS]
    results[usable, mle.N_EVAL] = likely[usable, mle.N_EVAL] + found[usable, normality_search.FOUND_N_EVAL]
    return results


def _unit_quantiles(block: FloatArray) -> FloatArray:
    """Normal quantiles at Filliben's median ranks of the values of each row, NaN last, as vectors of length 1."""
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    quantiles = np.zeros_like(block)
    counts = block.shape[1] - np.isnan(block).sum(axis=1)
    for n in np.unique(counts[counts > 1]):
        ranks = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
        ranks[-1] = 0.5 ** (1.0 / n)
        ranks[0] = 1.0 - ranks[-1]
        q = ndtri(ranks)
        quantiles[counts == n, :n] = q / np.sqrt(q @ q)
    return quantiles


def profile_matrix(
    values: NDArray[Any], family: int, lmbdas: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """g of every column at every lambda: (p, len(lmbdas))."""

    def profile(columns: FloatArray, group: slice, work: tuple[Any, ...], out: FloatArray) -> None:
        mle.profile_columns(columns, weight, family, lmbdas, work, out)

    return _on_columns(profile, values, lmbdas.size, n_threads)


def interval_matrix(
    values: NDArray[Any], family: int, lmbda: FloatArray, drop: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """Lambdas at which g exceeds its minimum by `drop`: (p, 2)."""
    at = np.column_stack([lmbda, drop])

    def interval(columns: FloatArray, group: slice, work: tuple[Any, ...], out: FloatArray) -> None:
        mle.interval_columns(columns, weight, family, at[group], work, out)

    return _on_columns(interval, values, 2, n_threads)


def share_matrix(
    values: NDArray[Any], family: int, frames: FloatArray, at: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """Moments of every column, one site's share of it, at k exponents: (p, k, partial_moments.N_SHARE)."""

    def add(columns: FloatArray, group: slice, work: tuple[Any, ...], out: FloatArray) -> None:
        partial_moments.share_columns(columns, weight, family, frames[group], at[group], work, out)

    moments = _on_columns(add, values, at.shape[1] * partial_moments.N_SHARE, n_threads)
    return moments.reshape(*at.shape, partial_moments.N_SHARE)


def _on_columns(
    function: Callable[[FloatArray, slice, tuple[Any, ...], FloatArray], None],
    values: NDArray[Any],
    width: int,
    n_threads: int,
    progress: bool = False,
) -> FloatArray:
    """Call ``function(columns, group, work, rows of the result)`` for groups of columns; returns (p, width)."""
    out = np.empty((values.shape[1], width))
    scratch = _FitScratch(values.shape[0])

    def job(group: slice) -> None:
        function(_columns_of(values, group, scratch), group, scratch.work, out[group])

    for_each_group(job, values.shape, n_threads, progress)
    return out


# --- one vector, for callers to whom microseconds matter ----------------------------------------------


def fit_vector(x: FloatArray, family: int, lmbda: float = np.nan) -> ColumnFit:
    """Fit one contiguous float64 vector; domain and shape are the caller's business."""
    out = np.empty((1, mle.N_RESULTS))
    mle.fit_columns(x.reshape(1, -1), _NOTHING, family, np.array([lmbda]), new_work(x.size), out)
    return ColumnFit(*out[0].tolist())


def nll_vector(x: FloatArray, family: int, lmbdas: FloatArray) -> FloatArray:
    """Negative log-likelihood per observation of one contiguous float64 vector at each lambda."""
    out = np.empty(lmbdas.size)
    mle.profile_columns(x.reshape(1, -1), _NOTHING, family, lmbdas, new_work(x.size), out.reshape(1, -1))
    return out


def interval_vector(x: FloatArray, family: int, lmbda: float, drop: float) -> tuple[float, float]:
    """The two lambdas at which g exceeds its minimum, at `lmbda`, by `drop`."""
    out = np.empty((1, 2))
    mle.interval_columns(x.reshape(1, -1), _NOTHING, family, np.array([[lmbda, drop]]), new_work(x.size), out)
    return float(out[0, 0]), float(out[0, 1])


# --- transforming -------------------------------------------------------------------------------------


#: Given a column's number, its values and what they became, mend the latter; returns how many cannot be.
Repair = Callable[[int, NDArray[Any], FloatArray], int]


def transform_matrix(
    values: NDArray[Any],
    out: NDArray[Any] | None,
    family: NDArray[np.int64],
    what: int,
    results: FloatArray,
    n_threads: int,
    repair: Repair | None = None,
) -> NDArray[np.int64]:
    """Apply `what` (see `tiles`) to every column; returns how many values of each column have no image.

    `out` may be `values`, or None to count only. `family` has one entry a column.
    """
    n, p = values.shape
    image = values if out is None else out
    lanes = [] if out is None else _lanes(values, out, family, what, results)
    in_place = np.may_share_memory(values, image)
    height, width = (_rows_of_tile(values.shape, n_threads), p) if lanes else _tile(values)
    failures = np.zeros((p, -(-n // height)), dtype=np.int64)
    scratch = _Scratch()
    largest = np.finfo(np.float64 if out is None else out.dtype).max

    def transformed(source: NDArray[Any], numbers: NDArray[np.intp], top: int) -> FloatArray:
        """The columns with these numbers, from row `top` on, as the rows of a block."""
        block = _gathered(source, scratch)
        counts = np.zeros(numbers.size, dtype=np.int64)
        for code, run in _runs(family[numbers]):
            columnwise.APPLY[code, what](block[run], results[numbers[run]], counts[run])
        if repair is not None:
            if largest < np.finfo(np.float64).max:  # infinite once rounded to float32
                counts += np.count_nonzero((abs(block) > largest) & np.isfinite(block), axis=1)
                block[abs(block) > largest] = np.inf
            for j in np.flatnonzero(counts):
                counts[j] = repair(int(numbers[j]), source[:, j], block[j])
        failures[numbers, top // height] = counts
        return block

    def by_column(tile: slice, columns: slice) -> None:
        for group in _slices(columns, width):
            block = transformed(values[tile, group], np.arange(group.start, group.stop), tile.start)
            if out is not None:
                _scatter(block, out[tile, group])

    def by_row(tile: slice, _: slice) -> None:
        for lane in lanes:
            source, target = values[tile], image[tile]
            # in place, others are looked for before they are overwritten
            extreme = lane.extreme_columns(source) if in_place else lane.apply(source, target)
            block = transformed(source[:, extreme], extreme, tile.start) if extreme.size else None
            if in_place:
                lane.apply(source, target)
            if block is not None:
                target[:, extreme] = block.T

    job = by_row if lanes else by_column
    _run(job, _tile_slices(values.shape, height, width, n_threads), values.shape, n_threads)
    return np.asarray(failures.sum(axis=1))


class _Lane(NamedTuple):
    """Columns of a C-contiguous matrix, from `left` on, that are transformed along its rows by the entry `transform`.

    `stride` is the length of a row, of several where rows are short; there are constants for as many columns.
    """

    transform: Callable[..., None]
    constants: FloatArray
    stride: int
    left: int
    width: int
    times: int

    def apply(self, tile: FloatArray, out: FloatArray) -> NDArray[np.intp]:
        """Transform the columns; returns the numbers of those with a value that is not ordinary."""
        return self._numbers(lambda *where: self.transform(*where, out.reshape(-1)), tile)

    def extreme_columns(self, tile: FloatArray) -> NDArray[np.intp]:
        """The numbers of those columns of the matrix that have a value in the `tile` which is not ordinary."""
        return self._numbers(rowwise.find_extreme, tile)

    def _numbers(self, find: Callable[..., None], tile: FloatArray) -> NDArray[np.intp]:
        found = np.zeros((self.times, self.width), dtype=np.int64)
        find(tile.reshape(-1), self.stride, self.left, self.constants, found.reshape(-1))
        return self.left + np.flatnonzero(found.any(axis=0))


def _lanes(
    values: NDArray[Any], out: NDArray[Any], family: NDArray[np.int64], what: int, results: FloatArray
) -> list[_Lane]:
    """How to go along the rows of both; nothing where columns are better gathered."""
    n, p = values.shape
    along = all(_is_native(x) and x.flags.c_contiguous for x in (values, out))
    if min(n, p) == 1 or not along or (family != family[0]).any():
        return []
    times = min(n, -(-_NARROW // p)) if p < _NARROW else 1
    code, ordinary, lanes = int(family[0]), 0, []
    for group in _slices(slice(0, p), _WIDE):
        constants = rowwise.constants(code, what, results[group])
        ordinary += int(np.count_nonzero(constants[rowwise.LOW] <= constants[rowwise.HIGH]))
        blocks = rowwise.in_blocks(np.tile(constants, (1, times)))
        lanes.append(_Lane(rowwise.APPLY[code, what], blocks, times * p, group.start, group.stop - group.start, times))
    return lanes if ordinary >= _ORDINARY * p else []


def _tile(values: NDArray[Any]) -> tuple[int, int]:
    """How many rows, and how many columns, are transformed at once."""
    n, p = values.shape
    if abs(values.strides[0]) < abs(values.strides[1]):
        rows = max(1, min(n, _TILE_ROWS))
        return rows, min(p, _TILE // rows)
    columns = min(p, _TILE_COLUMNS)
    return min(n, _TILE // columns), columns


def _rows_of_tile(shape: tuple[int, int], n_threads: int) -> int:
    """How many whole rows are transformed at once."""
    n, p = shape
    size = min(_ROW_TILE, max(_SERIAL_VALUES, n * p // (_TURNS * n_threads)))
    return max(1, size // min(p, _WIDE))


def _tile_slices(shape: tuple[int, int], height: int, width: int, n_threads: int) -> list[tuple[slice, slice]]:
    """Rows and columns of all tiles; of whole rows where there are enough of them for all threads."""
    n, p = shape
    blocks = _slices(slice(0, n), height)
    groups = _slices(slice(0, p), p if len(blocks) >= _TURNS * n_threads else width)
    # threads are kept apart: of two that write to a new page, often 2 MB, at once both clear it
    share = -(-len(blocks) // n_threads)
    return [(rows, group) for k in range(share) for rows in blocks[k::share] for group in groups]


def _runs(family: NDArray[np.int64]) -> Iterable[tuple[int, slice]]:
    """Stretches of columns of one family."""
    if family[0] == family[-1] and (family == family[0]).all():
        yield int(family[0]), slice(0, family.size)
        return
    ends = [*(np.flatnonzero(np.diff(family)) + 1).tolist(), family.size]
    for start, stop in zip([0, *ends], ends, strict=False):
        yield int(family[start]), slice(start, stop)


def count_outside(
    values: NDArray[Any], family: NDArray[np.int64], results: FloatArray, n_threads: int
) -> NDArray[np.int64]:
    """How many values of each column are outside the domain of its fit."""
    failures = np.zeros(values.shape[1], dtype=np.int64)

    def job(group: slice) -> None:
        part = values[:, group]
        if not _is_native(part):
            with np.errstate(over="ignore"):
                part = part.astype(np.float64)
        for code, run in _runs(family[group]):
            columnwise.count_outside(part[:, run], code, results[group][run], failures[group][run])

    for_each_group(job, values.shape, n_threads)
    return failures


# --- anything else ------------------------------------------------------------------------------------


def changed_matrix(change: Callable[[FloatArray, slice], None], values: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """A new matrix, in which ``change(block, columns)`` has changed every value, a block of contiguous rows at a time.

    Row j of a block has some of the values of column ``columns.start + j``. float32 for float32, else float64.
    """
    n, p = values.shape
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    out = np.empty((n, p), dtype=dtype, order="F" if values.flags.f_contiguous else "C")
    height, width = _tile(values)
    scratch = _Scratch()

    def job(rows: slice, columns: slice) -> None:
        for group in _slices(columns, width):
            block = _gathered(values[rows, group], scratch)
            change(block, group)
            _scatter(block, out[rows, group])

    _run(job, _tile_slices((n, p), height, width, n_threads), (n, p), n_threads)
    return out


def column_figures(
    measure: Callable[[FloatArray, slice], FloatArray],
    values: NDArray[Any],
    width: int,
    n_threads: int,
    progress: bool = False,
) -> FloatArray:
    """What ``measure(columns, group)`` finds for groups of columns: (p, width).

    The columns are contiguous rows of a block that `measure` may change.
    """
    out = np.empty((values.shape[1], width))
    scratch = _Scratch()

    def job(group: slice) -> None:
        out[group] = measure(_gathered(values[:, group], scratch), group)

    for_each_group(job, values.shape, n_threads, progress)
    return out
