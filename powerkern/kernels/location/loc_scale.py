"""Results of estimators of location and scale, and the constants that these share."""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._status import LocationStatus

CONVERGED, ZERO_SCALE = int(LocationStatus.CONVERGED), int(LocationStatus.ZERO_SCALE)
MAX_ITER, EMPTY = int(LocationStatus.MAX_ITER), int(LocationStatus.EMPTY)
OVERFLOW = int(LocationStatus.OVERFLOW)
#: Status of a column with infinite values; the driver raises.
BAD_INFINITE = -1

#: 1/Phi^-1(3/4), which makes the median absolute deviation consistent for normal data.
MAD_FACTOR = 1.4826022185056018
#: This constant as R's mad() rounds it, with which robust fits prestandardise columns.
R_MAD_FACTOR = 1.4826

#: 2 Phi^-1(3/4), which normalises the distance of the quartiles.
IQR_DIVISOR = 1.3489795003921634
#: Consistency factor for Qn: 1/(sqrt(2) Phi^-1(5/8)).
QN_FACTOR = 2.2191444659850757

#: A guard: iterations after which an estimator gives up. 53 + 60 bisections find all digits of a root that is within a
#: factor of 2**60 from the start.
MOST_ITERATIONS = 500
#: A scale that falls below this multiple of its start is taken to have no root other than 0: far below any ratio of
#: scales in data.
VANISHED = 1e-60
#: P(Z < -1.5): where clip positions are looked for first.
TAIL = 0.067
#: Values at this multiple of a distance are inside it, whatever its rounding.
BEYOND = 1.0 + 1e-9


class LocScale(NamedTuple):
    """Location, scale, iterations and a status."""

    loc: float
    scale: float
    n_iter: int
    status: int


@kernel
def outcome(loc: float, scale: float, n_iter: int, found: bool) -> LocScale:
    """Return a result with its status, for a column that has values; `found` says whether the iteration converged.

    Parameters
    ----------
    loc : float
        Their location.
    scale : float
        Their scale.
    n_iter : int
        Iterations made.
    found : bool
        Whether the iteration converged.
    """
    return LocScale(loc, scale, n_iter, ZERO_SCALE if scale == 0.0 else (CONVERGED if found else MAX_ITER))
