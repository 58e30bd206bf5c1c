"""Location and scale of columns under Huber's least favourable density, with the constant of Carroll's estimator."""

from __future__ import annotations

from powerkern._jit import COUNTS, ROWS, borrowed, entry
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.robust_search import CARROLL, huber_of


@entry((ROWS, COUNTS, ROWS))
def likelihood_columns(columns: FloatArray, counts: IntArray, out: FloatArray) -> None:
    """out = location and scale of the first so many values, sorted, of each row of `columns`."""
    columns, out = borrowed(columns), borrowed(out)
    for j in range(columns.shape[0]):
        estimate = huber_of(columns[j, : counts[j]], CARROLL)
        out[j, 0], out[j, 1] = estimate.loc, estimate.scale
