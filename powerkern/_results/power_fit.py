"""The object that `powerkern.fit` returns, and its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from powerkern._estimators.spec import FitSpec
from powerkern._input.arrays import column_labels, position_of
from powerkern._input.frames import by_name
from powerkern._input.messages import suggest_in_class, warn
from powerkern._results import applying, back, inference, likelihood, outlying, records, reports
from powerkern._results.applying import warn_overflow
from powerkern._results.columns import FAR_FROM_ZERO, ColumnLabels, ColumnResults, FittedColumns, Source
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import Optimum
from powerkern._results.inversion import OutOfRange
from powerkern._results.json import Recorded
from powerkern._status import Status
from powerkern._typing import IntArray

__all__ = ["OutOfRange", "PowerFit", "as_power_fit", "build_power_fit"]


@suggest_in_class
class PowerFit(FittedColumns, Recorded):
    """Power transforms fitted to the columns of a matrix.

    Made by `fit`; `save` writes it to a file, which `powerkern.load` reads back. All arrays have one entry per column;
    a fit to a vector has arrays of one, ``fit.lmbda[0]``. `transform` and its like return arrays of the shape given.

    ``fit["age"]`` and ``fit[0]`` are fits of one column, ``fit[["age", "income"]]`` and ``fit[:2]`` fits of several.
    ``len(fit)`` is the number of columns, and a loop over the fit runs over their names, or their positions where
    they have none.

    Attributes
    ----------
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each column.
    estimator : ML, CentralML, RewML, RewMLNR, Carroll, MTL or PPCC
        How lambda was found.
    cutoff : float
        Quantile of the normal distribution beyond which values are outliers: `cutoff` of the estimator.
    standardize : bool
        Whether `transform` standardises to mean 0 and standard deviation 1.
    column_names : list or None
        Labels of the fitted columns, of whatever type, where the data had labels: ``df[fit.column_names]``.
    n_features : int
        Number of columns.
    lmbda : ndarray
        The transformation parameter. 1 for a column that could not be fitted, which is passed through unchanged.
    lambdas : Series or ndarray
        `lmbda` as a pandas series by the labels of the columns, if they have labels and pandas is installed; else the
        array.
    loc, scale, log_factor : ndarray
        Mean ``loc * exp(log_factor)`` and standard deviation ``scale * exp(log_factor)`` (with 1/n) of the raw
        transformed values. For robust fits: the mean of the values kept, and their standard deviation divided by the
        standard deviation of a normal variable truncated likewise, so that clean data come out with standard
        deviation 1 (with ``convention="cellwise"`` the values' own, with 1/(n - 1)). `log_factor` is 0
        unless they would overflow. Standardised output does not pass through them: see Notes.
    nll : ndarray
        Negative log-likelihood ``n (1/2 ln Var(psi) - (lmbda - 1) mean(J))``, minus `scipy.stats.boxcox_llf`; for
        robust fits, of the values kept.
    information : ndarray
        Second derivative of `nll` in lambda: ``1/sqrt(information)`` is the standard error of `lmbda` in maximum
        likelihood fits (with ``origin="fit"``, of `nll` where origin and unit follow lambda); for robust fits see
        `confint`.
    n_obs : ndarray
        Values that are not missing; with weights, the sum of their weights.
    n_iter : ndarray of int
        Evaluations of the likelihood or its derivatives, including those on a sample.
    status : ndarray of int
        A `powerkern.Status` each; `status_text` has them in words.
    route : list of str
        How the optimum was found: from sums over short columns, many in "lockstep", or of "one pass" over a long one,
        from moments about means ("two pass"), from "power sums" of a sketch, from "moments" that sites sent, or by a
        "refit" of the values that a robust estimator kept; "" where there is none.
    x_min, x_max : ndarray
        Smallest and largest value of the fitted data.
    lmbda0 : ndarray
        In robust fits, the lambda from which reweighting started; else `lmbda`.
    objective : ndarray
        The objective of the estimator at `lmbda0`: see `objective_curve`. NaN for columns that could not be fitted.
    n_kept : ndarray
        Number of values used in the final fit, which have weight 1 (see `weights`). Equals `n_obs` for estimators that
        leave no value out ("mle", "carroll", "ppcc").
    lmbda_error : ndarray
        In robust fits from chunks (`powerkern.sketch.fit_chunks`) and federated fits (`powerkern.federated`), a bound
        of the difference between `lmbda` and the lambda of the rows in memory, inf where none is known; else 0.
    center, divisor : ndarray
        The transform is applied to ``(x - center)/divisor``: origin and unit found by ``origin="fit"``; a median
        and a MAD in robust and prestandardised Yeo-Johnson fits; -shift and 1 in shifted Box-Cox fits; else 0 and 1.
    shift : ndarray
        In shifted Box-Cox fits ``x + shift`` is transformed; else 0.

    Notes
    -----
    Standardised values are computed as ``slope * (psi(x) - psi(ref)) e^-s + intercept`` with a reference inside the
    data, so they are finite and accurate for every value in the fitted range even where psi itself overflows
    (lambda = -361) or all its values agree to 15 digits (years, tight clusters).
    """

    # applied to data, and to normal distributions
    transform = applying.transform
    inverse_transform = applying.inverse_transform
    inverse_mean = back.inverse_mean
    inverse_quantile = back.inverse_quantile
    # likelihood
    profile = likelihood.profile
    objective_curve = likelihood.objective_curve
    confint = likelihood.confint
    standard_error = likelihood.standard_error
    lr_test = likelihood.lr_test
    rounded = inference.rounded
    rounded_fit = likelihood.rounded_fit
    # description
    normality = reports.normality
    central_normality = reports.central_normality
    summary = reports.summary
    __repr__ = reports.as_text
    _repr_html_ = reports.as_html
    # outliers
    weights = outlying.weights
    outliers = outlying.outliers
    cutoffs = outlying.cutoffs
    standardized_cutoff = outlying.standardized_cutoff

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the columns' labels, or their positions where they have none, as `fit[...]` takes them."""
        return iter(self.column_names or range(len(self)))

    def __getitem__(self, column: Any) -> PowerFit:
        """The fit of one column, by its name or position, or of several, by a slice or a list, with their data."""
        if isinstance(column, slice):
            return self._chosen(range(len(self))[column], alone=False)
        is_list = hasattr(column, "__len__") and not isinstance(column, str | tuple)
        named = not is_list and column in (self.column_names or ())  # a tuple: a label of several levels
        alone = isinstance(column, str | int | np.integer) or named
        asked: Any = [column] if alone else column
        try:
            return self._chosen([position_of(one, self.column_names, len(self)) for one in asked], alone)
        except ValueError as error:
            raise KeyError(str(error)) from None

    def _chosen(self, positions: Sequence[int], alone: bool) -> PowerFit:
        """The fit of the columns at these positions, or of one as a vector, with their data."""
        if not positions:
            raise KeyError("no column is chosen; a fit has at least one")
        at = np.array(positions)
        part, data = self.part(at), self.source.data
        source = Source(data.part(at)) if isinstance(data, FittedData) else None
        return PowerFit(part.spec, replace(part.labels, was_vector=alone), part.columns, source)

    @property
    def lambdas(self) -> Any:
        """`lmbda` by name, see the class."""
        return by_name(self.lmbda, self.column_names, self.labels.level_names)

    @property
    def optimum(self) -> Optimum:
        """The maxima of the likelihoods, for tests and rounded powers."""
        return likelihood.optimum(self)

    def to_record(self) -> dict[str, Any]:
        """The entries that JSON keeps."""
        return records.record_of(self.spec, self.labels, self.columns)

    @classmethod
    def from_record(cls, record: Any) -> PowerFit:
        """The fit with these entries."""
        return cls(*records.fit_of(record))


def build_power_fit(
    spec: FitSpec, labels: ColumnLabels, columns: ColumnResults, source: Source | None = None
) -> PowerFit:
    """Build the fit and emit its warnings."""
    warn_of(columns, lambda at: column_labels(at, labels.names), spec.may_overflow)
    return PowerFit(spec, labels, columns, source)


def as_power_fit(fit: object, name: str = "fit") -> PowerFit:
    """An argument that must be a fit, once checked."""
    if not isinstance(fit, PowerFit):
        raise TypeError(f"{name} must be a PowerFit, made by fit(X), got {type(fit).__name__}")
    return fit


#: The statuses that are warned of, in this order.
_WARNED = (
    Status.CONSTANT,
    Status.EMPTY,
    Status.UNREPRESENTABLE,
    Status.NO_SPREAD,
    Status.TOO_FEW,
    Status.EXACT,
    Status.AT_END,
    Status.NOT_CERTIFIED,
    Status.UNRESOLVED,
    Status.FEW_VALUES,
    Status.TAIL_KEPT,
    Status.NOT_SETTLED,
)


def warn_of(columns: ColumnResults, labels: Callable[[IntArray], str], may_overflow: bool) -> None:
    """Emit one warning that lists the columns without a reliable fit, and those far from zero, by their `labels`.

    If raw output may overflow, another one lists the columns in which it does.
    """
    status, far = columns.status, columns.far_from_zero
    suspects = np.flatnonzero(status)  # not OK: mostly few, where a column of all results is slow to read
    doubts = status[suspects]
    met = set(doubts.tolist())
    parts = [f"{labels(suspects[doubts == code])}: {code.sentence}" for code in _WARNED if code in met]
    if far.size:
        parts.append(f"{labels(far)}: {FAR_FROM_ZERO}")
    if parts:
        warn("; ".join(parts))
    if may_overflow:
        warn_overflow(columns, labels)
