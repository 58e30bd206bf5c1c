"""Access of tests to the rows that kernels write, behind every figure of a fit."""

import numpy as np

import powerkern as pk
from powerkern._estimators.spec import FitSpec
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable


def kernel_rows(fit):
    """The rows of a fit, (p, N_RESULTS): equal rows mean equal figures, those without a public attribute included."""
    return fit._table.kernel_rows


def fit_from_rows(rows, family, *, standardize=True, lmbda_error=None):
    """A fit with these rows; `family` is a name, or codes where columns have families of their own."""
    spec = FitSpec(family=family if isinstance(family, str) else "best", standardize=standardize)
    table = ColumnTable(np.ascontiguousarray(rows), family, lmbda_error=lmbda_error)
    return pk.PowerFit(spec, ColumnLabels(), table)


def family_codes(fit):
    """The code of each column's family."""
    return fit._table.family_codes
