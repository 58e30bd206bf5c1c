"""Fits without warnings, and access to the rows of results that kernels write."""

import warnings
from dataclasses import fields, replace

import numpy as np

import powerkern as pk
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._estimators.spec import FitSpec
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable


def kernel_rows(fit):
    """Return the rows of results that a fit stores, (p, N_RESULTS).

    Equal rows mean equal results, even those without an attribute.
    """
    return fit._table.kernel_rows


def fit_from_rows(rows, family, *, standardize=True, lmbda_error=None):
    """Make a fit from rows of results.

    Parameters
    ----------
    rows : (p, N_RESULTS) ndarray
        The rows of results.
    family : str or (p,) ndarray of int
        The family, or the code of the family of each column.
    standardize : bool
        Whether the fit standardizes.
    lmbda_error : (p,) ndarray, optional
        Bounds on the error of lambda.
    """
    spec = FitSpec(family=family if isinstance(family, str) else "best", standardize=standardize)
    table = ColumnTable(np.ascontiguousarray(rows), family, lmbda_error=lmbda_error)
    return pk.PowerFit(spec, ColumnLabels(), table)


def family_codes(fit):
    """Return the code of the family of each column."""
    return fit._table.family_codes


def quietly(function, *args, **options):
    """Call ``function(*args, **options)`` and ignore its warnings about data; return its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*args, **options)


def fit_quietly(X, family="box-cox", estimator="robust", **options):
    """Call `pk.fit`, with options of `pk.fit` and of the estimator, and ignore warnings about columns."""
    if isinstance(estimator, str):
        estimator = ESTIMATORS[estimator]()
    own = {field.name: options.pop(field.name) for field in fields(estimator) if field.name in options}
    return quietly(pk.fit, X, family, replace(estimator, **own), **options)
