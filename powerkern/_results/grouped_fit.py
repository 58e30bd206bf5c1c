"""The fit of groups of rows, which `powerkern.fit` returns for ``groups=``."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.ragged import Groups
from powerkern._engine.threads import thread_count
from powerkern._estimators.spec import FitSpec, UnknownGroups
from powerkern._input import batches
from powerkern._input.alignment import align_rows, labels_to_record
from powerkern._input.arrays import as_choice, as_reals, output_type
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.frames import label_like, order_frame
from powerkern._input.infinite import as_infinite
from powerkern._input.label_values import objects
from powerkern._input.labels import UNKNOWN, GroupsLike, Keys, Runs, without_names
from powerkern._input.messages import suggest_in_class
from powerkern._input.reading import read_fitted, wrap_like_input
from powerkern._input.wrapping import loaded
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.column_warnings import warn_about_columns
from powerkern._results.fitted_data import GroupedData
from powerkern._results.group_attributes import GroupAttributes
from powerkern._results.group_transforms import transform_by_group
from powerkern._results.image_repair import ImageRepair
from powerkern._results.inference import wald_interval
from powerkern._results.inversion import Inversion
from powerkern._results.json_entries import damaged, entry, read_choice, read_level_names, read_names
from powerkern._results.power_fit import PowerFit
from powerkern._results.records import make_record, read_record
from powerkern._results.summary import Summary
from powerkern._typing import IntArray


@suggest_in_class
class GroupedFit(GroupAttributes):
    """Power transforms fitted to the columns of each of many groups of rows.

    `fit` with ``groups=`` returns it. It is a mapping from group labels, in ascending order, to fits, with the methods
    of a dictionary (`keys`, `values`, `items`, `get`). ``fit[label]`` is the `PowerFit` of one group, ``len(fit)`` the
    number of groups, and a loop over the fit yields the labels. Results for all groups are arrays of shape
    (groups, columns).

    Attributes
    ----------
    groups : list
        The labels in ascending order; tuples if groups have several keys.
    group_names : list of str or None
        Names of the columns that held the labels, if the labels were given by column name.
    family, estimator, standardize, column_names, n_features
        As in `PowerFit`, equal for all groups.
    lambdas : DataFrame or ndarray
        `lmbda` as a table by group and column label, if pandas is installed.
    lmbda, loc, scale, log_factor, nll, information, n_obs, n_kept, status, x_min, x_max : (groups, columns) ndarray
        As in `PowerFit`. Groups with too few values have the identity transform and a status that says so.
    pooled : PowerFit or None
        The fit of all rows, made for ``unknown="pooled"`` and ``shrink=True``.
    unknown : {"raise", "nan", "pooled"}
        Treatment of rows whose group was not in the fitted data.
    dropna : bool or None
        Treatment of rows without a label, see `fit`.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> rng = np.random.default_rng(0)
    >>> x, plate = rng.lognormal(size=300), np.repeat(["a", "b", "c"], 100)
    >>> fit = pk.fit(x, "box-cox", groups=plate)
    >>> fit.lmbda.shape, fit["b"].lmbda == fit.lmbda[1]
    ((3, 1), array([ True]))
    >>> z = fit.transform(x, groups=plate)
    >>> bool(abs(z[plate == "c"].mean()) < 1e-12)
    True
    """

    # --- applied to data ----------------------------------------------------------------------------------

    def transform(
        self,
        X: object,
        groups: GroupsLike | None = None,
        *,
        n_threads: int | None = None,
        out_of_range: OutOfRange = "raise",
        infinite: Infinite | None = None,
    ) -> Any:
        """Transform every row by the fit of its group.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            As for `PowerFit.transform`; rows may be in any order.
        groups : (n,) array-like, or names of columns of `X`, optional
            Labels of the rows; not needed if the fit read the labels from named columns and `X` has these columns.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        out_of_range, infinite
            As for `PowerFit.transform`; "clip" uses the range of the fitted data of the row's group.

        Returns
        -------
        ndarray, or the same type as `X`
            As for `PowerFit.transform`, with the rows in the order of `X`. Columns of labels are unchanged.

        Raises
        ------
        TypeError, ValueError
            As for `PowerFit.transform`. Also if labels are missing, differ in number from the rows, or are of another
            type than the fitted labels; or if a group was not in the fitted data, unless ``unknown`` is "nan" or
            "pooled".
        """
        as_choice("out_of_range", out_of_range, get_args(OutOfRange))
        treatment = self._spec.infinite if infinite is None else as_infinite(infinite)
        return self._transform_rows(X, groups, n_threads, out_of_range, treatment)

    def inverse_transform(
        self,
        Z: object,
        groups: GroupsLike | None = None,
        *,
        n_threads: int | None = None,
        out_of_range: OutOfRange = "nan",
    ) -> Any:
        """Undo `transform`.

        Parameters
        ----------
        Z : (n, n_features) array-like, or (n,) where the fit was to one column
            Transformed values; NaN stays NaN.
        groups : (n,) array-like, or names of columns of `Z`, optional
            As for `transform`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        out_of_range : {"nan", "raise", "clip"}, default "nan"
            As for `PowerFit.inverse_transform`.

        Returns
        -------
        ndarray, or the same type as `Z`
            As for `transform`.
        """
        as_choice("out_of_range", out_of_range, get_args(OutOfRange))
        return self._transform_rows(Z, groups, n_threads, out_of_range)

    def _transform_rows(
        self,
        X: Any,
        groups: GroupsLike | None,
        n_threads: int | None,
        out_of_range: OutOfRange,
        infinite: Infinite | None = None,
    ) -> Any:
        """Transform all rows, or undo the transform if `infinite` is None.

        Arguments are described in `transform`.
        """
        threads, method = thread_count(n_threads), "inverse_transform" if infinite is None else "transform"
        options: dict[str, Any] = {"n_threads": n_threads, "out_of_range": out_of_range}
        if infinite is not None:
            options["infinite"] = infinite
        again = functools.partial(getattr(self, method), groups=groups, **options)
        lazily = batches.apply_lazily(
            X, again, of_blank=lambda row: self._dropping_missing_labels().transform(row, groups)
        )
        if lazily is not None:
            return lazily
        X = loaded(X)
        matrix = read_fitted(without_names(X, self.group_names), self.column_names, self.n_features)
        matrix = matrix._replace(given=X)
        runs = self._find_runs(X, groups, len(matrix.values))
        dtype = np.dtype(output_type(matrix.values.dtype))
        completion: ImageRepair | Inversion
        if infinite is None:
            keeps_infinite = self._spec.infinite == "keep"
            completion = Inversion(self._table, self.standardize, out_of_range, dtype, keeps_infinite=keeps_infinite)
        else:
            completion = ImageRepair(self._table, out_of_range, infinite, dtype)
        out = transform_by_group(
            matrix,
            runs,
            self._table,
            standardize=self.standardize,
            completion=completion,
            out_of_range=out_of_range,
            infinite=infinite or "raise",
            names=self.column_names,
            list_columns=self._list_columns,
            n_threads=threads,
        )
        unknown = self._rows_for_pooled(runs)
        if unknown is not None and self.pooled is not None:
            out[unknown] = getattr(self.pooled.without_data(), method)(matrix.values[unknown], **options)
        return wrap_like_input(matrix, out)

    def inverse_mean(self, mean: ArrayLike, sd: ArrayLike, groups: GroupsLike, *, n_threads: int | None = None) -> Any:
        """Return the mean of values whose transforms are normally distributed, row by row.

        The means are computed as in `PowerFit.inverse_mean`, with the fit of the group of each row.

        Parameters
        ----------
        mean, sd : (n, n_features) or (n,) array-like
            Mean and standard deviation on the scale of `transform`; `sd` may be one number, or one number per row.
        groups : (n,) array-like
            Labels of the rows.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `mean` if that is a data frame or series
            Same shape as `mean`, with columns in the order of the fit.
        """
        groups, sd = align_rows(groups, mean, "groups", "mean"), align_rows(sd, mean, "sd", "mean")
        mean, sd = (order_frame(each, self.column_names, what) for each, what in ((mean, "mean"), (sd, "sd")))
        means, sds = as_reals("mean", mean), as_reals("sd", sd)
        if means.ndim not in (1, 2):
            raise ValueError(f"mean must have a row for each label, got shape {means.shape}")
        if means.ndim == 1 and not self._labels.was_vector:  # a column of a frame
            column = self.inverse_mean(means[:, np.newaxis], sds, groups, n_threads=n_threads)
            return label_like(column[:, 0], mean)
        sds = np.broadcast_to(sds[:, np.newaxis] if sds.ndim == 1 and means.ndim == 2 else sds, means.shape)
        runs = self._find_runs(None, groups, len(means))
        out = np.full(means.shape, np.nan)
        order = Groups(runs, len(self))
        for k in range(order.codes.size):
            rows = order.rows(k)
            fit = self._fit_of_group(int(order.codes[k]))
            out[rows] = fit.inverse_mean(means[rows], sds[rows], n_threads=n_threads)
        unknown = self._rows_for_pooled(runs)
        if unknown is not None and self.pooled is not None:
            out[unknown] = self.pooled.inverse_mean(means[unknown], sds[unknown], n_threads=n_threads)
        return label_like(out, mean)

    # --- description --------------------------------------------------------------------------------------

    def summary(self, *, level: float = 0.95) -> Summary:
        """Return a table of the results, with a line for each group and column.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        Summary
            `lmbda`, `n_obs` and status. Maximum likelihood fits add the standard error `se` and the ends `low` and
            `high` of the Wald interval, unless no group has these, as with ``shrink=True``. Robust fits add `n_kept`.
            ``fit[label].summary()`` returns more results for one group.
        """
        table, notes = self._table, []
        entries: dict[str, NDArray[Any]] = {"lmbda": table.lmbda}
        if self.estimator.has_likelihood:
            se = PowerFit(self._spec, self._labels, table).standard_error()
            if not np.isnan(se).all():
                interval = wald_interval(table.lmbda, se, level)
                entries |= {"se": se, "low": interval.low, "high": interval.high}
                notes = [f"low, high: Wald interval of level {level:g}"]
        else:
            entries |= {"n_kept": table.n_kept}
        entries |= {"n_obs": table.n_obs, "status": np.array(table.status_text)}
        return Summary(repr(self), [self._name(k) for k in range(len(table))], [entries], notes=notes)

    def to_frame(self) -> Any:
        """Return the results as a pandas data frame, indexed by group label and, in fits of several columns, by column.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas; the attributes need no pandas") from None
        p = self.n_features
        names = self.group_names or ["group"] * len(self._keys.categories)
        levels = [np.repeat(objects(each), p) for each in self._keys.columns()]
        if p > 1:
            labels = objects(self.column_names or range(p))
            levels, names = [*levels, np.tile(labels, len(self))], [*names, "column"]
        index = (
            pd.Index(levels[0], name=names[0]) if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=names)
        )
        table = self._table
        figures = {name: getattr(table, name) for name in ("lmbda", "loc", "scale", "n_obs", "n_kept")}
        return pd.DataFrame({**figures, "status": table.status_text}, index=index)

    # --- groups -------------------------------------------------------------------------------------------

    def _rows_for_pooled(self, runs: Runs) -> IntArray | None:
        """Return the positions of the rows that the pooled fit transforms because their group is unknown.

        The result is None if there are no such rows, or if `unknown` is not "pooled".
        """
        unknown = runs.rows(runs.codes == UNKNOWN)
        return unknown if unknown.size and self.unknown == "pooled" else None

    def _find_runs(self, X: Any, groups: Any, n: int) -> Runs:
        """Return the group codes of `n` rows, from `groups` or from the label columns of `X`.

        Raise a ValueError for a group that was not in the fitted data if `unknown` is "raise".
        """
        runs = self._keys.runs_of(X, groups, n, self.dropna)
        unknown = np.flatnonzero(runs.codes == UNKNOWN)
        if unknown.size and self.unknown == "raise":
            raise ValueError(
                f"groups, row {runs.starts[unknown[0]]}: the fit has no such group; fit with unknown='pooled' "
                "(the fit of all rows) or 'nan' to transform rows of other groups"
            )
        return runs

    # --- JSON ---------------------------------------------------------------------------------------------

    def _to_record(self) -> dict[str, Any]:
        return {
            **self._keys.to_record(),
            "column_names": labels_to_record(self.column_names),
            "level_names": labels_to_record(self._labels.level_names),
            "vector": self._labels.was_vector,
            "unknown": self.unknown,
            "dropna": self.dropna,
            "fit": make_record(self._spec, ColumnLabels(), self._table),
            "pooled": None if self.pooled is None else self.pooled._to_record(),
        }

    @classmethod
    def _from_record(cls, record: Any) -> GroupedFit:
        try:
            keys = Keys.from_record(record)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged(f"the labels are not labels of groups: {error}") from None
        if not len(keys):
            raise damaged("there are no groups")
        spec, _, table = read_record(entry(record, "fit"), len(keys))
        if len(table) % len(keys):
            raise damaged(f"{len(table)} columns do not match {len(keys)} groups")
        p = len(table) // len(keys)
        vector = read_choice(record, "vector", (True, False) if p == 1 else (False,))
        labels = ColumnLabels(read_names(record, "column_names", p), read_level_names(record), vector)
        pooled = None if entry(record, "pooled") is None else PowerFit._from_record(record["pooled"])
        unknown = read_choice(record, "unknown", get_args(UnknownGroups))
        dropna = read_choice(record, "dropna", (None, True, False))
        if (pooled is not None and pooled.n_features != p) or (pooled is None and unknown == "pooled"):
            raise damaged("the pooled fit does not match the groups")
        return cls(replace(spec, unknown=unknown, dropna=dropna), labels, keys, table, pooled)


def build_grouped_fit(
    spec: FitSpec,
    labels: ColumnLabels,
    keys: Keys,
    table: ColumnTable,
    pooled: PowerFit | None = None,
    data: GroupedData | None = None,
    runs: Runs | None = None,
) -> GroupedFit:
    """Build a fit of groups, and issue the warnings about its columns.

    Parameters
    ----------
    spec, labels
        As in `build_power_fit`.
    keys : Keys
        The labels of the groups.
    table : ColumnTable
        The results of all columns of the first group, then of the second, and so on.
    pooled : PowerFit, optional
        The fit of all rows.
    data : GroupedData, optional
        The values and weights of all groups.
    runs : Runs, optional
        The group code of each row.
    """
    fit = GroupedFit(spec, labels, keys, table, pooled, data, runs)
    warn_about_columns(table, fit._list_columns, spec.may_overflow)
    return fit
