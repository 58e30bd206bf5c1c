"""Status codes of columns, and the sentences that explain them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class _Outcome(IntEnum):
    """An integer status code with a sentence that explains it."""

    sentence: str

    def __new__(cls, code: int, sentence: str = "") -> Self:
        outcome = int.__new__(cls, code)
        outcome._value_ = code
        outcome.sentence = sentence
        return outcome


class Status(_Outcome):
    """The outcome of the fit of one column: an integer code, as the kernels write it, with a `sentence`.

    Each column has the most severe status that applies: NOT_CERTIFIED or UNRESOLVED, then FEW_VALUES, TAIL_KEPT,
    NOT_SETTLED, AT_BOUND, and last the statuses that cast no doubt on lambda.
    """

    #: Optimum found and certified: a sign change of the score was observed, or is implied (Newton-Kantorovich). By
    #: convexity there is no other optimum.
    OK = 0, "optimum found and certified"
    #: lambda is at a bound, set by ``bounds=`` or ``ymax=``.
    AT_BOUND = 1, "lambda is at a bound, set by bounds= or ymax="
    #: lambda was given, not fitted.
    FIXED = 2, "lambda as given"
    #: No maximum: fewer than two distinct values. The transform is the identity.
    CONSTANT = 3, "not fitted: fewer than two distinct values (identity transform)"
    #: No maximum: no values. The transform is the identity.
    EMPTY = 4, "not fitted: no values (identity transform)"
    #: The optimal lambda is beyond the range of float64. The transform is the identity.
    UNREPRESENTABLE = 5, "not fitted: lambda or its scale is beyond the range of float64 (identity transform)"
    #: The search reached its maximum number of evaluations without a certificate.
    NOT_CERTIFIED = 6, "no optimum was certified; do not rely on lambda"
    #: The objective (robust, normality criterion, regression) has several minima; lambda is the lowest one found.
    MULTIMODAL = 7, "the objective has several minima; the lowest one found was taken"
    #: No robust fit: more than half of the values are equal, and the others vary too little (or the fit follows R's
    #: conventions). The transform is the identity.
    NO_SPREAD = 8, "not fitted robustly: more than half of the values are equal (identity transform)"
    #: The sums (of a sketch, or of the sites of a federated fit) are not accurate enough for the column.
    UNRESOLVED = 9, "the summaries are too coarse for this column; use a finer grid (or quantum), or fit the rows"
    #: Optimum of an objective that may have several (robust, normality criterion, regression). A scan of lambda found
    #: no lower one, which is not a proof.
    SCANNED = 10, "optimum found; a scan of lambda found no lower one"
    #: No maximum: the likelihood grows to the end of the scan of lambda.
    AT_END = 11, "no optimum: the likelihood still grows at the end of the scan of lambda; do not rely on lambda"
    #: The residuals of a regression are zero to rounding.
    EXACT = 12, "exact fit: the residuals are zero to rounding, and the likelihood is unbounded"
    #: No regression: no more values than coefficients. The transform is the identity.
    TOO_FEW = 13, "not fitted: no more values than coefficients (identity transform)"
    #: Lambda rounded to a convenient power inside its confidence interval (`PowerFit.rounded_fit`).
    ROUNDED = 14, "lambda rounded to a convenient power inside its confidence interval"
    #: A robust fit kept all values in one tail, although a tenth of the column is outlying there under the transform
    #: that is rectified on that side.
    TAIL_KEPT = (
        15,
        "no value was left out on one side although many there look outlying; lambda may describe the outliers",
    )
    #: Reweighting reached its maximum number of steps while the set of kept values still changed. Lambda is optimal for
    #: the last set.
    NOT_SETTLED = 16, "reweighting did not settle: the values kept still change from step to step"
    #: More than half of the values are equal to the median; the robust fit uses the other values only.
    TIED = 17, "more than half of the values are equal; fitted to the others, by a scan of lambda"
    #: A fit from summaries of the rows (bins, rounded sums). Its ``lmbda_error``, a bound on the difference from a fit
    #: of the rows themselves, exceeds 0.01 standard errors.
    BRACKETED = 18, "optimum found from summaries of the rows; lambda is within lmbda_error of the exact optimum"
    #: A robust fit of at most three values, which are too few to identify an outlier.
    FEW_VALUES = 19, "at most three values, too few to tell which one is an outlier; do not rely on lambda"
    #: lambda of a group, shrunk towards the lambda of all rows (``shrink=True``).
    SHRUNK = 20, "lambda shrunk from the optimum of the group towards the optimum of all rows"
    #: With ``origin="fit"``: origin and lambda found. The unit is at an end of its range, where the likelihood is
    #: largest or does not depend on the unit.
    UNIT_AT_END = 21, "origin and lambda found; the unit is at the limit of its search range, which is the usual case"
    #: With ``origin="fit"``: lambda and the unit found. The origin is at an end of its range.
    ORIGIN_AT_END = 22, "the origin is at the limit of its search range; lambda is the best one for that origin"
    #: With ``criterion="central"``: not transformed, lambda = 1, because neither family brings the center of the column
    #: closer to normal.
    LEFT_AS_IT_IS = 23, "not transformed (lambda = 1): neither family brings the centre of the column closer to normal"
    #: No maximum: apart from censored cells, there are fewer than two distinct values, and fewer than three distinct
    #: ends of intervals and values. The transform is the identity.
    FEW_OBSERVED = 24, "not fitted: fewer than two distinct values besides censored cells (identity transform)"
    #: Not transformed (``on_failure="passthrough"``): some values are outside the domain of Box-Cox.
    OUTSIDE_DOMAIN = 25, "not transformed: values outside the domain of the transform (identity transform)"
    #: Not transformed (``on_failure="passthrough"``): one or two distinct values have the same shape under all lambdas.
    FEW_DISTINCT = 26, "not transformed: fewer than three distinct values (identity transform)"

    @property
    def failed(self) -> bool:
        """True if the column could not be fitted, so that its transform is the identity."""
        return self in (
            Status.CONSTANT,
            Status.EMPTY,
            Status.UNREPRESENTABLE,
            Status.NO_SPREAD,
            Status.TOO_FEW,
            Status.FEW_OBSERVED,
            Status.OUTSIDE_DOMAIN,
            Status.FEW_DISTINCT,
        )

    @property
    def is_estimate(self) -> bool:
        """True if lambda was estimated from the data, reliably or not; False if given, clipped, rounded or missing."""
        return not (self.failed or self in (Status.AT_BOUND, Status.FIXED, Status.ROUNDED))


class Route(IntEnum):
    """The algorithm that found the optimum of one column."""

    #: No optimum was found: the transform is the identity.
    NONE = 0
    #: Sums from one pass over the values.
    ONE_PASS = 1
    #: Moments about means, in two passes over each block of values.
    TWO_PASS = 2
    #: Power sums of a sketch.
    POWER_SUMS = 3
    #: Moments sent by the sites of a federated fit.
    MOMENTS = 4
    #: Maximum likelihood fit of the values that a robust estimator kept.
    REFIT = 5
    #: Sums from one pass, over many short columns side by side.
    LOCKSTEP = 6
    #: As REFIT, started from the lambda of the transform that is rectified on both sides.
    REFIT_BOTH_SIDES = 7
    #: Newton's method on the likelihood of values and censored cells.
    CENSORED = 8

    @property
    def label(self) -> str:
        """The name of the algorithm in words; "" for `NONE`."""
        return "" if self is Route.NONE else self.name.lower().replace("_", " ")


def is_failed(status: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the columns that could not be fitted."""
    return np.isin(status, [code for code in Status if code.failed])


class LocationStatus(_Outcome):
    """The outcome of the estimation of location and scale of one column."""

    #: The estimating equations hold to rounding, or the estimator needs no iteration.
    CONVERGED = 0, "converged"
    #: The scale is 0, because too many values are equal.
    ZERO_SCALE = 1, "the scale is 0, because too many values are equal"
    #: The iteration reached its maximum number of steps.
    MAX_ITER = 2, "not converged within the maximum number of iterations"
    #: No values: location and scale are NaN.
    EMPTY = 3, "no values"
    #: The scale, or an intermediate sum of weights and values, is beyond the range of float64.
    OVERFLOW = 4, "location or scale is beyond the range of float64; divide the column by its largest value"


class JointStatus(_Outcome):
    """The outcome of a joint fit of several columns."""

    #: A local optimum: the gradient is 0 to rounding, and the Hessian positive definite.
    CONVERGED = 0, "local optimum found; others may exist, but none was seen"
    #: As CONVERGED; the best of several optima found from different starting values.
    SEVERAL_OPTIMA = 1, "the best of several local optima, found from different starts"
    #: The search stopped before it reached an optimum.
    NOT_CONVERGED = 2, "not converged: no local optimum was reached"

    @property
    def label(self) -> str:
        """Short name of the status, of one or two words."""
        return self.name.lower().replace("_", " ")
