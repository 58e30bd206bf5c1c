"""The optimum of one column, and its conversion to the results of a fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from powerkern import Status
from powerkern.kernels import results as field
from powerkern.kernels.likelihood.optimum import LogUnits, Optimum, exponent_of, optimum_in, write_fit
from powerkern.kernels.status_codes import ROUTE_NONE, ROUTE_ONE_PASS

X = np.random.default_rng(3).lognormal(size=9)


def branch(m, a):
    """Return (e^(m a) - 1)/m."""
    return np.expm1(m * a) / m if m else a


def written(best, sign, given=math.nan):
    row = np.full(field.N_RESULTS, 7.0)
    with np.errstate(all="ignore"):
        write_fit(row, best, sign, ROUTE_ONE_PASS, given)
    return field.ColumnFit(*row.tolist())


@pytest.mark.parametrize(
    ("lmbda", "sign", "m"), [(0.3, 1.0, 0.3), (0.3, 0.0, 0.3), (0.3, -1.0, 1.7), (3.0, -1.0, -1.0)]
)
def test_exponents_of_negative_values_are_mirrored(lmbda, sign, m):
    assert exponent_of(lmbda, sign) == pytest.approx(m)
    assert exponent_of(exponent_of(lmbda, sign), sign) == pytest.approx(lmbda)


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("m", [-1.5, 0.0, 0.4])
def test_moments_in_the_unit_of_the_logs_are_converted_to_those_of_the_column(offset, m):
    unit, ref = 4.0, X[2]
    d = np.log((offset + X) / (offset + ref)) / unit
    y = branch(m * unit, d)
    units = LogUnits(unit, ref, math.log(offset + ref))
    best = optimum_in(units, m, y.mean(), y.var(), 0.7, d.mean(), 5, int(Status.FIXED))
    psi = branch(m, np.log(offset + X))
    nll = 0.5 * math.log(psi.var()) - (m - 1.0) * np.log(offset + X).mean()
    centered = branch(m, unit * d)
    expected = (m, centered.mean(), centered.std(), 0.0, ref, math.log(offset + ref), nll, 0.7 * 16.0, 5, Status.FIXED)
    np.testing.assert_allclose(best, expected, rtol=1e-13)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("scale", "m"), [(1.0, -0.7), (1.0, 0.0), (1.0, 1.3), (1e10, -0.7), (1e10, 1.3)])
def test_the_fit_of_values_of_one_sign_standardises_them(sign, scale, m):
    x = sign * scale * X
    ref = scale * X[4]
    d = np.log((1.0 + scale * X) / (1.0 + ref))
    y = branch(m, d)
    best = Optimum(m, y.mean(), y.std(), 0.0, ref, math.log1p(ref), 1.5, 2.5, 4, int(Status.OK))
    row = written(best, sign)
    lmbda = m if sign > 0.0 else 2.0 - m
    psi = stats.yeojohnson(x, lmbda)
    assert row.lmbda == row.lmbda0 == lmbda
    assert (row.nll, row.objective, row.curvature, row.n_eval) == (1.5, 1.5, 2.5, 4.0)
    assert (row.status, row.route, row.ref, row.log_factor) == (Status.OK, ROUTE_ONE_PASS, sign * ref, 0.0)
    np.testing.assert_allclose([row.loc, row.scale], [psi.mean(), psi.std()], rtol=1e-9)
    z = row.slope * sign * branch(m, d) + row.intercept
    np.testing.assert_allclose(z, sign * (y - y.mean()) / y.std(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("log_factor", [3.0, 600.0, 601.0, 800.0])
def test_large_factors_of_mean_and_scale_are_stored_as_logarithms(log_factor):
    """`write_fit` includes factors up to e^600 in loc and scale and, for columns of both signs, in 1/slope.

    It stores the logarithm of a larger factor in `log_factor`, and leaves the factor out of these three numbers.
    """
    is_large = log_factor > 600.0
    both = written(Optimum(0.5, 2.0, 4.0, log_factor, 0.0, 0.0, 1.0, 1.0, 3, int(Status.OK)), 0.0)
    factor = 1.0 if is_large else math.exp(log_factor)
    assert (both.log_factor, both.lmbda, both.ref) == (log_factor if is_large else 0.0, 0.5, 0.0)
    np.testing.assert_allclose(
        [both.loc, both.scale, both.slope], [2.0 * factor, 4.0 * factor, 0.25 / factor], rtol=1e-13
    )
    assert both.intercept == -0.5
    one = written(Optimum(2.0, 0.5, 4.0, 0.0, 9.0, log_factor / 2.0, 1.0, 1.0, 3, int(Status.OK)), 1.0)
    assert one.log_factor == (log_factor if is_large else 0.0)
    # psi(ref) = (e^t - 1)/m, of which the factor e^t is divided out
    at_ref = (1.0 - math.exp(-log_factor)) / 2.0 if is_large else math.expm1(log_factor) / 2.0
    np.testing.assert_allclose([one.loc, one.scale], [at_ref + 0.5 * factor, 4.0 * factor], rtol=1e-13)
    assert (one.slope, one.intercept, one.ref) == (0.25, -0.125, 9.0)


def test_a_lambda_that_was_requested_is_recorded_without_rounding():
    best = Optimum(1.7, 0.0, 1.0, 0.0, 1.0, 0.7, 1.0, 1.0, 1, int(Status.FIXED))
    row = written(best, -1.0, given=0.1)
    assert row.lmbda == row.lmbda0 == 0.1
    assert written(best, -1.0).lmbda == 2.0 - 1.7


@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize(
    ("m", "mean", "sd"), [(math.inf, 0.0, 1.0), (1.0, 0.0, 0.0), (1.0, 1e300, 1e-300), (math.nan, 0.0, 1.0)]
)
def test_a_fit_that_is_out_of_range_is_the_identity(sign, m, mean, sd):
    row = written(Optimum(m, np.float64(mean), np.float64(sd), 0.0, 1.0, 0.0, 1.0, 1.0, 1, int(Status.OK)), sign)
    assert (row.status, row.route) == (Status.UNREPRESENTABLE, ROUTE_NONE)
    assert (row.lmbda, row.slope, row.intercept, row.loc, row.scale) == (1.0, 1.0, 0.0, 0.0, 1.0)
