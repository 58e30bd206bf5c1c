"""Location and scale of columns under Huber's least favourable density, with the constant of Carroll's estimator."""

from __future__ import annotations

from powerkern._jit import COUNTS, ROWS, entry
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.robust.objective import huber_of
from powerkern.kernels.robust.options import CARROLL
from powerkern.kernels.robust.weights import COUNTS_WORK, CountsWork, counts_of


@entry((ROWS, COUNTS, ROWS))
def likelihood_columns(columns: FloatArray, counts: IntArray, out: FloatArray) -> None:
    """out = location and scale of the first so many values, sorted, of each row of `columns`."""
    for j in range(columns.shape[0]):
        estimate = huber_of(columns[j, : counts[j]], None, CARROLL)
        out[j, 0], out[j, 1] = estimate.loc, estimate.scale


@entry((ROWS, ROWS, COUNTS, COUNTS_WORK, ROWS))
def weighted_likelihood_columns(
    columns: FloatArray, weights: FloatArray, counts: IntArray, work: CountsWork, out: FloatArray
) -> None:
    """`likelihood_columns` with the weights of the values."""
    for j in range(columns.shape[0]):
        y = columns[j, : counts[j]]
        estimate = huber_of(y, counts_of(weights[j, : counts[j]], work), CARROLL)
        out[j, 0], out[j, 1] = estimate.loc, estimate.scale
