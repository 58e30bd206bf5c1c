"""Maximum likelihood of the central values, weighted by rank, together with the origin and the unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.base import ColumnSpec, Estimator, Run
from powerkern._estimators.options import CUTOFF
from powerkern._estimators.origin import OriginFit, central_weights, find_origin
from powerkern._estimators.robust_bounds import restandardize
from powerkern._estimators.routes import maximize_likelihood
from powerkern._estimators.standard_units import row_moments
from powerkern._estimators.ties import sort_with_weights
from powerkern._input.arrays import Matrix
from powerkern._status import Status
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import OBJECTIVE, STATUS
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED, is_mirrored
from powerkern.kernels.transforms.gather import APPLY

#: Weighted standard deviation of a standard normal variable: with Yeo-Johnson's weights, and with Box-Cox's.
_SPREAD_OF_NORMAL = 0.663089054088512, 0.661607583771256


@dataclass(frozen=True, kw_only=True, repr=False)
class CentralML(Estimator):
    r"""Maximum likelihood of the central values, ``estimator="central-mle"``; only with ``origin="fit"``.

    Values are weighted by rank [1]_. With :math:`q = |2p - 1|`, where p is the relative rank, from 0 (smallest) to 1,
    the weights for Yeo-Johnson are 1 up to q = 0.54 and :math:`\tfrac12 + \tfrac12 \cos(\pi (q - 0.54)/0.46)` beyond;
    the weights for Box-Cox are 1 up to q = 0.8 and 0 beyond. The value of rank i among n gets the mean weight over
    :math:`p = (c + 1/6)/(n + 1/3)`, :math:`i - 1 \le c \le i`, so that a row of weight w counts as w rows. `loc` is the
    weighted mean; `scale` is the weighted standard deviation, divided by its value for a standard normal distribution
    with the same weights.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.

    References
    ----------
    .. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.append(1000.0 + np.random.default_rng(0).gamma(3.0, size=195), [1030.0] * 5)
    >>> fit = pk.fit(x, estimator=pk.CentralML(), origin="fit")
    >>> fit.outliers(x)[-5:].sum()
    np.int64(5)
    """

    cutoff: float = CUTOFF

    name: ClassVar[str] = "central-mle"
    fits_origin: ClassVar[bool] = True
    needs_origin: ClassVar[bool] = True

    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Raise an error: the estimator needs ``origin="fit"``. See `Estimator.fit_values`."""
        raise NotImplementedError("CentralML fits columns with their origins; pass origin='fit'")

    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """Raise an error: there is no objective curve, because the origin moves with lambda; see `Estimator`."""
        raise ValueError(
            f"estimator={self.name!r} has no objective curve, because the origin moves with lambda; fit with "
            "estimator='mle' for a curve"
        )

    def fit_origin(self, values: Columns, family: int, weight: Weights, requested: ColumnSpec, run: Run) -> OriginFit:
        """Maximise the rank-weighted likelihood over origin, unit and lambda; see `Estimator.fit_origin`."""
        return find_origin(values, family, weight, run.n_threads, central=True, progress=run.progress)

    def fit_at_origin(
        self, rescaled: Columns, family: int, origin: OriginFit, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> FloatArray:
        """Standardise columns by rank-weighted moments at the lambdas of `origin`; see `Estimator.fit_at_origin`."""
        results = _standardize_centrally(rescaled, family, origin.lmbda, matrix.weight, run.n_threads)
        results[:, OBJECTIVE] = np.where(np.isnan(origin.lmbda), results[:, OBJECTIVE], -origin.likelihood)
        return results


def _standardize_centrally(u: Columns, family: int, lmbda: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return the results of columns at given lambdas, with location and scale from rank-weighted moments.

    Parameters
    ----------
    u : (n, p) AffineView
        The columns minus their origins, divided by their units.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    lmbda : (p,) ndarray
        The lambdas.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    """
    results = maximize_likelihood(u, family, lmbda, weight, n_threads)
    fitted, box_cox = results[:, STATUS] == Status.FIXED, not is_mirrored(family)

    @np.errstate(all="ignore")
    def measure(block: FloatArray, group: slice) -> FloatArray:
        columns, weights = sort_with_weights(block, weight)
        w = central_weights(columns, weights, box_cox)
        APPLY[family, FORWARD_STANDARDIZED](columns, results[group], np.zeros(len(columns), dtype=np.int64))
        center, spread = row_moments(columns, w)
        return np.column_stack([center, spread / _SPREAD_OF_NORMAL[box_cox]])

    mean, sd = measure_columns(measure, u, 2, n_threads).T
    fine = fitted & np.isfinite(mean) & (sd > 0.0) & np.isfinite(sd)
    mean, sd = np.where(fine, mean, 0.0), np.where(fine, sd, 1.0)
    restandardize(results, mean, sd)
    results[fitted, STATUS] = Status.SCANNED
    return results
