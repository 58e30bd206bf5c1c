"""Maximum trimmed likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.options import CUTOFF, SEARCH_RANGE
from powerkern._estimators.robust import RobustEstimator, kernel_options
from powerkern.kernels.robust.fit import EstimatorEntries
from powerkern.kernels.robust.options import TRIMMED, UNTIL_SETTLED, Options
from powerkern.kernels.robust.trimmed import ENTRIES


@dataclass(frozen=True, kw_only=True, repr=False)
class MTL(RobustEstimator):
    """Maximum likelihood of the best ``h n`` consecutive order statistics [1]_, ``estimator="mtl"``.

    This is maximum trimmed likelihood. lambda and the window of order statistics minimise
    ``1/2 ln Var(psi) - (lambda - 1) mean(J)`` over the values in the window. The estimator breaks down if more than a
    fraction ``1 - h`` of the values are outliers. It is biased on clean data, because their tails are trimmed as well.

    Parameters
    ----------
    h : float, default 0.95
        Fraction of the values to keep; more than 1/2.
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.
    prestandardize : {"mad", "median", "none"}, default "mad"
        As for `RewML`.
    search_range : (float, float), default (-4, 6)
        As for `RewML`.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> import powerkern as pk
    >>> pk.MTL(h=0.4)
    Traceback (most recent call last):
        ...
    ValueError: h must be a number in (0.5, 1], got 0.4
    """

    h: float = 0.95
    cutoff: float = CUTOFF
    prestandardize: str = "mad"
    search_range: Sequence[float] = SEARCH_RANGE

    name: ClassVar[str] = "mtl"
    keeps_all: ClassVar[bool] = False
    criterion: ClassVar[int] = TRIMMED
    entries: ClassVar[EstimatorEntries] = ENTRIES

    @property
    def kernel_options(self) -> Options:
        """The options in the form that the kernels expect."""
        return kernel_options(
            self.cutoff, self.prestandardize, self.search_range, fraction=self.h, n_reweight=UNTIL_SETTLED
        )
