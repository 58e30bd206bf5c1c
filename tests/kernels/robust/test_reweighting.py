"""Refits of short columns side by side: as one by one, whatever stands beside them."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern import Status
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._estimators.robust import Robust
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.results import LEFT, LMBDA0, N_EVAL, N_KEPT, N_RESULTS, OBJECTIVE, ROUTE, STATUS
from powerkern.kernels.robust import lane_batch, reweighting_lanes
from powerkern.kernels.robust import options as robust_options
from powerkern.kernels.robust.prestandardization import prepared
from powerkern.kernels.robust.qq_column import scores_of
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

CODES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}
families = pytest.mark.parametrize("family", CODES)
OPTIONS = [
    {},
    {"n_reweight": 1},
    {"n_reweight": "settled"},
    {"convention": "paper", "first_weights": "rectified"},
    {"rectify": "one"},
    {"n_reweight": 5},
    {"estimator": "rewml-nr"},
    {"prestandardize": "median", "cutoff": 0.9},
]


def rows(columns, family, estimator="rewml", alone=False, **options):
    """Results of columns, short ones side by side unless they are fitted alone."""
    criterion, asked = ESTIMATORS[estimator](**options).solver()
    entries = Robust(criterion, asked).entries
    entries = entries._replace(first=()) if alone else entries
    out, work = np.full((len(columns), N_RESULTS), np.nan), robust_options.new_robust_work(columns.shape[1])
    entries.fit(np.ascontiguousarray(columns), None, CODES[family], asked, work, out)
    return out


def columns_of(family, n, p, seed=0):
    """Skewed columns with outliers on either side, or none, in any unit."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(p, n)) + rng.choice([0.0, 6.0, -8.0, 30.0], size=(p, 1)) * (rng.random((p, n)) < 0.1)
    z = z * rng.choice([0.2, 0.7, 1.5], size=(p, 1))
    x = np.exp(z) * rng.choice([1e-8, 1.0, 1e6], size=(p, 1))
    mirrored = family == "yeo-johnson" and seed % 2
    return np.sort(z - 1.0 if mirrored else x, axis=1)


@pytest.mark.slow
@families
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("n", [5, 20, 51] if not JIT_DISABLED else [14])
def test_lanes_find_what_each_column_finds_alone(family, options, n):
    for seed in range(2):
        columns = columns_of(family, n, 60 if not JIT_DISABLED else 9, seed)
        lanes, alone = (rows(columns, family, alone=alone, **options) for alone in (False, True))
        for field in (STATUS, N_KEPT, LMBDA0, ROUTE):
            np.testing.assert_array_equal(lanes[:, field], alone[:, field])
        np.testing.assert_allclose(lanes[:, OBJECTIVE], alone[:, OBJECTIVE], rtol=1e-13, atol=2e-15)
        fields = [k for k in range(N_RESULTS) if k != N_EVAL]
        np.testing.assert_allclose(lanes[:, fields], alone[:, fields], rtol=2e-9, atol=1e-11)


@families
def test_a_result_depends_on_its_own_column_only(family):
    columns = columns_of(family, 21, 40 if not JIT_DISABLED else 12, seed=3)
    columns[::5, -3:], columns[1::7, -1] = np.nan, np.nan
    columns[4, 1:20] = columns[4, 0]  # no spread
    together = rows(columns, family)
    order = np.random.default_rng(0).permutation(len(columns))
    np.testing.assert_array_equal(rows(columns[order], family), together[order])
    for j in (0, 1, 4, 5, 9, 11):
        x = columns[j : j + 1, ~np.isnan(columns[j])]
        np.testing.assert_array_equal(rows(x, family), together[j : j + 1])


def refitted(columns, lmbda0, family=YEO_JOHNSON):
    """Whether lanes fit prestandardised columns, twice from given starts."""
    rewml = ESTIMATORS["rewml"](prestandardize="none", convention="paper", first_weights="rectified")
    options, n = rewml.solver().options, columns.shape[1]
    work = robust_options.new_robust_work(n)
    for lane, (x, start) in enumerate(zip(columns, lmbda0, strict=True)):
        column = prepared(scores_of, x, None, family, options, work)
        reweighting_lanes.copy_to_lane(column.at.column, lane, work.batch)
        work.batch.fields[[lane_batch.START, lane_batch.BOTH_SIDES], lane] = start, 0.0
    lower, upper = robust_options.change_ranks(None, n, options)
    shape, scores = reweighting_lanes.Shape(n, lower, upper, 2.0), work.scores[:n]
    reweighting_lanes.refit(work.batch, len(columns), shape, scores, options)
    return work.batch.fields[lane_batch.FITTED] > 0.0


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_columns_that_need_care_are_left():
    x = np.sort(np.random.default_rng(1).normal(size=15))
    wide, tied = x.copy(), np.where(np.arange(15) < 14, 0.0, 1.0)
    wide[-1] = 1e300
    columns = np.array([x, x + 100.0, wide, tied, 1e-4 * x])
    fitted = refitted(columns, [1.0, 1.0, 2.0, 1.0, 1.0])
    assert fitted[:5].tolist() == [True, False, False, False, False]
    assert not fitted[5:].any()
    out = rows(columns, "yeo-johnson", prestandardize="none")
    assert (out[:, STATUS] != LEFT).all()
    assert out[3, STATUS] == Status.NO_SPREAD
