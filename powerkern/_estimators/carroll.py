"""Carroll's estimator: maximum likelihood with a robust scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.options import CUTOFF, SEARCH_RANGE
from powerkern._estimators.robust import RobustEstimator, kernel_options
from powerkern._estimators.robust_bounds import rescale_by_huber
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.robust.carroll import ENTRIES
from powerkern.kernels.robust.fit import EstimatorEntries
from powerkern.kernels.robust.options import CARROLL, Options


@dataclass(frozen=True, kw_only=True, repr=False)
class Carroll(RobustEstimator):
    r"""Maximum likelihood with Huber's scale in place of the standard deviation [1]_, ``estimator="carroll"``.

    lambda minimises ``ln scale - (lambda - 1) mean(J)``. Location and scale are the estimates for Huber's least
    favourable density, which is normal in the center and has exponential tails. With
    :math:`v = (\psi(u) - \mu)/\sigma`, k = 1.5 and :math:`\psi_k(v) = \max(-k, \min(k, v))`,

    .. math:: \sum_i \psi_k(v_i) = 0, \qquad \sum_i \psi_k(v_i) v_i = n\,(2 \Phi(k) - 1).

    No value is left out. The bias of lambda grows slowly with the fraction of outliers and with their distance.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.
    prestandardize : {"mad", "median", "none"}, default "mad"
        As for `RewML`.
    search_range : (float, float), default (-4, 6)
        As for `RewML`.

    References
    ----------
    .. [1] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42,
       1980, 71-78.

    Examples
    --------
    >>> import powerkern as pk
    >>> pk.Carroll(search_range=[-2, 2])
    Carroll(search_range=(-2.0, 2.0))
    """

    cutoff: float = CUTOFF
    prestandardize: str = "mad"
    search_range: Sequence[float] = SEARCH_RANGE

    name: ClassVar[str] = "carroll"
    criterion: ClassVar[int] = CARROLL
    entries: ClassVar[EstimatorEntries] = ENTRIES

    @property
    def kernel_options(self) -> Options:
        """The options in the form that the kernels expect."""
        return kernel_options(self.cutoff, self.prestandardize, self.search_range)

    def rescale(self, again: FloatArray, kept: FloatArray, before: FloatArray, family: int, weight: Weights) -> None:
        """Recompute location and scale under Huber's least favourable density; arguments as in `rescale_by_ratio`."""
        rescale_by_huber(again, kept, before, family, weight)
