"""Adaptive RewML, the estimator behind ``estimator="robust"``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.options import CHANGE_POINTS, CUTOFF, SEARCH_RANGE, SEARCHES
from powerkern._estimators.rewml import n_steps
from powerkern._estimators.robust import RobustEstimator, kernel_options
from powerkern.kernels.robust.adaptive_rewml import ENTRIES
from powerkern.kernels.robust.fit import EstimatorEntries
from powerkern.kernels.robust.options import ADAPTIVE_QQ, Options
from powerkern.kernels.robust.qq import C
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES

_RULES = {"none": NOT_RECTIFIED, "one": QUARTILES, "both": BOTH}


@dataclass(frozen=True, kw_only=True, repr=False)
class AdaptiveRewML(RobustEstimator):
    r"""RewML with two starting values and data-driven cut-offs, ``estimator="robust"``.

    It departs from the paper [1]_ in four ways, which reduce the error of lambda:

    * Box-Cox has a second starting value, under which small outliers stand out as well (`rectify`). For lognormal data
      with up to 20 % small outliers and n = 100, the mean squared error is 0.31 to 0.89 times the error from the
      paper's starting value alone.
    * From the second step on, the cut-off adapts to the data. Values with :math:`|\psi(u) - \mu| \le k\, \sigma` are
      kept, where k is one of :math:`k_0 = \Phi^{-1}(\mathrm{cutoff}), k_0 + 1/2, k_0 + 1, k_0 + 3/2`: the one beyond
      which the excess of values is most significant. If there is no excess, k is :math:`k_0 + 2`. A normal sample has
      :math:`e = 2n (1 - \Phi(k))` values beyond k; m values are an excess if :math:`m > e` and
      :math:`m \ln(m/e) - (m - e) > 2.3`. Nearly all values of clean data are therefore kept.
    * The first step leaves out values that are outlying after the rectified transform, under which outliers stand out.
      Three reweighting steps instead of two readmit good values that the first step left out.
    * A status reports when many values far out in one tail were all kept.

    On clean lognormal columns the mean squared error of lambda is 1.3, 1.2 and 1.1 times the error of maximum
    likelihood at n = 50, 100 and 400; for `RewML` it is 1.8 to 1.9 times. In the median of 252 settings with up to 15 %
    outliers the error is half the error of `RewML`, and the error is lower in every setting.

    A single value within 3.6 scales of the center has full weight, and a few outliers close to a tail may be kept. For
    the car weights of [1]_ lambda of Box-Cox is 0.64, but 0.09 by `RewML`. See the guide on robust fits.

    Parameters
    ----------
    adaptive_cutoff : bool, default True
        Whether cut-offs adapt from the second step on; otherwise k is :math:`k_0` in every step.
    n_reweight : int or "settled", default 3
        Number of reweighting steps; "settled": repeat until a step keeps the same values as the step before,
        at most 50 times.
    rectify : {"both", "one", "none"}, default "both"
        Starting values. "both": Box-Cox starts from the transform rectified on the side that lambda flattens, and from
        the transform rectified on both sides. Of the two fits, the one that brings more values to the quantiles of a
        normal distribution is used. "one": Box-Cox starts from the first only, as Yeo-Johnson, which is its own mirror
        image, always does. "none": from the plain transform.
    first_weights : {"rectified", "plain"}, default "rectified"
        The transform under which the first step looks for outlying values. Without reweighting (``n_reweight=0``) this
        has no effect.
    prestandardize : {"mad", "median", "none"}, default "mad"
        As for `RewML`.
    cutoff, search, search_range, c, change_points
        As for `RewML`.

    Raises
    ------
    TypeError, ValueError
        An option that is not one of these values.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
    >>> fit = pk.fit(x, "box-cox", pk.AdaptiveRewML(cutoff=0.999))
    >>> fit.estimator, bool(fit.outliers(x)[-1])
    (AdaptiveRewML(cutoff=0.999), True)
    """

    cutoff: float = CUTOFF
    adaptive_cutoff: bool = True
    n_reweight: int | str = 3
    prestandardize: str | None = None
    search: str = "global"
    search_range: Sequence[float] = SEARCH_RANGE
    c: float = C
    change_points: Sequence[float] = CHANGE_POINTS
    rectify: str = "both"
    first_weights: str = "rectified"

    name: ClassVar[str] = "robust"
    keeps_all: ClassVar[bool] = False
    fits_origin: ClassVar[bool] = True
    criterion: ClassVar[int] = ADAPTIVE_QQ
    entries: ClassVar[EstimatorEntries] = ENTRIES

    @property
    def sets_unit(self) -> bool:
        """True if the option `prestandardize` was given."""
        return self.prestandardize is not None

    @property
    def widens_small_samples(self) -> bool:
        """True for this estimator; see `Estimator.widens_small_samples`."""
        return True

    @property
    def kernel_options(self) -> Options:
        """The options in the form that the kernels expect."""
        rule = _RULES[self.rectify]
        lower, upper = self.change_points
        return kernel_options(
            self.cutoff,
            self.prestandardize or "mad",
            self.search_range,
            search=SEARCHES[self.search],
            n_reweight=n_steps(self.n_reweight),
            adaptive=self.adaptive_cutoff,
            c=self.c,
            rule=rule,
            first_rule=NOT_RECTIFIED if self.first_weights == "plain" else rule,
            lower_tail=lower,
            upper_tail=1.0 - upper,
        )
