"""Select the columns of a table to transform, and a base class for transformers of selected columns."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from powerkern._input.arrays import check_n_features, filled, position_of, to_list
from powerkern._input.foreign import refuse_foreign
from powerkern._input.frames import names_of, replace_columns, select
from powerkern._input.messages import shown
from powerkern._input.wrapping import loaded
from powerkern.sklearn.reading import FloatTransformer, feature_names, note_features, read


def is_frame(X: Any) -> bool:
    """Return whether `X` is a data frame of any library."""
    return names_of(X) is not None


def as_table(X: Any) -> Any:
    """Return a data frame unchanged; convert anything else to an array, with NaN for masked entries."""
    refuse_foreign(X)
    X = filled(loaded(X))
    return X if is_frame(X) else np.asarray(X)


class SelectedColumns(NamedTuple):
    """A table, `whole` (array or data frame), and the positions `chosen` of the columns to transform."""

    whole: Any
    chosen: NDArray[np.intp]

    @property
    def part(self) -> Any:
        """The chosen columns."""
        return select(self.whole, None, self.chosen) if is_frame(self.whole) else self.whole[:, self.chosen]

    @property
    def takes_all(self) -> bool:
        """True if all columns are chosen."""
        return bool(self.chosen.size == self.whole.shape[1])

    def rows(self, at: NDArray[np.intp]) -> SelectedColumns:
        """Return the table with only the rows at positions `at`."""
        columns = np.arange(self.whole.shape[1])
        return SelectedColumns(select(self.whole, at, columns) if is_frame(self.whole) else self.whole[at], self.chosen)

    def with_values(self, values: NDArray[Any], copy: bool = True) -> Any:
        """Return the table with the chosen columns replaced by `values`.

        An array is converted to the type of `values`, unless it holds objects. With ``copy=False``, an array that
        already has this type is overwritten.
        """
        if is_frame(self.whole):
            part = self.whole if self.takes_all else self.part
            return replace_columns(self.whole, part, values)
        if self.takes_all and copy:
            return values
        in_place = not copy and self.whole.flags.writeable and self.whole.dtype == values.dtype
        result = self.whole if in_place else self.whole.astype(object if self.whole.dtype == object else values.dtype)
        result[:, self.chosen] = values
        return result


class PartTransformer(FloatTransformer):
    """Base class of transformers that transform only the columns in their parameter `variables`, if it is given."""

    variables: Any = None
    #: Positions of the transformed columns in ascending order, after fit; None for all columns.
    _chosen: Any = None

    def _read_part(self, X: Any, reset: bool = True, **options: Any) -> tuple[SelectedColumns, Any]:
        """Return the table, and the checked values of the columns to transform.

        If `reset`, these columns are determined by `variables`, otherwise by the fit. `options` are the options of
        `read`.
        """
        whole = as_table(X)
        if not is_frame(whole):
            check_array(whole, dtype=None, ensure_all_finite=False)  # checks that there are rows and columns
        note_features(self, X, reset)
        if reset:
            self._chosen = positions(self.variables, feature_names(self), self.n_features_in_)
        table = SelectedColumns(whole, self._chosen)
        return table, read(BaseEstimator(), table.part, **options)

    def _read_output(self, X: Any, **options: Any) -> tuple[SelectedColumns, Any]:
        """Read a table that `transform` returned; return the table, and the values of its transformed columns."""
        X = as_table(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must be a matrix of {self.n_features_in_} columns, got shape {tuple(X.shape)}")
        check_n_features(X, self.n_features_in_, None, None)
        table = SelectedColumns(X, self._chosen)
        return table, read(BaseEstimator(), table.part, **options)


def positions(variables: Sequence[Any] | None, names: Sequence[str] | None, p: int) -> NDArray[np.intp]:
    """Return the ascending positions of columns given by name, position or mask; None selects all p columns."""
    if variables is None:
        return np.arange(p)
    each = to_list(variables)
    is_mask = [isinstance(one, bool | np.bool_) for one in each]
    if all(is_mask):
        at = np.flatnonzero(each) if len(each) == p else np.empty(0, dtype=np.intp)
    else:
        wrong = [one for one, flag in zip(each, is_mask, strict=True) if flag or not isinstance(one, str | Integral)]
        if wrong:
            raise TypeError(f"variables must be names or positions of columns, got {shown(wrong[0])}")
        at = np.sort([position_of(one, names, p) for one in each])
    if at.size == 0 or np.unique(at).size < at.size:
        raise ValueError(f"variables must be one or more columns, each once, got {shown(variables)}")
    return at
