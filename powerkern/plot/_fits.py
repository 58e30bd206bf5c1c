"""Fits and their columns: what pictures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from powerkern._input.alignment import are_default
from powerkern._input.arrays import Matrix, column_label, listed, position_of
from powerkern._input.messages import shown
from powerkern._input.reading import read_fitted
from powerkern._results.power_fit import PowerFit
from powerkern._typing import BoolArray, FloatArray
from powerkern.joint import JointFit
from powerkern.regression import RegressionFit


def check_fit(X: object, fit: object, *kinds: type) -> None:
    """Raise a TypeError unless the second argument is a fit of one of these kinds."""
    if isinstance(fit, kinds):
        return
    *first, last = (f"a {kind.__name__}" for kind in kinds)
    wanted = f"{', '.join(first)} or {last}" if first else last
    swapped = "; the data come first, the fit second" if isinstance(X, kinds) else ""
    raise TypeError(f"fit must be {wanted}, got {type(fit).__name__}{swapped}")


def column_transforms(X: object, fit: PowerFit | JointFit) -> PowerFit:
    """The transforms of single columns, of a fit that has them."""
    check_fit(X, fit, PowerFit, JointFit)
    return fit.power_fit if isinstance(fit, JointFit) else fit


def fit_arguments(X: object, fit: PowerFit | RegressionFit | JointFit) -> tuple[tuple[Any, ...], PowerFit]:
    """Arguments for methods of a fit that may need its data again, and the transforms of its single columns."""
    if isinstance(fit, RegressionFit):
        if X is not None:
            raise ValueError("X must be None for a RegressionFit, which keeps its own data")
        return (), fit.power_fit
    power = column_transforms(X, fit)
    return ((None if X is None else read_columns(X, power).values),), power


class NoValuesError(ValueError):
    """A column has no values to draw."""


class Column(NamedTuple):
    """The observed values of one column, before and after its transform."""

    label: str
    lmbda: float
    #: Less their mean and divided by their standard deviation.
    before: FloatArray
    #: Standardized by the fit, or like `before` if it does not standardize.
    after: FloatArray
    #: The values that the fit kept.
    kept: BoolArray


def select_column(X: object, fit: PowerFit | JointFit, column: int | str) -> Column:
    """One column, by position or by name, of the data and of the fit."""
    fit = column_transforms(X, fit)
    matrix = read_columns(X, fit)
    return read_column(matrix, fit, find_column(column, matrix, fit))


def read_column(matrix: Matrix, fit: PowerFit, j: int) -> Column:
    """Column j of the data and of the fit."""
    names = matrix.names or fit.column_names
    values, part = matrix.values[:, j : j + 1], fit._take(slice(j, j + 1))
    before = values[:, 0].astype(np.float64)
    known = ~np.isnan(before)
    if not known.any():
        raise NoValuesError(f"{column_label(j, names)} has no values; there is nothing to draw")
    after = part.transform(values)[known, 0].astype(np.float64)
    return Column(
        label=title_label(j, names),
        lmbda=float(fit.lmbda[j]),
        before=standardize_values(before[known]),
        after=after if fit.standardize else standardize_values(after),
        kept=part.weights(values)[known, 0] > 0.0,
    )


def title_label(j: int, names: Sequence[Any] | None) -> str:
    """Name of a column in titles."""
    return f"column {j}" if names is None or are_default(names) else str(names[j])


def row_names(X: Any) -> list[str] | None:
    """The index of a pandas data frame, unless it only counts."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "is_unique") or type(index).__name__ == "RangeIndex":
        return None
    return list(map(str, index))


def standardize_values(values: FloatArray) -> FloatArray:
    """Less their mean, divided by their standard deviation unless that is 0."""
    largest = np.abs(values).max(initial=0.0)
    scaled = values / np.ldexp(0.5, np.frexp(largest)[1])  # squares near the largest number would overflow
    result: FloatArray = (scaled - scaled.mean()) / (scaled.std() or 1.0)
    return result


def read_columns(X: object, fit: PowerFit) -> Matrix:
    """X, checked to have the columns of the fit."""
    return read_fitted(X, fit.column_names, fit.n_features)


def find_column(column: int | str, matrix: Matrix | None, fit: PowerFit) -> int:
    """Position of a column."""
    return position_of(column, (matrix.names if matrix is not None else None) or fit.column_names, fit.n_features)


def find_columns(columns: Sequence[int | str] | None, matrix: Matrix | None, fit: PowerFit) -> list[int]:
    """Positions of columns; all by default."""
    if columns is None:
        return list(range(fit.n_features))
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a sequence of positions or names, got {shown(columns)}")
    chosen = [find_column(column, matrix, fit) for column in listed(columns)]
    if not chosen:
        raise ValueError("columns is empty; leave it out to draw all of them")
    return chosen
