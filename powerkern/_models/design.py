"""Read and check covariates, and compute an orthonormal basis of the design.

With an intercept, covariates are centered before they are orthogonalised, so that covariates such as years lose no
digits. All columns are divided by powers of two. The basis is computed by the Gram-Schmidt method, applied twice, in
the order of the columns. Columns that are linear combinations of earlier ones are dropped, as in R's lm. No product
depends on the number of threads.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import NO_WEIGHTS
from powerkern._engine.products import combine, cross, invert_lower
from powerkern._input import frames
from powerkern._input.alignment import (
    align_rows,
    are_default,
    labels_from_record,
    labels_to_record,
    may_go_by_position,
)
from powerkern._input.arrays import Matrix, as_flag, as_matrix
from powerkern._input.foreign import library
from powerkern._input.messages import shown, warn
from powerkern._input.wrapping import as_frame
from powerkern._results.json_entries import damaged
from powerkern._typing import BoolArray, FloatArray, Weights
from powerkern.kernels.regression import likelihood

INTERCEPT = "Intercept"

#: A centered column is dropped if the norm of its part that is orthogonal to earlier columns is less than this fraction
#: of the norm of the column.
_COLLINEAR = 1e-7
#: A column is constant if its deviations from the mean are below this fraction of its largest absolute value.
_CONSTANT = 1e-13
#: A covariate whose values are all smaller than this in magnitude is rejected, because its coefficient would overflow.
_LEAST = float(np.finfo(np.float64).tiny)
#: The constant counts as a combination of the covariates if its residual has less than this fraction of its norm.
_SPANNED = 1e-10
#: Scans use a sample of rows: one row in _SAMPLED, but at least _FEWEST plus _EACH per covariate. No sample is taken if
#: the data have fewer than _WORTHWHILE times as many rows.
_SAMPLED, _FEWEST, _EACH, _WORTHWHILE = 32, 256, 16, 4
#: A sample is adequate if every basis vector keeps at least this fraction of its expected squared norm.
_ADEQUATE = 0.1


class Covariates(NamedTuple):
    """Specification of a design, by column names or by a formula, which can be applied to new rows."""

    #: Names of all columns, including the intercept.
    names: list[str]
    #: Labels of the columns of the data frame from which the covariates were read, if any.
    columns: list[Any] | None
    intercept: bool
    formula: str | None
    #: Model specification of formulaic; None without a formula.
    spec: Any

    def matrix(self, X: object, n_rows: int | None = None, of: object = None, whose: str = "X") -> FloatArray:
        """Return the design matrix for new rows, (n, k), including the intercept.

        Parameters
        ----------
        X : array-like or data frame
            The covariates.
        n_rows : int, optional
            Required number of rows.
        of : object, optional
            Data, such as the responses, whose row labels give the order of rows.
        whose : str
            Name of the argument `of` for messages.

        Raises
        ------
        ValueError
            If a column or a value is missing, or if there are not `n_rows` rows.
        """
        return self._check_values(self._values(align_rows(X, of, "covariates", whose), n_rows), n_rows)

    def _values(self, X: object, n_rows: int | None) -> NDArray[Any]:
        """Return the design matrix of the covariates `X`, unchecked; raise if their columns do not match the fit."""
        if self.formula is not None:
            if self.spec is None:
                raise ValueError(
                    f"this fit was read from JSON, which does not keep how the formula {shown(self.formula)} codes "
                    "categories; fit again, or pickle the fit"
                )
            return np.asarray(_evaluate_formula(self.spec, X, self.formula), dtype=np.float64)
        none = Matrix(np.empty((n_rows or 0, 0)), None, False)
        matrix = none if X is None else as_matrix(frames.columns_named(X, self.columns), what="covariates")
        values, k = matrix.values, len(self.names) - int(self.intercept)
        if values.shape[1] != k:
            raise ValueError(
                f"covariates has {values.shape[1]} columns, the fit has {k}; pass the covariates of the fit"
            )
        theirs = matrix.names
        differ = self.columns is not None and theirs is not None and theirs != self.columns
        if differ and not may_go_by_position(theirs or [], self.columns or []):
            raise ValueError(
                f"covariates has the columns {theirs}, the fit has {self.columns}; pass these, in this order"
            )
        return _with_intercept(values) if self.intercept else values

    def _check_values(self, values: NDArray[Any], n_rows: int | None) -> FloatArray:
        """Return covariates as float64; raise unless all are finite and there are `n_rows` rows (None: any number)."""
        if n_rows is not None and len(values) != n_rows:
            raise ValueError(f"covariates has {len(values)} rows, the data have {n_rows}; pass the same rows")
        values = np.asarray(values, dtype=np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            kind = "missing" if np.isnan(values[i, j]) else "infinite"
            raise ValueError(
                f"covariates, {self.names[j]!r}, row {i}: the value is {kind}; drop the row, or impute the value"
            )
        return values

    def check(self, values: NDArray[Any], n_rows: int) -> FloatArray:
        """Check the design matrix before a fit, and return it as float64.

        Raise a ValueError if the matrix is not finite, if it does not have `n_rows` rows, or if all values of a
        covariate are so small that its coefficient would overflow.
        """
        values = self._check_values(values, n_rows)
        size = np.abs(values).max(axis=0, initial=0.0)
        tiny = (size > 0.0) & (size < _LEAST)
        if tiny.any():
            name = self.names[int(np.argmax(tiny))]
            raise ValueError(f"covariates, {name!r}: all values are below {_LEAST:.3g}; multiply them by a constant")
        return values

    def warn_dropped(self, used: BoolArray) -> None:
        """Issue one warning that names the columns left out; `used` masks the columns in use."""
        dropped = np.flatnonzero(~used)
        if dropped.size:
            listed = ", ".join(repr(self.names[j]) for j in dropped)
            warn(f"covariates: {listed} left out: constant, or linear combinations of earlier covariates")

    def to_record(self) -> dict[str, Any]:
        """Return the specification as a record for JSON, without the formula's coding of categories."""
        record = self._asdict()
        del record["spec"]
        return {**record, "columns": labels_to_record(self.columns)}

    @classmethod
    def from_record(cls, record: Any) -> Covariates:
        """Rebuild a specification from a record of `to_record`; raise a ValueError for any other record."""
        if not isinstance(record, dict) or {*record, "spec"} != set(cls._fields) or "spec" in record:
            raise damaged("covariates is not an object with the keys that a fit writes")
        try:
            columns = labels_from_record(record["columns"])
        except (ValueError, OverflowError):
            raise damaged("covariates are not names") from None
        covariates = cls(**{**record, "columns": columns}, spec=None)
        names, intercept = covariates.names, covariates.intercept
        if not (isinstance(names, list) and isinstance(intercept, bool)):
            raise damaged("covariates are not names")
        texts = [*names, covariates.formula or ""]
        are_as_many = columns is None or len(columns) == len(names) - intercept
        if not (all(isinstance(text, str) for text in texts) and are_as_many):
            raise damaged("covariates are not names")
        return covariates


def read_covariates(
    X: object, formula: str | None, intercept: bool, n_rows: int, of: object, whose: str = "X"
) -> tuple[Covariates, FloatArray]:
    """Read the covariates for a fit; return the specification of the design and the design matrix, (n, k).

    Parameters
    ----------
    X : array-like or data frame
        The covariates.
    formula : str or None
        Formula for covariates in a data frame.
    intercept : bool
        True to add an intercept; must be True with a formula.
    n_rows : int
        Required number of rows.
    of : object
        Data, such as the responses, whose row labels give the order of rows.
    whose : str
        Name of the argument `of` for messages.
    """
    X = align_rows(X, of, "covariates", whose)
    intercept = as_flag("intercept", intercept)
    if formula is not None:
        if not intercept:
            raise ValueError("intercept=False cannot be combined with a formula; begin the formula with '~ 0 + ...'")
        table = _model_matrix(X, formula)
        names = [str(name) for name in table.model_spec.column_names]
        covariates = Covariates(names, None, INTERCEPT in names, formula, table.model_spec)
        return covariates, covariates.check(np.array(table, dtype=np.float64), n_rows)
    matrix = as_matrix(X, what="covariates")
    unnamed = matrix.names is None or are_default(matrix.names)
    names = [f"x{label}" if unnamed else str(label) for label in matrix.names or range(matrix.values.shape[1])]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"covariates has {twice!r} more than once; give every covariate a different name")
    if intercept:
        if INTERCEPT in names:
            raise ValueError(f"covariates has a column {INTERCEPT!r}; leave it out: an intercept is added")
        names = [INTERCEPT, *names]
    covariates = Covariates(names, matrix.names, intercept, None, None)
    values = _with_intercept(matrix.values) if intercept else np.array(matrix.values)  # a copy: a fit remembers them
    return covariates, covariates.check(values, n_rows)


def make_intercept(n_rows: int) -> tuple[Covariates, FloatArray]:
    """Return the specification and the matrix, (n_rows, 1), of a design that has only an intercept."""
    return Covariates([INTERCEPT], None, True, None, None), np.ones((n_rows, 1))


def _with_intercept(values: NDArray[Any]) -> FloatArray:
    """Return the covariates with a column of ones in front, in float64."""
    return np.column_stack([np.ones(len(values)), values.astype(np.float64)])


# --- formulas ---------------------------------------------------------------------------------------


def _model_matrix(X: object, formula: str) -> Any:
    """Parse a formula and return its model matrix for the data frame `X`."""
    try:
        import formulaic
    except ImportError:
        raise ImportError("a formula needs formulaic: pip install formulaic") from None
    if not isinstance(formula, str):
        raise TypeError(f"formula must be a string such as '~ weight + C(group)', got {shown(formula)}")
    try:
        parsed = formulaic.Formula(formula)
    except formulaic.errors.FormulaicError as error:
        raise ValueError(f"formula {shown(formula)} cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, formulaic.formula.SimpleFormula):
        raise ValueError(
            f"formula {shown(formula)} has more than one side; give the covariates alone: '~ weight + C(group)'"
        )
    return _evaluate_formula(parsed, X, formula)


def _evaluate_formula(spec: Any, X: Any, formula: str) -> Any:
    """Return the model matrix for the data frame `X`, with missing values as NaN.

    `spec` is a parsed formula or the model specification of a fit. `formula` is the text, for messages.
    """
    import formulaic
    import pandas

    if not hasattr(X, "columns"):
        raise TypeError(f"formula {shown(formula)} needs a data frame, covariates is a {type(X).__name__}")
    if library(X) != "pandas" and (frame := as_frame(X)) is not None:
        # use one library for fit and prediction, because the specification remembers it
        X = pandas.DataFrame({name: frame.objects(j) for j, name in enumerate(frame.names or [])})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
            return spec.get_model_matrix(X, na_action="ignore", context={})
    except formulaic.errors.DataMismatchWarning as error:
        raise ValueError(
            f"formula {shown(formula)}: covariates has categories that were not in the fitted data ({error})"
        ) from None
    except (formulaic.errors.FormulaicError, KeyError, NameError, TypeError, ValueError) as error:
        known = {str(name) for name in getattr(X, "columns", [])}
        wanted: set[Any] = getattr(spec, "required_variables", set())
        unknown = sorted(str(name) for name in wanted if str(name) not in known)
        if unknown:
            raise ValueError(
                f"formula {shown(formula)}: {', '.join(map(repr, unknown))} is not a column of covariates, which has "
                f"{', '.join(map(repr, sorted(known)))}"
            ) from None
        raise ValueError(f"formula {shown(formula)} cannot be evaluated: {str(error).splitlines()[0]}") from None


# --- the basis --------------------------------------------------------------------------------------


class Basis(NamedTuple):
    """Orthonormal basis of the design matrix over the rows in use, and the map to coefficients of the covariates.

    Coefficients refer to covariates minus `center`.
    """

    design: likelihood.Design
    center: FloatArray
    #: Matrix that maps products with the basis to coefficients, (k, rank); zero in the rows of columns left out.
    to_coef: FloatArray
    #: Mask of the columns that were not left out.
    used: BoolArray
    #: Coefficients of the constant as a combination of the covariates; zero if it is not a combination of them.
    one: FloatArray

    @property
    def rank(self) -> int:
        """Number of basis vectors."""
        return int(self.to_coef.shape[1])

    def coefficients(self, products: FloatArray) -> FloatArray:
        """Return coefficients of the covariates, (k, p), given the products of the basis with responses, (rank, p)."""
        coef = combine(self.to_coef, products)
        if self.center.any():
            coef[:1] -= combine(self.center[np.newaxis], coef)
        return coef


def compute_basis(values: FloatArray, intercept: bool, weight: Weights, counted: BoolArray | None = None) -> Basis:
    """Compute an orthonormal basis of covariates.

    Parameters
    ----------
    values : (n, k) ndarray
        The design matrix.
    intercept : bool
        True if the first column is an intercept; the other columns are then centered.
    weight : (n,) ndarray
        Weights of the rows; empty for none.
    counted : (n,) ndarray of bool, optional
        Rows in use; default: all.
    """
    n, k = values.shape
    root = NO_WEIGHTS if weight is None else np.sqrt(weight)
    rows = np.ones(n, dtype=np.bool_) if counted is None else counted
    center = _centers(values[rows]) if intercept else np.zeros(k)
    # divide by powers of two, so that no square overflows or underflows
    peak = np.ldexp(1.0, np.frexp(root.max(initial=0.0))[1]) if root.size else 1.0
    ones = np.where(rows, root / peak if root.size else 1.0, 0.0)
    columns, unit = _scale_columns(values, center, ones)
    basis, triangle, used = _gram_schmidt(columns)
    to_coef = np.zeros((k, len(basis)))
    to_coef[used] = invert_lower(np.ascontiguousarray(triangle.T)).T / unit[used, np.newaxis] / peak
    spanned = cross(basis, ones[np.newaxis])
    left = _norm(ones - combine(spanned.T, basis)[0])
    is_spanned = left <= _SPANNED * _norm(ones)
    one = combine(to_coef, spanned * peak)[:, 0] if is_spanned else np.zeros(k)
    if intercept:
        one = np.eye(k)[0]
    sample_basis, sample_root = _sample_basis(basis, root)
    design = likelihood.Design(basis, root, sample_basis, sample_root, float(is_spanned))
    return Basis(design, center, to_coef, used, one)


def _centers(values: FloatArray) -> FloatArray:
    """Return the means of the columns, but 0 for the first column, which is the intercept."""
    center = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
    # the mean of very large numbers overflows
    center = np.where(np.isfinite(center), center, 0.0)
    center[0] = 0.0
    return center


def _scale_columns(values: FloatArray, center: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Center and weight the columns, and divide them by powers of two; constant columns become 0.

    Parameters
    ----------
    values : (n, k) ndarray
        The design matrix.
    center : (k,) ndarray
        Number to subtract from each column.
    root : (n,) ndarray
        Roots of the weights.

    Returns
    -------
    columns : (k, n) ndarray
        The scaled columns, as rows.
    unit : (k,) ndarray
        The powers of two.
    """
    rows = root > 0.0
    columns = np.where(rows[:, np.newaxis], values - center, 0.0)
    size = np.abs(columns).max(axis=0, initial=0.0)
    constant = size <= _CONSTANT * np.abs(values).max(axis=0, initial=0.0)
    unit = np.ldexp(1.0, np.frexp(np.where(constant, 1.0, size))[1] - 1)
    columns *= root[:, np.newaxis]
    columns[:, constant] = 0.0
    return np.ascontiguousarray((columns / unit).T), unit


def _gram_schmidt(columns: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Orthonormalise the rows of `columns` in order, and drop rows that depend linearly on earlier ones.

    Returns
    -------
    basis : (rank, n) ndarray
        The orthonormal rows.
    triangle : (rank, rank) ndarray
        Upper triangular factor with ``columns[used] = triangle.T @ basis``.
    used : (k,) ndarray of bool
        Mask of the rows that were not dropped.
    """
    k = len(columns)
    basis, triangle, used = np.empty_like(columns), np.zeros((k, k)), np.zeros(k, dtype=np.bool_)
    rank = 0
    for j in range(k):
        rest = columns[j : j + 1].copy()
        for _ in range(2):  # the second pass removes the rounding errors of the first
            dots = cross(rest, basis[:rank])
            triangle[:rank, j] += dots[0]
            rest -= combine(dots, basis[:rank])
        length = _norm(rest[0])
        if length > _COLLINEAR * _norm(columns[j]):
            basis[rank], triangle[rank, j], used[j] = rest[0] / length, length, True
            rank += 1
    return basis[:rank].copy(), triangle[:rank, used], used


def _norm(x: FloatArray) -> float:
    """Return the Euclidean norm of a vector."""
    return float(np.sqrt(cross(x[np.newaxis], x[np.newaxis])[0, 0]))


def _sample_basis(basis: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis over a sample of evenly spaced rows, and the roots of the weights of these rows.

    Both are empty if the data have too few rows, or if the sample does not represent a basis vector adequately.

    Parameters
    ----------
    basis : (rank, n) ndarray
        Orthonormal basis over all rows.
    root : (n,) ndarray
        Roots of the weights; empty for none.
    """
    q, n = basis.shape
    m = max(n // _SAMPLED, _FEWEST + _EACH * q)
    if n >= _WORTHWHILE * m:
        rows = np.arange(m) * (n // m)
        vectors, triangle, used = _gram_schmidt(np.ascontiguousarray(basis[:, rows]))
        if used.all() and np.diag(triangle).min(initial=np.inf) ** 2 > _ADEQUATE * m / n:
            return vectors, root[rows] if root.size else root
    return np.empty((q, 0)), np.empty(0)
