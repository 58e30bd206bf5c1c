"""Negative log-likelihood: the formula of the papers compared with mpmath, and every fast form with this formula."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import powerkern as pk
from powerkern._jit import JIT_DISABLED
from powerkern.kernels import boxcox_nll, yeojohnson_nll
from powerkern.sketch import fit_chunks

NLL = {"box-cox": boxcox_nll, "yeo-johnson": yeojohnson_nll}
LMBDAS = (-2.0, -0.5, 0.0, 1e-9, 0.3, 1.0, 2.0, 2.5)


def exact(family, x, lmbda):
    """Return 1/2 ln Var(psi) - (lambda - 1) mean(J), the negative log-likelihood per observation, from 60 digits.

    Var has the divisor n, J is ln x for Box-Cox and sign(x) ln(1 + |x|) for Yeo-Johnson, and constants are left out.
    """
    with mpmath.workdps(60):
        lmbda = mpmath.mpf(lmbda)
        one = 0 if family == "box-cox" else 1

        def psi(v):
            v = mpmath.mpf(v)
            m, sign = (2 - lmbda, -1) if family == "yeo-johnson" and v < 0 else (lmbda, 1)
            a = mpmath.log(abs(v) + one)
            return sign * (mpmath.expm1(m * a) / m if m else a), sign * a

        y, jacobian = zip(*map(psi, x), strict=True)
        n, mean = len(y), mpmath.fsum(y) / len(y)
        variance = mpmath.fsum((v - mean) ** 2 for v in y) / n
        return float(mpmath.log(variance) / 2 - (lmbda - 1) * mpmath.fsum(jacobian) / n)


def columns(family, n, p, seed=0):
    x = np.random.default_rng(seed).gamma(2.0, size=(n, p))
    return x if family == "box-cox" else x - 1.5


@pytest.mark.parametrize("family", NLL)
@pytest.mark.parametrize("lmbda", LMBDAS)
def test_the_printed_form_agrees_with_mpmath(family, lmbda):
    x = columns(family, 40, 1)[:, 0]
    assert NLL[family](x, lmbda) == pytest.approx(exact(family, x, lmbda), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("family", NLL)
def test_nll_without_variance_is_nan_or_minus_infinity(family):
    nll = NLL[family]
    assert np.isnan(nll([], 1.0))
    assert np.isnan(nll([1.0, np.nan], 1.0))
    assert nll([3.0, 3.0], 0.5) == -np.inf
    with pytest.raises(ValueError, match=r"x must be one-dimensional, got shape \(1, 2\)"):
        nll([[1.0, 2.0]], 1.0)


#: Rows, columns and the weight of the first row, by the route of their fit. One row with most of the weight goes to two
#: passes.
ROUTES = {"one pass": (600, 2, 1), "two pass": (600, 2, 3000), "lockstep": (100, 8, 1)}


def columns_of(family, route):
    """Return columns whose fits take the given route, the weights of their rows, and the columns with repeated rows.

    Each row is repeated as often as its weight.
    """
    n, p, first = ROUTES[route]
    x, weight = columns(family, n, p), np.ones(n, dtype=int)
    weight[0] = first
    return x, weight, np.repeat(x, weight, axis=0)


@pytest.mark.parametrize("family", NLL)
@pytest.mark.parametrize("route", ROUTES)
def test_fits_are_minima_of_the_printed_likelihood(family, route):
    x, weight, repeated = columns_of(family, route)
    fit = pk.fit(x, family, sample_weight=weight)
    assert set(fit.route) == {route}
    for column, lmbda, nll in zip(repeated.T, fit.lmbda, fit.nll, strict=True):
        at = NLL[family](column, lmbda)
        assert nll / column.size == pytest.approx(at, rel=1e-12, abs=1e-12)
        assert at < min(NLL[family](column, lmbda + h) for h in (-0.1, 0.1, -1e-3, 1e-3))


@pytest.mark.parametrize("family", NLL)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("lmbda", LMBDAS[::3] if JIT_DISABLED else LMBDAS)
def test_nll_at_a_given_lambda_is_the_printed_one(family, route, lmbda):
    x, weight, repeated = columns_of(family, route)
    fit = pk.fit(x, family, lmbda=lmbda, sample_weight=weight)
    expected = [len(repeated) * NLL[family](column, lmbda) for column in repeated.T]
    np.testing.assert_allclose(fit.nll, expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("family", NLL)
@pytest.mark.parametrize("n", [100, 600])
def test_nll_with_weights_and_missing_values_is_the_printed_one(family, n):
    x = columns(family, n, 2)
    weight = np.random.default_rng(1).integers(0, 4, n)
    x[::7] = np.nan
    fit = pk.fit(x, family, sample_weight=weight)
    for column, lmbda, nll in zip(x.T, fit.lmbda, fit.nll, strict=True):
        present = np.repeat(column, weight)
        present = present[~np.isnan(present)]
        assert nll == pytest.approx(present.size * NLL[family](present, lmbda), rel=1e-12)


@pytest.mark.parametrize("family", NLL)
def test_profiles_and_fits_of_chunks_have_the_printed_nll(family):
    x = columns(family, 600, 2)
    fit = pk.fit(x, family)
    expected = [[len(x) * NLL[family](column, lmbda) for lmbda in LMBDAS] for column in x.T]
    np.testing.assert_allclose(fit.profile(LMBDAS), expected, rtol=1e-11, atol=1e-10)
    chunks = fit_chunks([x[:200], x[200:]], family)
    expected = [len(x) * NLL[family](column, lmbda) for column, lmbda in zip(x.T, chunks.lmbda, strict=True)]
    np.testing.assert_allclose(chunks.nll, expected, rtol=1e-9)


@pytest.mark.parametrize("family", NLL)
def test_far_from_zero_the_printed_form_loses_digits(family):
    """For 1e6 + N(0, 1), `pk.fit` keeps 13 digits, while the printed formula keeps 8."""
    x = 1e6 + np.random.default_rng(2).normal(size=(300, 1))
    fit = pk.fit(x, family, lmbda=0.5)
    truth = exact(family, x[:, 0], 0.5)
    assert fit.nll[0] / 300 == pytest.approx(truth, rel=1e-13)
    assert NLL[family](x[:, 0], 0.5) == pytest.approx(truth, rel=1e-8)
