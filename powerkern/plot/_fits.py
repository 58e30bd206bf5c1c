"""Read the data and the fits for plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._fit.fit import fit as pk_fit
from powerkern._input.alignment import are_default
from powerkern._input.arrays import Matrix, column_label, position_of, to_list
from powerkern._input.censoring import Marks
from powerkern._input.infinite import without_infinite
from powerkern._input.messages import muted, shown
from powerkern._input.reading import read_fitted
from powerkern._results.power_fit import PowerFit
from powerkern._typing import BoolArray, FloatArray, Limits
from powerkern.joint import JointFit
from powerkern.plot._censored_positions import censored_positions
from powerkern.regression import RegressionFit


def check_fit(X: object, fit: object, *kinds: type) -> None:
    """Raise a TypeError unless `fit` is of one of the types `kinds`; the message says if `fit` and `X` were swapped."""
    if isinstance(fit, kinds):
        return
    *first, last = (f"a {kind.__name__}" for kind in kinds)
    wanted = f"{', '.join(first)} or {last}" if first else last
    swapped = "; the data come first, the fit second" if isinstance(X, kinds) else ""
    raise TypeError(f"fit must be {wanted}, got {type(fit).__name__}{swapped}")


def column_transforms(X: object, fit: PowerFit | JointFit) -> PowerFit:
    """Return the `PowerFit` of the columns; raise a TypeError if `fit` is of another type."""
    check_fit(X, fit, PowerFit, JointFit)
    return fit.power_fit if isinstance(fit, JointFit) else fit


def fit_arguments(X: object, fit: PowerFit | RegressionFit | JointFit) -> tuple[tuple[Any, ...], PowerFit]:
    """Return the positional arguments (the data, if needed) for methods of `fit`, and the `PowerFit` of its columns."""
    if isinstance(fit, RegressionFit):
        if X is not None:
            raise ValueError("X must be None for a RegressionFit, which keeps its own data")
        return (), fit.power_fit
    power = column_transforms(X, fit)
    return ((None if X is None else read_columns(X, power).values),), power


class NoValuesError(ValueError):
    """Error for a column without values to draw."""


class PlotColumn(NamedTuple):
    """Observed values of one column, before and after its transform."""

    label: str
    lmbda: float
    #: Values before the transform, standardized by their mean and standard deviation.
    before: FloatArray
    #: Values after the transform, standardized by the fit or, if it does not standardize, like `before`.
    after: FloatArray
    #: Mask of the values that the fit kept.
    kept: BoolArray
    #: Plotting positions of the observed values if other values are censored; None if no value is censored.
    positions: FloatArray | None = None
    #: Number of censored values, which are only known to lie beyond a limit.
    n_censored: int = 0


class CensoringMarks(NamedTuple):
    """The arguments of a plot that mark censored cells; see the arguments of the same names of `powerkern.fit`."""

    below: object = None
    above: object = None
    limits: Limits | None = None


def select_column(X: object, fit: PowerFit | JointFit, column: int | str, marks: CensoringMarks) -> PlotColumn:
    """Return one column of the data, before and after its transform.

    Parameters
    ----------
    X : array-like or data frame
        The data.
    fit : PowerFit or JointFit
        The fit.
    column : int or str
        The column, by position or by name.
    marks : CensoringMarks
        The marks of censored cells.
    """
    fit = column_transforms(X, fit)
    matrix = read_marked_columns(X, fit, marks)
    return read_column(matrix, fit, find_column(column, matrix, fit))


def read_column(matrix: Matrix, fit: PowerFit, j: int) -> PlotColumn:
    """Return column `j` of `matrix` before and after its transform; raise a NoValuesError if it has no values."""
    names = matrix.names or fit.column_names
    values, part = matrix.values[:, j : j + 1], fit._take(slice(j, j + 1))
    if matrix.ends is None and part.n_censored[0]:
        raise ValueError(
            f"{column_label(j, names)} has censored cells in the fit; pass below=, above= or limits= as to the fit "
            "(cells between two numbers have no plotting positions)"
        )
    before = values[:, 0].astype(np.float64)
    is_censored = np.zeros(before.shape, bool) if matrix.ends is None else ~np.isnan(matrix.ends[:, j])
    known = ~np.isnan(before) & ~is_censored
    if not known.any():
        raise NoValuesError(f"{column_label(j, names)} has no values; there is nothing to draw")
    if is_censored.any():
        assert matrix.ends is not None
        return _read_censored_column(values, matrix.ends[:, j], part, column_label(j, names), title_label(j, names))
    after = part.transform(values)[known, 0].astype(np.float64)
    return PlotColumn(
        label=title_label(j, names),
        lmbda=float(fit.lmbda[j]),
        before=standardize_values(before[known]),
        after=after if fit.standardize else standardize_values(after),
        kept=part.weights(values)[known, 0] > 0.0,
    )


def _read_censored_column(values: NDArray[Any], ends: FloatArray, part: PowerFit, label: str, title: str) -> PlotColumn:
    """Return the observed values of a column with censored cells, and the plotting positions of these values.

    Values before the transform are standardized by the maximum likelihood estimates of mean and standard deviation of a
    censored normal sample.

    Parameters
    ----------
    values : (n, 1) ndarray
        The column; censored values are replaced by their limits.
    ends : (n,) ndarray
        -inf where the value lies below its limit, inf where the value lies above its limit, otherwise NaN.
    part : PowerFit
        The fit of the column.
    label, title : str
        Names of the column for messages and for titles.
    """
    is_below, is_above = ends == -np.inf, ends == np.inf
    if is_below.any() and is_above.any():
        raise ValueError(
            f"{label} has values below limits and values above limits; a QQ plot takes limits on one side only"
        )
    x = values[:, 0].astype(np.float64)
    known = ~np.isnan(x)
    x, is_below, is_above = x[known], is_below[known], is_above[known]
    observed = ~(is_below | is_above)
    positions = 1.0 - censored_positions(-x, is_above) if is_above.any() else censored_positions(x, is_below)
    with muted():
        untransformed = pk_fit(x, part.families[0], lmbda=1.0, shift=part.shift[0], below=is_below, above=is_above)
    after = part._with_spec(standardize=True).transform(x[:, np.newaxis])[observed, 0]
    return PlotColumn(
        label=title,
        lmbda=float(part.lmbda[0]),
        before=untransformed.transform(x)[observed],
        after=after,
        kept=np.ones(after.size, dtype=bool),
        positions=positions,
        n_censored=int(np.count_nonzero(~observed)),
    )


def title_label(j: int, names: Sequence[Any] | None) -> str:
    """Return the name of the column at position `j` for titles; `names` holds the labels of all columns."""
    return f"column {j}" if names is None or are_default(names) else str(names[j])


def row_names(X: Any) -> list[str] | None:
    """Return the index of a pandas data frame as strings; None if it only counts rows, or if `X` has no index."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "is_unique") or type(index).__name__ == "RangeIndex":
        return None
    return list(map(str, index))


def standardize_values(values: FloatArray) -> FloatArray:
    """Subtract the mean from values, and divide by their standard deviation unless it is 0."""
    largest = np.abs(values).max(initial=0.0)
    scaled = values / np.ldexp(0.5, np.frexp(largest)[1])  # squares near the largest number would overflow
    result: FloatArray = (scaled - scaled.mean()) / (scaled.std() or 1.0)
    return result


def read_columns(X: object, fit: PowerFit) -> Matrix:
    """Read the fitted columns of `X`; raise an error if it does not have them."""
    matrix = read_fitted(X, fit.column_names, fit.n_features)
    return without_infinite(matrix, fit._spec.infinite, warns=False)


def read_marked_columns(X: object, fit: PowerFit, marks: CensoringMarks) -> Matrix:
    """Read `X` like `read_columns`, with the marks of censored cells; by default, limits are the limits of the fit."""
    if fit._spec.limits is None and all(mark is None for mark in marks):
        return read_columns(X, fit)
    matrix = fit._read_marked(X, Marks(marks.below, marks.above), marks.limits)
    return without_infinite(matrix, fit._spec.infinite, warns=False)


def find_column(column: int | str, matrix: Matrix | None, fit: PowerFit) -> int:
    """Return the position of a column given by position or by name in `matrix` or `fit`; raise if it does not exist."""
    return position_of(column, (matrix.names if matrix is not None else None) or fit.column_names, fit.n_features)


def find_columns(columns: Sequence[int | str] | None, matrix: Matrix | None, fit: PowerFit) -> list[int]:
    """Return the positions of columns given by position or by name in `matrix` or `fit`; None selects all columns."""
    if columns is None:
        return list(range(fit.n_features))
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a sequence of positions or names, got {shown(columns)}")
    chosen = [find_column(column, matrix, fit) for column in to_list(columns)]
    if not chosen:
        raise ValueError("columns is empty; leave it out to draw all of them")
    return chosen
