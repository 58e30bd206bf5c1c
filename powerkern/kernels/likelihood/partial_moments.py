"""Partial moments of a column whose rows lie at several sites: moments of one site's rows, at given exponents.

A site knows its own rows only. All sites have to agree on a scaling: bounds, reference and unit of
the logs of all sites' rows (`powerkern.federated`). Under a common scaling, partial moments merge ([1]_) into those
that `powerkern.kernels.likelihood.mle` would form of the whole column.

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
from powerkern.kernels.likelihood.logs import Bounds, Sides, centered_logs, logs_in_units, prepare, sides_of
from powerkern.kernels.likelihood.score import add_moments
from powerkern.kernels.likelihood.score_formulas import N_MOMENTS
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.transforms.family import log_offset

#: One row per column: the scaling that all sites agree on; logs are in units of SIGMA
BOTH_SIGNS, REFERENCE, LOW, HIGH, NEG_HIGH, SIGMA = range(6)
#: The length of such a row.
N_SCALING = 6

#: Moments at one exponent, and the mean of the logs with their signs.
JACOBIAN = N_MOMENTS
N_PARTIAL = N_MOMENTS + 1


class Scaling(NamedTuple):
    """How all sites scale the logs of one column: a row of `scalings`, by name."""

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
    at: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Write partial moments of the rows of `columns` at the exponents in the rows of `at`, in units of the scaling.

    Zeros where there are no values, and at NaN.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    scalings : (p, N_SCALING)
        The common scaling of the logs of each column.
    at : (p, k)
        The exponents.
    work : Work
        Scratch.
    out : (p, k * N_PARTIAL)
        Receives the moments.
    """
    out[:] = 0.0
    for j in range(columns.shape[0]):
        column, scaling = prepare(columns[j], weight, family, work), scalings[j]
        if column.x.size == 0 or at[j, 0] != at[j, 0]:
            continue
        both_signs, sigma = scaling[BOTH_SIGNS] != 0.0, scaling[SIGMA]
        sides = sides_of(column.x, column.weight, column.sign, work)
        if both_signs and column.sign < 0.0:  # other sites have positive values
            sides = Sides(sides.neg, sides.pos, sides.neg_weight, sides.pos_weight)
        spare = work.spare[: column.x.size]
        centered_logs(sides, log_offset(family), scaling[REFERENCE], spare)
        bounds = Bounds(sigma * scaling[LOW], sigma * scaling[HIGH], sigma * scaling[NEG_HIGH])
        logs = logs_in_units(sides, bounds, sigma, 0.0, spare)
        for k in range(at.shape[1]):
            if at[j, k] == at[j, k]:
                add_moments(logs, both_signs, at[j, k], work.scratch)
                row = out[j, k * N_PARTIAL : (k + 1) * N_PARTIAL]
                copy(work.scratch.moments[0], row)
                row[JACOBIAN] = logs.jacobian
