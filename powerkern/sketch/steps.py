"""The steps of a fit from chunks: their ranges, their sketches, and the fit of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix, as_choice, check_n_features, column_label
from powerkern._input.reading import read_chunk
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.power_fit import PowerFit, build_power_fit
from powerkern._typing import Bounds, FloatArray
from powerkern.kernels.power_sums import ranges as kernels
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.sketches import Sketch


def range_of(
    chunk: object,
    family: str = "yeo-johnson",
    *,
    sample_weight: ArrayLike | str | None = None,
    shift: ArrayLike = 0.0,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Range:
    """Compute the ranges of the columns of some rows: the first of two passes.

    Parameters
    ----------
    chunk : (n, p) or (n,) array-like
        Some of the rows, as for `powerkern.fit`, or none. NaN is missing.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform that is to be fitted.
    sample_weight : (n,) array-like, or str, optional
        Non-negative weights of the rows, or the name of the column of a data frame that holds them.
    shift : float or (p,) array-like, default 0
        Box-Cox only: ``x + shift`` is transformed.
    column_names : sequence of str, optional
        Names of the columns in results; default: the labels of a data frame. `merge` aligns labelled columns by their
        labels, whatever their names.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    Range

    Raises
    ------
    TypeError, ValueError
        As `powerkern.fit`; rows are counted from the start of the chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sketch import merge, range_of
    >>> merge(range_of(np.arange(5.0)), range_of(np.arange(3.0, 9.0))).x_max
    array([8.])
    """
    as_choice("family", family, FAMILIES)
    return range_of_matrix(read_chunk(chunk, sample_weight, column_names), family, shift, n_threads)


def range_of_matrix(matrix: Matrix, family: str, shift: ArrayLike, n_threads: int | None) -> Range:
    """Compute the ranges of rows that have been read; see `range_of`.

    Parameters
    ----------
    matrix : Matrix
        The rows, with their weights.
    family, shift, n_threads
        As in `range_of`.
    """
    moved = given_shift(shift, family, matrix.values.shape[1], matrix.names)
    values, threads = shift_and_scale(matrix.values, moved), thread_count(n_threads)
    table = range_matrix(values, FAMILIES[family], matrix.weight, threads)
    outside = np.flatnonzero(table[:, kernels.R_COUNT] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.labels or matrix.names, matrix.weight, moved[j])
    return Range(family, table, matrix.names, matrix.was_vector, moved, matrix.labels)


def summarize_chunk(
    chunk: object,
    grid: Grid,
    *,
    sample_weight: ArrayLike | str | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Sketch:
    """Compute the power sums of some rows on a grid that was made for all rows: the second of two passes.

    Parameters
    ----------
    chunk : (n, p) or (n,) array-like
        Some of the rows whose range the grid was made for.
    grid : Grid
        From the merged ranges of all chunks; every chunk uses the same grid.
    sample_weight : (n,) array-like, or str, optional
        Weights as for `range_of`.
    column_names : sequence of str, optional
        Names of the columns in results. Columns are matched by labels if chunk and grid have labels, else by names. The
        columns may be in any order.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. The sums do not depend on it, bit for bit.

    Returns
    -------
    Sketch

    Raises
    ------
    ValueError
        If a value lies beyond the range of the grid, or the columns are not those of the grid.

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
    return sketch_of_matrix(_read_like(grid, chunk, sample_weight, column_names), grid, n_threads)


def _read_like(grid: Grid, chunk: object, sample_weight: Any, column_names: Sequence[str] | None) -> Matrix:
    """Read a chunk, with its columns in the order of a grid.

    Parameters
    ----------
    grid : Grid
        The grid.
    chunk, sample_weight, column_names
        As in `summarize_chunk`.

    Raises
    ------
    ValueError
        If the columns are not those of the grid.
    """
    matrix = read_chunk(chunk, sample_weight, column_names)
    by_label = grid.labels is not None and matrix.labels is not None
    names, own = (grid.labels, matrix.labels) if by_label else (grid.column_names, matrix.names)
    if own is None or names is None or set(own) != set(names):
        check_n_features(matrix.values, grid.n_features, own, names)
    if grid.n_features == 1:  # it may have any name
        return matrix
    order = merging_order(grid.naming, ColumnNames(matrix.names, matrix.labels))
    return matrix if order is None else matrix._replace(values=matrix.values[:, order])


def sketch_of_matrix(matrix: Matrix, grid: Grid, n_threads: int | None) -> Sketch:
    """Compute the power sums of rows that have been read and have the columns of the grid; see `summarize_chunk`."""
    values, threads = shift_and_scale(matrix.values, grid.shift), thread_count(n_threads)
    names = grid.column_names or matrix.names  # of the grid: the columns of the matrix are in its order
    found = power_sums.sketch_matrix(values, FAMILIES[grid.family], grid.table.copy(), matrix.weight, threads)
    if not found.inside.all():
        j = int(np.argmin(found.inside))
        raise ValueError(
            f"{column_label(j, names)}: the chunk has values beyond those the grid was made for, "
            f"{grid.x_min[j]} to {grid.x_max[j]}; make the grid from the merged ranges of all chunks"
        )
    if not (room := found.has_room()).all():
        j = int(np.argmin(room))
        raise ValueError(
            f"{column_label(j, names)}: the chunk has more rows, or weight, than the grid was made for; "
            "make it from the merged ranges of all chunks"
        )
    return Sketch(grid, found.totals, found.roundings)


def extend(
    total: Sketch | None,
    chunk: object,
    family: str = "yeo-johnson",
    *,
    sample_weight: ArrayLike | str | None = None,
    shift: ArrayLike = 0.0,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Sketch:
    """Add a chunk to the sketch of a stream, for data that are read once and whose range is not known in advance.

    The grid starts as fine as 1024 bins per column allow. When the range of the data grows, neighboring bins are
    joined, which is exact for power sums.

    Parameters
    ----------
    total : Sketch or None
        The stream so far, as returned by this function; None to begin. It is not changed.
    chunk : (n, p) or (n,) array-like
        The next rows.
    family, sample_weight, shift, column_names, n_threads
        As for `range_of`; `family`, `shift` and `column_names` of the first chunk count. Later data frames must have
        the labels of the first one, in any order.

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
    if total is None:
        matrix = read_chunk(chunk, sample_weight, column_names)
        found = range_of_matrix(matrix, family, shift, n_threads)
        return sketch_of_matrix(matrix, found.stream_grid(), n_threads)
    own = total.grid
    matrix = _read_like(own, chunk, sample_weight, column_names)
    found = range_of_matrix(matrix._replace(names=own.column_names), own.family, own.shift, n_threads)
    grid = own.grown(found.stream_grid(), total.n_obs + found.n_obs)
    return total.on(grid).merged(sketch_of_matrix(matrix, grid, n_threads))


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

    Each bin's power sums become the nodes and weights of a Gauss rule, and these are fitted as `powerkern.fit` fits
    weighted values, with the same certificate. The result has everything that a fit of the rows has, `profile` and
    `confint` included, without the data.

    Parameters
    ----------
    total : Sketch
        Of all rows.
    standardize : bool, default True
        Let the fit's `transform` return values with mean 0 and standard deviation 1 (1/n).
    lmbda : float or (p,) array-like, optional
        Take these lambdas instead of fitting; NaN entries are fitted.
    ymax : float, optional
        Bound on the raw transformed values, as for `powerkern.fit`.
    bounds : (low, high), optional
        Bounds of lambda, as for `powerkern.fit`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    PowerFit
        `Status.UNRESOLVED` marks columns for which the bound of the error of lambda, from the rules and from rounding
        in the bins, exceeds ``1e-11 max(1, |lambda|)``: sketch these columns on ``grid.refined(columns)``.

    Warns
    -----
    UserWarning
        Once, listing columns that were not resolved or have no maximum; and those whose raw values
        overflow at a given lambda.

    Notes
    -----
    `profile` at lambdas far outside the interval of `confint` loses digits, down to about 1e-8 per observation;
    make the grid for them by ``grid(largest_exponent=...)`` where that matters.

    Robust fits need order statistics, which power sums do not hold: use `fit_chunks`, which makes more passes.
    For a stream, fit some 10 000 rows drawn at random: lambda differs from the fit of all rows by about its standard
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
    spec = FitSpec.checked(
        family=grid.family, standardize=standardize, lmbda=lmbda, shift=grid.shift, ymax=ymax, bounds=bounds
    )
    results, sums = finish_results(total, spec, thread_count(n_threads))
    labels = ColumnLabels(grid.column_names, was_vector=grid.was_vector)
    return build_power_fit(
        spec.resolved(grid.n_features, grid.column_names)[0], labels, ColumnTable(results, grid.family), sums
    )


def finish_results(total: Sketch, spec: FitSpec, n_threads: int) -> tuple[FloatArray, power_sums.PowerSums]:
    """Return the results (one row per column) and power sums from which `finish` builds its fit; give no warnings."""
    grid, sums = total.grid, total.power_sums()
    given, _, limit = spec.per_column(grid.n_features, grid.column_names)
    results, _ = sums.fit(given, n_threads)

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        taken = given.copy()
        taken[at] = bounded
        return sums.fit(taken, n_threads)[0][at]

    apply_limit(refit, FAMILIES[grid.family], results, grid.column_names, limit, given)
    convert_to_data_units(results, grid.shift)
    return results, sums
