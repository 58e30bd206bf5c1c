"""The read-only attributes of `PowerFit`, and the selection of some of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import FitSpec
from powerkern._input.arguments import column_positions
from powerkern._input.arrays import column_labels
from powerkern._input.frames import by_name
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.fitted_data import FittedData
from powerkern._results.likelihood import KeptData
from powerkern._results.stored_fit import StoredFit
from powerkern._typing import FloatArray, IntArray


class FitAttributes(StoredFit):
    """Base class of `PowerFit` that holds its attributes, which the docstring of `PowerFit` describes."""

    family: str
    estimator: Estimator
    standardize: bool
    n_features: int
    lmbda: FloatArray
    loc: FloatArray
    scale: FloatArray
    log_factor: FloatArray
    n_obs: FloatArray
    x_min: FloatArray
    x_max: FloatArray
    lmbda0: FloatArray
    objective: FloatArray
    n_kept: FloatArray
    center: FloatArray
    divisor: FloatArray

    _spec: FitSpec
    _labels: ColumnLabels
    _table: ColumnTable
    _data: KeptData | None

    def __init__(self, spec: FitSpec, labels: ColumnLabels, table: ColumnTable, data: KeptData | None = None) -> None:
        """Make a fit from its parts.

        Parameters
        ----------
        spec : FitSpec
            The options of the fit.
        labels : ColumnLabels
            The labels of its columns.
        table : ColumnTable
            The results.
        data : FittedData, PowerSums or MixedSums, optional
            The fitted data or their power sums, for methods that are called without `X`.
        """
        vars(self).update(
            _spec=spec,
            _labels=labels,
            _table=table,
            _data=data,
            family=spec.family,
            estimator=spec.estimator,
            standardize=spec.standardize,
            column_names=labels.names,
            n_features=len(table),
            lmbda=table.lmbda,
            loc=table.loc,
            scale=table.scale,
            log_factor=table.log_factor,
            n_obs=table.n_obs,
            x_min=table.x_min,
            x_max=table.x_max,
            lmbda0=table.lmbda0,
            objective=table.objective,
            n_kept=table.n_kept,
            center=table.center,
            divisor=table.divisor,
        )

    @property
    def nll(self) -> FloatArray:
        """Negative log-likelihood of each column at `lmbda`."""
        return self._table.nll

    @property
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return self._table.information

    @property
    def n_iter(self) -> IntArray:
        """Number of evaluations of the likelihood or its derivatives, for each column."""
        return self._table.n_iter

    @property
    def status(self) -> IntArray:
        """A `powerkern.Status` for each column."""
        return self._table.status

    @property
    def n_censored(self) -> FloatArray:
        """Number of censored cells of each column; with weights, their total weight. See `powerkern.fit`."""
        return self._table.n_censored

    @property
    def lmbda_error(self) -> FloatArray:
        """Bound on the difference between each `lmbda` and the lambda that a fit of all rows in memory would give."""
        return self._table.lmbda_error

    @property
    def shift(self) -> FloatArray:
        """The constant added to each column before Box-Cox; 0 in unshifted fits."""
        return self._table.shift

    @property
    def families(self) -> list[str]:
        """The transform of each column, "box-cox" or "yeo-johnson"."""
        return self._table.families

    @property
    def status_text(self) -> list[str]:
        """The status of each column in words."""
        return self._table.status_text

    @property
    def route(self) -> list[str]:
        """The route by which each lambda was computed, in words; see `PowerFit`."""
        return self._table.route_labels

    @property
    def cutoff(self) -> float:
        """Quantile of the normal distribution beyond which values are outliers: `cutoff` of the estimator."""
        return float(self.estimator.cutoff)

    @property
    def lambdas(self) -> Any:
        """`lmbda` as a pandas series indexed by column label; an array if there are no labels or no pandas."""
        return by_name(self.lmbda, self.column_names, self._labels.level_names)

    def __len__(self) -> int:
        """Return the number of columns."""
        return self.n_features

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the column labels, or the positions if there are no labels; both are keys of ``fit[key]``."""
        return iter(self.column_names or range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._spec, self._labels, self._table)  # copies and pickles contain no data

    def without_data(self) -> Self:
        """Return a copy of the fit without its reference to the fitted data."""
        return type(self)(self._spec, self._labels, self._table)

    # --- for other parts of the package -------------------------------------------------------------------

    def _label_texts(self) -> list[str]:
        """Return the labels of all columns as strings; the positions if columns have no labels."""
        return self._labels.texts(self.n_features)

    def _list_columns(self, positions: IntArray) -> str:
        """Return the labels of the columns at `positions` as text for a message."""
        return column_labels(positions, self.column_names)

    def _with_table(self, table: ColumnTable, data: KeptData | None = None) -> Self:
        """Return a copy of the fit with `table` as its results and `data` as its data."""
        return type(self)(self._spec, self._labels, table, data)

    def _with_spec(self, **changes: Any) -> Self:
        """Return a copy of the fit with changed options and without data."""
        return type(self)(replace(self._spec, **changes), self._labels, self._table)

    def _with_names(self, names: list[Any]) -> Self:
        """Return a copy of the fit with `names` as its column labels and without data."""
        return type(self)(self._spec, replace(self._labels, names=names), self._table)

    def _take(self, columns: slice | IntArray) -> Self:
        """Return a fit of the selected columns, without data."""
        chosen = column_positions(columns, self.n_features)
        known = self.column_names
        names = None if known is None else [known[j] for j in chosen]
        labels = replace(self._labels, names=names, was_vector=False)
        return type(self)(self._spec.part(chosen), labels, self._table.take(chosen))

    def _forget_data(self, target: NDArray[Any]) -> None:
        """Drop the reference to the fitted data if they share memory with `target`, which will be overwritten."""
        if isinstance(self._data, FittedData) and np.shares_memory(target, self._data.values):
            vars(self)["_data"] = None
