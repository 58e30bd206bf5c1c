"""The estimator that makes the transformed values look most normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.nearest_normal import NearestNormal
from powerkern._estimators.options import CUTOFF, CheckedOptions


@dataclass(frozen=True, kw_only=True, repr=False)
class PPCC(CheckedOptions):
    """Largest probability plot correlation coefficient, the straightest QQ plot, ``estimator="ppcc"``.

    The correlation of the ascending transformed values with normal quantiles at Filliben's median ranks [1]_, as in
    ``scipy.stats.boxcox_normmax(x, method="pearsonr")``; quantiles of tied values are not averaged. `objective` is one
    minus it. It does not resist outliers.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.

    Notes
    -----
    The correlation can have several maxima. It is scanned on both sides of the most likely lambda, as far as
    4/sd(logs) and on as long as it grows, to some 200/sd(logs); if it still grows there, the status is
    `Status.NOT_CERTIFIED`. The maximum next to the best point is found by Brent's method to about 1e-8. The status says
    whether the scan saw another one with less than twice the distance from 1. Two distinct values look equally normal
    under any lambda: theirs is the most likely one. `nll` is the negative log-likelihood at the lambda found.

    Tied values with unequal weights are merged. Weights that are not whole numbers stand for copies with a fraction.

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
    needs_order: ClassVar[bool] = True

    def solver(self) -> NearestNormal:
        """Return the estimator as kernels run it."""
        return NearestNormal()
