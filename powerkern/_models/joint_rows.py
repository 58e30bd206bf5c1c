"""Select complete rows of the user's data, and make the joint likelihood of their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix
from powerkern._input.messages import warn
from powerkern._models.design import Basis, Covariates, compute_basis, make_intercept, read_covariates
from powerkern._models.joint_likelihood import JointLikelihood
from powerkern._typing import FloatArray, IntArray, Weights
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored


class JointRows(NamedTuple):
    """Rows without missing values and with positive weight, and their covariates."""

    #: Values, (n, p), of any real dtype, and covariates, (n, k), in float64 with the intercept.
    values: NDArray[Any]
    covariates: FloatArray
    #: Weights of the rows; empty if all are 1.
    weight: Weights
    names: list[str] | None

    @property
    def n_obs(self) -> float:
        """Number of rows, or their total weight."""
        return float(len(self.values)) if self.weight is None else float(self.weight.sum())


def read_joint_covariates(
    covariates: object, formula: str | None, n_rows: int, X: object
) -> tuple[Covariates, FloatArray]:
    """Read the covariates of a joint fit; return the specification of the design and the design matrix, (n, k).

    Without covariates, the design is an intercept.

    Parameters
    ----------
    covariates : array-like or data frame or None
        The covariates.
    formula : str or None
        Formula for covariates in a data frame.
    n_rows : int
        Required number of rows.
    X : object
        Data whose row labels give the order of rows.
    """
    if covariates is None and formula is None:
        return make_intercept(n_rows)
    return read_covariates(covariates, formula, True, n_rows, X)


def make_design(rows: JointRows, covariates: Covariates) -> Basis:
    """Compute the basis of the design; raise a ValueError if there is no intercept, or if there are too few rows."""
    basis = compute_basis(rows.covariates, covariates.intercept, rows.weight)
    if not basis.design.constant:
        raise ValueError(f"formula {covariates.formula!r} has no intercept, which a joint fit needs; leave out '0'")
    _refuse_few(rows, basis)
    return basis


def select_rows(
    matrix: Matrix,
    given: FloatArray,
    family: str,
    shift: FloatArray,
) -> JointRows:
    """Select the rows without missing values and with positive weight; raise if a value is outside the domain.

    Parameters
    ----------
    matrix : Matrix
        The data, (n, p), with weights.
    given : (n, k) ndarray
        The design matrix.
    family : str
        The transform, "box-cox" or "yeo-johnson".
    shift : (p,) ndarray
        Constant to add to each column.
    """
    values, weight = matrix.values, matrix.weight
    complete = ~np.isnan(values).any(axis=1)
    n_left_out = int(np.count_nonzero(~complete if weight is None else ~complete & (weight > 0.0)))
    if n_left_out:
        warn(f"{n_left_out} of {len(values)} rows have missing values and are left out; impute them to keep these rows")
    counts = complete if weight is None else complete & (weight > 0.0)
    if not counts.any():
        raise ValueError(
            "X has no row without missing values; impute these, or leave out columns with many missing values"
        )
    outside = _find_outside(values[counts], shift, family)
    if outside.size:
        effective = np.where(counts, 1.0 if weight is None else weight, 0.0)
        raise domain_error_in(matrix, int(outside[0]), matrix.names, effective, shift[outside[0]])
    if counts.all():
        return JointRows(values, given, weight, matrix.names)
    kept = None if weight is None else weight[counts]
    return JointRows(values[counts], given[counts], kept, matrix.names)


def _find_outside(values: NDArray[Any], shift: FloatArray, family: str) -> IntArray:
    """Return the positions of columns with values outside the domain; `shift`, (p,), is added to the columns first."""
    with np.errstate(over="ignore"):
        moved = values.astype(np.float64, copy=False) + shift
    outside = np.isinf(moved)
    if not is_mirrored(FAMILIES[family]):
        outside |= moved <= 0.0
    return np.flatnonzero(outside.any(axis=0))


def _refuse_few(rows: JointRows, design: Basis) -> None:
    """Raise a ValueError if there are too few rows for a nonsingular covariance."""
    n, p = rows.values.shape
    if n < p + design.rank:
        means = "their means" if design.rank == 1 else f"the {design.rank} coefficients of their means"
        raise ValueError(
            f"X has {n} complete rows for {p} columns and {means}: their covariance is singular; pass at least "
            f"{p + design.rank} rows, or fewer columns"
        )


def joint_likelihood(rows: JointRows, design: Basis, family: int, shift: FloatArray, n_threads: int) -> JointLikelihood:
    """Make the joint likelihood of the columns, given the covariates.

    Parameters
    ----------
    rows : JointRows
        The rows.
    design : Basis
        Basis of the design.
    family : int
        A code of `kernels.transforms.family`.
    shift : (p,) ndarray
        Constant to add to each column.
    n_threads : int
        Maximum number of threads.
    """
    columns = np.ascontiguousarray(rows.values.T, dtype=np.float64)
    if shift.any():
        columns = columns + shift[:, np.newaxis]
    basis = (
        design.design.basis if design.rank > 1 else design.design.basis[:0]
    )  # with an intercept alone, columns are centered anyway
    return JointLikelihood(columns, family, rows.weight, basis, n_threads)
