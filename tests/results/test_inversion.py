"""Helpers for results: minima and positions of true cells in any memory layout, ranges of psi, and random draws."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import mpmath
import numpy as np
import pandas as pd
import pytest
from fits import fit_from_rows, kernel_rows
from scipy import special

import powerkern as pk
from powerkern._estimators.shift import convert_to_data_units
from powerkern._results.back_transform import _integration_range, _PsiBranch, ends_of_range
from powerkern._results.censored_cells import conditional_draws, conditional_means, fractions_below
from powerkern._results.column_warnings import find_far_from_zero
from powerkern._results.inversion import Inversion, _ranges, _true_positions
from powerkern._results.lost_digits import round_trip_errors
from powerkern._results.robust_intervals import _draw
from powerkern._results.summary import sampled_fraction


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("n, p", [(1, 1), (339, 3), (340, 3), (341, 3), (600, 3), (5, 600), (1025, 1), (9, 300)])
def test_ranges_are_numpys_and_ignore_missing_values(n: int, p: int, order: str) -> None:
    rng = np.random.default_rng(n + p)
    x = rng.normal(size=(n, p))
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, p // 2] = np.nan
    images = np.repeat(x, 2, axis=0)[::2] if order == "strided" else np.asarray(x, order=order)
    low, high = _ranges(images)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a value
        np.testing.assert_array_equal(low, np.nanmin(x, axis=0))
        np.testing.assert_array_equal(high, np.nanmax(x, axis=0))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n, p", [(7, 3), (3, 7), (1, 5), (5, 1)])
def test_positions_of_a_mask_are_numpys(n: int, p: int, order: str) -> None:
    mask = np.asarray(np.random.default_rng(n).random((n, p)) < 0.4, order=order)
    found = sorted(zip(*(part.tolist() for part in _true_positions(mask)), strict=True))
    assert found == sorted(zip(*(part.tolist() for part in np.nonzero(mask)), strict=True))


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
def test_the_range_of_a_transform_ends_where_the_formula_says(family: str, sign: float) -> None:
    """The ends of the range of psi are -1/lambda and, under Yeo-Johnson, 1/(2 - lambda), for columns of any sign."""
    if family == "box-cox" and sign < 1.0:
        return
    lambdas = np.array([-1.5, -0.25, 0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    x = np.random.default_rng(0).lognormal(sigma=0.3, size=40)
    x = x * sign if sign else x - 1.1
    fit = pk.fit(np.repeat(x[:, np.newaxis], lambdas.size, axis=1), family, lmbda=lambdas)
    low, high = ends_of_range(fit._table)
    raw = fit._with_spec(standardize=False)
    at = np.quantile(x, [0.25, 0.75])
    z, y = (each.transform(np.repeat(at[:, np.newaxis], lambdas.size, axis=1)) for each in (fit, raw))
    scale = (y[1] - y[0]) / (z[1] - z[0])
    loc = y[0] - scale * z[0]
    for j, lmbda in enumerate(lambdas):
        top = -1.0 / lmbda if lmbda < 0.0 else np.inf
        if family == "box-cox":
            bottom = -1.0 / lmbda if lmbda > 0.0 else -np.inf
        else:
            bottom = 1.0 / (2.0 - lmbda) if lmbda > 2.0 else -np.inf
        np.testing.assert_allclose([low[j], high[j]], (np.array([bottom, top]) - loc[j]) / scale[j], rtol=1e-9)


def test_draws_are_quantiles_of_the_truncated_normal_distribution() -> None:
    low = np.array([-1.0, 0.5, -np.inf, 1.0, -3.0, -9.0, 8.0, 0.2])
    high = np.array([0.5, 2.0, -0.5, np.inf, -1.0, -8.0, 9.0, 0.2])
    u = np.random.default_rng(7).random(low.size)
    found = conditional_draws(low, high, np.random.default_rng(7))
    upper = low + high > 0.0  # drawn from the mirrored interval, whose probabilities have digits
    first, last = np.where(upper, -high, low), np.where(upper, -low, high)
    drawn = special.ndtri((1.0 - u) * special.ndtr(first) + u * special.ndtr(last))
    np.testing.assert_allclose(found, np.where(upper, -drawn, drawn), rtol=1e-9)
    assert found[-1] == 0.2
    assert ((low <= found) & (found <= high)).all()
    nan = np.array([np.nan, 0.0])
    assert np.isnan(conditional_draws(nan, np.array([1.0, np.nan]), np.random.default_rng(0))).all()


def test_conditional_means_are_ratios_of_densities_and_probabilities() -> None:
    low = np.array([-1.0, 0.5, -np.inf, 1.0, -3.0, -9.0, 1.5])
    high = np.array([0.5, 2.0, -0.5, np.inf, -1.0, -8.0, 1.5])
    found = conditional_means(low, high)
    with mpmath.workdps(40):
        expected = [
            float((mpmath.npdf(a) - mpmath.npdf(b)) / (mpmath.ncdf(b) - mpmath.ncdf(a)))
            for a, b in zip(low[:-1].tolist(), high[:-1].tolist(), strict=True)
        ]
    np.testing.assert_allclose(found[:-1], expected, rtol=1e-12)
    assert found[-1] == 1.5


def test_no_value_of_a_box_cox_column_lies_below_the_end_of_its_domain() -> None:
    X = np.column_stack([np.random.default_rng(0).lognormal(size=30) - 0.5, np.full(30, 2.0)])
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(X, "box-cox", shift=0.5)
    for limit, expected in ((-0.5, 0.0), (-0.6, 0.0), (np.median(X[:, 0]), None)):
        found = fractions_below(fit._table, np.array([limit, 1.0]), 1)
        assert np.isnan(found[1])
        if expected is None:
            z = fit.transform(np.array([[limit, 2.0]]))[0, 0]
            assert found[0] == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2.0)), rel=1e-12)
        else:
            assert found[0] == expected


def test_a_column_without_values_has_no_draws() -> None:
    uniform, out = np.full((2, 3), 0.5), np.full((2, 3), -1.0)
    assert math.isnan(_draw(np.full(4, np.nan), None, uniform, out))
    assert (out == -1.0).all()


def test_the_fraction_of_sampled_rows_is_by_column_and_weight() -> None:
    values = np.array([[1.0, np.nan, np.nan], [2.0, 3.0, np.nan], [4.0, 5.0, np.nan]])
    n_obs = np.array([12.0, 8.0, 0.0])
    np.testing.assert_array_equal(sampled_fraction(n_obs, values, None), [0.25, 0.25, 0.0])
    weight = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sampled_fraction(n_obs, values, weight), [0.5, 0.625, 0.0])


def test_parts_of_a_table_are_copies() -> None:
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(20, 3)))
    part = fit._table.take(np.array([2, 0]))
    np.testing.assert_array_equal(part.kernel_rows, kernel_rows(fit)[[2, 0]])
    assert not np.shares_memory(part.kernel_rows, kernel_rows(fit))
    assert not part.kernel_rows.T.flags.writeable or not part.lmbda.flags.writeable


def test_a_value_without_inverse_is_named_by_its_column_in_the_data() -> None:
    X = np.random.default_rng(0).lognormal(size=(20, 2))
    frame = pd.DataFrame([[0.0, 0.0], [0.0, 1e9]], columns=["a", "b"])
    for fitted in (X, pd.DataFrame(X, columns=["a", "b"])):
        fit = pk.fit(fitted, "box-cox", lmbda=-1.0)
        with pytest.raises(ValueError, match=r"column 1 \('b'\), row 1: the value is 1000000000.0, beyond the range"):
            fit.inverse_transform(frame, out_of_range="raise")


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("standardize", [True, False])
def test_errors_of_round_trips_do_not_depend_on_the_unit(family: str, standardize: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(30, 4)) - 0.7 * (family == "yeo-johnson")
    fit = pk.fit(x, family, lmbda=[-2.0, 0.0, 0.5, 3.0])
    unit = np.array([8.0, 0.25, 2.0**40, 1.0])
    rows = kernel_rows(fit).copy()
    convert_to_data_units(rows, np.zeros(4), unit)
    scaled = fit_from_rows(rows, family)
    far = np.quantile(x, [0.0, 0.3, 1.0], axis=0) * np.array([[1.0], [1.0], [1e4]])
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        expected = round_trip_errors(fit._table, far, standardize, dtype)
        found = round_trip_errors(scaled._table, far * unit, standardize, dtype)
        if standardize:
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert (found > 0.0).all()


@pytest.mark.parametrize("exponent", [0.5, 2.0, 1e-3])
@pytest.mark.parametrize("end", [-1e9, -30.0, -1.0, 0.0, 1.0, 30.0, 1e9])
def test_the_product_of_value_and_density_is_largest_at_the_peak(exponent: float, end: float) -> None:
    """The peak of (t - end)**(1/m) exp(-t**2/2) solves 1/(m (t - end)) = t, where m is the exponent of the branch."""
    one = np.ones(1)
    branch = _PsiBranch(exponent * one, end * one, 0.0 * one, 0.0 * one, 0.0 * one, one)
    found = _integration_range(branch, np.zeros((1, 1)), np.ones((1, 1)), np.full(1, np.nan))
    with mpmath.workdps(60):
        k, e = 1 / mpmath.mpf(exponent), mpmath.mpf(end)
        peak = (e + mpmath.sqrt(e * e + 4 * k)) / 2
        assert float(found.peak[0, 0]) == pytest.approx(float(peak), rel=1e-12)
    assert found.limit[0, 0] == np.inf
    assert not found.diverges.any()
    assert not found.singular.any()


@pytest.mark.parametrize("beyond", [-1.0, 0.5, 2.0])
def test_means_near_the_end_of_the_range_and_beyond_it_are_integrals(beyond: float) -> None:
    """E[x | z in range] for lambda = -2, where x is infinite at the end of the range, equals the integral by mpmath."""
    x = np.random.default_rng(0).lognormal(sigma=0.3, size=40)
    fit = pk.fit(x, "box-cox", lmbda=-2.0)
    loc, scale = float(fit.loc[0]), float(fit.scale[0])
    end = (0.5 - loc) / scale
    found = fit.inverse_mean(np.array([end + beyond]), np.array([1.0]))[0]
    with mpmath.workdps(30):
        z = mpmath.mpf(end) + beyond

        def density(t: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-((end - t - z) ** 2) / 2)  # t is the distance from the end

        pieces = [0, 0.25, 1, 4, 12]
        mass = mpmath.quad(density, pieces)
        total = mpmath.quad(lambda t: (2 * scale * t) ** -0.5 * density(t), pieces)
    assert found == pytest.approx(float(total / mass), rel=1e-9)


def test_columns_far_from_zero_are_measured_in_their_own_units() -> None:
    """A column far from 0 in the data is not far from the pole of psi if the fit subtracts a center."""
    one = np.ones(3)
    table = SimpleNamespace(
        lmbda=30.0 * one,
        center=np.array([1000.0, 0.0, 1000.0]),
        divisor=np.array([1.0, 1.0, 0.5]),
        mirrored=np.array([True, True, True]),
        x_min=np.array([1000.0, 1000.0, 1010.0]),
        x_max=np.array([1010.0, 1010.0, 1011.0]),
        status=np.zeros(3),
    )
    assert find_far_from_zero(table).tolist() == [1, 2]  # type: ignore[arg-type]


def test_safe_bounds_extend_beyond_both_ends_of_the_data() -> None:
    """Values a few ranges outside the data keep their digits if lambda is moderate."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    fit = pk.fit(X, lmbda=[1.0, 0.5])
    low, high = Inversion(fit._table, True, "nan", np.dtype(np.float64))._find_safe_bounds()
    z = fit.transform(X)
    reach = np.ptp(z, axis=0)
    assert (low < z.min(axis=0) - reach).all()
    assert (high > z.max(axis=0) + reach).all()
