"""A fit in parts: its arguments, the results of each column, and the data that it remembers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import Completion, count_outside, transform_matrix
from powerkern._estimators.estimators import Estimator
from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._estimators.spec import FitSpec
from powerkern._input.arguments import column_positions
from powerkern._results.fitted_data import FittedData, GroupedData
from powerkern._status import Route, Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import CURVATURE, FIELDS, N_EVAL, NLL, ROUTE, STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored
from powerkern.kernels.transforms.matrix import fields_of

#: A larger |lambda| reflects the origin, not the shape, if the data are far from it relative to their width.
_LARGE = 20.0
#: The warning about such columns.
FAR_FROM_ZERO = (
    "lambda is large because of the unit and the distance from zero, not because of the shape; powerkern.fit with "
    "origin='fit' (or, under Yeo-Johnson, estimator=ML(prestandardize='mad')) gives a lambda without this dependence"
)
#: Columns of a matrix.
Chosen = slice | NDArray[np.intp]
T = TypeVar("T", covariant=True)


@dataclass(frozen=True)
class ColumnLabels:
    """The labels of the columns that were fitted."""

    names: list[Any] | None = None
    #: Names of the levels of the labels, of a data frame of pandas whose levels have names.
    level_names: list[Any] | None = None
    was_vector: bool = False

    def texts(self, n: int) -> list[str]:
        """Return the labels of n columns as text, or their positions."""
        return [str(label) for label in self.names or range(n)]


@dataclass
class Source:
    """What a fit can be asked about: its data, or their power sums, or nothing."""

    data: FittedData | GroupedData | None = None
    sums: PowerSums | MixedSums | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there are neither data nor sums."""
        return self.data is None and self.sums is None

    def forget(self, target: NDArray[Any]) -> None:
        """Forget the data if they share memory with `target`, which is about to be overwritten."""
        if self.data is not None and np.shares_memory(target, self.data.values):
            self.data = None


class Of(Generic[T]):
    """An attribute of a part, such as "columns.lmbda", as an attribute of the whole."""

    def __init__(self, path: str) -> None:
        self._get = operator.attrgetter(path)
        self.__doc__ = f"`{path}`, see the class."

    @overload
    def __get__(self, whole: None, owner: type) -> Of[T]: ...

    @overload
    def __get__(self, whole: object, owner: type) -> T: ...

    def __get__(self, whole: object | None, owner: type) -> T | Of[T]:
        return self if whole is None else self._get(whole)


def read_only(figures: NDArray[Any]) -> NDArray[Any]:
    """A view of results that cannot be written to: a change would be lost, or change the fit."""
    view = figures.view()
    view.flags.writeable = False
    return view


class Figure:
    """A field of `kernels.results.ColumnFit`: one number for each column, read-only."""

    def __init__(self, field: str, doc: str) -> None:
        self._position = FIELDS.index(field)
        self.__doc__ = doc

    @overload
    def __get__(self, columns: None, owner: type) -> Figure: ...

    @overload
    def __get__(self, columns: ColumnResults, owner: type) -> FloatArray: ...

    def __get__(self, columns: ColumnResults | None, owner: type) -> FloatArray | Figure:
        if columns is None:
            return self
        return read_only(columns.raw[:, self._position])


class ColumnResults:
    """The results of each column: the only place that knows where in a row of `raw` a figure is.

    Attributes
    ----------
    raw : (p, N_RESULTS) ndarray
        As kernels write and read them.
    codes : (p,) ndarray of int
        The transform of each column.
    unit_weights : (p,) ndarray or None
        The weight of one value of each column, where weights are relative.
    lmbda_error : (p,) ndarray
        Bounds of the difference between lambda and the lambda of the rows in memory.
    """

    def __init__(
        self,
        raw: FloatArray,
        codes: IntArray | str,
        *,
        unit_weights: FloatArray | None = None,
        lmbda_error: FloatArray | None = None,
    ) -> None:
        self.raw = raw
        self.codes = np.full(len(raw), FAMILIES[codes]) if isinstance(codes, str) else codes
        self.unit_weights = unit_weights
        self._lmbda_error = np.zeros(len(raw)) if lmbda_error is None else lmbda_error
        self._fields: FloatArray | None = None
        #: what inverse transforms need again
        self.memo: dict[Any, Any] = {}

    lmbda = Figure("lmbda", "The transformation parameter of each column.")
    loc = Figure("loc", "Mean of the raw transformed values, a factor ``exp(log_factor)`` apart.")
    scale = Figure("scale", "Their standard deviation, a factor ``exp(log_factor)`` apart.")
    log_factor = Figure("log_factor", "Log of the factor that `loc` and `scale` leave out; mostly 0.")
    ref = Figure("ref", "The reference value inside the data, from which transformed values are measured.")
    slope = Figure("slope", "Factor of standardised values, see `PowerFit`.")
    intercept = Figure("intercept", "Standardised value of the reference.")
    n_obs = Figure("n_obs", "Number (or total weight) of the values that are not missing.")
    x_min = Figure("x_min", "Smallest value of the fitted data.")
    x_max = Figure("x_max", "Largest value of the fitted data.")
    lmbda0 = Figure("lmbda0", "The lambda from which the reweighting of a robust fit started.")
    objective = Figure("objective", "The objective of the estimator at `lmbda0`.")
    n_kept = Figure("n_kept", "Number of values (or total weight) used in the final fit.")
    kept_low = Figure("kept_low", "Smallest value that a robust fit keeps.")
    kept_high = Figure("kept_high", "Largest value that a robust fit keeps.")
    center = Figure("center", "Subtracted before values are transformed.")
    divisor = Figure("divisor", "Divisor of the centered values.")

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def lmbda_error(self) -> FloatArray:
        """See the class."""
        return read_only(self._lmbda_error)

    @property
    def shift(self) -> FloatArray:
        """The number that Box-Cox adds to each column before the transform; 0 under Yeo-Johnson."""
        return read_only(np.where(self.mirrored, 0.0, 0.0 - self.center))

    @property
    def mirrored(self) -> BoolArray:
        """Which columns have a branch for negative values."""
        mirrored = np.array([is_mirrored(code) for code in FAMILIES.values()])
        return np.asarray(mirrored[self.codes])

    @property
    def nll(self) -> FloatArray:
        """Negative log-likelihood at `lmbda`."""
        return read_only(self.raw[:, NLL] * self.n_kept)

    @property
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return read_only(self.raw[:, CURVATURE] * self.n_kept)

    @property
    def far_from_zero(self) -> NDArray[np.intp]:
        """Columns whose lambda is large because they are narrow relative to their distance from the transform's pole.

        The pole is 0 under Box-Cox; under Yeo-Johnson, 1 beyond 0.
        """
        large: NDArray[np.intp] = np.flatnonzero(np.abs(self.lmbda) > _LARGE)
        if not large.size:
            return large
        center, divisor, mirrored = self.center[large], self.divisor[large], self.mirrored[large]
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (self.x_min[large] - center) / divisor, (self.x_max[large] - center) / divisor
            far = np.where(mirrored, 1.0 + np.maximum(np.maximum(low, -high), 0.0), low) > high - low
        found: NDArray[np.intp] = large[far & (self.status[large] != Status.FIXED)]
        return found

    @property
    def n_iter(self) -> IntArray:
        """Evaluations of the likelihood or its derivatives."""
        return read_only(self.raw[:, N_EVAL].astype(np.int64))

    @property
    def status(self) -> IntArray:
        """A `powerkern.Status` for each column."""
        return read_only(self.raw[:, STATUS].astype(np.int64))

    @property
    def status_text(self) -> list[str]:
        """The status of each column in words."""
        return [Status(code).sentence for code in self.status]

    @property
    def route(self) -> list[str]:
        """How each optimum was found: "lockstep", "one pass", "two pass", "power sums", "moments", "refit" or "".

        "refit both sides": as "refit", from the start that rectifies both sides.
        """
        return [Route(code).label for code in self.routes.astype(np.int64)]

    @property
    def routes(self) -> FloatArray:
        """Codes of the routes, as kernels take them."""
        return self.raw[:, ROUTE]

    @property
    def families(self) -> list[str]:
        """The transform of each column."""
        names = {code: name for name, code in FAMILIES.items()}
        return [names[code] for code in self.codes.tolist()]

    def by_family(self) -> list[tuple[int, Chosen]]:
        """Each family in use, and its columns."""
        codes = np.unique(self.codes).tolist()
        return [(code, slice(None) if len(codes) == 1 else np.flatnonzero(self.codes == code)) for code in codes]

    def gathered(self, of: Callable[[int, Chosen], FloatArray]) -> FloatArray:
        """The results of a function of each family's code and columns, in the order of the columns."""
        parts = [(chosen, of(code, chosen)) for code, chosen in self.by_family()]
        found = np.empty((len(self), *parts[0][1].shape[1:]))
        for chosen, part in parts:
            found[chosen] = part
        return found

    def transform(
        self,
        values: NDArray[Any],
        out: NDArray[Any] | None,
        direction: int,
        n_threads: int,
        completion: Completion | None = None,
    ) -> IntArray:
        """Transform every column; the number of values in each that cannot be."""
        return transform_matrix(values, out, self.codes, direction, self.raw, n_threads, completion, self.fields)

    @property
    def fields(self) -> FloatArray:
        """Fit parameters for transforms along rows, see `kernels.transforms.matrix.fields_of`."""
        if self._fields is None:
            self._fields = fields_of(self.raw)
        return self._fields

    def count_outside(self, values: NDArray[Any], n_threads: int) -> IntArray:
        """The number of values outside the domain in each column."""
        return count_outside(values, self.codes, self.raw, n_threads)

    def part(self, columns: slice | IntArray) -> ColumnResults:
        """The results of some of the columns, copied."""
        units = None if self.unit_weights is None else self.unit_weights[columns].copy()
        return ColumnResults(
            self.raw[columns].copy(),
            self.codes[columns].copy(),
            unit_weights=units,
            lmbda_error=self.lmbda_error[columns].copy(),
        )

    def rounded_to(self, lmbda: FloatArray, raw: FloatArray) -> ColumnResults:
        """These results, replaced by the results at other lambdas, `raw`, where lambda differs."""
        raw[raw[:, STATUS] == Status.FIXED, STATUS] = Status.ROUNDED
        raw[:, [X_MIN, X_MAX]] = self.raw[:, [X_MIN, X_MAX]]
        same = lmbda == self.lmbda
        raw[same] = self.raw[same]
        return ColumnResults(raw, self.codes, lmbda_error=np.where(same, self.lmbda_error, 0.0))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fields": None, "memo": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands large arrays to its workers as read-only maps of a file, which kernels do not take
        raw = np.array(state["raw"])
        self.__dict__.update(state, raw=raw)


class FittedColumns:
    """A fit's parts and figures: the base of `PowerFit`, for functions that become its methods."""

    spec: FitSpec
    labels: ColumnLabels
    columns: ColumnResults
    source: Source

    def __init__(
        self, spec: FitSpec, labels: ColumnLabels, columns: ColumnResults, source: Source | None = None
    ) -> None:
        vars(self).update(spec=spec, labels=labels, columns=columns, source=source or Source())

    family = Of[str]("spec.family")
    estimator = Of[Estimator]("spec.estimator")
    standardize = Of[bool]("spec.standardize")
    column_names = Of[list[Any] | None]("labels.names")
    cutoff = Of[float]("spec.estimator.cutoff")
    lmbda = Of[FloatArray]("columns.lmbda")
    loc = Of[FloatArray]("columns.loc")
    scale = Of[FloatArray]("columns.scale")
    log_factor = Of[FloatArray]("columns.log_factor")
    nll = Of[FloatArray]("columns.nll")
    information = Of[FloatArray]("columns.information")
    n_obs = Of[FloatArray]("columns.n_obs")
    x_min = Of[FloatArray]("columns.x_min")
    x_max = Of[FloatArray]("columns.x_max")
    lmbda0 = Of[FloatArray]("columns.lmbda0")
    objective = Of[FloatArray]("columns.objective")
    n_kept = Of[FloatArray]("columns.n_kept")
    lmbda_error = Of[FloatArray]("columns.lmbda_error")
    center = Of[FloatArray]("columns.center")
    divisor = Of[FloatArray]("columns.divisor")
    shift = Of[FloatArray]("columns.shift")
    n_iter = Of[IntArray]("columns.n_iter")
    status = Of[IntArray]("columns.status")
    status_text = Of[list[str]]("columns.status_text")
    route = Of[list[str]]("columns.route")
    families = Of[list[str]]("columns.families")

    def __len__(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": Source()}  # a fit travels without the data it came from

    def with_columns(self, columns: ColumnResults, source: Source | None = None) -> Self:
        """The fit with other results of its columns."""
        return type(self)(self.spec, self.labels, columns, source)

    def without_data(self) -> Self:
        """The fit without the data that it remembers."""
        return self.with_columns(self.columns)

    def part(self, columns: slice | IntArray) -> Self:
        """The fit of some of the columns, without data."""
        chosen = column_positions(columns, self.n_features)
        names = None if self.column_names is None else [self.column_names[j] for j in chosen]
        labels = replace(self.labels, names=names, was_vector=False)
        return type(self)(self.spec.part(chosen), labels, self.columns.part(chosen))
