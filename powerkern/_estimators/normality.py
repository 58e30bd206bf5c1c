"""Estimators that make the transformed values look most normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.nearest_normal import NearestNormal
from powerkern._estimators.options import CUTOFF, CheckedOptions
from powerkern.kernels.normality import criterion


@dataclass(frozen=True, kw_only=True, repr=False)
class KS(CheckedOptions):
    """Least Kolmogorov-Smirnov distance from the fitted normal distribution, ``estimator="ks"``.

    The distance is ``max_i max(i/n - Phi(z_i), Phi(z_i) - (i - 1)/n)`` of the ascending transformed values, less their
    mean, over their standard deviation (with n - 1), see `powerkern.outliers.ks_distance`. It does not depend on how
    lambda was found, and does not resist outliers: a value far out moves the mean and the standard deviation.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.

    Notes
    -----
    The distance has kinks and can have several minima. It is scanned on both sides of the most likely lambda, as far as
    4/sd(logs) and on as long as it falls, to some 100/sd(logs); if it still falls there, the status is
    `Status.NOT_CERTIFIED`. Kinks are found to about 1e-10, smooth minima by Brent's method to about 1e-8. In columns
    of up to 512 values every step is looked at between whose ends the distance may be lowest. The status says whether
    the scan saw another minimum less than twice as high. Two distinct values look equally normal under any lambda:
    theirs is the most likely one. `nll` is the negative log-likelihood at the lambda found.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.outliers import ks_distance
    >>> x = np.random.default_rng(0).lognormal(size=100)
    >>> fit = pk.fit(x, "box-cox", pk.KS())
    >>> bool(np.isclose(ks_distance(fit.transform(x)), fit.objective[0]))
    True
    """

    cutoff: float = CUTOFF

    name: ClassVar[str] = "ks"

    def solver(self) -> NearestNormal:
        """The estimator as kernels run it."""
        return NearestNormal(criterion.KS)


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
    It is searched as the distance of `KS` is.

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

    def solver(self) -> NearestNormal:
        """The estimator as kernels run it."""
        return NearestNormal(criterion.PPCC)
