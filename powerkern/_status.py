"""Per-column status codes and the sentences that explain them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """The outcome of one column. Kernels use plain integers; `sentence` has the text.

    A column has one status, the most severe that applies: NOT_CERTIFIED or UNRESOLVED, then FEW_VALUES,
    TAIL_KEPT, NOT_SETTLED, AT_BOUND, and last those that do not call lambda into question.
    """

    #: Optimum found and certified: a sign change of the score was observed, or is implied (Newton-Kantorovich), and by
    #: convexity it is the only one.
    OK = 0
    #: lambda is at a bound, set by ``bounds=`` or ``ymax=``.
    AT_BOUND = 1
    #: lambda was given, not fitted.
    FIXED = 2
    #: No maximum: fewer than two distinct values. The transform is the identity.
    CONSTANT = 3
    #: No maximum: no values. The transform is the identity.
    EMPTY = 4
    #: The optimal lambda is beyond the range of float64. The transform is the identity.
    UNREPRESENTABLE = 5
    #: The search reached its maximum number of evaluations without a certificate.
    NOT_CERTIFIED = 6
    #: The objective (robust, normality criterion, regression) had several minima; the lowest found was taken.
    MULTIMODAL = 7
    #: No robust fit: more than half of the values are equal, and the others vary too little (or R's conventions
    #: were chosen). The transform is the identity.
    NO_SPREAD = 8
    #: The sums (of a sketch, or of the sites of a federated fit) do not resolve the column well enough.
    UNRESOLVED = 9
    #: Optimum of an objective that may have others (robust, normality criterion, regression): a scan of lambda found
    #: none lower, which is not a proof.
    SCANNED = 10
    #: No maximum: the likelihood grows to the end of the scan of lambda.
    AT_END = 11
    #: The residuals of a regression are zero to rounding.
    EXACT = 12
    #: No regression: no more values than coefficients. The transform is the identity.
    TOO_FEW = 13
    #: A convenient power near the optimum, inside its interval, by `PowerFit.rounded_fit`.
    ROUNDED = 14
    #: A robust fit kept all values on one side, although a tenth of the column is outlying there under the transform
    #: that is rectified on that side.
    TAIL_KEPT = 15
    #: Reweighting reached its maximum number of steps before the values kept settled. Lambda is optimal for these.
    NOT_SETTLED = 16
    #: A robust fit of the values that differ from the median: more than half are equal to it.
    TIED = 17
    #: A fit from summaries of the rows (bins, rounded sums): ``lmbda_error``, which bounds the difference from a fit of
    #: the rows themselves, exceeds 0.01 standard errors.
    BRACKETED = 18
    #: A robust fit of at most three values, among which none can be told to be an outlier.
    FEW_VALUES = 19
    #: Origin and lambda found; the unit is at an end of its range, where the likelihood is largest or does not depend
    #: on it (`origin="fit"`).
    UNIT_AT_END = 21
    #: Lambda and the unit found; the origin is at an end of its range (`origin="fit"`).
    ORIGIN_AT_END = 22
    #: Left as it is, lambda = 1: neither transform makes its central part normal, or nearer (``criterion="central"``).
    LEFT_AS_IT_IS = 23
    #: lambda of a group, drawn towards the lambda of all rows (``shrink=True``).
    SHRUNK = 20

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _SENTENCES[self]

    @property
    def failed(self) -> bool:
        """Whether the column has no fit and its transform is the identity."""
        return self in (Status.CONSTANT, Status.EMPTY, Status.UNREPRESENTABLE, Status.NO_SPREAD, Status.TOO_FEW)


_SENTENCES = {
    Status.OK: "optimum found and certified",
    Status.AT_BOUND: "at a bound of lambda, set by bounds= or ymax=",
    Status.FIXED: "lambda as given",
    Status.CONSTANT: "not fitted: fewer than two distinct values (identity transform)",
    Status.EMPTY: "not fitted: no values (identity transform)",
    Status.UNREPRESENTABLE: "not fitted: lambda or its scale is beyond the range of float64 (identity transform)",
    Status.NOT_CERTIFIED: "no optimum was certified; do not rely on lambda",
    Status.MULTIMODAL: "the objective has several minima; the lowest that was seen was taken",
    Status.NO_SPREAD: "not fitted robustly: more than half of the values are equal (identity transform)",
    Status.UNRESOLVED: "the sums do not resolve the column: use a finer grid (or quantum), or fit the rows",
    Status.SCANNED: "optimum found; a search of lambda saw no lower one",
    Status.AT_END: "no optimum: the likelihood grows to the end of the scan of lambda; do not rely on lambda",
    Status.EXACT: "exact fit: the residuals are zero to rounding; the likelihood has no bound",
    Status.TOO_FEW: "not fitted: no more values than coefficients (identity transform)",
    Status.ROUNDED: "lambda rounded to a convenient power inside the interval of its optimum",
    Status.TAIL_KEPT: "all values on one side were kept though many are far out: lambda may be that of outliers",
    Status.TIED: "more than half of the values are equal: fitted to the others, as far as a search of lambda saw",
    Status.BRACKETED: "optimum found from summaries of the rows: lambda is within lmbda_error of theirs",
    Status.FEW_VALUES: "at most three values, too few to tell an outlier from the others: do not rely on lambda",
    Status.UNIT_AT_END: "optimum of origin and lambda found; the unit is at an end of its range, as mostly",
    Status.ORIGIN_AT_END: "the origin is at an end of its range, and lambda is the best one there",
    Status.LEFT_AS_IT_IS: "left as it is, lambda = 1: neither transform makes its central part normal, or nearer to it",
    Status.SHRUNK: "lambda between the optimum of the group and that of all rows",
    Status.NOT_SETTLED: "reweighting has not settled: the values kept still change from step to step",
}


class Route(IntEnum):
    """How the optimum of one column was found."""

    #: No optimum was found: the transform is the identity.
    NONE = 0
    #: Sums from one pass over the values.
    ONE_PASS = 1
    #: Moments about means, in two passes over each block of values.
    TWO_PASS = 2
    #: Power sums of a sketch.
    POWER_SUMS = 3
    #: Moments sent by sites.
    MOMENTS = 4
    #: Robust: a maximum likelihood fit of the values that were kept.
    REFIT = 5
    #: Sums from one pass, over many short columns side by side.
    LOCKSTEP = 6
    #: As REFIT, from the start that rectifies both sides.
    REFIT_BOTH_SIDES = 7

    @property
    def label(self) -> str:
        """The route in words; empty if there is none."""
        return "" if self is Route.NONE else self.name.lower().replace("_", " ")


def is_failed(status: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the columns that could not be fitted."""
    return np.isin(status, [code for code in Status if code.failed])


class LocationStatus(IntEnum):
    """The outcome of one column's location and scale."""

    #: The estimating equations hold to rounding, or the estimator needs no iteration.
    CONVERGED = 0
    #: The scale is 0, because too many values are equal.
    ZERO_SCALE = 1
    #: The iteration reached its maximum number of steps.
    MAX_ITER = 2
    #: No values: location and scale are NaN.
    EMPTY = 3
    #: The scale, or an intermediate sum of weights and values, is beyond the range of float64.
    OVERFLOW = 4

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _LOCATION_SENTENCES[self]


_LOCATION_SENTENCES = {
    LocationStatus.CONVERGED: "converged",
    LocationStatus.ZERO_SCALE: "the scale is 0, because too many values are equal",
    LocationStatus.MAX_ITER: "not converged within the cap of iterations",
    LocationStatus.EMPTY: "no values",
    LocationStatus.OVERFLOW: "location or scale is beyond the range of float64; divide the column by its largest value",
}


class JointStatus(IntEnum):
    """The outcome of a fit of columns together."""

    #: A local optimum: the gradient is 0 to rounding, and the Hessian positive definite.
    CONVERGED = 0
    #: As CONVERGED, and the best of several optima found from different starts.
    SEVERAL_OPTIMA = 1
    #: The search stopped before it reached an optimum.
    NOT_CONVERGED = 2

    @property
    def label(self) -> str:
        """The status in a word or two."""
        return self.name.lower().replace("_", " ")

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _JOINT_SENTENCES[self]


_JOINT_SENTENCES = {
    JointStatus.CONVERGED: "a local optimum of a likelihood that may have others; none was seen",
    JointStatus.SEVERAL_OPTIMA: "the best of several local optima that were seen from different starts",
    JointStatus.NOT_CONVERGED: "not converged: a local optimum was not reached",
}
