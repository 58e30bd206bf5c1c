"""The wrapping function and the univariate MCD, compared with mpmath and with all halves of a sample."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from powerkern.kernels.multivariate import wrapping

Q1, Q2 = 1.5407929040915893, 0.8622730874290818
CONSTANTS = np.array([1.5, 4.0, Q1, Q2])


def wrapped(x, loc=0.0, scale=1.0, center=0.0, unit=1.0):
    rows = np.array([x], dtype=float)
    each = [np.array([v]) for v in (loc, scale, center, unit)]
    wrapping.wrap_columns(rows, *each, CONSTANTS)
    return rows[0]


def exact(z):
    with mp.workdps(40):
        size = abs(mp.mpf(z))
        if size < 1.5:
            return float(z)
        if size >= 4:
            return 0.0
        return float(mp.sign(z) * mp.mpf(Q1) * mp.tanh(mp.mpf(Q2) * (4 - size)))


def test_psi_is_that_of_many_digits():
    z = np.concatenate([np.linspace(-5.0, 5.0, 201), [1.5, np.nextafter(1.5, 0.0), 4.0, np.nextafter(4.0, 0.0)]])
    np.testing.assert_allclose(wrapped(z), [exact(v) for v in z], rtol=4e-16, atol=0.0)


def test_psi_is_odd_keeps_nan_and_takes_infinities():
    z = np.array([0.0, 0.3, 1.5, 2.0, 3.9999, 4.0, 17.0, 1e308, math.inf])
    np.testing.assert_array_equal(wrapped(-z), -wrapped(z))
    assert wrapped(z)[-4:].tolist() == [0.0] * 4
    assert np.isnan(wrapped([math.nan])[0])


def test_columns_are_wrapped_about_their_centers():
    x = np.array([-3.0, 7.0, 10.0, 18.0, 1e6])
    expected = [5.0 + 3.0 * exact((v - 8.0) / 4.0) for v in x]
    np.testing.assert_allclose(wrapped(x, 8.0, 4.0, 5.0, 3.0), expected, rtol=1e-15)


def mcd(x, raw=1.0, final=1.0):
    column = np.sort(np.array([x], dtype=float), axis=1)
    n = column.shape[1]
    out = np.empty((1, 4))
    factors = np.vstack([np.full(n + 1, raw), np.full(n + 1, final)])
    wrapping.mcd_columns(column, factors, np.empty((2, n)), out)
    return out[0]


def brute_mcd(x, raw, final):
    y = np.sort(np.asarray(x, dtype=float))
    y = y[~np.isnan(y)]
    n = y.size
    h = n // 2 + 1
    halves = [y[i : i + h] for i in range(n - h + 1)]
    best = min(halves, key=np.var)
    near = y[np.abs(y - best.mean()) <= wrapping.KEPT * raw * best.std()]
    return near.mean(), final * near.std()


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 20, 21, 60])
@pytest.mark.parametrize("seed", range(4))
def test_mcd_agrees_with_all_halves(n, seed):
    rng = np.random.default_rng([n, seed])
    x = rng.standard_t(2, size=n) * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 100.0])
    x[: n // 4] += 1e9 * rng.choice([-1.0, 1.0])
    found = mcd(x, 1.7, 1.1)
    np.testing.assert_allclose(found[:2], brute_mcd(x, 1.7, 1.1), rtol=1e-9, atol=1e-12)
    assert found[3] == 0.0


def test_mcd_leaves_out_missing_values():
    x = np.random.default_rng(0).normal(size=30)
    np.testing.assert_array_equal(mcd(np.append(x, [np.nan] * 7), 1.7), mcd(x, 1.7))


def test_outliers_cost_the_mcd_no_digits():
    x = np.random.default_rng(1).normal(size=101)
    clean = mcd(np.append(x, [40.0] * 40 + [-40.0] * 40), 1.7)
    far = mcd(np.append(x, [1e200] * 40 + [-1e200] * 40), 1.7)
    np.testing.assert_array_equal(far, clean)


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_mcd_of_any_magnitude(unit):
    x = np.random.default_rng(2).normal(size=41)
    np.testing.assert_array_equal(mcd(x * unit, 1.7)[:2], mcd(x, 1.7)[:2] * unit)


@pytest.mark.parametrize(
    "x, loc, scale, status",
    [
        ([], np.nan, np.nan, 3),
        ([np.nan, np.nan], np.nan, np.nan, 3),
        ([4.0], 4.0, 0.0, 1),
        ([1.0, 1.0, 1.0, 5.0], 1.0, 0.0, 1),
        ([1.0, 1.0, 9.0, 1.0, np.nan], 1.0, 0.0, 1),
        ([1.0, 2.0, np.inf], np.nan, np.nan, -1),
    ],
)
def test_mcd_of_degenerate_columns_has_a_status(x, loc, scale, status):
    np.testing.assert_array_equal(mcd(x), [loc, scale, 0.0, status])


def test_the_m_step_agrees_with_mpmath():
    y = np.sort(np.r_[np.random.default_rng(0).normal(size=30), 2.0, 3.9, 4.1, 1e300])
    columns, out = (
        np.array([np.r_[y, np.nan], np.r_[y, np.nan]]),
        np.array([[0.1, 0.9, 0.0, 0.0], [0.1, 0.0, 0.0, 1.0]]),
    )
    factors = np.full(y.size + 2, 1.25)
    wrapping.step_columns(columns, CONSTANTS, factors, out)
    with mp.workdps(40):
        z = [(mp.mpf(v) - mp.mpf(0.1)) / mp.mpf(0.9) for v in y]
        w = [mp.mpf(1) if abs(t) < 1.5 else mp.mpf(Q1) * mp.tanh(mp.mpf(Q2) * max(4 - abs(t), 0)) / abs(t) for t in z]
        mean = mp.fsum(a * t for a, t in zip(w, z, strict=True)) / mp.fsum(w)
        variance = mp.fsum(a * (t - mean) ** 2 for a, t in zip(w, z, strict=True)) / mp.fsum(w)
        expected = [float(mp.mpf(0.1) + mp.mpf(0.9) * mean), float(mp.mpf(1.25) * mp.mpf(0.9) * mp.sqrt(variance))]
    assert out[0, :2] == pytest.approx(expected, rel=1e-14)
    assert out[1].tolist() == [0.1, 0.0, 0.0, 1.0]  # without a scale, nothing changes
