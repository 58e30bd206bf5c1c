"""Plotting positions of a column with censored values, which are only known to lie below, or above, a limit."""

from __future__ import annotations

import numpy as np

from powerkern._typing import BoolArray, FloatArray


def censored_positions(values: FloatArray, is_below: BoolArray) -> FloatArray:
    r"""Return the plotting positions of the observed values of a left-censored sample, by Hirsch and Stedinger.

    Parameters
    ----------
    values : (n,) ndarray
        Observed values, and the limits of the censored ones. No value is NaN.
    is_below : (n,) ndarray of bool
        True for censored values.

    Returns
    -------
    (n_observed,) ndarray
        Estimated probability of a value below each observed value, in the order of `values`. Tied values get increasing
        positions in this order.

    Notes
    -----
    For the distinct limits :math:`L_1 < \dots < L_m`, with :math:`L_0 = -\infty` and :math:`L_{m+1} = \infty`, let
    :math:`A_j` be the number of observed values in :math:`[L_j, L_{j+1})`, and :math:`B_j` the number of values known
    to be less than :math:`L_j`: observed ones, and those whose limit is :math:`L_j` or less. The probability of
    exceeding :math:`L_j` is estimated from the largest limit downwards [1]_,

    .. math:: p_j = p_{j+1} + \frac{A_j}{A_j + B_j} (1 - p_{j+1}), \qquad p_{m+1} = 0,

    which agrees with Kaplan and Meier's estimate. The i-th of the :math:`A_j` sorted values between two limits has the
    position

    .. math:: (1 - p_j) + \frac{i}{A_j + 1} (p_j - p_{j+1}).

    R's package NADA draws these positions [2]_. Without censored values they are i/(n + 1). Positions of a
    right-censored sample x are 1 minus the positions of -x.

    References
    ----------
    .. [1] R. M. Hirsch and J. R. Stedinger, "Plotting positions for historical floods and their precision", Water
       Resources Research 23, 1987, 715-727.
    .. [2] D. R. Helsel, "Statistics for Censored Environmental Data Using Minitab and R", second edition, Wiley, 2012.
    """
    observed, limits = values[~is_below], np.unique(values[is_below])
    starts = np.concatenate([[-np.inf], limits])
    interval = np.searchsorted(limits, observed, side="right")
    in_interval = np.bincount(interval, minlength=starts.size)  # A
    n_observed_below = np.searchsorted(np.sort(observed), starts, side="left")
    n_censored_below = np.searchsorted(np.sort(values[is_below]), starts, side="right")
    n_below = n_observed_below + n_censored_below  # B
    exceedance = np.zeros(starts.size + 1)
    for j in range(starts.size)[::-1]:
        above = exceedance[j + 1]
        n = in_interval[j] + n_below[j]
        exceedance[j] = above + (in_interval[j] / n) * (1.0 - above) if n else 1.0
    order = np.argsort(observed, kind="stable")
    first = np.concatenate([[0], np.cumsum(in_interval)])
    rank = np.empty(observed.size)  # within the interval, from 1
    rank[order] = np.arange(1, observed.size + 1) - first[interval[order]]
    low, high = 1.0 - exceedance[interval], exceedance[interval] - exceedance[interval + 1]
    return np.asarray(low + rank / (in_interval[interval] + 1) * high)
