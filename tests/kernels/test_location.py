"""Order statistics and M-estimators of a sorted column, against many-digit reference values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from powerkern._jit import COLUMN, REAL, ROWS, entry
from powerkern.kernels import location as loc

NO_WEIGHTS = np.empty(0)


@entry((COLUMN, COLUMN, ROWS, REAL))
def huber(y, w, table, k):
    return loc.huber(y, w, table, k)


@entry((COLUMN, COLUMN, ROWS, REAL, REAL))
def huber_one_step(y, w, table, k, beta):
    return loc.huber_one_step(y, w, table, k, beta)


def table_of(y):
    return np.empty((6, loc.table_width(y.size)))


def test_one_step_is_that_of_cellwise(shared):
    for record in json.loads((shared / "refs/cellwise/units.json").read_text())["huber"]:
        y = np.sort(record["x"])
        result = huber_one_step(y, NO_WEIGHTS, table_of(y), 1.5, loc.CELLWISE_BETA)
        assert result.loc == pytest.approx(record["huber_loc"], rel=1e-13)
        assert result.scale == pytest.approx(record["huber_scale"], rel=1e-13)


def test_constant_columns_have_no_scale():
    y = np.full(6, 3.0)
    assert huber(y, NO_WEIGHTS, table_of(y), 1.5)[:2] == (3.0, 0.0)
    assert huber_one_step(y, NO_WEIGHTS, table_of(y), 1.5, loc.beta_of(1.5)) == (3.0, 0.0, 0, loc.ZERO_SCALE)
