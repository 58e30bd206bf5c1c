"""Table of the results of a fit, one entry per column: named views of the rows that kernels write."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import ImageHandler, count_outside, transform_matrix, transform_ordinary
from powerkern._status import Route, Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.censored.fit import LOC_ERROR
from powerkern.kernels.results import FIELDS, N_EVAL
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored
from powerkern.kernels.transforms.matrix import select_fields

A = TypeVar("A", bound=NDArray[Any])
#: Selection of columns of a matrix.
Chosen = slice | NDArray[np.intp]

#: Names of the attributes that hold the fields of `kernels.results.ColumnFit`, in their order.
_NAMES = tuple(
    {"nll": "mean_nll", "curvature": "mean_curvature", "status": "status_codes"}.get(name, name) for name in FIELDS
)
_FAMILY_NAMES = {code: name for name, code in FAMILIES.items()}
_IS_MIRRORED = np.array([is_mirrored(code) for code in FAMILIES.values()])


class ColumnTable:
    """The results of a fit: read-only arrays with one entry per column.

    Attributes
    ----------
    lmbda, loc, scale, log_factor, n_obs, x_min, x_max, lmbda0, objective, n_kept, center, divisor : (p,) ndarray
        As `powerkern.PowerFit` describes them.
    mean_nll, mean_curvature : (p,) ndarray
        `nll` and `information`, divided by the number of observations.
    ref, slope, intercept : (p,) ndarray
        Standardised values are ``slope (psi(x) - psi(ref)) exp(-s) + intercept``, see `powerkern.PowerFit`.
    kept_low, kept_high : (p,) ndarray
        Smallest and largest value that a robust fit keeps.
    route, status_codes : (p,) ndarray
        Codes of `powerkern.Route` and of `powerkern.Status`, stored as floats by the kernels.
    unit_weights : (p,) ndarray or None
        The weight that counts as one observation if weights are relative; None if weights are counts.
    censored : (p, N_CENSORED_FIELDS) ndarray or None
        Results on censored cells, see `kernels.censored.fit`; None if no cell is censored.
    kernel_rows : (p, N_RESULTS) ndarray
        Rows of `kernels.results.ColumnFit`. The other arrays are views of them. Only kernels should read them.
    """

    lmbda: FloatArray
    loc: FloatArray
    scale: FloatArray
    log_factor: FloatArray
    ref: FloatArray
    slope: FloatArray
    intercept: FloatArray
    mean_nll: FloatArray
    mean_curvature: FloatArray
    n_obs: FloatArray
    x_min: FloatArray
    x_max: FloatArray
    lmbda0: FloatArray
    objective: FloatArray
    n_kept: FloatArray
    kept_low: FloatArray
    kept_high: FloatArray
    center: FloatArray
    divisor: FloatArray
    route: FloatArray
    status_codes: FloatArray

    def __init__(
        self,
        kernel_rows: FloatArray,
        family: IntArray | str,
        *,
        unit_weights: FloatArray | None = None,
        lmbda_error: FloatArray | None = None,
        censored: FloatArray | None = None,
    ) -> None:
        """Make the table from the rows that kernels wrote.

        Parameters
        ----------
        kernel_rows : (p, N_RESULTS) ndarray
            Rows of `kernels.results.ColumnFit`. The table keeps this array without a copy, so nothing else may write
            to it.
        family : str or (p,) ndarray of int
            Name of the family of all columns, or the code of each column's family.
        unit_weights, lmbda_error : (p,) ndarray, optional
            See the attributes. By default weights are counts, and errors are 0.
        censored : (p, N_CENSORED_FIELDS) ndarray, optional
            See the attribute. By default no cell is censored.
        """
        self.kernel_rows = kernel_rows
        self.unit_weights = unit_weights
        self.censored = censored
        self._family, self._lmbda_error = family, lmbda_error
        by_field = kernel_rows.T
        by_field.flags.writeable = False  # views inherit this
        vars(self).update(zip(_NAMES, by_field, strict=True))

    def __len__(self) -> int:
        return len(self.kernel_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.kernel_rows, self._family, self.unit_weights, self._lmbda_error, self.censored
        return _unpickle_table, parts

    # --- computed when first used -------------------------------------------------------------------------

    @cached_property
    def family_codes(self) -> IntArray:
        """The code of each column's family, as `kernels.transforms.family` defines it."""
        return np.full(len(self), FAMILIES[self._family]) if isinstance(self._family, str) else self._family

    @cached_property
    def status(self) -> IntArray:
        """A `powerkern.Status` for each column."""
        return _read_only(self.status_codes.astype(np.int64))

    @cached_property
    @np.errstate(over="ignore")
    def nll(self) -> FloatArray:
        """Negative log-likelihood of each column at `lmbda`."""
        return _read_only(self.mean_nll * self.n_kept)

    @cached_property
    @np.errstate(over="ignore")
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return _read_only(self.mean_curvature * self.n_kept)

    @cached_property
    def n_iter(self) -> IntArray:
        """Number of evaluations of the likelihood or its derivatives, for each column."""
        return _read_only(self.kernel_rows[:, N_EVAL].astype(np.int64))

    @cached_property
    def lmbda_error(self) -> FloatArray:
        """Bound on the difference between each lambda and the lambda that a fit of all rows in memory would give."""
        return _read_only(np.zeros(len(self)) if self._lmbda_error is None else self._lmbda_error.view())

    @cached_property
    def mirrored(self) -> BoolArray:
        """Mask of the Yeo-Johnson columns, whose transform has a second branch for negative values."""
        return _read_only(_IS_MIRRORED[self.family_codes])

    @cached_property
    def shift(self) -> FloatArray:
        """The number that Box-Cox adds to each column before the transform; 0 under Yeo-Johnson."""
        return _read_only(np.where(self.mirrored, 0.0, 0.0 - self.center))

    @cached_property
    def row_fields(self) -> FloatArray:
        """The parameters that row-wise transforms read, one row per parameter; see `kernels.transforms.matrix`."""
        return select_fields(self.kernel_rows)

    @cached_property
    def inversion_cache(self) -> dict[Any, Any]:
        """Cache of the quantities that every inverse transform of these columns needs, see `inversion.Inversion`."""
        return {}

    @cached_property
    def n_censored(self) -> FloatArray:
        """Number of censored cells of each column; with weights, the total weight of these cells."""
        n = np.zeros(len(self)) if self.censored is None else self.censored[:, :LOC_ERROR].sum(axis=1)
        return _read_only(n)

    @property
    def families(self) -> list[str]:
        """The name of each column's family."""
        return [_FAMILY_NAMES[code] for code in self.family_codes.tolist()]

    @property
    def status_text(self) -> list[str]:
        """The status of each column in words."""
        return [Status(code).sentence for code in self.status.tolist()]

    @property
    def route_labels(self) -> list[str]:
        """The route by which each lambda was computed, in words; see `powerkern.Route`."""
        return [Route(code).label for code in self.route.astype(np.int64).tolist()]

    # --- other tables -------------------------------------------------------------------------------------

    def take(self, columns: slice | IntArray) -> ColumnTable:
        """Return a new table with copies of the results of the selected columns."""
        return ColumnTable(
            self.kernel_rows[columns].copy(),
            self._family if isinstance(self._family, str) else self._family[columns].copy(),
            unit_weights=None if self.unit_weights is None else self.unit_weights[columns].copy(),
            lmbda_error=None if self._lmbda_error is None else self._lmbda_error[columns].copy(),
            censored=None if self.censored is None else self.censored[columns].copy(),
        )

    # --- kernels by family --------------------------------------------------------------------------------

    def group_by_family(self) -> list[tuple[int, Chosen]]:
        """Return the code of each family and the positions of its columns; a single family has a full slice instead."""
        codes = np.unique(self.family_codes).tolist()
        return [(code, slice(None) if len(codes) == 1 else np.flatnonzero(self.family_codes == code)) for code in codes]

    def compute_by_family(self, function: Callable[[int, Chosen], FloatArray]) -> FloatArray:
        """Call ``function(code, columns)`` once per family; return all results in the order of the columns."""
        parts = [(chosen, function(code, chosen)) for code, chosen in self.group_by_family()]
        results = np.empty((len(self), *parts[0][1].shape[1:]))
        for chosen, part in parts:
            results[chosen] = part
        return results

    def transform(
        self,
        values: NDArray[Any],
        out: NDArray[Any] | None,
        direction: int,
        n_threads: int,
        completion: ImageHandler | None = None,
    ) -> IntArray:
        """Transform every column of `values` into `out`; return the number of values without an image in each column.

        The arguments are as in `_engine.apply.transform_matrix`.
        """
        rows, fields = self.kernel_rows, self.row_fields
        return transform_matrix(values, out, self.family_codes, direction, rows, n_threads, completion, fields)

    def transform_ordinary(self, values: FloatArray, direction: int) -> FloatArray:
        """Return the images of ordinary values and NaN for all others; see `transform_ordinary` in `_engine.apply`."""
        return transform_ordinary(values, self.family_codes, direction, self.kernel_rows, self.row_fields)

    def count_outside(self, values: NDArray[Any], n_threads: int) -> IntArray:
        """Return the number of values outside the domain of each column."""
        return count_outside(values, self.family_codes, self.kernel_rows, n_threads)


def _read_only(array: A) -> A:
    """Mark a new array, to which nothing else refers, as read-only and return it."""
    array.flags.writeable = False
    return array


def _unpickle_table(
    kernel_rows: FloatArray,
    family: IntArray | str,
    unit_weights: FloatArray | None,
    lmbda_error: FloatArray | None,
    censored: FloatArray | None,
) -> ColumnTable:
    """Rebuild a pickled table from a copy of its rows; arguments are described in `ColumnTable.__init__`.

    The copy is needed because joblib passes read-only memory maps to workers, and kernels reject these.
    """
    return ColumnTable(
        np.array(kernel_rows), family, unit_weights=unit_weights, lmbda_error=lmbda_error, censored=censored
    )
