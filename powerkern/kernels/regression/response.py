"""Prepare a response for its likelihood given covariates: logs of all rows and of a sample, mask of missing values."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log1p
from powerkern.kernels.likelihood.logs import (
    Bounds,
    ValueSummary,
    centered_log,
    choose_log_unit,
    drop_missing,
    magnitude_range,
    offset_log,
    sign_of,
)
from powerkern.kernels.likelihood.two_pass import MOST_TYPICAL, subsample_median, weighted_subsample_median
from powerkern.kernels.regression.likelihood import Design, RegressionWork, Rows, factor_gram
from powerkern.kernels.transforms.family import log_offset


class ResponseColumn(NamedTuple):
    """A response prepared for evaluations of its likelihood."""

    rows: Rows
    sample: Rows  #: a sample of the rows, or all of them
    spread: float  #: standard deviation of the logs
    sign: float  #: sign of all values; 0 if both signs occur
    offset: float  #: 0 (Box-Cox) or 1 (Yeo-Johnson)
    reference: float  #: the magnitude whose log is subtracted
    smallest: float  #: smallest magnitude of a value
    largest: float  #: largest magnitude of a value
    constant: bool  #: whether the covariates span the constant


@reduction
def _take_logs(x: FloatArray, both_signs: bool, offset: float, reference: float, unit: float, d: FloatArray) -> None:
    """Write the logs of a column relative to the log of the reference; 0 for missing values.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    both_signs : bool
        Whether the column has both signs. The logs of negative values are then negated.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    reference : float
        The magnitude whose log is subtracted.
    unit : float
        Factor that the logs are multiplied by.
    d : (n,)
        Receives the logs.
    """
    log_reference = offset_log(offset, reference)
    for i in range(d.size):
        present = x[i] == x[i]
        value = centered_log(abs(x[i]) if present else reference, offset, reference, log_reference) * unit
        value = -value if both_signs and x[i] < 0.0 else value
        d[i] = value if present else 0.0


@reduction
def _sums(d: FloatArray, root: FloatArray, kept: FloatArray) -> tuple[float, float, float]:
    """Return the total weight of the rows with values, and the weighted sums of their logs and squared logs.

    `root` holds the square roots of the weights (empty: all weights are one). `kept` is 1 for rows with a value and 0
    for rows without (empty: no value is missing). Missing values must have the log 0.
    """
    weight, total, squares = float(d.size), 0.0, 0.0
    if root.size == 0:
        for i in range(d.size):
            total += d[i]
            squares += d[i] * d[i]
    else:
        weight = 0.0
        for i in range(d.size):
            w = root[i] * root[i]
            weight += w
            total += w * d[i]
            squares += w * d[i] * d[i]
    if kept.size > 0:
        weight = 0.0
        for i in range(d.size):
            weight += kept[i] * (root[i] * root[i] if root.size > 0 else 1.0)
    return weight, total, squares


@kernel
def _reference(x: FloatArray, design: Design, work: RegressionWork) -> float:
    """Return the reference for the logs of a column of one sign: the median magnitude of a sample of the values."""
    if design.root.size == 0:
        n = drop_missing(x, None, work.packed, work.weight)
        return abs(subsample_median(work.packed[:n], MOST_TYPICAL, work.logs))
    n = drop_missing(x, design.root, work.packed, work.weight)
    for i in range(n):
        work.weight[i] *= work.weight[i]
    return abs(weighted_subsample_median(work.packed[:n], work.weight[:n], work.logs))


@kernel
def prepare(
    x: FloatArray, summary: ValueSummary, family: int, design: Design, work: RegressionWork
) -> tuple[ResponseColumn, bool]:
    """Compute the logs of a response; return a `ResponseColumn`, and whether the design has full rank.

    The rank is that of the design without the rows in which the response is missing.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    summary : ValueSummary
        Count and extremes of the values.
    family : int
        BOX_COX or YEO_JOHNSON.
    design : Design
        The covariates.
    work : RegressionWork
        Scratch; holds the logs.
    """
    n, m, offset = x.size, design.sample_basis.shape[1], log_offset(family)
    sign = sign_of(summary)
    both_signs = sign == 0.0
    constant = design.constant > 0.0
    reference = _reference(x, design, work) if constant and not both_signs else 1.0 - offset
    log_reference = offset_log(offset, reference)
    smallest, largest = magnitude_range(summary)
    low = centered_log(smallest, offset, reference, log_reference)
    high = centered_log(largest, offset, reference, log_reference)
    if both_signs:  # the logs of negative values have a negative sign
        low, high = -log1p(-summary.low), log1p(summary.high)
    sigma = choose_log_unit(Bounds(low, high, 0.0))
    logs, missing = work.logs, summary.n < n
    _take_logs(x, both_signs, offset, reference, 1.0 / sigma, logs)
    kept, sample_kept = work.kept[: n if missing else 0], work.sample_kept[: m if missing else 0]
    good = True
    if missing:
        for i in range(n):
            kept[i] = 1.0 if x[i] == x[i] else 0.0
        good = factor_gram(design.basis, kept, work.gram)
    weight, total, squares = _sums(logs, design.root, kept)
    mean = 0.0 if both_signs else total / weight
    spread = math.sqrt(max(squares / weight - mean * mean, 0.0))
    q = design.basis.shape[0] if missing else 0
    rows = Rows(
        logs, design.root, kept, design.basis, work.gram[:q], low / sigma, high / sigma, total / weight, weight,
        sigma, both_signs,
    )  # fmt: skip
    sample = rows
    if m > 0 and good:
        sample = _draw_sample(rows, design, sample_kept, work)
    return ResponseColumn(rows, sample, spread, sign, offset, reference, smallest, largest, constant), good


@kernel
def _draw_sample(rows: Rows, design: Design, kept: FloatArray, work: RegressionWork) -> Rows:
    """Return a sample of evenly spaced rows, or all rows if the design of the sample might not have full rank.

    Parameters
    ----------
    rows : Rows
        The column.
    design : Design
        The covariates.
    kept : (m,)
        Scratch for the m rows of the sample, set to 1 for rows with a value and 0 for others; empty if none is missing.
    work : RegressionWork
        Scratch; holds the sample.
    """
    logs, root = work.sample_logs, design.sample_root
    stride = rows.logs.size // logs.size
    for i in range(logs.size):
        logs[i] = rows.logs[i * stride]
    for i in range(kept.size):
        kept[i] = rows.kept[i * stride]
    q = 0
    if kept.size > 0:
        if not factor_gram(design.sample_basis, kept, work.sample_gram):
            return rows
        q = design.basis.shape[0]
    weight, total, _ = _sums(logs, root, kept)
    return Rows(
        logs, root, kept, design.sample_basis, work.sample_gram[:q], rows.low, rows.high, total / weight, weight,
        rows.sigma, rows.both_signs,
    )  # fmt: skip
