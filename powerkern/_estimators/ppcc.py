"""PPCC: maximise the probability plot correlation coefficient of the transformed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.base import Estimator, Run
from powerkern._estimators.options import CUTOFF
from powerkern._estimators.plotting_positions import cached_quantiles, sort_and_weigh
from powerkern._estimators.robust_bounds import move_lambda
from powerkern._estimators.routes import fit_in_memory
from powerkern._status import Status
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.normality import ppcc
from powerkern.kernels.results import LMBDA, N_EVAL, OBJECTIVE, STATUS


@dataclass(frozen=True, kw_only=True, repr=False)
class PPCC(Estimator):
    """Largest probability plot correlation coefficient (correlation in the normal QQ plot), ``estimator="ppcc"``.

    The ascending transformed values are correlated with normal quantiles at Filliben's median ranks [1]_, as in
    ``scipy.stats.boxcox_normmax(x, method="pearsonr")``. Quantiles of tied values are not averaged. `objective` is one
    minus the correlation. The estimator does not resist outliers.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.

    Notes
    -----
    The correlation can have several maxima. It is scanned on both sides of the maximum likelihood estimate, to a
    distance of 4/sd(logs), and farther while it increases, to about 200/sd(logs). If it still increases there, the
    status is `Status.NOT_CERTIFIED`. The maximum next to the best point is found by Brent's method to about 1e-8. If
    the scan meets another maximum at which one minus the correlation is less than twice as large as at the best one,
    the status is `Status.MULTIMODAL`. Two distinct values look equally normal under any lambda; lambda is then the
    maximum likelihood estimate. `nll` is the negative log-likelihood at the estimate of lambda.

    Tied values with unequal weights are merged. A weight that is not a whole number stands for a fractional number of
    copies.

    References
    ----------
    .. [1] J. J. Filliben, "The probability plot correlation coefficient test for normality", Technometrics 17, 1975,
       111-117.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.random.default_rng(0).lognormal(size=100)
    >>> bool(abs(pk.fit(x, "box-cox", pk.PPCC()).lmbda[0]) < 0.2)
    True
    """

    cutoff: float = CUTOFF

    name: ClassVar[str] = "ppcc"
    is_robust: ClassVar[bool] = False
    needs_order: ClassVar[bool] = True

    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Fit every column, starting from the maximum likelihood estimate of lambda; see `Estimator.fit_values`."""
        likely = fit_in_memory(values, family, np.full(values.shape[1], np.nan), weight, run.n_threads)
        usable = np.isin(likely[:, STATUS], (Status.OK, Status.NOT_CERTIFIED))
        if not usable.any():
            return likely
        start = np.where(usable, likely[:, LMBDA], np.nan)
        quantiles = cached_quantiles(values.shape[0])

        def search(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.empty((len(block), ppcc.N_OPTIMUM)), ppcc.new_search_work(block.shape[1])
            columns, positions, totals = sort_and_weigh(block, weight, quantiles)
            ppcc.maximize_ppcc_columns(columns, positions, totals, family, start[group], work, out)
            return out

        optima = measure_columns(search, values, ppcc.N_OPTIMUM, run.n_threads, run.progress)
        results = fit_in_memory(values, family, optima[:, ppcc.OPTIMUM_LMBDA].copy(), weight, run.n_threads)
        results[~usable] = likely[~usable]
        done = results[:, STATUS] == Status.FIXED
        results[done, STATUS] = optima[done, ppcc.OPTIMUM_STATUS]
        results[usable, N_EVAL] = likely[usable, N_EVAL] + optima[usable, ppcc.OPTIMUM_N_EVAL]
        results[usable, OBJECTIVE] = optima[usable, ppcc.OPTIMUM_VALUE]
        return results

    def objective(
        self,
        values: Columns,
        family: int,
        lmbdas: FloatArray,
        weight: Weights,
        n_threads: int,
        routes: FloatArray,
    ) -> FloatArray:
        """Return one minus the correlation of every column at every lambda; see `Estimator.objective`."""
        quantiles = cached_quantiles(values.shape[0])

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.empty((len(block), lmbdas.size)), np.empty((2, block.shape[1]))
            columns, positions, totals = sort_and_weigh(block, weight, quantiles)
            ppcc.ppcc_objective_columns(columns, positions, totals, family, lmbdas, work, out)
            return out

        return measure_columns(evaluate, values, lmbdas.size, n_threads)

    def recompute_at(
        self, lmbda: FloatArray, columns: Columns, family: int, results: FloatArray, weight: Weights, n_threads: int
    ) -> FloatArray:
        """Recompute the results of every column at the lambdas `lmbda`; see `Estimator.recompute_at`."""
        return move_lambda(lmbda, columns, family, results, weight, n_threads)
