"""RewML, reweighted maximum likelihood as printed in the paper ([1]_), and nothing else.

In the paper's notation g_lambda is the Box-Cox transform ([1]_, eq. (1)), h_lambda the Yeo-Johnson transform ([1]_,
eq. (2)), and the upper index o marks their rectified forms (`powerkern.kernels.transforms.rectified`). A column is
sorted and prestandardised (`prestandardization`). Then:

1. lambda_0 minimises the sum of ``rho((h_lambda^o(x_(i)) - mu)/sigma - Phi^-1(p_i))``, where
   p_i = (i - 1/3)/(n + 1/3), with Tukey's bisquare rho and Huber's mu and sigma of the transformed values ([1]_, eq.
   (5)). `paper.qq_objective` is this sum over n; its fast form is `qq_column.qq_value`.
2. Values with ``abs(h_lambda(x_i) - mu) <= Phi^-1(0.995) sigma`` get weight 1, others 0 ([1]_, eq. (16)), and lambda
   maximises the weighted likelihood (`paper.outlier_weights`, in fast form `reweighting.within_cutoff`).
3. Step 2 is done once more, from the lambda found.

What the package does by default, `adaptive_rewml`, departs from the paper. Options that are not in the paper
(`Options.first_rule`, `c`, `search`) have the paper's values by default.

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
from powerkern.kernels.robust.fit import Criterion, entries_of, no_tail
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq_column import keep_within, qq_value, scores_of
from powerkern.kernels.robust.qq_start import QQ_SEARCH, at_its_start
from powerkern.kernels.robust.reweighting import Fit, n_fits_of, reweighted
from powerkern.kernels.robust.scratch import ALL, RobustWork
from powerkern.kernels.robust.search import find_start


@kernel
def _fit(fit: Fit, column: Column, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit a prestandardised column into its row of results, or defer it.

    Parameters
    ----------
    fit : kernel
        Maximum likelihood of a range of values (`reweighting.Fit`).
    column : Column
        The column, sorted, and its prestandardised form.
    options, work, row
        Options, scratch, and the results, of length N_RESULTS.
    """
    x, prescaling, standardized = column.x, column.prescaling, column.standardized
    # step 1, the initial lambda: the minimiser of [1]_, eq. (5)
    start = find_start(QQ_SEARCH, standardized, options.low, options.high, ALL, options, work)
    # steps 2 and 3, weighted maximum likelihood with the weights of [1]_, eq. (16), `n_reweight` times
    kept = reweighted(keep_within, fit, column, start.lmbda, max(n_fits_of(options), 1), options, work, row)
    if is_finished(x, standardized.counts, kept, row):
        return
    # not in the paper: the objective reported at lambda_0, a status, and the scale of the values kept made consistent
    row[N_EVAL] += start.n_eval
    start = at_its_start(standardized, start, options, work)
    negative_shift = standardized.column.negative_shift
    write_column(x, standardized.counts, negative_shift, prescaling, start, row)
    factor = scale_factor(0.0, 0.0, kept.cutoff)
    write_kept(x, standardized.counts, negative_shift, prescaling, kept, factor, options, row)


@kernel
def scale_factor(n_kept: float, share: float, cutoff: float) -> float:
    """Return the consistency factor of the standard deviation of the values kept, for normal data."""
    return 1.0 / sd_within(cutoff)


ENTRIES = entries_of(__name__, Criterion(scores_of, qq_value, keep_within, _fit, no_tail), scale_factor, True)
