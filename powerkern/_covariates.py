"""Covariates: read, checked, and made an orthonormal basis of what a linear model can fit."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray, IntArray
from powerkern._validate import Matrix, as_matrix, column_label, column_labels

#: A column is collinear where what is left of it beside the columns before it is this small a fraction of its spread,
#: or so many roundings of its values.
_COLLINEAR = 1e-10
_ROUNDINGS = 16.0
_EPS = float(np.finfo(np.float64).eps)


class Design(NamedTuple):
    """A design matrix without the columns that depend on others, as ``triangle.T @ basis``.

    Its rows are multiplied by the square roots of their weights.
    """

    #: (rank, n), orthonormal rows.
    basis: FloatArray
    #: (rank, rank), upper triangular.
    triangle: FloatArray
    #: The columns of the covariates that it has; the intercept, if there is one, comes before them.
    kept: IntArray
    intercept: bool

    @property
    def rank(self) -> int:
        """The number of coefficients of a linear model."""
        return len(self.basis)

    def columns(self, values: NDArray[Any]) -> FloatArray:
        """The design of other covariates, (rank, n), without weights."""
        rows = [np.ones(len(values))] if self.intercept else []
        return np.array([*rows, *np.asarray(values[:, self.kept], dtype=np.float64).T]).reshape(self.rank, len(values))

    def coefficients(self, products: FloatArray) -> FloatArray:
        """Least squares coefficients from the products of the basis with responses: (rank, ...) to (rank, ...)."""
        solved = np.array(products)
        for i in reversed(range(self.rank)):
            solved[i] = (solved[i] - np.einsum("k,k...->...", self.triangle[i, i + 1 :], solved[i + 1 :])) / (
                self.triangle[i, i]
            )
        return solved


def as_covariates(X: object, n_rows: int, what: str = "covariates") -> Matrix:
    """Covariates as a matrix of float64 with one row for each of the data.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        If they have another number of rows, or a value is missing or infinite: the message names column and row.
    """
    matrix = as_matrix(X, what=what)
    values = np.asarray(matrix.values, dtype=np.float64)
    if len(values) != n_rows:
        raise ValueError(f"{what} has {len(values)} rows, X has {n_rows}; pass one row of covariates for each of X")
    broken = ~np.isfinite(values)
    if broken.any():
        i, j = (int(k) for k in np.argwhere(broken)[0])
        kind = "missing" if np.isnan(values[i, j]) else "infinite"
        raise ValueError(
            f"{what}, {column_label(j, matrix.names)}, row {i}: the value is {kind}; impute it, or leave the row out "
            f"of X and {what}"
        )
    return Matrix(values, matrix.names, matrix.was_vector)


def design_of(
    values: FloatArray,
    weight: FloatArray,
    names: list[str] | None = None,
    *,
    intercept: bool = True,
    what: str = "covariates",
    stacklevel: int = 3,
) -> Design:
    """The design of covariates, (n, q), in rows of positive weight (empty: all one).

    A column that depends linearly on those before it is left out, with one warning that names all of them. The basis
    is that of Gram and Schmidt, orthogonalised twice, which leaves it orthonormal to rounding; no product in it depends
    on the number of threads.
    """
    n, q = values.shape
    root = np.sqrt(weight / weight.max()) if weight.size else np.ones(n)
    columns = np.empty((q + intercept, n))
    if intercept:
        columns[0] = root
    unit = _units(values)  # so that no square over- or underflows
    np.multiply((values / unit).T, root, out=columns[int(intercept) :])
    basis, triangle, kept = _gram_schmidt(columns, intercept)
    scale = np.concatenate([np.ones(int(intercept)), unit])[kept]
    left_out = np.setdiff1d(np.arange(len(columns)), kept) - intercept
    if left_out.size:
        warnings.warn(
            f"{what}: {column_labels(left_out, names)}: linearly dependent on the columns before"
            f"{' and the intercept' * intercept}; left out",
            stacklevel=stacklevel,
        )
    has_intercept = intercept and kept.size > 0 and kept[0] == 0
    # the covariates are units larger, and their rows sqrt(max weight) larger than the weights make them
    triangle *= scale
    if weight.size:
        triangle *= np.sqrt(weight.max())
    return Design(basis, triangle, kept[int(has_intercept) :] - intercept, has_intercept)


def _units(values: FloatArray) -> FloatArray:
    """Powers of two near the largest magnitude of each column."""
    largest = np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(largest > 0.0, largest, 1.0))[1] - 1))


def _gram_schmidt(columns: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray, IntArray]:
    """Orthonormal rows, the triangular factor, and which of the `columns` (rows here) they were made of."""
    basis, triangle = np.empty_like(columns), np.zeros((len(columns), len(columns)))
    kept: list[int] = []
    for j, column in enumerate(columns):
        rank = len(kept)
        rest, spread = column, np.nan
        for _ in range(2):  # the second time, what rounding left is taken off too
            for k in range(rank):
                share = np.einsum("i,i->", basis[k], rest)
                triangle[k, rank] += share
                rest = rest - share * basis[k]
                if k == 0 and intercept and np.isnan(spread):
                    spread = _norm(rest)
        size, whole = _norm(rest), _norm(column)
        if size <= max(_COLLINEAR * np.fmin(spread, whole), _ROUNDINGS * _EPS * whole):
            triangle[:, rank] = 0.0
            continue
        basis[rank], triangle[rank, rank] = rest / size, size
        kept.append(j)
    rank = len(kept)
    return basis[:rank].copy(), triangle[:rank, :rank].copy(), np.array(kept, dtype=np.int64)


def _norm(x: FloatArray) -> float:
    return float(np.sqrt(np.einsum("i,i->", x, x)))
