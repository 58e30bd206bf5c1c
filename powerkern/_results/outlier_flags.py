"""Cut-offs for outliers, and the values that a robust fit keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.base import Estimator
from powerkern._estimators.options import normal_quantile
from powerkern._estimators.robust import small_sample_cutoff
from powerkern._results.column_table import ColumnTable
from powerkern._results.inference import Interval
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.transforms.family import FAMILIES, INVERSE_STANDARDIZED, domain_lower_bound

_DOMAIN_LOWER_BOUNDS = np.array([domain_lower_bound(code) for code in FAMILIES.values()])


def find_kept(table: ColumnTable, values: NDArray[Any]) -> BoolArray:
    """Return a mask of the values that the fit of each column keeps; for columns without a fit, all observed values."""
    is_inside = (values >= table.kept_low) & (values <= table.kept_high)
    return np.asarray(is_inside | (is_failed(table.status) & ~np.isnan(values)))


def standardized_cutoffs(estimator: Estimator, table: ColumnTable, cutoff: float) -> FloatArray:
    """Return the cut-off for outliers of each column on the standardised scale; see `PowerFit.outliers`.

    Parameters
    ----------
    estimator : Estimator
        The estimator of the fit.
    table : ColumnTable
        The results of the fit.
    cutoff : float
        Quantile of the normal distribution.
    """
    normal = np.full(len(table), normal_quantile(cutoff))
    if not estimator.widens_small_samples:
        return normal
    units = table.unit_weights
    n_kept = table.n_kept if units is None else table.n_kept / units
    return np.where(is_failed(table.status), normal, small_sample_cutoff(cutoff, n_kept))


def cutoffs_in_data_units(table: ColumnTable, standardized: FloatArray) -> Interval:
    """Convert cut-offs to data units: return the values whose standardised transforms are -+ the cut-off.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    standardized : (p,) ndarray
        Cut-offs on the standardised scale.
    """
    ends = np.array([-standardized, standardized])
    table.transform(ends, ends, INVERSE_STANDARDIZED, 1)
    low, high = ends
    low = np.where(np.isnan(low), table.center + _DOMAIN_LOWER_BOUNDS[table.family_codes], low)
    high = np.where(np.isnan(high), np.inf, high)
    failed = is_failed(table.status)
    low[failed] = high[failed] = np.nan
    return Interval(low, high)
