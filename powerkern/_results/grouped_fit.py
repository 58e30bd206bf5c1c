"""The fit of groups of rows, which `powerkern.fit` returns for ``groups=``."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.apply import transform_matrix
from powerkern._engine.gather import Scratch
from powerkern._engine.ragged import Groups
from powerkern._engine.threads import thread_count
from powerkern._estimators.estimators import Estimator
from powerkern._estimators.likelihood import ML
from powerkern._estimators.spec import FitSpec, UnknownGroups
from powerkern._input import batches as _batches
from powerkern._input.alignment import align_rows, labels_to_record
from powerkern._input.arguments import domain_error, domain_error_in
from powerkern._input.arrays import Matrix, as_choice, as_reals, column_label, output_type
from powerkern._input.frames import by_name, label_like, order_frame
from powerkern._input.label_values import objects
from powerkern._input.labels import UNKNOWN, GroupsLike, Keys, Runs, without_names
from powerkern._input.messages import shown, suggest_in_class
from powerkern._input.reading import read_fitted, wrap_like_input
from powerkern._input.wrapping import loaded
from powerkern._results.columns import ColumnLabels, ColumnResults, FittedColumns, Of, Source
from powerkern._results.fitted_data import GroupedData
from powerkern._results.inference import wald_interval
from powerkern._results.inversion import (
    Inversion,
    OutOfRange,
    first_without_inverse,
    warn_of_lost_digits,
    warn_of_values_without_inverse,
)
from powerkern._results.json import Recorded, damaged, entry, level_names_in, names_in, one_of
from powerkern._results.likelihood import standard_error
from powerkern._results.lost_digits import LostDigits
from powerkern._results.power_fit import PowerFit, warn_of
from powerkern._results.records import fit_of, record_of
from powerkern._results.summary import Summary
from powerkern._status import is_failed
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

#: Groups that a message lists.
_LISTED = 5

T = TypeVar("T")


class _ByGroup(Generic[T]):
    """A figure of the columns of all groups, as an array with a row for each group."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"`{name}` of each group and column, see `PowerFit`."

    def __get__(self, fit: Any, owner: type) -> Any:
        return self if fit is None else getattr(fit.columns, self._name).reshape(len(fit), -1)


@suggest_in_class
class GroupedFit(Recorded):
    """Power transforms fitted to the columns of each of many groups of rows.

    Made by `fit` with ``groups=``. Figures are arrays of shape (groups, columns), in the order of `groups`;
    ``fit[label]`` is the `PowerFit` of one group, ``len(fit)`` their number, and a loop runs over their labels.

    Attributes
    ----------
    groups : list
        The labels in ascending order, tuples where groups have several keys.
    group_names : list of str or None
        The columns that held the labels, if they were given by name.
    family, estimator, standardize, column_names
        As in `PowerFit`, the same for all groups.
    lambdas : DataFrame or ndarray
        `lmbda` by group and column label.
    lmbda, loc, scale, nll, information, n_obs, n_kept, status, x_min, x_max : (groups, columns) ndarray
        As in `PowerFit`. Groups with too few values have the identity transform and a status that says so.
    pooled : PowerFit or None
        The fit of all rows, made for ``unknown="pooled"`` and ``shrink=True``.
    unknown : {"raise", "nan", "pooled"}
        The treatment of rows whose group the fit has not seen.

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

    spec: FitSpec
    labels: ColumnLabels
    keys: Keys
    columns: ColumnResults
    pooled: PowerFit | None
    source: Source
    _runs: Runs | None

    def __init__(
        self,
        spec: FitSpec,
        labels: ColumnLabels,
        keys: Keys,
        columns: ColumnResults,
        pooled: PowerFit | None = None,
        source: Source | None = None,
        runs: Runs | None = None,
    ) -> None:
        vars(self).update(
            spec=spec,
            labels=labels,
            keys=keys,
            columns=columns,
            pooled=pooled,
            source=source or Source(),
            _runs=runs,
        )

    family = Of[str]("spec.family")
    estimator = Of[Estimator]("spec.estimator")
    standardize = Of[bool]("spec.standardize")
    column_names = Of[list[Any] | None]("labels.names")
    unknown = Of[str]("spec.unknown")
    dropna = Of[bool | None]("spec.dropna")
    group_names = Of[list[str] | None]("keys.names")
    lmbda = _ByGroup[FloatArray]("lmbda")
    loc = _ByGroup[FloatArray]("loc")
    scale = _ByGroup[FloatArray]("scale")
    log_factor = _ByGroup[FloatArray]("log_factor")
    nll = _ByGroup[FloatArray]("nll")
    information = _ByGroup[FloatArray]("information")
    n_obs = _ByGroup[FloatArray]("n_obs")
    n_kept = _ByGroup[FloatArray]("n_kept")
    status = _ByGroup[IntArray]("status")
    x_min = _ByGroup[FloatArray]("x_min")
    x_max = _ByGroup[FloatArray]("x_max")

    def __repr__(self) -> str:
        text = f"GroupedFit(family={self.family!r}, estimator={self.estimator!r}, {len(self)} groups"
        failed = np.count_nonzero(is_failed(self.status), axis=0)
        if self.n_features == 1:
            return f"{text}, {failed[0]} of them not fitted)" if failed.any() else f"{text})"
        at = np.flatnonzero(failed)
        names = self.column_names
        each = [f"{column_label(j, names)} not fitted in {failed[j]} of them" for j in at[:_LISTED].tolist()]
        rest = [f"{at.size - _LISTED} more columns not in all"] if at.size > _LISTED else []
        return f"{', '.join([text, *each, *rest])})"

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __contains__(self, label: object) -> bool:
        try:
            self[label]
        except KeyError:
            return False
        return True

    def __getitem__(self, label: Any) -> PowerFit:
        """The fit of one group, by its label: a tuple where groups have several keys."""
        try:
            cells = label if self.keys.several else (label,)
            if not isinstance(cells, tuple) or len(cells) != len(self.keys.categories):
                raise TypeError(f"labels are tuples of {len(self.keys.categories)}")
            columns = [[cell] for cell in cells]
            code = int(self.keys.codes_of(columns).codes[0])
        except (TypeError, ValueError) as error:
            raise KeyError(f"{shown(label)}: {error}") from None
        if code < 0:
            raise KeyError(f"{shown(label)} is none of the {len(self)} groups of the fit")
        return self._fit_of(code)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": Source(), "_runs": None}  # a fit travels without its data

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups."""
        return self.keys.labels()

    @property
    def lambdas(self) -> Any:
        """`lmbda` as a pandas data frame by group and column label, if pandas is installed; else the array.

        ``fit.lambdas[column]`` has a lambda for each group, ``fit.lambdas.loc[group]`` one for each column.
        """
        try:
            import pandas as pd
        except ImportError:
            return self.lmbda
        columns = self.keys.columns()
        index = pd.MultiIndex.from_arrays(columns) if self.keys.several else pd.Index(columns[0])
        if self.group_names is not None:
            index = index.set_names(self.group_names)
        by_column = by_name(
            np.arange(self.n_features), self.column_names or range(self.n_features), self.labels.level_names
        )
        return pd.DataFrame(self.lmbda, index=index, columns=by_column.index)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.columns) // len(self)

    def without_data(self) -> GroupedFit:
        """The fit without the data that it remembers."""
        return GroupedFit(self.spec, self.labels, self.keys, self.columns, self.pooled)

    # --- applied to data ----------------------------------------------------------------------------------

    def transform(self, X: object, groups: GroupsLike | None = None, *, n_threads: int | None = None) -> Any:
        """Transform every row by the fit of its group.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            As for `PowerFit.transform`; in any order of the rows.
        groups : (n,) array-like, or names of columns of `X`, optional
            Labels of the rows; not needed where `X` has the columns by whose names the fit was made.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the kind of `X`
            As `PowerFit.transform`, the rows in the order of `X`; columns of labels stay as they are.

        Raises
        ------
        TypeError, ValueError
            As `PowerFit.transform`; labels that are missing, not as many as rows, or of another kind than those of the
            fit; a group that the fit has not seen, unless ``unknown`` is "nan" or "pooled".
        """
        return self._applied(X, groups, n_threads, inverse=False)

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
        ndarray, or the kind of `Z`
            As `transform`.
        """
        as_choice("out_of_range", out_of_range, get_args(OutOfRange))
        return self._applied(Z, groups, n_threads, inverse=True, out_of_range=out_of_range)

    def _applied(
        self,
        X: Any,
        groups: GroupsLike | None,
        n_threads: int | None,
        *,
        inverse: bool,
        out_of_range: OutOfRange = "raise",
    ) -> Any:
        """The images of all rows, or their inverse images, which `out_of_range` is for."""
        threads, method = thread_count(n_threads), "inverse_transform" if inverse else "transform"
        options = {"n_threads": n_threads, **({"out_of_range": out_of_range} if inverse else {})}
        again = functools.partial(getattr(self, method), groups=groups, **options)
        lazily = _batches.applied(X, again, of_blank=lambda row: self._lenient().transform(row, groups))
        if lazily is not None:
            return lazily
        p, X = self.n_features, loaded(X)
        matrix = read_fitted(without_names(X, self.keys.names), self.column_names, p)._replace(given=X)
        values, columns = matrix.values, self.columns
        runs = self._runs_of(X, groups, len(values))
        placed, scratch, images, failed = Groups(runs, len(self)), Scratch(), Scratch(), []
        lost_digits: list[LostDigits] = []
        out = np.empty_like(values, dtype=output_type(values.dtype), subok=False)
        direction = (inverse_direction if inverse else forward_direction)(self.standardize)
        inversion = Inversion(columns, self.standardize, out_of_range, out.dtype) if inverse else None

        def job(batch: slice, threads: int) -> None:
            at = (placed.codes[batch, np.newaxis] * p + np.arange(p)).ravel()
            block = placed.pad_batch(values, batch, scratch)
            own = None if inversion is None else inversion.part(at)
            codes, raw, fields = columns.codes[at], columns.raw[at], columns.fields[:, at]
            image = images.block(*block.shape)
            lost = transform_matrix(block.T, image.T, codes, direction, raw, threads, own, fields)
            placed.scatter_batch(image, batch, out)
            if lost.any():
                failed.append(at[lost > 0])
            if own is not None:
                lost_digits.extend(own.lost_digits())

        placed.for_each_batch(job, p, threads)
        if failed:
            at = np.sort(np.concatenate(failed))
            if not inverse:
                raise self._domain_error(matrix, runs, int(at[0]))
            if out_of_range == "raise":
                raise self._inverse_error(matrix, runs, int(at[0]), out.dtype)
            warn_of_values_without_inverse(self._listed(at))
        warn_of_lost_digits(sorted(lost_digits), lambda k: self._listed(np.array([k])), out.dtype)
        if (runs.codes < 0).any():
            out[runs.rows(runs.codes < 0)] = np.nan
            unknown = runs.rows(runs.codes == UNKNOWN)
            if unknown.size and self.pooled is not None and self.unknown == "pooled":
                out[unknown] = getattr(self.pooled.without_data(), method)(values[unknown], **options)
        return wrap_like_input(matrix, out)

    def _domain_error(self, matrix: Matrix, runs: Runs, k: int) -> ValueError:
        """The error for a value outside the domain in one of the columns of the groups."""
        g, j = divmod(k, self.n_features)
        chosen = np.zeros(len(matrix.values))
        chosen[runs.rows(runs.codes == g)] = 1.0
        return domain_error_in(matrix, j, matrix.names or self.column_names, chosen, self.columns.shift[k])

    def _inverse_error(self, matrix: Matrix, runs: Runs, k: int, dtype: np.dtype[Any]) -> ValueError:
        """Return the error for the first value without an inverse in one of the columns of the groups."""
        g, j = divmod(k, self.n_features)
        rows = np.sort(np.arange(len(matrix.values))[runs.rows(runs.codes == g)])
        z = matrix.values[rows, j]
        first = first_without_inverse(self.columns, k, z, self.standardize, dtype)
        names = matrix.names or self.column_names
        place = None if matrix.was_vector else j
        return domain_error("without inverse", place, int(rows[first]), float(z[first]), names)

    def inverse_mean(self, mean: ArrayLike, sd: ArrayLike, groups: GroupsLike, *, n_threads: int | None = None) -> Any:
        """Mean of values whose transforms are normal, row by row: see `PowerFit.inverse_mean`.

        Parameters
        ----------
        mean, sd : (n, n_features) or (n,) array-like
            Mean and standard deviation on the scale of `transform`; `sd` may be one number, or one for each row.
        groups : (n,) array-like
            Labels of the rows.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the kind of `mean`: a data frame or series of pandas or polars
            Of the shape of `mean`, columns in the order of the fit.
        """
        groups, sd = align_rows(groups, mean, "groups", "mean"), align_rows(sd, mean, "sd", "mean")
        mean, sd = (order_frame(each, self.column_names, what) for each, what in ((mean, "mean"), (sd, "sd")))
        means, sds = as_reals("mean", mean), as_reals("sd", sd)
        if means.ndim not in (1, 2):
            raise ValueError(f"mean must have a row for each label, got shape {means.shape}")
        if means.ndim == 1 and not self.labels.was_vector:  # a column of a frame
            column = self.inverse_mean(means[:, np.newaxis], sds, groups, n_threads=n_threads)
            return label_like(column[:, 0], mean)
        sds = np.broadcast_to(sds[:, np.newaxis] if sds.ndim == 1 and means.ndim == 2 else sds, means.shape)
        runs = self._runs_of(None, groups, len(means))
        out = np.full(means.shape, np.nan)
        order = Groups(runs, len(self))
        for k in range(order.codes.size):
            rows = order.rows(k)
            out[rows] = self._fit_of(int(order.codes[k])).inverse_mean(means[rows], sds[rows], n_threads=n_threads)
        unknown = runs.rows(runs.codes == UNKNOWN)
        if unknown.size and self.pooled is not None and self.unknown == "pooled":
            out[unknown] = self.pooled.inverse_mean(means[unknown], sds[unknown], n_threads=n_threads)
        return label_like(out, mean)

    # --- description --------------------------------------------------------------------------------------

    def summary(self, *, level: float = 0.95) -> Summary:
        """A table with a line for each group and column.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        Summary
            `lmbda`; of maximum likelihood fits its standard error `se` and the ends `low` and `high` of the Wald
            interval, unless no group has any, as with ``shrink=True``; of robust ones `n_kept`; `n_obs` and status.
            ``fit[label].summary()`` has more of one group.
        """
        columns, entries, notes = self.columns, {"lmbda": self.columns.lmbda}, []
        if isinstance(self.estimator, ML):
            se = standard_error(FittedColumns(self.spec, self.labels, columns))
            if not np.isnan(se).all():
                interval = wald_interval(columns.lmbda, se, level)
                entries |= {"se": se, "low": interval.low, "high": interval.high}
                notes = [f"low, high: Wald interval of level {level:g}"]
        else:
            entries |= {"n_kept": columns.n_kept}
        entries |= {"n_obs": columns.n_obs, "status": np.array(columns.status_text)}
        return Summary(repr(self), [self._name(k) for k in range(len(columns))], [entries], notes=notes)

    def to_frame(self) -> Any:
        """The figures as a pandas data frame, indexed by the labels, and by the columns where there are several.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas; the attributes do without") from None
        p = self.n_features
        names = self.group_names or ["group"] * len(self.keys.categories)
        levels = [np.repeat(objects(each), p) for each in self.keys.columns()]
        if p > 1:
            labels = objects(self.column_names or range(p))
            levels, names = [*levels, np.tile(labels, len(self))], [*names, "column"]
        index = (
            pd.Index(levels[0], name=names[0]) if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=names)
        )
        columns = self.columns
        figures = {name: getattr(columns, name) for name in ("lmbda", "loc", "scale", "n_obs", "n_kept")}
        return pd.DataFrame({**figures, "status": columns.status_text}, index=index)

    def _name(self, k: int) -> str:
        g, j = divmod(k, self.n_features)
        label = self.keys.label(g)
        text = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        return text if self.n_features == 1 else f"{text}: {self.labels.texts(self.n_features)[j]}"

    def _listed(self, columns: IntArray) -> str:
        """The first few of some columns of groups, for a message."""
        p, names = self.n_features, self.labels.texts(self.n_features)
        each = [
            f"group {self.keys.label(k // p)!r}" + (f", column {names[k % p]}" if p > 1 else "")
            for k in columns[:_LISTED].tolist()
        ]
        rest = columns.size - len(each)
        return "; ".join(each) + (f" and {rest} more" if rest else "")

    def _lenient(self) -> GroupedFit:
        """The fit that takes rows without a label."""
        return GroupedFit(replace(self.spec, dropna=True, unknown="raise"), self.labels, self.keys, self.columns)

    # --- groups -------------------------------------------------------------------------------------------

    def _fit_of(self, g: int) -> PowerFit:
        """The fit of one group, with its rows if there are data."""
        p = self.n_features
        columns = self.columns.part(slice(g * p, (g + 1) * p))
        if not isinstance(self.source.data, GroupedData) or self._runs is None:
            return PowerFit(self.spec, self.labels, columns)
        return PowerFit(
            self.spec, self.labels, columns, Source(self.source.data.group(g, self._runs.rows(self._runs.codes == g)))
        )

    def _runs_of(self, X: Any, groups: Any, n: int) -> Runs:
        """The groups of rows; those that the fit has not seen only if they need not raise."""
        runs = self.keys.runs_of(X, groups, n, self.dropna)
        unknown = np.flatnonzero(runs.codes == UNKNOWN)
        if unknown.size and self.unknown == "raise":
            raise ValueError(
                f"groups, row {runs.starts[unknown[0]]}: the fit has no such group; fit with unknown='pooled' "
                "(the fit of all rows) or 'nan' to transform rows of other groups"
            )
        return runs

    # --- JSON ---------------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """The entries that JSON keeps."""
        return {
            **self.keys.to_record(),
            "column_names": labels_to_record(self.column_names),
            "level_names": labels_to_record(self.labels.level_names),
            "vector": self.labels.was_vector,
            "unknown": self.unknown,
            "dropna": self.dropna,
            "fit": record_of(self.spec, ColumnLabels(), self.columns),
            "pooled": None if self.pooled is None else self.pooled.to_record(),
        }

    @classmethod
    def from_record(cls, record: Any) -> GroupedFit:
        """The fit with these entries."""
        try:
            keys = Keys.from_record(record)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged(f"the labels are no labels of groups: {error}") from None
        if not len(keys):
            raise damaged("there are no groups")
        spec, _, columns = fit_of(entry(record, "fit"), len(keys))
        if len(columns) % len(keys):
            raise damaged(f"{len(columns)} columns do not go with {len(keys)} groups")
        p = len(columns) // len(keys)
        vector = one_of(record, "vector", (True, False) if p == 1 else (False,))
        names = names_in(record, "column_names", p)
        labels = ColumnLabels(names, level_names_in(record), vector)
        pooled = None if entry(record, "pooled") is None else PowerFit.from_record(record["pooled"])
        unknown, dropna = (
            one_of(record, "unknown", get_args(UnknownGroups)),
            one_of(record, "dropna", (None, True, False)),
        )
        if (pooled is not None and pooled.n_features != p) or (pooled is None and unknown == "pooled"):
            raise damaged("the pooled fit does not go with the groups")
        return cls(replace(spec, unknown=unknown, dropna=dropna), labels, keys, columns, pooled)


def build_grouped_fit(fit: GroupedFit) -> GroupedFit:
    """Emit the warnings of a new fit; return it."""
    warn_of(fit.columns, fit._listed, fit.spec.may_overflow)
    return fit
