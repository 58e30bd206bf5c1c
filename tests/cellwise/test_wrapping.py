"""Wrapping, and correlations of wrapped data, compared with NumPy and with Raymaekers and Rousseeuw (2021)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats

from powerkern.cellwise import wrap, wrapped_correlation, wrapped_covariance
from powerkern.cellwise.constants import wrap_constants
from powerkern.location import location_scale


def correlated_with_outlying_cells(n=120, p=6, seed=0, share=0.1):
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal(np.zeros(p), 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))), size=n)
    x[rng.random((n, p)) < share] += 12.0
    return x * 10.0 ** rng.integers(-2, 3, p) + rng.normal(size=p)


def with_holes(n=120, p=6, seed=0):
    x = correlated_with_outlying_cells(n, p, seed)
    x[np.random.default_rng(seed + 1).random(x.shape) < 0.15] = np.nan
    return x


def psi(z, b=1.5, c=4.0):
    k = wrap_constants(b, c)
    falling = k.q1 * np.tanh(k.q2 * (c - np.abs(z))) * np.sign(z)
    return np.where(np.abs(z) >= b, np.where(np.abs(z) < c, falling, 0.0), z)


# --- constants ------------------------------------------------------------------------------------------


def test_constants_agree_with_the_paper():
    found = wrap_constants()
    assert (found.b, found.c) == (1.5, 4.0)
    assert (f"{found.q1:.6f}", f"{found.q2:.7f}") == ("1.540793", "0.8622731")


@pytest.mark.parametrize("b, c", [(0.1, 0.2), (1.0, 3.5), (1.3, 4.0), (1.5, 4.0), (2.0, 5.0), (1.5, 39.0)])
def test_psi_is_continuous_and_meets_the_condition_of_optimality(b, c):
    k = wrap_constants(b, c)
    assert k.q1 * np.tanh(k.q2 * (c - b)) == pytest.approx(b, rel=1e-14)
    a = 2.0 * integrate.quad(lambda z: psi(z, b, c) ** 2 * stats.norm.pdf(z), 0.0, c, points=[b], epsabs=1e-13)[0]
    slope = 2.0 * integrate.quad(lambda z: psi(z, b, c) * z * stats.norm.pdf(z), 0.0, c, points=[b], epsabs=1e-13)[0]
    assert k.q1 * slope == pytest.approx(2.0 * k.q2 * a, rel=1e-11)


@pytest.mark.parametrize("b, c", [(0.0, 4.0), (4.0, 4.0), (5.0, 4.0), (1.5, np.inf), (np.nan, 4.0)])
def test_constants_out_of_range_are_refused(b, c):
    with pytest.raises(ValueError, match=r"^[bc] must be"):
        wrap_constants(b, c)


@pytest.mark.parametrize("c", [1e-2, 1e-5, 1e-9])
def test_small_constants_are_those_of_a_flat_density(c):
    """For small b and c, the normal density is nearly constant where psi is not zero.

    The condition of optimality is then q1 B = 2 q2 A. A and B are the integrals of psi(t)**2 and t psi(t); q1 and q2
    are the constants in psi.
    """
    b = 0.3 * c
    k = wrap_constants(b, c)
    a = b**3 / 3.0 + integrate.quad(lambda t: psi(t * c, b, c) ** 2 * c, b / c, 1.0, epsabs=0.0)[0]
    slope = b**3 / 3.0 + integrate.quad(lambda t: psi(t * c, b, c) * t * c * c, b / c, 1.0, epsabs=0.0)[0]
    assert k.q1 * slope == pytest.approx(2.0 * k.q2 * a, rel=max(1e-9, c * c))


@pytest.mark.parametrize("b", ["1.5", [1.5]])
def test_constants_that_are_not_numbers_are_refused(b):
    with pytest.raises(TypeError, match="b must be a number"):
        wrap_constants(b, 4.0)


# --- wrapped values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["wrapping", "mcd", "median-mad", "huber-proposal2"])
@pytest.mark.parametrize("b, c", [(1.5, 4.0), (1.3, 4.5)])
def test_wrapped_values_agree_with_the_definition(method, b, c):
    x = with_holes()
    found = wrap(x, b, c, method=method)
    expected = found.loc + found.scale * psi((x - found.loc) / found.scale, b, c)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    if method not in ("wrapping", "mcd"):
        np.testing.assert_array_equal(found.loc, location_scale(x, method).loc)


def test_most_values_stay_to_rounding_and_far_ones_become_the_location():
    x = correlated_with_outlying_cells(share=0.0)
    x[0] = 1e9
    found = wrap(x)
    z = np.abs(x - found.loc) / found.scale
    np.testing.assert_allclose(found.values[z < 1.5], x[z < 1.5], rtol=1e-12)
    np.testing.assert_array_equal(found.values[0], found.loc)


def test_missing_values_stay_or_become_the_center():
    x = with_holes()
    missing = np.isnan(x)
    kept, filled = wrap(x), wrap(x, missing="center")
    np.testing.assert_array_equal(np.isnan(kept.values), missing)
    np.testing.assert_array_equal(filled.values[missing], np.broadcast_to(filled.loc, x.shape)[missing])
    np.testing.assert_array_equal(filled.values[~missing], kept.values[~missing])


def test_wrapping_is_equivariant_by_column():
    x = correlated_with_outlying_cells()
    a, s = np.array([2.0, -0.5, 4.0, 8.0, -1.0, 0.25]), np.arange(6.0)
    base, moved = wrap(x), wrap(x * a + s)
    np.testing.assert_allclose(moved.loc, base.loc * a + s, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved.scale, base.scale * np.abs(a), rtol=1e-10)
    np.testing.assert_allclose(moved.values, base.values * a + s, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("method, error", [("mcd", 0.015), ("wrapping", 0.025)])
def test_scales_are_consistent_and_unbiased(method, error):
    for n in (4, 5, 7, 25, 400):
        scale = wrap(np.random.default_rng(n).normal(size=(n, 10_000)), method=method).scale
        assert scale.mean() == pytest.approx(1.0, abs=error)


@pytest.mark.parametrize("b, c", [(1.5, 4.0), (1.0, 3.0)])
def test_the_m_step_is_a_weighted_mean_and_standard_deviation(b, c):
    x = with_holes(n=2000)
    start, found = wrap(x, b, c, method="mcd"), wrap(x, b, c)
    z = (x - start.loc) / start.scale
    w = psi(z, b, c) / z
    mean = np.nansum(w * x, axis=0) / np.nansum(w, axis=0)
    deviation = np.sqrt(np.nansum(w * (x - mean) ** 2, axis=0) / np.nansum(w, axis=0))
    np.testing.assert_allclose(found.loc, mean, rtol=1e-10)

    def normal(f):
        return integrate.quad(lambda t: f(t) * stats.norm.pdf(t), 1e-300, c, points=[b], epsabs=1e-13)[0]

    consistent = np.sqrt(normal(lambda t: psi(t, b, c) / t) / normal(lambda t: psi(t, b, c) * t))
    np.testing.assert_allclose(found.scale / deviation, consistent, rtol=2e-3)  # up to the bias in 1,700 values


def test_the_m_step_makes_locations_efficient():
    """The variance of the location is less than 1.13 times the variance of the mean (asymptotically 1.06 times).

    For the MCD location, the location without this step, the factor exceeds 1.4.
    """
    x = np.random.default_rng(0).normal(size=(200, 10_000))
    variance = {method: 200.0 * wrap(x, method=method).loc.var() for method in ("mcd", "wrapping")}
    assert variance["mcd"] > 1.4
    assert variance["wrapping"] < 1.13


def test_given_locations_and_scales_are_used():
    x = correlated_with_outlying_cells()
    base = wrap(x)
    given = wrap(x, loc=base.loc, scale=base.scale)
    np.testing.assert_array_equal(given.values, base.values)
    np.testing.assert_array_equal(given.status, 0)
    np.testing.assert_allclose(wrap(x, loc=1.0, scale=2.0).values, 1.0 + 2.0 * psi((x - 1.0) / 2.0), rtol=1e-12)
    np.testing.assert_array_equal(wrap(x[:, 0], loc=1.0, scale=[2.0]).loc, [1.0])
    for options, message in (
        ({"loc": 1.0}, "pass loc and scale together"),
        ({"loc": 1.0, "scale": 0.0}, "scale must be positive"),
        (
            {"loc": [1.0, 2.0], "scale": 1.0},
            r"one for each of 6 columns, got shape \(2,\)",
        ),
        ({"loc": np.nan, "scale": 1.0}, "loc must be a finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            wrap(x, **options)
    x[7, 3] = np.inf
    with pytest.raises(ValueError, match="column 3, row 7"):
        wrap(x, loc=1.0, scale=1.0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_same_bits_for_any_threads_layout_and_order(order):
    x = with_holes(3000, 30)
    permutation = np.random.default_rng(3).permutation(30)
    base, base_correlation = wrap(x, n_threads=1), wrapped_correlation(x, n_threads=1)
    other = wrap(np.asarray(x[:, permutation], order=order), n_threads=3)
    np.testing.assert_array_equal(other.values, base.values[:, permutation])
    correlation = wrapped_correlation(np.asarray(x[:, permutation], order=order), n_threads=3)
    np.testing.assert_array_equal(correlation, base_correlation[np.ix_(permutation, permutation)])
    np.testing.assert_array_equal(base_correlation, base_correlation.T)


def test_float32_stays_and_integers_do_not():
    x = correlated_with_outlying_cells()
    assert wrap(x.astype(np.float32)).values.dtype == np.float32
    assert wrap(np.arange(30).reshape(10, 3)).values.dtype == np.float64


def test_a_vector_is_one_column():
    x = correlated_with_outlying_cells()[:, 0]
    np.testing.assert_array_equal(wrap(x).values, wrap(x[:, None]).values[:, 0])
    assert wrapped_correlation(x).tolist() == [[1.0]]


def test_columns_without_a_scale_stay_and_are_named():
    x = correlated_with_outlying_cells()
    x[:, 1], x[:, 4] = 7.0, np.nan
    x[0, 1] = 100.0
    with pytest.warns(UserWarning, match="column 1, column 4: no positive, finite scale; left as they are"):
        found = wrap(x)
    np.testing.assert_array_equal(found.values[:, [1, 4]], x[:, [1, 4]])
    with pytest.warns(UserWarning, match="their correlations are NaN"):
        correlation = wrapped_correlation(x)
    assert np.isnan(correlation[[1, 4]]).all()
    rest = [0, 2, 3, 5]
    np.testing.assert_allclose(correlation[np.ix_(rest, rest)], wrapped_correlation(x[:, rest]), rtol=1e-14)


def test_a_data_frame_gives_a_data_frame():
    x = correlated_with_outlying_cells()
    names = list("abcdef")
    frame = pd.DataFrame(x, columns=names, index=range(5, 125))
    found = wrap(frame)
    assert isinstance(found.values, pd.DataFrame)
    assert found.values.index.equals(frame.index)
    np.testing.assert_array_equal(found.values.to_numpy(), wrap(x).values)
    np.testing.assert_array_equal(found.transform(frame[names[::-1]])[names].to_numpy(), found.values.to_numpy())
    assert isinstance(wrap(pl.DataFrame(frame)).values, pl.DataFrame)


@pytest.mark.parametrize("column", [pd.Index([1.0, 2.0, 4.0, 9.0, 90.0]), pd.array([1.0, 2.0, 4.0, 9.0, 90.0])])
def test_an_index_or_an_extension_array_gives_an_array(column):
    found = wrap(column).values
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, wrap(column.to_numpy(dtype=float)).values)


def test_new_rows_are_wrapped_by_the_fitted_location():
    x, new = with_holes(), with_holes(seed=9)
    found = wrap(x)
    np.testing.assert_array_equal(found.transform(x), found.values)
    expected = found.loc + found.scale * psi((new - found.loc) / found.scale)
    np.testing.assert_allclose(found.transform(new), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="5 columns"):
        found.transform(new[:, :5])
    new[3, 2] = np.inf
    with pytest.raises(ValueError, match="column 2, row 3"):
        found.transform(new)


@pytest.mark.parametrize("method", ["wrapping", "mcd", "median-mad"])
def test_infinite_values_are_refused(method):
    x = correlated_with_outlying_cells()
    x[7, 3] = -np.inf
    with pytest.raises(ValueError, match="column 3, row 7: the value is -inf"):
        wrap(x, method=method)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="method must be one of 'wrapping', 'mcd'"):
        wrap(correlated_with_outlying_cells(), method="mdc")
    with pytest.raises(ValueError, match="missing must be one of"):
        wrap(correlated_with_outlying_cells(), missing="drop")


# --- correlations ---------------------------------------------------------------------------------------


def test_correlation_is_that_of_the_wrapped_values():
    x = with_holes()
    found = wrap(x, missing="center")
    expected = np.corrcoef(found.values, rowvar=False)
    np.testing.assert_allclose(wrapped_correlation(x), expected, rtol=1e-11, atol=1e-14)
    covariance = expected * np.outer(found.scale, found.scale)
    np.testing.assert_allclose(wrapped_covariance(x), covariance, rtol=1e-10)


def test_correlations_of_more_columns_than_rows_are_semidefinite():
    correlation = wrapped_correlation(correlated_with_outlying_cells(20, 90))
    assert np.linalg.eigvalsh(correlation).min() > -1e-12
    assert (np.diag(correlation) == 1.0).all()


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_outlying_cells_do_not_change_much(rho):
    rng = np.random.default_rng(4)
    x = rng.multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]], size=4000)
    clean = wrapped_correlation(x)[0, 1]
    x[:200, 0], x[200:400, 1] = 50.0, -50.0
    assert clean == pytest.approx(rho, abs=0.04)
    assert wrapped_correlation(x)[0, 1] == pytest.approx(rho, abs=0.1)
