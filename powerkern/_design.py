"""Covariates as the kernels take them: read, checked, and made an orthonormal basis.

With an intercept, covariates are centered before they are orthogonalised (years lose no digits that way), and all are
divided by a power of two. The basis comes from Gram-Schmidt's method, done twice, in the order of the columns: one
that is a linear combination of those before it is left out, as R's lm does.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern import _frames
from powerkern._typing import BoolArray, FloatArray
from powerkern._validate import as_flag, as_matrix, frame_library
from powerkern.kernels import residual_likelihood

INTERCEPT = "Intercept"

#: A column is left out if less than this part of it (of it less its mean) is not a combination of the others.
_COLLINEAR = 1e-7
#: A column whose deviations from its mean are below this part of it is constant.
_CONSTANT = 1e-13
#: The constant is a combination of the covariates if what is left of it is below this.
_SPANNED = 1e-10
#: A sample of the rows, for scans: one in so many, at least so many, and so many for each covariate; none in fewer than
#: so many times that.
_SAMPLED, _FEWEST, _EACH, _WORTHWHILE = 32, 256, 16, 4
#: What is to be left of every basis vector in a sample, relative to its share.
_RESOLVED = 0.1


class Covariates(NamedTuple):
    """What a design was made from, so that one for other rows can be made: names of its columns, or a formula."""

    #: Of all columns, the intercept's too.
    names: list[str]
    #: Of the data frame that they were read from, if there was one.
    columns: list[str] | None
    intercept: bool
    formula: str | None
    #: formulaic's.
    spec: Any

    def matrix(self, X: object) -> FloatArray:
        """The covariates in rows that need not be those of the fit: (n, k), the intercept among them.

        Raises
        ------
        ValueError
            If columns are missing, or a value is.
        """
        if self.formula is not None:
            if self.spec is None:
                raise ValueError(
                    f"this fit was read from JSON, which does not keep how the formula {self.formula!r} codes "
                    "categories; fit again, or pickle the fit"
                )
            return _checked(_evaluated(self.spec, X, self.formula), self.names)
        matrix = as_matrix(_frames.columns_named(X, self.columns))
        values, first = matrix.values, int(self.intercept)
        if values.shape[1] != len(self.names) - first:
            raise ValueError(
                f"X has {values.shape[1]} columns, the fit has {len(self.names) - first} covariates; pass those"
            )
        if self.columns is not None and matrix.names is not None and matrix.names != self.columns:
            raise ValueError(f"X has the columns {matrix.names}, the fit has {self.columns}; pass those, in that order")
        return _checked(_with_intercept(values) if self.intercept else values, self.names)


def read_covariates(X: object, formula: str | None, intercept: bool) -> tuple[Covariates, FloatArray]:
    """Covariates, and their values in the rows of X."""
    intercept = as_flag("intercept", intercept)
    if formula is not None:
        if not intercept:
            raise ValueError("intercept=False goes without a formula; a formula says so itself: '~ 0 + ...'")
        table = _model_matrix(X, formula)
        names = [str(name) for name in table.model_spec.column_names]
        covariates = Covariates(names, None, INTERCEPT in names, formula, table.model_spec)
        return covariates, _checked(np.asarray(table, dtype=np.float64), names)
    matrix = as_matrix(X)
    names = matrix.names or [f"x{j}" for j in range(matrix.values.shape[1])]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has {twice!r} more than once; give every covariate a different name")
    if intercept:
        if INTERCEPT in names:
            raise ValueError(f"X has a column {INTERCEPT!r}; leave it out, or pass intercept=False")
        names = [INTERCEPT, *names]
    covariates = Covariates(names, matrix.names, intercept, None, None)
    return covariates, _checked(_with_intercept(matrix.values) if intercept else matrix.values, names)


def _with_intercept(values: NDArray[Any]) -> FloatArray:
    return np.column_stack([np.ones(len(values)), values.astype(np.float64)])


def _checked(values: NDArray[Any], names: list[str]) -> FloatArray:
    """Covariates as float64, none missing."""
    values = np.asarray(values, dtype=np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        what = "missing" if np.isnan(values[i, j]) else "infinite"
        raise ValueError(f"X, {names[j]!r}, row {i}: the value is {what}; drop the row, or impute the value")
    return values


# --- formulas ---------------------------------------------------------------------------------------


def _model_matrix(X: object, formula: str) -> Any:
    """The formula's model matrix."""
    try:
        import formulaic
    except ImportError:
        raise ImportError("a formula needs formulaic: pip install 'powerkern[formula]'") from None
    if not isinstance(formula, str):
        raise TypeError(f"formula must be a string such as '~ weight + C(group)', got {formula!r}")
    try:
        parsed = formulaic.Formula(formula)
    except formulaic.errors.FormulaicError as error:
        raise ValueError(f"formula {formula!r} cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, formulaic.formula.SimpleFormula):
        raise ValueError(
            f"formula {formula!r} has more than one side; give the covariates alone: '~ weight + C(group)'"
        )
    return _evaluated(parsed, X, formula)


def _evaluated(spec: Any, X: Any, formula: str) -> Any:
    """The model matrix of a formula or its specification; missing values are left in."""
    import formulaic
    import pandas

    if not hasattr(X, "columns"):
        raise TypeError(f"formula {formula!r} needs a data frame, X is a {type(X).__name__}")
    if frame_library(X) == "polars":  # one library for fit and prediction: a specification remembers it
        X = pandas.DataFrame(X.to_dict(as_series=False))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
            return spec.get_model_matrix(X, na_action="ignore", context={})
    except formulaic.errors.DataMismatchWarning as error:
        raise ValueError(f"formula {formula!r}: X has categories that the fit has not ({error})") from None
    except (formulaic.errors.FormulaicError, KeyError, NameError, TypeError, ValueError) as error:
        known = {str(name) for name in getattr(X, "columns", [])}
        wanted: set[Any] = getattr(spec, "required_variables", set())
        unknown = sorted(str(name) for name in wanted if str(name) not in known)
        if unknown:
            raise ValueError(
                f"formula {formula!r}: {', '.join(map(repr, unknown))} is no column of X; it has "
                f"{', '.join(map(repr, sorted(known)))}"
            ) from None
        raise ValueError(f"formula {formula!r} cannot be evaluated: {str(error).splitlines()[0]}") from None


# --- the basis --------------------------------------------------------------------------------------


class Basis(NamedTuple):
    """An orthonormal basis of the rows that count, and what brings coefficients on it back to the covariates.

    Coefficients refer to covariates less `center`.
    """

    design: residual_likelihood.Design
    center: FloatArray
    #: (k, q): zero in the rows of columns left out.
    to_coef: FloatArray
    #: Which columns were not left out.
    used: BoolArray
    #: The constant as a combination of the covariates, zero where it is none.
    one: FloatArray

    @property
    def rank(self) -> int:
        """Number of basis vectors."""
        return int(self.to_coef.shape[1])


def basis_of(values: FloatArray, intercept: bool, weight: FloatArray, counted: BoolArray | None = None) -> Basis:
    """The basis of covariates (n, k), the first of which is the intercept if there is one; `counted`: of these rows."""
    n, k = values.shape
    root = np.sqrt(weight)
    rows = np.ones(n, dtype=np.bool_) if counted is None else counted
    center = _centers(values[rows]) if intercept else np.zeros(k)
    columns = np.where(rows[:, np.newaxis], values - center, 0.0)
    size = np.abs(columns).max(axis=0, initial=0.0)
    constant = size <= _CONSTANT * np.abs(values).max(axis=0, initial=0.0)
    unit = np.ldexp(1.0, np.frexp(np.where(constant, 1.0, size))[1])
    columns /= unit
    if weight.size:
        columns *= root[:, np.newaxis]
    vectors: list[FloatArray] = []
    triangle = np.zeros((k, k))
    used = np.zeros(k, dtype=np.bool_)
    for j in np.flatnonzero(~constant):
        rest = columns[:, j].copy()
        for _ in range(2):
            for i, vector in enumerate(vectors):
                dot = vector @ rest
                triangle[i, j] += dot
                rest -= dot * vector
        length = float(np.linalg.norm(rest))
        if length > _COLLINEAR * float(np.linalg.norm(columns[:, j])):
            triangle[len(vectors), j] = length
            vectors.append(rest / length)
            used[j] = True
    basis = np.array(vectors).reshape(len(vectors), n)
    to_coef = np.zeros((k, len(vectors)))
    to_coef[used] = np.linalg.inv(triangle[: len(vectors), used]) / unit[used, np.newaxis]
    ones = np.where(rows, root if weight.size else 1.0, 0.0)
    spanned = basis @ ones
    left = float(np.linalg.norm(ones - spanned @ basis))
    is_spanned = left <= _SPANNED * float(np.linalg.norm(ones))
    one = to_coef @ spanned if is_spanned else np.zeros(k)
    if intercept:
        one = np.eye(k)[0]
    sample_basis, sample_root = _sample_of(basis, root)
    design = residual_likelihood.Design(basis, root, sample_basis, sample_root, float(is_spanned))
    return Basis(design, center, to_coef, used, one)


def _centers(values: FloatArray) -> FloatArray:
    """Means of the columns, 0 of the first."""
    center = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
    # the mean of very large numbers overflows
    center = np.where(np.isfinite(center), center, 0.0)
    center[0] = 0.0
    return center


def _sample_of(basis: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """An orthonormal basis of evenly spaced rows, and their root weights; of no rows if it would not do."""
    q, n = basis.shape
    m = max(n // _SAMPLED, _FEWEST + _EACH * q)
    if n >= _WORTHWHILE * m:
        rows = np.arange(m) * (n // m)
        vectors, triangle = np.linalg.qr(basis[:, rows].T)
        if np.abs(np.diag(triangle)).min(initial=np.inf) ** 2 > _RESOLVED * m / n:
            return np.ascontiguousarray(vectors.T), root[rows] if root.size else root
    return np.empty((q, 0)), np.empty(0)


def warn_dropped(names: list[str], used: BoolArray) -> None:
    """One warning that names the columns left out, attributed to the caller's caller."""
    dropped = np.flatnonzero(~used)
    if dropped.size:
        listed = ", ".join(repr(names[j]) for j in dropped)
        warnings.warn(
            f"X: {listed} left out: constant, or linear combinations of covariates before; their coefficients are NaN",
            stacklevel=3,
        )
