"""Fits against optima computed with many digits: a small set of our own, and the large one beside the repository."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from references import ABSENT, DBL_MAX, FITTED, HARD, OWN, THEIRS, lambda_tolerance, parameters, relative_error

import powerkern as pk
from powerkern import Status


@parameters(FITTED, ABSENT)
def test_lambda_and_likelihood(case):
    fit = pk.fit(case.x, case.family, sample_weight=case.weight)
    assert fit.status[0] == Status.OK
    assert relative_error(fit.lmbda[0], case.lmbda) <= lambda_tolerance(case)
    # g is a difference of terms of order one: a rounding error for every observation
    assert relative_error(fit.nll[0], case.nll, unit=1e-3 * fit.n_obs[0]) <= 1e-11


@parameters([case for case in FITTED if case.bounded], ABSENT)
def test_bounded_lambda(case):
    for ymax, lmbda in case.bounded.items():
        fit = pk.fit(case.x, case.family, sample_weight=case.weight, ymax=ymax)
        assert fit.status[0] == Status.AT_BOUND
        assert relative_error(fit.lmbda[0], lmbda) <= 1e-12
        with np.errstate(over="raise"):
            raw = pk.fit(case.x, case.family, lmbda=fit.lmbda, standardize=False).transform(case.x)
        assert np.abs(raw).max() <= ymax
        assert np.abs(raw).max() == pytest.approx(ymax, rel=1e-9)


@parameters([case for case in FITTED if DBL_MAX / 1e4 in case.bounded], ABSENT)
def test_raw_values_are_bounded_as_scipy_bounds_them(case):
    fit = pk.fit(case.x, case.family, standardize=False)
    assert fit.status[0] == Status.AT_BOUND
    assert relative_error(fit.lmbda[0], case.bounded[DBL_MAX / 1e4]) <= 1e-12
    assert np.isfinite(fit.transform(case.x)).all()


@parameters(FITTED, ABSENT)
def test_standardised_output_is_finite_and_standard(case):
    z = pk.fit(case.x, case.family, sample_weight=case.weight).transform(case.x)
    assert np.isfinite(z).all()
    mean = np.average(z, weights=case.weight)
    assert abs(mean) <= 1e-12
    assert np.average((z - mean) ** 2, weights=case.weight) == pytest.approx(1.0, rel=1e-12)


@parameters(HARD, ABSENT)
def test_standardised_output_is_right(case):
    fit = pk.fit(case.x, case.family, sample_weight=case.weight)
    exact = oracles.standardized(case.family, fit.lmbda[0], case.x, case.weight)
    np.testing.assert_allclose(fit.transform(case.x), exact, rtol=1e-12, atol=1e-12)


@parameters([case for case in OWN + THEIRS if case.kind in ("degenerate", "unrepresentable")], ABSENT)
def test_columns_without_an_optimum(case):
    expected = Status.CONSTANT if case.kind == "degenerate" else Status.UNREPRESENTABLE
    with pytest.warns(UserWarning, match=f"column 0: {expected.sentence[:10]}") as caught:
        fit = pk.fit(case.x, case.family)
    assert len(caught) == 1
    assert fit.status[0] == expected
    np.testing.assert_array_equal(fit.transform(case.x), case.x)


def test_every_kind_of_case_is_tested(shared):
    assert {case.kind for case in THEIRS} == {"well", "ill", "flat", "degenerate", "unrepresentable"}
