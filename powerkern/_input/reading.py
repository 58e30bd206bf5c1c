"""Reads what a fit is given, once: the numbers, the names of their columns, and the weights of their rows."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from powerkern._input import frames
from powerkern._input.arguments import weights_of
from powerkern._input.arrays import Matrix, as_matrix


def read(
    X: object,
    sample_weight: ArrayLike | str | None = None,
    *,
    column_names: Sequence[str] | None = None,
    non_numeric: frames.NonNumeric = "raise",
    fitted_names: list[str] | None = None,
) -> Matrix:
    """The columns of X that are to be fitted, as `as_matrix` reads them, with weights.

    Parameters
    ----------
    X : array_like or data frame
        What `as_matrix` reads.
    sample_weight : array_like or str, optional
        Weights, or the name of the column of a data frame that holds them.
    column_names : sequence of str, optional
        Names of the columns; by default those of the data frame.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        What to do with columns of a data frame that hold no numbers.
    fitted_names : list of str, optional
        The columns to take from a data frame that has all of them, in this order.
    """
    rows, weight = frames.without_weights(X, sample_weight)
    chosen = frames.chosen_positions(rows, non_numeric)
    if chosen is not None:
        rows = frames.taken(rows, None, chosen)
    matrix = as_matrix(frames.columns_named(rows, fitted_names), column_names)
    return matrix._replace(weight=weights_of(weight, len(matrix.values)))
