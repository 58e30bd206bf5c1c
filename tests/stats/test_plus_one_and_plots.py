"""boxcox1p, inv_boxcox1p and the normality plots, compared with SciPy and mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
from scipy import optimize

from powerkern import stats as ours

VALUES = np.array(
    [-1.5, -1.0, -1 + 1e-12, -0.75, -0.3, -1e-5, -1e-20, -5e-324, 0.0, 1e-300, 1e-9, 0.4, 2.0, 1e8, np.nan]
)
LAMBDAS = np.array([-30.0, -1.0, -1e-9, -5e-324, 0.0, 1e-300, 0.5, 1.0, 2.0, 7.3])


#: Lambdas for which SciPy neither overflows nor underflows.
MODERATE = np.array([-3.0, -1.0, -1e-9, 0.0, 0.5, 1.0, 2.0, 7.3])


def test_boxcox1p_is_scipys():
    x, lmbda = np.meshgrid(VALUES, MODERATE)
    expected = scipy.special.boxcox1p(x, lmbda)
    np.testing.assert_allclose(ours.boxcox1p(x, lmbda), expected, rtol=2e-14)
    for each in MODERATE:
        np.testing.assert_allclose(ours.boxcox1p(VALUES, each), scipy.special.boxcox1p(VALUES, each), rtol=2e-14)


def test_boxcox1p_agrees_with_mpmath_to_all_digits():
    with mpmath.workdps(60):
        for x in VALUES[2:-1]:
            for lmbda in LAMBDAS:
                a = mpmath.log1p(mpmath.mpf(float(x)))
                exact = mpmath.expm1(lmbda * a) / mpmath.mpf(float(lmbda)) if lmbda else a
                y = ours.boxcox1p(x, lmbda)
                growth = max(1.0, abs(lmbda * float(a)))  # factor by which the relative error of x grows
                if abs(exact) > np.finfo(np.float64).max:
                    assert y == np.copysign(np.inf, float(mpmath.sign(exact)))
                else:
                    assert abs(y - exact) <= 8 * growth * 2.0**-53 * abs(exact) + 5e-324


def test_inv_boxcox1p_is_scipys():
    y = np.array([-1e300, -5.0, -1.0, -0.4, -1e-9, -1e-320, 0.0, 1e-300, 0.3, 2.0, 50.0, np.nan])
    y, lmbda = np.meshgrid(y, MODERATE)
    with np.errstate(all="ignore"):
        expected = scipy.special.inv_boxcox1p(y, lmbda)
    inside = ~(np.isnan(expected) & ~np.isnan(y))
    result = ours.inv_boxcox1p(y, lmbda)
    np.testing.assert_allclose(result[inside], expected[inside], rtol=2e-14)
    assert np.isnan(result[~inside]).all()


def test_inv_boxcox1p_of_a_tiny_lambda_is_that_of_0():
    """For a tiny lambda the inverse is expm1(y); SciPy returns y because lmbda * y underflows."""
    y = np.array([-5.0, -0.4, 0.3, 2.0])
    np.testing.assert_allclose(ours.inv_boxcox1p(y, 5e-324), np.expm1(y), rtol=1e-14)


def test_the_inverse_out_and_broadcasting_work():
    x = np.array([-0.9, -0.2, 0.0, 0.3, 5.0])
    np.testing.assert_allclose(ours.inv_boxcox1p(ours.boxcox1p(x, 0.7), 0.7), x, rtol=1e-14)
    out = np.empty(5)
    assert ours.boxcox1p(x, 0.7, out=out) is out
    assert ours.boxcox1p(np.float32(0.5), np.float32(2.0)).dtype == np.float32
    assert ours.boxcox1p(0.5, 2.0) == 0.625
    assert ours.boxcox1p(x, np.array([[1.0], [2.0]])).shape == (2, 5)
    with pytest.raises(TypeError, match="cannot transform data of type complex128"):
        ours.boxcox1p(x + 1j, 1.0)


# --- normality plots ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boxcox_normplot", "yeojohnson_normplot"])
def test_normality_plots_are_scipys(name):
    x = np.random.default_rng(0).gamma(2.0, size=60) - (0.5 if name.startswith("yeo") else 0.0)
    lmbdas, ppcc = getattr(ours, name)(x, -4, 4, N=17)
    theirs, expected = getattr(scipy.stats, name)(x, -4, 4, N=17)
    np.testing.assert_array_equal(lmbdas, theirs)
    np.testing.assert_allclose(ppcc, expected, rtol=1e-10)
    assert getattr(ours, name)([], 0, 1).size == 0
    assert len(getattr(ours, name)(x, 0, 1)[1]) == 80
    with pytest.raises(ValueError, match="`lb` has to be larger than `la`"):
        getattr(ours, name)(x, 1, 1)
    assert np.isnan(getattr(ours, name)([2.0, 2.0, 2.0], 0, 1, N=3)[1]).all()
    assert np.isnan(getattr(ours, name)([1.0, np.nan, 2.0], 0, 1, N=3)[1]).all()
    assert np.isnan(getattr(ours, name)([1.0, np.inf, 2.0], 0, 1, N=3)[1]).all()


def test_a_plot_of_negative_infinity_has_no_correlation() -> None:
    assert np.isnan(ours.yeojohnson_normplot([-np.inf, 1.0, 2.0, 5.0], 0, 1, N=3)[1]).all()


def test_normality_plot_does_not_overflow():
    ppcc = ours.boxcox_normplot([1.0, 10.0, 1e200], 1, 100, N=3)[1]
    assert np.isfinite(ppcc).all()


def test_values_that_are_not_positive():
    with pytest.raises(ValueError, match=r"Data must be positive\."):
        ours.boxcox_normplot([1.0, 0.0], 0, 1)


def test_normality_plots_draw():
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, ax = plt.subplots()
    lmbdas, ppcc = ours.yeojohnson_normplot([1.0, 2.0, 7.0, -4.0], -1, 2, plot=ax, N=5)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([lmbdas, ppcc]))
    assert (ax.get_title(), ax.get_xlabel()) == ("Yeo-Johnson Normality Plot", "$\\lambda$")
    plt.close(figure)
    ours.boxcox_normplot([1.0, 2.0, 7.0], -1, 2, plot=plt, N=5)
    assert plt.gca().get_title() == "Box-Cox Normality Plot"
    plt.close()


def test_yeojohnson_is_bounded_where_the_variance_would_overflow():
    """The largest transformed value is then 1e-4 times the square root of the largest float64."""
    x = 1000.0 - np.array([0.0, 1e-4, 2e-4, 1e-3, 1e-2])
    lmbda = ours.yeojohnson_normmax(x)
    assert ours.yeojohnson_normmax(x, ymax=np.inf) > 2.0 * lmbda
    bound = np.sqrt(np.finfo(np.float64).max) / 1e4
    assert ours.yeojohnson(x, lmbda).max() == pytest.approx(bound, rel=1e-9)


def test_the_bracket_of_the_straightest_plot_is_symmetric_and_scaled(monkeypatch):
    x = np.exp(np.random.default_rng(0).normal(size=50))
    brackets, brent = [], optimize.brent

    def watched(function, *, brack):
        brackets.append(brack)
        return brent(function, brack=brack)

    monkeypatch.setattr(optimize, "brent", watched)
    ours.boxcox_normmax(x, method="pearsonr")
    low, high = brackets[0]
    assert low == -high
    assert high == pytest.approx(5.0 / np.log(x.max() / x.min()))
