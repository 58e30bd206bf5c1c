"""Per-column status codes and the sentences that explain them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """The outcome of one column. Kernels hold plain ints; everything a person reads comes from `sentence`.

    A column has one status. Where several hold, it is the gravest: NOT_CERTIFIED or UNRESOLVED, then FEW_VALUES,
    TAIL_KEPT, NOT_SETTLED, AT_BOUND, and last those that cast no doubt on lambda.
    """

    #: Optimum found and certified: the score's sign change was seen, or is implied (Newton-Kantorovich), and by
    #: convexity there is no other.
    OK = 0
    #: lambda is at a bound, set by ``bounds=`` or ``ymax=``.
    AT_BOUND = 1
    #: lambda was given, not fitted.
    FIXED = 2
    #: No maximum: fewer than two distinct values. The transform is the identity.
    CONSTANT = 3
    #: No maximum: no value at all. The transform is the identity.
    EMPTY = 4
    #: The optimal lambda is beyond the range of float64. The transform is the identity.
    UNREPRESENTABLE = 5
    #: The search stopped at its cap of evaluations without a certificate.
    NOT_CERTIFIED = 6
    #: The objective (robust, of a normality criterion, of a regression) had several minima; the lowest seen was taken.
    MULTIMODAL = 7
    #: No robust fit: more than half of the values are equal, and the others do not differ enough (or R's conventions
    #: were asked for). The transform is the identity.
    NO_SPREAD = 8
    #: The sums (of a sketch, of the sites of a federated fit) do not resolve the column well enough.
    UNRESOLVED = 9
    #: Optimum of an objective that may have others (robust, of a normality criterion, of a regression): a search of
    #: lambda saw none lower, which is no proof.
    SCANNED = 10
    #: No maximum: the likelihood grows to the end of the scan of lambda.
    AT_END = 11
    #: The residuals of a regression are zero to rounding.
    EXACT = 12
    #: No regression: no more values than coefficients. The transform is the identity.
    TOO_FEW = 13
    #: A convenient power near the optimum, inside its interval, by `PowerFit.rounded_fit`.
    ROUNDED = 14
    #: A robust fit kept all values on one side, though a tenth of the column is far out there on the transform that is
    #: rectified on that side.
    TAIL_KEPT = 15
    #: Reweighting stopped at its cap of steps; the values kept would still change. Lambda is the likeliest for these.
    NOT_SETTLED = 16
    #: A robust fit of the values that differ from the median: more than half are equal to it.
    TIED = 17
    #: A fit from summaries of the rows (bins, rounded sums): ``lmbda_error``, which bounds the difference from a fit of
    #: the rows themselves, exceeds 0.01 standard errors.
    BRACKETED = 18
    #: A robust fit of at most three values, among which none can be told to be an outlier.
    FEW_VALUES = 19

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _SENTENCES[self]

    @property
    def failed(self) -> bool:
        """True when the column has no fit and its transform is the identity."""
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
    Status.NOT_SETTLED: "reweighting has not settled: the values kept still change from step to step",
}


class Route(IntEnum):
    """How the optimum of one column was found."""

    #: No optimum was found: the transform is the identity.
    NONE = 0
    #: From sums of one pass over the values.
    ONE_PASS = 1
    #: From moments about means, two passes over each block of values.
    TWO_PASS = 2
    #: From the power sums of a sketch.
    POWER_SUMS = 3
    #: From moments that sites sent.
    MOMENTS = 4
    #: Robust: values were left out, the rest were fitted again.
    REFIT = 5
    #: From sums of one pass, many short columns side by side.
    LOCKSTEP = 6
    #: As REFIT, from the start that rectifies both sides.
    REFIT_BOTH_SIDES = 7

    @property
    def label(self) -> str:
        """The route in words; empty where there is none."""
        return "" if self is Route.NONE else self.name.lower().replace("_", " ")


def is_failed(status: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns could not be fitted."""
    return np.isin(status, [code for code in Status if code.failed])


class LocationStatus(IntEnum):
    """The outcome of one column's location and scale."""

    #: The estimating equations hold to rounding, or the estimator needs no iteration.
    CONVERGED = 0
    #: The scale is 0, because too many values are equal.
    ZERO_SCALE = 1
    #: The iteration stopped at its cap.
    MAX_ITER = 2
    #: No value at all: location and scale are NaN.
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
    #: The same, the best of several that were seen from different starts.
    SEVERAL_OPTIMA = 1
    #: The search stopped before it was there.
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
