"""The result of estimators of location and scale, and constants that the estimators share."""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._status import LocationStatus

CONVERGED, ZERO_SCALE = int(LocationStatus.CONVERGED), int(LocationStatus.ZERO_SCALE)
MAX_ITER, EMPTY = int(LocationStatus.MAX_ITER), int(LocationStatus.EMPTY)
OVERFLOW = int(LocationStatus.OVERFLOW)
#: Internal status of a column with infinite values; the caller raises.
BAD_INFINITE = -1

#: 1/Phi^-1(3/4), which makes the median absolute deviation consistent for normal data.
MAD_FACTOR = 1.4826022185056018
#: The same constant as rounded by R's mad(); robust fits use it to prestandardise columns.
R_MAD_FACTOR = 1.4826

#: 2 Phi^-1(3/4): the interquartile range over this is consistent for normal data.
IQR_DIVISOR = 1.3489795003921634
#: Consistency factor for Qn: 1/(sqrt(2) Phi^-1(5/8)).
QN_FACTOR = 2.2191444659850757

#: Largest number of iterations of an estimator, a safeguard. 53 + 60 bisections determine all digits of a root within a
#: factor of 2**60 of the start.
MOST_ITERATIONS = 500
#: A scale that falls below this multiple of its starting value is set to 0. Ratios of scales in data are far larger.
VANISHED = 1e-60
#: P(Z < -1.5), the fraction of values that is expected to be clipped in each tail; the search for clip positions starts
#: there.
TAIL = 0.067
#: Factor that makes a computed distance large enough to include the value at that distance, despite rounding.
BEYOND = 1.0 + 1e-9


class LocScale(NamedTuple):
    """Result of an estimator: location, scale, number of iterations, and a code of `LocationStatus`."""

    loc: float
    scale: float
    n_iter: int
    status: int


@kernel
def make_loc_scale(loc: float, scale: float, n_iter: int, converged: bool) -> LocScale:
    """Build the result of an estimator for a column that has values, and choose its status.

    Parameters
    ----------
    loc : float
        The location.
    scale : float
        The scale.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the iteration converged.
    """
    return LocScale(loc, scale, n_iter, ZERO_SCALE if scale == 0.0 else (CONVERGED if converged else MAX_ITER))
