"""The read-only attributes of `GroupedFit`, and the fits of its single groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import FitSpec
from powerkern._input.arrays import column_label
from powerkern._input.frames import by_name
from powerkern._input.labels import Keys, Runs
from powerkern._input.messages import shown
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.display import SHOWN, html_page, label_cells
from powerkern._results.fitted_data import GroupedData
from powerkern._results.power_fit import PowerFit
from powerkern._results.stored_fit import StoredFit
from powerkern._status import is_failed
from powerkern._typing import FloatArray, IntArray

#: Number of groups that a message lists.
_LISTED = 5


class GroupAttributes(StoredFit, Mapping[Any, PowerFit]):
    """Base class of `GroupedFit` that holds its attributes, which the docstring of `GroupedFit` describes."""

    family: str
    estimator: Estimator
    standardize: bool
    group_names: list[str] | None
    n_features: int
    lmbda: FloatArray
    loc: FloatArray
    scale: FloatArray
    log_factor: FloatArray
    n_obs: FloatArray
    n_kept: FloatArray
    status: IntArray
    x_min: FloatArray
    x_max: FloatArray
    pooled: PowerFit | None
    unknown: str
    dropna: bool | None

    _spec: FitSpec
    _labels: ColumnLabels
    _keys: Keys
    _table: ColumnTable
    _data: GroupedData | None
    _runs: Runs | None

    def __init__(
        self,
        spec: FitSpec,
        labels: ColumnLabels,
        keys: Keys,
        table: ColumnTable,
        pooled: PowerFit | None = None,
        data: GroupedData | None = None,
        runs: Runs | None = None,
    ) -> None:
        """Make a fit from its parts.

        Parameters
        ----------
        spec : FitSpec
            The options of the fit.
        labels : ColumnLabels
            The labels of the columns.
        keys : Keys
            The labels of the groups.
        table : ColumnTable
            The results of all columns of the first group, then of the second, and so on.
        pooled : PowerFit, optional
            The fit of all rows.
        data : GroupedData, optional
            The fitted data of all groups.
        runs : Runs, optional
            The group codes of the rows of `data`.
        """

        def by_group(figures: NDArray[Any]) -> NDArray[Any]:
            return figures.reshape(len(keys), -1)

        vars(self).update(
            _spec=spec,
            _labels=labels,
            _keys=keys,
            _table=table,
            _data=data,
            _runs=runs,
            family=spec.family,
            estimator=spec.estimator,
            standardize=spec.standardize,
            column_names=labels.names,
            group_names=keys.names,
            n_features=len(table) // len(keys),
            lmbda=by_group(table.lmbda),
            loc=by_group(table.loc),
            scale=by_group(table.scale),
            log_factor=by_group(table.log_factor),
            n_obs=by_group(table.n_obs),
            n_kept=by_group(table.n_kept),
            status=by_group(table.status),
            x_min=by_group(table.x_min),
            x_max=by_group(table.x_max),
            pooled=pooled,
            unknown=spec.unknown,
            dropna=spec.dropna,
        )

    def __repr__(self) -> str:
        text = f"GroupedFit(family={self.family!r}, estimator={self.estimator!r}, {len(self)} groups"
        failed = np.count_nonzero(is_failed(self.status), axis=0)
        if self.n_features == 1:
            return f"{text}, {failed[0]} of them not fitted)" if failed.any() else f"{text})"
        at = np.flatnonzero(failed)
        names = self.column_names
        each = [f"{column_label(j, names)} not fitted in {failed[j]} of them" for j in at[:_LISTED].tolist()]
        rest = [f"{at.size - _LISTED} more columns not fitted in some of them"] if at.size > _LISTED else []
        return f"{', '.join([text, *each, *rest])})"

    def _repr_html_(self) -> str:
        """Return a table of lambda for the first groups and columns as HTML, for notebooks."""
        n, p = self.lmbda.shape
        columns = label_cells(self.column_names[:SHOWN] if self.column_names else range(min(p, SHOWN)))
        groups = label_cells(self._keys.labels(np.arange(min(n, SHOWN))))
        entries = [("lambda", groups), *zip(columns.tolist(), self.lmbda[:SHOWN].T, strict=False)]
        left = [f"{count - SHOWN} more {what}" for count, what in ((n, "groups"), (p, "columns")) if count > SHOWN]
        return html_page(
            repr(self), [entries], [f"... and {' and '.join(left)}: see lambdas, summary()"] if left else []
        )

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __getitem__(self, label: Any) -> PowerFit:
        """Return the fit of the group with this label, which is a tuple if groups have several keys."""
        try:
            cells = label if self._keys.several else (label,)
            if not isinstance(cells, tuple) or len(cells) != len(self._keys.categories):
                raise TypeError(f"a label must be a tuple of {len(self._keys.categories)} keys")
            columns = [[cell] for cell in cells]
            code = int(self._keys.codes_of(columns).codes[0])
        except (TypeError, ValueError) as error:
            raise KeyError(f"{shown(label)}: {error}") from None
        if code < 0:
            raise KeyError(f"{shown(label)} is not one of the {len(self)} groups of the fit")
        return self._fit_of_group(code)

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles contain no data
        return type(self), (self._spec, self._labels, self._keys, self._table, self.pooled)

    # `Mapping` would compare the fits of the groups, which are new objects at each access
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @cached_property
    def nll(self) -> FloatArray:
        """`nll` of each group and column, see `PowerFit`."""
        return self._table.nll.reshape(len(self), -1)

    @cached_property
    def information(self) -> FloatArray:
        """`information` of each group and column, see `PowerFit`."""
        return self._table.information.reshape(len(self), -1)

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups."""
        return self._keys.labels()

    @property
    def lambdas(self) -> Any:
        """`lmbda` as a pandas data frame by group and column label, if pandas is installed; otherwise the array.

        ``fit.lambdas[column]`` has a lambda for each group, and ``fit.lambdas.loc[group]`` has a lambda for each
        column.
        """
        try:
            import pandas as pd
        except ImportError:
            return self.lmbda
        columns = self._keys.columns()
        index = pd.MultiIndex.from_arrays(columns) if self._keys.several else pd.Index(columns[0])
        if self.group_names is not None:
            index = index.set_names(self.group_names)
        by_column = by_name(
            np.arange(self.n_features), self.column_names or range(self.n_features), self._labels.level_names
        )
        return pd.DataFrame(self.lmbda, index=index, columns=by_column.index)

    def without_data(self) -> Self:
        """Return a copy of the fit without its reference to the fitted data."""
        return type(self)(self._spec, self._labels, self._keys, self._table, self.pooled)

    # --- for other parts of the package -------------------------------------------------------------------

    def _fit_of_group(self, g: int) -> PowerFit:
        """Return the fit of the group with code `g`, including the rows of the group if the data are available."""
        p = self.n_features
        data = None
        if self._data is not None and self._runs is not None:
            data = self._data.group(g, self._runs.rows(self._runs.codes == g))
        return PowerFit(self._spec, self._labels, self._table.take(slice(g * p, (g + 1) * p)), data)

    def _name(self, k: int) -> str:
        g, j = divmod(k, self.n_features)
        label = self._keys.label(g)
        text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        return text if self.n_features == 1 else f"{text}: {self._labels.texts(self.n_features)[j]}"

    def _list_columns(self, columns: IntArray) -> str:
        """Return text for a message that names the first few groups and columns at these positions of the table."""
        p, names = self.n_features, self._labels.texts(self.n_features)
        each = [
            f"group {self._keys.label(k // p)!r}" + (f", column {names[k % p]}" if p > 1 else "")
            for k in columns[:_LISTED].tolist()
        ]
        rest = columns.size - len(each)
        return "; ".join(each) + (f" and {rest} more" if rest else "")

    def _with_group_names(self, names: list[str]) -> Self:
        """Return a copy of the fit that reads group labels from the columns called `names`."""
        keys = replace(self._keys, names=names)
        return type(self)(self._spec, self._labels, keys, self._table, self.pooled, self._data, self._runs)

    def _dropping_missing_labels(self) -> Self:
        """Return a copy of the fit with ``dropna=True``, which turns rows without a group label into NaN."""
        return type(self)(replace(self._spec, dropna=True), self._labels, self._keys, self._table)
