"""Fits compared with optima computed in multiprecision arithmetic."""

from __future__ import annotations

import make_reference
import numpy as np
import oracles
import pytest
from reference_files import make_again, read_reference
from references import (
    CASES,
    DBL_MAX,
    FITTED,
    SHORT,
    WITHOUT_OPTIMUM,
    each_case,
    lambda_tolerance,
    relative_error,
)

import powerkern as pk
from powerkern import Status


@each_case(FITTED)
def test_lambda_and_likelihood_agree_with_multiprecision(case):
    fit = pk.fit(case.x, case.family, sample_weight=case.weight)
    assert fit.status[0] == Status.OK
    assert relative_error(fit.lmbda[0], case.lmbda) <= lambda_tolerance(case)
    # g is a difference of terms of order one, so each observation contributes a rounding error
    assert relative_error(fit.nll[0], case.nll, unit=1e-3 * fit.n_obs[0]) <= 1e-11


@each_case([case for case in FITTED if case.bounded])
def test_bounded_lambdas_agree_with_multiprecision(case):
    for ymax, lmbda in case.bounded.items():
        fit = pk.fit(case.x, case.family, sample_weight=case.weight, ymax=ymax)
        assert fit.status[0] == Status.AT_BOUND
        assert relative_error(fit.lmbda[0], lmbda) <= 1e-12
        with np.errstate(over="raise"):
            raw = pk.fit(case.x, case.family, lmbda=fit.lmbda, standardize=False).transform(case.x)
        assert np.abs(raw).max() <= ymax
        assert np.abs(raw).max() == pytest.approx(ymax, rel=1e-9)


@each_case([case for case in FITTED if DBL_MAX / 1e4 in case.bounded])
def test_raw_values_are_bounded_as_scipy_bounds_them(case):
    fit = pk.fit(case.x, case.family, standardize=False)
    assert fit.status[0] == Status.AT_BOUND
    assert relative_error(fit.lmbda[0], case.bounded[DBL_MAX / 1e4]) <= 1e-12
    assert np.isfinite(fit.transform(case.x)).all()


@each_case(FITTED)
def test_standardised_output_is_finite_and_standard(case):
    z = pk.fit(case.x, case.family, sample_weight=case.weight).transform(case.x)
    assert np.isfinite(z).all()
    mean = np.average(z, weights=case.weight)
    assert abs(mean) <= 1e-12
    assert np.average((z - mean) ** 2, weights=case.weight) == pytest.approx(1.0, rel=1e-12)


@each_case(SHORT)
def test_standardised_output_is_right(case):
    fit = pk.fit(case.x, case.family, sample_weight=case.weight)
    exact = oracles.standardized(case.family, fit.lmbda[0], case.x, case.weight)
    np.testing.assert_allclose(fit.transform(case.x), exact, rtol=1e-12, atol=1e-12)


@each_case(WITHOUT_OPTIMUM)
def test_columns_without_an_optimum_are_unchanged_with_a_warning(case):
    expected = Status.CONSTANT if case.kind == "degenerate" else Status.UNREPRESENTABLE
    with pytest.warns(UserWarning, match=f"column 0: {expected.sentence[:10]}") as caught:
        fit = pk.fit(case.x, case.family)
    assert len(caught) == 1
    assert fit.status[0] == expected
    np.testing.assert_array_equal(fit.transform(case.x), case.x)


def test_every_kind_of_case_is_tested():
    assert {case.kind for case in CASES} == {"well", "ill", "flat", "degenerate", "unrepresentable"}


@pytest.mark.parametrize(
    "file, columns, make_record, name",
    [
        ("mle.json", make_reference.columns, make_reference.record, "one larger, box-cox"),
        ("mle_hard.json", make_reference.hard_columns, make_reference.hard_record, "few 2 among 1, yeo-johnson"),
    ],
)
def test_the_script_still_writes_its_file(file, columns, make_record, name):
    drawn = {column[0]: column for column in columns()}
    records = {record["name"]: record for record in read_reference(file)["cases"]}
    assert list(drawn) == list(records)
    for column, record in zip(drawn.values(), records.values(), strict=True):
        np.testing.assert_allclose(column[2], record["x"], rtol=1e-15 if column[0] == name else 1e-9)
    assert make_again(make_record(*drawn[name])) == records[name]
