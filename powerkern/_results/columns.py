"""What a fit found of each column, as attributes."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators import power_sums
from powerkern._estimators.estimators import Estimator
from powerkern._estimators.likelihood import ML
from powerkern._status import Route, Status
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import CURVATURE, FIELDS, N_EVAL, NLL, ROUTE, STATUS
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored
from powerkern.kernels.transforms.matrix import fields_of

_ML = ML()


class _Figure:
    """A field of `kernels.results.ColumnFit` as an attribute of a fit: one number per column, read-only."""

    def __init__(self, field: str, doc: str) -> None:
        self._position = FIELDS.index(field)
        self.__doc__ = doc

    @overload
    def __get__(self, fit: None, owner: type) -> _Figure: ...

    @overload
    def __get__(self, fit: FittedColumns, owner: type) -> FloatArray: ...

    def __get__(self, fit: FittedColumns | None, owner: type) -> FloatArray | _Figure:
        if fit is None:
            return self
        view = fit._results[:, self._position]
        view.flags.writeable = False
        return view


class FittedColumns:
    """The results of a fit, a row for each column, and where they came from."""

    def __init__(
        self,
        family: str,
        results: FloatArray,
        *,
        estimator: Estimator = _ML,
        families: IntArray | None = None,
        standardize: bool = True,
        column_names: list[str] | None = None,
        data: tuple[NDArray[Any], FloatArray] | None = None,
        sums: power_sums.PowerSums | power_sums.MixedSums | None = None,
        was_vector: bool = False,
        unit_weights: FloatArray | None = None,
        lmbda_error: FloatArray | None = None,
    ) -> None:
        self.family = family
        self.estimator = estimator
        self.standardize = standardize
        self.column_names = column_names
        self._results = results
        self._families = np.full(len(results), FAMILIES[family]) if families is None else families
        self._was_vector = was_vector
        self._unit_weights = unit_weights
        unknown = np.where(results[:, STATUS] == Status.BRACKETED, np.nan, 0.0)
        self.lmbda_error = unknown if lmbda_error is None else lmbda_error
        self._data = data
        self._sums = sums

    lmbda = _Figure("lmbda", "The transformation parameter of each column.")
    loc = _Figure("loc", "Mean of the raw transformed values, a factor ``exp(log_factor)`` apart.")
    scale = _Figure("scale", "Their standard deviation, a factor ``exp(log_factor)`` apart.")
    log_factor = _Figure("log_factor", "Log of the factor that `loc` and `scale` leave out; mostly 0.")
    n_obs = _Figure("n_obs", "Number (or total weight) of the values that are not missing.")
    x_min = _Figure("x_min", "Smallest value of the fitted data.")
    x_max = _Figure("x_max", "Largest value of the fitted data.")
    lmbda0 = _Figure("lmbda0", "The lambda from which the reweighting of a robust fit started.")
    objective = _Figure("objective", "What the estimator minimises, at `lmbda0`.")
    n_kept = _Figure("n_kept", "Number of values (or total weight) used in the final fit.")
    center = _Figure("center", "What is subtracted before values are transformed.")
    divisor = _Figure("divisor", "What they are then divided by.")

    #: results, and what transforms take of them
    _made: tuple[FloatArray, FloatArray] | None = None

    def _fields(self) -> FloatArray:
        """What transforms take of the results: made once, and read in a third of the time."""
        made = self._made
        if made is None or made[0] is not self._results:
            self._made = made = (self._results, fields_of(self._results))
        return made[1]

    @property
    def cutoff(self) -> float:
        """Quantile of the normal distribution beyond which values are outliers."""
        return self.estimator.cutoff

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._results.shape[0])

    @property
    def shift(self) -> FloatArray:
        """What Box-Cox adds to each column before it is transformed; 0 under Yeo-Johnson."""
        mirrored = np.array([is_mirrored(code) for code in FAMILIES.values()])
        return np.where(mirrored[self._families], 0.0, 0.0 - self.center)

    @property
    def nll(self) -> FloatArray:
        """Negative log-likelihood at `lmbda`."""
        return self._results[:, NLL] * self.n_kept

    @property
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return self._results[:, CURVATURE] * self.n_kept

    @property
    def n_iter(self) -> IntArray:
        """Evaluations of the likelihood or its derivatives."""
        return self._results[:, N_EVAL].astype(np.int64)

    @property
    def status(self) -> IntArray:
        """A `powerkern.Status` for each column."""
        return self._results[:, STATUS].astype(np.int64)

    @property
    def status_text(self) -> list[str]:
        """The status of each column in words."""
        return [Status(code).sentence for code in self.status]

    @property
    def route(self) -> list[str]:
        """How each optimum was found: "lockstep", "one pass", "two pass", "power sums", "moments", "refit" or "".

        "refit both sides": as "refit", from the start that rectifies both sides.
        """
        return [Route(code).label for code in self._results[:, ROUTE].astype(np.int64)]

    @property
    def families(self) -> list[str]:
        """The transform of each column."""
        names = {code: name for name, code in FAMILIES.items()}
        return [names[code] for code in self._families.tolist()]

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_data": None,
            "_sums": None,
            "_made": None,
        }  # a fit travels without the data it came from

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands large arrays to its workers as read-only maps of a file, which kernels do not take
        self.__dict__.update(state, _results=np.array(state["_results"]))
