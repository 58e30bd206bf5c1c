"""A response prepared for its likelihood given covariates: its logs, of all rows and of a sample, and its gaps."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log1p
from powerkern.kernels.likelihood.logs import (
    Bounds,
    Scan,
    centered_log,
    magnitudes_of,
    offset_log,
    sign_of,
    squeeze,
    unit_of,
)
from powerkern.kernels.likelihood.two_pass import MOST_TYPICAL, typical, typical_by_weight
from powerkern.kernels.moments import block_sum
from powerkern.kernels.regression.likelihood import Design, RegressionWork, Rows, factor_gram
from powerkern.kernels.transforms.family import log_offset

#: STATUS of a column whose missing values may leave a design of lower rank: it wants a basis of its own.
BAD_RANK = -3


class Column(NamedTuple):
    """A column's rows, a sample of them, and the reference of its logs; `sign` is 0 for both signs."""

    rows: Rows
    sample: Rows
    spread: float
    sign: float
    offset: float
    reference: float
    smallest: float
    largest: float
    constant: bool


@reduction
def _scaled_logs(
    x: FloatArray, both_signs: bool, offset: float, reference: float, unit: float, d: FloatArray
) -> tuple[float, float]:
    """Logs relative to the reference, times `unit`, signed for both signs, 0 where a value is missing.

    Returns their sum and the sum of their squares.
    """
    widest_vectors()
    log_reference = offset_log(offset, reference)
    total = squares = 0.0
    for i in range(d.size):
        present = x[i] == x[i]
        value = centered_log(abs(x[i]) if present else reference, offset, reference, log_reference) * unit
        value = -value if both_signs and x[i] < 0.0 else value
        value = value if present else 0.0
        d[i] = value
        total += value
        squares += value * value
    return total, squares


@reduction
def _weighted_sums(d: FloatArray, root: FloatArray) -> tuple[float, float]:
    """Weighted sums of logs and of their squares."""
    widest_vectors()
    total = squares = 0.0
    for i in range(root.size):
        w = root[i] * root[i]
        total += w * d[i]
        squares += w * d[i] * d[i]
    return total, squares


@reduction
def _weight_of(root: FloatArray, kept: FloatArray, n: int) -> float:
    """The total weight of the rows kept."""
    widest_vectors()
    total = 0.0
    if root.size == 0:
        for i in range(kept.size):
            total += kept[i]
        return total if kept.size > 0 else float(n)
    for i in range(root.size):
        total += root[i] * root[i] * (kept[i] if kept.size > 0 else 1.0)
    return total


@kernel
def _ends_of_logs(found: Scan, both_signs: bool, offset: float, reference: float) -> Bounds:
    """Bounds of the logs of a column; logs of negative values are negative."""
    if both_signs:
        return Bounds(-log1p(-found.low), log1p(found.high), 0.0)
    smallest, largest = magnitudes_of(found)
    log_reference = offset_log(offset, reference)
    return Bounds(
        centered_log(smallest, offset, reference, log_reference),
        centered_log(largest, offset, reference, log_reference),
        0.0,
    )


@kernel
def _reference(x: FloatArray, design: Design, work: RegressionWork) -> float:
    """The magnitude that logs of a column of one sign are relative to: a typical one."""
    if design.root.size == 0:
        n = squeeze(x, None, work.packed, work.weight)
        return abs(typical(work.packed[:n], MOST_TYPICAL, work.logs))
    n = squeeze(x, design.root, work.packed, work.weight)
    for i in range(n):
        work.weight[i] *= work.weight[i]
    return abs(typical_by_weight(work.packed[:n], work.weight[:n], work.logs))


@kernel
def prepare(x: FloatArray, found: Scan, family: int, design: Design, work: RegressionWork) -> tuple[Column, bool]:
    """A column's logs, and of a sample of its rows; False if missing values leave a design that may lack rank."""
    n, m, offset = x.size, design.sample_basis.shape[1], log_offset(family)
    sign = sign_of(found)
    both_signs = sign == 0.0
    constant = design.constant > 0.0
    reference = _reference(x, design, work) if constant and not both_signs else 1.0 - offset
    bounds = _ends_of_logs(found, both_signs, offset, reference)
    sigma = unit_of(bounds)
    logs, missing = work.logs, found.n < n
    smallest, largest = magnitudes_of(found)
    total, squares = _scaled_logs(x, both_signs, offset, reference, 1.0 / sigma, logs)
    if design.root.size > 0:
        total, squares = _weighted_sums(logs, design.root)
    kept, sample_kept = work.kept[: n if missing else 0], work.sample_kept[: m if missing else 0]
    good = True
    if missing:
        for i in range(n):
            kept[i] = 1.0 if x[i] == x[i] else 0.0
        good = factor_gram(design.basis, kept, work.gram)
    weight = _weight_of(design.root, kept, n)
    mean = 0.0 if both_signs else total / weight
    spread = math.sqrt(max(squares / weight - mean * mean, 0.0))
    q = design.basis.shape[0] if missing else 0
    rows = Rows(
        logs, design.root, kept, design.basis, work.gram[:q], bounds.low / sigma, bounds.high / sigma, total / weight,
        weight, sigma, both_signs,
    )  # fmt: skip
    sample = rows
    if m > 0 and good:
        sample = _sampled(rows, design, sample_kept, work)
    return Column(rows, sample, spread, sign, offset, reference, smallest, largest, constant), good


@kernel
def _sampled(rows: Rows, design: Design, kept: FloatArray, work: RegressionWork) -> Rows:
    """A sample of the rows; all of them if it leaves a design that may lack rank."""
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
    weight = _weight_of(root, kept, logs.size)
    total = _weighted_sums(logs, root)[0] if root.size > 0 else block_sum(logs, None)
    return Rows(
        logs, root, kept, design.sample_basis, work.sample_gram[:q], rows.low, rows.high, total / weight, weight,
        rows.sigma, rows.both_signs,
    )  # fmt: skip
