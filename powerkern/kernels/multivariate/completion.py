"""UV decomposition of a matrix with missing entries: passes over one factor, by coordinates or by least squares.

M (m x n) is approximated by U V with rank d. With V held fixed the rows of U are independent of each other. Row r of U,
called u below, solves

    minimise over u:  sum over observed j of (m_rj - sum_k u_k v_kj)^2 + ridge |u|^2;

With U held fixed, the same holds for the columns of V. One kernel therefore serves both factors. Its arguments are the
cells of M row by row (or column by column), the factor to improve, which has one row of length d for each row (or
column) of M, and the factor that is held fixed.

`coordinate_rows` improves one element at a time,

    u_s <- u_s + damping (sum_j v_sj e_j - ridge u_s)/(sum_j v_sj^2 + ridge),    e_j = m_rj - sum_k u_k v_kj,

with all sums over observed j, and updates the residuals e_j ([1]_, section 9.4, recomputes the inner sum instead).
`least_squares_rows` solves for a whole row at once [2]_. `update_elements` visits single elements of both factors.

References
----------
.. [1] J. Leskovec, A. Rajaraman, J. D. Ullman, "Mining of Massive Datasets", 3rd ed., Cambridge University Press 2020,
   section 9.4.
.. [2] Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, "Large-scale parallel collaborative filtering for the Netflix
   prize", AAIM 2008, 337-348.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._jit import (
    COLUMN,
    COUNT_ROWS,
    COUNTS,
    INDEX32,
    REAL,
    ROWS,
    allocated,
    entry,
    kernel,
    named_tuple,
    release,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.cholesky import dot, factor_cholesky, solve_factored
from powerkern.kernels.multivariate.products import add_multiple

#: Added to the diagonal of normal equations, relative to its mean. It keeps the factor unchanged in directions that the
#: observed cells do not determine.
_PROXIMAL = 1e-8


class ObservedCells(NamedTuple):
    """The observed cells of a matrix, row by row: their columns, values and square roots of weights."""

    #: Index of the first cell of each row, followed by the number of cells.
    start: NDArray[np.int64]
    #: Column of each cell.
    column: NDArray[np.int32]
    #: Value of each cell.
    value: FloatArray
    #: Square roots of the weights of the cells in least squares; empty: all one.
    root: FloatArray = np.empty(0)


_CELLS = named_tuple(tuple, COUNTS, INDEX32, COLUMN, COLUMN)
#: Types of the arguments cells, fixed, factor, ridge, damping, squares.
_HALF_EPOCH = (_CELLS, ROWS, ROWS, REAL, REAL, COLUMN)


@entry((ROWS, COUNTS, INDEX32, COLUMN))
def pack_rows(rows: FloatArray, start: NDArray[np.int64], index: NDArray[np.int32], value: FloatArray) -> None:
    """Write the column and the value of each observed cell of a matrix, row by row.

    Parameters
    ----------
    rows : (m, n)
        The matrix; NaN if missing.
    start : (m,) int
        Index at which the cells of each row begin in the outputs.
    index : (n_cells,) int32
        Receives the column of each cell.
    value : (n_cells,)
        Receives the value of each cell.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        at = start[i]
        for j in range(row.size):
            if not math.isnan(row[j]):
                index[at] = j
                value[at] = row[j]
                at += 1


# --- half an epoch: all rows of one factor, the other held fixed ----------------------------------------


@entry(_HALF_EPOCH)
def coordinate_rows(
    cells: tuple[NDArray[np.int64], NDArray[np.int32], FloatArray, FloatArray],
    fixed: FloatArray,
    factor: FloatArray,
    ridge: float,
    damping: float,
    squares: FloatArray,
) -> None:
    """Improve one factor of a UV decomposition by coordinate descent over its elements.

    The objective, a penalised sum of squares, is in the module docstring.

    Parameters
    ----------
    cells : (start, index, value, root)
        The fields of `ObservedCells`; root weights are ignored.
    fixed : (n, d)
        The factor held fixed.
    factor : (m, d)
        The factor to improve, in place.
    ridge : float
        Weight of the penalty on the sum of squares of `factor`.
    damping : float
        Fraction of each full step that is taken.
    squares : (m,)
        Receives each row's sum of squared residuals.
    """
    start, index, value, _ = cells
    d = factor.shape[1]
    work = allocated((d + 1, _longest(start)))
    for i in range(factor.shape[0]):
        begin, end = start[i], start[i + 1]
        residual = work[d, : end - begin]
        _gather(index[begin:end], fixed, work)
        _residuals(value[begin:end], work, factor[i], residual)
        for s in range(d):
            step = damping * _step(residual, work[s, : end - begin], factor[i, s], ridge)
            factor[i, s] += step
            add_multiple(-step, work[s, : end - begin], residual)
        squares[i] = dot(residual, residual)
    release(work)


@entry(_HALF_EPOCH)
def least_squares_rows(
    cells: tuple[NDArray[np.int64], NDArray[np.int32], FloatArray, FloatArray],
    fixed: FloatArray,
    factor: FloatArray,
    ridge: float,
    damping: float,
    squares: FloatArray,
) -> None:
    """Replace each row of a factor by its ridge regression solution, with the other factor held fixed.

    Parameters
    ----------
    cells : (start, index, value, root)
        The fields of `ObservedCells`.
    fixed : (n, d)
        The factor held fixed.
    factor : (m, d)
        The factor to improve, in place.
    ridge : float
        Weight of the penalty on the sum of squares of `factor`.
    damping : float
        Fraction of each full step that is taken.
    squares : (m,)
        Receives each row's sum of (weighted) squared residuals.
    """
    start, index, value, root = cells
    d = factor.shape[1]
    work, gram, step = allocated((d + 1, _longest(start))), allocated((d, d)), allocated((d,))
    for i in range(factor.shape[0]):
        begin, end = start[i], start[i + 1]
        _gather(index[begin:end], fixed, work)
        _residuals(value[begin:end], work, factor[i], work[d, : end - begin])
        for k in range(d + 1 if root.size else 0):
            for c in range(end - begin):
                work[k, c] *= root[begin + c]
        squares[i] = _solve_row(work, end - begin, factor[i], ridge, damping, gram, step)
    release(work)
    release(gram)
    release(step)


@kernel
def _solve_row(
    work: FloatArray, n: int, row: FloatArray, ridge: float, damping: float, gram: FloatArray, step: FloatArray
) -> float:
    """Replace a row of a factor by its ridge regression solution; return the row's sum of squared residuals.

    Parameters
    ----------
    work : (d + 1, >= n)
        First d rows: the columns of the other factor at the observed cells of the row. Last row: the residuals, which
        are updated.
    n : int
        Number of observed cells.
    row : (d,)
        The row; receives the solution.
    ridge : float
        Weight of the penalty on the sum of squares of the row.
    damping : float
        Fraction of the full step to the solution that is taken.
    gram : (d, d)
        Scratch.
    step : (d,)
        Scratch.
    """
    d = row.size
    residual = work[d, :n]
    for s in range(d):
        step[s] = dot(residual, work[s, :n]) - ridge * row[s]
        for t in range(s + 1):
            gram[s, t] = dot(work[t, :n], work[s, :n])
    _solve(gram, step, ridge)
    for s in range(d):
        row[s] += damping * step[s]
        add_multiple(-(damping * step[s]), work[s, :n], residual)
    return dot(residual, residual)


@kernel
def _longest(start: NDArray[np.int64]) -> int:
    """Return the largest number of cells in a row."""
    longest = 0
    for i in range(start.size - 1):
        longest = max(longest, start[i + 1] - start[i])
    return longest


@kernel
def _gather(index: NDArray[np.int32], fixed: FloatArray, work: FloatArray) -> None:
    """Copy the rows of the fixed factor at the observed cells to contiguous memory: work[k, c] = fixed[index[c], k]."""
    for c in range(index.size):
        row = fixed[index[c]]
        for k in range(row.size):
            work[k, c] = row[k]


@kernel
def _residuals(value: FloatArray, work: FloatArray, row: FloatArray, residual: FloatArray) -> None:
    """Write residual = value - sum_k row[k] work[k], the residuals of the observed cells of a row."""
    for c in range(value.size):
        residual[c] = value[c]
    for k in range(row.size):
        add_multiple(-row[k], work[k, : value.size], residual)


@kernel
def _step(residual: FloatArray, column: FloatArray, element: float, ridge: float) -> float:
    """Return the step that moves one element of a factor to its optimum, with all other elements fixed.

    `column` is the corresponding column of the other factor at the observed cells. The step is 0 if no observed cell
    depends on the element.
    """
    curvature = dot(column, column) + ridge
    if curvature == 0.0:
        return 0.0
    return (dot(residual, column) - ridge * element) / curvature


@kernel
def _solve(gram: FloatArray, step: FloatArray, ridge: float) -> None:
    """Overwrite `step` with the solution x of A x = step, A = gram + ridge I, and `gram` with the Cholesky factor of A.

    A small multiple of the identity is added to A (`_PROXIMAL`). If gram is singular, it makes the step small in
    directions without data. Since x is a step from the current row, this does not change the optimum.
    """
    d = step.size
    trace = 0.0
    for s in range(d):
        trace += gram[s, s]
    shift = ridge + _PROXIMAL * trace / d
    if shift == 0.0:  # the row has no observed cells
        for s in range(d):
            step[s] = 0.0
        return
    for s in range(d):
        gram[s, s] += shift
    factor_cholesky(gram, gram, 0.0, shift)
    solve_factored(gram, step)


# --- single elements in any order -----------------------------------------------------------------------


_LINKS = named_tuple(tuple, COUNTS, INDEX32, COUNTS)


@entry((_LINKS, _LINKS, COUNT_ROWS, ROWS, ROWS, REAL, REAL, COLUMN))
def update_elements(
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    columns: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    elements: NDArray[np.int64],
    U: FloatArray,
    Vt: FloatArray,
    ridge: float,
    damping: float,
    residual: FloatArray,
) -> None:
    """Improve single elements of both factors of a UV decomposition, one after the other in a given order.

    Each step minimises the objective in the module docstring over one element.

    Parameters
    ----------
    rows, columns : (start, index, position)
        The observed cells, row by row and column by column, as in `ObservedCells`, but with the position of each cell
        in `residual` instead of its value.
    elements : (n, 3) ndarray of int
        The elements to update: (0, i, s) is U[i, s], and (1, j, s) is Vt[j, s].
    U, Vt : (m, d) and (n, d) ndarray
        The factors, improved in place.
    ridge : float
        Weight of the penalty on the sum of squares of the factors.
    damping : float
        Fraction of each full step that is taken.
    residual : (n_cells,) ndarray
        Residuals of all cells; updated in place.
    """
    longest = max(_longest(rows[0]), _longest(columns[0]))
    work = allocated((2, longest))
    for i in range(elements.shape[0]):
        element = elements[i]
        if element[0] == 0:
            _update_element(rows, element, Vt, U, ridge, damping, residual, work)
        else:
            _update_element(columns, element, U, Vt, ridge, damping, residual, work)
    release(work)


@kernel
def _update_element(
    links: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
    element: NDArray[np.int64],
    fixed: FloatArray,
    factor: FloatArray,
    ridge: float,
    damping: float,
    residual: FloatArray,
    work: FloatArray,
) -> None:
    """Minimise the penalised sum of squares over one element of `factor`, and update the residuals.

    Parameters
    ----------
    links : (start, index, position)
        The observed cells, as in `update_elements`.
    element : (3,) ndarray of int
        The last two numbers are the row and the column of the element. The first selects the factor, and is not used
        here.
    fixed : (n, d)
        The other factor.
    factor : (m, d)
        The factor; updated in place.
    ridge : float
        Weight of the penalty on the sum of squares of the factors.
    damping : float
        Fraction of the full step that is taken.
    residual : (n_cells,)
        Residuals of all cells; updated in place.
    work : (2, k)
        Scratch; k is at least the largest number of observed cells in a row.
    """
    start, index, position = links
    i, s = element[1], element[2]
    begin, n = start[i], start[i + 1] - start[i]
    here, across = work[0, :n], work[1, :n]
    for c in range(n):
        here[c] = residual[position[begin + c]]
        across[c] = fixed[index[begin + c], s]
    step = damping * _step(here, across, factor[i, s], ridge)
    factor[i, s] += step
    for c in range(n):
        residual[position[begin + c]] = here[c] - step * across[c]
