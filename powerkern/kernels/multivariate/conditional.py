"""Replace missing values of normally distributed rows by their conditional means, given the observed values.

With mean zero, covariance S and precision K = S^-1, the missing values m of a row, given the observed values o, have

    mean  S_mo S_oo^-1 x_o = -K_mm^-1 K_mo x_o,    covariance  S_mm - S_mo S_oo^-1 S_om = K_mm^-1.

In each row the smaller of the two systems is solved [1]_. An observed value, given all other observed values, has the
residual (S_oo^-1 x_o)_j / (S_oo^-1)_jj, where S_oo^-1 = K_oo - K_om K_mm^-1 K_mo.

References
----------
.. [1] R. J. A. Little, D. B. Rubin, "Statistical Analysis with Missing Data", 3rd ed., Wiley 2019, section 11.2.
"""

from __future__ import annotations

import math

from powerkern._jit import (
    BLOCKS,
    LANES,
    ROWS,
    allocated,
    allocated_integers,
    entry,
    kernel,
    load,
    release,
    store,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.cholesky import dot
from powerkern.kernels.multivariate.products import add_multiple


@entry((ROWS, ROWS, ROWS, ROWS, BLOCKS, ROWS))
def conditional_rows(
    values: FloatArray,
    covariance: FloatArray,
    precision: FloatArray,
    rows: FloatArray,
    sums: FloatArray,
    residuals: FloatArray,
) -> int:
    """Complete rows by conditional means; return the number of rows for which S_oo was inverted.

    S is the covariance matrix and K its inverse; o and m denote the observed and the missing columns of a row.

    Parameters
    ----------
    values : (n, p) ndarray
        Deviations from the mean; NaN if missing.
    covariance, precision : (p, p) ndarray
        S and K.
    rows : (n, p) ndarray
        Receives `values`, with conditional means in place of missing values.
    sums : (2, p, p) ndarray
        Each row adds the inverse that was computed for it: K_mm^-1 to ``sums[0]``, in the rows and columns m, or
        S_oo^-1 to ``sums[1]``, in the rows and columns o. Only lower triangles are updated.
    residuals : (n, p) or (0, p) ndarray
        Receives the residual of each observed value, given the other observed values of its row, and NaN for missing
        values. An empty array means that residuals are not computed.
    """
    n, p = values.shape
    work, line = allocated((p, -(-p // LANES) * LANES)), allocated((-(-p // LANES) * LANES,))
    vector, index = allocated((p,)), allocated_integers((p,))
    by_covariance = 0
    for i in range(n):
        n_observed = _split(values[i], rows[i], index)
        observed, missing = index[:n_observed], index[n_observed:]
        row_residuals = residuals[i] if residuals.shape[0] else vector[:0]
        row_residuals[:] = math.nan
        if missing.size <= n_observed:
            _complete_by_precision(precision, observed, missing, rows[i], work, line, vector, sums[0], row_residuals)
        else:
            _complete_by_covariance(covariance, observed, missing, rows[i], work, line, vector, sums[1], row_residuals)
            by_covariance += 1
    release(work)
    release(line)
    release(vector)
    release(index)
    return by_covariance


@kernel
def _split(values: FloatArray, row: FloatArray, index: IntArray) -> int:
    """Copy values to `row`, with 0 for missing values; return the number of observed values.

    `index` receives the indices of the observed columns, followed by those of the missing columns.
    """
    n_observed = 0
    for j in range(values.size):
        if not math.isnan(values[j]):
            index[n_observed] = j
            n_observed += 1
    at = n_observed
    for j in range(values.size):
        row[j] = values[j]
        if math.isnan(values[j]):
            row[j] = 0.0
            index[at] = j
            at += 1
    return n_observed


@kernel
def _complete_by_precision(
    precision: FloatArray,
    observed: IntArray,
    missing: IntArray,
    row: FloatArray,
    work: FloatArray,
    line: FloatArray,
    vector: FloatArray,
    total: FloatArray,
    residuals: FloatArray,
) -> None:
    """Replace the missing values of one row by their conditional means, by inverting K_mm.

    Parameters
    ----------
    precision : (p, p)
        The inverse K of the covariance.
    observed : ndarray of intp
        Indices of the observed columns.
    missing : ndarray of intp
        Indices of the missing columns.
    row : (p,)
        The row, with 0 for missing values; completed in place.
    work : ndarray of float64
        Scratch; receives the inverse of K_mm, the conditional covariance.
    line : ndarray of float64
        Scratch.
    vector : (p,)
        Scratch.
    total : (p, p)
        The conditional covariance is added to this matrix.
    residuals : (p,) or (0,)
        Unless empty, receives the difference of each observed value from its mean given the other observed values.
    """
    h = missing.size
    for a in range(h):
        vector[a] = dot(precision[missing[a]], row)
    _invert_part(precision, missing, work, line)
    for a in range(h):
        row[missing[a]] = -dot(work[a, :h], vector[:h])
    _add_part(work, missing, total)
    if residuals.size:
        residuals[:] = 0.0  # first the diagonal of K_om K_mm^-1 K_mo
        for a in range(h):
            across = precision[missing[a]]
            vector[:] = 0.0
            for b in range(h):
                add_multiple(work[a, b], precision[missing[b]], vector)
            for j in range(across.size):
                residuals[j] += across[j] * vector[j]
        for a in range(observed.size):
            j = observed[a]
            residuals[j] = dot(precision[j], row) / (precision[j, j] - residuals[j])
        for a in range(h):
            residuals[missing[a]] = math.nan


@kernel
def _complete_by_covariance(
    covariance: FloatArray,
    observed: IntArray,
    missing: IntArray,
    row: FloatArray,
    work: FloatArray,
    line: FloatArray,
    vector: FloatArray,
    total: FloatArray,
    residuals: FloatArray,
) -> None:
    """Replace the missing values of one row by their conditional means, by inverting S_oo.

    Parameters
    ----------
    covariance : (p, p)
        The covariance S.
    observed : ndarray of intp
        Indices of the observed columns.
    missing : ndarray of intp
        Indices of the missing columns.
    row : (p,)
        The row, with 0 for missing values; completed in place.
    work : ndarray of float64
        Scratch; receives the inverse of S_oo.
    line : ndarray of float64
        Scratch.
    vector : (p,)
        Scratch.
    total : (p, p)
        The inverse of S_oo is added to this matrix.
    residuals : (p,) or (0,)
        Unless empty, receives the difference of each observed value from its mean given the other observed values.
    """
    o = observed.size
    _invert_part(covariance, observed, work, line)
    for a in range(o):
        vector[a] = 0.0
        for b in range(o):
            vector[a] += work[a, b] * row[observed[b]]
    for a in range(missing.size):
        across, mean = covariance[missing[a]], 0.0
        for b in range(o):
            mean += across[observed[b]] * vector[b]
        row[missing[a]] = mean
    _add_part(work, observed, total)
    for a in range(o if residuals.size else 0):
        residuals[observed[a]] = vector[a] / work[a, a]


@kernel
def _invert_part(matrix: FloatArray, index: IntArray, out: FloatArray, line: FloatArray) -> None:
    """Write the inverse of the submatrix with rows and columns `index` of a positive definite matrix.

    The inverse is computed by the sweep operator (`_sweep`), applied to each row; `line` is scratch.
    """
    h = index.size
    for a in range(h):
        across = matrix[index[a]]
        for b in range(h):
            out[a, b] = across[index[b]]
        for b in range(h, -(-h // LANES) * LANES):
            out[a, b] = 0.0
    line[:] = 0.0
    for k in range(h):
        _sweep(out, k, h, line)
    for a in range(h):
        for b in range(a + 1):
            inverse = -out[a, b]
            out[a, b] = out[b, a] = inverse


@kernel
def _sweep(matrix: FloatArray, k: int, h: int, line: FloatArray) -> None:
    """Apply the symmetric sweep operator to row k of a lower triangle; sweeping all h rows gives minus the inverse.

    Explicit vectors of eight are used, since most systems are too small for LLVM's vectorised loops. They write beyond
    the diagonal, to elements that are never read. `line` is scratch for column k, padded with zeros.
    """
    inverse = 1.0 / matrix[k, k]
    for j in range(0, k, LANES):
        store(line, (j,), load(matrix, (k, j)))
    for i in range(k, h):
        line[i] = matrix[i, k]
    for i in range(k):
        _eliminate(matrix, i, line[i] * inverse, line)
    for j in range(0, k, LANES):
        store(matrix, (k, j), load(line, (j,)) * inverse)
    matrix[k, k] = -inverse
    for i in range(k + 1, h):
        factor = line[i] * inverse
        _eliminate(matrix, i, factor, line)
        matrix[i, k] = factor  # last, since a vector load stalls if it overlaps a recent scalar store


@kernel
def _eliminate(matrix: FloatArray, i: int, factor: float, line: FloatArray) -> None:
    for j in range(0, i + 1, LANES):
        store(matrix, (i, j), load(matrix, (i, j)) - load(line, (j,)) * factor)


@kernel
def _add_part(part: FloatArray, index: IntArray, total: FloatArray) -> None:
    """Add the lower triangle of `part` to the rows and columns `index` of `total`."""
    for a in range(index.size):
        row = total[index[a]]
        for b in range(a + 1):
            row[index[b]] += part[a, b]
