"""The steps of a fit from chunks: compute ranges, compute sketches, and fit the merged sketch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.gather import shift_and_scale
from powerkern._engine.threads import thread_count
from powerkern._estimators import power_sums
from powerkern._estimators.limits import apply_limit
from powerkern._estimators.ranges import range_matrix
from powerkern._estimators.shift import convert_to_data_units, given_shift
from powerkern._estimators.spec import FitSpec
from powerkern._input.alignment import ColumnNames, merging_order
from powerkern._input.arguments import column_error, domain_error_in
from powerkern._input.arrays import Matrix, as_choice, check_n_features
from powerkern._input.censoring import Marks, given_limits, with_censored, without_flags
from powerkern._input.reading import read_chunk
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.power_fit import PowerFit, build_power_fit
from powerkern._typing import Bounds, FloatArray, IntArray, Limits
from powerkern.kernels.power_sums import ranges as kernels
from powerkern.kernels.power_sums.grids import G_MAX, G_MIN
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.intervals import CountedIntervals, count_intervals, end_range, standard_ends, values_of
from powerkern.sketch.serial import no_limits
from powerkern.sketch.sketches import Sketch


def range_of(
    chunk: object,
    family: str = "yeo-johnson",
    *,
    sample_weight: ArrayLike | str | None = None,
    shift: ArrayLike = 0.0,
    limits: Limits | None = None,
    below: object = None,
    above: object = None,
    between: tuple[object, object] | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Range:
    """Compute the ranges of the columns of a chunk: the first of two passes over the data.

    Parameters
    ----------
    chunk : (n, p) or (n,) array-like
        Some of the rows, as for `powerkern.fit`, or none. NaN is missing.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform to fit.
    sample_weight : (n,) array-like, or str, optional
        Non-negative weights of the rows, or the name of a column of the data frame.
    shift : float or (p,) array-like, default 0
        Box-Cox only: ``x + shift`` is transformed.
    limits : (low, high), optional
        Detection limits of the columns, as for `powerkern.fit`. They also apply to the grid made from the range.
    below, above, between : optional
        Censored cells of the chunk, as for `powerkern.fit`.
    column_names : sequence of str, optional
        Names of the columns in results; default: the labels of a data frame. `merge` aligns columns by these labels,
        not by names.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    Range

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.fit`; messages count rows from the start of the chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sketch import merge, range_of
    >>> merge(range_of(np.arange(5.0)), range_of(np.arange(3.0, 9.0))).x_max
    array([8.])
    """
    as_choice("family", family, FAMILIES)
    chunk, marks = without_flags(chunk, Marks(below, above, between))
    matrix = read_chunk(chunk, sample_weight, column_names)
    ends = _checked_limits(limits, matrix)
    matrix = with_censored(matrix, chunk, marks, ends)
    return range_of_matrix(matrix, family, shift, n_threads, ends)


def _checked_limits(limits: Limits | None, matrix: Matrix) -> FloatArray | None:
    """Return the limits of the columns of a matrix, (2, p), or None if no limits are given."""
    return None if limits is None else given_limits(limits, matrix.values.shape[1], matrix.names)


def range_of_matrix(
    matrix: Matrix, family: str, shift: ArrayLike, n_threads: int | None, limits: FloatArray | None = None
) -> Range:
    """Compute the ranges of the columns of a matrix; see `range_of`.

    A censored cell counts as a value at the first end of its interval: its limit, or the lower end if both ends are
    finite. A finite second end widens the range.

    Parameters
    ----------
    matrix : Matrix
        The rows, with their weights and the intervals of censored cells.
    family, shift, n_threads
        As in `range_of`.
    limits : (2, p) ndarray, optional
        The detection limits of the columns.
    """
    moved = given_shift(shift, family, matrix.values.shape[1], matrix.names)
    threads = thread_count(n_threads)
    if matrix.ends is None:
        table = range_matrix(shift_and_scale(matrix.values, moved), FAMILIES[family], matrix.weight, threads)
    else:
        cells = standard_ends(matrix, FAMILIES[family], moved)
        table = range_matrix(cells.values, FAMILIES[family], matrix.weight, threads)
        low, high = end_range(cells)
        table[:, kernels.R_MIN] = np.minimum(table[:, kernels.R_MIN], low)
        table[:, kernels.R_MAX] = np.maximum(table[:, kernels.R_MAX], high)
    outside = np.flatnonzero(table[:, kernels.R_COUNT] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.labels or matrix.names, matrix.weight, moved[j])
    return Range(family, table, matrix.names, matrix.was_vector, moved, matrix.labels, limits)


def summarize_chunk(
    chunk: object,
    grid: Grid,
    *,
    sample_weight: ArrayLike | str | None = None,
    below: object = None,
    above: object = None,
    between: tuple[object, object] | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Sketch:
    """Compute the power sums of a chunk on the grid of all chunks: the second of two passes over the data.

    Parameters
    ----------
    chunk : (n, p) or (n,) array-like
        Some of the rows, or none.
    grid : Grid
        The grid made from the merged ranges of all chunks.
    sample_weight : (n,) array-like, or str, optional
        Weights as for `range_of`.
    below, above, between : optional
        Censored cells of the chunk, as for `range_of`. Detection limits are those of the grid.
    column_names : sequence of str, optional
        Names of the columns in results. The columns may be in any order: they are matched by labels if both chunk and
        grid have labels, otherwise by names.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results are bit-identical for any number.

    Returns
    -------
    Sketch

    Raises
    ------
    ValueError
        If a value lies outside the range of the grid, or the columns are not those of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sketch import finish, merge, range_of, summarize_chunk
    >>> x = np.random.default_rng(0).lognormal(size=1000)
    >>> grid = range_of(x, "box-cox").grid()
    >>> halves = summarize_chunk(x[:500], grid), summarize_chunk(x[500:], grid)
    >>> merge(*halves) == merge(*halves[::-1])
    True
    """
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, made by range_of(...).grid(), got {type(grid).__name__}")
    matrix = _read_like(grid, chunk, sample_weight, column_names, Marks(below, above, between))
    return sketch_matrix(matrix, grid, n_threads)


def _read_like(
    grid: Grid, chunk: object, sample_weight: Any, column_names: Sequence[str] | None, marks: Marks
) -> Matrix:
    """Read a chunk with its censored cells, and sort its columns in the order of a grid.

    Parameters
    ----------
    grid : Grid
        The grid.
    chunk, sample_weight, column_names
        As in `summarize_chunk`.
    marks : Marks
        Marks of the censored cells.

    Raises
    ------
    ValueError
        If the columns are not those of the grid.
    """
    chunk, marks = without_flags(chunk, marks)
    matrix = read_chunk(chunk, sample_weight, column_names)
    by_label = grid.labels is not None and matrix.labels is not None
    names, own = (grid.labels, matrix.labels) if by_label else (grid.column_names, matrix.names)
    if own is None or names is None or set(own) != set(names):
        check_n_features(matrix.values, grid.n_features, own, names)
    order = None
    if grid.n_features > 1:  # a single column may have any name
        order = merging_order(grid._naming, ColumnNames(matrix.names, matrix.labels))
    limits = grid.limits
    if order is not None:
        limits = np.empty_like(limits)
        limits[:, order] = grid.limits
    matrix = with_censored(matrix, chunk, marks, limits)
    if order is None:
        return matrix
    ends = None if matrix.ends is None else matrix.ends[:, order]
    return matrix._replace(values=matrix.values[:, order], ends=ends)


def sketch_matrix(matrix: Matrix, grid: Grid, n_threads: int | None) -> Sketch:
    """Compute the power sums of a matrix whose columns are in the order of the grid; see `summarize_chunk`."""
    threads = thread_count(n_threads)
    names = grid.column_names or matrix.names  # the columns of the matrix are in the order of the grid
    intervals, is_inside = None, np.ones(grid.n_features, dtype=bool)
    if matrix.ends is None:
        values = shift_and_scale(matrix.values, grid.shift)
    else:
        cells = standard_ends(matrix, FAMILIES[grid.family], grid.shift)._replace(names=names)
        intervals, values = count_intervals(cells, grid.quantum), values_of(cells).values
        is_inside = intervals.are_within(grid._table[:, G_MIN], grid._table[:, G_MAX])
    found = power_sums.sketch_matrix(values, FAMILIES[grid.family], grid._table.copy(), matrix.weight, threads)
    is_inside &= found.inside > 0
    if not is_inside.all():
        j = int(np.argmin(is_inside))
        reason = (
            f"the chunk has values beyond those the grid was made for, {grid.x_min[j]} to {grid.x_max[j]}; make the "
            "grid from the merged ranges of all chunks"
        )
        raise column_error(j, names, reason)
    if not (room := found.has_room()).all():
        j = int(np.argmin(room))
        reason = (
            "the chunk has more rows, or more total weight, than the grid was made for; make the grid from the merged "
            "ranges of all chunks"
        )
        raise column_error(j, names, reason)
    if intervals is None:
        extremes = _extremes_of_one_bin(matrix, grid, found.totals[:, 0])
        intervals = CountedIntervals.without_cells(extremes)
    return Sketch(grid, found.totals, found.roundings, intervals)


def _extremes_of_one_bin(matrix: Matrix, grid: Grid, counts: IntArray) -> FloatArray:
    """Return the extremes, (2, p), of columns that occupy at most one bin; -inf and inf for other columns.

    The extremes show whether such a column has a single value. If it does, and is later merged with censored cells, it
    is fitted by another method.

    Parameters
    ----------
    matrix : Matrix
        The rows.
    grid : Grid
        The grid on which they are summarised.
    counts : (bins of all columns,) ndarray of int
        The weights of the bins.
    """
    occupied = np.append(0, np.cumsum(counts > 0))
    extremes, weight = no_limits(grid.n_features), matrix.weight
    for j in np.flatnonzero(np.diff(occupied[grid._starts]) <= 1):
        own = matrix.values[:, j] + grid.shift[j]
        own = own[~np.isnan(own)] if weight is None else own[~np.isnan(own) & (weight > 0.0)]
        extremes[:, j] = own.min(initial=np.inf), own.max(initial=-np.inf)
    return extremes


def extend(
    total: Sketch | None,
    chunk: object,
    family: str = "yeo-johnson",
    *,
    sample_weight: ArrayLike | str | None = None,
    shift: ArrayLike = 0.0,
    limits: Limits | None = None,
    below: object = None,
    above: object = None,
    between: tuple[object, object] | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Sketch:
    """Add a chunk to the sketch of a stream: data that are read once, and whose range is not known in advance.

    At first, the grid is as fine as 1024 bins per column allow. When the range of the data grows, neighboring bins are
    joined, which is exact for power sums.

    Parameters
    ----------
    total : Sketch or None
        The sketch of all earlier chunks, as returned by this function; None for the first chunk. It is not modified.
    chunk : (n, p) or (n,) array-like
        The next rows.
    family, sample_weight, shift, limits, below, above, between, column_names, n_threads
        As for `range_of`. `family`, `shift`, `limits` and `column_names` are used for the first chunk only. Later data
        frames must have the labels of the first one, in any order.

    Returns
    -------
    Sketch

    Examples
    --------
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import extend, finish
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> total = None
    >>> for chunk in np.array_split(X, 10):
    ...     total = extend(total, chunk)
    >>> bool(np.allclose(finish(total).lmbda, pk.fit(X).lmbda, rtol=0, atol=1e-10))
    True
    """
    if not (total is None or isinstance(total, Sketch)):
        raise TypeError(f"extend takes a Sketch (or None to begin), got {type(total).__name__}")
    as_choice("family", family, FAMILIES)
    marks = Marks(below, above, between)
    if total is None:
        chunk, marks = without_flags(chunk, marks)
        matrix = read_chunk(chunk, sample_weight, column_names)
        ends = _checked_limits(limits, matrix)
        matrix = with_censored(matrix, chunk, marks, ends)
        found = range_of_matrix(matrix, family, shift, n_threads, ends)
        return sketch_matrix(matrix, found._stream_grid(), n_threads)
    own = total.grid
    matrix = _read_like(own, chunk, sample_weight, column_names, marks)
    found = range_of_matrix(matrix._replace(names=own.column_names), own.family, own.shift, n_threads, own.limits)
    grid = own._grow(found._stream_grid(), total.n_obs + found.n_obs)
    return total._on_grid(grid)._merge(sketch_matrix(matrix, grid, n_threads))


def finish(
    total: Sketch,
    *,
    standardize: bool = True,
    lmbda: ArrayLike | None = None,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    n_threads: int | None = None,
) -> PowerFit:
    """Fit every column of a sketch by maximum likelihood.

    The power sums of each bin define a Gauss rule. Its nodes and weights are fitted as `powerkern.fit` fits weighted
    values, with the same certificate. The result has everything that a fit of the rows has, including `profile` and
    `confint`, without the data.

    Parameters
    ----------
    total : Sketch
        The sketch of all rows.
    standardize : bool, default True
        Whether `transform` returns values with mean 0 and standard deviation 1 (divisor n).
    lmbda : float or (p,) array-like, optional
        Use these lambdas instead of fitted ones; NaN entries are fitted.
    ymax : float, optional
        Bound on the transformed values before standardizing, as for `powerkern.fit`.
    bounds : (low, high), optional
        Bounds of lambda, as for `powerkern.fit`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    PowerFit
        The status is `Status.UNRESOLVED` if the error of lambda may exceed ``1e-11 max(1, |lambda|)``. The bound
        includes the errors of the Gauss rules and of rounding in the bins. Sketch such columns again, on
        ``grid.refined(columns)``.

    Warns
    -----
    UserWarning
        One warning that lists columns with the status above, columns whose likelihood has no maximum, and columns
        whose transformed values overflow, before standardizing, at a given lambda.

    Notes
    -----
    At lambdas far outside the interval of `confint`, the error of `profile` may grow to about 1e-8 per observation. If
    that matters, make the grid by ``grid(largest_exponent=...)``.

    Robust fits need order statistics, which power sums do not provide. Use `fit_chunks`, which makes more passes. For a
    stream, fit some 10 000 rows drawn at random: lambda then differs from the fit of all rows by about its standard
    error at 10 000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import finish, range_of, summarize_chunk
    >>> x = np.random.default_rng(0).lognormal(size=1000)
    >>> fit = finish(summarize_chunk(x, range_of(x, "box-cox").grid()))
    >>> bool(abs(fit.lmbda[0] - pk.fit(x, "box-cox").lmbda[0]) < 1e-12)
    True
    """
    if not isinstance(total, Sketch):
        raise TypeError(f"finish takes a Sketch, got {type(total).__name__}")
    grid = total.grid
    has_limits = bool(np.isfinite(grid.limits).any())
    spec = FitSpec.checked(
        family=grid.family,
        standardize=standardize,
        lmbda=lmbda,
        shift=grid.shift,
        ymax=ymax,
        bounds=bounds,
        limits=tuple(grid.limits) if has_limits else None,
        censored=has_limits or total._intervals.counts.size > 0,
    )
    found = finish_results(total, spec, thread_count(n_threads))
    labels = ColumnLabels(grid.column_names, was_vector=grid._was_vector)
    table = ColumnTable(found.results, grid.family, lmbda_error=found.error, censored=found.censored)
    return build_power_fit(spec.match_columns(grid.n_features, grid.column_names)[0], labels, table, found.sums)


class FinishedSums(NamedTuple):
    """The fit of a sketch, before a `PowerFit` is built from it.

    Attributes
    ----------
    results : (p, N_RESULTS) ndarray
        Results, see `kernels.results`.
    sums : PowerSums or MixedSums
        The sums that the likelihood needs.
    censored : ndarray or None
        Results on censored cells; None if there are none.
    error : (p,) ndarray or None
        Bounds on the error of lambda; None if there are no censored cells.
    """

    results: FloatArray
    sums: power_sums.PowerSums | power_sums.MixedSums
    censored: FloatArray | None
    error: FloatArray | None


def finish_results(total: Sketch, spec: FitSpec, n_threads: int) -> FinishedSums:
    """Fit a sketch as `spec` requires, on at most `n_threads` threads, without emitting warnings."""
    grid, sums = total.grid, total._power_sums()
    given, _, limit = spec.per_column(grid.n_features, grid.column_names)
    results, censored, error = sums.fit_censored(given, n_threads)

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        taken = given.copy()
        taken[at] = bounded
        moved, counted, _ = sums.fit_censored(taken, n_threads)
        censored[at], error[at] = counted[at], 0.0
        return moved[at]

    apply_limit(refit, FAMILIES[grid.family], results, grid.column_names, limit, given)
    convert_to_data_units(results, grid.shift)
    if not spec.censored:
        return FinishedSums(results, sums, None, None)
    error[np.diff(total._intervals.starts) == 0] = 0.0  # fits without limits report no error
    return FinishedSums(results, sums, censored, error)
