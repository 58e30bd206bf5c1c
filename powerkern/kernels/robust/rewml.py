"""RewML, reweighted maximum likelihood, as printed in the paper ([1]_).

A column is sorted and prestandardised (`prestandardization`). Then:

1. lambda_0 minimises the sum of ``rho((h_lambda^o(x_(i)) - mu)/sigma - Phi^-1(p_i))`` ([1]_, eq. (5)). Here
   ``p_i = (i - 1/3)/(n + 1/3)``, h^o is the rectified transform, rho is Tukey's bisquare, and mu and sigma are Huber's
   estimates of the transformed values.
2. Values with ``abs(h_lambda(x_i) - mu) <= Phi^-1(0.995) sigma`` get weight 1, others 0 ([1]_, eq. (16)), and lambda
   maximises the weighted likelihood.
3. Step 2 is repeated once, from the resulting lambda.

For each part of the paper, the table lists the function that implements it as printed, and the function that fits use.
Parts without an equation number are in the paper between (2) and (16):

================================================= ======================== =========================================
in the paper                                      as printed               in fits
================================================= ======================== =========================================
g_lambda, Box-Cox ([1]_, eq. (1))                 `transforms.boxcox`      `transforms.rectified.transform_sorted`
h_lambda, Yeo-Johnson ([1]_, eq. (2))             `transforms.yeojohnson`  `transforms.rectified.transform_sorted`
g^o and h^o, with C_l and C_u at the quartiles    `rectified_yeojohnson`   `transforms.rectified.transform_sorted`
normal scores Phi^-1(p_i)                         `qq.normal_scores`       `qq_column.make_scores`
rho, c = 0.5                                      `qq.rho`                 `qq.nearness`
mu and sigma of Huber                             `paper.huber_one_step`   `qq_column.one_step`
objective of lambda_0 ([1]_, eq. (5))             `paper.qq_objective`     `qq_column.qq_value`, `qq_lanes`
weights ([1]_, eq. (16))                          `paper.outlier_weights`  `reweighting.within_cutoff`
likelihood, without weights                       `likelihood.nll`         `reweighting.fit_by_logs`
================================================= ======================== =========================================

The following are not in the paper, in addition to the package's default estimator (`adaptive_rewml`):

* Mu and sigma are one step of Huber's estimators from median and MAD, as in the authors' programs; the paper uses
  M-estimates. Estimates iterated to convergence would resist fewer outliers (`qq_column.one_step`).
* Lambda_0 is found by a scan for all minima (`search.find_start`). A single run of Brent's method, as in R, missed the
  lowest minimum in 42 of 1,368 columns (docs/research/robust_study.rst, "The search for its minimum").
* Fits have options (`Options.first_rule`, `c`, `search`, `n_reweight`), and values may have weights.
* Besides lambda, a fit reports a status, the objective at lambda_0, and a consistent scale (`scale_factor`).

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import sd_within
from powerkern.kernels.results import N_EVAL
from powerkern.kernels.robust.column import Column
from powerkern.kernels.robust.column_results import is_finished, write_column, write_kept
from powerkern.kernels.robust.fit import Criterion, make_entries, no_tail
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq_column import keep_within, make_scores, qq_value
from powerkern.kernels.robust.qq_start import QQ_SEARCH, evaluate_at_start
from powerkern.kernels.robust.reweighting import Fit, max_fits, reweight
from powerkern.kernels.robust.scratch import ALL, RobustWork
from powerkern.kernels.robust.search import find_start


@kernel
def _fit(fit: Fit, column: Column, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit a prestandardised column, or set the status DEFERRED if `fit` cannot fit the values.

    Parameters
    ----------
    fit : kernel
        Fits a range of values by maximum likelihood (`reweighting.Fit`).
    column : Column
        The sorted column, in the units of the data and prestandardised.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    row : ndarray of float64, shape (N_RESULTS,)
        Receives the results.
    """
    x, prescaling, standardized = column.x, column.prescaling, column.standardized
    # step 1, the initial lambda: the minimiser of [1]_, eq. (5); the search for all minima is not in the paper
    start = find_start(QQ_SEARCH, standardized, options.low, options.high, ALL, options, work)
    # steps 2 and 3, weighted maximum likelihood with the weights of [1]_, eq. (16), `n_reweight` times
    kept = reweight(keep_within, fit, column, start.lmbda, max(max_fits(options), 1), options, work, row)
    if is_finished(x, standardized.counts, kept, row):
        return
    # not in the paper: the objective at lambda_0, a status, and a consistent scale
    row[N_EVAL] += start.n_eval
    start = evaluate_at_start(standardized, start, options, work)
    negative_shift = standardized.column.negative_shift
    write_column(x, standardized.counts, negative_shift, prescaling, start, row)
    factor = scale_factor(0.0, 0.0, kept.cutoff)
    write_kept(x, standardized.counts, negative_shift, prescaling, kept, factor, options, row)


@kernel
def scale_factor(n_kept: float, fraction_kept: float, cutoff: float) -> float:
    """Return the factor that makes the standard deviation of the values within the cut-off consistent for normal data.

    Only the cut-off is used (see `EstimatorEntries.scale_factor`).
    """
    return 1.0 / sd_within(cutoff)


ENTRIES = make_entries(__name__, Criterion(make_scores, qq_value, keep_within, _fit, no_tail), scale_factor, True)
