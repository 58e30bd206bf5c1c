"""The options of robust fits, encoded as numbers for kernels."""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import kernel
from powerkern.kernels.location.weights import FrequencyWeights, position_at, position_from_above
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, tail_rank

# estimators: RewML as in the paper, adaptive, and by R's conventions; Carroll's; maximum trimmed likelihood
QQ, ADAPTIVE_QQ, CELLWISE_QQ, CARROLL, TRIMMED = range(5)
# prestandardisation: none, by the median, by the MAD
RAW, MEDIAN, MAD = range(3)
# searches for lambda: a scan of all local minima, or Brent's method once
GLOBAL, BRENT = range(2)
#: Value of `n_reweight`: reweight until the values kept no longer change.
UNTIL_SETTLED = -1


class Options(NamedTuple):
    """Options of a robust fit (`with_rule` copies the fields by position)."""

    rule: int  #: rectification rule of `kernels.transforms.rectified`; BOTH: try both tails, or only one
    prestandardize: int  #: RAW, MEDIAN or MAD
    search: int  #: GLOBAL or BRENT
    low: float  #: interval of the search, in lambda of the prestandardised column
    high: float
    cutoff: float  #: largest distance of kept values from the center, in scales; a normal quantile of users' `cutoff`
    n_reweight: int  #: number of reweighting steps
    adaptive: bool  #: whether steps after the first use the cut-off of `adaptive_rewml.adapted_cutoff`
    fraction: float  #: fraction of the values that the trimmed likelihood keeps
    c: float  #: constant of the bisquare distance
    lower_tail: float  #: fractions of the values beyond the change points
    upper_tail: float
    first_rule: int  #: rectification rule for the first weights, users' `first_weights`


@kernel
def with_rule(o: Options, rule: int, adaptive: bool) -> Options:
    """Return a copy of the options with another rectification rule and another value of `adaptive`."""
    first_rule = o.first_rule if o.first_rule == NOT_RECTIFIED else rule
    return Options(
        rule, o.prestandardize, o.search, o.low, o.high, o.cutoff, o.n_reweight, adaptive, o.fraction, o.c,
        o.lower_tail, o.upper_tail, first_rule,
    )  # fmt: skip


@kernel
def change_ranks(counts: FrequencyWeights | None, n: int, options: Options) -> tuple[int, int]:
    """Return the indices of the two order statistics beyond which the rectified transform of n values is linear."""
    if counts is not None:
        return position_at(counts, options.lower_tail), position_from_above(counts, options.upper_tail)
    return tail_rank(n, options.lower_tail), n - 1 - tail_rank(n, options.upper_tail)
