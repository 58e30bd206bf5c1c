"""Moments of the rows of one site, at given exponents, for columns that are distributed over several sites.

A site knows only its own rows. All sites must agree on a scaling: bounds, reference and unit for the logs of all rows
(`powerkern.federated`). The moments of all sites can then be merged ([1]_) into the moments of the whole column, as
`powerkern.kernels.likelihood.mle` would compute them.

References
----------
.. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
   variances", COMPSTAT 1982, 30-41.
"""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import COLUMN, INTEGER, ROWS, entry
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.likelihood.logs import (
    Bounds,
    Magnitudes,
    centered_logs,
    logs_in_units,
    magnitudes_by_sign,
    prepare,
)
from powerkern.kernels.likelihood.score import add_moments
from powerkern.kernels.likelihood.score_formulas import N_MOMENTS
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.transforms.family import log_offset

#: Fields of the common scaling of a column, a row of `scalings`; logs are in units of SIGMA.
BOTH_SIGNS, REFERENCE, LOW, HIGH, NEG_HIGH, SIGMA = range(6)
#: Number of these fields.
N_SCALING = 6

#: Index of the mean of the signed logs, which follows the moments; and the length of both together.
JACOBIAN = N_MOMENTS
N_PARTIAL = N_MOMENTS + 1


class Scaling(NamedTuple):
    """The scaling of the logs of one column that all sites share; its fields are those of a row of `scalings`."""

    both_signs: bool
    reference: float
    low: float
    high: float
    neg_high: float
    sigma: float


@entry((ROWS, COLUMN, INTEGER, ROWS, ROWS, WORK, ROWS))
def partial_moment_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    scalings: FloatArray,
    exponents: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Write the moments of each column's transformed values and their derivatives, at several exponents.

    The results are 0 for a column without values or with NaN as the first exponent, and for every exponent that is NaN.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    scalings : (p, N_SCALING)
        The scaling of each column's logs that all sites share.
    exponents : (p, k)
        The exponents at which to evaluate each column, in units of its logs.
    work : Work
        Scratch.
    out : (p, k * N_PARTIAL)
        Receives the moments and the mean of the logs, one exponent after the other.
    """
    out[:] = 0.0
    for j in range(columns.shape[0]):
        column, scaling = prepare(columns[j], weight, family, work), scalings[j]
        if column.x.size == 0 or exponents[j, 0] != exponents[j, 0]:
            continue
        both_signs, sigma = scaling[BOTH_SIGNS] != 0.0, scaling[SIGMA]
        magnitudes = magnitudes_by_sign(column.x, column.weight, column.sign, work)
        if both_signs and column.sign < 0.0:  # all values here are negative, but other sites have positive ones
            magnitudes = Magnitudes(magnitudes.neg, magnitudes.pos, magnitudes.neg_weight, magnitudes.pos_weight)
        spare = work.spare[: column.x.size]
        centered_logs(magnitudes, log_offset(family), scaling[REFERENCE], spare)
        bounds = Bounds(sigma * scaling[LOW], sigma * scaling[HIGH], sigma * scaling[NEG_HIGH])
        logs = logs_in_units(magnitudes, bounds, sigma, 0.0, spare)
        for k in range(exponents.shape[1]):
            if exponents[j, k] == exponents[j, k]:
                add_moments(logs, both_signs, exponents[j, k], work.scratch)
                row = out[j, k * N_PARTIAL : (k + 1) * N_PARTIAL]
                copy(work.scratch.moments[0], row)
                row[JACOBIAN] = logs.jacobian
