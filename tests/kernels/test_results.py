"""The record of a column's fit: its fields, and the fields that all fits share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern import Status
from powerkern.kernels import results as field
from powerkern.kernels.results import FIELDS, ColumnFit, is_identity, is_rescaled, write_identity, write_range
from powerkern.kernels.status_codes import ROUTE_NONE


def test_every_field_has_its_index():
    indices = {name.lower(): value for name, value in vars(field).items() if name.isupper() and name.lower() in FIELDS}
    assert indices == {name: index for index, name in enumerate(FIELDS)}


def test_the_range_fills_the_fields_of_the_data_and_no_others():
    row = np.full(field.N_RESULTS, 7.0)
    write_range(row, 5.0, -2.0, 3.0)
    written = {"n_obs": 5.0, "x_min": -2.0, "x_max": 3.0, "n_kept": 5.0, "kept_low": -2.0, "kept_high": 3.0}
    written |= {"center": 0.0, "divisor": 1.0}
    assert ColumnFit(*row.tolist())._asdict() == dict.fromkeys(FIELDS, 7.0) | written


ZEROS = "loc", "log_factor", "ref", "intercept", "n_eval"
IDENTITY = dict.fromkeys(("lmbda", "lmbda0", "scale", "slope"), 1.0) | dict.fromkeys(ZEROS, 0.0)


@pytest.mark.parametrize("status", [Status.CONSTANT, Status.EMPTY])
def test_an_unfitted_column_is_not_transformed(status):
    row = np.full(field.N_RESULTS, 7.0)
    write_identity(row, int(status))
    result = ColumnFit(*row.tolist())
    missing = {"nll", "curvature", "objective"}
    if status == Status.EMPTY:
        missing |= {"x_min", "x_max", "kept_low", "kept_high"}
    assert {name for name, value in result._asdict().items() if math.isnan(value)} == missing
    expected = dict.fromkeys(FIELDS, 7.0) | IDENTITY | {"status": float(status), "route": float(ROUTE_NONE)}
    assert {k: v for k, v in result._asdict().items() if k not in missing} == {
        k: v for k, v in expected.items() if k not in missing
    }
    assert is_identity(row) is True


FITTED = {Status.OK, Status.NOT_CERTIFIED, Status.FIXED, Status.AT_BOUND}


@pytest.mark.parametrize("status", [*FITTED, *(Status(int(code)) for code in field.UNFITTED)])
def test_columns_that_could_not_be_fitted_are_the_identity(status):
    row = np.zeros(field.N_RESULTS)
    row[field.STATUS] = status
    assert is_identity(row) is (status not in FITTED)


@pytest.mark.parametrize(("center", "divisor", "expected"), [(0.0, 1.0, False), (0.5, 1.0, True), (0.0, 2.0, True)])
def test_a_fit_is_rescaled_if_it_has_a_center_or_a_divisor(center, divisor, expected):
    row = np.zeros(field.N_RESULTS)
    row[field.CENTER], row[field.DIVISOR] = center, divisor
    assert is_rescaled(row) is expected
